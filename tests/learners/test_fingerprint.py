"""Models that are bound to an embedding, and embeddings that are not the one."""

import json

import numpy as np
import pytest
from scipy import sparse

import aromatch as am
from learner_classes import SIMILARITIES

RNG = np.random.default_rng(0)
PROBES = RNG.normal(size=(3, 6))
MINE = am.Fingerprint.of("mini-v1", PROBES)


def fitted(learner=am.DiagonalAROMA):
    X, y = RNG.normal(size=(30, 6)), np.arange(30) % 3
    return learner().fit(X, y), X


def test_it_tells_names_widths_norms_and_vectors_apart():
    assert MINE.differences(am.Fingerprint.of("mini-v1", PROBES)) == []
    assert MINE.differences(am.Fingerprint.of("mini-v2", PROBES)) == ["name"]
    assert MINE.differences(am.Fingerprint.of("mini-v1", PROBES[::-1])) == ["probe"]
    assert MINE.differences(am.Fingerprint.of("mini-v1", 1.1 * PROBES)) == ["probe"]
    unit = PROBES / np.linalg.norm(PROBES, axis=1, keepdims=True)
    assert am.Fingerprint.of("mini-v1", unit).is_normalised
    assert MINE.differences(am.Fingerprint.of("mini-v1", unit)) == ["is_normalised", "probe"]
    assert MINE.differences(am.Fingerprint.of("mini-v1", PROBES[:, :5])) == ["dimension", "probe"]


@pytest.mark.parametrize("convert", [np.float32, np.float16, sparse.csr_array, sparse.csr_matrix, np.asfortranarray])
def test_the_same_vectors_in_another_form_are_the_same_embedding(convert):
    assert MINE.differences(am.Fingerprint.of("mini-v1", convert(PROBES))) == []


def test_other_embeddings_have_other_probes():
    for seed in range(200):
        other = np.random.default_rng(seed + 1).normal(size=(3, 6))
        assert MINE.differences(am.Fingerprint.of("mini-v1", other)) == ["probe"]


@pytest.mark.parametrize("learner", SIMILARITIES)
def test_it_is_saved_copied_and_checked(learner, tmp_path):
    model, _ = fitted(learner)
    assert model.fingerprints_ is None
    model.set_fingerprint(MINE)
    model.save(tmp_path / "model")
    for one in (model, model.copy(), am.load(tmp_path / "model")):
        assert one.fingerprints_ == (MINE, MINE)
        one.check_fingerprint(am.Fingerprint.of("mini-v1", PROBES))
        with pytest.raises(ValueError, match="fitted on 'mini-v1', got 'mini-v1': its probe differ"):
            one.check_fingerprint(am.Fingerprint.of("mini-v1", PROBES + 1))


@pytest.mark.parametrize("learner", SIMILARITIES)
def test_who_learns_anew_is_bound_to_nothing(learner):
    model, X = fitted(learner)
    model.set_fingerprint(MINE)
    assert model.fit(X, np.arange(30) % 3).fingerprints_ is None
    if hasattr(model, "fit_pairs"):
        assert model.set_fingerprint(MINE).fit_pairs([[0, 3], [0, 1]], [True, False], X).fingerprints_ is None
    if hasattr(model, "fit_triplets"):
        assert model.set_fingerprint(MINE).fit_triplets([[0, 3, 1]], X).fingerprints_ is None
    if hasattr(model, "partial_fit_triplets"):
        model.set_fingerprint(MINE)
        assert model.partial_fit_triplets([[0, 3, 1]], X).fingerprints_ is not None
        assert model.grow(7).fingerprints_ is None


def test_queries_and_objects_may_have_different_embeddings():
    objects = am.Fingerprint.of("pictures", RNG.normal(size=(2, 4)))
    model = am.FactoredAROMA().fit_triplets([[0, 1, 2]], np.ones((1, 6)), RNG.normal(size=(3, 4)))
    with pytest.raises(ValueError, match="objects has 6 dimensions, but the model was fitted on 4"):
        model.set_fingerprint(MINE)
    model.set_fingerprint(MINE, objects)
    model.check_fingerprint(MINE, objects)
    with pytest.raises(ValueError, match=r"fitted on 'pictures' \(objects\), got 'mini-v1'"):
        model.check_fingerprint(MINE, MINE)


def test_a_projection_keeps_it_and_a_merged_model_too():
    model, _ = fitted(am.MomentAROMA)
    model.set_fingerprint(MINE)
    assert model.project().fingerprints_ == (MINE, MINE)
    assert am.merge([model, model.copy()]).fingerprints_ == (MINE, MINE)
    other = model.copy().set_fingerprint(am.Fingerprint.of("mini-v2", PROBES))
    with pytest.raises(ValueError, match="model 1 has another fingerprint than model 0"):
        am.merge([model, other])


def test_an_index_refuses_objects_of_another_embedding():
    model, X = fitted()
    with pytest.raises(ValueError, match="no fingerprint"):
        am.Index(model, X, fingerprint=MINE)
    model.set_fingerprint(MINE)
    assert len(am.Index(model, X, fingerprint=MINE)) == 30
    with pytest.raises(ValueError, match="its name differ"):
        am.Index(model, X, fingerprint=am.Fingerprint.of("mini-v2", PROBES))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("", PROBES), TypeError, "name must be text, got ''"),
        ((3, PROBES), TypeError, "name must be text, got 3"),
        (("x", PROBES[0]), ValueError, "vectors must be a 2-D matrix"),
        (("x", np.full((1, 2), np.nan)), ValueError, "vectors contains NaN"),
    ],
)
def test_what_is_no_embedding_is_named(arguments, error, message):
    with pytest.raises(error, match=message):
        am.Fingerprint.of(*arguments)
    with pytest.raises(TypeError, match="queries must be a Fingerprint, got 'mini'"):
        fitted()[0].set_fingerprint("mini")


@pytest.mark.parametrize(
    "header",
    [None, {}, {"name": 1, "dimension": 6, "is_normalised": False, "probe": []},
     {"name": "x", "dimension": 0, "is_normalised": False, "probe": []},
     {"name": "x", "dimension": 6, "is_normalised": 1, "probe": []},
     {"name": "x", "dimension": 6, "is_normalised": False, "probe": ["a"]}],
)  # fmt: skip
def test_what_a_file_says_is_not_believed(header):
    with pytest.raises((ValueError, TypeError), match="fingerprint"):
        am.Fingerprint.from_header(header)
    assert am.Fingerprint.from_header(json.loads(json.dumps(MINE.to_header()))) == MINE

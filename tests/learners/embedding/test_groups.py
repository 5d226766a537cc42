"""Groups from noisy triplets: planted groups, the noise, and the maps of TripletEmbedding."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score

import aromatch as am
from aromatch.exceptions import NoSignalError
from aromatch.learners.embedding.groups import fit_groups
from aromatch.learners.embedding.training_set import TripletData
from grouped_rows import groups, quality

ROWS = {"n_rows": 1_200, "n_groups": 12, "width": 40, "spread": 0.12}


def judged(n, flipped=0.0, **settings):
    """Return rows, triplets of which a share has its objects exchanged, labels, and test rows with labels."""
    X, y, X_test, y_test = groups(**(ROWS | settings))
    triplets = am.triplets.from_labels(y, n, random_state=0)
    is_flipped = np.random.default_rng(1).random(n) < flipped
    triplets[is_flipped] = triplets[is_flipped][:, [0, 2, 1]]
    return X, triplets, y, X_test, y_test


def found_in(X, triplets, P=None, sample_weight=None):
    training = TripletData.read(triplets, X, X if P is None else P, sample_weight)
    return fit_groups(training.scaled(), 10.0, np.random.default_rng(0)), np.unique(triplets)


def fitted(method, triplets, X, **settings):
    return am.TripletEmbedding(method, random_state=0, **settings).fit_triplets(triplets, X)


@pytest.mark.parametrize(("n", "flipped"), [(1_500, 0.0), (3_000, 0.1), (6_000, 0.3)])
def test_planted_groups_and_the_share_of_wrong_triplets_are_found(n, flipped):
    X, triplets, y, *_ = judged(n, flipped)
    found, rows = found_in(X, triplets)
    assert adjusted_rand_score(y[rows], found.probabilities.argmax(axis=1)) > 0.9
    assert found.noise == pytest.approx(max(flipped, 0.005), abs=0.06)


@pytest.mark.parametrize(
    ("n_groups", "n", "flipped"), [(2, 2_000, 0.0), (2, 8_000, 0.3), (3, 2_000, 0.1), (30, 8_000, 0.1)]
)
def test_few_and_many_groups_are_found(n_groups, n, flipped):
    X, triplets, y, *_ = judged(n, flipped, n_groups=n_groups)
    found, rows = found_in(X, triplets)
    assert found.probabilities.shape[1] == pytest.approx(n_groups, rel=0.1)
    assert adjusted_rand_score(y[rows], found.probabilities.argmax(axis=1)) > 0.9


@pytest.mark.parametrize("flipped", [0.0, 0.2])
def test_groups_rank_unseen_rows_as_logistic_regression_on_the_labels(flipped):
    X, triplets, y, X_test, y_test = judged(8_000, flipped, spread=0.3)
    model = fitted("groups", triplets, X)
    by_labels = LogisticRegression(C=10.0, max_iter=1_000).fit(X / np.linalg.norm(X, axis=1, keepdims=True), y)
    P = by_labels.predict_proba(X_test / np.linalg.norm(X_test, axis=1, keepdims=True))
    expected = quality(am.Euclidean().fit(P), P, y_test)
    assert quality(model, X_test, y_test) > expected - 0.03
    assert quality(model, X_test, y_test) > quality(fitted("linear", triplets, X), X_test, y_test)


def test_a_weight_of_two_is_the_same_evidence_as_the_triplet_twice():
    X, triplets, y, *_ = judged(3_000, 0.1)
    weighted, rows = found_in(X, triplets, sample_weight=np.full(len(triplets), 2.0))
    twice, _ = found_in(X, np.concatenate([triplets, triplets]))
    assert adjusted_rand_score(weighted.probabilities.argmax(axis=1), twice.probabilities.argmax(axis=1)) > 0.95
    assert weighted.noise == pytest.approx(twice.noise, abs=0.02)
    assert len(rows) <= len(y)


def test_triplets_of_weight_zero_are_ignored():
    X, triplets, *_ = judged(3_000)
    wrong = triplets[:1_000, [0, 2, 1]]
    weights = np.concatenate([np.ones(len(triplets)), np.zeros(len(wrong))])
    expected = fitted("groups", triplets, X)
    model = am.TripletEmbedding("groups", random_state=0)
    model.fit_triplets(np.concatenate([triplets, wrong]), X, sample_weight=weights)
    np.testing.assert_array_equal(model.predict_groups(X), expected.predict_groups(X))


def test_queries_and_objects_may_be_different_rows():
    X, triplets, y, *_ = judged(6_000, 0.1)
    P = X[::-1].copy()
    triplets[:, 1:] = len(X) - 1 - triplets[:, 1:]
    model = am.TripletEmbedding("groups", random_state=0).fit_triplets(triplets, X, P)
    assert adjusted_rand_score(y, model.predict_groups(X).argmax(axis=1)) > 0.8


@pytest.mark.parametrize("method", ["groups", "blend"])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_maps_give_every_score_and_a_file_restores_them(method, container, tmp_path):
    X, triplets, _, X_test, _ = judged(3_000, 0.1, n_rows=600, n_groups=6)
    X[3] = 0
    model = fitted(method, triplets, container(X))
    assert model.method_ == method
    U, V, scores = model.transform(X), model.transform_objects(container(X)), model.similarity(container(X))
    np.testing.assert_allclose(scores, U @ V.T, atol=1e-6)
    assert not scores[3].any()
    assert U.shape[1] == len(model.get_feature_names_out())
    pairs = np.random.default_rng(0).integers(len(X), size=(50, 2))
    np.testing.assert_allclose(model.pair_score(X, None, pairs), scores[pairs[:, 0], pairs[:, 1]], atol=1e-6)
    model.save(tmp_path / "model")
    loaded = am.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.similarity(X_test), model.similarity(X_test))
    for name in ("method_", "n_groups_", "noise_", "blend_weight_", "validation_scores_"):
        np.testing.assert_equal(getattr(loaded, name), getattr(model, name))


def test_a_blend_is_the_cosine_of_the_linear_map_plus_the_weighted_probability_of_one_group():
    X, triplets, _, X_test, _ = judged(3_000, 0.1)
    model = fitted("blend", triplets, X)
    Z, P = X_test @ model.components_.T, model.predict_groups(X_test)
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    np.testing.assert_allclose(model.similarity(X_test), Z @ Z.T + model.blend_weight_ * P @ P.T, atol=1e-6)
    assert set(model.validation_scores_) >= {"groups", "blend"}


def test_probabilities_of_groups_sum_to_one():
    X, triplets, *_ = judged(3_000)
    model = fitted("groups", triplets, X)
    P = model.predict_groups(X)
    assert P.shape == (len(X), model.n_groups_)
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-5)


def test_the_same_seed_gives_the_same_bits():
    X, triplets, *_ = judged(2_000, 0.1)
    first, second = (fitted("blend", triplets, X).transform(X) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("method", ["groups", "blend"])
def test_without_a_community_of_five_rows_the_error_says_so(method):
    with pytest.raises(NoSignalError, match="community of at least five rows"):
        fitted(method, [[0, 1, 2], [3, 4, 5]], np.random.default_rng(0).normal(size=(6, 3)))


def test_methods_without_groups_refuse_to_predict_them():
    X, triplets, *_ = judged(2_000)
    model = fitted("linear", triplets, X)
    assert model.n_groups_ == 0
    assert np.isnan(model.noise_)
    with pytest.raises(ValueError, match="predict_groups needs method 'groups' or 'blend'"):
        model.predict_groups(X)
    with pytest.raises(ValueError, match="explain_pair needs a linear map"):
        fitted("groups", triplets, X).explain_pair(X[:1], X[1:2])

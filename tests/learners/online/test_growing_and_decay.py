"""`grow` adds features, and `decay` reduces the confidence in earlier triplets."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse

import aromatch as am
from grouped_rows import groups
from learner_classes import ONLINE, TRIPLET_LEARNERS, WITH_TOUCHED_CELLS, strength_parameter

LEARNERS = {
    **{cls.__name__: partial(cls, **{strength_parameter(cls): 0.1}) for cls in TRIPLET_LEARNERS},
    **{f"{cls.__name__}, touched": partial(cls, 0.1, cells="touched") for cls in WITH_TOUCHED_CELLS},
    "DiagonalAROMA, inverse": partial(am.DiagonalAROMA, 0.1, covariance_update="inverse"),
    "MomentAROMA, auto": partial(am.MomentAROMA, "auto"),
}
ONLINE_NAMES = [name for name, make in LEARNERS.items() if make.func in ONLINE]


def toy(m=14, n=13, n_triplets=150):
    rng = np.random.default_rng(0)
    Q, P = rng.normal(size=(40, m)), rng.normal(size=(50, n))
    triplets = np.column_stack([rng.integers(40, size=n_triplets), rng.integers(50, size=(n_triplets, 2))])
    return Q, P, triplets[triplets[:, 1] != triplets[:, 2]]


def wider(X, width):
    return np.pad(X, [(0, 0), (0, width - X.shape[1])])


def dense(matrix):
    return matrix.toarray() if sparse.issparse(matrix) else matrix


# -- growing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in LEARNERS if name != "FactoredAROMA"])
def test_a_grown_model_equals_one_with_all_features_from_the_start(name):
    Q, P, triplets = toy()
    settings = {"init": "zero"} if name in ONLINE_NAMES else {}
    model = LEARNERS[name](**settings).fit_triplets(triplets[:90], Q, P).grow(17, 16)
    all_along = LEARNERS[name](**settings).fit_triplets(triplets[:90], wider(Q, 17), wider(P, 16))
    rng = np.random.default_rng(1)
    Q, P = (wider(X, width) + 0.1 * rng.normal(size=(len(X), width)) for X, width in ((Q, 17), (P, 16)))
    for _ in range(2):
        tolerance = (
            1e-9 if name != "MomentAROMA, auto" else 0.5
        )  # alpha differs: it depends on the mean square of a feature
        np.testing.assert_allclose(model.similarity(Q, P), all_along.similarity(Q, P), rtol=tolerance, atol=tolerance)
        model.partial_fit_triplets(triplets[90:], Q, P)
        all_along.partial_fit_triplets(triplets[90:], Q, P)
    assert model.n_triplets_seen_ == len(triplets) + len(triplets[90:])


@pytest.mark.parametrize("size", [6, 30])
def test_covariances_of_new_features_are_the_initial_ones(size):
    Q, P, triplets = toy(size, size)
    model = am.FactoredAROMA(r=0.1).fit_triplets(triplets, Q, P)  # at 30 features with terms that are pending
    before = {name: getattr(model, f"{name}_") for name in ("W", "Omega", "Lambda")}
    model.grow(size + 5)
    for name, known in before.items():
        expected = np.zeros((size + 5, size + 5)) if name == "W" else np.eye(size + 5)
        expected[:size, :size] = known
        np.testing.assert_allclose(getattr(model, f"{name}_"), expected, rtol=1e-12, atol=1e-14)
    assert model.learn_one(np.ones(size + 5), np.ones(size + 5), np.zeros(size + 5)).updated


@pytest.mark.parametrize("name", [name for name in ONLINE_NAMES if "Full" not in name])
@pytest.mark.parametrize(("init", "expected"), [("identity", 1.0), (3.0, 3.0), ("zero", 0.0)])
def test_new_features_start_from_init(name, init, expected):
    Q, P, triplets = toy(5, 5)
    model = LEARNERS[name](init=init).fit_triplets(triplets, Q, P)
    W = dense(model.W_)
    grown = dense(model.grow(8).W_)
    np.testing.assert_allclose(grown[:5, :5], W, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(grown[5:], expected * np.eye(8)[5:])
    np.testing.assert_array_equal(grown[:, 5:], expected * np.eye(8)[:, 5:])


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_new_features_start_at_zero_if_init_is_a_matrix(container):
    Q, P, triplets = toy(5, 4)
    model = am.OASIS(init=container(np.ones((5, 4)))).fit_triplets(triplets[:0], Q, P).grow(6, 5)
    expected = np.zeros((6, 5))
    expected[:5, :4] = 1
    np.testing.assert_array_equal(model.W_, expected)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_grown_model_can_be_saved_and_resumed(name, tmp_path):
    Q, P, triplets = toy()
    settings = {"init": "zero"} if name in ONLINE_NAMES else {}
    model = LEARNERS[name](**settings).fit_triplets(triplets[:90], Q, P).grow(16, 15)
    if hasattr(model, "decay"):
        model.decay(0.3)
    model.save(tmp_path / "model")
    loaded = am.load(tmp_path / "model")
    Q, P = wider(Q, 16), wider(P, 15)
    for one in (model, loaded):
        one.partial_fit_triplets(triplets[90:], Q, P)
    np.testing.assert_array_equal(dense(model.W_), dense(loaded.W_))


def test_sums_that_only_earlier_parameters_needed_are_ignored():
    Q, P, triplets = toy(5, 5)
    model = am.MomentAROMA("auto").fit_triplets(triplets, Q, P).set_params(alpha=0.1)
    np.testing.assert_allclose(model.grow(6).W_[:5, :5], am.MomentAROMA(0.1).fit_triplets(triplets, Q, P).W_)


@pytest.mark.parametrize(
    ("make", "sizes", "message"),
    [
        (lambda: am.DiagonalAROMA(), (4, 5), "m must be at least 5, got 4"),
        (lambda: am.DiagonalAROMA(), (5, 3), "n must be at least 4, got 3"),
        (lambda: am.DiagonalAROMA(), (6,), "n must be given, since queries have 5 features and objects 4"),
        (lambda: am.FullAROMA(), (100, 100), "at most 5000 for FullAROMA"),
        (lambda: am.DiagonalAROMA(), (200_000, 200_000), "cells="),
    ],
)
def test_invalid_sizes_are_refused_and_change_nothing(make, sizes, message):
    Q, P, triplets = toy(5, 4)
    model = make().fit_triplets(triplets, Q, P)
    before = model.W_
    with pytest.raises(ValueError, match=message):
        model.grow(*sizes)
    np.testing.assert_array_equal(model.W_, before)
    assert (model.n_features_in_, model.n_object_features_in_) == (5, 4)


@pytest.mark.parametrize("cells", ["dense", "touched"])
def test_an_identity_cannot_become_oblong(cells):
    model = am.OASIS(cells=cells).fit_triplets([[0, 1, 2]], np.eye(3))
    with pytest.raises(ValueError, match="init is a multiple of the identity, which needs m = n, got m = 4 and n = 3"):
        model.grow(4, 3)
    assert model.grow(3) is model


# -- decay ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.2, 0.9])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_decay_moves_the_covariance_towards_the_initial_one(rate, dtype):
    Q, P, triplets = toy(5, 4)
    tolerance = 1e-9 if dtype == "float64" else 1e-4
    for name in ("DiagonalAROMA", "DiagonalAROMA, touched", "FactoredAROMA", "FullAROMA"):
        model = LEARNERS[name](dtype=dtype).fit_triplets(triplets, Q, P)
        W = dense(model.W_)
        if name == "FactoredAROMA":
            share, known = 1 - np.sqrt(1 - rate), [model.Omega_, model.Lambda_]
            found = model.decay(rate).Omega_, model.Lambda_
        else:
            share, Sigma = rate, dense(model.Sigma_)
            known = [Sigma if name == "FullAROMA" else np.diag(Sigma.ravel())]
            Sigma = dense(model.decay(rate).Sigma_)
            found = [Sigma if name == "FullAROMA" else np.diag(Sigma.ravel())]
        for before, after in zip(known, found, strict=True):
            expected = np.linalg.inv((1 - share) * np.linalg.inv(before.astype(float)) + share * np.eye(len(before)))
            np.testing.assert_allclose(after, expected, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(dense(model.W_), W, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", [name for name in ONLINE_NAMES if hasattr(LEARNERS[name](), "decay")])
def test_a_rate_of_1_restores_the_initial_covariance_and_a_rate_of_0_changes_nothing(name):
    Q, P, triplets = toy(12, 12)
    model = LEARNERS[name]().fit_triplets(triplets, Q, P)
    W, std = dense(model.W_), model.pair_std(Q, P, [[0, 0]])
    np.testing.assert_array_equal(model.decay(0).pair_std(Q, P, [[0, 0]]), std)
    fresh = LEARNERS[name]().fit_triplets(triplets[:0], Q, P)
    pairs = [[i, j] for i in range(5) for j in range(5)]
    np.testing.assert_allclose(model.decay(1).pair_std(Q, P, pairs), fresh.pair_std(Q, P, pairs), rtol=1e-9)
    np.testing.assert_allclose(dense(model.W_), W, rtol=1e-9, atol=1e-12)
    assert model.partial_fit_triplets(triplets, Q, P).n_triplets_seen_ == 2 * len(triplets)


def test_decay_multiplies_the_weights_of_earlier_triplets():
    Q, P, triplets = toy(5, 4)
    model = am.MomentAROMA(0.1).fit_triplets(triplets[:90], Q, P).decay(0.75).partial_fit_triplets(triplets[90:], Q, P)
    weights = np.where(np.arange(len(triplets)) < 90, 0.25, 1.0)
    expected = am.MomentAROMA(0.1).fit_triplets(triplets, Q, P, sample_weight=weights)
    np.testing.assert_allclose(model.W_, expected.W_, rtol=1e-9)
    np.testing.assert_allclose(model.Lambda_, expected.Lambda_, rtol=1e-9)


@pytest.mark.parametrize(
    ("rate", "error"), [(-0.1, ValueError), (1.1, ValueError), (np.nan, ValueError), ("1", TypeError)]
)
def test_rates_outside_of_zero_to_one_are_refused(rate, error):
    model = am.DiagonalAROMA().fit_triplets([[0, 1, 2]], np.eye(3))
    with pytest.raises(error, match="rate must be"):
        model.decay(rate)


def test_a_learner_without_a_distribution_has_no_decay():
    assert not hasattr(am.OASIS().fit_triplets([[0, 1, 2]], np.eye(3)), "decay")


@pytest.mark.parametrize(
    ("make", "at_once", "rate", "n", "gain"),
    [
        (lambda: am.DiagonalAROMA(r=0.1), 0.9, 0.0, 400, 0.1),
        (lambda: am.FactoredAROMA(r=0.1), 0.9, 0.0, 1_000, 0.05),
        (lambda: am.FactoredAROMA(r=0.1), 0.0, 0.2, 1_000, 0.05),
        (lambda: am.MomentAROMA(0.01), 0.9, 0.0, 1_000, 0.1),
        (lambda: am.MomentAROMA(0.01), 0.0, 0.2, 1_000, 0.1),
    ],
)
def test_decay_improves_the_ranking_after_preferences_change(make, at_once, rate, n, gain):
    X, y, X_test, y_test = groups(n_rows=400, n_groups=8, width=30, spread=0.3)
    # Preferences change: at first rows of the same group are preferred, then those of the next group.
    rng = np.random.default_rng(0)
    before = am.triplets.from_labels(y, 20_000, random_state=0)
    query, other = rng.integers(400, size=(2, 2 * n))
    wanted = (y[query] + 1) % 8
    good = np.array([rng.choice(np.flatnonzero(y == group)) for group in wanted])
    after = np.column_stack([query, good, other])[y[other] != wanted][:n]
    found = {}
    for forgets in (False, True):
        model = make().fit_triplets(before, X)
        if forgets:
            model.decay(at_once)
        for start in range(0, n, 50):
            model.partial_fit_triplets(after[start : start + 50], X)
            if forgets:
                model.decay(rate)
        first = np.argmax(model.similarity(X_test), axis=1)
        found[forgets] = np.mean(y_test[first] == (y_test + 1) % 8)
    assert found[True] > found[False] + gain

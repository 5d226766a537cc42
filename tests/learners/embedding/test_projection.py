"""Projections of W: the nearest matrices of their kind, and spaces in which plain tools find the same."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.neighbors import NearestNeighbors

import aromatch as am

LEARNERS = [
    am.DiagonalAROMA(),
    am.FactoredAROMA(),
    am.FullAROMA(),
    am.MomentAROMA(),
    am.OASIS(),
    am.OASIS(cells="touched"),
    am.FactoredAROMA(dtype="float32"),
]


def problem(seed=0, n_features=8, n_classes=3):
    """Rows whose class is in the first features alone, as triplets for learning and others to choose by."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=120)
    X = 0.6 * rng.normal(size=(120, n_features)) + 1.5 * np.eye(n_features)[y]
    return X, am.triplets.from_labels(y, 600, random_state=1), am.triplets.from_labels(y, 500, random_state=2)


def fitted(learner):
    X, triplets, _ = problem()
    return X, learner.fit_triplets(triplets, X)


def whole(W):
    return W.toarray() if sparse.issparse(W) else np.asarray(W, dtype=np.float64)


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
@pytest.mark.parametrize("kind", ["psd", "symmetric"])
@pytest.mark.parametrize("rank", [1, 3, 7, 8, 20])
def test_the_projection_is_the_nearest_matrix_of_its_kind_and_rank(learner, kind, rank):
    X, model = fitted(learner)
    W = whole(model.W_)
    found = model.project(kind, rank)
    values = np.linalg.eigvalsh((W + W.T) / 2)
    kept = np.sort(values[values > 0])[::-1][:rank] if kind == "psd" else values[np.argsort(-np.abs(values))][:rank]
    # Eckart and Young: what is left over has the other eigenvalues, and what is not symmetric.
    distance = np.sum(values**2) - np.sum(kept**2) + np.sum(((W - W.T) / 2) ** 2)
    assert np.sum((W - found.W_) ** 2) == pytest.approx(distance, rel=1e-6, abs=1e-12)
    np.testing.assert_allclose(found.W_, found.W_.T, atol=1e-12)
    assert found.L_.shape == (8, len(kept))
    np.testing.assert_allclose(found.similarity(X), X @ found.W_ @ X.T, rtol=1e-6, atol=1e-9)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), kind=st.sampled_from(["psd", "symmetric"]))
def test_projecting_again_changes_nothing(seed, kind):
    rng = np.random.default_rng(seed)
    model = am.OASIS(init=rng.normal(size=(5, 5))).fit_triplets(np.zeros((0, 3), int), np.eye(5))
    once = model.project(kind)
    again = am.OASIS(init=once.W_).fit_triplets(np.zeros((0, 3), int), np.eye(5)).project(kind)
    np.testing.assert_allclose(again.W_, once.W_, atol=1e-9)
    if kind == "symmetric":
        np.testing.assert_allclose(once.W_, (model.W_ + model.W_.T) / 2, atol=1e-9)
    else:
        assert np.linalg.eigvalsh(once.W_).min() > -1e-9


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("normalize", [False, True, 0.7])
def test_inner_products_in_the_space_are_the_similarity(normalize, container):
    X, model = fitted(am.MomentAROMA())
    X[5] = 0
    found = model.project(rank=4, normalize=normalize)
    Z = found.transform(container(X))
    assert Z.shape == (120, 4)
    scores = found.similarity(container(X[:30]), container(X))
    np.testing.assert_allclose(scores, Z[:30] @ Z.T, atol=1e-12)
    plain, cosine = X @ found.W_ @ X.T, cosine_similarity(X @ found.L_)
    # Plain score and cosine differ by both norms, so powers of one and the other make up the power of the norms.
    expected = np.sign(plain) * np.abs(plain) ** (1 - normalize) * np.abs(cosine) ** normalize
    np.testing.assert_allclose(scores, expected[:30], atol=1e-7)
    rng = np.random.default_rng(0)
    pairs, triplets = rng.integers(120, size=(50, 2)), rng.integers(120, size=(50, 3))
    every = found.similarity(X)
    np.testing.assert_allclose(found.pair_score(container(X), None, pairs), every[pairs[:, 0], pairs[:, 1]], atol=1e-12)
    q, good, bad = triplets.T
    np.testing.assert_allclose(found.margins(triplets, container(X)), every[q, good] - every[q, bad], atol=1e-12)


def test_normalised_score_and_metric_rank_alike():
    """Section 2 of the paper: ``(q - p)'W(q - p)`` and ``q'Wp`` are equivalent where all rows have the same W-norm."""
    X, model = fitted(am.FactoredAROMA())
    found = model.project(normalize=True)
    Z = found.transform(X)
    np.testing.assert_allclose(np.linalg.norm(Z, axis=1), 1)
    _, nearest = NearestNeighbors(n_neighbors=10).fit(Z[20:]).kneighbors(Z[:20])
    np.testing.assert_array_equal(nearest, np.argsort(-found.similarity(X[:20], X[20:]), axis=1)[:, :10])


@pytest.mark.parametrize("normalize", [False, True, 0.5])
@pytest.mark.parametrize("kind", ["psd", "symmetric"])
def test_the_chosen_rank_orders_the_given_triplets_best(kind, normalize):
    if normalize and kind == "symmetric":
        pytest.skip("cosines belong to psd")
    X, triplets, held_out = problem(n_features=20)
    model = am.MomentAROMA(lam=1e-6).fit_triplets(triplets[:80], X)
    chosen = model.project(kind, "auto", normalize, triplets=held_out, Q=X)
    rank = len(chosen.signs_)
    most = len(model.project(kind).signs_)
    accuracy = [model.project(kind, r, normalize).triplet_accuracy(held_out, X) for r in range(1, most + 1)]
    assert accuracy[rank - 1] == max(accuracy)
    assert all(value < max(accuracy) for value in accuracy[: rank - 1])
    assert min(accuracy) < max(accuracy)


def test_a_projection_keeps_what_matters_where_rows_are_noisy():
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=600)
    X = rng.normal(size=(600, 60)) + 1.5 * np.eye(60)[y]
    model = am.MomentAROMA().fit_triplets(am.triplets.from_labels(y[:300], 20_000, random_state=0), X[:300])
    X_new, held_out = X[300:], am.triplets.from_labels(y[300:], 5000, random_state=1)
    raw, cut = model.triplet_accuracy(held_out, X_new), model.project(rank=3).triplet_accuracy(held_out, X_new)
    assert cut > raw + 0.02


def test_a_projection_is_saved_and_read_again(tmp_path):
    X, model = fitted(am.MomentAROMA())
    for found in (model.project(rank=3, normalize=True), model.project(normalize=0.7), model.project("symmetric")):
        found.save(tmp_path / "model")
        loaded = am.load(tmp_path / "model")
        assert repr(loaded) == repr(found)
        np.testing.assert_array_equal(loaded.similarity(X), found.similarity(X))
        np.testing.assert_array_equal(found.copy().transform(X), found.transform(X))
    found._state["signs"][:] = 0.5
    with pytest.raises(ValueError, match="signs do not fit"):
        found.save(tmp_path / "model")


def test_the_same_model_gives_the_same_bits():
    _, model = fitted(am.OASIS(cells="touched"))
    np.testing.assert_array_equal(model.project(rank=3).L_, model.project(rank=3).L_)


def test_a_model_that_knows_nothing_scores_everything_zero():
    X, triplets, _ = problem()
    model = am.MomentAROMA().fit_triplets(triplets[:0], X)
    touched = am.OASIS(init="zero", cells="touched").fit_triplets(triplets[:0], X)
    chosen = model.project("psd", "auto", triplets=triplets, Q=X)
    for found in (model.project(), model.project("symmetric", 2), chosen, touched.project(rank=2)):
        assert found.L_.shape == (8, 0)
        assert (found.similarity(X) == 0).all()


def test_what_cannot_be_projected_is_refused():
    X, triplets, _ = problem()
    model = am.OASIS().fit_triplets(triplets, X)
    wide = am.OASIS(init="zero").fit_triplets(triplets, X, X[:, :5])
    touched = am.OASIS(cells="touched").fit_triplets(triplets, X)
    broken = sparse.csr_matrix(X)
    broken.indices = np.full_like(broken.indices, 10**8)

    def chosen_on(Q):
        return model.project(rank="auto", triplets=triplets, Q=Q)

    for call, error, message in (
        (lambda: wide.project(), ValueError, "as many query as object features, got 8 and 5"),
        (lambda: model.project("metric"), ValueError, "kind must be"),
        (lambda: model.project("symmetric", normalize=True), ValueError, "normalize needs kind 'psd'"),
        (lambda: model.project(normalize=1.5), ValueError, "normalize must be True, False or a number from 0 to 1"),
        (lambda: model.project(normalize="yes"), TypeError, "normalize must be"),
        (lambda: model.project(rank=0), ValueError, "rank must be"),
        (lambda: model.project(rank="all"), ValueError, "rank must be"),
        (lambda: model.project(rank="auto"), ValueError, "needs triplets and their rows"),
        (lambda: model.project(rank="auto", triplets=triplets[:0], Q=X), ValueError, "triplets is empty"),
        (lambda: model.project(rank=3, triplets=triplets, Q=X), ValueError, "triplets is for rank='auto' only"),
        (lambda: touched.project(), ValueError, "rank must be a number"),
        (lambda: chosen_on(np.full_like(X, np.nan)), ValueError, "Q contains NaN"),
        (lambda: chosen_on(1e200 * X), ValueError, "too large"),
        (lambda: chosen_on(broken), ValueError, "Q is not a valid CSR matrix"),
        (lambda: chosen_on(np.full(X.shape, "a", dtype=object)), ValueError, "Q must be"),
        (lambda: clone(model.project()).similarity(X), NotFittedError, "is empty"),
        (lambda: clone(model.project()).W_, NotFittedError, "is empty"),
        (lambda: model.project("symmetric").set_params(normalize=True).similarity(X), ValueError, "normalize needs"),
        (lambda: am.OASIS().project(), NotFittedError, "not fitted"),
    ):
        with pytest.raises(error, match=message):
            call()

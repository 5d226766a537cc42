"""Embeddings that `project` makes from W: the nearest matrices of a rank, in vectors that other tools can use."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
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
    """Rows whose class is in the first features alone, and triplets of them."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=120)
    X = 0.6 * rng.normal(size=(120, n_features)) + 1.5 * np.eye(n_features)[y]
    return X, am.triplets.from_labels(y, 600, random_state=1)


def fitted(learner, n_object_features=8):
    X, triplets = problem()
    P = X[:, :n_object_features].copy()
    return X, P, clone(learner).fit_triplets(triplets, X, *(() if n_object_features == 8 else (P,)))


def whole(W):
    return W.toarray() if sparse.issparse(W) else np.asarray(W, dtype=np.float64)


def product(embedding):
    return embedding.components_.T @ embedding.object_components_


def from_matrix(W):
    return am.OASIS(init=W).fit_triplets(np.zeros((0, 3), int), np.eye(len(W)))


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
@pytest.mark.parametrize("n_components", [1, 3, 7, 8, 20])
def test_the_symmetric_projection_is_the_nearest_psd_matrix_of_its_rank(learner, n_components):
    X, _, model = fitted(learner)
    W = whole(model.W_)
    found = model.project(n_components)
    values = np.linalg.eigvalsh((W + W.T) / 2)
    kept = np.sort(values[values > 0])[::-1][:n_components]
    # Eckart and Young: the other eigenvalues and the antisymmetric part remain.
    distance = np.sum(values**2) - np.sum(kept**2) + np.sum(((W - W.T) / 2) ** 2)
    assert np.sum((W - product(found)) ** 2) == pytest.approx(distance, rel=1e-6, abs=1e-12)
    assert found.components_.shape == (len(kept), 8)
    assert (found.method_, found.validation_scores_) == ("projection", {})
    np.testing.assert_allclose(found.similarity(X), X @ product(found) @ X.T, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
@pytest.mark.parametrize("n_object_features", [5, 8])
@pytest.mark.parametrize("n_components", [1, 3, 20])
def test_the_pair_of_maps_is_the_nearest_matrix_of_its_rank(learner, n_object_features, n_components):
    learner = clone(learner).set_params(init="zero") if isinstance(learner, am.OASIS) else learner
    X, P, model = fitted(learner, n_object_features)
    W = whole(model.W_)
    found = model.project(n_components, symmetric=False)
    k = min(n_components, n_object_features)
    values = np.linalg.svd(W, compute_uv=False)
    assert np.sum((W - product(found)) ** 2) == pytest.approx(np.sum(values[k:] ** 2), rel=1e-5, abs=1e-10)
    assert (found.components_.shape, found.object_components_.shape) == ((k, 8), (k, n_object_features))
    np.testing.assert_allclose(found.transform(X) @ found.transform_objects(P).T, X @ product(found) @ P.T, atol=1e-9)
    np.testing.assert_allclose(found.similarity(X, P), X @ product(found) @ P.T, atol=1e-9)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_projecting_again_changes_nothing(seed):
    once = from_matrix(np.random.default_rng(seed).normal(size=(5, 5))).project()
    np.testing.assert_allclose(product(from_matrix(product(once)).project()), product(once), atol=1e-9)
    assert np.linalg.eigvalsh(product(once)).min() > -1e-9


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("symmetric", [True, False])
def test_inner_products_of_the_vectors_are_the_similarity(container, symmetric):
    X, _, model = fitted(am.MomentAROMA())
    X[5] = 0
    found = model.project(4, symmetric=symmetric)
    U, V = found.transform(container(X)), found.transform_objects(container(X))
    assert U.shape == V.shape == (120, 4)
    scores = found.similarity(container(X))
    np.testing.assert_allclose(scores, U @ V.T, atol=1e-12)
    rng = np.random.default_rng(0)
    pairs, triplets = rng.integers(120, size=(50, 2)), rng.integers(120, size=(50, 3))
    found_pairs = found.pair_score(container(X), None, pairs)
    np.testing.assert_allclose(found_pairs, scores[pairs[:, 0], pairs[:, 1]], atol=1e-12)
    q, good, bad = triplets.T
    np.testing.assert_allclose(found.margins(triplets, container(X)), scores[q, good] - scores[q, bad], atol=1e-12)


def test_score_and_metric_rank_alike_for_vectors_of_unit_norm():
    """Section 2 of the paper: ``(q - p)'W(q - p)`` and ``q'Wp`` are equivalent where all rows have the same W-norm."""
    X, _, model = fitted(am.FactoredAROMA())
    found = model.project()
    X = X / np.linalg.norm(found.transform(X), axis=1, keepdims=True)
    Z = found.transform(X)
    _, nearest = NearestNeighbors(n_neighbors=10).fit(Z[20:]).kneighbors(Z[:20])
    np.testing.assert_array_equal(nearest, np.argsort(-found.similarity(X[:20], X[20:]), axis=1)[:, :10])


def test_few_components_rank_better_where_rows_are_noisy():
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=600)
    X = rng.normal(size=(600, 60)) + 1.5 * np.eye(60)[y]
    model = am.MomentAROMA().fit_triplets(am.triplets.from_labels(y[:300], 20_000, random_state=0), X[:300])
    X_test, triplets = X[300:], am.triplets.from_labels(y[300:], 5000, random_state=1)
    assert model.project(3).triplet_accuracy(triplets, X_test) > model.triplet_accuracy(triplets, X_test) + 0.02


@pytest.mark.parametrize("symmetric", [True, False])
def test_the_same_model_gives_the_same_bits(symmetric):
    _, _, model = fitted(am.OASIS(cells="touched"))
    first, second = (model.project(3, symmetric=symmetric) for _ in range(2))
    np.testing.assert_array_equal(first.components_, second.components_)


@pytest.mark.parametrize("symmetric", [True, False])
def test_a_model_without_training_scores_everything_zero(symmetric):
    X, triplets = problem()
    model = am.MomentAROMA().fit_triplets(triplets[:0], X)
    touched = am.OASIS(init="zero", cells="touched").fit_triplets(triplets[:0], X)
    for found in (model.project(symmetric=symmetric), touched.project(2, symmetric=symmetric)):
        assert (found.similarity(X) == 0).all()


@pytest.mark.parametrize("symmetric", [True, False])
def test_a_projection_is_saved_and_loaded(symmetric, tmp_path):
    X, _, model = fitted(am.MomentAROMA())
    found = model.project(3, symmetric=symmetric)
    found.save(tmp_path / "model")
    loaded = am.load(tmp_path / "model")
    assert repr(loaded) == repr(found)
    for other in (loaded, found.copy()):
        np.testing.assert_array_equal(other.similarity(X), found.similarity(X))
        np.testing.assert_array_equal(other.transform_objects(X), found.transform_objects(X))


def test_invalid_projections_raise():
    X, triplets = problem()
    model = am.OASIS().fit_triplets(triplets, X)
    wide = am.OASIS(init="zero").fit_triplets(triplets, X, X[:, :5])
    touched = am.OASIS(cells="touched").fit_triplets(triplets, X)
    for call, error, message in (
        (lambda: wide.project(), ValueError, "symmetric"),
        (lambda: model.project(0), ValueError, "n_components must be"),
        (lambda: model.project("all"), TypeError, "n_components must be"),
        (lambda: model.project(symmetric="no"), TypeError, "symmetric must be"),
        (lambda: touched.project(), ValueError, "n_components must be a number"),
        (lambda: touched.project(symmetric=False), ValueError, "n_components must be a number"),
        (lambda: clone(model.project()).similarity(X), NotFittedError, "not fitted"),
        (lambda: am.OASIS().project(), NotFittedError, "not fitted"),
    ):
        with pytest.raises(error, match=message):
            call()

"""The spectral method, against ridge regression of scikit-learn and on unseen rows."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge

import aromatch as am
from aromatch.exceptions import NoSignalError
from aromatch.learners.embedding import spectral
from aromatch.learners.embedding.training_set import TripletData
from grouped_rows import NOISY, groups, quality

GROUPS = {"n_rows": 500, "n_groups": 10, "width": 30, "spread": 0.6, "decay": 15}


def judged(n=6_000, **settings):
    X, y, X_test, y_test = groups(**(settings or GROUPS))
    return X, am.triplets.from_labels(y, n, random_state=0), X_test, y_test


def maps(triplets, X, P=None, alpha=None, n_components=128, sample_weight=None):
    """The map of all rows and that of the training rows, before refinement."""
    training = TripletData.read(triplets, X, X if P is None else P, sample_weight)
    return spectral.spectral_map(training, n_components, alpha)


def fitted(triplets, X, **settings):
    return am.TripletEmbedding("spectral", random_state=0, **settings).fit_triplets(triplets, X)


def targets(X, triplets, P=None):
    """The informative rows, their directions minus the mean, and which are validation rows."""
    training = TripletData.read(triplets, X, X if P is None else P, None)
    graph = training.graph
    sides = [(X, graph.query_rows, graph.validation_queries, graph.directions()[0])]
    if P is not None:
        sides.append((P, graph.object_rows, graph.validation_objects, graph.directions()[1]))
    rows, directions, is_validation = [], [], []
    for matrix, indices, validation, of_rows in sides:
        informative = np.linalg.norm(of_rows, axis=1) > 0
        rows.append(matrix[indices[informative]])
        directions.append(of_rows[informative])
        is_validation.append(validation[informative])
    together = np.concatenate(directions)
    return np.concatenate(rows), together - together.mean(axis=0), np.concatenate(is_validation)


def ridge(rows, directions, alpha):
    """The regression of scikit-learn, whose alpha is relative to sums, not means."""
    alpha = alpha * np.mean(rows**2) * len(rows)
    return Ridge(alpha, fit_intercept=False, solver="cholesky").fit(rows, directions).coef_.T


@pytest.mark.parametrize("alpha", [0.001, 0.3, 10.0])
@pytest.mark.parametrize("apart", [False, True])
def test_the_map_is_the_ridge_regression_of_directions_on_features(alpha, apart):
    X, triplets, *_ = judged()
    P = X[::-1].copy() if apart else None
    if apart:
        triplets[:, 1:] = len(X) - 1 - triplets[:, 1:]
    rows, directions, is_validation = targets(X, triplets, P)
    for found, which in zip(maps(triplets, X, P, alpha), (slice(None), ~is_validation), strict=True):
        expected = ridge(rows[which], directions[which], alpha)
        W = expected @ expected.T
        np.testing.assert_allclose(found @ found.T, W, rtol=1e-8, atol=1e-10 * np.abs(W).max())


def test_n_components_keeps_the_largest_eigenvalues():
    X, triplets, *_ = judged()
    (whole, _), (cut, cut_train) = maps(triplets, X), maps(triplets, X, n_components=3)
    values, vectors = np.linalg.eigh(whole @ whole.T)
    expected = (vectors[:, -3:] * values[-3:]) @ vectors[:, -3:].T
    np.testing.assert_allclose(cut @ cut.T, expected, atol=1e-10 * values[-1])
    assert whole.shape[1] == 9  # one less than there are groups
    assert cut_train.shape == (30, 3)
    assert fitted(triplets, X, n_components=3).components_.shape == (3, 30)


@pytest.mark.parametrize("n", [2_000, 20_000])
@pytest.mark.parametrize("settings", [GROUPS, NOISY, {**GROUPS, "spread": 0.05}])
def test_alpha_is_the_best_for_validation_rows(n, settings):
    X, triplets, *_ = judged(n, **settings)
    rows, directions, is_validation = targets(X, triplets)
    errors = []
    for alpha in spectral._ALPHAS:
        L = ridge(rows[~is_validation], directions[~is_validation], alpha)
        errors.append(np.mean(np.sum((rows[is_validation] @ L - directions[is_validation]) ** 2, axis=1)))
    best = float(spectral._ALPHAS[int(np.argmin(errors))])
    np.testing.assert_array_equal(maps(triplets, X)[0], maps(triplets, X, alpha=best)[0])


def test_a_second_minimum_of_the_error_is_found():
    rng = np.random.default_rng(37)  # features of very different sizes
    k, n, d = rng.integers(2, 8), int(rng.integers(40, 300)), int(rng.integers(2, 80))
    y = rng.integers(k, size=2 * n)
    X = rng.normal(size=(k, d))[y]
    X = X + rng.choice([0.3, 1, 3]) * rng.normal(size=(2 * n, d)) * np.exp(rng.normal(size=d) * rng.choice([0, 2]))
    model = fitted(am.triplets.from_labels(y[:n], 30 * n, random_state=37), X[:n])
    assert model.score(X[n:], y[n:]) > 0.9 > am.Euclidean().score(X[n:], y[n:]) + 0.3


def test_more_features_than_memory_holds_raise_before_anything_is_allocated():
    wide = sparse.csr_array(([1.0, 1.0, 1.0], ([0, 1, 2], [0, 1, 2])), shape=(3, 10_000_000))
    for method in ("spectral", "moment"):
        with pytest.raises(MemoryError, match="10000000 features"):
            am.TripletEmbedding(method).fit_triplets([[0, 1, 2]], wide)


def test_it_finds_groups_that_noisy_features_hide():
    X, triplets, X_test, y_test = judged(20_000, **NOISY)
    before, after = (quality(model, X_test, y_test) for model in (am.Cosine(), fitted(triplets, X)))
    from_labels = am.MomentAROMA("auto").fit(X, groups(**NOISY)[1]).project(7)
    assert after > before + 0.2
    assert after > quality(from_labels, X_test, y_test) - 0.02


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix, np.asfortranarray])
def test_containers_and_precisions_of_the_same_rows_give_the_same_map(container):
    X, triplets, *_ = judged()
    X[np.abs(X) < 0.3] = 0
    X = X.astype(np.float32)
    L = maps(triplets, X.astype(np.float64))[0]
    for rows in (container(X), container(X.astype(np.float64))):
        found = maps(triplets, rows)[0]
        np.testing.assert_allclose(found @ found.T, L @ L.T, rtol=1e-9, atol=1e-12 * np.abs(L @ L.T).max())


def test_names_of_columns_are_kept():
    X, triplets, *_ = judged()
    frame = pd.DataFrame(X, columns=[f"f{number}" for number in range(X.shape[1])])
    model = fitted(triplets, frame)
    assert list(model.feature_names_in_) == list(frame.columns)
    with pytest.raises(ValueError, match="columns"):
        model.similarity(frame.rename(columns={"f0": "another"}))
    assert not hasattr(model.fit_triplets(triplets, X), "feature_names_in_")


@pytest.mark.parametrize("scale", [1e-60, 1e60])
def test_units_of_the_rows_do_not_matter(scale):
    X, triplets, *_ = judged()
    (L, _), (scaled, _) = maps(triplets, X), maps(triplets, scale * X)
    np.testing.assert_allclose(
        scale * (scaled @ scaled.T) * scale, L @ L.T, rtol=1e-6, atol=1e-9 * np.abs(L @ L.T).max()
    )


def test_triplets_without_weight_or_difference_are_ignored():
    X, triplets, *_ = judged()
    ties, weightless = triplets[:50].copy(), triplets[50:100][:, [0, 2, 1]]
    ties[:, 2] = ties[:, 1]
    more = np.concatenate([triplets, ties, weightless])
    weights = np.repeat([1.0, 1.0, 0.0], [len(triplets), 50, 50])
    expected = maps(triplets, X, sample_weight=np.ones(len(triplets)))[0]
    np.testing.assert_array_equal(maps(more, X, sample_weight=weights)[0], expected)


def test_the_same_triplets_give_the_same_bits_and_inputs_are_not_changed():
    X, triplets, *_ = judged()
    before = X.copy(), triplets.copy()
    first, second = fitted(triplets, X), fitted(triplets, X)
    np.testing.assert_array_equal(first.components_, second.components_)
    for array, copy in zip((X, triplets), before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_linearly_dependent_features_leave_a_map():
    X, triplets, X_test, y_test = judged()
    doubled, doubled_test = (np.column_stack([rows, rows, np.zeros(len(rows))]) for rows in (X, X_test))
    model = fitted(triplets, doubled)
    assert np.isfinite(model.components_).all()
    expected = quality(fitted(triplets, X), X_test, y_test)
    assert quality(model, doubled_test, y_test) == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("n", [0, 1, 100])
def test_too_few_triplets_raise_no_signal(n):
    X, triplets, *_ = judged()
    with pytest.raises(NoSignalError, match=f"{n} informative triplets.*MomentAROMA"):
        fitted(triplets[:n], X)

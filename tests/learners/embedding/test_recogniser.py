"""The recogniser, against logistic regression of scikit-learn and SciPy on its objective."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression

from aromatch.learners.embedding.recogniser import fit_recogniser, log_probabilities
from grouped_rows import groups


def unit(X):
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)


def one_hot(y):
    return np.eye(y.max() + 1, dtype=np.float32)[y]


def fit(X, targets, alpha, n_steps=400, **settings):
    return fit_recogniser(X, targets, alpha, np.random.default_rng(0), n_steps=n_steps, learning_rate=0.1, **settings)


def objective(B, X, targets, alpha):
    B = B.reshape(X.shape[1] + 1, -1)
    return -np.mean(np.sum(targets * log_softmax(X @ B[:-1] + B[-1], axis=1), axis=1)) + alpha / 2 * np.sum(B[:-1] ** 2)


def test_probabilities_of_labels_are_those_of_logistic_regression():
    X, y, X_test, _ = groups(n_rows=1_000, n_groups=5, width=20, spread=0.2)
    X, X_test, C = unit(X), unit(X_test), 3.0
    expected = LogisticRegression(C=C, max_iter=1_000).fit(X, y).predict_proba(X_test)
    found = np.exp(log_probabilities(X_test, fit(X, one_hot(y), 1 / (C * len(y)))))
    assert np.abs(found - expected).mean() < 0.01
    assert (found.argmax(axis=1) == expected.argmax(axis=1)).mean() > 0.98


def test_the_objective_of_soft_targets_is_nearly_minimal():
    rng = np.random.default_rng(0)
    X, targets = unit(rng.normal(size=(600, 6))), rng.dirichlet(np.ones(4), size=600).astype(np.float32)
    alpha = 0.01
    best = minimize(objective, np.zeros(7 * 4), (X.astype(np.float64), targets, alpha)).fun
    start = objective(np.zeros(7 * 4), X, targets, alpha)
    assert objective(fit(X, targets, alpha), X, targets, alpha) - best < 0.01 * (start - best) + 1e-4


def test_sparse_rows_give_the_weights_of_dense_rows():
    X, y, *_ = groups(n_rows=600, n_groups=4, width=10)
    X[:, 1:] *= np.abs(X[:, 1:]) > np.median(np.abs(X))
    X = unit(X)
    dense, from_sparse = (fit(rows, one_hot(y), 0.001, 100) for rows in (X, sparse.csr_array(X)))
    np.testing.assert_allclose(from_sparse, dense, atol=1e-3)


def test_a_start_is_continued_and_not_changed():
    X, y, *_ = groups(n_rows=600, n_groups=4, width=10)
    X, targets, alpha = unit(X), one_hot(y), 0.001
    start = fit(X, targets, alpha)
    kept = start.copy()
    after = objective(fit(X, targets, alpha, 5, start=start), X, targets, alpha)
    assert after < objective(fit(X, targets, alpha, 5), X, targets, alpha)
    np.testing.assert_array_equal(start, kept)


@pytest.mark.parametrize("n", [1, 2, 511, 512, 513])
def test_any_number_of_rows_is_learned(n):
    X = unit(np.random.default_rng(0).normal(size=(n, 3)))
    B = fit(X, np.full((n, 2), 0.5, dtype=np.float32), 0.1, 20)
    assert np.isfinite(B).all()
    np.testing.assert_allclose(np.exp(log_probabilities(X, B)).sum(axis=1), 1, rtol=1e-5)

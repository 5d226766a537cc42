"""The two kinds of synthetic rows: variances, correlations and classes as their module's text states."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import aromatch as am
from aromatch.datasets.synthetic import make_correlated_features, make_independent_features, standard_deviations

MAKERS = pytest.mark.parametrize("make", [make_independent_features, make_correlated_features])


def within_classes(X, y):
    """Rows with the mean of their class taken off."""
    return X - np.stack([X[y == label].mean(axis=0) for label in range(y.max() + 1)])[y]


@pytest.mark.parametrize("strength", [1.0, 10.0, 1000.0])
def test_standard_deviations_fall_by_a_constant_factor_from_strength_to_one(strength):
    deviations = standard_deviations(7, strength)
    assert_allclose(deviations[0] / deviations[-1], strength)
    assert_allclose(deviations[:-1] / deviations[1:], strength ** (1 / 6))
    assert_allclose(np.sum(deviations**2), 1.0)


@pytest.mark.parametrize("signal", [0.0, 0.3, 0.9])
def test_even_features_have_their_share_of_variance_between_classes_and_odd_ones_none(signal):
    X, y = make_independent_features(60_000, 8, 2_000, strength=5.0, signal=signal, random_state=0)
    share = np.where(np.arange(8) % 2 == 0, signal, 0.0)
    variances = standard_deviations(8, 5.0) ** 2
    assert_allclose(X.var(axis=0), variances, rtol=0.1)
    # A class has 30 rows: taking off their mean takes off a thirtieth of the variance.
    assert_allclose(within_classes(X, y).var(axis=0) * 30 / 29, (1 - share) * variances, rtol=0.02)


def test_independent_features_are_uncorrelated_within_classes():
    X, y = make_independent_features(40_000, 12, 4, strength=100.0, random_state=1)
    correlations = np.corrcoef(within_classes(X, y), rowvar=False)
    assert np.abs(correlations - np.eye(12)).max() < 5 / np.sqrt(40_000)


def test_correlated_features_are_the_independent_ones_rotated():
    settings = {"n_samples": 300, "n_features": 20, "n_classes": 3, "strength": 30.0, "random_state": 5}
    (Z, y), (X, also_y) = make_independent_features(**settings), make_correlated_features(**settings)
    assert_array_equal(y, also_y)
    rotation = np.linalg.lstsq(Z, X, rcond=None)[0].T
    assert_allclose(rotation @ rotation.T, np.eye(20), atol=1e-9)
    assert_allclose(np.linalg.det(rotation), 1.0)
    assert_allclose(X @ X.T, Z @ Z.T, atol=1e-12)


def test_correlated_features_have_the_stated_spectrum_and_strong_correlations_but_variances_much_alike():
    X, y = make_correlated_features(40_000, 20, 4, strength=100.0, random_state=2)
    within = within_classes(X, y)
    covariance = np.cov(within, rowvar=False)
    expected = standard_deviations(20, 100.0) ** 2 * np.where(np.arange(20) % 2 == 0, 0.5, 1.0)
    assert_allclose(np.linalg.eigvalsh(covariance)[::-1], np.sort(expected)[::-1], rtol=0.05)
    correlations = np.corrcoef(within, rowvar=False)[np.triu_indices(20, 1)]
    assert np.sqrt(np.mean(correlations**2)) > 0.4
    # The variances of the directions differ ten-thousandfold.
    assert np.quantile(np.diag(covariance), 0.9) < 10 * np.quantile(np.diag(covariance), 0.1)


def test_correlations_grow_with_strength():
    sizes = []
    for strength in (1.0, 3.0, 10.0, 100.0):
        X, _ = make_correlated_features(5_000, 20, 4, strength=strength, signal=0.0, random_state=3)
        sizes.append(np.mean(np.corrcoef(X, rowvar=False)[np.triu_indices(20, 1)] ** 2))
    assert sizes[0] < 2 / 5_000
    assert sizes == sorted(sizes)
    assert sizes[-1] > 0.15


@MAKERS
def test_rows_have_a_squared_norm_of_one_on_average_and_classes_of_one_size(make):
    X, y = make(3_001, 30, 500, random_state=4)
    assert X.shape == (3_001, 30)
    assert X.dtype == np.float64
    assert_allclose(np.mean(np.sum(X**2, axis=1)), 1.0, rtol=0.05)
    assert set(np.bincount(y)) == {6, 7}


@MAKERS
def test_a_signal_of_one_leaves_telling_directions_constant_within_a_class(make):
    X, y = make(200, 10, 4, signal=1.0, random_state=0)
    assert np.linalg.matrix_rank(within_classes(X, y), tol=1e-9) == 5


@MAKERS
def test_the_same_seed_gives_the_same_rows_and_another_seed_others(make):
    first, again, other = (make(50, 6, 3, random_state=seed)[0] for seed in (1, 1, 2))
    assert_array_equal(first, again)
    assert not np.allclose(first, other)
    from_generator = make(50, 6, 3, random_state=np.random.default_rng(1))[0]
    assert_array_equal(first, from_generator)


def test_factored_aroma_learns_the_same_on_both_kinds_and_diagonal_aroma_does_not():
    settings = {"n_samples": 200, "n_features": 12, "n_classes": 4, "strength": 30.0, "random_state": 6}
    (Z, y), (X, _) = make_independent_features(**settings), make_correlated_features(**settings)
    triplets = am.triplets.from_labels(y, 2_000, random_state=0)
    factored = [am.FactoredAROMA(r=0.1).fit_triplets(triplets, rows) for rows in (Z, X)]
    assert factored[0].n_updates_ == factored[1].n_updates_
    assert_allclose(factored[0].similarity(Z), factored[1].similarity(X), rtol=1e-6, atol=1e-8)
    diagonal = [am.DiagonalAROMA(r=0.1).fit_triplets(triplets, rows) for rows in (Z, X)]
    assert not np.allclose(diagonal[0].similarity(Z), diagonal[1].similarity(X), rtol=0.1)


@MAKERS
@pytest.mark.parametrize(
    ("setting", "value", "error"),
    [
        ("n_samples", 0, ValueError),
        ("n_features", 1, ValueError),
        ("n_classes", 1, ValueError),
        ("n_classes", 2.0, TypeError),
        ("strength", 0.5, ValueError),
        ("strength", np.inf, ValueError),
        ("strength", "10", TypeError),
        ("signal", -0.1, ValueError),
        ("signal", 1.1, ValueError),
        ("random_state", "seed", TypeError),
    ],
)
def test_bad_settings_are_refused_by_name(make, setting, value, error):
    with pytest.raises(error, match=setting):
        make(**{setting: value})

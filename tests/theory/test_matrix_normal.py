import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from aromatch.theory import matrix_normal as gaussian

SHAPES = [(1, 1), (1, 4), (3, 1), (2, 3), (4, 2)]
SMALL = [(1, 1), (2, 3), (3, 2)]  # where an optimiser without gradients is quick


def covariance(rng, size, spread=1.0):
    A = rng.standard_normal((size, size + 2))
    return spread * A @ A.T / size


def distribution(rng, m, n):
    return rng.standard_normal((m, n)), covariance(rng, n), covariance(rng, m)


def vectorised_kl(W, Omega, Lambda, W0, Omega0, Lambda0):
    """The textbook divergence of two multivariate normals, on column-stacked matrices."""
    mean, mean0 = W.ravel(order="F"), W0.ravel(order="F")
    C, C0 = np.kron(Omega, Lambda), np.kron(Omega0, Lambda0)
    inverse = np.linalg.inv(C0)
    logdets = np.linalg.slogdet(C0)[1] - np.linalg.slogdet(C)[1]
    return 0.5 * (logdets + np.trace(inverse @ C) + (mean - mean0) @ inverse @ (mean - mean0) - len(mean))


def printed_objective(W, Omega, Lambda, W_previous, Omega_previous, Lambda_previous, q, p, r):
    """(11), symbol by symbol."""
    inv, det, Tr = np.linalg.inv, np.linalg.det, np.trace
    m, n = W.shape
    return (
        n / 2 * np.log(det(Lambda_previous) / det(Lambda))
        + m / 2 * np.log(det(Omega_previous) / det(Omega))
        + Tr(inv(Lambda_previous) @ (W - W_previous) @ inv(Omega_previous) @ (W - W_previous).T) / 2
        + max(0, 1 - q @ W @ p) ** 2 / (2 * r)
        + Tr(inv(Lambda_previous) @ Lambda) * Tr(inv(Omega_previous) @ Omega) / 2
        + (p @ Omega @ p) * (q @ Lambda @ q) / (2 * r)
    )


def fig_2_step(W, Omega, Lambda, q, p, r):
    """(12), (13) and (14), all from the matrices of the round before."""
    m, n = W.shape
    q_variance, p_variance = q @ Lambda @ q, p @ Omega @ p
    alpha = max(0, 1 - q @ W @ p) / (r + q_variance * p_variance)
    new_W = W + alpha * np.outer(Lambda @ q, p @ Omega)
    new_Omega = Omega - q_variance / (m * r + q_variance * p_variance) * np.outer(Omega @ p, p @ Omega)
    new_Lambda = Lambda - p_variance / (n * r + p_variance * q_variance) * np.outer(Lambda @ q, q @ Lambda)
    return new_W, new_Omega, new_Lambda


# -- density ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "n"), SHAPES)
def test_the_log_density_is_scipys_matrix_normal_with_lambda_for_rows_and_omega_for_columns(m, n):
    rng = np.random.default_rng(m * 10 + n)
    W, Omega, Lambda = distribution(rng, m, n)
    X = rng.standard_normal((m, n))
    expected = stats.matrix_normal(mean=W, rowcov=Lambda, colcov=Omega).logpdf(X)
    np.testing.assert_allclose(gaussian.log_density(X, W, Omega, Lambda), expected, rtol=1e-12)


@pytest.mark.parametrize(("m", "n"), SHAPES)
def test_the_log_density_is_the_multivariate_normal_of_the_stacked_matrix_in_both_orders(m, n):
    rng = np.random.default_rng(m * 10 + n)
    W, Omega, Lambda = distribution(rng, m, n)
    X = rng.standard_normal((m, n))
    columns = stats.multivariate_normal(W.ravel(order="F"), np.kron(Omega, Lambda)).logpdf(X.ravel(order="F"))
    rows = stats.multivariate_normal(W.ravel(), np.kron(Lambda, Omega)).logpdf(X.ravel())
    np.testing.assert_allclose([columns, rows], gaussian.log_density(X, W, Omega, Lambda), rtol=1e-10)


def test_a_stack_of_matrices_has_the_densities_of_its_members():
    rng = np.random.default_rng(0)
    W, Omega, Lambda = distribution(rng, 2, 3)
    stack = rng.standard_normal((4, 5, 2, 3))
    one_by_one = [[gaussian.log_density(X, W, Omega, Lambda) for X in row] for row in stack]
    np.testing.assert_allclose(gaussian.log_density(stack, W, Omega, Lambda), one_by_one, rtol=1e-12)


def test_an_empty_stack_has_no_densities():
    assert gaussian.log_density(np.empty((0, 2, 3)), np.zeros((2, 3)), np.eye(3), np.eye(2)).shape == (0,)


def test_one_matrix_gives_a_float():
    assert type(gaussian.log_density([[0]], [[0]], [[1]], [[1]])) is float


# -- divergence ------------------------------------------------------------------------------------------


@settings(deadline=None, derandomize=True, max_examples=50)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_the_divergence_is_that_of_the_stacked_multivariate_normals(m, n, seed):
    rng = np.random.default_rng(seed)
    first, second = distribution(rng, m, n), distribution(rng, m, n)
    np.testing.assert_allclose(gaussian.kl_divergence(*first, *second), vectorised_kl(*first, *second), rtol=1e-6)


@settings(deadline=None, derandomize=True, max_examples=50)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_the_divergence_is_zero_for_equal_distributions_however_the_scale_is_split(m, n, seed):
    rng = np.random.default_rng(seed)
    W, Omega, Lambda = distribution(rng, m, n)
    c = 10 ** rng.uniform(-3, 3)
    assert 0 <= gaussian.kl_divergence(W, Omega, Lambda, W, Omega, Lambda) < 1e-11
    assert 0 <= gaussian.kl_divergence(W, Omega * c, Lambda / c, W, Omega, Lambda) < 1e-11


def test_the_divergence_is_the_mean_of_the_log_ratio_over_a_sample():
    rng = np.random.default_rng(5)
    first, second = distribution(rng, 2, 3), distribution(rng, 2, 3)
    X = gaussian.sample(*first, size=100_000, random_state=1)
    log_ratio = gaussian.log_density(X, *first) - gaussian.log_density(X, *second)
    standard_error = log_ratio.std() / np.sqrt(len(X))
    assert abs(log_ratio.mean() - gaussian.kl_divergence(*first, *second)) < 4 * standard_error


# -- sampling --------------------------------------------------------------------------------------------


def test_a_sample_has_the_mean_and_the_kronecker_covariance():
    rng = np.random.default_rng(2)
    W, Omega, Lambda = distribution(rng, 2, 3)
    X = gaussian.sample(W, Omega, Lambda, size=200_000, random_state=3)
    C = np.kron(Lambda, Omega)
    np.testing.assert_allclose(X.mean(axis=0), W, atol=5 * np.sqrt(C.max() / len(X)))
    # The standard error of an estimated covariance is sqrt((C_ii C_jj + C_ij^2) / N), at most this.
    np.testing.assert_allclose(np.cov(X.reshape(len(X), -1).T), C, atol=5 * C.max() * np.sqrt(2 / len(X)))


def test_a_margin_varies_as_the_two_quadratic_forms_say():
    rng = np.random.default_rng(3)
    W, Omega, Lambda = distribution(rng, 3, 2)
    q, p = rng.standard_normal(3), rng.standard_normal(2)
    margins = q @ gaussian.sample(W, Omega, Lambda, size=100_000, random_state=4) @ p
    expected = stats.norm(q @ W @ p, np.sqrt((q @ Lambda @ q) * (p @ Omega @ p)))
    assert stats.kstest(margins, expected.cdf).pvalue > 0.01


@pytest.mark.parametrize(
    ("size", "shape"), [(None, (2, 3)), (4, (4, 2, 3)), ((4, 5), (4, 5, 2, 3)), ((), (2, 3)), (0, (0, 2, 3))]
)
def test_size_works_as_in_numpy(size, shape):
    assert gaussian.sample(np.zeros((2, 3)), np.eye(3), np.eye(2), size=size, random_state=0).shape == shape


def test_the_same_random_state_gives_the_same_sample():
    arguments = np.zeros((2, 3)), np.eye(3), np.eye(2)
    first, second = (gaussian.sample(*arguments, size=2, random_state=7) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, gaussian.sample(*arguments, size=2, random_state=8))


def test_a_generator_is_drawn_from_so_that_two_samples_differ():
    rng = np.random.default_rng(0)
    arguments = np.zeros((2, 3)), np.eye(3), np.eye(2)
    assert not np.array_equal(
        gaussian.sample(*arguments, random_state=rng), gaussian.sample(*arguments, random_state=rng)
    )


# -- objective (11) --------------------------------------------------------------------------------------


def a_round(seed, m, n):
    """Print-ready arguments of (11): a previous distribution, a triplet that has a loss, and r."""
    rng = np.random.default_rng(seed)
    previous = distribution(rng, m, n)
    q, p = rng.standard_normal(m), rng.standard_normal(n)
    if q @ previous[0] @ p > 0.5:
        p = -p
    return previous, q, p, 10 ** rng.uniform(-1, 1)


@settings(deadline=None, derandomize=True, max_examples=50)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_the_objective_is_equation_11(m, n, seed):
    previous, q, p, r = a_round(seed, m, n)
    new = distribution(np.random.default_rng(seed + 1), m, n)
    np.testing.assert_allclose(
        gaussian.objective(*new, *previous, q, p, r), printed_objective(*new, *previous, q, p, r), rtol=1e-6
    )


@pytest.mark.parametrize(("m", "n"), SHAPES)
def test_the_objective_is_the_divergence_plus_the_loss_and_the_variance_of_the_margin(m, n):
    previous, q, p, r = a_round(0, m, n)
    W, Omega, Lambda = distribution(np.random.default_rng(1), m, n)
    hinge = max(0, 1 - q @ W @ p)
    variance = (q @ Lambda @ q) * (p @ Omega @ p)
    expected = gaussian.kl_divergence(W, Omega, Lambda, *previous) + m * n / 2 + (hinge**2 + variance) / (2 * r)
    np.testing.assert_allclose(gaussian.objective(W, Omega, Lambda, *previous, q, p, r), expected, rtol=1e-12)


def test_a_margin_over_one_costs_nothing():
    one = np.eye(1)
    values = [gaussian.objective(w * one, one, one, w * one, one, one, [1], [1], 1) for w in (1, 2)]
    assert values == [1.0, 1.0]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("m", "n"), SMALL)
def test_equation_12_minimises_the_objective_over_w(m, n, seed):
    (W, Omega, Lambda), q, p, r = a_round(seed, m, n)

    def value(flat):
        return gaussian.objective(flat.reshape(m, n), Omega, Lambda, W, Omega, Lambda, q, p, r)

    found = optimize.minimize(value, W.ravel(), method="BFGS", options={"gtol": 1e-8})
    new_W = fig_2_step(W, Omega, Lambda, q, p, r)[0]
    assert value(new_W.ravel()) <= found.fun + 1e-10
    np.testing.assert_allclose(found.x.reshape(m, n), new_W, atol=1e-4)


def from_factor(flat, size):
    """A covariance from free numbers: its Cholesky factor, with the logarithm of the diagonal."""
    L = np.zeros((size, size))
    L[np.tril_indices(size)] = flat
    L[np.diag_indices(size)] = np.exp(np.diagonal(L))
    return L @ L.T


def to_factor(A):
    L = np.linalg.cholesky(A)
    L[np.diag_indices(len(L))] = np.log(np.diagonal(L))
    return L[np.tril_indices(len(L))]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("m", "n"), SMALL)
def test_equation_13_minimises_the_objective_over_omega_given_the_previous_lambda(m, n, seed):
    (W, Omega, Lambda), q, p, r = a_round(seed, m, n)

    def value(flat):
        return gaussian.objective(W, from_factor(flat, n), Lambda, W, Omega, Lambda, q, p, r)

    found = optimize.minimize(value, to_factor(Omega), method="BFGS", options={"gtol": 1e-8})
    new_Omega = fig_2_step(W, Omega, Lambda, q, p, r)[1]
    assert value(to_factor(new_Omega)) <= found.fun + 1e-10
    np.testing.assert_allclose(from_factor(found.x, n), new_Omega, atol=1e-3 * np.abs(Omega).max())


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("m", "n"), SMALL)
def test_equation_14_minimises_the_objective_over_lambda_given_the_previous_omega(m, n, seed):
    (W, Omega, Lambda), q, p, r = a_round(seed, m, n)

    def value(flat):
        return gaussian.objective(W, Omega, from_factor(flat, m), W, Omega, Lambda, q, p, r)

    found = optimize.minimize(value, to_factor(Lambda), method="BFGS", options={"gtol": 1e-8})
    new_Lambda = fig_2_step(W, Omega, Lambda, q, p, r)[2]
    assert value(to_factor(new_Lambda)) <= found.fun + 1e-10
    np.testing.assert_allclose(from_factor(found.x, m), new_Lambda, atol=1e-3 * np.abs(Lambda).max())


def test_the_two_covariance_updates_together_overshoot_what_one_of_them_reaches():
    one = np.eye(1)
    _, Omega, Lambda = fig_2_step(0 * one, one, one, np.ones(1), np.ones(1), 0.1)

    def value(Omega, Lambda):
        return gaussian.objective(0 * one, Omega, Lambda, 0 * one, one, one, [1], [1], 0.1)

    assert value(Omega, one) < value(Omega, Lambda) < value(one, one)


# -- bad input -------------------------------------------------------------------------------------------

W, I2, I3, Q, P = np.zeros((2, 3)), np.eye(2), np.eye(3), np.ones(2), np.ones(3)
GOOD = {
    "log_density": {"X": W, "W": W, "Omega": I3, "Lambda": I2},
    "kl_divergence": {"W": W, "Omega": I3, "Lambda": I2, "W0": W, "Omega0": I3, "Lambda0": I2},
    "sample": {"W": W, "Omega": I3, "Lambda": I2},
    "objective": {
        "W": W,
        "Omega": I3,
        "Lambda": I2,
        "W_previous": W,
        "Omega_previous": I3,
        "Lambda_previous": I2,
        "q": Q,
        "p": P,
        "r": 1.0,
    },
}
EVERY_ARRAY = [(function, name) for function, good in GOOD.items() for name in good if name != "r"]
EVERY_COVARIANCE = [(function, name) for function, name in EVERY_ARRAY if name.startswith(("Omega", "Lambda"))]


def call(function, **changed):
    return getattr(gaussian, function)(**{**GOOD[function], **changed})


@pytest.mark.parametrize(("function", "name"), [case for case in EVERY_ARRAY if case[1] != "W"])
def test_a_wrong_shape_is_refused_and_the_argument_named(function, name):
    with pytest.raises(ValueError, match=rf"^{name} must have the shape .*got \(5, 7\)"):
        call(function, **{name: np.zeros((5, 7))})


@pytest.mark.parametrize("function", GOOD)
@pytest.mark.parametrize("W", [np.zeros(3), np.zeros((0, 3)), np.zeros((1, 2, 3))])
def test_a_mean_that_is_not_a_matrix_is_refused(function, W):
    with pytest.raises(ValueError, match=r"^W "):
        call(function, W=W)


@pytest.mark.parametrize(("function", "name"), EVERY_ARRAY)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_infinity_are_refused_and_the_argument_named(function, name, value):
    spoilt = np.array(GOOD[function][name])
    spoilt.flat[-1] = value
    with pytest.raises(ValueError, match=rf"^{name} contains NaN or infinity"):
        call(function, **{name: spoilt})


@pytest.mark.parametrize(("function", "name"), EVERY_ARRAY)
@pytest.mark.parametrize("dtype", [complex, str, object])
def test_what_is_not_real_numbers_is_refused_and_the_argument_named(function, name, dtype):
    with pytest.raises(TypeError, match=rf"^{name} must be an array of real numbers"):
        call(function, **{name: GOOD[function][name].astype(dtype)})


@pytest.mark.parametrize(("function", "name"), EVERY_COVARIANCE)
def test_a_matrix_that_is_not_positive_definite_is_refused_and_named(function, name):
    indefinite = np.array(GOOD[function][name])
    indefinite[0, 0] = -0.5
    with pytest.raises(ValueError, match=rf"^{name} must be positive definite.*-0\.5"):
        call(function, **{name: indefinite})
    with pytest.raises(ValueError, match=rf"^{name} must be positive definite"):
        call(function, **{name: np.ones_like(indefinite)})


@pytest.mark.parametrize(("function", "name"), EVERY_COVARIANCE)
def test_a_matrix_that_is_not_symmetric_is_refused_and_named(function, name):
    lopsided = np.array(GOOD[function][name])
    lopsided[0, 1] = 0.25
    with pytest.raises(ValueError, match=rf"^{name} must be symmetric.*0\.25"):
        call(function, **{name: lopsided})


def test_float32_covariances_with_rounding_between_their_triangles_are_accepted():
    Lambda = np.array([[1, 0.3], [np.float32(0.3) + np.float32(3e-8), 1]], dtype=np.float32)
    assert Lambda[0, 1] != Lambda[1, 0]
    assert np.isfinite(call("log_density", Lambda=Lambda))


@pytest.mark.parametrize("r", [0, -1.0, np.nan, np.inf])
def test_r_must_be_a_finite_number_over_zero(r):
    with pytest.raises(ValueError, match=r"^r must be"):
        call("objective", r=r)


@pytest.mark.parametrize(
    ("size", "error"), [(-1, ValueError), (1.5, TypeError), ((2, -1), ValueError), ("3", TypeError)]
)
def test_a_size_that_is_not_whole_numbers_is_refused(size, error):
    with pytest.raises(error, match=r"^size must be"):
        call("sample", size=size)


def test_a_sample_larger_than_memory_is_refused_before_it_is_drawn():
    with pytest.raises(ValueError, match="would take"):
        call("sample", size=10**15)


def test_inputs_are_left_as_they_are():
    rng = np.random.default_rng(0)
    previous, q, p, r = a_round(0, 2, 3)
    new = distribution(rng, 2, 3)
    arrays = [*new, *previous, q, p]
    before = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    gaussian.objective(*new, *previous, q, p, r)
    gaussian.log_density(new[0], *previous)
    gaussian.sample(*new, random_state=0)
    for array, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy)

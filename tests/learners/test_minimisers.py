"""Each update is the minimiser of the objective that it claims to minimise; SciPy is the oracle."""

import numpy as np
import pytest
from scipy import optimize

import aromatch as am
from aromatch.theory.matrix_normal import objective

SEEDS = range(5)


def a_round(seed, m=3, n=4, n_before=12, r=0.7, **options):
    """A model in the middle of learning, and one more triplet that it updates on."""
    rng = np.random.default_rng(seed)
    Q, P = rng.normal(size=(20, m)), rng.normal(size=(20, n))
    triplets = rng.integers(20, size=(n_before + 40, 3))
    model = am.FactoredAROMA(r=r, **options).fit_triplets(triplets[:n_before], Q, P)
    for i, j, k in triplets[n_before:]:
        before = model.copy()
        if model.learn_one(Q[i], P[j], P[k]).updated:
            return before, model, Q[i], P[j] - P[k]
    raise AssertionError("no update in 40 triplets")


def unpack(lower, size):
    """A positive definite matrix from free parameters."""
    L = np.zeros((size, size))
    L[np.tril_indices(size)] = lower
    np.fill_diagonal(L, np.exp(np.diag(L)))
    return L @ L.T


def pack(A):
    L = np.linalg.cholesky(A)
    np.fill_diagonal(L, np.log(np.diag(L)))
    return L[np.tril_indices(len(A))]


def minimum(function, start):
    return optimize.minimize(function, start, method="BFGS", options={"gtol": 1e-8, "maxiter": 3000}).fun


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("covariance_update", ["jacobi", "gauss_seidel", "joint"])
def test_the_mean_update_minimises_the_objective_over_W(seed, covariance_update):
    before, after, q, p = a_round(seed, covariance_update=covariance_update)
    W, Omega, Lambda = before.W_, before.Omega_, before.Lambda_

    def value(flat):
        return objective(flat.reshape(W.shape), Omega, Lambda, W, Omega, Lambda, q, p, before.r)

    best = minimum(value, W.ravel())
    assert value(after.W_.ravel()) <= best + 1e-9
    assert value(after.W_.ravel()) < value(W.ravel())


@pytest.mark.parametrize("seed", SEEDS)
def test_each_printed_covariance_update_minimises_the_objective_given_the_other_matrix_before(seed):
    before, after, q, p = a_round(seed)
    W, Omega, Lambda = before.W_, before.Omega_, before.Lambda_

    def over_Omega(lower):
        return objective(W, unpack(lower, len(p)), Lambda, W, Omega, Lambda, q, p, before.r)

    def over_Lambda(lower):
        return objective(W, Omega, unpack(lower, len(q)), W, Omega, Lambda, q, p, before.r)

    assert over_Omega(pack(after.Omega_)) <= minimum(over_Omega, pack(Omega)) + 1e-9
    assert over_Lambda(pack(after.Lambda_)) <= minimum(over_Lambda, pack(Lambda)) + 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_gauss_seidel_minimises_over_Lambda_given_the_new_Omega(seed):
    before, after, q, p = a_round(seed, covariance_update="gauss_seidel")
    W, Omega, Lambda = before.W_, before.Omega_, before.Lambda_

    def value(lower):
        return objective(W, after.Omega_, unpack(lower, len(q)), W, Omega, Lambda, q, p, before.r)

    assert value(pack(after.Lambda_)) <= minimum(value, pack(Lambda)) + 1e-9


@pytest.mark.parametrize(("m", "n"), [(3, 4), (4, 3), (1, 5), (5, 1), (2, 7)])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_joint_update_minimises_the_objective_over_everything(seed, m, n):
    before, after, q, p = a_round(seed, m, n, covariance_update="joint")
    W, Omega, Lambda = before.W_, before.Omega_, before.Lambda_
    cut_1 = W.size
    cut_2 = cut_1 + n * (n + 1) // 2

    def value(flat):
        return objective(
            flat[:cut_1].reshape(W.shape), unpack(flat[cut_1:cut_2], n), unpack(flat[cut_2:], m),
            W, Omega, Lambda, q, p, before.r,
        )  # fmt: skip

    best = minimum(value, np.concatenate([W.ravel(), pack(Omega), pack(Lambda)]))
    found = value(np.concatenate([after.W_.ravel(), pack(after.Omega_), pack(after.Lambda_)]))
    assert found <= best + 1e-8
    assert np.trace(np.linalg.solve(Lambda, after.Lambda_)) == pytest.approx(m)


def test_the_printed_step_overshoots_and_the_others_do_not():
    """The order that CHECKLIST 2.3 gives: before > both printed > one printed > joint, in the objective."""
    values = {}
    for update in ("jacobi", "gauss_seidel", "joint"):
        before, after, q, p = a_round(3, n_before=0, r=0.1, covariance_update=update)
        W, Omega, Lambda = before.W_, before.Omega_, before.Lambda_
        previous = W, Omega, Lambda, q, p, before.r
        values[update] = objective(after.W_, after.Omega_, after.Lambda_, *previous)
        values["before"] = objective(*previous[:3], *previous)
        if update == "jacobi":
            values["one"] = objective(after.W_, after.Omega_, Lambda, *previous)
    assert values["before"] > values["jacobi"] > values["one"] > values["gauss_seidel"] > values["joint"]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("covariance_update", ["downdate", "inverse"])
def test_the_diagonal_update_minimises_arow_objective(seed, covariance_update):
    """(5) minimises (3) over W; the inverse form minimises it over diagonal covariances; (6) is the full diagonal."""
    rng = np.random.default_rng(seed)
    r, Q, P = 0.6, rng.normal(size=(9, 2)), rng.normal(size=(9, 3))
    model = am.DiagonalAROMA(r=r, covariance_update=covariance_update)
    model.fit_triplets(rng.integers(9, size=(8, 3)), Q, P)
    W, Sigma = model.W_.ravel(), model.Sigma_.ravel()
    q, p = Q[0], P[1] - P[2]
    if not model.learn_one(Q[0], P[1], P[2]).updated:
        p = P[2] - P[1]
        assert model.learn_one(Q[0], P[2], P[1]).updated
    x = np.outer(q, p).ravel()

    def value(w, log_variances):
        variances = np.exp(log_variances)
        kl = 0.5 * np.sum(np.log(Sigma / variances) + variances / Sigma + (w - W) ** 2 / Sigma - 1)
        return kl + max(0, 1 - x @ w) ** 2 / (2 * r) + x**2 @ variances / (2 * r)

    size = len(W)
    best = minimum(lambda flat: value(flat[:size], flat[size:]), np.concatenate([W, np.log(Sigma)]))
    w, variances = model.W_.ravel(), model.Sigma_.ravel()
    if covariance_update == "inverse":
        assert value(w, np.log(variances)) <= best + 1e-9
    else:
        assert value(w, np.log(1 / (1 / Sigma + x**2 / r))) <= best + 1e-9
        full = np.diag(Sigma) - np.outer(Sigma * x, Sigma * x) / (r + x @ (Sigma * x))
        np.testing.assert_allclose(variances, np.diag(full), rtol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_one_oasis_step_is_the_smallest_change_that_satisfies_the_triplet(seed):
    rng = np.random.default_rng(seed)
    q, good, bad = rng.normal(size=3), rng.normal(size=3), rng.normal(size=3)
    p = good - bad
    for C in (0.01, 100.0):
        model = am.OASIS(C=C)
        model.fit_triplets(np.empty((0, 3), dtype=int), np.eye(3))
        W0 = model.W_
        if not model.learn_one(q, good, bad).updated:
            continue

        def value(flat, W0=W0, C=C):
            return 0.5 * np.sum((flat.reshape(3, 3) - W0) ** 2) + C * max(0, 1 - q @ flat.reshape(3, 3) @ p)

        best = optimize.minimize(
            value,
            W0.ravel(),
            method="Nelder-Mead",
            options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 40_000, "maxfev": 40_000},
        ).fun
        assert value(model.W_.ravel()) <= best + 1e-6

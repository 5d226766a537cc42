"""NumPy implementations of the paper's algorithms, after its figures: the reference for the compiled kernels."""

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse
from scipy.optimize import brentq


@dataclass
class Outcome:
    """Final matrices, and the margins, variances and counts of all rounds."""

    matrices: dict
    margins: list = field(default_factory=list)
    variances: list = field(default_factory=list)
    n_updates: int = 0
    n_mistakes: int = 0


def rounds(triplets, Q, P, weights):
    Q = Q.toarray() if sparse.issparse(Q) else np.asarray(Q)
    P = P.toarray() if sparse.issparse(P) else np.asarray(P)
    Q, P = Q.astype(np.float64), P.astype(np.float64)
    for i, (query, preferred, other) in enumerate(triplets):
        yield Q[query], P[preferred] - P[other], 1.0 if weights is None else weights[i]


def note(outcome, margin, variance, rule, q, p, w):
    """Record the round; return whether the rule of the paper requires an update that can change the model."""
    outcome.margins.append(margin)
    outcome.variances.append(variance)
    outcome.n_mistakes += margin <= 0
    updates = (margin < 1 if rule == "margin" else margin <= 0) and q.any() and p.any() and w > 0
    outcome.n_updates += updates
    return updates


def d_aroma(triplets, Q, P, *, r=1.0, W0=None, rule="margin", covariance_update="downdate", weights=None):
    W, Sigma = W0.copy(), np.ones_like(W0)
    outcome = Outcome({})
    for q, p, w in rounds(triplets, Q, P, weights):
        x = np.outer(q, p)
        margin, variance = q @ W @ p, np.sum(x * Sigma * x)
        if note(outcome, margin, variance, rule, q, p, w):
            alpha = max(0, 1 - margin) / (variance + r / w)
            W = W + alpha * Sigma * x
            if covariance_update == "downdate":
                Sigma = Sigma - Sigma * x * x * Sigma / (variance + r / w)
            else:
                Sigma = 1 / (1 / Sigma + x * x * w / r)
    outcome.matrices = {"W_": W, "Sigma_": Sigma}
    return outcome


def f_aroma(
    triplets,
    Q,
    P,
    *,
    r=1.0,
    W0=None,
    rule="margin",
    mean_update="previous",
    covariance_update="jacobi",
    weights=None,
):
    W, (m, n) = W0.copy(), W0.shape
    Omega, Lambda = np.eye(n), np.eye(m)
    outcome = Outcome({})
    for q, p, w in rounds(triplets, Q, P, weights):
        margin = q @ W @ p
        qLq, pOp = q @ Lambda @ q, p @ Omega @ p
        if note(outcome, margin, qLq * pOp, rule, q, p, w):
            rho = r / w
            alpha = max(0, 1 - margin) / (rho + qLq * pOp)
            new_Omega = Omega - qLq / (m * rho + qLq * pOp) * np.outer(Omega @ p, Omega @ p)
            new_Lambda = Lambda - pOp / (n * rho + pOp * qLq) * np.outer(Lambda @ q, Lambda @ q)
            if covariance_update == "gauss_seidel":
                trace = np.trace(np.linalg.solve(Omega, new_Omega)) / n
                precision = trace * np.linalg.inv(Lambda) + (p @ new_Omega @ p) / (n * rho) * np.outer(q, q)
                new_Lambda = np.linalg.inv(precision)
            elif covariance_update == "joint":
                new_Omega, new_Lambda = joint_minimiser(Omega, Lambda, q, p, rho)
            if mean_update == "previous":
                W = W + alpha * np.outer(Lambda @ q, Omega @ p)
            else:
                Z = np.linalg.solve(Lambda, W) @ np.linalg.inv(Omega) + alpha * np.outer(q, p)
                W = new_Lambda @ Z @ new_Omega
            Omega, Lambda = new_Omega, new_Lambda
    outcome.matrices = {"W_": W, "Omega_": Omega, "Lambda_": Lambda}
    return outcome


def joint_minimiser(Omega0, Lambda0, q, p, r):
    """Return the stationary point of (11) with Tr(inv(Lambda0) Lambda) = m, by root finding in one scalar.

    Given ``lam = q'Lambda q``, setting the gradients to zero determines both matrices; the solution reproduces lam.
    """
    m, n = len(q), len(p)
    inverse_Omega, inverse_Lambda = np.linalg.inv(Omega0), np.linalg.inv(Lambda0)

    def matrices(lam):
        Omega = np.linalg.inv(inverse_Omega + lam / (m * r) * np.outer(p, p))
        trace = np.trace(inverse_Omega @ Omega)
        return Omega, n * np.linalg.inv(trace * inverse_Lambda + (p @ Omega @ p) / r * np.outer(q, q))

    upper = q @ Lambda0 @ q
    while q @ matrices(upper)[1] @ q > upper:
        upper *= 2
    return matrices(brentq(lambda lam: lam - q @ matrices(lam)[1] @ q, 0, upper, xtol=1e-300, rtol=1e-15))


def full_aroma(triplets, Q, P, *, r=1.0, W0=None, rule="margin", weights=None):
    w_vector, Sigma = W0.ravel().copy(), np.eye(W0.size)
    outcome = Outcome({})
    for q, p, w in rounds(triplets, Q, P, weights):
        x = np.outer(q, p).ravel()
        margin, variance = w_vector @ x, x @ Sigma @ x
        if note(outcome, margin, variance, rule, q, p, w):
            w_vector = w_vector + max(0, 1 - margin) / (variance + r / w) * Sigma @ x
            Sigma = Sigma - np.outer(Sigma @ x, Sigma @ x) / (variance + r / w)
    outcome.matrices = {"W_": w_vector.reshape(W0.shape), "Sigma_": Sigma}
    return outcome


def oasis(triplets, Q, P, *, C=0.1, W0=None, weights=None):
    W = W0.copy()
    outcome = Outcome({})
    for q, p, w in rounds(triplets, Q, P, weights):
        margin = q @ W @ p
        if note(outcome, margin, 0.0, "margin", q, p, w):
            V = np.outer(q, p)
            W = W + min(C * w, max(0, 1 - margin) / np.sum(V * V)) * V
    outcome.matrices = {"W_": W}
    return outcome


def arow(X, signs, *, r=1.0, covariance="full"):
    w, Sigma = np.zeros(X.shape[1]), np.eye(X.shape[1])
    for x, y in zip(X, signs, strict=True):
        variance = x @ Sigma @ x
        if y * (x @ w) < 1:
            w = w + max(0, 1 - y * (x @ w)) / (variance + r) * Sigma @ (y * x)
            Sigma = Sigma - np.outer(Sigma @ x, Sigma @ x) / (r + variance)
            if covariance == "diagonal":
                Sigma = np.diag(np.diag(Sigma))
    return w, Sigma

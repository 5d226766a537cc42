"""Direct NumPy implementations of the paper's algorithms (float64, dense rows, `np.outer`), for comparison.

Each function updates its state in place.
"""

import numpy as np


def d_aroma(state, triplets, Q, P, r):
    W, Sigma = state["W"], state["Sigma"]
    for i, j, k in triplets:
        q, p = Q[i], P[j] - P[k]
        margin = q @ W @ p
        if margin < 1:
            x = np.outer(q, p)
            variance = np.sum(x * Sigma * x)
            W += (1 - margin) / (variance + r) * Sigma * x
            Sigma -= Sigma * x * x * Sigma / (variance + r)


def f_aroma(state, triplets, Q, P, r):
    W, Omega, Lambda = state["W"], state["Omega"], state["Lambda"]
    m, n = W.shape
    for i, j, k in triplets:
        q, p = Q[i], P[j] - P[k]
        margin = q @ W @ p
        if margin < 1:
            a, b = Lambda @ q, Omega @ p
            q_variance, p_variance = q @ a, p @ b
            variance = q_variance * p_variance
            W += (1 - margin) / (r + variance) * np.outer(a, b)
            Omega -= q_variance / (m * r + variance) * np.outer(b, b)
            Lambda -= p_variance / (n * r + variance) * np.outer(a, a)


def oasis(state, triplets, Q, P, C):
    W = state["W"]
    for i, j, k in triplets:
        q, p = Q[i], P[j] - P[k]
        margin = q @ W @ p
        if margin < 1:
            W += min(C, (1 - margin) / ((q @ q) * (p @ p))) * np.outer(q, p)

"""Multinomial logistic regression on soft targets: the groups of unseen rows from their features.

With rows x of unit norm and targets ``t_ik``, the share of row i in group k, the weights B and intercepts b minimize ::

    -mean_i sum_k t_ik log P(k | x_i)  +  alpha / 2 |B|^2,      P(k | x) = exp(b_k + B_k'x) / sum_j exp(b_j + B_j'x)

Targets change with every round of the groups, so the minimum is not needed: a few hundred steps of Adam (Kingma and Ba
2015) with a learning rate that falls to zero rank as well as L-BFGS, in a fraction of its time, and start from the last
weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..._utils.rows import Matrix

Array = NDArray[Any]

_BATCH = 512
_DECAY_OF_MEANS, _DECAY_OF_SQUARES = 0.9, 0.99


def fit_recogniser(
    X: Matrix,
    targets: Array,
    alpha: float,
    generator: np.random.Generator,
    *,
    start: Array | None = None,
    n_steps: int,
    learning_rate: float,
) -> Array:
    """Return weights of shape (n_features + 1, n_groups), the intercepts last, in single precision.

    `X` are rows of unit norm in single precision, dense or CSR.
    """
    (n, width), n_groups = X.shape, targets.shape[1]
    B = np.zeros((width + 1, n_groups), dtype=np.float32) if start is None else start.astype(np.float32)
    mean, square, gradient = np.zeros_like(B), np.zeros_like(B), np.empty_like(B)
    order, at = generator.permutation(n), 0
    for step in range(n_steps):
        if at and at + _BATCH > n:
            order, at = generator.permutation(n), 0
        rows = order[at : at + _BATCH]
        at += _BATCH
        x, t = X[rows], targets[rows]
        residuals = special.softmax(x @ B[:-1] + B[-1], axis=1) * t.sum(axis=1, keepdims=True) - t
        residuals /= np.float32(len(rows))
        gradient[:-1] = x.T @ residuals
        gradient[:-1] += np.float32(alpha) * B[:-1]
        gradient[-1] = residuals.sum(axis=0)
        mean += np.float32(1 - _DECAY_OF_MEANS) * (gradient - mean)
        square += np.float32(1 - _DECAY_OF_SQUARES) * (gradient * gradient - square)
        rate = learning_rate * (1 - step / n_steps) / (1 - _DECAY_OF_MEANS ** (step + 1))
        root = np.sqrt(square / np.float32(1 - _DECAY_OF_SQUARES ** (step + 1)))
        B -= np.float32(rate) * np.divide(mean, root, out=np.zeros_like(B), where=root > 0)
    return B


def log_probabilities(X: Matrix, B: Array) -> Array:
    """Return ``log P(k | x)`` for every row and group."""
    return np.asarray(special.log_softmax(X @ B[:-1] + B[-1], axis=1))

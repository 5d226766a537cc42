"""Factors of W: maps whose inner products are its positive semi-definite part, or all of it at a given rank.

The paper leaves W free: ``q'Wp`` need not be ``p'Wq``, and no distance belongs to it. Where queries and objects have
the same features, its section 2 names the alternative, the metric ``(q - p)'W(q - p)``, which ranks alike when all rows
have the same W-norm, ``x'Wx``. That takes a W that is symmetric and positive semi-definite. Such a W has a factor L
with ``W = L L'``; the score is the inner product of ``L'q`` and ``L'p``, and vector tools apply to these.

With the eigenvalues ``d_i`` and eigenvectors ``u_i`` of ``(W + W') / 2``, the nearest such matrix of a rank in the
Frobenius norm is ``sum_i max(d_i, 0) u_i u_i'`` over the largest eigenvalues (Higham 1988). Directions with little
evidence have small eigenvalues, so a low rank often ranks better than the full one. Without the condition, for queries
and objects of any widths, the nearest matrix of a rank has the largest singular values (Eckart and Young 1936); with
``W ~ A B'`` the score is the inner product of ``A'q`` and ``B'p``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse.linalg import ArpackError, eigsh, svds

from ..._utils import checks
from ...exceptions import NumericalError
from ..moment import sums
from ..moment.solution import Solution, feature_square
from ..moment.triplet_graph import denoised_sums
from .training_set import TripletData

Array = NDArray[np.float64]

# Matrices of width x width that the moment method holds.
_N_MATRICES = 16


def moment_map(training: TripletData, n_components: int, alpha: float | None) -> tuple[Array, Array | None] | None:
    """Return the PSD factor of W of `MomentAROMA` with denoised sums, and that of its training rows.

    `alpha` is in units of the mean square of a feature; None chooses it on validation rows. The result is None without
    positive eigenvalues.
    """
    width = training.Q.shape[1]
    checks.check_fits_in_memory(_N_MATRICES * width**2 * 8, f"The moment method for {width} features")
    state = sums.split_sums(training.block, training.hashes, width, width)
    state |= denoised_sums(state, training.block, training.graph)
    solution = Solution(state, None if alpha is None else alpha * feature_square(state), denoise=True)
    L = psd_factor(solution.W, n_components)
    if not L.size:
        return None
    return L, None if solution.W_train is None else psd_factor(solution.W_train, n_components)


def psd_factor(W: Any, n_components: int | None) -> Array:
    """Return L with ``L L'`` the positive semi-definite matrix of a rank that is nearest to W, dense or sparse."""
    _check_sparse(W, n_components)
    S = (W + W.T) / 2
    if sparse.issparse(S):
        if n_components >= S.shape[0]:
            return psd_factor(W.toarray(), n_components)
        if not S.count_nonzero():
            return np.empty((S.shape[0], 0))
        # A fixed start, for reproducible bits.
        with _refusing_vanishing_values():
            values, vectors = eigsh(S.astype(np.float64), k=n_components, which="LA", v0=np.ones(S.shape[0]))
    elif n_components is not None and n_components < len(S) // 2:
        values, vectors = linalg.eigh(S.astype(np.float64), subset_by_index=[len(S) - n_components, len(S) - 1])
    else:
        values, vectors = linalg.eigh(S.astype(np.float64), driver="evd")
    values = np.maximum(values, 0)
    order = np.argsort(-values, kind="stable")[:n_components]
    # Smaller values are rounding.
    order = order[values[order] > np.finfo(np.float64).eps * len(vectors) * values.max(initial=0)]
    return np.ascontiguousarray(vectors[:, order] * np.sqrt(values[order]))


def singular_factors(W: Any, n_components: int | None) -> tuple[Array, Array]:
    """Return A and B with ``A B'`` the matrix of a rank that is nearest to W, dense or sparse."""
    _check_sparse(W, n_components)
    k = min(W.shape) if n_components is None else min(n_components, *W.shape)
    if sparse.issparse(W) and k < min(W.shape):
        if not W.count_nonzero():
            return np.zeros((W.shape[0], k)), np.zeros((W.shape[1], k))
        # A fixed start, for reproducible bits.
        with _refusing_vanishing_values():
            U, values, Vt = svds(W.astype(np.float64), k=k, v0=np.ones(min(W.shape)))
        U, values, Vt = U[:, ::-1], values[::-1], Vt[::-1]
    else:
        U, values, Vt = linalg.svd(W.toarray() if sparse.issparse(W) else W.astype(np.float64), full_matrices=False)
    roots = np.sqrt(values[:k])
    return np.ascontiguousarray(U[:, :k] * roots), np.ascontiguousarray(Vt[:k].T * roots)


@contextmanager
def _refusing_vanishing_values() -> Iterator[None]:
    """Raise a NumericalError where ARPACK fails, as it does if products with W vanish."""
    try:
        yield
    except ArpackError as error:
        raise NumericalError(f"W cannot be decomposed, its values are too small or too large: {error}") from None


def _check_sparse(W: Any, n_components: int | None) -> None:
    if n_components is None and sparse.issparse(W):
        raise ValueError("n_components must be a number for a model with a sparse W_, got None")


def principal(L: Array, n_components: int | None = None) -> Array:
    """Return the same ``L L'`` as scaled eigenvectors, the largest first."""
    vectors, roots, _ = linalg.svd(L, full_matrices=False)
    return np.ascontiguousarray((vectors * roots)[:, :n_components])


def over_power(rows: Any, power: float) -> Any:
    """Return rows divided by a power of their norms; rows of zeros stay zero."""
    if not power:
        return rows
    norms = np.linalg.norm(rows, axis=1, keepdims=True) ** power
    return np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)

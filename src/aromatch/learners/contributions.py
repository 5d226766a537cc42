"""Contributions of pairs of features to a score."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._utils.rows import Matrix

Array = NDArray[Any]


class Contributions(NamedTuple):
    """Contributions of pairs of a query feature and an object feature to one score, which they add up to."""

    query_features: NDArray[np.int64]
    """Indices of the non-zero query features."""
    object_features: NDArray[np.int64]
    """Indices of the non-zero object features."""
    values: Array
    """Contribution of each pair, of shape (n_query_features, n_object_features)."""
    stds: Array | None
    """Standard deviation of each contribution under the learned distribution; None without one."""


def nonzero_values(row: Matrix) -> tuple[NDArray[np.int64], Array]:
    """Return the indices of the non-zero values of a matrix of one row, and the values."""
    dense = np.asarray(row.toarray() if sparse.issparse(row) else row, dtype=np.float64).ravel()
    indices = np.flatnonzero(dense)
    return indices, dense[indices]


def cells_of(matrix: Any, i: Array, j: Array, default: float) -> Array:
    """Return some rows and columns of a matrix; `default` where a sparse one stores nothing."""
    if not sparse.issparse(matrix):
        return np.asarray(matrix[np.ix_(i, j)])
    rows = matrix[i]
    stored = sparse.csr_array((np.ones(rows.nnz), rows.indices, rows.indptr), shape=rows.shape)
    is_stored = stored[:, j].toarray() > 0
    return np.where(is_stored, rows[:, j].toarray(), default)

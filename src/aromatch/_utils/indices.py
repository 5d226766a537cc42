"""Triplets and pairs of row indices, and the rows that they select."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..kernels.rows import RowView
from . import checks
from .rows import Matrix, read_rows


class Rows(NamedTuple):
    """Checked rows of queries and objects, ready for a kernel."""

    queries: RowView
    objects: RowView
    numbers: NDArray[np.int64]
    query_square: float
    """The largest ``|q|^2``."""
    object_square: float
    """The largest ``|p|^2`` of an object."""


def check_triplets(triplets: ArrayLike, Q: Matrix, P: Matrix) -> NDArray[np.int64]:
    """Return triplets of row numbers that all point into Q and P."""
    numbers = checks.check_row_indices(triplets, "triplets", 3)
    checks.check_range(numbers[:, 0], "query of triplet", Q.shape[0], "Q")
    checks.check_range(numbers[:, 1], "preferred object of triplet", P.shape[0], "P")
    checks.check_range(numbers[:, 2], "other object of triplet", P.shape[0], "P")
    return numbers


def check_pairs(pairs: ArrayLike | None, Q: Matrix, P: Matrix) -> NDArray[np.int64]:
    """Return pairs of row numbers that all point into Q and P; row by row when there are none."""
    if pairs is None:
        if Q.shape[0] != P.shape[0]:
            raise ValueError(
                f"Q and P must have as many rows as each other when pairs is None, got {Q.shape[0]} and {P.shape[0]}"
            )
        rows = np.arange(Q.shape[0], dtype=np.int64)
        return np.column_stack([rows, rows])
    numbers = checks.check_row_indices(pairs, "pairs", 2)
    checks.check_range(numbers[:, 0], "query of pair", Q.shape[0], "Q")
    checks.check_range(numbers[:, 1], "object of pair", P.shape[0], "P")
    return numbers


def read_both(Q: Matrix, P: Matrix, numbers: NDArray[np.int64]) -> Rows:
    """Read the rows of Q in the first column of the indices, and those of P in the others."""
    columns = [numbers[:, i] for i in range(numbers.shape[1])]
    if Q is P:
        left = right = read_rows(Q, "Q", columns)
        read = left.indices
    else:
        left, right = read_rows(Q, "Q", columns[:1]), read_rows(P, "P", columns[1:])
        read = left.indices + right.indices
    if any(a is not b for a, b in zip(read, columns, strict=True)):
        numbers = np.column_stack(read)
    return Rows(left.view, right.view, numbers, left.largest_square, right.largest_square)

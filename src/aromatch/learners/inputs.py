"""Inputs of the learners: blocks of triplets for the kernels, and limits of what the arithmetic can carry."""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._utils import checks
from .._utils.chunks import chunks
from .._utils.indices import check_triplets, read_both
from .._utils.rows import Matrix
from ..kernels.rows import RowView


class Block(NamedTuple):
    """Triplets for a kernel to learn in order."""

    queries: RowView
    preferred: RowView
    others: RowView
    triplets: NDArray[np.int64]
    """Row indices into the three."""
    weights: NDArray[np.float64] | None
    record: NDArray[np.float64] | None = None
    """Output of margin, variance and whether there was an update, for each triplet."""


class Judged(NamedTuple):
    """Checked triplets and the rows that they select."""

    numbers: NDArray[np.int64]
    """Row indices into the given matrices."""
    block: Block
    """The same for a kernel."""
    largest_square: float
    """Largest ``|x|^2`` of all rows."""


Precision: TypeAlias = np.dtype[Any]
FLOAT64, FLOAT32 = np.dtype(np.float64), np.dtype(np.float32)
_ROWS_PER_CHUNK = 2**12
# Larger numbers could overflow inside an update: squares of rows, squares over r, the initial W.
LARGEST: dict[Precision, float] = {FLOAT64: 1e200, FLOAT32: 1e25}
# Fourth powers of rows that a baseline learns from must not overflow.
LARGEST_SQUARE_IN_FIT = 1e90
# Largest |q|^2 |p|^2 / r for a covariance matrix: beyond it, rounding can make a downdated matrix indefinite.
LARGEST_SCALE_OF_A_COVARIANCE: dict[Precision, float] = {FLOAT64: 1e11, FLOAT32: 1e6}


def check_width(X: Matrix, name: str, width: int) -> None:
    """Raise a ValueError if a matrix has another number of features than the model."""
    if X.shape[1] != width:
        raise ValueError(f"{name} has {X.shape[1]} features, but the model was fitted on {width}")


def read_triplets(triplets: ArrayLike, Q: Matrix, P: Matrix, sample_weight: ArrayLike | None) -> Judged:
    """Check triplets and their weights, and read their rows."""
    numbers = check_triplets(triplets, Q, P)
    weights = checks.check_weights(sample_weight, len(numbers))
    rows = read_both(Q, P, numbers)
    block = Block(rows.queries, rows.objects, rows.objects, rows.numbers, weights)
    return Judged(numbers, block, max(rows.query_square, rows.object_square))


def product(X: Matrix, M: NDArray[Any]) -> NDArray[Any]:
    """Return ``X @ M`` in the precision of M; rows of another precision are converted in chunks."""
    if X.dtype == M.dtype:
        return np.asarray(X @ M)
    out = np.empty((X.shape[0], M.shape[1]), dtype=M.dtype)
    for chunk in chunks(X.shape[0], _ROWS_PER_CHUNK):
        out[chunk] = X[chunk].astype(M.dtype) @ M
    return out

"""Inputs of the learners: precision, triplets and pairs of row indices, and the rows that they select."""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._utils import checks
from .._utils.rows import Matrix, read_rows
from ..kernels.rows import RowView, squared_scales


class Rows(NamedTuple):
    """Checked rows of queries and objects, ready for a kernel."""

    queries: RowView
    objects: RowView
    numbers: NDArray[np.int64]
    query_square: float
    """The largest ``|q|^2``."""
    object_square: float
    """The largest ``|p|^2`` of an object."""


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
_ROWS_AT_ONCE = 2**12
# Larger numbers could overflow inside an update: squares of rows, squares over r, the initial W.
LARGEST: dict[Precision, float] = {FLOAT64: 1e200, FLOAT32: 1e25}
# Fourth powers of rows that a baseline learns from must not overflow.
LARGEST_SQUARE_IN_FIT = 1e90
# Largest |q|^2 |p|^2 / r for a covariance matrix: beyond it, rounding can make a downdated matrix indefinite.
LARGEST_SCALE_OF_A_COVARIANCE: dict[Precision, float] = {FLOAT64: 1e11, FLOAT32: 1e6}
_PRECISIONS = {
    name: precision for precision in (FLOAT64, FLOAT32) for name in (str(precision), precision.type, precision)
}


def check_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the parameter `dtype` as a NumPy dtype."""
    try:
        return _PRECISIONS[dtype]
    except (KeyError, TypeError):
        raise ValueError(f"dtype must be 'float64' or 'float32', got {dtype!r}") from None


def check_width(X: Matrix, name: str, width: int) -> None:
    """Raise a ValueError if a matrix has another number of features than the model."""
    if X.shape[1] != width:
        raise ValueError(f"{name} has {X.shape[1]} features, but the model was fitted on {width}")


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


def read_triplets(triplets: ArrayLike, Q: Matrix, P: Matrix, sample_weight: ArrayLike | None) -> Judged:
    """Check triplets and their weights, and read their rows."""
    numbers = check_triplets(triplets, Q, P)
    weights = checks.check_weights(sample_weight, len(numbers))
    rows = read_both(Q, P, numbers)
    block = Block(rows.queries, rows.objects, rows.objects, rows.numbers, weights)
    return Judged(numbers, block, max(rows.query_square, rows.object_square))


def check_scale(
    block: Block,
    query_square: float,
    object_square: float,
    r: float,
    precision: np.dtype[Any],
    most: float,
    learner: str,
) -> None:
    """Refuse rows so large, or r so small, that rounding would break the model.

    The largest squares of all rows give a bound; only when it is over the limit are triplets measured. `most`
    is the largest ``|q|^2 |p|^2 / r`` that this learner carries.
    """
    largest, weights = LARGEST[precision], block.weights
    heaviest = 1.0 if weights is None or not len(weights) else float(weights.max())
    if heaviest / r > largest:
        raise ValueError(
            f"sample_weight / r (of OASIS, sample_weight * C) is {heaviest / r:.1e}, over {largest:.0e}, "
            f"too much for {precision}"
        )
    if max(query_square, object_square) > largest:
        raise ValueError(f"a row has |x|^2 = {max(query_square, object_square):.1e}, too large for dtype {precision}")
    if 4 * query_square * object_square * heaviest / r <= most:
        return
    scales = np.empty(len(block.triplets))
    squared_scales(*block[:4], scales)
    if weights is not None:
        scales *= weights
    at = int(np.argmax(scales))
    if scales[at] / r > most:
        raise ValueError(
            f"triplet {at}: |q|^2 |p_pos - p_neg|^2 sample_weight / r is {scales[at] / r:.1e}, over {most:.0e}, the "
            f"most that {learner} carries in {precision}; scale the rows down (unit norm is usual) or raise r"
        )


def feature_names(X: Any) -> list[str] | None:
    """Return the names of the columns of a data frame, if all are text; None otherwise."""
    columns = getattr(X, "columns", None)
    if columns is None or not all(isinstance(column, str) for column in columns):
        return None
    return list(columns)


def product(X: Matrix, M: NDArray[Any]) -> NDArray[Any]:
    """Return ``X @ M`` in the precision of M; rows of another precision are converted in chunks."""
    if X.dtype == M.dtype:
        return np.asarray(X @ M)
    out = np.empty((X.shape[0], M.shape[1]), dtype=M.dtype)
    for start in range(0, X.shape[0], _ROWS_AT_ONCE):
        piece = slice(start, start + _ROWS_AT_ONCE)
        out[piece] = X[piece].astype(M.dtype) @ M
    return out

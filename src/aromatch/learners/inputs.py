"""Inputs of the learners: blocks of triplets for the kernels, and limits of the arithmetic."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, validate_data

from .._utils import checks
from .._utils.chunks import chunks
from .._utils.indices import check_triplets, read_both
from .._utils.rows import Matrix, MatrixLike, check_structure
from ..exceptions import InsufficientMemoryError
from ..kernels.moments import add_sums
from ..kernels.rows import RowView, squared_scales


class Block(NamedTuple):
    """Triplets that a kernel learns in order; its fields are the first arguments of the kernel.

    Rows are checked: finite, canonical if sparse, and with valid indices. `dense_triplets` returns them as arrays.
    """

    queries: RowView
    preferred: RowView
    others: RowView
    """The same object as `preferred`, except for the single rows of `learn_one`."""
    triplets: NDArray[np.int64]
    """Row indices into the three, of shape (N, 3)."""
    weights: NDArray[np.float64] | None
    """Weight of each triplet, at least 0; None is bit-identical to weights of 1."""
    record: NDArray[np.float64] | None = None
    """Output of shape (N, 3): margin and its variance before the update (0 without a distribution), and 1 if there was
    an update. None if not needed."""


class ReadTriplets(NamedTuple):
    """Checked triplets and the rows that they select."""

    numbers: NDArray[np.int64]
    """Row indices into the given matrices."""
    block: Block
    """The same for a kernel."""
    query_square: float
    object_square: float
    """Largest ``|x|^2`` of the queries and of the objects."""

    @property
    def largest_square(self) -> float:
        """Largest ``|x|^2`` of all rows."""
        return max(self.query_square, self.object_square)


class Limits(NamedTuple):
    """What the arithmetic of a learner can represent, and its words for error messages."""

    precision: np.dtype[Any]
    largest_scale: float
    """Largest ``|q|^2 |p|^2 / noise``."""
    largest_row: float
    """Largest ``|x|^2 / noise`` of a row."""
    learner: str
    strength: str
    """The formula of weight over noise in terms of the parameters."""


Precision: TypeAlias = np.dtype[Any]
FLOAT64, FLOAT32 = np.dtype(np.float64), np.dtype(np.float32)
_ROWS_PER_CHUNK = 2**12
# Larger numbers could overflow inside an update: squares of rows, squares over r, the initial W.
LARGEST: dict[Precision, float] = {FLOAT64: 1e200, FLOAT32: 1e25}
# Largest |x|^2 / r of a row: times the smallest normal number, a larger one would exceed the rounding error of 1.
LARGEST_ROW: dict[Precision, float] = {
    precision: float(np.finfo(precision).eps) / float(np.finfo(precision).tiny) for precision in LARGEST
}
# Fourth powers of rows that a baseline learns from must not overflow.
LARGEST_SQUARE_IN_FIT = 1e90
# Largest |q|^2 |p|^2 / r for a covariance matrix: beyond it, rounding can make a downdated matrix indefinite.
LARGEST_SCALE_OF_A_COVARIANCE: dict[Precision, float] = {FLOAT64: 1e11, FLOAT32: 1e6}


def check_rows(estimator: Any, X: MatrixLike, *, is_recorded: bool = True, reset: bool = False) -> Matrix:
    """Check rows as scikit-learn does, with its messages; `is_recorded` compares or records their width and names."""
    how: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}
    X = check_structure(X, "X")
    with _refusing_numbers():
        if is_recorded:
            return validate_data(estimator, X, reset=reset, **how)
        return check_array(X, estimator=estimator, input_name="X", **how)


def check_labelled_rows(
    estimator: Any, X: MatrixLike, y: ArrayLike, *, dtype: Any = (np.float64, np.float32), reset: bool = True
) -> tuple[Matrix, NDArray[Any]]:
    """Check rows and their labels as scikit-learn does, with its messages."""
    X = check_structure(X, "X")
    with _refusing_numbers():
        X, y = validate_data(estimator, X, y, accept_sparse="csr", dtype=dtype, reset=reset)
    return X, np.asarray(y)


def check_class_labels(labels: NDArray[Any], name: str) -> None:
    """Check that labels are those of classes, as scikit-learn does, which converts whole floats to 64-bit integers."""
    if labels.dtype.kind == "f" and len(labels) and (largest := float(np.abs(labels).max())) >= 2**63:
        raise ValueError(f"{name} has a label of size {largest:g}, expected text, or numbers below 2**63")
    check_classification_targets(labels)


@contextmanager
def _refusing_numbers() -> Iterator[None]:
    """Raise a ValueError for integers beyond the range of floats and for sizes that no memory holds."""
    try:
        yield
    except OverflowError as error:
        raise ValueError(f"X must be real numbers: {error}") from None
    except MemoryError:
        raise InsufficientMemoryError("X does not fit in memory as an array") from None


def check_width(X: Matrix, name: str, width: int) -> None:
    """Raise a ValueError if a matrix has another number of features than the model."""
    if X.shape[1] != width:
        raise ValueError(f"{name} has {X.shape[1]} features, but the model was fitted on {width}")


def read_triplets(triplets: ArrayLike, Q: Matrix, P: Matrix, sample_weight: ArrayLike | None) -> ReadTriplets:
    """Check triplets and their weights, and read their rows."""
    numbers = check_triplets(triplets, Q, P)
    weights = checks.check_weights(sample_weight, len(numbers))
    rows = read_both(Q, P, numbers)
    block = Block(rows.queries, rows.objects, rows.objects, rows.numbers, weights)
    return ReadTriplets(numbers, block, rows.query_square, rows.object_square)


def check_scale(block: Block, query_square: float, object_square: float, noise: float, limits: Limits) -> float:
    """Refuse rows so large, or a noise so small, that rounding would break the model.

    The largest squares of all rows give a bound. Only if it exceeds the limit are triplets measured. Returns a bound of
    the scale of every triplet.
    """
    precision, largest_scale, largest_row, learner, strength = limits
    largest, weights = LARGEST[precision], block.weights
    heaviest = 1.0 if weights is None or not len(weights) else float(weights.max())
    if heaviest / noise > largest:
        raise ValueError(f"{strength} is {heaviest / noise:.1e}, expected at most {largest:.0e} in {precision}")
    square = query_square if query_square > object_square else object_square
    if square > largest:
        raise ValueError(f"a row has |x|^2 = {square:.1e}, too large for dtype {precision}")
    # Otherwise the square of the triplet's other row may vanish in this precision although its evidence counts.
    if (square := square * heaviest / noise) > largest_row:
        raise ValueError(
            f"the largest |x|^2 {strength} of the rows is {square:.1e}, expected at most "
            f"{largest_row:.0e} in {precision}; scale the rows down (unit norm is usual) or lower {strength}"
        )
    if (bound := 4 * query_square * object_square * heaviest / noise) <= largest_scale:
        return bound
    scales = np.empty(len(block.triplets))
    squared_scales(*block[:4], scales)
    if weights is not None:
        with np.errstate(over="ignore"):  # refused below
            scales *= weights
    at = int(np.argmax(scales))
    if scales[at] / noise > largest_scale:
        raise ValueError(
            f"triplet {at}: |q|^2 |p_pos - p_neg|^2 {strength} is {scales[at] / noise:.1e}, expected at most "
            f"{largest_scale:.0e} for {learner} in {precision}; scale the rows down (unit norm is usual) or lower "
            f"{strength}"
        )
    return float(scales[at] / noise)


def check_finite(values: NDArray[Any], what: str) -> NDArray[Any]:
    """Return results, or refuse the rows that made them overflow."""
    # The sum is finite unless a value is not, or all are near the largest number.
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum()
    if not np.isfinite(total) and not np.isfinite(values).all():
        raise ValueError(f"{what} are too large for {values.dtype}; scale the rows down")
    return values


def dense_rows(rows: RowView, indices: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return rows as an array in float64."""
    out = np.zeros((len(indices), rows.shape[1]))
    add_sums(rows, np.arange(len(indices) + 1), np.ascontiguousarray(indices), np.ones(len(indices)), out)
    return out


def dense_triplets(block: Block) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return q and ``p = p_pos - p_neg`` of every triplet as arrays in float64: for learners without a kernel."""
    q, preferred, other = map(dense_rows, block[:3], block.triplets.T)
    return q, preferred - other


def product(X: Matrix, M: NDArray[Any]) -> NDArray[Any]:
    """Return ``X @ M`` in the precision of M; rows of another precision are converted in chunks."""
    if X.dtype == M.dtype:
        return np.asarray(X @ M)
    out = np.empty((X.shape[0], M.shape[1]), dtype=M.dtype)
    for chunk in chunks(X.shape[0], _ROWS_PER_CHUNK):
        out[chunk] = X[chunk].astype(M.dtype) @ M
    return out

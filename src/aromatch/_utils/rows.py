"""Conversion and checks of the matrices Q and P for the kernels.

CSR and dense matrices of float32 or float64, in any memory order, are read in place. Other numeric matrices are
converted, but only the rows in use, so the cost of a call depends on its triplets and not on the matrix.
"""

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.extmath import row_norms
from sklearn.utils.sparsefuncs_fast import inplace_csr_row_normalize_l2

from ..kernels.rows import (
    NOT_CANONICAL,
    NOT_FINITE,
    OUT_OF_RANGE,
    RowView,
    check_rows,
    single_csr_row,
    single_dense_row,
)
from .checks import as_array, check_fits_in_memory

MatrixLike: TypeAlias = Any  # arrays, lists, data frames, sparse matrices of any format
Matrix: TypeAlias = Any  # a 2-D ndarray or a CSR matrix
RowIndices: TypeAlias = NDArray[np.int64]

_READ_IN_PLACE = (np.dtype(np.float32), np.dtype(np.float64))
_COMPRESSED = ("csr", "csc", "bsr")
# Formats that may have another number of dimensions than two.
_ANY_DIMENSION = ("csr", "coo", "dok")
_MANY_LINES = 2**20
# What every use of a sparse matrix takes at least: where each row starts, and a mark for each column.
_BYTES_OF_A_ROW, _BYTES_OF_A_COLUMN = 8, 1
_INDEX_TYPES = (np.dtype(np.int32), np.dtype(np.int64))
_NO_FLAGS = np.empty(0, dtype=np.uint8)
_ROW_ZERO: list[RowIndices] = [np.zeros(1, dtype=np.int64)]


class ReadRows(NamedTuple):
    """Checked rows: a view of their matrix, their indices in it, and the largest ``|row|^2``."""

    view: RowView
    indices: list[RowIndices]
    largest_square: float


def as_matrix(X: Any, name: str) -> Matrix:
    """Return X as a CSR matrix or numeric 2-D array, uncopied if possible; values are not checked."""
    if sparse.issparse(X):
        if X.ndim != 2:
            raise ValueError(f"{name} must be a 2-D matrix, got a sparse array of shape {X.shape}")
        if X.format not in _COMPRESSED:
            X = check_structure(check_structure(X, name).tocsr(), name)
        elif X.format != "csr" or not _has_readable_indices(X):
            X = check_structure(X, name).tocsr()
        else:
            _check_size(X, name)
        if len(X.indptr) != X.shape[0] + 1 or len(X.indices) != len(X.data):
            raise ValueError(f"{name} is not a valid CSR matrix: its arrays do not match its shape {X.shape}")
    else:
        X = as_array(X, name)
        if X.ndim != 2:
            hint = f"; for a single row pass {name}.reshape(1, -1)" if X.ndim == 1 else ""
            raise ValueError(f"{name} must be a 2-D matrix with one row per object, got shape {X.shape}{hint}")
    if X.dtype.kind == "c":
        raise ValueError(f"{name} must be real numbers, got {X.dtype}: Complex data not supported")
    if X.dtype.kind not in "fiubO":
        raise TypeError(f"{name} must be real numbers, got a matrix of {X.dtype}")
    if 0 in X.shape:
        raise ValueError(f"{name} is empty, got shape {X.shape}, expected at least one row and one column")
    return X


def check_structure(X: MatrixLike, name: str) -> Any:
    """Return X; raise `ValueError` for a sparse matrix whose arrays SciPy and the kernels would read out of bounds.

    Indices of types that they do not read are converted. `check_format` of SciPy checks less, and modifies the matrix.
    """
    if not sparse.issparse(X):
        return X
    problem = _structure_problem(X)
    if problem is not None:
        raise ValueError(f"{name} is not a valid {X.format.upper()} matrix of the shape {X.shape}: {problem}")
    _check_size(X, name)
    if X.format in ("lil", "dok"):  # valid if what they become is
        return check_structure(_as_csr(X, name), name)
    if X.format == "dia" and X.offsets.dtype not in _INDEX_TYPES:  # SciPy adds the shape to them
        return type(X)((X.data, X.offsets.astype(np.int64)), shape=X.shape)
    if X.format not in _COMPRESSED or _has_readable_indices(X):
        return X
    return type(X)((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)


def _check_size(X: Any, name: str) -> None:
    """Refuse a sparse matrix with more rows or columns than memory can index, however few values it has."""
    if max(X.shape) > _MANY_LINES:  # the check takes longer than a small matrix
        n_bytes = _BYTES_OF_A_ROW * X.shape[0] + _BYTES_OF_A_COLUMN * sum(X.shape[1:])
        check_fits_in_memory(n_bytes, f"An index of the rows and columns of {name}, of shape {X.shape},")


def _as_csr(X: Any, name: str) -> Any:
    """Convert a lil or dok matrix, which may hold any Python objects."""
    try:
        return X.tocsr()
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} is not a valid {X.format.upper()} matrix of the shape {X.shape}: {error}") from None


def _has_readable_indices(X: Any) -> bool:
    return X.indices.dtype in _INDEX_TYPES and X.indptr.dtype in _INDEX_TYPES


def _structure_problem(X: Any) -> str | None:
    """Return what is wrong with the arrays of a sparse matrix; None if nothing is."""
    if X.ndim != 2 and (X.format not in _ANY_DIMENSION or X.ndim == 0):
        return "it must be 2-D"
    if not all(isinstance(length, Integral) and int(length) >= 0 for length in X.shape):
        return "its shape must be integers of at least 0"
    if X.format == "lil":
        return _lil_problem(X)
    if X.format == "dok":
        return _dok_problem(X)
    if X.format in _COMPRESSED:
        arrays = {"data": X.data, "indices": X.indices, "indptr": X.indptr}
        dimensions = {"data": 3 if X.format == "bsr" else 1}
    elif X.format == "coo":
        arrays = {"data": X.data} | {f"coords[{axis}]": along for axis, along in enumerate(X.coords)}
        dimensions = {}
    else:
        arrays, dimensions = {"data": X.data, "offsets": X.offsets}, {"data": 2}
    for label, array in arrays.items():
        if not isinstance(array, np.ndarray) or array.ndim != dimensions.get(label, 1):
            return f"{label} must be an array of {dimensions.get(label, 1)} dimensions"
        if label != "data" and array.dtype.kind not in "iu":
            return f"{label} must be integers, got {array.dtype}"
    if X.format == "coo":
        if any(len(along) != len(X.data) for along in X.coords) or len(X.coords) != X.ndim:
            return "data and coords must have the same length"
        if not all(_are_in_range(along, length) for along, length in zip(X.coords, X.shape, strict=True)):
            return "its indices are out of range"
        return None
    if X.format == "dia":
        if len(X.data) != len(X.offsets) or len(np.unique(X.offsets)) < len(X.offsets):
            return "data must have a row for each of the offsets, which must be unique"
        is_inside = not len(X.offsets) or (X.offsets.min() > -X.shape[0] and X.offsets.max() < X.shape[1])
        return None if is_inside else "its offsets are out of range"
    n_lines, width = X.shape[::-1] if X.format == "csc" else X.shape if X.ndim == 2 else (1, X.shape[0])
    if X.format == "bsr":
        height, breadth = X.data.shape[1:]
        if not height or not breadth or n_lines % height or width % breadth:
            return f"its shape must be a multiple of its blocks of {height} x {breadth}"
        n_lines, width = n_lines // height, width // breadth
    indptr, indices = X.indptr, X.indices
    if len(indptr) != n_lines + 1 or indptr[0] < 0 or not bool(np.all(indptr[1:] >= indptr[:-1])):
        return f"indptr must be {n_lines + 1} numbers that do not decrease"
    if indptr[-1] > min(len(indices), len(X.data)):
        return "indptr is larger than the number of entries"
    return None if _are_in_range(indices[indptr[0] : indptr[-1]], width) else "its indices are out of range"


def _lil_problem(X: Any) -> str | None:
    """Return what is wrong with the lists of a LIL matrix, whose lengths SciPy trusts when it converts them."""
    for label, lists in (("rows", X.rows), ("data", X.data)):
        if not isinstance(lists, np.ndarray) or lists.dtype != object or lists.shape != X.shape[:1]:
            return f"{label} must be an array of {X.shape[0]} lists"
        if not all(type(one) is list for one in lists):
            return f"{label} must be an array of {X.shape[0]} lists"
    if any(len(indices) != len(values) for indices, values in zip(X.rows, X.data, strict=True)):
        return "rows and data must have lists of the same lengths"
    types = {kind for indices in X.rows for kind in map(type, indices)}
    if not all(issubclass(kind, Integral) for kind in types):
        return "rows must be lists of integers"
    is_inside = all(min(indices) >= 0 and max(indices) < X.shape[1] for indices in X.rows if indices)
    return None if is_inside else "its indices are out of range"


def _dok_problem(X: Any) -> str | None:
    """Return what is wrong with the keys of a DOK matrix, of which SciPy drops what it does not use."""
    for key in X.keys():  # noqa: SIM118 - iteration over a matrix yields rows
        place = key if isinstance(key, tuple) else (key,)
        if len(place) != X.ndim or not all(isinstance(one, Integral) for one in place):
            return f"its keys must be {X.ndim} integers, got {key!r:.100}"
        if not all(0 <= one < length for one, length in zip(place, X.shape, strict=True)):
            return f"its indices are out of range, got the key {key!r:.100}"
    return None


def _are_in_range(indices: NDArray[Any], length: int) -> bool:
    return not len(indices) or bool(indices.min() >= 0 and indices.max() < length)


def read_rows(X: Matrix, name: str, indices: Sequence[RowIndices]) -> ReadRows:
    """Check the rows of a matrix with these indices, which must be in range, and return a view.

    If the matrix cannot be read in place, the view is of a converted copy of the rows in use, and the returned indices
    refer to that copy.
    """
    indices = list(indices)
    original: RowIndices | None = None
    if not _is_read_in_place(X):
        X, indices, original = _used_rows(check_structure(X, name), indices)
        X = as_float64(X, name)
    view, (code, row, largest) = _check(X, indices)
    if code == NOT_CANONICAL:
        if original is None:
            X, indices, original = _used_rows(X, indices)
        view, (code, row, largest) = _check(_canonical(X), indices)
    if code == NOT_FINITE:
        row = row if original is None else int(original[row])
        raise ValueError(f"{name} contains NaN or infinity in row {row}, expected finite numbers")
    if code == OUT_OF_RANGE:
        row = row if original is None else int(original[row])
        raise ValueError(f"{name} is not a valid CSR matrix: row {row} has indices outside 0 to {X.shape[1] - 1}")
    return ReadRows(view, indices, largest)


def read_single_row(x: Any, name: str) -> tuple[RowView, float]:
    """Check one object, a vector or a matrix with one row; return a view and ``|x|^2``."""
    found = None
    kind = type(x)  # fast path for the common types
    if kind is np.ndarray:
        found = single_dense_row(x)
    elif (kind is sparse.csr_matrix or kind is sparse.csr_array) and len(shape := x.shape) == 2 and shape[0] == 1:
        found = single_csr_row(shape[1], x.data, x.indices, x.indptr)
    if found is None:
        rows = read_rows(as_single_row(x, name), name, _ROW_ZERO)
        found = rows.view, rows.largest_square
    return found


def read_all(X: Matrix, name: str) -> ReadRows:
    """Check all rows of a matrix and return a view."""
    return read_rows(X, name, [np.arange(X.shape[0], dtype=np.int64)])


def as_float64(X: Matrix, name: str) -> Matrix:
    """Return integers, booleans, other floats and numeric objects as float64."""
    if X.dtype.kind == "O" and any(isinstance(value, str) for value in (X.data if sparse.issparse(X) else X.flat)):
        raise ValueError(f"{name} must be real numbers, got a string")
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # infinity and signalling NaN, which the caller refuses
            if not sparse.issparse(X):
                return X.astype(np.float64, copy=False)
            # X.astype would sort the entries of the caller's matrix in place.
            return sparse.csr_matrix((X.data.astype(np.float64), X.indices, X.indptr), shape=X.shape)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be real numbers: {error}") from None


def as_float(X: Matrix, name: str) -> Matrix:
    """Convert to float64 what is neither float32 nor float64."""
    return X if X.dtype in _READ_IN_PLACE else as_float64(X, name)


def as_rows(
    X: MatrixLike,
    name: str,
    *,
    largest_square: Mapping[np.dtype[Any], float] | None = None,
    dtype: np.dtype[Any] | None = None,
) -> Matrix:
    """Return a matrix, or a vector as a matrix of one row, in float32 or float64; its values are checked.

    `largest_square` refuses rows with a larger ``|x|^2`` in the precision in which they are used, `dtype` or their own.
    """
    rows = as_matrix(_as_two_dimensional(X, name), name)
    square = read_all(rows, name).largest_square
    rows = as_float(rows, name)
    if largest_square is not None and square > (most := largest_square[dtype := dtype or rows.dtype]):
        raise ValueError(f"{name} has a row with |x|^2 = {square:.1e}, expected at most {most:.0e} in {dtype}")
    return rows


def _as_two_dimensional(X: MatrixLike, name: str) -> Any:
    """Return a vector as a matrix of one row, and anything else as it is."""
    X = X if sparse.issparse(X) else as_array(X, name)
    return check_structure(X, name).reshape(1, -1) if X.ndim == 1 else X


def as_dense(X: Matrix) -> NDArray[Any]:
    """Return a dense or sparse matrix as an array."""
    return np.asarray(X.toarray() if sparse.issparse(X) else X)


def feature_names(X: Any) -> list[str] | None:
    """Return the names of the columns of a data frame, if all are text; None otherwise."""
    columns = getattr(X, "columns", None)
    if columns is None or not all(isinstance(column, str) for column in columns):
        return None
    return list(columns)


def unit_rows(X: Matrix) -> Matrix:
    """Return float32 or float64 rows divided by their norms; rows of zeros stay zero.

    Equal to scikit-learn's `normalize` to the bit, without its checks, which cost more than a single row.
    """
    if sparse.issparse(X):
        scaled = X.copy()
        inplace_csr_row_normalize_l2(scaled)
        return scaled
    norms = row_norms(X)
    norms[norms < 10 * np.finfo(norms.dtype).eps] = 1.0
    return X / norms[:, np.newaxis]


def nonzero_norms(X: NDArray[Any]) -> NDArray[Any]:
    """Return the norm of every row as a column, 1 for rows of zeros: for code that needs the norms themselves."""
    norms: NDArray[Any] = np.linalg.norm(X, axis=1, keepdims=True)
    norms[norms == 0] = 1
    return norms


def as_single_row(x: Any, name: str) -> Matrix:
    """Return one object, a vector or a matrix with one row, as a matrix with one row."""
    x = as_matrix(_as_two_dimensional(x, name), name)
    if x.shape[0] != 1:
        raise ValueError(f"{name} must be a vector or a matrix with one row, got shape {x.shape}")
    return x


def _is_read_in_place(X: Matrix) -> bool:
    if X.dtype not in _READ_IN_PLACE:
        return False
    if isinstance(X, np.ndarray):
        return bool(X.flags.aligned)
    if X.indices.dtype != X.indptr.dtype or not _has_readable_indices(X):
        return False
    data, indices, indptr = X.data.flags, X.indices.flags, X.indptr.flags
    contiguous = data.c_contiguous and indices.c_contiguous and indptr.c_contiguous
    return bool(contiguous and data.aligned and indices.aligned and indptr.aligned)


def _used_rows(X: Matrix, indices: list[RowIndices]) -> tuple[Matrix, list[RowIndices], RowIndices]:
    used, positions = np.unique(np.concatenate(indices), return_inverse=True)
    ends = np.cumsum([len(column) for column in indices])[:-1]
    return X[used], [np.ascontiguousarray(part) for part in np.split(positions, ends)], used


def _view(X: Matrix) -> RowView:
    return RowView.of_dense(X) if isinstance(X, np.ndarray) else RowView.of_csr(X.shape, X.data, X.indices, X.indptr)


def _check(X: Matrix, indices: list[RowIndices]) -> tuple[RowView, tuple[int, int, float]]:
    view = _view(X)
    # Marking the rows seen pays off for many indices, but would dominate a single triplet of a large matrix.
    many = 4 * sum(map(len, indices)) > X.shape[0]
    seen = np.zeros(X.shape[0], dtype=np.uint8) if many else _NO_FLAGS
    repairable, largest = (0, -1), 0.0
    for column in indices:
        code, row, largest_here = check_rows(view, column, seen)
        largest = max(largest, largest_here)
        if code == NOT_CANONICAL:
            repairable = code, row
        elif code:
            return view, (code, row, largest)
    return view, (*repairable, largest)


def _canonical(X: Matrix) -> Matrix:
    """Return X with sorted rows and summed duplicates; the order of the sums is that of ``toarray``."""
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    order = np.lexsort((X.indices, rows))
    rows, columns, values = rows[order], X.indices[order], X.data[order]
    is_first = np.ones(len(order), dtype=bool)
    is_first[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
    summed = np.zeros(int(is_first.sum()), dtype=X.dtype)
    np.add.at(summed, np.cumsum(is_first) - 1, values)
    indptr = np.searchsorted(rows[is_first], np.arange(X.shape[0] + 1)).astype(X.indices.dtype)
    return sparse.csr_matrix((summed, columns[is_first], indptr), shape=X.shape)

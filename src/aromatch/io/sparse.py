"""Sparse matrices as arrays of a model file, and back."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._utils.rows import check_structure


def as_stored(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array in a type of model files: float32 unchanged, others as float64."""
    return array if array.dtype == np.float32 else array.astype(np.float64)


def sparse_parts(name: str, matrix: Any) -> dict[str, NDArray[Any]]:
    """Return the arrays of a sparse matrix, for `sparse_matrix`."""
    rows = sparse.csr_array(check_structure(matrix, name))
    parts = {part: np.array(getattr(rows, part), dtype=np.int64) for part in ("indices", "indptr", "shape")}
    return {f"{name}.data": as_stored(rows.data)} | {f"{name}.{part}": array for part, array in parts.items()}


def sparse_matrix(
    name: str, data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: NDArray[Any]
) -> Any:
    """Build a sparse matrix from the arrays of a file, and check it."""
    size = tuple(shape.tolist())
    if len(size) != 2 or any(array.ndim != 1 for array in (data, indices, indptr)) or len(indptr) != size[0] + 1:
        raise ValueError(f"its {name} is not a sparse matrix")
    matrix = sparse.csr_array(size, dtype=data.dtype)
    matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
    check_structure(matrix, name)
    return matrix

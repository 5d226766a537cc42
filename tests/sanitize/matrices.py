"""Random rows that are valid for the kernels, in every container and at the ends of what is allowed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from aromatch.kernels.rows import RowView

Generator = np.random.Generator
Array = NDArray[Any]

# One register of every loop and one more or less, and widths that are no multiple of anything.
WIDTHS = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 19, 31, 32, 33, 63, 65, 100, 131)
SHARES = (0.0, 0.02, 0.2, 0.25, 0.26, 0.5, 1.0)
CONTAINERS = ("rows", "columns", "strided", "CSR int32", "CSR int64")


class CSR(NamedTuple):
    """The three arrays of a CSR matrix and its shape."""

    data: Array
    indices: Array
    indptr: Array
    shape: tuple[int, int]

    def toarray(self) -> Array:
        """Return the rows as an array."""
        out = np.zeros(self.shape, dtype=self.data.dtype)
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))
        out[rows, self.indices] = self.data
        return out


def random_csr(rng: Generator, n_rows: int, width: int, scale: float = 1.0, most: int = 1000) -> CSR:
    """Return rows of which some are empty, some sparse and some full, with stored zeros among their values."""
    share = rng.choice(SHARES)
    counts = np.minimum(np.ceil(rng.choice([0.0, share, share, 1.0], size=n_rows) * width), most).astype(np.int64)
    columns = [sorted_columns(rng, width, int(count)) for count in counts]
    counts = np.array([len(each) for each in columns], dtype=np.int64)
    data = scale * rng.normal(size=int(counts.sum()))
    data[rng.random(len(data)) < 0.05] = 0
    data[rng.random(len(data)) < 0.02] = 1e-60  # rounds to zero in float32
    dtype = rng.choice([np.float32, np.float64])
    indptr = np.concatenate([[0], np.cumsum(counts)])
    indices = np.concatenate([*columns, np.empty(0, dtype=np.int64)])
    with np.errstate(over="ignore", under="ignore"):
        data = data.astype(dtype)
    data[~np.isfinite(data)] = 1
    return CSR(data, indices, indptr, (n_rows, width))


def sorted_columns(rng: Generator, width: int, count: int) -> Array:
    """Return at most `count` distinct columns, the last one of a wide matrix among them."""
    if width <= 4096:
        return np.sort(rng.permutation(width)[:count])
    columns = rng.integers(width, size=count)
    columns[-1:] = width - 1
    return np.unique(columns)


def view_of(rng: Generator, rows: CSR, container: str) -> RowView:
    """Return a view of rows in a container; the memory of each array ends where the array ends."""
    if container.startswith("CSR"):
        index = np.int64 if container.endswith("int64") else np.int32
        before = int(rng.choice([0, 0, 3]))  # entries of no row
        data = np.concatenate([np.full(before, np.nan, dtype=rows.data.dtype), rows.data])
        indices = np.concatenate([np.full(before, -1), rows.indices])
        arrays = data, indices.astype(index), (rows.indptr + before).astype(index)
        for array in arrays:
            array.flags.writeable = bool(rng.integers(2))
        return RowView.of_csr(rows.shape, *arrays)
    return RowView.of_dense(laid_out(rng, rows.toarray(), container))


def laid_out(rng: Generator, X: Array, container: str) -> Array:
    """Return an array in C order, in Fortran order, or with gaps and any direction, which fill their memory exactly."""
    if container == "rows":
        return np.ascontiguousarray(X)
    if container == "columns":
        return np.asfortranarray(X)
    steps = rng.integers(1, 4, size=2)
    strides = [0, 0]
    first, second = rng.permutation(2)
    strides[first] = int(steps[0])
    strides[second] = int(steps[1]) * ((X.shape[first] - 1) * strides[first] + 1)
    last = [(length - 1) * stride for length, stride in zip(X.shape, strides, strict=True)]
    memory = np.full(sum(last) + 1, np.nan, dtype=X.dtype)
    is_reversed = rng.integers(2, size=2)
    start = sum(end for end, backwards in zip(last, is_reversed, strict=True) if backwards)
    signed = np.where(is_reversed, -1, 1) * strides * X.itemsize
    out = as_strided(memory[start:], X.shape, signed.tolist())
    out[:] = X
    return out

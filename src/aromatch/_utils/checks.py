"""Checks of arguments; every message names the argument, its value and the valid values."""

import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from numbers import Integral, Real
from operator import length_hint
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ..exceptions import InsufficientMemoryError

_PRECISIONS = {
    name: precision
    for precision in (np.dtype(np.float64), np.dtype(np.float32))
    for name in (str(precision), precision.type, precision)
}

_LONG_LIST = 2**16
_BYTES_OF_AN_ITEM = 40  # an integer and the reference to it

# Limits of a container, where there is one.
_CGROUP = Path("/sys/fs/cgroup")


def as_array(values: Any, name: str) -> NDArray[Any]:
    """Return `values` as an array; raise `ValueError` if NumPy cannot convert them."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError(f"{name} has masked values, expected no missing values")
    try:
        return np.asarray(values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} cannot be converted to an array: {error}") from None
    except MemoryError:
        raise InsufficientMemoryError(f"{name} does not fit in memory as an array") from None


def n_dimensions(values: Any, name: str) -> int:
    """Return the number of dimensions of an array, or of what NumPy can convert."""
    n = getattr(values, "ndim", None)
    return n if isinstance(n, int) else as_array(values, name).ndim


def check_not_sparse(values: Any, name: str) -> Any:
    """Return `values` after checking that it is no sparse matrix, of which SciPy iterates over some formats only."""
    if sparse.issparse(values):
        raise TypeError(f"{name} must be a sequence, got a sparse matrix of shape {values.shape}")
    return values


def as_list(values: Iterable[Any], name: str) -> list[Any]:
    """Return the items of an iterable; raise a ValueError if it has more than fit in memory, as a range may."""
    values = check_not_sparse(values, name)
    try:
        n = length_hint(values)
    except OverflowError:
        raise InsufficientMemoryError(f"{name} has more items than fit in memory: {values!r}") from None
    if n > _LONG_LIST:  # the check takes longer than a short list
        check_fits_in_memory(n * _BYTES_OF_AN_ITEM, f"A list of the {n:,} items of {name}")
    return list(values)


def check_number(
    value: Any,
    name: str,
    *,
    above: float | None = None,
    at_least: float | None = None,
    allow_inf: bool = False,
) -> float:
    """Return `value` as a float after checking its type and its bounds."""
    # The comparison of exact types is ten times faster than isinstance, and `learn_one` runs it for every triplet.
    number = value if type(value) is float else _as_float(value, name)
    if math.isnan(number) or (math.isinf(number) and not allow_inf):
        raise ValueError(f"{name} must be a finite number, got {value!r}")
    if above is not None and not number > above:
        raise ValueError(f"{name} must be greater than {above:g}, got {value!r}")
    if at_least is not None and not number >= at_least:
        raise ValueError(f"{name} must be at least {at_least:g}, got {value!r}")
    return number


def _as_float(value: Any, name: str) -> float:
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {value!r} ({type(value).__name__})")
    try:
        return float(value)
    except OverflowError:  # of an int or a Fraction
        raise ValueError(f"{name} must be within the range of floats, got {value!r}") from None


def check_integer(value: Any, name: str, *, at_least: int) -> int:
    """Return `value` as an int after checking that it is an integer of at least `at_least`."""
    if type(value) is not int and (isinstance(value, bool | np.bool_) or not isinstance(value, Integral)):
        raise TypeError(f"{name} must be an integer, got {value!r} ({type(value).__name__})")
    if value < at_least:
        raise ValueError(f"{name} must be at least {at_least}, got {value!r}")
    return int(value)


def check_choice(value: Any, name: str, choices: Sequence[str]) -> str:
    """Return `value` after checking that it is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return value


def check_flag(value: Any, name: str) -> bool:
    """Return `value` as a bool after checking its type."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r} ({type(value).__name__})")
    return bool(value)


def check_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the parameter `dtype` as a NumPy dtype."""
    try:
        return _PRECISIONS[dtype]
    except (KeyError, TypeError):
        raise ValueError(f"dtype must be 'float64' or 'float32', got {dtype!r}") from None


def check_labels(y: ArrayLike, name: str, n_rows: int | None = None) -> NDArray[Any]:
    """Return labels as a 1-D array without missing values; labels may have any type that sorts."""
    labels = as_array(y, name)
    if labels.dtype.kind in "US" and not isinstance(y, np.ndarray):
        # NumPy converts a missing value among strings to the string "nan".
        labels = np.asarray(y, dtype=object)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels.ravel()
    if labels.ndim != 1:
        raise ValueError(f"{name} must be a 1-D sequence of labels, got shape {labels.shape}")
    if n_rows is not None and len(labels) != n_rows:
        raise ValueError(f"{name} must have one label for each of the {n_rows} rows, got {len(labels)} labels")
    if labels.dtype.kind == "c":
        raise ValueError(f"{name} must be labels that sort, got complex numbers")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError(f"{name} contains NaN or infinity, expected no missing labels")
    if labels.dtype.kind in "mM" and np.isnat(labels).any():
        raise ValueError(f"{name} contains NaT, expected no missing labels")
    if labels.dtype.kind == "O" and any(map(_is_missing, labels)):
        raise ValueError(f"{name} contains None or NaN, expected no missing labels")
    return labels


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except TypeError:  # pandas.NA has no truth value
        return True


def class_indices(
    labels: NDArray[Any], object_labels: NDArray[Any] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the class index of each label, with the same indices for queries and objects."""
    everything = labels
    if object_labels is not None:
        # NumPy would convert 1 and "1" to the same class, and round large integers next to floats.
        if labels.dtype.kind != object_labels.dtype.kind:
            labels, object_labels = labels.astype(object), object_labels.astype(object)
        everything = np.concatenate([labels, object_labels])
    try:
        indices = np.unique(everything, return_inverse=True)[1].astype(np.int64, copy=False)
    except TypeError as error:
        names = "y" if object_labels is None else "y and y_objects"
        raise TypeError(f"{names} must be labels that sort with each other: {error}") from error
    if object_labels is None:
        return indices, indices
    return indices[: len(labels)], indices[len(labels) :]


def check_row_indices(indices: ArrayLike, name: str, width: int) -> NDArray[np.int64]:
    """Return an (N, width) array of row indices as C-contiguous int64, uncopied if it is one."""
    array = as_array(indices, name)
    if array.shape == (0,):
        return np.empty((0, width), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != width:
        raise ValueError(f"{name} must have the shape (N, {width}), got {array.shape}")
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{name} must be row indices (integers), got an array of {array.dtype}")
    if array.dtype.kind == "u" and array.dtype.itemsize == 8 and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} contains row index {array.max()}, expected less than 2**63")
    return np.ascontiguousarray(array, dtype=np.int64)


def check_range(column: NDArray[np.int64], name: str, n_rows: int, matrix: str) -> None:
    """Raise `ValueError` with the first row index that is out of range."""
    if len(column) and (column.min() < 0 or column.max() >= n_rows):
        at = int(np.flatnonzero((column < 0) | (column >= n_rows))[0])
        raise ValueError(
            f"{name} {at} is row {column[at]} of {matrix}, which is out of range for {n_rows} rows (0 to {n_rows - 1})"
        )


def check_weights(sample_weight: ArrayLike | None, n: int) -> NDArray[np.float64] | None:
    """Return n finite, non-negative weights as float64, or None."""
    if sample_weight is None:
        return None
    weights = as_array(sample_weight, "sample_weight")
    if weights.dtype.kind not in "fiub":
        raise TypeError(f"sample_weight must be numbers, got an array of {weights.dtype}")
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have the shape ({n},), got {weights.shape}")
    weights = np.ascontiguousarray(weights, dtype=np.float64)
    if not np.isfinite(weights).all():
        raise ValueError("sample_weight contains NaN or infinity, expected finite weights")
    if (weights < 0).any():
        raise ValueError(f"sample_weight must be at least 0, got {weights.min()}")
    return weights


def random_generator(random_state: Any) -> np.random.Generator:
    """Return a NumPy generator for a `random_state`: None, an int, a `RandomState` or a `Generator`."""
    if random_state is None:
        random_state = np.random.mtrand._rand
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**32, size=4, dtype=np.uint32))
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(check_integer(random_state, "random_state", at_least=0))


_max_memory: int | None = None


def set_max_memory(n_bytes: int | None) -> None:
    """Set the number of bytes that this process may use for files and models; None removes the limit."""
    global _max_memory
    _max_memory = n_bytes


def max_memory() -> int | None:
    """Return the limit of `set_max_memory`."""
    return _max_memory


def machine_memory() -> int | None:
    """Return the number of bytes of memory that the system grants, None if it does not report it."""
    limits = []
    with suppress(AttributeError, OSError, ValueError):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with suppress(OSError, ValueError):  # of a container
        limits.append(int((_CGROUP / "memory.max").read_text()))
    return min(limits, default=None)


def available_memory() -> int | None:
    """Return the number of bytes that this process can allocate, None if the system does not report it."""
    limits = [] if _max_memory is None else [_max_memory]
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                limits.append(int(line.split()[1]) * 1024)
        allowed = (_CGROUP / "memory.max").read_text().strip()
        if allowed != "max":
            # The file cache counts as used there, but is reclaimed on demand.
            cached = re.search(r"^inactive_file (\d+)$", (_CGROUP / "memory.stat").read_text(), re.MULTILINE)
            used = int((_CGROUP / "memory.current").read_text())
            limits.append(int(allowed) - used + (int(cached.group(1)) if cached else 0))
    except (OSError, ValueError):
        pass
    if not limits:
        return machine_memory()
    return max(0, min(limits))


def check_fits_in_memory(n_bytes: int, what: str) -> None:
    """Raise `InsufficientMemoryError` if an allocation of `n_bytes` exceeds the available memory."""
    available = available_memory()
    if available is not None and n_bytes > available:
        size = f"{n_bytes:,} bytes ({n_bytes / 2**30:.1f} GiB)" if n_bytes < 2**64 else "more than 2**64 bytes"
        raise InsufficientMemoryError(
            f"{what} would take {size}, but {available:,} bytes ({available / 2**30:.1f} GiB) are available"
        )


def check_shapes_fit(shapes: Mapping[str, tuple[int, ...]], dtype: np.dtype[Any], what: str) -> None:
    """Raise an InsufficientMemoryError if arrays of these shapes do not fit in memory."""
    n = sum(int(np.prod(shape, dtype=object)) for shape in shapes.values())
    check_fits_in_memory(n * dtype.itemsize, what)

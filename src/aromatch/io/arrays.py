"""Read matrices from npy, npz and svmlight files.

No code in them is executed. Sizes are checked before anything of that size is allocated, and the structure of a sparse
matrix before SciPy reads it, because its compiled routines trust both.
"""

from __future__ import annotations

import io
import math
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from .._utils.chunks import chunks
from .._utils.rows import Matrix, check_structure
from ..exceptions import InsufficientMemoryError
from .limits import BYTES_OF_ENTRY, BYTES_OF_FEATURE, BYTES_OF_ROW, check_memory

_MATRICES = ("X", "vectors")
_IDS = ("ids", "id")
_LABELS = ("labels", "label", "y", "category", "class")
# The arrays of a sparse matrix in a file of SciPy, by format.
_COMPRESSED = ("data", "indices", "indptr")
_SPARSE = {
    "csr": _COMPRESSED,
    "csc": _COMPRESSED,
    "bsr": _COMPRESSED,
    "coo": ("data", "row", "col"),
    "dia": ("data", "offsets"),
}
_HEADERS = {
    (1, 0): npy_format.read_array_header_1_0,
    (2, 0): npy_format.read_array_header_2_0,
    (3, 0): npy_format.read_array_header_2_0,  # the same, in UTF-8
}
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# The limit of NumPy, which it checks after it has read the header.
_MAX_HEADER = 10_000
# How often the bytes of a text in an array are in memory: in the array, and as str, which may be wider than bytes.
_COPIES_OF_TEXT = {"U": 2, "S": 4}
# A line of svmlight is split into a bytes object for each entry.
_BYTES_OF_PARSED_ENTRY = 96
_BLOCK = 2**20


@contextmanager
def _refusing(path: Path, kind: str) -> Iterator[None]:
    """Raise every error of a parser as a ValueError that names the file: a broken file can raise anything."""
    try:
        yield
    except InsufficientMemoryError:
        raise
    except Exception as error:
        message = str(error).removeprefix(f"{path}: ") or type(error).__name__
        raise ValueError(f"{path} is not a valid {kind} file, or is truncated: {message:.300}") from None


def n_bytes_converted(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """Return the bytes of the float32 or float64 array to which a matrix is converted; 0 if it is not."""
    if len(shape) != 2 or dtype in (np.float32, np.float64):
        return 0
    return math.prod(shape) * (4 if dtype.kind == "f" and dtype.itemsize <= 4 else 8)


class _Header(NamedTuple):
    """The header of an array in a file."""

    shape: tuple[int, ...]
    is_fortran: bool
    dtype: np.dtype[Any]

    @property
    def n_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def n_bytes_used(self) -> int:
        """Bytes in memory, with those of the array that it is converted to."""
        return self.n_bytes * _COPIES_OF_TEXT.get(self.dtype.kind, 1) + n_bytes_converted(self.shape, self.dtype)


def _read_header(file: BinaryIO, size: int, name: str) -> _Header:
    """Read the header of an array, and check it against the number of bytes there are."""
    version = npy_format.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"{name} has the version {version} of the format, expected 1 to 3")
    field = file.read(2 if version == (1, 0) else 4)
    length, limit = int.from_bytes(field, "little"), min(_MAX_HEADER, size)
    if length > limit:
        raise ValueError(f"{name} declares a header of {length:,} bytes, expected at most {limit:,}")
    header = _Header(*_HEADERS[version](io.BytesIO(field + file.read(length))))
    if header.dtype.hasobject or header.dtype.kind == "V":
        what = "Python objects" if header.dtype.hasobject else f"records ({header.dtype})"
        raise ValueError(f"{name} contains {what}, expected numbers or strings")
    if min(header.shape, default=0) < 0:
        raise ValueError(f"{name} has the shape {header.shape}, expected lengths of at least 0")
    # An array without bytes could have any length.
    if header.n_bytes > size or (header.n_bytes == 0 and max(header.shape, default=0) > size):
        raise ValueError(f"{name} declares the shape {header.shape}, larger than the file")
    return header


def read_npy(path: Path) -> NDArray[Any]:
    """Memory-map an array."""
    with _refusing(path, ".npy"), path.open("rb") as file:
        size = path.stat().st_size
        header = _read_header(file, size, "the array")
        if header.n_bytes > size - file.tell():
            raise ValueError(f"it declares the shape {header.shape}, larger than the file")
        if header.n_bytes == 0:  # nothing to map
            return np.empty(header.shape, header.dtype)
        check_memory(path, header.n_bytes * (_COPIES_OF_TEXT.get(header.dtype.kind, 1) - 1))  # the rest is mapped
        order: Literal["F", "C"] = "F" if header.is_fortran else "C"
        return _with_valid_text(np.memmap(file, header.dtype, "r", file.tell(), header.shape, order))


def _with_valid_text(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array; raise a ValueError for text that is not Unicode, of which NumPy would make broken strings."""
    if array.dtype.kind == "U" and array.nbytes:
        flat = np.ascontiguousarray(array).reshape(-1)
        points = flat.view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
        for part in (points[one] for one in chunks(len(points), _BLOCK)):
            if part.max() > sys.maxunicode or ((part >= 0xD800) & (part < 0xE000)).any():
                raise ValueError("a text in it is not valid Unicode")
    return array


def read_npz(path: Path) -> tuple[Matrix, Any, Any]:
    """Read a matrix and optional ids and labels."""
    with _refusing(path, ".npz"), zipfile.ZipFile(path) as file:
        members = {info.filename.removesuffix(".npy"): info for info in file.infolist()}
        headers = {name: _member_header(file, info) for name, info in members.items()}

        def read(name: str) -> NDArray[Any]:
            with file.open(members[name]) as member:
                return _with_valid_text(np.asarray(npy_format.read_array(member, allow_pickle=False)))

        if "format" in headers and headers["format"].shape == ():
            check_memory(path, headers["format"].n_bytes_used)
            return _sparse_matrix(path, headers, read), None, None
        matrices = [name for name, header in headers.items() if len(header.shape) == 2]
        wanted = [name for name in _MATRICES if name in matrices] or matrices
        if len(wanted) != 1 and not (wanted and wanted[0] in _MATRICES):
            raise ValueError(f"it must have a matrix called X or vectors, got {', '.join(headers) or 'nothing':.200}")
        ids, labels = (next((name for name in names if name in headers), None) for names in (_IDS, _LABELS))
        used = [name for name in (wanted[0], ids, labels) if name is not None]
        n_rows = headers[wanted[0]].shape[0]
        check_memory(path, sum(headers[name].n_bytes_used for name in used) + n_rows * BYTES_OF_ROW)
        return read(wanted[0]), None if ids is None else read(ids), None if labels is None else read(labels)


def _member_header(file: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Header:
    if info.compress_type not in _COMPRESSIONS:  # zipfile expands as much of these as is in 4 KiB, which may be GiB
        raise ValueError(
            f"{info.filename} is compressed by the method {info.compress_type} of ZIP, expected 0 (stored) or 8 "
            "(deflated), which NumPy writes"
        )
    with file.open(info) as member:
        return _read_header(member, info.file_size, info.filename)  # type: ignore[arg-type]


def _sparse_matrix(path: Path, headers: dict[str, _Header], read: Any) -> Matrix:
    """Read a sparse matrix that SciPy saved."""
    kind = read("format").item()
    kind = kind.decode() if isinstance(kind, bytes) else kind
    if kind not in _SPARSE:
        raise ValueError(f"expected a sparse matrix of the format {', '.join(_SPARSE)}, got {kind!r:.100}")
    names = _SPARSE[kind]
    if kind == "coo" and "coords" in headers:  # arrays, of SciPy 1.13 and later
        names = ("data", "coords")
    missing = [name for name in ("shape", *names) if name not in headers]
    if missing:
        raise ValueError(f"it has no {missing[0]!r}, expected {', '.join(('shape', *names))} for the format {kind}")
    if headers["shape"].shape != (2,):
        raise ValueError(f"expected a shape of two lengths, got an array of the shape {headers['shape'].shape}")
    shape = tuple(int(length) for length in read("shape").tolist())
    if len(shape) != 2 or min(shape) < 0:
        raise ValueError(f"expected a shape of two lengths, got {shape}")
    n_entries = math.prod(headers["data"].shape)
    n_stored = sum(headers[name].n_bytes for name in names)
    check_memory(path, n_stored + n_bytes_of_sparse(shape, n_entries), what=_what(shape))
    arrays = [read(name) for name in names]
    parts = (arrays[0], tuple(arrays[1:])) if kind == "coo" and len(arrays) == 3 else tuple(arrays)
    matrix = getattr(sparse, f"{kind}_array")(parts, shape=shape)
    return sparse.csr_array(check_structure(matrix, "its matrix"))


def read_svmlight(path: Path, width: int | None) -> tuple[Matrix, None, NDArray[Any]]:
    """Read sparse rows and labels."""
    check_memory(path, _n_bytes_of_svmlight(path))
    try:
        rows, labels = load_svmlight_file(str(path), n_features=width)
    except (ValueError, OverflowError) as error:
        message = "a number is too large" if isinstance(error, OverflowError) else str(error)
        raise ValueError(f"{_first_bad_line(path)}: {message:.300}") from None
    check_memory(path, n_bytes_of_sparse(rows.shape, rows.nnz), what=_what(rows.shape))
    return sparse.csr_array(rows), None, labels


def n_bytes_of_sparse(shape: tuple[int, ...], n_entries: int) -> int:
    """Return the memory that a sparse matrix takes while it is read and while a model is trained on it."""
    return n_entries * BYTES_OF_ENTRY + shape[0] * BYTES_OF_ROW + shape[1] * BYTES_OF_FEATURE


def _what(shape: tuple[int, ...]) -> str:
    return f"with {shape[0]:,} rows of {shape[1]:,} features"


def _n_bytes_of_svmlight(path: Path) -> int:
    """Return an upper bound of the memory of parsing a file: it has no more entries than colons."""
    n_rows, n_entries = 1, 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            n_rows, n_entries = n_rows + block.count(b"\n"), n_entries + block.count(b":")
    return n_entries * _BYTES_OF_PARSED_ENTRY + n_rows * BYTES_OF_ROW


def _first_bad_line(path: Path) -> str:
    """Return the line that scikit-learn cannot read, which its error does not name."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                load_svmlight_file(io.BytesIO(line))
            except (ValueError, OverflowError):
                return f"{path}, line {number}"
    return str(path)

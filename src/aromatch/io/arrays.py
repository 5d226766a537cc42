"""Read matrices from npy, npz and svmlight files. No code in them is executed, and declared sizes are checked."""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from .._utils.checks import check_fits_in_memory
from .._utils.rows import Matrix, check_structure
from ..exceptions import InsufficientMemoryError

_MATRICES = ("X", "vectors")
_IDS = ("ids", "id")
_LABELS = ("labels", "label", "y", "category", "class")
_OF_SPARSE = {"format", "data", "shape", "indices", "indptr"}


def read_npy(path: Path) -> NDArray[Any]:
    """Memory-map a matrix."""
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)  # type: ignore[no-any-return]
    except (ValueError, EOFError, OSError) as error:
        raise ValueError(f"{path} is not a valid .npy file: {error}") from None


def read_npz(path: Path) -> tuple[Matrix, Any, Any]:
    """Read a matrix and optional ids and labels."""
    try:
        names = _check_members(path)
        if names >= _OF_SPARSE:
            matrix = sparse.csr_array(sparse.load_npz(path))
            check_structure(matrix, str(path))
            return matrix, None, None
        with np.load(path, allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
    except InsufficientMemoryError:
        raise
    except (ValueError, zipfile.BadZipFile, zlib.error, EOFError, KeyError, OSError, NotImplementedError) as error:
        message = str(error).removeprefix(f"{path}: ")
        raise ValueError(f"{path} is not a valid .npz file, or is truncated: {message}") from None
    matrices = [name for name, array in arrays.items() if array.ndim == 2]
    wanted = [name for name in _MATRICES if name in matrices] or matrices
    if len(wanted) != 1 and not (wanted and wanted[0] in _MATRICES):
        raise ValueError(f"{path} must have a matrix called X or vectors, got {', '.join(arrays) or 'nothing'}")
    ids, labels = (next((arrays[name] for name in choices if name in arrays), None) for choices in (_IDS, _LABELS))
    return arrays[wanted[0]], ids, labels


def _check_members(path: Path) -> set[str]:
    """Return the names of the arrays after checking their declared sizes."""
    with zipfile.ZipFile(path) as file:
        check_fits_in_memory(sum(info.file_size for info in file.infolist()), f"reading {path}")
        for info in file.infolist():
            with file.open(info) as member:
                version = npy_format.read_magic(member)
                read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
                shape, _, dtype = read(member)
            if dtype.hasobject:
                raise ValueError(f"{path}: {info.filename} contains Python objects, expected numbers or strings")
            if math.prod(shape) * dtype.itemsize > info.file_size:
                raise ValueError(f"{path}: {info.filename} declares the shape {shape}, larger than the file")
        return {info.filename.removesuffix(".npy") for info in file.infolist()}


def read_svmlight(path: Path, width: int | None) -> tuple[Matrix, None, NDArray[Any]]:
    """Read sparse rows and labels."""
    try:
        rows, labels = load_svmlight_file(str(path), n_features=width)
    except (ValueError, UnicodeDecodeError) as error:
        raise ValueError(f"{_first_bad_line(path)}: {error}") from None
    return sparse.csr_array(rows), None, labels


def _first_bad_line(path: Path) -> str:
    """Return the line that scikit-learn cannot read, which its error does not name."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                load_svmlight_file(io.BytesIO(line))
            except ValueError:
                return f"{path}, line {number}"
    return str(path)

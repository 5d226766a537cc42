"""The model file container: a JSON header and named arrays, restored bit-identically.

A model file is a safetensors file, which other tools can read, and contains no code: loading executes nothing. Its
metadata has one key, ``"aromatch"``, whose value is one line of JSON::

    {"format":1,"sha256":"<64 hex digits>","header":{...}}

The digest is the SHA-256 of the whole file with those 64 digits replaced by zeros, so it covers every byte: header,
names, shapes, padding and numbers. It detects accidents (a truncated download, a flipped bit, a tool that rewrote the
file). It is not a signature: the digest of a forged file can be valid, so the content is validated as well. Later
formats keep the position and the rule of the digest.

Arrays are little-endian and in C order, of the types float32, float64, int32 and int64. The header is interpreted by
the callers.
"""

import contextlib
import hashlib
import json
import math
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._utils.checks import check_fits_in_memory
from .._utils.chunks import chunks
from ..exceptions import ModelFileError
from .durable import replacing

_FORMAT = 1
_KEY = "aromatch"
_METADATA = "__metadata__"
_NO_DIGITS = "0" * 64
# Inside the file the JSON text is a JSON string itself, hence the escaped quotes.
_DIGITS = re.compile(rb'"aromatch":"\{\\"format\\":[0-9]{1,9},\\"sha256\\":\\"([0-9a-f]{64})\\"')
# In the order in which arrays are stored.
_DTYPES: dict[str, np.dtype[Any]] = {
    "I64": np.dtype("<i8"),
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "I32": np.dtype("<i4"),
}
_CODES = {dtype: code for code, dtype in _DTYPES.items()}

_LENGTH_BYTES = 8
_BLOCK = 2**20
# Parsed JSON can take 25 times the memory of its text: this limits a hostile header to about 100 MB.
_MAX_HEADER = 4 * 2**20
_MAX_DEPTH = 64
_MAX_DIGITS = 1000
_INT_END = 10**_MAX_DIGITS
# An empty array takes no space in the file, whatever its other dimensions are: this limits their product.
_FREE_CELLS = 2**16


class _Entry(NamedTuple):
    """An array in the header of a file."""

    begin: int
    end: int
    label: str
    dtype: np.dtype[Any]
    shape: list[int]


def write_model(path: str | os.PathLike[str], header: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Save a header and named arrays as one model file.

    The file appears complete or not at all, and it is on disk when this returns (`durable`). A save that fails, is
    interrupted or killed leaves an existing file unchanged. An existing file keeps its permissions; if `path` is a
    symbolic link, its target is replaced.

    Parameters
    ----------
    path : str or os.PathLike
        The file to write. The directory must exist.
    header : dict
        JSON types: None, bools, ints, finite floats, strings, lists, and dicts with string keys, nested up to 64 deep.
        `read_model` returns an equal header, with NumPy's float64 and str_ as Python's float and str.
    arrays : mapping of str to numpy.ndarray
        Arrays of float32, float64, int32 or int64, of any shape and memory order. Only arrays that are not C-contiguous
        and little-endian are copied.

    Raises
    ------
    TypeError, ValueError
        If a part of the arguments cannot be stored without loss; the message names it.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from aromatch.io.container import read_model, write_model
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory) / "toy.safetensors"
    ...     write_model(path, {"learner": "toy", "r": 0.1}, {"W": np.eye(2)})
    ...     read_model(path)
    ({'learner': 'toy', 'r': 0.1}, {'W': array([[1., 0.], [0., 1.]])})
    """
    name = _check_path(path)
    content = {"format": _FORMAT, "sha256": _NO_DIGITS, "header": _check_header(header)}
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    tensors = _check_arrays(arrays)
    target = os.path.realpath(name)
    if os.path.lexists(target) and not os.path.isfile(target):
        raise ModelFileError(f"cannot save a model to {name}: it is not a regular file")
    head = _head(tensors, {_KEY: text})
    if len(head) - _LENGTH_BYTES > _MAX_HEADER:
        raise ModelFileError(_too_long(name, len(head) - _LENGTH_BYTES))
    size = len(head) + sum(array.nbytes for array in tensors.values())
    for label, array in tensors.items():
        _check_shape(array.shape, size, f"arrays[{label!r}]")
    digits = _DIGITS.search(head)
    assert digits is not None
    with replacing(name) as file:
        digest = hashlib.sha256(head)
        file.write(head)
        for array in tensors.values():
            for block in _blocks(array):
                digest.update(block)
                file.write(block)
        file.seek(digits.start(1))
        file.write(digest.hexdigest().encode())


def write_tensors(file: BinaryIO, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write named arrays in the safetensors format, for other tools; these files are not model files."""
    tensors = _check_arrays(arrays)
    file.write(_head(tensors, None))
    for array in tensors.values():
        for block in _blocks(array):
            file.write(block)


def read_model(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Load the header and the arrays of a model file.

    Nothing in the file is executed, and the arrays take no more memory than the file. A file that was truncated or
    changed anywhere raises an error. While other processes save to the same path, this returns the content of one save.

    Parameters
    ----------
    path : str or os.PathLike
        A file written by `write_model`.

    Returns
    -------
    header : dict
        Equal to the header that was saved.
    arrays : dict of str to numpy.ndarray
        The saved arrays, bit-identical: C-contiguous and writable copies.

    Raises
    ------
    ModelFileError
        If the file is not a model file or was changed since it was saved.
    FileNotFoundError
        If the file does not exist.
    MemoryError
        If the arrays exceed the free memory; nothing is allocated then.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from aromatch.exceptions import ModelFileError
    >>> from aromatch.io.container import read_model
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory) / "list.txt"
    ...     _ = path.write_bytes(b"tea    " + bytes(9))
    ...     try:
    ...         read_model(path)
    ...     except ModelFileError as error:
    ...         print(str(error).replace(str(path), "list.txt"))
    list.txt is not an aromatch model file, or it is truncated: ...
    """
    name = _check_path(path)
    try:
        if not stat.S_ISREG(os.stat(name).st_mode):  # opening a pipe would wait for its writer
            what = "a directory" if os.path.isdir(name) else "not a regular file"
            raise ModelFileError(f"{name} is {what}, so it is not an aromatch model file")
        with open(name, "rb") as file:
            return _read(file, os.fstat(file.fileno()).st_size, name)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ModelFileError(f"{name} cannot be read: {error.strerror or error}") from error


def _read(file: BinaryIO, size: int, name: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read each byte once: what is hashed is what is returned, whatever happens to the file meanwhile."""
    head = _read_head(file, size, name)
    digits = _DIGITS.search(head)
    if digits is None:
        raise _foreign(head, name)
    without_digits = head[: digits.start(1)] + _NO_DIGITS.encode() + head[digits.end(1) :]
    digest = hashlib.sha256(without_digits)
    try:
        with _refusing(name):
            metadata, infos = _parse_head(head)
            header = _parse(metadata.get(_KEY, "null"), digits[1].decode(), name)
            entries = _parse_entries(infos, size, len(head))
        check_fits_in_memory(size - len(head), f"loading {name}")
        with _refusing(name):
            arrays = {}
            for entry in entries:
                array = np.empty(entry.shape, entry.dtype)
                for block in _blocks(array):
                    if file.readinto(block) != len(block):  # type: ignore[attr-defined]
                        raise ValueError("it became shorter while it was read")
                    digest.update(block)
                arrays[entry.label] = array.astype(entry.dtype.newbyteorder("="), copy=False)
    except ModelFileError:
        # The digest of a file that was changed says more than the place where it stops making sense.
        file.seek(len(head))
        found = hashlib.file_digest(file, lambda: hashlib.sha256(without_digits))  # type: ignore[arg-type]
        if found.hexdigest() != digits[1].decode():
            raise _changed(name) from None
        raise
    if digest.hexdigest() != digits[1].decode():
        raise _changed(name)
    return header, arrays


def _changed(name: str) -> ModelFileError:
    return ModelFileError(f"{name} is truncated or changed: it does not match the digest it was saved with")


def _read_head(file: BinaryIO, size: int, name: str) -> bytes:
    """Return the length and the header of a safetensors file, unparsed."""
    if size == 0:
        raise ModelFileError(f"{name} is empty, so it is not an aromatch model file")
    start = file.read(_LENGTH_BYTES)
    length = int.from_bytes(start, "little")
    if length > size - _LENGTH_BYTES:
        raise ModelFileError(
            f"{name} is not an aromatch model file, or it is truncated: "
            f"a file of {size:,} bytes is shorter than the header that its first {_LENGTH_BYTES} bytes declare"
        )
    if length > _MAX_HEADER:
        raise ModelFileError(_too_long(name, length))
    return start + file.read(length)


def _too_long(name: str, length: int) -> str:
    return f"{name} has a header of {length:,} bytes, more than the {_MAX_HEADER:,} allowed"


def _foreign(head: bytes, name: str) -> ModelFileError:
    """Return the error for a file without a digest."""
    try:
        with _refusing(name):
            metadata, _ = _parse_head(head)
    except ModelFileError:
        return ModelFileError(f"{name} is not an aromatch model file")
    if _KEY in metadata:
        return ModelFileError(f"{name} is truncated or changed: it has no digest")
    return ModelFileError(f"{name} is a safetensors file but not an aromatch model")


@contextlib.contextmanager
def _refusing(name: str) -> Iterator[None]:
    """Raise every error inside as a ModelFileError, except lack of memory and errors of the disk."""
    try:
        yield
    except (ModelFileError, MemoryError, OSError):
        raise
    except Exception as error:
        raise ModelFileError(f"{name} is not a valid aromatch model file: {error}") from error


def _head(tensors: dict[str, NDArray[Any]], metadata: dict[str, str] | None) -> bytes:
    """Return the length and the header of a safetensors file, byte by byte as safetensors writes them."""
    content: dict[str, Any] = {} if metadata is None else {_METADATA: metadata}
    end = 0
    for label, array in tensors.items():
        begin, end = end, end + array.nbytes
        content[label] = {"dtype": _CODES[array.dtype], "shape": list(array.shape), "data_offsets": [begin, end]}
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _LENGTH_BYTES)
    return len(text).to_bytes(_LENGTH_BYTES, "little") + text


def _parse_head(head: bytes) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the metadata of a safetensors header, and what it contains about each array."""
    text = head[_LENGTH_BYTES:].decode()
    content = json.loads(text, object_pairs_hook=_unique_keys, parse_int=_parse_int)
    if not isinstance(content, dict) or not text.startswith("{"):
        raise ValueError("the header must be a JSON object")
    metadata = content.pop(_METADATA, None)
    if metadata is None:
        metadata = {}
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError(f"{_METADATA} must map names to strings")
    return metadata, content


def _parse_entries(infos: dict[str, Any], size: int, begin: int) -> list[_Entry]:
    """Return the arrays in the order of their bytes, which must fill the file without gaps and overlaps."""
    entries = sorted(_parse_entry(label, info, size) for label, info in infos.items())
    at = 0
    for entry in entries:
        if entry.begin != at:
            raise ValueError(f"array {entry.label!r:.100} must begin at byte {at:,}, got {entry.begin:,}")
        at = entry.end
    if at != size - begin:
        raise ValueError(f"the arrays take {at:,} bytes, got {size - begin:,}")
    return entries


def _parse_entry(label: str, info: Any, size: int) -> _Entry:
    where = f"array {label!r:.100}"
    _check_text(label, "the name of an array")
    if not isinstance(info, dict) or info.keys() != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"{where} must have a dtype, a shape and data_offsets")
    code, shape, offsets = info["dtype"], info["shape"], info["data_offsets"]
    if not isinstance(code, str) or code not in _DTYPES:
        raise ValueError(f"{where} has the type {code!r:.100}, expected {', '.join(_DTYPES)}")
    for numbers in (shape, offsets):
        if not isinstance(numbers, list) or not all(type(one) is int and one >= 0 for one in numbers):
            raise ValueError(f"{where} must have non-negative integers in its shape and data_offsets")
    dtype = _DTYPES[code]
    _check_shape(shape, size, where)
    if len(offsets) != 2 or offsets[1] - offsets[0] != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"{where} has the shape {shape} and the data_offsets {offsets}, which differ in size")
    return _Entry(offsets[0], offsets[1], label, dtype, shape)


def _blocks(array: NDArray[Any]) -> Iterator[memoryview]:
    """Return the bytes of a C-contiguous array as views."""
    flat = array.reshape(-1).view(np.uint8).data
    return (flat[part] for part in chunks(len(flat), _BLOCK))


def _parse(text: str, digest: str, name: str) -> dict[str, Any]:
    content = json.loads(text, object_pairs_hook=_unique_keys, parse_int=_parse_int)
    # The digits were found by a pattern that something else in the file could match.
    if not isinstance(content, dict) or content.get("sha256") != digest:
        raise ValueError("the digest is not in the metadata")
    version = content["format"]
    if version < 1:
        raise ValueError(f"format must be at least 1, got {version}")
    if version > _FORMAT:
        raise ModelFileError(
            f"{name} was written by a newer aromatch: its format is {version}, this one reads up to {_FORMAT}"
        )
    if content.keys() != {"format", "sha256", "header"}:
        raise ValueError("the metadata must contain format, sha256 and header")
    return _check_header(content["header"])


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("the header has a duplicate key")
    return content


def _parse_int(digits: str) -> int:
    # int() takes quadratic time, and Python's own limit can be switched off.
    if len(digits.lstrip("-")) > _MAX_DIGITS:
        raise ValueError(f"the header has an integer of {len(digits):,} digits, expected at most {_MAX_DIGITS:,}")
    return int(digits)


def _check_path(path: Any) -> str:
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(name, str):
        raise TypeError(f"path must be a str or an os.PathLike of str, got {path!r} ({type(path).__name__})")
    if not name or "\0" in name:
        raise ValueError(f"path must be the name of a file, got {name!r}")
    return name


def _check_header(header: Any) -> dict[str, Any]:
    if not isinstance(header, dict):
        raise TypeError(f"header must be a dict, got {type(header).__name__}")
    _check_value(header, "header", 0)
    return header


def _check_value(value: Any, where: str, depth: int) -> None:
    """Raise an error for values that JSON does not restore equal."""
    if depth > _MAX_DEPTH:
        raise ValueError(f"header must be nested at most {_MAX_DEPTH} deep, it is deeper at {where[:100]}...")
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        _check_text(value, where)
    elif isinstance(value, int):
        if abs(value) >= _INT_END:
            raise ValueError(f"{where} must have at most {_MAX_DIGITS} digits")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{where} must be finite, got {value!r}")
    elif isinstance(value, list):
        for at, item in enumerate(value):
            _check_value(item, f"{where}[{at}]", depth + 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"the keys of {where} must be str, got {key!r} ({type(key).__name__})")
            _check_text(key, f"a key of {where}")
            _check_value(item, f"{where}[{key!r}]", depth + 1)
    else:
        expected = "None, a bool, an int, a float, a str, a list or a dict"
        raise TypeError(f"{where} must be {expected}, got {type(value).__name__}")


def _check_text(text: str, where: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{where} must be valid Unicode, got half of a surrogate pair: {text!r}") from None


def _check_arrays(arrays: Any) -> dict[str, NDArray[Any]]:
    """Return the arrays in C order and little-endian, those of wide types first, so that all are aligned."""
    if not isinstance(arrays, Mapping):
        raise TypeError(f"arrays must be a mapping of names to arrays, got {type(arrays).__name__}")
    tensors = {}
    for label, array in arrays.items():
        if not isinstance(label, str):
            raise TypeError(f"the names in arrays must be str, got {label!r} ({type(label).__name__})")
        _check_text(label, "a name in arrays")
        where = f"arrays[{label!r}]"
        if label == _METADATA:
            raise ValueError(f"{where} must have another name: this one is reserved by the file format")
        if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray):
            raise TypeError(f"{where} must be a plain numpy.ndarray, got {type(array).__name__}")
        if array.dtype.newbyteorder("<") not in _DTYPES.values():
            raise TypeError(f"{where} must be of float32, float64, int32 or int64, got {array.dtype}")
        tensors[label] = np.asarray(array, array.dtype.newbyteorder("<"), order="C")
    codes = list(_DTYPES)
    return dict(sorted(tensors.items(), key=lambda item: (codes.index(_CODES[item[1].dtype]), item[0].encode())))


def _check_shape(shape: Sequence[int], size: int, where: str) -> None:
    """Raise an error for an empty array whose other dimensions exceed the file, as in (0, 10**15)."""
    if math.prod(length for length in shape if length) > max(size, _FREE_CELLS):
        raise ValueError(f"{where} has the shape {tuple(shape)}, too large for a file of {size:,} bytes")

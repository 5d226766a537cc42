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
import io
import json
import math
import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from .._utils.checks import check_fits_in_memory
from ..exceptions import ModelFileError

_FORMAT = 1
_KEY = "aromatch"
_NO_DIGITS = "0" * 64
# Inside the file the JSON text is a JSON string itself, hence the escaped quotes.
_DIGITS = re.compile(rb'"aromatch":"\{\\"format\\":[0-9]{1,9},\\"sha256\\":\\"([0-9a-f]{64})\\"')
_DTYPES = {"F32": np.dtype("<f4"), "F64": np.dtype("<f8"), "I32": np.dtype("<i4"), "I64": np.dtype("<i8")}

_LENGTH_BYTES = 8
# Parsed JSON can take 25 times the memory of its text: this limits a hostile header to about 100 MB.
_MAX_HEADER = 4 * 2**20
_MAX_DEPTH = 64
_MAX_DIGITS = 1000
_INT_END = 10**_MAX_DIGITS
# An empty array takes no space in the file, whatever its other dimensions are: this limits their product.
_FREE_CELLS = 2**16
_READ_ATTEMPTS = 5


def write_model(path: str | os.PathLike[str], header: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Save a header and named arrays as one model file.

    The file appears complete or not at all: it is written beside `path` under a temporary name, flushed to disk and
    moved into place. A save that fails or is interrupted leaves an existing file unchanged. An existing file keeps its
    permissions; if `path` is a symbolic link, its target is replaced.

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
    temporary = os.path.join(os.path.dirname(target), f".aromatch-{secrets.token_hex(8)}.tmp")
    try:
        # safetensors makes files private to their owner; an empty file has the default permissions.
        open(temporary, "xb").close()
        mode = stat.S_IMODE(os.stat(target if os.path.exists(target) else temporary).st_mode)
        save_file(tensors, temporary, metadata={_KEY: text})
        with open(temporary, "r+b") as file:
            size = os.fstat(file.fileno()).st_size
            for label, array in tensors.items():
                _check_shape(array.shape, size, f"arrays[{label!r}]")
            head = _read_head(file, size, name)
            digits = _DIGITS.search(head)
            if digits is None:
                raise ModelFileError(
                    f"cannot save {name}: this version of safetensors writes its header in another form"
                )
            digest = _digest(file, head, digits)
            file.seek(digits.start(1))
            file.write(digest)
            file.flush()
            os.chmod(temporary, mode)
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError as error:
        raise OSError(error.errno, f"cannot save the model: {error.strerror or error}", name) from error
    except SafetensorError as error:
        raise OSError(f"cannot save the model to {name}: {error}") from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def read_model(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Load the header and the arrays of a model file.

    Nothing in the file is executed, and the arrays take no more memory than the file. The digest is checked first, so a
    file that was truncated or changed anywhere raises an error. While another process saves to the same path, this
    returns the old or the new content.

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
        for _ in range(_READ_ATTEMPTS):
            if not stat.S_ISREG(os.stat(name).st_mode):
                what = "a directory" if os.path.isdir(name) else "not a regular file"
                raise ModelFileError(f"{name} is {what}, so it is not an aromatch model file")
            with open(name, "rb") as file:
                opened = os.fstat(file.fileno())
                # The digest is of the file opened here, the arrays are of the file that safetensors opens by name. If a
                # save in between replaces the file, both are read again.
                try:
                    model = _read(file, opened.st_size, name)
                except ModelFileError:
                    if _identity(os.stat(name)) == _identity(opened):
                        raise
                else:
                    if _identity(os.stat(name)) == _identity(opened):
                        return model
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ModelFileError(f"{name} cannot be read: {error.strerror or error}") from error
    raise ModelFileError(f"{name} was changed during each of {_READ_ATTEMPTS} attempts to read it")


def _read(file: io.BufferedIOBase, size: int, name: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    head = _read_head(file, size, name)
    digits = _DIGITS.search(head)
    if digits is None:
        raise _foreign(name)
    if _digest(file, head, digits) != digits[1]:
        raise ModelFileError(f"{name} is truncated or changed: it does not match the digest it was saved with")
    check_fits_in_memory(size - len(head), f"loading {name}")
    with _refusing(name), _open(name) as tensors:
        header = _parse((tensors.metadata() or {}).get(_KEY, "null"), digits[1].decode(), name)
        arrays = {}
        for label in tensors.offset_keys():
            info = tensors.get_slice(label)
            if info.get_dtype() not in _DTYPES:
                raise ValueError(f"array {label!r} has the type {info.get_dtype()}, expected F32, F64, I32 or I64")
            _check_shape(info.get_shape(), size, f"array {label!r}")
            arrays[label] = tensors.get_tensor(label)
    return header, arrays


def _read_head(file: io.BufferedIOBase, size: int, name: str) -> bytes:
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
        raise ModelFileError(f"{name} has a header of {length:,} bytes, more than the {_MAX_HEADER:,} allowed")
    return start + file.read(length)


def _digest(file: io.BufferedIOBase, head: bytes, digits: re.Match[bytes]) -> bytes:
    """Hash `head` with zeros for the digits, then the rest of the file in chunks."""
    digest = hashlib.sha256(head[: digits.start(1)] + _NO_DIGITS.encode() + head[digits.end(1) :])
    return hashlib.file_digest(file, lambda: digest).hexdigest().encode()


def _foreign(name: str) -> ModelFileError:
    """Return the error for a file without a digest."""
    try:
        with _refusing(name), _open(name) as tensors:
            metadata = tensors.metadata() or {}
    except ModelFileError:
        return ModelFileError(f"{name} is not an aromatch model file")
    if _KEY in metadata:
        return ModelFileError(f"{name} is truncated or changed: it has no digest")
    return ModelFileError(f"{name} is a safetensors file but not an aromatch model")


def _open(name: str) -> Any:
    # "pread" reads into new memory; the default maps the file and copies, which doubles the resident memory.
    return safe_open(name, framework="np", backend="pread")


@contextlib.contextmanager
def _refusing(name: str) -> Iterator[None]:
    """Raise every error inside as a ModelFileError, except lack of memory and interrupts."""
    try:
        yield
    except (ModelFileError, MemoryError):
        raise
    except Exception as error:
        raise ModelFileError(f"{name} is not a valid aromatch model file: {error}") from error
    except BaseException as error:
        # A panic in Rust raises a class that is created at run time and is not an Exception.
        if type(error).__name__ != "PanicException":
            raise
        raise ModelFileError(f"{name} is not a valid aromatch model file: safetensors failed on it") from error


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


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
    """Return the arrays in C order: safetensors writes the memory whatever the strides are."""
    if not isinstance(arrays, Mapping):
        raise TypeError(f"arrays must be a mapping of names to arrays, got {type(arrays).__name__}")
    tensors = {}
    for label, array in arrays.items():
        if not isinstance(label, str):
            raise TypeError(f"the names in arrays must be str, got {label!r} ({type(label).__name__})")
        _check_text(label, "a name in arrays")
        where = f"arrays[{label!r}]"
        if label == "__metadata__":
            raise ValueError(f"{where} must have another name: this one is reserved by the file format")
        if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray):
            raise TypeError(f"{where} must be a plain numpy.ndarray, got {type(array).__name__}")
        if array.dtype.newbyteorder("<") not in _DTYPES.values():
            raise TypeError(f"{where} must be of float32, float64, int32 or int64, got {array.dtype}")
        tensors[label] = np.asarray(array, order="C")
    return tensors


def _check_shape(shape: Sequence[int], size: int, where: str) -> None:
    """Raise an error for an empty array whose other dimensions exceed the file, as in (0, 10**15)."""
    if math.prod(length for length in shape if length) > max(size, _FREE_CELLS):
        raise ValueError(f"{where} has the shape {tuple(shape)}, too large for a file of {size:,} bytes")

"""Mutations that know the structure of npy, npz and model files."""

from __future__ import annotations

import functools
import io
import json
import random
import struct
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from scipy import sparse

from tests.forged_files import forge, seal
from tests.fuzz.mutations import VALUES, Raw, dumps, mutate_bytes, mutate_json

_MAGIC = b"\x93NUMPY"
_DESCRIPTIONS = [
    "'<f2'", "'<f4'", "'>f8'", "'<f16'", "'|i1'", "'<i2'", "'<i8'", "'|u1'", "'>u8'", "'|b1'", "'<c8'", "'<c16'", "'|O'", "'O8'", "'<U3'",
    "'|S5'", "'|S0'", "'<M8[ns]'", "'<m8'", "'|V8'", "'<U536870911'", "'|V2147483647'", "'|V99999999999'", "[('a', '<f8')]",
    "[('a', '<f8', (1000000, 1000000))]", "[('', '<f8')]", "[]", "['<f8']", "''", "'q9'", "None", "1", "'<f8' * 3", "b'<f8'", "{'a': 1}",
    "('<f8', (2,))", "'(1000000000,)f8'", "'f8,f8'", "'" + "f8," * 2000 + "'", "(" * 300, "[" * 5000 + "]" * 5000,
]  # fmt: skip
_SHAPES = [
    "()", "(8,)", "(8L, 4L)", "(-8, -4)", "(8, -4)", "(0, 4)", "(8, 0)", "(0, 0)", "(2, 4, 4)", "(4, 8)", "8", "'8'", "(8.0, 4)", "(True, 4)",
    "(1099511627776,)", "(4611686018427387904, 4)", "(4294967296, 4294967296)", "(0, 1000000000000000)", "(1000000000000000, 0)",
    "(9223372036854775808, 1)", "(99999999999999999999999999, 0)", "(3, 6148914691236517206)", "[8, 4]", "((8, 4),)", "None", "(8, None)",
    "(" + "1, " * 70 + ")", "(" * 300 + ")" * 300, "(8, 4", "8, 4", "{8, 4}", "(0x8, 0o4)", "(8, 4, 1)", "(16, 4)", "(8, 4000000000)",
]  # fmt: skip
_HEADERS = [
    "{'descr': '<f8', 'fortran_order': False, 'shape': (8, 4)",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (8, 4), }" + "}" * 9,
    "{'descr': '<f8', 'fortran_order': False, 'shape': (8, 4), 'more': 1}",
    "{'descr': '<f8', 'shape': (8, 4)}", "{}", "", "[", "{", "(" * 5000, "'''", '"', "\\", "\0", "é", "1", "__import__('os')", "{'a': {'b': {",
    "{" * 200, "\tx\n y", "0_", "1L", "{**1}", "lambda: 1", "'\\N{x}'", "-" * 5000 + "1", "9" * 5000, "1j" * 300,
]  # fmt: skip
_EXTREMES = {
    "f": [np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-310, -1.0, 0.0, -0.0, 1e200, 1e38, 1e30, 2.0**53],
    "i": [-1, 0, 1, 4, 5, 7, 8, 100, 127, -128, 2**15, 2**31 - 1, -(2**31), 2**31, 2**62, 2**63 - 1, -(2**63)],
}
_TYPES = [
    "b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "g", "c8", "c16", "U3", "S2", "M8[s]", ">f8", ">i4", "V4",
]  # fmt: skip


def npy(array: Any, **options: Any) -> bytes:
    """Return the bytes of an npy file."""
    file = io.BytesIO()
    np.save(file, array, allow_pickle=array.dtype == object, **options)
    return file.getvalue()


def mutate_npy(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Return an npy file with another header or other values."""
    if rng.random() < 0.3:
        with np.errstate(all="ignore"):
            return npy(mutate_array(rng, np.load(io.BytesIO(data))))
    length = struct.unpack("<H", data[8:10])[0]
    header, body = data[10 : 10 + length].decode(), data[10 + length :]
    parts = {"descr": header[header.index(":") + 2 : header.index(", 'fortran")], "fortran_order": "False"}
    parts["shape"] = header[header.index("'shape': ") + 9 : header.rindex(", }")]
    match rng.randrange(8):
        case 0 | 1:
            parts["descr"] = rng.choice(_DESCRIPTIONS)
        case 2 | 3:
            parts["shape"] = rng.choice(_SHAPES)
        case 4:
            parts["fortran_order"] = rng.choice(("True", "None", "2", "'False'", "()", "False or True"))
        case 5:
            parts["descr"], parts["shape"] = rng.choice(_DESCRIPTIONS), rng.choice(_SHAPES)
        case 6:
            body = mutate_bytes(rng, body, others)
    text = "{" + "".join(f"'{name}': {value}, " for name, value in parts.items()) + "}"
    if rng.random() < 0.15:
        text = rng.choice(_HEADERS)
    return _with_header(rng, text, body)


def _with_header(rng: random.Random, text: str, body: bytes) -> bytes:
    content = text.encode()
    version = rng.choice(((1, 0),) * 8 + ((2, 0), (3, 0), (4, 0), (0, 0), (255, 255)))
    n = len(content) + 1
    if rng.random() < 0.1:
        n = rng.choice((0, 1, n - 1, n + 1, 65535, 2**31, 2**32 - 1))
    size = struct.pack("<H", n & 0xFFFF) if version == (1, 0) else struct.pack("<I", n & 0xFFFFFFFF)
    return _MAGIC + bytes(version) + size + content + b"\n" + body


def mutate_array(rng: random.Random, array: Any) -> Any:
    """Return an array with other values, type or shape."""
    array = np.array(array)
    for _ in range(rng.choice((1, 1, 2))):
        match rng.randrange(9):
            case 0:
                try:
                    array = array.astype(rng.choice(_TYPES))
                except (TypeError, ValueError):
                    array = np.zeros(array.shape, rng.choice(_TYPES))
            case 1:
                array = array[: rng.randrange(len(array) + 1)] if array.ndim else array.reshape(1)
            case 2:
                array = np.concatenate([array, array]) if array.ndim else np.array([array, array])
            case 3:
                array = array.reshape(rng.choice(((-1,), (1, -1), (-1, 1), (1, 1, -1))))
            case 4:
                array = array[()] if array.size == 0 else np.asarray(array.flat[0])
            case 5:
                array = np.full(array.shape, rng.choice(_extremes(array))).astype(array.dtype)
            case _:
                if array.size and array.dtype.kind not in "MV":
                    array = array.copy()
                    for _ in range(rng.choice((1, 1, 3))):
                        array.flat[rng.randrange(array.size)] = rng.choice(_extremes(array))
    return array


def _extremes(array: Any) -> list[Any]:
    """Return hostile values that an array of this type can hold."""
    if array.dtype.kind in "fc":
        largest = np.finfo(array.dtype).max
        return [value for value in _EXTREMES["f"] if not np.isfinite(value) or abs(value) <= largest]
    if array.dtype.kind in "iu":
        bounds = np.iinfo(array.dtype)
        return [*(value for value in _EXTREMES["i"] if bounds.min <= value <= bounds.max), bounds.min, bounds.max]
    if array.dtype.kind in "US":
        return ["", "\x1b[2J", "csr", "0", "nan", "é\0"] if array.dtype.kind == "U" else [b"", b"\x1b[", b"csc", b"0"]
    return [0, 1]


# -- npz --------------------------------------------------------------------------------------------------------------

Members = list[tuple[str, bytes]]


def npz(arrays: dict[str, Any]) -> bytes:
    """Return the bytes of an npz file."""
    return _zipped([(f"{name}.npy", npy(array)) for name, array in arrays.items()])


def sparse_arrays(matrix: Any) -> dict[str, Any]:
    """Return the arrays that `scipy.sparse.save_npz` writes."""
    file = io.BytesIO()
    sparse.save_npz(file, matrix)
    with np.load(io.BytesIO(file.getvalue())) as found:
        return dict(found)


def _zipped(members: Members, method: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members:
            info = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))  # the same bytes at any time
            info.compress_type = method
            archive.writestr(info, content)
    return file.getvalue()


def _members(data: bytes) -> Members:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [(info.filename, archive.read(info)) for info in archive.infolist()]


@functools.cache
def _bomb(shape: tuple[int, ...]) -> bytes:
    """Return a small compressed npz file of many zeros."""
    file, header = io.BytesIO(), io.BytesIO()
    npy_format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": shape})
    info = zipfile.ZipInfo("X.npy", (2026, 1, 1, 0, 0, 0))
    info.compress_type = zipfile.ZIP_DEFLATED
    zeros = bytes(2**20)
    with zipfile.ZipFile(file, "w") as archive, archive.open(info, "w") as member:
        member.write(header.getvalue())
        for _ in range(8 * int(np.prod(shape, dtype=object)) // len(zeros)):
            member.write(zeros)
    return file.getvalue()


def mutate_npz(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Return an npz file with other arrays, headers, members or directory entries."""
    members = _members(data)
    method = rng.choice((zipfile.ZIP_STORED,) * 4 + (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    at = rng.randrange(len(members))
    name, content = members[at]
    match rng.randrange(12):
        case 0:
            members.append((name, members[rng.randrange(len(members))][1]))
        case 1:
            del members[at]
        case 2:
            hostile = (
                "",
                "X",
                "../X.npy",
                "/X.npy",
                "X.npy/",
                "ids.npy",
                "labels.npy",
                "vectors.npy",
                "format.npy",
                "\x1b[2J.npy",
                "\0",
            )
            members[at] = (rng.choice(hostile), content)
        case 3:
            members[at] = (name, mutate_bytes(rng, content, others))
        case 4:
            members[at] = (name, mutate_npy(rng, content, others) if content.startswith(_MAGIC) else b"")
        case 5:
            members += _members(rng.choice(others))
        case 6 if rng.random() < 0.05:
            return _bomb(rng.choice(((8, 2**23), (2**23, 8), (2**25 + 2**24,))))
        case _:
            with np.errstate(all="ignore"):
                members[at] = (name, npy(mutate_array(rng, np.load(io.BytesIO(content)))))
    packed = _zipped(members, method)
    return _mutate_directory(rng, packed) if rng.random() < 0.15 else packed


def _mutate_directory(rng: random.Random, data: bytes) -> bytes:
    """Change a field of a directory entry or of a local header: flags, method, CRC, sizes, offset."""
    changed = bytearray(data)
    is_central = rng.random() < 0.6
    signature = b"PK\x01\x02" if is_central else b"PK\x03\x04"
    places = [at for at in range(len(data) - 46) if data[at : at + 4] == signature]
    if not places:
        return data
    fields = ((8, 2), (10, 2), (16, 4), (20, 4), (24, 4), (28, 2), (30, 2), (42, 4))
    offset, width = rng.choice(fields if is_central else ((6, 2), (8, 2), (14, 4), (18, 4), (22, 4), (26, 2), (28, 2)))
    at = rng.choice(places) + offset
    changed[at : at + width] = rng.choice((0, 1, 8, 99, 2**31 - 1, 2**32 - 1, 10**9)).to_bytes(8, "little")[:width]
    return bytes(changed)


# -- model files ------------------------------------------------------------------------------------------------------

_NUMPY_TYPES = {"F32": "<f4", "F64": "<f8", "I32": "<i4", "I64": "<i8"}
_FILE_TYPES = ("F32", "F64", "I32", "I64", "F16", "BF16", "U8", "BOOL", "I8", "I16", "U64", "F8_E4M3", "X")


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the JSON content and the arrays of a model file."""
    length = int.from_bytes(data[:8], "little")
    head = json.loads(data[8 : 8 + length])
    content = json.loads(head.pop("__metadata__")["aromatch"])
    arrays = {}
    for name, info in head.items():
        begin, end = (8 + length + offset for offset in info["data_offsets"])
        arrays[name] = np.frombuffer(data[begin:end], _NUMPY_TYPES[info["dtype"]]).reshape(info["shape"])
    return content, arrays


def pack(content: dict[str, Any], arrays: dict[str, Any], rng: random.Random | None = None) -> bytes:
    """Return a model file with a valid digest; with a generator the table of arrays may be wrong."""
    tensors: dict[str, Any] = {}
    data = b""
    types = {np.dtype(kind): name for name, kind in _NUMPY_TYPES.items()}
    for name, array in arrays.items():
        if array.dtype not in types:
            array = array.real.astype("<f8") if array.dtype.kind in "fc" else np.zeros(array.shape, "<i8")
        piece = array.tobytes()
        shape = list(array.shape)
        tensors[name] = {
            "dtype": types[array.dtype],
            "shape": shape,
            "data_offsets": [len(data), len(data) + len(piece)],
        }
        data += piece
    if rng is not None and tensors:
        info = tensors[rng.choice(list(tensors))]
        match rng.randrange(4):
            case 0:
                info["dtype"] = rng.choice(_FILE_TYPES)
            case 1:
                info["shape"] = rng.choice(
                    ([], [0], [-1], [2**63], [0, 2**62], [1, *info["shape"]], info["shape"][::-1], "x")
                )
            case 2:
                info["data_offsets"] = rng.choice(
                    ([0, 0], [0, 8], [8, 0], [0, 2**63], [-8, 0], [0, len(data)], [], None)
                )
            case 3:
                data = mutate_bytes(rng, data, [data])
    return forge(text=dumps({"format": 1, "sha256": "0" * 64, **content}), tensors=tensors, data=data)


def mutate_model(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Return a model file with another header, other arrays or other bytes, mostly with a valid digest."""
    if rng.random() < 0.1:
        changed = mutate_bytes(rng, data, others)
        return seal(changed) if rng.random() < 0.8 else changed
    content, arrays = unpack(data)
    for _ in range(rng.choice((1, 1, 2))):
        names = list(arrays)
        match rng.randrange(10):
            case 0 | 1 | 2 | 3:
                content = {**content, "header": mutate_json(rng, content["header"], _HEADER_VALUES)}
            case 4 if names:
                del arrays[rng.choice(names)]
            case 5 if names:
                arrays[rng.choice((*names, "x", "state.W", "state.Sigma"))] = arrays[rng.choice(names)]
            case 6:
                other, more = unpack(rng.choice(others))
                content, arrays = rng.choice(((other, arrays), (content, more), (content, {**arrays, **more})))
            case _ if names:
                name = rng.choice(names)
                with np.errstate(all="ignore"):
                    arrays[name] = mutate_array(rng, arrays[name])
    if rng.random() < 0.03:
        content = mutate_json(rng, content)
        content = content if isinstance(content, dict) else {}
    return pack(content, arrays, rng if rng.random() < 0.1 else None)


# Most values inside the limits of the container, so that the classes above it see them.
_HEADER_VALUES = [value for value in VALUES if not isinstance(value, Raw)] * 3 + list(VALUES)

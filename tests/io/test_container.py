"""The model file: what goes in comes out to the bit, and nothing but a model file comes out at all."""

import errno
import gc
import hashlib
import json
import os
import pickle
import random
import re
import stat
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from aromatch._utils import checks as _checks
from aromatch.exceptions import ModelFileError
from aromatch.io import container as store
from aromatch.io import durable
from aromatch.io.container import read_model, write_model
from forged_files import forge, seal

HEADER = {"learner": "toy", "r": 0.1, "seen": 3, "classes": ["a", "é"], "state": {"on": True, "none": None}}
ARRAYS = {"W": np.arange(6.0).reshape(2, 3), "pending": np.empty((0, 3), dtype=np.float32), "n": np.arange(2)}
DTYPES = [np.float32, np.float64, np.int32, np.int64]


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(10**1000) + 1, 10**1000 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
headers = st.dictionaries(texts, values, max_size=5)
named_arrays = st.dictionaries(
    texts.filter(lambda name: name != "__metadata__"),
    st.sampled_from(DTYPES).flatmap(
        lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
    ),
    max_size=4,
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "toy.safetensors"


@pytest.fixture
def model_bytes(tmp_path):
    write_model(tmp_path / "original", HEADER, ARRAYS)
    return (tmp_path / "original").read_bytes()


def assert_same_bits(got, expected):
    assert got.dtype == expected.dtype.newbyteorder("=")
    assert got.shape == expected.shape
    assert got.tobytes() == np.ascontiguousarray(expected).astype(got.dtype).tobytes()


def assert_same_model(path, header, arrays):
    got_header, got_arrays = read_model(path)
    assert repr(got_header) == repr(header)
    assert got_arrays.keys() == arrays.keys()
    for name, array in arrays.items():
        assert_same_bits(got_arrays[name], array)


def put(path, data):
    """Write a small file quickly: ext4 flushes to the disk when a file is emptied and written again."""
    path.unlink(missing_ok=True)
    path.write_bytes(data)


def refusal(path):
    """Read a file that must be refused, and return the message."""
    with pytest.raises(ModelFileError) as caught:
        read_model(path)
    message = str(caught.value)
    assert str(path) in message
    return message


# --- the format, read by hand -------------------------------------------------------------------------------


def test_the_file_follows_the_format_that_the_module_describes(path, model_bytes):
    length = int.from_bytes(model_bytes[:8], "little")
    head = json.loads(model_bytes[8 : 8 + length])
    assert head["__metadata__"].keys() == {"aromatch"}
    content = json.loads(head["__metadata__"]["aromatch"])
    assert content.keys() == {"format", "sha256", "header"}
    assert content["format"] == 1
    assert content["header"] == HEADER
    digest = content["sha256"]
    assert model_bytes.count(digest.encode()) == 1
    assert hashlib.sha256(model_bytes.replace(digest.encode(), b"0" * 64)).hexdigest() == digest
    begin, end = (8 + length + offset for offset in head["W"]["data_offsets"])
    assert np.frombuffer(model_bytes[begin:end], "<f8").tolist() == [0, 1, 2, 3, 4, 5]
    # Other tools can open it.
    put(path, model_bytes)
    assert safetensors.numpy.load_file(path)["W"].tolist() == ARRAYS["W"].tolist()


def test_a_forged_file_with_the_right_digest_is_a_model_file(path):
    # Otherwise the hostile files below would be refused for their digest and test nothing.
    tensors = {"a": {"dtype": "I32", "shape": [2], "data_offsets": [0, 8]}}
    put(path, forge({"header": {"x": 1}}, tensors, b"\x01\0\0\0\x02\0\0\0"))
    assert_same_model(path, {"x": 1}, {"a": np.array([1, 2], dtype=np.int32)})


@settings(deadline=None, max_examples=80)
@given(data=st.data())
def test_the_bytes_are_those_that_safetensors_writes(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "bytes"
    header, arrays = data.draw(headers), data.draw(named_arrays)
    write_model(path, header, arrays)
    with safetensors.safe_open(path, "np") as file:
        metadata = file.metadata()
    assert path.read_bytes() == safetensors.numpy.save(arrays, metadata)


def test_the_same_model_gives_the_same_bytes(path, model_bytes):
    write_model(path, HEADER, dict(reversed(ARRAYS.items())))
    assert path.read_bytes() == model_bytes


# --- round trips --------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=80)
@given(header=headers)
def test_any_header_comes_back_the_same(tmp_path_factory, header):
    path = tmp_path_factory.getbasetemp() / "header"
    write_model(path, header, {})
    # repr tells 1 from 1.0 from True and 0.0 from -0.0, which == does not.
    assert_same_model(path, header, {})


@settings(deadline=None, max_examples=80)
@given(arrays=named_arrays)
def test_any_arrays_come_back_to_the_bit(tmp_path_factory, arrays):
    path = tmp_path_factory.getbasetemp() / "arrays"
    write_model(path, {}, arrays)
    assert_same_model(path, {}, arrays)


def test_nan_payloads_and_negative_zeros_keep_their_bits(path):
    bits = np.array([0x7FF8DEADBEEF0001, 0xFFF0000000000001, 0x8000000000000000, 1], dtype=np.uint64)
    write_model(path, {}, {"a": bits.view(np.float64)})
    assert read_model(path)[1]["a"].view(np.uint64).tolist() == bits.tolist()


@pytest.mark.parametrize(
    "shape_it",
    [
        np.asfortranarray,
        np.transpose,
        lambda a: a[::2, ::-1],
        lambda a: a[:, 1:3],
        lambda a: np.broadcast_to(a[0], (5, 4)),
        lambda a: a.astype(">f8"),
        lambda a: np.asfortranarray(a.astype(">f8")),
    ],
    ids=["fortran", "transposed", "strided", "columns", "broadcast", "big-endian", "big-endian fortran"],
)
def test_any_memory_layout_is_saved_as_the_numbers_it_shows_and_left_alone(path, shape_it):
    array = shape_it(np.random.default_rng(0).random((3, 4)))
    before, layout = array.tolist(), (array.strides, array.dtype)
    write_model(path, {}, {"a": array})
    assert read_model(path)[1]["a"].tolist() == before
    assert (array.tolist(), (array.strides, array.dtype)) == (before, layout)


def test_read_only_arrays_and_memory_maps_are_saved(path, tmp_path):
    locked = np.arange(3.0)
    locked.flags.writeable = False
    np.save(tmp_path / "a.npy", np.arange(4.0))
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    write_model(path, {}, {"locked": locked, "mapped": mapped})
    assert_same_model(path, {}, {"locked": locked, "mapped": np.arange(4.0)})


def test_loaded_arrays_can_be_written_to_and_do_not_touch_the_file(path):
    write_model(path, HEADER, {**ARRAYS, "scalar": np.array(2.5)})
    before = path.read_bytes()
    for array in read_model(path)[1].values():
        assert type(array) is np.ndarray
        assert array.flags.c_contiguous
        assert array.flags.writeable
        assert array.flags.aligned
        array[...] = 7
    assert path.read_bytes() == before


def test_a_model_can_be_saved_over_the_file_it_was_loaded_from(path):
    write_model(path, HEADER, ARRAYS)
    write_model(path, *read_model(path))
    assert_same_model(path, HEADER, ARRAYS)


def test_numpy_floats_and_strings_in_the_header_become_plain_ones(path):
    write_model(path, {"r": np.float64(0.1), "name": np.str_("x")}, {})
    assert repr(read_model(path)[0]) == "{'r': 0.1, 'name': 'x'}"


def test_a_header_may_be_64_deep_and_its_numbers_1000_digits_long(path):
    header = {"n": 10**1000 - 1, "m": 1 - 10**1000}
    for _ in range(63):
        header = {"a": header}
    write_model(path, header, {})
    assert_same_model(path, header, {})


def test_empty_arrays_keep_their_shape(path):
    # Beyond 65,536 cells a file must be as large as the dimensions of the empty arrays in it.
    for arrays in ({"a": np.empty((0, 2**16))}, {"a": np.empty((100_000, 0, 1)), "b": np.ones(12_500)}):
        write_model(path, {}, arrays)
        assert_same_model(path, {}, arrays)


def test_a_header_that_quotes_a_digest_of_its_own_is_no_problem(path):
    header = {"sha256": "f" * 64, "text": '"aromatch":"{\\"format\\":1,\\"sha256\\":\\"' + "0" * 64 + '\\"'}
    arrays = {'"aromatch":"{"format":1,"sha256":"' + "0" * 64 + '"': np.ones(1)}
    write_model(path, header, arrays)
    assert_same_model(path, header, arrays)


# --- arguments that cannot be saved -------------------------------------------------------------------------

deep = {}
for _ in range(65):
    deep = {"a": deep}


@pytest.mark.parametrize(
    ("header", "error", "message"),
    [
        ([], TypeError, "header must be a dict, got list"),
        ({"r": float("nan")}, ValueError, "header['r'] must be finite, got nan"),
        ({"a": [1, {"b": float("-inf")}]}, ValueError, "header['a'][1]['b'] must be finite, got -inf"),
        ({"a": (1, 2)}, TypeError, "header['a'] must be None, a bool, .* got tuple"),
        ({"a": np.int64(1)}, TypeError, "header['a'] must be .* got int64"),
        ({"a": np.ones(2)}, TypeError, "header['a'] must be .* got ndarray"),
        ({"a": b"x"}, TypeError, "header['a'] must be .* got bytes"),
        ({"a": {1: 2}}, TypeError, "the keys of header['a'] must be str, got 1 (int)"),
        ({"a": "\ud800"}, ValueError, "header['a'] must be valid Unicode"),
        ({"\udc00": 1}, ValueError, "a key of header must be valid Unicode"),
        ({"a": 10**1000}, ValueError, "header['a'] must have at most 1000 digits"),
        ({"a": -(10**5000)}, ValueError, "header['a'] must have at most 1000 digits"),
        (deep, ValueError, "header must be nested at most 64 deep"),
        ({"a": "x" * 5_000_000}, ValueError, "has a header of 5,000,"),
    ],
)
def test_a_header_that_would_not_come_back_the_same_is_refused(path, header, error, message):
    with pytest.raises(error, match=re.escape(message).replace(r"\.\*", ".*")):
        write_model(path, header, {})
    assert os.listdir(path.parent) == []


def test_a_header_that_contains_itself_is_refused(path):
    header = {}
    header["self"] = [header]
    with pytest.raises(ValueError, match="nested at most 64 deep"):
        write_model(path, header, {})


@pytest.mark.parametrize(
    ("arrays", "error", "message"),
    [
        ([np.ones(2)], TypeError, "arrays must be a mapping of names to arrays, got list"),
        ({1: np.ones(2)}, TypeError, "the names in arrays must be str, got 1 (int)"),
        ({"\ud800": np.ones(2)}, ValueError, "a name in arrays must be valid Unicode"),
        ({"__metadata__": np.ones(2)}, ValueError, "arrays['__metadata__'] must have another name"),
        ({"a": [1.0, 2.0]}, TypeError, "arrays['a'] must be a plain numpy.ndarray, got list"),
        ({"a": np.float64(1)}, TypeError, "arrays['a'] must be a plain numpy.ndarray, got float64"),
        ({"a": np.ma.masked_array([1.0], [True])}, TypeError, "plain numpy.ndarray, got MaskedArray"),
        (
            {"a": np.array([None])},
            TypeError,
            "arrays['a'] must be of float32, float64, int32 or int64, got object",
        ),
        ({"a": np.ones(2, np.float16)}, TypeError, "got float16"),
        ({"a": np.ones(2, np.uint64)}, TypeError, "got uint64"),
        ({"a": np.ones(2, bool)}, TypeError, "got bool"),
        ({"a": np.ones(2, complex)}, TypeError, "got complex128"),
        ({"a": np.zeros(2, [("x", "f8")])}, TypeError, "arrays['a'] must be of"),
        ({"a": np.empty((0, 2**16 + 1))}, ValueError, "arrays['a'] has the shape (0, 65537), too large"),
    ],
)
def test_arrays_that_the_format_does_not_know_are_refused(path, arrays, error, message):
    with pytest.raises(error, match=re.escape(message)):
        write_model(path, {}, arrays)
    assert os.listdir(path.parent) == []


@pytest.mark.parametrize("call", [read_model, lambda path: write_model(path, {}, {})], ids=["read", "write"])
@pytest.mark.parametrize(
    ("path", "error"),
    [(3, TypeError), (None, TypeError), (b"x", TypeError), ("", ValueError), ("a\0b", ValueError)],
)
def test_a_path_that_is_no_path_is_refused_by_name(call, path, error):
    with pytest.raises(error, match="path must be"):
        call(path)


# --- saving is all or nothing -------------------------------------------------------------------------------


def fail(*args, **kwargs):
    raise OSError(errno.EIO, "the disk is on fire")


def interrupt(*args, **kwargs):
    raise KeyboardInterrupt


@pytest.mark.parametrize("step", ["open", "write", "chmod", "sync", "replace"])
@pytest.mark.parametrize(("trouble", "error"), [(fail, OSError), (interrupt, KeyboardInterrupt)])
def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(path, monkeypatch, step, trouble, error):
    write_model(path, HEADER, ARRAYS)
    before = path.read_bytes()
    monkeypatch.setattr(durable.system, step, trouble)
    with pytest.raises(error) as caught:
        write_model(path, {"other": 1}, {"W": np.zeros(1000)})
    assert error is KeyboardInterrupt or str(path) in str(caught.value)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_a_full_disk_is_an_os_error_that_names_the_file_and_leaves_the_old_one(path):
    resource = pytest.importorskip("resource")
    write_model(path, HEADER, ARRAYS)
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, limits[1]))
        with pytest.raises(OSError, match=r"toy\.safetensors"):
            write_model(path, HEADER, {"W": np.zeros(2**18)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_a_missing_directory_is_named_with_the_path(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere.toy"):
        write_model(tmp_path / "nowhere" / "toy", {}, {})


def test_only_a_regular_file_is_replaced(tmp_path):
    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("directory", "pipe"):
        with pytest.raises(ModelFileError, match=name):
            write_model(tmp_path / name, {}, {})
    assert sorted(os.listdir(tmp_path)) == ["directory", "pipe"]
    assert os.listdir(tmp_path / "directory") == []


def test_a_symbolic_link_stays_and_its_file_is_replaced(tmp_path):
    write_model(tmp_path / "v1", HEADER, ARRAYS)
    (tmp_path / "current").symlink_to("v1")
    write_model(tmp_path / "current", {"v": 2}, {})
    assert (tmp_path / "current").is_symlink()
    assert read_model(tmp_path / "v1")[0] == read_model(tmp_path / "current")[0] == {"v": 2}


@pytest.mark.skipif(os.name != "posix", reason="permission bits of POSIX")
def test_a_new_file_has_the_usual_permissions_and_an_old_one_keeps_its_own(path):
    before = os.umask(0o027)
    try:
        write_model(path, {}, {})
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o604)
        write_model(path, {}, {})
        assert stat.S_IMODE(path.stat().st_mode) == 0o604
    finally:
        os.umask(before)


def test_names_are_taken_relative_to_the_working_directory_and_may_be_as_long_as_the_system_allows(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for name in ("plain", "ü" * 100, "x" * 255):
        write_model(name, HEADER, ARRAYS)
        assert_same_model(name, HEADER, ARRAYS)


# --- changed files ------------------------------------------------------------------------------------------


def test_a_file_cut_anywhere_is_refused_and_named(path, model_bytes):
    for length in range(len(model_bytes)):
        put(path, model_bytes[:length])
        refusal(path)


def test_a_file_with_something_added_is_refused(path, model_bytes):
    for extra in (b"\0", b" ", b"\0" * 8, model_bytes):
        put(path, model_bytes + extra)
        assert "is truncated or changed" in refusal(path)


def mutate(data, rng, first=0):
    """Change some bytes, from place `first` on, in one of the ways in which files get broken."""
    data = bytearray(data)
    at = rng.randrange(first, len(data))
    other = rng.randrange(first, len(data))
    length = rng.randint(1, 16)
    way = rng.choice(["flip", "set", "insert", "delete", "swap", "duplicate", "zero", "number"])
    if way == "flip":
        data[at] ^= 1 << rng.randrange(8)
    elif way == "set":
        data[at] = rng.randrange(256)
    elif way == "insert":
        data[at:at] = rng.randbytes(length)
    elif way == "delete":
        del data[at : at + length]
    elif way == "swap":
        data[at], data[other] = data[other], data[at]
    elif way == "duplicate":
        data[at:at] = data[other : other + length]
    elif way == "zero":
        data[at : at + length] = bytes(len(data[at : at + length]))
    else:
        numbers = [match.span() for match in re.finditer(rb"[0-9]+", bytes(data)) if match.start() >= first]
        begin, end = rng.choice(numbers)
        data[begin:end] = str(rng.choice([0, 1, 7, 8, 255, 2**31, 2**32, 2**63, 2**64 - 1, 2**64, 10**30])).encode()
    return bytes(data)


def test_thousands_of_mutations_are_all_refused_and_the_file_named(path, model_bytes):
    rng = random.Random(1)
    tried = 0
    while tried < 5000:
        changed = model_bytes
        for _ in range(rng.choice([1, 1, 1, 2, 5])):
            changed = mutate(changed, rng)
        if changed != model_bytes:
            put(path, changed)
            refusal(path)
            tried += 1


def test_every_single_byte_is_covered_by_the_digest(path, model_bytes):
    for at in range(len(model_bytes)):
        put(path, model_bytes[:at] + bytes([model_bytes[at] ^ 1]) + model_bytes[at + 1 :])
        refusal(path)


def test_messages_tell_what_happened_to_a_file(path, model_bytes):
    put(path, model_bytes[:-1])
    assert "is truncated or changed" in refusal(path)
    put(path, model_bytes[:100])
    assert "is not an aromatch model file, or it is truncated" in refusal(path)
    put(path, model_bytes.replace(b"sha256", b"sha257"))
    assert "is truncated or changed: it has no digest" in refusal(path)


# --- hostile files: changed on purpose, with the digest computed again --------------------------------------


def read_hostile(path):
    """Read a file that somebody made on purpose: it is refused, or it holds no more than its bytes."""
    size = path.stat().st_size
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    try:
        header, arrays = read_model(path)
    except ModelFileError as error:
        message, outcome = str(error), None
    else:
        message, outcome = str(path), (header, arrays)
        assert isinstance(header, dict)
        assert sum(array.nbytes for array in arrays.values()) <= size
        assert all(array.dtype in DTYPES for array in arrays.values())
    assert str(path) in message
    assert tracemalloc.get_traced_memory()[1] - before < 2**20 + 30 * size
    return outcome


@pytest.fixture
def traced():
    tracemalloc.start()
    yield
    tracemalloc.stop()


def test_thousands_of_mutations_under_a_new_digest_are_refused_or_harmless(path, model_bytes, traced):
    resource = pytest.importorskip("resource")
    rng = random.Random(2)
    # What the first reading loads, and what tests before this one left to be collected, is no cost of the others.
    gc.collect()
    put(path, model_bytes)
    read_hostile(path)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    head_length = int.from_bytes(model_bytes[:8], "little")
    refused = 0
    for _ in range(2000):
        head = mutate(model_bytes[8 : 8 + head_length], rng)
        if rng.random() < 0.2:
            head = mutate(head, rng)
        # Mostly the length is made to fit, so that the change is met behind the first check.
        length = len(head) if rng.random() < 0.9 else rng.choice([0, 1, len(head) - 1, len(head) + 1, 2**40, 2**63])
        put(path, seal(length.to_bytes(8, "little") + head + model_bytes[8 + head_length :]))
        if (outcome := read_hostile(path)) is None:
            refused += 1
        else:  # what is read here, safetensors reads as well
            assert {name: array.tolist() for name, array in safetensors.numpy.load_file(path).items()} == {
                name: array.tolist() for name, array in outcome[1].items()
            }
    assert 1000 < refused < 1900
    # What Rust allocates is not traced, so the whole process is watched as well (in KiB on Linux). It has tests beside
    # this one in it, whose leavings take tens of MiB at times; a length that somebody believed takes gigabytes.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 256 * 1024


def tensor(shape, dtype="F64", offsets=(0, 0)):
    return {"a": {"dtype": dtype, "shape": shape, "data_offsets": list(offsets)}}


@pytest.mark.parametrize(
    ("tensors", "data"),
    [
        (tensor([2**60], offsets=(0, 2**63)), b""),
        (tensor([2**40], offsets=(0, 2**43)), b"\0" * 8),
        (tensor([2**61 + 1], offsets=(0, 8)), b"\0" * 8),
        (tensor([2**32, 2**32, 1], offsets=(0, 0)), b""),
        (tensor([0, 10**15]), b""),
        (tensor([10**15, 0]), b""),
        (tensor([0, 2**63]), b""),
        (tensor([0, 2**16, 2**16]), b""),
        (tensor([0] + [2] * 17), b""),
        (tensor([1] * 100, offsets=(0, 8)), b"\0" * 8),
        (tensor([-1], offsets=(0, 8)), b"\0" * 8),
        (tensor([1.0], offsets=(0, 8)), b"\0" * 8),
        (tensor([1], offsets=(8, 16)), b"\0" * 16),
        (tensor([1], offsets=(0, 8)), b"\0" * 16),
        (tensor([1], offsets=(8, 0)), b"\0" * 8),
        ({**tensor([1], offsets=(0, 8)), "b": tensor([1], offsets=(0, 8))["a"]}, b"\0" * 8),
        (tensor([8], "U8", offsets=(0, 8)), b"\0" * 8),
        (tensor([4], "F16", offsets=(0, 8)), b"\0" * 8),
        (tensor([4], "BF16", offsets=(0, 8)), b"\0" * 8),
        (tensor([1], "C64", offsets=(0, 8)), b"\0" * 8),
        (tensor([8], "BOOL", offsets=(0, 8)), b"\0" * 8),
        (tensor([1], "U64", offsets=(0, 8)), b"\0" * 8),
        (tensor([16], "F4", offsets=(0, 8)), b"\0" * 8),
        (tensor([1], "O", offsets=(0, 8)), b"\0" * 8),
        ({"a": []}, b""),
        ({"a": None}, b""),
    ],
    ids=repr,
)
def test_arrays_that_do_not_add_up_are_refused_before_memory_is_taken(path, traced, tensors, data):
    put(path, forge({"header": {}}, tensors, data))
    assert read_hostile(path) is None


@pytest.mark.parametrize("length", [2**64 - 1, 2**63, 2**40, 2**31, 1000])
def test_a_length_beyond_the_file_is_refused_before_memory_is_taken(path, traced, model_bytes, length):
    put(path, seal(length.to_bytes(8, "little") + model_bytes[8:]))
    assert read_hostile(path) is None
    assert "truncated" in refusal(path)


def test_a_header_longer_than_any_model_has_is_refused_unread(path, traced):
    put(path, (64 * 2**20).to_bytes(8, "little"))
    os.truncate(path, 65 * 2**20)
    assert "has a header of 67,108,864 bytes" in refusal(path)
    assert tracemalloc.get_traced_memory()[1] < 2**20


def metadata(inner):
    return '{"format":1,"sha256":"' + "0" * 64 + '","header":' + inner


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (metadata('{"a":NaN}}'), "header['a'] must be finite"),
        (metadata('{"a":[-Infinity]}}'), "header['a'][0] must be finite"),
        (metadata('{"a":1e999}}'), "header['a'] must be finite"),
        (metadata('{"a":1,"a":1}}'), "a duplicate key"),
        (metadata('{},"header":{}}'), "a duplicate key"),
        (metadata('{"a":{"b":[{"c":1,"c":2}]}}}'), "a duplicate key"),
        (metadata('{"a":' + "9" * 1001 + "}}"), "an integer of 1,001 digits"),
        (metadata('{"a":-' + "9" * 1_000_000 + "}}"), "digits"),
        (metadata('{"a":' + "[" * 100_000 + "]" * 100_000 + "}}"), "recursion"),
        (metadata('{"a":' + '{"a":' * 200 + "1" + "}" * 200 + "}}"), "nested at most 64 deep"),
        (metadata('{"a":"\\ud800"}}'), "header['a'] must be valid Unicode"),
        (metadata("[]}"), "header must be a dict, got list"),
        (metadata("null}"), "header must be a dict, got NoneType"),
        (metadata('"x"}'), "header must be a dict, got str"),
        (metadata('{},"more":1}'), "must contain format, sha256 and header"),
        (metadata("{}}")[:-1] + " x", "not a valid aromatch model file"),
        (metadata("{}").replace('"header":{}', '"other":{}}'), "must contain format, sha256 and header"),
        (metadata("{}}").replace('"format":1', '"format":0'), "format must be at least 1"),
        (metadata("{}}").replace('"format":1', '"format":00'), "not a valid aromatch model file"),
        (
            metadata("{}}").replace('"format":1', '"format":2'),
            "was written by a newer aromatch: its format is 2",
        ),
        (
            metadata("[],1}").replace('"format":1', '"format":999')[:-3] + "}",
            "was written by a newer aromatch",
        ),
        ("[" + metadata("{}}") + "]", "it has no digest"),
        (metadata("{}}").replace('"format":1', '"format":true'), "it has no digest"),
        ("", "it has no digest"),
    ],
    ids=lambda value: value[:12] + "..." + value[86:120],
)
def test_metadata_that_no_save_would_write_is_refused_with_its_reason(path, traced, text, message):
    put(path, forge(text=text))
    assert message in refusal(path)
    assert read_hostile(path) is None


def test_a_length_that_reaches_one_byte_past_the_file_is_refused(path, model_bytes):
    put(path, seal((len(model_bytes) - 7).to_bytes(8, "little") + model_bytes[8:]))
    assert "truncated" in refusal(path)


def test_metadata_of_the_wrong_kind_is_refused(path):
    good = '{"aromatch":' + json.dumps(metadata("{}}")) + "}"
    for kind in (
        good[:-1] + ',"b":1}',
        "[" + good + "]",
        good + ',"__metadata__":{}',
        "null",
        '{"b":' + good + "}",
    ):
        head = ('{"__metadata__":' + kind + "}").encode()
        put(path, seal(len(head).to_bytes(8, "little") + head))
        refusal(path)


def test_a_digest_outside_of_the_metadata_makes_no_model(path):
    # The place of the digest is found before the header is understood; here it is found in a lookalike.
    fake = '"x":{"aromatch":' + json.dumps(metadata("{}}")) + ',"dtype":"F32","shape":[0],"data_offsets":[0,0]}'
    real = json.dumps({"aromatch": metadata("{}}").replace("1", "true", 1)})
    for kind in ("null", "{}", '{"b":"c"}', real):
        head = "{" + fake + ',"__metadata__":' + kind + "}"
        put(path, seal(len(head).to_bytes(8, "little") + head.encode()))
        assert "the digest is not in the metadata" in refusal(path)


# --- files of others ----------------------------------------------------------------------------------------


class Bomb:
    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return os.mkdir, (str(self.target),)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_is_refused_and_not_executed(path, tmp_path, protocol):
    put(path, pickle.dumps(Bomb(tmp_path / "executed"), protocol=protocol))
    assert "is not an aromatch model file" in refusal(path)
    assert not (tmp_path / "executed").exists()


def test_a_numpy_archive_is_refused(path):
    with path.open("wb") as file:
        np.savez(file, **ARRAYS)
    assert "is not an aromatch model file" in refusal(path)


@pytest.mark.parametrize(
    "content",
    [
        b"\x01",
        b"\0" * 8,
        b"\0" * 100,
        b'{"learner": "toy"}',
        "Grüße, Welt\n".encode() * 50,
        b"\x02" + b"\0" * 7 + b"[]",
    ],
    ids=repr,
)
def test_text_and_bytes_of_any_kind_are_refused(path, content):
    put(path, content)
    assert "is not an aromatch model file" in refusal(path)


def test_random_bytes_are_refused(path):
    rng = random.Random(3)
    for _ in range(300):
        data = rng.randbytes(rng.randrange(300))
        put(path, rng.choice([b"", b"\x10\0\0\0\0\0\0\0", b"\x10\0\0\0\0\0\0\0{"]) + data)
        refusal(path)


def test_an_empty_file_is_refused(path):
    path.touch()
    assert "is empty" in refusal(path)


@pytest.mark.parametrize("meta", [None, {}, {"format": "pt"}, {"other": '{"format":1}'}], ids=repr)
def test_a_safetensors_file_of_another_program_is_told_apart(path, meta):
    safetensors.numpy.save_file({"W": np.ones(3)}, path, metadata=meta)
    assert "is a safetensors file but not an aromatch model" in refusal(path)


def test_a_directory_and_a_pipe_are_refused(tmp_path):
    assert "is a directory" in refusal(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    assert "is not a regular file" in refusal(tmp_path / "pipe")


def test_a_missing_file_is_a_file_not_found_error_that_names_it(path):
    with pytest.raises(FileNotFoundError, match=path.name):
        read_model(path)


def test_a_path_through_a_file_is_refused(path):
    put(path, b"x")
    assert "cannot be read" in refusal(path / "inner")


# --- around the library and the system ----------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError])
def test_interrupts_and_lack_of_memory_are_not_blamed_on_the_file(path, monkeypatch, model_bytes, error):
    def broken(*args, **kwargs):
        raise error

    put(path, model_bytes)
    monkeypatch.setattr(store, "check_fits_in_memory", broken)
    with pytest.raises(error):
        read_model(path)


def test_a_model_larger_than_the_memory_is_refused_before_it_is_loaded(path, monkeypatch):
    write_model(path, {}, {"W": np.zeros(1000)})
    monkeypatch.setattr(_checks, "available_memory", lambda: 7999)
    with pytest.raises(MemoryError, match=r"toy.safetensors would take 8,000 bytes"):
        read_model(path)
    monkeypatch.setattr(_checks, "available_memory", lambda: 8000)
    assert read_model(path)[1]["W"].shape == (1000,)


def test_a_file_replaced_whenever_it_is_read_gives_the_model_that_was_opened(path, monkeypatch):
    write_model(path, {"v": 1}, {"W": np.zeros(3)})
    # The second one has the length and the layout of the first.
    monkeypatch.setattr(store, "check_fits_in_memory", lambda *_: write_model(path, {"v": 2}, {"W": np.ones(3)}))
    assert_same_model(path, {"v": 1}, {"W": np.zeros(3)})
    monkeypatch.undo()
    assert_same_model(path, {"v": 2}, {"W": np.ones(3)})


@pytest.mark.parametrize("change", [b"\x7f", b""], ids=["changed", "shortened"])
def test_a_file_changed_in_place_while_it_is_read_is_refused(path, monkeypatch, change):
    write_model(path, {}, {"W": np.zeros(2**16)})

    def change_it(*_):
        with path.open("r+b") as file:
            file.seek(-1, os.SEEK_END)
            file.write(change)
            file.truncate()

    monkeypatch.setattr(store, "check_fits_in_memory", change_it)
    assert "is truncated or changed" in refusal(path)


MEASURE = """
import re, sys
import numpy as np
from aromatch.io.container import read_model, write_model

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024

if sys.argv[1] == "write":
    array = np.ones(8 * 2**20)
    before = peak()
    write_model(sys.argv[2], {}, {"W": array})
else:
    before = peak()
    model = read_model(sys.argv[2])
print(peak() - before)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs Linux to measure the memory")
def test_saving_takes_no_second_copy_of_the_arrays_and_loading_takes_one(path):
    growth = {}
    for step in ("write", "read"):
        command = [sys.executable, "-c", MEASURE, step, str(path)]
        growth[step] = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    # The array is 64 MiB.
    assert growth["write"] < 8
    assert 60 < growth["read"] < 72

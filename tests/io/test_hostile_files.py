"""Files that lie about their sizes or their structure are refused before anything of that size is allocated."""

import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from scipy import sparse

from aromatch._utils.checks import machine_memory, set_max_memory
from aromatch.exceptions import InsufficientMemoryError
from aromatch.io.arrays import read_npy
from aromatch.io.items import read_items
from aromatch.io.limits import MAX_EXPANSION, MIN_LIMIT, check_memory
from aromatch.triplets import from_qrels

ROWS = sparse.csr_array(np.arange(1.0, 17.0).reshape(4, 4))


@pytest.fixture
def limited():
    yield set_max_memory
    set_max_memory(None)


def save_sparse(path, kind, **changes):
    """Save a sparse matrix as SciPy does, with some of its arrays replaced."""
    matrix = ROWS.asformat(kind)
    names = {"coo": ["row", "col"], "dia": ["offsets"]}.get(kind, ["indices", "indptr"])
    arrays = {name: getattr(matrix, name) for name in ("data", *names)}
    np.savez(path, **{"format": np.array(kind), "shape": np.array(matrix.shape), **arrays, **changes})
    return path


def save_zeros(path, n_bytes):
    """Save a compressed matrix of zeros."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file, file.open("X.npy", "w") as member:
        shape = (n_bytes // 800, 100)
        header = {"descr": "<f8", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(member, header)
        for _ in range(n_bytes // 2**20 + 1):
            member.write(bytes(2**20))
    return path


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo", "dia"])
def test_sparse_matrices_of_scipy_are_read_in_every_format_it_saves(tmp_path, kind):
    sparse.save_npz(tmp_path / "by_scipy.npz", ROWS.asformat(kind))
    for path in (tmp_path / "by_scipy.npz", save_sparse(tmp_path / "x.npz", kind)):
        assert np.array_equal(read_items(path).vectors.toarray(), ROWS.toarray())


FAR = np.full(16, 10**8, np.int32)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("csr", {"indices": FAR}),
        ("csc", {"indices": FAR}),
        ("csc", {"indices": np.full(16, -1, np.int8)}),
        ("csc", {"indptr": np.array([0, 4, 8, 12, 10**8])}),
        ("csc", {"indptr": np.array([0, 12, 8, 12, 16])}),
        ("csr", {"shape": np.array([4])}),
        ("csr", {"shape": np.array([4, -4])}),
        ("csr", {"shape": np.array([4, 2**80], dtype=object).astype(float)}),
        ("csr", {"indptr": np.zeros((5, 5), np.int64)}),
        ("csr", {"data": np.array(["a"] * 16)}),
        ("bsr", {"indices": FAR[:4]}),
        ("bsr", {"data": np.zeros((4, 0, 0))}),
        ("coo", {"row": FAR}),
        ("coo", {"col": FAR[:3]}),
        ("dia", {"offsets": np.array([-(2**31), -2, -1, 0, 1, 2, 2**31 - 1])}),
        ("lil", {}),
    ],
)
def test_a_sparse_matrix_in_a_file_whose_arrays_point_outside_is_refused(tmp_path, kind, changes):
    path = save_sparse(
        tmp_path / "x.npz", "csr" if kind == "lil" else kind, **({"format": "lil"} if kind == "lil" else changes)
    )
    with pytest.raises((ValueError, TypeError), match=r"x\.npz"):
        read_items(path)


HEADER = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }"


@pytest.mark.parametrize(
    "header",
    [
        HEADER.replace("(2, 2), }", "(2, 2, }"),  # tokenize.TokenError in NumPy
        HEADER.replace("(2, 2)", "(" * 200 + ")" * 200),
        HEADER.replace("(2, 2)", "(-2, 2)"),
        HEADER.replace("(2, 2)", "(2**62, 2)"),
        HEADER.replace("(2, 2)", "(9223372036854775807, 9223372036854775807)"),
        HEADER.replace("(2, 2)", "(0, 9223372036854775807)"),
        HEADER.replace("<f8", "<U0").replace("(2, 2)", "(999999999, 2)"),
        HEADER.replace("<f8", "|O"),
        HEADER.replace("'<f8'", "[('a', '<f8')]"),
        HEADER.replace("<f8", "nothing"),
        HEADER.replace("'shape'", "'form'"),
        "\0" * 60,
        "",
    ],
)
@pytest.mark.parametrize("name", ["x.npy", "x.npz"])
def test_an_array_with_a_broken_header_is_refused_by_name(tmp_path, header, name):
    text = header.ljust(117) + "\n"
    content = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + np.ones(4).tobytes()
    path = tmp_path / name
    if name == "x.npy":
        path.write_bytes(content)
    else:
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("X.npy", content)
    with pytest.raises(ValueError, match=f"{name} is not a valid .{name[-3:]} file"):
        read_items(path)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("point", [0x7FFFFFFF, 0x110000, 0xD800])
def test_text_in_an_array_that_is_not_unicode_is_refused(tmp_path, order, point):
    ids = np.array(["a", "b"], dtype=f"{order}U2")
    np.savez(tmp_path / "x.npz", X=np.eye(2), ids=ids)
    assert read_items(tmp_path / "x.npz").ids == ["a", "b"]
    ids.view(f"{order}u4")[1] = point
    np.savez(tmp_path / "x.npz", X=np.eye(2), ids=ids)
    with pytest.raises(ValueError, match="not valid Unicode"):
        read_items(tmp_path / "x.npz")
    np.save(tmp_path / "y.npy", ids)
    with pytest.raises(ValueError, match="not valid Unicode"):
        read_npy(tmp_path / "y.npy")


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("x.svm", "1 2000000000:1\n2 1:1\n", "x.svm would take 64,000"),
        ("x.svm", "1 1:1\n2 99999999999999999999:1\n", "x.svm, line 2: a number is too large"),
        ("x.svm", "1 1:1\n99999999999999999999999999 2:1 qid:99999999999999999999\n", "x.svm, line 2"),
        ("x.jsonl", '{"vector": [' + "9" * 5000 + "]}", "x.jsonl, line 1 is not JSON"),
        ("x.jsonl", '{"vector": [1' + "0" * 400 + "]}", "x.jsonl, line 1: number 0 of the vector must be a finite"),
        ("x.csv", "a," * 10**5 + "a\n", "x.csv, line 1: the column 'a' occurs twice"),
    ],
)
def test_a_short_text_that_asks_for_much_is_refused(tmp_path, name, content, says):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the message is looked at below
        read_items(path)
    assert says in str(error.value)


def test_a_matrix_of_any_width_and_height_must_fit_the_limit(tmp_path, limited):
    path = save_sparse(tmp_path / "x.npz", "coo", shape=np.array([10**9, 4]))
    with pytest.raises(InsufficientMemoryError, match=r"x\.npz would take 256,000,.* --max-memory sets another limit"):
        read_items(path)
    np.save(tmp_path / "x.npy", np.ones((1000, 10), np.int8))
    limited(50_000)
    with pytest.raises(InsufficientMemoryError, match=r"x\.npy would take 80,000 bytes .* expected at most 50,000"):
        read_items(tmp_path / "x.npy")


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_lines_are_counted_against_the_limit_while_they_are_read(tmp_path, limited, kind):
    path = tmp_path / f"x.{kind}"
    path.write_text(("1\n" if kind == "csv" else '{"vector":[1]}\n') * 70_000)
    assert len(read_items(path)) == 70_000
    limited(10**7)
    with pytest.raises(InsufficientMemoryError, match=f"x.{kind} would take 1[67],.* expected at most 10,000,000"):
        read_items(path)


def test_the_files_of_a_folder_are_counted_against_the_limit_while_they_are_read(tmp_path, limited):
    for number in range(300):
        (tmp_path / f"{number}.txt").write_text("words " * 100)
    assert len(read_items(tmp_path)) == 300
    limited(10**5)
    with pytest.raises(InsufficientMemoryError, match=r"would take .* expected at most 100,000 for 153,600 bytes"):
        read_items(tmp_path)


def test_a_line_without_an_end_is_not_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr("aromatch.io.records.MAX_LENGTH", 1000)
    for name in ("x.csv", "x.jsonl"):
        (tmp_path / name).write_text("1" * 5000)
        with pytest.raises(ValueError, match=f"{name}, line 1 has 1,000 characters or more"):
            read_items(tmp_path / name)
    (tmp_path / "qrels").write_text("1" * 5000)
    with pytest.raises(ValueError, match="qrels, line 1 has 1,000 characters or more"):
        from_qrels(tmp_path / "qrels", ["a"], ["b"])


def test_judgements_that_are_not_utf_8_are_refused_by_name(tmp_path):
    (tmp_path / "qrels").write_bytes(b"a 0 b 1\na 0 \xff 1\n")
    with pytest.raises(ValueError, match=r"qrels is not UTF-8 after line \d"):
        from_qrels(tmp_path / "qrels", ["a"], ["b"])


def test_the_limit_is_what_the_file_and_the_machine_justify_unless_the_user_sets_one(tmp_path, limited):
    path = tmp_path / "x"
    path.write_bytes(bytes(100))
    check_memory(path, MIN_LIMIT)
    with pytest.raises(InsufficientMemoryError, match="for 100 bytes on disk"):
        check_memory(path, MIN_LIMIT + 1)
    with path.open("r+b") as file:
        file.truncate(10**12)  # takes no space on disk
    with pytest.raises(InsufficientMemoryError, match=f"expected at most {machine_memory() // 2:,} for"):
        check_memory(path, machine_memory() // 2 + 1)
    limited(1000)
    check_memory(path, 1000)
    with pytest.raises(InsufficientMemoryError, match="expected at most 1,000 for"):
        check_memory(path, 1001)
    assert MAX_EXPANSION == 100


READER = """
import json, re, sys
from pathlib import Path
from aromatch._utils.checks import set_max_memory
from aromatch.io.items import read_items

def peak():
    return 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

set_max_memory(int(sys.argv[2]))
before = peak()
try:
    read_items(sys.argv[1])
    message = ""
except ValueError as error:
    message = str(error)
print(json.dumps([message, peak() - before]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process's memory is read from /proc")
def test_an_archive_that_expands_beyond_the_limit_takes_no_memory(tmp_path):
    size = 256 * 2**20
    path = save_zeros(tmp_path / "bomb.npz", size)
    assert size > 100 * path.stat().st_size

    def read(limit):
        command = [sys.executable, "-c", READER, str(path), str(limit)]
        return json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)

    message, n_bytes = read(size // 2)
    assert "bomb.npz would take 268,4" in message
    assert n_bytes < size // 8
    message, n_bytes = read(4 * size)
    assert message == ""
    assert n_bytes > size // 2

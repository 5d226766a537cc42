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
from aromatch.io.record_log import read_log
from aromatch.triplets import from_clicks, from_qrels
from aromatch.workflows.train import TrainOptions, train

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
        ("x.svm", "1 2000000000:1\n2 1:1\n", "x.svm with 2 rows of 2,000,000,000 features would take 256,000"),
        ("x.svm", "1 9000000:1\n2 1:1\n", "x.svm with 2 rows of 9,000,000 features would take 1,152,000"),
        ("x.svm", f"{'a' * 10**6} 1:1\n", "x.svm, line 1: could not convert string to float: b'aaa"),
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
    assert len(str(error.value)) < len(str(path)) + 400


def test_a_matrix_of_any_width_and_height_must_fit_the_limit(tmp_path, limited):
    path = save_sparse(tmp_path / "x.npz", "coo", shape=np.array([10**9, 4]))
    with pytest.raises(
        InsufficientMemoryError,
        match=r"x\.npz with 1,000,000,000 rows of 4 features would take 256,000,.* --max-memory sets another limit",
    ):
        read_items(path)
    np.save(tmp_path / "x.npy", np.ones((1000, 10), np.int8))
    limited(300_000)
    with pytest.raises(InsufficientMemoryError, match=r"x\.npy would take 336,000 bytes .* expected at most 300,000"):
        read_items(tmp_path / "x.npy")


@pytest.mark.parametrize("dtype", ["int8", "bool", "uint64", "float16", "longdouble", ">f4", ">f8"])
def test_a_matrix_counts_what_it_takes_after_its_conversion(tmp_path, limited, dtype):
    X = np.arange(30_000).reshape(300, 100) % 2
    np.savez_compressed(tmp_path / "x.npz", X=X.astype(dtype))
    np.save(tmp_path / "x.npy", X.astype(dtype))
    n_bytes = 300 * 256 + (4 if np.dtype(dtype) in (np.float16, np.dtype(">f4")) else 8) * X.size
    for name, n in (("x.npy", n_bytes), ("x.npz", n_bytes + X.size * np.dtype(dtype).itemsize)):
        limited(n)
        assert np.array_equal(read_items(tmp_path / name).vectors, X)
        assert read_items(tmp_path / name).vectors.dtype in (np.float32, np.float64)
        limited(n - 1)
        with pytest.raises(InsufficientMemoryError, match=f"{name} would take {n:,} bytes"):
            read_items(tmp_path / name)


def test_ids_and_labels_of_arrays_are_counted_as_str_before_they_are_read(tmp_path, limited):
    for kind, n_bytes in (("U", 2 * 4), ("S", 4)):
        ids = np.array(["a" * 10_000, "b"], dtype=f"{kind}10000")
        np.savez_compressed(tmp_path / "x.npz", X=np.eye(2), ids=ids, labels=ids)
        limited(2**30)
        assert len(read_items(tmp_path / "x.npz")) == 2
        limited(2 * 2 * 10_000 * n_bytes)
        with pytest.raises(InsufficientMemoryError, match=r"x\.npz would take"):
            read_items(tmp_path / "x.npz")


def test_the_entries_and_rows_of_svmlight_are_counted_before_they_are_parsed(tmp_path, limited, monkeypatch):
    (tmp_path / "x.svm").write_text("1 " + " ".join(f"{at}:1" for at in range(1, 1000)) + "\n1 1:1")
    limited(200_000)
    assert len(read_items(tmp_path / "x.svm")) == 2
    limited(96_000)
    monkeypatch.setattr("aromatch.io.arrays.load_svmlight_file", None)
    with pytest.raises(InsufficientMemoryError, match=r"x\.svm would take 96,512 bytes .* expected at most 96,000"):
        read_items(tmp_path / "x.svm")


@pytest.mark.parametrize("content", ["0," * 20_000 + "0\n", '"\n",' * 300_000 + "0\n", "a" * 2**21 + ",0\n"])
def test_a_wide_or_long_row_of_csv_is_counted_before_it_is_parsed(tmp_path, limited, content):
    (tmp_path / "x.csv").write_text(content)
    limited(3 * 10**6)
    with pytest.raises(InsufficientMemoryError, match=r"x\.csv would take"):
        read_items(tmp_path / "x.csv")


LONG = "x" * 10**5


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.jsonl", f'{{"id": "{LONG}", "vector": [1]}}\n' * 2),
        ("x.jsonl", f'{{"id": ["{LONG}"], "vector": [1]}}\n'),
        ("x.jsonl", f'{{"id": 1, "{LONG}": [1]}}\n'),
        ("x.jsonl", f'{{"id": 1, "vector": ["{LONG}"]}}\n'),
        ("x.csv", f"id,{LONG},{LONG}\n1,2,3\n"),
        ("x.csv", f"id,f\n1,{LONG}\n"),
        ("x.csv", f"id,f\n{LONG},1\n{LONG},1\n"),
    ],
)
def test_messages_show_the_beginning_of_a_long_id_name_or_value(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=r"x\.\w+") as error:
        read_items(tmp_path / name)
    assert len(str(error.value)) < len(str(tmp_path)) + 400


# -- headers of arrays ------------------------------------------------------------------------------------------------

LENGTH_BYTES = {1: 2, 2: 4, 3: 4}


def array_bytes(version, *, declared=None, text=HEADER, pad=0):
    """The bytes of an array whose header declares another length."""
    text = text.ljust(117 + pad) + "\n"
    length = (len(text) if declared is None else declared).to_bytes(LENGTH_BYTES[version], "little")
    return b"\x93NUMPY" + bytes([version, 0]) + length + text.encode() + np.arange(4.0).tobytes()


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("method", [None, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_headers_of_every_version_are_read_up_to_the_limit(tmp_path, version, method):
    path = tmp_path / ("x.npy" if method is None else "x.npz")

    def save(content):
        if method is None:
            path.write_bytes(content)
        else:
            with zipfile.ZipFile(path, "w", method) as file:
                file.writestr("X.npy", content)

    for pad in (0, 9_000):
        save(array_bytes(version, pad=pad))
        assert np.array_equal(read_items(path).vectors, np.arange(4.0).reshape(2, 2))
    save(array_bytes(version, pad=20_000))
    with pytest.raises(ValueError, match="declares a header of 20,118 bytes, expected at most 10,000"):
        read_items(path)
    most = 2 ** (8 * LENGTH_BYTES[version]) - 1
    for declared in (1_000, 10_001, most):
        save(array_bytes(version, declared=declared))
        with pytest.raises(ValueError, match=rf"{path.name} is not a valid .* expected|EOF"):
            read_items(path)
    for size in range(12):
        save(array_bytes(version)[:size])
        with pytest.raises(ValueError, match=f"{path.name} is not a valid"):
            read_items(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_members_that_cannot_be_expanded_in_parts_are_refused_with_the_method(tmp_path, method):
    with zipfile.ZipFile(tmp_path / "x.npz", "w", method) as file:
        file.writestr("X.npy", array_bytes(1))
    with pytest.raises(ValueError, match=rf"x\.npz .*X\.npy is compressed by the method {method} of ZIP, expected 0"):
        read_items(tmp_path / "x.npz")


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_lines_are_counted_against_the_limit_while_they_are_read(tmp_path, limited, kind):
    path = tmp_path / f"x.{kind}"
    path.write_text(("1\n" if kind == "csv" else '{"vector":[1]}\n') * 70_000)
    assert len(read_items(path)) == 70_000
    limited(10**7)
    with pytest.raises(InsufficientMemoryError, match=f"x.{kind} would take 12,.* expected at most 10,000,000"):
        read_items(path)


def test_the_lines_of_judgements_clicks_and_logs_are_counted_against_the_limit(tmp_path, limited):
    n = 20_000
    (tmp_path / "qrels").write_text("a 0 b 1\n" * n)
    (tmp_path / "x.jsonl").write_text('{"query": "a", "better": "b", "worse": "c"}\n' * n)
    (tmp_path / "x.csv").write_text("query,shown,clicked\n" + "a,b c,b\n" * n)
    readers = {
        "qrels": lambda: from_qrels(tmp_path / "qrels", ["a"], ["b", "c"]),
        "x.jsonl": lambda: read_log(tmp_path / "x.jsonl"),
        "x.csv": lambda: from_clicks(tmp_path / "x.csv", ["a"], ["b", "c"], random_state=0),
    }
    for read in readers.values():
        read()
    limited(10**6)
    for name, read in readers.items():
        with pytest.raises(InsufficientMemoryError, match=f"{name} would take 4,.* expected at most 1,000,000"):
            read()


def test_arrays_of_labels_and_triplets_are_counted_against_the_limit(tmp_path, limited):
    np.savez(tmp_path / "x.npz", X=np.eye(4))
    np.save(tmp_path / "labels.npy", np.array(["a" * 1000, "b"] * 2))
    np.save(tmp_path / "triplets.npy", np.zeros((10_000, 3), np.int8))
    for kind, n_bytes in (("labels", 16_000), ("triplets", 240_000)):
        limited(n_bytes - 1)
        options = TrainOptions(str(tmp_path / "x.npz"), str(tmp_path / "m"), **{kind: str(tmp_path / f"{kind}.npy")})
        with pytest.raises(InsufficientMemoryError, match=rf"{kind}\.npy would take {n_bytes:,} bytes"):
            train(options)


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


PEAK = """
import json, re, sys
from pathlib import Path

def peak():
    return 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

"""
READER = """
from aromatch._utils.checks import set_max_memory
from aromatch.io.items import read_items

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

    message, n_bytes = read_in_child(path, size // 2)
    assert "bomb.npz would take 354,3" in message
    assert n_bytes < size // 8
    message, n_bytes = read_in_child(path, 4 * size)
    assert message == ""
    assert n_bytes > size // 2


def read_in_child(path, limit):
    """Read a file in a new process; return the message of the error and the peak of the memory."""
    command = [sys.executable, "-c", PEAK + READER, str(path), str(limit)]
    return json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


def save_header_bomb(path):
    """A header of 256 MiB in a file of 256 KiB."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file, file.open("X.npy", "w") as member:
        member.write(b"\x93NUMPY\x02\x00" + (2**28).to_bytes(4, "little"))
        for _ in range(2**8):
            member.write(b" " * 2**20)


def save_bzip2_bomb(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as file, file.open("X.npy", "w") as member:
        member.write(array_bytes(1, text=HEADER.replace("(2, 2)", "(2**25, 1)")))
        for _ in range(2**8):
            member.write(bytes(2**20))


def save_long_ids(path):
    ids = np.array(["a" * 100_000] + ["b"] * 599)
    np.savez_compressed(path, X=np.eye(600), ids=ids)


def save_integers(path):
    np.savez_compressed(path, X=np.zeros((40_000, 1_000), np.int8))


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process's memory is read from /proc")
@pytest.mark.parametrize("save", [save_header_bomb, save_bzip2_bomb, save_long_ids, save_integers])
def test_a_small_file_takes_no_more_than_its_limit(tmp_path, save):
    limit = 2**28
    save(path := tmp_path / "x.npz")
    assert path.stat().st_size < limit // 500
    message, n_bytes = read_in_child(path, limit)
    assert "x.npz" in message
    assert n_bytes < 2**25


TRAINER = """
from aromatch._utils.checks import set_max_memory
from aromatch.workflows.fitting import LearnerOptions
from aromatch.workflows.train import TrainOptions, train

set_max_memory(int(sys.argv[3]))
before = peak()
try:
    learner = LearnerOptions(sys.argv[4], n_triplets=200)
    train(TrainOptions(sys.argv[1], sys.argv[2], learner=learner, hold_out=0.2, force=True))
    message = ""
except ValueError as error:
    message = str(error)
print(json.dumps([message, peak() - before]))
"""


def train_in_child(path, limit, learner):
    """Train on a file in a new process; return the message of the error and the peak of the memory."""
    command = [sys.executable, "-c", PEAK + TRAINER, str(path), f"{path}.model", str(limit), learner]
    return json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process's memory is read from /proc")
@pytest.mark.parametrize("learner", ["diagonal", "auto"])
def test_training_on_a_wide_sparse_file_takes_no_more_than_was_counted(tmp_path, learner):
    width, path = 1_500_000, tmp_path / "x.svm"
    rows = [f"{row % 3} " + " ".join(f"{3 * at + row % 3 + 1}:{at + row}" for at in range(5)) for row in range(1, 91)]
    rows[0] += f" {width}:1"
    path.write_text("\n".join(rows))
    counted = 451 * 48 + 90 * 256 + width * 128
    message, n_bytes = train_in_child(path, counted - 1, learner)
    assert f"x.svm with 90 rows of {width:,} features would take {counted:,} bytes" in message
    assert n_bytes < counted // 4
    message, n_bytes = train_in_child(path, counted, learner)
    assert message == ""
    assert counted / 4 < n_bytes < counted


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process's memory is read from /proc")
@pytest.mark.parametrize(("learner", "n_copies", "dtype"), [("diagonal", 3, "float32"), ("auto", 6, "float64")])
def test_training_on_dense_vectors_takes_no_more_than_the_copies_that_were_counted(tmp_path, learner, n_copies, dtype):
    generator, path = np.random.default_rng(0), tmp_path / "x.npz"
    y = np.arange(20_000) % 500
    X = (generator.normal(size=(500, 200))[y] + generator.normal(size=(len(y), 200))).astype(dtype)
    np.savez(path, X=X, labels=y)
    counted = n_copies * X.size * 8
    message, n_bytes = train_in_child(path, counted - 1, learner)
    assert f"training on {path} ({n_copies} copies of {X.size:,} values) would take" in message
    assert n_bytes < X.nbytes + len(y) * 1024
    message, n_bytes = train_in_child(path, 2**32, learner)
    assert message == ""
    assert n_bytes < X.nbytes + counted + 2**26  # a block of scores, and the rows

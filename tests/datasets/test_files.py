"""Where data files are looked for, and whether they are whole."""

import hashlib
from pathlib import Path

import pytest

from aromatch.datasets import (
    DataFileError,
    data_folder,
    load_20newsgroups,
    load_caltech101_50,
    load_caltech256,
    load_caltech256_10,
)
from aromatch.datasets._files import check_digest

LOADERS = [
    (lambda folder: load_20newsgroups(folder=folder), "http://qwone.com/~jason/20Newsgroups/", "20news.jsonl.xz"),
    (load_caltech101_50, "https://data.caltech.edu/records/mzrjq-6wc02", "101_ObjectCategories"),
    (load_caltech256, "https://data.caltech.edu/records/nyy15-4j048", "256_ObjectCategories.tar"),
    (load_caltech256_10, "https://data.caltech.edu/records/nyy15-4j048", "caltech256_10.tar"),
]


def test_the_argument_comes_before_the_variable_and_the_variable_before_the_home_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AROMATCH_DATA", "from/the/variable")
    assert data_folder("given") == Path("given")
    assert data_folder("~/given") == tmp_path / "given"
    assert data_folder() == Path("from/the/variable")
    monkeypatch.setenv("AROMATCH_DATA", "~/elsewhere")
    assert data_folder() == tmp_path / "elsewhere"
    for unset in (lambda: monkeypatch.setenv("AROMATCH_DATA", ""), lambda: monkeypatch.delenv("AROMATCH_DATA")):
        unset()
        assert data_folder() == tmp_path / "aromatch_data"


@pytest.mark.parametrize(("load", "source", "what"), LOADERS)
@pytest.mark.parametrize("exists", [True, False])
def test_missing_data_is_one_sentence_with_the_official_source_and_the_folder(tmp_path, load, source, what, exists):
    place = tmp_path / "data"
    if exists:
        place.mkdir()
    with pytest.raises(FileNotFoundError) as error:
        load(place)
    message = str(error.value)
    assert source in message
    assert what in message
    assert f"is not in {place}" in message
    assert "AROMATCH_DATA" in message
    assert ". " not in message
    assert "\n" not in message
    # Whoever only looks gets no new folders or files.
    assert [path.name for path in tmp_path.rglob("*")] == (["data"] if exists else [])


@pytest.mark.parametrize("algorithm", ["sha256", "md5"])
@pytest.mark.parametrize("size", [0, 1, 2**22, 2**22 + 5])
def test_a_checksum_is_that_of_the_whole_file(tmp_path, algorithm, size):
    path = tmp_path / "data.bin"
    path.write_bytes(bytes(size - 1) + b"x" if size else b"")
    expected = hashlib.new(algorithm, path.read_bytes()).hexdigest()
    check_digest(path, expected, algorithm=algorithm)
    with pytest.raises(DataFileError) as error:
        check_digest(path, "0" * len(expected), algorithm=algorithm)
    for part in (str(path), algorithm, "0" * len(expected), expected):
        assert part in str(error.value)


def test_a_file_that_changes_between_two_calls_is_read_again(tmp_path):
    path = tmp_path / "data.bin"
    path.write_bytes(b"before")
    right = hashlib.sha256(b"before").hexdigest()
    check_digest(path, right)
    path.write_bytes(b"later and longer")
    with pytest.raises(DataFileError, match="checksum"):
        check_digest(path, right)


@pytest.mark.parametrize(
    ("load", "name", "algorithm"),
    [
        (lambda folder: load_20newsgroups(folder=folder), "20news.jsonl.xz", "sha256"),
        (load_caltech101_50, "caltech101_50.tar", "sha256"),
        (load_caltech256, "256_ObjectCategories.tar", "md5"),
        (load_caltech256_10, "caltech256_10.tar", "sha256"),
    ],
)
@pytest.mark.parametrize("itself", [False, True])
def test_a_file_with_another_checksum_is_refused_by_name(tmp_path, load, name, algorithm, itself):
    path = tmp_path / name
    path.write_bytes(b"something else")
    with pytest.raises(DataFileError) as error:
        load(path if itself else tmp_path)
    assert str(path) in str(error.value)
    assert hashlib.new(algorithm, b"something else").hexdigest() in str(error.value)

"""Collections from files and folders: what is read, what is left out, and errors that name file and line."""

import json
import math
import os
import socket
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from aromatch.io.items import read_items
from collections_on_disk import write_folder, write_jsonl

X = np.array([[1.0, 0.0, 2.5], [0.0, -3.0, 0.5]])


def test_a_folder_gives_texts_with_paths_as_ids_and_first_folders_as_labels(tmp_path):
    items = read_items(write_folder(tmp_path / "notes", n_each=2))
    assert items.ids[:2] == ["birds/004.txt", "birds/005.txt"]
    assert items.labels.tolist() == ["birds"] * 2 + ["fruit"] * 2 + ["tools"] * 2
    assert items.texts[0].startswith("Note 4\n\n")
    assert items.vectors is None
    assert items.left_out == {}


def test_a_folder_with_files_beside_its_folders_has_no_labels(tmp_path):
    folder = write_folder(tmp_path / "notes", n_each=1)
    (folder / "readme.txt").write_text("about all this")
    assert read_items(folder).labels is None


def test_what_is_no_text_is_left_out_and_counted_and_what_is_not_utf_8_is_replaced(tmp_path):
    (tmp_path / "good.txt").write_text("\ufeffgood words", encoding="utf-8")
    (tmp_path / "latin.txt").write_bytes("caf\xe9 au lait".encode("latin-1"))
    (tmp_path / "empty.txt").write_text(" \n--\n")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\0\0\0")
    (tmp_path / ".hidden.txt").write_text("never seen")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config.txt").write_text("never seen")
    items = read_items(tmp_path)
    assert items.ids == ["good.txt", "latin.txt"]
    assert items.texts == ["good words", "caf\ufffd au lait"]
    assert items.left_out == {
        "empty files left out": 1,
        "binary files left out": 1,
        "files are not UTF-8: invalid bytes are replaced": 1,
    }


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_links_out_of_a_folder_and_pipes_are_left_out_and_counted(tmp_path):
    folder = write_folder(tmp_path / "notes", n_each=1)
    (tmp_path / "notes2").mkdir()
    (tmp_path / "notes2" / "secret.txt").write_text("a secret")
    for at, target in enumerate([tmp_path / "notes2" / "secret.txt", "../../notes2/secret.txt", "/dev/zero"]):
        (folder / "birds" / f"out{at}.txt").symlink_to(target)
    (folder / "birds" / "in.txt").symlink_to("../fruit/000.txt")
    (folder / "birds" / "in again.txt").symlink_to(folder / "tools" / "001.txt")
    (folder / "birds" / "chain.txt").symlink_to("out0.txt")
    (folder / "birds" / "broken.txt").symlink_to("nothing.txt")
    (folder / "birds" / "loop.txt").symlink_to("loop.txt")
    (folder / "elsewhere").symlink_to(tmp_path / "notes2")
    (folder / "up").symlink_to("..")
    os.mkfifo(folder / "birds" / "pipe.txt")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "birds" / "s"))
    for place in (folder, tmp_path / "named"):  # a link that the user names is followed
        if place != folder:
            place.symlink_to(folder)
        items = read_items(place)
        own = ["birds/002.txt", "fruit/000.txt", "tools/001.txt"]
        assert items.ids == sorted([*own, "birds/in.txt", "birds/in again.txt"])
        assert "secret" not in " ".join(items.texts)
        assert items.left_out == {
            "links to folders left out": 2,
            "links out of the folder left out": 4,
            "broken links, pipes, sockets and devices left out": 4,
        }


def test_a_folder_without_texts_says_what_it_has_instead(tmp_path):
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(ValueError, match=r"contains no text file \(1 empty files left out\)"):
        read_items(tmp_path)


def test_file_names_that_are_no_text_become_ids_that_can_be_printed(tmp_path):
    with open(os.fsencode(tmp_path) + b"/na\xffme.txt", "w") as file:
        file.write("words")
    assert read_items(tmp_path).ids == ["na\ufffdme.txt"]


def test_all_formats_give_the_same_rows(tmp_path):
    np.save(tmp_path / "x.npy", X)
    np.savez(tmp_path / "x.npz", X=X)
    sparse.save_npz(tmp_path / "s.npz", sparse.csr_array(X))
    (tmp_path / "x.csv").write_text("1,0,2.5\n0,-3,0.5\n")
    (tmp_path / "named.tsv").write_text("f\tg\th\n1\t0\t2.5\n0\t-3\t0.5\n")
    write_jsonl(tmp_path / "x.jsonl", [{"vector": row} for row in X.tolist()])
    dump_svmlight_file(X, [1, 2], str(tmp_path / "x.svmlight"))
    for name in ("x.npy", "x.npz", "s.npz", "x.csv", "named.tsv", "x.jsonl", "x.svmlight"):
        items = read_items(tmp_path / name)
        is_sparse = name in ("s.npz", "x.svmlight")
        assert sparse.issparse(items.vectors) == is_sparse
        np.testing.assert_array_equal(items.vectors.toarray() if is_sparse else items.vectors, X, err_msg=name)
        assert items.ids == ["0", "1"]


def test_ids_labels_and_names_of_features_come_from_where_each_format_has_them(tmp_path):
    (tmp_path / "x.csv").write_text("id,f,class,g\nrow 1,1,7,2\nrow 2,3,8,4\n")
    items = read_items(tmp_path / "x.csv")
    assert (items.ids, items.labels.tolist(), items.names) == (["row 1", "row 2"], ["7", "8"], ["f", "g"])
    np.savez(tmp_path / "x.npz", vectors=X, ids=["a", "b"], labels=[1, 2])
    items = read_items(tmp_path / "x.npz")
    assert (items.ids, items.labels.tolist()) == (["a", "b"], ["1", "2"])
    dump_svmlight_file(X, [1, 2.5], str(tmp_path / "x.svm"))
    assert read_items(tmp_path / "x.svm").labels.tolist() == ["1", "2.5"]
    write_jsonl(tmp_path / "x.jsonl", [{"_id": 5, "title": "Tea", "text": "hot", "label": "drink"}])
    items = read_items(tmp_path / "x.jsonl")
    assert (items.ids, items.texts, items.labels.tolist()) == (["5"], ["Tea\nhot"], ["drink"])


def test_an_svmlight_file_is_as_wide_as_is_expected(tmp_path):
    dump_svmlight_file(X[:, :2], [1, 2], str(tmp_path / "x.svm"))
    assert read_items(tmp_path / "x.svm", width=9).vectors.shape == (2, 9)


def test_half_precision_is_read_as_single(tmp_path):
    np.save(tmp_path / "x.npy", X.astype(np.float16))
    assert read_items(tmp_path / "x.npy").vectors.dtype == np.float32


def test_a_text_longer_than_the_csv_module_allows_by_itself_is_read(tmp_path):
    (tmp_path / "x.csv").write_text(f'id,text\n1,"{"word " * 40_000}"\n')
    assert len(read_items(tmp_path / "x.csv").texts[0]) == 200_000


@settings(deadline=None, max_examples=30)
@given(st.lists(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3), min_size=1))
def test_numbers_come_back_from_csv_and_jsonl_to_the_bit(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("rows")
    (folder / "x.csv").write_text("".join(",".join(map(repr, row)) + "\n" for row in rows))
    write_jsonl(folder / "x.jsonl", [{"vector": row} for row in rows])
    for name in ("x.csv", "x.jsonl"):
        assert read_items(folder / name).vectors.tobytes() == np.array(rows).tobytes()


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("x.csv", "a,b\n1,2\n3,four\n", "x.csv, line 3: b must be a finite number, got 'four'"),
        ("x.csv", "a,b\n1,2\n3,\n", "x.csv, line 3: b must be a finite number, got ''"),
        ("x.csv", "1,2\n3,nan\n", "x.csv, line 2: feature 1 must be a finite number, got 'nan'"),
        ("x.csv", "a,b\n1,2\n3\n", "x.csv, line 3 has 1 columns, expected 2"),
        ("x.csv", "a,a\n1,2\n", "x.csv, line 1: the column 'a' occurs twice"),
        ("x.csv", 'a,b\n1,"2\n', "x.csv, line 2: unexpected end of data"),
        ("x.csv", "a,b\n", "x.csv is empty"),
        ("x.csv", "", "x.csv is empty"),
        ("x.csv", "id,a\nx,1\nx,2\n", "ids must be unique, but 'x' occurs 2 times"),
        ("x.csv", "id,text\n ,words\n", "x.csv, line 2: the id must be a non-empty string"),
        ("x.jsonl", '{"text": "a"}\n{"text": 3}\n', "x.jsonl, line 2: text must be a string, got 3"),
        ("x.jsonl", '{"text": "a"}\n\n{"text": "b"\n', "x.jsonl, line 3 is not JSON"),
        ("x.jsonl", '["a"]\n', "x.jsonl, line 1 must be a JSON object"),
        ("x.jsonl", '{"words": "a"}\n', "x.jsonl, line 1 has neither text nor vector, got words"),
        ("x.jsonl", '{"vector": [1, 2]}\n{"vector": [1]}\n', "x.jsonl, line 2 has a vector of 1 numbers, expected 2"),
        ("x.jsonl", '{"vector": [1, true]}\n', "x.jsonl, line 1: number 1 of the vector must be a finite number"),
        ("x.jsonl", '{"vector": [1, NaN]}\n', "x.jsonl, line 1: number 1 of the vector must be a finite number"),
        ("x.jsonl", '{"vector": []}\n', "x.jsonl, line 1: the vector must be a list of numbers"),
        ("x.jsonl", "[" * 100_000 + "\n", "x.jsonl, line 1 is not JSON"),
        ("x.svm", "1 1:2\n1 one:2\n", "x.svm, line 2"),
        ("x.npy", "no array", "x.npy is not a valid .npy file"),
        ("x.npz", "no archive", "x.npz is not a valid .npz file"),
        ("x.doc", "words", "x.doc has an unsupported file extension"),
    ],
)
def test_a_bad_file_is_refused_with_its_name_and_line(tmp_path, name, content, says):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the message is looked at below
        read_items(path)
    assert says in str(error.value).replace(f"{tmp_path}/", "")


def test_a_file_that_is_not_utf_8_is_refused_by_name(tmp_path):
    (tmp_path / "x.csv").write_bytes(b"id,text\n1,caf\xe9\n")
    with pytest.raises(ValueError, match=r"x\.csv is not UTF-8.*0xe9"):
        read_items(tmp_path / "x.csv")


def test_a_path_that_is_not_there_is_refused_by_name(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        read_items(tmp_path / "nowhere")


def test_arrays_of_objects_and_arrays_that_promise_too_much_are_refused_before_they_are_read(tmp_path):
    np.savez(tmp_path / "o.npz", X=np.array([[{}]]))
    with pytest.raises(ValueError, match="contains Python objects"):
        read_items(tmp_path / "o.npz")
    np.save(tmp_path / "x.npy", np.zeros((2, 2)))
    header = (tmp_path / "x.npy").read_bytes().replace(b"(2, 2), }", b"(2, 99999999), }").replace(b"       \n", b"\n")
    with zipfile.ZipFile(tmp_path / "big.npz", "w") as file:
        file.writestr("X.npy", header)
    with pytest.raises(ValueError, match="larger than the file"):
        read_items(tmp_path / "big.npz")


def test_an_npz_that_was_cut_or_holds_something_else_is_refused_by_name(tmp_path):
    path = tmp_path / "x.npz"
    np.savez_compressed(path, X=np.random.default_rng(0).normal(size=(50, 50)))
    whole = path.read_bytes()
    broken = bytearray(whole)
    broken[2000:2100] = bytes(100)
    with zipfile.ZipFile(tmp_path / "words.npz", "w") as file:
        file.writestr("readme.txt", "words")
    for content in (whole[:-40], bytes(broken), (tmp_path / "words.npz").read_bytes()):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"x\.npz is not a valid .npz file"):
            read_items(path)


def test_an_npz_without_a_name_that_tells_is_refused_with_the_names_it_has(tmp_path):
    np.savez(tmp_path / "x.npz", first=X, second=X)
    with pytest.raises(ValueError, match="must have a matrix called X or vectors, got first, second"):
        read_items(tmp_path / "x.npz")


def test_nan_in_a_matrix_is_refused_with_its_row(tmp_path):
    np.save(tmp_path / "x.npy", np.array([[1.0], [math.nan]]))
    with pytest.raises(ValueError, match=r"x\.npy contains NaN or infinity in row 1"):
        read_items(tmp_path / "x.npy")


def test_texts_without_a_letter_keep_their_ids_and_are_counted(tmp_path):
    path = write_jsonl(tmp_path / "x.jsonl", [{"id": "a", "text": "words"}, {"id": "b", "text": "..."}])
    items = read_items(path)
    assert items.ids == ["a", "b"]
    assert items.left_out == {"texts without a letter": 1}


def test_what_was_read_says_where_it_came_from(tmp_path):
    path = write_jsonl(tmp_path / "x.jsonl", [json.loads('{"text": "words"}')])
    items = read_items(str(path))
    assert (items.source, items.what, len(items)) == (str(path), "texts", 1)

"""What people said, in all its forms, becomes triplets of rows; errors name file and line."""

import numpy as np
import pytest

from aromatch.io.items import Items, read_items
from aromatch.workflows.supervision import read_supervision
from collections_on_disk import write_jsonl, write_search

OBJECTS = Items("things", ["a", "b", "c", "d"], texts=["w"] * 4)
QUERIES = Items("asked", ["q", "r"], texts=["w"] * 2)


def read(objects=OBJECTS, queries=None, missing="error", **files):
    return read_supervision(objects, queries, missing=missing, files={k: str(v) for k, v in files.items()})


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("l.csv", "id,label\na,x\nb,y\nc,x\n"),
        ("l.csv", "a,x\nb,y\nc,x\n"),
        ("l.tsv", "label\tid\nx\ta\ny\tb\nx\tc\n"),
        ("l.jsonl", '{"id": "a", "label": "x"}\n{"id": "b", "label": "y"}\n{"id": "c", "label": "x"}\n'),
    ],
)
def test_labels_are_matched_by_ids_and_rows_without_one_are_not_asked(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    said = read(labels=tmp_path / name)
    assert said.labels.tolist() == ["x", "y", "x", None]
    assert said.query_rows.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", "query,better,worse\nq,a,b\nr,c,d\n"),
        ("t.csv", "q,a,b\nr,c,d\n"),
        ("t.jsonl", '{"query": "q", "better": "a", "worse": "b"}\n{"query": "r", "better": "c", "worse": "d"}\n'),
        (
            "t.jsonl",
            '{"session": 0}\n{"query": "q", "better": "a", "worse": "b"}\n'
            '{"skipped": true, "query": "q"}\n{"query": "r", "better": "c", "worse": "d"}\n',
        ),
    ],
)
def test_triplets_of_ids_become_triplets_of_rows(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    said = read(queries=QUERIES, triplets=tmp_path / name)
    assert said.triplets.tolist() == [[0, 0, 1], [1, 2, 3]]
    assert said.query_rows.tolist() == [0, 1]


def test_triplets_may_be_row_numbers_in_an_array(tmp_path):
    np.save(tmp_path / "t.npy", np.array([[1, 3, 2]]))
    assert read(queries=QUERIES, triplets=tmp_path / "t.npy").triplets.tolist() == [[1, 3, 2]]
    np.save(tmp_path / "t.npy", np.array([[3, 1, 2]]))
    with pytest.raises(ValueError, match="triplet 0: asked has no row 3"):
        read(queries=QUERIES, triplets=tmp_path / "t.npy")


def test_weights_of_triplets_are_kept(tmp_path):
    path = write_jsonl(
        tmp_path / "t.jsonl",
        [
            {"query": "a", "better": "b", "worse": "c", "weight": 2, "time": 10.5},
            {"query": "b", "better": "c", "worse": "d", "time": 11},
        ],
    )
    said = read(triplets=path)
    assert said.weights.tolist() == [2.0, 1.0]


def test_qrels_give_triplets_and_grades(tmp_path):
    (tmp_path / "qrels.txt").write_text("q 0 a 2\nq 0 b 0\nr 0 d 1\n")
    said = read(queries=QUERIES, qrels=tmp_path / "qrels.txt")
    assert said.grades.toarray().tolist() == [[2, 0, 0, 0], [0, 0, 0, 1]]
    assert [0, 0, 1] in said.triplets.tolist()
    assert said.query_rows.tolist() == [0, 1]


def test_clicks_give_triplets_of_what_was_passed_over(tmp_path):
    path = write_jsonl(tmp_path / "c.jsonl", [{"query": "q", "shown": ["a", "b"], "clicked": "b"}])
    said = read(queries=QUERIES, clicks=path)
    assert [0, 1, 0] in said.triplets.tolist()
    assert len(said.weights) == len(said.triplets)


def test_the_same_seed_draws_the_same_triplets(tmp_path):
    folder = write_search(tmp_path)
    objects, queries = read_items(folder / "corpus.jsonl"), read_items(folder / "queries.jsonl")
    drawn = [
        read_supervision(objects, queries, seed=seed, files={"qrels": str(folder / "qrels.tsv")}).triplets
        for seed in (3, 3, 4)
    ]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])


@pytest.mark.parametrize(
    ("kind", "name", "content", "says"),
    [
        ("labels", "x.csv", "id,label\na,x\nz,y\n", "x.csv, line 3: unknown id 'z'; ids are such as 'a'"),
        ("labels", "x.csv", "id,label\na,x\nb,x\n", "has 1 different labels, expected at least two"),
        (
            "labels",
            "x.csv",
            "id,label\na,\n",
            "x.csv, line 2: the label must be a non-empty string",
        ),
        ("labels", "x.csv", "a,b,c\n", "x.csv has 3 columns, expected 2: id, label"),
        ("triplets", "x.csv", "a,b,c\na,b,z\n", "x.csv, line 2: worse has the unknown id 'z'"),
        ("triplets", "x.csv", "a,b,b\n", "x.csv, line 1: better and worse are the same, 'b'"),
        ("triplets", "x.jsonl", '{"query": "a", "better": "b"}\n', "x.jsonl, line 1 has no 'worse'"),
        ("triplets", "x.jsonl", '{"session": 1}\n', "x.jsonl has no triplet of known ids"),
        (
            "triplets",
            "x.jsonl",
            '{"query": "a", "better": "b", "worse": "c", "weight": -1}\n',
            "x.jsonl, line 1: the weight must be at least 0, got -1",
        ),
        ("qrels", "x.txt", "a 0 b 1\na 0 z 1\n", "x.txt, line 2: 'z' is not in the object ids; --missing skip"),
        ("qrels", "x.txt", "a 0 b high\n", "x.txt, line 1: the grade must be a number, got 'high'"),
        ("qrels", "x.txt", "a 0 b 0\n", "contains no comparison"),
        ("clicks", "x.jsonl", '{"query": "a", "shown": ["b"]}\n', "x.jsonl, line 1 has no 'clicked'"),
    ],
)
def test_bad_supervision_is_refused_with_its_file_and_line(tmp_path, kind, name, content, says):
    (tmp_path / name).write_text(content)
    with pytest.raises((ValueError, TypeError)) as error:
        read(**{kind: tmp_path / name})
    assert says in str(error.value).replace(f"{tmp_path}/", "")


def test_unknown_ids_can_be_left_out(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,c\na,b,z\n")
    said = read(triplets=tmp_path / "t.csv", missing="skip")
    assert said.triplets.tolist() == [[0, 1, 2]]
    assert said.summary == "1 triplets, 1 with unknown ids skipped"


def test_without_anything_said_the_way_out_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"one of --labels, --triplets, --qrels and --clicks.*things has no labels"):
        read()
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("a,b,c\n")
    with pytest.raises(ValueError, match=r"one kind.*, got --labels and --triplets"):
        read(labels=tmp_path / "a.csv", triplets=tmp_path / "b.csv")
    with pytest.raises(FileNotFoundError, match=r"none\.csv does not exist, expected a file of labels"):
        read(labels=tmp_path / "none.csv")

"""What is exported gives the same rankings elsewhere: the recipes are run."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file

import aromatch as am
from aromatch.io.items import read_items
from aromatch.workflows.bundle import Trained
from aromatch.workflows.export import export
from aromatch.workflows.learning import Settings
from aromatch.workflows.train import Training, train
from collections_on_disk import write_folder, write_vectors


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("place")
    folder = write_folder(place / "notes")
    path = write_vectors(place / "x.csv")
    for learner in ("moment", "refined"):
        train(Training(str(folder), str(place / f"texts-{learner}"), settings=Settings(learner, draws=2_000)))
        train(Training(str(path), str(place / f"vectors-{learner}"), settings=Settings(learner, draws=2_000)))
    return place


@pytest.mark.parametrize("kind", ["texts", "vectors"])
@pytest.mark.parametrize("learner", ["moment", "refined"])
def test_the_faiss_recipe_finds_what_the_model_finds(place, tmp_path, kind, learner):
    pytest.importorskip("faiss")
    path = place / f"{kind}-{learner}"
    report = export(str(path), str(tmp_path / "out"))
    items = read_items(place / ("notes" if kind == "texts" else "x.csv"))
    if kind == "texts":
        names = "objects.json", "queries.json"
        for name, texts in zip(names, (items.texts, items.texts[:7]), strict=True):
            (tmp_path / name).write_text(json.dumps(texts))
    else:
        names = "objects.npy", "queries.npy"
        for name, rows in zip(names, (items.vectors, items.vectors[:7]), strict=True):
            np.save(tmp_path / name, rows)
    recipe = [sys.executable, "out/faiss_recipe.py", *names, "5"]
    done = subprocess.run(recipe, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    found = [[int(row) for row in line.split()] for line in done.stdout.splitlines()]
    trained = Trained.load(path)
    X = trained.objects.rows(items)
    scores = trained.model.similarity(X[:7], X)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :5]
    best = np.take_along_axis(scores, order, axis=1)
    theirs = np.take_along_axis(scores, np.array(found), axis=1)
    np.testing.assert_allclose(theirs, best, rtol=1e-3, atol=1e-4)  # float32 may swap what is equal
    assert report.lost_share == pytest.approx(0, abs=1e-6)


def test_both_formats_hold_the_same_numbers_and_the_query_transform_is_w(place, tmp_path):
    report = export(str(place / "texts-moment"), str(tmp_path / "out"), rank=5)
    assert {os.path.basename(name) for name in report.files} == {*os.listdir(tmp_path / "out")}
    for name in ("factors", "query_transform"):
        npz = dict(np.load(tmp_path / "out" / f"{name}.npz"))
        tensors = load_file(tmp_path / "out" / f"{name}.safetensors")
        assert npz.keys() == tensors.keys()
        for label, array in npz.items():
            np.testing.assert_array_equal(array, tensors[label])
    model = am.load(place / "texts-moment")
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "query_transform.npz")["W"], model.W_)
    values = np.linalg.svd(model.W_, compute_uv=False)
    np.testing.assert_array_equal(
        np.load(tmp_path / "out" / "factors.npz")["left"].T, model.project(5, symmetric=False).components_
    )
    assert report.rank == 5
    assert report.lost_share == pytest.approx(1 - np.sum(values[:5] ** 2) / np.sum(values**2))


def test_the_pgvector_recipe_has_vectors_of_the_right_length(place, tmp_path):
    export(str(place / "texts-moment"), str(tmp_path / "out"), rank=6)
    sql = (tmp_path / "out" / "pgvector.sql").read_text()
    assert "embedding vector(6) NOT NULL" in sql
    assert "vector_ip_ops" in sql
    assert "ORDER BY embedding <#> :query" in sql
    assert "$" not in sql


def test_a_rank_that_is_too_large_and_a_folder_that_is_a_file_are_refused(place, tmp_path):
    with pytest.raises(ValueError, match="k must be at most 12"):
        export(str(place / "vectors-moment"), str(tmp_path / "out"), rank=13)
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="is no folder"):
        export(str(place / "vectors-moment"), str(tmp_path / "file"))
    am.Euclidean().fit(np.eye(3)).save(tmp_path / "e")
    with pytest.raises(TypeError, match="a Euclidean has no W to export"):
        export(str(tmp_path / "e"), str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()

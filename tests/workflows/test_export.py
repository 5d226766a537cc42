"""Exported maps rank as the model does, in every metric: the recipes are run."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file
from scipy import sparse

import aromatch as am
from aromatch.io.items import read_items
from aromatch.workflows.export import export
from aromatch.workflows.fitting import LearnerOptions
from aromatch.workflows.train import TrainOptions, train
from collections_on_disk import write_folder, write_vectors


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("place")
    sources = {"texts": write_folder(place / "notes"), "vectors": write_vectors(place / "x.csv")}
    for learner in ("moment", "embedding"):
        for kind, source in sources.items():
            options = LearnerOptions(learner, n_triplets=2_000)
            train(TrainOptions(str(source), str(place / f"{kind}-{learner}"), learner=options))
    return place


def found_by_faiss(folder, objects, queries, k):
    """Run the FAISS recipe in a folder; return the rows that it prints."""
    for name, items in (("objects", objects), ("queries", queries)):
        if isinstance(items, list):
            (folder / f"{name}.json").write_text(json.dumps(items))
        else:
            np.save(folder / f"{name}.npy", items)
    extension = "json" if isinstance(objects, list) else "npy"
    recipe = [sys.executable, "out/faiss_recipe.py", f"objects.{extension}", f"queries.{extension}", str(k)]
    done = subprocess.run(recipe, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return np.array([[int(row) for row in line.split()] for line in done.stdout.splitlines()])


def check_best(scores, rows):
    best = -np.sort(-scores, axis=1)[:, : rows.shape[1]]
    found = np.take_along_axis(scores, rows, axis=1)
    np.testing.assert_allclose(found, best, rtol=1e-3, atol=1e-4)  # float32 may swap equal scores


@pytest.mark.parametrize("kind", ["texts", "vectors"])
@pytest.mark.parametrize("learner", ["moment", "embedding"])
def test_the_faiss_recipe_finds_what_the_model_finds(place, tmp_path, kind, learner):
    pytest.importorskip("faiss")
    path = place / f"{kind}-{learner}"
    report = export(str(path), str(tmp_path / "out"))
    assert report.metric == "dot"
    items = read_items(place / ("notes" if kind == "texts" else "x.csv"))
    objects = items.texts if kind == "texts" else items.vectors
    trained = am.load(path)
    X = trained.objects.rows(items)
    check_best(trained.model.similarity(X[:7], X), found_by_faiss(tmp_path, objects, objects[:7], 5))


@pytest.mark.parametrize("learner", [am.Euclidean(), am.LMNN(max_iter=5)], ids=["Euclidean", "LMNN"])
def test_a_metric_is_searched_by_distances(tmp_path, learner):
    pytest.importorskip("faiss")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 5)) + 1, np.arange(60) % 3
    learner.fit(X, y).save(tmp_path / "m")
    report = export(str(tmp_path / "m"), str(tmp_path / "out"))
    assert report.metric == "euclidean"
    check_best(learner.similarity(X[:7], X), found_by_faiss(tmp_path, X, X[:7], 5))
    assert "vector_l2_ops" in (tmp_path / "out" / "pgvector.sql").read_text()


def test_both_formats_hold_the_same_maps_and_the_exact_map_of_the_queries_is_w(place, tmp_path):
    report = export(str(place / "texts-moment"), str(tmp_path / "out"))
    assert {os.path.basename(name) for name in report.files} == {*os.listdir(tmp_path / "out")}
    npz, tensors = dict(np.load(tmp_path / "out" / "maps.npz")), load_file(tmp_path / "out" / "maps.safetensors")
    assert npz.keys() == tensors.keys()
    for label, array in npz.items():
        np.testing.assert_array_equal(array, tensors[label])
    np.testing.assert_array_equal(npz["queries"], am.load(place / "texts-moment").model.W_)
    assert "objects" not in npz  # they stay as they are
    assert report.lost_share is None


def test_components_are_those_of_the_projection_and_what_they_lose_is_reported(place, tmp_path):
    report = export(str(place / "texts-moment"), str(tmp_path / "out"), n_components=5)
    model = am.load(place / "texts-moment").model
    short = model.project(5, symmetric=False)
    maps = np.load(tmp_path / "out" / "maps.npz")
    np.testing.assert_array_equal(maps["queries"], short.components_.T)
    np.testing.assert_array_equal(maps["objects"], short.object_components_.T)
    lost = np.sum((model.W_ - short.components_.T @ short.object_components_) ** 2) / np.sum(model.W_**2)
    assert report.n_components == 5
    assert report.lost_share == pytest.approx(lost)


def test_a_sparse_w_is_exported_as_a_sparse_matrix(tmp_path):
    X = sparse.random_array((30, 20_000), density=1e-3, format="csr", rng=np.random.default_rng(0))
    model = am.DiagonalAROMA(init="identity").fit_triplets([[0, 1, 2], [3, 4, 5]], X)
    model.save(tmp_path / "m")
    export(str(tmp_path / "m"), str(tmp_path / "out"))
    found = sparse.load_npz(tmp_path / "out" / "queries_map.npz")
    assert abs(found - model.W_).max() == 0


def test_the_pgvector_recipe_has_vectors_of_the_right_length(place, tmp_path):
    export(str(place / "texts-moment"), str(tmp_path / "out"), n_components=6)
    sql = (tmp_path / "out" / "pgvector.sql").read_text()
    assert "embedding vector(6) NOT NULL" in sql
    assert "vector_ip_ops" in sql
    assert "ORDER BY embedding <#> :query" in sql
    assert "$" not in sql


def test_a_number_of_components_that_does_not_fit_and_a_folder_that_is_a_file_are_refused(place, tmp_path):
    with pytest.raises(ValueError, match="--n-components"):
        export(str(place / "vectors-moment"), str(tmp_path / "out"), n_components=0)
    with pytest.raises(ValueError, match="--n-components is for bilinear learners"):
        export(str(place / "vectors-embedding"), str(tmp_path / "out"), n_components=3)
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="is not a folder"):
        export(str(place / "vectors-moment"), str(tmp_path / "file"))
    assert not (tmp_path / "out").exists()

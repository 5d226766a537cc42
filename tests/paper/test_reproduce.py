"""The paper's experiments in miniature, on the docstrings that every machine has."""

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from aromatch.evaluation import evaluate_retrieval
from aromatch.exceptions import DataFileError
from aromatch.learners import OASIS, FactoredAROMA
from aromatch.paper.figures import draw
from aromatch.paper.methods import compute, sample_triplets
from aromatch.paper.page import make_page
from aromatch.paper.reproduce import read_results, reproduce_cell
from aromatch.paper.run import precision_at_10, run_cell, run_figure
from aromatch.paper.spec import FIGURES, Cell, read_spec
from aromatch.paper.splits import Split, make_split
from aromatch.paper.table import Results


def tiny():
    cut = {"n_splits": 2, "divide_triplets_by": 500, "most_rows": 500, "features": {"n_terms": 40}}
    return read_spec("fig4", cut=cut, task="stdlib")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("reproduced")


@pytest.fixture(scope="module")
def raw(place):
    found = run_figure(tiny(), place / "results" / "kept", n_jobs=2, verbose=False)
    (place / "results" / "fig4.json").write_text(json.dumps(found))
    return found


@pytest.mark.parametrize("figure", FIGURES)
def test_every_line_of_every_panel_is_among_the_cells(figure):
    spec = read_spec(figure)
    runs = {(c.method, *sorted(map(str, c.settings.values()))) for c in spec.cells() if c.part == "test"}
    for panel in spec.panels.values():
        for line in panel["lines"]:
            settings = {k: v for k, v in line.items() if k not in ("label", "method", "at")}
            if panel["kind"] == "sensitivity" and line["method"] != "OASIS":
                settings["r"] = 0.1
            if "chosen" in settings.values():
                assert any(line["method"] in run["method"] for run in spec.tuned)
                continue
            assert (line["method"], *sorted(map(str, settings.values()))) in runs


def test_an_unknown_figure_is_refused():
    with pytest.raises(ValueError, match="figure must be one of fig3, fig4, got 'fig5'"):
        read_spec("fig5")


def test_fewer_triplets_are_the_first_of_more():
    y = np.repeat(list("abc"), 30)
    more = sample_triplets(y, 2345, seed=1, split=2)
    np.testing.assert_array_equal(sample_triplets(y, 1001, seed=1, split=2), more[:1001])
    assert not np.array_equal(sample_triplets(y, 1001, seed=1, split=3), more[:1001])
    assert sample_triplets(y, 0, seed=1, split=2).shape == (0, 3)


def test_splits_cover_all_rows_and_their_parts_do_not_meet(place):
    spec = tiny()
    first, second = (make_split(spec, number, "", place / "vectors") for number in (0, 1))
    assert len(first.y) + len(first.y_test) == 500
    assert len(first.y_test) == 175
    assert not np.array_equal(first.y, second.y)
    again = make_split(spec, 0, "", place / "elsewhere")
    assert (again.X != first.X).nnz == 0
    np.testing.assert_array_equal(again.y_test, first.y_test)


def test_the_validation_part_is_a_part_of_the_training_part(place):
    split = make_split(tiny(), 0, "", place / "vectors")
    inner = split.inside(0.2, seed=0)
    assert (len(inner.y), len(inner.y_test)) == (260, 65)
    rows = [*map(tuple, inner.X.toarray()), *map(tuple, inner.X_test.toarray())]
    assert sorted(rows) == sorted(map(tuple, split.X.toarray()))


@pytest.mark.filterwarnings("ignore:The least populated class:UserWarning")
def test_folds_use_every_row_once_as_test(place):
    spec = replace(tiny(), split={"kind": "folds", "n_folds": 5, "validation_share": 0.2}, n_splits=5)
    sizes = [len(make_split(spec, number, "", place / "folds").y_test) for number in range(5)]
    assert sizes == [100] * 5


def test_a_cell_finds_what_a_plain_loop_finds(place):
    spec = tiny()
    split = make_split(spec, 1, "", place / "vectors")
    cell = Cell(1, "test", "", "f-AROMA", {"init": "identity", "r": 0.1}, 1000, curve=True)
    found = compute(spec, cell, split)
    assert found.n_triplets == [2, 4, 10, 20, 40, 100, 200, 400, 1000]
    model = FactoredAROMA(r=0.1, init="identity")
    triplets = sample_triplets(split.y, 1000, spec.seed, 1)
    done = 0
    for place_of, at in enumerate(found.n_triplets):
        model.partial_fit_triplets(triplets[done:at], split.X)
        done = at
        report = evaluate_retrieval(model, split.X_test, split.y_test, ks=spec.ks)
        assert found.precision[place_of] == [report.precision[k] for k in spec.ks]
        assert found.mean_average_precision[place_of] == report.mean_average_precision
        assert found.n_updates[place_of] == model.n_updates_


def test_w_equal_to_i_ranks_by_the_dot_product_and_rows_of_zeros_last(place):
    X = sparse.csr_array([[1.0, 0.0], [0.4, 0.917], [0.0, 0.0], [0.0, 1.0]])
    y = np.array(["a", "a", "b", "b"])
    found = {
        method: compute(tiny(), Cell(0, "test", "", method, {}, 0), Split(X, y, X, y)).precision[0][0]
        for method in ("W = I", "Euclidean")
    }
    # By distance, the row of zeros is the nearest of two others.
    assert found["W = I"] > found["Euclidean"]


def test_every_cell_has_a_result_and_choices_come_from_the_validation_part(raw):
    spec = tiny()
    by_name = {result["name"]: result for result in raw["cells"]}
    assert {cell.name for cell in spec.cells()} <= set(by_name)
    results = Results(raw)
    for split in range(spec.n_splits):
        tried = {
            C: precision_at_10(
                spec, by_name[Cell(split, "validation", "", "OASIS", {"init": "identity", "C": C}, 100).name]
            )
            for C in (0.001, 0.01, 0.1, 1.0, 10.0)
        }
        assert results.choice(split, "OASIS", "identity")["C"] == max(tried, key=tried.get)
    chosen = results.values("P@10", "OASIS", init="identity", C="chosen")
    by_hand = [
        results.values("P@10", "OASIS", **results.choice(split, "OASIS", "identity"))[split] for split in range(2)
    ]
    assert chosen == by_hand


def test_values_at_a_checkpoint_are_those_of_a_shorter_run(raw, place):
    results = Results(raw)
    spec = tiny()
    split = make_split(spec, 0, "", place / "results" / "kept" / "vectors")
    model = OASIS(C=0.1).fit_triplets(sample_triplets(split.y, 400, spec.seed, 0), split.X)
    report = evaluate_retrieval(model, split.X_test, split.y_test, ks=(1, 10))
    arguments = {"method": "OASIS", "init": "identity", "C": 0.1, "at": 400}
    assert results.values("P@1", **arguments)[0] == report.precision[1]
    assert results.values("mAP", **arguments)[0] == report.mean_average_precision
    with pytest.raises(KeyError, match="was not evaluated after 401"):
        results.values("P@1", **{**arguments, "at": 401})


def test_a_second_run_computes_only_what_is_missing(raw, place):
    kept = place / "results" / "kept" / "cells"
    before = {path: path.stat().st_mtime_ns for path in kept.iterdir()}
    gone = sorted(before)[0]
    stored = json.loads(gone.read_text())
    gone.unlink()
    again = run_figure(tiny(), place / "results" / "kept", n_jobs=1, verbose=False)
    after = {path: path.stat().st_mtime_ns for path in kept.iterdir()}
    assert [path for path in after if after[path] != before[path]] == [gone]
    assert (raw["run"]["cells"], again["run"]["cells"]) == (len(before), 1)
    found = {result["name"]: result["found"] for result in again["cells"]}
    assert found[stored["name"]]["precision"] == stored["found"]["precision"]


def test_any_cell_can_be_computed_again_from_the_raw_results(raw, place):
    name = next(r["name"] for r in raw["cells"] if r["cell"]["method"] == "d-AROMA" and r["cell"]["curve"])
    report = reproduce_cell(place, "fig4", name)
    assert report["same"]
    assert report["recomputed"]["precision"] == report["stored"]["precision"]
    with pytest.raises(ValueError, match=r"cell .*fig4\.json"):
        reproduce_cell(place, "fig4", "split 9")
    with pytest.raises(FileNotFoundError, match="aromatch reproduce fig3"):
        reproduce_cell(place, "fig3", name)


def test_a_cell_with_a_changed_result_is_told_from_the_stored_one(raw, place, tmp_path):
    name = next(r["name"] for r in raw["cells"] if r["cell"]["method"] == "Euclidean")
    changed = json.loads(json.dumps(raw))
    cell = next(result for result in changed["cells"] if result["name"] == name)
    cell["found"]["mean_average_precision"][0] += 1e-12
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "fig4.json").write_text(json.dumps(changed))
    assert not reproduce_cell(tmp_path, "fig4", name)["same"]


def test_the_same_cell_elsewhere_gives_the_same_bits(place, tmp_path):
    cell = Cell(0, "test", "", "LEGO", {}, 0)
    first, second = (run_cell(tiny(), cell, folder) for folder in (place / "results" / "kept", tmp_path))
    assert first["found"]["precision"] == second["found"]["precision"]


def test_figures_are_drawn_and_the_same_results_give_the_same_file(raw, tmp_path):
    results = Results(raw)
    png, svg = draw(results, tmp_path / "figure")
    assert png.read_bytes().startswith(b"\x89PNG")
    text = svg.read_text()
    assert text.count('<g id="axes_') == 3
    draw(results, tmp_path / "again")
    assert (tmp_path / "again.svg").read_text() == text


def test_the_page_has_every_method_and_every_claim(raw):
    page = make_page([Results(raw)], [], "aromatch reproduce fig4 --quick", "results")
    for method in ("f-AROMA", "d-AROMA", "OASIS", "ITML", "LEGO", "LMNN", "HIER", "Euclidean", "labels"):
        assert f"| {method}" in page
    for number in range(8, 14):
        assert f"| C{number} |" in page
    assert "results/fig4.png" in page
    assert "headers of the posts stripped" in page


def test_reading_results_that_are_not_there_says_what_writes_them(tmp_path):
    with pytest.raises(FileNotFoundError, match="aromatch reproduce fig4"):
        read_results(tmp_path, "fig4")


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"\xff", b"[" * 100_000, b'{"spec": {}, "cells": [1]}', None])
def test_results_that_are_damaged_are_refused_by_name(raw, tmp_path, content):
    (tmp_path / "results").mkdir()
    changed = json.dumps({**raw, "cells": [{**raw["cells"][0], "cell": "none"}]}).encode()
    (tmp_path / "results" / "fig4.json").write_bytes(changed if content is None else content)
    with pytest.raises(DataFileError, match=r"fig4\.json"):
        read_results(tmp_path, "fig4")


def test_an_interrupted_run_ends_at_once_and_keeps_its_finished_cells(tmp_path):
    code = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(__import__("pathlib").Path(__file__).parent)!r})
from test_reproduce import tiny
from aromatch.paper.run import run_figure
if __name__ == "__main__":
    run_figure(tiny(), Path({str(tmp_path)!r}), n_jobs=2, verbose=False)
"""
    script = tmp_path / "interrupted.py"
    script.write_text(code)
    process = subprocess.Popen([sys.executable, str(script)], stderr=subprocess.PIPE, text=True)
    cells = tmp_path / "cells"
    deadline = time.monotonic() + 120
    while not (cells.exists() and list(cells.glob("*.json"))):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) != 0
    for path in cells.glob("*.json"):
        assert "found" in json.loads(path.read_text())

"""The committed results: made of the settings that are in the tree, and still what the code computes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from aromatch.paper.page import make_page
from aromatch.paper.reproduce import read_results
from aromatch.paper.run import run_cell
from aromatch.paper.spec import Cell, read_spec
from real_data import FOLDER, needs_caltech101, needs_newsgroups

DOCS = Path(__file__).parent.parent.parent / "docs"
COMMITTED = [path.stem for path in sorted((DOCS / "results").glob("fig*.json"))]


def test_there_are_committed_results():
    assert "fig4" in COMMITTED


@pytest.mark.parametrize("figure", COMMITTED)
def test_committed_results_are_of_the_settings_in_the_tree(figure):
    results = read_results(DOCS, figure)
    assert results.spec == read_spec(figure)
    names = {result["name"] for result in results.raw["cells"]}
    assert {cell.name for cell in results.spec.cells()} <= names


def test_the_page_says_what_the_raw_results_say():
    page = (DOCS / "results.md").read_text(encoding="utf-8")
    again = make_page([read_results(DOCS, figure) for figure in COMMITTED], [], "", "results")
    sections = [part for part in again.split("\n\n") if part.startswith("|")]
    assert sections
    for section in sections:
        assert section in page


@pytest.mark.slow
@needs_newsgroups
@pytest.mark.parametrize(
    "cell",
    [
        Cell(0, "test", "", "W = I", {}, 0),
        Cell(1, "test", "", "OASIS", {"init": "identity", "C": 0.1}, 500_000, curve=True),
        Cell(2, "test", "", "d-AROMA", {"init": "zero", "r": 0.01}, 500_000, curve=True),
    ],
    ids=lambda cell: cell.method,
)
def test_a_committed_cell_can_be_computed_again(cell, monkeypatch, tmp_path):
    monkeypatch.setenv("AROMATCH_DATA", str(FOLDER))
    results = read_results(DOCS, "fig4")
    (stored,) = [result for result in results.raw["cells"] if result["name"] == cell.name]
    assert Cell(**stored["cell"]) == cell
    again = run_cell(results.spec, cell, tmp_path)["found"]
    # On the machine that made them they are the same to the bit; another BLAS may round scores in other ways.
    for before, after in zip(stored["found"]["precision"], again["precision"], strict=True):
        assert after == pytest.approx(before, abs=0.002)
    assert again["mean_average_precision"] == pytest.approx(stored["found"]["mean_average_precision"], abs=0.002)


@pytest.mark.slow
@pytest.mark.parametrize(
    "figure", [pytest.param("fig4", marks=needs_newsgroups), pytest.param("fig3", marks=needs_caltech101)]
)
def test_a_quick_reproduction_writes_figures_and_a_page(figure, monkeypatch, tmp_path):
    monkeypatch.setenv("AROMATCH_DATA", str(FOLDER))
    command = [sys.executable, "-m", "aromatch", "reproduce", figure, "--quick", "--output", str(tmp_path), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    written = [Path(path) for path in json.loads(done.stdout)["written"]]
    assert {path.name for path in written} == {"results.md", *(f"{figure}.{end}" for end in ("json", "png", "svg"))}
    assert all(path.stat().st_size > 0 for path in written)
    name = "split 0 / test / W = I"
    command = [sys.executable, "-m", "aromatch", "reproduce", figure, "--output", str(tmp_path), "--cell", name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, f"{name}: same\n")

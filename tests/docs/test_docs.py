"""The documents are true: paths, links and tests that they name exist, and their figures are the measured ones."""

import ast
import json
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

import aromatch as am

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
TEXTS = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in DOCUMENTS}

# A path from one of our folders on, anywhere; and a file of the top folder in backticks.
PATH = re.compile(r"(?<![\w/.-])(?:src|tests|docs|examples|benchmarks|\.ci)/(?:[\w./*-]*[\w*/])?")
TOP_FILE = re.compile(r"`([\w-]+\.(?:md|toml|py)|Makefile|LICENSE)`")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
TEST = re.compile(r"(tests/[\w/]+\.py)::(\w+)")

each_document = pytest.mark.parametrize("name", TEXTS)


@cache
def functions_of(path):
    """Return the names of the functions of a module."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@each_document
def test_every_path_in_a_document_exists(name):
    text = TEXTS[name]
    for path in {*PATH.findall(text), *TOP_FILE.findall(text)}:
        assert any(ROOT.glob(path.rstrip("/"))), path
    for target in LINK.findall(text):
        if not target.startswith("https://"):
            assert (ROOT / name).parent.joinpath(target).exists(), target


@each_document
def test_every_test_in_a_document_exists(name):
    for path, test in TEST.findall(TEXTS[name]):
        assert test in functions_of(path), f"{path}::{test}"


def test_paths_and_tests_are_found_in_the_documents():
    assert {"docs/paper.md", "examples/multiclass.py"} <= {
        path for text in TEXTS.values() for path in PATH.findall(text)
    }
    assert len(TEST.findall(TEXTS["docs/paper.md"])) > 50


def test_every_part_of_the_paper_and_every_departure_has_a_test():
    entries = re.split(r"\n- (?=\*\*)", TEXTS["docs/paper.md"])[1:]
    assert len(entries) > 20
    for entry in entries:
        assert "::test_" in entry or "pytest runs" in entry, entry


def test_the_newest_version_in_the_changelog_is_that_of_the_package():
    newest = re.search(r"^## \[([^\]]+)\]", TEXTS["CHANGELOG.md"], re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert newest[1] == am.__version__ == project["version"]


# A row of the README's table by a pattern of its first cell, and the method's name in quality.json.
QUALITY_ROWS = {
    "cosine": "cosine",
    "f-AROMA": "f-AROMA",
    "two towers": "two towers (torch)",
    "TripletEmbedding": "TripletEmbedding",
    "class probabilities": "class probabilities",
}


def quality_table():
    """Return the header and the rows of the first table of the README that has columns for both collections."""
    lines = TEXTS["README.md"].splitlines()
    start = next(at for at, line in enumerate(lines) if re.match(r"\|.*newsgroups.*banking77", line, re.IGNORECASE))
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip(" *`") for cell in line.strip().strip("|").split("|")])
    return rows[0], rows[2:]


@pytest.mark.parametrize("pattern", QUALITY_ROWS)
def test_quality_in_the_readme_is_the_measured_one(pattern):
    cells = json.loads((ROOT / "docs" / "results" / "quality.json").read_text(encoding="utf-8")).values()
    header, rows = quality_table()
    row = next(row for row in rows if re.search(pattern, row[0], re.IGNORECASE))
    n_compared = 0
    for title, figures in zip(header, row, strict=True):
        collection = re.sub(r"\W", "", title.split(",")[0]).lower()
        for name in ("20newsgroups", "banking77"):
            if not collection.startswith(name):
                continue
            found = [
                cell["found"][-1]
                for cell in cells
                if cell["collection"] == name and cell.get("method") == QUALITY_ROWS[pattern]
            ]
            assert len(found) == 5
            means = [sum(one[measure] for one in found) / 5 for measure in ("P@10", "mAP")]
            assert re.findall(r"\.\d{3}", figures) == [f"{mean:.3f}".lstrip("0") for mean in means]
            n_compared += 1
    assert n_compared == 2

"""The documents are complete and true: every public name is told of, every path and every test they name is there."""

import ast
import inspect
import json
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest
import typer.main

import aromatch as am
from aromatch.cli import app
from learner_classes import CLASSES

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
TEXTS = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in DOCUMENTS}
GUIDE = TEXTS["docs/guide.md"]

COMMANDS = typer.main.get_command(app).commands
# What stands between backticks, or in a fenced block.
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
# A path from one of our folders on, wherever it stands; and a file of the top folder in backticks.
PATH = re.compile(r"(?<![\w/.-])(?:src|tests|docs|examples|benchmarks|\.ci)/(?:[\w./*-]*[\w*/])?")
TOP_FILE = re.compile(r"`([\w-]+\.(?:md|toml|py)|Makefile|LICENSE)`")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
TEST = re.compile(r"(tests/[\w/]+\.py)::(\w+)")

each_document = pytest.mark.parametrize("name", TEXTS)


def words_in_code(text):
    return set(re.findall(r"\w+", " ".join(CODE.findall(text))))


@cache
def functions_of(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("document", ["README.md", "docs/guide.md"])
def test_every_public_name_is_in_the_readme_and_in_the_guide(document):
    assert set(am.__all__) - words_in_code(TEXTS[document]) == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_in_the_readme_and_its_options_are_in_the_documents(name):
    assert f"aromatch {name}`" in TEXTS["README.md"]
    assert f"aromatch {name}`" in GUIDE
    options = {option for parameter in COMMANDS[name].params for option in parameter.opts if option.startswith("-")}
    pages = GUIDE + TEXTS["docs/command-line.md"]
    long_ones = {option for option in options if option.startswith("--")}
    assert long_ones - set(re.findall(r"--[\w-]+", pages)) == set()
    # The short form of a long one need not be told of; one that stands alone has to be.
    alone = {
        option
        for parameter in COMMANDS[name].params
        if not any(one.startswith("--") for one in parameter.opts)
        for option in parameter.opts
        if option.startswith("-")
    }
    assert alone - set(re.findall(r"(?<![\w-])-\w\b", pages)) == set()


@pytest.mark.parametrize("learner", CLASSES)
def test_every_setting_of_a_learner_is_in_the_guide(learner):
    assert set(inspect.signature(learner).parameters) - words_in_code(GUIDE) == set()


def test_every_method_and_attribute_for_triplets_is_in_the_guide_or_the_map():
    public = set()
    for learner in (am.DiagonalAROMA, am.FactoredAROMA):
        for name, value in inspect.getmembers(learner):
            ours = inspect.isfunction(value) and value.__module__.startswith("aromatch")
            if not name.startswith("_") and (ours or isinstance(value, property)):
                public.add(name)
    assert {"fit_triplets", "learn_one", "W_", "Omega_"} <= public
    assert public - words_in_code(GUIDE + TEXTS["docs/paper.md"]) == set()


@each_document
def test_every_path_in_a_document_exists(name):
    text = TEXTS[name]
    for path in {*PATH.findall(text), *TOP_FILE.findall(text)}:
        assert any(ROOT.glob(path.rstrip("/"))), path
    for target in LINK.findall(text):
        if not target.startswith("https://"):
            assert (ROOT / name).parent.joinpath(target).exists(), target


def test_paths_are_looked_for():
    found = {path for text in TEXTS.values() for path in PATH.findall(text)}
    assert {"src/aromatch/learners/online/factored.py", "examples/multiclass.py", "src/aromatch/kernels/"} <= found


@each_document
def test_every_test_in_a_document_exists(name):
    for path, test in TEST.findall(TEXTS[name]):
        assert test in functions_of(path), f"{path}::{test}"


def test_the_map_of_the_paper_names_a_test_for_every_part_and_every_departure():
    text = TEXTS["docs/paper.md"]
    assert text.count("::test_") == len(TEST.findall(text)) > 50
    rows = re.split(r"\n- \*\*", text.split("## Row by row")[1].split("## Where we depart")[0])[1:]
    named = {
        row
        for entry in rows
        for row in re.findall(r"(ALG-\d+|USE|THM|COST|SET-N|SET-C|BASE|FIG)\*\*", "**" + entry.split("(")[0])
    }
    assert named == {
        *(f"ALG-{number}" for number in range(1, 12)),
        "USE",
        "THM",
        "COST",
        "SET-N",
        "SET-C",
        "BASE",
        "FIG",
    }
    for entry in rows:
        assert "::test_" in entry or "which pytest runs with this page" in entry, entry
    for entry in re.split(r"\n- \*\*", text.split("## Where we depart from it")[1])[1:-1]:
        assert "::test_" in entry, entry


def test_the_newest_version_in_the_changelog_is_that_of_the_package():
    newest = re.search(r"^## \[([^\]]+)\]", TEXTS["CHANGELOG.md"], re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert newest[1] == am.__version__ == project["version"]


@pytest.mark.parametrize(
    ("shown", "method"),
    [
        ("cosine", "cosine"),
        ("f-AROMA", "f-AROMA"),
        ("two towers with a softmax, in torch", "two towers (torch)"),
        ("`best_projection`", "best projection"),
        ("class probabilities of a logistic regression, from labels", "class probabilities"),
    ],
)
def test_figures_of_quality_in_the_readme_are_those_that_were_measured(shown, method):
    cells = json.loads((ROOT / "docs" / "results" / "quality.json").read_text(encoding="utf-8")).values()
    row = next(line for line in TEXTS["README.md"].splitlines() if line.startswith(f"| {shown} | .")).split(" | ")
    for name, told in zip(("20newsgroups", "banking77"), row[1:], strict=True):
        found = [cell["found"][-1] for cell in cells if (cell["collection"], cell.get("method")) == (name, method)]
        assert len(found) == 5
        means = [sum(one[measure] for one in found) / 5 for measure in ("P@10", "mAP")]
        assert told.strip(" |") == " / ".join(f"{mean:.3f}".lstrip("0") for mean in means)

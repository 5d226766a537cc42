"""What a person gets by installing and importing the package."""

import ast
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import aromatch as am
from aromatch.learners import LEARNERS

ROOT = Path(__file__).parent.parent


def test_importing_loads_nothing_heavy():
    """scikit-learn alone takes more than a second of processor time."""
    code = (
        "import sys, aromatch; print([name for name in ('numpy', 'scipy', 'sklearn', 'rich') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("name", am.__all__)
def test_every_public_name_is_there_and_documented(name):
    assert getattr(am, name).__doc__
    assert name in dir(am)


def test_type_checkers_see_every_learner_of_the_registry():
    """Names that are imported on first use have to be declared for editors and mypy."""
    for package in ("aromatch", "aromatch.learners"):
        tree = ast.parse(Path(sys.modules[package].__file__).read_text())
        imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for name in node.names}
        assert set(LEARNERS) <= imported, package


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'AROMAS'"):
        _ = am.AROMAS


def test_the_version_stands_in_one_form_everywhere():
    written = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert am.__version__ == version("aromatch") == written

"""Docstrings of the package follow the style guide."""

import ast
import re
from pathlib import Path

import pytest

import aromatch

PACKAGE = Path(aromatch.__file__).parent
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
AVOIDED = re.compile(r"(Give|Tell|Say|Let)s?\b")


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_no_docstring_begins_with_an_avoided_verb(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = (ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, DOCUMENTED))
    assert [text.splitlines()[0] for text in docstrings if text and AVOIDED.match(text)] == []

"""The corpus that every machine with Python has: the docstrings of its own standard library.

Each module, class, function and method that has a docstring is one entry; its label is the top-level module
it comes from, so that "similar" means "belongs to the same module". The source files are parsed and never
imported: no code runs, and what is written for other systems (`asyncio.windows_events`) is read too.
"""

import ast
import os
import sys
import sysconfig
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .._utils.checks import check_integer
from .._utils.progress import progress_bar
from .collections import LabelledTexts

TEST_FOLDERS = frozenset({"test", "tests", "idle_test"})


def load_stdlib(
    min_words: int = 5,
    min_entries: int = 20,
    *,
    folder: str | os.PathLike[str] | None = None,
    show_progress: bool = False,
) -> LabelledTexts:
    """Read the docstrings of the standard library of the running Python.

    Installed packages, the library's own tests and files that do not parse are left out. Of docstrings with
    the same words only the first is kept: copies would stand on both sides of a split into training and test
    part, and a method would be rewarded for finding them. Entries are in the order of the sorted paths, then
    of the lines in each file, so that the same files always give the same corpus.

    Parameters
    ----------
    min_words : int, default 5
        Shorter docstrings ("Return self.") say too little to be found by and are left out.
    min_entries : int, default 20
        Modules with fewer entries, counted after copies are dropped, are left out.
    folder : path, optional
        The folder to read instead of the running Python's own; only modules with the names of standard
        library modules are read there too.
    show_progress : bool, default False
        Show a progress bar where standard error is a terminal; reading takes a few seconds.

    Returns
    -------
    LabelledTexts
        The docstrings, the top-level module of each, and the full name of what it documents.

    Raises
    ------
    FileNotFoundError
        When the source files are not on disk: some Pythons carry their library compiled or in a zip file.

    Examples
    --------
    >>> from aromatch.datasets import load_stdlib
    >>> corpus = load_stdlib()
    >>> len(corpus) > 4000
    True
    >>> at = corpus.names.index("shutil.copytree")
    >>> print(corpus.labels[at], "|", corpus.texts[at].splitlines()[0])
    shutil | Recursively copy a directory tree and return the destination directory.
    """
    min_words = check_integer(min_words, "min_words", at_least=1)
    min_entries = check_integer(min_entries, "min_entries", at_least=1)
    root = Path(sysconfig.get_path("stdlib") if folder is None else folder)
    paths = _source_files(root)
    if not paths:
        raise FileNotFoundError(
            f"the source of the standard library is not on disk: no .py file of it in {root} "
            "(a Python that carries its library compiled or in a zip file cannot serve as a corpus)"
        )
    entries: dict[str, tuple[str, str, str]] = {}
    with progress_bar("reading the standard library", len(paths), enabled=show_progress) as advance:
        for path in paths:
            parts = path.relative_to(root).with_suffix("").parts
            module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            for name, text in _docstrings(path, module):
                words = text.split()
                if len(words) >= min_words:
                    entries.setdefault(" ".join(words), (text, parts[0], name))
            advance(1)
    sizes = Counter(label for _, label, _ in entries.values())
    kept = [entry for entry in entries.values() if sizes[entry[1]] >= min_entries]
    if not kept:
        raise ValueError(
            f"no module in {root} has {min_entries} docstrings of at least {min_words} words: "
            "min_entries or min_words is too large"
        )
    texts, labels, names = zip(*kept, strict=True)
    return LabelledTexts(list(texts), np.array(labels), list(names))


def _source_files(root: Path) -> list[Path]:
    """List the library's own source files below `root`, sorted by path."""
    found = []
    for here, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in TEST_FOLDERS]
        # Other things live beside the library's modules, such as site-packages.
        if Path(here) == root:
            folders[:] = [name for name in folders if name in sys.stdlib_module_names]
            files = [name for name in files if name.removesuffix(".py") in sys.stdlib_module_names]
        found += [Path(here, name) for name in files if name.endswith(".py")]
    return sorted(found)


def _docstrings(path: Path, module: str) -> Iterator[tuple[str, str]]:
    """Give the name and the docstring of everything documented in a file, in the order of its lines."""
    try:
        with warnings.catch_warnings():
            # Old escapes in string literals are the library's business.
            warnings.simplefilter("ignore", SyntaxWarning)
            warnings.simplefilter("ignore", DeprecationWarning)
            tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):  # Python before 3.11.4 has a ValueError for null bytes
        return
    yield from _documented(tree, module)


def _documented(node: Any, name: str) -> Iterator[tuple[str, str]]:
    text = ast.get_docstring(node)
    if text:
        yield name, text
    # What is defined inside a function has no name that a reader could look up.
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        for definition in _definitions(node):
            yield from _documented(definition, f"{name}.{definition.name}")


def _definitions(node: ast.AST) -> Iterator[Any]:
    """Find the classes and functions of a body, also those that are defined under an `if` or a `try`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
        elif isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield from _definitions(child)

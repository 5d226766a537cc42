"""Docstrings of Python's standard library, a corpus that is available on every machine with Python.

Each module, class, function and method with a docstring is one entry, labelled by its top-level module. The source
files are parsed and never imported: no code runs, and modules of other systems (`asyncio.windows_events`) are included.
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
    verbose: bool = False,
) -> LabelledTexts:
    """Load the docstrings of the standard library of the running Python.

    Installed packages, tests and files that do not parse are left out. Of docstrings with the same words only the first
    is kept, because duplicates in both the training and the test part would inflate the quality of any method. Entries
    are sorted by path and line, so that the same files always give the same corpus.

    Parameters
    ----------
    min_words : int, default 5
        Minimum number of words of a docstring.
    min_entries : int, default 20
        Minimum number of entries of a module, after duplicates are removed.
    folder : path, optional
        The folder to read instead of the library of the running Python; only modules with names of the standard
        library are read.
    verbose : bool, default False
        Show a progress bar if standard error is a terminal; reading takes a few seconds.

    Returns
    -------
    LabelledTexts
        The docstrings, with top-level modules as labels and qualified names as names.

    Raises
    ------
    FileNotFoundError
        If the source files are not on disk: some Pythons contain a compiled or zipped library.

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
            f"no source of the standard library in {root}: a Python with a compiled or zipped library cannot be used "
            "as a corpus"
        )
    entries: dict[str, tuple[str, str, str]] = {}
    with progress_bar("reading the standard library", len(paths), enabled=verbose) as advance:
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
            f"min_entries={min_entries} and min_words={min_words} leave no module of {root}, use smaller values"
        )
    texts, labels, names = zip(*kept, strict=True)
    return LabelledTexts(list(texts), np.array(labels), list(names))


def _source_files(root: Path) -> list[Path]:
    """Return the source files of the library below `root`, sorted by path."""
    found = []
    for here, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in TEST_FOLDERS]
        # The folder may contain other packages, such as site-packages.
        if Path(here) == root:
            folders[:] = [name for name in folders if name in sys.stdlib_module_names]
            files = [name for name in files if name.removesuffix(".py") in sys.stdlib_module_names]
        found += [Path(here, name) for name in files if name.endswith(".py")]
    return sorted(found)


def _docstrings(path: Path, module: str) -> Iterator[tuple[str, str]]:
    """Return the names and docstrings of a file, in the order of its lines."""
    try:
        with warnings.catch_warnings():
            # Warnings about the library's source are of no use to the caller.
            warnings.simplefilter("ignore", SyntaxWarning)
            warnings.simplefilter("ignore", DeprecationWarning)
            tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):  # Python before 3.11.4 raises ValueError for null bytes
        return
    yield from _documented(tree, module)


def _documented(node: Any, name: str) -> Iterator[tuple[str, str]]:
    text = ast.get_docstring(node)
    if text:
        yield name, text
    # Definitions inside functions have no importable name.
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        for definition in _definitions(node):
            yield from _documented(definition, f"{name}.{definition.name}")


def _definitions(node: ast.AST) -> Iterator[Any]:
    """Return the classes and functions of a body, including those under an `if` or a `try`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
        elif isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield from _definitions(child)

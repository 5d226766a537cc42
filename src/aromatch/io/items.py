"""Read a collection from a file or a folder: vectors or texts, with ids and optional labels.

The file extension determines the format:

- a folder: every file in it and in its subfolders is a text, its id is its relative path. If all files are in
  subfolders, the first folder is the label. Hidden files, binary files, texts without letters and links that lead
  out of the folder are left out.
- ``.csv``, ``.tsv``: with column names in the first line, or without them if it contains numbers only. With a column
  ``text`` the rows are texts, otherwise all columns except id and label are features.
- ``.jsonl``: a JSON object a line, with ``text`` or ``vector``.
- ``.npy``: a matrix. ``.npz``: a matrix ``X`` or ``vectors``, with optional ``ids`` and ``labels``, or a sparse matrix
  saved by SciPy.
- ``.svm``, ``.svmlight``, ``.libsvm``: labels and sparse rows.

Ids are called ``id``, ``_id``, ``doc_id`` or ``query_id``; labels ``label``, ``category`` or ``class``; a ``title`` is
prepended to its text. Rows without ids are numbered from 0.
"""

from __future__ import annotations

import sys
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._utils.rows import Matrix, as_float64, as_matrix, read_all
from .arrays import n_bytes_converted, read_npy, read_npz, read_svmlight
from .folder import read_folder
from .limits import BYTES_OF_ROW, check_memory
from .records import as_id, as_number, has_letters, records

IDS = ("id", "_id", "doc_id", "query_id")
LABELS = ("label", "category", "class")
_BYTES_BETWEEN_CHECKS = 2**24
SVMLIGHT = (".svm", ".svmlight", ".libsvm")


@dataclass(frozen=True, eq=False, slots=True)
class Items:
    """A collection of vectors or of texts."""

    source: str
    """The path as given."""
    ids: list[str]
    vectors: Matrix | None = None
    """An array or a CSR matrix, a row for each id."""
    texts: list[str] | None = None
    labels: NDArray[np.object_] | None = None
    """Labels as str; None for rows without one."""
    names: list[str] | None = None
    """Names of the features, if the file has names."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Number of items that were left out or changed, by reason."""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def what(self) -> str:
        """The kind of items: "texts" or "vectors"."""
        return "texts" if self.texts is not None else "vectors"

    @property
    def notes(self) -> list[str]:
        """Return messages about items that were left out or changed."""
        return [f"{self.source}: {count:,} {reason}" for reason, count in self.left_out.items()]

    def select(self, rows: Sequence[int] | NDArray[np.int64]) -> Items:
        """Return some of the items."""
        return Items(
            self.source,
            [self.ids[row] for row in rows],
            None if self.vectors is None else self.vectors[rows],
            None if self.texts is None else [self.texts[row] for row in rows],
            None if self.labels is None else self.labels[rows],
            self.names,
        )


def read_items(path: str | PathLike[str], *, width: int | None = None) -> Items:
    """Read a collection.

    Parameters
    ----------
    path : path
        A file or a folder; the module docstring lists the formats.
    width : int, optional
        Expected number of features, which svmlight files do not contain.
    """
    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(f"{file} does not exist, expected a file or a folder of texts")
    if file.is_dir():
        found = read_folder(file)
        return _checked(Items(str(path), found.ids, texts=found.texts, labels=found.labels, left_out=found.left_out))
    kind = file.suffix.lower()
    if kind == ".npy":
        return _of_matrix(path, read_npy(file), None, None)
    if kind == ".npz":
        return _of_matrix(path, *read_npz(file))
    if kind in SVMLIGHT:
        return _of_matrix(path, *read_svmlight(file, width))
    if kind in (".csv", ".tsv", ".jsonl"):
        return _checked(_of_records(file, str(path)))
    expected = ", ".join((".csv", ".tsv", ".jsonl", ".npy", ".npz", *SVMLIGHT))
    raise ValueError(f"{file} has an unsupported file extension: expected a folder of texts or a file {expected}")


def _of_matrix(path: Any, vectors: Any, ids: Any, labels: Any) -> Items:
    matrix = as_matrix(vectors, str(path))
    n = matrix.shape[0]
    if not sparse.issparse(matrix):
        # A matrix that is mapped takes memory if it is converted; the reader of npz has counted the matrix, too.
        check_memory(path, n_bytes_converted(matrix.shape, matrix.dtype) + n * BYTES_OF_ROW)
    if matrix.dtype not in (np.float32, np.float64):
        is_short = matrix.dtype.kind == "f" and matrix.dtype.itemsize <= 4
        matrix = matrix.astype(np.float32) if is_short else as_float64(matrix, str(path))
    read_all(matrix, str(path))
    names = [str(number) for number in range(n)] if ids is None else _column(ids, n, "ids", path)
    given = None if labels is None else np.array(_column(labels, n, "labels", path), dtype=object)
    return _checked(Items(str(path), names, vectors=matrix, labels=given))


def _column(values: Any, n: int, name: str, path: Any) -> list[str]:
    """Return a str for each row; 2.0 becomes "2"."""
    column = np.asarray(values)
    if column.ndim != 1 or len(column) != n or column.dtype.kind not in "USifub":
        raise ValueError(f"{path}: {name} must be one for each of the {n} rows, got the shape {column.shape}")
    if column.dtype.kind == "f":
        if not np.isfinite(column).all():
            raise ValueError(f"{path}: {name} contains NaN or infinity")
        return [f"{value:.17g}" for value in column.tolist()]
    return [value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value) for value in column.tolist()]


def _of_records(file: Path, source: str) -> Items:
    """Read lines of texts or of vectors."""
    ids: list[str] = []
    labels: list[str | None] = []
    texts: list[str] = []
    numbers, names, width = array("d"), None, None
    is_text: bool | None = None
    n_bytes = n_checked = 0
    left_out: Counter[str] = Counter()
    for where, values in records(file, is_header=has_letters, unnamed=lambda n: [f"feature {at}" for at in range(n)]):
        if is_text is None:
            is_text = "text" in values
            names = None if is_text or "vector" in values else _features(values, where)
        one = next((values[name] for name in IDS if name in values), None)
        number = str(len(ids)) if one is None else as_id(one, "the id", where)
        if is_text:
            text = _text(values, where)
            # Kept: judgements may refer to its id.
            left_out["texts without a letter"] += not any(letter.isalnum() for letter in text)
            texts.append(text)
        else:
            row = _row(values, names, where)
            if width is not None and len(row) != width:
                raise ValueError(f"{where} has a vector of {len(row)} numbers, expected {width} as in those before it")
            width = len(row)
            numbers.extend(row)
        ids.append(number)
        label = next((values[name] for name in LABELS if name in values), None)
        labels.append(None if label is None or label == "" else str(label))
        n_bytes += BYTES_OF_ROW + len(number) + len(labels[-1] or "")
        n_bytes += sys.getsizeof(texts[-1]) if is_text else len(row) * numbers.itemsize
        if n_bytes > n_checked + _BYTES_BETWEEN_CHECKS:
            check_memory(file, n_bytes)
            n_checked = n_bytes
    if not ids:
        raise ValueError(f"{file} is empty, expected at least one line")
    check_memory(file, n_bytes)
    vectors = None if is_text else np.frombuffer(numbers).reshape(len(ids), -1)
    known = np.array(labels, dtype=object) if any(label is not None for label in labels) else None
    return Items(source, ids, vectors, texts if is_text else None, known, names, dict(+left_out))


def _features(values: dict[str, Any], where: str) -> list[str]:
    names = [name for name in values if name not in (*IDS, *LABELS, "title", "time")]
    if where.partition(", line")[0].endswith(".jsonl") or not names:
        raise ValueError(f"{where} has neither text nor vector, got {', '.join(values) or 'nothing':.200}")
    return names


def _text(values: dict[str, Any], where: str) -> str:
    parts = [values.get("title"), values.get("text")]
    if not isinstance(parts[1], str):
        raise ValueError(f"{where}: text must be a string, got {parts[1]!r:.100}")
    return "\n".join(part for part in parts if isinstance(part, str) and part)


def _row(values: dict[str, Any], names: Sequence[str] | None, where: str) -> list[float]:
    if names is not None:
        absent = [name for name in names if name not in values]
        if absent:
            raise ValueError(f"{where} has no {absent[0]!r:.100}")
        return [as_number(values[name], name, where) for name in names]
    vector = values.get("vector")
    if isinstance(vector, str):  # a cell of a csv file
        vector = vector.strip("[]").replace(",", " ").split()
    if not isinstance(vector, list) or not vector:
        raise ValueError(f"{where}: the vector must be a list of numbers, got {str(vector)[:40]!r}")
    return [as_number(value, f"number {at} of the vector", where) for at, value in enumerate(vector)]


def _checked(items: Items) -> Items:
    if len(set(items.ids)) < len(items):
        twice, count = Counter(items.ids).most_common(1)[0]
        raise ValueError(f"{items.source}: ids must be unique, but {twice!r:.100} occurs {count} times")
    return items

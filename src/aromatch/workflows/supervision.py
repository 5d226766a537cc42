"""What people said about a collection: labels, triplets, relevance judgements or clicks.

Whatever it is, it becomes triplets of row numbers to learn from, and something to measure by: labels, grades, or
comparisons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._utils.checks import check_choice
from ..io.arrays import read_npy
from ..io.items import IDS, LABELS, Items
from ..io.records import as_id, as_number, records
from ..triplets import from_clicks, from_qrels
from ..triplets.qrels import judgements

KINDS = ("labels", "triplets", "qrels", "clicks")
TRIPLET = ("query", "better", "worse")
# A line of the log of `ask` that tells of a session, or of a question that was not answered.
_NO_JUDGEMENT = ("session", "skipped")


@dataclass(frozen=True, eq=False, slots=True)
class Supervision:
    """What was said, by rows of queries and of objects."""

    kind: str
    """One of `KINDS`."""
    source: str
    """The file, or what had the labels in it."""
    told: str
    """What was found, in a few words."""
    labels: NDArray[np.object_] | None = None
    """Of the queries, for labels; None where a row has none."""
    object_labels: NDArray[np.object_] | None = None
    """Of the objects, when these are not the queries."""
    triplets: NDArray[np.int64] | None = None
    weights: NDArray[np.float64] | None = None
    times: NDArray[np.float64] | None = None
    """When each triplet was said, where a file tells."""
    grades: Any = None
    """For qrels, a CSR matrix of queries and objects; what was not judged is not stored."""

    @property
    def query_rows(self) -> NDArray[np.int64]:
        """Rows of queries that something was said about."""
        if self.labels is not None:
            return np.flatnonzero(self.labels != None)  # noqa: E711 - element by element
        if self.grades is not None:
            return np.flatnonzero(np.diff(self.grades.indptr))
        assert self.triplets is not None
        return np.unique(self.triplets[:, 0])


def read_supervision(
    objects: Items,
    queries: Items | None,
    *,
    missing: str = "error",
    seed: int = 0,
    files: Mapping[str, str | None],
) -> Supervision:
    """Read what was said.

    Parameters
    ----------
    objects : Items
    queries : Items, optional
        When they are others than the objects.
    missing : {"error", "skip"}, default "error"
        What to do with ids that nothing has.
    seed : int, default 0
        Draws objects to compare with, for qrels and clicks.
    files : path by kind
        At most one of labels, triplets, qrels and clicks. Without any, labels that the collection has itself.
    """
    check_choice(missing, "--missing", ("error", "skip"))
    given = {kind: path for kind, path in files.items() if path is not None}
    if len(given) > 1:
        raise ValueError(f"give one of {', '.join(f'--{kind}' for kind in given)}, not several")
    if not given:
        return _own_labels(objects, queries)
    (kind, path), who = next(iter(given.items())), objects if queries is None else queries
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path} is not there, expected a file of {kind}")
    if kind == "labels":
        return _labels(path, objects, queries, missing)
    if kind == "triplets":
        return _triplets(path, objects, who, missing)
    make = from_qrels if kind == "qrels" else from_clicks
    try:
        found = make(path, who.ids, objects.ids, missing=missing, random_state=seed)
    except ValueError as error:
        told = str(error).replace("missing='skip'", "--missing skip")
        raise ValueError(
            told.replace("query_ids", "the ids of queries").replace("object_ids", "those of objects")
        ) from None
    if not len(found.triplets):
        raise ValueError(f"{path} says of no object that it is better than another, expected {kind} that do")
    grades = _grades(path, who, objects, missing) if kind == "qrels" else None
    return Supervision(kind, path, str(found.report), None, None, found.triplets, found.sample_weight, None, grades)


def _own_labels(objects: Items, queries: Items | None) -> Supervision:
    unlabelled = [items.source for items in (objects, queries) if items is not None and items.labels is None]
    if unlabelled:
        raise ValueError(
            f"{unlabelled[0]} has no labels, and nothing else says what is similar: "
            "give --labels, --triplets, --qrels or --clicks"
        )
    return _labelled(objects.source, objects, queries, objects.labels, None if queries is None else queries.labels)


def _labelled(source: str, objects: Items, queries: Items | None, of_objects: Any, of_queries: Any) -> Supervision:
    known = of_objects[of_objects != None]  # noqa: E711
    classes = len(set(known.tolist()))
    told = f"{classes:,} labels of {len(known):,} {objects.what}"
    if classes < 2:
        raise ValueError(f"{source} has {classes} different labels, expected at least two to tell apart")
    if queries is None:
        return Supervision("labels", source, told, of_objects)
    return Supervision("labels", source, told, of_queries, of_objects)


def _labels(path: str, objects: Items, queries: Items | None, missing: str) -> Supervision:
    """Read a file with the label of each id, of objects and of queries."""
    sides = [objects] if queries is None else [objects, queries]
    if Path(path).suffix.lower() == ".npy":
        column = read_npy(Path(path))
        if queries is not None or column.ndim != 1 or len(column) != len(objects):
            raise ValueError(f"{path} must have one label for each of {len(objects):,} rows, got {column.shape}")
        return _labelled(path, objects, None, np.array([str(value) for value in column.tolist()], dtype=object), None)
    rows = [{one: row for row, one in enumerate(side.ids)} for side in sides]
    found = [np.full(len(side), None, dtype=object) for side in sides]
    n_known = 0
    for where, values in records(path, is_header=_is_id_and_label, unnamed=_names_of(("id", "label"), path)):
        one = as_id(_first(values, IDS, where), "the id", where)
        label = as_id(_first(values, LABELS, where), "the label", where)
        places = [(labels, row[one]) for labels, row in zip(found, rows, strict=True) if one in row]
        if not places and missing == "error":
            raise ValueError(f"{where}: nothing has the id {one!r}; there are ids such as {objects.ids[0]!r}")
        for labels, row in places:
            labels[row] = label
            n_known += 1
    if not n_known:
        raise ValueError(f"{path} labels nothing that is there: ids are such as {objects.ids[0]!r}")
    return _labelled(path, objects, queries, found[0], found[-1])


def _is_id_and_label(row: Sequence[str]) -> bool:
    return any(cell.strip() in LABELS for cell in row)


def _first(values: dict[str, Any], names: Sequence[str], where: str) -> Any:
    for name in names:
        if name in values:
            return values[name]
    raise ValueError(f"{where} has no {names[0]!r}, got {', '.join(values) or 'nothing'}")


def _names_of(names: Sequence[str], path: str) -> Any:
    def named(n: int) -> Sequence[str]:
        if n != len(names):
            raise ValueError(f"{path} has {n} columns, expected {len(names)}: {', '.join(names)}")
        return names

    return named


def _triplets(path: str, objects: Items, queries: Items, missing: str) -> Supervision:
    """Read ids of a query, of the better and of the worse object; an array has row numbers."""
    if Path(path).suffix.lower() == ".npy":
        rows = read_npy(Path(path))
        if rows.ndim != 2 or rows.shape[1] != 3 or rows.dtype.kind not in "iu" or not len(rows):
            raise ValueError(f"{path} must have row numbers of query, better and worse object, got {rows.shape}")
        for column, items in zip(rows.T, (queries, objects, objects), strict=True):
            if column.min() < 0 or column.max() >= len(items):
                at = int(np.flatnonzero((column < 0) | (column >= len(items)))[0])
                raise ValueError(f"{path}, triplet {at}: there is no row {column[at]} in {items.source}")
        return Supervision("triplets", path, f"{len(rows):,} triplets", triplets=np.array(rows, dtype=np.int64))
    places = [{one: row for row, one in enumerate(items.ids)} for items in (queries, objects, objects)]
    found: list[list[int]] = []
    times: list[float] = []
    weights: list[float] = []
    n_unknown = n_read = 0
    for where, values in records(path, is_header=lambda row: "query" in row, unnamed=_names_of(TRIPLET, path)):
        if any(name in values for name in _NO_JUDGEMENT):
            continue
        n_read += 1
        triplet = []
        for name, rows_of, items in zip(TRIPLET, places, (queries, objects, objects), strict=True):
            one = as_id(_first(values, (name,), where), name, where)
            if one not in rows_of and missing == "error":
                raise ValueError(f"{where}: no {name} has the id {one!r}; there are ids such as {items.ids[0]!r}")
            triplet.append(rows_of.get(one, -1))
        if min(triplet) < 0:
            n_unknown += 1
            continue
        if triplet[1] == triplet[2]:
            raise ValueError(f"{where}: better and worse are the same, {values['better']!r}")
        found.append(triplet)
        weights.append(as_number(values.get("weight", 1.0), "the weight", where))
        if weights[-1] < 0:
            raise ValueError(f"{where}: the weight must be at least 0, got {weights[-1]:g}")
        if "time" in values:
            times.append(as_number(values["time"], "the time", where))
    if not found:
        raise ValueError(f"{path} has no triplet of what is there, expected query, better and worse ({n_read:,} read)")
    told = f"{len(found):,} triplets" + (f", {n_unknown:,} of unknown ids left out" if n_unknown else "")
    return Supervision(
        "triplets",
        path,
        told,
        triplets=np.array(found, dtype=np.int64),
        weights=np.array(weights),
        times=np.array(times) if len(times) == len(found) else None,
    )


def _grades(path: str, queries: Items, objects: Items, missing: str) -> Any:
    """Give the grades of a file of relevance judgements; of what was judged twice the last counts."""
    rows, columns = ({one: at for at, one in enumerate(items.ids)} for items in (queries, objects))
    cells: dict[tuple[int, int], float] = {}
    for _, query, one, grade in judgements(path):
        if query in rows and one in columns:
            cells[rows[query], columns[one]] = grade
    places = np.array(list(cells), dtype=np.int64).reshape(-1, 2)
    return sparse.csr_array((np.array(list(cells.values())), places.T), shape=(len(queries), len(objects)))

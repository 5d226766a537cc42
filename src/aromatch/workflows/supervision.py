"""Read a collection with its supervision: labels, triplets, relevance judgements or clicks.

Every kind of supervision is read into triplets of rows, or labels to sample them from, and into what rankings are
evaluated by: labels, grades or comparisons.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._utils.checks import check_choice, check_integer, check_number
from ..io.arrays import read_npy
from ..io.items import IDS, LABELS, Items, read_items
from ..io.limits import BYTES_OF_ROW, check_memory
from ..io.record_log import read_log
from ..io.records import Record, as_id, as_number, records
from ..triplets import from_clicks, from_qrels
from ..triplets.qrels import read_qrels

Rows = NDArray[np.int64]
TRIPLET = ("query", "better", "worse")
# Lines in the log of `aromatch ask` that contain no judgement.
_NO_JUDGEMENT = ("session", "skipped")


@dataclass(frozen=True, eq=False, slots=True)
class Supervised:
    """Objects, queries and the supervision that relates them."""

    objects: Items
    queries: Items | None
    """None if the objects are the queries."""
    kind: str = ""
    """labels, triplets, qrels or clicks."""
    summary: str = ""
    """Counts of what was read."""
    labels: NDArray[np.object_] | None = None
    """Labels of the queries; None for rows without one."""
    object_labels: NDArray[np.object_] | None = None
    """Labels of the objects, if these are not the queries."""
    triplets: Rows | None = None
    weights: NDArray[np.float64] | None = None
    grades: Any = None
    """For qrels, a CSR matrix of queries and objects; objects without a judgement are not stored."""

    @property
    def asking(self) -> Items:
        """The queries, which may be the objects."""
        return self.objects if self.queries is None else self.queries

    @property
    def query_rows(self) -> Rows:
        """Rows of the queries that have supervision."""
        if self.labels is not None:
            return np.flatnonzero(self.labels != None)  # noqa: E711 - element by element
        if self.grades is not None:
            return np.flatnonzero(np.diff(self.grades.indptr))
        assert self.triplets is not None
        return np.unique(self.triplets[:, 0])

    @property
    def labelled_objects(self) -> Rows:
        """Rows of the objects that have a label, if these are not the queries."""
        return np.flatnonzero(self.object_labels != None)  # noqa: E711 - element by element

    @property
    def notes(self) -> list[str]:
        """Return what was left out or changed while reading."""
        return [note for items in (self.objects, self.queries) if items is not None for note in items.notes]

    def split(self, share: float, seed: int) -> tuple[Rows, Rows]:
        """Return the sorted rows of the training queries and of the held-out queries."""
        check_number(share, "--hold-out", at_least=0)
        if share >= 1:
            raise ValueError(f"--hold-out must be a share below 1, got {share:g}")
        rows = self.query_rows
        n_held_out = round(share * len(rows))
        if n_held_out == len(rows):
            raise ValueError(f"--hold-out {share:g} leaves none of {len(rows)} queries for training")
        order = np.random.default_rng([seed, 1]).permutation(rows)
        return np.sort(order[n_held_out:]), np.sort(order[:n_held_out])


def read_supervised(
    data: str,
    queries: str | None = None,
    *,
    files: Mapping[str, str | None],
    missing: str = "error",
    seed: int = 0,
    widths: tuple[int | None, int | None] = (None, None),
) -> Supervised:
    """Read a collection, its queries and its supervision.

    Parameters
    ----------
    data : path
        The objects.
    queries : path, optional
        The queries, if these are not the objects.
    files : path by kind
        At most one of labels, triplets, qrels and clicks. Without any, or with the collection as labels, the labels of
        the collection itself.
    missing : {"error", "skip"}, default "error"
        Whether unknown ids raise an error or are skipped.
    seed : int, default 0
        Random seed for the negatives of qrels and clicks.
    widths : pair of int, optional
        Expected number of features of queries and objects, which svmlight files do not contain.
    """
    check_integer(seed, "--seed", at_least=0)
    objects = read_items(data, width=widths[1])
    asking = None if queries is None else read_items(queries, width=widths[0])
    if asking is not None and asking.what != objects.what:
        raise ValueError(f"{asking.source} has {asking.what}, but {objects.source} has {objects.what}")
    return read_supervision(objects, asking, files=files, missing=missing, seed=seed)


def read_supervision(
    objects: Items, queries: Items | None, *, files: Mapping[str, str | None], missing: str = "error", seed: int = 0
) -> Supervised:
    """Read the supervision of a collection; the parameters are those of `read_supervised`."""
    check_choice(missing, "--missing", ("error", "skip"))
    given = {kind: path for kind, path in files.items() if path is not None}
    if len(given) > 1:
        raise ValueError(
            f"at most one kind of supervision is allowed, got {' and '.join(f'--{kind}' for kind in given)}"
        )
    data = Supervised(objects, queries)
    if not given:
        return _own_labels(data)
    kind, path = next(iter(given.items()))
    if kind == "labels" and path == objects.source:
        return _own_labels(data)
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path} does not exist, expected a file of {kind}")
    data = replace(data, kind=kind)
    if kind == "labels":
        return _read_labels(data, path, missing)
    if kind == "triplets":
        return _read_triplets(data, path, missing)
    make = from_qrels if kind == "qrels" else from_clicks
    try:
        found = make(path, data.asking.ids, objects.ids, missing=missing, random_state=seed)
    except ValueError as error:
        message = str(error).replace("missing='skip'", "--missing skip")
        raise ValueError(
            message.replace("query_ids", "the query ids").replace("object_ids", "the object ids")
        ) from None
    if not len(found.triplets):
        raise ValueError(f"{path} contains no comparison, expected {kind} that prefer an object over another")
    grades = _grades(path, data.asking, objects) if kind == "qrels" else None
    return replace(data, summary=str(found.report), triplets=found.triplets, weights=found.sample_weight, grades=grades)


def content_hashes(items: Items, rows: Rows) -> Rows:
    """Return a hash of the content of each row, which does not depend on its file or position."""
    if items.texts is not None:
        contents: Any = (items.texts[row].encode("utf-8", "replace") for row in rows)
    elif sparse.issparse(vectors := items.vectors):
        contents = (_sparse_bytes(vectors[[row]]) for row in rows)  # type: ignore[index]
    else:
        assert vectors is not None
        contents = (np.asarray(vectors[row] + 0.0, dtype=np.float64).tobytes() for row in rows)
    digests = b"".join(hashlib.sha256(content).digest()[:8] for content in contents)
    return np.frombuffer(digests, dtype="<i8").astype(np.int64)


def _sparse_bytes(row: Any) -> bytes:
    is_nonzero = row.data != 0
    order = np.argsort(row.indices[is_nonzero], kind="stable")
    indices, values = row.indices[is_nonzero][order], row.data[is_nonzero][order]
    return bytes(indices.astype("<i8").tobytes() + values.astype("<f8").tobytes())


# -- labels -----------------------------------------------------------------------------------------------------------


def _own_labels(data: Supervised) -> Supervised:
    unlabelled = [items.source for items in (data.objects, data.queries) if items is not None and items.labels is None]
    if unlabelled:
        raise ValueError(
            f"exactly one of --labels, --triplets, --qrels and --clicks is required, got none, and {unlabelled[0]} has "
            "no labels"
        )
    queries = None if data.queries is None else data.queries.labels
    return _labelled(data, data.objects.source, data.objects.labels, queries)


def _labelled(data: Supervised, source: str, of_objects: Any, of_queries: Any) -> Supervised:
    known = of_objects[of_objects != None]  # noqa: E711
    n_classes = len(set(known.tolist()))
    if n_classes < 2:
        raise ValueError(f"{source} has {n_classes} different labels, expected at least two")
    summary = f"{len(known):,} {data.objects.what} in {n_classes:,} classes"
    if data.queries is None:
        return replace(data, kind="labels", summary=summary, labels=of_objects)
    return replace(data, kind="labels", summary=summary, labels=of_queries, object_labels=of_objects)


def _read_labels(data: Supervised, path: str, missing: str) -> Supervised:
    """Read the label of each id, of objects and of queries; an array has one label for each row."""
    objects, sides = data.objects, [data.objects] if data.queries is None else [data.objects, data.queries]
    if Path(path).suffix.lower() == ".npy":
        column = read_npy(Path(path))
        if data.queries is not None or column.ndim != 1 or len(column) != len(objects):
            raise ValueError(f"{path} must have one label for each of {len(objects):,} rows, got {column.shape}")
        check_memory(path, len(column) * BYTES_OF_ROW)
        return _labelled(data, path, np.array([str(value) for value in column.tolist()], dtype=object), None)
    rows = [{one: row for row, one in enumerate(side.ids)} for side in sides]
    found = [np.full(len(side), None, dtype=object) for side in sides]
    n_known = 0
    for where, values in records(path, is_header=_is_id_and_label, unnamed=_names_of(("id", "label"), path)):
        one = as_id(_first(values, IDS, where), "the id", where)
        label = as_id(_first(values, LABELS, where), "the label", where)
        targets = [(labels, row[one]) for labels, row in zip(found, rows, strict=True) if one in row]
        if not targets and missing == "error":
            raise ValueError(f"{where}: unknown id {one!r:.100}; ids are such as {objects.ids[0]!r:.100}")
        for labels, row in targets:
            labels[row] = label
            n_known += 1
    if not n_known:
        raise ValueError(f"{path} has no known id; ids are such as {objects.ids[0]!r:.100}")
    return _labelled(data, path, found[0], found[-1])


def _is_id_and_label(row: Sequence[str]) -> bool:
    return any(cell.strip() in LABELS for cell in row)


def _first(values: dict[str, Any], names: Sequence[str], where: str) -> Any:
    for name in names:
        if name in values:
            return values[name]
    raise ValueError(f"{where} has no {names[0]!r}, got {', '.join(values) or 'nothing':.200}")


def _names_of(names: Sequence[str], path: str) -> Any:
    def named(n: int) -> Sequence[str]:
        if n != len(names):
            raise ValueError(f"{path} has {n} columns, expected {len(names)}: {', '.join(names)}")
        return names

    return named


# -- triplets and grades ----------------------------------------------------------------------------------------------


def _read_triplets(data: Supervised, path: str, missing: str) -> Supervised:
    """Read ids of a query, of the better and of the worse object; an array has row indices."""
    sides = (data.asking, data.objects, data.objects)
    if Path(path).suffix.lower() == ".npy":
        rows = read_npy(Path(path))
        if rows.ndim != 2 or rows.shape[1] != 3 or rows.dtype.kind not in "iu" or not len(rows):
            raise ValueError(f"{path} must have row indices of query, better and worse object, got {rows.shape}")
        check_memory(path, rows.size * np.dtype(np.int64).itemsize)
        for column, items in zip(rows.T, sides, strict=True):
            if column.min() < 0 or column.max() >= len(items):
                at = int(np.flatnonzero((column < 0) | (column >= len(items)))[0])
                raise ValueError(f"{path}, triplet {at}: {items.source} has no row {column[at]}")
        return replace(data, summary=f"{len(rows):,} triplets", triplets=np.array(rows, dtype=np.int64))
    found: Iterable[Record]
    if Path(path).suffix.lower() == ".jsonl":  # which may be the log of a killed `aromatch ask`
        found, _, n_torn = read_log(path)
    else:
        found, n_torn = records(path, is_header=lambda row: "query" in row, unnamed=_names_of(TRIPLET, path)), 0
    row_of = [{one: row for row, one in enumerate(items.ids)} for items in sides]
    triplets: list[list[int]] = []
    weights: list[float] = []
    n_unknown = n_read = 0
    for where, values in found:
        if any(name in values for name in _NO_JUDGEMENT):
            continue
        n_read += 1
        triplet = []
        for name, rows_of, items in zip(TRIPLET, row_of, sides, strict=True):
            one = as_id(_first(values, (name,), where), name, where)
            if one not in rows_of and missing == "error":
                raise ValueError(
                    f"{where}: {name} has the unknown id {one!r:.100}; ids are such as {items.ids[0]!r:.100}"
                )
            triplet.append(rows_of.get(one, -1))
        if min(triplet) < 0:
            n_unknown += 1
            continue
        if triplet[1] == triplet[2]:
            raise ValueError(f"{where}: better and worse are the same, {values['better']!r:.100}")
        triplets.append(triplet)
        weights.append(as_number(values.get("weight", 1.0), "the weight", where))
        if weights[-1] < 0:
            raise ValueError(f"{where}: the weight must be at least 0, got {weights[-1]:g}")
    if not triplets:
        raise ValueError(f"{path} has no triplet of known ids, expected query, better and worse ({n_read:,} read)")
    summary = f"{len(triplets):,} triplets" + (f", {n_unknown:,} with unknown ids skipped" if n_unknown else "")
    if n_torn:
        summary += ", the last record was cut off and skipped"
    return replace(data, summary=summary, triplets=np.array(triplets, dtype=np.int64), weights=np.array(weights))


def _grades(path: str, queries: Items, objects: Items) -> Any:
    """Return the grades of a qrels file; of repeated judgements the last one counts."""
    rows, columns = ({one: at for at, one in enumerate(items.ids)} for items in (queries, objects))
    cells: dict[tuple[int, int], float] = {}
    for _, query, one, grade in read_qrels(path):
        if query in rows and one in columns:
            cells[rows[query], columns[one]] = grade
    indices = np.array(list(cells), dtype=np.int64).reshape(-1, 2)
    return sparse.csr_array((np.array(list(cells.values())), indices.T), shape=(len(queries), len(objects)))

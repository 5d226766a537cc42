"""The result lists of a log by rows, in the order of time.

`aromatch.io.logs` describes the format. A ``time``, a number or an ISO 8601 date, determines the order; without it
lines are in order. The query is an id of the queries or of an object, which is not a result of its own query. If
objects are texts and there is no file of queries, any other query is the words of a search.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...io.items import Items
from ...io.logs import read_lists
from ...io.records import as_id, as_time
from ..supervision import Rows


class JudgedList(NamedTuple):
    """One result list; all fields are rows."""

    query: int
    good: Rows
    bad: Rows
    """Objects judged bad, or skipped above the last click."""
    shown: Rows
    """All objects in the list; in rank order for clicks."""
    others: Rows
    """Objects that good ones are compared with: those judged bad, or all that were shown and not clicked."""

    @property
    def is_informative(self) -> bool:
        """Whether the list has a good object and another one to compare it with."""
        return len(self.good) > 0 and len(self.others) > 0


@dataclass(frozen=True, eq=False, slots=True)
class Log:
    """The lists of a log."""

    kind: str
    lists: list[JudgedList]
    """Oldest first."""
    queries: Items
    own_rows: Rows
    """For each query its row among the objects, which it does not retrieve, or -1."""
    has_times: bool
    n_unknown: int
    """Unknown object ids that were skipped."""
    n_empty: int
    """Lists without judgements or clicks."""


def read_log(path: str, kind: str, objects: Items, queries: Items | None, *, missing: str) -> Log:
    """Read the lists of a log; `missing` is "error" or "skip" for unknown object ids."""
    named = _NamedQueries(objects, queries)
    row_of = {one: row for row, one in enumerate(objects.ids)}
    found: list[tuple[float, JudgedList]] = []
    n_read = n_unknown = n_empty = n_timed = 0
    for where, name, *columns, time in read_lists(path, kind, row_of):
        n_read += 1
        query, own_row = named.row(as_id(name, "query", where), where)
        listed: list[list[int]] = []
        for column in columns:
            ids = [as_id(one, "an id", where) for one in column]
            rows = [row_of.get(one, -1) for one in ids]
            if -1 in rows and missing == "error":
                raise ValueError(
                    f"{where}: unknown object id {ids[rows.index(-1)]!r:.100}; ids are such as "
                    f"{objects.ids[0]!r:.100}; --missing skip skips unknown ids"
                )
            n_unknown += rows.count(-1)
            listed.append(list(dict.fromkeys(row for row in rows if row >= 0 and row != own_row)))
        one = _judged_list(query, listed[0], listed[1], kind, where)
        n_timed += time is not None
        if one is None:
            n_empty += 1
            continue
        found.append((as_time(time, where) if time is not None else float(n_read), one))
    if not found:
        raise ValueError(f"{path} has no list with {kind}, expected at least one ({n_read:,} lines read)")
    if n_timed not in (0, n_read):
        raise ValueError(f"{path}: {n_timed:,} of {n_read:,} lines have a time, expected all or none")
    found.sort(key=lambda each: each[0])
    items, own_rows = named.items()
    return Log(kind, [one for _, one in found], items, own_rows, n_timed > 0, n_unknown, n_empty)


def _judged_list(query: int, first: list[int], second: list[int], kind: str, where: str) -> JudgedList | None:
    if kind == "judgements":
        if both := set(first) & set(second):
            raise ValueError(f"{where}: good and bad must be disjoint, got {len(both)} ids in both")
        good, bad, shown, others = first, second, first + second, second
    else:
        good = [one for one in first if one in second]
        last = max((first.index(one) for one in good), default=0)
        shown, others = first, [one for one in first if one not in good]
        bad = [one for one in first[:last] if one not in good]
    if not good and not bad:
        return None
    return JudgedList(query, *(np.array(rows, dtype=np.int64) for rows in (good, bad, shown, others)))


class _NamedQueries:
    """The queries of a log: ids of queries or of objects, or words."""

    def __init__(self, objects: Items, queries: Items | None) -> None:
        self._objects, self._queries = objects, queries
        self._row_of = {one: row for row, one in enumerate((objects if queries is None else queries).ids)}
        self._rows: dict[str, int] = {}

    def row(self, one: str, where: str) -> tuple[int, int]:
        """Return the row of a query, a new one at its first occurrence, and its row among the objects, or -1."""
        if one not in self._row_of and (self._queries is not None or self._objects.texts is None):
            what = "query" if self._queries is not None else "object"
            raise ValueError(f"{where}: unknown {what} id {one!r:.100}")
        own_row = self._row_of.get(one, -1) if self._queries is None else -1
        return self._rows.setdefault(one, len(self._rows)), own_row

    def items(self) -> tuple[Items, Rows]:
        """Return the queries, and their rows among the objects."""
        names, source = list(self._rows), self._objects if self._queries is None else self._queries
        rows = [self._row_of.get(one, -1) for one in names]
        own_rows = np.array(rows if self._queries is None else [-1] * len(names), dtype=np.int64)
        if source.texts is not None:
            texts = [one if at < 0 else source.texts[at] for one, at in zip(names, rows, strict=True)]
            return Items(source.source, names, texts=texts), own_rows
        assert source.vectors is not None
        return Items(source.source, names, vectors=source.vectors[np.array(rows)]), own_rows

"""A team's log, as lists that somebody judged or clicked, in the order of time.

A line has a query, and either what was ``good`` and what was ``bad`` for it, or what was ``shown``, in its order, and
what was ``clicked``. In ``.jsonl`` these are lists of ids, in ``.csv`` ids with spaces between. A ``time``, a number or
a date of ISO 8601, tells the order; without it lines are in order. The query is an id, of the queries or of an object,
which does not look for itself. Where objects are texts and there is no file of queries, any other query is taken for
the words that somebody typed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...io.items import Items
from ...io.records import as_id, as_number, records

Numbers = NDArray[np.int64]
KINDS = {"judgements": ("good", "bad"), "clicks": ("shown", "clicked")}


class Judged(NamedTuple):
    """One list."""

    query: int
    """Row of the query."""
    good: Numbers
    """Rows of objects."""
    bad: Numbers
    """Rows of objects: those said to be bad, or passed over above the last click."""
    shown: Numbers
    """Rows of all objects in the list; in their order where it was clicked."""
    others: Numbers
    """What good ones are held against: those said to be bad, or all that were shown and not clicked."""

    @property
    def tells_apart(self) -> bool:
        """Whether something was good, and something else was there."""
        return len(self.good) > 0 and len(self.others) > 0


@dataclass(frozen=True, eq=False, slots=True)
class Log:
    """What was read."""

    kind: str
    lists: list[Judged]
    """The oldest first."""
    queries: Items
    itself: Numbers
    """For each query the row of the object that it is, or -1: it does not look for itself."""
    has_times: bool
    n_unknown: int
    """Ids of objects that are not there, in lists that were used without them."""
    n_empty: int
    """Lists that say nothing: nothing was clicked, or good or bad."""


def read_log(path: str, kind: str, objects: Items, queries: Items | None, *, missing: str) -> Log:
    """Read lists; `missing` says what to do with ids of objects that are not there: "error" or "skip"."""
    columns = KINDS[kind]
    asking = _Asking(objects, queries)
    place = {one: row for row, one in enumerate(objects.ids)}
    found: list[tuple[float, Judged]] = []
    n_read = n_unknown = n_empty = n_timed = 0
    for where, values in records(path, is_header=lambda row: "query" in row, unnamed=_unnamed(path, columns)):
        n_read += 1
        absent = [name for name in ("query", *columns) if name not in values]
        if absent:
            raise ValueError(f"{where} has no {absent[0]!r}, expected query, {columns[0]} and {columns[1]}")
        query, itself = asking.row(as_id(values["query"], "query", where), where)
        listed: list[list[int]] = []
        for name in columns:
            ids = _ids(values[name], name, where, place)
            rows = [place.get(one, -1) for one in ids]
            if -1 in rows and missing == "error":
                raise ValueError(
                    f"{where}: no object has the id {ids[rows.index(-1)]!r}; there are ids such as "
                    f"{objects.ids[0]!r}; --missing skip leaves such objects out"
                )
            n_unknown += rows.count(-1)
            listed.append(list(dict.fromkeys(row for row in rows if row >= 0 and row != itself)))
        one = _judged(query, listed, kind, where)
        n_timed += "time" in values
        if one is None:
            n_empty += 1
            continue
        found.append((_time(values["time"], where) if "time" in values else float(n_read), one))
    if not found:
        raise ValueError(f"{path} has no list that says anything, expected {kind} ({n_read:,} lines read)")
    if n_timed not in (0, n_read):
        raise ValueError(f"{path}: {n_timed:,} of {n_read:,} lines have a time, expected all or none")
    found.sort(key=lambda each: each[0])
    made, objects_of_queries = asking.items()
    return Log(kind, [one for _, one in found], made, objects_of_queries, n_timed > 0, n_unknown, n_empty)


def _judged(query: int, listed: list[list[int]], kind: str, where: str) -> Judged | None:
    first, second = listed
    if kind == "judgements":
        if both := set(first) & set(second):
            raise ValueError(f"{where}: good and bad have {len(both)} in common")
        good, bad, shown, others = first, second, first + second, second
    else:
        clicked = [one for one in first if one in second]
        if len(clicked) < len(second):
            raise ValueError(f"{where}: something was clicked that is not among what was shown")
        last = max((first.index(one) for one in clicked), default=0)
        shown, others = first, [one for one in first if one not in clicked]
        good, bad = clicked, [one for one in first[:last] if one not in clicked]
    if not good and not bad:
        return None
    return Judged(query, *(np.array(rows, dtype=np.int64) for rows in (good, bad, shown, others)))


def _time(value: Any, where: str) -> float:
    """Give a time as a number; dates as ISO 8601 writes them have one too."""
    if isinstance(value, str):
        with suppress(ValueError):
            return datetime.fromisoformat(value.strip()).timestamp()
    return as_number(value, "the time", where)


def _ids(value: Any, name: str, where: str, known: Mapping[str, int]) -> list[str]:
    if isinstance(value, str):  # one id, which may have spaces in it, or several
        return [value.strip()] if value.strip() in known else value.split()
    if isinstance(value, int) and not isinstance(value, bool):
        return [str(value)]
    if value is None:
        return []
    if not isinstance(value, list):
        raise ValueError(f"{where}: {name} must be a list of ids, got {value!r}")
    return [as_id(one, name, where) for one in value]


def _unnamed(path: str, columns: Sequence[str]) -> Any:
    def refuse(n: int) -> Sequence[str]:
        raise ValueError(f"{path} has no names in its first line, expected query, {columns[0]} and {columns[1]}")

    return refuse


class _Asking:
    """The queries that a log names, of a file, of the objects, or typed words."""

    def __init__(self, objects: Items, queries: Items | None) -> None:
        self._objects, self._queries = objects, queries
        self._place = {one: row for row, one in enumerate((objects if queries is None else queries).ids)}
        self._rows: dict[str, int] = {}

    def row(self, one: str, where: str) -> tuple[int, int]:
        """Give the row of a query, which is a new one the first time, and that of the object that it is, or -1."""
        if one not in self._place and (self._queries is not None or self._objects.texts is None):
            what = "query" if self._queries is not None else "object"
            raise ValueError(f"{where}: no {what} has the id {one!r}, and vectors need one")
        itself = self._place.get(one, -1) if self._queries is None else -1
        return self._rows.setdefault(one, len(self._rows)), itself

    def items(self) -> tuple[Items, Numbers]:
        """Give what was asked for, and the objects that queries are."""
        named, source = list(self._rows), self._objects if self._queries is None else self._queries
        places = [self._place.get(one, -1) for one in named]
        itself = np.array(places if self._queries is None else [-1] * len(named), dtype=np.int64)
        if source.texts is not None:
            texts = [one if at < 0 else source.texts[at] for one, at in zip(named, places, strict=True)]
            return Items(source.source, named, texts=texts), itself
        assert source.vectors is not None
        return Items(source.source, named, vectors=source.vectors[np.array(places)]), itself

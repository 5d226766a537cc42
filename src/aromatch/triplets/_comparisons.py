"""What logs and judgements have in common on their way to triplets: ids, the other objects, and a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]

# Draws of an object that can stand against the preferred one, before a triplet is given up.
_MOST_DRAWS = 100


@dataclass(frozen=True)
class Report:
    """What was found on the way to the triplets."""

    n_read: int
    """Lists, judgements or sessions that were read."""
    n_judged: int
    """Triplets of two objects that people have looked at."""
    n_drawn: int
    """Triplets whose other object was drawn from the whole collection."""
    n_unknown: int
    """Ids that no row has, and that were left out."""
    n_duplicates: int
    """What was said once more."""
    n_contradictions: int
    """What was said both ways: this object is better than that one, and worse."""
    n_given_up: int = 0
    """Triplets for which no other object was found."""

    def __str__(self) -> str:
        told = {field.name.removeprefix("n_"): getattr(self, field.name) for field in fields(self)}
        return ", ".join(f"{name} {count:,}" for name, count in told.items())


class Comparisons(NamedTuple):
    """Triplets with their weights, as `fit_triplets` takes them, and what was found on the way."""

    triplets: Numbers
    sample_weight: NDArray[np.float64]
    report: Report


class Rows:
    """Finds the row of an id."""

    def __init__(self, ids: Any, name: str) -> None:
        self.name = name
        if isinstance(ids, int | np.integer):
            self.n, self._rows = int(ids), None
            if self.n < 1:
                raise ValueError(f"{name} must be ids or a number of rows, at least 1, got {ids}")
            return
        if isinstance(ids, str | bytes):
            raise TypeError(f"{name} must be a sequence of ids, one for each row, got {ids!r}")
        listed = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
        self.n, self._rows = len(listed), {one: row for row, one in enumerate(listed)}
        if not listed:
            raise ValueError(f"{name} is empty, expected one id for each row")
        if len(self._rows) < len(listed):
            twice = next(one for row, one in enumerate(listed) if self._rows[one] != row)
            raise ValueError(f"{name} must be different from each other, but {twice!r} is there twice")

    @property
    def example(self) -> Any:
        """One of the ids."""
        return next(iter(self._rows)) if self._rows is not None else 0

    def find(self, one: Any) -> int | None:
        """Give the row of an id, None when there is none."""
        if self._rows is not None:
            return self._rows.get(one)
        try:
            row = int(one)
        except (TypeError, ValueError):
            raise TypeError(
                f"{one!r} is no row number; with {self.name} a number of rows, ids are row numbers, "
                f"otherwise pass the ids of all rows as {self.name}"
            ) from None
        return row if 0 <= row < self.n and row == (one if not isinstance(one, str) else row) else None


class Unknown:
    """Refuses ids that no row has, or counts them."""

    def __init__(self, missing: str) -> None:
        if missing not in ("error", "skip"):
            raise ValueError(f"missing must be 'error' or 'skip', got {missing!r}")
        self.n, self._refuses = 0, missing == "error"
        self._n_known = 0
        self._latest: tuple[Rows, Any] | None = None

    def row(self, rows: Rows, one: Any, where: str) -> int | None:
        """Give the row of an id; None when there is none and that is allowed."""
        row = rows.find(one)
        self._n_known += row is not None
        if row is None:
            if self._refuses:
                raise ValueError(f"{where}: {one!r} is not among {rows.name}; missing='skip' leaves such ids out")
            self.n += 1
            self._latest = rows, one
        return row

    def check(self) -> None:
        """Refuse to leave out everything: then ids are of another kind, and not gone."""
        if self._latest is not None and not self._n_known:
            rows, one = self._latest
            raise ValueError(
                f"no id is among {rows.name}: there is {one!r}, a {type(one).__name__}, but rows have ids such as "
                f"{rows.example!r}"
            )


def is_list_of(item: Any, length: int) -> bool:
    """Tell a tuple, a list or a row of an array with so many parts."""
    return isinstance(item, list | tuple | np.ndarray) and len(item) == length


def drawn_from_all(
    pairs: Numbers, n_objects: int, n_each: int, generator: np.random.Generator
) -> tuple[Numbers, Numbers]:
    """Give triplets with other objects from all of the collection, and which of the pairs each comes from.

    Pairs are rows (query, preferred object), and each gets `n_each`. What a query prefers in one of them is never its
    other object. Where that leaves hardly any object, some are left out.
    """
    of_pair = np.repeat(np.arange(len(pairs)), n_each)
    query, good = pairs[of_pair].T
    keys = np.unique(pairs[:, 0] * n_objects + pairs[:, 1])

    def is_wrong(at: Numbers, other: Numbers) -> NDArray[np.bool_]:
        return _is_in(query[at] * n_objects + other, keys)

    other, kept = drawn_unless(is_wrong, len(query), n_objects, generator)
    return np.column_stack([query, good, other])[kept], of_pair[kept]


def drawn_unless(
    is_wrong: Callable[[Numbers, Numbers], NDArray[np.bool_]], n: int, n_objects: int, generator: np.random.Generator
) -> tuple[Numbers, NDArray[np.bool_]]:
    """Draw an object for each of n places, again where it is wrong; tell where one was found.

    `is_wrong` tells it of places and the objects drawn for them.
    """
    drawn, wrong = np.empty(n, dtype=np.int64), np.arange(n)
    for _ in range(_MOST_DRAWS):
        if not len(wrong):
            break
        drawn[wrong] = generator.integers(n_objects, size=len(wrong))
        wrong = wrong[is_wrong(wrong, drawn[wrong])]
    found = np.ones(n, dtype=np.bool_)
    found[wrong] = False
    return drawn, found


def count_duplicates(triplets: Numbers) -> int:
    """Tell how many triplets had been there before."""
    return len(triplets) - len(np.unique(triplets, axis=0))


def count_contradictions(triplets: Numbers) -> int:
    """Tell how many pairs of objects were judged both ways for a query."""
    once = np.unique(triplets, axis=0)
    unordered = np.column_stack([once[:, 0], np.sort(once[:, 1:], axis=1)])
    return len(once) - len(np.unique(unordered, axis=0))


def as_triplets(found: Iterable[tuple[int, int, int]]) -> Numbers:
    """Give an array of triplets, also when there are none."""
    return np.array(list(found), dtype=np.int64).reshape(-1, 3)


def _is_in(keys: Numbers, known: Numbers) -> NDArray[np.bool_]:
    """Tell which keys are among the known ones, which are sorted."""
    if not len(known):
        return np.zeros(len(keys), dtype=np.bool_)
    return np.asarray(known[np.minimum(np.searchsorted(known, keys), len(known) - 1)] == keys)

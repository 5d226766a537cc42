"""Shared by the triplet makers: ids to rows, sampled negatives, and the report."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._utils.checks import as_list, check_choice, check_fits_in_memory

Rows = NDArray[np.int64]

# Attempts to sample a valid negative before the triplet is dropped.
_MAX_ATTEMPTS = 100
# Query, two objects and pair, each with a copy, and what `sample_unless` holds.
_BYTES_OF_A_NEGATIVE = 12 * 8
# The number of a query times that of all objects must fit in 64 bits.
_MAX_ROWS = 2**31


@dataclass(frozen=True)
class Report:
    """Counts of what was read and of the triplets made from it."""

    n_read: int
    """Result lists, judgements or sessions that were read."""
    n_judged: int
    """Triplets whose two objects were both judged, shown or visited."""
    n_sampled: int
    """Triplets whose negative was sampled from all objects."""
    n_unknown: int
    """Unknown ids that were skipped."""
    n_duplicates: int
    """Repeated triplets or judgements."""
    n_contradictions: int
    """Pairs of objects that were judged both ways for the same query."""
    n_dropped: int = 0
    """Triplets that were dropped because no valid negative was found."""

    def __str__(self) -> str:
        counts = {field.name.removeprefix("n_"): getattr(self, field.name) for field in fields(self)}
        return ", ".join(f"{name} {count:,}" for name, count in counts.items())


class Comparisons(NamedTuple):
    """Triplets and weights for `fit_triplets`, and a report of how they were made."""

    triplets: Rows
    sample_weight: NDArray[np.float64]
    report: Report


class IdRows:
    """Map ids to rows; `ids` is one id per row, or the number of rows if ids are row indices."""

    def __init__(self, ids: Any, name: str) -> None:
        self.name = name
        if isinstance(ids, int | np.integer):
            self.n, self._rows = int(ids), None
            if not 1 <= self.n <= _MAX_ROWS:
                raise ValueError(f"{name} must be ids or a number of rows, from 1 to {_MAX_ROWS:,}, got {ids}")
            return
        if isinstance(ids, str | bytes):
            raise TypeError(f"{name} must be a sequence of ids, one for each row, got {ids!r:.100}")
        listed = ids.tolist() if isinstance(ids, np.ndarray) else as_list(ids, name)
        if not listed:
            raise ValueError(f"{name} is empty, expected one id for each row")
        for one in listed:
            if not isinstance(one, int | str | np.integer) or isinstance(one, bool):
                raise TypeError(f"{name} must be int or str, got {one!r:.100} ({type(one).__name__})")
        self.n, self._rows = len(listed), {one: row for row, one in enumerate(listed)}
        if len(self._rows) < len(listed):
            twice = next(one for row, one in enumerate(listed) if self._rows[one] != row)
            raise ValueError(f"{name} must be unique, got {twice!r:.100} twice")

    def __contains__(self, one: Any) -> bool:
        return self._rows is not None and one in self._rows

    @property
    def example(self) -> Any:
        """One of the ids."""
        return next(iter(self._rows)) if self._rows is not None else 0

    def find(self, one: Any) -> int | None:
        """Return the row of an id, None if no row has it."""
        if self._rows is not None:
            return self._rows.get(one)
        try:
            row = int(one)
        except (TypeError, ValueError):
            raise TypeError(
                f"{one!r:.100} is not a row index; with {self.name} a number of rows, ids are row indices, "
                f"otherwise pass the ids of all rows as {self.name}"
            ) from None
        return row if 0 <= row < self.n and row == (one if not isinstance(one, str) else row) else None


class UnknownIds:
    """Refuse or count ids that no row has."""

    def __init__(self, missing: str) -> None:
        check_choice(missing, "missing", ("error", "skip"))
        self.n, self._refuses = 0, missing == "error"
        self._n_known = 0
        self._latest: tuple[IdRows, Any] | None = None

    def row(self, rows: IdRows, one: Any, where: str) -> int | None:
        """Return the row of an id, None if it is unknown and unknown ids are skipped."""
        row = rows.find(one)
        self._n_known += row is not None
        if row is None:
            if self._refuses:
                raise ValueError(f"{where}: {one!r:.100} is not in {rows.name}; missing='skip' skips unknown ids")
            self.n += 1
            self._latest = rows, one
        return row

    def check(self) -> None:
        """Raise an error if all ids were unknown: then they most likely have another type."""
        if self._latest is not None and not self._n_known:
            rows, one = self._latest
            raise ValueError(
                f"no id is in {rows.name}: got {one!r:.100} ({type(one).__name__}), but rows have ids such as "
                f"{rows.example!r:.100} ({type(rows.example).__name__})"
            )


def sample_negatives(pairs: Rows, n_objects: int, n_each: int, generator: np.random.Generator) -> tuple[Rows, Rows]:
    """Return triplets with negatives sampled from all objects, and the index of the pair of each.

    `pairs` has rows (query, preferred object); each gets `n_each` triplets. An object that the query prefers in any
    pair is never its negative. Triplets without a valid negative are dropped.
    """
    n = len(pairs) * n_each
    check_fits_in_memory(n * _BYTES_OF_A_NEGATIVE, f"n_sampled={n_each:,} negatives for each of {len(pairs):,} objects")
    of_pair = np.repeat(np.arange(len(pairs)), n_each)
    query, good = pairs[of_pair].T
    keys = np.unique(pairs[:, 0] * n_objects + pairs[:, 1])

    def is_invalid(at: Rows, other: Rows) -> NDArray[np.bool_]:
        return _is_in(query[at] * n_objects + other, keys)

    other, found = sample_unless(is_invalid, len(query), n_objects, generator)
    return np.column_stack([query, good, other])[found], of_pair[found]


def sample_unless(
    is_invalid: Callable[[Rows, Rows], NDArray[np.bool_]], n: int, n_objects: int, generator: np.random.Generator
) -> tuple[Rows, NDArray[np.bool_]]:
    """Sample n objects, again where `is_invalid(indices, objects)`; return them and which are valid."""
    sampled, invalid = np.empty(n, dtype=np.int64), np.arange(n)
    for _ in range(_MAX_ATTEMPTS):
        if not len(invalid):
            break
        sampled[invalid] = generator.integers(n_objects, size=len(invalid))
        invalid = invalid[is_invalid(invalid, sampled[invalid])]
    found = np.ones(n, dtype=np.bool_)
    found[invalid] = False
    return sampled, found


def count_duplicates(triplets: Rows) -> int:
    """Count triplets that occurred before."""
    return len(triplets) - len(np.unique(triplets, axis=0))


def count_contradictions(triplets: Rows) -> int:
    """Count pairs of objects that were judged both ways for a query."""
    unique = np.unique(triplets, axis=0)
    unordered = np.column_stack([unique[:, 0], np.sort(unique[:, 1:], axis=1)])
    return len(unique) - len(np.unique(unordered, axis=0))


def as_triplets(rows: Iterable[tuple[int, int, int]]) -> Rows:
    """Return an array of shape (N, 3), also for N = 0."""
    return np.array(list(rows), dtype=np.int64).reshape(-1, 3)


def _is_in(keys: Rows, known: Rows) -> NDArray[np.bool_]:
    """Return which keys are in `known`, which is sorted."""
    if not len(known):
        return np.zeros(len(keys), dtype=np.bool_)
    return np.asarray(known[np.minimum(np.searchsorted(known, keys), len(known) - 1)] == keys)

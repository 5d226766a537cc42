"""Feedback on queries, stored so that one more list, or one object less, costs only what it touches.

For every query the objects that were positive and negative for it are kept, and for every object the queries for which
it was. Everything derived from them is computed in the order of numbers and keys, so that it does not depend on the
order in which the feedback arrived.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._utils.journal import Journal
from ..._utils.row_hashes import HASH_LENGTH, row_hashes
from ..._utils.rows import Matrix
from ..stores.base import Keys
from ..stores.memory import MemoryStore

Array = NDArray[np.float64]

# Replaces the object that a query equals once that is removed. Numbers of queries do not change.
REMOVED = -2

# Weight of negative objects relative to positive ones.
_NEGATIVE_WEIGHT = 0.3
# Pseudo-count of negative objects in the precision of a list.
_PRIOR_COUNT = 1.0

_NO_HASH = bytes(8 * HASH_LENGTH)


class Target(NamedTuple):
    """What a query should have found: a weighted sum of objects."""

    keys: Keys
    """Objects in ascending order; none if no object was positive."""
    weights: Array
    """Weights of the objects; those of positive ones sum to 1."""


_NO_TARGET = Target(np.empty(0, dtype=np.int64), np.empty(0))


class Feedback:
    """Queries with feedback, numbered in the order of arrival, and their positive and negative objects."""

    def __init__(self) -> None:
        self.queries: MemoryStore | None = None
        """Rows of the queries that are not objects themselves, under their numbers."""
        self.targets: list[Target] = []
        """Target of each query."""
        self.precision = array("d")
        """Smoothed share of positive objects of each query; 0 if none was positive."""
        self.mean_weight = array("d")
        """Multiple of the mean of all objects to subtract from the target of each query."""
        self.positive_for: dict[int, array[int]] = {}
        """For objects, the queries for which they are positive, in ascending order; likewise the next two."""
        self.negative_for: dict[int, array[int]] = {}
        self.queries_of: dict[int, array[int]] = {}
        """For objects, the queries that equal them."""
        self.sorted_proximity = array("d")
        """Proximities of the queries with a positive object, in ascending order."""
        self._number: dict[bytes, int] = {}
        self._hashes: list[bytes] = []
        self._own_object, self._proximity = array("q"), array("d")
        # For each query, objects and how often they were positive minus negative, without zeros.
        self._net: list[dict[int, int]] = []

    def __len__(self) -> int:
        return len(self._own_object)

    def add(self, query: Matrix, own_object: int, proximity: float, good: Keys, bad: Keys, journal: Journal) -> None:
        """Add positive and negative objects of a query, a matrix of one row.

        `own_object` is the object that equals it, or -1. Feedback on the same query and object is summed: once positive
        and once negative cancel. Changes are noted in the `journal`.
        """
        (digest,) = row_hashes(query)
        number = self._number.get(digest)
        if number is None:
            number = self._append(digest, own_object, proximity, journal)
            if own_object < 0 and self.queries is None:
                journal.attributes(self, "queries")
                self.queries = MemoryStore(query.copy(), [number])
            elif own_object < 0 and self.queries is not None:
                self.queries.add(query.copy(), [number], journal=journal)
        self._count(number, good.tolist(), 1, journal)
        self._count(number, bad.tolist(), -1, journal)
        self._derive(number, journal)

    def remove_objects(self, keys: Keys, journal: Journal) -> None:
        """Remove the feedback on these objects, and that on the queries that equal them."""
        touched: set[int] = set()
        for key in keys.tolist():
            journal.item(self.queries_of, key)
            for number in self.queries_of.pop(key, ()):
                journal.item(self._number, self._hashes[number])
                journal.item(self._own_object, number)
                journal.item(self._hashes, number)
                self._own_object[number] = REMOVED
                del self._number[self._hashes[number]]
                self._hashes[number] = _NO_HASH
                self._cancel(number, list(self._net[number]), journal)
                touched.add(number)
            affected = {*self.positive_for.get(key, ()), *self.negative_for.get(key, ())}
            for number in affected:
                self._cancel(number, [key], journal)
            touched |= affected
        for number in touched:
            self._derive(number, journal)

    def numbers(self, queries: Matrix) -> Keys:
        """Return the number of each query; -1 for those without feedback."""
        return np.array([self._number.get(digest, -1) for digest in row_hashes(queries)])

    # -- files --------------------------------------------------------------------------------------------

    @property
    def proximity(self) -> Array:
        """Proximity of each query to its neighbourhood when its feedback began."""
        return np.array(self._proximity)

    def columns(self) -> tuple[Keys, Keys, Keys, Keys]:
        """Return query numbers, objects and net counts of all feedback; and the object that each query equals."""
        rows = [(number, *pair) for number, net in enumerate(self._net) for pair in sorted(net.items())]
        query, key, net = np.array(rows, dtype=np.int64).reshape(-1, 3).T.copy()
        return query, key, net, np.array(self._own_object, dtype=np.int64)

    def hashes(self) -> Keys:
        """Return the row hash of each query as integers; zeros if it was removed."""
        return np.frombuffer(b"".join(self._hashes), dtype="<i8").astype(np.int64).reshape(-1, HASH_LENGTH)

    @classmethod
    def from_columns(
        cls, columns: tuple[Keys, Keys, Keys, Keys], proximity: Array, hashes: Keys, queries: MemoryStore | None
    ) -> Feedback:
        """Restore feedback from the results of `columns`, `proximity` and `hashes`."""
        order = np.argsort(columns[0], kind="stable")  # the queries of an object are in ascending order
        query, objects, net = (column[order].tolist() for column in columns[:3])
        feedback, journal = cls(), Journal()
        feedback.queries = queries
        for digest, own, value in zip(hashes.astype("<i8"), columns[3].tolist(), proximity.tolist(), strict=True):
            feedback._append(digest.tobytes() if own != REMOVED else _NO_HASH, own, value, journal)
        for number, key, count in zip(query, objects, net, strict=True):
            if count:
                feedback._net[number][key] = count
                those = feedback.positive_for if count > 0 else feedback.negative_for
                those.setdefault(key, array("q")).append(number)
        for number in range(len(feedback)):
            feedback._derive(number, journal)
        return feedback

    # -- inside -------------------------------------------------------------------------------------------

    def _append(self, digest: bytes, own_object: int, proximity: float, journal: Journal) -> int:
        """Append a query without feedback, and return its number."""
        number = len(self._own_object)
        journal.length(self._hashes, self._own_object, self._proximity, self._net)
        journal.length(self.targets, self.precision, self.mean_weight)
        if own_object != REMOVED:
            journal.item(self._number, digest)
            self._number[digest] = number
        self._hashes.append(digest)
        self._own_object.append(own_object)
        self._proximity.append(proximity)
        self._net.append({})
        self.targets.append(_NO_TARGET)
        self.precision.append(0.0)
        self.mean_weight.append(0.0)
        if own_object >= 0:
            journal.item(self.queries_of, own_object)
            self.queries_of[own_object] = array("q", [*self.queries_of.get(own_object, ()), number])
        return number

    def _count(self, number: int, keys: Iterable[int], count: int, journal: Journal) -> None:
        """Add positive or negative feedback."""
        net = self._net[number]
        for key in keys:
            journal.item(net, key)
            before = net.pop(key, 0)
            after = before + count
            if after:
                net[key] = after
            for those, was, is_now in (
                (self.positive_for, before > 0, after > 0),
                (self.negative_for, before < 0, after < 0),
            ):
                if is_now == was:
                    continue
                journal.item(those, key)
                numbers = array("q", those.get(key, ()))
                if is_now:
                    insort(numbers, number)
                else:
                    del numbers[bisect_left(numbers, number)]
                if numbers:
                    those[key] = numbers
                else:
                    del those[key]

    def _cancel(self, number: int, keys: Iterable[int], journal: Journal) -> None:
        for key in keys:
            self._count(number, [key], -self._net[number][key], journal)

    def _derive(self, number: int, journal: Journal) -> None:
        """Compute the precision and the target of one query."""
        for values in (self.precision, self.mean_weight, self.targets):
            journal.item(values, number)
        net = self._net[number]
        n_good = sum(count > 0 for count in net.values())
        n_bad = len(net) - n_good
        had_good, proximity = self.precision[number] > 0, self._proximity[number]
        if bool(n_good) != had_good:
            journal.note(partial(self._set_in_order, proximity, len(self.sorted_proximity)))
            self._set_in_order(proximity, len(self.sorted_proximity) + (1 if n_good else -1))
        self.precision[number] = n_good / (n_good + n_bad + _PRIOR_COUNT)
        self.mean_weight[number] = (1 - _NEGATIVE_WEIGHT * (n_bad > 0)) if n_good else 0.0
        self.targets[number] = _NO_TARGET
        if n_good:
            keys, of_good, of_bad = sorted(net), 1 / n_good, -_NEGATIVE_WEIGHT / max(n_bad, 1)
            weights = [of_good if net[key] > 0 else of_bad for key in keys]
            self.targets[number] = Target(np.array(keys, dtype=np.int64), np.array(weights))

    def _set_in_order(self, proximity: float, length: int) -> None:
        """Insert a value into `sorted_proximity`, or delete it, until that has this length."""
        if len(self.sorted_proximity) < length:
            insort(self.sorted_proximity, proximity)
        elif len(self.sorted_proximity) > length:
            del self.sorted_proximity[bisect_left(self.sorted_proximity, proximity)]

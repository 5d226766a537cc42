"""What people judged, kept so that one more judgement, or one object less, costs what it touches.

For every query there is what was good and bad for it, and for every object the queries that liked it or not. What
follows from them is counted where it is asked for (`votes`), and in the order of numbers and ids, so that it does not
depend on how one got there.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._utils.rows import Matrix
from ..stores.memory import Collection, Ids
from .row_hashes import DIGEST_NUMBERS, digests

Array = NDArray[np.float64]

# What stands for the object that a query is, when it was removed. Its number stays, for the numbers of the others.
GONE = -2

# Weight of what was not good against what was.
_AGAINST = 0.3
# Judgements that a share of good ones is seen with, of which none was good.
_DOUBT = 1.0

_NO_NAME = bytes(8 * DIGEST_NUMBERS)


class Wants(NamedTuple):
    """What a query asks for."""

    ids: Ids
    """Objects, in ascending order; none where nothing was good."""
    weights: Array
    """Weights of these objects; those of good ones sum to 1."""


_NOTHING = Wants(np.empty(0, dtype=np.int64), np.empty(0))


class Judgements:
    """Queries that were judged, under numbers, and what was good or bad for them."""

    def __init__(self) -> None:
        self.queries: Collection | None = None
        """Rows of the queries that are no objects themselves, by their numbers."""
        self.wants: list[Wants] = []
        """What each query asks for."""
        self.precision = array("d")
        """For each query, the share of good ones, with doubt; 0 where nothing was good."""
        self.of_mean = array("d")
        """For each query, how often the mean of all objects has to be taken away from what it asks for."""
        self.liked_by: dict[int, array[int]] = {}
        """For objects, the queries that they were good for, in ascending order; likewise the next two."""
        self.disliked_by: dict[int, array[int]] = {}
        self.asked_by: dict[int, array[int]] = {}
        """For objects, the queries that they are."""
        self.nearness_of_good = array("d")
        """How near the surroundings of queries with something good were to them, in ascending order."""
        self._number: dict[bytes, int] = {}
        self._names: list[bytes] = []
        self._itself, self._nearness = array("q"), array("d")
        # For each query, objects and how often they were good rather than bad; without those that were so as often.
        self._net: list[dict[int, int]] = []

    def __len__(self) -> int:
        return len(self._itself)

    def add(self, query: Matrix, itself: int, nearness: float, good: Ids, bad: Ids) -> None:
        """Note what was good and bad for a query, a matrix of one row.

        `itself` is the object that it is, or -1, and `nearness` tells how near its surroundings are. Judgements of the
        same query and object add up: once good and once bad is none.
        """
        (name,) = digests(query)
        number = self._number.get(name)
        if number is None:
            number = self._new(name, itself, nearness)
            if itself < 0 and self.queries is None:
                self.queries = Collection(query, [number])
            elif itself < 0 and self.queries is not None:
                self.queries.add(query, [number])
        self._judge(number, good.tolist(), 1)
        self._judge(number, bad.tolist(), -1)
        self._count(number)

    def forget(self, ids: Ids) -> None:
        """Forget all judgements of these objects, and those made for them as queries."""
        touched: set[int] = set()
        for one in ids.tolist():
            for number in self.asked_by.pop(one, ()):
                self._itself[number] = GONE
                del self._number[self._names[number]]
                self._names[number] = _NO_NAME
                self._forget_pairs(number, list(self._net[number]))
                touched.add(number)
            judged_by = {*self.liked_by.get(one, ()), *self.disliked_by.get(one, ())}
            for number in judged_by:
                self._forget_pairs(number, [one])
            touched |= judged_by
        for number in touched:
            self._count(number)

    def arrays(self) -> tuple[Ids, Ids, Ids, Ids]:
        """Give queries, objects and how often these were good rather than bad; and the object that each query is."""
        rows = [(number, *pair) for number, net in enumerate(self._net) for pair in sorted(net.items())]
        judged, judged_object, net = np.array(rows, dtype=np.int64).reshape(-1, 3).T.copy()
        return judged, judged_object, net, np.array(self._itself, dtype=np.int64)

    def numbers(self, queries: Matrix) -> Ids:
        """Give the number of each query; -1 for those that were not judged."""
        return np.array([self._number.get(name, -1) for name in digests(queries)])

    # -- files --------------------------------------------------------------------------------------------

    @property
    def nearness(self) -> Array:
        """For each query, how near its surroundings were when it was first judged."""
        return np.array(self._nearness)

    def names(self) -> Ids:
        """Give what each query is known again by, as whole numbers; zeros where it was forgotten."""
        return np.frombuffer(b"".join(self._names), dtype="<i8").astype(np.int64).reshape(-1, DIGEST_NUMBERS)

    @classmethod
    def from_arrays(
        cls, columns: tuple[Ids, Ids, Ids, Ids], nearness: Array, names: Ids, queries: Collection | None
    ) -> Judgements:
        """Put judgements together again from what `arrays`, `nearness` and `names` give."""
        order = np.argsort(columns[0], kind="stable")  # voters are in ascending order
        judged, judged_object, net = (column[order].tolist() for column in columns[:3])
        found = cls()
        found.queries = queries
        for row, one, value in zip(names.astype("<i8"), columns[3].tolist(), nearness.tolist(), strict=True):
            found._new(row.tobytes() if one != GONE else _NO_NAME, one, value)
        for number, one, times in zip(judged, judged_object, net, strict=True):
            if times:
                found._net[number][one] = times
                voters = found.liked_by if times > 0 else found.disliked_by
                voters.setdefault(one, array("q")).append(number)
        for number in range(len(found)):
            found._count(number)
        return found

    # -- inside -------------------------------------------------------------------------------------------

    def _new(self, name: bytes, itself: int, nearness: float) -> int:
        """Make room for another query."""
        number = len(self)
        if itself != GONE:
            self._number[name] = number
        self._names.append(name)
        self._itself.append(itself)
        self._nearness.append(nearness)
        self._net.append({})
        self.wants.append(_NOTHING)
        self.precision.append(0.0)
        self.of_mean.append(0.0)
        if itself >= 0:
            self.asked_by.setdefault(itself, array("q")).append(number)
        return number

    def _judge(self, number: int, ids: Iterable[int], times: int) -> None:
        """Let objects have been good for a query so many times more, or bad."""
        net = self._net[number]
        for one in ids:
            before = net.pop(one, 0)
            after = before + times
            if after:
                net[one] = after
            for voters, was, is_now in (
                (self.liked_by, before > 0, after > 0),
                (self.disliked_by, before < 0, after < 0),
            ):
                if is_now and not was:
                    insort(voters.setdefault(one, array("q")), number)
                elif was and not is_now:
                    _leave_out(voters, one, number)

    def _forget_pairs(self, number: int, ids: Iterable[int]) -> None:
        for one in ids:
            self._judge(number, [one], -self._net[number][one])

    def _count(self, number: int) -> None:
        """Count anew what was judged for one query."""
        net = self._net[number]
        n_good = sum(times > 0 for times in net.values())
        n_bad = len(net) - n_good
        had_good, nearness = self.precision[number] > 0, self._nearness[number]
        if n_good and not had_good:
            insort(self.nearness_of_good, nearness)
        elif had_good and not n_good:
            del self.nearness_of_good[bisect_left(self.nearness_of_good, nearness)]
        self.precision[number] = n_good / (n_good + n_bad + _DOUBT)
        self.of_mean[number] = (1 - _AGAINST * (n_bad > 0)) if n_good else 0.0
        self.wants[number] = _NOTHING
        if n_good:
            ids, for_good, for_bad = sorted(net), 1 / n_good, -_AGAINST / max(n_bad, 1)
            weights = [for_good if net[one] > 0 else for_bad for one in ids]
            self.wants[number] = Wants(np.array(ids, dtype=np.int64), np.array(weights))


def _leave_out(voters: dict[int, array[int]], one: int, number: int) -> None:
    """Take a query out of those that voted on an object, and the object too after the last of them."""
    these = voters[one]
    del these[bisect_left(these, number)]
    if not these:
        del voters[one]

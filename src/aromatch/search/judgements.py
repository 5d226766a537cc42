"""What people judged, and what that says about queries nearby.

A query that was judged votes for what was good for it and, less, against what was not. How much its vote counts is the
share of good ones: a list of which one in ten was good says little, and may well be a mistake. Objects that were liked
pass the question on to the queries that liked them.
"""

from __future__ import annotations

import hashlib
from array import array
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._rows import Matrix
from .collection import Collection, Ids

Array = NDArray[np.float64]

# What stands for the object that a query is, when it was removed. Its number stays, for the numbers of the others.
GONE = -2
_DIGEST_NUMBERS = 4

# Weight of what was not good against what was.
_AGAINST = 0.3
# Judgements that a share of good ones is seen with, of which none was good.
_DOUBT = 1.0
# A query that is an object itself, against the queries that liked this object.
_OWN = 2.0


class Votes(NamedTuple):
    """The judgements, in the form in which many queries can be looked up at once."""

    ids: Ids
    """Objects that were judged, or are queries that were: the columns and rows of what follows."""
    wants: Any
    """CSR of shape (n_judged, n_objects): what a query asks for, as weights of objects."""
    of_mean: Array
    """For each judged query, how often the mean of all objects has to be taken away from that."""
    precision: Array
    """For each judged query, the share of good ones, with doubt."""
    likes: Any
    """CSR of shape (n_objects, n_judged): queries that liked an object, or are it; rows sum to 1."""
    known: Array
    """For each object, the precision of those queries; 0 where nobody liked it."""
    is_only_bad: NDArray[np.bool_]
    """For each object, whether it was judged and never liked."""
    is_judged: NDArray[np.bool_]
    """For each object, whether it was judged as a query itself."""
    nearness: Array
    """How near the surroundings of queries with something good were to them."""

    def places(self, ids: Ids) -> tuple[Ids, NDArray[np.bool_]]:
        """Give the places of ids among those that were judged, and which of them were."""
        places = np.minimum(np.searchsorted(self.ids, ids), max(len(self.ids) - 1, 0))
        return places, self.ids[places] == ids if len(self.ids) else np.zeros(ids.shape, dtype=np.bool_)

    def of(self, values: NDArray[Any], ids: Ids) -> NDArray[Any]:
        """Look values up by ids; 0 for those that nobody judged."""
        places, is_there = self.places(ids)
        return np.where(is_there, values[places], 0) if len(values) else np.zeros(ids.shape, dtype=values.dtype)


class Judgements:
    """Queries that were judged, under numbers, and what was good or bad for them."""

    def __init__(self) -> None:
        self.queries: Collection | None = None
        """Rows of the queries that are no objects themselves, by their numbers."""
        self._number: dict[bytes, int] = {}
        self._itself, self._nearness = array("q"), array("d")
        self._place: dict[tuple[int, int], int] = {}
        self._judged, self._object, self._net = array("q"), array("q"), array("q")

    def __len__(self) -> int:
        return len(self._itself)

    def add(self, query: Matrix, itself: int, nearness: float, good: Ids, bad: Ids) -> None:
        """Note what was good and bad for a query, a matrix of one row.

        `itself` is the object that it is, or -1, and `nearness` tells how near its surroundings are. Judgements of the
        same query and object add up: once good and once bad is none.
        """
        name = digest(query)
        number = self._number.get(name)
        if number is None:
            number = self._number[name] = len(self)
            self._itself.append(itself)
            self._nearness.append(nearness)
            if itself < 0 and self.queries is None:
                self.queries = Collection(query, [number])
            elif itself < 0 and self.queries is not None:
                self.queries.add(query, [number])
        for one, value in [*((one, 1) for one in good.tolist()), *((one, -1) for one in bad.tolist())]:
            place = self._place.setdefault((number, one), len(self._net))
            if place == len(self._net):
                self._judged.append(number)
                self._object.append(one)
                self._net.append(0)
            self._net[place] += value

    def forget(self, ids: Ids) -> None:
        """Forget all judgements of these objects, and those made for them as queries."""
        judged, judged_object, net, itself = self.arrays()
        itself[np.isin(itself, ids)] = GONE
        kept = ~np.isin(judged_object, ids) & (itself[judged] != GONE)
        self._number = {name: number for name, number in self._number.items() if itself[number] != GONE}
        self._put(judged[kept], judged_object[kept], net[kept], itself)

    @property
    def nearness(self) -> Array:
        """For each query, how near its surroundings were when it was first judged."""
        return np.array(self._nearness)

    def arrays(self) -> tuple[Ids, Ids, Ids, Ids]:
        """Give queries, objects and how often these were good rather than bad; and the object that each query is."""
        judged, judged_object, net, itself = (
            np.array(column, dtype=np.int64) for column in (self._judged, self._object, self._net, self._itself)
        )
        return judged, judged_object, net, itself

    def number(self, query: Matrix) -> int:
        """Give the number of a query, a matrix of one row; -1 when it was not judged."""
        return self._number.get(digest(query), -1)

    def votes(self) -> Votes:
        """Count the votes."""
        judged, judged_object, net, itself = self.arrays()
        n, is_good, is_bad = len(self), net > 0, net < 0
        n_good, n_bad = (np.bincount(judged[some], minlength=n) for some in (is_good, is_bad))
        precision = n_good / (n_good + n_bad + _DOUBT)
        has_good = n_good > 0
        ids = np.unique(np.concatenate([judged_object, itself[itself >= 0]]))
        n_ids, places = len(ids), np.searchsorted(ids, judged_object)
        weight = is_good / np.maximum(n_good, 1)[judged] - _AGAINST * is_bad / np.maximum(n_bad, 1)[judged]
        counts = has_good[judged] & (net != 0)
        wants = sparse.csr_array((weight[counts], (judged[counts], places[counts])), shape=(n, n_ids))
        of_mean = has_good * (1 - _AGAINST * (n_bad > 0))

        own = np.flatnonzero((itself >= 0) & has_good)
        own_places = np.searchsorted(ids, itself[own])
        liked, by = np.concatenate([places[is_good], own_places]), np.concatenate([judged[is_good], own])
        strength = precision[by]
        strength[len(liked) - len(own) :] *= _OWN
        total = np.bincount(liked, strength, minlength=n_ids)
        likes = sparse.csr_array((strength / total[liked], (liked, by)), shape=(n_ids, n))
        is_only_bad, is_judged = np.zeros(n_ids, dtype=np.bool_), np.zeros(n_ids, dtype=np.bool_)
        is_only_bad[places[is_bad & has_good[judged]]] = True
        is_judged[np.searchsorted(ids, itself[itself >= 0])] = True
        known = likes @ precision
        is_only_bad &= total == 0
        return Votes(ids, wants, of_mean, precision, likes, known, is_only_bad, is_judged, self.nearness[has_good])

    # -- files --------------------------------------------------------------------------------------------

    def names(self) -> Ids:
        """Give what each query is known again by, as whole numbers; zeros where it was forgotten."""
        names = np.zeros((len(self), _DIGEST_NUMBERS), dtype=np.int64)
        for name, number in self._number.items():
            names[number] = np.frombuffer(name, dtype="<i8")
        return names

    @classmethod
    def from_arrays(
        cls, columns: tuple[Ids, Ids, Ids, Ids], nearness: Array, names: Ids, queries: Collection | None
    ) -> Judgements:
        """Put judgements together again from what `arrays`, `nearness` and `names` give."""
        found = cls()
        found._put(*columns)
        found._nearness = array("d", nearness.tolist())
        found.queries = queries
        kept = np.flatnonzero(columns[3] != GONE)
        found._number = {names[number].astype("<i8").tobytes(): int(number) for number in kept}
        return found

    def _put(self, judged: Ids, judged_object: Ids, net: Ids, itself: Ids) -> None:
        self._judged, self._object, self._net, self._itself = (
            array("q", column.tolist()) for column in (judged, judged_object, net, itself)
        )
        self._place = {pair: place for place, pair in enumerate(zip(self._judged, self._object, strict=True))}


def digest(row: Matrix) -> bytes:
    """Name a row by what is in it, so that the same query is known again."""
    parts = [row + 0.0]  # -0.0 is 0.0
    if sparse.issparse(row):
        parts = [row.indices[row.data != 0].astype(np.int64), row.data[row.data != 0]]
    return hashlib.sha256(b"|".join(np.ascontiguousarray(part).tobytes() for part in parts)).digest()

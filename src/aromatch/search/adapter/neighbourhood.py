"""What is known around a query: how much of it, and what was asked for there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.extmath import row_norms

from ..._utils.rows import Matrix, unit_rows
from ..stores.memory import Collection, Ids
from ..top_k import Best, best_among, better_of, products
from .credit import Votes, asked_for, votes_on
from .feedback import Judgements
from .row_hashes import digests

Array = NDArray[Any]

N_NEIGHBOURS = 10
# Share of the surroundings that has to be known before any of it is trusted.
_STRANGE = 0.2
# Trust in what was judged for the very same query.
_SAME = 0.8
# How far a query goes at most, of the length of what tells objects apart in it. Twice as far gains more further down,
# and in small collections loses first places.
_STEP = 0.5
# Share of the judged queries, those furthest from everything, beyond which trust falls.
_FAR = 0.05


class View(NamedTuple):
    """What is seen around some queries."""

    trust: Array
    """How well the surroundings of each are known, from 0 to 1."""
    directions: Array
    """What was asked for there: vectors as long as the query may go, or 0 where nothing was."""
    itself: Ids
    """The object that a query is, if it is near itself by an inner product too; or -1."""
    nearness: Array
    """The mean score of the nearest objects, for a query of length 1."""


class Surroundings:
    """Objects and judgements, in which queries look around.

    Rows are in the form in which inner products are the base score, with `unit_norm` where this is the cosine.
    """

    def __init__(self, objects: Collection, judgements: Judgements, *, unit_norm: bool) -> None:
        self._objects, self._judgements, self._unit_norm = objects, judgements, unit_norm
        self.total = np.zeros(objects.width)
        """The sum of all objects."""
        self._last: tuple[bytes, View] | None = None

    def changed(self, added: Array | float = 0.0) -> None:
        """Take notice of new judgements or objects, of which `added` is the sum."""
        self.total = self.total + added
        self._last = None

    def known(self, ids: Ids) -> Array:
        """Tell how well each object is known, from 0 to 1."""
        used, places = np.unique(ids, return_inverse=True)
        return votes_on(self._judgements, used).known[places]

    def nearest(self, vectors: Array, k: int) -> Best:
        """Give the objects with the largest inner products with each vector."""
        n = len(vectors)
        return best_among(self._objects.blocks(n), lambda rows: products(rows, vectors), n, k)

    def view(self, Q: Matrix) -> View:
        """Look around each query."""
        if Q.shape[0] > 1:
            return self._view(Q)
        # A query that was just searched is judged next.
        (name,) = digests(Q)
        if self._last is None or self._last[0] != name:
            self._last = name, self._view(Q)
        return self._last[1]

    def _view(self, Q: Matrix) -> View:
        vectors, n = dense(Q), Q.shape[0]
        lengths = row_norms(vectors)[:, np.newaxis]
        near = self.nearest(vectors, N_NEIGHBOURS + 1)
        is_itself = self._is_itself(near, lengths)
        itself = np.where(is_itself.any(axis=1), near.places[np.arange(n), is_itself.argmax(axis=1)], -1)
        # An object that is the query itself says nothing of its surroundings, unless it was judged as a query.
        is_itself[is_itself] = [one not in self._judgements.asked_by for one in near.places[is_itself].tolist()]
        scores = np.where(is_itself, -np.inf, near.scores)
        near = better_of(Best(near.places, scores), Best(near.places[:, :0], scores[:, :0]), N_NEIGHBOURS)
        is_there = np.isfinite(near.scores)
        nearness = np.where(is_there, near.scores, 0.0).sum(axis=1) / np.maximum(is_there.sum(axis=1), 1)
        nearness = nearness / np.maximum(lengths[:, 0], np.finfo(np.float64).tiny)
        if not len(self._judgements):
            return View(np.zeros(n), np.zeros(vectors.shape), itself, nearness)
        ids, places = np.unique(near.places, return_inverse=True)
        votes = votes_on(self._judgements, ids)
        known = (votes.known - votes.is_only_bad)[places.reshape(near.places.shape)]
        share = (_by_rank(near.scores) * known).sum(axis=1)
        trust = np.maximum(0.0, (share - _STRANGE) / (1 - _STRANGE)) * self._is_near(nearness)
        # A query that was judged itself is known, whatever is around it.
        numbers = self._judgements.numbers(Q)
        numbers[numbers >= 0] = [
            number if self._judgements.precision[number] > 0 else -1 for number in numbers[numbers >= 0].tolist()
        ]
        trust[numbers >= 0] = np.maximum(trust[numbers >= 0], _SAME)
        directions = self._directions(vectors, near, ids, votes, numbers)
        return View(trust, self._reach(vectors, lengths) * directions, itself, nearness)

    def _is_itself(self, near: Best, lengths: Array) -> NDArray[np.bool_]:
        """Tell which objects are the query: as long as it is, and as near to it as it is to itself."""
        rounding = 64 * np.finfo(near.scores.dtype).eps * lengths**2
        is_itself = (np.abs(near.scores - lengths**2) <= rounding) & (lengths > 0)
        if not self._unit_norm and is_itself.any():
            found = np.unique(near.places[is_itself])
            squares = row_norms(self._objects.rows(found), squared=True)
            of_each = squares[np.minimum(np.searchsorted(found, near.places), len(found) - 1)]
            is_itself &= np.abs(of_each - lengths**2) <= rounding
        return np.asarray(is_itself)

    def _reach(self, vectors: Array, lengths: Array) -> Array:
        """Give how far each query may go: a part of it without what it has in common with all objects."""
        size = np.linalg.norm(self.total)
        along = vectors @ (self.total / size) if size > 0 else np.zeros(len(vectors))
        return np.asarray(_STEP * np.sqrt(np.maximum(lengths**2 - along[:, np.newaxis] ** 2, 0.0)))

    def _is_near(self, nearness: Array) -> Array:
        """Give 1 where a query is no further from everything than judged ones, and less and then 0 beyond.

        It is 0 as far beyond the furthest of them, but for a few, as these are from the middle.
        """
        of_judged = self._judgements.nearness_of_good
        if not of_judged:
            return np.zeros(len(nearness))
        far, middle = quantile_of_sorted(of_judged, _FAR), quantile_of_sorted(of_judged, 0.5)
        beyond = np.maximum(far - nearness, 0.0)
        return np.asarray(np.maximum(0.0, 1.0 - beyond / np.maximum(middle - far, np.finfo(np.float64).tiny)))

    def _directions(self, vectors: Array, near: Best, ids: Ids, votes: Votes, numbers: Ids) -> Array:
        """Give what was asked for around each query, with length 1, or 0 where nothing was.

        `votes` are those on the objects nearby, `ids`; `numbers` those of queries that were judged themselves, -1 for
        others.
        """
        n = len(vectors)
        near = self._with_judged_queries(vectors, near)
        weights = _by_rank(near.scores)
        row, rank = np.nonzero((near.places >= 0) & np.isfinite(near.scores))
        place = np.searchsorted(ids, near.places[row, rank])
        n_voters = (votes.starts[1:] - votes.starts[:-1])[place]
        voters = _ranges(votes.starts[place], n_voters)
        by_objects = np.repeat(weights[row, rank] * votes.known[place], n_voters) * votes.shares[voters]
        query_row, query_rank = np.nonzero((near.places < 0) & np.isfinite(near.scores))
        by = -1 - near.places[query_row, query_rank]
        by_queries = weights[query_row, query_rank] * np.asarray(self._judgements.precision)[by]
        same = np.flatnonzero(numbers >= 0)
        found = asked_for(
            self._judgements,
            n,
            np.concatenate([np.repeat(row, n_voters), query_row, same]),
            np.concatenate([votes.by[voters], by, numbers[same]]),
            np.concatenate([by_objects, by_queries, np.ones(len(same))]),
        )
        if not len(found.ids):
            return np.zeros(vectors.shape)
        used, columns = np.unique(found.ids, return_inverse=True)
        starts = np.searchsorted(found.rows, np.arange(n + 1))
        weights = sparse.csr_array((found.weights, columns, starts), shape=(n, len(used)))
        directions = dense(weights @ self._objects.rows(used))
        mean = self.total / len(self._objects)
        return np.asarray(unit_rows(directions - np.outer(found.of_mean, mean)))

    def _with_judged_queries(self, vectors: Array, near: Best) -> Best:
        """Let judged queries stand among the objects nearby, as -1 less their numbers; they are as long as objects."""
        queries, n = self._judgements.queries, len(vectors)
        if queries is None:
            return near
        length = 1.0 if self._unit_norm else float(np.linalg.norm(self.total)) / len(self._objects)

        def score(rows: Matrix) -> Array:
            scores = products(rows, vectors)
            if not self._unit_norm:
                scores = scores * (length / np.maximum(row_norms(rows), np.finfo(np.float64).tiny))
            return scores

        judged = best_among(queries.blocks(n), score, n, N_NEIGHBOURS)
        return better_of(near, Best(-1 - judged.places, judged.scores), N_NEIGHBOURS)


def dense(rows: Any) -> Array:
    """Give rows as an array."""
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows)


def _by_rank(scores: Array) -> Array:
    """Give weights 1, 1/2, 1/3, ... that sum to 1, to those that are there."""
    weights = np.where(np.isfinite(scores), 1 / np.arange(1, scores.shape[1] + 1), 0.0)
    return np.asarray(weights / np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny))


def _ranges(starts: Ids, lengths: Ids) -> Ids:
    """Give all whole numbers of some ranges, one range after the other."""
    return np.arange(lengths.sum()) + np.repeat(starts - np.cumsum(lengths) + lengths, lengths)


def quantile_of_sorted(values: Sequence[float], share: float) -> float:
    """Give what `np.quantile` does, to the bit, without looking at all values."""
    at = (len(values) - 1) * share
    below = int(at)
    first, second, part = values[below], values[min(below + 1, len(values) - 1)], at - below
    if part < 0.5:
        return first + (second - first) * part
    return second - (second - first) * (1 - part)

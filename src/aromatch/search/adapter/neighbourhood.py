"""The neighbourhood of a query: how much feedback there is on it, and where that pulls the query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.extmath import row_norms

from ..._utils.nearest import TopK, merge_top_k
from ..._utils.row_hashes import row_hashes
from ..._utils.rows import Matrix, as_dense, unit_rows
from ..stores.base import Keys
from ..stores.memory import Chunk, MemoryStore
from .credit import Credit, credit_of, values_at, weighted_targets
from .feedback import Feedback

Array = NDArray[Any]

N_NEIGHBOURS = 10
# Credit of the neighbourhood below which it is not trusted.
_MIN_CREDIT = 0.2
# Trust in the feedback on the same query.
_SAME_QUERY_TRUST = 0.8
# Largest correction, relative to the part of the query that distinguishes objects. Twice as much gains more at low
# ranks, and loses first ranks in small collections.
_STEP = 0.5
# Quantile of the proximity of queries with feedback below which trust falls.
_FAR_QUANTILE = 0.05
_TINY = np.finfo(np.float64).tiny


class Correction(NamedTuple):
    """Corrections of some queries, before they are weighted."""

    trust: Array
    """Coverage of the neighbourhood of each query by feedback, from 0 to 1."""
    directions: Array
    """Corrections at full trust; zero without feedback nearby."""
    own_object: Keys
    """The object that equals the query, or -1."""
    proximity: Array
    """Mean score of the nearest objects for the normalized query."""


class Neighbourhood:
    """Objects and feedback around a query.

    Rows are in the form in which inner products are the base score: with `unit_norm` for the cosine.
    """

    def __init__(self, store: MemoryStore, feedback: Feedback, *, unit_norm: bool) -> None:
        self._store, self._feedback, self._unit_norm = store, feedback, unit_norm
        self.total = np.zeros(store.n_features)
        """Sum of all objects."""
        self._last: tuple[bytes, Correction] | None = None

    def update(self, added: Array | float = 0.0) -> None:
        """Account for new feedback, or for added or removed objects with the given sum."""
        self._last = None
        self.total = self.total + added

    def correction(self, Q: Matrix) -> Correction:
        """Return the correction of each query."""
        if Q.shape[0] > 1:
            return self._correction(Q)
        # Feedback usually follows the search for the same query.
        (digest,) = row_hashes(Q)
        if self._last is None or self._last[0] != digest:
            self._last = digest, self._correction(Q)
        return self._last[1]

    def _correction(self, Q: Matrix) -> Correction:
        vectors, n = as_dense(Q), Q.shape[0]
        lengths = row_norms(vectors)[:, np.newaxis]
        near = self._store.nearest(vectors, N_NEIGHBOURS + 1)
        is_own = self._is_own(near, lengths)
        own_object = np.where(is_own.any(axis=1), near.indices[np.arange(n), is_own.argmax(axis=1)], -1)
        # An object that equals the query is not part of its neighbourhood, unless it has feedback as a query.
        is_own[is_own] = [key not in self._feedback.queries_of for key in near.indices[is_own].tolist()]
        scores = np.where(is_own, -np.inf, near.scores)
        near = merge_top_k(TopK(near.indices, scores), TopK(near.indices[:, :0], scores[:, :0]), N_NEIGHBOURS)
        is_present = np.isfinite(near.scores)
        proximity = np.where(is_present, near.scores, 0.0).sum(axis=1) / np.maximum(is_present.sum(axis=1), 1)
        proximity = proximity / np.maximum(lengths[:, 0], _TINY)
        if not len(self._feedback.targets):
            return Correction(np.zeros(n), np.zeros(vectors.shape), own_object, proximity)
        weights, nearness = _rank_weights(near.scores), self._nearness(proximity)
        numbers = self._feedback.numbers(Q)
        has_target = numbers >= 0
        has_target[has_target] = [self._feedback.precision[number] > 0 for number in numbers[has_target].tolist()]
        keys, indices = np.unique(near.indices, return_inverse=True)
        credit = credit_of(self._feedback, keys)
        amount = (credit.amount - credit.is_only_negative)[indices.reshape(near.indices.shape)]
        trust = np.maximum(0.0, ((weights * amount).sum(axis=1) - _MIN_CREDIT) / (1 - _MIN_CREDIT)) * nearness
        # A query with feedback of its own is trusted whatever its neighbourhood is.
        trust[has_target] = np.maximum(trust[has_target], _SAME_QUERY_TRUST)
        directions = self._directions(vectors, near, keys, credit, np.where(has_target, numbers, -1))
        # The part of a query along the mean of all objects does not distinguish them.
        size = np.linalg.norm(self.total)
        along = vectors @ (self.total / size) if size > 0 else np.zeros(n)
        reach = np.asarray(_STEP * np.sqrt(np.maximum(lengths**2 - along[:, np.newaxis] ** 2, 0.0)))
        return Correction(trust, reach * directions, own_object, proximity)

    def _is_own(self, near: TopK, lengths: Array) -> NDArray[np.bool_]:
        """Return which neighbours equal the query: of the same norm, and as near to it as the query itself."""
        rounding = 64 * np.finfo(near.scores.dtype).eps * lengths**2
        is_own = (np.abs(near.scores - lengths**2) <= rounding) & (lengths > 0)
        if not self._unit_norm and is_own.any():
            found = np.unique(near.indices[is_own])
            squares = row_norms(self._store.rows(found), squared=True)
            of_each = squares[np.minimum(np.searchsorted(found, near.indices), len(found) - 1)]
            is_own &= np.abs(of_each - lengths**2) <= rounding
        return np.asarray(is_own)

    def _nearness(self, proximity: Array) -> Array:
        """Return 1 for queries as near to the objects as those with feedback, and less down to 0 beyond.

        It is 0 as far below the lower quantile of their proximities as this is below the median.
        """
        known = self._feedback.sorted_proximity
        if not known:
            return np.zeros(len(proximity))
        far, median = quantile_of_sorted(known, _FAR_QUANTILE), quantile_of_sorted(known, 0.5)
        beyond, reach = np.maximum(far - proximity, 0.0), max(median - far, _TINY)
        # The quotient could overflow where it is above 1.
        share = np.divide(beyond, reach, out=np.ones_like(beyond), where=beyond < reach)
        return np.asarray(1.0 - share)

    def _directions(self, vectors: Array, near: TopK, keys: Keys, credit: Credit, numbers: Keys) -> Array:
        """Return the direction of the targets around each query, of unit norm, or 0 without any.

        `credit` is that of the `keys` of the nearest objects; `numbers` are those of queries with feedback of their
        own, -1 for others.
        """
        n = len(vectors)
        near = self._with_queries(vectors, near)
        weights = _rank_weights(near.scores)
        row, rank = np.nonzero((near.indices >= 0) & np.isfinite(near.scores))
        index = np.searchsorted(keys, near.indices[row, rank])
        sizes = (credit.starts[1:] - credit.starts[:-1])[index]
        terms = np.arange(sizes.sum()) + np.repeat(credit.starts[index] - np.cumsum(sizes) + sizes, sizes)
        by_objects = np.repeat(weights[row, rank] * credit.amount[index], sizes) * credit.shares[terms]
        query_row, query_rank = np.nonzero((near.indices < 0) & np.isfinite(near.scores))
        queries = -1 - near.indices[query_row, query_rank]
        by_queries = weights[query_row, query_rank] * values_at(self._feedback.precision, queries)
        same = np.flatnonzero(numbers >= 0)
        found = weighted_targets(
            self._feedback,
            n,
            np.concatenate([np.repeat(row, sizes), query_row, same]),
            np.concatenate([credit.queries[terms], queries, numbers[same]]),
            np.concatenate([by_objects, by_queries, np.ones(len(same))]),
        )
        if not len(found.keys):
            return np.zeros(vectors.shape)
        used, columns = np.unique(found.keys, return_inverse=True)
        starts = np.searchsorted(found.rows, np.arange(n + 1))
        sums = sparse.csr_array((found.weights, columns, starts), shape=(n, len(used)))
        mean = self.total / len(self._store)
        return np.asarray(unit_rows(as_dense(sums @ self._store.rows(used)) - np.outer(found.mean_weight, mean)))

    def _with_queries(self, vectors: Array, near: TopK) -> TopK:
        """Return the nearest objects and queries with feedback; a query has -1 minus its number as index.

        Queries are compared as if they had the norm of the mean object.
        """
        queries = self._feedback.queries
        if queries is None:
            return near
        length = float(np.linalg.norm(self.total)) / len(self._store)

        def rescale(chunk: Chunk, scores: Array) -> Array:
            return np.asarray(scores * (length / np.maximum(row_norms(chunk.rows), _TINY)))

        found = queries.nearest(vectors, N_NEIGHBOURS, None if self._unit_norm else rescale)
        return merge_top_k(near, TopK(-1 - found.indices, found.scores), N_NEIGHBOURS)


def quantile_of_sorted(values: Sequence[float], share: float) -> float:
    """Return what `np.quantile` does, to the bit, in constant time."""
    at = (len(values) - 1) * share
    below = int(at)
    first, second, part = values[below], values[min(below + 1, len(values) - 1)], at - below
    if part < 0.5:
        return first + (second - first) * part
    return second - (second - first) * (1 - part)


def _rank_weights(scores: Array) -> Array:
    """Return weights 1, 1/2, 1/3, ... that sum to 1; 0 where the score is not finite."""
    weights = np.where(np.isfinite(scores), 1 / np.arange(1, scores.shape[1] + 1), 0.0)
    return np.asarray(weights / np.maximum(weights.sum(axis=1, keepdims=True), _TINY))

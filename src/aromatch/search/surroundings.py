"""What is known around a query: how much of it, and what was asked for there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import row_norms

from .._rows import Matrix
from .best import Best, best_among, better_of, products
from .collection import Collection, Ids
from .judgements import Judgements, Votes, digest

Array = NDArray[Any]

N_NEIGHBOURS = 10
# Share of the surroundings that has to be known before any of it is trusted.
_STRANGE = 0.2
# Share of the judged queries, those furthest from everything, beyond which trust falls.
_FAR = 0.05


class View(NamedTuple):
    """What is seen around some queries."""

    trust: Array
    """How well the surroundings of each are known, from 0 to 1."""
    directions: Array
    """What was asked for there: vectors as long as the query, or 0 where nothing was."""
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
        self._votes: Votes | None = None
        self._last: tuple[bytes, View] | None = None

    def changed(self, added: Array | float = 0.0) -> None:
        """Take notice of new judgements or objects, of which `added` is the sum."""
        self.total = self.total + added
        self._votes = self._last = None

    @property
    def votes(self) -> Votes:
        """The judgements, counted."""
        if self._votes is None:
            self._votes = self._judgements.votes(self._objects.next_id)
        return self._votes

    def nearest(self, vectors: Array, k: int) -> Best:
        """Give the objects with the largest inner products with each vector."""
        n = len(vectors)
        return best_among(self._objects.blocks(n), lambda rows: products(rows, vectors), n, k)

    def view(self, Q: Matrix) -> View:
        """Look around each query."""
        if Q.shape[0] > 1:
            return self._view(Q)
        # A query that was just searched is judged next.
        name = digest(Q)
        if self._last is None or self._last[0] != name:
            self._last = name, self._view(Q)
        return self._last[1]

    def _view(self, Q: Matrix) -> View:
        vectors, n = dense(Q), Q.shape[0]
        lengths = row_norms(vectors)[:, np.newaxis]
        near = self.nearest(vectors, N_NEIGHBOURS + 1)
        rounding = 64 * np.finfo(Q.dtype).eps
        is_itself = np.abs(near.scores - lengths**2) <= rounding * lengths**2
        itself = np.where(is_itself.any(axis=1), near.places[np.arange(n), is_itself.argmax(axis=1)], -1)
        # An object that is the query itself says nothing of its surroundings, unless it was judged as a query.
        scores = np.where(is_itself & ~self.votes.is_judged[near.places], -np.inf, near.scores)
        near = better_of(Best(near.places, scores), Best(near.places[:, :0], scores[:, :0]), N_NEIGHBOURS)
        is_there = np.isfinite(near.scores)
        nearness = np.where(is_there, near.scores, 0.0).sum(axis=1) / np.maximum(is_there.sum(axis=1), 1)
        nearness = nearness / np.maximum(lengths[:, 0], np.finfo(np.float64).tiny)
        if not len(self._judgements):
            return View(np.zeros(n), np.zeros(vectors.shape), itself, nearness)
        known = self.votes.known[near.places] - self.votes.is_only_bad[near.places]
        share = (_by_rank(near.scores) * known).sum(axis=1)
        trust = np.maximum(0.0, (share - _STRANGE) / (1 - _STRANGE)) * self._is_near(nearness)
        return View(trust, lengths * self._directions(vectors, near), itself, nearness)

    def _is_near(self, nearness: Array) -> Array:
        """Give 1 where a query is no further from everything than judged ones, and less and then 0 beyond.

        It is 0 as far beyond the furthest of them, but for a few, as these are from the middle.
        """
        if not len(self.votes.nearness):
            return np.zeros(len(nearness))
        far, middle = np.quantile(self.votes.nearness, [_FAR, 0.5])
        beyond = np.maximum(far - nearness, 0.0)
        return np.asarray(np.maximum(0.0, 1.0 - beyond / np.maximum(middle - far, np.finfo(np.float64).tiny)))

    def _directions(self, vectors: Array, near: Best) -> Array:
        """Give what was asked for around each query, with length 1, or 0 where nothing was."""
        votes, n = self.votes, len(vectors)
        n_ids, n_judged = votes.likes.shape
        near = self._with_judged_queries(vectors, near, n_ids)
        strength = np.concatenate([votes.known, votes.precision])[near.places]
        rows = np.repeat(np.arange(n), near.places.shape[1])
        cells = (_by_rank(near.scores) * strength).ravel(), (rows, near.places.ravel())
        around = sparse.csr_array(cells, shape=(n, n_ids + n_judged))
        asked_by = around[:, :n_ids] @ votes.likes + around[:, n_ids:]
        asked_for = sparse.csr_array(asked_by @ votes.wants)
        used = np.unique(asked_for.indices)
        if not len(used):
            return np.zeros(vectors.shape)
        directions = dense(asked_for[:, used] @ self._objects.rows(used))
        mean = self.total / len(self._objects)
        return np.asarray(normalize(directions - np.outer(asked_by @ votes.of_mean, mean)))

    def _with_judged_queries(self, vectors: Array, near: Best, n_ids: int) -> Best:
        """Let judged queries stand among the objects nearby, after all ids; they are as long as an object is."""
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
        return better_of(near, Best(judged.places + n_ids, judged.scores), N_NEIGHBOURS)


def dense(rows: Any) -> Array:
    """Give rows as an array."""
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows)


def _by_rank(scores: Array) -> Array:
    """Give weights 1, 1/2, 1/3, ... that sum to 1, to those that are there."""
    weights = np.where(np.isfinite(scores), 1 / np.arange(1, scores.shape[1] + 1), 0.0)
    return np.asarray(weights / np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny))

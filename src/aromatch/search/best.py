"""The k best of many scores, without sorting all of them; equal scores in the order of their places."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._rows import Matrix
from .collection import Piece


class Best(NamedTuple):
    """The best so far for each query, the best first."""

    places: NDArray[np.int64]
    scores: NDArray[Any]


def best_of(scores: NDArray[Any], k: int) -> Best:
    """Give the k largest of each row, or all when there are fewer; equal ones from left to right."""
    n = scores.shape[1]
    if k >= n:
        order = np.argsort(-scores, axis=1, kind="stable")
        return Best(order, np.take_along_axis(scores, order, axis=1))
    lowest = np.partition(scores, n - k, axis=1)[:, n - k, np.newaxis]
    chosen = scores >= lowest
    counts = np.count_nonzero(chosen, axis=1)
    for row in np.flatnonzero(counts > k):  # ties at the end: the first of them are in
        tied = np.flatnonzero(scores[row] == lowest[row])
        chosen[row, tied[k - counts[row] :]] = False
    places = np.nonzero(chosen)[1].reshape(len(scores), k)
    found = np.take_along_axis(scores, places, axis=1)
    order = np.argsort(-found, axis=1, kind="stable")
    return Best(np.take_along_axis(places, order, axis=1), np.take_along_axis(found, order, axis=1))


def better_of(first: Best, second: Best, k: int) -> Best:
    """Give the k best of two, of which the first has the earlier places."""
    places, scores = (np.concatenate(both, axis=1) for both in zip(first, second, strict=True))
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return Best(np.take_along_axis(places, order, axis=1), np.take_along_axis(scores, order, axis=1))


def best_among(blocks: Iterable[Piece], score: Callable[[Matrix], NDArray[Any]], n_queries: int, k: int) -> Best:
    """Give the k best of some rows by their ids, in `places`; `score` gives a row of scores for each query."""
    nothing = np.empty((n_queries, 0))
    best, first, ids = Best(nothing.astype(np.int64), nothing), 0, [np.empty(0, dtype=np.int64)]
    for block in blocks:
        scores = score(block.rows)
        scores[:, ~block.is_there] = -np.inf
        here = best_of(scores, k)
        best = better_of(best, Best(here.places + first, here.scores), k)
        first += len(block.ids)
        ids.append(block.ids)
    return Best(np.concatenate(ids)[best.places], best.scores)


def products(rows: Matrix, vectors: NDArray[Any]) -> NDArray[Any]:
    """Score all rows for each vector."""
    return np.asarray((rows @ vectors.T).T)

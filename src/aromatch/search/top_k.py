"""The k best of many scores, without sorting all of them; equal scores in the order of their places."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._utils.rows import Matrix
from .stores.memory import NUMBERS_AT_ONCE, Piece


class Best(NamedTuple):
    """The best so far for each query, the best first."""

    places: NDArray[np.int64]
    scores: NDArray[Any]


def best_of(scores: NDArray[Any], k: int) -> Best:
    """Give the k largest of each row, or all when there are fewer; equal ones from left to right."""
    n = scores.shape[1]
    if k >= n:
        order = np.argsort(-scores, axis=1, kind="stable")
        return Best(order, _taken(scores, order))
    lowest = np.partition(scores, n - k, axis=1)[:, n - k, np.newaxis]
    chosen = scores >= lowest
    counts = np.count_nonzero(chosen, axis=1)
    for row in np.flatnonzero(counts > k):  # ties at the end: the first of them are in
        tied = np.flatnonzero(scores[row] == lowest[row])
        chosen[row, tied[k - counts[row] :]] = False
    places = np.nonzero(chosen)[1].reshape(len(scores), k)
    found = _taken(scores, places)
    order = np.argsort(-found, axis=1, kind="stable")
    return Best(_taken(places, order), _taken(found, order))


def better_of(first: Best, second: Best, k: int) -> Best:
    """Give the k best of two, of which the first has the earlier places."""
    places, scores = (np.concatenate(both, axis=1) for both in zip(first, second, strict=True))
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return Best(_taken(places, order), _taken(scores, order))


def best_among(blocks: Iterable[Piece], score: Callable[[Matrix], NDArray[Any]], n_queries: int, k: int) -> Best:
    """Give the k best of some rows by their ids, in `places`; `score` gives a row of scores for each query."""
    nothing = np.empty((n_queries, 0))
    best = Best(nothing.astype(np.int64), nothing)
    for scored in _in_portions(blocks, score, n_queries):
        ids, scores = scored.places, scored.scores
        here = best_of(scores, k)
        found = Best(ids[here.places], here.scores)
        best = better_of(best, found, k) if best.scores.size else found
    return best


def _in_portions(blocks: Iterable[Piece], score: Callable[[Matrix], NDArray[Any]], n_queries: int) -> Iterator[Best]:
    """Give scores of all rows, and ids: of small blocks together, since choosing among few costs what many do."""
    ids: list[NDArray[np.int64]] = []
    scores: list[NDArray[Any]] = []
    n = 0
    for block in blocks:
        if n and n_queries * (n + len(block.ids)) > NUMBERS_AT_ONCE:
            yield Best(np.concatenate(ids), np.concatenate(scores, axis=1))
            ids, scores, n = [], [], 0
        here = score(block.rows)
        if not block.is_there.all():
            here[:, ~block.is_there] = -np.inf
        ids.append(block.ids)
        scores.append(here)
        n += len(block.ids)
    if len(ids) == 1:
        yield Best(ids[0], scores[0])
    elif ids:
        yield Best(np.concatenate(ids), np.concatenate(scores, axis=1))


def products(rows: Matrix, vectors: NDArray[Any]) -> NDArray[Any]:
    """Score all rows for each vector."""
    return np.asarray((rows @ vectors.T).T)


def _taken(values: NDArray[Any], order: NDArray[np.int64]) -> NDArray[Any]:
    """Do what `np.take_along_axis` does with rows, which takes longer than to choose a few."""
    return np.asarray(values[np.arange(len(values))[:, np.newaxis], order])

"""The k largest of many scores, and the approximate nearest-neighbour index of usearch."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class TopK(NamedTuple):
    """The k best for each query, best first."""

    indices: NDArray[np.int64]
    scores: NDArray[Any]


def top_k(scores: NDArray[Any], k: int) -> TopK:
    """Return the k largest scores of each row, all if there are fewer; ties are ordered by column.

    >>> top_k(np.array([[1.0, 3.0, 2.0, 3.0]]), 3).indices
    array([[1, 3, 2]])
    """
    n = scores.shape[1]
    if k >= n:
        order = np.argsort(-scores, axis=1, kind="stable")
        return TopK(order, _take(scores, order))
    lowest = np.partition(scores, n - k, axis=1)[:, n - k, np.newaxis]
    chosen = scores >= lowest
    counts = np.count_nonzero(chosen, axis=1)
    for row in np.flatnonzero(counts > k):  # ties at the boundary: keep the leftmost
        tied = np.flatnonzero(scores[row] == lowest[row])
        chosen[row, tied[k - counts[row] :]] = False
    indices = np.nonzero(chosen)[1].reshape(len(scores), k)
    values = _take(scores, indices)
    order = np.argsort(-values, axis=1, kind="stable")
    return TopK(_take(indices, order), _take(values, order))


def merge_top_k(first: TopK, second: TopK, k: int) -> TopK:
    """Return the k best of two results; on a tie those of the first precede."""
    indices, scores = (np.concatenate(both, axis=1) for both in zip(first, second, strict=True))
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return TopK(_take(indices, order), _take(scores, order))


class ApproximateNeighbours:
    """HNSW index of usearch over dense vectors, by inner product ("dot") or squared distance ("euclidean")."""

    def __init__(self, n_features: int, metric: str, effort: int) -> None:
        try:
            usearch: Any = import_module("usearch.index")
        except ImportError:
            raise ImportError("an approximate index needs usearch: pip install 'aromatch[search]'") from None
        kind = {"dot": "ip", "euclidean": "l2sq"}[metric]
        self._index = usearch.Index(ndim=n_features, metric=kind, dtype="f32", expansion_search=effort)

    def add(self, keys: NDArray[np.int64], rows: NDArray[Any]) -> None:
        """Add vectors in a single thread, so that the graph is reproducible; present ones stay as they are."""
        keys, rows = keys[is_new := ~self._contains(keys)], rows[is_new]
        if len(keys):
            self._index.add(keys.astype(np.uint64), np.ascontiguousarray(rows, dtype=np.float32), threads=1)

    def remove(self, keys: NDArray[np.int64]) -> None:
        """Remove vectors; absent ones are ignored."""
        self._index.remove(keys[self._contains(keys)].astype(np.uint64))

    def _contains(self, keys: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.atleast_1d(np.asarray(self._index.contains(keys.astype(np.uint64)), dtype=np.bool_))

    def nearest(self, vectors: NDArray[Any], k: int) -> NDArray[np.int64]:
        """Return the keys of about the k nearest vectors, for every row of `vectors`."""
        vectors = np.ascontiguousarray(vectors, dtype=np.float32)
        found = self._index.search(vectors, k, threads=1)
        n_found = len(found) if found.keys.ndim == 1 else found.counts.min()
        if n_found < k:  # the graph search reached fewer vectors than asked for
            found = self._index.search(vectors, k, exact=True, threads=1)
        return np.atleast_2d(found.keys).astype(np.int64)


def _take(values: NDArray[Any], order: NDArray[np.int64]) -> NDArray[Any]:
    # Faster than np.take_along_axis, whose overhead exceeds the selection of a few values.
    return np.asarray(values[np.arange(len(values))[:, np.newaxis], order])

"""The approximate index of usearch, for inner products of dense vectors."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Neighbours:
    """Vectors under ids, with the largest inner products found fast and nearly always."""

    def __init__(self, width: int, effort: int) -> None:
        try:
            usearch: Any = import_module("usearch.index")
        except ImportError:
            raise ImportError("an approximate index needs usearch: pip install 'aromatch[search]'") from None
        self._index = usearch.Index(ndim=width, metric="ip", dtype="f32", expansion_search=effort)

    def add(self, ids: NDArray[np.int64], rows: NDArray[Any]) -> None:
        """Add vectors; one after another, so that the same ones give the same index."""
        if len(ids):
            self._index.add(ids.astype(np.uint64), np.ascontiguousarray(rows, dtype=np.float32), threads=1)

    def remove(self, ids: NDArray[np.int64]) -> None:
        """Remove vectors."""
        self._index.remove(ids.astype(np.uint64))

    def nearest(self, wanted: NDArray[Any], k: int) -> NDArray[np.int64]:
        """Give the ids of k vectors with large inner products, for every row of `wanted`."""
        vectors = np.ascontiguousarray(wanted, dtype=np.float32)
        found = self._index.search(vectors, k, threads=1)
        n_found = len(found) if found.keys.ndim == 1 else found.counts.min()
        if n_found < k:  # the graph did not reach as many
            found = self._index.search(vectors, k, exact=True, threads=1)
        return np.atleast_2d(found.keys).astype(np.int64)

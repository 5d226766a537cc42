"""A store in memory: rows under keys, with cheap additions and removals.

Additions form chunks, so that adding a row does not copy all others. As in a log-structured store, a chunk is merged
with the one before it if that is not larger. Removed rows are skipped, and dropped once they are half of a chunk.

Integer ids are their own keys. String ids get the keys 0, 1, 2, ... and are translated by `keys` and `ids_of`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ..._utils.chunks import chunks
from ..._utils.ids import IdTable, as_ids, check_unique
from ..._utils.journal import Journal
from ..._utils.nearest import ApproximateNeighbours, TopK, merge_top_k, top_k
from ..._utils.rows import Matrix
from .base import Array, Keys

# Numbers that a scan computes or converts at a time.
NUMBERS_PER_BLOCK = 2**21
# Candidates of the approximate index that are scored exactly, per requested object.
_OVERSAMPLING = 4


class Chunk(NamedTuple):
    """Rows with their keys, in the order in which they were added."""

    rows: Matrix
    keys: Keys
    is_present: NDArray[np.bool_]
    squares: Array | None = None
    """Squared norms of the rows, for the metric "euclidean"."""
    ascending: Keys | None = None
    """Indices that sort the keys; None if they are sorted."""

    def find(self, keys: Keys) -> Keys:
        """Return the index of each key; -1 where it is absent."""
        indices = np.searchsorted(self.keys, keys, sorter=self.ascending)
        indices = np.minimum(indices, len(self.keys) - 1)
        if self.ascending is not None:
            indices = self.ascending[indices]
        return np.where((self.keys[indices] == keys) & self.is_present[indices], indices, -1)

    def block(self, start: int, end: int) -> Chunk:
        """Return a view of some of the rows."""
        if start == 0 and end >= len(self.keys):
            return self
        squares = None if self.squares is None else self.squares[start:end]
        return Chunk(_slice(self.rows, start, end), self.keys[start:end], self.is_present[start:end], squares)


class MemoryStore:
    """Rows in float64 or float32, dense or CSR, all of the kind of the first ones. Values are not checked here.

    Parameters
    ----------
    rows : array or CSR matrix of shape (n_objects, n_features)
        Stored without a copy if it is C-contiguous or CSR.
    ids : sequence of int or of str, optional
    metric : {"dot", "euclidean"}, default "dot"
    approximate : bool, default False
        Find candidates with usearch and score only those.
    effort : int, default 128
        Candidates that the approximate search examines.
    """

    def __init__(
        self,
        rows: Matrix,
        ids: ArrayLike | None = None,
        *,
        metric: str = "dot",
        approximate: bool = False,
        effort: int = 128,
    ) -> None:
        self.is_sparse, self.n_features, self.dtype = sparse.issparse(rows), int(rows.shape[1]), rows.dtype
        self.metric = metric
        self.next_key = 0
        """Exceeds all keys so far, including those of removed rows."""
        has_names = ids is not None and as_ids(ids, "ids").dtype == object
        self._table = IdTable({} if has_names else None)
        self._chunks: list[Chunk] = []
        self.n_objects = 0
        self._neighbours = ApproximateNeighbours(self.n_features, metric, effort) if approximate else None
        self.add(rows, ids)

    def __len__(self) -> int:
        return self.n_objects

    @property
    def ids(self) -> Array:
        """Ids of all objects, in the order in which they were added."""
        return self.ids_of(self.present_keys)

    @property
    def present_keys(self) -> Keys:
        """Keys of all objects, in the order in which they were added."""
        return np.concatenate([np.empty(0, np.int64), *(chunk.keys[chunk.is_present] for chunk in self._chunks)])

    def keys(self, ids: ArrayLike, name: str) -> Keys:
        """Return the keys of objects; raise a ValueError that names the argument if one is missing."""
        given, keys = self._table.keys(ids, name)
        self._find(keys, name, given)
        return keys

    def check_keys(self, keys: Keys, name: str) -> None:
        """Raise a ValueError if a key is missing."""
        self._find(keys, name, keys)

    def ids_of(self, keys: Keys) -> Array:
        """Return the ids of keys, in an array of the same shape."""
        return self._table.ids(keys)

    # -- objects ------------------------------------------------------------------------------------------

    def add(
        self, rows: Matrix, ids: ArrayLike | None = None, name: str = "rows", journal: Journal | None = None
    ) -> Keys:
        """Add rows and return their keys; ids default to integers that continue from the largest so far.

        Changes are noted in the `journal` of a call that undoes them if it fails.
        """
        journal, n = journal or Journal(), rows.shape[0]
        if rows.shape[1] != self.n_features:
            raise ValueError(f"{name} has {rows.shape[1]} features, expected {self.n_features} like the other objects")
        if sparse.issparse(rows) != self.is_sparse:
            raise TypeError(f"{name} must be {'sparse' if self.is_sparse else 'dense'} like the other objects")
        if ids is None and self._table.names is not None:
            raise ValueError("ids is None, expected str ids like those of the other objects")
        given, keys = (None, np.arange(self.next_key, self.next_key + n)) if ids is None else self._new_keys(ids, n)
        rows = rows.astype(self.dtype, copy=False)
        rows = sparse.csr_array(rows) if self.is_sparse else np.ascontiguousarray(rows)
        chunks = [*self._chunks, self._chunk(rows, keys, np.ones(n, dtype=np.bool_))]
        while len(chunks) > 1 and len(chunks[-1].keys) >= len(chunks[-2].keys):
            chunks[-2:] = [self._merged(chunks[-2:])]
        journal.attributes(self, "_chunks", "next_key", "n_objects")
        self._chunks = chunks
        self.next_key = max(self.next_key, int(keys.max()) + 1)
        self.n_objects += n
        if given is not None:
            self._table.assign(given, keys, journal)
        if self._neighbours is not None:
            journal.note(partial(self._neighbours.remove, keys))
            self._neighbours.add(keys, rows)
        return keys

    def remove(self, keys: Keys, journal: Journal | None = None) -> None:
        """Remove rows; their keys are not assigned again by default. Changes are noted as in `add`."""
        journal, keys = journal or Journal(), np.unique(keys)
        if not len(keys):
            return
        of_chunk, indices = self._find(keys, "keys", keys)
        chunks = list(self._chunks)
        for number in set(of_chunk.tolist()):
            is_present = chunks[number].is_present.copy()
            is_present[indices[of_chunk == number]] = False
            chunk = chunks[number]._replace(is_present=is_present)
            chunks[number] = chunk if 2 * np.count_nonzero(is_present) >= len(chunk.keys) else self._merged([chunk])
        journal.attributes(self, "_chunks", "n_objects")
        if self._neighbours is not None:
            rows = self.rows(keys)
            journal.note(partial(self._neighbours.add, keys, rows))
            self._neighbours.remove(keys)
        self._chunks = [chunk for chunk in chunks if len(chunk.keys)]
        self.n_objects -= len(indices)
        self._table.remove(keys, journal)

    def rows(self, keys: Keys) -> Matrix:
        """Return the rows of at least one key, in the order of the keys."""
        of_chunk, indices = self._find(keys, "keys", keys)
        used = sorted(set(of_chunk.tolist()))
        if len(used) == 1:
            return _take(self._chunks[used[0]].rows, indices)
        parts = [_take(self._chunks[number].rows, indices[of_chunk == number]) for number in used]
        return _take(_stack(parts), np.argsort(np.argsort(of_chunk, kind="stable")))

    # -- search -------------------------------------------------------------------------------------------

    def nearest(self, vectors: Array, k: int, adjust: Callable[[Chunk, Array], Array] | None = None) -> TopK:
        """Return the keys of the k best objects for each vector, and their scores.

        `adjust` returns the scores to rank a chunk by, given the chunk and its scores of shape (n_vectors, n_rows).
        """
        n = len(vectors)
        blocks: Iterable[Chunk] = self.blocks(n)
        if self._neighbours is not None:
            candidates = np.unique(self._neighbours.nearest(vectors, min(_OVERSAMPLING * k, len(self))))
            blocks = [self._candidates(candidates)]
        best = TopK(np.empty((n, 0), dtype=np.int64), np.empty((n, 0)))
        keys: list[Keys] = []
        scores: list[Array] = []
        n_scored = 0
        # Small chunks are ranked together: selecting among few costs as much as among many.
        for block in blocks:
            if n_scored and n * (n_scored + len(block.keys)) > NUMBERS_PER_BLOCK:
                best = _better(best, keys, scores, k)
                keys, scores, n_scored = [], [], 0
            here = self._scores(block, vectors)
            if adjust is not None:
                here = adjust(block, here)
            if not block.is_present.all():
                here[:, ~block.is_present] = -np.inf
            keys.append(block.keys)
            scores.append(here)
            n_scored += len(block.keys)
        return _better(best, keys, scores, k) if keys else best

    def blocks(self, n_vectors: int = 1) -> Iterator[Chunk]:
        """Iterate over all rows in blocks for which `n_vectors` numbers per row fit in the memory budget."""
        size = NUMBERS_PER_BLOCK // max(n_vectors, 1 if self.is_sparse else self.n_features)
        for chunk in self._chunks:
            for rows in chunks(len(chunk.keys), size):
                yield chunk.block(rows.start, rows.stop)

    def _scores(self, chunk: Chunk, vectors: Array) -> Array:
        if chunk.squares is None:
            return products(chunk.rows, vectors)
        # In double precision, since the terms of near neighbours cancel.
        doubles = vectors.astype(np.float64, copy=False)
        return 2 * products(chunk.rows, doubles) - chunk.squares - squared_norms(doubles)[:, np.newaxis]

    def _candidates(self, keys: Keys) -> Chunk:
        """Return a chunk of some rows in the order in which they were added, so that ties are ordered alike."""
        of_chunk, indices = self._find(keys, "keys", keys)
        keys = keys[np.lexsort((indices, of_chunk))]
        return self._chunk(self.rows(keys), keys, np.ones(len(keys), dtype=np.bool_))

    # -- files --------------------------------------------------------------------------------------------

    def layout(self) -> tuple[Keys, Keys]:
        """Return the keys of all rows as they lie in memory, -1 for removed rows, and the lengths of the chunks."""
        keys = [np.where(chunk.is_present, chunk.keys, -1) for chunk in self._chunks]
        return np.concatenate(keys), np.array([len(part) for part in keys], dtype=np.int64)

    @classmethod
    def from_layout(cls, rows: Matrix, keys: Keys, lengths: Keys, ids: list[str] | None = None) -> Self:
        """Restore a store with the same chunks, so that sums over its rows round alike.

        `rows`, and string `ids`, are those of the present keys, in the order of the layout.
        """
        is_present = keys >= 0
        if (lengths < 1).any() or lengths.sum() != len(keys):
            raise ValueError(f"chunks of {lengths.sum()} rows in total, expected {len(keys)}")
        present = keys[is_present]
        check_unique(present, "keys", rows.shape[0])
        store = cls(rows[:1])
        if ids is not None:
            check_unique(np.array(ids, dtype=object), "ids", len(present))
            store._table = IdTable(dict(zip(present.tolist(), ids, strict=True)))
        store.next_key, store.n_objects = int(present.max()) + 1, len(present)
        full = rows if is_present.all() else _with_gaps(rows, is_present)
        full = sparse.csr_array(full) if store.is_sparse else np.ascontiguousarray(full)
        store._chunks = [
            store._chunk(_slice(full, start, end), keys[start:end], is_present[start:end].copy())
            for start, end in pairwise([0, *np.cumsum(lengths).tolist()])
        ]
        return store

    # -- inside -------------------------------------------------------------------------------------------

    def _chunk(self, rows: Matrix, keys: Keys, is_present: NDArray[np.bool_]) -> Chunk:
        squares = squared_norms(rows) if self.metric == "euclidean" else None
        is_ascending = bool((keys[1:] > keys[:-1]).all())
        return Chunk(rows, keys, is_present, squares, None if is_ascending else np.argsort(keys, kind="stable"))

    def _merged(self, merged: list[Chunk]) -> Chunk:
        """Return one chunk of the present rows of several."""
        rows = _stack([chunk.rows if chunk.is_present.all() else chunk.rows[chunk.is_present] for chunk in merged])
        keys = np.concatenate([chunk.keys[chunk.is_present] for chunk in merged])
        return self._chunk(rows, keys, np.ones(len(keys), dtype=np.bool_))

    def _new_keys(self, ids: ArrayLike, n: int) -> tuple[Array, Keys]:
        """Return new ids as an array, and their keys."""
        given, keys = self._table.keys(ids, "ids")
        check_unique(given, "ids", n)
        if keys.min() < self.next_key:  # larger ones are new in any case
            existing = given[self._indices(keys)[0] >= 0]
            if len(existing):
                raise ValueError(
                    f"ids contains {existing[:1].tolist()[0]!r}, which exists already; remove that object first"
                )
        if given.dtype == object:
            keys = np.arange(self.next_key, self.next_key + n)
        return given, keys

    def _find(self, keys: Keys, name: str, ids: Array) -> tuple[Keys, Keys]:
        """Return the chunk of each key and its index there; raise a ValueError if one is absent."""
        of_chunk, indices = self._indices(keys)
        if len(of_chunk) and of_chunk.min() < 0:
            raise ValueError(f"{name} contains {ids[of_chunk < 0][:1].tolist()[0]!r}, which is not among the objects")
        return of_chunk, indices

    def _indices(self, keys: Keys) -> tuple[Keys, Keys]:
        """Return the chunk of each key and its index there; -1 for absent keys."""
        of_chunk, indices = np.full(len(keys), -1), np.full(len(keys), -1)
        for number, chunk in enumerate(self._chunks):
            here = chunk.find(keys)
            is_here = here >= 0
            if is_here.all():  # no other chunk can have them
                return np.full(len(keys), number), here
            of_chunk[is_here], indices[is_here] = number, here[is_here]
        return of_chunk, indices


def products(rows: Matrix, vectors: Array) -> Array:
    """Return the inner products of each vector with all rows."""
    return np.asarray((rows @ vectors.T).T)


def squared_norms(rows: Matrix) -> Array:
    """Return ``|x|^2`` of each row in float64."""
    if sparse.issparse(rows):
        rows = rows.astype(np.float64, copy=False)
        return np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))


def _better(best: TopK, keys: list[Keys], scores: list[Array], k: int) -> TopK:
    """Return the best of a result and of further scores, which belong to rows that were added later."""
    values = scores[0] if len(scores) == 1 else np.concatenate(scores, axis=1)
    here = top_k(values, k)
    found = TopK((keys[0] if len(keys) == 1 else np.concatenate(keys))[here.indices], here.scores)
    return merge_top_k(best, found, k) if best.scores.size else found


def _take(rows: Matrix, indices: Keys) -> Matrix:
    return rows[indices] if sparse.issparse(rows) else rows.take(indices, axis=0)


def _stack(parts: list[Matrix]) -> Matrix:
    return sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else np.concatenate(parts)


def _slice(rows: Matrix, start: int, end: int) -> Matrix:
    """Return a view of some rows; SciPy copies those of a CSR matrix."""
    if not sparse.issparse(rows):
        return rows[start:end]
    end = min(end, rows.shape[0])
    first, last = rows.indptr[start], rows.indptr[end]
    view = sparse.csr_array((end - start, rows.shape[1]), dtype=rows.dtype)
    view.data, view.indices = rows.data[first:last], rows.indices[first:last]
    view.indptr = rows.indptr[start : end + 1] - first
    return view


def _with_gaps(rows: Matrix, is_present: NDArray[np.bool_]) -> Matrix:
    """Return the rows with rows of zeros between them, where none is present."""
    n, n_features = len(is_present), rows.shape[1]
    if not sparse.issparse(rows):
        full = np.zeros((n, n_features), dtype=rows.dtype)
        full[is_present] = rows
        return full
    counts = np.zeros(n, dtype=rows.indptr.dtype)
    counts[is_present] = np.diff(rows.indptr)
    indptr = np.append(0, np.cumsum(counts)).astype(rows.indptr.dtype)
    return sparse.csr_array((rows.data, rows.indices, indptr), shape=(n, n_features))

"""Objects that can be searched: rows under stable ids, more of which come and go.

New rows are kept as a piece of their own, so that adding one does not copy all the others. Pieces grow together as they
would in a log-structured store: a piece is joined with the one before it when that is not larger. Removed rows are
skipped, and dropped once they are half of a piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ..._utils import checks
from ..._utils.rows import Matrix, MatrixLike, as_float64, as_matrix, read_all

Ids = NDArray[np.int64]

# Numbers that are computed at once where all rows are looked at.
NUMBERS_AT_ONCE = 2**21


class Piece(NamedTuple):
    """Rows with their ids, in the order in which they came."""

    rows: Matrix
    ids: Ids
    is_there: NDArray[np.bool_]
    ascending: Ids | None = None
    """Places in the order of ids; None where that is the order in which they came."""

    @classmethod
    def ready_to_find(cls, rows: Matrix, ids: Ids, is_there: NDArray[np.bool_]) -> Piece:
        """Make a piece in which ids are found without looking at all of them."""
        is_ascending = bool((ids[1:] > ids[:-1]).all())
        return cls(rows, ids, is_there, None if is_ascending else np.argsort(ids, kind="stable"))

    def find(self, ids: Ids) -> Ids:
        """Give the place of each id; -1 where it is not there."""
        places = np.searchsorted(self.ids, ids, sorter=self.ascending)
        places = np.minimum(places, len(self.ids) - 1)
        if self.ascending is not None:
            places = self.ascending[places]
        return np.where((self.ids[places] == ids) & self.is_there[places], places, -1)

    def block(self, start: int, end: int) -> Piece:
        """Give some of the rows, without a copy."""
        if start == 0 and end >= len(self.ids):
            return self
        return Piece(_rows_between(self.rows, start, end), self.ids[start:end], self.is_there[start:end])


class Collection:
    """Rows under ids: whole numbers that stay the same while others come and go.

    Rows are in float64 or float32, dense or CSR, all of the kind of the first ones.
    """

    def __init__(self, objects: MatrixLike, ids: ArrayLike | None = None) -> None:
        rows = _checked(objects, "objects")
        self.is_sparse, self.width, self.dtype = sparse.issparse(rows), rows.shape[1], rows.dtype
        self.next_id = 0
        """Larger than all ids so far, of rows that are gone too."""
        self._pieces: list[Piece] = []
        self._n_there = 0
        self._add(rows, ids)

    def __len__(self) -> int:
        return self._n_there

    @property
    def ids(self) -> Ids:
        """Ids of all rows that are there, in the order in which they came."""
        return np.concatenate([np.empty(0, np.int64), *(piece.ids[piece.is_there] for piece in self._pieces)])

    def layout(self) -> tuple[Ids, Ids]:
        """Give the ids of all rows as they lie in memory, -1 for those that are gone, and how many a piece has."""
        ids = [np.where(piece.is_there, piece.ids, -1) for piece in self._pieces]
        return np.concatenate(ids), np.array([len(part) for part in ids], dtype=np.int64)

    @classmethod
    def from_layout(cls, rows: MatrixLike, ids: Ids, lengths: Ids) -> Self:
        """Put rows where they lay, so that sums over them round alike; there are zeros in place of those that are gone.

        `rows` are those that are there, in the order of their ids in the layout.
        """
        is_there = ids >= 0
        if (lengths < 1).any() or lengths.sum() != len(ids):
            raise ValueError("its pieces are not as long as all of it")
        whole, known = _checked(rows, "objects", copy=False), ids[is_there]
        _check_new_ids(known, whole.shape[0])
        found = cls.__new__(cls)
        found.is_sparse, found.width, found.dtype = sparse.issparse(whole), whole.shape[1], whole.dtype
        found.next_id, found._n_there = int(known.max()) + 1, len(known)
        full = whole if is_there.all() else _spread_out(whole, is_there)
        ends = np.cumsum(lengths).tolist()
        found._pieces = [
            Piece.ready_to_find(_rows_between(full, start, end), ids[start:end], is_there[start:end].copy())
            for start, end in pairwise([0, *ends])
        ]
        return found

    def check_there(self, ids: Ids, name: str) -> None:
        """Refuse ids of rows that are not there."""
        self._find(ids, name)

    def add(self, objects: MatrixLike, ids: ArrayLike | None = None) -> Ids:
        """Add rows; give their ids, which go on from the largest so far unless they are given."""
        rows = _checked(objects, "objects")
        if rows.shape[1] != self.width:
            raise ValueError(f"objects has {rows.shape[1]} features, but those that are there have {self.width}")
        if sparse.issparse(rows) != self.is_sparse:
            kinds = "dense", "sparse"
            raise TypeError(f"objects must be {kinds[self.is_sparse]} like those that are there")
        return self._add(rows.astype(self.dtype, copy=False), ids)

    def remove(self, ids: ArrayLike) -> None:
        """Remove rows; their ids are not given again."""
        pieces, places = self._find(np.unique(check_ids(ids, "ids")), "ids")
        self._n_there -= len(places)
        for number in set(pieces.tolist()):
            piece = self._pieces[number]
            piece.is_there[places[pieces == number]] = False
            if 2 * np.count_nonzero(piece.is_there) < len(piece.ids):
                self._pieces[number] = _joined([piece])
        self._pieces = [piece for piece in self._pieces if len(piece.ids)]

    def rows(self, ids: ArrayLike) -> Matrix:
        """Give the rows with these ids, in their order."""
        pieces, places = self._find(check_ids(ids, "ids"), "ids")
        if not len(places):
            raise ValueError("ids is empty, expected at least one")
        used = sorted(set(pieces.tolist()))
        if len(used) == 1:
            return _taken(self._pieces[used[0]].rows, places)
        parts = [_taken(self._pieces[number].rows, places[pieces == number]) for number in used]
        together = sparse.vstack(parts, format="csr") if self.is_sparse else np.concatenate(parts)
        return _taken(together, np.argsort(np.argsort(pieces, kind="stable")))

    def piece(self, ids: Ids) -> Piece:
        """Give some of the rows, in the order in which they came."""
        pieces, places = self._find(ids, "ids")
        wanted = ids[np.lexsort((places, pieces))]
        return Piece(self.rows(wanted), wanted, np.ones(len(wanted), dtype=np.bool_))

    def blocks(self, n_beside: int = 1) -> Iterator[Piece]:
        """Give all rows, so many at a time that `n_beside` numbers for each of them fit in memory."""
        at_once = max(1, NUMBERS_AT_ONCE // max(n_beside, 1 if self.is_sparse else self.width))
        for piece in self._pieces:
            for start in range(0, len(piece.ids), at_once):
                yield piece.block(start, start + at_once)

    def _add(self, rows: Matrix, ids: ArrayLike | None) -> Ids:
        n = rows.shape[0]
        given = np.arange(self.next_id, self.next_id + n) if ids is None else check_ids(ids, "ids")
        _check_new_ids(given, n)
        if given.min() < self.next_id:  # others are new in any case
            there = given[self._places(given)[0] >= 0]
            if len(there):
                raise ValueError(f"ids has {there[0]}, which is there already; remove it first")
        self.next_id = max(self.next_id, int(given.max()) + 1)
        self._n_there += n
        self._pieces.append(Piece.ready_to_find(rows, given.astype(np.int64), np.ones(n, dtype=np.bool_)))
        while len(self._pieces) > 1 and len(self._pieces[-1].ids) >= len(self._pieces[-2].ids):
            self._pieces[-2:] = [_joined(self._pieces[-2:])]
        return given

    def _find(self, ids: Ids, name: str) -> tuple[Ids, Ids]:
        """Give the number of the piece that each id is in, and its place there; refuse those that are not there."""
        pieces, places = self._places(ids)
        if len(pieces) and pieces.min() < 0:
            raise ValueError(f"{name} has {ids[pieces < 0][0]}, which is not there")
        return pieces, places

    def _places(self, ids: Ids) -> tuple[Ids, Ids]:
        """Give the number of the piece that each id is in, and its place there; -1 for those that are not there."""
        pieces, places = np.full(len(ids), -1), np.full(len(ids), -1)
        for number, piece in enumerate(self._pieces):
            here = piece.find(ids)
            is_here = here >= 0
            if is_here.all():  # a smaller piece has nothing to add
                return np.full(len(ids), number), here
            pieces[is_here], places[is_here] = number, here[is_here]
        return pieces, places


def check_ids(ids: ArrayLike, name: str) -> Ids:
    """Return ids as an array of whole numbers from 0 on."""
    array = np.atleast_1d(checks.as_array(ids, name))
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise TypeError(f"{name} must be whole numbers, got {ids!r}")
    if array.size and array.min() < 0:
        raise ValueError(f"{name} must be at least 0, got {array.min()}")
    return array.astype(np.int64)


def _check_new_ids(ids: Ids, n: int) -> None:
    if len(ids) != n:
        raise ValueError(f"ids must have one id for each of the {n} objects, got {len(ids)}")
    if len(np.unique(ids)) < n:
        raise ValueError("ids must be different from each other")


def _checked(objects: MatrixLike, name: str, *, copy: bool = True) -> Matrix:
    """Give rows in an order and a type that all others can have too; values are looked at."""
    rows = as_matrix(objects, name)
    read_all(rows, name)
    if rows.dtype not in (np.float32, np.float64):
        rows = as_float64(rows, name)
    if sparse.issparse(rows):
        return sparse.csr_array(rows, copy=copy)
    return np.array(rows, order="C", copy=True if copy else None)


def _taken(rows: Matrix, places: Ids) -> Matrix:
    return rows[places] if sparse.issparse(rows) else rows.take(places, axis=0)


def _spread_out(rows: Matrix, is_there: NDArray[np.bool_]) -> Matrix:
    """Put rows where they are there, and zeros between them."""
    n, width = len(is_there), rows.shape[1]
    if not sparse.issparse(rows):
        full = np.zeros((n, width), dtype=rows.dtype)
        full[is_there] = rows
        return full
    counts = np.zeros(n, dtype=rows.indptr.dtype)
    counts[is_there] = np.diff(rows.indptr)
    indptr = np.append(0, np.cumsum(counts)).astype(rows.indptr.dtype)
    return sparse.csr_array((rows.data, rows.indices, indptr), shape=(n, width))


def _rows_between(rows: Matrix, start: int, end: int) -> Matrix:
    """Give a view of some rows; SciPy would copy those of a CSR matrix, also when it makes one of parts of arrays."""
    if not sparse.issparse(rows):
        return rows[start:end]
    end = min(end, rows.shape[0])
    first, last = rows.indptr[start], rows.indptr[end]
    view = sparse.csr_array((end - start, rows.shape[1]), dtype=rows.dtype)
    view.data, view.indices, view.indptr = (
        rows.data[first:last],
        rows.indices[first:last],
        rows.indptr[start : end + 1] - first,
    )
    return view


def _joined(pieces: list[Piece]) -> Piece:
    """Make one piece of several, without what is gone."""
    parts = [piece.rows if piece.is_there.all() else piece.rows[piece.is_there] for piece in pieces]
    rows = sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else np.concatenate(parts)
    ids = np.concatenate([piece.ids[piece.is_there] for piece in pieces])
    return Piece.ready_to_find(rows, ids, np.ones(len(ids), dtype=np.bool_))

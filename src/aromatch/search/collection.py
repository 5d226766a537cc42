"""Objects that can be searched: rows under stable ids, more of which come and go.

New rows are kept as a piece of their own, so that adding one does not copy all the others. Pieces grow together as they
would in a log-structured store: a piece is joined with the one before it when that is not larger. Removed rows are
skipped, and dropped once they are half of a piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from .. import _checks as checks
from .._rows import Matrix, MatrixLike, as_float64, as_matrix, read_all

Ids = NDArray[np.int64]

# Numbers that are computed at once where all rows are looked at.
NUMBERS_AT_ONCE = 2**21


class Piece(NamedTuple):
    """Rows with their ids, in the order in which they came."""

    rows: Matrix
    ids: Ids
    is_there: NDArray[np.bool_]

    def block(self, start: int, end: int) -> Piece:
        """Give some of the rows, without a copy."""
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
        self._place: dict[int, tuple[int, int]] = {}
        self._add(rows, ids)

    def __len__(self) -> int:
        return len(self._place)

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
        found = cls(rows, ids[is_there])
        whole = found._pieces[0].rows
        if sparse.issparse(whole):
            counts = np.zeros(len(ids), dtype=whole.indptr.dtype)
            counts[is_there] = np.diff(whole.indptr)
            full = sparse.csr_array((len(ids), whole.shape[1]), dtype=whole.dtype)
            full.data, full.indices, full.indptr = whole.data, whole.indices, np.append(0, np.cumsum(counts))
        else:
            full = np.zeros((len(ids), whole.shape[1]), dtype=whole.dtype)
            full[is_there] = whole
        found._pieces, found._place = [], {}
        for end, length in zip(np.cumsum(lengths), lengths, strict=True):
            here = slice(end - length, end)
            found._pieces.append(Piece(_rows_between(full, here.start, here.stop), ids[here], is_there[here].copy()))
            found._note_places(len(found._pieces) - 1)
        return found

    def check_there(self, ids: Ids, name: str) -> None:
        """Refuse ids of rows that are not there."""
        absent = next((one for one in ids.tolist() if one not in self._place), None)
        if absent is not None:
            raise ValueError(f"{name} has {absent}, which is not there")

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
        wanted = check_ids(ids, "ids")
        self.check_there(wanted, "ids")
        touched = set()
        for one in set(wanted.tolist()):
            number, row = self._place.pop(one)
            self._pieces[number].is_there[row] = False
            touched.add(number)
        for number in touched:
            piece = self._pieces[number]
            if 2 * np.count_nonzero(piece.is_there) < len(piece.ids):
                self._pieces[number] = _joined([piece])
                self._note_places(number)

    def rows(self, ids: ArrayLike) -> Matrix:
        """Give the rows with these ids, in their order."""
        wanted = check_ids(ids, "ids")
        self.check_there(wanted, "ids")
        if not len(wanted):
            raise ValueError("ids is empty, expected at least one")
        piece, row = np.array([self._place[one] for one in wanted.tolist()]).T
        order = np.argsort(piece, kind="stable")
        parts = [self._pieces[number].rows[row[piece == number]] for number in np.unique(piece)]
        together = sparse.vstack(parts, format="csr") if self.is_sparse else np.concatenate(parts)
        return together[np.argsort(order)]

    def piece(self, ids: Ids) -> Piece:
        """Give some of the rows, in the order in which they came."""
        wanted = np.array(sorted(ids.tolist(), key=self._place.__getitem__))
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
        if len(given) != n:
            raise ValueError(f"ids must have one id for each of the {n} objects, got {len(given)}")
        if len(np.unique(given)) < n:
            raise ValueError("ids must be different from each other")
        twice = [one for one in given.tolist() if one in self._place]
        if twice:
            raise ValueError(f"ids has {twice[0]}, which is there already; remove it first")
        self.next_id = max(self.next_id, int(given.max()) + 1)
        self._pieces.append(Piece(rows, given.astype(np.int64), np.ones(n, dtype=np.bool_)))
        while len(self._pieces) > 1 and len(self._pieces[-1].ids) >= len(self._pieces[-2].ids):
            self._pieces[-2:] = [_joined(self._pieces[-2:])]
        self._note_places(len(self._pieces) - 1)
        return given

    def _note_places(self, number: int) -> None:
        """Note where the rows of a piece are."""
        ids, is_there = self._pieces[number].ids.tolist(), self._pieces[number].is_there.tolist()
        self._place.update((one, (number, row)) for row, one in enumerate(ids) if is_there[row])


def check_ids(ids: ArrayLike, name: str) -> Ids:
    """Return ids as an array of whole numbers from 0 on."""
    array = np.atleast_1d(checks.as_array(ids, name))
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise TypeError(f"{name} must be whole numbers, got {ids!r}")
    if array.size and array.min() < 0:
        raise ValueError(f"{name} must be at least 0, got {array.min()}")
    return array.astype(np.int64)


def _checked(objects: MatrixLike, name: str) -> Matrix:
    """Give rows in an order and a type that all others can have too; values are looked at."""
    rows = as_matrix(objects, name)
    read_all(rows, name)
    if rows.dtype not in (np.float32, np.float64):
        rows = as_float64(rows, name)
    if sparse.issparse(rows):
        return sparse.csr_array(rows, copy=True)
    return np.array(rows, order="C")


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
    parts = [piece.rows[piece.is_there] for piece in pieces]
    rows = sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else np.concatenate(parts)
    ids = np.concatenate([piece.ids[piece.is_there] for piece in pieces])
    return Piece(rows, ids, np.ones(len(ids), dtype=np.bool_))

"""Learners that move only the cells of W which a triplet touches, and so need not keep any others.

At 100,000 features a dense W would take 80 GB, but a triplet of sparse rows touches a few thousand cells. So the state
is either whole matrices or, for wide problems, tables of the touched cells: the kernel `touched` tells their layout.
Both give the same bits (OASIS on dense rows: the same up to rounding, as dense cells take those in blocks). A cell
that is not kept has its value from the start: zero, or c on the diagonal, and variance 1.

Every row of W has a small hash table of its own. In prototypes, one table of all cells was no faster, took half as much
memory again after each doubling, and cannot be read by rows, which scores do; the message of the commit "Say how the
layout of touched cells was chosen" has the numbers. `benchmarks/speed/wide.py` measures what is here.

The arrays of a model with touched cells are, while it learns, those tables, and in a file the cells in the order of
rows and columns, as a CSR matrix has them. So a file does not depend on how the tables came about.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from ..._utils import checks
from ..._utils.rows import Matrix, read_all
from ...kernels import touched
from ...kernels.bilinear import forms
from ...kernels.rows import RowView
from ..inputs import Block, check_dtype, check_initial_values, initial_matrix, initial_scale, product
from .online import OnlineLearner

State = dict[str, NDArray[Any]]

# The same number on every machine, so that the same call does the same everywhere.
_MOST_BYTES_OF_DENSE_CELLS = 2**31
_FIRST_SLOTS = 2**12
_FIRST_BLOCK = 2**12
_LARGEST_WIDTH = 2**31 - 2  # columns are kept as 32-bit numbers, plus one
_BYTES_OF_PRODUCTS = 2**26


class CellLearner(OnlineLearner):
    """A learner whose update of a triplet touches the cells of ``q p'`` alone; it keeps all cells or those.

    A subclass names its matrices in `_matrices`, W first, and asks `_has_touched_cells` before it learns.
    """

    cells: str

    _matrices: ClassVar[tuple[str, ...]] = ("W",)
    _breaks_by: ClassVar[str] = "its score is too large to learn from"
    _remedy: ClassVar[str] = "Rows of unit norm and a W that starts small avoid this"
    _dtypes: ClassVar[dict[str, np.dtype[Any]]] = {
        **OnlineLearner._dtypes,
        "columns": np.dtype(np.int32),
        "indptr": np.dtype(np.int64),
    }

    @property
    def W_(self) -> Any:
        """The matrix of the score ``q'Wp``, of shape (m, n): a copy, so that reading it changes nothing.

        An array, or a CSR array where only touched cells are kept.
        """
        check_is_fitted(self)
        if not self._has_touched_cells:
            return self._array("W")
        W, c = self._csr("W"), self._state["start"][0]
        if c == 0:
            return W
        # The diagonal as it was at the start, where it was not touched.
        rows = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr))
        diagonal = np.full(W.shape[0], c)
        diagonal[rows[W.indices == rows]] = 0
        return W + sparse.dia_array((diagonal[None], [0]), shape=W.shape).tocsr()

    @property
    def _has_touched_cells(self) -> bool:
        return "columns" in self._state

    def _asks_for_touched_cells(self, m: int, n: int) -> bool:
        dense = len(self._matrices) * m * n * check_dtype(self.dtype).itemsize
        return self.cells == "touched" or (self.cells == "auto" and dense > _MOST_BYTES_OF_DENSE_CELLS)

    # -- hooks of the base classes ------------------------------------------------------------------------

    def _check_common_params(self) -> float:
        checks.check_choice(self.cells, "cells", ("auto", "dense", "touched"))
        return super()._check_common_params()

    def _check_widths(self, Q: Matrix, P: Matrix, q_name: str = "Q", p_name: str = "P") -> None:
        super()._check_widths(Q, P, q_name, p_name)
        if hasattr(self, "_state"):
            self._check_cells_stay(Q.shape[1], P.shape[1])

    def _check_cells_stay(self, m: int, n: int) -> None:
        if self._has_touched_cells != self._asks_for_touched_cells(m, n):
            kept = "touched" if self._has_touched_cells else "dense"
            raise ValueError(f"cells must stay {kept!r} once the model has begun, got {self.cells!r}")

    def _first_state(self, m: int, n: int) -> State:
        if not self._asks_for_touched_cells(m, n):
            return super()._first_state(m, n)
        if n > _LARGEST_WIDTH:
            raise ValueError(f"objects have {n} features, expected at most {_LARGEST_WIDTH}")
        what = f"The state of {type(self).__name__} for {m} x {n} features"
        scale, dtype = initial_scale(self.init, m, n), check_dtype(self.dtype)
        with np.errstate(over="ignore"):  # refused below
            start = np.array([scale or 0.0], dtype=dtype)
            # A copy, which SciPy may put in order.
            W = sparse.csr_array((m, n) if scale is not None else initial_matrix(self.init, m, n), copy=True)
            W.sum_duplicates()
            W = W.astype(dtype)
        check_initial_values(start, dtype)
        check_initial_values(W.data, dtype)
        cells = {name: W.data if name == "W" else np.ones_like(W.data) for name in self._matrices}
        columns, indptr = W.indices.astype(np.int32, copy=False), W.indptr.astype(np.int64)
        return {**_tables(cells, columns, indptr, n, what), "start": start, "counts": np.zeros(3, dtype=np.int64)}

    def _grown(self, m: int, n: int) -> State:
        if self._has_touched_cells != self._asks_for_touched_cells(m, n):
            raise ValueError(f"cells={self.cells!r} keeps all cells so far, which {m} x {n} features are too many for")
        if not self._has_touched_cells:
            return super()._grown(m, n)
        if n > _LARGEST_WIDTH:
            raise ValueError(f"objects would have {n} features, expected at most {_LARGEST_WIDTH}")
        state = self._to_file()
        if state["start"][0] != 0 and m != n:
            raise ValueError(f"init is a multiple of the identity, which needs m = n, got m = {m} and n = {n}")
        ends = np.full(m - self.n_features_in_, state["indptr"][-1])
        return self._from_file({**state, "indptr": np.concatenate([state["indptr"], ends])}, n)

    def _shapes_in_file(self, state: State, m: int, n: int) -> dict[str, tuple[int, ...]]:
        if not self._asks_for_touched_cells(m, n):
            return self._shapes(m, n)
        cells = (state["columns"].size,) if "columns" in state else (0,)
        shapes = dict.fromkeys((*self._matrices, "columns"), cells)
        return {**shapes, "indptr": (m + 1,), "start": (1,), "counts": (3,)}

    def _check_state(self, state: State, m: int, n: int) -> None:
        super()._check_state(state, m, n)
        if "columns" not in state:
            return
        indptr, columns = state["indptr"], state["columns"]
        if indptr[0] != 0 or indptr[-1] != len(columns) or (np.diff(indptr) < 0).any() or n > _LARGEST_WIDTH:
            raise ValueError("the model's indptr does not fit its cells")
        if len(columns) and (columns.min() < 0 or columns.max() >= n):
            raise ValueError(f"the model's columns are not within 0 to {n - 1}")
        begins = np.zeros(len(columns) + 1, dtype=bool)
        begins[indptr] = True
        if not ((np.diff(columns) > 0) | begins[1:-1]).all():
            raise ValueError("the model's columns are not in their order, or a cell is there twice")
        if state["start"][0] != 0 and m != n:
            raise ValueError(f"the model starts from a multiple of the identity, but has {m} x {n} features")

    def _to_file(self) -> State:
        self._check_cells_stay(self.n_features_in_, self.n_object_features_in_)
        if not self._has_touched_cells:
            return self._state
        slots, columns, indptr = self._cells_in_order()
        cells = {name: self._state[name][slots] for name in self._matrices}
        kept = {name: self._state[name] for name in ("start", "counts")}
        return {**cells, "columns": columns, "indptr": indptr, **kept}

    def _from_file(self, state: State, n: int) -> State:
        if "columns" not in state:
            return state
        cells = {name: state[name] for name in self._matrices}
        tables = _tables(cells, state["columns"], state["indptr"], n, f"The state of {type(self).__name__}")
        return {**tables, "start": state["start"], "counts": state["counts"]}

    def _map_queries(self, Q: Matrix) -> NDArray[Any]:
        if not self._has_touched_cells:
            return super()._map_queries(Q)
        itemsize = self._state["W"].itemsize
        what = f"{Q.shape[0]} queries times W of {self.n_object_features_in_} columns"
        checks.check_fits_in_memory(Q.shape[0] * self.n_object_features_in_ * itemsize, what)
        return self._products(read_all(Q, "Q").view, 0, Q.shape[0])

    def _scores(self, Q: Matrix, P: Matrix) -> NDArray[Any]:
        if not self._has_touched_cells:
            return super()._scores(Q, P)
        view, dtype = read_all(Q, "Q").view, self._state["W"].dtype
        # A few queries at a time: all of them times W could be larger than the scores by far.
        at_once = max(1, _BYTES_OF_PRODUCTS // (self.n_object_features_in_ * dtype.itemsize))
        out = np.empty((Q.shape[0], P.shape[0]), dtype=dtype)
        for first in range(0, Q.shape[0], at_once):
            piece = slice(first, min(first + at_once, Q.shape[0]))
            out[piece] = product(P, self._products(view, first, piece.stop - first).T).T
        return out

    def _products(self, view: RowView, first: int, n_rows: int) -> NDArray[Any]:
        state = self._state
        out = np.zeros((n_rows, self.n_object_features_in_), dtype=state["W"].dtype)
        touched.add_products(view, first, state["rows"], state["columns"], state["W"], state["start"][0], out)
        return out

    def _forms(self, queries: RowView, objects: RowView, numbers: NDArray[np.int64]) -> NDArray[Any]:
        if not self._has_touched_cells and len(self._matrices) == 1:
            return super()._forms(queries, objects, numbers)
        on_diagonal = self._state["start"][0] if self._has_touched_cells else 0.0
        return self._forms_of("W", on_diagonal, 0.0, False, queries, objects, numbers)

    # -- for subclasses -----------------------------------------------------------------------------------

    def _forms_of(
        self,
        name: str,
        on_diagonal: float,
        elsewhere: float,
        squared: bool,
        queries: RowView,
        objects: RowView,
        numbers: NDArray[np.int64],
    ) -> NDArray[Any]:
        """``q'Ap`` for the matrix of that name; the two values are those of cells that are not kept."""
        state = self._state
        A, apart = self._matrix(name), len(self._matrices) > 1
        out = np.empty(len(numbers), dtype=A.dtype)
        if not self._has_touched_cells:
            forms(queries, objects, numbers, A, squared, apart, out)
            return out
        done, room = 0, _Room(A.dtype, 1)
        while True:
            done += touched.forms(
                queries, objects, numbers[done:], state["rows"], state["columns"], A, on_diagonal, elsewhere, squared,
                out[done:], apart, *room,
            )  # fmt: skip
            if not room.grow():
                return out

    def _learn_touched(self, block: Block, learn: Callable[..., int], *settings: Any) -> int:
        """Learn a block in the tables, which get larger when they have to; give the number learned."""
        state, done = self._state, 0
        room = _Room(state["W"].dtype, len(self._matrices))
        while True:
            rest = block._replace(
                triplets=block.triplets[done:],
                weights=None if block.weights is None else block.weights[done:],
                record=None if block.record is None else block.record[done:],
            )
            names = ("rows", "columns", "room", "counts", "start", *self._matrices)
            done += learn(*rest, *(state[name] for name in names), *settings, *room)
            if room.needs[touched.NEEDS_SLOTS]:
                _make_room(state, self._matrices, int(room.needs[touched.NEEDS_SLOTS]))
                room.needs[touched.NEEDS_SLOTS] = 0
            elif not room.grow():
                return done

    def _csr(self, name: str) -> sparse.csr_array:
        """Give the kept cells of a matrix."""
        slots, columns, indptr = self._cells_in_order()
        shape = (self.n_features_in_, self.n_object_features_in_)
        return sparse.csr_array((self._state[name][slots], columns, indptr), shape=shape)

    def _cells_in_order(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
        """Slot and column of every cell, in the order of rows and columns, and where rows begin."""
        rows = self._state["rows"]
        indptr = np.concatenate([[0], np.cumsum(rows[:, 2])])
        columns, slots = np.empty(indptr[-1], dtype=np.int32), np.empty(indptr[-1], dtype=np.int64)
        touched.list_cells(rows, self._state["columns"], columns, slots)
        cells = sparse.csr_array((slots, columns, indptr), shape=(len(rows), self.n_object_features_in_))
        cells.sort_indices()
        return cells.data, cells.indices.astype(np.int32, copy=False), indptr


class _Room:
    """Memory for the cells of one triplet, and what a kernel says it needs; both given to it with a star."""

    def __init__(self, dtype: np.dtype[Any], n_matrices: int) -> None:
        self.needs = np.zeros(2, dtype=np.int64)
        self.slots = np.empty(_FIRST_BLOCK, dtype=np.int64)
        self.cells = np.empty((n_matrices, _FIRST_BLOCK), dtype=dtype)

    def __iter__(self) -> Any:
        return iter((self.slots, self.cells, self.needs))

    def grow(self) -> bool:
        """Make room for a block that was too large; tell whether there was one."""
        size = int(self.needs[touched.NEEDS_BLOCK])
        if size:
            n_bytes = size * (8 + len(self.cells) * self.cells.itemsize)
            checks.check_fits_in_memory(n_bytes, f"The {size:,} cells of a single triplet")
            self.slots = np.empty(size, dtype=np.int64)
            self.cells = np.empty((len(self.cells), size), dtype=self.cells.dtype)
            self.needs[touched.NEEDS_BLOCK] = 0
        return size > 0


def _tables(
    cells: State, columns: NDArray[np.int32], indptr: NDArray[np.int64], n: int, what: str
) -> dict[str, NDArray[Any]]:
    """Make tables of the cells of a CSR matrix."""
    found = np.diff(indptr)
    sizes = np.empty_like(found)
    touched.table_sizes(found, n, sizes)
    rows, room = np.zeros((len(found), 3), dtype=np.int64), np.zeros(touched.SIZE_OF_ROOM, dtype=np.int64)
    rows[:, 0], rows[:, 1], room[0] = np.cumsum(sizes) - sizes, sizes, sizes.sum()
    n_slots = int(room[0]) + _FIRST_SLOTS
    checks.check_fits_in_memory(rows.nbytes + n_slots * _bytes_of_a_slot(cells), what)
    pools = {name: np.zeros(n_slots, dtype=values.dtype) for name, values in cells.items()}
    pools["columns"] = np.zeros(n_slots, dtype=np.int32)
    slots = np.empty(len(columns), dtype=np.int64)
    touched.insert_cells(rows, pools["columns"], n, indptr, columns, slots)
    for name, values in cells.items():
        pools[name][slots] = values
    return {**pools, "rows": rows, "room": room}


def _make_room(state: State, matrices: tuple[str, ...], wanted: int) -> None:
    """Make room for tables that grow: a quarter of the pools, or what is wanted."""
    rows = state["rows"]
    in_use = np.flatnonzero(rows[:, 1])
    order = in_use[np.argsort(rows[in_use, 0])]
    touched.close_gaps(order, rows, state["columns"], state["room"], state["W"], state.get("Sigma"))
    old, used = len(state["columns"]), int(state["room"][0])
    size = used + max(used // 4, wanted)
    if size <= old:
        return
    cells = {name: state[name] for name in matrices}
    n_bytes = (size - old) * _bytes_of_a_slot(cells)
    checks.check_fits_in_memory(n_bytes, f"Room for more than {int(state['rows'][:, 2].sum()):,} touched cells")
    cells.clear()
    # A longer pool is as good as before, and a kernel goes by the length of columns: an interrupt may come anywhere.
    for name in (*matrices, "columns"):
        try:
            # In place, large arrays are mapped anew and not copied: no second pool, and no time to fill it.
            state[name].resize(size)
        except ValueError:  # its memory belongs to something else, such as a file
            checks.check_fits_in_memory(size * state[name].itemsize, "A longer copy of the touched cells")
            longer = np.zeros(size, dtype=state[name].dtype)
            longer[:old] = state[name][:old]
            state[name] = longer


def _bytes_of_a_slot(cells: State) -> int:
    return 4 + sum(array.itemsize for array in cells.values())

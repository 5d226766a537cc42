"""W and the variances of its cells, stored in full or for the cells that triplets have touched.

At 100,000 features a dense W would take 80 GB, but a triplet of sparse rows touches a few thousand cells. `DenseCells`
stores whole matrices, `TouchedCells` tables of the touched cells, whose layout the kernel `touched` documents. Both
give the same bits (OASIS on dense rows: the same up to rounding, as dense cells take those in blocks). A cell that is
not stored has its initial value: zero, or c on the diagonal, and variance 1.

Both are dictionaries of arrays with the same methods, so that a learner need not ask which one it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..._utils import checks
from ..._utils.chunks import chunks
from ..._utils.rows import Matrix, read_all
from ...kernels import bilinear, touched
from ...kernels.rows import RowView
from .. import invariants
from ..inputs import Block, product
from .initial import check_initial_values, initial_matrix, initial_scale, write_initial
from .pending import Pending

Array = NDArray[Any]
Numbers = NDArray[np.int64]

# The same limit on every machine, so that the same call gives the same model everywhere.
_LARGEST_DENSE_BYTES = 2**31
_FIRST_SLOTS = 2**12
_FIRST_BLOCK = 2**12
_LARGEST_WIDTH = 2**31 - 2  # columns are stored as 32-bit numbers, plus one
_BYTES_OF_A_ROW = 6 * 8  # its place in a CSR matrix, twice, and in the tables, and their sizes
_BYTES_OF_PRODUCTS = 2**26
_COLUMNS_PER_CHUNK = 512


def stores_touched(cells: str, n_matrices: int, m: int, n: int, dtype: np.dtype[Any]) -> bool:
    """Return whether the parameter `cells` means `TouchedCells` for m x n features."""
    checks.check_choice(cells, "cells", ("auto", "dense", "touched"))
    return cells == "touched" or (cells == "auto" and n_matrices * m * n * dtype.itemsize > _LARGEST_DENSE_BYTES)


class DenseCells(dict[str, Array]):
    """W with every cell stored, and the arrays that a learner keeps beside it.

    The arrays are in the order in which the learner's kernel takes them, `counts` last. W is an array of its own or,
    in an array `cells` of shape (m, n, 2), interleaved with the variances Sigma.
    """

    is_touched = False

    @classmethod
    def interleaved(cls, init: Any, m: int, n: int, dtype: np.dtype[Any]) -> DenseCells:
        """Return the initial W with variances 1."""
        checks.check_fits_in_memory(2 * m * n * dtype.itemsize, f"W and Sigma of {m} x {n} features")
        cells = np.zeros((m, n, 2), dtype=dtype)
        write_initial(init, cells[..., 0])
        cells[..., 1] = 1
        return cls(cells=cells, counts=np.zeros(3, dtype=np.int64))

    @property
    def dtype(self) -> np.dtype[Any]:
        """Precision of W."""
        return next(iter(self.values())).dtype

    def learn(self, block: Block, dense_kernel: Callable[..., int], touched_kernel: Any, *settings: Any) -> int:
        """Run `dense_kernel` over a block of triplets; return the number learned."""
        *arrays, counts = self.values()
        return dense_kernel(*block, *arrays, *settings, counts)

    def matrix(self, name: str) -> Array:
        """Return W or another matrix as it is stored, without pending terms."""
        return self[name] if name in self else self["cells"][..., ("W", "Sigma").index(name)]

    def array(self, name: str) -> Array:
        """Return a copy of W or of Sigma, pending terms included."""
        array = self.matrix(name).copy()
        if name == "W" and (pending := Pending.of(self)) is not None:
            array += pending.matrix()
        return array

    def product(self, Q: Matrix) -> Array:
        """Return ``Q @ W``."""
        W = self.matrix("W")
        if "cells" in self:
            return _product_of_strided(Q, W)
        out = product(Q, W)
        if (pending := Pending.of(self)) is not None:
            out += pending.product(Q)
        return out

    def scores(self, Q: Matrix, P: Matrix) -> Array:
        """Return ``Q @ W @ P.T``."""
        return product(P, self.product(Q).T).T

    def forms(self, queries: RowView, objects: RowView, numbers: Numbers) -> Array:
        """Return ``q'Wp`` for rows (query, object) or (query, preferred, other)."""
        out = self._forms("W", queries, objects, numbers, squared=False)
        if (pending := Pending.of(self)) is not None:
            out += pending.forms(queries, objects, numbers)
        return out

    def variances(self, queries: RowView, objects: RowView, numbers: Numbers) -> Array:
        """Return the variance of ``q'Wp`` under the variances Sigma of the cells."""
        return self._forms("Sigma", queries, objects, numbers, squared=True)

    def _forms(self, name: str, queries: RowView, objects: RowView, numbers: Numbers, *, squared: bool) -> Array:
        A = self.matrix(name)
        out = np.empty(len(numbers), dtype=A.dtype)
        bilinear.forms(queries, objects, numbers, A, squared, "cells" in self, out)
        return out

    def replaced(self, **arrays: Array) -> DenseCells:
        """Return the state with other arrays of these names."""
        return DenseCells(**{name: arrays.get(name, array) for name, array in self.items()})

    def with_variances(self, change: Callable[[Array], Array]) -> DenseCells:
        """Return the state with changed variances Sigma."""
        cells = self["cells"].copy()
        cells[..., 1] = change(cells[..., 1])
        return self.replaced(cells=cells)

    def folded(self) -> DenseCells:
        """Return the state without pending terms; only W is folded."""
        if "pending_a" not in self:
            return self
        counts = self["counts"].copy()
        counts[3] = 0
        return self.replaced(W=self.array("W"), counts=counts)

    def grown(self, larger: DenseCells) -> DenseCells:
        """Return the initial state `larger` with the arrays of this one in its corners."""
        for name, array in self.items():
            if not name.startswith("pending_"):  # folded before: their number depends on the number of features
                larger[name][tuple(map(slice, array.shape))] = array
        return larger

    def to_file(self) -> dict[str, Array]:
        """Return the arrays that a file holds."""
        return self


class TouchedCells(dict[str, Array]):
    """W, and Sigma where there is one, as a hash table of touched cells for each row.

    In prototypes, one table of all cells was no faster, took half as much memory again after each doubling, and cannot
    be read by rows, as scores do. A file holds the cells in the order of a CSR matrix, so that it does not depend on
    the history of the tables.
    """

    is_touched = True

    def __init__(self, names: tuple[str, ...], n: int, **arrays: Array) -> None:
        super().__init__(arrays)
        self.names, self.n = names, n

    @classmethod
    def start(cls, names: tuple[str, ...], init: Any, m: int, n: int, dtype: np.dtype[Any]) -> TouchedCells:
        """Return the initial state: the cells of `init` if it is a matrix, none otherwise."""
        scale = initial_scale(init, m, n)
        check_width(n)
        checks.check_fits_in_memory(m * _BYTES_OF_A_ROW, f"The tables of {m:,} rows of W")
        with np.errstate(over="ignore"):  # refused below
            start = np.array([scale or 0.0], dtype=dtype)
            # A copy, which SciPy may sort.
            W = sparse.csr_array((m, n) if scale is not None else initial_matrix(init, m, n), copy=True)
            W.sum_duplicates()
            W = W.astype(dtype)
        check_initial_values(start, dtype)
        check_initial_values(W.data, dtype)
        values = {name: W.data if name == "W" else np.ones_like(W.data) for name in names}
        columns, indptr = W.indices.astype(np.int32, copy=False), W.indptr.astype(np.int64)
        arrays = {"columns": columns, "indptr": indptr, "start": start, "counts": np.zeros(3, dtype=np.int64)}
        return cls.from_file({**values, **arrays}, n)

    @classmethod
    def from_file(cls, arrays: dict[str, Array], n: int) -> TouchedCells:
        """Build the tables from the arrays of a file, which have been checked."""
        check_width(n)
        names = tuple(name for name in ("W", "Sigma") if name in arrays)
        tables = _tables({name: arrays[name] for name in names}, arrays["columns"], arrays["indptr"], n)
        return cls(names, n, **tables, start=arrays["start"], counts=arrays["counts"])

    def to_file(self) -> dict[str, Array]:
        """Return the arrays that a file holds."""
        slots, columns, indptr = self._in_order()
        values = {name: self[name][slots] for name in self.names}
        return {**values, "columns": columns, "indptr": indptr, "start": self["start"], "counts": self["counts"]}

    @property
    def dtype(self) -> np.dtype[Any]:
        """Precision of W."""
        return self["W"].dtype

    def learn(self, block: Block, dense_kernel: Any, touched_kernel: Callable[..., int], *settings: Any) -> int:
        """Run `touched_kernel` over a block of triplets, growing the tables; return the number learned."""
        done, workspace = 0, _Workspace(self.dtype, len(self.names))
        while True:
            rest = block._replace(
                triplets=block.triplets[done:],
                weights=None if block.weights is None else block.weights[done:],
                record=None if block.record is None else block.record[done:],
            )
            names = ("rows", "columns", "room", "counts", "start", *self.names)
            done += touched_kernel(*rest, *(self[name] for name in names), *settings, *workspace)
            if workspace.needs[touched.NEEDS_SLOTS]:
                _make_room(self, self.names, int(workspace.needs[touched.NEEDS_SLOTS]))
                workspace.needs[touched.NEEDS_SLOTS] = 0
            elif not workspace.grow():
                return done

    def array(self, name: str) -> sparse.csr_array:
        """Return W, or the stored cells of Sigma, as a CSR array."""
        slots, columns, indptr = self._in_order()
        found = sparse.csr_array((self[name][slots], columns, indptr), shape=(len(self["rows"]), self.n))
        c = self["start"][0]
        if name != "W" or c == 0:
            return found
        # The initial diagonal, where it was not touched.
        rows = np.repeat(np.arange(found.shape[0]), np.diff(found.indptr))
        diagonal = np.full(found.shape[0], c)
        diagonal[rows[found.indices == rows]] = 0
        return found + sparse.dia_array((diagonal[None], [0]), shape=found.shape).tocsr()

    def product(self, Q: Matrix) -> Array:
        """Return ``Q @ W``."""
        n_bytes = Q.shape[0] * self.n * self.dtype.itemsize
        checks.check_fits_in_memory(n_bytes, f"{Q.shape[0]} queries times W of {self.n} columns")
        return self._products(read_all(Q, "Q").view, slice(0, Q.shape[0]))

    def scores(self, Q: Matrix, P: Matrix) -> Array:
        """Return ``Q @ W @ P.T``."""
        view = read_all(Q, "Q").view
        out = np.empty((Q.shape[0], P.shape[0]), dtype=self.dtype)
        # All queries times W could be far larger than the scores.
        for chunk in chunks(Q.shape[0], _BYTES_OF_PRODUCTS // (self.n * self.dtype.itemsize)):
            out[chunk] = product(P, self._products(view, chunk).T).T
        return out

    def _products(self, view: RowView, chunk: slice) -> Array:
        out = np.zeros((chunk.stop - chunk.start, self.n), dtype=self.dtype)
        touched.add_products(view, chunk.start, self["rows"], self["columns"], self["W"], self["start"][0], out)
        return out

    def forms(self, queries: RowView, objects: RowView, numbers: Numbers) -> Array:
        """Return ``q'Wp`` for rows (query, object) or (query, preferred, other)."""
        return self._forms("W", (self["start"][0], 0.0), queries, objects, numbers, squared=False)

    def variances(self, queries: RowView, objects: RowView, numbers: Numbers) -> Array:
        """Return the variance of ``q'Wp`` under the variances Sigma of the cells."""
        return self._forms("Sigma", (1.0, 1.0), queries, objects, numbers, squared=True)

    def _forms(
        self,
        name: str,
        untouched: tuple[float, float],
        queries: RowView,
        objects: RowView,
        numbers: Numbers,
        *,
        squared: bool,
    ) -> Array:
        """Return forms with one matrix; `untouched` are the values of cells on and off the diagonal."""
        A = self[name]
        out = np.empty(len(numbers), dtype=A.dtype)
        done, workspace, tables = 0, _Workspace(A.dtype, 1), (self["rows"], self["columns"])
        while True:
            done += touched.forms(
                queries, objects, numbers[done:], *tables, A, *untouched, squared,
                out[done:], len(self.names) > 1, *workspace,
            )  # fmt: skip
            if not workspace.grow():
                return out

    def with_variances(self, change: Callable[[Array], Array]) -> TouchedCells:
        """Return the state with changed variances Sigma."""
        return TouchedCells(self.names, self.n, **{**self, "Sigma": change(self["Sigma"])})

    def folded(self) -> TouchedCells:
        """Return the state, which has no pending terms."""
        return self

    def grown(self, larger: TouchedCells) -> TouchedCells:
        """Return this state with the number of rows and columns of `larger`."""
        m = len(larger["rows"])
        arrays = self.to_file()
        if arrays["start"][0] != 0 and m != larger.n:
            raise ValueError(f"init is a multiple of the identity, which needs m = n, got m = {m} and n = {larger.n}")
        ends = np.full(m - len(self["rows"]), arrays["indptr"][-1])
        return TouchedCells.from_file({**arrays, "indptr": np.concatenate([arrays["indptr"], ends])}, larger.n)

    def _in_order(self) -> tuple[Numbers, NDArray[np.int32], Numbers]:
        """Return slot and column of every cell, sorted by row and column, and where rows begin."""
        rows = self["rows"]
        indptr = np.concatenate([[0], np.cumsum(rows[:, 2])])
        columns, slots = np.empty(indptr[-1], dtype=np.int32), np.empty(indptr[-1], dtype=np.int64)
        touched.list_cells(rows, self["columns"], columns, slots)
        cells = sparse.csr_array((slots, columns, indptr), shape=(len(rows), self.n))
        cells.sort_indices()
        return cells.data, cells.indices.astype(np.int32, copy=False), indptr


Cells = DenseCells | TouchedCells


def check_width(n: int) -> None:
    """Refuse more columns than touched cells can number."""
    if n > _LARGEST_WIDTH:
        raise ValueError(f"objects have {n} features, expected at most {_LARGEST_WIDTH}")


def check_cells(arrays: dict[str, Array], m: int, n: int) -> None:
    """Check the arrays of a file: the layout of touched cells, the size of W and the variances of its cells."""
    if "columns" in arrays:
        check_touched(arrays, m, n)
        invariants.check_size(arrays["start"], "start")
        invariants.check_size(arrays["W"], "W")
        if "Sigma" in arrays:
            invariants.check_variances(arrays["Sigma"], "Sigma")
    elif "cells" in arrays:
        invariants.check_size(arrays["cells"][..., 0], "W (cells[..., 0])")
        invariants.check_variances(arrays["cells"][..., 1], "Sigma (cells[..., 1])")
    elif "W" in arrays:
        invariants.check_size(arrays["W"], "W")
        if Pending.of(arrays) is not None:
            with np.errstate(over="ignore", invalid="ignore"):  # refused
                invariants.check_size(DenseCells(**arrays).array("W"), "W with its pending_steps")


def check_touched(arrays: dict[str, Array], m: int, n: int) -> None:
    """Check that the arrays of a file are touched cells of m x n features."""
    indptr, columns = arrays["indptr"], arrays["columns"]
    check_width(n)
    if indptr[0] != 0 or indptr[-1] != len(columns) or (np.diff(indptr) < 0).any():
        raise ValueError("indptr of the model does not fit its cells")
    if len(columns) and (columns.min() < 0 or columns.max() >= n):
        raise ValueError(f"columns of the model are not within 0 to {n - 1}")
    begins = np.zeros(len(columns) + 1, dtype=bool)
    begins[indptr] = True
    if not ((np.diff(columns) > 0) | begins[1:-1]).all():
        raise ValueError("columns of the model are not sorted, or a cell is stored twice")
    if arrays["start"][0] != 0 and m != n:
        raise ValueError(f"the model starts from a multiple of the identity, but has {m} x {n} features")


def touched_shapes(arrays: dict[str, Array], names: tuple[str, ...], m: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of touched cells in a file, as many as its array `columns` has."""
    cells = (arrays["columns"].size,) if "columns" in arrays else (0,)
    return {**dict.fromkeys((*names, "columns"), cells), "indptr": (m + 1,), "start": (1,), "counts": (3,)}


class _Workspace:
    """Memory for the cells of one triplet, and the kernel's requests for more; passed to it with a star."""

    def __init__(self, dtype: np.dtype[Any], n_matrices: int) -> None:
        self.needs = np.zeros(2, dtype=np.int64)
        self.slots = np.empty(_FIRST_BLOCK, dtype=np.int64)
        self.cells = np.empty((n_matrices, _FIRST_BLOCK), dtype=dtype)

    def __iter__(self) -> Iterator[Array]:
        return iter((self.slots, self.cells, self.needs))

    def grow(self) -> bool:
        """Allocate memory for a block that was too large; return whether there was one."""
        size = int(self.needs[touched.NEEDS_BLOCK])
        if size:
            n_bytes = size * (8 + len(self.cells) * self.cells.itemsize)
            checks.check_fits_in_memory(n_bytes, f"The {size:,} cells of a single triplet")
            self.slots = np.empty(size, dtype=np.int64)
            self.cells = np.empty((len(self.cells), size), dtype=self.cells.dtype)
            self.needs[touched.NEEDS_BLOCK] = 0
        return size > 0


def _tables(cells: dict[str, Array], columns: NDArray[np.int32], indptr: Numbers, n: int) -> dict[str, Array]:
    """Build the tables of the cells of a CSR matrix."""
    found = np.diff(indptr)
    sizes = np.empty_like(found)
    touched.table_sizes(found, n, sizes)
    rows, room = np.zeros((len(found), 3), dtype=np.int64), np.zeros(touched.SIZE_OF_ROOM, dtype=np.int64)
    rows[:, 0], rows[:, 1], room[0] = np.cumsum(sizes) - sizes, sizes, sizes.sum()
    n_slots = int(room[0]) + _FIRST_SLOTS
    n_bytes = rows.nbytes + n_slots * _bytes_of_a_slot(cells)
    checks.check_fits_in_memory(n_bytes, f"The touched cells of {len(found)} x {n} features")
    pools = {name: np.zeros(n_slots, dtype=values.dtype) for name, values in cells.items()}
    pools["columns"] = np.zeros(n_slots, dtype=np.int32)
    slots = np.empty(len(columns), dtype=np.int64)
    touched.insert_cells(rows, pools["columns"], n, indptr, columns, slots)
    for name, values in cells.items():
        pools[name][slots] = values
    return {**pools, "rows": rows, "room": room}


def _make_room(state: TouchedCells, names: tuple[str, ...], wanted: int) -> None:
    """Make room for tables that grow: a quarter of the pools, or `wanted` slots."""
    rows = state["rows"]
    in_use = np.flatnonzero(rows[:, 1])
    order = in_use[np.argsort(rows[in_use, 0])]
    touched.close_gaps(order, rows, state["columns"], state["room"], state["W"], state.get("Sigma"))
    old, used = len(state["columns"]), int(state["room"][0])
    size = used + max(used // 4, wanted)
    if size <= old:
        return
    cells = {name: state[name] for name in names}
    n_bytes = (size - old) * _bytes_of_a_slot(cells)
    checks.check_fits_in_memory(n_bytes, f"Room for more than {int(state['rows'][:, 2].sum()):,} touched cells")
    cells.clear()
    # A kernel goes by the length of columns, which is the last to grow: an interrupt may come at any point.
    for name in (*names, "columns"):
        try:
            # In place, large arrays are remapped and not copied: no second pool, and no time to fill it.
            state[name].resize(size)
        except ValueError:  # its memory belongs to something else, such as a file
            checks.check_fits_in_memory(size * state[name].itemsize, "A longer copy of the touched cells")
            longer = np.zeros(size, dtype=state[name].dtype)
            longer[:old] = state[name][:old]
            state[name] = longer


def _bytes_of_a_slot(cells: dict[str, Array]) -> int:
    return 4 + sum(array.itemsize for array in cells.values())


def _product_of_strided(Q: Matrix, W: Array) -> Array:
    """Return ``Q @ W`` for a W whose columns are interleaved with other numbers."""
    out = np.empty((Q.shape[0], W.shape[1]), dtype=W.dtype)
    if (Q.nnz if sparse.issparse(Q) else Q.size) <= 8 * W.shape[0]:  # too few for a copy of W to pay
        bilinear.products(read_all(Q, "Q").view, W, out)
        return out
    for chunk in chunks(W.shape[1], _COLUMNS_PER_CHUNK):
        out[:, chunk] = product(Q, np.ascontiguousarray(W[:, chunk]))
    return out

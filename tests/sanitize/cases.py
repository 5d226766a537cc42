"""What the driver does to the kernels: one function for each group of them.

The arguments are valid, as the public layer would pass them, and extreme: empty rows and rows of 100,000 non-zeros,
widths around every register, strides of any sign, tables that are always full, values at the limits of the learners.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import aromatch as am
from aromatch.kernels import (
    bilinear,
    blocked,
    communities,
    diagonal,
    factored,
    full,
    lock,
    moments,
    oasis,
    rows,
    touched,
)
from aromatch.kernels.rows import RowView
from aromatch.learners.inputs import Block
from aromatch.learners.online import cells, pending
from tests.sanitize.driver import Counts
from tests.sanitize.matrices import CONTAINERS, CSR, WIDTHS, Generator, laid_out, random_csr, sorted_columns, view_of

Array = NDArray[Any]

NUMBERS_OF_TRIPLETS = (0, 1, 2, 3, 4, 5, 6, 7, 17, 64, 200)
HUGE_ROW = 100_000
# Room for one triplet of the widest features: 80 bytes each.
WIDEST = 2**25
INDEX_TYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", ">i4", "<i8")
VALUE_TYPES = ("float16", "float32", "float64", "longdouble", ">f4", ">f8", "int8", "uint16", "int64", "bool", "object")
FORMATS = ("csr", "csc", "bsr", "coo", "dia", "lil", "dok")


class Case:
    """The random choices of one case and the arrays that most kernels take."""

    def __init__(self, rng: Generator, dtype: np.dtype[Any], counts: Counts) -> None:
        self.rng, self.dtype, self.counts = rng, dtype, counts

    def chance(self, share: float) -> bool:
        """Return True with a probability."""
        return bool(self.rng.random() < share)

    def one_of(self, values: Any) -> Any:
        """Return one of the values."""
        return values[int(self.rng.integers(len(values)))]

    def widths(self, most: int = max(WIDTHS)) -> tuple[int, int]:
        """Return numbers of query and object features."""
        m, n = (int(self.one_of([width for width in WIDTHS if width <= most])) for _ in range(2))
        return (m, m) if self.chance(0.3) else (m, n)

    def scale(self, largest: float) -> float:
        """Return a size of values: usually 1, but tiny or `largest` as well."""
        return float(self.one_of([1.0] * 6 + [1e-3, 1e-30, 1e-170, largest]))

    def view(self, width: int, scale: float = 1.0) -> RowView:
        """Return a view of a few rows in a random container."""
        n_rows, container = int(self.one_of([1, 2, 3, 5, 20])), str(self.one_of(CONTAINERS))
        view = view_of(self.rng, random_csr(self.rng, n_rows, width, scale), container)
        for name in ("RowView", "RowView.of_csr" if container.startswith("CSR") else "RowView.of_dense"):
            self.counts.note(f"rows.{name}")
        assert view.shape == (n_rows, width)
        self.counts.note("rows.RowView.shape")
        return view

    def block(self, m: int, n: int, largest: float) -> Block:
        """Return triplets of random rows; sometimes the other objects are in a matrix of their own."""
        scale = self.scale(largest)
        Q = self.view(m, scale)
        P = Q if m == n and self.chance(0.3) else self.view(n, scale)
        N = P if self.chance(0.7) else self.view(n, scale)
        count = int(self.one_of(NUMBERS_OF_TRIPLETS))
        triplets = np.column_stack([self.rng.integers(X.shape[0], size=count) for X in (Q, P, N)])
        triplets = np.ascontiguousarray(triplets, dtype=np.int64)
        triplets.flags.writeable = self.chance(0.7)
        weights = None if self.chance(0.5) else self.rng.choice([0.0, 1e-12, 0.5, 1.0, 30.0], size=count)
        return Block(Q, P, N, triplets, weights, None if self.chance(0.5) else np.empty((count, 3)))

    def indices(self, Q: RowView, P: RowView, n_objects: int) -> Array:
        """Return rows of indices: a query and one object or two."""
        count = int(self.one_of(NUMBERS_OF_TRIPLETS))
        columns = [Q, *[P] * n_objects]
        found = np.column_stack([self.rng.integers(X.shape[0], size=count) for X in columns])
        return np.ascontiguousarray(found, dtype=np.int64)

    def array(self, *shape: int, scale: float = 1.0) -> Array:
        """Return random numbers in the precision of the model."""
        return (scale * self.rng.normal(size=shape)).astype(self.dtype)

    def empty(self, *shape: int) -> Array:
        """Return memory for results."""
        return np.empty(shape, dtype=self.dtype)

    def noise(self) -> float:
        """Return r."""
        return float(self.one_of([1.0, 1e-6, 0.1, 100.0, 1e8, np.inf]))


def drive_checks(case: Case) -> None:
    """Check valid and broken rows: the checks are the kernels whose input is not validated."""
    rng = case.rng
    width, n_rows = int(case.one_of(WIDTHS)), int(case.one_of([1, 2, 3, 20]))
    found = random_csr(rng, n_rows, width)
    container = str(case.one_of(CONTAINERS))
    if not container.startswith("CSR"):
        X = laid_out(rng, found.toarray(), container)
        if case.chance(0.3):
            X[rng.integers(n_rows), rng.integers(width)] = case.one_of([np.nan, np.inf, -np.inf, 1e30])
        view = RowView.of_dense(X)
    else:
        index = np.dtype(np.int64 if container.endswith("int64") else np.int32)
        ends = np.array([0, -1, 1, width - 1, width, found.data.size, np.iinfo(index).min, np.iinfo(index).max])
        data, indices, indptr = found.data.copy(), found.indices.astype(index), found.indptr.astype(index)
        for array in (indices, indptr):
            if len(array) and case.chance(0.4):
                array[rng.integers(len(array))] = case.one_of(ends)
        if len(data) and case.chance(0.2):
            data[rng.integers(len(data))] = np.nan
        shape = (n_rows, int(case.one_of([width, 2**31 - 1, 2**62, 2**63 - 1])))
        view = RowView.of_csr(shape, data[: len(data) - case.chance(0.1)].copy(), indices, indptr)
    order = rng.integers(n_rows, size=int(case.one_of(NUMBERS_OF_TRIPLETS)))
    seen = np.zeros(n_rows if case.chance(0.5) else 0, dtype=np.uint8)
    spread_out = np.repeat(order, 2)[::2] if case.chance(0.3) else order
    rows.check_rows(view, spread_out, seen)


def drive_single_rows(case: Case) -> None:
    """Read single rows from arrays of any type and layout, and from objects that are none."""
    rng = case.rng
    width = int(case.one_of((0, *WIDTHS)))
    x = rng.normal(size=width).astype(str(case.one_of(["f4", "f8", "f4", "f8", ">f8", "i4", "f2", "O"])))
    vectors = [
        x,
        x[::-1],
        np.repeat(x, 2)[::2],
        x[:0],
        x[:, np.newaxis],
        np.frombuffer(b"\0" + x.astype("f8").tobytes(), dtype=np.uint8)[1:].view("f8"),  # not aligned
        np.zeros(width, dtype=[("a", "f8"), ("b", "f4")]),
        np.zeros(width, dtype="V0"),
        memoryview(x.astype("f8").tobytes()),
        (ctypes.c_double * width)(),
        b"\0" * width,
        1.0,
        None,
    ]
    with np.errstate(all="ignore"):
        rows.single_dense_row(case.one_of(vectors))
    width = max(width, 1)
    count = int(rng.integers(width + 1))
    indices, indptr = np.sort(rng.permutation(width)[:count]), np.array([0, count])
    types = ["i4", "i8", "i4", "i8", "u4", "q", "l", "i2", ">i4"]
    index = str(case.one_of(types))
    indices, indptr = indices.astype(index), indptr.astype(index if case.chance(0.8) else str(case.one_of(types)))
    if case.chance(0.3):
        indptr[rng.integers(2)] = np.array(case.one_of([-1, 1, count, count + 1, 10**4])).astype(indptr.dtype)
    if count and case.chance(0.2):
        indices[rng.integers(count)] = np.array(case.one_of([-1, width, 10**4])).astype(indices.dtype)
    spaced = np.repeat(indices, 2)[::2] if case.chance(0.2) else indices
    data = rng.normal(size=max(count - case.chance(0.1), 0)).astype(str(case.one_of(["f4", "f8", "i8"])))
    rows.single_csr_row(int(case.one_of([width, width, 0, 2**31 - 2, 2**63 - 1])), data, spaced, indptr)


def drive_rows(case: Case) -> None:
    """Measure, hash and add rows."""
    m, n = case.widths()
    block = case.block(m, n, 1e70 if case.dtype == np.float64 else 1e7)
    rows.squared_scales(*block[:4], np.empty(len(block.triplets)))
    X = block.queries
    count = int(case.one_of(NUMBERS_OF_TRIPLETS))
    order = case.rng.integers(X.shape[0], size=count)
    moments.hash_rows(X, order, np.empty(count, dtype=np.uint64))
    groups = int(case.one_of([0, 1, 2, 7]))
    indptr = np.concatenate([[0], np.sort(case.rng.integers(count + 1, size=groups))])
    moments.add_sums(X, indptr, order, case.rng.normal(size=count), np.zeros((groups, m)))
    moments.add_outer_products(X, order, case.rng.normal(size=(count, n)), np.zeros((m, n)))
    rows.Workspace(m, n, case.dtype.itemsize, count)
    case.counts.note("rows.Workspace")


def drive_forms(case: Case) -> None:
    """Score pairs and triplets with whole and interleaved matrices."""
    m, n = case.widths()
    Q, P = case.view(m), case.view(n)
    both = case.array(m, n, 2)
    for A, is_apart in ((case.array(m, n), False), (both[..., 0], True), (both[..., 1], True)):
        numbers = case.indices(Q, P, int(case.one_of([1, 2])))
        bilinear.forms(Q, P, numbers, A, is_apart and case.chance(0.5), is_apart, case.empty(len(numbers)))
        bilinear.products(Q, A, case.empty(int(case.rng.integers(Q.shape[0] + 1)), n))
    numbers = case.indices(Q, Q, 1)[:, : int(case.one_of([1, 2]))].copy()
    bilinear.quadratic_forms(Q, numbers, case.array(m, m), case.empty(len(numbers)))
    k = int(case.one_of([1, 2, 5, 80]))
    bilinear.projections(Q, numbers, case.array(k, m), case.empty(len(numbers), k))


def drive_diagonal(case: Case) -> None:
    """Learn by d-AROMA with all cells stored."""
    m, n = case.widths()
    state = cells.DenseCells.interleaved("zero", m, n, case.dtype)
    settings = case.noise(), case.chance(0.3), case.chance(0.5)
    for _ in range(3):
        block = case.block(m, n, 1e45 if case.dtype == np.float64 else 1e5)
        state.learn(block, diagonal.learn, None, *settings)


def drive_factored(case: Case) -> None:
    """Learn by f-AROMA in all its variants, one update at a time."""
    m, n = case.widths()
    W, Omega, Lambda = case.array(m, n, scale=0.1), np.eye(n, dtype=case.dtype), np.eye(m, dtype=case.dtype)
    form = int(case.one_of([factored.JACOBI, factored.GAUSS_SEIDEL, factored.JOINT]))
    is_updated = form == factored.JACOBI and case.chance(0.5)
    counts = np.zeros(4, dtype=np.int64)
    for _ in range(3):
        block = case.block(m, n, 10.0)
        factored.learn(*block, W, Omega, Lambda, case.noise(), case.chance(0.3), is_updated, form, counts)


def drive_blocked(case: Case) -> None:
    """Learn by f-AROMA with pending updates, and fold them at any time."""
    m, n = case.widths()
    W, Omega, Lambda = case.array(m, n, scale=0.1), np.eye(n, dtype=case.dtype), np.eye(m, dtype=case.dtype)
    size = max(2, pending.block_size(m, n)) if case.chance(0.5) else int(case.one_of([2, 3, 4, 5, 80]))
    terms = case.empty(size, m), case.empty(size, n), np.empty((size, 3))
    counts = np.array([case.one_of([0, 0, 10**6]), 0, 0, 0])
    for _ in range(3):
        block = case.block(m, n, 10.0)
        blocked.learn(*block, W, Omega, Lambda, *terms, case.noise(), case.chance(0.3), counts)
        if case.chance(0.3):
            blocked.fold(W, Omega, Lambda, *terms, counts)
            assert counts[3] == 0


def drive_oasis(case: Case) -> None:
    """Learn by OASIS, with and without pending steps."""
    m, n = case.widths()
    W = case.array(m, n, scale=0.1)
    size = case.one_of([0, 2, 3, 5, 80, pending.block_size(m, n)])
    terms = case.empty(size, m), case.empty(size, n), np.empty((size, 1))
    counts = np.array([case.one_of([0, 0, 10**6]), 0, 0, 0])
    for _ in range(3):
        block = case.block(m, n, 1e45 if case.dtype == np.float64 else 1e5)
        oasis.learn(*block, W, *terms, float(case.one_of([1e-6, 0.1, 10.0])), counts)


def drive_full(case: Case) -> None:
    """Learn with a covariance of all cells, and by AROW."""
    m, n = case.widths(9)
    W, Sigma = case.array(m, n, scale=0.1), np.eye(m * n, dtype=case.dtype)
    block = case.block(m, n, 10.0)
    full.learn_triplets(*block, W, Sigma, case.noise(), case.chance(0.3), np.zeros(3, dtype=np.int64))
    numbers = case.indices(block.queries, block.preferred, int(case.one_of([1, 2])))
    full.quadratic_forms(block.queries, block.preferred, numbers, Sigma, case.empty(len(numbers)))
    width = int(case.one_of(WIDTHS))
    X = case.view(width)
    first = int(case.rng.integers(X.shape[0]))
    signs = case.rng.choice([-1.0, 1.0], size=X.shape[0] - first)
    is_diagonal = case.chance(0.5)
    covariance = np.ones((1, width), dtype=case.dtype) if is_diagonal else np.eye(width, dtype=case.dtype)
    full.learn_labels(X, first, signs, case.array(width), covariance, is_diagonal, case.noise())


def drive_touched(case: Case) -> None:
    """Learn into tables that are full again and again, read them, and build them anew."""
    for names in (("W", "Sigma"), ("W",)):
        _learn_into_tables(case, names)


def _learn_into_tables(case: Case, names: tuple[str, ...]) -> None:
    m, n = case.widths()
    inits = ["zero", sparse.random_array((m, n), density=0.2, rng=case.rng)] + (["identity", 0.5] if m == n else [])
    small = int(case.one_of([1, 2, 50, 4096]))
    with mock.patch.multiple(cells, _FIRST_SLOTS=small, _FIRST_BLOCK=small):
        state = cells.TouchedCells.start(names, case.one_of(inits), m, n, case.dtype)
        for _ in range(3):
            block = case.block(m, n, 1e45 if case.dtype == np.float64 else 1e5)
            _learn_and_read(case, state, block)
            if case.chance(0.3):
                state = cells.TouchedCells.from_file(state.to_file(), n)
            if case.chance(0.3):
                cells._make_room(state, names, int(case.one_of([0, 1, 100])))


def _learn_and_read(case: Case, state: cells.TouchedCells, block: Block) -> None:
    if "Sigma" in state.names:
        state.learn(block, None, touched.learn_diagonal, case.noise(), case.chance(0.3), case.chance(0.5))
    else:
        state.learn(block, None, touched.learn_oasis, float(case.one_of([1e-6, 0.1, 10.0])))
    Q, P = block.queries, block.preferred
    numbers = case.indices(Q, P, int(case.one_of([1, 2])))
    state.forms(Q, P, numbers)
    if "Sigma" in state.names:
        state.variances(Q, P, numbers)
    state.array("W")
    if state.n <= 10**6:
        out = np.zeros((int(case.rng.integers(Q.shape[0] + 1)), state.n), dtype=case.dtype)
        first = int(case.rng.integers(Q.shape[0] - len(out) + 1))
        touched.add_products(Q, first, *(state[name] for name in ("rows", "columns", "W")), state["start"][0], out)


def drive_huge_rows(case: Case) -> None:
    """Read rows of 100,000 non-zeros, with a W of a few columns or with touched cells of many."""
    rng, m, n = case.rng, int(case.one_of([HUGE_ROW, HUGE_ROW + 3, 3 * HUGE_ROW])), int(case.one_of([1, 2, 3, 9]))
    columns = np.concatenate([np.sort(rng.permutation(m)[:HUGE_ROW]), [0, m - 1]])
    indptr = np.array([0, HUGE_ROW, HUGE_ROW, HUGE_ROW + 2])
    data = rng.normal(size=len(columns)).astype(case.one_of([np.float32, np.float64])) / np.sqrt(HUGE_ROW)
    Q = view_of(rng, CSR(data, columns, indptr, (3, m)), str(case.one_of(CONTAINERS)))
    P = case.view(n)
    triplets = np.column_stack([rng.integers(size, size=4) for size in (3, P.shape[0], P.shape[0])])
    block = Block(Q, P, P, np.ascontiguousarray(triplets), None, None)
    state = cells.DenseCells.interleaved("zero", m, n, case.dtype)
    state.learn(block, diagonal.learn, None, 1.0, False, case.chance(0.5))
    oasis.learn(
        *block,
        state["cells"][..., 0].copy(),
        case.empty(0, m),
        case.empty(0, n),
        np.empty((0, 1)),
        0.1,
        np.zeros(4, dtype=np.int64),
    )
    rows.squared_scales(*block[:4], np.empty(4))
    moments.hash_rows(Q, np.arange(3), np.empty(3, dtype=np.uint64))
    moments.add_sums(Q, np.array([0, 3]), np.arange(3), np.ones(3), np.zeros((1, m)))
    rows.check_rows(Q, np.arange(3), np.zeros(3, dtype=np.uint8))
    _learn_and_read(case, cells.TouchedCells.start(("W", "Sigma"), "zero", m, n, case.dtype), block)


def drive_wide_features(case: Case) -> None:
    """Learn sparse rows of millions of features, and store cells in the last column that a table can have."""
    rng, m = case.rng, int(case.one_of(WIDTHS))
    n = int(case.one_of([10**6, WIDEST]))
    names = ("W", "Sigma") if case.chance(0.5) else ("W",)
    state = cells.TouchedCells.start(names, "zero", m, n, case.dtype)
    P = view_of(rng, random_csr(rng, 5, n, most=30), str(case.one_of(CONTAINERS[3:])))
    Q = case.view(m)
    triplets = np.column_stack([rng.integers(size, size=20) for size in (Q.shape[0], 5, 5)])
    _learn_and_read(case, state, Block(Q, P, P, np.ascontiguousarray(triplets), None, np.empty((20, 3))))
    n = cells._LARGEST_WIDTH
    columns = sorted_columns(rng, n, 200)
    W = sparse.csr_array((np.ones(len(columns)), columns, [0, *[len(columns)] * m]), shape=(m, n))
    state = cells.TouchedCells.start(names, W, m, n, case.dtype)
    assert state.array("W").indices.max() == n - 1


def drive_widths_beyond_memory(case: Case) -> None:
    """Read rows so wide that the memory for one triplet cannot be allocated."""
    width = int(case.one_of([2**50, 2**59, 2**60, 2**61, 2**62, 2**63 - 1]))
    columns = np.sort(case.rng.integers(min(width, 2**62), size=500))
    Q = RowView.of_csr((1, width), np.ones(500), columns, np.array([0, 500]))
    zero = np.zeros((1, 3), dtype=np.int64)
    P = case.view(3)
    for call in (
        lambda: rows.squared_scales(Q, P, P, zero, np.empty(1)),
        lambda: moments.hash_rows(Q, zero[0, :1], np.empty(1, dtype=np.uint64)),
        lambda: rows.Workspace(width, width, 8, width),
    ):
        try:
            call()
        except MemoryError:
            continue
        raise AssertionError(f"rows of {width} columns were read")


def drive_learners(case: Case) -> None:
    """Learn from every sparse format and type of indices and values, which the public layer converts."""
    m, n = case.widths(33)
    small = random_csr(case.rng, 8, m), random_csr(case.rng, 8, n)
    whole = [np.round(4 * rows_.toarray()).clip(-9, 9) for rows_ in small]
    triplets = case.rng.integers(8, size=(30, 3))
    learners = [
        am.DiagonalAROMA(dtype=case.dtype, cells=case.one_of(["dense", "touched"])),
        am.FactoredAROMA(dtype=case.dtype),
        am.OASIS(dtype=case.dtype, init="zero", cells=case.one_of(["dense", "touched"])),
        am.MomentAROMA(),
    ]
    model = case.one_of(learners)
    kind, index = str(case.one_of(FORMATS)), str(case.one_of(INDEX_TYPES))
    values = str(case.one_of(VALUE_TYPES))
    given = []
    for X in whole:
        X = np.abs(X) if values[0] in "ub" else X
        given.append(
            (_in_format(X, kind, index, case), X) if case.chance(0.6) else (X.astype(values), X.astype(values))
        )
    found = model.fit_triplets(triplets, *(each for each, _ in given))
    found.pair_score(*(each for each, _ in given))
    expected = am.MomentAROMA() if model.__class__ is am.MomentAROMA else model.__class__(**model.get_params())
    expected = expected.fit_triplets(triplets, *(X.astype(np.float64) for _, X in given))
    assert found.n_triplets_seen_ == expected.n_triplets_seen_
    left, right = (W.toarray() if sparse.issparse(W) else W for W in (found.W_, expected.W_))
    np.testing.assert_allclose(left, right, rtol=1e-3, atol=1e-3)


def _in_format(X: Array, kind: str, index: str, case: Case) -> Any:
    found = sparse.csr_array(X.astype(case.one_of([np.float32, np.float64, np.int16]))).asformat(kind)
    largest = max(found.nnz, *X.shape)
    if kind in ("csr", "csc", "bsr") and largest <= np.iinfo(index).max:
        found.indices, found.indptr = found.indices.astype(index), found.indptr.astype(index)
    return found


def drive_lock(case: Case) -> None:
    """Read, write and change a value from several threads, nested in every way that is allowed."""
    shared = case.one_of([lambda: lock.Locked()._lock, lambda: lock.ReadWriteLock(RuntimeError)])()
    for name in ("Locked", "ReadWriteLock", "ReadWriteLock.reading", "ReadWriteLock.writing", "ReadWriteLock.changing"):
        case.counts.note(f"lock.{name}")
    values, failures = [0, 0], []

    def read() -> None:
        for _ in range(20):
            with shared.reading, shared.reading:
                if values[0] != values[1]:
                    failures.append(tuple(values))
                try:
                    with shared.changing:
                        failures.append("a thread that reads changed the object")
                except RuntimeError:
                    pass

    def write() -> None:
        for _ in range(10):
            with shared.writing, shared.changing, shared.writing, shared.reading:
                values[0] += 1
                values[1] += 1

    threads = [threading.Thread(target=target) for target in (read, write, read, write)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (values, failures) == ([20, 20], [])


def drive_communities(case: Case) -> None:
    """Move the nodes of random graphs, with loops, empty ones and weights of zero."""
    n = int(case.one_of([0, 1, 2, 40]))
    A = case.rng.uniform(size=(n, n)) * (case.rng.random((n, n)) < case.one_of([0.0, 0.05, 0.5]))
    graph = sparse.csr_array(A + A.T)
    graph.data[case.rng.random(graph.nnz) < 0.1] = 0.0
    labels, order = np.arange(n), case.rng.permutation(n)
    links = graph.indptr.astype(np.int64), graph.indices.astype(np.int64), graph.data
    strengths = np.asarray(graph.sum(axis=1)).ravel()
    n_moves = communities.move_nodes(*links, strengths, order, labels, float(case.one_of([0.1, 1.0, 10.0])), 20)
    assert n_moves >= (labels != np.arange(n)).sum() >= 0
    assert ((labels >= 0) & (labels < max(1, n))).all()


def drive_undoing(case: Case) -> None:
    """Fail in a block after random changes, with some functions that restore them failing at first."""
    values = [int(case.rng.integers(10)) for _ in range(int(case.one_of([0, 1, 2, 50])))]
    before, failures = list(values), [int(case.one_of([0, 0, 1, 3])) for _ in values]

    def restore(at: int) -> None:
        if failures[at]:
            failures[at] -= 1
            raise KeyboardInterrupt
        values[at] = before[at]

    case.counts.note("lock.Undoing")
    with contextlib.suppress(ValueError, KeyboardInterrupt), lock.Undoing() as undoing:
        for at in range(len(values)):
            case.counts.note("lock.Undoing.note")
            undoing.note(partial(restore, at))
            values[at] += 1
        raise ValueError
    assert values == before


def drives(*, huge: bool = True) -> list[Callable[[Case], None]]:
    """Return the groups of kernels in the order of a round; `huge` adds those whose cases take long."""
    usual = [
        drive_checks, drive_single_rows, drive_rows, drive_forms, drive_diagonal, drive_factored, drive_blocked,
        drive_oasis, drive_full, drive_touched, drive_widths_beyond_memory, drive_learners, drive_lock,
        drive_undoing, drive_communities,
    ]  # fmt: skip
    return usual * 4 + [drive_huge_rows, drive_wide_features] if huge else usual

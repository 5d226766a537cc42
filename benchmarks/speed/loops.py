"""Timing of the learners of the paper against baseline loops in NumPy and C, on the same model and triplets."""

import ctypes
import os
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.base import clone

import aromatch as am
from benchmarks.shared import numpy_loops
from benchmarks.shared.workloads import triplets_of

ROUNDS = 5
N_WARM = 1000  # triplets learned before timing
N_TIMED = {"d_aroma": 4000, "oasis": 4000, "f_aroma": 1000}
N_TIMED_NUMPY = 100
C_LOOPS = Path(numpy_loops.__file__).with_name("c_loops.c")


@dataclass
class Figure:
    """One line of the report."""

    name: str
    ratio: float | None
    target: str
    detail: str


def median_times(implementations):
    """Return the median seconds of each implementation; implementations alternate."""
    times = {name: [] for name in implementations}
    for _ in range(ROUNDS):
        for name, (prepare, run) in implementations.items():
            prepared = prepare()
            start = time.perf_counter()
            run(prepared)
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def compile_c_loops():
    folder = tempfile.mkdtemp()
    library = f"{folder}/c_loops.so"
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-O3", "-shared", "-fPIC", C_LOOPS, "-o", library], check=True)
    return ctypes.CDLL(library)


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


def run_c(loops, name, state, triplets, X, constant):
    n = X.shape[1]
    triplets = np.ascontiguousarray(triplets)
    p, columns, a, b = np.empty(n), np.empty(n, dtype=np.int32), np.empty(n), np.empty(n)
    matrices = [pointer(state[key]) for key in ("W", "Sigma", "Omega", "Lambda") if key in state]
    work = [pointer(a), pointer(b)] if name == "f_aroma" else []
    getattr(loops, name)(
        *matrices, ctypes.c_int64(n), pointer(X.indptr), pointer(X.indices), pointer(X.data), pointer(triplets),
        ctypes.c_int64(len(triplets)), ctypes.c_double(constant), pointer(p), pointer(columns), *work,
    )  # fmt: skip


def matrices_of(model):
    names = ("W", "Sigma", "Omega", "Lambda")
    return {name: getattr(model, name + "_").astype(np.float64) for name in names if hasattr(model, name + "_")}


def compare(model, loop, constant, X, triplets, loops=None):
    """Return microseconds per triplet of ours, of NumPy and, for sparse float64, of C."""
    dense = X.toarray() if hasattr(X, "toarray") else X
    model = clone(model).fit_triplets(triplets[:N_WARM], X)
    timed, few = triplets[N_WARM : N_WARM + N_TIMED[loop]], triplets[N_WARM : N_WARM + N_TIMED_NUMPY]
    implementations = {
        "ours": (model.copy, lambda started: started.partial_fit_triplets(timed, X)),
        "numpy": (
            lambda: matrices_of(model),
            lambda state: getattr(numpy_loops, loop)(state, few, dense, dense, constant),
        ),
    }
    ours, theirs = model.copy().partial_fit_triplets(few, X), matrices_of(model)
    getattr(numpy_loops, loop)(theirs, few, dense, dense, constant)
    check_equal(matrices_of(ours), theirs, 1e-9 if model.dtype == "float64" else 1e-3)
    if loops is not None:
        implementations["C"] = (
            lambda: matrices_of(model),
            lambda state: run_c(loops, loop, state, timed, X, constant),
        )
        ours, theirs = model.copy().partial_fit_triplets(timed, X), matrices_of(model)
        run_c(loops, loop, theirs, timed, X, constant)
        check_equal(matrices_of(ours), theirs, 1e-9)
    times = median_times(implementations)
    return {
        name: 1e6 * seconds / (N_TIMED_NUMPY if name == "numpy" else N_TIMED[loop]) for name, seconds in times.items()
    }


def check_equal(found, expected, tolerance):
    for name, matrix in expected.items():
        error = np.linalg.norm(found[name] - matrix) / np.linalg.norm(matrix)
        if not error < tolerance:
            raise AssertionError(f"{name}: relative difference {error:.1e}, expected less than {tolerance:.0e}")


LEARNERS = {
    "d-AROMA": (am.DiagonalAROMA(), "d_aroma", 1.0),
    "OASIS": (am.OASIS(), "oasis", 0.1),
    "f-AROMA": (am.FactoredAROMA(), "f_aroma", 1.0),
}


def against_loops(title, X, y, loops, targets, dtypes=("float64",)):
    triplets = triplets_of(y, N_WARM + max(N_TIMED.values()))
    for name, (model, loop, constant) in LEARNERS.items():
        for dtype in dtypes:
            c_loops = loops if dtype == "float64" else None
            us = compare(model.set_params(dtype=dtype), loop, constant, X, triplets, c_loops)
            prefix = f"{name}, {title}, {dtype}"
            target_numpy, target_c = targets.get((name, dtype), ("", ""))
            detail = f"{us['ours']:.1f} µs per triplet; NumPy {us['numpy']:.0f} µs"
            yield Figure(f"{prefix}: NumPy loop", us["numpy"] / us["ours"], target_numpy, detail)
            if c_loops is not None:
                yield Figure(f"{prefix}: C loop", us["C"] / us["ours"], target_c, f"C {us['C']:.1f} µs")


def touching(loops, X, triplets):
    """Return a function that reads and writes one number per cache line that triplets access, and their count."""
    n = X.shape[1]
    p, columns, n_lines = np.empty(n), np.empty(n, dtype=np.int32), np.zeros(1, dtype=np.int64)

    def touch(W):
        loops.touch_lines(
            pointer(W), ctypes.c_int64(n), pointer(X.indptr), pointer(X.indices), pointer(X.data), pointer(triplets),
            ctypes.c_int64(len(triplets)), ctypes.c_double(0), pointer(p), pointer(columns), pointer(n_lines),
        )  # fmt: skip

    return touch, n_lines

"""Deliberate defects and the reports that they cause: of C code, of kernels, and of a learner without its lock."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable

import numpy as np

import aromatch as am
from aromatch.kernels import bilinear, diagonal, rows
from aromatch.kernels.rows import RowView

# The library that is compiled from `defects.c`.
LIBRARY = "AROMATCH_DEFECTS"
# The words of the report, by the name of the sanitizer and of the defect.
REPORTS = {
    "address": {
        "read_past_the_end": "heap-buffer-overflow",
        "write_after_free": "heap-use-after-free",
        "overflow": "signed integer overflow",
        "shift": "shift exponent",
        "misalign": "misaligned address",
        "cast": "outside the range of representable values",
        "leak": "leak of 16 byte",
        "write_past_an_output_by_a_kernel": "heap-buffer-overflow",
        "read_past_a_matrix_by_an_inner_loop": "loops_of_t.h",
        "write_past_an_array_of_a_workspace": "use-after-poison",
    },
    "thread": {
        "race": "data race",
        "race_of_two_calls_of_a_kernel": "data race",
        "race_of_a_reader_with_a_writer_without_the_lock": "data race",
    },
}
ZERO = np.zeros((1, 3), dtype=np.int64)


def commit(name: str) -> None:
    """Run a defect."""
    if name in globals():
        globals()[name]()
    else:
        getattr(ctypes.CDLL(os.environ[LIBRARY]), name)(4)


def write_past_an_output_by_a_kernel() -> None:
    """Compute two numbers into room for one."""
    X = RowView.of_dense(np.ones((1, 2)))
    rows.squared_scales(X, X, X, np.zeros((2, 3), dtype=np.int64), np.empty(1))


def read_past_a_matrix_by_an_inner_loop() -> None:
    """Score rows of ones by a matrix whose last column is missing in memory."""
    A = np.lib.stride_tricks.as_strided(np.ones(15), (4, 4), (32, 8))
    X = RowView.of_dense(np.ones((1, 4)))
    bilinear.forms(X, X, ZERO[:, :2].copy(), A, False, False, np.empty(1))


def write_past_an_array_of_a_workspace() -> None:
    """Read a row of more features than the matrix has."""
    X = RowView.of_dense(np.ones((1, 9)))
    bilinear.products(X, np.ones((4, 4)), np.empty((1, 4)))


def race_of_two_calls_of_a_kernel() -> None:
    """Learn into the same cells from two threads."""
    X, cells, counts = RowView.of_dense(np.eye(200)), np.ones((200, 200, 2)), np.zeros(3, dtype=np.int64)
    triplets = np.random.default_rng(0).integers(200, size=(20_000, 3))
    _at_once(*[lambda: diagonal.learn(X, X, X, triplets, None, None, cells, 1.0, False, False, counts)] * 2)


def race_of_a_reader_with_a_writer_without_the_lock() -> None:
    """Score triplets while another thread learns, both below the public methods, which take the lock."""
    rng = np.random.default_rng(0)
    X, triplets = rng.normal(size=(60, 100)), rng.integers(60, size=(2000, 3))
    model = am.DiagonalAROMA(r=1e3).fit_triplets(triplets[:1], X)
    margins = type(model).margins.__wrapped__
    _at_once(
        lambda: [margins(model, triplets, X) for _ in range(20)],
        lambda: [model._learn_one(*X[triplet], 1.0) for triplet in triplets],
    )


def _at_once(*targets: Callable[[], object]) -> None:
    threads = [threading.Thread(target=target) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

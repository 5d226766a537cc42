"""Threads that read models while one learns: `python -m tests.sanitize.threads --seconds 60`, for ThreadSanitizer.

The kernels run without the GIL, so a reader and a writer that met in one of them would touch the same memory at the
same time. What NumPy and BLAS read and write is not instrumented and is not seen.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from scipy import sparse

import aromatch as am

N_ROWS, WIDTH, N_READERS = 60, 48, 3
# Cells of a full covariance are the square of the features.
_NARROW = 12


def problems(rng: np.random.Generator) -> list[tuple[str, Any, Any]]:
    """Return models with the rows that they learn."""
    dense = rng.normal(size=(N_ROWS, WIDTH))
    sparse_rows = sparse.csr_array(dense * (rng.random(dense.shape) < 0.2))
    return [
        ("DiagonalAROMA", am.DiagonalAROMA(r=100.0), dense),
        ("DiagonalAROMA, sparse rows", am.DiagonalAROMA(r=100.0), sparse_rows),
        ("DiagonalAROMA, touched cells", am.DiagonalAROMA(r=100.0, cells="touched"), sparse_rows),
        ("FactoredAROMA", am.FactoredAROMA(r=100.0), dense),
        ("FactoredAROMA, sparse rows", am.FactoredAROMA(r=100.0, covariance_update="gauss_seidel"), sparse_rows),
        ("FullAROMA", am.FullAROMA(r=100.0), dense[:, :_NARROW].copy()),
        ("OASIS", am.OASIS(C=0.01), dense),
        ("OASIS, touched cells", am.OASIS(C=0.01, cells="touched"), sparse_rows),
        ("MomentAROMA", am.MomentAROMA(), dense),
    ]


def share(model: Any, X: Any, seconds: float, seed: int) -> Counter[str]:
    """Let one thread learn for some seconds and others read; return the numbers of calls."""
    triplets = np.random.default_rng(seed).integers(N_ROWS, size=(400, 3))
    model.fit_triplets(triplets[:20], X)
    ends = time.monotonic() + seconds
    over = threading.Event()

    def read(number: int) -> Counter[str]:
        calls: Counter[str] = Counter()
        reads: list[Callable[[], Any]] = [
            lambda: model.margins(triplets, X),
            lambda: model.similarity(X),
            lambda: model.pair_score(X),
            lambda: model.copy().W_,
        ]
        if hasattr(model, "margin_std"):
            reads.append(lambda: model.margin_std(triplets, X))
        while not over.is_set():
            reads[(number + calls["reads"]) % len(reads)]()
            calls["reads"] += 1
        return calls

    def write() -> Counter[str]:
        calls: Counter[str] = Counter()
        while time.monotonic() < ends:
            for one in triplets[:20]:
                model.learn_one(*(X[[row]] for row in one))
            model.partial_fit_triplets(triplets, X)
            calls["learn_one"] += 20
            calls["partial_fit_triplets"] += 1
        return calls

    with ThreadPoolExecutor(N_READERS + 1) as pool:
        readers = [pool.submit(read, number) for number in range(N_READERS)]
        try:
            found = pool.submit(write).result()
        finally:
            over.set()
        return sum((reader.result() for reader in readers), found)


def main() -> int:
    """Share each model for a part of the time; a sanitizer reports what it finds."""
    parser = argparse.ArgumentParser(prog="python -m tests.sanitize.threads", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="time to run")
    parser.add_argument("--seed", type=int, default=0, help="random seed")
    options = parser.parse_args()
    models = problems(np.random.default_rng(options.seed))
    print(f"threads: seed {options.seed}, {options.seconds:.0f} s, {N_READERS} readers and a writer", flush=True)
    for name, model, X in models:
        calls = share(model, X, options.seconds / len(models), options.seed)
        print(f"{name}: " + ", ".join(f"{count:,} {kind}" for kind, count in sorted(calls.items())), flush=True)
        assert calls["reads"] > 0
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Speed and memory of a million triplets with 100,000 features, for which the model stores only touched cells.

    python -m benchmarks.speed.wide DiagonalAROMA

Runs in a separate process of `benchmarks.speed`, so that the peak memory is that of this model.
"""

import re
import sys
import time
from pathlib import Path

import aromatch as am
from benchmarks.shared.workloads import triplets_of, zipf_rows

N_TRIPLETS = 1_000_000


def peak_bytes():
    return 1024 * int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text()).group(1))


def main(learner):
    X, y = zipf_rows(100_000, n_nonzero=12)
    triplets = triplets_of(y, N_TRIPLETS + 10_000)
    model = getattr(am, learner)()
    start = time.perf_counter()
    model.fit_triplets(triplets[:N_TRIPLETS], X)
    seconds = time.perf_counter() - start
    peak = peak_bytes()
    n_cells = int(model._state["rows"][:, 2].sum())
    n_bytes = sum(array.nbytes for array in model._state.values())
    start = time.perf_counter()
    model.similarity(X[:1], X)
    search = time.perf_counter() - start
    print(
        f"{N_TRIPLETS / seconds:,.0f} triplets per second, {model.n_updates_:,} updates, {n_cells:,} touched cells, "
        f"{n_bytes / n_cells:.1f} bytes per cell, {peak / 2**30:.1f} GiB peak memory; accuracy on further "
        f"triplets {model.triplet_accuracy(triplets[N_TRIPLETS:], X):.3f}; a query against {X.shape[0]:,} objects "
        f"{1000 * search:.1f} ms",
        end="",
    )


if __name__ == "__main__":
    main(sys.argv[1])

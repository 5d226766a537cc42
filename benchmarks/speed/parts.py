"""The benchmarks of speed and memory: generators of figures."""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.linalg.blas import dgemm
from sklearn.base import clone

import aromatch as am
from aromatch.io import durable
from benchmarks.shared.workloads import dense_rows, newsgroups, triplets_of, zipf_rows
from benchmarks.speed.loops import LEARNERS, N_WARM, ROUNDS, Figure, against_loops, median_times, touching

ROOT = Path(__file__).parents[2]


def sparse(loops):
    X, y = zipf_rows()
    targets = {
        ("d-AROMA", "float64"): ("≥ 300", "≥ 0.95"),
        ("OASIS", "float64"): ("≥ 300", "≥ 0.95"),
        ("f-AROMA", "float64"): ("≥ 40", "≥ 7"),
        ("f-AROMA", "float32"): ("≥ 75", ""),
    }
    yield from against_loops("sparse, 1000 features", X, y, loops, targets, ("float64", "float32"))


def dense(loops):
    X, y = dense_rows()
    targets = {
        ("d-AROMA", "float64"): ("≥ 3", ""),
        ("OASIS", "float64"): ("≥ 8", ""),
        ("f-AROMA", "float64"): ("≥ 15", ""),
    }
    yield from against_loops("dense, 384 features", X, y, None, targets)


def limits(loops):
    """Compare the learners with limits of the machine: memory access, or floating-point operations."""
    X, y = zipf_rows()
    triplets = np.ascontiguousarray(triplets_of(y, N_WARM + 4000))
    timed = triplets[N_WARM:]
    model = am.OASIS().fit_triplets(triplets[:N_WARM], X)
    touch, n_lines = touching(loops, X, timed)
    implementations = {
        "touch": (lambda: model.W_, touch),
        "ours": (model.copy, lambda started: started.partial_fit_triplets(timed, X)),
    }
    us = {name: 1e6 * seconds / len(timed) for name, seconds in median_times(implementations).items()}
    detail = (
        f"memory: reading and writing one number in each of the {n_lines[0] / ROUNDS / len(timed):.0f} cache lines of "
        f"a triplet takes {us['touch']:.1f} µs, learning the triplet {us['ours']:.1f} µs"
    )
    yield Figure("OASIS, sparse, float64: memory access alone", us["touch"] / us["ours"], "", detail)

    # A fold is one GEMM and two SYRK, equivalent to two matrix products; dense rows need three more per triplet.
    for kind, (X, y), n_products in (("sparse", zipf_rows(), 2), ("dense", dense_rows(), 5)):
        triplets = triplets_of(y, N_WARM + 1000)
        model, n = am.FactoredAROMA().fit_triplets(triplets[:N_WARM], X), X.shape[1]
        a, b, c = np.ones((64, n)), np.ones((64, n)), np.zeros((n, n), order="F")
        implementations = {
            "BLAS": (lambda: None, lambda _, a=a, b=b, c=c: dgemm(1.0, a.T, b, 1.0, c, overwrite_c=True)),
            "ours": (model.copy, lambda started, t=triplets[N_WARM:], X=X: started.partial_fit_triplets(t, X)),
        }
        times = median_times(implementations)
        least, ours = 1e6 * n_products * times["BLAS"] / 64, 1e6 * times["ours"] / 1000
        detail = (
            f"arithmetic: {n_products} matrix products at the speed of BLAS, "
            f"{64 * 2e-9 * n * n / times['BLAS']:.0f} GFLOP/s, take {least:.0f} µs per triplet, "
            f"learning it {ours:.0f} µs"
        )
        yield Figure(f"f-AROMA, {kind}, float64: matrix products alone", least / ours, "", detail)


def news(loops):
    found = newsgroups()
    if found is None:
        yield Figure("20 Newsgroups", None, "", "not measured: AROMATCH_DATA has no 20news.jsonl.xz")
        return
    yield from against_loops("20 Newsgroups, 1000 terms", *found, loops, {})


def width(loops):
    """Compare sparse d-AROMA at different widths: time should depend on the non-zeros, not on the width."""

    def formatted(times):
        return ", ".join(f"{n} features {1e6 * seconds / 5000:.1f} µs" for n, seconds in times.items())

    problems = {}
    for n_features in (1000, 8000):
        X, y = zipf_rows(n_features)
        triplets = triplets_of(y, 20_000)
        problems[n_features] = am.DiagonalAROMA().fit_triplets(triplets[:15_000], X), X, triplets[15_000:]
    times = median_times(
        {n: (model.copy, lambda m, X=X, t=t: m.partial_fit_triplets(t, X)) for n, (model, X, t) in problems.items()}
    )
    yield Figure("d-AROMA, sparse: 8,000 features against 1,000", times[8000] / times[1000], "< 3", formatted(times))
    times = median_times({n: (model.W_.copy, touching(loops, X, t)[0]) for n, (model, X, t) in problems.items()})
    detail = f"memory: one number in each cache line of W; {formatted(times)}"
    yield Figure(
        "d-AROMA, sparse: memory access alone, 8,000 features against 1,000", times[8000] / times[1000], "", detail
    )


def single(loops):
    """Measure the overhead of `learn_one` over its kernel, which is timed within the same calls."""
    X_sparse, y = zipf_rows()
    X_dense, _ = dense_rows()
    triplets = triplets_of(y, 3000)
    for name, X in (("CSR", X_sparse), ("dense", X_dense)):
        rows = [(X[i], X[j], X[k]) for i, j, k in triplets[2000:]]
        for learner, (model, _, _) in LEARNERS.items():
            model = clone(model).set_params(dtype="float64").fit_triplets(triplets[:2000], X)
            total, in_kernel = [], []
            for _ in range(ROUNDS):
                started, seconds = model.copy(), [0.0]
                learn = started._learn

                def timed(block, learn=learn, seconds=seconds):
                    start = time.perf_counter()
                    learned = learn(block)
                    seconds[0] += time.perf_counter() - start
                    return learned

                started._learn = timed
                start = time.perf_counter()
                for q, good, bad in rows:
                    started.learn_one(q, good, bad)
                total.append(time.perf_counter() - start)
                in_kernel.append(seconds[0])
            overhead = 1e6 * statistics.median(a - k for a, k in zip(total, in_kernel, strict=True)) / len(rows)
            detail = f"{overhead:.0f} µs, of {1e6 * statistics.median(total) / len(rows):.0f} µs per judgement"
            yield Figure(f"learn_one, {learner}, {name}: overhead over the kernel", None, "< 30 µs", detail)


def threads(loops):
    """Compare two threads of BLAS with one, in separate processes."""
    code = (
        "import sys, time; import aromatch as am; from benchmarks.shared.workloads import *\n"
        "X, y = zipf_rows() if sys.argv[1] == 'sparse' else dense_rows()\n"
        "t = triplets_of(y, 4000); model = am.FactoredAROMA().fit_triplets(t[:1000], X)\n"
        "start = time.perf_counter(); model.partial_fit_triplets(t[1000:], X); print(time.perf_counter() - start)"
    )
    for kind in ("sparse", "dense"):
        times = {1: [], 2: []}
        for _ in range(ROUNDS):
            for n, found in times.items():
                environment = {**os.environ, "OMP_NUM_THREADS": str(n), "OPENBLAS_NUM_THREADS": str(n)}
                command = [sys.executable, "-c", code, kind]
                found.append(float(subprocess.check_output(command, env=environment, cwd=ROOT)))
        one, two = (statistics.median(found) for found in times.values())
        yield Figure(f"f-AROMA, {kind}: two threads against one", one / two, "", "only folds use BLAS")


def memory(loops):
    """Measure the peak resident memory of training without the data, relative to the size of the model."""
    if not Path("/proc/self/status").exists():
        yield Figure("peak memory", None, "", "not measured: this system has no /proc")
        return
    code = (
        "import re, sys; import numpy as np; import aromatch as am\n"
        "learner, m = getattr(am, sys.argv[1]), int(sys.argv[2])\n"
        # Not ru_maxrss: a new process inherits that of its parent.
        "peak = lambda: 1024 * int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read()).group(1))\n"
        "X = np.eye(3, m)\n"
        "learner().fit_triplets([[0, 1, 2]], X[:, :50]).similarity(X[:, :50]); before = peak()\n"
        "model = learner().fit_triplets(np.tile([[0, 1, 2], [1, 0, 2]], (200, 1)), X)\n"
        "size = sum(a.nbytes for n, a in model._state.items() if n in ('W', 'cells', 'Omega', 'Lambda'))\n"
        "print((peak() - before) / size, size)"
    )
    for learner, m in (("DiagonalAROMA", 6000), ("FactoredAROMA", 5000), ("OASIS", 8500)):
        command = [sys.executable, "-c", code, learner, str(m)]
        ratio, size = map(float, subprocess.check_output(command).split())
        yield Figure(
            f"{learner}: peak memory relative to the model", ratio, "< 1.3", f"model of {size / 2**20:.0f} MiB"
        )


def wide(loops):
    """Compare touched with dense cells; then learn a million triplets with a width that only touched cells allow."""
    for n_features in (1000, 8000):
        X, y = zipf_rows(n_features)
        triplets = triplets_of(y, 20_000)
        for name in ("d-AROMA", "OASIS"):
            models = {
                cells: clone(LEARNERS[name][0])
                .set_params(dtype="float64", cells=cells)
                .fit_triplets(triplets[:15_000], X)
                for cells in ("dense", "touched")
            }
            times = median_times(
                {
                    c: (m.copy, lambda m, X=X, t=triplets: m.partial_fit_triplets(t[15_000:], X))
                    for c, m in models.items()
                }
            )
            detail = ", ".join(f"{cells} {1e6 * seconds / 5000:.1f} µs" for cells, seconds in times.items())
            title = f"{name}, sparse, {n_features} features: touched cells against dense"
            yield Figure(title, times["dense"] / times["touched"], "", detail)
    if not Path("/proc/self/status").exists():
        yield Figure("100,000 features", None, "", "not measured: this system has no /proc")
        return
    for learner in ("DiagonalAROMA", "OASIS"):
        command = [sys.executable, "-m", "benchmarks.speed.wide", learner]
        detail = subprocess.check_output(command, text=True, cwd=ROOT)
        yield Figure(f"{learner}: 100,000 features, 1,000,000 triplets", None, "", detail)


def syncs(loops):
    """Measure what the syncs of a file and its folder, which make it survive a power failure, cost a save."""

    class Unsynced(durable.System):
        def sync(self, descriptor):
            pass

    def using(system):
        def prepare():
            durable.system = system
            return path

        return prepare, model.save

    for title, width in (("100 KB", 79), ("100 MB", 2_500)):
        model = am.DiagonalAROMA().fit_triplets([[0, 1, 2]], np.eye(3, width))
        with tempfile.TemporaryDirectory(dir=ROOT) as folder:
            path = Path(folder, "model")
            model.save(path)
            size = path.stat().st_size
            try:
                seconds = median_times({"synced": using(durable.System()), "unsynced": using(Unsynced())})
            finally:
                durable.system = durable.System()
        ms = {name: 1000 * value for name, value in seconds.items()}
        detail = (
            f"file of {size / 1e6:.3g} MB: {ms['synced']:.3g} ms with the syncs, {ms['unsynced']:.3g} ms without; "
            "on the disk of the repository"
        )
        yield Figure(f"save, {title}: with syncs against without", ms["synced"] / ms["unsynced"], "", detail)


def start(loops):
    """Compare the processor time of starting with that of `import numpy`."""

    def cpu(command):
        times = []
        for _ in range(2 * ROUNDS):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return statistics.median(times)

    numpy_time = cpu([sys.executable, "-c", "import numpy"])
    for title, command in (
        ("aromatch --help", [sys.executable, "-m", "aromatch", "--help"]),
        ("import aromatch", [sys.executable, "-c", "import aromatch"]),
    ):
        seconds = cpu(command)
        detail = f"{1000 * seconds:.0f} ms of processor time against {1000 * numpy_time:.0f} ms"
        yield Figure(f"{title} against import numpy", seconds / numpy_time, "< 3", detail)


BENCHMARKS = {
    "sparse": sparse,
    "dense": dense,
    "news": news,
    "limits": limits,
    "width": width,
    "learn_one": single,
    "threads": threads,
    "memory": memory,
    "wide": wide,
    "syncs": syncs,
    "start": start,
}

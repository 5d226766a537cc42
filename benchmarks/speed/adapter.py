"""Time of a search and a judgement of `Adapter`, by the number of lists judged before.

    make adapter-speed                                   dense and CSR, after 100, 5,000 and 50,000 lists
    python -m benchmarks.speed.adapter --lists 100 5000  after 100 and 5,000 lists

A search multiplies the query with all objects twice and with all judged queries once. The last column is the time of
search and judgement relative to these products alone, measured in the same run; it should not grow.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from scipy import sparse

import aromatch as am
from aromatch._utils.journal import Journal

N_OBJECTS, N_CLASSES, K, N_TIMED = 10_000, 77, 10, 40


def dense_rows(generator, y):
    """Return rows like sentence embeddings: classes around centres, 384 features."""
    return generator.normal(size=(N_CLASSES, 384))[y] + generator.normal(size=(len(y), 384))


def sparse_rows(generator, y):
    """Return bags of 60 words out of 1,000, half of them from the distribution of a class."""
    of_class = generator.dirichlet(np.full(1_000, 0.05), size=N_CLASSES)
    words = [np.bincount(generator.choice(1_000, 60, p=0.5 * of_class[c] + 0.0005), minlength=1_000) for c in y]
    return sparse.csr_array(np.log1p(np.array(words)))


def query_near(generator, X, row):
    """Return a perturbed row as a query."""
    query = X[[row]].copy()
    values = query.data if sparse.issparse(query) else query
    values *= 1 + 0.01 * generator.random(values.shape)
    return query


def judge_without_searching(adapter, generator, X, y):
    """Add a judged list without searching for neighbouring judgements, which takes most of the time."""
    row = int(generator.integers(N_OBJECTS))
    ids = np.unique(np.append(generator.choice(np.flatnonzero(y == y[row]), 6), generator.integers(N_OBJECTS, size=4)))
    is_good, nearness = y[ids] == y[row], 0.5 + 0.1 * generator.random()
    query = adapter._as_query(query_near(generator, X, row))
    adapter._feedback.add(query, -1, nearness, ids[is_good], ids[~is_good], Journal())
    adapter._monitor.add_list()


def timed(adapter, generator, X, y):
    """Return milliseconds of a search, of the judgement after it, and of the products alone."""
    seconds = []
    for _ in range(N_TIMED):
        row = int(generator.integers(N_OBJECTS))
        query, begin = query_near(generator, X, row), time.perf_counter()
        ids = adapter.search(query, K).ids[0]
        searched, is_good = time.perf_counter(), y[ids] == y[row]
        adapter.judge(query, ids[is_good], ids[~is_good])
        judged, vector = time.perf_counter(), adapter.transform(query).T
        blocks = [*adapter._store.blocks(), *adapter._store.blocks(), *adapter._feedback.queries.blocks()]
        scan = time.perf_counter()
        for block in blocks:
            block.rows @ vector
        seconds.append((searched - begin, judged - searched, time.perf_counter() - scan))
    return 1e3 * np.median(seconds, axis=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lists", type=int, nargs="+", default=[100, 5_000, 50_000], help="numbers of judged lists")
    arguments = parser.parse_args()
    print("objects  lists  search ms  judge ms  products ms  ratio")
    for name, rows in (("dense", dense_rows), ("CSR", sparse_rows)):
        generator = np.random.default_rng(0)
        y = generator.integers(N_CLASSES, size=N_OBJECTS)
        X = rows(generator, y)
        adapter = am.Adapter(X, random_state=0)
        for n in sorted(arguments.lists):
            while len(adapter._feedback) < n:
                judge_without_searching(adapter, generator, X, y)
            search, judge, scan = timed(adapter, generator, X, y)
            print(
                f"{name:7} {n:6,} {search:10.2f} {judge:9.2f} {scan:12.2f} {(search + judge) / scan:6.1f}", flush=True
            )


if __name__ == "__main__":
    main()

"""Strategies of sampling triplets from labels, compared on validation data.

Uniformly sampled triplets are mostly easy, because the other object is far from the query. Hard negatives have a rank
within a window among the objects of other classes, by the cosine to the query.
"""

from __future__ import annotations

import numpy as np
from sklearn.preprocessing import normalize
from sklearn.utils import gen_batches

import aromatch as am
from benchmarks.quality.methods import METHODS, dense

N_TRIPLETS = 20_000
N_SPLITS = 3
_BATCH = 512
# Names of methods, each with the best of its settings.
LEARNERS = ("OASIS", "f-AROMA", "MomentAROMA")
COLLECTIONS = ("banking77",)


def uniform(X, y, generator):
    return am.triplets.from_labels(y, N_TRIPLETS, random_state=generator)


def balanced(X, y, generator):
    """Sample classes before rows, for queries and for negatives."""
    classes, counts = np.unique(y, return_inverse=True, return_counts=True)[1:]
    order, starts = np.argsort(classes, kind="stable"), np.cumsum(counts) - counts
    of_query = generator.choice(np.flatnonzero(counts > 1), N_TRIPLETS)
    index = generator.integers(0, counts[of_query])
    other_index = generator.integers(0, counts[of_query] - 1)
    other_index += other_index >= index
    of_other = (of_query + generator.integers(1, len(counts), N_TRIPLETS)) % len(counts)
    rows = [starts[of_query] + index, starts[of_query] + other_index]
    return order[np.column_stack([*rows, starts[of_other] + generator.integers(0, counts[of_other])])]


def harder(first, last, share=1.0):
    """Return a sampler in which a share of the negatives has ranks from `first` up to `last` (excluded)."""

    def sample(X, y, generator):
        triplets = uniform(X, y, generator)
        chosen = np.flatnonzero(generator.random(len(triplets)) < share)
        rank = generator.integers(first, last, size=len(chosen))
        X, (classes, counts) = normalize(X), np.unique(y, return_inverse=True, return_counts=True)[1:]
        if len(y) - counts.max() < last:
            raise ValueError(f"last={last}: expected at most {len(y) - counts.max()}, the objects of other classes")
        queries, index = np.unique(triplets[chosen, 0], return_inverse=True)
        for batch in gen_batches(len(queries), _BATCH):
            some = queries[batch]
            scores = dense(X[some] @ X.T)
            scores[classes[some][:, np.newaxis] == classes] = -np.inf
            near = np.argpartition(-scores, last - 1, axis=1)[:, :last]
            near = np.take_along_axis(near, np.argsort(-np.take_along_axis(scores, near, axis=1), axis=1), axis=1)
            here = (index >= batch.start) & (index < batch.stop)
            triplets[chosen[here], 2] = near[index[here] - batch.start, rank[here]]
        return triplets

    return sample


SAMPLERS = {
    "uniform": uniform,
    "balanced classes": balanced,
    "ranks 1 to 20": harder(0, 20),
    "ranks 1 to 200": harder(0, 200),
    "ranks 21 to 200": harder(20, 200),
    "ranks 201 to 1,000": harder(200, 1_000),
    "half ranks 1 to 200": harder(0, 200, share=0.5),
}


def learners():
    """Return the methods to compare samplers with."""
    return [method for method in METHODS if method.name in LEARNERS]

"""Which triplets to draw from labels: ways that benchmarks/quality.py tries on validation parts.

Uniform draws are mostly easy: the other object is far from the query anyway. Harder ones have a rank within a window
among the objects of other classes, by the cosine to the query, so that none is of the query's own class.
"""

from __future__ import annotations

import numpy as np
from sklearn.preprocessing import normalize

from aromatch.triplets import LabelSampler
from benchmarks.quality.methods import METHODS, dense

N_TRIPLETS = 20_000
N_SPLITS = 3
_QUERIES_AT_ONCE = 512
# What learns from them, each with all of its settings, of which the best counts.
LEARNERS = ("OASIS", "f-AROMA", "MomentAROMA", "MomentAROMA refined")
COLLECTIONS = ("banking77",)


def uniform(X, y, generator):
    return LabelSampler(y).draw(N_TRIPLETS, generator)


def balanced(X, y, generator):
    """Draw classes before rows, those of the queries and of the other objects."""
    classes, counts = np.unique(y, return_inverse=True, return_counts=True)[1:]
    order, starts = np.argsort(classes, kind="stable"), np.cumsum(counts) - counts
    of_query = generator.choice(np.flatnonzero(counts > 1), N_TRIPLETS)
    place = generator.integers(0, counts[of_query])
    other_place = generator.integers(0, counts[of_query] - 1)
    other_place += other_place >= place
    of_other = (of_query + generator.integers(1, len(counts), N_TRIPLETS)) % len(counts)
    rows = [starts[of_query] + place, starts[of_query] + other_place]
    return order[np.column_stack([*rows, starts[of_other] + generator.integers(0, counts[of_other])])]


def harder(first, last, share=1.0):
    """Give a sampler whose other objects have a rank from `first` to before `last`, a share of them."""

    def draw(X, y, generator):
        triplets = uniform(X, y, generator)
        chosen = np.flatnonzero(generator.random(len(triplets)) < share)
        rank = generator.integers(first, last, size=len(chosen))
        X, (classes, counts) = normalize(X), np.unique(y, return_inverse=True, return_counts=True)[1:]
        if len(y) - counts.max() < last:
            raise ValueError(f"a window up to rank {last} needs as many objects of other classes")
        queries, place = np.unique(triplets[chosen, 0], return_inverse=True)
        for start in range(0, len(queries), _QUERIES_AT_ONCE):
            some = queries[start : start + _QUERIES_AT_ONCE]
            scores = dense(X[some] @ X.T)
            scores[classes[some][:, np.newaxis] == classes] = -np.inf
            near = np.argpartition(-scores, last - 1, axis=1)[:, :last]
            near = np.take_along_axis(near, np.argsort(-np.take_along_axis(scores, near, axis=1), axis=1), axis=1)
            here = (place >= start) & (place < start + len(some))
            triplets[chosen[here], 2] = near[place[here] - start, rank[here]]
        return triplets

    return draw


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
    """Give the methods that are tried."""
    return [method for method in METHODS if method.name in LEARNERS]

"""Exploration in a stream of searches with clicks, ranked by a model that learns from them.

A query of BANKING77 is searched and ten objects are shown. A simulated user examines them from the top, continues after
each with probability 0.85, and clicks the first relevant one. f-AROMA learns that the click is preferred to up to three
results above it (with a tenth of the weight) and to five random objects of the collection. Results are ranked by the
mean score (greedy), by a sample of the learned distribution (Thompson) or by the mean plus standard deviations (UCB).
The reward of a list is its share of relevant objects. The model starts from the cosine or from zero.
"""

from __future__ import annotations

import numpy as np

import aromatch as am
from benchmarks.shared.collections import SEED, split_of
from benchmarks.shared.kept_cells import named

SEEDS = range(10)
N_LISTS = 1_000
N_OBJECTS = 3_000
K = 10
P_CONTINUE = 0.85
N_SKIPPED, SKIPPED_WEIGHT, N_RANDOM = 3, 0.1, 5
STARTS = {"from the cosine": 4.0, "from zero": "zero"}
POLICIES = {
    "greedy": {},
    "Thompson, scale 0.03": {"explore": "thompson", "scale": 0.03},
    "Thompson, scale 0.1": {"explore": "thompson", "scale": 0.1},
    "Thompson": {"explore": "thompson"},
    "UCB": {"explore": "ucb"},
}


def compute(start, policy, seed, n_lists):
    """Run one stream; return the reward of every list."""
    split = split_of("banking77", 0)
    generator = np.random.default_rng([SEED, seed])  # the same queries, objects and users for all policies
    rows = generator.permutation(len(split.y))[: N_OBJECTS + n_lists]
    objects, queries = np.split(rows, [N_OBJECTS])
    X, y, query_labels = split.X, np.asarray(split.y)[objects], np.asarray(split.y)[queries]
    P = np.ascontiguousarray(X[objects])
    model = am.FactoredAROMA(1.0, init=STARTS[start]).fit_triplets(np.empty((0, 3), dtype=int), P)
    index = am.Index(model, P)
    rewards = []
    for row, label in zip(queries, query_labels, strict=True):
        query = X[[row]]
        n_examined, sampled = generator.geometric(1 - P_CONTINUE), generator.integers(N_OBJECTS, size=N_RANDOM)
        shown = index.search(query, K, **POLICIES[policy], random_state=generator.integers(2**31)).ids[0]
        is_relevant = y[shown] == label
        rewards.append(float(is_relevant.mean()))
        clicks = np.flatnonzero(is_relevant[:n_examined])
        if len(clicks):
            clicked, skipped = shown[clicks[0]], shown[: clicks[0]][-N_SKIPPED:]
            sampled = sampled[sampled != clicked]
            others = np.concatenate([skipped, sampled])
            triplets = np.column_stack([np.zeros_like(others), np.full_like(others, clicked), others])
            weights = np.repeat([SKIPPED_WEIGHT, 1.0], [len(skipped), len(sampled)])
            model.partial_fit_triplets(triplets, query, P, sample_weight=weights)
    return {"start": start, "policy": policy, "seed": seed, "rewards": rewards}


def cell_name(start, policy, seed, n_lists):
    """Return the key of a cell, a hash of its settings."""
    settings = [am.__version__, SEED, N_OBJECTS, K, P_CONTINUE, N_SKIPPED, SKIPPED_WEIGHT, N_RANDOM, STARTS[start]]
    return named(*settings, start, policy, seed, n_lists)

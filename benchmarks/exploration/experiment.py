"""Whether exploring pays: searches with clicks, one after another, ranked by what a model has learned from them so far.

    make exploration                              everything; writes docs/exploration.md and its figure
    python -m benchmarks.exploration --lists 200  shorter; writes nothing

A query of BANKING77 comes, ten objects are shown, and somebody looks at them from the top: at each place they go on
with a chance of 0.85, and click the first good one that they come to. The model, f-AROMA, learns that the click is
better than up to three results that were passed over (with a tenth of the weight) and than five objects of the whole
collection. Ranks are by the mean score (greedy), by a draw from the learned distribution (Thompson) or by the mean plus
standard deviations (UCB). The reward of a list is the share of good ones in it. It begins from the cosine, as anybody
with embeddings would, or from nothing. Finished cells are kept in docs/results/exploration.json: an interrupted run
goes on.
"""

from __future__ import annotations

import numpy as np

import aromatch as am
from benchmarks.shared.collections import RESULTS, SEED, split_of
from benchmarks.shared.kept_cells import named

KEPT = RESULTS / "exploration.json"
SEEDS = range(10)
N_LISTS = 1_000
N_OBJECTS = 3_000
K = 10
GOES_ON = 0.85
N_PASSED, WEIGHT_PASSED, N_DRAWN = 3, 0.1, 5
STARTS = {"from the cosine": 4.0, "from nothing": "zero"}
POLICIES = {
    "greedy": {},
    "Thompson, width 0.03": {"explore": "thompson", "width": 0.03},
    "Thompson, width 0.1": {"explore": "thompson", "width": 0.1},
    "Thompson": {"explore": "thompson"},
    "UCB": {"explore": "ucb"},
}


def compute(start, policy, seed, n_lists):
    """Run one stream; give the reward of every list."""
    split = split_of("banking77", 0)
    generator = np.random.default_rng([SEED, seed])  # the same for all policies: queries, objects, patience
    rows = generator.permutation(len(split.y))[: N_OBJECTS + n_lists]
    objects, queries = np.split(rows, [N_OBJECTS])
    X, y, good_class = split.X, np.asarray(split.y)[objects], np.asarray(split.y)[queries]
    P = np.ascontiguousarray(X[objects])
    model = am.FactoredAROMA(1.0, init=STARTS[start]).fit_triplets(np.empty((0, 3), dtype=int), P)
    index = am.search.Index(model, P)
    rewards = []
    for row, wanted in zip(queries, good_class, strict=True):
        query = X[[row]]
        looks, drawn, noise = generator.geometric(1 - GOES_ON), generator.integers(N_OBJECTS, size=N_DRAWN), generator
        shown = index.search(query, K, **POLICIES[policy], random_state=noise.integers(2**31)).ids[0]
        is_good = y[shown] == wanted
        rewards.append(float(is_good.mean()))
        clicks = np.flatnonzero(is_good[:looks])
        if len(clicks):
            clicked, passed = shown[clicks[0]], shown[: clicks[0]][-N_PASSED:]
            drawn = drawn[drawn != clicked]
            others = np.concatenate([passed, drawn])
            triplets = np.column_stack([np.zeros_like(others), np.full_like(others, clicked), others])
            weights = np.repeat([WEIGHT_PASSED, 1.0], [len(passed), len(drawn)])
            model.partial_fit_triplets(triplets, query, P, sample_weight=weights)
    return {"start": start, "policy": policy, "seed": seed, "rewards": rewards}


def cell_name(start, policy, seed, n_lists):
    """Name a cell by its settings."""
    settings = [am.__version__, SEED, N_OBJECTS, K, GOES_ON, N_PASSED, WEIGHT_PASSED, N_DRAWN, STARTS[start]]
    settings += [start, POLICIES[policy], seed, n_lists]
    return named(*settings)

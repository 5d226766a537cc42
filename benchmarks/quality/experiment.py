"""Ranking quality of similarities learned from triplets, against the strongest alternatives, all tuned alike.

On five splits of each collection, every method chooses among at most six settings by precision at 10 on a validation
part of the training part, from 50,000 triplets. With the chosen setting it is trained on the whole training part, from
increasing numbers of triplets, and evaluated on the test part. Strategies of sampling triplets are compared on
validation data. Finally, training with the chosen settings on the first split is timed, one method after another on one
thread.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

import aromatch as am
from aromatch.evaluation import evaluate_retrieval
from aromatch.paper.methods import sample_triplets
from benchmarks.quality import sampling
from benchmarks.quality.methods import BATCH, METHODS, N_AVERAGED, N_COMPONENTS, N_TO_CHOOSE
from benchmarks.quality.page import MEASURES
from benchmarks.quality.sampling import N_TRIPLETS, SAMPLERS, learners
from benchmarks.shared.collections import COLLECTIONS, RESULTS, SEED, split_of
from benchmarks.shared.kept_cells import computed, named

STORED = RESULTS / "quality.json"
N_SPLITS = 5
VALIDATION_SHARE = 0.2


# -- one cell ---------------------------------------------------------------------------------------------------------


def evaluated(model, split):
    """Return the measures on the test part."""
    report = evaluate_retrieval(model, split.X_test, split.y_test)
    return dict(zip(MEASURES, (report.precision[1], report.precision[10], report.mean_average_precision), strict=True))


def trained(method, split, triplets, setting):
    """Return the fitted model, and the seconds until it can score."""
    begun = perf_counter()
    model = method.learn(split.X, split.y, triplets, **setting)
    model.similarity(split.X_test[:1], split.X_test[:1])  # includes what is computed on first use
    return model, perf_counter() - begun


def compute(name, number, method_name):
    """Choose a setting on the validation part, train with it and evaluate on the test part."""
    method = next(method for method in METHODS if method.name == method_name)
    split = split_of(name, number)
    inside = split.inside(VALIDATION_SHARE, SEED)
    tried = []
    if len(method.settings) > 1:
        triplets = sample_triplets(inside.y, N_TO_CHOOSE, SEED, number)
        for setting in method.settings:
            tried.append({"setting": setting, **evaluated(trained(method, inside, triplets, setting)[0], inside)})
    best = max(tried, key=lambda one: one["P@10"])["setting"] if tried else method.settings[0]
    most = COLLECTIONS[name].n_triplets[-1]
    triplets = sample_triplets(split.y, most, SEED, number)
    found = []
    for n in COLLECTIONS[name].n_triplets if method.trained_on == "triplets" else (0,):
        found.append({"n_triplets": n, **evaluated(trained(method, split, triplets[:n], best)[0], split)})
    return {
        "collection": name,
        "split": number,
        "method": method_name,
        "setting": best,
        "tried": tried,
        "test_ratio": split.test_ratio,
        "found": found,
    }


def compute_times(name, chosen):
    """Train again on the first split; return the seconds of each method for every number of triplets."""
    split = split_of(name, 0)
    triplets = sample_triplets(split.y, COLLECTIONS[name].n_triplets[-1], SEED, 0)
    seconds = {}
    for method in METHODS:
        if method.name in chosen:
            at = COLLECTIONS[name].n_triplets if method.trained_on == "triplets" else (0,)
            if "steps" in chosen[method.name]:  # warm-up: torch initializes itself in the first step
                trained(method, split, triplets, {**chosen[method.name], "steps": 1})
            seconds[method.name] = [trained(method, split, triplets[:n], chosen[method.name])[1] for n in at]
    return {"collection": name, "seconds": seconds}


def compute_sampling(name, number, sampler):
    """Return the best precision at 10 of each learner on validation rows, trained on the triplets of a sampler."""
    inside = split_of(name, number).inside(VALIDATION_SHARE, SEED)
    triplets = SAMPLERS[sampler](inside.X, inside.y, np.random.default_rng([SEED, number]))
    found = {}
    for method in learners():
        models = (method.learn(inside.X, inside.y, triplets, **setting) for setting in method.settings)
        found[method.name] = max(evaluated(model, inside)["P@10"] for model in models)
    return {"collection": name, "split": number, "sampler": sampler, "found": found}


def cell_name(name, number, method):
    """Return the key of a cell of the comparison of methods."""
    settings = [am.__version__, SEED, N_TO_CHOOSE, VALIDATION_SHARE, COLLECTIONS[name].n_triplets, name, number]
    return named(*settings, N_COMPONENTS, BATCH, N_AVERAGED, method.name, method.settings)


def sampling_name(name, number, sampler):
    """Return the key of a cell of the comparison of samplers."""
    tried = [[method.name, method.settings] for method in learners()]
    return named(am.__version__, SEED, VALIDATION_SHARE, N_TRIPLETS, name, number, sampler, tried)


def times_name(name, chosen):
    """Return the key of a cell of training times."""
    return named(am.__version__, SEED, COLLECTIONS[name].n_triplets, name, N_COMPONENTS, BATCH, chosen)


def run(collections, methods, samplers, n_jobs):
    """Return the cells of methods and of samplers, computing those that are not stored."""
    cells = {
        cell_name(name, number, method): (compute, name, number, method.name)
        for name in collections
        for number in range(N_SPLITS)
        for method in methods
        if name in method.only or not method.only
    }
    cells |= {
        sampling_name(name, number, sampler): (compute_sampling, name, number, sampler)
        for name in collections
        if name in sampling.COLLECTIONS
        for number in range(sampling.N_SPLITS)
        for sampler in samplers
    }
    results = computed(cells, n_jobs, "quality: cells", STORED)
    return [r for r in results if "method" in r], [r for r in results if "sampler" in r]


def run_times(cells):
    """Return the training times of the settings chosen on the first split, measured in one process."""
    chosen = {}
    for cell in cells:
        if cell["split"] == 0:
            chosen.setdefault(cell["collection"], {})[cell["method"]] = cell["setting"]
    return computed(
        {times_name(name, settings): (compute_times, name, settings) for name, settings in chosen.items()},
        1,
        "quality: seconds",
        STORED,
    )

"""Whether probabilities come true: of all comparisons that get 80 %, about 80 % should.

    make calibration                                      everything; writes docs/calibration.md and its figure
    python -m benchmarks.calibration --only banking77     collections whose name holds "banking77"; writes nothing

Three learners with a distribution, each as it comes, on three collections. Comparisons come from labels: an object of
the query's class is better than one of another. What is told of was used neither to learn nor to calibrate.

- New rows: learned from four fifths of the training part, calibrated on 8,192 comparisons of the last fifth, held
  against comparisons of the test part. Queries and objects are all new.
- A stream: every query comes once, with eight comparisons between objects that stay the same. It is predicted before
  it is learned, and that is all that calibrates. Then queries of the test part are compared with these objects.
- A stream in which one judgement in ten is wrong, as are those that it is held against.

Finished cells are kept in docs/results/calibration.json, so that an interrupted run goes on.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

import aromatch as am
from aromatch.evaluation import reliability
from benchmarks.shared.collections import RESULTS, SEED, split_of
from benchmarks.shared.kept_cells import named

KEPT = RESULTS / "calibration.json"
NAMES = ("20newsgroups", "banking77", "stdlib")
LEARNERS = {
    "d-AROMA": lambda: am.DiagonalAROMA(1.0, init="identity"),
    "f-AROMA": lambda: am.FactoredAROMA(1.0, init="identity"),
    "MomentAROMA": lambda: am.MomentAROMA("auto"),
}
WAYS = {"new rows": 0.0, "a stream": 0.0, "a stream, a tenth wrong": 0.1}
SPLITS = range(3)
N_LEARNED, N_CALIBRATED, N_TOLD, A_QUERY = 50_000, 8_192, 40_000, 8
# Queries of a stream that are predicted together before they are learned.
AT_ONCE = 256
# Of the deciles of predictions: no difference to what came true may be larger.
BOUND = 0.03


def compute(name, learner, way, number):
    """Learn, calibrate, and tell how often what was told came true."""
    split = split_of(name, number)
    generator = np.random.default_rng([SEED, number])
    if way == "new rows":
        part = split.inside(0.2, SEED)
        triplets = am.triplets.from_labels(part.y, N_LEARNED, random_state=generator)
        model = LEARNERS[learner]().fit_triplets(triplets, part.X)
        model.calibrate(am.triplets.from_labels(part.y_test, N_CALIBRATED, random_state=generator), part.X_test)
        told = am.triplets.from_labels(split.y_test, N_TOLD, random_state=generator), split.X_test, split.X_test
    else:
        queries, objects = np.array_split(generator.permutation(len(split.y)), 2)
        P, of_objects = split.X[objects], np.asarray(split.y)[objects]

        def judged(labels, n):
            triplets = am.triplets.from_labels(labels, n, random_state=generator, y_objects=of_objects)
            triplets = triplets[np.argsort(triplets[:, 0], kind="stable")]
            is_wrong = generator.random(len(triplets)) < WAYS[way]
            triplets[is_wrong] = triplets[is_wrong][:, [0, 2, 1]]
            return triplets

        Q = split.X[queries]
        triplets = judged(np.asarray(split.y)[queries], A_QUERY * len(queries))
        model = LEARNERS[learner]()
        for first in range(0, len(queries), AT_ONCE):
            piece = triplets[(triplets[:, 0] >= first) & (triplets[:, 0] < first + AT_ONCE)]
            if first:
                model.calibrate(piece, Q, P)
            model.partial_fit_triplets(piece, Q, P)
        told = judged(split.y_test, N_TOLD), split.X_test, P
    margins, found = model.margins(*told), model.preference_proba(*told)
    is_told = margins != 0
    right, sure = margins[is_told] > 0, np.maximum(found, 1 - found)[is_told]
    parts = reliability(found)
    return {
        "collection": name,
        "learner": learner,
        "way": way,
        "split": number,
        "right": float(right.mean()),
        "gap": parts.largest_gap,
        "raw_gap": reliability(norm.cdf(margins / np.maximum(model.margin_std(*told), 1e-300))).largest_gap,
        "by_margin": float(roc_auc_score(right, np.abs(margins[is_told]))),
        "by_probability": float(roc_auc_score(right, sure)),
        "predicted": parts.predicted.tolist(),
        "observed": parts.observed.tolist(),
        "curve": model.calibration_._asdict(),
    }


def cell_name(*cell):
    """Name a cell by its settings."""
    settings = [am.__version__, SEED, N_LEARNED, N_CALIBRATED, N_TOLD, A_QUERY, AT_ONCE, WAYS[cell[2]], *cell]
    return named(*settings)

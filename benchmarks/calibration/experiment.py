"""Calibration of preference probabilities: of all comparisons predicted with 80 %, about 80 % should be correct.

Three learners with default settings on three collections. Comparisons are sampled from labels: an object of the query's
class is preferred to one of another class. Test comparisons are used neither for training nor for calibration.

- Test rows: training on four fifths of the training part, calibration on 8,192 comparisons of the last fifth, test
  comparisons from the test part, whose queries and objects are all unseen.
- Stream: every query occurs once, with eight comparisons between fixed objects. It is predicted before it is learned,
  and these predictions calibrate the model. Test queries are then compared with the same objects.
- Noisy stream: the same with 10 % of the judgements reversed, in training and in testing.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import norm
from sklearn.metrics import roc_auc_score
from sklearn.utils import gen_batches

import aromatch as am
from aromatch.evaluation import reliability
from benchmarks.shared.collections import SEED, split_of
from benchmarks.shared.kept_cells import named

NAMES = ("20newsgroups", "banking77", "stdlib")
LEARNERS = {
    "d-AROMA": lambda: am.DiagonalAROMA(1.0, init="identity"),
    "f-AROMA": lambda: am.FactoredAROMA(1.0, init="identity"),
    "MomentAROMA": lambda: am.MomentAROMA("auto"),
}
# Protocols, and the share of reversed judgements.
PROTOCOLS = {"test rows": 0.0, "stream": 0.0, "noisy stream": 0.1}
SPLITS = range(3)
N_TRAIN, N_CALIBRATION, N_TEST, N_PER_QUERY = 50_000, 8_192, 40_000, 8
# Queries of a stream that are predicted together before they are learned.
BATCH = 256
# Largest acceptable gap between predicted and observed frequencies of a bin.
MAX_GAP = 0.03


def compute(name, learner, protocol, number):
    """Train and calibrate; return predicted and observed frequencies of test comparisons."""
    split = split_of(name, number)
    generator = np.random.default_rng([SEED, number])
    if protocol == "test rows":
        part = split.inside(0.2, SEED)
        triplets = am.triplets.from_labels(part.y, N_TRAIN, random_state=generator)
        model = LEARNERS[learner]().fit_triplets(triplets, part.X)
        model.calibrate(am.triplets.from_labels(part.y_test, N_CALIBRATION, random_state=generator), part.X_test)
        test = am.triplets.from_labels(split.y_test, N_TEST, random_state=generator), split.X_test, split.X_test
    else:
        queries, objects = np.array_split(generator.permutation(len(split.y)), 2)
        P, object_labels = split.X[objects], np.asarray(split.y)[objects]

        def judged(labels, n):
            triplets = am.triplets.from_labels(labels, n, random_state=generator, y_objects=object_labels)
            triplets = triplets[np.argsort(triplets[:, 0], kind="stable")]
            is_reversed = generator.random(len(triplets)) < PROTOCOLS[protocol]
            triplets[is_reversed] = triplets[is_reversed][:, [0, 2, 1]]
            return triplets

        Q = split.X[queries]
        triplets = judged(np.asarray(split.y)[queries], N_PER_QUERY * len(queries))
        model = LEARNERS[learner]()
        for batch in gen_batches(len(queries), BATCH):
            here = triplets[(triplets[:, 0] >= batch.start) & (triplets[:, 0] < batch.stop)]
            if batch.start:
                model.calibrate(here, Q, P)
            model.partial_fit_triplets(here, Q, P)
        test = judged(split.y_test, N_TEST), split.X_test, P
    margins, probabilities = model.margins(*test), model.preference_proba(*test)
    untied = margins != 0
    correct, confidence = margins[untied] > 0, np.maximum(probabilities, 1 - probabilities)[untied]
    bins = reliability(probabilities)
    return {
        "collection": name,
        "learner": learner,
        "protocol": protocol,
        "split": number,
        "accuracy": float(correct.mean()),
        "gap": bins.largest_gap,
        "raw_gap": reliability(norm.cdf(margins / np.maximum(model.margin_std(*test), 1e-300))).largest_gap,
        "auc_margin": float(roc_auc_score(correct, np.abs(margins[untied]))),
        "auc_probability": float(roc_auc_score(correct, confidence)),
        "predicted": bins.predicted.tolist(),
        "observed": bins.observed.tolist(),
        "curve": model.calibration_._asdict(),
    }


def cell_name(*cell):
    """Return the key of a cell, a hash of its settings."""
    sizes = [N_TRAIN, N_CALIBRATION, N_TEST, N_PER_QUERY, BATCH]
    return named(am.__version__, SEED, *sizes, PROTOCOLS[cell[2]], *cell)

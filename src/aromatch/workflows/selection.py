"""Select the learner by validation: fit each candidate on four fifths of the queries, compare mAP on the rest.

No learner is best everywhere. With many triplets per row, as labels provide them, ``embedding`` and ``moment`` rank
best; with few triplets per query ``diagonal`` from a multiple of the identity, which stays close to the cosine. On
newsgroups with labels ``embedding`` is selected, on the 1,400 abstracts of Cranfield ``diagonal --init 3``
(`benchmarks.speed.command_line`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from .._utils.rows import Matrix
from ..evaluation.retrieval import evaluate_retrieval
from ..exceptions import NoSignalError
from ..learners import Cosine
from ..triplets import from_labels
from .fitting import LearnerOptions, TrainingSet, fit
from .supervision import Rows

BASELINE = "baseline"
_VALIDATION_SHARE = 0.2
# With fewer validation queries the comparison is mostly noise.
_MIN_VALIDATION_QUERIES = 10
# Triplets sampled from labels for validation.
_MAX_SAMPLED = 20_000
# The closed form keeps thirteen matrices of this width while it is fitted.
_MAX_MOMENT_WIDTH = 2000
# The candidates were chosen by measurement, not by capability: `moment` and `embedding` rank best with many triplets
# per row, `diagonal` with few, where it stays near the cosine if it starts from a large multiple of the identity.
_FEW_TRIPLETS = "diagonal"
_INITS = ("1", "3", "10")


@dataclass(frozen=True, slots=True)
class Selection:
    """The selected learner, and how all candidates did on the validation queries."""

    options: LearnerOptions
    scores: dict[str, float]
    """mAP by candidate, the baseline first if there is one; empty if nothing was validated."""
    notes: list[str]

    @property
    def improves(self) -> bool:
        """Whether the selected learner beats the baseline, or was not compared with it."""
        return BASELINE not in self.scores or self.scores[str(self.options)] > self.scores[BASELINE]


def select(
    training: TrainingSet, options: LearnerOptions, seed: int, baseline: tuple[Matrix, Matrix] | None
) -> Selection:
    """Validate all candidates and return the best one; `baseline` has the rows whose cosine is the baseline."""
    cautious = replace(options, learner=_FEW_TRIPLETS, init=_INITS[-1] if training.is_square else None)
    rows = np.arange(training.Q.shape[0]) if training.labels is not None else np.unique(training.triplets[:, 0])
    n_validation = round(_VALIDATION_SHARE * len(rows))
    validation, train = map(np.sort, np.split(np.random.default_rng([seed, 2]).permutation(rows), [n_validation]))
    if n_validation < _MIN_VALIDATION_QUERIES:
        return Selection(cautious, {}, [f"{len(rows)} queries are too few for validation: used {cautious}"])
    scores: dict[str, float] = {}
    try:
        part = _training_part(training, train, min(options.n_triplets, _MAX_SAMPLED), seed)
        if baseline is not None:
            Q, P = baseline
            unprepared = training._replace(Q=Q, P=None if training.P is None else P)
            scores[BASELINE] = _mean_average_precision(Cosine(), unprepared, validation)
        candidates = {}
        for candidate in _candidates(training, cautious):
            try:
                model = fit(part, candidate, seed)
            except NoSignalError:
                continue
            scores[str(candidate)] = _mean_average_precision(model, training, validation)
            candidates[str(candidate)] = candidate
    except ValueError as error:  # labels that occur once, queries without a relevant object
        return Selection(cautious, {}, [f"no validation ({error}): used {cautious}"])
    best = max(candidates, key=scores.__getitem__)
    return Selection(candidates[best], scores, [])


def _candidates(training: TrainingSet, cautious: LearnerOptions) -> list[LearnerOptions]:
    width = max(training.Q.shape[1], 0 if training.P is None else training.P.shape[1])
    fits = {"moment": width <= _MAX_MOMENT_WIDTH, "embedding": training.is_square}
    inits = _INITS if training.is_square else (None,)
    return [replace(cautious, learner=name, init=None) for name, it_fits in fits.items() if it_fits] + [
        replace(cautious, init=init) for init in inits
    ]


def _training_part(training: TrainingSet, rows: Rows, n_triplets: int, seed: int) -> TrainingSet:
    if training.labels is not None:
        y = training.labels[rows]
        return training._replace(Q=training.Q[rows], triplets=from_labels(y, n_triplets, seed), labels=y)
    is_in = np.isin(training.triplets[:, 0], rows)
    weights = None if training.weights is None else training.weights[is_in]
    return training._replace(triplets=training.triplets[is_in], weights=weights)


def _mean_average_precision(model: Any, training: TrainingSet, rows: Rows) -> float:
    """Return the mAP of some queries: relevant are objects with their label, or objects preferred for them."""
    if training.labels is not None:
        labels = training.labels[rows].astype(str)
        return evaluate_retrieval(model, training.Q[rows], labels, ks=[1]).mean_average_precision
    query, better, worse = training.triplets.T
    shape = (training.Q.shape[0], (training.Q if training.P is None else training.P).shape[0])
    ones = np.ones(len(query))
    # Relevant is what is preferred more often than not: an object may be clicked in one list and skipped in another.
    grades = sparse.csr_array((ones, (query, better)), shape=shape) - sparse.csr_array(
        (ones, (query, worse)), shape=shape
    )
    report = evaluate_retrieval(model, training.Q, P=training.P, qrels=grades, query_rows=rows, ks=[1])
    return report.mean_average_precision

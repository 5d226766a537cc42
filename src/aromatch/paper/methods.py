"""The methods of the paper's comparison, and the evaluation of one method on a split."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._utils.chunks import chunks
from ..evaluation.retrieval import evaluate_retrieval
from ..learners import (
    HIER,
    ITML,
    LEGO,
    LMNN,
    OASIS,
    DiagonalAROMA,
    Euclidean,
    FactoredAROMA,
    Similarity,
    hierarchy_from_dots,
)
from ..triplets import LabelSampler
from .spec import Cell, Spec
from .splits import Split

_CHUNK = 1000
# Part of the seed of the triplets, beside the seed of the figure and the number of the split.
_TRIPLETS = 4

LEARNERS: dict[str, type[Similarity]] = {
    "f-AROMA": FactoredAROMA,
    "d-AROMA": DiagonalAROMA,
    "OASIS": OASIS,
    "ITML": ITML,
    "LEGO": LEGO,
    "LMNN": LMNN,
    "HIER": HIER,
    "Euclidean": Euclidean,
    # The dot product, before any training. It ranks zero rows last, where the distance ranks them first.
    "W = I": OASIS,
    # The dot product of class probabilities: HIER without a hierarchy. It uses labels directly.
    "labels": HIER,
}


@dataclass(frozen=True, slots=True)
class Found:
    """Measures of a method on a split, after one or more numbers of triplets."""

    n_triplets: list[int]
    """Triplets learned before each evaluation."""
    n_updates: list[int]
    """Updates of the model so far."""
    precision: list[list[float]]
    """Precision at each k, for each evaluation."""
    mean_average_precision: list[float]
    """Mean average precision of each evaluation."""
    seconds: float
    """Training time."""
    seconds_of_evaluation: float
    """Evaluation time."""


def compute(spec: Spec, cell: Cell, split: Split) -> Found:
    """Train and evaluate the method of a cell on a split."""
    if cell.part == "validation":
        split = split.inside(spec.split["validation_share"], spec.seed)
    model = make_learner(spec, cell, split.y)
    checkpoints = [cell.n_triplets]
    if cell.curve:
        checkpoints = sorted({at for at in spec.checkpoints if at < cell.n_triplets} | {cell.n_triplets})
    found = Found(checkpoints, [], [], [], 0.0, 0.0)
    seconds = seconds_of_evaluation = 0.0
    triplets = sample_triplets(split.y, cell.n_triplets, spec.seed, cell.split)
    done = 0
    for at in checkpoints:
        begun = perf_counter()
        if hasattr(model, "partial_fit_triplets"):
            model.partial_fit_triplets(triplets[done:at], split.X)
        else:
            model.fit(split.X, split.y)
        done = at
        learned = perf_counter()
        report = evaluate_retrieval(model, split.X_test, split.y_test, ks=spec.ks)
        seconds, seconds_of_evaluation = seconds + learned - begun, seconds_of_evaluation + perf_counter() - learned
        found.n_updates.append(int(getattr(model, "n_updates_", 0)))
        found.precision.append([report.precision[k] for k in spec.ks])
        found.mean_average_precision.append(report.mean_average_precision)
    return Found(
        checkpoints, found.n_updates, found.precision, found.mean_average_precision, seconds, seconds_of_evaluation
    )


def make_learner(spec: Spec, cell: Cell, labels: NDArray[np.str_]) -> Similarity:
    """Return the untrained learner of a cell."""
    if cell.method not in LEARNERS:
        raise ValueError(f"method must be one of {', '.join(LEARNERS)}, got {cell.method!r}")
    settings: dict[str, Any] = dict(cell.settings)
    learner = LEARNERS[cell.method]
    if cell.method == "HIER":
        # A taxonomy of the classes in the spec, or else the dots of names such as sci.space.
        settings["hierarchy"] = spec.hierarchy or hierarchy_from_dots(np.unique(labels).tolist())
    if "random_state" in learner._get_param_names():
        settings["random_state"] = int(np.random.default_rng([spec.seed, cell.split]).integers(2**31))
    return learner(**settings)


def sample_triplets(y: NDArray[Any], n_triplets: int, seed: int, split: int) -> NDArray[np.int64]:
    """Sample triplets such that a shorter sample is a prefix of a longer one, the same for all methods.

    >>> import numpy as np
    >>> labels = np.array(["cat", "dog"] * 5)
    >>> more = sample_triplets(labels, 2500, seed=0, split=1)
    >>> bool((sample_triplets(labels, 1200, seed=0, split=1) == more[:1200]).all())
    True
    """
    generator = np.random.default_rng([seed, _TRIPLETS, split])
    sampler = LabelSampler(y)
    sampled = [sampler.sample(_CHUNK, generator) for _ in chunks(n_triplets, _CHUNK)]
    return np.concatenate([np.empty((0, 3), dtype=np.int64), *sampled])[:n_triplets]

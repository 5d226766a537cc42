"""Which learner, when nobody says: each is tried on queries that it has not seen, and the best one is taken.

No learner is best everywhere. Many judgements of the same rows, as labels give them, are best learned in closed form
(``moment``). A few for each query are not: there only what stays near to the plain similarity is better than it, and
that is ``diagonal`` from a multiple of the identity. On the 1,400 abstracts of Cranfield ``moment`` lost a third of
the mAP of the cosine; on newsgroups, by their labels, it doubled it (docs/command-line.md). A fifth of the queries
tells which it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..evaluation.retrieval import evaluate_retrieval
from ..learners import Similarity
from ..triplets import from_labels
from .baseline import Cosine
from .problem import Numbers

if TYPE_CHECKING:
    from .learning import Lesson, Settings

_SHARE = 0.2
# With fewer queries to look at, a look tells nothing.
_FEWEST = 10
# Triplets drawn from labels for a look.
_DRAWS = 20_000
# The closed form keeps thirteen matrices of this width while it learns, and solves for both sides.
_WIDEST_MOMENT = 2000
_MULTIPLES = ("1", "3", "10")


@dataclass(frozen=True, slots=True)
class Tried:
    """What a learner came to on queries that were held out from it."""

    learner: str
    """With the multiple of the identity that it began with, if any; "plain" is the similarity that is there already."""
    mean_average_precision: float

    def to_dict(self) -> dict[str, Any]:
        """Give it as JSON knows it."""
        return asdict(self)


def choose(
    lesson: Lesson, settings: Settings, seed: int, learn: Callable[[Lesson, Settings], Similarity]
) -> tuple[Settings, list[Tried], list[str]]:
    """Give the settings to learn with, what was tried, and what there is to tell."""
    width = max(lesson.Q.shape[1], lesson.Q.shape[1] if lesson.P is None else lesson.P.shape[1])
    is_square = lesson.P is None or lesson.P.shape[1] == lesson.Q.shape[1]
    moment = replace(settings, learner="moment")
    cautious = replace(settings, learner="diagonal", init=_MULTIPLES[-1] if is_square else None)
    rows = np.arange(lesson.Q.shape[0]) if lesson.labels is not None else np.unique(lesson.triplets[:, 0])
    held, known = np.split(np.random.default_rng([seed, 2]).permutation(rows), [round(_SHARE * len(rows))])
    if len(held) < _FEWEST:
        told = f"{len(rows)} queries are too few to try learners on: took {name_of(cautious)}, near to what is there"
        return cautious, [], [told]
    candidates = [replace(cautious, init=init) for init in (_MULTIPLES if is_square else (None,))]
    if width <= _WIDEST_MOMENT:
        candidates.insert(0, moment)
    try:
        part = _known_part(lesson, np.sort(known), min(settings.draws, _DRAWS), seed)
        tried = [Tried(name_of(one), _figure(learn(part, one), lesson, np.sort(held))) for one in candidates]
        plain = [Tried("plain", _figure(Cosine(), lesson, np.sort(held)))] if is_square else []
    except ValueError as error:  # labels that are there once, queries without anything relevant
        return cautious, [], [f"no learner could be tried ({error}): took {name_of(cautious)}"]
    best = max(range(len(tried)), key=lambda at: tried[at].mean_average_precision)
    notes = []
    if plain and tried[best].mean_average_precision <= plain[0].mean_average_precision:
        notes.append(
            f"learning does not help yet: on {len(held)} queries held out for a look, mAP is "
            f"{plain[0].mean_average_precision:.3f} without and {tried[best].mean_average_precision:.3f} with it"
        )
    return candidates[best], [*plain, *tried], notes


def name_of(settings: Settings) -> str:
    """Name a learner with what it begins with."""
    return settings.learner if settings.init is None else f"{settings.learner} --init {settings.init}"


def _known_part(lesson: Lesson, known: Numbers, draws: int, seed: int) -> Lesson:
    if lesson.labels is not None:
        y = lesson.labels[known]
        return lesson._replace(Q=lesson.Q[known], triplets=from_labels(y, draws, seed), labels=y)
    is_known = np.isin(lesson.triplets[:, 0], known)
    weights = None if lesson.weights is None else lesson.weights[is_known]
    return lesson._replace(triplets=lesson.triplets[is_known], weights=weights)


def _figure(model: Any, lesson: Lesson, held: Numbers) -> float:
    """Give the mAP for queries that were held out: of their label, or of what was preferred for them."""
    if lesson.labels is not None:
        return evaluate_retrieval(model, lesson.Q[held], lesson.labels[held].astype(str), ks=[1]).mean_average_precision
    query, better, worse = lesson.triplets.T
    shape = (lesson.Q.shape[0], (lesson.Q if lesson.P is None else lesson.P).shape[0])
    ones = np.ones(len(query))
    # What is better more often than worse: a click here may be passed over there.
    grades = sparse.csr_array((ones, (query, better)), shape=shape) - sparse.csr_array(
        (ones, (query, worse)), shape=shape
    )
    report = evaluate_retrieval(model, lesson.Q, P=lesson.P, qrels=grades, query_rows=held, ks=[1])
    return report.mean_average_precision

"""The methods that a trial compares; each is trained on the older lists of a log.

All start from the cosine of the same rows. Learners are trained on triplets that `from_qrels` or `from_clicks` make of
the lists, with sampled negatives; their step size and the scale of their initial W are validated on the last quarter of
the older lists. Rocchio's relevance feedback is the classic. The adapter learns list by list, as in use. Methods that
would need too much memory are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._utils.rows import Matrix
from ...learners import OASIS, Cosine, DiagonalAROMA, FactoredAROMA, MomentAROMA, TripletEmbedding
from ...search import Adapter
from ...triplets import from_clicks, from_qrels
from .log import JudgedList
from .rocchio import Rocchio

BASELINE, ROCCHIO, ADAPTER = "cosine", "Rocchio", "adapter"
# Only the newest triplets are used if there are more.
_MAX_TRIPLETS = 100_000
# Methods are left out above these numbers of features: they would take minutes, and gigabytes.
_MAX_FEATURES = {
    ROCCHIO: 20_000,
    "d-AROMA": 20_000,
    "OASIS": 20_000,
    "f-AROMA": 2_500,
    "MomentAROMA": 5_000,
    "embedding": 5_000,
}


@dataclass(frozen=True, eq=False, slots=True)
class TrialRows:
    """All rows of a trial, of unit norm: the inner product is the cosine."""

    Q: Matrix
    P: Matrix


@dataclass(frozen=True, eq=False, slots=True)
class Method:
    """A method with the settings to validate."""

    name: str
    settings: list[dict[str, float]]
    train: Callable[..., Any]
    """Takes rows, lists, their kind, a seed and a setting; returns a model with `similarity`."""


def methods(width: int) -> list[Method]:
    """Return the methods for rows of this width, the baseline first."""
    starts = [{"r": r, "init": init} for init in (1.0, 4.0) for r in (1.0, 10.0)]
    found = [
        Method(BASELINE, [{}], lambda *_: Cosine()),
        Method(ROCCHIO, [{}], _trained_rocchio),
        Method("OASIS", [{"C": C} for C in (0.001, 0.01, 0.1)], _trained(OASIS, init="identity")),
        Method("d-AROMA", starts, _trained(DiagonalAROMA)),
        Method("f-AROMA", starts, _trained(FactoredAROMA)),
        Method("MomentAROMA", [{}], _trained(MomentAROMA, alpha="auto")),
        Method("embedding", [{}], _trained(TripletEmbedding, random_state=0)),
        Method(ADAPTER, [{}], _trained_adapter),
    ]
    return [one for one in found if width <= _MAX_FEATURES.get(one.name, width)]


def _trained(learner: Any, **fixed: Any) -> Callable[..., Any]:
    def train(rows: TrialRows, lists: Sequence[JudgedList], kind: str, seed: int, **setting: float) -> Any:
        triplets, weights = _triplets(rows, lists, kind, seed)
        return learner(**fixed, **setting).fit_triplets(triplets, rows.Q, rows.P, sample_weight=weights)

    return train


def _triplets(rows: TrialRows, lists: Sequence[JudgedList], kind: str, seed: int) -> tuple[NDArray[np.int64], Any]:
    sizes = rows.Q.shape[0], rows.P.shape[0]
    if kind == "clicks":
        shown = [(one.query, one.shown, one.good.tolist()) for one in lists]
        found = from_clicks(shown, *sizes, random_state=seed)
    else:
        judged = [
            (one.query, row, grade)
            for one in lists
            for grade, objects in ((1.0, one.good), (0.0, one.bad))
            for row in objects.tolist()
        ]
        found = from_qrels(judged, *sizes, n_judged=3, n_sampled=5, random_state=seed)
    if not len(found.triplets):
        raise ValueError("the older lists contain no comparison, expected lists with good and other objects")
    newest = slice(max(0, len(found.triplets) - _MAX_TRIPLETS), None)
    return found.triplets[newest], found.sample_weight[newest]


def _trained_rocchio(rows: TrialRows, lists: Sequence[JudgedList], kind: str, seed: int) -> Rocchio:
    rocchio = Rocchio(rows.P)
    for one in lists:
        rocchio.judge(rows.Q[[one.query]], one.good, one.bad)
    return rocchio


def _trained_adapter(rows: TrialRows, lists: Sequence[JudgedList], kind: str, seed: int) -> Adapter:
    adapter = Adapter(rows.P, random_state=seed)
    for one in lists:
        query = rows.Q[[one.query]]
        if kind == "judgements":
            adapter.judge(query, one.good, one.bad)
        else:
            adapter.click(query, one.shown, one.good)
    return adapter

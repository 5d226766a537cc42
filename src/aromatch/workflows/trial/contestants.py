"""The ways to search that a trial compares: each learns from the older lists of a log.

All begin at the cosine of the same rows. Those of the paper and beyond learn triplets that `triplets.from_qrels` and
`from_clicks` make of the lists, with objects of the whole collection mixed in; how fast, and how far from the cosine,
is chosen on the last quarter of the older lists. Rocchio's relevance feedback is the classic: a query moves towards
what was good for the nearest query that was judged. The adapter gets list after list, as in use, and of several clicks
in one the first. What would not fit in memory is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.extmath import safe_sparse_dot

from ..._utils.rows import Matrix
from ...learners import OASIS, DiagonalAROMA, FactoredAROMA, MomentAROMA
from ...search import Adapter
from ...triplets import from_clicks, from_qrels
from ..baseline import Cosine
from .log import Judged

ADAPTER = "adapter"
BASE = "cosine"
# Triplets at most: more lists than make so many are cut, the oldest first.
_MOST_TRIPLETS = 100_000
# Features from which on a way to search is left out: it would take minutes, and gigabytes.
_MOST_FEATURES = {"Rocchio": 20_000, "d-AROMA": 20_000, "OASIS": 20_000, "f-AROMA": 2_500, "MomentAROMA": 5_000}
# How far a query moves towards what was good, and away from what was not.
_FOR_GOOD, _FOR_BAD = 0.75, 0.15
_QUERIES_AT_ONCE = 1_000


@dataclass(frozen=True, eq=False, slots=True)
class Rows:
    """All rows of a trial, of unit norm: the inner product is the cosine."""

    Q: Matrix
    P: Matrix


@dataclass(frozen=True, eq=False, slots=True)
class Contestant:
    """A way to search."""

    name: str
    settings: list[dict[str, float]]
    """To choose from."""
    learn: Callable[..., Any]
    """Called with rows, lists, their kind, a seed and a setting; gives something with `similarity`."""


class Rocchio:
    """Moves a query towards what was good for the nearest judged one."""

    def __init__(self, rows: Rows, lists: Sequence[Judged]) -> None:
        self._judged = rows.Q[np.array([one.query for one in lists])]
        moves = np.zeros((len(lists), rows.P.shape[1]))
        for move, one in zip(moves, lists, strict=True):
            for weight, objects in ((_FOR_GOOD, one.good), (-_FOR_BAD, one.bad)):
                if len(objects):
                    move += weight * np.asarray(rows.P[objects].mean(axis=0)).ravel()
        self._moves = moves

    def similarity(self, Q: Matrix, P: Matrix) -> NDArray[Any]:
        """Score all rows of Q with all of P."""
        parts = []
        for start in range(0, Q.shape[0], _QUERIES_AT_ONCE):
            some = Q[start : start + _QUERIES_AT_ONCE]
            near = np.asarray(safe_sparse_dot(some, self._judged.T, dense_output=True)).argmax(axis=1)
            base = safe_sparse_dot(some, P.T, dense_output=True)
            parts.append(np.asarray(base) + np.asarray(P @ self._moves[near].T).T)
        return np.concatenate(parts)


def contestants(width: int) -> list[Contestant]:
    """Give all that can be tried on rows of this width, the cosine first."""
    starts = [{"r": r, "init": init} for init in (1.0, 4.0) for r in (1.0, 10.0)]
    found = [
        Contestant(BASE, [{}], lambda *_: Cosine()),
        Contestant("Rocchio", [{}], lambda rows, lists, *_: Rocchio(rows, lists)),
        Contestant("OASIS", [{"C": C} for C in (0.001, 0.01, 0.1)], _learner(OASIS, init="identity")),
        Contestant("d-AROMA", starts, _learner(DiagonalAROMA)),
        Contestant("f-AROMA", starts, _learner(FactoredAROMA)),
        Contestant("MomentAROMA", [{}], _learner(MomentAROMA, alpha="auto")),
        Contestant(ADAPTER, [{}], _adapter),
    ]
    return [one for one in found if width <= _MOST_FEATURES.get(one.name, width)]


def _learner(kind: Any, **fixed: Any) -> Callable[..., Any]:
    def learn(rows: Rows, lists: Sequence[Judged], of_kind: str, seed: int, **setting: float) -> Any:
        triplets, weights = _triplets(rows, lists, of_kind, seed)
        return kind(**fixed, **setting).fit_triplets(triplets, rows.Q, rows.P, sample_weight=weights)

    return learn


def _triplets(rows: Rows, lists: Sequence[Judged], kind: str, seed: int) -> tuple[NDArray[np.int64], Any]:
    """Make triplets of lists, the newest ones where there are too many."""
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
        found = from_qrels(judged, *sizes, n_judged=3, n_drawn=5, random_state=seed)
    if not len(found.triplets):
        raise ValueError("the older lists say of no object that it is better than another")
    kept = slice(max(0, len(found.triplets) - _MOST_TRIPLETS), None)
    return found.triplets[kept], found.sample_weight[kept]


def _adapter(rows: Rows, lists: Sequence[Judged], kind: str, seed: int) -> Adapter:
    adapter = Adapter(rows.P, random_state=seed)
    for one in lists:
        query = rows.Q[[one.query]]
        if kind == "judgements":
            adapter.judge(query, one.good, one.bad)
        else:
            adapter.click(query, one.shown, int(one.good[0]))
    return adapter

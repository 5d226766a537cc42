"""How well a way to search does on the later lists of a log, of which only what was shown is known.

What a log of one search says about another is limited: objects that were never shown were never judged. Four figures
are told for each query.

- ``right``: of all pairs of a good and another object of a list, the share that is in the right order. Objects that
  were not in it are left out, as in condensed lists (Sakai 2007). In lists that were judged the others are the bad
  ones. In lists that were clicked they are all that were not: only those above a click were surely looked at, but the
  search that made the list always has these in the wrong order, and would look worse than it is. With all of them it
  looks better than it is, since people click what stands first. That is the side to err on.
- ``passed``: the same against the bad ones, which for clicks are those above that were passed over. It errs on the
  other side; between both lies what clicks can tell.
- ``first``: whether a good one comes first among them.
- ``judged``: the share of the ten objects that it would show that was in this list. Where it is much smaller than for
  the cosine, the other two figures say little of what people would see.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._utils.nearest import top_k
from .contestants import Rows
from .log import Judged

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]

K = 10
_SCORES_AT_ONCE = 2**22
# Queries are near to judged ones when they are as near to one as all but this share of the judged ones are to another.
_FAR_SHARE = 0.25


class Figures(NamedTuple):
    """Figures of the queries of later lists, in the order of their numbers; those of several lists are means."""

    right: Array
    first: Array
    judged: Array
    passed: Array
    """NaN for queries without anything that was bad or passed over."""


def asked_in(lists: Sequence[Judged]) -> Numbers:
    """Give the queries of some lists."""
    return np.unique([one.query for one in lists])


def figures(scorer: Any, rows: Rows, lists: Sequence[Judged], itself: Numbers) -> Figures:
    """Measure on lists that tell good from bad."""
    at_once = max(1, _SCORES_AT_ONCE // rows.P.shape[0])
    queries = asked_in(lists)
    place = {int(query): at for at, query in enumerate(queries)}
    by_query: list[list[tuple[float, ...]]] = [[] for _ in queries]
    of_query: dict[int, list[Judged]] = {}
    for one in lists:
        of_query.setdefault(one.query, []).append(one)
    for start in range(0, len(queries), at_once):
        some = queries[start : start + at_once]
        scores = np.asarray(scorer.similarity(rows.Q[some], rows.P), dtype=np.float64)
        found = itself[some] >= 0
        scores[np.flatnonzero(found), itself[some][found]] = -np.inf
        best = top_k(scores, min(K, scores.shape[1])).indices
        for query, of_all, first_ten in zip(some.tolist(), scores, best, strict=True):
            for one in of_query[query]:
                by_query[place[query]].append(_of_list(one, of_all, first_ten))
    table = np.array([_means(np.array(each)) for each in by_query])
    return Figures(*table.T)


def _means(of_lists: Array) -> Array:
    """Give the means over the lists of a query, of those that have a figure."""
    there = np.isfinite(of_lists)
    sums = np.where(there, of_lists, 0.0).sum(axis=0)
    return np.asarray(np.divide(sums, there.sum(axis=0), out=np.full(len(sums), np.nan), where=there.any(axis=0)))


def _of_list(one: Judged, scores: Array, first_ten: Numbers) -> tuple[float, ...]:
    good, others, bad = scores[one.good], scores[one.others], scores[one.bad]
    is_first = 0.5 if good.max() == others.max() else good.max() > others.max()
    judged = float(np.isin(first_ten, one.shown).mean())
    return _share_right(good, others), float(is_first), judged, _share_right(good, bad)


def _share_right(good: Array, others: Array) -> float:
    if not len(others):
        return np.nan
    margins = good[:, np.newaxis] - others
    return float(np.mean(np.where(margins == 0, 0.5, margins > 0)))


def are_near(rows: Rows, judged: Numbers, asked: Numbers) -> NDArray[np.bool_]:
    """Tell which queries are near to judged ones, by the cosine."""
    to_judged = _nearest(rows, judged, judged)
    lowest = np.quantile(to_judged, _FAR_SHARE) if len(judged) > 1 else np.inf
    return np.isin(asked, judged) | (_nearest(rows, asked, judged) >= lowest)


def _nearest(rows: Rows, queries: Numbers, judged: Numbers) -> Array:
    """Give the cosine of each query and the nearest judged one that is not itself."""
    found = np.empty(len(queries))
    at_once = max(1, _SCORES_AT_ONCE // len(judged))
    for start in range(0, len(queries), at_once):
        some = queries[start : start + at_once]
        product = rows.Q[some] @ rows.Q[judged].T
        cosines = np.asarray(product.toarray() if hasattr(product, "toarray") else product)
        cosines[some[:, np.newaxis] == judged] = -np.inf
        found[start : start + len(some)] = cosines.max(axis=1)
    return found

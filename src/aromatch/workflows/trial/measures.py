"""Measures of a method on the later lists of a log, in which only shown objects have feedback.

A log of one search has no feedback about objects that only another search would show. Four measures are computed for
each query.

- ``correct``: the share of correctly ordered pairs of a good and another object of a list. Objects outside the list
  are left out, as in condensed lists (Sakai 2007). In judged lists the others are the bad objects. In clicked lists
  they are all objects that were not clicked: only those above a click were surely seen, but the search that made the
  list has all of these in the wrong order and would look worse than it is. With all objects it looks better than it is,
  since users click what is ranked first. That error is on the conservative side.
- ``skipped``: the same with the bad objects, which for clicks are those skipped above the last click. Its error is on
  the other side.
- ``first``: whether a good object is ranked first among the objects of the list.
- ``judged``: the share of the method's ten best objects that were in the list. If it is much smaller than for the
  cosine, the other measures say little about what users would see.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._utils.nearest import top_k
from ..supervision import Rows
from .log import JudgedList
from .methods import TrialRows

Array = NDArray[np.float64]

K = 10
_MAX_SCORES = 2**22
# A query is near if its nearest judged query is at least as similar as that of all but this share of the judged ones.
_FAR_SHARE = 0.25


class QueryMeasures(NamedTuple):
    """Measures of the queries of later lists, sorted by query; means over the lists of a query."""

    correct: Array
    first: Array
    judged: Array
    skipped: Array
    """NaN for queries without bad or skipped objects."""


def queries_of(lists: Sequence[JudgedList]) -> Rows:
    """Return the sorted queries of some lists."""
    return np.unique([one.query for one in lists])


def measure(model: Any, rows: TrialRows, lists: Sequence[JudgedList], own_rows: Rows) -> QueryMeasures:
    """Measure a model on informative lists."""
    chunk = max(1, _MAX_SCORES // rows.P.shape[0])
    queries = queries_of(lists)
    values: dict[int, list[tuple[float, ...]]] = {query: [] for query in queries.tolist()}
    lists_of: dict[int, list[JudgedList]] = {}
    for one in lists:
        lists_of.setdefault(one.query, []).append(one)
    for start in range(0, len(queries), chunk):
        some = queries[start : start + chunk]
        scores = np.asarray(model.similarity(rows.Q[some], rows.P), dtype=np.float64)
        is_object = own_rows[some] >= 0
        scores[np.flatnonzero(is_object), own_rows[some][is_object]] = -np.inf
        best = top_k(scores, K).indices
        for query, of_query, top in zip(some.tolist(), scores, best, strict=True):
            values[query] += [_of_list(one, of_query, top) for one in lists_of[query]]
    table = np.array([_means(np.array(each)) for each in values.values()])
    return QueryMeasures(*table.T)


def _means(of_lists: Array) -> Array:
    """Return the means over the lists of a query, without NaN."""
    there = np.isfinite(of_lists)
    sums = np.where(there, of_lists, 0.0).sum(axis=0)
    return np.asarray(np.divide(sums, there.sum(axis=0), out=np.full(len(sums), np.nan), where=there.any(axis=0)))


def _of_list(one: JudgedList, scores: Array, top: Rows) -> tuple[float, ...]:
    good, others, bad = scores[one.good], scores[one.others], scores[one.bad]
    is_first = 0.5 if good.max() == others.max() else good.max() > others.max()
    judged = float(np.isin(top, one.shown).mean())
    return _share_correct(good, others), float(is_first), judged, _share_correct(good, bad)


def _share_correct(good: Array, others: Array) -> float:
    if not len(others):
        return np.nan
    margins = good[:, np.newaxis] - others
    return float(np.mean(np.where(margins == 0, 0.5, margins > 0)))


def are_near(rows: TrialRows, judged: Rows, queries: Rows) -> NDArray[np.bool_]:
    """Return which queries are near a judged one, by the cosine."""
    among_judged = _nearest(rows, judged, judged)
    lowest = np.quantile(among_judged, _FAR_SHARE) if len(judged) > 1 else np.inf
    return np.isin(queries, judged) | (_nearest(rows, queries, judged) >= lowest)


def _nearest(rows: TrialRows, queries: Rows, judged: Rows) -> Array:
    """Return the cosine of each query and the nearest other judged query."""
    found = np.empty(len(queries))
    chunk = max(1, _MAX_SCORES // len(judged))
    for start in range(0, len(queries), chunk):
        some = queries[start : start + chunk]
        product = rows.Q[some] @ rows.Q[judged].T
        cosines = np.asarray(product.toarray() if hasattr(product, "toarray") else product)
        cosines[some[:, np.newaxis] == judged] = -np.inf
        found[start : start + len(some)] = cosines.max(axis=1)
    return found

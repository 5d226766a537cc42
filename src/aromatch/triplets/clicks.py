"""Triplets from clicks: a clicked object is preferred over objects that were shown above it and not clicked.

Clicks are biased by position, but a user who clicks the third result has most likely seen the first two and skipped
them ("skip above", Joachims 2002). Objects below the last click may not have been seen.

Two corrections. Attention falls with rank, so clicks at lower ranks are rarer and more informative: with
`position_bias`, a click at rank k has weight ``k**position_bias``, the inverse propensity, clipped at `max_weight`
(Joachims, Swaminathan and Schnabel 2017). And every object in a list is already similar to the query, so learning from
these alone degrades search over the whole collection: negatives sampled from all objects are mixed in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any

import numpy as np

from .._utils.checks import check_integer, check_number, random_generator
from ..io.logs import read_lists
from ._comparisons import (
    Comparisons,
    IdRows,
    Report,
    UnknownIds,
    as_triplets,
    count_contradictions,
    count_duplicates,
    sample_negatives,
)


def from_clicks(
    log: str | PathLike[str] | Iterable[Any],
    query_ids: Sequence[int] | Sequence[str] | int,
    object_ids: Sequence[int] | Sequence[str] | int,
    *,
    n_judged: int = 3,
    n_sampled: int = 5,
    judged_weight: float = 0.1,
    position_bias: float = 0.0,
    max_weight: float = 10.0,
    missing: str = "error",
    random_state: Any = None,
) -> Comparisons:
    """Make triplets from a click log.

    Parameters
    ----------
    log : path or iterable
        Result lists: the query, the objects shown in rank order, and the objects clicked. A ``.csv`` or ``.tsv`` file
        has the columns ``query``, ``shown`` and ``clicked``, with ids separated by spaces; a ``.jsonl`` file has one
        JSON object with these keys a line. An iterable contains mappings with these keys, or tuples.
    query_ids, object_ids : sequences of int or str, or int
        The id of every row of Q and of P, as they appear in the log. With a number of rows, ids are row indices. Ids
        in csv files are str.
    n_judged : int, default 3
        Maximum number of triplets per click with an object that was shown above it and not clicked, nearest first.
    n_sampled : int, default 5
        Number of triplets per click with a negative sampled from all objects that were not clicked for this query.
    judged_weight : float, default 0.1
        Weight of a triplet with a skipped object; triplets with sampled negatives have weight 1. Skipped objects are
        often relevant too.
    position_bias : float, default 0.0
        A click at rank k (from 1) has weight ``k**position_bias``; 1 corrects for attention that falls as 1/k.
    max_weight : float, default 10.0
        Upper limit of the position weight.
    missing : {"error", "skip"}, default "error"
        Whether unknown ids raise an error or are skipped. Logs often contain objects that have been deleted.
    random_state : None, int, Generator or RandomState
        Random seed.

    Returns
    -------
    Comparisons
        `triplets` and `sample_weight` for `fit_triplets`, in the order of the log, and a `report` of counts.

    Examples
    --------
    >>> from aromatch.triplets import from_clicks
    >>> log = [{"query": 0, "shown": [4, 7, 2, 5], "clicked": 2}]
    >>> from_clicks(log, 1, 10, n_sampled=0).triplets  # 4 and 7 were skipped, 5 may not have been seen
    array([[0, 2, 4],
           [0, 2, 7]])
    """
    n_sampled = check_integer(n_sampled, "n_sampled", at_least=0)
    n_judged = check_integer(n_judged, "n_judged", at_least=0)
    weight_of_judged = check_number(judged_weight, "judged_weight", at_least=0)
    bias = check_number(position_bias, "position_bias", at_least=0)
    max_weight = check_number(max_weight, "max_weight", at_least=1)
    check_number(weight_of_judged * max_weight, "judged_weight * max_weight")
    generator = random_generator(random_state)
    queries, objects, unknown = IdRows(query_ids, "query_ids"), IdRows(object_ids, "object_ids"), UnknownIds(missing)
    skipped: list[tuple[int, int, int]] = []
    clicks: list[tuple[int, int]] = []
    weights: list[float] = []
    click_of_skipped: list[int] = []
    n_read = 0
    for where, query, shown, clicked, _ in read_lists(log, "clicks", objects):
        n_read += 1
        row = unknown.row(queries, query, where)
        if row is None:
            continue
        ranked = [unknown.row(objects, one, where) for one in shown]
        chosen = {objects.find(one) for one in clicked} - {None}
        for rank, good in enumerate(ranked):
            if good is None or good not in chosen or good in ranked[:rank]:
                continue
            above = [other for other in dict.fromkeys(ranked[:rank]) if other is not None and other not in chosen]
            above = above[max(0, len(above) - n_judged) :]
            skipped += [(row, good, other) for other in above]
            click_of_skipped += [len(clicks)] * len(above)
            clicks.append((row, good))
            weights.append(_weight_of_rank(rank + 1, bias, max_weight))
    unknown.check()
    judged, pairs = as_triplets(skipped), np.array(clicks, dtype=np.int64).reshape(-1, 2)
    sampled, click_of_sampled = sample_negatives(pairs, objects.n, n_sampled, generator)
    # In the order of the log: skipped objects of a click first, then its sampled negatives.
    click = np.concatenate([np.array(click_of_skipped, dtype=np.int64), click_of_sampled])
    order = np.argsort(click, kind="stable")
    by_kind = np.repeat([weight_of_judged, 1.0], [len(judged), len(sampled)])
    report = Report(
        n_read,
        len(judged),
        len(sampled),
        unknown.n,
        count_duplicates(judged),
        count_contradictions(judged),
        n_sampled * len(pairs) - len(sampled),
    )
    triplets = np.concatenate([judged, sampled])[order]
    return Comparisons(triplets, (by_kind * np.array(weights, dtype=np.float64)[click])[order], report)


def _weight_of_rank(rank: int, bias: float, max_weight: float) -> float:
    """Return ``rank**bias``, and at most `max_weight`."""
    try:
        return float(min(max_weight, float(rank) ** bias))
    except OverflowError:
        return max_weight

"""What judgements say: how well objects are known, and what queries that were judged asked for.

A query that was judged votes for what was good for it and, less, against what was not. How much its vote counts is the
share of good ones: a list of which one in ten was good says little, and may well be a mistake. Objects that were liked
pass the question on to the queries that liked them.

Only judgements of the objects and queries that are asked for are looked at, however many there are.
"""

from __future__ import annotations

from array import array
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..stores.memory import Ids
from .feedback import Array, Judgements

# A query that is an object itself, against the queries that liked this object.
_OWN = 2.0

_NOBODY = array("q")
_NO_IDS = np.empty(0, dtype=np.int64)


class Votes(NamedTuple):
    """What was judged about some objects."""

    starts: Ids
    """Where the queries that liked each object, or are it, begin in what follows, and at last where all end."""
    by: Ids
    """These queries."""
    shares: Array
    """How much of an object's vote each of them has; those of an object sum to 1, or 0 where nobody liked it."""
    known: Array
    """For each object, the precision of those queries; 0 where nobody liked it."""
    is_only_bad: NDArray[np.bool_]
    """For each object, whether it was judged and never liked."""


class AskedFor(NamedTuple):
    """Sums over objects that some queries stand for."""

    rows: Ids
    """Which query each of the following belongs to, in ascending order."""
    ids: Ids
    """Objects, each once for a query."""
    weights: Array
    of_mean: Array
    """For each query, how often the mean of all objects has to be taken away from that."""


def votes_on(judgements: Judgements, ids: Ids) -> Votes:
    """Count the votes on some objects."""
    wanted, n = ids.tolist(), len(ids)
    liked_by, asked_by = judgements.liked_by, judgements.asked_by
    voters = [(liked_by.get(one, _NOBODY), asked_by.get(one, _NOBODY)) for one in wanted]
    sizes, by = _together(list(chain.from_iterable(voters)))
    precision = np.asarray(judgements.precision)[by]
    strength = precision * np.repeat(np.tile([1.0, _OWN], n), sizes)
    starts = np.append(0, np.cumsum(sizes)[1::2])
    places = np.repeat(np.arange(n), np.diff(starts))
    total = _sums(places, strength, n)
    shares = strength / np.where(total > 0, total, 1.0)[places]
    known = _sums(places, shares * precision, n)
    disliked_by = judgements.disliked_by
    sizes, against = _together([disliked_by.get(one, _NOBODY) for one in wanted])
    with_good = np.repeat(np.arange(n), sizes)[np.asarray(judgements.precision)[against] > 0]
    return Votes(starts, by, shares, known, (np.bincount(with_good, minlength=n) > 0) & (total == 0))


def asked_for(judgements: Judgements, n_rows: int, rows: Ids, numbers: Ids, weights: Array) -> AskedFor:
    """Add up what judged queries ask for: `rows` tells to which sum each goes, with its weight."""
    keys, places = np.unique(rows * len(judgements) + numbers, return_inverse=True)
    rows, numbers = np.divmod(keys, len(judgements))
    values = _sums(places, weights, len(keys))
    of_mean = _sums(rows, values * np.asarray(judgements.of_mean)[numbers], n_rows)
    wants = [judgements.wants[number] for number in numbers.tolist()]
    sizes = np.array([len(want.ids) for want in wants], dtype=np.int64)
    ids = np.concatenate([_NO_IDS, *(want.ids for want in wants)])
    parts = np.concatenate([np.empty(0), *(want.weights for want in wants)]) * np.repeat(values, sizes)
    span = int(ids.max(initial=0)) + 1
    keys, places = np.unique(np.repeat(rows, sizes) * span + ids, return_inverse=True)
    return AskedFor(*np.divmod(keys, span), _sums(places, parts, len(keys)), of_mean)


def _sums(places: Ids, values: Array, n: int) -> Array:
    """Add values up at n places, in their order."""
    return np.bincount(places, values, minlength=n).astype(np.float64, copy=False)


def _together(lists: list[array[int]]) -> tuple[Ids, Ids]:
    """Give lengths of lists, and all that is in them."""
    return np.array([len(each) for each in lists], dtype=np.int64), np.concatenate([_NO_IDS, *lists])

"""Credit: how well the feedback covers some objects, and the targets of the queries behind it.

A query gives credit to its positive objects in proportion to its precision: a list with one positive object in ten is
weak evidence, and may be a mistake. An object passes its credit on to the targets of the queries that gave it.

Only the feedback on the objects and queries in question is read, however much there is.
"""

from __future__ import annotations

from array import array
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..stores.base import Keys
from .feedback import Array, Feedback

# Weight of a query that equals the object, relative to queries for which the object is positive.
_OWN_QUERY_WEIGHT = 2.0

_NO_QUERIES = array("q")
_NO_KEYS = np.empty(0, dtype=np.int64)


class Credit(NamedTuple):
    """Credit of some objects."""

    starts: Keys
    """Where the queries of each object begin in the next two fields, and the end of the last."""
    queries: Keys
    """Queries for which the object is positive, or that equal it."""
    shares: Array
    """Share of each query in the credit of its object; they sum to 1, or to 0 if there is none."""
    amount: Array
    """Credit of each object: the mean precision of its queries; 0 if it has none."""
    is_only_negative: NDArray[np.bool_]
    """Whether the object has feedback, but is positive for no query."""


class WeightedTargets(NamedTuple):
    """Weighted sums of targets, as sums over objects."""

    rows: Keys
    """Index of the sum that each term belongs to, in ascending order."""
    keys: Keys
    """Objects, each once per sum."""
    weights: Array
    mean_weight: Array
    """For each sum, the multiple of the mean of all objects to subtract."""


def credit_of(feedback: Feedback, keys: Keys) -> Credit:
    """Return the credit of some objects."""
    objects, n = keys.tolist(), len(keys)
    positive_for, queries_of = feedback.positive_for, feedback.queries_of
    pairs = ((positive_for.get(key, _NO_QUERIES), queries_of.get(key, _NO_QUERIES)) for key in objects)
    sizes, queries = _concatenate(list(chain.from_iterable(pairs)))
    precision = values_at(feedback.precision, queries)
    strength = precision * np.repeat(np.tile([1.0, _OWN_QUERY_WEIGHT], n), sizes)
    starts = np.append(0, np.cumsum(sizes)[1::2])
    indices = np.repeat(np.arange(n), np.diff(starts))
    total = _sums(indices, strength, n)
    shares = strength / np.where(total > 0, total, 1.0)[indices]
    amount = _sums(indices, shares * precision, n)
    negative_for = feedback.negative_for
    sizes, against = _concatenate([negative_for.get(key, _NO_QUERIES) for key in objects])
    informative = np.repeat(np.arange(n), sizes)[values_at(feedback.precision, against) > 0]
    return Credit(starts, queries, shares, amount, (np.bincount(informative, minlength=n) > 0) & (total == 0))


def weighted_targets(feedback: Feedback, n_sums: int, rows: Keys, queries: Keys, weights: Array) -> WeightedTargets:
    """Sum the targets of queries with feedback: `rows` is the index of the sum that each belongs to."""
    n_queries = len(feedback.targets)
    pairs, indices = np.unique(rows * n_queries + queries, return_inverse=True)
    rows, queries = np.divmod(pairs, n_queries)
    values = _sums(indices, weights, len(pairs))
    mean_weight = _sums(rows, values * values_at(feedback.mean_weight, queries), n_sums)
    targets = [feedback.targets[number] for number in queries.tolist()]
    sizes = np.array([len(target.keys) for target in targets], dtype=np.int64)
    keys = np.concatenate([_NO_KEYS, *(target.keys for target in targets)])
    terms = np.concatenate([np.empty(0), *(target.weights for target in targets)]) * np.repeat(values, sizes)
    span = int(keys.max(initial=0)) + 1
    pairs, indices = np.unique(np.repeat(rows, sizes) * span + keys, return_inverse=True)
    return WeightedTargets(*np.divmod(pairs, span), _sums(indices, terms, len(pairs)), mean_weight)


def values_at(values: array[float], indices: Keys) -> Array:
    """Return some values of an array that may grow: a view of it, as in a traceback, would prevent that."""
    return np.fromiter(map(values.__getitem__, indices.tolist()), np.float64, len(indices))


def _sums(indices: Keys, values: Array, n: int) -> Array:
    """Return n sums of the values with each index, in their order."""
    return np.bincount(indices, values, minlength=n).astype(np.float64, copy=False)


def _concatenate(lists: list[array[int]]) -> tuple[Keys, Keys]:
    """Return the lengths of lists, and their concatenation."""
    return np.array([len(each) for each in lists], dtype=np.int64), np.concatenate([_NO_KEYS, *lists])

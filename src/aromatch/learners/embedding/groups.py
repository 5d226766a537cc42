"""Groups of rows that belong together, from noisy triplets and features (beyond the paper).

Where relevance is an equivalence, as for labels, intents or topics, a triplet (q, a, b) says that q and a are in one
group and q and b are not; a share e of the triplets has a and b exchanged. The links between rows are ::

    N_ij  =  sum of the weights of triplets with (q, a) = (i, j)  -  that of triplets with (q, b) = (i, j),    N + N'

Louvain communities (`communities`) of the positive links are the first groups. Then, some times:

1. A recogniser (`recogniser`), a multinomial logistic regression, learns P(k | x) from the features of rows.
2. Rows change groups by mean-field steps. A link is evidence of the log-odds of a right judgement::

       Q_ik  ~  P(k | x_i) exp( log((1 - e) / e)  sum_j N_ij Q_jk )

3. Rows whose largest Q_ik is below one half have no group, and groups of less than five rows dissolve.
4. The share e is estimated (`_noise`).

Features join communities that share no judgement, and judgements correct what features do not show. The maps of a row
are its probabilities P(k | x), so the score of a query and an object is the probability that both belong to one group.

The log-odds are limited, because a chain of certain judgements would not be corrected any more.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special

from ..._utils.rows import Matrix
from .communities import communities
from .recogniser import fit_recogniser, log_probabilities
from .training_set import ScaledSet

Array = NDArray[Any]
Indices = NDArray[np.int64]

# Resolutions of the communities, the first choice first, and the share of the best agreement that a choice needs.
_RESOLUTIONS, _AGREEMENT = (4.0, 2.0, 1.0, 0.5), 0.98
_MIN_ROWS = 5
_MIN_PROBABILITY = 0.5
_N_ROUNDS, _N_MEAN_FIELD_STEPS = 6, 5
# Steps and learning rates of the recogniser: in the first round, in later ones, and of the result.
_FIRST, _LATER, _LAST = (300, 0.1), (100, 0.05), (300, 0.1)
_MAX_LOG_ODDS = 3.0
# Estimates of the noise: the first, the range, the steps, and the triplets used at most.
_FIRST_NOISE, _LEAST_NOISE, _MOST_NOISE = 0.1, 0.005, 0.49
_N_NOISE_STEPS, _MAX_NOISE_TRIPLETS = 30, 2**16


class Groups(NamedTuple):
    """Groups of the rows of a training set."""

    recogniser: Array
    """Weights of shape (n_features + 1, n_groups), for rows of unit norm."""
    probabilities: Array
    """Probability of each group for each row, from its features and its judgements."""
    noise: float
    """Share of triplets whose objects are exchanged."""


def fit_groups(scaled: ScaledSet, strength: float, generator: np.random.Generator) -> Groups | None:
    """Return the groups of a training set; None without any group of enough rows.

    `strength` is the weight of the rows against the penalty of the recogniser: its alpha is ``1 / (strength n)``.
    """
    X, triplets = _nodes(scaled)
    links = _links(triplets, scaled.weights, X.shape[0])
    is_judged = np.diff(links.indptr) > 0
    Q, recogniser, noise = _first_groups(links, generator), None, _FIRST_NOISE

    def recognised(n_steps: int, learning_rate: float) -> Array | None:
        """Return the recogniser of the rows that have a group; None if no group is left."""
        nonlocal Q, recogniser
        kept, has_group = _large_groups(Q, is_judged)
        if not len(kept):
            return None
        if len(kept) < Q.shape[1]:
            recogniser = None if recogniser is None else recogniser[:, kept]
            Q = _normalized(Q[:, kept])
        alpha = 1 / (strength * np.count_nonzero(has_group))
        rows = np.flatnonzero(has_group)
        return fit_recogniser(
            X[rows], Q[rows], alpha, generator, start=recogniser, n_steps=n_steps, learning_rate=learning_rate
        )

    for number in range(_N_ROUNDS):
        recogniser = recognised(*(_LATER if number else _FIRST))
        if recogniser is None:
            return None
        log_odds = np.float32(min(_MAX_LOG_ODDS, np.log((1 - noise) / noise)))
        by_features = log_probabilities(X, recogniser)
        Q = np.exp(by_features)
        for _ in range(_N_MEAN_FIELD_STEPS):
            Q = special.softmax(by_features + log_odds * (links @ Q), axis=1)
        noise = _noise(Q, triplets, scaled.weights, float(log_odds), noise, generator)
    recogniser = recognised(*_LAST)
    return None if recogniser is None else Groups(recogniser, Q, noise)


def group_probabilities(X: Matrix, recogniser: Array) -> Array:
    """Return the probability of each group for rows of unit norm; zeros for rows of zeros."""
    is_zero = (abs(X).sum(axis=1) == 0)[:, np.newaxis]
    return np.asarray(np.where(is_zero, 0, np.exp(log_probabilities(X, recogniser))))


def _nodes(scaled: ScaledSet) -> tuple[Matrix, Indices]:
    """Return the rows of both sides one below the other, and the triplets as their indices."""
    queries, objects = scaled.queries.rows, scaled.objects.rows
    if scaled.objects is scaled.queries:
        return queries, scaled.triplets
    both = [queries, objects]
    X = sparse.vstack(both, format="csr") if sparse.issparse(queries) else np.vstack(both)
    return X, scaled.triplets + np.array([0, 1, 1]) * queries.shape[0]


def _links(triplets: Indices, weights: Array, n_rows: int) -> Any:
    query, good, bad = triplets.T
    values = np.concatenate([weights, -weights]).astype(np.float32)
    N = sparse.coo_array((values, (np.tile(query, 2), np.concatenate([good, bad]))), shape=(n_rows, n_rows)).tocsr()
    return sparse.csr_array(N + N.T)


def _first_groups(links: Any, generator: np.random.Generator) -> Array:
    """Return the communities of the positive links as groups: one column for each, with ones for its rows.

    A high resolution splits a few large groups, a low one merges many small groups, which later rounds cannot split.
    The highest one counts whose communities agree with the judgements about as well as any: the sum of the links,
    positive and negative, within communities.
    """
    positive = links.maximum(0)
    positive.setdiag(0)
    positive.eliminate_zeros()
    found = []
    for resolution in _RESOLUTIONS:
        labels = communities(positive, resolution, generator)
        sizes = np.bincount(labels)
        labels[sizes[labels] < _MIN_ROWS] = -1
        of_link = np.repeat(labels, np.diff(links.indptr))
        agreement = float(links.data[(of_link >= 0) & (of_link == labels[links.indices])].sum())
        found.append((agreement, labels))
    best = max(agreement for agreement, _ in found)
    labels = next(labels for agreement, labels in found if agreement >= min(best, _AGREEMENT * best))
    return np.equal.outer(labels, np.unique(labels[labels >= 0])).astype(np.float32)


def _large_groups(Q: Array, is_judged: NDArray[np.bool_]) -> tuple[Indices, NDArray[np.bool_]]:
    """Return the groups of enough rows, and which rows have a group of these."""
    if not Q.shape[1]:
        return np.empty(0, dtype=np.int64), np.zeros(len(Q), dtype=np.bool_)
    group = Q.argmax(axis=1)
    has_group = is_judged & (Q.max(axis=1) >= _MIN_PROBABILITY)
    sizes = np.bincount(group[has_group], minlength=Q.shape[1])
    return np.flatnonzero(sizes >= _MIN_ROWS), has_group & (sizes[group] >= _MIN_ROWS)


def _noise(
    Q: Array, triplets: Indices, weights: Array, log_odds: float, noise: float, generator: np.random.Generator
) -> float:
    """Return the share e that maximizes the likelihood of the triplets.

    A triplet has probability ``1 - e`` if its query is in the group of the preferred object only, e if in that of the
    other one only, and one half otherwise. The groups of its rows are those without its own evidence.
    """
    if len(triplets) > _MAX_NOISE_TRIPLETS:
        sample = generator.choice(len(triplets), _MAX_NOISE_TRIPLETS, replace=False)
        triplets, weights = triplets[sample], weights[sample]
    query, good, bad = (Q[rows] for rows in triplets.T)
    evidence = (log_odds * weights[:, np.newaxis]).astype(np.float32)
    without = _normalized(query * np.exp(evidence * (bad - good)))
    with_good = np.einsum("ik,ik->i", without, _normalized(good * np.exp(-evidence * query)))
    with_bad = np.einsum("ik,ik->i", without, _normalized(bad * np.exp(evidence * query)))
    right, wrong = with_good * (1 - with_bad), with_bad * (1 - with_good)
    for _ in range(_N_NOISE_STEPS):
        total = right * (1 - noise) + wrong * noise + (1 - right - wrong) / 2
        flipped = float(weights @ (wrong * noise / total))
        decided = flipped + float(weights @ (right * (1 - noise) / total))
        noise = float(np.clip((flipped + 1) / (decided + 2), _LEAST_NOISE, _MOST_NOISE))
    return noise


def _normalized(Q: Array) -> Array:
    """Return rows that sum to 1; rows without any mass are uniform."""
    total = Q.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(Q, total, out=np.full_like(Q, 1 / Q.shape[1]), where=total > 0))

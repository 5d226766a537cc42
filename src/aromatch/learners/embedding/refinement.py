"""Refinement of a linear map L by gradient descent on a ranking loss (beyond the paper).

Closed-form maps do not optimize a ranking. With ``c_ij`` the cosine of ``L'q_i`` and ``L'p_j``, t a temperature and
A(i) the positives of query i, L descends the mean of ::

    -log( sum_{j in A(i)} exp(c_ij / t)  /  sum_j exp(c_ij / t) )

This is neighbourhood components analysis (Goldberger et al. 2004) with cosines, and triplets in place of labels. The
nearest objects have nearly all the weight, so the top of the ranking dominates.

Each step samples triplets, and ranks all their objects for each of their queries. Positives of a query are the object
that it prefers, and every other that the graph of all triplets (`triplet_graph`) matches with it, compared or not: the
directions of both have a cosine above 1/2. Without components above the noise level some positives are taken for
negatives when they are sampled for other queries; that is rare, and costs little.

Steps are those of Adam (Kingma and Ba 2015), and the result is the mean of L over the last quarter of them, which
averages the sampling noise (Polyak and Juditsky 1992). Features are scaled so that all rows of L have the same mean
absolute value, so units of features do not matter. A few hundred steps are enough.

Temperature and number of steps are chosen on validation rows (`training_set`): starting from a map that was fitted
without them, triplets of training rows are used as long as the ranks of the validation positives improve.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._utils.progress import progress_bar
from ..._utils.rows import Matrix, nonzero_norms
from .projection import principal
from .training_set import ScaledSet, TripletData, ValidationSet

Array = NDArray[Any]
Mask = NDArray[np.bool_]

# Triplets in a step.
_BATCH = 256
_LEARNING_RATE = 0.02
# Features whose row of L has a mean absolute value below this part of the largest are left out.
_NEGLIGIBLE = 1e-9
_DECAY_OF_MEANS, _DECAY_OF_SQUARES = 0.9, 0.99
# Candidates.
_TEMPERATURES = (0.1, 0.2)
_NUMBERS_OF_STEPS = (50, 100, 200, 400)
# A gain counts if it exceeds so many standard errors.
_N_ERRORS = 1.5


class Settings(NamedTuple):
    """Settings of the descent."""

    temperature: float
    n_steps: int


# Without validation rows.
_DEFAULT = Settings(0.2, 100)


class Refined(NamedTuple):
    """A refined map, and the log ranks of validation queries by a map that was refined without them."""

    L: NDArray[np.float64]
    log_ranks: Array | None


class Batch(NamedTuple):
    """Queries and objects to rank for each of them."""

    queries: Matrix
    objects: Matrix
    positive: Mask
    is_self: Mask | None
    """Where the object is the query itself, which is not ranked."""


def refine(
    L: NDArray[np.float64],
    L_train: NDArray[np.float64] | None,
    training: TripletData,
    power: float,
    generator: np.random.Generator,
    *,
    settings: Settings = _DEFAULT,
    verbose: bool = False,
) -> Refined:
    """Refine a map, or return it as it is if validation rows do not improve.

    Scores divide by `power` of the norms. Settings are chosen for `L_train`, the map fitted without validation rows;
    `settings` are used without it.
    """
    scales = np.abs(L).mean(axis=1, keepdims=True) if L.size else np.zeros((len(L), 1))
    scales[scales < _NEGLIGIBLE * scales.max()] = 0
    if not len(training.triplets) or not scales.any():
        return Refined(L, None)
    scaled = training.scaled(scales.ravel())
    validation, training_part = ValidationSet.of(scaled), scaled.training_part()
    with progress_bar("refining", (len(_TEMPERATURES) + 1) * _NUMBERS_OF_STEPS[-1], enabled=verbose) as advance:
        choice: Settings | None = settings
        log_ranks = None
        if L_train is not None and validation is not None and len(training_part.triplets):
            start = _divided(L_train, scales)
            choice, log_ranks = _choose(start, power, training_part, validation, generator, advance)
        if choice is None:
            return Refined(L, log_ranks)
        steps = adam(_divided(L, scales), batches(scaled, generator), choice.temperature, advance)
        best = mean_of_last_quarter(choice.n_steps, choice.n_steps, steps)
    return Refined(principal(best * scales), log_ranks)


def _choose(
    L: Array,
    power: float,
    training: ScaledSet,
    validation: ValidationSet,
    generator: np.random.Generator,
    advance: Callable[[int], None],
) -> tuple[Settings | None, Array]:
    """Return the temperature and number of steps that rank validation positives best, and the log ranks of queries.

    The choice is None if no gain is significant.
    """
    before = validation.log_ranks(L, power)
    best, choice = before, None
    for temperature in _TEMPERATURES:
        steps = adam(L, batches(training, generator), temperature, advance)
        done, lowest = 0, np.inf
        for n_steps in _NUMBERS_OF_STEPS:
            latest, done = mean_of_last_quarter(n_steps - done, n_steps, steps), n_steps
            found = validation.log_ranks(latest, power)
            if found.mean() < best.mean():
                best, choice = found, Settings(temperature, n_steps)
            if found.mean() >= lowest:
                break
            lowest = float(found.mean())
    gains = before - best
    is_significant = gains.mean() > _N_ERRORS * gains.std() / np.sqrt(len(gains))
    return (choice, best) if is_significant else (None, before)


def batches(training: ScaledSet, generator: np.random.Generator) -> Iterator[Batch]:
    """Sample triplets with probabilities proportional to their weights, without end."""
    queries, objects = training.queries, training.objects
    ends = np.cumsum(training.weights)
    while True:
        sampled = np.searchsorted(ends, generator.random(_BATCH) * ends[-1], side="right")
        query, *both = training.triplets[np.minimum(sampled, len(ends) - 1)].T
        shown = np.concatenate(both)
        positive = queries.directions[query] @ objects.directions[shown].T > 0.5
        positive |= shown == both[0][:, np.newaxis]
        is_self = None
        if objects is queries:
            is_self = shown == query[:, np.newaxis]
            positive &= ~is_self
        yield Batch(queries.rows[query], objects.rows[shown], positive, is_self)


def adam(L: Array, batches: Iterator[Batch], temperature: float, advance: Callable[[int], None]) -> Iterator[Array]:
    """Return L after every step."""
    mean, square = np.zeros_like(L), np.zeros_like(L)
    for step, batch in enumerate(batches, start=1):
        gradient = loss_and_gradient(L, batch, temperature)[1]
        mean += (1 - _DECAY_OF_MEANS) * (gradient - mean)
        square += (1 - _DECAY_OF_SQUARES) * (gradient * gradient - square)
        root = np.sqrt(square / (1 - _DECAY_OF_SQUARES**step))
        L = L - _LEARNING_RATE * np.divide(
            mean / (1 - _DECAY_OF_MEANS**step), root, out=np.zeros_like(L), where=root > 0
        )
        advance(1)
        yield L


def mean_of_last_quarter(n_more: int, n: int, steps: Iterator[Array]) -> Array:
    """Take `n_more` steps, for n in total, and return the mean of L over the last quarter of all n."""
    n_last = max(1, n // 4)
    return np.asarray(sum(islice(steps, n_more - n_last, n_more)) / np.float32(n_last))


def loss_and_gradient(L: Array, batch: Batch, temperature: float) -> tuple[float, Array]:
    """Return the mean loss of the queries and its gradient with respect to L, in the precision of L.

    Queries without positives are ignored.
    """
    U, V = batch.queries @ L, batch.objects @ L
    u_norms, v_norms = nonzero_norms(U), nonzero_norms(V)
    U, V = U / u_norms, V / v_norms
    weights = U @ V.T
    weights -= 1  # exponentials do not overflow
    weights /= temperature
    np.exp(weights, out=weights)
    if batch.is_self is not None:
        weights[batch.is_self] = 0
    of_all, of_positives = weights.sum(axis=1), np.where(batch.positive, weights, 0).sum(axis=1)
    has_positives = of_positives > 0
    n = max(1, int(np.count_nonzero(has_positives)))
    loss = -float(np.log(of_positives[has_positives] / of_all[has_positives]).sum()) / n
    # From here on: the gradient with respect to the cosines.
    in_all, in_positives = (
        np.divide(1 / (temperature * n), total, out=np.zeros_like(total), where=has_positives)[:, np.newaxis]
        for total in (of_all, of_positives)
    )
    weights *= np.where(batch.positive, in_all - in_positives, in_all)
    by_queries = batch.queries.T @ _through_unit_norm(weights @ V, U, u_norms)
    return loss, by_queries + batch.objects.T @ _through_unit_norm(weights.T @ U, V, v_norms)


def _divided(L: NDArray[np.float64], scales: NDArray[np.float64]) -> Array:
    return np.divide(L, scales, out=np.zeros_like(L), where=scales > 0).astype(np.float32)


def _through_unit_norm(gradient: Array, unit: Array, norms: Array) -> Array:
    """Return the gradient with respect to rows from the gradient with respect to the rows scaled to unit norm."""
    along = np.einsum("ij,ij->i", gradient, unit)[:, np.newaxis]
    return np.asarray((gradient - along * unit) / norms)

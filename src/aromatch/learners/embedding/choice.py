"""Fit the methods of an embedding and choose among them on validation rows.

Every choice is made by the same measure: the mean logarithm of the ranks of validation positives for validation
queries, with maps that were fitted without validation rows (`training_set`). The chosen method is fitted on all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...exceptions import NoSignalError
from .groups import Groups, fit_groups, group_probabilities
from .projection import moment_map, over_power
from .refinement import Refined, refine
from .spectral import spectral_map
from .training_set import ScaledSet, TripletData, ValidationSet

Array = NDArray[Any]
LinearMethod = Callable[[TripletData, int, float | None], tuple[Array, Array | None] | None]

# Each returns the map of all rows and that of the training rows alone, or None without signal.
_LINEAR: dict[str, LinearMethod] = {"moment": moment_map, "spectral": spectral_map}
_CANDIDATES = {"moment": ("moment",), "spectral": ("spectral",)}
METHODS = ("auto", "linear", *_LINEAR, "groups", "blend", "cosine")
"""Values of the parameter `method`."""
# Power of the norm that rows are divided by after a linear map.
POWER = 0.7
# Weights of the rows against the penalty of the recogniser, and weights of the groups in a blend: candidates, the first
# one without validation rows.
_STRENGTHS, WEIGHTS = (10.0, 3.0), (1.0, 0.5, 2.0)
# A gain over the cosine counts if it exceeds so many standard errors, over at least so many queries.
_N_ERRORS, _MIN_QUERIES = 1.0, 3


class Fitted(NamedTuple):
    """The maps of a fitted method, and the scores of all methods that were compared with it."""

    method: str
    L: Array | None = None
    """The linear map; None for the cosine and for groups."""
    power: float = 1.0
    scores: dict[str, float] = {}  # noqa: RUF012 (never changed)
    recogniser: Array | None = None
    weight: float = 1.0
    """Weight of the groups."""
    noise: float = np.nan


COSINE = Fitted("cosine")


class _Linear(NamedTuple):
    """A refined linear map, and what validation rows say about it."""

    name: str
    refined: Refined
    L_train: Array | None
    """The map of the training rows before the refinement."""
    log_ranks: dict[str, Array]
    """Those of each candidate; that of the chosen one after its refinement."""


class _Grouped(NamedTuple):
    """Groups of all rows, and those of the training rows with the log ranks of validation queries."""

    groups: Groups
    train: Groups | None
    log_ranks: Array | None


def choose(
    training: TripletData,
    method: str,
    n_components: int,
    alpha: float | None,
    generator: np.random.Generator,
    verbose: bool,
) -> Fitted:
    """Fit a method, or the one that ranks validation rows best."""
    if method == "groups":
        return _as_groups(_fit_groups(training, generator))
    if method == "blend":
        return _fit_blend(training, n_components, alpha, generator, verbose)
    validation = ValidationSet.of(training.scaled())
    if method == "auto" and validation is None:
        return COSINE
    linear = _fit_linear(training, validation, method, n_components, alpha, generator, verbose)
    if linear is None or (method == "auto" and not linear.log_ranks):
        return COSINE
    log_ranks, name = dict(linear.log_ranks), linear.name
    if method == "auto" and validation is not None:
        log_ranks["cosine"] = validation.log_ranks(None, 1.0)
        gains = log_ranks["cosine"] - log_ranks[name]
        error = gains.std() / np.sqrt(max(1, len(gains) - 1))
        if len(gains) < _MIN_QUERIES or not gains.mean() > _N_ERRORS * error:
            return COSINE._replace(scores=_scores(log_ranks))
    return Fitted(name, linear.refined.L, POWER, _scores(log_ranks))


def _fit_linear(
    training: TripletData,
    validation: ValidationSet | None,
    method: str,
    n_components: int,
    alpha: float | None,
    generator: np.random.Generator,
    verbose: bool,
) -> _Linear | None:
    """Fit the linear candidates of a method and refine the best one; None for "auto" without signal or validation."""
    names = _CANDIDATES.get(method, tuple(_LINEAR))
    found = {name: maps for name in names if (maps := _LINEAR[name](training, n_components, alpha))}
    if not found:
        if method == "auto":
            return None
        raise _no_signal(training, method, "signal above the noise level")
    log_ranks: dict[str, Array] = {}
    if validation is not None and all(L_train is not None for _, L_train in found.values()):
        for name, (_, L_train) in found.items():
            log_ranks[name] = validation.log_ranks(np.asarray(L_train, dtype=np.float32), POWER)
    if method == "auto" and not log_ranks:
        return None
    name = min(found, key=lambda one: log_ranks[one].mean() if log_ranks else 0.0)
    refined = refine(*found[name], training, POWER, generator, verbose=verbose)
    if refined.log_ranks is not None:
        log_ranks[name] = refined.log_ranks
    return _Linear(name, refined, found[name][1], log_ranks)


def _fit_groups(training: TripletData, generator: np.random.Generator) -> _Grouped:
    """Fit groups with the penalty that ranks validation rows best."""
    scaled = training.scaled()
    validation, part = ValidationSet.of(scaled), scaled.training_part()
    strength, train, best = _STRENGTHS[0], None, None
    if validation is not None and len(part.triplets):
        for candidate in _STRENGTHS:
            found = fit_groups(part, candidate, generator)
            if found is None:
                continue
            ranks = validation.log_ranks_of(*_of_validation(validation, found))
            if best is None or ranks.mean() < best.mean():
                strength, train, best = candidate, found, ranks
    groups = fit_groups(scaled, strength, generator)
    if groups is None:
        raise _no_signal(training, "groups", "community of at least five rows")
    return _Grouped(groups, train, best)


def _as_groups(found: _Grouped) -> Fitted:
    scores = {} if found.log_ranks is None else _scores({"groups": found.log_ranks})
    return Fitted("groups", None, 1.0, scores, found.groups.recogniser, 1.0, found.groups.noise)


def _fit_blend(
    training: TripletData, n_components: int, alpha: float | None, generator: np.random.Generator, verbose: bool
) -> Fitted:
    """Fit a linear map and groups, and choose the weight of the groups on validation rows."""
    scaled: ScaledSet = training.scaled()
    validation = ValidationSet.of(scaled)
    linear = _fit_linear(training, validation, "linear", n_components, alpha, generator, verbose)
    assert linear is not None  # it raises for this method
    grouped = _fit_groups(training, generator)
    log_ranks, weight = dict(linear.log_ranks), WEIGHTS[0]
    if validation is not None and grouped.train is not None and linear.L_train is not None:
        assert grouped.log_ranks is not None
        log_ranks["groups"] = grouped.log_ranks
        L = np.asarray(linear.L_train, dtype=np.float32)
        linear_parts = [over_power(rows @ L, 1.0) for rows in (validation.queries, validation.objects.rows)]
        group_parts = _of_validation(validation, grouped.train)

        def of_weight(candidate: float) -> Array:
            sides = (
                np.hstack([one, np.sqrt(candidate) * other])
                for one, other in zip(linear_parts, group_parts, strict=True)
            )
            return validation.log_ranks_of(*sides)

        found = {candidate: of_weight(candidate) for candidate in WEIGHTS}
        weight = min(found, key=lambda one: found[one].mean())
        log_ranks["blend"] = found[weight]
    groups = grouped.groups
    return Fitted("blend", linear.refined.L, 1.0, _scores(log_ranks), groups.recogniser, weight, groups.noise)


def _of_validation(validation: ValidationSet, groups: Groups) -> tuple[Array, Array]:
    """Return the probabilities of the groups of validation queries and objects."""
    return (
        group_probabilities(validation.queries, groups.recogniser),
        group_probabilities(validation.objects.rows, groups.recogniser),
    )


def _scores(log_ranks: dict[str, Array]) -> dict[str, float]:
    return {name: float(np.exp(-ranks.mean())) for name, ranks in log_ranks.items()}


def _no_signal(training: TripletData, method: str, missing: str) -> NoSignalError:
    return NoSignalError(
        f"no {missing} in {len(training.triplets)} informative triplets over {len(training.graph.query_rows)} queries "
        f"for method={method!r}; use more triplets per query, method='auto' or MomentAROMA"
    )

"""Results of the checks of a model that `learn_one` reuses: checking again would take longer than the update."""

from __future__ import annotations

from functools import cache
from operator import is_
from typing import Any, NamedTuple, Self

from numpy.typing import NDArray

from .inputs import Limits
from .online.definite import Schedule


class Readiness(NamedTuple):
    """Results of checks, valid while the state and the parameters of the model are the same objects."""

    state: dict[str, NDArray[Any]]
    params: list[Any]
    noise: float
    m: int
    n: int
    limits: Limits
    has_std: bool
    schedule: Schedule

    @classmethod
    def of(cls, model: Any) -> Readiness | None:
        """Return the results of earlier checks; None if the state or a parameter is another object."""
        own = model.__dict__
        ready: Readiness | None = own.get("_ready")
        if ready is None or own.get("_state") is not ready.state:
            return None
        # Identity is quick and enough: what was checked is still valid, and arrays are not compared.
        return ready if all(map(is_, ready.params, map(own.get, _param_names(model.__class__)))) else None

    @classmethod
    def new(cls, model: Any, noise: float, limits: Limits) -> Self:
        """Return the results of the checks that a fitted model has just passed."""
        params = [getattr(model, name) for name in _param_names(model.__class__)]
        m, n = model.n_features_in_, model.n_object_features_in_
        return cls(model._state, params, noise, m, n, limits, hasattr(model, "_variances"), model._schedule)


@cache
def _param_names(learner: Any) -> tuple[str, ...]:
    return tuple(learner._get_param_names())

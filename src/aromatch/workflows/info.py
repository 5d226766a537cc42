"""What a model file is, what it was learned on, and how sure it is."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..io.container import read_model
from ..learners import DiagonalAROMA, FactoredAROMA
from ..search.adapter.adapter import load_adapter
from .bundle import KEY, Trained


@dataclass(frozen=True, slots=True)
class InfoReport:
    """What there is to know of a model file."""

    path: str
    n_bytes: int
    kind: str
    """The class of the model."""
    parameters: dict[str, Any]
    n_query_features: int
    n_object_features: int
    prepared: str
    """How rows are made for it."""
    about: dict[str, Any]
    """What it was learned on; empty where nobody noted it."""
    n_triplets: int | None
    n_updates: int | None
    n_mistakes: int | None
    variance_left: float | None
    """Mean variance of a cell of W, 1 before anything was learned; None where the model has none, or no such unit."""
    n_predicted: int
    """Comparisons that it told of before it knew."""
    came_true: float | None
    """Share of the last of them that came out as it told."""
    knows_how_sure: bool

    def to_dict(self) -> dict[str, Any]:
        """Give the report as JSON knows it."""
        return asdict(self)


def info(path: str) -> InfoReport:
    """Tell what a model file is."""
    if read_model(path)[0].get("kind") == "adapter":
        return _of_adapter(path)
    trained = Trained.load(path)
    model: Any = trained.model
    n_predicted, came_true = _predictions(model)
    return InfoReport(
        path=path,
        n_bytes=os.path.getsize(path),
        kind=type(model).__name__,
        parameters={name: _short(value) for name, value in model.get_params(deep=False).items()},
        n_query_features=model.n_features_in_,
        n_object_features=model.n_object_features_in_,
        prepared=str(trained.objects)
        if trained.queries is trained.objects
        else f"objects {trained.objects}; queries {trained.queries}",
        about=trained.about,
        n_triplets=getattr(model, "n_triplets_seen_", None),
        n_updates=getattr(model, "n_updates_", None),
        n_mistakes=getattr(model, "n_mistakes_", None),
        variance_left=_variance_left(model),
        n_predicted=n_predicted,
        came_true=came_true,
        knows_how_sure=hasattr(model, "pair_std"),
    )


def _of_adapter(path: str) -> InfoReport:
    adapter = load_adapter(path)
    width = adapter.n_features_in_
    return InfoReport(
        path=path,
        n_bytes=os.path.getsize(path),
        kind="Adapter",
        parameters={"metric": adapter.metric, "correction_weight": adapter.correction_weight_},
        n_query_features=width,
        n_object_features=width,
        prepared="rows of unit norm" if adapter.metric == "cosine" else "rows as they are",
        about={"n_objects": len(adapter), "n_queries": len(adapter._feedback)} | _noted(path),
        n_triplets=None,
        n_updates=None,
        n_mistakes=None,
        variance_left=None,
        n_predicted=0,
        came_true=None,
        knows_how_sure=False,
    )


def _noted(path: str) -> dict[str, Any]:
    """Give what a trial noted about what it shipped."""
    beside = read_model(path)[0].get(KEY)
    about = beside.get("about") if isinstance(beside, dict) else None
    return about if isinstance(about, dict) else {}


def _short(value: Any) -> Any:
    """Give a parameter as JSON knows it; an array by its shape."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return f"a matrix of shape {value.shape}" if hasattr(value, "shape") else str(value)


def _predictions(model: Any) -> tuple[int, float | None]:
    found = model.__dict__.get("_calibration")
    if found is None or not found.n_predictions:
        return 0, None
    margins = found.predictions()[0]
    return int(found.n_predictions), float(np.mean(np.where(margins == 0, 0.5, margins > 0)))


def _variance_left(model: Any) -> float | None:
    if isinstance(model, DiagonalAROMA):
        variances = model.Sigma_
        if sparse.issparse(variances):  # cells that are not stored have variance 1
            return 1 - float(variances.nnz - variances.data.sum()) / float(np.prod(variances.shape))
        return float(variances.mean(dtype=np.float64))
    if isinstance(model, FactoredAROMA):
        return float(np.diagonal(model.Lambda_).mean() * np.diagonal(model.Omega_).mean())
    return None

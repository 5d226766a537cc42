"""Describe a file: the model, its training data, and its uncertainty."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..io.loading import load
from .bundle import TrainedModel


@dataclass(frozen=True, slots=True)
class InfoReport:
    """The result of `info`."""

    path: str
    n_bytes: int
    model: str
    """Class of the model."""
    parameters: dict[str, Any]
    n_query_features: int
    n_object_features: int
    prepared: str
    """Summary of how rows are made."""
    metadata: dict[str, Any]
    """Training data and options; empty if the file contains none."""
    n_triplets: int | None
    n_updates: int | None
    n_mistakes: int | None
    mean_variance: float | None
    """Mean variance of the cells of W, 1 before training; None if the model has no such variances."""
    n_predicted: int
    """Number of held-out comparisons in the calibration."""
    share_correct: float | None
    """Share of the last of them that were predicted correctly."""
    has_std: bool
    """Whether scores have standard deviations."""

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON types."""
        return asdict(self)


def info(path: str) -> InfoReport:
    """Describe a model file."""
    found = load(path)
    bundle = found if isinstance(found, TrainedModel) else None
    model = found if bundle is None else bundle.model
    prepared = "vectors, unscaled"
    if bundle is not None:
        prepared = str(bundle.objects)
        if bundle.queries is not bundle.objects:
            prepared = f"objects: {bundle.objects}; queries: {bundle.queries}"
    n_predicted, share_correct = _predictions(model)
    return InfoReport(
        path=path,
        n_bytes=os.path.getsize(path),
        model=type(model).__name__,
        parameters={name: _short(value) for name, value in _parameters(model).items()},
        n_query_features=model.n_features_in_,
        n_object_features=model.n_object_features_in_,
        prepared=prepared,
        metadata={} if bundle is None else bundle.metadata,
        n_triplets=getattr(model, "n_triplets_seen_", None),
        n_updates=getattr(model, "n_updates_", None),
        n_mistakes=getattr(model, "n_mistakes_", None),
        mean_variance=model._mean_variance() if hasattr(model, "_mean_variance") else None,
        n_predicted=n_predicted,
        share_correct=share_correct,
        has_std=hasattr(model, "similarity_std"),
    )


def _parameters(model: Any) -> dict[str, Any]:
    if hasattr(model, "get_params"):
        return dict(model.get_params(deep=False))
    return {"metric": model.metric, "n_objects": len(model), "correction_weight": model.correction_weight_}


def _short(value: Any) -> Any:
    """Return a parameter as a JSON type; an array by its shape."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return f"a matrix of shape {value.shape}" if hasattr(value, "shape") else str(value)


def _predictions(model: Any) -> tuple[int, float | None]:
    found = model.__dict__.get("_calibration")
    if found is None or not found.n_predictions:
        return 0, None
    margins = found.predictions()[0]
    return int(found.n_predictions), float(np.mean(np.where(margins == 0, 0.5, margins > 0)))

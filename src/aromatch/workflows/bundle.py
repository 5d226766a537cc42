"""A trained model in one file: what it learned, how its rows are made, and what it was learned on.

It is a model file as every other, which `aromatch.load` reads too. What belongs to the command line stands beside the
model: in the header under ``"workflows"``, and in arrays whose names begin with ``attached``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..exceptions import ModelFileError
from ..io.container import read_model, write_model
from ..learners import Similarity
from ..learners.files import ATTACHED, model_of
from .preparation import Preparation

KEY = "workflows"
_PATHS = ("data", "queries", "missing")


@dataclass(eq=False, slots=True)
class Trained:
    """A model with all that is needed to use it."""

    model: Similarity
    objects: Preparation
    queries: Preparation
    """The same as `objects` when queries are prepared like them."""
    about: dict[str, Any] = field(default_factory=dict)
    """What it was learned on and how; nothing of when, so that the same work gives the same file."""
    learned: NDArray[np.int64] | None = None
    """Marks of the queries that it was learned from, rising; None where nobody noted them."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to one file, whole or not at all."""
        header, arrays = self.model._to_parts()
        beside: dict[str, Any] = {"about": self.about}
        for name, side in (("objects", self.objects), ("queries", self.queries)):
            if name == "queries" and side is self.objects:
                continue
            beside[name], found = side.to_parts()
            arrays |= {f"{ATTACHED}.{name}.{label}": array for label, array in found.items()}
        if self.learned is not None:
            arrays[f"{ATTACHED}.learned"] = self.learned
        write_model(path, {**header, KEY: beside}, arrays)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a file that `save` wrote, or that a learner's own `save` did: then vectors are taken as they are."""
        header, arrays = read_model(path)
        if header.get("kind") == "adapter":
            raise ModelFileError(f"{path} holds an adapter, which this command cannot use; `aromatch info` tells of it")
        model = model_of(path, (header, arrays))
        widths = {"objects": model.n_object_features_in_, "queries": model.n_features_in_}
        if KEY not in header:
            objects = Preparation(widths["objects"])
            same = widths["objects"] == widths["queries"]
            return cls(model, objects, objects if same else Preparation(widths["queries"]))
        try:
            beside = header[KEY]
            sides = {name: _side(name, beside[name], arrays) for name in widths if name in beside}
            sides.setdefault("queries", sides["objects"])
            if {name: side.width for name, side in sides.items()} != widths:
                raise ValueError("its rows are not made as wide as the model is")
            _check_about(beside["about"])
            learned = arrays.get(f"{ATTACHED}.learned")
            if learned is not None and (learned.dtype != np.int64 or learned.ndim != 1):
                raise ValueError("the marks of what it was learned from are none")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ModelFileError(f"{path} is not a model that this version can use: {error}") from error
        return cls(model, sides["objects"], sides["queries"], beside["about"], learned)


def _check_about(about: Any) -> None:
    """Refuse what `train` would not have written, where something depends on it."""
    if not isinstance(about, dict):
        raise ValueError("what it tells of itself is nothing")
    for key, value in about.items():
        is_right = (
            value is None or isinstance(value, str)
            if key in _PATHS
            else isinstance(value, int) and not isinstance(value, bool) and value >= 0
            if key.startswith("n_") or key == "seed"
            else isinstance(value, dict) and all(isinstance(path, str) for path in value.values())
            if key == "files"
            else True
        )
        if not is_right:
            raise ValueError(f"what it tells of its {key} is {value!r:.40}")


def _side(name: str, header: Any, arrays: dict[str, Any]) -> Preparation:
    prefix = f"{ATTACHED}.{name}."
    return Preparation.from_parts(
        header, {label.removeprefix(prefix): array for label, array in arrays.items() if label.startswith(prefix)}
    )

"""A trained model in one file: the model, how its rows are made, and metadata about its training.

`aromatch train` and `aromatch trial` write bundles and `aromatch.load` reads them. A bundle maps texts or vectors as
they come from the user; its ``model`` maps feature rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._utils.rows import Matrix, MatrixLike, as_dense, as_matrix
from ..exceptions import ModelFileError
from ..io.container import write_model
from ..io.items import Items
from ..io.loading import assemble, load
from .preparation import Preparation

_PATHS = ("data", "queries", "missing")


@dataclass(eq=False, slots=True)
class TrainedModel:
    """A model with the preparation of its rows; `aromatch.load` returns one for files of `aromatch train`.

    ``transform`` and ``transform_objects`` map texts or vectors for a vector store with the metric ``metric_``.
    """

    model: Any
    """A learner, an embedding or an adapter."""
    objects: Preparation
    queries: Preparation
    """The same object as `objects` if queries are prepared like them."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """Training data and options, without times, so that the same training writes the same file."""
    row_hashes: NDArray[np.int64] | None = None
    """Sorted hashes of the training queries; None if they are unknown."""

    def __repr__(self) -> str:
        return f"TrainedModel({' '.join(repr(self.model).split())}, {self.objects})"

    @property
    def metric_(self) -> str:
        """The metric that the vector store must use: "dot" or "euclidean"."""
        return str(self.model.metric_)

    def transform(self, queries: MatrixLike | Sequence[str]) -> NDArray[Any]:
        """Return the vectors of queries, a row for each text or vector."""
        return as_dense(self.model.transform(_rows(self.queries, queries, "queries"))).astype(np.float32, copy=False)

    def transform_objects(self, objects: MatrixLike | Sequence[str]) -> Matrix:
        """Return the vectors of objects; sparse rows of an identity map stay sparse."""
        found = self.model.transform_objects(_rows(self.objects, objects, "objects"))
        return found if sparse.issparse(found) else np.asarray(found, dtype=np.float32)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the bundle to one file, which appears complete or not at all."""
        write_model(path, *self._to_parts())

    def _to_parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        model, arrays = self.model._to_parts()
        header = {"kind": "bundle", "model": model, "metadata": self.metadata}
        arrays = {f"model.{name}": array for name, array in arrays.items()}
        for name, side in (("objects", self.objects), ("queries", self.queries)):
            if name == "objects" or side is not self.objects:
                header[name], found = side.to_parts()
                arrays |= {f"{name}.{label}": array for label, array in found.items()}
        if self.row_hashes is not None:
            arrays["row_hashes"] = self.row_hashes
        return header, arrays

    @classmethod
    def _from_parts(cls, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        model = assemble(header["model"], _part(arrays, "model"))
        objects = Preparation.from_parts(header["objects"], _part(arrays, "objects"))
        queries = objects
        if "queries" in header:
            queries = Preparation.from_parts(header["queries"], _part(arrays, "queries"))
        if (objects.width, queries.width) != (model.n_object_features_in_, model.n_features_in_):
            raise ValueError("the prepared rows and the model must have the same number of features")
        _check_metadata(header["metadata"])
        row_hashes = arrays.get("row_hashes")
        if row_hashes is not None and (row_hashes.dtype != np.int64 or row_hashes.ndim != 1):
            raise ValueError("row_hashes must be a vector of int64")
        return cls(model, objects, queries, header["metadata"], row_hashes)


def read_bundle(path: str | PathLike[str]) -> TrainedModel:
    """Load a model for a command; a file of a learner itself takes vectors unscaled."""
    found = load(path)
    bundle = found if isinstance(found, TrainedModel) else None
    model = found if bundle is None else bundle.model
    if hasattr(model, "judge"):  # it learns from feedback about its own objects and scores no others
        raise ModelFileError(
            f"{path} contains an adapter, which searches its own objects only: use it from Python with `aromatch.load`"
        )
    if bundle is not None:
        return bundle
    objects = Preparation(model.n_object_features_in_)
    same = model.n_object_features_in_ == model.n_features_in_
    return TrainedModel(model, objects, objects if same else Preparation(model.n_features_in_))


def _rows(side: Preparation, given: Any, name: str) -> Matrix:
    if side.features is not None:
        texts = [given] if isinstance(given, str) else list(given)
        if not all(isinstance(text, str) for text in texts):
            raise TypeError(f"{name} must be texts: the model was trained on texts")
        return side.rows(Items(name, [str(at) for at in range(len(texts))], texts=texts))
    matrix = as_matrix(given if sparse.issparse(given) else np.atleast_2d(given), name)
    return side.rows(Items(name, [str(at) for at in range(matrix.shape[0])], vectors=matrix))


def _part(arrays: dict[str, NDArray[Any]], name: str) -> dict[str, NDArray[Any]]:
    prefix = f"{name}."
    return {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}


def _check_metadata(metadata: Any) -> None:
    """Check the entries that commands depend on."""
    if not isinstance(metadata, dict):
        raise ValueError(f"metadata must be a dict, got {metadata!r:.40}")
    for key, value in metadata.items():
        is_valid = (
            value is None or isinstance(value, str)
            if key in _PATHS
            else isinstance(value, int) and not isinstance(value, bool) and value >= 0
            if key.startswith("n_") or key == "seed"
            else isinstance(value, dict) and all(isinstance(path, str) for path in value.values())
            if key == "files"
            else isinstance(value, dict) and all(_is_progress(one) for one in value.values())
            if key == "answers"
            else True
        )
        if not is_valid:
            raise ValueError(f"invalid metadata: {key} is {value!r:.40}")


def _is_progress(one: Any) -> bool:
    """Return whether an entry is the number and the hash of the answers of a log."""
    return isinstance(one, list) and len(one) == 2 and type(one[0]) is int and one[0] >= 0 and isinstance(one[1], str)

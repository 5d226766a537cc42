"""The protocol of a store of object vectors, and the result of a search.

`Index` and `Adapter` keep their objects in a store. Users see ids (`int` or `str`); inside the package an object is
addressed by its key, an int64: integer ids are their own keys, string ids get keys that are never reused.

`memory` is the only store so far. `Store` is the part of it that other stores will have in common.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._utils.nearest import TopK
from ..._utils.rows import Matrix

Array = NDArray[Any]
Keys = NDArray[np.int64]


class Hits(NamedTuple):
    """Result of a search, best first: one row per query, or vectors if the query was a vector."""

    ids: Array
    scores: Array
    stds: Array | None = None
    """Standard deviations of the scores under the learned distribution; None if the model has none."""

    def __repr__(self) -> str:
        with np.printoptions(precision=4, threshold=60, edgeitems=3):
            fields = (f"{name}={value}" for name, value in zip(self._fields, self, strict=True) if value is not None)
            return f"Hits({', '.join(fields)})"


@runtime_checkable
class Store(Protocol):
    """Vectors under keys, searched by inner product ("dot") or by minus the squared distance ("euclidean")."""

    n_features: int
    metric: str

    def __len__(self) -> int:
        """Return the number of objects."""

    @property
    def ids(self) -> Array:
        """Ids of all objects in the order in which they were added."""

    def keys(self, ids: ArrayLike, name: str) -> Keys:
        """Return the keys of objects; raise a ValueError that names the argument if one is missing."""

    def ids_of(self, keys: Keys) -> Array:
        """Return the ids of keys, in an array of the same shape."""

    def add(self, rows: Matrix, ids: ArrayLike | None = None) -> Keys:
        """Add objects and return their keys; ids default to integers that continue from the largest so far."""

    def remove(self, keys: Keys) -> None:
        """Remove objects."""

    def rows(self, keys: Keys) -> Matrix:
        """Return the vectors of objects, in the order of the keys."""

    def nearest(self, vectors: Array, k: int) -> TopK:
        """Return the keys of the k best objects for each vector, and their scores."""

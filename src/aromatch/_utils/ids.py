"""Ids of objects, `int` or `str`, and the integer keys that stand for them inside the package."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .checks import as_array, as_list
from .journal import Journal

Keys = NDArray[np.int64]

MAX_ID = 2**53 - 1


def as_ids(ids: ArrayLike, name: str) -> NDArray[Any]:
    """Return one id or several as an int64 array, or as an object array of str.

    >>> as_ids("a", "ids"), as_ids([3, 1], "ids")
    (array(['a'], dtype=object), array([3, 1]))
    """
    array = np.atleast_1d(as_array(ids, name))
    if not array.size:
        return np.empty(0, dtype=np.int64)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got the shape {array.shape}")
    if array.dtype.kind in "iu":
        if array.min() < 0 or array.max() > MAX_ID:
            raise ValueError(f"{name} must be from 0 to 2**53 - 1, got {array[(array < 0) | (array > MAX_ID)][0]}")
        return array.astype(np.int64)
    # NumPy converts the numbers of a mixed list to text: look at the values as they were given.
    values = array.tolist() if hasattr(ids, "dtype") or isinstance(ids, str) else as_list(ids, name)  # type: ignore[arg-type]
    wrong = [one for one in values if not isinstance(one, str)]
    if wrong:
        raise TypeError(f"{name} must be all int or all str, got {wrong[0]!r:.100} ({type(wrong[0]).__name__})")
    found = np.empty(len(values), dtype=object)
    found[:] = [str(one) for one in values]
    return found


def check_unique(ids: NDArray[Any], name: str, n: int) -> None:
    """Raise a ValueError unless there are n different ids."""
    if len(ids) != n:
        raise ValueError(f"{name} must have one id for each of the {n} objects, got {len(ids)}")
    if len(set(ids.tolist())) < n:
        raise ValueError(f"{name} must be unique, got some id twice")


class IdTable:
    """Keys of ids. Integer ids are their own keys; string ids get the keys that a store assigns."""

    def __init__(self, names: dict[int, str] | None = None) -> None:
        self.names = names
        """The id of each key; None if ids are integers."""
        self._key_of = {} if names is None else {name: key for key, name in names.items()}

    def keys(self, ids: ArrayLike, name: str) -> tuple[NDArray[Any], Keys]:
        """Return ids as an array, and their keys; -1 for unknown strings."""
        given = as_ids(ids, name)
        if len(given) and (given.dtype == object) != (self.names is not None):
            kind = "int" if self.names is None else "str"
            raise TypeError(f"{name} must be {kind} like the ids of the objects, got {given.tolist()[0]!r:.100}")
        if self.names is None or not len(given):
            return given, given
        return given, np.array([self._key_of.get(one, -1) for one in given], dtype=np.int64)

    def ids(self, keys: Keys) -> NDArray[Any]:
        """Return the ids of keys, in an array of the same shape."""
        if self.names is None:
            return keys
        found = np.empty(keys.size, dtype=object)
        found[:] = [self.names[key] for key in keys.ravel().tolist()]
        return found.reshape(keys.shape)

    def assign(self, ids: NDArray[Any], keys: Keys, journal: Journal) -> None:
        """Set the keys of new string ids."""
        if self.names is not None:
            pairs = list(zip(keys.tolist(), ids.tolist(), strict=True))
            journal.note(lambda: self._drop(pairs))
            self._add(pairs)

    def remove(self, keys: Keys, journal: Journal) -> None:
        """Remove string ids by their keys."""
        if self.names is not None:
            pairs = [(key, self.names[key]) for key in keys.tolist()]
            journal.note(lambda: self._add(pairs))
            self._drop(pairs)

    def _add(self, pairs: list[tuple[int, str]]) -> None:
        assert self.names is not None
        for key, name in pairs:
            self.names[key] = name
            self._key_of[name] = key

    def _drop(self, pairs: list[tuple[int, str]]) -> None:
        assert self.names is not None
        for key, name in pairs:
            self.names.pop(key, None)
            self._key_of.pop(name, None)

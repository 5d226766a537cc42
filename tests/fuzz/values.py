"""Names for the expressions of calls: valid arguments, fitted models, and ways to spoil them.

A call is stored as text, so a stored case is a program of a few lines that anybody can run.
"""

from __future__ import annotations

import copy
import functools
import tempfile
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

import aromatch as am

_RNG = np.random.default_rng(0)
N, WIDTH, N_TRIPLETS = 8, 4, 10
Y = np.arange(N) % 2
_CENTRES = _RNG.normal(size=(2, WIDTH))
Q, P = (np.round(_CENTRES[Y] + 0.3 * _RNG.normal(size=(N, WIDTH)), 2) for _ in range(2))
TRIPLETS = np.array([[at % N, (at + 2) % N, (at + 3) % N] for at in range(N_TRIPLETS)])
PAIRS = TRIPLETS[:, :2].copy()
IS_SIMILAR = np.arange(N_TRIPLETS) % 2 == 0
WEIGHTS = np.linspace(0.5, 2, N_TRIPLETS)
TEXTS = [
    "apple pear plum",
    "pear cherry apple",
    "hammer saw drill",
    "saw chisel hammer",
    "apple plum",
    "drill saw",
    "pear",
    "clamp drill",
]
SESSIONS = [["a", "b", "c"], ["b", "d"], ["c", "a", "b"]]
QRELS = {"a": {"b": 2, "c": 0}, "b": {"d": 1, "a": 0}}
CLICKS = [("a", ["b", "c"], ["c"]), {"query": "b", "shown": ["a", "d"], "clicked": "d"}]
IDS = ["a", "b", "c", "d"]
IMAGES = [_RNG.integers(0, 255, size=(24, 24, 3)).astype(np.uint8) for _ in range(3)]


class Rows(np.ndarray):
    """A subclass of an array."""


class Strange:
    """An object with awkward special methods."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, key: Any) -> Any:
        raise RuntimeError("strange") if key > 2 else IndexError

    def __float__(self) -> float:
        return float("nan")


@functools.cache
def _fitted(name: str, **parameters: Any) -> Any:
    cls = getattr(am, name)
    model = cls(**parameters)
    return model.fit_triplets(TRIPLETS, Q) if hasattr(cls, "learn_one") else model.fit(Q, Y)


def fitted(name: str, **parameters: Any) -> Any:
    """Return a new fitted model of a class."""
    return copy.deepcopy(_fitted(name, **parameters))


def calibrated(name: str, **parameters: Any) -> Any:
    """Return a new fitted and calibrated model of a class."""
    return fitted(name, **parameters).calibrate(np.repeat(TRIPLETS, 8, axis=0), Q)


def adapter(ids: Any = None, **parameters: Any) -> Any:
    """Return an adapter with some feedback."""
    found = am.Adapter(Q, ids=ids, random_state=0, **parameters)
    names = list(range(N)) if ids is None else ids
    found.judge(Q[0], good=[names[1]], bad=[names[2]])
    found.click(Q[3], shown=names[:4], clicked=names[2])
    return found


def index(**parameters: Any) -> Any:
    """Return an index of the objects."""
    return am.Index(fitted("DiagonalAROMA"), P, **parameters)


def fingerprint(vectors: Any = Q) -> Any:
    """Return a fingerprint."""
    return am.Fingerprint.of("encoder", vectors)


def run(name: str = "DiagonalAROMA") -> Any:
    """Return a recorded run for the theorems."""
    return am.theory.record_run(getattr(am, name)(), TRIPLETS, Q)


def text_features() -> Any:
    """Return fitted features of texts."""
    return am.features.TextFeatures(n_terms=5).fit(TEXTS, Y)


def image_features() -> Any:
    """Return fitted features of images."""
    return am.features.ImageFeatures(n_words=2, patch_size=8, stride=8, n_jobs=1).fit(IMAGES)


def path(name: str = "x.safetensors") -> Path:
    """Return a path in a new folder."""
    return Path(tempfile.mkdtemp()) / name


def model_file() -> Path:
    """Return the path of a model file."""
    to = path()
    _fitted("DiagonalAROMA").save(to)
    return to


# -- ways to spoil a valid argument -----------------------------------------------------------------------------------


def put(array: Any, value: Any, at: int = 0, dtype: Any = None) -> Any:
    """Return a copy of an array with another value."""
    changed = np.array(array, dtype=dtype)
    changed.flat[at % max(1, changed.size)] = value
    return changed


def read_only(array: Any) -> Any:
    """Return a copy that cannot be written."""
    changed = np.array(array)
    changed.flags.writeable = False
    return changed


def unaligned(array: Any) -> Any:
    """Return a copy whose values do not start at a multiple of their size."""
    array = np.asarray(array)
    buffer = np.zeros(array.nbytes + 1, dtype=np.uint8)
    view = buffer[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


def csr(array: Any = Q, form: str = "csr", **arrays: Any) -> Any:
    """Return a sparse matrix whose arrays are replaced without checks."""
    matrix = getattr(sparse, f"{form}_array")(np.asarray(array))
    for name, values in arrays.items():
        if name == "index_type":
            for each in ("indices", "indptr", "offsets"):
                if hasattr(matrix, each):
                    setattr(matrix, each, getattr(matrix, each).astype(values))
            if form == "coo":
                matrix.coords = tuple(one.astype(values) for one in matrix.coords)
        elif name == "shape":
            matrix._shape = values
        elif form == "lil":
            lists = np.empty(len(values), dtype=object)
            lists[:] = values
            setattr(matrix, name, lists)
        elif form == "dok":
            matrix._dict = values
        else:
            setattr(matrix, name, np.asarray(values))
    return matrix


def masked(array: Any) -> Any:
    """Return a masked array with one masked value."""
    array = np.asarray(array)
    mask = np.zeros(array.shape, dtype=bool)
    mask.flat[0] = True
    return np.ma.array(array, mask=mask)


NAMES: dict[str, Any] = {
    **{
        name: value
        for name, value in globals().items()
        if not name.startswith("_") and name not in ("annotations", "Any")
    },
    "nan": float("nan"),
    "inf": float("inf"),
}


def evaluate(expression: str) -> Any:
    """Return the value of an expression."""
    return eval(expression, dict(NAMES))


__all__ = ["NAMES", "Decimal", "Fraction", "evaluate", "pd"]

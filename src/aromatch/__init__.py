# ruff: noqa: F401
"""Similarity learning from relative feedback, online and with uncertainty.

Every name is imported on first use, so ``import aromatch`` and the command line start quickly.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import datasets, evaluation, exceptions, features, learners, search, theory, triplets
    from .learners import (
        AROW,
        HIER,
        ITML,
        LEGO,
        LMNN,
        OASIS,
        Cosine,
        DiagonalAROMA,
        Euclidean,
        FactoredAROMA,
        Fingerprint,
        FullAROMA,
        MomentAROMA,
        best_projection,
        load,
        merge,
        spectral_projection,
    )

__version__ = "0.1.0"

_MODULES = ("datasets", "evaluation", "exceptions", "features", "learners", "search", "theory", "triplets")
# The module that defines each of the other public names.
_NAMES = {
    **dict.fromkeys(
        (
            "AROW",
            "HIER",
            "ITML",
            "LEGO",
            "LMNN",
            "OASIS",
            "Cosine",
            "DiagonalAROMA",
            "Euclidean",
            "FactoredAROMA",
            "Fingerprint",
            "FullAROMA",
            "MomentAROMA",
            "best_projection",
            "load",
            "merge",
            "spectral_projection",
        ),
        ".learners",
    ),
}
__all__ = [
    *_MODULES,
    *_NAMES,
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name in _NAMES:
        return getattr(import_module(_NAMES[name], __name__), name)
    raise AttributeError(f"module 'aromatch' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

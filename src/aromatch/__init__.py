"""aromatch learns what "similar" means from relative judgements, and knows how sure it is.

Everything loads on first use, so that ``import aromatch`` and the command line start at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import datasets, evaluation, experiments, features, gaussian, learners, search, store, theory, triplets
    from .learners import (
        AROW,
        HIER,
        ITML,
        LEGO,
        LMNN,
        OASIS,
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

__all__ = [
    "AROW",
    "HIER",
    "ITML",
    "LEGO",
    "LMNN",
    "OASIS",
    "DiagonalAROMA",
    "Euclidean",
    "FactoredAROMA",
    "Fingerprint",
    "FullAROMA",
    "MomentAROMA",
    "best_projection",
    "datasets",
    "evaluation",
    "experiments",
    "features",
    "gaussian",
    "learners",
    "load",
    "merge",
    "search",
    "spectral_projection",
    "store",
    "theory",
    "triplets",
]

# The other names in lower case are modules.
_FUNCTIONS = ("best_projection", "load", "merge", "spectral_projection")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'aromatch' has no attribute {name!r}")
    if name.islower() and name not in _FUNCTIONS:
        return import_module(f".{name}", __name__)
    return getattr(import_module(".learners", __name__), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

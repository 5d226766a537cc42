"""Similarity learning from relative feedback, online and with uncertainty.

Every name is imported on first use, so ``import aromatch`` and the command line start quickly.
"""

from typing import TYPE_CHECKING

from ._utils.lazy import lazy_names
from .learners.registry import LEARNERS as _LEARNERS

if TYPE_CHECKING:
    from . import datasets as datasets
    from . import evaluation as evaluation
    from . import exceptions as exceptions
    from . import features as features
    from . import learners as learners
    from . import search as search
    from . import theory as theory
    from . import triplets as triplets
    from .io.loading import load as load
    from .learners import AROW as AROW
    from .learners import HIER as HIER
    from .learners import ITML as ITML
    from .learners import LEGO as LEGO
    from .learners import LMNN as LMNN
    from .learners import OASIS as OASIS
    from .learners import Cosine as Cosine
    from .learners import DiagonalAROMA as DiagonalAROMA
    from .learners import Euclidean as Euclidean
    from .learners import FactoredAROMA as FactoredAROMA
    from .learners import Fingerprint as Fingerprint
    from .learners import FullAROMA as FullAROMA
    from .learners import MomentAROMA as MomentAROMA
    from .learners import TripletEmbedding as TripletEmbedding
    from .learners import merge as merge
    from .search import Adapter as Adapter
    from .search import Index as Index
    from .search import explain as explain
    from .search import suggest_comparisons as suggest_comparisons

__version__ = "0.1.0"

_SUBPACKAGES = ("datasets", "evaluation", "exceptions", "features", "learners", "search", "theory", "triplets")
# The module that defines each public name; names of learners come from their table.
_MODULES = {
    **{name: f"{__name__}.{name}" for name in _SUBPACKAGES},
    **{learner.name: learner.module for learner in _LEARNERS.values()},
    "Adapter": "aromatch.search.adapter.adapter",
    "Fingerprint": "aromatch.learners.fingerprint",
    "Index": "aromatch.search.index",
    "explain": "aromatch.search",
    "load": "aromatch.io.loading",
    "merge": "aromatch.learners.moment.merging",
    "suggest_comparisons": "aromatch.search.active",
}
__all__ = list(_MODULES)
__getattr__, __dir__ = lazy_names(__name__, _MODULES)

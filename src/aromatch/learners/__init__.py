"""The learners, one algorithm in one file; `registry` has a row for each.

Every name is imported on first use.
"""

from typing import TYPE_CHECKING

from .._utils.lazy import lazy_names
from .registry import LEARNERS

if TYPE_CHECKING:
    from .base import Similarity as Similarity
    from .baselines.arow import AROW as AROW
    from .baselines.cosine import Cosine as Cosine
    from .baselines.euclidean import Euclidean as Euclidean
    from .baselines.hier import HIER as HIER
    from .baselines.hier import hierarchy_from_dots as hierarchy_from_dots
    from .baselines.itml import ITML as ITML
    from .baselines.lego import LEGO as LEGO
    from .baselines.lmnn import LMNN as LMNN
    from .embedding.triplet_embedding import TripletEmbedding as TripletEmbedding
    from .fingerprint import Fingerprint as Fingerprint
    from .moment.merging import merge as merge
    from .moment.moment import MomentAROMA as MomentAROMA
    from .online.diagonal import DiagonalAROMA as DiagonalAROMA
    from .online.factored import FactoredAROMA as FactoredAROMA
    from .online.full import FullAROMA as FullAROMA
    from .online.oasis import OASIS as OASIS
    from .triplet import TripletLearner as TripletLearner
    from .triplet import Update as Update

_MODULES = {learner.name: learner.module for learner in LEARNERS.values()} | {
    name: f"{__name__}.{module}"
    for name, module in (
        ("Fingerprint", "fingerprint"),
        ("Similarity", "base"),
        ("TripletLearner", "triplet"),
        ("Update", "triplet"),
        ("hierarchy_from_dots", "baselines.hier"),
        ("merge", "moment.merging"),
    )
}
__all__ = ["LEARNERS", *_MODULES]
__getattr__, __dir__ = lazy_names(__name__, _MODULES)

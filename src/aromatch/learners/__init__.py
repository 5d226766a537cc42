"""The learners, one algorithm in one file, and the way back from a model file to one of them."""

from .base import Similarity
from .baselines.arow import AROW
from .baselines.cosine import Cosine
from .baselines.euclidean import Euclidean
from .baselines.hier import HIER, hierarchy_from_dots
from .baselines.itml import ITML
from .baselines.lego import LEGO
from .baselines.lmnn import LMNN
from .embedding.best import best_projection
from .embedding.projection import Projection
from .embedding.spectral import spectral_projection
from .fingerprint import Fingerprint
from .moment.merging import merge
from .moment.moment import MomentAROMA
from .online.diagonal import DiagonalAROMA
from .online.factored import FactoredAROMA
from .online.full import FullAROMA
from .online.oasis import OASIS
from .online.online import OnlineLearner
from .registry import LEARNERS, load
from .triplet import Judgement, TripletLearner

__all__ = [
    "AROW",
    "HIER",
    "ITML",
    "LEARNERS",
    "LEGO",
    "LMNN",
    "OASIS",
    "Cosine",
    "DiagonalAROMA",
    "Euclidean",
    "FactoredAROMA",
    "Fingerprint",
    "FullAROMA",
    "Judgement",
    "MomentAROMA",
    "OnlineLearner",
    "Projection",
    "Similarity",
    "TripletLearner",
    "best_projection",
    "hierarchy_from_dots",
    "load",
    "merge",
    "spectral_projection",
]

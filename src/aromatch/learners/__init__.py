"""The learners, one algorithm in one file, and the way back from a model file to one of them."""

from .arow import AROW
from .base import Similarity
from .best import best_projection
from .diagonal import DiagonalAROMA
from .euclidean import Euclidean
from .factored import FactoredAROMA
from .fingerprint import Fingerprint
from .full import FullAROMA
from .hier import HIER, hierarchy_from_dots
from .itml import ITML
from .lego import LEGO
from .lmnn import LMNN
from .merging import merge
from .moment import MomentAROMA
from .oasis import OASIS
from .online import OnlineLearner
from .projection import Projection
from .registry import LEARNERS, load
from .spectral import NothingStandsOutError, spectral_projection
from .triplet import Judgement, TripletLearner

__all__ = [
    "AROW",
    "HIER",
    "ITML",
    "LEARNERS",
    "LEGO",
    "LMNN",
    "OASIS",
    "DiagonalAROMA",
    "Euclidean",
    "FactoredAROMA",
    "Fingerprint",
    "FullAROMA",
    "Judgement",
    "MomentAROMA",
    "NothingStandsOutError",
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

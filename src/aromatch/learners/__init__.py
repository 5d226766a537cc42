"""The learners, one algorithm in one file, and the way back from a model file to one of them."""

from .arow import AROW
from .base import Similarity
from .diagonal import DiagonalAROMA
from .euclidean import Euclidean
from .factored import FactoredAROMA
from .full import FullAROMA
from .oasis import OASIS
from .online import Judgement, TripletLearner
from .registry import LEARNERS, load

__all__ = [
    "AROW",
    "LEARNERS",
    "OASIS",
    "DiagonalAROMA",
    "Euclidean",
    "FactoredAROMA",
    "FullAROMA",
    "Judgement",
    "Similarity",
    "TripletLearner",
    "load",
]

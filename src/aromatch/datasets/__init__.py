"""Where bytes come from: one file a data set, checked against known checksums, never a silent download."""

from ..exceptions import DataFileError
from ._files import data_folder
from .caltech101 import load_caltech101_50
from .caltech256 import load_caltech256
from .caltech256_10 import load_caltech256_10
from .collections import LabelledImages, LabelledTexts
from .newsgroups import load_20newsgroups
from .stdlib import load_stdlib
from .synthetic import make_correlated_features, make_independent_features

__all__ = [
    "DataFileError",
    "LabelledImages",
    "LabelledTexts",
    "data_folder",
    "load_20newsgroups",
    "load_caltech101_50",
    "load_caltech256",
    "load_caltech256_10",
    "load_stdlib",
    "make_correlated_features",
    "make_independent_features",
]

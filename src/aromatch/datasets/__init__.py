"""Loaders of data sets, which check files against known checksums and download only on request."""

from ..exceptions import DataFileError
from ._files import data_folder
from .caltech import load_caltech101_50, load_caltech256, load_caltech256_10
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

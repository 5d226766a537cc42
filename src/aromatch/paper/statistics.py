"""Means over splits, standard errors, and the paired test for overlapping splits.

Training parts of random splits and of folds overlap, so that differences between two methods are not independent, and a
paired t-test rejects too often. Nadeau and Bengio (2003) correct its variance: with J splits, differences d_j of
variance s^2, and test parts rho times the size of training parts,

    t = mean(d) / sqrt((1 / J + rho) s^2),    with J - 1 degrees of freedom.

C. Nadeau and Y. Bengio, "Inference for the generalization error", Machine Learning 52, 2003.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy import stats


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over splits with its standard error."""

    mean: float
    error: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.error:.3f}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The mean of paired differences and its p-value."""

    difference: float
    p: float

    def __str__(self) -> str:
        return f"{self.difference:+.3f} (p = {self.p:.2g})"


def mean_over_splits(values: Sequence[float]) -> Mean:
    """Return the mean and its standard error, which is NaN for a single value.

    >>> print(mean_over_splits([0.5, 0.6, 0.7]))
    0.600 ± 0.058
    """
    array = np.asarray(values, dtype=float)
    error = float(array.std(ddof=1) / sqrt(len(array))) if len(array) > 1 else float("nan")
    return Mean(float(array.mean()), error)


def compare(ours: Sequence[float], theirs: Sequence[float], test_ratio: float) -> Comparison:
    """Compare two methods by the two-sided corrected resampled t-test.

    Parameters
    ----------
    ours, theirs : sequences of float
        One value for each split, the same splits for both methods.
    test_ratio : float
        Size of a test part over that of its training part.

    Examples
    --------
    >>> print(compare([0.72, 0.74, 0.73], [0.70, 0.71, 0.71], test_ratio=0.5))
    +0.023 (p = 0.047)
    """
    differences = np.subtract(ours, theirs, dtype=float)
    n_splits = len(differences)
    if n_splits < 2:
        return Comparison(float(differences.mean()), float("nan"))
    scale = sqrt((1 / n_splits + test_ratio) * differences.var(ddof=1))
    if scale == 0:
        return Comparison(float(differences.mean()), 1.0 if differences[0] == 0 else 0.0)
    t = differences.mean() / scale
    return Comparison(float(differences.mean()), float(2 * stats.t.sf(abs(t), n_splits - 1)))

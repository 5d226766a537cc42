"""Reliability of probabilities: of all comparisons predicted with 80 %, about 80 % should be correct."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._utils.checks import as_array, check_integer


@dataclass(frozen=True, eq=False)
class Reliability:
    """The result of `reliability`: one value for each bin, in order of increasing confidence.

    Attributes
    ----------
    predicted : float64 array of shape (n_bins,)
        Mean predicted probability of the more likely outcome.
    observed : float64 array of shape (n_bins,)
        Share of comparisons in which that outcome occurred.
    counts : int64 array of shape (n_bins,)
        Number of comparisons.
    largest_gap : float
        Largest absolute difference between `predicted` and `observed`.
    """

    predicted: NDArray[np.float64]
    observed: NDArray[np.float64]
    counts: NDArray[np.int64]

    @property
    def largest_gap(self) -> float:
        """Largest absolute difference between `predicted` and `observed`."""
        return float(np.abs(self.predicted - self.observed).max())

    def __str__(self) -> str:
        rows = zip(self.predicted, self.observed, self.counts, strict=True)
        return "\n".join(f"{predicted:.3f} -> {observed:.3f} ({count:,})" for predicted, observed, count in rows)


def reliability(probabilities: ArrayLike, n_bins: int = 10) -> Reliability:
    """Compare predicted probabilities with observed frequencies.

    Parameters
    ----------
    probabilities : array of shape (N,)
        Predicted probabilities of preferences that turned out to be true.
    n_bins : int, default 10
        Number of bins of equal size, by confidence: the larger of p and 1 - p. A probability of 0.5 counts as half
        correct.

    Returns
    -------
    report : Reliability
        Predicted and observed frequencies in each bin.

    Examples
    --------
    >>> from aromatch.evaluation import reliability
    >>> print(reliability([0.9, 0.8, 0.9, 0.6, 0.4, 0.6], n_bins=2))
    0.600 -> 0.667 (3)
    0.867 -> 1.000 (3)
    """
    given = as_array(probabilities, "probabilities")
    n_bins = check_integer(n_bins, "n_bins", at_least=1)
    is_valid = given.dtype.kind in "iuf" and given.ndim == 1 and len(given) >= n_bins
    if not is_valid or not ((given >= 0) & (given <= 1)).all():
        raise ValueError(f"probabilities must be a 1-D array of at least {n_bins} numbers from 0 to 1")
    confidence, correct = np.maximum(given, 1 - given), np.where(given == 0.5, 0.5, given > 0.5)
    bins = np.array_split(np.argsort(confidence, kind="stable"), n_bins)
    return Reliability(
        np.array([confidence[rows].mean() for rows in bins]),
        np.array([correct[rows].mean() for rows in bins]),
        np.array([len(rows) for rows in bins]),
    )

"""Covariances that move back towards the identity, for preferences that drift.

Precision, the inverse of a covariance, is reduced by the share `rate` and replaced by that of the initial
distribution, the identity::

    inv(S_new) = (1 - rate) inv(S) + rate I

An eigenvalue s becomes ``s / (1 - rate + rate s)``: never above 1, and the smaller it is, the faster it grows. The mean
does not change.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg


def decayed_variances(variances: NDArray[Any], rate: float) -> NDArray[Any]:
    """Return the variances of independent cells after decay."""
    if rate == 1:  # also for unused slots of touched cells, which hold 0
        return np.ones_like(variances)
    decayed = _decayed(variances, rate)
    # Rounding of the divisor could take a variance of 1 above 1.
    return np.asarray(np.minimum(decayed, 1))


def decayed_covariance(covariance: NDArray[Any], rate: float) -> NDArray[Any]:
    """Return a covariance matrix after decay."""
    values, vectors = linalg.eigh(covariance.astype(np.float64))
    # A direction without variance, through rounding, could never grow again.
    values = np.maximum(values, np.finfo(covariance.dtype).eps)
    widened = (vectors * _decayed(values, rate)) @ vectors.T
    return np.asarray((widened + widened.T) / 2, dtype=covariance.dtype)


def _decayed(values: NDArray[Any], rate: float) -> NDArray[Any]:
    """Return eigenvalues after decay; those above 1, which some updates of f-AROMA leave, fall towards 1."""
    return np.asarray(values / (1 - rate + rate * values), dtype=values.dtype)

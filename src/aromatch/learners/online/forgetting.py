"""Covariances on their way back to where they were before the first triplet, for a truth that drifts.

What is known is the inverse of a covariance. Of that, a share `rate` is given up for what was known at the start, which
is the identity::

    inv(S_new) = (1 - rate) inv(S) + rate I

An eigenvalue s becomes ``s / (1 - rate + rate s)``: never above 1, and the smaller it is, the faster it grows. The mean
stays.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg


def nearer_to_one(variances: NDArray[Any], rate: float) -> NDArray[Any]:
    """Widen variances of single numbers."""
    if rate == 1:  # also where nothing is kept, and the variance says 0
        return np.ones_like(variances)
    return np.asarray(variances / (1 - rate + rate * variances), dtype=variances.dtype)


def nearer_to_identity(covariance: NDArray[Any], rate: float) -> NDArray[Any]:
    """Widen a covariance matrix."""
    values, vectors = linalg.eigh(covariance.astype(np.float64))
    # Of a direction that rounding has used up, something is left to grow from.
    values = np.maximum(values, np.finfo(covariance.dtype).eps)
    widened = (vectors * nearer_to_one(values, rate)) @ vectors.T
    return np.asarray((widened + widened.T) / 2, dtype=covariance.dtype)

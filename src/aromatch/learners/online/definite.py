"""Check that rounding has left covariance matrices positive semi-definite.

Updates subtract rank-one terms. In exact arithmetic the matrix stays positive definite; rounding can leave a slightly
negative eigenvalue, and every update whose row has a share in its direction makes it more negative: the share by which
it grows is its size times ``|q|^2 |p|^2 / r``. Rows that are nearly parallel and large do so within a few thousand
updates in float32; the kernels refuse only rows whose own variance is negative.

A factorization costs as much as a few updates per row of the matrix, so it is not computed after every single update,
except at scales at which an eigenvalue can grow quickly.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from ..inputs import Precision

# Smallest eigenvalue that counts as rounding, in units of width * eps * the largest variance, negated.
ROUNDING = 16
# Triplets between two checks, or four times the width if that is more: their updates cost fifty times as much.
_INTERVAL = 1024
# At larger scales times eps, the triplets between two checks could multiply a negative eigenvalue.
_LARGEST_SCALE = 1e-4


class Schedule(NamedTuple):
    """When covariances are checked."""

    interval: int
    """Triplets between two checks."""
    scale: float
    """Scale of triplets above which every call is followed by a check."""

    def is_due(self, seen: int, now: int, scale: float) -> bool:
        """Return whether a check follows triplets number `seen` to `now` of at most this scale."""
        return scale > self.scale or seen // self.interval != now // self.interval


NEVER = Schedule(2**63, float("inf"))
"""The schedule of learners without covariance matrices."""


@cache
def schedule(width: int, precision: Precision) -> Schedule:
    """Return the schedule for covariances of at most this width."""
    return Schedule(max(_INTERVAL, 4 * width), _LARGEST_SCALE / float(np.finfo(precision).eps))


def is_semidefinite(covariance: NDArray[np.floating]) -> bool:
    """Return whether a covariance matrix is finite, and positive semi-definite up to rounding."""
    width, shifted = len(covariance), covariance.astype(np.float64)
    variances = np.einsum("ii->i", shifted)
    variances += ROUNDING * width * float(np.finfo(covariance.dtype).eps) * float(variances.max())
    factor, failed_at = lapack.dpotrf(shifted.T, lower=1, clean=0, overwrite_a=1)
    return failed_at == 0 and bool(np.isfinite(factor).all())

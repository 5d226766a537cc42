"""Invariants of the arrays of a model, which `save` and `load` check.

Each check raises a ValueError that names the array and what is valid. Training keeps the invariants, with one
exception: tiny rows can leave a W whose scores for rows of unit norm would overflow; such a model cannot be saved.

Rounding leaves covariance matrices exactly symmetric, but can leave eigenvalues slightly below zero. They are accepted
down to minus `tolerance` times the largest variance, far above what ten million updates were seen to leave and far
below any variance that has an effect: quadratic forms below zero count as zero.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from .inputs import FLOAT64, LARGEST
from .online.definite import ROUNDING

Array = NDArray[Any]

# Counts are 64-bit integers. The kernels of online learners also convert theirs to floats.
LARGEST_COUNT, LARGEST_COUNT_ONLINE = 2**62, 2**53
# Largest squared norm of a learned map: rows of |x|^2 up to 1e49 have finite scores.
_LARGEST_SQUARE_OF_A_MAP = 1e150
_SMALLEST = float(np.finfo(np.float64).smallest_subnormal)


def tolerance(dtype: np.dtype[Any], width: int) -> float:
    """Return the share of the largest variance that rounding may take an eigenvalue below zero.

    Twice that of the checks in training (`online.definite`), which do not follow every triplet, and more for small
    matrices.
    """
    eps = float(np.finfo(dtype).eps)
    return float(max(eps**0.5, 2 * ROUNDING * width * eps))


def check_counts(counts: Array, most: int) -> None:
    """Check the numbers of triplets seen, updates, mistakes and pending updates; the last two may be absent."""
    seen, updates, mistakes, pending = np.pad(counts[:4], (0, max(0, 4 - len(counts)))).tolist()
    if not (0 <= seen <= most and 0 <= pending <= updates <= seen and 0 <= mistakes <= seen):
        raise ValueError(
            f"counts of the model are {counts.tolist()}, expected at most {most} triplets, as many updates "
            "and mistakes at most, and no negative number"
        )


def check_size(values: Array, name: str) -> None:
    """Check that no value is so large that scores of rows of unit norm could overflow."""
    largest = LARGEST[values.dtype]
    # The largest and the smallest value need no copy as absolute values do; NaN is neither.
    if values.size and not (values.max() <= largest and values.min() >= -largest):
        raise ValueError(f"{name} of the model has values beyond {largest:.0e}, the largest in {values.dtype}")


def check_variances(Sigma: Array, name: str) -> None:
    """Check variances of independent cells, which start at 1 and never grow."""
    if Sigma.size and not (Sigma.min() > 0 and Sigma.max() <= 1):
        raise ValueError(
            f"{name} of the model has variances from {Sigma.min():g} to {Sigma.max():g}, expected above 0 and at most 1"
        )


def check_covariance(S: Array, name: str) -> None:
    """Check that a matrix is symmetric and positive definite up to rounding."""
    variances, share = np.diagonal(S), tolerance(S.dtype, len(S))
    largest = float(variances.max())
    if not (variances.min() > -share * largest and 0 < largest <= LARGEST[S.dtype]):
        raise ValueError(
            f"{name} of the model has variances from {variances.min():g} to {largest:g}, expected above 0 and at most "
            f"{LARGEST[S.dtype]:.0e}"
        )
    if not np.array_equal(S, S.T):
        raise ValueError(f"{name} of the model is not symmetric, expected a covariance matrix")
    _check_definite(S, largest, share, f"{name} of the model is not positive definite, expected a covariance matrix")


def check_squares(S: Array, name: str, weight: float) -> None:
    """Check a sum of squares of rows ``sum w x x'``: symmetric, positive semi-definite, of the size of its weights."""
    check_symmetric_sum(S, name, weight)
    largest = float(np.diagonal(S).max())
    what = f"{name} of the model is not positive semi-definite, expected a sum of squares"
    if largest > 1e-290:  # products of smaller features vanish one by one
        _check_definite(S, largest, tolerance(S.dtype, len(S)), what)


def check_symmetric_sum(S: Array, name: str, weight: float) -> None:
    """Check a sum of squares of differences, whose cancellation can leave a matrix that is not semi-definite."""
    if np.diagonal(S).min() < 0:
        raise ValueError(f"{name} of the model has a negative diagonal, expected a sum of squares")
    if not np.array_equal(S, S.T):
        raise ValueError(f"{name} of the model is not symmetric, expected a sum of squares")
    check_sum(S, name, weight)


def check_sum(S: Array, name: str, weight: float) -> None:
    """Check that a sum of products of rows is of the size of its weights."""
    largest = 8 * LARGEST[FLOAT64] * max(weight, _SMALLEST)  # |p_pos - p_neg|^2 is at most 4 times the largest square
    if not (S.max() <= largest and S.min() >= -largest):
        raise ValueError(
            f"{name} of the model has values beyond {largest:.0e}, the largest for a sum of weights of {weight:g}"
        )


def check_map(L: Array, name: str) -> None:
    """Check a learned map: finite, in float64, and so small that rows of any usual norm have finite scores."""
    if L.dtype != FLOAT64 or not np.vdot(L, L) <= _LARGEST_SQUARE_OF_A_MAP:
        raise ValueError(
            f"{name} of the model must be finite numbers in float64 with a sum of squares of at most "
            f"{_LARGEST_SQUARE_OF_A_MAP:.0e}; rows of unit norm give such a map"
        )


def check_integers(values: Array, name: str, least: int = 0, most: int = LARGEST_COUNT) -> None:
    """Check integers of a report or an index."""
    if values.dtype != np.int64 or (values < least).any() or (values > most).any():
        raise ValueError(f"{name} of the model must be integers from {least} to {most}, got {values.tolist()[:5]}")


def _check_definite(S: Array, largest: float, share: float, message: str) -> None:
    """Check the smallest eigenvalue by Cholesky's factorization."""
    if not (S.max() <= 2 * largest and S.min() >= -2 * largest):  # no entry exceeds the largest variance
        raise ValueError(message)
    scaled = S.astype(np.float64)
    scaled /= largest
    scaled[np.diag_indices_from(scaled)] += share
    try:
        # The transpose is in Fortran order, which needs no copy.
        linalg.cholesky(scaled.T, lower=True, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        raise ValueError(message) from None

"""Pairs with bounds on their distances, and LogDet steps over them: for ITML and LEGO.

Both learners keep M positive definite by rank-one steps. With ``v`` the difference of the two rows of a pair and
``d = v'Mv`` its distance, a step is::

    M += beta * M v v'M        which is        inv(M) -= beta / (1 + beta d) * v v'

and the learners differ in beta alone. A step on m features costs m^2 and most of that is moving M through the
cache, so steps are taken in blocks of K pairs. Before a block ``Y = V M`` and ``G = V M V'`` (K x K) are
computed; G is all that the steps of the block need, each step changes G as it changes M, and M follows once, by
``M += W' diag(beta) W`` with a row ``v'M`` of W as it was at the step of its pair. That is the same algorithm
pair by pair, up to rounding. Sparse rows make Y cheap; pairs that need no step cost nothing beyond G.

Bounds: similar pairs should be within `near`, dissimilar ones at least `far` apart. By default these are the 5th and
the 95th percentile of the squared distances between rows, as Davis et al. (2007) propose.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from ..._utils import checks
from ..._utils.chunks import chunks
from ..._utils.indices import check_pairs, read_both
from ..._utils.rows import Matrix, MatrixLike, as_float64, as_matrix
from ...triplets import LabelSampler
from ..inputs import LARGEST_SQUARE_IN_FIT
from .metric import differences, squares

_BLOCK = 64
_PAIRS_FOR_PERCENTILES = 20_000
# Rows nearer than this (squared) are the same row: they give no direction to step in.
NO_DISTANCE = 1e-100


class Pairs(NamedTuple):
    """Pairs of rows with bounds on their squared distances."""

    V: Matrix
    """Differences of the two rows of each pair."""
    is_similar: NDArray[np.bool_]
    near: float
    """Upper bound of the squared distances of similar pairs."""
    far: float
    """Lower bound of the squared distances of dissimilar pairs."""

    def metric(self, learn: Callable[[NDArray[Any], Pairs], dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
        """Return the state of a metric: L with ``M = L L'``, the bounds, and what `learn`, which changes M, returns."""
        M = np.eye(self.V.shape[1])
        found = learn(M, self)
        # In C order, as a file holds it: BLAS rounds products of transposed arrays differently.
        L = np.ascontiguousarray(linalg.cholesky((M + M.T) / 2, lower=True))
        return {"L": L, "bounds": np.array([self.near, self.far]), **found}


class PairSampler:
    """Samples pairs from labels, or takes given ones, and sets the bounds of their distances.

    Parameters
    ----------
    bounds : pair of numbers (near, far) or None
    random_state : None, int, Generator or RandomState
    """

    def __init__(self, bounds: Any, random_state: Any) -> None:
        self._bounds, self._generator = bounds, checks.random_generator(random_state)

    def from_labels(self, X: Matrix, y: NDArray[Any], n: int) -> Pairs:
        """Sample n pairs, similar and dissimilar ones in turn.

        Each two have a row in common: a random one, paired with a random other row of its label and with a random row
        of another label.
        """
        triplets = LabelSampler(y).sample((n + 1) // 2, self._generator)
        pairs = triplets[:, [0, 1, 0, 2]].reshape(-1, 2)[:n]
        return self.given(X, pairs, np.arange(n) % 2 == 0)

    def given(self, X: Matrix, pairs: NDArray[np.int64], is_similar: NDArray[np.bool_]) -> Pairs:
        """Return given pairs with their bounds."""
        near, far = self._percentiles(X) if self._bounds is None else check_bounds(self._bounds)
        return Pairs(differences(X, X, pairs[:, 0], pairs[:, 1]), is_similar, near, far)

    def _percentiles(self, X: Matrix) -> tuple[float, float]:
        n = X.shape[0]
        if n * (n - 1) // 2 <= _PAIRS_FOR_PERCENTILES:
            rows, others = np.triu_indices(n, k=1)
        else:
            rows, others = self._generator.integers(n, size=(2, _PAIRS_FOR_PERCENTILES))
        distances = squares(differences(X, X, rows, others))
        distances = distances[distances > NO_DISTANCE]
        if not len(distances):
            return 1.0, 1.0
        near, far = np.percentile(distances, (5, 95)).tolist()
        return near, far


def check_given(
    pairs: ArrayLike, is_similar: ArrayLike, X: MatrixLike
) -> tuple[Matrix, NDArray[np.int64], NDArray[np.bool_]]:
    """Check the arguments of `fit_pairs`; return the rows in float64, the pairs and their kinds."""
    matrix = as_matrix(X, "X")
    numbers = check_pairs(pairs, matrix, matrix)
    kinds = checks.as_array(is_similar, "is_similar")
    if kinds.dtype.kind != "b" or kinds.shape != (len(numbers),):
        raise ValueError(
            f"is_similar must be {len(numbers)} booleans, one for each pair, got {kinds.dtype} of shape {kinds.shape}"
        )
    if (square := read_both(matrix, matrix, numbers).query_square) > LARGEST_SQUARE_IN_FIT:
        raise ValueError(f"X has a row with |x|^2 = {square:.1e}, expected at most {LARGEST_SQUARE_IN_FIT:.0e}")
    return as_float64(matrix, "X"), numbers, kinds


def logdet_steps(
    M: NDArray[Any], V: Matrix, beta_of: Callable[[int, float], float], advance: Callable[[int], None]
) -> None:
    """Update ``M += beta * M v v'M`` for each row v of V in order; `beta_of` maps its number and ``v'Mv`` to beta."""
    for chunk in chunks(V.shape[0], _BLOCK):
        block, start = V[chunk], chunk.start
        Y = np.asarray(block @ M)
        G = np.asarray(block @ Y.T)
        size = len(Y)
        # v'M of a pair, at its step, is this row of `mix` times Y.
        mix, betas = np.eye(size), np.zeros(size)
        for i in range(size):
            betas[i] = beta = beta_of(start + i, G[i, i])
            if beta != 0:
                g = beta * G[i, i + 1 :]
                G[i + 1 :, i + 1 :] += np.multiply.outer(g, G[i, i + 1 :])
                mix[i + 1 :] += np.multiply.outer(g, mix[i])
        (taken,) = np.nonzero(betas)
        if len(taken):
            W = mix[taken] @ Y
            # In place on the transpose, which BLAS sees as an array of its own order; M is symmetric.
            linalg.blas.dgemm(
                1.0, (betas[taken, np.newaxis] * W).T, W.T, beta=1.0, c=M.T, trans_b=True, overwrite_c=True
            )
        advance(size)


def check_bounds(bounds: Any) -> tuple[float, float]:
    """Return near and far as positive numbers."""
    values = checks.as_array(bounds, "bounds")
    if values.shape != (2,) or values.dtype.kind not in "fiu":
        raise ValueError(f"bounds must be None or two numbers (near, far), got {bounds!r}")
    near, far = (checks.check_number(value, "each of bounds", above=0) for value in values.tolist())
    if min(near, far) < NO_DISTANCE or max(near, far) > 1 / NO_DISTANCE:
        raise ValueError(f"each of bounds must be from {NO_DISTANCE:.0e} to {1 / NO_DISTANCE:.0e}, got {bounds!r}")
    return near, far

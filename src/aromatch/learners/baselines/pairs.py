"""What ITML and LEGO share: pairs with bounds on their distances, and LogDet steps over them.

Both keep M positive definite by rank-one steps. With ``v`` the difference of the two rows of a pair and
``d = v'Mv`` its distance, a step is::

    M += beta * M v v'M        which is        inv(M) -= beta / (1 + beta d) * v v'

and the learners differ in beta alone. A step on m features costs m^2 and most of that is moving M through the
cache, so steps are taken a block of K pairs at a time. Before the block ``Y = V M`` and ``G = V M V'`` (K x K) are
computed; G is all that the steps of the block need, each step changes G as it changes M, and M follows once, by
``M += W' diag(beta) W`` with a row ``v'M`` of W as it was when its pair had its turn. That is the same algorithm
pair by pair, up to rounding. Sparse rows make Y cheap; pairs that need no step cost nothing beyond G.

Bounds: similar pairs should be within `near`, dissimilar ones at least `far` apart. By default these are the 5th and
the 95th percentile of the squared distances between rows, as Davis et al. (2007) propose.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from ..._utils import checks
from ..._utils.progress import progress_bar
from ..._utils.rows import Matrix, MatrixLike, as_float64, as_matrix
from ...triplets import LabelSampler
from ..inputs import LARGEST_SQUARE_IN_FIT, check_pairs, feature_names, read_both
from .metric import MetricSimilarity, differences, squares

_BLOCK = 64
_PAIRS_FOR_PERCENTILES = 20_000
# Rows nearer than this (squared) are the same row: they give no direction to step in.
NO_DISTANCE = 1e-100


class PairMetric(MetricSimilarity):
    """A metric learned from pairs of rows that are similar or not, by LogDet steps."""

    n_constraints: int | None
    bounds: Any
    random_state: Any
    verbose: bool

    # -- hook ---------------------------------------------------------------------------------------------

    def _learn(
        self, M: NDArray[Any], V: Matrix, is_similar: NDArray[np.bool_], near: float, far: float
    ) -> dict[str, NDArray[Any]]:
        """Change M in place by the pairs with the differences V, in their order; give further arrays to keep."""
        raise NotImplementedError

    # -- learning -----------------------------------------------------------------------------------------

    def fit(self, X: MatrixLike, y: ArrayLike) -> Self:
        """Draw pairs from the labels, as many similar ones as dissimilar ones, and learn them.

        The two kinds take turns. Each two have a row in common: a random one, paired with a random other row
        of its label and with a random row of another label.
        """
        with self._unchanged_on_error():
            self._check_params()
            X, y = self._check_labelled(X, y)
            self._check_fits(X.shape[1])
            generator = checks.random_generator(self.random_state)
            n = self.n_constraints
            if n is None:
                n = self._usual_number(len(np.unique(y)))
            triplets = LabelSampler(y).sample((n + 1) // 2, generator)
            pairs = triplets[:, [0, 1, 0, 2]].reshape(-1, 2)[:n]
            self._fit(X, pairs, np.arange(n) % 2 == 0, generator)
        return self

    def fit_pairs(self, pairs: ArrayLike, is_similar: ArrayLike, X: MatrixLike) -> Self:
        """Learn from given pairs, in their order.

        Parameters
        ----------
        pairs : integer array of shape (N, 2)
            Row numbers of X.
        is_similar : boolean array of shape (N,)
            Whether the rows of a pair should be near each other (within `near`) or apart (by `far` at least).
        X : array or CSR matrix of shape (n_rows, m)
        """
        with self._unchanged_on_error():
            self._check_params()
            matrix = as_matrix(X, "X")
            numbers = check_pairs(pairs, matrix, matrix)
            kinds = checks.as_array(is_similar, "is_similar")
            if kinds.dtype.kind != "b" or kinds.shape != (len(numbers),):
                raise ValueError(
                    f"is_similar must be {len(numbers)} booleans, one for each pair, got {kinds.dtype} of {kinds.shape}"
                )
            if (square := read_both(matrix, matrix, numbers).query_square) > LARGEST_SQUARE_IN_FIT:
                raise ValueError(f"X has a row with |x|^2 = {square:.1e}, too large to learn")
            self._check_fits(matrix.shape[1])
            self._is_another_model()
            self.__dict__.pop("feature_names_in_", None)
            if (names := feature_names(X)) is not None:
                self.feature_names_in_ = np.array(names, dtype=object)
            self.n_features_in_ = matrix.shape[1]
            generator = checks.random_generator(self.random_state)
            self._fit(as_float64(matrix, "X"), numbers, kinds, generator)
        return self

    def _fit(
        self, X: Matrix, pairs: NDArray[np.int64], is_similar: NDArray[np.bool_], generator: np.random.Generator
    ) -> None:
        self.n_object_features_in_ = X.shape[1]
        near, far = self._bounds(X, generator)
        M = np.eye(X.shape[1])
        kept = self._learn(M, differences(X, X, pairs[:, 0], pairs[:, 1]), is_similar, near, far)
        # In C order, as a file holds it: BLAS rounds products of transposed arrays differently.
        L = np.ascontiguousarray(linalg.cholesky((M + M.T) / 2, lower=True))
        self._object_map_version = self.__dict__.get("_object_map_version", 0) + 1
        self._state = {"L": L, "bounds": np.array([near, far]), **kept}

    # -- inside -------------------------------------------------------------------------------------------

    @property
    def bounds_(self) -> tuple[float, float]:
        """The squared distances near and far that were asked of similar and dissimilar pairs."""
        near, far = self._array("bounds").tolist()
        return near, far

    def _shapes(self, m: int, n: int) -> dict[str, tuple[int, ...]]:
        return {**super()._shapes(m, n), "bounds": (2,)}

    def _usual_number(self, n_classes: int) -> int:
        """How many pairs to draw when `n_constraints` is None."""
        raise NotImplementedError

    def _bar(self, total: int) -> Any:
        return progress_bar(type(self).__name__, total, enabled=self.verbose)

    def _check_params(self) -> None:
        if self.n_constraints is not None:
            checks.check_integer(self.n_constraints, "n_constraints", at_least=0)
        if self.bounds is not None:
            _check_bounds(self.bounds)
        checks.check_flag(self.verbose, "verbose")

    def _bounds(self, X: Matrix, generator: np.random.Generator) -> tuple[float, float]:
        if self.bounds is not None:
            return _check_bounds(self.bounds)
        n = X.shape[0]
        if n * (n - 1) // 2 <= _PAIRS_FOR_PERCENTILES:
            rows, others = np.triu_indices(n, k=1)
        else:
            rows, others = generator.integers(n, size=(2, _PAIRS_FOR_PERCENTILES))
        distances = squares(differences(X, X, rows, others))
        distances = distances[distances > NO_DISTANCE]
        if not len(distances):
            return 1.0, 1.0
        near, far = np.percentile(distances, (5, 95)).tolist()
        return near, far


def step_in_turn(
    M: NDArray[Any], V: Matrix, beta_of: Callable[[int, float], float], advance: Callable[[int], None]
) -> None:
    """For each row v of V in its turn: ``M += beta * M v v'M`` with beta given its number and its ``v'Mv``."""
    for start in range(0, V.shape[0], _BLOCK):
        block = V[start : start + _BLOCK]
        Y = np.asarray(block @ M)
        G = np.asarray(block @ Y.T)
        size = len(Y)
        # v'M of a pair, when its turn comes, is this row of `mix` times Y.
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


def _check_bounds(bounds: Any) -> tuple[float, float]:
    values = checks.as_array(bounds, "bounds")
    if values.shape != (2,) or values.dtype.kind not in "fiu":
        raise ValueError(f"bounds must be None or two numbers (near, far), got {bounds!r}")
    near, far = (checks.check_number(value, "each of bounds", above=0) for value in values.tolist())
    return near, far

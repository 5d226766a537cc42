"""d-AROMA: a Gaussian over W with one variance for each cell (paper, section 4.1 and Fig. 1).

With ``x = q p'`` and ``p = p_pos - p_neg``, a triplet whose margin ``q'Wp`` is under 1 gives::

    variance = sum(x * Sigma * x)
    alpha    = (1 - q'Wp) / (variance + r)
    W       += alpha * Sigma * x                             (5)
    Sigma   -= (Sigma * x * x * Sigma) / (variance + r)      (6)

(6) is the diagonal of the full covariance's update. ``covariance_update="inverse"`` is the exact minimiser
over diagonal covariances, ``1 / Sigma += x * x / r``, which Theorem 1 describes.

Departure: the factor ``1 - Sigma x^2 / (variance + r)`` of (6) is kept at or above ``r / (variance + r)``, its lower
bound in exact arithmetic, so that rounding cannot make a variance zero or negative.

Only the cells that x touches are visited: a triplet of sparse rows costs ``k_q * k_p`` operations.
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..._utils import checks
from ..._utils.checks import check_dtype
from ..._utils.rows import Matrix
from ..._utils.sharing import reads
from ...kernels import diagonal, touched
from ...kernels.rows import RowView
from ..contributions import cells_of
from ..inputs import Block
from ..spread import DiagonalSpread, Spread
from ..triplet import TripletLearner
from .cells import Cells, DenseCells, TouchedCells, stores_touched, touched_shapes
from .decay import decayed_variances


class DiagonalAROMA(TripletLearner):
    """Similarity ``q'Wp`` learned online, with a variance for each cell of W.

    A good first choice: fast on sparse rows, with two matrices of memory.

    Parameters
    ----------
    r : float, default 1.0
        Noise variance; larger values learn more slowly. Raise it for noisy triplets, lower it (0.01) if every triplet
        should have an immediate effect.
    init : {"zero", "identity"}, float, array or sparse matrix of shape (m, n), default "zero"
        W before the first triplet: zero (the paper), the identity, c times the identity, or a matrix. Use "identity" or
        a larger c if the dot product of the rows is already a good baseline.
    rule : {"margin", "mistake"}, default "margin"
        Update for triplets with a margin below 1, or for mistakes only (wrong or tied).
    covariance_update : {"downdate", "inverse"}, default "downdate"
        Equation (6), or the form of Theorem 1, which shrinks variances more.
    n_triplets : int, default 200_000
        Number of triplets that `fit` samples from the labels.
    dtype : {"float64", "float32"}, default "float64"
        Precision of W and Sigma; float32 halves the memory.
    cells : {"auto", "dense", "touched"}, default "auto"
        Store every cell of W, or only those that triplets touched, with the same results. Use "touched" for sparse rows
        with many features: memory grows with the touched cells, and `W_` and `Sigma_` are CSR arrays. "auto" stores
        touched cells if all cells would take more than 2 GiB, as over 11,585 x 11,585 do in float64.
    random_state : None, int, Generator or RandomState
        Random seed of the triplets that `fit` samples.
    verbose : bool, default False
        Show a progress bar if standard error is a terminal.

    Attributes
    ----------
    W_ : array or CSR array of shape (m, n)
        The mean of the learned distribution.
    Sigma_ : array or CSR array of shape (m, n)
        The variance of each cell of W; in a CSR array, a cell that is not stored has variance 1.
    n_triplets_seen_, n_updates_, n_mistakes_ : int
        Number of triplets learned so far, of updates, and of mistakes; a tie is a mistake.

    References
    ----------
    Crammer and Chechik, Adaptive Regularization for Weight Matrices, ICML 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from aromatch import DiagonalAROMA
    >>> objects = np.eye(3)
    >>> model = DiagonalAROMA(r=0.1)
    >>> judgement = model.learn_one(objects[0], objects[1], objects[2])  # for 0, 1 is better than 2
    >>> judgement.margin, judgement.updated
    (0.0, True)
    >>> model.similarity(objects[:1], objects).round(2)
    array([[ 0.  ,  0.48, -0.48]])
    >>> model.pair_std(objects[:1], objects, [[0, 0], [0, 1]]).round(2)
    array([1.  , 0.72])
    """

    _state: Cells
    _failure: ClassVar[str] = "its score is too large to learn from"
    _remedy: ClassVar[str] = "Use rows of unit norm and a small initial W"

    def __init__(
        self,
        r: float = 1.0,
        *,
        init: Any = "zero",
        rule: str = "margin",
        covariance_update: str = "downdate",
        n_triplets: int = 200_000,
        dtype: Any = "float64",
        cells: str = "auto",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.r = r
        self.init = init
        self.rule = rule
        self.covariance_update = covariance_update
        self.n_triplets = n_triplets
        self.dtype = dtype
        self.cells = cells
        self.random_state = random_state
        self.verbose = verbose

    @property
    @reads
    def Sigma_(self) -> Any:
        """The variance of each cell of W, of shape (m, n): a copy.

        A CSR array if only touched cells are stored; the others have variance 1.
        """
        check_is_fitted(self)
        return self._state.array("Sigma")

    def _check_params(self) -> float:
        checks.check_choice(self.rule, "rule", ("margin", "mistake"))
        checks.check_choice(self.covariance_update, "covariance_update", ("downdate", "inverse"))
        checks.check_choice(self.cells, "cells", ("auto", "dense", "touched"))
        return checks.check_number(self.r, "r", above=0)

    def _stores_touched(self, m: int, n: int) -> bool:
        return stores_touched(self.cells, 2, m, n, check_dtype(self.dtype))

    def _first_state(self, m: int, n: int, init: Any) -> Cells:
        dtype = check_dtype(self.dtype)
        if self._stores_touched(m, n):
            return TouchedCells.start(("W", "Sigma"), init, m, n, dtype)
        return DenseCells.interleaved(init, m, n, dtype)

    def _shapes(self, m: int, n: int) -> dict[str, tuple[int, ...]]:
        return {"cells": (m, n, 2), "counts": (3,)}

    def _shapes_in_file(self, state: dict[str, NDArray[Any]], m: int, n: int) -> dict[str, tuple[int, ...]]:
        return touched_shapes(state, ("W", "Sigma"), m) if self._stores_touched(m, n) else self._shapes(m, n)

    def _learn(self, block: Block) -> int:
        settings = self.r, self.rule == "mistake", self.covariance_update == "inverse"
        return self._state.learn(block, diagonal.learn, touched.learn_diagonal, *settings)

    def _decayed(self, rate: float) -> Cells:
        return self._state.with_variances(lambda Sigma: decayed_variances(Sigma, rate))

    def _variances(self, queries: RowView, objects: RowView, numbers: NDArray[np.int64]) -> NDArray[Any]:
        return self._state.variances(queries, objects, numbers)

    def _spread(self, Q: Matrix) -> Spread:
        return DiagonalSpread(Q, self.Sigma_.astype(np.float64, copy=False))

    def _cell_variances(self, i: NDArray[Any], j: NDArray[Any]) -> NDArray[Any]:
        return cells_of(self.Sigma_, i, j, 1.0)

    def _mean_variance(self) -> float:
        Sigma = self.Sigma_
        if self._state.is_touched:  # cells that are not stored have variance 1
            return 1 - float(Sigma.nnz - Sigma.data.sum()) / float(np.prod(Sigma.shape))
        return float(Sigma.mean(dtype=np.float64))

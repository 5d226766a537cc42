"""AROMA with the full covariance: AROW on ``vec(W)`` (paper, section 4).

With ``x = vec(q p')``, ``p = p_pos - p_neg`` and ``v = x'Sigma x``, a triplet whose margin is under 1 gives::

    vec(W) += (1 - q'Wp) / (v + r) * Sigma x
    Sigma  -= Sigma x x'Sigma / (v + r)

Departure: triplets with ``|q|^2 |p|^2 / r`` above 1e11 in float64 or 1e6 in float32 are refused, because rounding could
leave a covariance that is not positive semi-definite. Below that it takes many updates; the covariance is checked on
the way (`definite`).

d-AROMA and f-AROMA approximate it. Sigma has (mn)^2 entries, so it serves small problems and as a reference for the
others. vec stacks rows, as NumPy's ``ravel`` does.
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..._utils import checks
from ..._utils.checks import check_dtype
from ..._utils.rows import Matrix
from ..._utils.sharing import reads
from ...kernels import full
from ...kernels.rows import RowView
from ..inputs import LARGEST_SCALE_OF_A_COVARIANCE, Block
from ..spread import FullSpread, Spread
from ..triplet import TripletLearner
from .cells import DenseCells
from .decay import decayed_covariance
from .initial import initial_weights

_MOST_CELLS = 5_000


class FullAROMA(TripletLearner):
    """Similarity ``q'Wp`` learned online with the full covariance of all cells of W.

    For small problems only: m * n is at most 5,000, where the covariance takes 200 MB.

    Parameters
    ----------
    r : float, default 1.0
        Noise variance; larger values learn more slowly. Raise it for noisy triplets, lower it (0.01) if every triplet
        should have an immediate effect.
    init : {"zero", "identity"}, float or array of shape (m, n), default "zero"
        W before the first triplet: zero (the paper), the identity, c times the identity, or a matrix.
    rule : {"margin", "mistake"}, default "margin"
        Update for triplets with a margin below 1, or for mistakes only (wrong or tied).
    n_triplets : int, default 200_000
        Number of triplets that `fit` samples from the labels.
    dtype : {"float64", "float32"}, default "float64"
        Precision of W and Sigma.
    random_state : None, int, Generator or RandomState
        Random seed of the triplets that `fit` samples.
    verbose : bool, default False
        Show a progress bar if standard error is a terminal.

    Attributes
    ----------
    W_ : array of shape (m, n)
        The mean of the learned distribution.
    Sigma_ : array of shape (m * n, m * n)
        The covariance of ``W_.ravel()``.
    n_triplets_seen_, n_updates_, n_mistakes_ : int
        Number of triplets learned so far, of updates, and of mistakes; a tie is a mistake.

    References
    ----------
    Crammer and Chechik, Adaptive Regularization for Weight Matrices, ICML 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from aromatch import FullAROMA
    >>> objects = np.eye(3)
    >>> model = FullAROMA(r=0.1).fit_triplets([[0, 1, 2]], objects)  # for 0, 1 is better than 2
    >>> model.similarity(objects[:1], objects).round(2)
    array([[ 0.  ,  0.48, -0.48]])
    >>> model.Sigma_.shape
    (9, 9)
    """

    _state: DenseCells
    _largest_scale: ClassVar[dict[np.dtype[Any], float]] = LARGEST_SCALE_OF_A_COVARIANCE
    _covariances: ClassVar[tuple[str, ...]] = ("Sigma",)

    def __init__(
        self,
        r: float = 1.0,
        *,
        init: Any = "zero",
        rule: str = "margin",
        n_triplets: int = 200_000,
        dtype: Any = "float64",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.r = r
        self.init = init
        self.rule = rule
        self.n_triplets = n_triplets
        self.dtype = dtype
        self.random_state = random_state
        self.verbose = verbose

    @property
    @reads
    def Sigma_(self) -> NDArray[Any]:
        """The covariance of ``W_.ravel()``, of shape (m * n, m * n): a copy."""
        check_is_fitted(self)
        return self._state["Sigma"].copy()

    def _check_params(self) -> float:
        checks.check_choice(self.rule, "rule", ("margin", "mistake"))
        return checks.check_number(self.r, "r", above=0)

    def _first_state(self, m: int, n: int, init: Any) -> DenseCells:
        dtype = check_dtype(self.dtype)
        checks.check_shapes_fit(self._shapes(m, n), dtype, f"The state of {type(self).__name__} for {m} x {n} features")
        Sigma, counts = np.eye(m * n, dtype=dtype), np.zeros(3, dtype=np.int64)
        return DenseCells(W=initial_weights(init, m, n, dtype), Sigma=Sigma, counts=counts)

    def _shapes(self, m: int, n: int) -> dict[str, tuple[int, ...]]:
        if m * n > _MOST_CELLS:
            raise ValueError(
                f"m * n must be at most {_MOST_CELLS} for FullAROMA, got {m * n}, whose covariance has "
                f"{(m * n) ** 2} entries; use DiagonalAROMA or FactoredAROMA"
            )
        return {"W": (m, n), "Sigma": (m * n, m * n), "counts": (3,)}

    def _learn(self, block: Block) -> int:
        return self._state.learn(block, full.learn_triplets, None, self.r, self.rule == "mistake")

    def _grown(self, m: int, n: int) -> dict[str, NDArray[Any]]:
        rows, columns = self._state["W"].shape
        state = super()._grown(m, n)
        cells = (np.arange(rows)[:, np.newaxis] * n + np.arange(columns)).ravel()
        Sigma = np.eye(m * n, dtype=state["W"].dtype)
        Sigma[np.ix_(cells, cells)] = self._state["Sigma"]
        state["Sigma"] = Sigma
        return state

    def _decayed(self, rate: float) -> DenseCells:
        return self._state.replaced(Sigma=decayed_covariance(self._state["Sigma"], rate))

    def _spread(self, Q: Matrix) -> Spread:
        m, n = self.n_features_in_, self.n_object_features_in_
        return FullSpread(Q, self.Sigma_.astype(np.float64, copy=False).reshape(m, n, m, n))

    def _cell_variances(self, i: NDArray[Any], j: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(np.diagonal(self.Sigma_)[i[:, np.newaxis] * self.n_object_features_in_ + j])

    def _variances(self, queries: RowView, objects: RowView, numbers: NDArray[np.int64]) -> NDArray[Any]:
        Sigma = self._state["Sigma"]
        out = np.empty(len(numbers), dtype=Sigma.dtype)
        full.quadratic_forms(queries, objects, numbers, Sigma, out)
        return out

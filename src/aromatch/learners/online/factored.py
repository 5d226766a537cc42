"""f-AROMA: a Gaussian over W with covariance Omega (x) Lambda (paper, section 4.2 and Fig. 2).

With ``p = p_pos - p_neg``, ``a = Lambda q``, ``b = Omega p`` and ``v = (q'a)(p'b)``, the variance of the
margin, a triplet whose margin ``q'Wp`` is under 1 gives, from the matrices of the round before::

    W      += (1 - q'Wp) / (r + v) * a b'            (12)
    Omega  -= (q'a) / (m r + v) * b b'               (13)
    Lambda -= (p'b) / (n r + v) * a a'               (14)

(12) minimises the objective (11) over W. (13) and (14) each minimise it given the *other* matrix of the round
before; together they are one simultaneous step. Two other forms are offered:

- "gauss_seidel": Omega by (13), then the minimiser over Lambda given the new Omega,
  ``inv(Lambda_i) = t inv(Lambda) + (p'Omega_i p) / (n r) q q'`` with ``t = Tr(inv(Omega) Omega_i) / n``.
- "joint": the minimiser over both. It is unique up to ``Lambda * c, Omega / c``; we keep
  ``Tr(inv(Lambda_{i-1}) Lambda_i) = m``. Then ``lam = q'Lambda_i q`` is the positive root of
  ``(n - 1) (p'b) lam^2 + (m n r + (m - n) v) lam - m n r (q'a) = 0``, and both matrices follow from it.

``mean_update="updated"`` is the variant of Theorem 2, which puts the new matrices into the mean,
``inv(Lambda_i) W_i inv(Omega_i) = inv(Lambda) W inv(Omega) + alpha q p'``. With c and d the coefficients of
(14) and (13) that is
``W_i = W - c a (q'W) - d (W p) b' + [c d q'Wp + alpha (1 - c q'a)(1 - d p'b)] a b'``.

Departure: triplets with ``|q|^2 |p|^2 / r`` above 1e11 in float64 or 1e6 in float32 are refused, because rounding could
leave a covariance that is not positive semi-definite. Below that it takes many updates; covariances are checked on the
way (`definite`).

Each of these rewrites three dense matrices. The printed form does so in blocks (`pending`, `kernels.blocked`): the last
updates stay pending as rank-one terms and are folded after a fixed number of them, the same algorithm up to rounding.
The other forms, and small matrices, use the direct loop (`kernels.factored`).
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..._utils import checks
from ..._utils.checks import check_dtype
from ..._utils.rows import Matrix
from ..._utils.sharing import reads
from ...kernels import blocked, factored
from ...kernels.bilinear import quadratic_forms
from ...kernels.rows import RowView
from ..inputs import LARGEST_SCALE_OF_A_COVARIANCE, Block
from ..spread import FactoredSpread, Spread
from ..triplet import TripletLearner
from . import pending
from .cells import DenseCells
from .decay import decayed_covariance
from .initial import initial_weights
from .pending import Pending

_COVARIANCE_UPDATES = {
    "jacobi": factored.JACOBI,
    "gauss_seidel": factored.GAUSS_SEIDEL,
    "joint": factored.JOINT,
}


class FactoredAROMA(TripletLearner):
    """Similarity ``q'Wp`` learned online, with correlations between query and between object features.

    It needs fewer triplets than `DiagonalAROMA` if features are correlated, as in dense embeddings, at the cost of
    updates of three dense matrices.

    Parameters
    ----------
    r : float, default 1.0
        Noise variance; larger values learn more slowly. Raise it for noisy triplets, lower it (0.01) if every triplet
        should have an immediate effect.
    init : {"zero", "identity"}, float or array of shape (m, n), default "zero"
        W before the first triplet: zero (the paper), the identity, c times the identity, or a matrix. Use "identity" or
        a larger c if the dot product of the rows is already a good baseline.
    rule : {"margin", "mistake"}, default "margin"
        Update for triplets with a margin below 1, or for mistakes only (wrong or tied).
    mean_update : {"previous", "updated"}, default "previous"
        Fig. 2 of the paper, or the variant that Theorem 2 is about (only with "jacobi").
    covariance_update : {"jacobi", "gauss_seidel", "joint"}, default "jacobi"
        (13) and (14) as printed, one after the other, or the joint minimiser of (11).
    n_triplets : int, default 200_000
        Number of triplets that `fit` samples from the labels.
    dtype : {"float64", "float32"}, default "float64"
        Precision of the three matrices; float32 halves memory and time.
    random_state : None, int, Generator or RandomState
        Random seed of the triplets that `fit` samples.
    verbose : bool, default False
        Show a progress bar if standard error is a terminal.

    Attributes
    ----------
    W_ : array of shape (m, n)
        The mean of the learned distribution.
    Omega_ : array of shape (n, n)
        Covariance between columns of W, the object features.
    Lambda_ : array of shape (m, m)
        Covariance between rows of W, the query features.
    n_triplets_seen_, n_updates_, n_mistakes_ : int
        Number of triplets learned so far, of updates, and of mistakes; a tie is a mistake.

    References
    ----------
    Crammer and Chechik, Adaptive Regularization for Weight Matrices, ICML 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from aromatch import FactoredAROMA
    >>> objects = np.eye(3)
    >>> model = FactoredAROMA(r=0.1).fit_triplets([[0, 1, 2]], objects)  # for 0, 1 is better than 2
    >>> model.similarity(objects[:1], objects).round(2)
    array([[ 0.  ,  0.48, -0.48]])
    >>> model.pair_std(objects[:1], objects, [[0, 0], [0, 1]]).round(2)
    array([0.36, 0.27])
    """

    _state: DenseCells
    _largest_scale: ClassVar[dict[np.dtype[Any], float]] = LARGEST_SCALE_OF_A_COVARIANCE
    _covariances: ClassVar[tuple[str, ...]] = ("Omega", "Lambda")

    def __init__(
        self,
        r: float = 1.0,
        *,
        init: Any = "zero",
        rule: str = "margin",
        mean_update: str = "previous",
        covariance_update: str = "jacobi",
        n_triplets: int = 200_000,
        dtype: Any = "float64",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.r = r
        self.init = init
        self.rule = rule
        self.mean_update = mean_update
        self.covariance_update = covariance_update
        self.n_triplets = n_triplets
        self.dtype = dtype
        self.random_state = random_state
        self.verbose = verbose

    @property
    @reads
    def Omega_(self) -> NDArray[Any]:
        """Covariance between the columns of W, of shape (n, n): a copy."""
        check_is_fitted(self)
        return self._covariance(self._state, "Omega")

    @property
    @reads
    def Lambda_(self) -> NDArray[Any]:
        """Covariance between the rows of W, of shape (m, m): a copy."""
        check_is_fitted(self)
        return self._covariance(self._state, "Lambda")

    def _check_params(self) -> float:
        checks.check_choice(self.rule, "rule", ("margin", "mistake"))
        checks.check_choice(self.covariance_update, "covariance_update", tuple(_COVARIANCE_UPDATES))
        checks.check_choice(self.mean_update, "mean_update", ("previous", "updated"))
        if self.mean_update == "updated" and self.covariance_update != "jacobi":
            raise ValueError(
                f"mean_update 'updated' needs covariance_update 'jacobi', got covariance_update "
                f"{self.covariance_update!r}"
            )
        return checks.check_number(self.r, "r", above=0)

    def _first_state(self, m: int, n: int, init: Any) -> DenseCells:
        dtype = check_dtype(self.dtype)
        checks.check_shapes_fit(self._shapes(m, n), dtype, f"The state of {type(self).__name__} for {m} x {n} features")
        return DenseCells(
            W=initial_weights(init, m, n, dtype),
            Omega=np.eye(n, dtype=dtype),
            Lambda=np.eye(m, dtype=dtype),
            **pending.start(m, n, 3, dtype),
            counts=np.zeros(4, dtype=np.int64),
        )

    def _shapes(self, m: int, n: int) -> dict[str, tuple[int, ...]]:
        terms = pending.shapes(m, n, n_factors=3)  # alpha, c and d
        return {"W": (m, n), "Omega": (n, n), "Lambda": (m, m), **terms, "counts": (4,)}

    def _learn(self, block: Block) -> int:
        is_blocked = self.covariance_update == "jacobi" and self.mean_update == "previous"
        if not is_blocked and self._state["counts"][3]:  # pending from before these parameters were set
            state = self._copied_state()
            blocked.fold(*state.values())
            self._state = DenseCells(**state)
        W, Omega, Lambda, a, b, steps, counts = self._state.values()
        only_mistakes = self.rule == "mistake"
        if is_blocked and len(a) > 0:
            return blocked.learn(*block, W, Omega, Lambda, a, b, steps, self.r, only_mistakes, counts)
        is_updated, form = self.mean_update == "updated", _COVARIANCE_UPDATES[self.covariance_update]
        return factored.learn(*block, W, Omega, Lambda, self.r, only_mistakes, is_updated, form, counts)

    def _covariance(self, state: dict[str, NDArray[Any]], name: str) -> NDArray[Any]:
        S, pending = state[name].copy(), Pending.of(state)
        if pending is not None:
            steps, terms = (pending.steps[:, 1:2], pending.a) if name == "Lambda" else (pending.steps[:, 2:], pending.b)
            root = np.sqrt(steps) * terms
            S -= root.T @ root
        return S

    def _folded(self) -> DenseCells:
        return self._state.folded().replaced(Omega=self.Omega_, Lambda=self.Lambda_)

    def _decayed(self, rate: float) -> DenseCells:
        # Both covariances by the same factor, whose square is that of their product.
        each = 1 - np.sqrt(1 - rate)
        state = self._folded()
        m, n = state["W"].shape
        Omega, Lambda = (decayed_covariance(state[name], each) for name in ("Omega", "Lambda"))
        return state.replaced(Omega=Omega, Lambda=Lambda, **pending.start(m, n, 3, state.dtype))

    def _variances(self, queries: RowView, objects: RowView, numbers: NDArray[np.int64]) -> NDArray[Any]:
        Omega, Lambda = self._state["Omega"], self._state["Lambda"]
        q_variances = np.empty(len(numbers), dtype=Lambda.dtype)
        p_variances = np.empty(len(numbers), dtype=Omega.dtype)
        quadratic_forms(queries, np.ascontiguousarray(numbers[:, :1]), Lambda, q_variances)
        quadratic_forms(objects, np.ascontiguousarray(numbers[:, 1:]), Omega, p_variances)
        if (pending := Pending.of(self._state)) is not None:
            q_variances -= pending.of_queries(queries, numbers) ** 2 @ pending.steps[:, 1]
            p_variances -= pending.of_objects(objects, numbers) ** 2 @ pending.steps[:, 2]
        return np.asarray(np.maximum(q_variances, 0) * np.maximum(p_variances, 0))

    def _spread(self, Q: Matrix) -> Spread:
        return FactoredSpread(Q, *(S.astype(np.float64, copy=False) for S in (self.Lambda_, self.Omega_)))

    def _cell_variances(self, i: NDArray[Any], j: NDArray[Any]) -> NDArray[Any]:
        return np.outer(np.diagonal(self.Lambda_)[i], np.diagonal(self.Omega_)[j])

    def _mean_variance(self) -> float:
        return float(np.diagonal(self.Lambda_).mean() * np.diagonal(self.Omega_).mean())

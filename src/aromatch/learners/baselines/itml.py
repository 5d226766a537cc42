"""ITML: information-theoretic metric learning (Davis et al. 2007).

The metric M closest to the Euclidean one in LogDet divergence, ``D(A, B) = tr(A inv(B)) - logdet(A inv(B)) - m``, under
constraints on pairs: similar pairs have a squared distance of at most `near`, dissimilar pairs of at least `far`. Since
not all constraints can be satisfied, the bound xi of each pair is a slack variable with a penalty for its distance from
xi_0 (near or far)::

    minimise    D(M, I) + gamma * sum over pairs of D(xi, xi_0)
    such that   v'Mv <= xi of similar pairs,  v'Mv >= xi of dissimilar pairs,        v = x_i - x_j

The method is cyclic Bregman projection, one pair per step. With ``delta`` = 1 for similar and -1 for dissimilar pairs,
a multiplier lambda >= 0 of each pair, initially 0, and ``d = v'Mv``::

    alpha   = min(lambda, delta * gamma / (gamma + 1) * (1 / d - 1 / xi))
    lambda -= alpha
    1 / xi += delta * alpha / gamma
    M      += delta * alpha / (1 - delta * alpha * d) * M v v'M

Departure: the paper prints ``alpha = min(lambda, delta / 2 * (1 / d - gamma / xi))``, which is the projection for gamma
= 1 only. The formula above satisfies ``v'Mv = xi`` after the step for any gamma, as the authors' implementation does.

`aromatch.learners.baselines.pairs` describes how steps are combined in blocks.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._utils import checks
from ..._utils.progress import progress_bar
from ..._utils.rows import MatrixLike
from ..._utils.sharing import drafts, reads
from .metric import MetricSimilarity
from .pairs import NO_DISTANCE, Pairs, PairSampler, check_bounds, check_given, logdet_steps


class ITML(MetricSimilarity):
    """The metric nearest to the Euclidean that holds similar pairs near and dissimilar ones apart.

    Parameters
    ----------
    gamma : float, default 1.0
        Weight of the bounds of the pairs relative to the distance from the Euclidean metric. Lower it for few or noisy
        pairs.
    n_constraints : int, optional
        Number of pairs that `fit` samples from the labels, half of them similar. None means ``40 c (c - 1)`` for c
        classes, as in the authors' code.
    bounds : pair of numbers (near, far), optional
        Squared distances that similar pairs should be within and dissimilar ones beyond. None means the 5th and
        the 95th percentile of the squared Euclidean distances between rows (of 20,000 random pairs of them when
        there are more).
    tol : float, default 0.001
        Sweeps end when the multipliers change less than this, relative to their norm.
    max_sweeps : int, default 10
        Sweeps end after this many at the latest. Convergence of the multipliers can take hundreds; what is
        retrieved changes little after the first few.
    random_state : None, int, Generator or RandomState
        Random seed of the sampled pairs.
    verbose : bool, default False
        Show a progress bar if standard error is a terminal.

    Attributes
    ----------
    M_ : array of shape (m, m)
        The matrix of the metric, positive definite.
    bounds_ : pair of floats
        near and far.
    n_sweeps_ : int
        Number of sweeps over the pairs.

    References
    ----------
    Davis, Kulis, Jain, Sra and Dhillon, Information-theoretic metric learning, ICML 2007.

    Examples
    --------
    The second feature separates the classes; the first is noise.

    >>> import numpy as np
    >>> from aromatch import ITML
    >>> X = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0], [2.0, 1.0]])
    >>> model = ITML(bounds=(0.5, 2.0), random_state=0).fit(X, [0, 0, 1, 1])
    >>> model.M_.diagonal().round(2)
    array([0.13, 1.95])
    """

    def __init__(
        self,
        gamma: float = 1.0,
        *,
        n_constraints: int | None = None,
        bounds: Any = None,
        tol: float = 1e-3,
        max_sweeps: int = 10,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.gamma = gamma
        self.n_constraints = n_constraints
        self.bounds = bounds
        self.tol = tol
        self.max_sweeps = max_sweeps
        self.random_state = random_state
        self.verbose = verbose

    @drafts
    def fit(self, X: MatrixLike, y: ArrayLike) -> Self:
        """Sample pairs from the labels, as many similar as dissimilar ones, and learn them."""
        self._check_params()
        X, y = self._check_labelled(X, y)
        self._check_fits(X.shape[1])
        n_classes = len(np.unique(y))
        n = 40 * n_classes * (n_classes - 1) if self.n_constraints is None else int(self.n_constraints)
        self._replace_state(PairSampler(self.bounds, self.random_state).from_labels(X, y, n).metric(self._learn))
        return self

    @drafts
    def fit_pairs(self, pairs: ArrayLike, is_similar: ArrayLike, X: MatrixLike) -> Self:
        """Learn given pairs in order.

        Parameters
        ----------
        pairs : integer array of shape (N, 2)
            Row numbers of X.
        is_similar : boolean array of shape (N,)
            Whether the rows of a pair should be near each other (within `near`) or apart (by `far` at least).
        X : array or CSR matrix of shape (n_rows, m)
        """
        self._check_params()
        rows, numbers, kinds = check_given(pairs, is_similar, X)
        self._check_fits(rows.shape[1])
        self._record_rows(X, rows)
        sampler = PairSampler(self.bounds, self.random_state)
        self._replace_state(sampler.given(rows, numbers, kinds).metric(self._learn))
        return self

    @property
    @reads
    def bounds_(self) -> tuple[float, float]:
        """Squared distances near and far for similar and for dissimilar pairs."""
        near, far = self._array("bounds").tolist()
        return near, far

    @property
    @reads
    def n_sweeps_(self) -> int:
        """Number of sweeps over the pairs."""
        return int(self._array("n_sweeps")[0])

    def _shapes(self, m: int, n: int) -> dict[str, tuple[int, ...]]:
        return {"L": (m, m), "bounds": (2,), "n_sweeps": (1,)}

    def _check_params(self) -> None:
        if self.bounds is not None:
            check_bounds(self.bounds)
        checks.check_flag(self.verbose, "verbose")
        if self.n_constraints is not None:
            checks.check_integer(self.n_constraints, "n_constraints", at_least=0)
        checks.check_number(self.gamma, "gamma", above=0)
        checks.check_number(self.tol, "tol", at_least=0)
        checks.check_integer(self.max_sweeps, "max_sweeps", at_least=0)

    def _learn(self, M: NDArray[Any], pairs: Pairs) -> dict[str, NDArray[Any]]:
        """Change M by LogDet steps; return further arrays of the state."""
        V, is_similar, near, far = pairs
        gamma, tol, max_sweeps = float(self.gamma), float(self.tol), int(self.max_sweeps)
        rate = gamma / (gamma + 1.0)
        delta: list[float] = np.where(is_similar, 1.0, -1.0).tolist()
        inverse_xi: list[float] = np.where(is_similar, 1 / near, 1 / far).tolist()
        lambdas = [0.0] * len(delta)

        def beta_of(i: int, d: float) -> float:
            if d <= NO_DISTANCE:
                return 0.0
            alpha = min(lambdas[i], delta[i] * rate * (1 / d - inverse_xi[i]))
            lambdas[i] -= alpha
            inverse_xi[i] += delta[i] * alpha / gamma
            return delta[i] * alpha / (1 - delta[i] * alpha * d)

        n_sweeps = 0
        with progress_bar("ITML", max_sweeps * len(delta), enabled=self.verbose) as advance:
            while n_sweeps < max_sweeps:
                before = np.array(lambdas)
                logdet_steps(M, V, beta_of, advance)
                n_sweeps += 1
                after = np.array(lambdas)
                if np.linalg.norm(after - before) <= tol * (np.linalg.norm(after) + np.linalg.norm(before)):
                    break
        return {"n_sweeps": np.array([n_sweeps])}

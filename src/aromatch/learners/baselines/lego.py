"""LEGO: online metric learning with LogDet regularisation (Jain et al. 2008).

A pair comes with a target y for its squared distance ``d = v'Mv``. Each step trades staying near the metric before
(in LogDet divergence ``D``) against the pair::

    M_new = argmin over M of  D(M, M_old) + eta / 2 * (v'Mv - y)^2

Setting the derivative to zero gives ``inv(M_new) = inv(M_old) + eta (y_bar - y) v v'``, where ``y_bar = v'M_new v`` is
the positive root of a quadratic, and with it the step in closed form::

    eta d y_bar^2 + (1 - eta y d) y_bar - d = 0
    M_new = M_old - eta (y_bar - y) / (1 + eta (y_bar - y) d) * M_old v v'M_old

``1 + eta (y_bar - y) d = d / y_bar`` is positive, so M stays positive definite for every eta > 0.

What the paper leaves open and is chosen here: with labels, the target of similar pairs is `near` and that of dissimilar
ones is `far`, the percentiles that ITML uses; and with ``loss="hinge"`` a pair on the right side of its target is left
alone, as in the comparison of Chechik et al. (2010), where the loss is that of rows of one class being more than a
certain distance apart, and of rows of different classes being less.

`aromatch.learners.baselines.pairs` describes how steps are taken in blocks.
"""

from __future__ import annotations

from math import hypot, sqrt
from typing import Any, Self

from numpy.typing import ArrayLike, NDArray

from ..._utils import checks
from ..._utils.progress import progress_bar
from ..._utils.rows import MatrixLike
from ..._utils.sharing import drafts, reads
from .metric import MetricSimilarity
from .pairs import NO_DISTANCE, Pairs, PairSampler, check_bounds, check_given, logdet_steps

_LARGEST_ETA, _LARGEST_HALF = 1e100, 1e150


class LEGO(MetricSimilarity):
    """Metric learned online from pairs with target distances, positive definite after every step.

    Parameters
    ----------
    eta : float, default 1.0
        Learning rate. Lower it for many or noisy pairs.
    loss : {"hinge", "squared"}, default "hinge"
        Squared moves every pair to its target; hinge only those that are on the wrong side of it.
    n_constraints : int, default 50_000
        Number of pairs that `fit` samples from the labels, half of them similar; each is learned once.
    bounds : pair of numbers (near, far), optional
        Target squared distances of similar and of dissimilar pairs. None means the 5th and the 95th percentile of
        the squared Euclidean distances between rows (of 20,000 random pairs of them when there are more).
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

    References
    ----------
    Jain, Kulis, Dhillon and Grauman, Online metric learning and fast similarity search, NIPS 2008.

    Examples
    --------
    The second feature separates the classes; the first is noise.

    >>> import numpy as np
    >>> from aromatch import LEGO
    >>> X = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0], [2.0, 1.0]])
    >>> model = LEGO(bounds=(0.5, 2.0), n_constraints=200, random_state=0).fit(X, [0, 0, 1, 1])
    >>> model.M_.diagonal().round(1)
    array([0.1, 2. ])
    """

    def __init__(
        self,
        eta: float = 1.0,
        *,
        loss: str = "hinge",
        n_constraints: int = 50_000,
        bounds: Any = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.eta = eta
        self.loss = loss
        self.n_constraints = n_constraints
        self.bounds = bounds
        self.random_state = random_state
        self.verbose = verbose

    @drafts
    def fit(self, X: MatrixLike, y: ArrayLike) -> Self:
        """Sample pairs from the labels, as many similar as dissimilar ones, and learn them."""
        self._check_params()
        X, y = self._check_labelled(X, y)
        self._check_fits(X.shape[1])
        n = int(self.n_constraints)
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

    def _shapes(self, m: int, n: int) -> dict[str, tuple[int, ...]]:
        return {"L": (m, m), "bounds": (2,)}

    def _check_params(self) -> None:
        if self.bounds is not None:
            check_bounds(self.bounds)
        checks.check_flag(self.verbose, "verbose")
        if checks.check_number(self.eta, "eta", above=0) > _LARGEST_ETA:
            raise ValueError(f"eta must be at most {_LARGEST_ETA:.0e}, got {self.eta!r}")
        checks.check_choice(self.loss, "loss", ("hinge", "squared"))
        checks.check_integer(self.n_constraints, "n_constraints", at_least=0)

    def _learn(self, M: NDArray[Any], pairs: Pairs) -> dict[str, NDArray[Any]]:
        """Change M by LogDet steps; return further arrays of the state."""
        V, is_similar, near, far = pairs
        eta, is_hinge = float(self.eta), self.loss == "hinge"
        similar = is_similar.tolist()

        def beta_of(i: int, d: float) -> float:
            y = near if similar[i] else far
            if d <= NO_DISTANCE or (is_hinge and (d <= near if similar[i] else d >= far)):
                return 0.0
            y_bar = later_distance(d, y, eta)
            # Which is -eta (y_bar - y) / (1 + eta (y_bar - y) d): after the step v'Mv is d + beta d^2 = y_bar.
            return (y_bar / d - 1) / d

        with progress_bar("LEGO", len(similar), enabled=self.verbose) as advance:
            logdet_steps(M, V, beta_of, advance)
        return {}


def later_distance(d: float, y: float, eta: float) -> float:
    """Return ``y_bar``, the distance after a step, of a pair at distance d with the target y."""
    half = (eta * y * d - 1) / 2
    # The square of a large half overflows; `hypot` rounds differently.
    root = sqrt(half * half + eta * d * d) if half < _LARGEST_HALF else hypot(half, sqrt(eta) * d)
    # Of the two equal forms of a quadratic's positive root, the one that adds.
    return (half + root) / (eta * d) if half > 0 else d / (root - half)

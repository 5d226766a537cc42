"""MomentAROMA: W in closed form from three sums over the triplets (beyond the paper).

With ``p = p_pos - p_neg`` and means over the triplets, weighted by `sample_weight`::

    W = inv(E[q q'] + lam I)  E[q p']  inv(E[p p'] + lam I)

Why this. Theorem 2 of the paper is about f-AROMA with updated matrices in the mean, for which
``inv(Lambda) W inv(Omega)`` is a sum of ``alpha q p'``, and ``inv(Lambda)`` and ``inv(Omega)`` are sums of ``q q'``
and ``p p'`` with factors that depend on the order. With all factors equal that is the formula above, up to scale. It is
also one Newton step from ``W = 0`` on the squared loss ``(1 - q'Wp)^2``: the gradient is ``-2 E[q p']``, the Hessian
``2 E[(q q') (x) (p p')]``, here approximated by ``2 E[q q'] (x) E[p p']``, as K-FAC does for neural networks (Martens
and Grosse 2015), and lam keeps directions with little evidence small.

Sums do not depend on the order of the triplets or on how they came in pieces, up to rounding, and those of several
models can be added: `aromatch.merge` is exact. Labels give the sums over all triplets at once, without drawing any
(`learners.sums`).

The distribution around W is the one that the same Newton step has in Laplace's approximation with noise of variance 1:
covariance ``Omega (x) Lambda`` with ``Lambda = inv(E[q q'] + lam I) / N`` and ``Omega = inv(E[p p'] + lam I)``, N the
sum of the weights.

A direction in which neither rows nor lam leave anything, such as one that no row has when lam is 0, has no influence:
inverses are pseudo-inverses there.

Differences of objects are summed as differences of sums. A large constant in their features costs accuracy, as its
square against the square of the rest: centre such features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from sklearn.utils.validation import check_is_fitted

from .. import _checks as checks
from .._rows import Matrix, MatrixLike
from ..kernels.bilinear import forms, quadratic_forms
from ..kernels.moments import add_sums
from ..kernels.rows import RowView
from ..triplets import LabelSampler
from . import sums
from .inputs import FLOAT64, Block, product
from .triplet import TripletLearner

Array = NDArray[np.float64]

# Triplets whose sums are computed before they are added to the model.
_AT_ONCE = 2**18
# Below this part of the largest, an eigenvalue is rounding: as many times the smallest number that 1 + x tells from 1
# as the matrix has rows.
_EPSILON = float(np.finfo(np.float64).eps)


class MomentAROMA(TripletLearner):
    """Similarity ``q'Wp`` in closed form from sums over the triplets: quick, exact to merge, free of their order.

    The choice when triplets come in batches, or when labels are there: `fit` takes in all triplets that labels allow
    without drawing one. To read W after every single judgement takes a solve of both sides each time; the online
    learners are better at that.

    Parameters
    ----------
    lam : float, default 1e-3
        Added to the mean squares of features before they are inverted. Rows of unit norm in d features have mean
        squares around 1 / d. Raise it when there are few triplets or they are noisy.
    progress : bool, default False
        Show a progress bar on a terminal.

    Attributes
    ----------
    W_ : array of shape (m, n)
        The matrix of the score.
    Omega_ : array of shape (n, n)
        Covariance between columns of W, the object features.
    Lambda_ : array of shape (m, m)
        Covariance between rows of W, the query features.
    weight_ : float
        Sum of the weights of the triplets; `fit` counts 1 for each query.
    n_triplets_seen_, n_updates_ : int
        Triplets met so far, and those that changed the sums. Nobody looks at mistakes, so they are not counted.

    References
    ----------
    Crammer and Chechik, Adaptive Regularization for Weight Matrices, ICML 2012: its Theorem 2 has the sums.
    Martens and Grosse, Optimizing Neural Networks with Kronecker-factored Approximate Curvature, ICML 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from aromatch import MomentAROMA
    >>> objects = np.eye(3)
    >>> model = MomentAROMA(lam=0.5).fit_triplets([[0, 1, 2]], objects)  # for 0, 1 is better than 2
    >>> model.similarity(objects[:1], objects).round(2)
    array([[ 0.  ,  0.27, -0.27]])

    Labels need no triplets:

    >>> model = MomentAROMA().fit(np.array([[1.0, 0.1], [0.9, 0.0], [0.1, 1.0], [0.0, 0.8]]), ["a", "a", "b", "b"])
    >>> bool(model.pair_score([[1.0, 0.2]], [[0.8, 0.1]]) > model.pair_score([[1.0, 0.2]], [[0.1, 0.8]]))
    True
    """

    def __init__(self, lam: float = 1e-3, *, progress: bool = False) -> None:
        self.lam = lam
        self.progress = progress

    # -- learning -----------------------------------------------------------------------------------------

    def fit(self, X: MatrixLike, y: ArrayLike) -> Self:
        """Start anew and take in all triplets that the labels allow.

        A triplet is any row, any other row with the same label and any row with another. All queries count the same,
        rows of zeros and rows that are the same too, whose triplets `fit_triplets` leaves out.
        """
        with self._unchanged_on_error():
            self._check_common_params()
            rows, y = self._read_labelled(X, y)
            self._check_square(rows.largest_square)
            LabelSampler(y)  # refuses labels that allow no triplet
            classes, counts = np.unique(y, return_inverse=True, return_counts=True)[1:]
            n_triplets = _number_of_triplets(counts)
            self.__dict__.pop("_state", None)
            width = rows.view.shape[1]
            self._begin(width, width)
            self._take_in(sums.of_labels(rows.view, classes), n_triplets, n_triplets)
        return self

    # -- what was learned ---------------------------------------------------------------------------------

    @property
    def W_(self) -> Array:
        """The matrix of the score ``q'Wp``, of shape (m, n): a copy."""
        return self._solution.W.copy()

    @property
    def Omega_(self) -> Array:
        """Covariance between the columns of W, of shape (n, n): a copy."""
        return self._solution.Omega.copy()

    @property
    def Lambda_(self) -> Array:
        """Covariance between the rows of W, of shape (m, m): a copy."""
        return self._solution.Lambda.copy()

    @property
    def weight_(self) -> float:
        """Sum of the weights of all triplets."""
        check_is_fitted(self)
        return float(self._state["weight"][0])

    # -- hooks of the base classes ------------------------------------------------------------------------

    @classmethod
    def _shapes(cls, m: int, n: int) -> dict[str, tuple[int, ...]]:
        return {"qq": (m, m), "qp": (m, n), "pp": (n, n), "weight": (1,), "counts": (2,)}

    def _check_params(self) -> float:
        checks.check_number(self.lam, "lam", at_least=0)
        return 1.0

    def _first_state(self, m: int, n: int) -> dict[str, NDArray[Any]]:
        self._check_fits(m, n, FLOAT64)
        return {name: np.zeros(shape, dtype=_precision_of(name)) for name, shape in self._shapes(m, n).items()}

    def _learn(self, block: Block) -> int:
        m, n = self.n_features_in_, self.n_object_features_in_
        changes = sums.changing(block)
        if block.record is not None:
            block.record[0] = *self._solution.judge(*_single(block, m, n)), changes[0]
        weights = None if block.weights is None else block.weights[changes]
        rest = block._replace(triplets=block.triplets[changes], weights=weights)
        self._take_in(sums.of_triplets(rest, m, n), len(block.triplets), len(rest.triplets))
        return len(block.triplets)

    def _learn_in_pieces(self, block: Block, advance: Callable[[int], None], kept: str, first: int = 0) -> None:
        # Large pieces: the sums of a piece cost as much as adding up all features of its rows, however few triplets.
        for start in range(0, len(block.triplets), _AT_ONCE):
            piece = slice(start, start + _AT_ONCE)
            weights = None if block.weights is None else block.weights[piece]
            advance(self._learn(block._replace(triplets=block.triplets[piece], weights=weights)))

    def _check_state(self, state: dict[str, NDArray[Any]], m: int, n: int) -> None:
        super()._check_state(state, m, n)
        self._check_common_params()
        for name, array in state.items():
            if array.dtype != _precision_of(name):
                raise ValueError(f"the model's {name} is {array.dtype}, expected {_precision_of(name)}")
            if not np.isfinite(array).all():
                raise ValueError(f"the model's {name} contains NaN or infinity")
        if (state["counts"] < 0).any() or state["weight"][0] < 0:
            raise ValueError("the model's counts or its weight are negative")
        if any((np.diagonal(state[name]) < 0).any() for name in ("qq", "pp")):
            raise ValueError("the model's sums of squares are negative")

    @property
    def _precision(self) -> np.dtype[Any]:
        return FLOAT64

    def _queries_times_W(self, Q: Matrix) -> Array:
        return product(Q, self._solution.W)

    def _forms(self, queries: RowView, objects: RowView, numbers: NDArray[np.int64]) -> Array:
        out = np.empty(len(numbers))
        forms(queries, objects, numbers, self._solution.W, False, False, out)
        return out

    def _variances(self, queries: RowView, objects: RowView, numbers: NDArray[np.int64]) -> Array:
        of_query, of_object = np.empty(len(numbers)), np.empty(len(numbers))
        quadratic_forms(queries, np.ascontiguousarray(numbers[:, :1]), self._solution.Lambda, of_query)
        quadratic_forms(objects, np.ascontiguousarray(numbers[:, 1:]), self._solution.Omega, of_object)
        return np.asarray(np.maximum(of_query, 0) * np.maximum(of_object, 0))

    # -- inside -------------------------------------------------------------------------------------------

    def _take_in(self, found: sums.Sums, n_triplets: int, n_updates: int) -> None:
        """Add to the sums: all of them or none, whenever an interrupt comes."""
        state = self._state
        for more, known in ((found.qq, state["qq"]), (found.qp, state["qp"]), (found.pp, state["pp"])):
            more += known
            if not np.isfinite(more).all():
                raise ValueError(
                    "the sums over the triplets are too large for float64; scale rows or sample_weight down"
                )
        # It would keep the sums of before alive.
        self.__dict__.pop("_ready", None)
        # Reading puts the solution in here, and leaves the attributes of the model as they are.
        self._known: list[_Solution] = []
        self._state = {
            "qq": found.qq,
            "qp": found.qp,
            "pp": found.pp,
            "weight": state["weight"] + found.weight,
            "counts": _added(state["counts"], [n_triplets, n_updates]),
        }

    @classmethod
    def _merge(cls, models: Sequence[Self]) -> Self:
        """Give a model that has seen what all of these have."""
        merged = models[0].copy()
        for model in models[1:]:
            state = model._state
            found = sums.Sums(state["qq"].copy(), state["qp"].copy(), state["pp"].copy(), model.weight_)
            merged._take_in(found, *state["counts"].tolist())
        return merged

    @property
    def _solution(self) -> _Solution:
        """What follows from the sums; it is kept until they or lam change."""
        check_is_fitted(self)
        lam = checks.check_number(self.lam, "lam", at_least=0)
        # Held here too: another reader may look at the same time.
        known: list[_Solution] = self.__dict__.get("_known", [])
        latest, state = known[0] if known else None, self._state
        if latest is not None and latest.state is state and latest.lam == lam:
            return latest
        found = _Solution(state, lam)
        if "_known" in self.__dict__:
            self._known[:] = [found]
        else:  # it comes from a file, or is a copy
            self._known = [found]
        return found

    def __getstate__(self) -> dict[str, Any]:
        # A copy solves for itself, when it is asked to.
        return {name: value for name, value in super().__getstate__().items() if name != "_known"}


class _Solution:
    """W and its covariance for given sums, each computed when it is first wanted."""

    def __init__(self, state: dict[str, NDArray[Any]], lam: float) -> None:
        self.state = state
        self.lam = lam
        # Without a single triplet all sums, and so all means, are zero.
        self._weight = float(state["weight"][0]) or 1.0

    @cached_property
    def _queries(self) -> _Inverse:
        return _Inverse(self.state["qq"] / self._weight, self.lam)

    @cached_property
    def _objects(self) -> _Inverse:
        return _Inverse(self.state["pp"] / self._weight, self.lam)

    @cached_property
    def W(self) -> Array:
        left = self._queries.times(self.state["qp"] / self._weight)
        return np.ascontiguousarray(self._objects.times(left.T).T)

    @cached_property
    def Lambda(self) -> Array:
        return np.ascontiguousarray(self._queries.times(np.eye(len(self.state["qq"]))) / self._judgements)

    @cached_property
    def Omega(self) -> Array:
        return np.ascontiguousarray(self._objects.times(np.eye(len(self.state["pp"]))))

    def judge(self, q: Array, p: Array) -> tuple[float, float]:
        """Give the mean and the variance of ``q'Wp`` without all of W."""
        a, b = self._queries.times(q), self._objects.times(p)
        variance = max(0.0, float(q @ a)) * max(0.0, float(p @ b)) / self._judgements
        return float(a @ self.state["qp"] @ b) / self._weight, variance

    @property
    def _judgements(self) -> float:
        """What the variance is divided by: less than one judgement says nothing yet."""
        return max(float(self.state["weight"][0]), 1.0)


class _Inverse:
    """The inverse of ``S + lam I``, S symmetric without negative eigenvalues but for rounding.

    All features are first scaled to the same mean square, so that what counts as rounding does not depend on units.
    """

    def __init__(self, S: Array, lam: float) -> None:
        S[np.diag_indices_from(S)] += lam
        squares = np.diagonal(S)
        self._scales = np.divide(1.0, np.sqrt(squares), out=np.zeros(len(S)), where=squares > 0)
        S *= self._scales
        S *= self._scales[:, np.newaxis]
        norm = linalg.norm(S, 1)
        self._factor: tuple[Array, bool] | None = None
        try:
            factor = linalg.cho_factor(S, lower=True)
            well_posed = linalg.lapack.dpocon(factor[0], norm, uplo="L")[0] > _EPSILON * len(S)
        except linalg.LinAlgError:
            well_posed = False
        if well_posed:
            self._factor = factor
            return
        values, vectors = linalg.eigh(S)
        kept = values > _EPSILON * len(S) * max(float(values[-1]), 0.0)
        self._values, self._vectors = values[kept], vectors[:, kept]

    def times(self, B: Array) -> Array:
        """Multiply a vector, or the columns of a matrix."""
        scales = self._scales if B.ndim == 1 else self._scales[:, np.newaxis]
        scaled = scales * B
        if self._factor is not None:
            return np.asarray(scales * linalg.cho_solve(self._factor, scaled))
        return np.asarray(scales * ((self._vectors / self._values) @ (self._vectors.T @ scaled)))


def _added(counts: NDArray[np.int64], more: Sequence[int]) -> NDArray[np.int64]:
    """Add to counts; the most that one can hold is more than anybody counts to, but labels allow more triplets."""
    most = np.iinfo(np.int64).max
    return np.array([min(int(count) + n, most) for count, n in zip(counts, more, strict=True)], dtype=np.int64)


def _precision_of(name: str) -> np.dtype[Any]:
    return np.dtype(np.int64) if name == "counts" else FLOAT64


def _single(block: Block, m: int, n: int) -> tuple[Array, Array]:
    """Give q and p of a block with one triplet."""
    q, p = np.zeros((1, m)), np.zeros((1, n))
    ends = np.array([0, 1])
    for rows, number, sign, out in (
        (block.queries, block.triplets[:, 0], 1.0, q),
        (block.preferred, block.triplets[:, 1], 1.0, p),
        (block.others, block.triplets[:, 2], -1.0, p),
    ):
        add_sums(rows, ends, np.ascontiguousarray(number), np.array([sign]), out)
    return q[0], p[0]


def _number_of_triplets(counts: NDArray[np.int64]) -> int:
    """How many different triplets classes of these sizes allow."""
    n = int(counts.sum())
    return sum(int(c) * (int(c) - 1) * (n - int(c)) for c in counts)

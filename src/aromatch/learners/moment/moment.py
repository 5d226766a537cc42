"""MomentAROMA: W in closed form from three sums over the triplets (beyond the paper).

With ``p = p_pos - p_neg`` and means over the triplets, weighted by `sample_weight`::

    W = inv(E[q q'] + alpha I)  E[q p']  inv(E[p p'] + alpha I)

Motivation. Theorem 2 of the paper is about f-AROMA with updated matrices in the mean, for which
``inv(Lambda) W inv(Omega)`` is a sum of ``step q p'``, and ``inv(Lambda)`` and ``inv(Omega)`` are sums of ``q q'``
and ``p p'`` with factors that depend on the order. With all factors equal that is the formula above, up to scale. It is
also one Newton step from ``W = 0`` on the squared loss ``(1 - q'Wp)^2``: the gradient is ``-2 E[q p']``, the Hessian
``2 E[(q q') (x) (p p')]``, here approximated by ``2 E[q q'] (x) E[p p']``, as K-FAC does for neural networks (Martens
and Grosse 2015), and alpha regularizes directions with little evidence.

Sums do not depend on the order of the triplets or on batches, up to rounding, and sums of several models can be added:
`aromatch.merge` is exact. Labels give the sums over all triplets without sampling (`sums`).

The distribution around W is the one that the same Newton step has in Laplace's approximation with noise of variance 1:
covariance ``Omega (x) Lambda`` with ``Lambda = inv(E[q q'] + alpha I) / N`` and ``Omega = inv(E[p p'] + alpha I)``, N
the sum of the weights.

Directions without variance, such as a feature that is zero in all rows with alpha = 0, get no weight: inverses are
pseudo-inverses there.

With ``alpha="auto"`` or `denoise`, one row in eight is a validation row (`solution`): W from triplets of the other rows
is evaluated on triplets whose query is a validation row, as future queries will be unseen too. The final W uses all
triplets. Validation rows depend on the values of rows alone, so that order and batches do not matter here either.
Labels are evaluated on triplets of validation rows only.

`denoise` uses the graph of all triplets of a call (`triplet_graph`), which sums cannot represent: there batches matter.

Differences of objects are summed as differences of sums. A large constant in their features costs accuracy, as its
square relative to the square of the rest: centre such features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from ..._utils import checks
from ..._utils.chunks import chunks
from ..._utils.rows import Matrix, MatrixLike
from ..._utils.sharing import drafts, reads
from ...kernels.bilinear import quadratic_forms
from ...kernels.rows import RowView
from ...triplets import LabelSampler
from ..inputs import FLOAT64, Block, dense_triplets
from ..invariants import LARGEST_COUNT, check_squares, check_sum, check_symmetric_sum
from ..online.cells import DenseCells
from ..spread import FactoredSpread, Spread
from ..triplet import TripletLearner
from . import sums
from .solution import Solution
from .triplet_graph import DENOISED, denoised_sums, graph_of

Array = NDArray[np.float64]

# Triplets in one batch: the sums of a batch cost as much as adding all features of its rows, however few triplets.
_BATCH = 2**18


class MomentAROMA(TripletLearner):
    """Similarity ``q'Wp`` in closed form from sums over the triplets: fast, exactly mergeable, independent of order.

    Suited to triplets in batches and to labels: `fit` uses all triplets that labels allow without sampling. Reading W
    after every single judgement solves both sides each time; online learners are faster there.

    Parameters
    ----------
    alpha : float or "auto", default 1e-3
        Regularization strength, added to the mean squares of the features before they are inverted. Rows of unit norm
        with d features have mean squares around 1 / d. The best value falls about as one over the number of triplets,
        until the noise of the rows dominates that of the triplets. "auto" chooses it on validation queries.
    alpha_schedule : {"constant", "inverse"}, default "constant"
        With "inverse", ``alpha_`` is `alpha` over the sum of the weights, so one value serves all along a stream. It is
        then in units of triplets: `alpha` = 5 regularizes as much as five triplets with unit covariance would.
    denoise : bool, default False
        Replace ``E[q p']`` by the components of the graph of the triplets above the noise level, where that improves
        the margins of validation queries. Needs several triplets per row in one call.
    verbose : bool, default False
        Show a progress bar on a terminal.

    Attributes
    ----------
    W_ : array of shape (m, n)
        The matrix of the score.
    Omega_ : array of shape (n, n)
        Covariance between columns of W, the object features.
    Lambda_ : array of shape (m, m)
        Covariance between rows of W, the query features.
    alpha_ : float
        The regularization strength in use.
    denoise_weight_ : float
        Weight of the denoised sum in W: 0, 0.5 or 1.
    sum_of_weights_ : float
        Sum of the weights of the triplets; `fit` counts 1 for each query.
    n_triplets_seen_, n_updates_ : int
        Triplets seen, and those that changed the sums. Mistakes are not counted.

    References
    ----------
    Crammer and Chechik, Adaptive Regularization for Weight Matrices, ICML 2012: its Theorem 2 has the sums.
    Martens and Grosse, Optimizing Neural Networks with Kronecker-factored Approximate Curvature, ICML 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from aromatch import MomentAROMA
    >>> objects = np.eye(3)
    >>> model = MomentAROMA(alpha=0.5).fit_triplets([[0, 1, 2]], objects)  # for 0, 1 is better than 2
    >>> model.similarity(objects[:1], objects).round(2)
    array([[ 0.  ,  0.27, -0.27]])

    Labels need no triplets:

    >>> model = MomentAROMA().fit(np.array([[1.0, 0.1], [0.9, 0.0], [0.1, 1.0], [0.0, 0.8]]), ["a", "a", "b", "b"])
    >>> bool(model.pair_score([[1.0, 0.2]], [[0.8, 0.1]]) > model.pair_score([[1.0, 0.2]], [[0.1, 0.8]]))
    True
    """

    _largest_row: ClassVar[dict[np.dtype[Any], float]] = {FLOAT64: np.inf}  # sums check themselves
    _largest_count: ClassVar[int] = LARGEST_COUNT

    def __init__(
        self,
        alpha: float | str = 1e-3,
        *,
        alpha_schedule: str = "constant",
        denoise: bool = False,
        verbose: bool = False,
    ) -> None:
        self.alpha = alpha
        self.alpha_schedule = alpha_schedule
        self.denoise = denoise
        self.verbose = verbose

    # -- training -----------------------------------------------------------------------------------------

    @drafts
    def fit(self, X: MatrixLike, y: ArrayLike) -> Self:
        """Fit all triplets that the labels allow.

        A triplet is any row, any other row with the same label and any row with another. All queries count the same,
        including rows of zeros and duplicates, whose triplets `fit_triplets` ignores.
        """
        self.__dict__.pop("_state", None)
        self._check_common_params()
        _, rows, y = self._read_labelled(X, y, [np.float64, np.float32])
        self._check_square(rows.largest_square)
        LabelSampler(y)  # raises for labels that allow no triplet
        classes, counts = np.unique(y, return_inverse=True, return_counts=True)[1:]
        n_triplets = _number_of_triplets(counts)
        width = rows.view.shape[1]
        self._begin(width, width)
        if self._is_split:
            found = sums.split_sums_of_labels(rows.view, classes)
        else:
            found = sums.named(sums.of_labels(rows.view, classes))
        if self.denoise:  # sums over all triplets have no sampling noise
            found |= {name: found[raw].copy() for name, raw in DENOISED.items()}
        self._add(found, n_triplets, n_triplets)
        return self

    @reads
    def finalized(self) -> MomentAROMA:
        """Return a model with the same W, to the bit, whose alpha and denoising are fixed.

        Its `alpha` is the chosen number, and `denoise` is part of its sums. It stores three matrices instead of up to
        thirteen, and makes no choices when it is loaded or trained further.

        Examples
        --------
        >>> import numpy as np
        >>> from aromatch import MomentAROMA
        >>> model = MomentAROMA("auto").fit(np.array([[1.0, 0.1], [0.9, 0.0], [0.1, 1.0], [0.0, 0.8]]), list("aabb"))
        >>> final = model.finalized()
        >>> bool(final.alpha == model.alpha_), bool((final.W_ == model.W_).all())
        (True, True)
        """
        solution = self._solution
        alpha = self.alpha if self.alpha_schedule == "inverse" else float(solution.choice.alpha)
        final = MomentAROMA(alpha, alpha_schedule=self.alpha_schedule, verbose=self.verbose)
        for name in ("n_features_in_", "n_object_features_in_", "feature_names_in_", "_fingerprints"):
            if name in self.__dict__:
                setattr(final, name, self.__dict__[name])
        sums_and_counts = {name: self._state[name] for name in final._shapes(1, 1)}
        final._state = {name: array.copy() for name, array in {**sums_and_counts, "qp": solution.qp}.items()}
        return final

    # -- results ------------------------------------------------------------------------------------------

    @property
    @reads
    def W_(self) -> Array:
        """The matrix of the score ``q'Wp``, of shape (m, n): a copy."""
        return self._solution.W.copy()

    @property
    @reads
    def Omega_(self) -> Array:
        """Covariance between the columns of W, of shape (n, n): a copy."""
        return self._solution.Omega.copy()

    @property
    @reads
    def Lambda_(self) -> Array:
        """Covariance between the rows of W, of shape (m, m): a copy."""
        return self._solution.Lambda.copy()

    @property
    @reads
    def alpha_(self) -> float:
        """The regularization strength in use, given or chosen."""
        return self._solution.choice.alpha

    @property
    @reads
    def denoise_weight_(self) -> float:
        """Weight of the denoised sum in W; 0 without `denoise`."""
        return self._solution.choice.denoise_weight

    @property
    @reads
    def sum_of_weights_(self) -> float:
        """Sum of the weights of all triplets."""
        check_is_fitted(self)
        return float(self._state["weight"][0])

    # -- hooks of the base classes ------------------------------------------------------------------------

    def _shapes(self, m: int, n: int) -> dict[str, tuple[int, ...]]:
        prefixes = ["", "train_", "validation_"] if self._is_split else [""]
        of_sums = {"qq": (m, m), "qp": (m, n), "pp": (n, n), "weight": (1,)}
        shapes: dict[str, tuple[int, ...]] = {prefix + name: of_sums[name] for prefix in prefixes for name in of_sums}
        if self.denoise:
            shapes |= {name: shapes[raw] for name, raw in DENOISED.items()}
        return shapes | {"counts": (2,)}

    def _check_params(self) -> float:
        self._check_alpha()
        checks.check_flag(self.denoise, "denoise")
        if hasattr(self, "_state") and not {*self._shapes(1, 1)} <= {*self._state}:
            raise ValueError(
                f"alpha={self.alpha!r} with denoise={self.denoise} needs validation rows from the first triplet on, "
                "and this model has none; fit it again"
            )
        return 1.0

    def _check_alpha(self) -> float | None:
        """Return alpha if it is a number, None for "auto"."""
        checks.check_choice(self.alpha_schedule, "alpha_schedule", ("constant", "inverse"))
        if not isinstance(self.alpha, str):
            return checks.check_number(self.alpha, "alpha", at_least=0)
        checks.check_choice(self.alpha, "alpha", ("auto",))
        if self.alpha_schedule != "constant":
            raise ValueError(f"alpha='auto' needs alpha_schedule='constant', got {self.alpha_schedule!r}")
        return None

    @property
    def _is_split(self) -> bool:
        """Whether sums over training and validation rows are kept."""
        return self.denoise or isinstance(self.alpha, str)

    def _first_state(self, m: int, n: int, init: Any = None) -> dict[str, NDArray[Any]]:
        checks.check_shapes_fit(self._shapes(m, n), FLOAT64, f"The state of MomentAROMA for {m} x {n} features")
        zeros = {name: np.zeros(shape) for name, shape in self._shapes(m, n).items()}
        return zeros | {"counts": np.zeros(2, dtype=np.int64)}

    def _learn(self, block: Block) -> int:
        m, n = self.n_features_in_, self.n_object_features_in_
        hashes = sums.hashes_of(block)
        changes = sums.changing(block, hashes)
        if block.record is not None:
            q, p = dense_triplets(block)
            block.record[0] = *self._solution.judge(q[0], p[0]), changes[0]
        informative, hashes = sums.part(block, changes), hashes[changes]
        if self._is_split:
            found = sums.split_sums(informative, hashes, m, n)
        else:
            found = sums.named(sums.of_triplets(informative, m, n))
        if self.denoise:
            graph = graph_of(informative, hashes) if block.preferred is block.others else None
            found |= denoised_sums(found, informative, graph)
        self._add(found, len(block.triplets), len(informative.triplets))
        return len(block.triplets)

    def _learn_in_chunks(self, block: Block, advance: Callable[[int], None], first: int = 0) -> None:
        # A graph needs all triplets in one batch.
        size = len(block.triplets) if self.denoise else _BATCH
        for batch in chunks(len(block.triplets), size):
            advance(self._learn(sums.part(block, batch)))

    def _decayed(self, rate: float) -> dict[str, NDArray[Any]]:
        return {name: array if name == "counts" else (1 - rate) * array for name, array in self._state.items()}

    def _to_file(self) -> dict[str, NDArray[Any]]:
        self._check_params()
        # Without sums that only earlier parameters needed.
        return {name: self._state[name] for name in self._shapes(1, 1)}

    def _check_state(self, state: dict[str, NDArray[Any]], m: int, n: int) -> None:
        super()._check_state(state, m, n)
        for name, array in state.items():
            if name.endswith("weight") and array[0] < 0:
                raise ValueError(f"{name} of the model is {array[0]:g}, expected a sum of weights of at least 0")
        for name, array in state.items():
            prefix = "" if "denoised" in name else name[:-2]  # denoised sums are of the size of all weights
            weight = float(state[f"{prefix}weight"][0]) if f"{prefix}weight" in state else 0.0
            if name.endswith("qq"):
                check_squares(array, name, weight)
            elif name.endswith("pp"):
                check_symmetric_sum(array, name, weight)
            elif name.endswith("qp"):
                check_sum(array, name, weight)

    @property
    def _precision(self) -> np.dtype[Any]:
        return FLOAT64

    @property
    def _weights(self) -> DenseCells:
        return DenseCells(W=self._solution.W)

    def _grown(self, m: int, n: int) -> dict[str, NDArray[Any]]:
        state = self._first_state(m, n)
        for name, array in state.items():  # parameters of before may have asked for more than is wanted now
            known = self._state[name]
            array[tuple(map(slice, known.shape))] = known
        return state

    def _from_file(self, state: dict[str, NDArray[Any]], n: int) -> dict[str, NDArray[Any]]:
        return state

    def _spread(self, Q: Matrix) -> Spread:
        return FactoredSpread(Q, self._solution.Lambda, self._solution.Omega)

    def _cell_variances(self, i: NDArray[Any], j: NDArray[Any]) -> NDArray[Any]:
        return np.outer(np.diagonal(self._solution.Lambda)[i], np.diagonal(self._solution.Omega)[j])

    def _variances(self, queries: RowView, objects: RowView, numbers: NDArray[np.int64]) -> Array:
        of_query, of_object = np.empty(len(numbers)), np.empty(len(numbers))
        quadratic_forms(queries, np.ascontiguousarray(numbers[:, :1]), self._solution.Lambda, of_query)
        quadratic_forms(objects, np.ascontiguousarray(numbers[:, 1:]), self._solution.Omega, of_object)
        return np.asarray(np.maximum(of_query, 0) * np.maximum(of_object, 0))

    # -- inside -------------------------------------------------------------------------------------------

    @property
    def _unit_of_margins(self) -> float:
        # The scale of W depends on alpha.
        return self._solution.typical_margin if self._is_split else 1.0

    @property
    def _learned_so_far(self) -> float:
        return float(self._state["weight"][0])

    def _copied_state(self) -> dict[str, NDArray[Any]]:
        return self._state  # sums are replaced, never changed in place

    def _add(self, found: dict[str, Array], n_triplets: int, n_updates: int) -> None:
        """Add to the sums: all of them or none, also if interrupted."""
        for name, more in found.items():
            more += self._state[name]
            if not np.isfinite(more).all():
                raise ValueError(
                    "the sums over the triplets are too large for float64; scale rows or sample_weight down"
                )
        after = {**found, "counts": _added(self._state["counts"], [n_triplets, n_updates])}
        # It would keep the previous sums alive.
        self.__dict__.pop("_ready", None)
        # Reading stores the solution in this list, without setting attributes of the model.
        self._solved: list[Solution] = []
        self._state = after

    @classmethod
    def _merge(cls, models: Sequence[Self]) -> Self:
        """Return the sum of fitted models."""
        merged = models[0].copy()
        merged.__dict__.pop("_calibration", None)
        for model in models[1:]:
            with model._lock.reading:
                state = {name: model._state[name].copy() for name in merged._shapes(1, 1)}
            merged._add(state, *state.pop("counts").tolist())
        return merged

    @property
    def _solution(self) -> Solution:
        """The solution for the sums, kept until they or the parameters change."""
        check_is_fitted(self)
        self._check_params()
        alpha = self._check_alpha()
        if alpha is not None and self.alpha_schedule == "inverse":
            alpha = alpha / max(self.sum_of_weights_, 1.0)
        settings = alpha, self.denoise
        # Local references: another thread may read at the same time.
        solved: list[Solution] = self.__dict__.get("_solved", [])
        latest, state = solved[0] if solved else None, self._state
        if latest is not None and latest.state is state and latest.settings == settings:
            return latest
        found = Solution(state, *settings)
        if "_solved" in self.__dict__:
            self._solved[:] = [found]
        else:  # loaded or copied
            self._solved = [found]
        return found

    def __getstate__(self) -> dict[str, Any]:
        # A copy solves again on first use.
        return {name: value for name, value in super().__getstate__().items() if name != "_solved"}


def _added(counts: NDArray[np.int64], more: Sequence[int]) -> NDArray[np.int64]:
    """Add to counts, up to the largest one: labels can allow more triplets than that."""
    return np.array([min(int(count) + n, LARGEST_COUNT) for count, n in zip(counts, more, strict=True)], dtype=np.int64)


def _number_of_triplets(counts: NDArray[np.int64]) -> int:
    """Return the number of distinct triplets that classes of these sizes allow."""
    n = int(counts.sum())
    return sum(int(c) * (int(c) - 1) * (n - int(c)) for c in counts)

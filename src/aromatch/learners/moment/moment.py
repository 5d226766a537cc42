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
(`sums`).

The distribution around W is the one that the same Newton step has in Laplace's approximation with noise of variance 1:
covariance ``Omega (x) Lambda`` with ``Lambda = inv(E[q q'] + lam I) / N`` and ``Omega = inv(E[p p'] + lam I)``, N the
sum of the weights.

A direction in which neither rows nor lam leave anything, such as one that no row has when lam is 0, has no influence:
inverses are pseudo-inverses there.

With ``lam="auto"`` or `denoise`, one row in eight is held out to choose by (`solution`): what is learned
from triplets without such a row is tried on triplets with such a query, since queries to come will be new as well. W is
then made from all triplets. Which rows are held out depends on their values alone, so that order and cuts do not matter
here either. Labels are tried on triplets of held-out rows only.

`denoise` looks at all judgements of a call as a graph (`triplet_graph`), which sums cannot: there it matters
how triplets are cut.

Differences of objects are summed as differences of sums. A large constant in their features costs accuracy, as its
square against the square of the rest: centre such features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from ..._utils import checks
from ..._utils.rows import Matrix, MatrixLike
from ...kernels.bilinear import forms, quadratic_forms
from ...kernels.moments import add_sums
from ...kernels.rows import RowView
from ...triplets import LabelSampler
from ..inputs import FLOAT64, Block, product
from ..spread import FactoredSpread
from ..triplet import TripletLearner
from . import sums
from . import triplet_graph as judgement_graph
from .solution import Solution
from .triplet_graph import Denoised, Graph

Array = NDArray[np.float64]

# Triplets whose sums are computed before they are added to the model.
_AT_ONCE = 2**18
# What `denoise` keeps, and what stands in for it where nothing stands out.
_DENOISED = {
    "denoised_qp": "qp",
    "known_qp": "learn_qp",
    "new_qp": "held_qp",
    "new_pp": "held_pp",
}


class MomentAROMA(TripletLearner):
    """Similarity ``q'Wp`` in closed form from sums over the triplets: quick, exact to merge, free of their order.

    The choice when triplets come in batches, or when labels are there: `fit` takes in all triplets that labels allow
    without drawing one. To read W after every single judgement takes a solve of both sides each time; the online
    learners are better at that.

    Parameters
    ----------
    lam : float or "auto", default 1e-3
        Added to the mean squares of features before they are inverted. Rows of unit norm in d features have mean
        squares around 1 / d. The more triplets, and the less noise, the smaller it may be; "auto" chooses it on
        queries that were held out.
    r : float, optional
        Takes the place of lam, which is then r over the sum of the weights, as if r of all judgements said nothing. The
        best lam falls about so, and one r serves all along a stream.
    denoise : bool, default False
        Look for what judgements of the same rows say together: rows that are judged alike are taken to be alike. It
        needs triplets that name the same rows again and again, a few for each row, in one call. Used where it helps for
        queries that were held out.
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
    lam_ : float
        The lam in use.
    denoised_ : float
        Share of what `denoise` found in W: 0, 0.5 or 1.
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

    # Of the last triplets, for a refinement that may learn from the same ones; not in files.
    _graph: Graph | None = None

    def __init__(
        self, lam: float | str = 1e-3, *, r: float | None = None, denoise: bool = False, verbose: bool = False
    ) -> None:
        self.lam = lam
        self.r = r
        self.denoise = denoise
        self.verbose = verbose

    # -- learning -----------------------------------------------------------------------------------------

    def fit(self, X: MatrixLike, y: ArrayLike) -> Self:
        """Start anew and take in all triplets that the labels allow.

        A triplet is any row, any other row with the same label and any row with another. All queries count the same,
        rows of zeros and rows that are the same too, whose triplets `fit_triplets` leaves out.
        """
        with self._unchanged_on_error():
            self.__dict__.pop("_state", None)
            self.__dict__.pop("_graph", None)
            self._check_common_params()
            rows, y = self._read_labelled(X, y)
            self._check_square(rows.largest_square)
            LabelSampler(y)  # refuses labels that allow no triplet
            classes, counts = np.unique(y, return_inverse=True, return_counts=True)[1:]
            n_triplets = _number_of_triplets(counts)
            width = rows.view.shape[1]
            self._begin(width, width)
            found = _named(sums.of_labels(rows.view, classes))
            if self._holds_out:
                found |= _learn_and_held_rows(rows.view, classes)
            if self.denoise:  # labels leave nothing to chance
                found |= {name: found[plain].copy() for name, plain in _DENOISED.items()}
            self._take_in(found, n_triplets, n_triplets)
        return self

    def settled(self) -> MomentAROMA:
        """Give a model with the same W, to the bit, for which what was left to choose is given.

        Its `lam` is the number that was chosen, and `denoise` is in its sums. It keeps three matrices where this one
        may keep thirteen, and need not choose anew when it is loaded or has learned more.

        Examples
        --------
        >>> import numpy as np
        >>> from aromatch import MomentAROMA
        >>> model = MomentAROMA("auto").fit(np.array([[1.0, 0.1], [0.9, 0.0], [0.1, 1.0], [0.0, 0.8]]), list("aabb"))
        >>> settled = model.settled()
        >>> bool(settled.lam == model.lam_), bool((settled.W_ == model.W_).all())
        (True, True)
        """
        solution = self._solution
        lam = self.lam if self.r is not None else float(solution.choice.lam)
        given = MomentAROMA(lam, r=self.r, verbose=self.verbose)
        for name in ("n_features_in_", "n_object_features_in_", "feature_names_in_", "_fingerprints"):
            if name in self.__dict__:
                setattr(given, name, self.__dict__[name])
        sums_and_counts = {name: self._state[name] for name in given._shapes(1, 1)}
        given._state = {name: array.copy() for name, array in {**sums_and_counts, "qp": solution.qp}.items()}
        return given

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
    def lam_(self) -> float:
        """The lam in use, as given or chosen."""
        return self._solution.choice.lam

    @property
    def denoised_(self) -> float:
        """Share of what `denoise` found in W; 0 without it."""
        return self._solution.choice.share

    @property
    def weight_(self) -> float:
        """Sum of the weights of all triplets."""
        check_is_fitted(self)
        return float(self._state["weight"][0])

    # -- hooks of the base classes ------------------------------------------------------------------------

    def _shapes(self, m: int, n: int) -> dict[str, tuple[int, ...]]:
        parts = ["", "learn_", "held_"] if self._holds_out else [""]
        of_sums = {"qq": (m, m), "qp": (m, n), "pp": (n, n), "weight": (1,)}
        shapes: dict[str, tuple[int, ...]] = {part + name: of_sums[name] for part in parts for name in of_sums}
        if self.denoise:
            shapes |= {name: shapes[plain] for name, plain in _DENOISED.items()}
        return shapes | {"counts": (2,)}

    def _check_params(self) -> float:
        self._check_lam()
        if self.r is not None:
            checks.check_number(self.r, "r", above=0)
        checks.check_flag(self.denoise, "denoise")
        if hasattr(self, "_state") and not {*self._shapes(1, 1)} <= {*self._state}:
            raise ValueError(
                f"lam={self.lam!r} with denoise={self.denoise} needs triplets held out from the first one on, "
                "and this model has held out none; fit it anew"
            )
        return 1.0

    def _check_lam(self) -> float | None:
        """Give lam when it is a number, None when it is to be chosen."""
        if isinstance(self.lam, str):
            checks.check_choice(self.lam, "lam", ("auto",))
            return None
        return checks.check_number(self.lam, "lam", at_least=0)

    @property
    def _holds_out(self) -> bool:
        return self.denoise or (isinstance(self.lam, str) and self.r is None)

    def _first_state(self, m: int, n: int) -> dict[str, NDArray[Any]]:
        self._check_fits(m, n, FLOAT64)
        return {name: np.zeros(shape, dtype=_precision_of(name)) for name, shape in self._shapes(m, n).items()}

    def _learn(self, block: Block) -> int:
        m, n = self.n_features_in_, self.n_object_features_in_
        hashes = sums.hashes_of(block)
        changes = sums.changing(block, hashes)
        if block.record is not None:
            block.record[0] = *self._solution.judge(*_single(block, m, n)), changes[0]
        rest = _part(block, changes)
        if not self._holds_out:
            found = _named(sums.of_triplets(rest, m, n))
        else:
            is_new_query, *are_new = sums.are_held_out(hashes[changes]).T
            knows_objects = ~(are_new[0] | are_new[1])
            found = {}
            for name, is_there in (("learn_", ~is_new_query), ("held_", is_new_query)):
                found |= _named(sums.of_triplets(_part(rest, knows_objects & is_there), m, n), name)
            others = _named(sums.of_triplets(_part(rest, ~knows_objects), m, n))
            found |= {name: found[f"learn_{name}"] + found[f"held_{name}"] + more for name, more in others.items()}
            if self.denoise:
                found |= {name: found[plain].copy() for name, plain in _DENOISED.items()}
            if self.denoise and block.preferred is block.others:  # not a single judgement
                graph = judgement_graph.graph_of(rest)
                self._graph = graph.to_keep()
                if graph.tells_something:
                    told = Denoised(rest, graph)
                    found |= {"denoised_qp": told.qp(), "known_qp": told.known_qp()}
                    found |= {"new_qp": told.new_qp(), "new_pp": told.new_pp()}
        self._take_in(found, len(block.triplets), len(rest.triplets))
        return len(block.triplets)

    def _learn_in_pieces(self, block: Block, advance: Callable[[int], None], kept: str, first: int = 0) -> None:
        # Large pieces: the sums of a piece cost as much as adding up all features of its rows, however few triplets.
        # A graph is one piece: what it shows, it shows as a whole.
        at_once = max(1, len(block.triplets)) if self.denoise else _AT_ONCE
        for start in range(0, len(block.triplets), at_once):
            advance(self._learn(_part(block, slice(start, start + at_once))))

    def _widened(self, rate: float) -> dict[str, NDArray[Any]]:
        return {name: array if name == "counts" else (1 - rate) * array for name, array in self._state.items()}

    def _to_file(self) -> dict[str, NDArray[Any]]:
        # Without what only parameters of before asked for.
        return {name: self._state[name] for name in self._shapes(1, 1)}

    def _check_state(self, state: dict[str, NDArray[Any]], m: int, n: int) -> None:
        super()._check_state(state, m, n)
        self._check_common_params()
        for name, array in state.items():
            if array.dtype != _precision_of(name):
                raise ValueError(f"the model's {name} is {array.dtype}, expected {_precision_of(name)}")
            if not np.isfinite(array).all():
                raise ValueError(f"the model's {name} contains NaN or infinity")
        if any((array < 0).any() for name, array in state.items() if name.endswith(("counts", "weight"))):
            raise ValueError("the model's counts or its weight are negative")
        if any((np.diagonal(array) < 0).any() for name, array in state.items() if name.endswith(("qq", "pp"))):
            raise ValueError("the model's sums of squares are negative")

    @property
    def _precision(self) -> np.dtype[Any]:
        return FLOAT64

    def _map_queries(self, Q: Matrix) -> Array:
        return product(Q, self._solution.W)

    def _forms(self, queries: RowView, objects: RowView, numbers: NDArray[np.int64]) -> Array:
        out = np.empty(len(numbers))
        forms(queries, objects, numbers, self._solution.W, False, False, out)
        return out

    def _spread(self, Q: Matrix) -> FactoredSpread:
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
        # Another lam makes another scale of W.
        return self._solution.typical_margin if self._holds_out else 1.0

    @property
    def _learned_so_far(self) -> float:
        return float(self._state["weight"][0])

    @property
    def _W_of_known_rows(self) -> Array | None:
        return self._solution.W_of_known

    def _take_in(self, found: dict[str, Array], n_triplets: int, n_updates: int) -> None:
        """Add to the sums: all of them or none, whenever an interrupt comes."""
        for name, more in found.items():
            more += self._state[name]
            if not np.isfinite(more).all():
                raise ValueError(
                    "the sums over the triplets are too large for float64; scale rows or sample_weight down"
                )
        after = {**found, "counts": _added(self._state["counts"], [n_triplets, n_updates])}
        # It would keep the sums of before alive.
        self.__dict__.pop("_ready", None)
        # Reading puts the solution in here, and leaves the attributes of the model as they are.
        self._known: list[Solution] = []
        self._state = after

    @classmethod
    def _merge(cls, models: Sequence[Self]) -> Self:
        """Give a model that has seen what all of these have."""
        merged = models[0].copy()
        merged.__dict__.pop("_calibration", None)
        for model in models[1:]:
            state = {name: model._state[name].copy() for name in merged._shapes(1, 1)}
            merged._take_in(state, *state.pop("counts").tolist())
        return merged

    @property
    def _solution(self) -> Solution:
        """What follows from the sums; it is kept until they or the parameters change."""
        check_is_fitted(self)
        self._check_params()
        lam = self._check_lam() if self.r is None else self.r / max(self.weight_, 1.0)
        asked = lam, self.denoise
        # Held here too: another reader may look at the same time.
        known: list[Solution] = self.__dict__.get("_known", [])
        latest, state = known[0] if known else None, self._state
        if latest is not None and latest.state is state and latest.asked == asked:
            return latest
        found = Solution(state, *asked)
        if "_known" in self.__dict__:
            self._known[:] = [found]
        else:  # it comes from a file, or is a copy
            self._known = [found]
        return found

    def __getstate__(self) -> dict[str, Any]:
        # A copy solves for itself, when it is asked to.
        return {name: value for name, value in super().__getstate__().items() if name not in ("_known", "_graph")}


def _named(found: sums.Sums, part: str = "") -> dict[str, Array]:
    """Give sums by the names that they have in a model."""
    return {part + name: np.atleast_1d(value) for name, value in found._asdict().items()}


def _part(block: Block, which: Any) -> Block:
    """Give a part of the triplets of a block."""
    weights = None if block.weights is None else block.weights[which]
    return block._replace(triplets=block.triplets[which], weights=weights)


def _learn_and_held_rows(rows: RowView, classes: NDArray[np.int64]) -> dict[str, Array]:
    """Sum over the triplets inside each of two parts of labelled rows."""
    numbers = np.arange(len(classes))
    is_held = sums.is_held_out(rows, numbers)
    found: dict[str, Array] = {}
    for part, which in (("learn_", ~is_held), ("held_", is_held)):
        found |= _named(sums.of_labels(rows, classes, numbers[which]), part)
    return found


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

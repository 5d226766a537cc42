"""TripletLearner: a bilinear score ``q'Wp`` learned from triplets, in batches or one at a time."""

from __future__ import annotations

import copy
from collections.abc import Callable
from math import sqrt
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._utils import checks
from .._utils.checks import check_dtype
from .._utils.chunks import timed_chunks
from .._utils.indices import check_pairs, check_triplets, read_both
from .._utils.progress import progress_bar
from .._utils.rows import Matrix, MatrixLike, read_all, read_single_row
from .._utils.sharing import drafts, reads
from ..exceptions import NumericalError
from ..kernels.rows import RowView
from ..triplets import stream_from_labels
from .base import Similarity
from .calibration import Calibration
from .contributions import Contributions, cells_of, nonzero_values
from .inputs import (
    FLOAT64,
    LARGEST,
    LARGEST_ROW,
    Block,
    Limits,
    check_finite,
    check_scale,
    check_width,
    read_triplets,
)
from .invariants import LARGEST_COUNT_ONLINE, check_counts, check_covariance
from .online import pending
from .online.cells import Cells, DenseCells, TouchedCells, check_cells
from .online.definite import NEVER, Schedule, is_semidefinite, schedule
from .online.initial import initial_scale
from .readiness import Readiness

if TYPE_CHECKING:
    from .embedding.triplet_embedding import TripletEmbedding

_TRIPLET_ZERO = np.zeros((1, 3), dtype=np.int64)
_LARGE_STATE = 2**26  # bytes
_INDEFINITE = "rounding would leave a covariance that is not positive semi-definite"


class Update(NamedTuple):
    """Result of learning one triplet."""

    margin: float
    """Score of the preferred object minus score of the other, before the update; a mistake if not positive."""
    std: float | None
    """Standard deviation of the margin before the update; None for learners without a distribution."""
    loss: float
    """Hinge loss ``max(0, 1 - margin)``."""
    updated: bool
    """Whether the model changed."""


class TripletLearner(Similarity):
    """Base class of learners of a bilinear score ``q'Wp`` from triplets.

    A learner defines the first four hooks. The others have defaults for a state that is a `DenseCells` or a
    `TouchedCells`, or add methods by their presence.

    ===================== ============================ ==============================================================
    hook                  default                      override
    ===================== ============================ ==============================================================
    `_check_params`       none                         always: check the parameters, return the noise
    `_first_state`        none                         always: the state before the first triplet
    `_learn`              none                         always: learn a block of triplets
    `_shapes`             no arrays                    always: names and shapes of the arrays, in the kernel's order
    `_shapes_in_file`     `_shapes`                    if the shapes depend on the data, as those of touched cells do
    `_stores_touched`     False                        for a parameter `cells`
    `_initial`            parameter `init`, or "zero"  if `init` has a value that depends on the data
    `_variances`          absent                       adds `pair_std`, `margin_std` and the std of `learn_one`
    `_spread`             absent                       adds `similarity_std` and `sample_transform`
    `_cell_variances`     absent                       adds the stds of `explain_pair`
    `_mean_variance`      absent                       adds the mean variance of a cell to the report of `info`
    `_decayed`            absent                       adds `decay`: return the state with less confidence
    `_failure`, `_remedy` covariance without variance  if the kernel stops for another reason
    `_largest_scale`      range of the precision       if rounding sets a lower limit to ``|q|^2 |p|^2 / noise``
    `_strength`           "sample_weight / r"          if the noise is not a parameter r
    `_covariances`        none                         names of covariance matrices that rounding can leave indefinite
    `_covariance`         as stored                    if covariance matrices have pending terms
    ===================== ============================ ==============================================================

    `_stores_touched`, `_initial`, `_weights`, `_folded`, `_grown`, `_to_file` and `_from_file` assume cells. A learner
    with another state overrides `_weights`, `_precision` and the last three, as `MomentAROMA` does.

    The inherited `fit` needs the parameters `n_triplets` and `random_state`. A parameter `dtype` is optional.
    """

    verbose: bool
    n_features_in_: int
    n_object_features_in_: int

    # Parameters that not every learner has.
    n_triplets: int
    cells: str
    random_state: Any

    _largest_scale: ClassVar[dict[np.dtype[Any], float]] = LARGEST
    """Largest ``|q|^2 |p|^2 / noise`` that the updates of the learner can represent."""

    _largest_row: ClassVar[dict[np.dtype[Any], float]] = LARGEST_ROW
    """Largest ``|x|^2 / noise`` of a row at which no evidence vanishes because the square of another row does."""

    _largest_count: ClassVar[int] = LARGEST_COUNT_ONLINE
    """Largest number of triplets in a file."""

    _strength: ClassVar[str] = "sample_weight / r"
    """The formula of weight over noise in error messages."""

    _failure: ClassVar[str] = "rounding has used up the covariance, no variance is left to learn with"
    _remedy: ClassVar[str] = "Use a larger r, rows of unit norm or float64"
    """Why a kernel stops before a triplet, and what a user can do about it."""

    _covariances: ClassVar[tuple[str, ...]] = ()
    """Covariance matrices of the state that rounding can leave indefinite."""

    # -- hooks --------------------------------------------------------------------------------------------

    def _check_params(self) -> float:
        """Check the parameters; return the noise.

        The noise is the variance r of a margin around ``q'Wp``. A triplet of weight w is learned with ``noise / w``;
        the scale of its update is ``|q|^2 |p|^2 w / noise``. It is ``1 / C`` for a learner with a step size C, and 1
        for a closed form.
        """
        raise NotImplementedError

    def _first_state(self, m: int, n: int, init: Any) -> dict[str, NDArray[Any]]:
        """Return the state before the first triplet, for m query and n object features."""
        raise NotImplementedError

    def _learn(self, block: Block) -> int:
        """Learn the triplets of a block in order and in place; return the number learned.

        The number is less than that of the block if triplet number so many cannot be learned; the state is that before
        this triplet. Every implementation satisfies the following, which the contract tests check:

        - The state has an array `counts` of int64: triplets seen, updates, mistakes and, with pending terms, their
          number. A closed form has the first two.
        - A margin of at most 0 before the update is a mistake, so a tie is one.
        - A triplet whose query or object difference is zero is counted and does not update.
        - A triplet of weight 0 is counted and changes nothing else. Weights of 1 are bit-identical to no weights.
        - If `block.record` is not None, it receives margin, variance and update of every triplet.
        - Results do not depend on how triplets are divided into blocks: bit-identical online, up to rounding for sums.
        """
        raise NotImplementedError

    def _stores_touched(self, m: int, n: int) -> bool:
        """Return whether the parameters ask for touched cells."""
        return False

    def _initial(self) -> Any:
        """Return the initial W in the form of the parameter `init`."""
        return getattr(self, "init", "zero")

    @property
    def _weights(self) -> Cells:
        """W in the form that scores use."""
        state: Any = self._state
        return cast(Cells, state)

    def _covariance(self, state: dict[str, NDArray[Any]], name: str) -> NDArray[Any]:
        """Return one of the `_covariances` of a state, pending terms included."""
        return state[name]

    # -- learning -----------------------------------------------------------------------------------------

    @drafts
    def fit(self, X: MatrixLike, y: ArrayLike) -> Self:
        """Sample `n_triplets` triplets from the labels and learn them, starting from `init`.

        A triplet is a random row, a random other row with the same label and a random row with another label.
        """
        noise = self._check_common_params()
        _, (view, _, square), y = self._read_labelled(X, y, [np.float64, np.float32])
        stream = stream_from_labels(y, int(self.n_triplets), self.random_state)
        self.__dict__.pop("_state", None)
        self._begin(view.shape[1], view.shape[1])
        limits = self._limits()
        with self._bar(int(self.n_triplets)) as advance:
            for triplets in stream:
                block, seen = Block(view, view, view, triplets, None), self.n_triplets_seen_
                scale = check_scale(block, square, square, noise, limits)
                self._learn_in_chunks(block, advance, seen)
                self._check_covariances(seen, scale)
        return self

    @drafts
    def fit_triplets(
        self,
        triplets: ArrayLike,
        Q: MatrixLike,
        P: MatrixLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Start from `init` and learn the triplets in order.

        Parameters
        ----------
        triplets : integer array of shape (N, 3)
            Row of the query in Q, row of the preferred object in P, row of the other object in P.
        Q : array or CSR matrix of shape (n_queries, m)
        P : array or CSR matrix of shape (n_objects, n), default Q
        sample_weight : array of shape (N,), optional
            Weight of each triplet. For the weight w an online learner uses ``r / w`` in place of r, and `MomentAROMA`
            adds the triplet w times. A triplet of weight 0 is counted, but changes nothing.
        """
        return self._fit_triplets(triplets, Q, P, sample_weight, starts=True)

    @drafts
    def partial_fit_triplets(
        self,
        triplets: ArrayLike,
        Q: MatrixLike,
        P: MatrixLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Continue learning from the current state; a new model starts from `init`.

        The arguments are those of `fit_triplets`. Only rows that the triplets name are read. All triplets are learned
        or, after an error or an interrupt, none: an online learner learns them on a copy of its state, which takes
        about as much time and memory as a few updates with dense rows. `learn_one` copies only for occasional checks of
        a covariance.
        """
        return self._fit_triplets(triplets, Q, P, sample_weight, starts=False)

    def _fit_triplets(self, triplets: Any, Q: Any, P: Any, sample_weight: Any, *, starts: bool) -> Self:
        if starts:
            for name in ("_state", "feature_names_in_", "object_feature_names_in_"):
                self.__dict__.pop(name, None)
        queries, objects = self._check_matrices(Q, P)
        if not hasattr(self, "_state"):
            self._record_names(Q, P)
        noise, limits = self._check_common_params(), self._limits()
        self._check_unchanged(queries, objects)
        read = read_triplets(triplets, queries, objects, sample_weight)
        scale = check_scale(read.block, read.query_square, read.object_square, noise, limits)
        if hasattr(self, "_state"):
            self._state = self._copied_state()
            self.__dict__.pop("_ready", None)  # it would keep the previous state in memory
        else:
            self._begin(queries.shape[1], objects.shape[1], one_space=objects is queries)
        seen = self._state["counts"].item(0)
        with self._bar(len(read.numbers)) as advance:
            self._learn_in_chunks(read.block, advance)
        self._check_covariances(seen, scale)
        return self

    def learn_one(self, q: MatrixLike, p_pos: MatrixLike, p_neg: MatrixLike, *, sample_weight: float = 1.0) -> Update:
        """Learn one triplet: for the query q, p_pos is better than p_neg.

        Each is a vector, or a matrix (dense or CSR) with one row. The prediction is recorded for `preference_proba`.

        Returns
        -------
        Update
            Margin and its standard deviation before the update, loss, and whether the model changed.
        """
        with self._lock.changing:
            # The first triplet makes a state, later ones change it in place.
            learn = self._learn_one if hasattr(self, "_state") else self._learn_first
            return learn(q, p_pos, p_neg, sample_weight)

    def _learn_one(self, q: MatrixLike, p_pos: MatrixLike, p_neg: MatrixLike, sample_weight: float) -> Update:
        ready = Readiness.of(self)
        noise = self._check_common_params() if ready is None else ready.noise
        query, query_square = read_single_row(q, "q")
        good, good_square = read_single_row(p_pos, "p_pos")
        bad, bad_square = read_single_row(p_neg, "p_neg")
        weight = checks.check_number(sample_weight, "sample_weight", at_least=0)
        m, n = query.shape[1], good.shape[1]
        if bad.shape[1] != n:
            raise ValueError(f"p_pos and p_neg must have the same width, got {n} and {bad.shape[1]}")
        if ready is None or m != ready.m or n != ready.n:
            self._check_unchanged(query, good, "q", "p_pos")
            self._begin(m, n, one_space=m == n)
            ready = self._ready = Readiness.new(self, noise, self._limits())
        weights, record = None if weight == 1 else np.array([weight]), np.zeros((1, 3))
        block = Block(query, good, bad, _TRIPLET_ZERO, weights, record)
        scale = check_scale(block, query_square, max(good_square, bad_square), noise, ready.limits)
        unit, learned = self._unit_of_margins, self._learned_so_far  # of the model that predicts
        calibration: Calibration = self.__dict__.get("_calibration") or Calibration()
        state, seen, n_predictions = self._state, self._state["counts"].item(0), calibration.n_predictions
        before = self._copied_state() if ready.schedule.is_due(seen, seen + 1, scale) else None
        try:
            if self._learn(block) == 0:
                raise NumericalError(f"triplet 0: {self._failure}; the model is unchanged. {self._remedy}")
            if before is not None and not self._has_semidefinite_covariances():
                self._state = state = before
                raise NumericalError(f"triplet 0: {_INDEFINITE}; the model is unchanged. {self._remedy}")
            if weight > 0:
                calibration.add_one(record.item(0) / unit, learned)
                self._calibration = calibration
        except BaseException:
            if self._state["counts"].item(0) == seen:
                self._state = state
            elif weight > 0:  # interrupted after the update: the prediction is recorded with it
                if calibration.n_predictions == n_predictions:
                    calibration.add_one(record.item(0) / unit, learned)
                self._calibration = calibration
            raise
        margin, variance, updated = record[0].tolist()
        std = sqrt(variance) if ready.has_std else None
        return Update(margin, std, max(0.0, 1.0 - margin), bool(updated))

    _learn_first = drafts(_learn_one)

    @drafts
    def grow(self, m: int, n: int | None = None) -> Self:
        """Add query and object features after the existing ones, and keep what was learned.

        New features have the state that they have before the first triplet. Names of features and fingerprints are
        dropped.

        Parameters
        ----------
        m : int
            Number of query features, at least as many as before.
        n : int, optional
            Number of object features; default m if queries and objects have as many features so far.

        Examples
        --------
        >>> import numpy as np
        >>> import aromatch as am
        >>> model = am.DiagonalAROMA(r=0.1).fit_triplets([[0, 1, 2]], np.eye(3))
        >>> model.grow(4).similarity(np.eye(4)[:1], np.eye(4)).round(2)
        array([[ 0.  ,  0.48, -0.48,  0.  ]])
        """
        check_is_fitted(self)
        before = self.n_features_in_, self.n_object_features_in_
        m = checks.check_integer(m, "m", at_least=before[0])
        if n is None:
            if before[0] != before[1]:
                raise ValueError(f"n must be given, since queries have {before[0]} features and objects {before[1]}")
            n = m
        n = checks.check_integer(n, "n", at_least=before[1])
        if (m, n) == before:
            return self
        self._check_common_params()
        self._state = self._grown(m, n)
        self.n_features_in_ = m
        self.n_object_features_in_ = n
        for name in ("feature_names_in_", "object_feature_names_in_", "_fingerprints", "_ready"):
            self.__dict__.pop(name, None)
        return self

    def _grown(self, m: int, n: int) -> dict[str, NDArray[Any]]:
        """Return the state for more features."""
        self._check_dtype_unchanged()
        folded: Any = self._folded()
        if folded.is_touched != self._stores_touched(m, n):
            raise ValueError(
                f"cells={self.cells!r} stores all cells so far, and {m} x {n} features are too many for it"
            )
        init = self._initial()
        if initial_scale(init, *([self.n_features_in_] * 2)) is None:
            init = "zero"  # an initial matrix has no values for new features
        grown: dict[str, NDArray[Any]] = folded.grown(self._first_state(m, n, init))
        return grown

    def _folded(self) -> Cells:
        """Return the state without pending terms."""
        return self._weights.folded()

    @available_if(lambda self: hasattr(self, "_decayed"))
    @drafts
    def decay(self, rate: float) -> Self:
        """Reduce the confidence in what was learned, so that new triplets count more: for preferences that drift.

        W does not change. The inverse of its covariance becomes ``(1 - rate)`` times itself plus `rate` times the
        identity; `FactoredAROMA` does so for both of its covariances, each by ``1 - sqrt(1 - rate)``. `MomentAROMA`
        multiplies the weights of all triplets so far by ``1 - rate``.

        Parameters
        ----------
        rate : float
            From 0 (no change) to 1 (the initial covariance).

        Examples
        --------
        >>> import numpy as np
        >>> import aromatch as am
        >>> model = am.DiagonalAROMA(r=0.1).fit_triplets([[0, 1, 2]], np.eye(3))
        >>> [round(float(model.decay(rate).pair_std(np.eye(3), None, [[0, 1]])[0]), 2) for rate in (0, 0.5, 1)]
        [0.72, 0.83, 1.0]
        """
        check_is_fitted(self)
        share = checks.check_number(rate, "rate", at_least=0)
        if share > 1:
            raise ValueError(f"rate must be at most 1, got {rate!r}")
        if share == 0:
            return self
        self._check_common_params()
        self._state = self._decayed(share)
        self.__dict__.pop("_ready", None)
        return self

    # -- attributes and scores -----------------------------------------------------------------------------

    @property
    @reads
    def W_(self) -> Any:
        """The matrix of the score ``q'Wp``, of shape (m, n): a copy.

        An array, or a CSR array if only touched cells are stored.
        """
        check_is_fitted(self)
        return self._weights.array("W")

    @property
    @reads
    def n_triplets_seen_(self) -> int:
        """Number of triplets learned so far."""
        return int(self._counts[0])

    @property
    @reads
    def n_updates_(self) -> int:
        """Number of triplets that changed the model."""
        return int(self._counts[1])

    @property
    @reads
    def n_mistakes_(self) -> int:
        """Number of triplets with a wrong or tied order at the time when they were learned."""
        if len(self._counts) < 3:
            raise AttributeError(f"{type(self).__name__} does not count mistakes")
        return int(self._counts[2])

    @reads
    def transform(self, Q: MatrixLike) -> NDArray[Any]:
        """Return ``Q @ W_``, the queries in the space of the objects.

        ``transform(Q) @ P.T`` equals ``similarity(Q, P)``, so an index of inner products over the unchanged objects
        serves the learned score. The map is one-sided: distances between rows of ``transform(Q)`` have no
        meaning. For neighbours of rows among themselves, as in ``KNeighborsClassifier``, use
        ``project().transform``, which maps both sides alike.
        """
        return np.asarray(super().transform(Q))

    @reads
    def project(self, n_components: int | None = None, symmetric: bool = True) -> TripletEmbedding:
        """Return an embedding: maps of both sides to vectors whose inner products approximate the scores.

        Parameters
        ----------
        n_components : int, optional
            Dimensions of the embedding, at most. A low number often ranks better than all.
        symmetric : bool, default True
            Map queries and objects by the same matrix: the positive semi-definite part of W, which needs as many query
            as object features. If False, the best pair of maps of that rank for any numbers of features.

        Examples
        --------
        >>> import numpy as np
        >>> import aromatch as am
        >>> X = np.array([[1.0, 0.1], [0.9, 0.0], [0.1, 1.0], [0.0, 0.8]])
        >>> embedding = am.MomentAROMA().fit(X, ["a", "a", "b", "b"]).project(1)
        >>> (embedding.transform(X) * np.sign(embedding.components_[0, 0])).round(1).ravel()
        array([ 0.8,  0.8, -0.6, -0.6])
        """
        from .embedding.triplet_embedding import project  # it imports learners

        return project(self, n_components, symmetric)

    @available_if(lambda self: hasattr(self, "_variances"))
    @reads
    def pair_std(self, Q: MatrixLike, P: MatrixLike | None = None, pairs: ArrayLike | None = None) -> NDArray[Any]:
        """Return the standard deviation of each `pair_score` under the learned distribution."""
        Q, P = self._check_both(Q, P)
        return _roots(self._over_pairs(self._variances, Q, P, check_pairs(pairs, Q, P)))

    @available_if(lambda self: hasattr(self, "_spread"))
    @reads
    def similarity_std(self, Q: MatrixLike, P: MatrixLike | None = None) -> NDArray[Any]:
        """Return the standard deviation of every score of `similarity` under the learned distribution."""
        queries, objects = self._check_both(Q, P)
        for matrix, name in ((queries, "Q"), (objects, "P")):
            self._check_square(read_all(matrix, name).largest_square)
        with np.errstate(over="ignore", invalid="ignore"):  # refused
            return check_finite(np.asarray(self._spread(queries).stds(objects)), "the standard deviations")

    @available_if(lambda self: hasattr(self, "_spread"))
    @reads
    def sample_transform(self, Q: MatrixLike, scale: float = 1.0, random_state: Any = None) -> NDArray[Any]:
        """Return ``Q @ W`` for a W sampled from the learned distribution, independently for each query.

        Ranking objects by the sample is Thompson sampling.

        Parameters
        ----------
        Q : array or CSR matrix of shape (n_queries, m)
        scale : float, default 1.0
            Factor of the standard deviation; 0 returns `transform`.
        random_state : None, int, Generator or RandomState
            Random seed.
        """
        factor = checks.check_number(scale, "scale", at_least=0)
        generator = checks.random_generator(random_state)
        queries = self._check_rows(Q)
        with np.errstate(over="ignore", invalid="ignore"):  # refused
            sampled = self._map_queries(queries) + factor * self._spread(queries).sample(generator)
        return check_finite(np.asarray(sampled), "the samples")

    @reads
    def explain_pair(self, q: MatrixLike, p: MatrixLike) -> Contributions:
        """Return the contribution ``q_i W_ij p_j`` of every pair of non-zero features to the score of q and p."""
        (i, left), (j, right) = (nonzero_values(row) for row in self._check_pair(q, p))
        factors = np.outer(left, right)
        stds = None
        if hasattr(self, "_cell_variances"):
            stds = np.abs(factors) * _roots(self._cell_variances(i, j))
        return Contributions(i, j, cells_of(self.W_, i, j, 0.0) * factors, stds)

    @available_if(lambda self: hasattr(self, "_variances"))
    @reads
    def margin_std(self, triplets: ArrayLike, Q: MatrixLike, P: MatrixLike | None = None) -> NDArray[Any]:
        """Return the standard deviation of each of the `margins` under the learned distribution."""
        Q, P = self._check_both(Q, P)
        return _roots(self._over_pairs(self._variances, Q, P, check_triplets(triplets, Q, P)))

    # -- internals ----------------------------------------------------------------------------------------

    @property
    def _learned_so_far(self) -> float:
        return float(self._state["counts"][0])

    @property
    def _counts(self) -> NDArray[np.int64]:
        check_is_fitted(self)
        return self._state["counts"]

    def _bar(self, total: int) -> Any:
        return progress_bar(type(self).__name__, total, enabled=self.verbose)

    def _check_common_params(self) -> float:
        """Check all parameters; return the result of `_check_params`."""
        noise = self._check_params()
        if hasattr(self, "n_triplets"):
            checks.check_integer(self.n_triplets, "n_triplets", at_least=0)
        self._check_dtype()
        checks.check_flag(self.verbose, "verbose")
        return noise

    def _check_dtype(self) -> np.dtype[Any]:
        """Return the precision that the parameters ask for: float64 without a parameter `dtype`."""
        return check_dtype(getattr(self, "dtype", FLOAT64))

    def _check_unchanged(self, Q: Matrix | RowView, P: Matrix | RowView, q_name: str = "Q", p_name: str = "P") -> None:
        """Check that rows and parameters fit the state, if there is one."""
        if not hasattr(self, "_state"):
            return
        check_width(Q, q_name, self.n_features_in_)
        check_width(P, p_name, self.n_object_features_in_)
        self._check_dtype_unchanged()
        self._check_cells_unchanged()

    def _check_dtype_unchanged(self) -> None:
        if self._precision != (given := self._check_dtype()):
            raise ValueError(f"dtype must stay {self._precision.name!r} after the first triplet, got {given.name!r}")

    def _check_cells_unchanged(self) -> None:
        is_touched = getattr(self._state, "is_touched", False)
        if is_touched != self._stores_touched(self.n_features_in_, self.n_object_features_in_):
            stored = "touched" if is_touched else "dense"
            raise ValueError(f"cells must stay {stored!r} after the first triplet, got {self.cells!r}")

    def _begin(self, m: int, n: int, *, one_space: bool = True) -> None:
        """Make the first state, or make an existing one writable."""
        if hasattr(self, "_state"):
            for name, array in self._state.items():
                if not array.flags.writeable:  # mapped from a file, as joblib does for its workers
                    self._state[name] = array.copy()
            return
        self._reset_fit_attributes()
        self._one_space = one_space
        self._state = self._first_state(m, n, self._initial())
        self.n_features_in_ = m
        self.n_object_features_in_ = n

    def _copied_state(self) -> dict[str, NDArray[Any]]:
        """Return a state that can be changed in place while others read the present one."""
        n_bytes = sum(array.nbytes for array in self._state.values())
        if n_bytes > _LARGE_STATE:  # the check takes longer than a small copy
            checks.check_fits_in_memory(n_bytes, f"A copy of the state of {type(self).__name__} to learn on")
        state = copy.copy(self._state)
        for name, array in state.items():
            state[name] = array.copy()
        return state

    def __getstate__(self) -> dict[str, Any]:
        with self._lock.reading:
            attributes = super().__getstate__()
            attributes.pop("_ready", None)  # a copy checks again: its arrays may be read-only
            if "_state" in attributes:
                attributes["_state"] = self._copied_state()  # `learn_one` changes it in place
        return attributes

    def _limits(self) -> Limits:
        precision = self._check_dtype()
        return Limits(
            precision, self._largest_scale[precision], self._largest_row[precision], type(self).__name__, self._strength
        )

    def _learn_in_chunks(self, block: Block, advance: Callable[[int], None], first: int = 0) -> None:
        for chunk in timed_chunks(len(block.triplets)):
            triplets, weights = block.triplets[chunk], block.weights
            learned = self._learn(
                block._replace(triplets=triplets, weights=None if weights is None else weights[chunk])
            )
            if learned < len(triplets):
                at = first + chunk.start + learned
                raise NumericalError(f"triplet {at}: {self._failure}; the model is unchanged. {self._remedy}")
            advance(len(triplets))

    def _check_covariances(self, seen: int, scale: float) -> None:
        """Refuse the triplets after number `seen`, of at most this scale, if they left an indefinite covariance."""
        is_due = self._schedule.is_due(seen, self._state["counts"].item(0), scale)
        if is_due and not self._has_semidefinite_covariances():
            raise NumericalError(f"{_INDEFINITE}; the model is unchanged. {self._remedy}")

    @property
    def _schedule(self) -> Schedule:
        if not self._covariances:
            return NEVER
        return schedule(max([len(self._state[name]) for name in self._covariances]), self._precision)

    def _has_semidefinite_covariances(self) -> bool:
        return all(is_semidefinite(self._covariance(self._state, name)) for name in self._covariances)

    # -- files --------------------------------------------------------------------------------------------

    def _check_state(self, state: dict[str, NDArray[Any]], m: int, n: int) -> None:
        super()._check_state(state, m, n)
        self._check_common_params()
        expected = {"counts": np.dtype(np.int64), "indptr": np.dtype(np.int64), "columns": np.dtype(np.int32)}
        expected["pending_steps"] = np.dtype(np.float64)
        for name, array in state.items():
            if array.dtype != (dtype := expected.get(name, self._check_dtype())):
                raise ValueError(f"the dtype of {name} is {array.dtype}, expected {dtype}")
            if not np.isfinite(array).all():
                raise ValueError(f"{name} of the model contains NaN or infinity")
        check_counts(state["counts"], self._largest_count)
        pending.check(state)
        check_cells(state, m, n)
        with np.errstate(over="ignore", invalid="ignore"):  # refused
            for name in self._covariances:
                what = f"{name} with its pending_steps" if "pending_a" in state and state["counts"][3] else name
                check_covariance(self._covariance(state, name), what)

    def _to_file(self) -> dict[str, NDArray[Any]]:
        self._check_cells_unchanged()
        return self._weights.to_file()

    def _from_file(self, state: dict[str, NDArray[Any]], n: int) -> dict[str, NDArray[Any]]:
        if "columns" in state:
            return TouchedCells.from_file(state, n)
        return DenseCells(**{name: state[name] for name in self._shapes(1, 1)})  # in the order of the kernel

    # -- scores -------------------------------------------------------------------------------------------

    @property
    def _precision(self) -> np.dtype[Any]:
        return self._weights.dtype

    def _check_square(self, square: float) -> None:
        precision = self._precision
        if square > LARGEST[precision]:
            raise ValueError(f"a row has |x|^2 = {square:.1e}, too large for a model in {precision}")

    def _map_queries(self, Q: Matrix) -> NDArray[Any]:
        with np.errstate(over="ignore", invalid="ignore"):  # refused
            return check_finite(self._weights.product(Q), "the products of queries and W")

    def _scores(self, Q: Matrix, P: Matrix) -> NDArray[Any]:
        with np.errstate(over="ignore", invalid="ignore"):  # refused
            return check_finite(self._weights.scores(Q, P), "the scores")

    def _pair_scores(self, Q: Matrix, P: Matrix, numbers: NDArray[np.int64]) -> NDArray[Any]:
        return self._over_pairs(self._weights.forms, Q, P, numbers)

    def _over_pairs(
        self, compute: Callable[..., NDArray[Any]], Q: Matrix, P: Matrix, numbers: NDArray[np.int64]
    ) -> NDArray[Any]:
        """Read the rows once, then compute in chunks."""
        rows = read_both(Q, P, numbers)
        self._check_square(max(rows.query_square, rows.object_square))
        out = np.empty(len(numbers), dtype=self._precision)
        with np.errstate(over="ignore", invalid="ignore"):  # refused
            for chunk in timed_chunks(len(numbers)):
                out[chunk] = compute(rows.queries, rows.objects, rows.numbers[chunk])
            return check_finite(out, "the scores or variances")


def _roots(variances: NDArray[Any]) -> NDArray[Any]:
    """Return square roots; a variance that rounding left just under zero counts as zero."""
    return np.asarray(np.sqrt(np.maximum(variances, 0)))

"""How every online learner is fitted: from labels, from triplets, from one judgement."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import sqrt
from operator import is_
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import _checks as checks
from .._progress import pieces, progress_bar
from .._rows import Matrix, MatrixLike, as_matrix, check_structure, read_all, read_single_row
from ..kernels.bilinear import forms
from ..kernels.rows import RowView
from ..triplets import stream_from_labels
from . import pending
from .base import Similarity
from .inputs import (
    LARGEST,
    Block,
    check_dtype,
    check_pairs,
    check_scale,
    check_triplets,
    check_width,
    feature_names,
    product,
    read_both,
    write_initial,
)

_TRIPLET_ZERO = np.zeros((1, 3), dtype=np.int64)


class Judgement(NamedTuple):
    """What the model thought of a triplet just before it learned it."""

    margin: float
    """Score of the preferred object minus score of the other; negative or zero is a mistake."""
    std: float | None
    """Standard deviation of that margin under the learned distribution; None where there is none."""
    loss: float
    """The hinge ``max(0, 1 - margin)``."""
    updated: bool
    """Whether the model changed."""


class _Readiness(NamedTuple):
    """What a model has found out about itself once and need not again while it is set the same."""

    state: dict[str, NDArray[Any]]
    params: list[Any]
    r: float
    m: int
    n: int
    precision: np.dtype[Any]
    largest_scale: float


class TripletLearner(Similarity):
    """A bilinear score ``q'Wp`` that is learned one triplet at a time.

    A subclass is two hooks and a docstring: `_start` gives the arrays besides W that the first step needs,
    `_learn` runs its kernel over a block. One that keeps a distribution adds `_variances`.
    """

    n_triplets: int
    init: Any
    dtype: Any
    random_state: Any
    progress: bool

    _dtypes: ClassVar[dict[str, np.dtype[Any]]] = {
        "counts": np.dtype(np.int64),
        "pending_steps": np.dtype(np.float64),
    }
    """Arrays of the state that do not have the model's own precision."""

    _largest_scale: ClassVar[dict[np.dtype[Any], float]] = LARGEST
    """Largest ``|q|^2 |p|^2 / r`` that the learner carries, where that is less than the arithmetic does."""

    _breaks_by: ClassVar[str] = "rounding has used up the covariance, no variance is left to learn with"
    _remedy: ClassVar[str] = "Larger r, rows of unit norm or float64 avoid this"
    """What stops a kernel in front of a triplet, and what to do about it."""

    # -- hooks --------------------------------------------------------------------------------------------

    def _start(self, m: int, n: int, dtype: np.dtype[Any]) -> dict[str, NDArray[Any]]:
        raise NotImplementedError

    def _learn(self, block: Block) -> int:
        """Learn a block in place; give the number learned, which is less when one could not be."""
        raise NotImplementedError

    def _check_params(self) -> float:
        """Check the parameters; give r, or what takes its place in the scale ``|q|^2 |p|^2 / r``."""
        raise NotImplementedError

    # -- learning -----------------------------------------------------------------------------------------

    def fit(self, X: MatrixLike, y: ArrayLike) -> Self:
        """Draw `n_triplets` triplets from the labels and learn them, starting from `init`.

        A triplet is a random row, a random other row with the same label and a random row with another.
        """
        with self._unchanged_on_error() as begin:
            r = self._check_common_params()
            check_structure(X, "X")
            X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], order=None)
            if X.shape[0] < 2:
                raise ValueError(f"X must have at least two rows to compare, got n_samples = {X.shape[0]}")
            view, _, square = read_all(X, "X")
            stream = stream_from_labels(y, self.n_triplets, self.random_state)
            self.__dict__.pop("_state", None)
            self._begin(X.shape[1], X.shape[1])
            begin()
            with self._bar(self.n_triplets) as advance:
                for triplets in stream:
                    block = Block(view, view, view, triplets, None)
                    self._check_scale(block, square, square, r)
                    first = self.n_triplets_seen_
                    self._learn_in_pieces(block, advance, "the model is as it was before", first)
        return self

    def fit_triplets(
        self,
        triplets: ArrayLike,
        Q: MatrixLike,
        P: MatrixLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Start from `init` and learn the triplets in their order.

        Parameters
        ----------
        triplets : integer array of shape (N, 3)
            Row of the query in Q, row of the preferred object in P, row of the other object in P.
        Q : array or CSR matrix of shape (n_queries, m)
        P : array or CSR matrix of shape (n_objects, n), default Q
        sample_weight : array of shape (N,), optional
            A triplet with weight w is learned with ``r / w`` in place of r; with 0 it is counted, but changes nothing.
        """
        return self._fit_triplets(triplets, Q, P, sample_weight, starts=True)

    def partial_fit_triplets(
        self,
        triplets: ArrayLike,
        Q: MatrixLike,
        P: MatrixLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Go on learning from where the model is, or from `init` when it has not begun.

        Takes the same arguments as `fit_triplets`. Only rows that the triplets name are looked at.
        """
        return self._fit_triplets(triplets, Q, P, sample_weight, starts=False)

    def _fit_triplets(self, triplets: Any, Q: Any, P: Any, sample_weight: Any, *, starts: bool) -> Self:
        with self._unchanged_on_error() as begin:
            if starts:
                self.__dict__.pop("_state", None)
                self.__dict__.pop("feature_names_in_", None)
            r = self._check_common_params()
            self._check_names(Q)
            Q_matrix = as_matrix(Q, "Q")
            P_matrix = Q_matrix if P is None or P is Q else as_matrix(P, "P")
            numbers = check_triplets(triplets, Q_matrix, P_matrix)
            weights = checks.check_weights(sample_weight, len(numbers))
            self._check_widths(Q_matrix, P_matrix)
            rows = read_both(Q_matrix, P_matrix, numbers)
            block = Block(rows.queries, rows.objects, rows.objects, rows.numbers, weights)
            if not hasattr(self, "_state") and (names := feature_names(Q)) is not None:
                self.feature_names_in_ = np.array(names, dtype=object)
            self._begin(Q_matrix.shape[1], P_matrix.shape[1])
            self._check_scale(block, rows.query_square, rows.object_square, r)
            begin()
            kept = "the model is as it was before" if starts else "the triplets before it are learned"
            with self._bar(len(numbers)) as advance:
                self._learn_in_pieces(block, advance, kept)
        return self

    def learn_one(
        self, q: MatrixLike, p_pos: MatrixLike, p_neg: MatrixLike, *, sample_weight: float = 1.0
    ) -> Judgement:
        """Learn one judgement: for the query q, p_pos is better than p_neg.

        Each is a vector, or a matrix (dense or CSR) with one row.

        Returns
        -------
        Judgement
            What the model thought before it learned: margin, its standard deviation, loss, updated.
        """
        if hasattr(self, "_state"):  # then nothing changes before the kernel does
            return self._judge(q, p_pos, p_neg, sample_weight)
        with self._unchanged_on_error():
            return self._judge(q, p_pos, p_neg, sample_weight)

    def _judge(self, q: MatrixLike, p_pos: MatrixLike, p_neg: MatrixLike, sample_weight: float) -> Judgement:
        ready = self._readiness()
        r = self._check_common_params() if ready is None else ready.r
        query, query_square = read_single_row(q, "q")
        good, good_square = read_single_row(p_pos, "p_pos")
        bad, bad_square = read_single_row(p_neg, "p_neg")
        weight = checks.check_number(sample_weight, "sample_weight", at_least=0)
        if good.shape != bad.shape:
            raise ValueError(f"p_pos and p_neg must have the same width, got {good.shape[1]} and {bad.shape[1]}")
        if ready is None:
            self._check_widths(query, good, "q", "p_pos")
            self._begin(query.shape[1], good.shape[1])
            ready = self._become_ready(r)
        else:
            check_width(query, "q", ready.m)
            check_width(good, "p_pos", ready.n)
        weights, record = None if weight == 1 else np.array([weight]), np.zeros((1, 3))
        block = Block(query, good, bad, _TRIPLET_ZERO, weights, record)
        squares = query_square, max(good_square, bad_square)
        check_scale(block, *squares, r, ready.precision, ready.largest_scale, type(self).__name__)
        if self._learn(block) == 0:
            raise FloatingPointError(f"triplet 0: {self._breaks_by}; the model is as it was before. {self._remedy}")
        margin, variance, updated = record[0].tolist()
        std = sqrt(variance) if hasattr(self, "_variances") else None
        return Judgement(margin, std, max(0.0, 1.0 - margin), bool(updated))

    # -- what was learned ---------------------------------------------------------------------------------

    @property
    def W_(self) -> NDArray[Any]:
        """The matrix of the score ``q'Wp``, of shape (m, n): a copy, so that reading it changes nothing."""
        return self._array("W")

    @property
    def n_triplets_seen_(self) -> int:
        """Number of triplets learned from so far."""
        return int(self._counts[0])

    @property
    def n_updates_(self) -> int:
        """Number of triplets that changed the model."""
        return int(self._counts[1])

    @property
    def n_mistakes_(self) -> int:
        """Number of triplets that the model had wrong when it met them; a tie is a mistake."""
        return int(self._counts[2])

    def transform(self, X: MatrixLike) -> NDArray[Any]:
        """Give ``X @ W_``: what the queries look for, in the space of the objects.

        ``transform(Q) @ P.T`` is ``similarity(Q, P)``, so an index of inner products over the objects as they
        are can serve the learned score. This is the query side only: objects stay untransformed, and the
        rows of ``transform(X)`` are not meant to be compared with each other.
        """
        return self._queries_times_W(self._check_rows(X))

    @available_if(lambda self: hasattr(self, "_variances"))
    def pair_std(self, Q: MatrixLike, P: MatrixLike | None, pairs: ArrayLike | None = None) -> NDArray[Any]:
        """Give the standard deviation of each `pair_score` under the learned distribution."""
        Q, P = self._check_both(Q, P)
        return _roots(self._over_pairs(self._variances, Q, P, check_pairs(pairs, Q, P)))

    @available_if(lambda self: hasattr(self, "_variances"))
    def margin_std(self, triplets: ArrayLike, Q: MatrixLike, P: MatrixLike | None = None) -> NDArray[Any]:
        """Give the standard deviation of each of the `margins` under the learned distribution."""
        Q, P = self._check_both(Q, P)
        return _roots(self._over_pairs(self._variances, Q, P, check_triplets(triplets, Q, P)))

    # -- inside -------------------------------------------------------------------------------------------

    def _check_state(self, state: dict[str, NDArray[Any]], m: int, n: int) -> None:
        super()._check_state(state, m, n)
        self._check_common_params()
        for name, array in state.items():
            expected = self._dtypes.get(name, check_dtype(self.dtype))
            if array.dtype != expected:
                raise ValueError(f"the model's {name} is {array.dtype}, but its dtype says {expected}")
            if not np.isfinite(array).all():
                raise ValueError(f"the model's {name} contains NaN or infinity")
        if (state["counts"] < 0).any():
            raise ValueError("the model's counts are negative")
        pending.check(state)

    def _matrix(self, name: str) -> NDArray[Any]:
        """Give a matrix as it lies in the state, without what is pending."""
        return self._state[name]

    @property
    def _precision(self) -> np.dtype[Any]:
        return self._matrix("W").dtype

    @property
    def _counts(self) -> NDArray[np.int64]:
        check_is_fitted(self)
        return self._state["counts"]

    def _array(self, name: str) -> NDArray[Any]:
        check_is_fitted(self)
        array = self._matrix(name).copy()
        if name == "W":
            a, b, steps = pending.terms(self._state)
            if len(a):
                array += (steps[:, :1] * a).T @ b
        return array

    def _bar(self, total: int) -> Any:
        return progress_bar(type(self).__name__, total, enabled=self.progress)

    def _check_common_params(self) -> float:
        """Check all parameters; give what `_check_params` does."""
        r = self._check_params()
        checks.check_integer(self.n_triplets, "n_triplets", at_least=0)
        check_dtype(self.dtype)
        checks.check_flag(self.progress, "progress")
        return r

    def _check_widths(self, Q: Matrix | RowView, P: Matrix | RowView, q_name: str = "Q", p_name: str = "P") -> None:
        """Check that rows fit the model, once it has begun."""
        if hasattr(self, "_state"):
            check_width(Q, q_name, self.n_features_in_)
            check_width(P, p_name, self.n_object_features_in_)
            if self._precision != check_dtype(self.dtype):
                raise ValueError(
                    f"dtype must stay {self._precision.name!r} while the model goes on learning, got {self.dtype!r}"
                )

    def _begin(self, m: int, n: int) -> None:
        """Start from `init` unless the model has begun."""
        if hasattr(self, "_state"):
            for name, array in self._state.items():
                if not array.flags.writeable:  # mapped from a file, as joblib does for its workers
                    self._state[name] = array.copy()
            return
        self._state = self._first_state(m, n, check_dtype(self.dtype))
        self.n_features_in_ = m
        self.n_object_features_in_ = n

    def _readiness(self) -> _Readiness | None:
        """Give what is known of a model that has begun; None when it has to be found out (anew)."""
        own = self.__dict__
        ready: _Readiness | None = own.get("_ready")
        if ready is None or own.get("_state") is not ready.state:
            return None
        # The very same objects: what was checked once is still right, and arrays are not compared.
        return ready if all(map(is_, ready.params, map(own.get, self._param_names()))) else None

    def _become_ready(self, r: float) -> _Readiness:
        """Note what was checked of the model and its parameters, for the next judgement."""
        params = [getattr(self, name) for name in self._param_names()]
        precision, width, other_width = self._precision, self.n_features_in_, self.n_object_features_in_
        largest = self._largest_scale[precision]
        self._ready = _Readiness(self._state, params, r, width, other_width, precision, largest)
        return self._ready

    @classmethod
    @cache
    def _param_names(cls) -> tuple[str, ...]:
        return tuple(cls._get_param_names())

    def __getstate__(self) -> dict[str, Any]:
        # A copy of the model, in this process or another, finds out for itself: its arrays may be read-only.
        return {name: value for name, value in super().__getstate__().items() if name != "_ready"}

    def _first_state(self, m: int, n: int, dtype: np.dtype[Any]) -> dict[str, NDArray[Any]]:
        self._check_fits(m, n, dtype)
        state = {"W": np.zeros((m, n), dtype=dtype), **self._start(m, n, dtype)}
        write_initial(self.init, state["W"])
        return {**state, "counts": np.zeros(self._shapes(m, n)["counts"], dtype=np.int64)}

    def _check_fits(self, m: int, n: int, dtype: np.dtype[Any]) -> None:
        cells = sum(int(np.prod(shape, dtype=object)) for shape in self._shapes(m, n).values())
        checks.check_fits_in_memory(
            cells * dtype.itemsize, f"The state of {type(self).__name__} for {m} x {n} features"
        )

    def _check_scale(self, block: Block, query_square: float, object_square: float, r: float) -> None:
        precision = self._precision
        limit = self._largest_scale[precision]
        check_scale(block, query_square, object_square, r, precision, limit, type(self).__name__)

    def _learn_in_pieces(self, block: Block, advance: Callable[[int], None], kept: str, first: int = 0) -> None:
        for piece in pieces(len(block.triplets)):
            triplets, weights = block.triplets[piece], block.weights
            learned = self._learn(
                block._replace(triplets=triplets, weights=None if weights is None else weights[piece])
            )
            if learned < len(triplets):
                at = first + piece.start + learned
                raise FloatingPointError(f"triplet {at}: {self._breaks_by}; {kept}. {self._remedy}")
            advance(len(triplets))

    def _check_square(self, square: float) -> None:
        precision = self._precision
        if square > LARGEST[precision]:
            raise ValueError(f"a row has |x|^2 = {square:.1e}, too large for a model in {precision}")

    def _queries_times_W(self, Q: Matrix) -> NDArray[Any]:
        wanted = product(Q, self._matrix("W"))
        a, b, steps = pending.terms(self._state)
        if len(a):
            wanted += (product(Q, a.T) * steps[:, 0]) @ b
        return wanted

    def _scores(self, Q: Matrix, P: Matrix) -> NDArray[Any]:
        return product(P, self._queries_times_W(Q).T).T

    def _pair_scores(self, Q: Matrix, P: Matrix, numbers: NDArray[np.int64]) -> NDArray[Any]:
        return self._over_pairs(self._forms, Q, P, numbers)

    def _forms(self, queries: RowView, objects: RowView, numbers: NDArray[np.int64]) -> NDArray[Any]:
        """``q'Wp`` for rows (query, object) or (query, preferred, other)."""
        W = self._matrix("W")
        out = np.empty(len(numbers), dtype=W.dtype)
        forms(queries, objects, numbers, W, False, False, out)
        a, b, steps = pending.terms(self._state)
        if len(a):
            left, right = pending.projected(queries, numbers[:, :1], a), pending.projected(objects, numbers[:, 1:], b)
            out += (left * right) @ steps[:, 0]
        return out

    def _over_pairs(
        self, compute: Callable[..., NDArray[Any]], Q: Matrix, P: Matrix, numbers: NDArray[np.int64]
    ) -> NDArray[Any]:
        """Look at the rows once, then compute a piece at a time."""
        rows = read_both(Q, P, numbers)
        self._check_square(max(rows.query_square, rows.object_square))
        out = np.empty(len(numbers), dtype=self._precision)
        for piece in pieces(len(numbers)):
            out[piece] = compute(rows.queries, rows.objects, rows.numbers[piece])
        return out


def _roots(variances: NDArray[Any]) -> NDArray[Any]:
    """Square roots; a variance that rounding left a hair under zero counts as zero."""
    return np.asarray(np.sqrt(np.maximum(variances, 0)))

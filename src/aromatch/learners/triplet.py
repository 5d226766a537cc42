"""What every learner of relative judgements can do: learn triplets or one judgement, and score by ``q'Wp``."""

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

from .._utils import checks
from .._utils.chunks import timed_chunks
from .._utils.progress import progress_bar
from .._utils.rows import Matrix, MatrixLike, ReadRows, as_matrix, check_structure, read_all, read_single_row
from ..exceptions import NumericalError
from ..kernels.rows import RowView
from .base import Similarity
from .contributions import Contributions, cells_of, nonzero_values
from .embedding.triplet_embedding import TripletEmbedding, project
from .inputs import (
    LARGEST,
    Block,
    check_pairs,
    check_scale,
    check_triplets,
    check_width,
    feature_names,
    product,
    read_both,
)

_TRIPLET_ZERO = np.zeros((1, 3), dtype=np.int64)


class Update(NamedTuple):
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
    """A bilinear score ``q'Wp`` that is learned from triplets.

    A subclass gives `_first_state` (the arrays before the first triplet), `_learn` (take in a block of triplets) and
    `W_`, with `_map_queries` and `_forms` to score by it. One that keeps a distribution adds `_variances`.
    """

    verbose: bool
    n_features_in_: int
    n_object_features_in_: int

    _largest_scale: ClassVar[dict[np.dtype[Any], float]] = LARGEST
    """Largest ``|q|^2 |p|^2 / r`` that the learner carries, where that is less than the arithmetic does."""

    _breaks_by: ClassVar[str] = "rounding has used up the covariance, no variance is left to learn with"
    _remedy: ClassVar[str] = "Larger r, rows of unit norm or float64 avoid this"
    """What stops a kernel in front of a triplet, and what to do about it."""

    # -- hooks --------------------------------------------------------------------------------------------

    def _first_state(self, m: int, n: int) -> dict[str, NDArray[Any]]:
        raise NotImplementedError

    def _learn(self, block: Block) -> int:
        """Learn a block in place; give the number learned, which is less when one could not be."""
        raise NotImplementedError

    def _check_params(self) -> float:
        """Check the parameters; give r, or what takes its place in the scale ``|q|^2 |p|^2 / r``."""
        raise NotImplementedError

    @property
    def _precision(self) -> np.dtype[Any]:
        """Precision of the scores."""
        raise NotImplementedError

    def _map_queries(self, Q: Matrix) -> NDArray[Any]:
        raise NotImplementedError

    def _forms(self, queries: RowView, objects: RowView, numbers: NDArray[np.int64]) -> NDArray[Any]:
        """``q'Wp`` for rows (query, object) or (query, preferred, other)."""
        raise NotImplementedError

    # -- learning -----------------------------------------------------------------------------------------

    def fit_triplets(
        self,
        triplets: ArrayLike,
        Q: MatrixLike,
        P: MatrixLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Start anew, from `init` where there is one, and learn the triplets in their order.

        Parameters
        ----------
        triplets : integer array of shape (N, 3)
            Row of the query in Q, row of the preferred object in P, row of the other object in P.
        Q : array or CSR matrix of shape (n_queries, m)
        P : array or CSR matrix of shape (n_objects, n), default Q
        sample_weight : array of shape (N,), optional
            How much each triplet counts. For the weight w an online learner takes ``r / w`` in place of r, and
            `MomentAROMA` takes it in w times; with 0 it is counted, but changes nothing.
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
        """Go on learning from where the model is, or start when it has not begun.

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

    def learn_one(self, q: MatrixLike, p_pos: MatrixLike, p_neg: MatrixLike, *, sample_weight: float = 1.0) -> Update:
        """Learn one judgement: for the query q, p_pos is better than p_neg.

        Each is a vector, or a matrix (dense or CSR) with one row.

        Returns
        -------
        Update
            What the model thought before it learned: margin, its standard deviation, loss, updated.
        """
        if hasattr(self, "_state"):  # then nothing changes before the kernel does
            return self._judge(q, p_pos, p_neg, sample_weight)
        with self._unchanged_on_error():
            return self._judge(q, p_pos, p_neg, sample_weight)

    def _judge(self, q: MatrixLike, p_pos: MatrixLike, p_neg: MatrixLike, sample_weight: float) -> Update:
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
        unit, learned = self._unit_of_margins, self._learned_so_far  # of the model that predicts
        if self._learn(block) == 0:
            raise NumericalError(f"triplet 0: {self._breaks_by}; the model is as it was before. {self._remedy}")
        margin, variance, updated = record[0].tolist()
        std = sqrt(variance) if hasattr(self, "_variances") else None
        if weight > 0:
            self._noted().add_one(margin / unit, learned)
        return Update(margin, std, max(0.0, 1.0 - margin), bool(updated))

    def grow(self, m: int, n: int | None = None) -> Self:
        """Make room for new features, which come after those that are there.

        Nothing is known of them yet: they are as they would be before the first triplet. What is known of the others
        stays. Names of features and fingerprints are dropped, since they are not those of the new ones.

        Parameters
        ----------
        m : int
            How many features a query has from now on, at least as many as before.
        n : int, optional
            How many an object has. As many as a query when both had the same number before, otherwise it must be given.

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
        with self._unchanged_on_error():
            self._check_common_params()
            self._state = self._grown(m, n)
            self.n_features_in_ = m
            self.n_object_features_in_ = n
            for name in ("feature_names_in_", "_fingerprints", "_ready"):
                self.__dict__.pop(name, None)
        return self

    def _grown(self, m: int, n: int) -> dict[str, NDArray[Any]]:
        """Give a state for more features, with what is known in the corner of every array."""
        state = self._first_state(m, n)
        for name in state:  # parameters of before may have asked for more than is wanted now
            known = self._state.get(name)
            if known is not None:
                state[name][tuple(map(slice, known.shape))] = known
        return state

    @available_if(lambda self: hasattr(self, "_widened"))
    def decay(self, rate: float) -> Self:
        """Trust what was learned less, so that what comes counts more: for a truth that drifts.

        W stays as it is. What is known of it goes this part of the way back to what was known before the first triplet:
        the inverse of its covariance becomes ``(1 - rate)`` times itself plus `rate` times the identity. A
        `FactoredAROMA` does so with both of its matrices, each by ``1 - sqrt(1 - rate)``. A `MomentAROMA` gives all
        judgements so far ``1 - rate`` of their weight; with `r`, which is held against all weights, W gets smaller.

        Parameters
        ----------
        rate : float
            From 0, nothing is forgotten, to 1, as little is known as before the first triplet.

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
        with self._unchanged_on_error():
            self._check_common_params()
            self._state = self._widened(share)
            self.__dict__.pop("_ready", None)
        return self

    # -- what was learned ---------------------------------------------------------------------------------

    @property
    def n_triplets_seen_(self) -> int:
        """Number of triplets learned from so far."""
        return int(self._counts[0])

    @property
    def n_updates_(self) -> int:
        """Number of triplets that changed the model."""
        return int(self._counts[1])

    def transform(self, Q: MatrixLike) -> NDArray[Any]:
        """Return ``Q @ W_``, the queries in the space of the objects.

        ``transform(Q) @ P.T`` equals ``similarity(Q, P)``, so an index of inner products over the unchanged objects
        serves the learned score. The map is one-sided: distances between rows of ``transform(Q)`` have no
        meaning. For neighbours of rows among themselves, as in ``KNeighborsClassifier``, use
        ``project().transform``, which maps both sides alike.
        """
        return np.asarray(super().transform(Q))

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
        return project(self, n_components, symmetric)

    @available_if(lambda self: hasattr(self, "_variances"))
    def pair_std(self, Q: MatrixLike, P: MatrixLike | None = None, pairs: ArrayLike | None = None) -> NDArray[Any]:
        """Give the standard deviation of each `pair_score` under the learned distribution."""
        Q, P = self._check_both(Q, P)
        return _roots(self._over_pairs(self._variances, Q, P, check_pairs(pairs, Q, P)))

    @available_if(lambda self: hasattr(self, "_spread"))
    def similarity_std(self, Q: MatrixLike, P: MatrixLike | None = None) -> NDArray[Any]:
        """Return the standard deviation of every score of `similarity` under the learned distribution."""
        queries, objects = self._check_both(Q, P)
        for matrix, name in ((queries, "Q"), (objects, "P")):
            self._check_square(read_all(matrix, name).largest_square)
        return np.asarray(self._spread(queries).stds(objects))

    @available_if(lambda self: hasattr(self, "_spread"))
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
        return np.asarray(self._map_queries(queries) + factor * self._spread(queries).sample(generator))

    def explain_pair(self, q: MatrixLike, p: MatrixLike) -> Contributions:
        """Return the contribution ``q_i W_ij p_j`` of every pair of non-zero features to the score of q and p."""
        (i, left), (j, right) = (nonzero_values(row) for row in self._check_both(q, p))
        factors = np.outer(left, right)
        stds = None
        if hasattr(self, "_cell_variances"):
            stds = np.abs(factors) * np.sqrt(self._cell_variances(i, j))
        return Contributions(i, j, cells_of(self.W_, i, j, 0.0) * factors, stds)

    @available_if(lambda self: hasattr(self, "_variances"))
    def margin_std(self, triplets: ArrayLike, Q: MatrixLike, P: MatrixLike | None = None) -> NDArray[Any]:
        """Give the standard deviation of each of the `margins` under the learned distribution."""
        Q, P = self._check_both(Q, P)
        return _roots(self._over_pairs(self._variances, Q, P, check_triplets(triplets, Q, P)))

    # -- inside -------------------------------------------------------------------------------------------

    @property
    def _learned_so_far(self) -> float:
        return float(self._state["counts"][0])

    @property
    def _counts(self) -> NDArray[np.int64]:
        check_is_fitted(self)
        return self._state["counts"]

    def _read_labelled(self, X: MatrixLike, y: ArrayLike) -> tuple[ReadRows, NDArray[Any]]:
        """Look at what `fit` gets: rows where they lie, at least two, and their labels."""
        check_structure(X, "X")
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], order=None)
        if X.shape[0] < 2:
            raise ValueError(f"X must have at least two rows to compare, got n_samples = {X.shape[0]}")
        return read_all(X, "X"), np.asarray(y)

    def _bar(self, total: int) -> Any:
        return progress_bar(type(self).__name__, total, enabled=self.verbose)

    def _check_common_params(self) -> float:
        """Check all parameters; give what `_check_params` does."""
        r = self._check_params()
        checks.check_flag(self.verbose, "verbose")
        return r

    def _check_widths(self, Q: Matrix | RowView, P: Matrix | RowView, q_name: str = "Q", p_name: str = "P") -> None:
        """Check that rows fit the model, once it has begun."""
        if hasattr(self, "_state"):
            check_width(Q, q_name, self.n_features_in_)
            check_width(P, p_name, self.n_object_features_in_)

    def _begin(self, m: int, n: int) -> None:
        """Start, unless the model has begun."""
        if hasattr(self, "_state"):
            for name, array in self._state.items():
                if not array.flags.writeable:  # mapped from a file, as joblib does for its workers
                    self._state[name] = array.copy()
            return
        self._is_another_model()
        self._state = self._first_state(m, n)
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

    def _check_fits(self, m: int, n: int, precision: np.dtype[Any]) -> None:
        cells = sum(int(np.prod(shape, dtype=object)) for shape in self._shapes(m, n).values())
        checks.check_fits_in_memory(
            cells * precision.itemsize, f"The state of {type(self).__name__} for {m} x {n} features"
        )

    def _check_scale(self, block: Block, query_square: float, object_square: float, r: float) -> None:
        precision = self._precision
        limit = self._largest_scale[precision]
        check_scale(block, query_square, object_square, r, precision, limit, type(self).__name__)

    def _learn_in_pieces(self, block: Block, advance: Callable[[int], None], kept: str, first: int = 0) -> None:
        for piece in timed_chunks(len(block.triplets)):
            triplets, weights = block.triplets[piece], block.weights
            learned = self._learn(
                block._replace(triplets=triplets, weights=None if weights is None else weights[piece])
            )
            if learned < len(triplets):
                at = first + piece.start + learned
                raise NumericalError(f"triplet {at}: {self._breaks_by}; {kept}. {self._remedy}")
            advance(len(triplets))

    def _check_square(self, square: float) -> None:
        precision = self._precision
        if square > LARGEST[precision]:
            raise ValueError(f"a row has |x|^2 = {square:.1e}, too large for a model in {precision}")

    def _scores(self, Q: Matrix, P: Matrix) -> NDArray[Any]:
        return product(P, self._map_queries(Q).T).T

    def _pair_scores(self, Q: Matrix, P: Matrix, numbers: NDArray[np.int64]) -> NDArray[Any]:
        return self._over_pairs(self._forms, Q, P, numbers)

    def _over_pairs(
        self, compute: Callable[..., NDArray[Any]], Q: Matrix, P: Matrix, numbers: NDArray[np.int64]
    ) -> NDArray[Any]:
        """Look at the rows once, then compute a piece at a time."""
        rows = read_both(Q, P, numbers)
        self._check_square(max(rows.query_square, rows.object_square))
        out = np.empty(len(numbers), dtype=self._precision)
        for piece in timed_chunks(len(numbers)):
            out[piece] = compute(rows.queries, rows.objects, rows.numbers[piece])
        return out


def _roots(variances: NDArray[Any]) -> NDArray[Any]:
    """Square roots; a variance that rounding left a hair under zero counts as zero."""
    return np.asarray(np.sqrt(np.maximum(variances, 0)))

"""TripletEmbedding: maps of queries and objects to vectors whose inner products rank as triplets do (beyond the paper).

With a linear map L, the score of a query and an object is ::

    u.v,      u = L'q / |L'q|^0.7,      v = L'p / |L'p|^0.7

between the inner product, which prefers typical rows because L maps them far out, and the cosine. There are two ways to
L. The moment method (`projection`) projects W of `MomentAROMA` with denoised sums; it is better with few triplets. The
spectral method (`spectral`) regresses on the graph of the triplets; it is better with many and noisy features. Either L
is refined by gradient descent (`refinement`). All choices are made on the same validation rows, one in eight
(`training_set`).

A method is a function of the training set, a number of components and alpha in the table `_LINEAR`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from ..._utils import checks
from ..._utils.chunks import chunks
from ..._utils.indices import read_both
from ..._utils.rows import Matrix, MatrixLike, as_float, as_matrix, feature_names, unit_rows
from ..._utils.sharing import drafts, reads
from ...exceptions import NoSignalError
from ...triplets import from_labels
from ..base import Similarity
from ..baselines.cosine import row_products
from ..contributions import Contributions, nonzero_values
from ..inputs import FLOAT64, LARGEST, product, read_triplets
from ..invariants import check_integers, check_map
from .projection import moment_map, psd_factor, singular_factors
from .refinement import refine
from .spectral import spectral_map
from .training_set import TripletData, ValidationSet

Array = NDArray[Any]
LinearMethod = Callable[[TripletData, int, float | None], tuple[Array, Array | None] | None]

# Each returns the map of all rows and that of the training rows alone, or None without signal.
_LINEAR: dict[str, LinearMethod] = {"moment": moment_map, "spectral": spectral_map}
_CANDIDATES = {"auto": tuple(_LINEAR), "linear": tuple(_LINEAR), "moment": ("moment",), "spectral": ("spectral",)}
# Values of `method_`; files store the index, so the order is fixed.
_FITTED_METHODS = ("cosine", "moment", "spectral", "projection")
# Power of the norm that mapped rows are divided by.
_POWER = 0.7
# Those of projections and cosines besides.
_POWERS = 0.0, _POWER, 1.0
_MAX_COMPONENTS = 128
# Triplets that `fit` samples: per row, at least and at most.
_PER_ROW, _MIN_TRIPLETS, _MAX_TRIPLETS = 20, 10_000, 1_000_000
# A gain over the cosine counts if it exceeds so many standard errors, over at least so many queries.
_N_ERRORS, _MIN_QUERIES = 1.0, 3
_PAIRS_PER_CHUNK = 2**12


class _Fitted(NamedTuple):
    method: str
    L: Array | None
    """None for the cosine."""
    scores: dict[str, float]


class TripletEmbedding(Similarity):
    """Embedding learned from all triplets jointly: vectors whose inner products are the similarity.

    For triplets of one collection, or of queries and objects with the same features. Fitting takes seconds; the more
    triplets share rows, the better the result. There are no standard deviations and no further training.

    Parameters
    ----------
    method : {"auto", "linear", "moment", "spectral", "cosine"}, default "auto"
        - "moment": the positive semi-definite part of W of a `MomentAROMA`, refined;
        - "spectral": regression on the components of the graph of the triplets, refined;
        - "linear": the better of the two on validation rows;
        - "cosine": the cosine of the rows, nothing is learned;
        - "auto": "linear" if it ranks validation rows better than the cosine, otherwise "cosine".
    n_components : int or "auto", default "auto"
        Dimensions of the embedding, at most; "auto" is 128.
    alpha : float or "auto", default "auto"
        Regularization strength, in units of the mean square of a feature. "auto" chooses it on validation rows.
    random_state : None, int, Generator or RandomState, default None
        Random seed of the sampling of triplets, in `fit` and in the refinement.
    verbose : bool, default False
        Show a progress bar on a terminal.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The linear map; the identity for the cosine.
    object_components_ : array of shape (n_components, n_object_features)
        The map of the objects: `components_` unless `project` with ``symmetric=False`` made the embedding.
    method_ : str
        The fitted method: "cosine", "moment", "spectral", or "projection" for embeddings made by `project`.
    validation_scores_ : dict
        Score of each method that was compared: the geometric mean of one over the ranks of validation objects that
        match a validation query, 1 if they all come first. The score of the linear method in use is that after its
        refinement. Empty without validation rows.

    References
    ----------
    Cai, He and Han, Spectral Regression for Efficient Regularized Subspace Learning, ICCV 2007.
    Goldberger, Roweis, Hinton and Salakhutdinov, Neighbourhood Components Analysis, NIPS 2004.

    Examples
    --------
    >>> import aromatch as am
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> triplets = am.triplets.from_labels(y[::2], 10_000, random_state=0)
    >>> model = am.TripletEmbedding(random_state=0).fit_triplets(triplets, X[::2])
    >>> [round(one.score(X[1::2], y[1::2]), 2) for one in (am.Euclidean().fit(X), model)]
    [0.66, 0.85]
    """

    def __init__(
        self,
        method: str = "auto",
        n_components: int | str = "auto",
        *,
        alpha: float | str = "auto",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.method = method
        self.n_components = n_components
        self.alpha = alpha
        self.random_state = random_state
        self.verbose = verbose

    # -- training -----------------------------------------------------------------------------------------

    @drafts
    def fit(self, X: MatrixLike, y: ArrayLike) -> Self:
        """Fit triplets sampled from labels: 20 per row, at least 10,000 and at most 1,000,000."""
        X, y = self._check_labelled(X, y)
        n_triplets = min(max(_PER_ROW * X.shape[0], _MIN_TRIPLETS), _MAX_TRIPLETS)
        generator = checks.random_generator(self.random_state)
        self._fit(from_labels(y, n_triplets, random_state=generator), X, X, None, generator)
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
        """Fit the triplets, whatever was fitted before.

        Parameters
        ----------
        triplets : integer array of shape (N, 3)
            Row of the query in Q, row of the preferred object in P, row of the other object in P.
        Q : array or CSR matrix of shape (n_queries, n_features)
        P : array or CSR matrix of shape (n_objects, n_features), default Q
        sample_weight : array of shape (N,), optional
            Weight of each triplet.

        Raises
        ------
        NoSignalError
            If the chosen method finds no signal: "spectral" needs components of the graph above the noise level,
            "moment" and "linear" at least one triplet with a weight, a query and two different objects. "auto" and
            "cosine" do not raise it.
        """
        queries = as_matrix(Q, "Q")
        objects = queries if P is None or P is Q else as_matrix(P, "P")
        if objects.shape[1] != queries.shape[1]:
            raise ValueError(
                f"P must have the features of Q, {queries.shape[1]}, got {objects.shape[1]}; "
                "MomentAROMA learns from queries and objects with different features"
            )
        self.__dict__.pop("feature_names_in_", None)
        if (names := feature_names(Q)) is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        self._fit(triplets, queries, objects, sample_weight, checks.random_generator(self.random_state))
        return self

    def _fit(
        self, triplets: ArrayLike, Q: Matrix, P: Matrix, sample_weight: Any, generator: np.random.Generator
    ) -> None:
        """Fit the method and store its maps."""
        n_components, alpha = self._check_params()
        if self.method == "cosine":
            _check_square(read_triplets(triplets, Q, P, sample_weight).largest_square, np.empty(0))
            fitted = _Fitted("cosine", None, {})
        else:
            training = TripletData.read(triplets, Q, P, sample_weight)
            _check_square(training.largest_square, np.empty(0))
            fitted = _fit_linear(training, self.method, n_components, alpha, generator, self.verbose)
        self._set_maps(fitted.method, fitted.L, None, 1.0 if fitted.L is None else _POWER, fitted.scores, Q.shape[1])

    def _set_maps(
        self, method: str, L: Array | None, R: Array | None, power: float, scores: dict[str, float], width: int
    ) -> None:
        """Replace the state: maps of queries and objects (None where they are equal), and how they were found."""
        self._reset_fit_attributes()
        self.n_features_in_, self.n_object_features_in_ = width, width if R is None else len(R)
        state = {
            "method": np.array([_FITTED_METHODS.index(method)]),
            "power": np.array([power]),
            "scores": np.array([scores.get(name, np.nan) for name in _FITTED_METHODS]),
        }
        maps = {"query_map": L, "object_map": R}
        self._replace_state(state | {name: np.array(one, order="C") for name, one in maps.items() if one is not None})

    def _check_params(self) -> tuple[int, float | None]:
        """Check all parameters; return the maximal number of components, and alpha unless it is "auto"."""
        checks.check_choice(self.method, "method", (*_CANDIDATES, "cosine"))
        checks.check_flag(self.verbose, "verbose")
        n_components, alpha = _MAX_COMPONENTS, None
        if isinstance(self.n_components, str):
            checks.check_choice(self.n_components, "n_components", ("auto",))
        else:
            n_components = checks.check_integer(self.n_components, "n_components", at_least=1)
        if isinstance(self.alpha, str):
            checks.check_choice(self.alpha, "alpha", ("auto",))
        else:
            alpha = checks.check_number(self.alpha, "alpha", above=0)
        return n_components, alpha

    # -- results ------------------------------------------------------------------------------------------

    @property
    @reads
    def components_(self) -> Array:
        """The map of the queries, of shape (n_components, n_features): a copy."""
        check_is_fitted(self)
        L = self._query_map
        return np.eye(self.n_features_in_) if L is None else L.T.copy()

    @property
    @reads
    def object_components_(self) -> Array:
        """The map of the objects, of shape (n_components, n_object_features): a copy."""
        check_is_fitted(self)
        R = self._object_map
        return np.eye(self.n_object_features_in_) if R is None else R.T.copy()

    @property
    @reads
    def method_(self) -> str:
        """The fitted method."""
        check_is_fitted(self)
        return _FITTED_METHODS[int(self._state["method"][0])]

    @property
    @reads
    def validation_scores_(self) -> dict[str, float]:
        """Score of each method that was compared on validation rows; larger is better."""
        check_is_fitted(self)
        scores = zip(_FITTED_METHODS, self._state["scores"].tolist(), strict=True)
        return {name: score for name, score in scores if not np.isnan(score)}

    @reads
    def explain_pair(self, q: MatrixLike, p: MatrixLike) -> Contributions:
        """Return the contribution of every pair of non-zero features to the score of q and p."""
        (i, left), (j, right) = (nonzero_values(row) for row in self._check_pair(q, p))
        L, R, power = self._query_map, self._object_map, float(self._state["power"][0])
        if L is None or R is None:
            norms, cells = np.array([np.linalg.norm(left), np.linalg.norm(right)]), np.equal.outer(i, j).astype(float)
        else:
            norms, cells = np.array([np.linalg.norm(left @ L[i]), np.linalg.norm(right @ R[j])]), L[i] @ R[j].T
        norms = norms**power
        scale = 1 / float(np.prod(norms)) if norms.all() else 0.0
        return Contributions(i, j, np.asarray(cells * scale) * np.outer(left, right), None)

    # -- hooks of the base class --------------------------------------------------------------------------

    @property
    def _query_map(self) -> Array | None:
        return self._state.get("query_map")

    @property
    def _object_map(self) -> Array | None:
        return self._state.get("object_map", self._query_map)

    def _shapes_in_file(self, state: dict[str, Array], m: int, n: int) -> dict[str, tuple[int, ...]]:
        shapes: dict[str, tuple[int, ...]] = {"method": (1,), "power": (1,), "scores": (len(_FITTED_METHODS),)}
        for name, width in (("query_map", m), ("object_map", n)):
            if name in state:
                shapes[name] = width, *state["query_map"].shape[-1:]
        return shapes

    def _check_state(self, state: dict[str, Array], m: int, n: int) -> None:
        super()._check_state(state, m, n)
        self._check_params()
        if m != n and "object_map" not in state:
            raise ValueError(f"the model has {m} query and {n} object features, but one map for both")
        self._check_values(state)

    def _check_values(self, state: dict[str, Array]) -> None:
        check_integers(state["method"], "method", 0, len(_FITTED_METHODS) - 1)
        for name in ("query_map", "object_map"):
            if name in state:
                check_map(state[name], name)
        power, scores = state["power"], state["scores"]
        if power.dtype != FLOAT64 or power[0] not in _POWERS:
            raise ValueError(f"power of the model is {power[0]}, expected one of {', '.join(map(str, _POWERS))}")
        if scores.dtype != FLOAT64 or not (np.isnan(scores) | ((scores >= 0) & (scores <= 1))).all():
            raise ValueError(f"scores of the model are {scores.tolist()}, expected numbers from 0 to 1, or NaN")

    def _map_queries(self, Q: Matrix) -> Matrix:
        return self._mapped(Q, self._query_map)

    def _map_objects(self, P: Matrix) -> Matrix:
        return self._mapped(P, self._object_map)

    def _mapped(self, X: Matrix, L: Array | None) -> Matrix:
        if L is None:
            return unit_rows(as_float(X, "X"))
        rows, power = product(X, L), float(self._state["power"][0])
        if not power:
            return rows
        norms = np.linalg.norm(rows, axis=1, keepdims=True) ** power
        return np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)

    def _scores(self, Q: Matrix, P: Matrix) -> Array:
        left = self._map_queries(Q)
        right = left if P is Q and "object_map" not in self._state else self._map_objects(P)
        scores = left @ right.T
        return np.asarray(scores.toarray() if sparse.issparse(scores) else scores)

    def _pair_scores(self, Q: Matrix, P: Matrix, numbers: NDArray[np.int64]) -> Array:
        rows = read_both(Q, P, numbers)
        self._check_square(max(rows.query_square, rows.object_square))
        out = np.empty(len(numbers))
        for chunk in chunks(len(numbers), _PAIRS_PER_CHUNK):
            query, *objects = numbers[chunk].T
            left = self._map_queries(Q[query])
            scores = [row_products(left, self._map_objects(P[one])) for one in objects]
            out[chunk] = scores[0] - (scores[1] if len(scores) > 1 else 0.0)
        return out

    def _check_square(self, square: float) -> None:
        for name in ("query_map", "object_map"):
            _check_square(square, self._state.get(name, np.empty(0)))

    @property
    def _n_features_out(self) -> int:
        L = self._query_map
        return int(self.n_features_in_) if L is None else L.shape[1]


def project(model: Any, n_components: int | None, symmetric: bool) -> TripletEmbedding:
    """Return the embedding of a fitted bilinear learner that its method `project` describes."""
    check_is_fitted(model)
    most = None if n_components is None else checks.check_integer(n_components, "n_components", at_least=1)
    m, n = model.n_features_in_, model.n_object_features_in_
    if checks.check_flag(symmetric, "symmetric") and m != n:
        raise ValueError(f"symmetric=True needs as many query as object features, got {m} and {n}; use symmetric=False")
    L, R = (psd_factor(model.W_, most), None) if symmetric else singular_factors(model.W_, most)
    embedding = TripletEmbedding(n_components="auto" if most is None else most)
    embedding._set_maps("projection", L, R, 0.0, {}, m)
    for name in ("feature_names_in_", "_fingerprints"):
        if name in model.__dict__:
            setattr(embedding, name, model.__dict__[name])
    return embedding


def _fit_linear(
    training: TripletData,
    method: str,
    n_components: int,
    alpha: float | None,
    generator: np.random.Generator,
    verbose: bool,
) -> _Fitted:
    """Fit the candidates of a method, refine the best one on validation rows, and compare it with the cosine."""
    validation = ValidationSet.of(training.scaled())
    if method == "auto" and validation is None:
        return _Fitted("cosine", None, {})
    found = {name: maps for name in _CANDIDATES[method] if (maps := _LINEAR[name](training, n_components, alpha))}
    if not found and method != "auto":
        raise NoSignalError(
            f"no signal above the noise level in {len(training.triplets)} informative triplets over "
            f"{len(training.graph.query_rows)} queries for method={method!r}; use more triplets per query, "
            "method='auto' or MomentAROMA"
        )
    log_ranks: dict[str, Array] = {}
    if validation is not None and all(L_train is not None for _, L_train in found.values()):
        for name, (_, L_train) in found.items():
            log_ranks[name] = validation.log_ranks(np.asarray(L_train, dtype=np.float32), _POWER)
    if not found or (method == "auto" and not log_ranks):
        return _Fitted("cosine", None, {})
    name = min(found, key=lambda one: log_ranks[one].mean() if log_ranks else 0.0)
    refined = refine(*found[name], training, _POWER, generator, verbose=verbose)
    if refined.log_ranks is not None:
        log_ranks[name] = refined.log_ranks
    if method == "auto" and validation is not None:
        log_ranks["cosine"] = validation.log_ranks(None, 1.0)
        gains = log_ranks["cosine"] - log_ranks[name]
        error = gains.std() / np.sqrt(max(1, len(gains) - 1))
        if len(gains) < _MIN_QUERIES or not gains.mean() > _N_ERRORS * error:
            name = "cosine"
    scores = {one: float(np.exp(-ranks.mean())) for one, ranks in log_ranks.items()}
    return _Fitted(name, None if name == "cosine" else refined.L, scores)


def _check_square(square: float, L: Array) -> None:
    """Raise for rows so large that their scores could overflow."""
    if square * max(1.0, float(np.vdot(L, L))) > LARGEST[FLOAT64]:
        raise ValueError(f"a row has |x|^2 = {square:.1e}, too large for a model in float64")

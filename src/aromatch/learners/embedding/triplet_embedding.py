"""TripletEmbedding: maps of queries and objects to vectors whose inner products rank as triplets do (beyond the paper).

The maps have one or two parts, which are concatenated, so that their scores add up::

    linear      u = L'q / |L'q|^0.7,  v = L'p / |L'p|^0.7
    groups      u = P(q),             v = P(p)
    blend       u = [L'q / |L'q|, w^0.5 P(q)],  and so for v

With a linear map L, the power .7 is between the inner product, which prefers typical rows because L maps them far out,
and the cosine. With groups, P(x) are the probabilities of the groups of a row (`groups`), so that the score is the
probability that query and object belong to one group. The weight w of a blend is chosen on validation rows.

`choice` fits the methods and compares them on the same validation rows, one in eight (`training_set`).
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from ..._utils import checks
from ..._utils.chunks import chunks
from ..._utils.indices import read_both
from ..._utils.rows import Matrix, MatrixLike, as_float, as_matrix, feature_names, unit_rows
from ..._utils.sharing import drafts, reads
from ...triplets import from_labels
from ..base import Similarity
from ..baselines.cosine import row_products
from ..contributions import Contributions, nonzero_values
from ..inputs import FLOAT64, LARGEST, product, read_triplets
from ..invariants import check_integers, check_map
from .choice import COSINE, METHODS, POWER, WEIGHTS, Fitted, choose
from .groups import group_probabilities
from .projection import over_power, psd_factor, singular_factors
from .training_set import TripletData

Array = NDArray[Any]
# Values of `method_`; files store the index, so the order is fixed.
_FITTED_METHODS = ("cosine", "moment", "spectral", "projection", "groups", "blend")
# Powers of norms that rows are divided by after a linear map, those of projections and cosines included.
_POWERS = 0.0, POWER, 1.0
_MAX_COMPONENTS = 128
# Triplets that `fit` samples: per row, at least and at most.
_PER_ROW, _MIN_TRIPLETS, _MAX_TRIPLETS = 20, 10_000, 1_000_000
_PAIRS_PER_CHUNK = 2**12


class TripletEmbedding(Similarity):
    """Embedding learned from all triplets jointly: vectors whose inner products are the similarity.

    For triplets of one collection, or of queries and objects with the same features. Fitting takes seconds; the more
    triplets share rows, the better the result. There are no standard deviations and no further training.

    Parameters
    ----------
    method : {"auto", "linear", "moment", "spectral", "groups", "blend", "cosine"}, default "auto"
        - "moment": the positive semi-definite part of W of a `MomentAROMA`, refined;
        - "spectral": regression on the components of the graph of the triplets, refined;
        - "linear": the better of the two on validation rows;
        - "groups": groups of rows that belong together, found from the triplets and recognised by their features. For
          relevance that is an equivalence, such as labels, intents or topics, it is the best method, and robust to
          wrong triplets;
        - "blend": "linear" and "groups" together;
        - "cosine": the cosine of the rows, nothing is learned;
        - "auto": "linear" if it ranks validation rows better than the cosine, otherwise "cosine".
    n_components : int or "auto", default "auto"
        Dimensions of the embedding, at most; "auto" is 128.
    alpha : float or "auto", default "auto"
        Regularization strength of the linear map, in units of the mean square of a feature. "auto" chooses it on
        validation rows.
    random_state : None, int, Generator or RandomState, default None
        Random seed of the sampling of triplets, in `fit` and in the refinement.
    verbose : bool, default False
        Show a progress bar on a terminal.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The linear map; the identity for the cosine, and for groups, which have none.
    object_components_ : array of shape (n_components, n_object_features)
        The map of the objects: `components_` unless `project` with ``symmetric=False`` made the embedding.
    method_ : str
        The fitted method: "cosine", "moment", "spectral", "groups", "blend", or "projection" for embeddings made by
        `project`.
    n_groups_ : int
        Number of groups; 0 for methods without groups.
    noise_ : float
        Estimated share of triplets in the wrong order; NaN for methods without groups.
    blend_weight_ : float
        Weight of the probability of one group against the cosine of the linear map; NaN unless the method is "blend".
    validation_scores_ : dict
        Score of each method that was compared: the geometric mean of one over the ranks of validation objects that
        match a validation query, 1 if they all come first. The score of the linear method in use is that after its
        refinement. Empty without validation rows.

    References
    ----------
    Cai, He and Han, Spectral Regression for Efficient Regularized Subspace Learning, ICCV 2007.
    Goldberger, Roweis, Hinton and Salakhutdinov, Neighbourhood Components Analysis, NIPS 2004.
    Blondel, Guillaume, Lambiotte and Lefebvre, Fast Unfolding of Communities in Large Networks, 2008.

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
            "moment" and "linear" at least one triplet with a weight, a query and two different objects, "groups" and
            "blend" a community of five rows. "auto" and "cosine" do not raise it.
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
            fitted = COSINE
        else:
            training = TripletData.read(triplets, Q, P, sample_weight)
            _check_square(training.largest_square, np.empty(0))
            fitted = choose(training, self.method, n_components, alpha, generator, self.verbose)
        self._set_maps(fitted, None, Q.shape[1])

    def _set_maps(self, fitted: Fitted, R: Array | None, width: int) -> None:
        """Replace the state; R is the map of the objects if it is not that of the queries."""
        self._reset_fit_attributes()
        self.n_features_in_, self.n_object_features_in_ = width, width if R is None else len(R)
        state = {
            "method": np.array([_FITTED_METHODS.index(fitted.method)]),
            "power": np.array([fitted.power]),
            "scores": np.array([fitted.scores.get(name, np.nan) for name in _FITTED_METHODS]),
            "weight": np.array([fitted.weight]),
            "noise": np.array([fitted.noise]),
        }
        maps = {"query_map": fitted.L, "object_map": R, "recogniser": fitted.recogniser}
        floats = {name: np.array(one, dtype=FLOAT64, order="C") for name, one in maps.items() if one is not None}
        self._replace_state(state | floats)

    def _check_params(self) -> tuple[int, float | None]:
        """Check all parameters; return the maximal number of components, and alpha unless it is "auto"."""
        checks.check_choice(self.method, "method", METHODS)
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
    def n_groups_(self) -> int:
        """Number of groups."""
        check_is_fitted(self)
        return 0 if self._recogniser is None else self._recogniser.shape[1]

    @property
    @reads
    def noise_(self) -> float:
        """Estimated share of triplets in the wrong order."""
        check_is_fitted(self)
        return float(self._state["noise"][0])

    @property
    @reads
    def blend_weight_(self) -> float:
        """Weight of the groups in the score of a blend."""
        check_is_fitted(self)
        return float(self._state["weight"][0]) if self.method_ == "blend" else np.nan

    @reads
    def predict_groups(self, X: MatrixLike) -> Array:
        """Return the probability of each group for each row, of shape (n_rows, n_groups); zeros for rows of zeros."""
        X = self._check_rows(X)
        if self._recogniser is None:
            raise ValueError(
                f"predict_groups needs method 'groups' or 'blend', but the fitted method is {self.method_!r}"
            )
        return group_probabilities(unit_rows(as_float(X, "X")), self._recogniser)

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
        if self._recogniser is not None:
            raise ValueError(f"explain_pair needs a linear map, but the fitted method is {self.method_!r}")
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
    def _recogniser(self) -> Array | None:
        return self._state.get("recogniser")

    @property
    def _object_map(self) -> Array | None:
        return self._state.get("object_map", self._query_map)

    def _shapes_in_file(self, state: dict[str, Array], m: int, n: int) -> dict[str, tuple[int, ...]]:
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("method", "power", "weight", "noise"), (1,))
        shapes["scores"] = (len(_FITTED_METHODS),)
        for name, width in (("query_map", m), ("object_map", n)):
            if name in state:
                shapes[name] = width, *state["query_map"].shape[-1:]
        if "recogniser" in state:
            shapes["recogniser"] = m + 1, *state["recogniser"].shape[-1:]
        return shapes

    def _check_state(self, state: dict[str, Array], m: int, n: int) -> None:
        super()._check_state(state, m, n)
        self._check_params()
        if m != n and "object_map" not in state:
            raise ValueError(f"the model has {m} query and {n} object features, but one map for both")
        self._check_values(state)

    def _check_values(self, state: dict[str, Array]) -> None:
        check_integers(state["method"], "method", 0, len(_FITTED_METHODS) - 1)
        method = _FITTED_METHODS[int(state["method"][0])]
        expected = {"recogniser": method in ("groups", "blend"), "query_map": method not in ("groups", "cosine")}
        for name, is_expected in expected.items():
            if (name in state) != is_expected:
                raise ValueError(f"{name} of the model must be {'there' if is_expected else 'absent'} for {method!r}")
        for name in ("query_map", "object_map", "recogniser"):
            if name in state:
                check_map(state[name], name)
        for name, valid in (("power", _POWERS), ("weight", WEIGHTS)):
            if state[name].dtype != FLOAT64 or state[name][0] not in valid:
                raise ValueError(
                    f"{name} of the model is {state[name][0]}, expected one of {', '.join(map(str, valid))}"
                )
        for name, most in (("scores", 1.0), ("noise", 0.5)):
            values = state[name]
            if values.dtype != FLOAT64 or not (np.isnan(values) | ((values >= 0) & (values <= most))).all():
                raise ValueError(f"{name} of the model is {values.tolist()}, expected numbers from 0 to {most}, or NaN")

    def _map_queries(self, Q: Matrix) -> Matrix:
        return self._mapped(Q, self._query_map)

    def _map_objects(self, P: Matrix) -> Matrix:
        return self._mapped(P, self._object_map)

    def _mapped(self, X: Matrix, L: Array | None) -> Matrix:
        if self._recogniser is None:
            return self._linearly_mapped(X, L)
        groups = group_probabilities(unit_rows(as_float(X, "X")), self._recogniser)
        if self.method_ == "groups":
            return groups
        return np.hstack([self._linearly_mapped(X, L), np.sqrt(self._state["weight"][0]) * groups])

    def _linearly_mapped(self, X: Matrix, L: Array | None) -> Any:
        if L is None:
            return unit_rows(as_float(X, "X"))
        return over_power(product(X, L), float(self._state["power"][0]))

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
        L, recogniser = self._query_map, self._recogniser
        n_linear = 0 if self.method_ == "groups" else self.n_features_in_ if L is None else L.shape[1]
        return int(n_linear + (0 if recogniser is None else recogniser.shape[1]))


def project(model: Any, n_components: int | None, symmetric: bool) -> TripletEmbedding:
    """Return the embedding of a fitted bilinear learner that its method `project` describes."""
    check_is_fitted(model)
    most = None if n_components is None else checks.check_integer(n_components, "n_components", at_least=1)
    m, n = model.n_features_in_, model.n_object_features_in_
    if checks.check_flag(symmetric, "symmetric") and m != n:
        raise ValueError(f"symmetric=True needs as many query as object features, got {m} and {n}; use symmetric=False")
    L, R = (psd_factor(model.W_, most), None) if symmetric else singular_factors(model.W_, most)
    embedding = TripletEmbedding(n_components="auto" if most is None else most)
    embedding._set_maps(Fitted("projection", L, 0.0), R, m)
    for name in ("feature_names_in_", "_fingerprints"):
        if name in model.__dict__:
            setattr(embedding, name, model.__dict__[name])
    return embedding


def _check_square(square: float, L: Array) -> None:
    """Raise for rows so large that their scores could overflow."""
    if square * max(1.0, float(np.vdot(L, L))) > LARGEST[FLOAT64]:
        raise ValueError(f"a row has |x|^2 = {square:.1e}, too large for a model in float64")

"""Similarity: the base class of every model, with its maps, scores, calibration and files."""

from __future__ import annotations

import copy
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._utils.checks import as_array
from .._utils.indices import check_pairs, check_triplets
from .._utils.rows import Matrix, MatrixLike, ReadRows, as_float, as_matrix, feature_names, read_all
from .._utils.sharing import Shared, drafts, reads
from .._utils.versions import new_version
from ..evaluation.retrieval import evaluate_retrieval
from ..io.container import write_model
from .calibration import Calibration, Curve
from .files import Parts, to_parts
from .fingerprint import Fingerprint, check_fingerprint, check_same
from .inputs import LARGEST_SQUARE_IN_FIT, check_class_labels, check_labelled_rows, check_rows, check_width

# Attributes that the next fit drops.
FIT_ATTRIBUTES = "_fingerprints", "_calibration"


class Similarity(Shared, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base class of models that score pairs of a query and an object.

    A subclass defines the maps `_map_queries` and `_map_objects`, `metric_`, `_scores` (all queries with all objects),
    `_pair_scores` (pairs or triplets of row indices) and, for files, `_shapes`.
    """

    metric_: ClassVar[str] = "dot"
    """How mapped queries u and objects v are compared: "dot" for ``u.v``, "euclidean" for ``-|u - v|^2``."""

    _state: dict[str, NDArray[Any]]
    _needs_labels: ClassVar[bool] = True
    _is_stateless: ClassVar[bool] = False
    """Whether the model learns nothing and needs no `fit`."""

    # -- hooks --------------------------------------------------------------------------------------------

    def _shapes(self, m: int, n: int) -> dict[str, tuple[int, ...]]:
        """Return the name and shape of every array of the state, for m query and n object features."""
        return {}

    def _map_queries(self, Q: Matrix) -> Matrix:
        """Return the image of the queries, without any check."""
        raise NotImplementedError

    def _map_objects(self, P: Matrix) -> Matrix:
        """Return the image of the objects, without any check; by default they stay as they are."""
        return P

    def _scores(self, Q: Matrix, P: Matrix) -> NDArray[Any]:
        raise NotImplementedError

    def _pair_scores(self, Q: Matrix, P: Matrix, numbers: NDArray[np.int64]) -> NDArray[Any]:
        """Return scores for rows (query, object), or margins for rows (query, preferred, other)."""
        raise NotImplementedError

    # -- maps ---------------------------------------------------------------------------------------------

    @reads
    def transform(self, Q: MatrixLike) -> Matrix:
        """Map queries to the space in which `metric_` compares them with mapped objects.

        The scores of ``transform(Q)`` and ``transform_objects(P)`` under `metric_` are ``similarity(Q, P)``.
        """
        return self._map_queries(self._check_rows(Q))

    @reads
    def transform_objects(self, P: MatrixLike) -> Matrix:
        """Map objects to the space in which `metric_` compares them with mapped queries.

        A model that leaves objects as they are returns its argument. `set_output` has no effect here.
        """
        self._check_is_fitted()
        self._check_names(P, "P", self._object_names())
        matrix = as_matrix(P, "P")
        self._check_width(matrix, "P", "n_object_features_in_")
        self._check_square(read_all(matrix, "P").largest_square)
        return self._map_objects(matrix)

    @property
    @reads
    def object_map_version_(self) -> int:
        """Number that changes whenever `transform_objects` returns something else for the same objects."""
        self._check_is_fitted()
        return int(self.__dict__.get("_object_map_version", 0))

    def _check_values(self, state: dict[str, NDArray[Any]]) -> None:
        """Check the values of a state of valid shapes, learned or from a file."""

    def _replace_state(self, state: dict[str, NDArray[Any]]) -> None:
        """Set the state of a model that maps objects."""
        self._check_values(state)
        self._state = state
        self._object_map_version = new_version()

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Return the names of the mapped features: the class name and a number."""
        given = None if input_features is None else as_array(input_features, "input_features")
        return np.asarray(super().get_feature_names_out(given))

    # -- scores -------------------------------------------------------------------------------------------

    @reads
    def similarity(self, Q: MatrixLike, P: MatrixLike | None = None) -> NDArray[Any]:
        """Return the score of every query with every object.

        Parameters
        ----------
        Q : array or CSR matrix of shape (n_queries, m)
        P : array or CSR matrix of shape (n_objects, n), default Q

        Returns
        -------
        array of shape (n_queries, n_objects)
        """
        Q, P = self._check_both(Q, P)
        square = read_all(Q, "Q").largest_square
        self._check_square(square if P is Q else max(square, read_all(P, "P").largest_square))
        return self._scores(Q, P)

    @reads
    def pair_score(self, Q: MatrixLike, P: MatrixLike | None = None, pairs: ArrayLike | None = None) -> NDArray[Any]:
        """Return the scores of row i of Q with row i of P, or of the rows in `pairs`.

        Parameters
        ----------
        Q : array or CSR matrix of shape (n_queries, m)
        P : array or CSR matrix of shape (n_objects, n), default Q
        pairs : integer array of shape (N, 2), rows of Q and of P

        Returns
        -------
        array of shape (N,)
        """
        Q, P = self._check_both(Q, P)
        return self._pair_scores(Q, P, check_pairs(pairs, Q, P))

    @reads
    def margins(self, triplets: ArrayLike, Q: MatrixLike, P: MatrixLike | None = None) -> NDArray[Any]:
        """Return the score of the preferred object minus that of the other, for every triplet of row indices."""
        Q, P = self._check_both(Q, P)
        return self._pair_scores(Q, P, check_triplets(triplets, Q, P))

    @reads
    def triplet_accuracy(self, triplets: ArrayLike, Q: MatrixLike, P: MatrixLike | None = None) -> float:
        """Return the share of triplets in the right order; a tie counts as wrong."""
        margins = self.margins(triplets, Q, P)
        if not len(margins):
            raise ValueError("triplets is empty, expected at least one triplet")
        return float(np.mean(margins > 0))

    @reads
    def score(self, X: MatrixLike, y: ArrayLike) -> float:
        """Return the mean average precision of leave-one-out retrieval of the rows with the same label."""
        X = self._check_rows(X)
        return evaluate_retrieval(self, X, y).mean_average_precision

    # -- fingerprint of the embedding ------------------------------------------------------------------------

    @drafts
    def set_fingerprint(self, queries: Fingerprint, objects: Fingerprint | None = None) -> Self:
        """Record the fingerprint of the embedding that the model was fitted on; it is saved with the model.

        Parameters
        ----------
        queries : Fingerprint
        objects : Fingerprint, optional
            If objects have another embedding than queries.
        """
        self._check_is_fitted()
        both = queries, queries if objects is None else objects
        for given, name, attribute in zip(
            both, ("queries", "objects"), ("n_features_in_", "n_object_features_in_"), strict=True
        ):
            check_fingerprint(given, name)
            width = getattr(self, attribute, given.dimension)  # a stateless model that was not fitted accepts any
            if given.dimension != width:
                raise ValueError(f"{name} has {given.dimension} dimensions, but the model was fitted on {width}")
        self._fingerprints = both
        return self

    @property
    @reads
    def fingerprints_(self) -> tuple[Fingerprint, Fingerprint] | None:
        """Fingerprints of the embeddings of queries and objects; None if they were not set."""
        self._check_is_fitted()
        return self.__dict__.get("_fingerprints")

    @reads
    def check_fingerprint(self, queries: Fingerprint, objects: Fingerprint | None = None) -> None:
        """Raise a ValueError unless the embedding is the one that the model was fitted on."""
        fitted = self.fingerprints_
        if fitted is None:
            raise ValueError("the model has no fingerprint to compare with; call `set_fingerprint` first")
        given = check_fingerprint(queries, "queries"), queries
        if objects is not None:
            given = queries, check_fingerprint(objects, "objects")
        names = ("", "") if fitted[0] == fitted[1] and given[0] == given[1] else (" (queries)", " (objects)")
        for mine, theirs, what in zip(fitted, given, names, strict=True):
            check_same(mine, theirs, what)

    # -- calibration --------------------------------------------------------------------------------------

    @drafts
    def calibrate(self, triplets: ArrayLike, Q: MatrixLike, P: MatrixLike | None = None) -> Self:
        """Record predictions of validation triplets and their outcomes, for `preference_proba`.

        W does not change. `learn_one` records every triplet before it learns it, and a stream of batches can do the
        same: ``model.calibrate(batch, Q, P).partial_fit_triplets(batch, Q, P)``. The last 8,192 predictions are kept,
        and those count that were made after about as much training as the last. Use rows as new to the model as those
        in use later, and recalibrate after further training.

        Parameters
        ----------
        triplets : integer array of shape (N, 3)
            Row of the query in Q, row of the preferred object in P, row of the other object in P.
        Q : array or CSR matrix of shape (n_queries, m)
        P : array or CSR matrix of shape (n_objects, n), default Q
        """
        margins = self.margins(triplets, Q, P)
        if len(margins):
            found: Calibration = self.__dict__.get("_calibration") or Calibration()
            self._calibration = found.added(margins / self._unit_of_margins, self._learned_so_far)
        return self

    @property
    @reads
    def calibration_(self) -> Curve:
        """The curve that turns margins into probabilities, and what it was made from.

        Margins of a `MomentAROMA` that chooses alpha are in units of about their root mean square.
        """
        self._check_is_fitted()
        found: Calibration = self.__dict__.get("_calibration") or Calibration()
        return found.curve()

    @reads
    def preference_proba(self, triplets: ArrayLike, Q: MatrixLike, P: MatrixLike | None = None) -> NDArray[Any]:
        """Return the calibrated probability that the first object of each triplet is preferred to the second.

        The probability is a function of the margin, fitted to the outcomes of earlier predictions: about 80 % of the
        preferences with probability 0.8 hold. It needs at least 64 predictions of `learn_one` or `calibrate`.

        Examples
        --------
        >>> import aromatch as am
        >>> from sklearn.datasets import load_digits
        >>> X, y = load_digits(return_X_y=True)
        >>> X = X / 16
        >>> triplets = am.triplets.from_labels(y, 3_000, random_state=0, y_objects=y[:900])
        >>> is_validation = triplets[:, 0] >= 900  # by query
        >>> model = am.DiagonalAROMA(10.0).fit_triplets(triplets[~is_validation], X)
        >>> validation = triplets[is_validation]
        >>> model.calibrate(validation[:700], X).preference_proba(validation[700:705], X).round(2)
        array([0.96, 0.98, 0.88, 0.88, 0.98])
        """
        return self.calibration_.probabilities(self.margins(triplets, Q, P) / self._unit_of_margins)

    @property
    def _unit_of_margins(self) -> float:
        """Unit of the margins in the calibration, for models whose scale changes."""
        return 1.0

    @property
    def _learned_so_far(self) -> float:
        """Amount of training so far, in any unit of the model."""
        return 0.0

    def _reset_fit_attributes(self) -> None:
        """Drop the fingerprint and the calibration of an earlier fit."""
        for name in FIT_ATTRIBUTES:
            self.__dict__.pop(name, None)

    # -- copies and files ---------------------------------------------------------------------------------

    @reads
    def copy(self) -> Self:
        """Return an independent copy, which does not change when this model learns on."""
        return copy.deepcopy(self)

    @reads
    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a file that `aromatch.load` reads without running any code from it.

        Learning resumes after `load` with a bit-identical result. A `random_state` that is a generator cannot be
        saved and raises a TypeError.
        """
        write_model(path, *self._to_parts())

    def _to_parts(self) -> Parts:
        """Return the header and the arrays of `save`."""
        self._check_is_fitted()
        state = self._to_file()
        self._check_state(state, *(getattr(self, name, 0) for name in ("n_features_in_", "n_object_features_in_")))
        return to_parts(self, state)

    @drafts
    def set_params(self, **params: Any) -> Self:
        """Set parameters by name: all of them, or none if a name is invalid."""
        super().set_params(**params)
        return self

    # -- shared by the subclasses -------------------------------------------------------------------------

    def _check_is_fitted(self) -> None:
        check_is_fitted(self)

    def __sklearn_is_fitted__(self) -> bool:
        return self._is_stateless or hasattr(self, "_state")

    def _record_features(self, X: MatrixLike) -> Self:
        """Fit a model that learns nothing."""
        X = check_rows(self, X, reset=True)
        self._check_square(read_all(X, "X").largest_square)
        self.n_object_features_in_ = X.shape[1]
        self._reset_fit_attributes()
        self._state = {}
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = self._needs_labels
        tags.requires_fit = not self._is_stateless
        return tags

    def _check_state(self, state: dict[str, NDArray[Any]], m: int, n: int) -> None:
        """Check that arrays from a file are a state of this learner with its parameters."""
        shapes, expected = {name: array.shape for name, array in state.items()}, self._shapes_in_file(state, m, n)
        if shapes != expected:
            raise ValueError(f"the arrays of the model are {shapes}, expected {expected}")

    def _shapes_in_file(self, state: dict[str, NDArray[Any]], m: int, n: int) -> dict[str, tuple[int, ...]]:
        return self._shapes(m, n)

    def _to_file(self) -> dict[str, NDArray[Any]]:
        """Return the state in the form of a file, which does not depend on the memory layout."""
        return self._state if hasattr(self, "_state") else {}

    def _from_file(self, state: dict[str, NDArray[Any]], n: int) -> dict[str, NDArray[Any]]:
        """Return the state from the arrays of a file, which have been checked."""
        return state

    @property
    def _n_features_out(self) -> int:
        return int(self.n_object_features_in_)

    def _check_rows(self, X: MatrixLike) -> Matrix:
        """Check the rows of a method of scikit-learn, with its messages."""
        self._check_is_fitted()
        # A stateless model that was not fitted has no names to compare with.
        X = check_rows(self, X, is_recorded=hasattr(self, "n_features_in_"))
        self._check_square(read_all(X, "X").largest_square)
        return X

    def _check_labelled(self, X: MatrixLike, y: ArrayLike) -> tuple[Matrix, NDArray[Any]]:
        """Check the arguments of `fit` of a baseline: rows, converted to float64, and labels of classes."""
        X, rows, y = self._read_labelled(X, y, np.float64)
        check_class_labels(y, "y")
        if (square := rows.largest_square) > LARGEST_SQUARE_IN_FIT:
            raise ValueError(
                f"X has a row with |x|^2 = {square:.1e}, over {LARGEST_SQUARE_IN_FIT:.0e}, too large to learn from"
            )
        self.n_object_features_in_ = X.shape[1]
        self._reset_fit_attributes()
        return X, y

    def _read_labelled(self, X: MatrixLike, y: ArrayLike, dtype: Any) -> tuple[Matrix, ReadRows, NDArray[Any]]:
        """Check and read the arguments of `fit`: at least two rows, and their labels."""
        X, y = check_labelled_rows(self, X, y, dtype=dtype)
        if X.shape[0] < 2:
            raise ValueError(f"X must have at least two rows to compare, got n_samples = {X.shape[0]}")
        return X, read_all(X, "X"), y

    def _check_both(self, Q: Any, P: Any) -> tuple[Matrix, Matrix]:
        self._check_is_fitted()
        Q_matrix, P_matrix = self._check_matrices(Q, P)
        self._check_width(Q_matrix, "Q", "n_features_in_")
        self._check_width(P_matrix, "Q (as P, which is None)" if P is None else "P", "n_object_features_in_")
        if self._is_stateless and Q_matrix.shape[1] != P_matrix.shape[1]:
            raise ValueError(f"Q has {Q_matrix.shape[1]} features and P has {P_matrix.shape[1]}, expected as many")
        return Q_matrix, P_matrix

    def _check_pair(self, q: Any, p: Any) -> tuple[Matrix, Matrix]:
        """Check the arguments of `explain_pair`: a query and an object, each a matrix with one row."""
        rows = self._check_both(q, p)
        for row, name in zip(rows, "qp", strict=True):
            if row.shape[0] != 1:
                raise ValueError(f"{name} must be a matrix with one row, got shape {row.shape}")
            self._check_square(read_all(row, name).largest_square)
        return as_float(rows[0], "q"), as_float(rows[1], "p")

    def _check_width(self, X: Matrix, name: str, attribute: str) -> None:
        """Check the number of features; a stateless model that was not fitted accepts any."""
        if not self._is_stateless or hasattr(self, attribute):
            check_width(X, name, getattr(self, attribute))

    def _check_matrices(self, Q: Any, P: Any) -> tuple[Matrix, Matrix]:
        """Return Q and P as matrices, the same one if P is None or Q; check the names of their columns."""
        self._check_names(Q, "Q", getattr(self, "feature_names_in_", None))
        P = Q if P is None else P
        self._check_names(P, "P", self._object_names())
        queries = as_matrix(Q, "Q")
        return queries, queries if P is Q else as_matrix(P, "P")

    def _check_names(self, X: Any, name: str, expected: Any) -> None:
        """Refuse a data frame with other columns than the model was fitted on."""
        if expected is not None and (names := feature_names(X)) is not None and names != list(expected):
            fitted = list(expected)
            raise ValueError(f"{name} has the columns {names[:5]}..., but the model was fitted on {fitted[:5]}...")

    def _object_names(self) -> Any:
        """Return the names of the object features: those of the queries if both were the same rows."""
        if self.__dict__.get("_one_space", True):
            return getattr(self, "feature_names_in_", None)
        return getattr(self, "object_feature_names_in_", None)

    def _record_names(self, Q: Any, P: Any) -> None:
        """Keep the names of the columns of data frames."""
        for X, name in ((Q, "feature_names_in_"), (None if P is Q else P, "object_feature_names_in_")):
            if (names := feature_names(X)) is not None:
                setattr(self, name, np.array(names, dtype=object))

    def _check_square(self, square: float) -> None:
        """Refuse rows that are too large for the model's precision."""

"""MetricSimilarity: minus a squared Mahalanobis distance, the base class of the metric baselines.

With a positive semi-definite M and any L with ``M = L L'``::

    similarity(q, p) = -(q - p)'M(q - p) = -|q L - p L|^2

so that Euclidean distances between the rows of ``transform(X) = X @ L`` are the learned ones.
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.validation import check_is_fitted

from ..._utils import checks
from ..._utils.chunks import chunks
from ..._utils.indices import read_both
from ..._utils.rows import Matrix, MatrixLike, as_float64
from ..._utils.sharing import reads
from ..base import Similarity
from ..inputs import FLOAT64, LARGEST, product
from ..invariants import check_integers, check_map

_PAIRS_PER_CHUNK = 2**12


class MetricSimilarity(Similarity):
    """Base class of similarities ``-(q - p)'M(q - p)`` with ``M_ = L L'``; a subclass learns L."""

    metric_: ClassVar[str] = "euclidean"

    @property
    @reads
    def M_(self) -> NDArray[Any]:
        """The matrix of the metric, of shape (m, m): a copy."""
        L = self._array("L")
        return np.asarray(L @ L.T)

    def _array(self, name: str) -> NDArray[Any]:
        check_is_fitted(self)
        return self._state[name].copy()

    def _shapes(self, m: int, n: int) -> dict[str, tuple[int, ...]]:
        return {"L": (m, m)}

    def _map_queries(self, X: Matrix) -> Matrix:
        return product(X, self._state["L"])

    def _map_objects(self, P: Matrix) -> Matrix:
        return self._map_queries(P)

    def _scores(self, Q: Matrix, P: Matrix) -> NDArray[Any]:
        left = self._map_queries(as_float64(Q, "Q"))
        right = left if P is Q else self._map_queries(as_float64(P, "P"))
        return np.asarray(0.0 - euclidean_distances(left, right, squared=True))

    def _pair_scores(self, Q: Matrix, P: Matrix, numbers: NDArray[np.int64]) -> NDArray[Any]:
        rows = read_both(Q, P, numbers)
        self._check_square(max(rows.query_square, rows.object_square))
        scores = -self._squared_distances(Q, P, numbers[:, 0], numbers[:, 1])
        if numbers.shape[1] == 3:
            scores += self._squared_distances(Q, P, numbers[:, 0], numbers[:, 2])
        return scores

    def _squared_distances(
        self, Q: Matrix, P: Matrix, rows: NDArray[np.int64], others: NDArray[np.int64]
    ) -> NDArray[Any]:
        """Return squared distances row by row, in chunks."""
        out = np.empty(len(rows))
        for chunk in chunks(len(rows), _PAIRS_PER_CHUNK):
            out[chunk] = squares(self._map_queries(differences(Q, P, rows[chunk], others[chunk])))
        return out

    def _check_square(self, square: float) -> None:
        L = self._state["L"]
        check_square(square, float(np.vdot(L, L)))

    def _check_state(self, state: dict[str, NDArray[Any]], m: int, n: int) -> None:
        super()._check_state(state, m, n)
        self._check_params()
        if m != n:
            raise ValueError(f"the model has {m} query features and {n} object features, expected as many")
        self._check_values(state)

    def _check_values(self, state: dict[str, NDArray[Any]]) -> None:
        if "L" in state:
            check_map(state["L"], "L")
        for name in ("n_sweeps", "counts"):
            if name in state:
                check_integers(state[name], name)
        if "bounds" in state and not (state["bounds"].dtype == FLOAT64 and _are_positive(state["bounds"])):
            raise ValueError(f"bounds of the model are {state['bounds'].tolist()}, expected two numbers above 0")
        if "objectives" in state and not (state["objectives"].dtype == FLOAT64 and _are_finite(state["objectives"])):
            raise ValueError("objectives of the model must be finite numbers of at least 0 in float64")

    def _check_params(self) -> None:
        """Check all parameters."""

    def _record_rows(self, X: MatrixLike, rows: Matrix) -> None:
        """Record the number of features and their names, as `validate_data` does for `fit`."""
        self._reset_fit_attributes()
        self.__dict__.pop("feature_names_in_", None)
        self._record_names(X, None)
        self.n_features_in_ = self.n_object_features_in_ = rows.shape[1]

    def _check_fits(self, width: int, n_matrices: int = 2) -> None:
        what = f"The metric of {type(self).__name__} for {width} features"
        checks.check_fits_in_memory(n_matrices * width * width * FLOAT64.itemsize, what)


def _are_finite(values: NDArray[Any]) -> bool:
    return bool(((values >= 0) & (values < np.inf)).all())


def _are_positive(values: NDArray[Any]) -> bool:
    return bool(((values > 0) & (values < np.inf)).all())


def check_square(square: float, norm: float) -> None:
    """Refuse rows whose distances under a metric of that squared norm could overflow."""
    if 4 * square * max(1.0, norm) > LARGEST[FLOAT64]:
        raise ValueError(f"a row has |x|^2 = {square:.1e}, too large for a model in float64")


def differences(Q: Matrix, P: Matrix, rows: ArrayLike, others: ArrayLike) -> Matrix:
    """Return ``q - p`` row by row, in float64."""
    return Q[rows].astype(np.float64) - P[others].astype(np.float64)


def squares(X: Matrix) -> NDArray[Any]:
    """Return ``|x|^2`` of every row."""
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X))

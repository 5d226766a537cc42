"""Plain Euclidean distance: the similarity ``-|q - p|^2``, which is a metric with ``M = I``.

On rows of unit norm it ranks exactly as the cosine and the dot product do: ``-|q - p|^2 = 2 q'p - 2``.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.validation import check_is_fitted, validate_data

from .._rows import Matrix, MatrixLike, as_float64, check_structure
from .base import Similarity
from .inputs import read_both

_PAIRS_AT_ONCE = 2**12


class Euclidean(Similarity):
    """The baseline that learns nothing: minus the squared Euclidean distance.

    Attributes
    ----------
    M_ : array of shape (m, m)
        The matrix of the metric, the identity.

    Examples
    --------
    >>> import numpy as np
    >>> from aromatch import Euclidean
    >>> Euclidean().fit(np.eye(2)).similarity(np.eye(2))
    array([[ 0., -2.],
           [-2.,  0.]])
    """

    def fit(self, X: MatrixLike, y: ArrayLike | None = None) -> Self:
        """Note the number of features; there is nothing to learn."""
        with self._unchanged_on_error():
            check_structure(X, "X")
            X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32])
            self.n_object_features_in_ = X.shape[1]
            self._state = {}
        return self

    @property
    def M_(self) -> NDArray[Any]:
        """The matrix of the metric."""
        check_is_fitted(self)
        return np.eye(self.n_features_in_)

    def transform(self, X: MatrixLike) -> Matrix:
        """Give X as it is: ``M = I`` needs no other space."""
        return self._check_rows(X)

    @classmethod
    def _shapes(cls, m: int, n: int) -> dict[str, tuple[int, ...]]:
        return {}

    def _scores(self, Q: Matrix, P: Matrix) -> NDArray[Any]:
        return np.asarray(0.0 - euclidean_distances(as_float64(Q, "Q"), as_float64(P, "P"), squared=True))

    def _pair_scores(self, Q: Matrix, P: Matrix, numbers: NDArray[np.int64]) -> NDArray[Any]:
        read_both(Q, P, numbers)
        scores = -_squared_distances(Q, P, numbers[:, 0], numbers[:, 1])
        if numbers.shape[1] == 3:
            scores += _squared_distances(Q, P, numbers[:, 0], numbers[:, 2])
        return scores


def _squared_distances(Q: Matrix, P: Matrix, rows: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[Any]:
    """``|q - p|^2`` row by row, a few thousand pairs at a time."""
    out = np.empty(len(rows))
    for start in range(0, len(rows), _PAIRS_AT_ONCE):
        piece = slice(start, start + _PAIRS_AT_ONCE)
        difference: Matrix = Q[rows[piece]].astype(np.float64) - P[others[piece]].astype(np.float64)
        if sparse.issparse(difference):
            out[piece] = np.asarray(difference.multiply(difference).sum(axis=1)).ravel()
        else:
            out[piece] = np.einsum("ij,ij->i", np.asarray(difference), np.asarray(difference))
    return out

"""Plain Euclidean distance: the similarity ``-|q - p|^2``, which is a metric with ``M = I``.

On rows of unit norm it ranks exactly as the cosine and the dot product do: ``-|q - p|^2 = 2 q'p - 2``.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from ..._utils.rows import Matrix, MatrixLike, check_structure
from .metric import MetricSimilarity


class Euclidean(MetricSimilarity):
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

    _needs_labels = False

    def fit(self, X: MatrixLike, y: ArrayLike | None = None) -> Self:
        """Note the number of features; there is nothing to learn."""
        with self._unchanged_on_error():
            check_structure(X, "X")
            X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32])
            self.n_object_features_in_ = X.shape[1]
            self._is_another_model()
            self._state = {}
        return self

    @property
    def M_(self) -> NDArray[Any]:
        """The matrix of the metric."""
        check_is_fitted(self)
        return np.eye(self.n_features_in_)

    def _shapes(self, m: int, n: int) -> dict[str, tuple[int, ...]]:
        return {}

    def _map_queries(self, X: Matrix) -> Matrix:
        return X

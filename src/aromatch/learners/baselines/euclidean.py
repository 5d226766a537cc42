"""Euclidean distance: the similarity ``-|q - p|^2``, the metric with ``M = I``.

On rows of unit norm it ranks exactly as the cosine and the dot product do: ``-|q - p|^2 = 2 q'p - 2``.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from ..._utils.rows import Matrix, MatrixLike
from ..._utils.sharing import drafts, reads
from .metric import MetricSimilarity, check_square


class Euclidean(MetricSimilarity):
    """Minus the squared Euclidean distance, a baseline without parameters.

    It is stateless: `fit` is optional and records the number of features only.

    Attributes
    ----------
    M_ : array of shape (m, m)
        The matrix of the metric, the identity; after `fit`, which records m.

    Examples
    --------
    >>> import numpy as np
    >>> from aromatch import Euclidean
    >>> Euclidean().similarity(np.eye(2))
    array([[ 0., -2.],
           [-2.,  0.]])
    """

    _needs_labels = False
    _is_stateless = True

    def __init__(self) -> None:
        pass  # without it, the signature would be that of a compiled base class

    @drafts
    def fit(self, X: MatrixLike, y: ArrayLike | None = None) -> Self:
        """Record the number of features; nothing is learned."""
        return self._record_features(X)

    @property
    @reads
    def M_(self) -> NDArray[Any]:
        """The matrix of the metric."""
        check_is_fitted(self, "n_features_in_")
        return np.eye(self.n_features_in_)

    def _shapes(self, m: int, n: int) -> dict[str, tuple[int, ...]]:
        return {}

    def _check_square(self, square: float) -> None:
        check_square(square, 1.0)

    def _map_queries(self, Q: Matrix) -> Matrix:
        return Q

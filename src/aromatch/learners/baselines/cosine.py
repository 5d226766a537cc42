"""Cosine similarity: the inner product ``q'p / (|q| |p|)`` of rows of unit norm.

The baseline of most vector stores. A row of zeros has the score 0 with every row.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ..._utils.chunks import chunks
from ..._utils.indices import read_both
from ..._utils.rows import Matrix, MatrixLike, as_float, unit_rows
from ..._utils.sharing import drafts
from ..base import Similarity

_PAIRS_PER_CHUNK = 2**12


class Cosine(Similarity):
    """Cosine similarity, a baseline without parameters.

    It is stateless: `fit` is optional and records the number of features only.

    Attributes
    ----------
    n_features_in_ : int
        Number of features, after `fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from aromatch import Cosine
    >>> Cosine().similarity(np.array([[2.0, 0.0]]), np.array([[1.0, 0.0], [3.0, 4.0]]))
    array([[1. , 0.6]])
    """

    _needs_labels = False
    _is_stateless = True

    def __init__(self) -> None:
        pass  # without it, the signature would be that of a compiled base class

    @drafts
    def fit(self, X: MatrixLike, y: ArrayLike | None = None) -> Self:
        """Record the number of features; nothing is learned."""
        return self._record_features(X)

    def _map_queries(self, Q: Matrix) -> Matrix:
        return unit_rows(as_float(Q, "Q"))

    def _map_objects(self, P: Matrix) -> Matrix:
        return unit_rows(as_float(P, "P"))

    def _scores(self, Q: Matrix, P: Matrix) -> NDArray[Any]:
        left = self._map_queries(Q)
        right = left if P is Q else self._map_objects(P)
        scores = left @ right.T
        return np.asarray(scores.toarray() if sparse.issparse(scores) else scores)

    def _pair_scores(self, Q: Matrix, P: Matrix, numbers: NDArray[np.int64]) -> NDArray[Any]:
        read_both(Q, P, numbers)
        out = np.empty(len(numbers), dtype=np.result_type(Q.dtype, P.dtype, np.float32))
        for chunk in chunks(len(numbers), _PAIRS_PER_CHUNK):
            query, *objects = numbers[chunk].T
            left = self._map_queries(Q[query])
            scores = [row_products(left, self._map_objects(P[rows])) for rows in objects]
            out[chunk] = scores[0] if len(scores) == 1 else scores[0] - scores[1]
        return out


def row_products(A: Matrix, B: Matrix) -> NDArray[Any]:
    """Return the inner product of row i of A with row i of B, for every i."""
    if sparse.issparse(A) or sparse.issparse(B):
        product = A.multiply(B) if sparse.issparse(A) else B.multiply(A)
        return np.asarray(product.sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", A, B))

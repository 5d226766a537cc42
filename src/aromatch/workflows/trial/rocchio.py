"""Rocchio's relevance feedback: move a query towards the good objects of the nearest judged query.

Rocchio (1971) adds the mean of the good objects to a query and subtracts the mean of the bad ones. Here a new query
uses the feedback of the judged query with the largest cosine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.extmath import safe_sparse_dot

from ..._utils.chunks import chunks
from ..._utils.rows import Matrix

# Weights of the mean good and of the mean bad object.
_GOOD_WEIGHT, _BAD_WEIGHT = 0.75, 0.15
_QUERIES_IN_CHUNK = 1_000


class Rocchio:
    """Relevance feedback on rows of unit norm.

    Parameters
    ----------
    objects : array or CSR matrix of shape (n_objects, n_features)
        Rows of unit norm, to which feedback refers by row index.
    """

    def __init__(self, objects: Matrix) -> None:
        self._objects = objects
        self._n_judged = 0
        self._queries, self._moves = np.empty((2, 16, objects.shape[1]))

    def judge(self, query: Matrix, good: Any, bad: Any) -> None:
        """Learn which objects are good and bad for a query, a matrix with one row of unit norm."""
        if self._n_judged == len(self._moves):
            self._queries, self._moves = (np.concatenate([one, one]) for one in (self._queries, self._moves))
        move = np.zeros(self._objects.shape[1])
        for weight, rows in ((_GOOD_WEIGHT, good), (-_BAD_WEIGHT, bad)):
            if len(rows):
                move += weight * np.asarray(self._objects[rows].mean(axis=0)).ravel()
        row = query.toarray() if sparse.issparse(query) else np.asarray(query)
        self._queries[self._n_judged], self._moves[self._n_judged] = row[0], move
        self._n_judged += 1

    def click(self, query: Matrix, shown: NDArray[np.int64], clicked: int) -> None:
        """Learn a click; objects shown above it are bad."""
        rank = int(np.flatnonzero(np.asarray(shown) == clicked)[0])
        self.judge(query, shown[rank : rank + 1], shown[:rank])

    def similarity(self, Q: Matrix, P: Matrix) -> NDArray[Any]:
        """Score all rows of Q, moved, with all of P."""
        judged, moves = self._queries[: self._n_judged], self._moves[: self._n_judged]
        parts = []
        for chunk in chunks(Q.shape[0], _QUERIES_IN_CHUNK):
            scores = np.asarray(safe_sparse_dot(Q[chunk], P.T, dense_output=True))
            if self._n_judged:
                nearest = np.asarray(Q[chunk] @ judged.T).argmax(axis=1)
                scores = scores + np.asarray(P @ moves[nearest].T).T
            parts.append(scores)
        return np.concatenate(parts)

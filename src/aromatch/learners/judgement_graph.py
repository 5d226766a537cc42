"""What judgements say together that none says alone: the graph of queries and objects, without its noise.

Triplets that name rows of one collection overlap. Count for each query and object how often the object was preferred,
less how often it was passed over: that matrix K has as many rows as there are queries, most of its cells are empty, and
the rest are mostly chance, which objects happened to be drawn. But queries that want the same things have rows with the
same expectation, so the expectation of K has few singular values, while those of the chance part all lie under an edge
that is known. What stands out above it is kept::

    D_q^-1/2  K  D_p^-1/2  ~  U diag(v) V',          v above the edge,

D the number of judgements of a row plus their mean, without which rows with few judgements would stand out by
themselves (Qin and Rohe 2013). For noise with independent cells the edge is the root of the mean sum of squares of a
row plus that of a column (Bai and Yin 1993). ``sum q p'`` over the triplets is ``Q'KP``, and with K replaced it
has the same meaning, and less noise. Where queries and objects are the same rows, K and its transpose say the same and
are averaged.

With few judgements nothing, or only a part, stands out, and what is left out is lost. Who uses this must compare with
the plain sum (`learners.closed_form` does).

What stands out says something of every query with every object, whether they were compared or not. So rows can be held
out of it as they can where there are labels: `known_qp` and `new_qp` are sums over pairs of rows that are both known,
and both held out.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse.linalg import eigsh, svds

from ..kernels.moments import add_outer_products
from ..kernels.rows import RowView
from . import sums
from .inputs import Block

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]

# Singular values that are computed at first; four times as many when all of them stand out, up to the most.
_FIRST, _MOST = 32, 512
# Smaller graphs are taken apart as a whole.
_SMALL = 256
_TOLERANCE = 1e-4


class _Factors(NamedTuple):
    """What stands out: ``left @ diag(values) @ right.T``, by rows that are in use."""

    left: Array
    values: Array
    right: Array


class Denoised:
    """What stands out of the graph of some triplets, as sums over rows that are known, held out, or both."""

    def __init__(
        self, block: Block, query_rows: Numbers, object_rows: Numbers, factors: _Factors, judged: Array
    ) -> None:
        self._block, self._query_rows, self._object_rows = block, query_rows, object_rows
        self._factors, self._judged = factors, judged

    def qp(self) -> Array:
        """Give ``sum w q p'`` over all rows."""
        return self._qp(slice(None), slice(None))

    def known_qp(self) -> Array:
        """Give that of queries and objects that are not held out."""
        return self._qp(~self._is_new_query, ~self._is_new_object)

    def new_qp(self) -> Array:
        """Give that of queries and objects that are."""
        return self._qp(self._is_new_query, self._is_new_object)

    def new_pp(self) -> Array:
        """Give what ``sum w p p'`` would be if objects were drawn from those that are held out."""
        is_new = self._is_new_object
        return 2 * sums.spread_of_rows(self._block.preferred, self._object_rows[is_new], self._judged[is_new])

    @cached_property
    def _is_new_query(self) -> NDArray[np.bool_]:
        return sums.is_held_out(self._block.queries, self._query_rows)

    @cached_property
    def _is_new_object(self) -> NDArray[np.bool_]:
        return sums.is_held_out(self._block.preferred, self._object_rows)

    def _qp(self, queries: Any, objects: Any) -> Array:
        left = _times_rows(self._block.queries, self._query_rows[queries], self._factors.left[queries])
        right = _times_rows(self._block.preferred, self._object_rows[objects], self._factors.right[objects])
        return np.asarray((left * self._factors.values) @ right.T)


def denoised(block: Block) -> Denoised | None:
    """Give what stands out of the triplets; None when nothing does."""
    if block.preferred is not block.others:  # a single judgement
        return None
    weights = np.ones(len(block.triplets)) if block.weights is None else block.weights
    is_one_collection = block.queries is block.preferred
    if is_one_collection:
        query_rows, inverse = np.unique(block.triplets, return_inverse=True)
        query, good, bad = inverse.reshape(block.triplets.shape).T
        object_rows = query_rows
    else:
        query_rows, query = np.unique(block.triplets[:, 0], return_inverse=True)
        object_rows, inverse = np.unique(block.triplets[:, 1:], return_inverse=True)
        good, bad = inverse.reshape(-1, 2).T
    K = sparse.coo_array(
        (np.concatenate([weights, -weights]), (np.concatenate([query, query]), np.concatenate([good, bad]))),
        shape=(len(query_rows), len(object_rows)),
    ).tocsr()
    if is_one_collection:
        K = (K + K.T) / 2
    K.eliminate_zeros()  # judgements that contradict each other
    if not K.nnz:
        return None
    factors = _what_stands_out(K, symmetric=is_one_collection)
    if not len(factors.values):
        return None
    return Denoised(block, query_rows, object_rows, factors, np.asarray(abs(K).sum(axis=0)))


def _what_stands_out(K: Any, *, symmetric: bool) -> _Factors:
    roots = [np.sqrt(degrees + degrees.mean()) for degrees in (abs(K).sum(axis=axis) for axis in (1, 0))]
    scaled = sparse.csr_array(sparse.diags_array(1 / roots[0]) @ K @ sparse.diags_array(1 / roots[1]))
    squares = scaled.multiply(scaled)
    edge = sum(float(np.sqrt(squares.sum(axis=axis).mean())) for axis in (1, 0))
    k = _FIRST
    while True:
        found = _largest(scaled, min(k, *K.shape), symmetric)
        stands_out = np.abs(found.values) > edge
        if not stands_out.all() or len(found.values) >= min(_MOST, *K.shape):
            break
        k *= 4
    return _Factors(
        roots[0][:, np.newaxis] * found.left[:, stands_out],
        found.values[stands_out],
        roots[1][:, np.newaxis] * found.right[:, stands_out],
    )


def _largest(K: Any, k: int, symmetric: bool) -> _Factors:
    """Give the k singular values that are largest; for a symmetric matrix with the signs of the eigenvalues."""
    # From a fixed start, so that the same judgements give the same bits.
    start = np.random.default_rng(0).standard_normal(min(K.shape))
    if symmetric:
        if K.shape[0] <= max(_SMALL, 2 * k):
            values, vectors = linalg.eigh(K.toarray())
            largest = np.argsort(-np.abs(values), kind="stable")[:k]
            values, vectors = values[largest], vectors[:, largest]
        else:
            values, vectors = eigsh(K, k=k, which="LM", v0=start, tol=_TOLERANCE)
        return _Factors(vectors, values, vectors)
    if K.shape[0] > K.shape[1]:
        turned = _largest(K.T.tocsr(), k, symmetric)
        return _Factors(turned.right, turned.values, turned.left)
    if K.shape[0] > max(_SMALL, 2 * k):
        left, values, right = svds(K, k=k, v0=start, tol=_TOLERANCE)
        return _Factors(left, values, right.T)
    squares, left = linalg.eigh((K @ K.T).toarray())
    values, left = np.sqrt(np.maximum(squares[::-1][:k], 0)), left[:, ::-1][:, :k]
    right = np.asarray(K.T @ left)
    return _Factors(left, values, np.divide(right, values, out=np.zeros_like(right), where=values > 0))


def _times_rows(rows: RowView, numbers: Numbers, factors: Array) -> Array:
    """Give ``X' F`` for the rows X with these numbers."""
    out = np.zeros((rows.shape[1], factors.shape[1]))
    add_outer_products(rows, numbers, np.ascontiguousarray(factors), out)
    return out

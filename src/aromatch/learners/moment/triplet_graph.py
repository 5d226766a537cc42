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
are averaged; a row stands out with itself too, and to leave that out was no better on real data.

Since the edge is known, the vectors above it are found by Chebyshev polynomials, which stay small below and grow fast
above: a block of random vectors is multiplied by K a few times, made orthogonal, and again (Zhou et al. 2006).

With few judgements nothing, or only a part, stands out, and what is left out is lost. Who uses this must compare with
the plain sum (`learners.moment.solution` does).

What stands out says something of every query with every object, whether they were compared or not. So rows can be held
out of it as they can where there are labels: `known_qp` and `new_qp` are sums over pairs of rows that are both known,
and both held out.
"""

from __future__ import annotations

from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from ..._utils.rows import nonzero_norms
from ...kernels.rows import RowView
from ..inputs import Block
from . import sums

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]

# Singular values that are computed at first; four times as many when all of them stand out, up to the most.
_FIRST, _MOST = 32, 512
# Smaller graphs are taken apart as a whole.
_SMALL = 256
# Vectors beside those that are wanted, the degree of the polynomial between two bases, and when values are settled.
_MORE, _DEGREE, _TOLERANCE = 16, 8, 1e-3
_MOST_BYTES_KEPT = 2**26
# Where the polynomial is about 1e34, and a number in single precision ends at 1e38.
_LARGEST_IN_SINGLE = 1e4
# In two rounds what is a tenth above the edge grows 300 times as much as what is below, and is seen.
_FEWEST_ROUNDS, _MOST_ROUNDS = 2, 6


class _Factors(NamedTuple):
    """``left @ diag(values) @ right.T``, by rows that are in use."""

    left: Array
    values: Array
    right: Array


class _StandsOut(NamedTuple):
    """What stands out, and of which queries and objects it says more than chance would."""

    factors: _Factors
    told_queries: NDArray[np.bool_]
    told_objects: NDArray[np.bool_]


class Graph(NamedTuple):
    """What stands out of the graph of some triplets, whatever the rows are that they name."""

    query_rows: Numbers
    object_rows: Numbers
    """Which rows the triplets name, in their order."""
    found: _StandsOut
    judged: Array
    """How much each object was judged."""
    digest: bytes
    """Of the triplets."""

    def is_of(self, block: Block) -> bool:
        """Tell whether it is the graph of these triplets."""
        return self.digest == _digest(block)

    def to_keep(self) -> Graph | None:
        """Give it, unless it is large: then it is made again when a refinement wants it."""
        n_bytes = sum(array.nbytes for array in (*self.found.factors, *self[:2]))
        return self if n_bytes <= _MOST_BYTES_KEPT else None

    @property
    def tells_something(self) -> bool:
        """Whether anything stands out."""
        return len(self.found.factors.values) > 0

    def directions(self) -> tuple[Array, Array]:
        """Give what queries and objects say of each other: rows of unit norm, whose cosines tell who belongs together.

        The cosine of a query and an object is what stands out of their judgements, free of how many there were. Rows of
        which nothing can be told are zero. Of one collection only what is alike about rows that are judged alike is
        kept, not what sets a row against itself.
        """
        factors = self.found.factors
        kept = factors.values > 0
        roots = np.sqrt(factors.values[kept])
        sides = (
            (factors.left[:, kept] * roots, self.found.told_queries),
            (factors.right[:, kept] * roots, self.found.told_objects),
        )
        left, right = (V / nonzero_norms(V) * told[:, np.newaxis] for V, told in sides)
        return left, right


class Denoised:
    """Sums over triplets by what stands out of their graph, over rows that are known, held out, or both."""

    def __init__(self, block: Block, graph: Graph) -> None:
        self._block, self._graph = block, graph

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
        if np.count_nonzero(is_new) < 2:  # a single row has no spread, but rounding
            return np.zeros((self._block.preferred.shape[1],) * 2)
        rows = self._graph.object_rows[is_new]
        return 2 * sums.spread_of_rows(self._block.preferred, rows, self._graph.judged[is_new])

    @cached_property
    def _is_new_query(self) -> NDArray[np.bool_]:
        return sums.is_held_out(self._block.queries, self._graph.query_rows)

    @cached_property
    def _is_new_object(self) -> NDArray[np.bool_]:
        if self._is_one_collection:
            return self._is_new_query
        return sums.is_held_out(self._block.preferred, self._graph.object_rows)

    @property
    def _is_one_collection(self) -> bool:
        return self._block.queries is self._block.preferred

    def _qp(self, queries: Any, objects: Any) -> Array:
        factors, graph = self._graph.found.factors, self._graph
        left = _times_rows(self._block.queries, graph.query_rows[queries], factors.left[queries])
        if self._is_one_collection:
            right = left
        else:
            right = _times_rows(self._block.preferred, graph.object_rows[objects], factors.right[objects])
        return np.asarray((left * factors.values) @ right.T)


def graph_of(block: Block) -> Graph:
    """Give what stands out of the triplets."""
    weights = np.ones(len(block.triplets)) if block.weights is None else block.weights
    is_one_collection = block.queries is block.preferred
    if is_one_collection:
        query_rows, places = sums.used_rows(block.triplets, block.queries.shape[0])
        object_rows = query_rows
        query, good, bad = places.T
    else:
        query_rows, query = sums.used_rows(block.triplets[:, 0], block.queries.shape[0])
        object_rows, places = sums.used_rows(block.triplets[:, 1:], block.preferred.shape[0])
        good, bad = places.T
    K = sparse.coo_array(
        (np.concatenate([weights, -weights]), (np.concatenate([query, query]), np.concatenate([good, bad]))),
        shape=(len(query_rows), len(object_rows)),
    ).tocsr()
    if is_one_collection:
        K = (K + K.T) / 2
    K.eliminate_zeros()  # judgements that contradict each other
    found = _what_stands_out(K, symmetric=is_one_collection)
    return Graph(query_rows, object_rows, found, np.asarray(abs(K).sum(axis=0)), _digest(block))


def _digest(block: Block) -> bytes:
    """Give a number for the triplets and their weights."""
    digest = blake2b(b"one" if block.queries is block.preferred else b"two")
    for array in (block.triplets, block.weights):
        digest.update(b"" if array is None else np.ascontiguousarray(array).data)
    return digest.digest()


def _what_stands_out(K: Any, *, symmetric: bool) -> _StandsOut:
    if not K.nnz:
        nothing = _Factors(np.empty((K.shape[0], 0)), np.empty(0), np.empty((K.shape[1], 0)))
        return _StandsOut(nothing, *(np.zeros(n, dtype=np.bool_) for n in K.shape))
    roots = [np.sqrt(degrees + degrees.mean()) for degrees in (abs(K).sum(axis=axis) for axis in (1, 0))]
    scaled = sparse.csr_array(sparse.diags_array(1 / roots[0]) @ K @ sparse.diags_array(1 / roots[1]))
    squares = scaled.multiply(scaled)
    edge = sum(float(np.sqrt(squares.sum(axis=axis).mean())) for axis in (1, 0))
    k = _FIRST
    while True:
        found = _largest(scaled, min(k, *K.shape), edge, symmetric)
        stands_out = np.abs(found.values) > edge
        if not stands_out.all() or len(found.values) >= min(_MOST, *K.shape):
            break
        k *= 4
    left, values, right = found.left[:, stands_out], found.values[stands_out], found.right[:, stands_out]
    # The part of a vector's square that is chance, when what it shows is a spike in noise with this edge.
    size = np.abs(values)
    chance = float(np.sum((edge / (size + np.sqrt(size**2 - edge**2))) ** 2))
    told = [len(side) * np.einsum("ij,ij->i", side, side) > chance for side in (left, right)]
    left = roots[0][:, np.newaxis] * left
    right = left if symmetric else roots[1][:, np.newaxis] * right
    return _StandsOut(_Factors(left, values, right), *told)


def _largest(K: Any, k: int, edge: float, symmetric: bool) -> _Factors:
    """Give k singular values, those above the edge first; for a symmetric matrix with the signs of the eigenvalues."""
    if K.shape[0] > K.shape[1]:
        turned = _largest(K.T.tocsr(), k, edge, symmetric)
        return _Factors(turned.right, turned.values, turned.left)
    if K.shape[0] <= max(_SMALL, 2 * k):
        return _with_both_sides(K, *_values_within((K if symmetric else K @ K.T).toarray()), k, symmetric)

    # What is below the edge comes to lie between -1 and 1, where Chebyshev polynomials stay small.
    # In single precision, which takes half the time and leaves more digits than chance does, unless it could overflow:
    # no value is above 1 before it is divided by the edge.
    largest = 1 / edge if symmetric else 2 / edge**2
    dtype = np.float32 if largest < _LARGEST_IN_SINGLE else np.float64
    scaled = (K / edge if symmetric else K * (np.sqrt(2) / edge)).astype(dtype)

    def times(V: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(scaled @ V if symmetric else scaled @ (scaled.T @ V) - V)

    # From a fixed start, so that the same judgements give the same bits.
    V = np.random.default_rng(0).standard_normal((K.shape[0], k + _MORE), dtype=dtype)
    before = np.empty(0)
    for number in range(1, _MOST_ROUNDS + 1):
        lower, V = V, times(V)
        for _ in range(_DEGREE - 1):
            higher = times(V)
            higher *= 2
            higher -= lower
            lower, V = V, higher
        V /= np.abs(V).max(axis=0)  # squares of what is in it could overflow
        V = linalg.qr(V / np.linalg.norm(V, axis=0), mode="economic", overwrite_a=True, check_finite=False)[0]
        values, mixed = _values_within(V.T @ times(V))
        V = V @ mixed
        above = np.abs(values[np.abs(values) > 1])
        is_settled = len(above) == len(before) and np.allclose(above, before, rtol=_TOLERANCE, atol=0)
        if (is_settled and number >= _FEWEST_ROUNDS) or (len(above) >= k and k < _MOST):  # more are wanted than these
            break
        before = above
    values = values.astype(np.float64)
    values = values * edge if symmetric else (values + 1) * edge**2 / 2
    return _with_both_sides(K, values, V.astype(np.float64), k, symmetric)


def _values_within(S: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Give eigenvalues and eigenvectors of a symmetric matrix, the largest in size first."""
    values, vectors = linalg.eigh(S)
    order = np.argsort(-np.abs(values), kind="stable")
    return values[order], vectors[:, order]


def _with_both_sides(K: Any, values: Array, V: Array, k: int, symmetric: bool) -> _Factors:
    """Make factors of the first k eigenvectors of K or, when it is not symmetric, of KK'."""
    values, V = values[:k], V[:, :k]
    if symmetric:
        return _Factors(V, values, V)
    values = np.sqrt(np.maximum(values, 0))
    right = np.asarray(K.T @ V)
    return _Factors(V, values, np.divide(right, values, out=np.zeros_like(right), where=values > 0))


def _times_rows(rows: RowView, numbers: Numbers, factors: Array) -> Array:
    """Give ``X' F`` for the rows X with these numbers."""
    out = np.zeros((rows.shape[1], factors.shape[1]))
    sums.add_rows_times(rows, numbers, np.ascontiguousarray(factors), out)
    return out

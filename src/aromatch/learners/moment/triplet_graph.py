"""The graph of queries and objects that triplets define, reduced to its components above the noise level.

Triplets that share rows overlap. Count for each query and object how often the object was preferred, minus how often it
was rejected: the rows of this matrix K are queries, most of its cells are empty, and the rest mostly reflect which
objects happened to be sampled. But queries with the same preferences have rows with the same expectation, so the
expectation of K has few singular values, while the singular values of the noise lie below a known edge. Components
above the edge are kept::

    D_q^-1/2  K  D_p^-1/2  ~  U diag(v) V',          v above the edge,

D the degree of a row (its number of judgements) plus the mean degree, without which rows with few judgements would give
components of their own (Qin and Rohe 2013). For noise with independent cells the edge is the root of the mean sum of
squares of a row plus that of a column (Bai and Yin 1993). ``sum q p'`` over the triplets is ``Q'KP``; with K replaced
by its components it has the same meaning and less noise. Where queries and objects are the same rows, K and its
transpose are averaged; leaving out the diagonal did not improve results on real data.

Since the edge is known, the vectors above it are found by Chebyshev polynomials, which are small below the edge and
grow fast above it: a block of random vectors is multiplied by K a few times, orthogonalized, and again (Zhou et al.
2006).

With few triplets no component, or only some, exceed the noise level, and the rest is lost. Denoised sums must therefore
be compared with the raw sums (`solution` does).

The components score every query with every object, compared or not. So sums over training rows only, and over
validation rows only, exist as they do for labels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from ..._utils.rows import nonzero_norms
from ...kernels.rows import RowView
from ..inputs import Block
from . import sums

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]

# Components computed at first; four times as many while all of them are above the edge, up to a limit.
_FIRST, _MAX = 32, 512
# Smaller graphs are decomposed in full.
_SMALL = 256
# Additional vectors, the degree of the polynomial between two bases, and the relative tolerance of convergence.
_EXTRA, _DEGREE, _TOLERANCE = 16, 8, 1e-3
# Where the polynomial is about 1e34; single precision ends at 1e38.
_LARGEST_IN_SINGLE = 1e4
# In two rounds a component a tenth above the edge grows 300 times as much as those below.
_MIN_ROUNDS, _MAX_ROUNDS = 2, 6

# Denoised sums by their names in the state of a model, and the raw sums that replace them without signal.
DENOISED = {
    "denoised_qp": "qp",
    "train_denoised_qp": "train_qp",
    "validation_denoised_qp": "validation_qp",
    "validation_denoised_pp": "validation_pp",
}


class Components(NamedTuple):
    """``left @ diag(values) @ right.T``, with one row per row of the graph."""

    left: Array
    values: Array
    right: Array


class Graph(NamedTuple):
    """Components of the graph of some triplets above the noise level."""

    query_rows: Indices
    object_rows: Indices
    """Rows of the triplets, in ascending order."""
    validation_queries: Mask
    validation_objects: Mask
    """Which of them are validation rows."""
    components: Components
    informative_queries: Mask
    informative_objects: Mask
    """Rows whose loadings exceed the noise level."""
    object_degrees: Array
    """Number of judgements of each object."""

    @property
    def has_signal(self) -> bool:
        """Whether any component is above the noise level."""
        return len(self.components.values) > 0

    def directions(self) -> tuple[Array, Array]:
        """Return directions of queries and objects, rows of unit norm: the cosine is large for rows that match.

        Rows without signal are zero. In one collection only components with positive eigenvalues count, in which a row
        matches itself.
        """
        left, values, right = self.components
        kept = values > 0
        roots = np.sqrt(values[kept])
        sides = (left[:, kept] * roots, self.informative_queries), (right[:, kept] * roots, self.informative_objects)
        of_queries, of_objects = (V / nonzero_norms(V) * informative[:, np.newaxis] for V, informative in sides)
        return of_queries, of_objects


def graph_of(block: Block, hashes: NDArray[np.uint64]) -> Graph:
    """Compute the graph of informative triplets; `hashes` are those of their rows."""
    weights = np.ones(len(block.triplets)) if block.weights is None else block.weights
    is_one_collection = block.queries is block.preferred
    validation = sums.is_validation(hashes)
    if is_one_collection:
        query_rows, positions = sums.used_rows(block.triplets, block.queries.shape[0])
        object_rows = query_rows
        query, good, bad = positions.T
        validation_queries = validation_objects = _by_row(validation, positions, len(query_rows))
    else:
        query_rows, query = sums.used_rows(block.triplets[:, 0], block.queries.shape[0])
        object_rows, positions = sums.used_rows(block.triplets[:, 1:], block.preferred.shape[0])
        good, bad = positions.T
        validation_queries = _by_row(validation[:, 0], query, len(query_rows))
        validation_objects = _by_row(validation[:, 1:], positions, len(object_rows))
    K = sparse.coo_array(
        (np.concatenate([weights, -weights]), (np.concatenate([query, query]), np.concatenate([good, bad]))),
        shape=(len(query_rows), len(object_rows)),
    ).tocsr()
    if is_one_collection:
        K = (K + K.T) / 2
    K.eliminate_zeros()  # contradictory judgements
    return Graph(
        query_rows,
        object_rows,
        validation_queries,
        validation_objects,
        *_components_above_noise(K, symmetric=is_one_collection),
        object_degrees=np.asarray(abs(K).sum(axis=0)),
    )


def denoised_sums(raw: dict[str, Array], block: Block, graph: Graph | None) -> dict[str, Array]:
    """Return the sums of `DENOISED` computed from the graph; the raw ones without graph or signal."""
    if graph is None or not graph.has_signal:
        return {name: raw[other].copy() for name, other in DENOISED.items()}
    queries, objects = graph.validation_queries, graph.validation_objects
    everything = slice(None)
    return {
        "denoised_qp": _denoised_qp(block, graph, everything, everything),
        "train_denoised_qp": _denoised_qp(block, graph, ~queries, ~objects),
        "validation_denoised_qp": _denoised_qp(block, graph, queries, objects),
        "validation_denoised_pp": _expected_pp(block, graph, objects),
    }


def _denoised_qp(block: Block, graph: Graph, queries: Any, objects: Any) -> Array:
    """Compute ``sum w q p'`` over some of the rows."""
    left, values, right = graph.components
    of_queries = _rows_times(block.queries, graph.query_rows[queries], left[queries])
    if block.queries is block.preferred:
        of_objects = of_queries
    else:
        of_objects = _rows_times(block.preferred, graph.object_rows[objects], right[objects])
    return np.asarray((of_queries * values) @ of_objects.T)


def _expected_pp(block: Block, graph: Graph, objects: Mask) -> Array:
    """Compute the expected ``sum w p p'`` if objects were sampled from some of the rows."""
    if np.count_nonzero(objects) < 2:  # the spread of a single row is rounding
        return np.zeros((block.preferred.shape[1],) * 2)
    return 2 * sums.spread_of_rows(block.preferred, graph.object_rows[objects], graph.object_degrees[objects])


def _by_row(values: Mask, positions: Indices, n_rows: int) -> Mask:
    """Return one value per row from one value per occurrence."""
    out = np.zeros(n_rows, dtype=np.bool_)
    out[positions] = values
    return out


def _components_above_noise(K: Any, *, symmetric: bool) -> tuple[Components, Mask, Mask]:
    """Return the components of K above the noise level, and which rows and columns have signal in them."""
    if not K.nnz:
        nothing = Components(np.empty((K.shape[0], 0)), np.empty(0), np.empty((K.shape[1], 0)))
        return nothing, np.zeros(K.shape[0], dtype=np.bool_), np.zeros(K.shape[1], dtype=np.bool_)
    roots = [np.sqrt(degrees + degrees.mean()) for degrees in (abs(K).sum(axis=axis) for axis in (1, 0))]
    scaled = sparse.csr_array(sparse.diags_array(1 / roots[0]) @ K @ sparse.diags_array(1 / roots[1]))
    squares = scaled.multiply(scaled)
    edge = sum(float(np.sqrt(squares.sum(axis=axis).mean())) for axis in (1, 0))
    k = _FIRST
    while True:
        found = _largest(scaled, min(k, *K.shape), edge, symmetric)
        above = np.abs(found.values) > edge
        if not above.all() or len(found.values) >= min(_MAX, *K.shape):
            break
        k *= 4
    left, values, right = found.left[:, above], found.values[above], found.right[:, above]
    # The part of a singular vector's square that is noise, for a spike in noise with this edge.
    size = np.abs(values)
    noise = float(np.sum((edge / (size + np.sqrt(size**2 - edge**2))) ** 2))
    has_signal = [len(side) * np.einsum("ij,ij->i", side, side) > noise for side in (left, right)]
    left = roots[0][:, np.newaxis] * left
    right = left if symmetric else roots[1][:, np.newaxis] * right
    return Components(left, values, right), *has_signal


def _largest(K: Any, k: int, edge: float, symmetric: bool) -> Components:
    """Return k components, those above the edge first; of a symmetric matrix, values have the eigenvalues' signs."""
    if K.shape[0] > K.shape[1]:
        turned = _largest(K.T.tocsr(), k, edge, symmetric)
        return Components(turned.right, turned.values, turned.left)
    if K.shape[0] <= max(_SMALL, 2 * k):
        return _with_both_sides(K, *_eigen((K if symmetric else K @ K.T).toarray()), k, symmetric)

    # Values below the edge are mapped to between -1 and 1, where Chebyshev polynomials are small. Single precision
    # takes half the time and is more exact than the noise, unless it could overflow: values are at most 1 over the
    # edge.
    largest = 1 / edge if symmetric else 2 / edge**2
    dtype = np.float32 if largest < _LARGEST_IN_SINGLE else np.float64
    scaled = (K / edge if symmetric else K * (np.sqrt(2) / edge)).astype(dtype)

    def times(V: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(scaled @ V if symmetric else scaled @ (scaled.T @ V) - V)

    # A fixed start, for reproducible bits.
    V = np.random.default_rng(0).standard_normal((K.shape[0], k + _EXTRA), dtype=dtype)
    before = np.empty(0)
    for number in range(1, _MAX_ROUNDS + 1):
        lower, V = V, times(V)
        for _ in range(_DEGREE - 1):
            higher = times(V)
            higher *= 2
            higher -= lower
            lower, V = V, higher
        V /= np.abs(V).max(axis=0)  # squares could overflow
        V = linalg.qr(V / np.linalg.norm(V, axis=0), mode="economic", overwrite_a=True, check_finite=False)[0]
        values, mixed = _eigen(V.T @ times(V))
        V = V @ mixed
        above = np.abs(values[np.abs(values) > 1])
        converged = len(above) == len(before) and np.allclose(above, before, rtol=_TOLERANCE, atol=0)
        if (converged and number >= _MIN_ROUNDS) or (len(above) >= k and k < _MAX):  # more components needed
            break
        before = above
    values = values.astype(np.float64)
    values = values * edge if symmetric else (values + 1) * edge**2 / 2
    return _with_both_sides(K, values, V.astype(np.float64), k, symmetric)


def _eigen(S: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return eigenvalues and eigenvectors of a symmetric matrix, the largest in absolute value first."""
    values, vectors = linalg.eigh(S)
    order = np.argsort(-np.abs(values), kind="stable")
    return values[order], vectors[:, order]


def _with_both_sides(K: Any, values: Array, V: Array, k: int, symmetric: bool) -> Components:
    """Return components for the first k eigenvectors of K or, if it is not symmetric, of KK'."""
    values, V = values[:k], V[:, :k]
    if symmetric:
        return Components(V, values, V)
    values = np.sqrt(np.maximum(values, 0))
    right = np.asarray(K.T @ V)
    return Components(V, values, np.divide(right, values, out=np.zeros_like(right), where=values > 0))


def _rows_times(rows: RowView, indices: Indices, factors: Array) -> Array:
    """Return ``X' F`` for the rows X with these indices."""
    out = np.zeros((rows.shape[1], factors.shape[1]))
    sums.add_rows_times(rows, indices, np.ascontiguousarray(factors), out)
    return out

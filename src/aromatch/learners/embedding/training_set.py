"""The training set of an embedding: informative triplets, their rows, and the validation rows among them.

One row in eight is a validation row (`learners.moment.sums`). Maps are compared by how they rank validation objects for
validation queries: both are unseen, since a map can memorize the position of any object it was fitted on. An object is
a positive of a query if a triplet prefers it, or if the graph of all triplets matches the two: the directions of their
components above the noise level have a cosine above 1/2. The measure is the mean logarithm of the ranks of the
positives.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.extmath import row_norms

from ..._utils.rows import Matrix, as_float64, nonzero_norms
from ..inputs import FLOAT64, LARGEST, Block, read_triplets
from ..moment import sums
from ..moment.triplet_graph import Graph, graph_of

Array = NDArray[Any]
Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]

# Rows on each side that a validation set has at most.
_MAX_VALIDATION_ROWS = 2**11


class TripletData(NamedTuple):
    """Informative triplets of rows of Q and P, read, checked and hashed once."""

    Q: Matrix
    P: Matrix
    """The same object as Q for one collection."""
    triplets: Indices
    block: Block
    """The same triplets for the kernels."""
    hashes: NDArray[np.uint64]
    graph: Graph
    largest_square: float
    """The largest ``|x|^2`` of all rows."""

    @classmethod
    def read(cls, triplets: ArrayLike, Q: Matrix, P: Matrix, sample_weight: ArrayLike | None) -> TripletData:
        """Check triplets and their rows, drop those without information and compute the graph of the rest."""
        checked = read_triplets(triplets, Q, P, sample_weight)
        weights = checked.block.weights
        if weights is not None and (heaviest := float(weights.max(initial=0))) > LARGEST[FLOAT64]:
            raise ValueError(f"sample_weight is up to {heaviest:.1e}, expected at most {LARGEST[FLOAT64]:.0e}")
        hashes = sums.hashes_of(checked.block)
        changes = sums.changing(checked.block, hashes)
        block, hashes = sums.part(checked.block, changes), hashes[changes]
        return cls(Q, P, checked.numbers[changes], block, hashes, graph_of(block, hashes), checked.largest_square)

    def scaled(self, scales: Array | None = None) -> ScaledSet:
        """Return the triplets with rows of unit norm, after a multiplication of features by `scales`."""
        block, graph = self.block, self.graph
        weights = np.ones(len(self.triplets)) if block.weights is None else block.weights
        if scales is None:
            scales = np.ones(self.Q.shape[1])

        def side(X: Matrix, indices: Indices, directions: Array, is_validation: Mask) -> tuple[Side, Indices]:
            used, positions = sums.used_rows(indices, X.shape[0])
            return Side(*_unit_rows(X[used], scales), directions.astype(np.float32), is_validation), positions

        of_queries, of_objects = graph.directions()
        if self.P is self.Q:
            queries, positions = side(self.Q, self.triplets, of_queries, graph.validation_queries)
            return ScaledSet(queries, queries, positions, weights)
        queries, query = side(self.Q, self.triplets[:, 0], of_queries, graph.validation_queries)
        objects, others = side(self.P, self.triplets[:, 1:], of_objects, graph.validation_objects)
        return ScaledSet(queries, objects, np.column_stack([query, others]), weights)


class Side(NamedTuple):
    """The queries, or the objects, of a training set."""

    rows: Matrix
    """Of unit norm, in single precision."""
    norms: Array
    """Their original norms relative to the largest."""
    directions: Array
    """Of unit norm, or zero: rows whose directions have a cosine above 1/2 match."""
    is_validation: Mask


class ScaledSet(NamedTuple):
    """Triplets as indices of rows of unit norm."""

    queries: Side
    objects: Side
    """The same object as the queries for one collection."""
    triplets: Indices
    weights: Array

    def training_part(self) -> ScaledSet:
        """Return the triplets without validation rows."""
        query, good, bad = self.triplets.T
        objects = self.objects.is_validation
        train = ~(self.queries.is_validation[query] | objects[good] | objects[bad])
        return self._replace(triplets=self.triplets[train], weights=self.weights[train])


class ValidationSet(NamedTuple):
    """Validation queries and objects, and the positives of each query."""

    queries: Matrix
    objects: Side
    positive: Mask
    is_self: Mask | None
    """Where the object is the query itself, which is not ranked."""

    @classmethod
    def of(cls, scaled: ScaledSet) -> ValidationSet | None:
        """Return the validation queries that have positives and negatives; None without such queries."""
        queries, objects = scaled.queries, scaled.objects
        rows, columns = (_spread_out(np.flatnonzero(side.is_validation)) for side in (queries, objects))
        positive = queries.directions[rows] @ objects.directions[columns].T > 0.5
        query, good = scaled.triplets[:, 0], scaled.triplets[:, 1]
        both = np.isin(query, rows) & np.isin(good, columns)
        positive[np.searchsorted(rows, query[both]), np.searchsorted(columns, good[both])] = True
        is_self = rows[:, np.newaxis] == columns if objects is queries else None
        if is_self is not None:
            positive &= ~is_self
        ranked = positive.any(axis=1) & ~(positive if is_self is None else positive | is_self).all(axis=1)
        if not ranked.any():
            return None
        side = Side(*(array[columns] for array in objects))
        return cls(queries.rows[rows[ranked]], side, positive[ranked], None if is_self is None else is_self[ranked])

    def log_ranks(self, L: Array | None, power: float) -> Array:
        """Return the mean logarithm of the ranks of the positives of each query.

        Scores are inner products of rows mapped by L (None for the identity) and divided by a power of their norms.
        """
        if L is None:
            mapped, V, norms = self.queries, self.objects.rows, np.ones((1, 1), dtype=np.float32)
        else:
            mapped = self.queries @ L
            V = self.objects.rows @ L
            norms = nonzero_norms(V)
            V = V / norms
        # The norm of a query does not change its ranking.
        weights = (norms * self.objects.norms) ** (1 - power)
        return self.log_ranks_of(mapped, V.multiply(weights).tocsr() if sparse.issparse(V) else V * weights)

    def log_ranks_of(self, U: Matrix, V: Matrix) -> Array:
        """Return the mean logarithm of the ranks of the positives of each query by inner products of mapped rows."""
        scores = U @ V.T
        scores = scores.toarray() if sparse.issparse(scores) else scores
        if self.is_self is not None:
            scores[self.is_self] = -np.inf
        ranks = np.empty(scores.shape)
        np.put_along_axis(ranks, np.argsort(-scores, axis=1), np.arange(1.0, scores.shape[1] + 1)[np.newaxis], axis=1)
        return np.asarray(np.where(self.positive, np.log(ranks), 0).sum(axis=1) / self.positive.sum(axis=1))


def _spread_out(indices: Indices) -> Indices:
    """Return all indices, or a limited number at equal distances: similar rows are often stored together."""
    return indices[:: max(1, -(-len(indices) // _MAX_VALIDATION_ROWS))]


def _unit_rows(X: Matrix, scales: Array) -> tuple[Matrix, Array]:
    """Scale features, and rows to unit norm; in single precision, which halves the time of a step."""
    X = X if X.dtype in (np.float32, np.float64) else as_float64(X, "Q or P")
    X = X @ sparse.diags_array(scales) if sparse.issparse(X) else X * scales
    norms = row_norms(X)
    inverse = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
    rows = sparse.diags_array(inverse) @ X if sparse.issparse(X) else X * inverse[:, np.newaxis]
    norms = norms[:, np.newaxis] / (norms.max(initial=0.0) or 1.0)
    return rows.astype(np.float32), norms.astype(np.float32)

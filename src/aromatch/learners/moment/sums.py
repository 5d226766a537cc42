"""The three sums behind `MomentAROMA`: over given triplets, or over all triplets that labels allow.

With ``p = p_pos - p_neg`` and the weight w of a triplet they are ``sum w q q'``, ``sum w q p'`` and ``sum w p p'``.

A row occurs in many triplets, so the triplets of a row are processed together: the rows that occur with it are added
first, which costs no more than reading them, and then there is one outer product per row instead of one per triplet.
For ``sum w p p'`` that is ``sum w p_pos (p_pos - p_neg)' + sum w p_neg (p_neg - p_pos)'``; the terms of a row that is
preferred in some triplets and rejected in others are combined.

Over all triplets of labelled rows nothing is sampled. A query is any row whose class has another row; its preferred
object is any other row of the class and its other object any row of another class, all with the same probability. With
n rows in all, n_c of them in class c, their sums s and s_c, and sums over the classes with at least two rows, each
query counting 1::

    sum q q'  =  sum_c sum_{x in c} x x'
    sum q p'  =  sum_c s_c (s_c / (n_c - 1) - (s - s_c) / (n - n_c))'  -  sum_c sum_{x in c} x x' / (n_c - 1)
    sum p p'  =  sum_c sum_{x in c} x x'  +  sum_x v_x x x'  -  (M + M'),     M = sum_c s_c (s - s_c)' / (n - n_c)

where ``v_x`` is the sum of ``n_c / (n - n_c)`` over the classes c other than the class of x.

One row in eight is a validation row. Which rows these are depends on the hash of their values alone, so that neither
the order of the triplets nor batches matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dgemm, dsyrk

from ..._utils.chunks import chunks
from ...kernels.moments import add_outer_products, add_sums, hash_rows
from ...kernels.rows import RowView, squared_scales
from ..inputs import Block

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

# Values in one chunk of rows: 16 MiB.
_CHUNK = 2**21
# With a smaller share of non-zero values, outer products loop over those; otherwise BLAS is faster.
_SPARSE_BELOW = 1 / 8
# With more rows than this per index, indices are sorted instead of looked up in a table of all rows.
_SORT_ABOVE = 8
# One row in so many is a validation row.
_ONE_IN = 8
VALIDATION_SHARE = 1 / _ONE_IN


class Sums(NamedTuple):
    """Sums over triplets; those of two sets of triplets are added."""

    qq: Array
    qp: Array
    pp: Array
    weight: float


class _Term(NamedTuple):
    """Rows to add, one per triplet, with a sign."""

    rows: RowView
    indices: Indices
    sign: float


def of_triplets(block: Block, m: int, n: int) -> Sums:
    """Sum over the triplets of a block."""
    q, good, bad = (np.ascontiguousarray(column) for column in block.triplets.T)
    weights = np.ones(len(q)) if block.weights is None else block.weights
    sums = Sums(np.zeros((m, m)), np.zeros((m, n)), np.zeros((n, n)), float(weights.sum()))
    preferred, others = _Term(block.preferred, good, 1.0), _Term(block.others, bad, 1.0)
    add_squares(sums.qq, block.queries, q, weights)
    _add(sums.qp, block.queries, q, [preferred, others._replace(sign=-1.0)], weights)
    if block.preferred is block.others:  # combine the terms of each row
        terms = [_Term(block.preferred, np.tile(indices, 2), sign) for indices, sign in ((good, 1.0), (bad, -1.0))]
        _add(sums.pp, block.preferred, np.append(good, bad), terms, np.append(weights, -weights))
    else:
        _add(sums.pp, block.preferred, good, [preferred, others._replace(sign=-1.0)], weights)
        _add(sums.pp, block.others, bad, [preferred._replace(sign=-1.0), others], weights)
    _symmetric_squares(sums.qq)
    _symmetric_squares(sums.pp)
    return sums


def hashes_of(block: Block) -> NDArray[np.uint64]:
    """Return the hash of the values of every row of the triplets, in the shape of the triplets."""
    if block.queries is block.preferred is block.others:
        return value_hashes(block.queries, block.triplets)
    return np.column_stack([value_hashes(*each) for each in zip(block[:3], block.triplets.T, strict=True)])


def changing(block: Block, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return which triplets change the sums: those whose weight, query and object difference are not zero."""
    # Only empty queries and objects with equal hashes need a comparison of values.
    doubtful = (hashes[:, 0] == _hash_of_zeros()) | (hashes[:, 1] == hashes[:, 2])
    scales = np.empty(np.count_nonzero(doubtful))
    squared_scales(*block[:3], np.ascontiguousarray(block.triplets[doubtful]), scales)
    changes: NDArray[np.bool_] = ~doubtful
    changes[doubtful] = scales > 0
    return changes if block.weights is None else changes & (block.weights > 0)


def part(block: Block, which: Any) -> Block:
    """Return some of the triplets of a block."""
    weights = None if block.weights is None else block.weights[which]
    return block._replace(triplets=block.triplets[which], weights=weights)


def is_validation(hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return which rows with these hashes are validation rows."""
    return np.asarray(hashes % _ONE_IN == 0)


def named(found: Sums, prefix: str = "") -> dict[str, Array]:
    """Return sums by their names in the state of a model."""
    return {prefix + name: np.atleast_1d(value) for name, value in found._asdict().items()}


def split_sums(block: Block, hashes: NDArray[np.uint64], m: int, n: int) -> dict[str, Array]:
    """Sum over all triplets, over those of training rows, and over those in which only the query is a validation row.

    The last ones estimate the margins of unseen queries among training objects.
    """
    validation_query, *validation_objects = is_validation(hashes).T
    train_objects = ~(validation_objects[0] | validation_objects[1])
    found: dict[str, Array] = {}
    for prefix, queries in (("train_", ~validation_query), ("validation_", validation_query)):
        found |= named(of_triplets(part(block, train_objects & queries), m, n), prefix)
    others = named(of_triplets(part(block, ~train_objects), m, n))
    return found | {name: found[f"train_{name}"] + found[f"validation_{name}"] + more for name, more in others.items()}


def split_sums_of_labels(rows: RowView, classes: Indices) -> dict[str, Array]:
    """Sum over all triplets that the labels of all rows, of training rows and of validation rows allow."""
    indices = np.arange(len(classes))
    validation = is_validation(value_hashes(rows, indices))
    found = named(of_labels(rows, classes))
    for prefix, which in (("train_", ~validation), ("validation_", validation)):
        found |= named(of_labels(rows, classes, indices[which]), prefix)
    return found


def used_rows(indices: Indices, n_rows: int) -> tuple[Indices, Indices]:
    """Return the distinct row indices in ascending order, and the position of every index among them."""
    if n_rows > _SORT_ABOVE * indices.size:
        used, positions = np.unique(indices, return_inverse=True)
        return used, positions.reshape(indices.shape)
    is_used = np.zeros(n_rows, dtype=np.bool_)
    is_used[indices] = True
    return np.flatnonzero(is_used), (np.cumsum(is_used) - 1)[indices]


def value_hashes(rows: RowView, indices: Indices) -> NDArray[np.uint64]:
    """Return a hash of the values of each row."""
    used, positions = used_rows(indices, rows.shape[0])
    hashes = np.empty(len(used), dtype=np.uint64)
    hash_rows(rows, used, hashes)
    return hashes[positions]


@cache
def _hash_of_zeros() -> np.uint64:
    return np.uint64(value_hashes(RowView.of_dense(np.zeros((1, 1))), np.zeros(1, dtype=np.int64))[0])


def spread_of_rows(rows: RowView, indices: Indices, weights: Array) -> Array:
    """Sum the squares of rows around their mean: ``sum w (x - mean) (x - mean)'``."""
    width = rows.shape[1]
    total, out = np.zeros((1, width)), np.zeros((width, width))
    if weights.sum() > 0:
        add_sums(rows, np.array([0, len(indices)]), indices, weights, total)
        add_squares(out, rows, indices, weights)
        out -= total.T @ total / weights.sum()
    return _symmetric_squares(out)


def of_labels(rows: RowView, classes: Indices, indices: Indices | None = None) -> Sums:
    """Sum over all triplets that labels allow, each query counting 1 and all its triplets the same.

    `classes` are those of all rows; `indices` restricts the rows.
    """
    width = rows.shape[1]
    if indices is None:
        indices = np.arange(len(classes))
    classes, n = classes[indices], len(indices)
    counts = np.bincount(classes)
    is_query_class = (counts > 1) & (counts < n)
    n_own, n_other = np.maximum(counts - 1, 1), np.maximum(n - counts, 1)
    order = indices[np.argsort(classes, kind="stable")]
    ends = np.cumsum(counts)
    total = np.zeros((1, width))
    add_sums(rows, np.array([0, n]), indices, np.ones(n), total)

    within, cross = np.zeros((width, width)), np.zeros((width, width))
    query_classes = np.flatnonzero(is_query_class)
    for chunk in chunks(len(query_classes), _CHUNK // width):
        here = query_classes[chunk]
        members = np.concatenate([order[ends[c] - counts[c] : ends[c]] for c in here])
        class_sums = np.zeros((len(here), width))
        indptr = np.concatenate([[0], np.cumsum(counts[here])])
        add_sums(rows, indptr, members, np.ones(len(members)), class_sums)
        within += class_sums.T @ (class_sums / n_own[here, np.newaxis])
        cross += class_sums.T @ ((total - class_sums) / n_other[here, np.newaxis])

    of_class = np.where(is_query_class, counts / n_other, 0.0)
    as_other = of_class.sum() - of_class[classes]
    is_query = is_query_class[classes].astype(np.float64)

    def gram(weights: Array) -> Array:
        out = np.zeros((width, width))
        add_squares(out, rows, indices, weights)
        return out

    return Sums(
        qq=_symmetric_squares(gram(is_query)),
        qp=within - cross - gram(is_query / n_own[classes]),
        pp=_symmetric_squares(gram(is_query + as_other) - cross - cross.T),
        weight=float(is_query.sum()),
    )


def _symmetric_squares(S: Array) -> Array:
    """Mirror the lower triangle, which `solution` reads, and set negative sums of squares to zero, in place.

    Rounding leaves differences between the triangles, and negative squares in columns that are constant.
    """
    diagonal = np.einsum("ii->i", S)
    np.maximum(diagonal, 0, out=diagonal)
    S[...] = mirrored(S)
    return S


def mirrored(S: Array) -> Array:
    """Return the symmetric matrix with this lower triangle."""
    return np.tril(S) + np.tril(S, -1).T


def _add(out: Array, rows: RowView, indices: Indices, terms: Sequence[_Term], weights: Array) -> None:
    """Add to `out`, over all triplets, the weighted outer product of a row and the sum of the rows in `terms`."""
    used, positions = used_rows(indices, rows.shape[0])
    # Integers of 16 bits are sorted in one pass.
    order = np.argsort(positions.astype(np.min_scalar_type(len(used))), kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(positions, minlength=len(used)))])
    sorted_terms = [(term, term.indices[order], term.sign * weights[order]) for term in terms]
    for chunk in chunks(len(used), _CHUNK // max(out.shape)):
        indptr, own = starts[chunk.start : chunk.stop + 1], np.ascontiguousarray(used[chunk])
        sums = np.zeros((len(own), out.shape[1]))
        for term, term_indices, term_weights in sorted_terms:
            add_sums(term.rows, indptr, term_indices, term_weights, sums)
        add_rows_times(rows, own, sums, out)


def add_squares(out: Array, rows: RowView, indices: Indices, weights: Array) -> None:
    """Add to `out`, over all indices, the weight times the outer product of a row with itself."""
    used, positions = used_rows(indices, rows.shape[0])
    totals = np.bincount(positions, weights=weights, minlength=len(used))
    square_roots = np.sqrt(totals)
    for chunk in chunks(len(used), _CHUNK // max(out.shape)):
        own, roots = used[chunk], square_roots[chunk]
        full, is_sparse = _scaled_rows(rows, own, roots)
        if is_sparse:
            add_outer_products(rows, own, full * roots[:, np.newaxis], out)
        else:
            above = np.triu(dsyrk(1.0, full.T))  # half the work of a full product
            out += above
            out += np.triu(above, 1).T


def add_rows_times(rows: RowView, indices: Indices, factors: Array, out: Array) -> None:
    """Add ``X' F`` to `out` for the rows X with these indices, one per row of F."""
    for chunk in chunks(len(indices), _CHUNK // max(out.shape)):
        own, G = indices[chunk], factors[chunk]
        full, is_sparse = _scaled_rows(rows, own, np.ones(len(own)))
        if is_sparse:
            add_outer_products(rows, own, G, out)
        else:
            # In place: the transposed arrays are in Fortran order.
            dgemm(1.0, G.T, full.T, beta=1.0, c=out.T, trans_b=True, overwrite_c=True)


def _scaled_rows(rows: RowView, indices: Indices, scales: Array) -> tuple[Array, bool]:
    """Return rows times their scales as a dense matrix, and whether most of its values are zero."""
    full = np.zeros((len(indices), rows.shape[1]))
    n_values = add_sums(rows, np.arange(len(indices) + 1), indices, scales, full)
    return full, n_values < _SPARSE_BELOW * full.size

"""The three sums behind `MomentAROMA`: over the triplets one has, or over all that labels allow.

With ``p = p_pos - p_neg`` and the weight w of a triplet they are ``sum w q q'``, ``sum w q p'`` and ``sum w p p'``.

A triplet names rows, and a row is in many triplets. So the triplets of a row are taken together: first the rows that
stand with it are added up, which costs no more than reading them, and then there is one outer product for each row and
not for each triplet. For ``sum w p p'`` that is ``sum w p_pos (p_pos - p_neg)' + sum w p_neg (p_neg - p_pos)'``, where
a row that is both, preferred here and passed over there, has all of these together.

Over all triplets of labelled rows nothing need be drawn. A query is any row whose class has another row; its preferred
object is any other row of the class and its other object any row of another class, all with the same probability. With
n rows in all, n_c of them in class c, their sums s and s_c, and sums over the classes with at least two rows, each
query counting 1::

    sum q q'  =  sum_c sum_{x in c} x x'
    sum q p'  =  sum_c s_c (s_c / (n_c - 1) - (s - s_c) / (n - n_c))'  -  sum_c sum_{x in c} x x' / (n_c - 1)
    sum p p'  =  sum_c sum_{x in c} x x'  +  sum_x v_x x x'  -  (M + M'),     M = sum_c s_c (s - s_c)' / (n - n_c)

where ``v_x`` is the sum of ``n_c / (n - n_c)`` over the classes c that are not the class of x.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dgemm, dsyrk

from ...kernels.moments import add_outer_products, add_sums, hash_rows
from ...kernels.rows import RowView, squared_scales
from ..inputs import Block

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]

# Numbers in the sums of rows that are held at once: 16 MiB.
_AT_ONCE = 2**21
# Where fewer values than this share are not zero, outer products go by those; BLAS is faster otherwise.
_FEW = 1 / 8
# With more rows than this for each name, names are sorted and not looked up in a list of all rows.
_MANY = 8
# One row in so many is held out, a share of them.
_ONE_IN = 8
HELD_OUT = 1 / _ONE_IN


class Sums(NamedTuple):
    """What is known of triplets, all in sums: those of two sets of triplets are added by adding these."""

    qq: Array
    qp: Array
    pp: Array
    weight: float


class _Term(NamedTuple):
    """Rows to add up, one for each triplet, with a sign."""

    rows: RowView
    numbers: Numbers
    sign: float


def of_triplets(block: Block, m: int, n: int) -> Sums:
    """Sum over the triplets of a block."""
    q, good, bad = (np.ascontiguousarray(column) for column in block.triplets.T)
    weights = np.ones(len(q)) if block.weights is None else block.weights
    sums = Sums(np.zeros((m, m)), np.zeros((m, n)), np.zeros((n, n)), float(weights.sum()))
    preferred, others = _Term(block.preferred, good, 1.0), _Term(block.others, bad, 1.0)
    add_squares(sums.qq, block.queries, q, weights)
    _add(sums.qp, block.queries, q, [preferred, others._replace(sign=-1.0)], weights)
    if block.preferred is block.others:  # rows that are preferred in one triplet and passed over in another, once
        terms = [_Term(block.preferred, np.tile(numbers, 2), sign) for numbers, sign in ((good, 1.0), (bad, -1.0))]
        _add(sums.pp, block.preferred, np.append(good, bad), terms, np.append(weights, -weights))
    else:
        _add(sums.pp, block.preferred, good, [preferred, others._replace(sign=-1.0)], weights)
        _add(sums.pp, block.others, bad, [preferred._replace(sign=-1.0), others], weights)
    _without_negative_squares(sums.pp)
    return sums


def hashes_of(block: Block) -> NDArray[np.uint64]:
    """Give a number for the values of every row that triplets name, in the shape of the triplets."""
    if block.queries is block.preferred is block.others:
        return _hashes(block.queries, block.triplets)
    return np.column_stack([_hashes(*each) for each in zip(block[:3], block.triplets.T, strict=True)])


def changing(block: Block, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Tell which triplets change the sums: those with a weight, a query and a difference that are not zero."""
    # Only a query without values, or objects with the same ones, need a look at the values themselves.
    doubtful = (hashes[:, 0] == _hash_of_zeros()) | (hashes[:, 1] == hashes[:, 2])
    scales = np.empty(np.count_nonzero(doubtful))
    squared_scales(*block[:3], np.ascontiguousarray(block.triplets[doubtful]), scales)
    changes: NDArray[np.bool_] = ~doubtful
    changes[doubtful] = scales > 0
    return changes if block.weights is None else changes & (block.weights > 0)


def telling(block: Block) -> tuple[Block, NDArray[np.bool_]]:
    """Give the triplets that would change the sums, and which these are."""
    changes = changing(block, hashes_of(block))
    weights = None if block.weights is None else block.weights[changes]
    return block._replace(triplets=np.ascontiguousarray(block.triplets[changes]), weights=weights), changes


def is_held_out(rows: RowView, numbers: Numbers) -> NDArray[np.bool_]:
    """Tell which rows to choose by and not to learn from: one in eight, which ones depends on their values alone."""
    return are_held_out(_hashes(rows, numbers))


def are_held_out(hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Tell the same of rows with these hashes."""
    return np.asarray(hashes % _ONE_IN == 0)


def used_rows(numbers: Numbers, n_rows: int) -> tuple[Numbers, Numbers]:
    """Give the rows that are named, in their order, and for each name its place among them."""
    if n_rows > _MANY * numbers.size:
        used, places = np.unique(numbers, return_inverse=True)
        return used, places.reshape(numbers.shape)
    # Without a sort.
    is_used = np.zeros(n_rows, dtype=np.bool_)
    is_used[numbers] = True
    return np.flatnonzero(is_used), (np.cumsum(is_used) - 1)[numbers]


def _hashes(rows: RowView, numbers: Numbers) -> NDArray[np.uint64]:
    """Give a number for the values of each row; other values give, but for rare chance, another number."""
    used, places = used_rows(numbers, rows.shape[0])
    hashes = np.empty(len(used), dtype=np.uint64)
    hash_rows(rows, used, hashes)
    return hashes[places]


@cache
def _hash_of_zeros() -> np.uint64:
    return np.uint64(_hashes(RowView.of_dense(np.zeros((1, 1))), np.zeros(1, dtype=np.int64))[0])


def spread_of_rows(rows: RowView, numbers: Numbers, weights: Array) -> Array:
    """Sum the squares of rows around their mean: ``sum w (x - mean) (x - mean)'``."""
    width = rows.shape[1]
    total, out = np.zeros((1, width)), np.zeros((width, width))
    if weights.sum() > 0:
        add_sums(rows, np.array([0, len(numbers)]), numbers, weights, total)
        add_squares(out, rows, numbers, weights)
        out -= total.T @ total / weights.sum()
    return _without_negative_squares(out)


def of_labels(rows: RowView, classes: Numbers, numbers: Numbers | None = None) -> Sums:
    """Sum over all triplets that labels allow, each query counting 1 and all its triplets the same.

    `classes` are those of all rows; with `numbers`, only rows with these numbers are there.
    """
    width = rows.shape[1]
    if numbers is None:
        numbers = np.arange(len(classes))
    classes, n = classes[numbers], len(numbers)
    counts = np.bincount(classes)
    can_ask = (counts > 1) & (counts < n)
    n_own, n_other = np.maximum(counts - 1, 1), np.maximum(n - counts, 1)
    order = numbers[np.argsort(classes, kind="stable")]
    ends = np.cumsum(counts)
    total = np.zeros((1, width))
    add_sums(rows, np.array([0, n]), numbers, np.ones(n), total)

    within, cross = np.zeros((width, width)), np.zeros((width, width))
    asking, at_once = np.flatnonzero(can_ask), max(1, _AT_ONCE // width)
    for first in range(0, len(asking), at_once):
        here = asking[first : first + at_once]
        members = np.concatenate([order[ends[c] - counts[c] : ends[c]] for c in here])
        class_sums = np.zeros((len(here), width))
        indptr = np.concatenate([[0], np.cumsum(counts[here])])
        add_sums(rows, indptr, members, np.ones(len(members)), class_sums)
        within += class_sums.T @ (class_sums / n_own[here, np.newaxis])
        cross += class_sums.T @ ((total - class_sums) / n_other[here, np.newaxis])

    of_class = np.where(can_ask, counts / n_other, 0.0)
    as_other = of_class.sum() - of_class[classes]
    asks = can_ask[classes].astype(np.float64)

    def gram(weights: Array) -> Array:
        out = np.zeros((width, width))
        add_squares(out, rows, numbers, weights)
        return out

    return Sums(
        qq=gram(asks),
        qp=within - cross - gram(asks / n_own[classes]),
        pp=_without_negative_squares(gram(asks + as_other) - cross - cross.T),
        weight=float(asks.sum()),
    )


def _without_negative_squares(S: Array) -> Array:
    """Make sums of squares zero that rounding left under it, as in a column that is the same in all rows."""
    diagonal = np.einsum("ii->i", S)
    np.maximum(diagonal, 0, out=diagonal)
    return S


def _add(out: Array, rows: RowView, numbers: Numbers, terms: Sequence[_Term], weights: Array) -> None:
    """Add to `out`, over all triplets, the weight times a row times the sum of the rows in `terms`, turned."""
    used, places = used_rows(numbers, rows.shape[0])
    # Numbers of 16 bits are sorted in one pass over them.
    order = np.argsort(places.astype(np.min_scalar_type(len(used))), kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(places, minlength=len(used)))])
    sorted_terms = [(term, term.numbers[order], term.sign * weights[order]) for term in terms]
    at_once = max(1, _AT_ONCE // max(out.shape))
    for first in range(0, len(used), at_once):
        here = slice(first, first + at_once)
        indptr, own = starts[first : first + at_once + 1], np.ascontiguousarray(used[here])
        sums = np.zeros((len(own), out.shape[1]))
        for term, term_numbers, term_weights in sorted_terms:
            add_sums(term.rows, indptr, term_numbers, term_weights, sums)
        add_rows_times(rows, own, sums, out)


def add_squares(out: Array, rows: RowView, numbers: Numbers, weights: Array) -> None:
    """Add to `out`, over all numbers, the weight times a row times itself, turned."""
    used, places = used_rows(numbers, rows.shape[0])
    totals = np.bincount(places, weights=weights, minlength=len(used))
    for own, roots in _parts(max(out.shape), used, np.sqrt(totals)):
        full, is_sparse = _gathered(rows, own, roots)
        if is_sparse:
            add_outer_products(rows, own, full * roots[:, np.newaxis], out)
        else:
            above = np.triu(dsyrk(1.0, full.T))  # half the work: below the diagonal it is the same
            out += above
            out += np.triu(above, 1).T


def add_rows_times(rows: RowView, numbers: Numbers, factors: Array, out: Array) -> None:
    """Add ``X' F`` to `out` for the rows X with these numbers: as many as there are in F."""
    for own, G in _parts(max(out.shape), numbers, factors):
        full, is_sparse = _gathered(rows, own, np.ones(len(own)))
        if is_sparse:
            add_outer_products(rows, own, G, out)
        else:
            # In place: the turned arrays are in the order that BLAS has.
            dgemm(1.0, G.T, full.T, beta=1.0, c=out.T, trans_b=True, overwrite_c=True)


def _parts(width: int, *arrays: NDArray[Any]) -> Iterator[tuple[NDArray[Any], ...]]:
    """Cut arrays alike, into so many rows that as many of this width are held at once."""
    at_once = max(1, _AT_ONCE // width)
    for first in range(0, len(arrays[0]), at_once):
        yield tuple(array[first : first + at_once] for array in arrays)


def _gathered(rows: RowView, numbers: Numbers, scales: Array) -> tuple[Array, bool]:
    """Give rows times their scales, in a matrix, and whether most of its values are zero."""
    full = np.zeros((len(numbers), rows.shape[1]))
    n_values = add_sums(rows, np.arange(len(numbers) + 1), numbers, scales, full)
    return full, n_values < _FEW * full.size

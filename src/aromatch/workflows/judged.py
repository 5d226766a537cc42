"""Precision at k, average precision and nDCG by grades of some objects, as TREC has them.

What was not judged is not relevant. nDCG takes the grade itself as the gain, as trec_eval does; grades below 0 gain
nothing. Objects with equal scores stand in the order of `evaluation.tie_order`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._utils.rows import Matrix
from ..evaluation.retrieval import RetrievalReport, tie_order

Array = NDArray[np.float64]
_SCORES_AT_ONCE = 2**22


def evaluate_judged(
    model: Any, Q: Matrix, P: Matrix, grades: Any, query_rows: NDArray[np.int64], ks: Sequence[int], *, own: bool
) -> RetrievalReport:
    """Rank all objects for some queries, and say how well those with high grades come first.

    Parameters
    ----------
    model : object with a method ``similarity(Q, P)``
    Q, P : matrices of queries and of objects
    grades : CSR matrix of shape (n_queries, n_objects)
    query_rows : rows of Q
        Those without a relevant object are left out, and counted.
    ks : whole numbers
    own : bool
        Whether queries are the objects, and a row does not find itself.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from aromatch.workflows.baseline import Cosine
    >>> grades = sparse.csr_array([[2, 0, 1]])
    >>> Q, P = np.array([[1.0, 0.0]]), np.array([[0.6, 0.8], [1.0, 0.0], [0.8, 0.6]])
    >>> report = evaluate_judged(Cosine(), Q, P, grades, np.array([0]), (1, 3), own=False)
    >>> report.precision[1], round(report.mean_average_precision, 3), round(report.ndcg[3], 3)
    (0.0, 0.583, 0.62)
    """
    order = tie_order(P.shape[0])
    relevant = [_relevant(grades, row, own) for row in query_rows.tolist()]
    kept = [at for at, (places, _) in enumerate(relevant) if len(places)]
    if not kept:
        raise ValueError(f"none of the {len(query_rows):,} queries has a relevant object, expected one that has")
    place_in_order = np.argsort(order)
    step = max(1, _SCORES_AT_ONCE // P.shape[0])
    values: list[Array] = []
    for start in range(0, len(kept), step):
        some = kept[start : start + step]
        scores = np.asarray(model.similarity(Q[query_rows[some]], P), dtype=np.float64)
        for at, row_scores in zip(some, scores, strict=True):
            if own:
                row_scores[query_rows[at]] = -np.inf
            places, gains = relevant[at]
            ranks = _ranks(row_scores, places, place_in_order)
            values.append(_measures(ranks, gains, ks))
    table = np.array(values).T
    n = len(ks)
    return RetrievalReport(
        precision={k: float(row.mean()) for k, row in zip(ks, table[1 : 1 + n], strict=True)},
        mean_average_precision=float(table[0].mean()),
        ndcg={k: float(row.mean()) for k, row in zip(ks, table[1 + n :], strict=True)},
        n_queries=len(kept),
        n_queries_left_out=len(query_rows) - len(kept),
        average_precision=table[0],
        precision_per_query=dict(zip(ks, table[1 : 1 + n], strict=True)),
        ndcg_per_query=dict(zip(ks, table[1 + n :], strict=True)),
        query_rows=query_rows[kept],
    )


def _relevant(grades: Any, row: int, own: bool) -> tuple[NDArray[np.int64], Array]:
    """Give what is relevant for a query, and its gains."""
    here = slice(grades.indptr[row], grades.indptr[row + 1])
    places, gains = grades.indices[here].astype(np.int64), grades.data[here].astype(np.float64)
    is_relevant = (gains > 0) & (places != row if own else True)
    return places[is_relevant], gains[is_relevant]


def _ranks(scores: Array, places: NDArray[np.int64], place_in_order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give the ranks, from 1, of some objects among all."""
    order = np.lexsort((place_in_order, -scores))
    ranks = np.empty(len(scores), dtype=np.int64)
    ranks[order] = np.arange(1, len(scores) + 1)
    return ranks[places]


def _measures(ranks: NDArray[np.int64], gains: Array, ks: Sequence[int]) -> Array:
    by_rank = np.argsort(ranks)
    ranks, ordered = ranks[by_rank], gains[by_rank]
    average = float(np.mean(np.arange(1, len(ranks) + 1) / ranks))
    best = np.sort(gains)[::-1]
    precision, ndcg = [], []
    for k in ks:
        is_in = ranks <= k
        precision.append(np.count_nonzero(is_in) / k)
        ideal = float(np.sum(best[:k] / np.log2(np.arange(2, len(best[:k]) + 2))))
        ndcg.append(float(np.sum(ordered[is_in] / np.log2(ranks[is_in] + 1))) / ideal)
    return np.array([average, *precision, *ndcg])

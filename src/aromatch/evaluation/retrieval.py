"""Retrieval evaluation: precision at k, mean average precision and nDCG, for any model with `similarity`.

Each query ranks all objects by decreasing score. Relevance is binary, from labels (the objects of the query's class),
or graded, from relevance judgements (qrels). With the ranks ``r_1 < r_2 < ... < r_R`` of the R relevant objects of a
query:

- precision at k is the number of ranks that are at most k, divided by k;
- average precision is the mean of ``j / r_j``, the precision at the rank of each relevant object;
- nDCG at k is the sum of ``g_j / log2(r_j + 1)`` over the ranks that are at most k, divided by its value for an ideal
  ranking, where the gain ``g_j`` is the grade of the object, and 1 with labels, as in trec_eval.

Objects with equal scores are ordered pseudo-randomly (`tie_order`), in the same way for every query and model. In row
order, a model with constant scores would look perfect on data sorted by class.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from .._utils.checks import (
    as_array,
    as_list,
    check_fits_in_memory,
    check_integer,
    check_labels,
    check_number,
    check_range,
    class_indices,
)
from .._utils.chunks import chunks
from .._utils.rows import Matrix, as_matrix, check_structure

# Scores computed by one call of the model: 64 MiB, and not all queries if there are few objects.
_BLOCK_SCORES = 2**23
_BLOCK_QUERIES = 2**12
# Scores ranked together: few, so that the passes over them stay in the processor's cache.
_TILE_SCORES = 2**16
# A random number, an index, and room to sort them.
_BYTES_OF_A_TIE = 3 * 8


class HasSimilarity(Protocol):
    """A model that scores rows of Q against rows of P; a higher score means more similar."""

    def similarity(self, Q: Any, P: Any, /) -> Any:
        """Return the array of scores, one row for each row of Q and one column for each row of P."""


@dataclass(frozen=True, eq=False)
class RetrievalReport:
    """The result of `evaluate_retrieval`: means over the queries, and the values of each query for paired tests.

    Attributes
    ----------
    precision : dict of int to float
        Mean precision at each k.
    mean_average_precision : float
        Mean average precision (mAP).
    ndcg : dict of int to float
        Mean nDCG at each k.
    n_queries : int
        Number of evaluated queries.
    n_queries_left_out : int
        Number of queries without a relevant object; the means do not include them.
    average_precision : float64 array of shape (n_queries,)
        Average precision of each query.
    precision_per_query, ndcg_per_query : dict of int to float64 array of shape (n_queries,)
        Precision and nDCG at each k of each query.
    query_rows : int64 array of shape (n_queries,)
        The row of Q that each of these values belongs to.
    """

    precision: dict[int, float]
    mean_average_precision: float
    ndcg: dict[int, float]
    n_queries: int
    n_queries_left_out: int
    average_precision: NDArray[np.float64] = field(repr=False)
    precision_per_query: dict[int, NDArray[np.float64]] = field(repr=False)
    ndcg_per_query: dict[int, NDArray[np.float64]] = field(repr=False)
    query_rows: NDArray[np.int64] = field(repr=False)

    def __str__(self) -> str:
        values = [f"mAP {self.mean_average_precision:.3f}"]
        values += [f"P@{k} {value:.3f}" for k, value in self.precision.items()]
        values += [f"nDCG@{k} {value:.3f}" for k, value in self.ndcg.items()]
        left_out = f", {self.n_queries_left_out:,} left out" if self.n_queries_left_out else ""
        return f"{'  '.join(values)}  ({self.n_queries:,} queries{left_out})"


def evaluate_retrieval(
    model: HasSimilarity,
    Q: Any,
    y: ArrayLike | None = None,
    P: Any = None,
    y_objects: ArrayLike | None = None,
    *,
    qrels: Any = None,
    query_rows: ArrayLike | None = None,
    ks: Iterable[int] = (1, 10),
) -> RetrievalReport:
    """Rank all objects for every query and compute precision at k, average precision and nDCG at k.

    Relevance comes from labels (`y`, and `y_objects` if P is given) or from graded judgements (`qrels`). Scores are
    computed in blocks of queries, so that memory stays bounded.

    Parameters
    ----------
    model : object with a method ``similarity(Q, P)``
        Called with rows of Q and all rows of P (CSR if they are sparse); returns scores, higher for more similar.
    Q : array or sparse matrix of shape (n_queries, n_features)
        The queries.
    y : sequence of labels, one for each query
        The relevant objects of a query are those with its label. Any values that sort.
    P : array or sparse matrix of shape (n_objects, n_features of objects), optional
        The objects. By default the rows of Q, where a query does not retrieve itself. If P is given, nothing is
        excluded, even if it contains the queries.
    y_objects : sequence of labels, one for each object
        Required with y if P is given, and only then.
    qrels : array or sparse matrix of shape (n_queries, n_objects)
        The grade of each object for each query. Objects with a positive grade are relevant, and their grade is the
        gain of nDCG; unjudged objects are not relevant.
    query_rows : int array, optional
        The rows of Q to evaluate, all by default; y and qrels have a row for each row of Q in any case.
    ks : iterable of int
        Ranks at which precision and nDCG are computed. Precision at k divides by k even if there are fewer objects.

    Returns
    -------
    report : RetrievalReport
        Means, and the values of each query.

    Notes
    -----
    Equal scores are ordered by `tie_order`. Scores that differ by rounding only are not equal.

    Examples
    --------
    >>> import numpy as np
    >>> from aromatch.evaluation import evaluate_retrieval
    >>> class Cosine:
    ...     def similarity(self, Q, P):
    ...         return Q @ P.T
    >>> angle = np.radians([0, 10, 50, 95, 30])
    >>> X = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> report = evaluate_retrieval(Cosine(), X, ["a", "a", "b", "b", "c"], ks=[1, 2])
    >>> print(report)
    mAP 0.833  P@1 0.750  P@2 0.375  nDCG@1 0.750  nDCG@2 0.750  (4 queries, 1 left out)
    >>> report.average_precision
    array([1.        , 1.        , 0.33333333, 1.        ])
    >>> report.query_rows
    array([0, 1, 2, 3])

    Graded judgements of three objects for the first query:

    >>> print(evaluate_retrieval(Cosine(), X[:1], P=X[2:], qrels=[[2, 0, 1]], ks=[2]))
    mAP 1.000  P@2 1.000  nDCG@2 0.860  (1 queries)
    """
    if isinstance(model, type) or not callable(getattr(model, "similarity", None)):
        raise TypeError(f"model must have a method similarity(Q, P), got {model!r}")
    cutoffs = _check_ks(ks)
    queries = as_matrix(Q, "Q")
    check_structure(queries, "Q")
    objects = queries
    if P is not None:
        objects = as_matrix(P, "P")
        check_structure(objects, "P")
    # The objects are sorted by the order of ties once: of two equal columns below, the first wins.
    order = tie_order(objects.shape[0])
    own_column = np.argsort(order) if P is None else None
    if (y is None) == (qrels is None):
        raise ValueError(f"pass either y or qrels, got {'neither' if y is None else 'both'}")
    if qrels is None:
        n_relevant, gains_of = _from_labels(y, y_objects, queries, None if P is None else objects, order)
        none_relevant = f"has the label of {'another row of Q' if P is None else 'a row of P'}"
    elif y_objects is not None:
        raise ValueError("y_objects belongs to y, got it with qrels")
    else:
        n_relevant, gains_of = _from_qrels(qrels, (queries.shape[0], objects.shape[0]), order, own_column)
        none_relevant = "has a positive grade in qrels"
    rows = _check_query_rows(query_rows, queries.shape[0])
    evaluated = rows[n_relevant[rows] > 0]
    if not len(evaluated):
        name = "y" if qrels is None else "qrels"
        raise ValueError(f"{name} has no query that can be evaluated: none of the {len(rows)} {none_relevant}")

    objects = objects[order]
    logs = np.log2(np.arange(len(order)) + 2)
    measures = np.empty((1 + 2 * len(cutoffs), len(evaluated)))
    for block in chunks(len(evaluated), min(_BLOCK_QUERIES, _BLOCK_SCORES // len(order))):
        block_rows = evaluated[block]
        scores = _scores(model, queries[block_rows], objects)
        if np.isnan(scores).any():
            at = np.unravel_index(np.argmax(np.isnan(scores)), scores.shape)
            raise ValueError(
                f"model.similarity returned NaN for row {block_rows[at[0]]} of Q and row {order[at[1]]} of "
                f"{'Q' if P is None else 'P'}, expected a number"
            )
        for tile in chunks(len(block_rows), _TILE_SCORES // len(order)):
            tile_rows = block_rows[tile]
            gains = gains_of(tile_rows)
            relevant = gains if gains.dtype == np.bool_ else gains > 0
            own, counts = None if own_column is None else own_column[tile_rows], n_relevant[tile_rows]
            row, rank, column = _ranked(scores[tile], relevant, own, counts)
            found = _measures(row, rank, None if relevant is gains else gains[row, column], counts, cutoffs, logs)
            measures[:, block.start + tile.start : block.start + tile.stop] = found
        # Otherwise memory would hold two blocks while the model computes the next one.
        del scores

    for array in (measures, evaluated):
        array.setflags(write=False)
    average_precision, precision, ndcg = np.split(measures, [1, 1 + len(cutoffs)])
    return RetrievalReport(
        precision={k: float(values.mean()) for k, values in zip(cutoffs, precision, strict=True)},
        mean_average_precision=float(average_precision.mean()),
        ndcg={k: float(values.mean()) for k, values in zip(cutoffs, ndcg, strict=True)},
        n_queries=len(evaluated),
        n_queries_left_out=len(rows) - len(evaluated),
        average_precision=average_precision[0],
        precision_per_query=dict(zip(cutoffs, precision, strict=True)),
        ndcg_per_query=dict(zip(cutoffs, ndcg, strict=True)),
        query_rows=evaluated,
    )


def tie_order(n_objects: int) -> NDArray[np.int64]:
    """Return the order in which objects with equal scores are ranked.

    Which of two rows comes first depends on the two row numbers only: the order is the same on every machine, for every
    version of NumPy and for any number of other objects.

    Parameters
    ----------
    n_objects : int
        Number of objects.

    Returns
    -------
    rows : int64 array of shape (n_objects,)
        A permutation of 0 to n_objects - 1, the first rank first.

    Examples
    --------
    >>> from aromatch.evaluation import tie_order
    >>> tie_order(5)
    array([3, 2, 1, 0, 4])
    """
    n_objects = check_integer(n_objects, "n_objects", at_least=0)
    check_fits_in_memory(n_objects * _BYTES_OF_A_TIE, f"The order of {n_objects:,} objects (n_objects)")
    # NumPy guarantees the stream of a bit generator, but not that of Generator.permutation.
    return np.argsort(np.random.PCG64(0).random_raw(n_objects), kind="stable")


def _check_ks(ks: Iterable[int]) -> list[int]:
    """Return the cutoffs without duplicates, in the given order."""
    if not isinstance(ks, Iterable):
        raise TypeError(f"ks must be an iterable of whole numbers, got {ks!r} ({type(ks).__name__})")
    cutoffs = list(dict.fromkeys(check_integer(k, "each of ks", at_least=1) for k in as_list(ks, "ks")))
    for k in cutoffs:
        check_number(k, "each of ks")  # precision divides by it
    return cutoffs


def _check_query_rows(query_rows: ArrayLike | None, n_queries: int) -> NDArray[np.int64]:
    if query_rows is None:
        return np.arange(n_queries)
    rows = as_array(query_rows, "query_rows")
    if rows.ndim != 1 or (rows.dtype.kind not in "iu" and rows.size):
        raise ValueError(f"query_rows must be a 1-D array of row numbers, got {rows.dtype} of shape {rows.shape}")
    rows = rows.astype(np.int64)
    check_range(rows, "query_rows", n_queries, "Q")
    return rows


# The number of relevant objects of each query, and a function from rows of Q to gains of the sorted objects.
_Relevance: TypeAlias = tuple[NDArray[np.int64], Callable[[NDArray[np.int64]], NDArray[Any]]]


def _from_labels(
    y: Any, y_objects: ArrayLike | None, queries: Matrix, objects: Matrix | None, order: NDArray[np.int64]
) -> _Relevance:
    labels = check_labels(y, "y", queries.shape[0])
    if (objects is None) != (y_objects is None):
        given, missing = ("P", "y_objects") if y_objects is None else ("y_objects", "P")
        raise ValueError(f"P and y_objects belong together, got {given} without {missing}")
    object_labels = (
        None if y_objects is None or objects is None else check_labels(y_objects, "y_objects", objects.shape[0])
    )
    classes, object_classes = class_indices(labels, object_labels)
    counts = np.bincount(object_classes, minlength=int(classes.max(initial=-1)) + 1)
    sorted_classes = object_classes[order]
    return counts[classes] - (objects is None), lambda rows: classes[rows, np.newaxis] == sorted_classes


def _from_qrels(
    qrels: Any, shape: tuple[int, int], order: NDArray[np.int64], own_column: NDArray[np.int64] | None
) -> _Relevance:
    grades = as_matrix(qrels, "qrels")
    check_structure(grades, "qrels")
    if grades.shape != shape:
        raise ValueError(f"qrels must have the shape (n_queries, n_objects) = {shape}, got {grades.shape}")
    grades = sparse.csr_array(grades, dtype=np.float64)
    if not np.isfinite(grades.data).all():
        raise ValueError("qrels contains NaN or infinity, expected finite grades")
    n_relevant = np.asarray((grades > 0).sum(axis=1)).ravel()
    if own_column is not None:
        n_relevant = n_relevant - (grades.diagonal() > 0)
    grades = grades[:, order]
    return n_relevant, lambda rows: grades[rows].toarray()


def _scores(model: HasSimilarity, queries: Matrix, objects: Matrix) -> NDArray[Any]:
    """Return the scores of the model, and check their shape and type."""
    answer = model.similarity(queries, objects)
    scores = np.asarray(answer.toarray() if hasattr(answer, "toarray") else answer)
    expected = (queries.shape[0], objects.shape[0])
    if scores.shape != expected:
        raise ValueError(f"model.similarity must return an array of shape {expected}, got {scores.shape}")
    if scores.dtype.kind not in "fiub":
        raise TypeError(f"model.similarity must return real numbers, got an array of {scores.dtype}")
    return scores


def _ranked(
    scores: NDArray[Any],
    relevant: NDArray[np.bool_],
    own_column: NDArray[np.int64] | None,
    n_relevant: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Rank the columns of each row, equal scores by column; return row, rank (from 0) and column of the relevant ones.

    `own_column` is the column of each row to exclude: it is ranked last, and is not relevant.

    Sorting int64 keys takes a fraction of the time of a stable argsort. From its top, a key contains: the score, as an
    integer with the same order, without its lowest bits; the column; the relevance. Scores that differ in the lowest
    bits only may be out of order. That is rare and easy to detect, and such rows are sorted again by argsort.
    """
    # Subtracted from 0.0, so that 0.0 and -0.0 have the same bits.
    falling = np.subtract(0.0, scores, dtype=np.float64, order="C")
    n_rows, n_columns = falling.shape
    if own_column is not None:
        # NaN is sorted after every number, in its bits and in NumPy's sorts.
        falling[np.arange(n_rows), own_column] = np.nan
        relevant[np.arange(n_rows), own_column] = False

    n_low = (n_columns - 1).bit_length() + 1
    low = np.int64((1 << n_low) - 1)
    bits = falling.view(np.int64)
    # Negative floats have decreasing bits: flip all but the sign.
    keys: NDArray[np.int64] = bits >> 63
    keys &= np.iinfo(np.int64).max
    keys ^= bits
    keys &= ~low
    keys |= np.arange(n_columns) << 1
    keys |= relevant
    keys.sort(axis=1)

    high = keys >> n_low
    # Flat: NumPy takes ten times as long for indices in two dimensions.
    tied = np.flatnonzero(high[:, 1:] == high[:, :-1])
    if len(tied):
        row, rank = np.divmod(tied, n_columns - 1)
        column, next_column = ((keys[row, rank + after] & low) >> 1 for after in (0, 1))
        wrong = np.unique(row[falling[row, next_column] < falling[row, column]])
        columns = np.argsort(falling[wrong], axis=1, kind="stable")
        keys[wrong] = (columns << 1) | np.take_along_axis(relevant[wrong], columns, axis=1)
    found = np.flatnonzero(keys & 1)
    row = np.repeat(np.arange(n_rows), n_relevant)
    return row, found - row * n_columns, (keys.ravel()[found] & low) >> 1


def _measures(
    row: NDArray[np.int64],
    rank: NDArray[np.int64],
    gains: NDArray[np.float64] | None,
    n_relevant: NDArray[np.int64],
    ks: list[int],
    logs: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return average precision, precision at each k and nDCG at each k, a column for each query.

    Gains are 1 unless given. Sums run over the relevant objects by rank, so that they do not depend on the blocks,
    and the sum of an ideal ranking equals the ideal sum to the bit.
    """
    n_rows = len(n_relevant)
    nth = np.arange(len(row)) - np.repeat(np.cumsum(n_relevant) - n_relevant, n_relevant)
    average_precision = np.bincount(row, (nth + 1) / (rank + 1), minlength=n_rows) / n_relevant
    discounts = 1 / logs
    discounted, ideal = discounts[rank], discounts[nth]
    if gains is not None:
        discounted, ideal = gains / logs[rank], gains[np.lexsort((-gains, row))] / logs[nth]

    precision, ndcg = [], []
    for k in ks:
        head, ideal_head = rank < k, nth < k
        precision.append(np.bincount(row[head], minlength=n_rows) / k)
        dcg = np.bincount(row[head], discounted[head], minlength=n_rows)
        ndcg.append(dcg / np.bincount(row[ideal_head], ideal[ideal_head], minlength=n_rows))
    return np.array([average_precision, *precision, *ndcg])

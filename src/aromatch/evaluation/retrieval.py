"""Retrieval evaluation: precision at k, mean average precision and nDCG, for anything with `similarity`.

Every query ranks all objects by falling score; the objects of its class are the relevant ones. With the ranks
``r_1 < r_2 < ... < r_R`` of the R relevant objects of a query:

- precision at k is the number of ranks that are at most k, divided by k;
- average precision is the mean of ``j / r_j``, the precision at the place of each relevant object;
- nDCG at k is the sum of ``1 / log2(r_j + 1)`` over the ranks that are at most k, divided by its value for a
  perfect ranking.

Objects with equal scores stand in a fixed pseudo-random order (`tie_order`), the same for every query and
every model. In the order of the rows a model that scores everything the same would look perfect for data that
are sorted by class.

`reliability` is about probabilities instead: whether of all that get 80 % about 80 % come true.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._utils.checks import as_array, check_integer, check_labels, class_numbers
from .._utils.rows import Matrix, as_matrix, check_structure

# What is asked of the model at once: 64 MiB of scores, and not all queries where there are few objects.
_BLOCK_SCORES = 2**23
_BLOCK_QUERIES = 2**12
# Scores ranked at once: small, so that the many passes over them stay in the processor's cache.
_TILE_SCORES = 2**16


class HasSimilarity(Protocol):
    """Anything that scores rows of Q against rows of P; a higher score means more similar."""

    def similarity(self, Q: Any, P: Any, /) -> Any:
        """Return the array of scores, one row for each row of Q and one column for each row of P."""


@dataclass(frozen=True, eq=False)
class RetrievalReport:
    """What `evaluate_retrieval` found: means over the queries, and the values of each query for paired tests.

    Attributes
    ----------
    precision : dict of int to float
        Mean precision at each k.
    mean_average_precision : float
        Mean over the queries of their average precision (mAP).
    ndcg : dict of int to float
        Mean nDCG at each k, with gain 1 for a relevant object and 0 for any other.
    n_queries : int
        Queries that were evaluated.
    n_queries_left_out : int
        Queries without a single relevant object, which no model can answer; they are in none of the means.
    average_precision : float64 array of shape (n_queries,)
        Average precision of each query.
    precision_per_query, ndcg_per_query : dict of int to float64 array of shape (n_queries,)
        Precision and nDCG at each k of each query.
    query_rows : int64 array of shape (n_queries,)
        The row of Q that each of these values belongs to, in rising order.
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
    y: ArrayLike,
    P: Any = None,
    y_objects: ArrayLike | None = None,
    ks: Iterable[int] = (1, 10),
) -> RetrievalReport:
    """Rank all objects for every query and say how well the objects of the query's class come first.

    Scores are asked of the model for a block of queries at a time, so that all of them never stand in memory
    at once.

    Parameters
    ----------
    model : object with a method ``similarity(Q, P)``
        It gets rows of Q and all rows of P (CSR where they were sparse) and returns their scores, higher for
        more similar.
    Q : array or sparse matrix of shape (n_queries, n_features)
        The queries.
    y : sequence of labels, one for each query
        Anything that sorts.
    P : array or sparse matrix of shape (n_objects, n_features of objects), optional
        The objects. Without them every row of Q is also an object, for all queries but itself. A P that
        happens to hold the queries is taken at its word: then each query finds itself.
    y_objects : sequence of labels, one for each object
        Needed when P is given, and only then.
    ks : iterable of int
        The k of precision at k and of nDCG at k. Precision at k divides by k even where there are fewer
        objects.

    Returns
    -------
    report : RetrievalReport
        Means, and the values of each query.

    Notes
    -----
    Equal scores are ordered by `tie_order`. Scores that should be equal but were rounded differently, because
    the model computes rows of the same values in different ways, are not equal.

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
    """
    if not callable(getattr(model, "similarity", None)):
        raise TypeError(f"model must have a method similarity(Q, P), got {model!r}")
    cutoffs = _check_ks(ks)
    queries = as_matrix(Q, "Q")
    check_structure(queries, "Q")
    labels = check_labels(y, "y", queries.shape[0])
    if P is None and y_objects is None:
        objects, object_labels = queries, None
    elif P is not None and y_objects is not None:
        objects = as_matrix(P, "P")
        check_structure(objects, "P")
        object_labels = check_labels(y_objects, "y_objects", objects.shape[0])
    else:
        given, missing = ("P", "y_objects") if y_objects is None else ("y_objects", "P")
        raise ValueError(f"P and y_objects belong together, got {given} without {missing}")
    classes, object_classes = class_numbers(labels, object_labels)

    counts = np.bincount(object_classes, minlength=int(classes.max(initial=-1)) + 1)
    n_relevant = counts[classes] - (P is None)
    query_rows = np.flatnonzero(n_relevant > 0)
    if not len(query_rows):
        raise ValueError(
            f"y has no query that can be evaluated: none of the {len(classes)} has the label of "
            f"{'another row of Q' if P is None else 'a row of P'}"
        )

    # The objects are put in the order of ties here, once: below, of two equal columns the first wins.
    order = tie_order(len(object_classes))
    objects, object_classes = objects[order], object_classes[order]
    own_column = np.argsort(order) if P is None else None
    discounts = 1 / np.log2(np.arange(len(order)) + 2)
    ideal = np.cumsum(discounts)

    measures = np.empty((1 + 2 * len(cutoffs), len(query_rows)))
    block = max(1, min(_BLOCK_QUERIES, _BLOCK_SCORES // len(order)))
    tile = max(1, _TILE_SCORES // len(order))
    for block_start in range(0, len(query_rows), block):
        block_rows = query_rows[block_start : block_start + block]
        scores = _scores(model, queries[block_rows], objects)
        if np.isnan(scores).any():
            at = np.unravel_index(np.argmax(np.isnan(scores)), scores.shape)
            raise ValueError(
                f"model.similarity gave NaN for row {block_rows[at[0]]} of Q and row {order[at[1]]} of "
                f"{'Q' if P is None else 'P'}, expected a number"
            )
        for start in range(0, len(block_rows), tile):
            rows = block_rows[start : start + tile]
            own = None if own_column is None else own_column[rows]
            ranked = _relevance_by_rank(scores[start : start + tile], classes[rows], object_classes, own)
            here = slice(block_start + start, block_start + start + len(rows))
            measures[:, here] = _measures(ranked, n_relevant[rows], cutoffs, discounts, ideal)
        # Otherwise two blocks would stand in memory while the model computes the next.
        del scores

    for array in (measures, query_rows):
        array.setflags(write=False)
    average_precision, precision, ndcg = np.split(measures, [1, 1 + len(cutoffs)])
    return RetrievalReport(
        precision={k: float(values.mean()) for k, values in zip(cutoffs, precision, strict=True)},
        mean_average_precision=float(average_precision.mean()),
        ndcg={k: float(values.mean()) for k, values in zip(cutoffs, ndcg, strict=True)},
        n_queries=len(query_rows),
        n_queries_left_out=len(classes) - len(query_rows),
        average_precision=average_precision[0],
        precision_per_query=dict(zip(cutoffs, precision, strict=True)),
        ndcg_per_query=dict(zip(cutoffs, ndcg, strict=True)),
        query_rows=query_rows,
    )


@dataclass(frozen=True, eq=False)
class Reliability:
    """What `reliability` found, from the least sure comparisons to the surest.

    Attributes
    ----------
    predicted : float64 array
        Mean probability of what was thought more likely, in each part.
    observed : float64 array
        Share of it that came true.
    counts : int64 array
        Comparisons in each part.
    largest_gap : float
        The largest difference between both.
    """

    predicted: NDArray[np.float64]
    observed: NDArray[np.float64]
    counts: NDArray[np.int64]

    @property
    def largest_gap(self) -> float:
        """The largest difference between what was predicted and what came true."""
        return float(np.abs(self.predicted - self.observed).max())

    def __str__(self) -> str:
        rows = zip(self.predicted, self.observed, self.counts, strict=True)
        return "\n".join(f"{predicted:.3f} -> {observed:.3f} ({count:,})" for predicted, observed, count in rows)


def reliability(probabilities: ArrayLike, n_parts: int = 10) -> Reliability:
    """Compare probabilities with what happened.

    Parameters
    ----------
    probabilities : array of shape (N,)
        What a model gave to objects that were preferred, before it was told so (`probability`).
    n_parts : int, default 10
        Parts of the same size, by how sure the model was: its probability, or one less it when that is larger.
        Where it saw no difference, half came true.

    Examples
    --------
    >>> from aromatch.evaluation import reliability
    >>> print(reliability([0.9, 0.8, 0.9, 0.6, 0.4, 0.6], n_parts=2))
    0.600 -> 0.667 (3)
    0.867 -> 1.000 (3)
    """
    given = as_array(probabilities, "probabilities")
    n_parts = check_integer(n_parts, "n_parts", at_least=1)
    is_right = given.dtype.kind in "iuf" and given.ndim == 1 and len(given) >= n_parts
    if not is_right or not ((given >= 0) & (given <= 1)).all():
        raise ValueError(f"probabilities must be at least {n_parts} numbers from 0 to 1 in one dimension")
    sure, came_true = np.maximum(given, 1 - given), np.where(given == 0.5, 0.5, given > 0.5)
    parts = np.array_split(np.argsort(sure, kind="stable"), n_parts)
    return Reliability(
        np.array([sure[part].mean() for part in parts]),
        np.array([came_true[part].mean() for part in parts]),
        np.array([len(part) for part in parts]),
    )


def tie_order(n_objects: int) -> NDArray[np.int64]:
    """Return the rows of objects in the order in which they stand when all scores are equal.

    Which of two rows comes first depends on the two row numbers only: it is the same on every machine, for
    every version of NumPy and for any number of other objects.

    Parameters
    ----------
    n_objects : int
        How many objects there are.

    Returns
    -------
    rows : int64 array of shape (n_objects,)
        A permutation of 0 to n_objects - 1, first place first.

    Examples
    --------
    >>> from aromatch.evaluation import tie_order
    >>> tie_order(5)
    array([3, 2, 1, 0, 4])
    """
    n_objects = check_integer(n_objects, "n_objects", at_least=0)
    # The raw numbers of a bit generator are promised never to change; those of Generator.permutation are not.
    return np.argsort(np.random.PCG64(0).random_raw(n_objects), kind="stable")


def _check_ks(ks: Iterable[int]) -> list[int]:
    """Return the cutoffs, each once, in the order they were given."""
    if not isinstance(ks, Iterable):
        raise TypeError(f"ks must be an iterable of whole numbers, got {ks!r} ({type(ks).__name__})")
    return list(dict.fromkeys(check_integer(k, "each of ks", at_least=1) for k in ks))


def _scores(model: HasSimilarity, queries: Matrix, objects: Matrix) -> NDArray[Any]:
    """Ask the model, and see that the answer is what it should be."""
    answer = model.similarity(queries, objects)
    scores = np.asarray(answer.toarray() if hasattr(answer, "toarray") else answer)
    expected = (queries.shape[0], objects.shape[0])
    if scores.shape != expected:
        raise ValueError(f"model.similarity must give an array of shape {expected}, got {scores.shape}")
    if scores.dtype.kind not in "fiub":
        raise TypeError(f"model.similarity must give real numbers, got an array of {scores.dtype}")
    return scores


def _relevance_by_rank(
    scores: NDArray[Any],
    classes: NDArray[np.int64],
    object_classes: NDArray[np.int64],
    own_column: NDArray[np.int64] | None,
) -> NDArray[np.bool_]:
    """Rank the columns of each row, equal scores by column, and return the relevance from first to last.

    `own_column` is the column of each row that is not to be found: it comes last, and is not relevant.

    A plain sort of whole numbers does this in a fraction of the time of a stable argsort. Such a number
    holds, from its top: the score, as a whole number that sorts as the score does, without its lowest bits;
    in their place the column; last, the relevance. Scores that differ in the lowest bits alone may come out
    of order. That is rare and easy to see afterwards, and then the row is sorted the slow way.
    """
    relevant = classes[:, np.newaxis] == object_classes
    # From 0.0, so that 0.0 and -0.0 become the same number also in their bits.
    falling = np.subtract(0.0, scores, dtype=np.float64, order="C")
    n_rows, n_columns = falling.shape
    if own_column is not None:
        # NaN comes after every number, in its bits and in NumPy's sorts.
        falling[np.arange(n_rows), own_column] = np.nan
        relevant[np.arange(n_rows), own_column] = False

    n_low = (n_columns - 1).bit_length() + 1
    low = np.int64((1 << n_low) - 1)
    bits = falling.view(np.int64)
    # Negative floats sort backwards by their bits: turn all but the sign around.
    keys: NDArray[np.int64] = bits >> 63
    keys &= np.iinfo(np.int64).max
    keys ^= bits
    keys &= ~low
    keys |= np.arange(n_columns) << 1
    keys |= relevant
    keys.sort(axis=1)
    ranked = (keys & 1).astype(np.bool_)

    high = keys >> n_low
    # Flat: NumPy takes ten times as long to find places in two dimensions.
    found = np.flatnonzero(high[:, 1:] == high[:, :-1])
    if len(found):
        row, place = np.divmod(found, n_columns - 1)
        column, next_column = ((keys[row, place + after] & low) >> 1 for after in (0, 1))
        wrong = np.unique(row[falling[row, next_column] < falling[row, column]])
        columns = np.argsort(falling[wrong], axis=1, kind="stable")
        ranked[wrong] = np.take_along_axis(relevant[wrong], columns, axis=1)
    return ranked


def _measures(
    ranked: NDArray[np.bool_],
    n_relevant: NDArray[np.int64],
    ks: list[int],
    discounts: NDArray[np.float64],
    ideal: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return average precision, precision at each k and nDCG at each k, a column for each row of `ranked`.

    Sums run over the relevant objects from first to last, so that they are the same in any block, and the sum
    of a perfect ranking is the ideal one to the bit.
    """
    n_rows, n_columns = ranked.shape
    row = np.repeat(np.arange(n_rows), n_relevant)
    place = np.flatnonzero(ranked) - row * n_columns
    nth = np.arange(1, len(row) + 1) - np.repeat(np.cumsum(n_relevant) - n_relevant, n_relevant)
    average_precision = np.bincount(row, nth / (place + 1), minlength=n_rows) / n_relevant

    precision, ndcg = [], []
    for k in ks:
        depth = min(k, n_columns)
        head = place < depth
        precision.append(np.bincount(row[head], minlength=n_rows) / k)
        gain = np.bincount(row[head], discounts[place[head]], minlength=n_rows)
        ndcg.append(gain / ideal[np.minimum(n_relevant, depth) - 1])
    return np.array([average_precision, *precision, *ndcg])

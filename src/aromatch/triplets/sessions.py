"""Triplets from sessions: weak supervision by co-visits, which section 2 of the paper mentions.

Users who visit an object go on to similar ones. For every pair of objects, count the sessions in which both were
visited. For a query i, an object j is preferred over k if i was visited with j more often than with k; most k were
never visited with i.

Popular objects are visited with everything. With `discount`, pairs are sampled and compared by their count over the
count expected by chance, raised to that power.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._utils.checks import check_fits_in_memory, check_integer, check_not_sparse, check_number, random_generator
from ._comparisons import Comparisons, IdRows, Report, UnknownIds, sample_unless

# Three indices, each with a copy, and what the samples are compared with.
_BYTES_OF_A_TRIPLET = 12 * 8
# Starts of the rows of three sparse matrices, and the popularity.
_BYTES_OF_AN_OBJECT = 6 * 8


def from_sessions(
    sessions: Iterable[Iterable[Any]],
    object_ids: Sequence[int] | Sequence[str] | int,
    n: int,
    *,
    discount: float = 0.0,
    max_length: int = 100,
    missing: str = "error",
    random_state: Any = None,
) -> Comparisons:
    """Sample triplets from sessions: objects visited together more often are more similar.

    Parameters
    ----------
    sessions : iterable of iterables of ids
        The objects visited in each session, in any order; repeated visits count once.
    object_ids : sequence of int or str, or int
        The id of every row of X; queries and objects are the same rows. With a number of rows, ids are row indices.
    n : int
        Number of triplets. The query and its preferred object are a pair that was visited together, sampled with
        probability proportional to its count; the negative is any object that was visited less often with the query.
        Triplets without a valid negative are dropped, and the report counts them.
    discount : float, default 0.0
        With 1, pairs are sampled by their count over the count expected by chance, so that popular objects count less.
        With 0, they are sampled by their count.
    max_length : int, default 100
        Sessions with more objects are ignored: they are most likely crawlers.
    missing : {"error", "skip"}, default "error"
        Whether unknown ids raise an error or are skipped.
    random_state : None, int, Generator or RandomState
        Random seed.

    Returns
    -------
    Comparisons
        `triplets` and `sample_weight` (all 1) for `fit_triplets`, and a `report`, which counts a triplet as judged if
        its negative was visited with the query, and as sampled if it never was.

    Examples
    --------
    >>> from aromatch.triplets import from_sessions
    >>> found = from_sessions([["tea", "cup"], ["tea", "cup", "oil"], ["oil", "car"]], ["tea", "cup", "oil", "car"],
    ...                       n=1000, random_state=0)
    >>> [0, 1, 2] in found.triplets.tolist(), [0, 2, 1] in found.triplets.tolist()  # tea: cup is preferred over oil
    (True, False)
    """
    n = check_integer(n, "n", at_least=0)
    power = check_number(discount, "discount", at_least=0)
    max_length = check_integer(max_length, "max_length", at_least=2)
    generator = random_generator(random_state)
    objects, unknown = IdRows(object_ids, "object_ids"), UnknownIds(missing)
    check_fits_in_memory(n * _BYTES_OF_A_TRIPLET, f"An array of {n:,} triplets (n)")
    check_fits_in_memory(objects.n * _BYTES_OF_AN_OBJECT, f"The counts of {objects.n:,} objects (object_ids)")
    visited, ends, n_read = [], [0], 0
    for number, session in enumerate(check_not_sparse(sessions, "sessions")):
        n_read += 1
        if isinstance(session, str | bytes):
            raise TypeError(f"sessions, item {number} must be ids of visited objects, got {session!r:.100}")
        rows = {unknown.row(objects, one, f"sessions, item {number}") for one in session}
        found = sorted(row for row in rows if row is not None)
        if 2 <= len(found) <= max_length:
            visited += found
            ends.append(len(visited))
    unknown.check()
    counts = _counts(np.array(visited, dtype=np.int64), np.array(ends), objects.n, power)
    if n and not counts.nnz:
        raise ValueError("sessions contain no pair of objects that were visited together, expected at least one")
    if n and not counts.sum() > 0:
        raise ValueError(f"discount must leave a pair of objects with a count above 0, got {discount!r}")
    triplets, n_both = _sample(counts, n, generator)
    report = Report(n_read, n_both, len(triplets) - n_both, unknown.n, 0, 0, n - len(triplets))
    return Comparisons(triplets, np.ones(len(triplets)), report)


def _counts(visited: NDArray[np.int64], ends: NDArray[np.int64], n_objects: int, power: float) -> Any:
    """Count how often objects were visited together, discounted by popularity."""
    visits = sparse.csr_array((np.ones(len(visited)), visited, ends), shape=(len(ends) - 1, n_objects))
    together = sparse.coo_array(visits.T @ visits)
    apart = together.coords[0] != together.coords[1]
    row, column = (along[apart] for along in together.coords)
    popularity = np.maximum(np.asarray(visits.sum(axis=0)).ravel(), 1.0)
    with np.errstate(over="ignore"):  # the more popular pairs count nothing then
        values = together.data[apart] / (popularity[row] * popularity[column]) ** power
    counts = sparse.csr_array(sparse.coo_array((values, (row, column)), shape=together.shape))
    counts.sort_indices()  # so that a cell is found without reading its row
    return counts


def _sample(together: Any, n: int, generator: np.random.Generator) -> tuple[NDArray[np.int64], int]:
    """Sample triplets; return them, and the number whose negative was visited with the query."""
    ends = np.cumsum(together.data)
    at = np.searchsorted(ends, generator.random(n) * (ends[-1] if len(ends) else 0), side="right")
    at = np.minimum(at, max(0, together.nnz - 1))
    query = np.searchsorted(together.indptr, at, side="right") - 1
    good, often = together.indices[at].astype(np.int64), together.data[at]

    def is_invalid(at: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.asarray((_cells(together, query[at], other) >= often[at]) | (other == query[at]))

    other, kept = sample_unless(is_invalid, n, together.shape[0], generator)
    triplets = np.column_stack([query, good, other])[kept]
    return triplets, int(np.count_nonzero(_cells(together, triplets[:, 0], triplets[:, 2])))


def _cells(matrix: Any, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return cells of a sparse matrix; for no cells SciPy would return a matrix."""
    return np.asarray(matrix[rows, columns]).ravel() if len(rows) else np.empty(0)

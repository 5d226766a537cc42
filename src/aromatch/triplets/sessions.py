"""Triplets from what was visited together: the weak supervision that the paper names in its section 2.

Nobody judged anything, but people who look at one thing go on to things that are like it. Count for every pair of
objects in how many sessions both were visited. For a query i, an object j is better than an object k when i was visited
with j more often than with k; most k are never visited with i at all.

Objects that everybody visits are together with everything. `discount` takes that out: pairs are drawn, and compared, by
their count over what it would be by chance, to that power.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._utils.checks import check_integer, check_number, random_generator
from ._comparisons import Comparisons, Report, Rows, Unknown, drawn_unless


def from_sessions(
    sessions: Iterable[Iterable[Any]],
    object_ids: Sequence[Hashable] | int,
    n: int,
    *,
    discount: float = 0.0,
    longest: int = 100,
    missing: str = "error",
    random_state: Any = None,
) -> Comparisons:
    """Draw triplets from sessions: what was visited together more often belongs together more.

    Parameters
    ----------
    sessions : iterable of iterables of ids
        What was visited in each session, in any order; a second visit of the same object does not count.
    object_ids : sequence of ids, or number of rows
        The id of every row of X, queries and objects alike. With a number of rows, ids are row numbers.
    n : int
        How many triplets to draw. The query and its preferred object are a pair that was visited together, drawn by
        its count; the other object is any other that was less often visited with the query. Pairs for which there is
        hardly any such object are given up, and then there are fewer; the report tells.
    discount : float, default 0.0
        At 1, pairs go by their count over what visits of both would give by chance, so that objects that everybody
        visits say less. At 0 they go by their count.
    longest : int, default 100
        Sessions with more objects than this are left out: they are robots, and all their pairs say nothing.
    missing : {"error", "skip"}, default "error"
        What to do with ids that no row has.
    random_state : None, int, Generator or RandomState
        The same number gives the same triplets.

    Returns
    -------
    Comparisons
        `triplets` and `sample_weight` (all 1) for `fit_triplets`, and a `report`. It counts a triplet as judged when
        the other object was visited with the query too, and as drawn when it never was.

    Examples
    --------
    >>> from aromatch.triplets import from_sessions
    >>> found = from_sessions([["tea", "cup"], ["tea", "cup", "oil"], ["oil", "car"]], ["tea", "cup", "oil", "car"],
    ...                       n=1000, random_state=0)
    >>> [0, 1, 2] in found.triplets.tolist(), [0, 2, 1] in found.triplets.tolist()  # tea: rather cup than oil
    (True, False)
    """
    n = check_integer(n, "n", at_least=0)
    power = check_number(discount, "discount", at_least=0)
    longest = check_integer(longest, "longest", at_least=2)
    generator = random_generator(random_state)
    objects, unknown = Rows(object_ids, "object_ids"), Unknown(missing)
    places, ends, n_read = [], [0], 0
    for number, session in enumerate(sessions):
        n_read += 1
        if isinstance(session, str | bytes):
            raise TypeError(f"sessions, item {number} must be ids of what was visited, got {session!r}")
        rows = {unknown.row(objects, one, f"sessions, item {number}") for one in session}
        found = sorted(row for row in rows if row is not None)
        if 2 <= len(found) <= longest:
            places += found
            ends.append(len(places))
    unknown.check()
    together = _counts(np.array(places, dtype=np.int64), np.array(ends), objects.n, power)
    if n and not together.nnz:
        raise ValueError("no two objects were visited in one session, expected some that were to draw triplets from")
    triplets, n_both = _drawn(together, n, generator)
    report = Report(n_read, n_both, len(triplets) - n_both, unknown.n, 0, 0, n - len(triplets))
    return Comparisons(triplets, np.ones(len(triplets)), report)


def _counts(places: NDArray[np.int64], ends: NDArray[np.int64], n_objects: int, power: float) -> Any:
    """Count how often objects were visited together, less what chance explains."""
    visits = sparse.csr_array((np.ones(len(places)), places, ends), shape=(len(ends) - 1, n_objects))
    together = sparse.coo_array(visits.T @ visits)
    apart = together.coords[0] != together.coords[1]
    row, column = (along[apart] for along in together.coords)
    popularity = np.maximum(np.asarray(visits.sum(axis=0)).ravel(), 1.0)
    values = together.data[apart] / (popularity[row] * popularity[column]) ** power
    counts = sparse.csr_array(sparse.coo_array((values, (row, column)), shape=together.shape))
    counts.sort_indices()  # so that a cell is found without reading its row
    return counts


def _drawn(together: Any, n: int, generator: np.random.Generator) -> tuple[NDArray[np.int64], int]:
    """Draw triplets, and tell of how many the other object was visited with the query."""
    ends = np.cumsum(together.data)
    at = np.searchsorted(ends, generator.random(n) * (ends[-1] if len(ends) else 0), side="right")
    at = np.minimum(at, max(0, together.nnz - 1))
    query = np.searchsorted(together.indptr, at, side="right") - 1
    good, often = together.indices[at].astype(np.int64), together.data[at]

    def is_wrong(at: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.asarray((_cells(together, query[at], other) >= often[at]) | (other == query[at]))

    other, kept = drawn_unless(is_wrong, n, together.shape[0], generator)
    triplets = np.column_stack([query, good, other])[kept]
    return triplets, int(np.count_nonzero(_cells(together, triplets[:, 0], triplets[:, 2])))


def _cells(matrix: Any, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
    """Give cells of a sparse matrix; SciPy gives a matrix for none of them."""
    return np.asarray(matrix[rows, columns]).ravel() if len(rows) else np.empty(0)

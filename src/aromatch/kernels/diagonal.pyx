"""d-AROMA: equations (5) and (6), and the inverse form of (6).

A round reads the mean and the variance of the same cells, so the two are interleaved, ``cells[i, j] = (w, s)``. A
scattered cell then costs one cache line instead of two, which dominates the cost of a sparse triplet.
"""

from libc.stdint cimport int64_t

from .rounds cimport count_round
from .rows cimport Pair, RowView, Workspace, floating, read_pair


def learn(
    RowView Q, RowView P, RowView N, const int64_t[:, ::1] triplets, const double[::1] weights,
    double[:, ::1] record, floating[:, :, ::1] cells, double r, bint only_mistakes, bint inverse,
    int64_t[::1] counts,
):
    """Learn the triplets in order, in place; stop before one whose score overflows.

    Returns the number of triplets learned.
    """
    cdef Py_ssize_t m = cells.shape[0], n = cells.shape[1]
    cdef Workspace space = Workspace(m, n, sizeof(floating), scratch_size(m, n))
    cdef Scratch scratch = take_scratch(space, m, n)
    cdef Pair *x = &space.pair
    cdef floating *q = <floating *>x.q
    cdef double r_t
    cdef double[2] result
    cdef Py_ssize_t t
    cdef int updated
    with nogil:
        for t in range(triplets.shape[0]):
            read_pair(x, q, &Q.rows, triplets[t, 0], &P.rows, triplets[t, 1], &N.rows, triplets[t, 2])
            r_t = r if weights is None else r / weights[t]
            updated = step(&cells[0, 0, 0], x, &scratch, r_t, only_mistakes, inverse, result)
            if updated < 0:
                with gil:
                    return t
            count_round(&counts[0], &record[t, 0] if record is not None else NULL, result[0], result[1], updated)
    return triplets.shape[0]

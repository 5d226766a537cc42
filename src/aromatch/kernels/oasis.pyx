"""OASIS: passive-aggressive steps on the triplet hinge."""

from libc.stdint cimport int64_t

from .rounds cimport note
from .rows cimport Pair, RowView, Workspace, floating, read_pair


def learn(
    RowView Q, RowView P, RowView N, const int64_t[:, ::1] triplets, const double[::1] weights,
    double[:, ::1] record, floating[:, ::1] W, double C, int64_t[::1] counts,
):
    """Learn the triplets in their order, in place; stop before one whose score overflows.

    Returns the number of triplets learned.
    """
    cdef Py_ssize_t m = W.shape[0], n = W.shape[1]
    cdef Workspace space = Workspace(m, n, sizeof(floating), m)
    cdef Pair *x = &space.pair
    cdef floating *q = <floating *>x.q
    cdef floating *tau_q = <floating *>space.take(m)
    cdef double margin
    cdef Py_ssize_t t
    cdef int updated
    with nogil:
        for t in range(triplets.shape[0]):
            read_pair(x, q, &Q.rows, triplets[t, 0], &P.rows, triplets[t, 1], &N.rows, triplets[t, 2])
            updated = step(&W[0, 0], x, tau_q, C if weights is None else C * weights[t], &margin)
            if updated < 0:
                with gil:
                    return t
            note(&counts[0], &record[t, 0] if record is not None else NULL, margin, 0, updated)
    return triplets.shape[0]

"""OASIS: passive-aggressive steps on the triplet hinge."""

from libc.math cimport isfinite
from libc.stdint cimport int64_t

from .rounds cimport note
from .rows cimport Pair, RowView, Workspace, floating, read_pair
from .vectors cimport add_outer, bilinear_form


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
    cdef floating *p = <floating *>x.p
    cdef floating *tau_q = <floating *>space.take(m)
    cdef Py_ssize_t t, k
    cdef double margin, q_norm, p_norm, tau, C_t
    cdef bint updates
    with nogil:
        for t in range(triplets.shape[0]):
            read_pair(x, q, &Q.rows, triplets[t, 0], &P.rows, triplets[t, 1], &N.rows, triplets[t, 2])
            margin = bilinear_form(&W[0, 0], x)
            if not isfinite(margin):
                with gil:
                    return t
            C_t = C if weights is None else C * weights[t]
            updates = margin < 1 and x.k_q > 0 and x.k_p > 0 and C_t > 0
            if updates:
                q_norm = 0
                for k in range(x.k_q):
                    q_norm += <double>q[k] * q[k]
                p_norm = 0
                for k in range(x.k_p):
                    p_norm += <double>p[k] * p[k]
                # Written so that a vanishing |q|^2 |p|^2 gives C, never 0 / 0.
                tau = C_t if C_t * q_norm * p_norm <= 1 - margin else (1 - margin) / (q_norm * p_norm)
                for k in range(x.k_q):
                    tau_q[k] = <floating>(tau * q[k])
                add_outer(&W[0, 0], tau_q, x)
            note(&counts[0], &record[t, 0] if record is not None else NULL, margin, 0, updates)
    return triplets.shape[0]

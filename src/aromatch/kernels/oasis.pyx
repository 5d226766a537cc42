"""OASIS: passive-aggressive steps on the triplet hinge.

Steps of sparse rows are applied to W immediately. Steps of dense rows stay pending, ``W = W_base + sum_k tau_k q_k p_k'``,
and are folded by one GEMM after a fixed number of them, or before the next sparse row. The products ``q'W_base`` are
computed for a run of triplets together. The boundaries of the runs do not change a bit.
"""

from libc.math cimport isfinite
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from .pending cimport GROUP, fold_mean, products_with_terms, read_run
from .rounds cimport count_round
from .rows cimport Pair, RowView, Workspace, floating, read_pair
from .vectors cimport dot, multiply


def learn(
    RowView Q, RowView P, RowView N, const int64_t[:, ::1] triplets, const double[::1] weights,
    double[:, ::1] record, floating[:, ::1] W, floating[:, ::1] A, floating[:, ::1] B, double[:, ::1] steps, double C,
    int64_t[::1] counts,
):
    """Learn the triplets in order, in place; stop before one whose score overflows.

    The pending q, p and tau are rows of A, B and `steps`; ``counts[3]`` is their number. Returns the number of triplets
    learned.
    """
    cdef Py_ssize_t m = W.shape[0], n = W.shape[1], capacity = A.shape[0], n_triplets = triplets.shape[0]
    cdef Py_ssize_t max_run = min(2 * capacity, n_triplets)
    cdef Workspace space = Workspace(m, n, sizeof(floating), max_run * (m + 2 * n) + 16 * m + (1 + capacity) * m)
    cdef Workspace doubles = Workspace(0, 0, sizeof(double), 2 * GROUP * capacity)
    cdef Pair *x = &space.pair
    cdef floating *Qs = <floating *>space.take(max_run * m)
    cdef floating *Ps = <floating *>space.take(max_run * n)
    cdef floating *QsW = <floating *>space.take(max_run * n)
    cdef floating *strip = <floating *>space.take(16 * m)
    cdef floating *room = <floating *>space.take((1 + capacity) * m)
    cdef double *room_for_Aq = <double *>doubles.take(GROUP * capacity)
    cdef double *room_for_Bp = <double *>doubles.take(GROUP * capacity)
    cdef double *Aq
    cdef double *Bp
    cdef floating *q
    cdef floating *p
    cdef Py_ssize_t t = 0, i = 0, k, run, pending = counts[3], known = 0, n_updates
    cdef double margin, C_t, share = (1.0 + counts[1]) / (1.0 + counts[0])
    cdef int updates
    with nogil:
        while t < n_triplets:
            if capacity > 0:
                # A fold changes W_base and ends the run, so the run is no longer than the expected distance to it.
                run = min(max_run, n_triplets - t, 1 + <Py_ssize_t>((capacity - pending) / share))
                run = read_run(x, Q, P, N, &triplets[t, 0], run, m, Qs, Ps)
            else:
                read_pair(x, Qs, &Q.rows, triplets[t, 0], &P.rows, triplets[t, 1], &N.rows, triplets[t, 2])
                run = 0
            if run == 0:
                if pending > 0:
                    fold_mean(&W[0, 0], m, n, &A[0, 0], &B[0, 0], &steps[0, 0], 1, pending, room)
                    pending = 0
                    counts[3] = 0
                updates = step(&W[0, 0], x, room, C if weights is None else C * weights[t], &margin)
                if updates < 0:
                    with gil:
                        return t
                count_round(&counts[0], &record[t, 0] if record is not None else NULL, margin, 0, updates)
                t += 1
                continue
            multiply(Qs, NULL, run, m, &W[0, 0], n, QsW, strip)
            n_updates = 0
            for i in range(run):
                q = Qs + i * m
                p = Ps + i * n
                margin = dot(QsW + i * n, p, n)
                if i % GROUP == 0:
                    known = pending
                Aq = products_with_terms(&A[0, 0], pending, known, m, Qs, i, run, room_for_Aq, capacity)
                Bp = products_with_terms(&B[0, 0], pending, known, n, Ps, i, run, room_for_Bp, capacity)
                for k in range(pending):
                    margin += steps[k, 0] * Aq[k] * Bp[k]
                if not isfinite(margin):
                    with gil:
                        return t
                C_t = C if weights is None else C * weights[t]
                updates = margin < 1 and C_t > 0
                count_round(&counts[0], &record[t, 0] if record is not None else NULL, margin, 0, updates)
                t += 1
                if updates:
                    steps[pending, 0] = step_size(margin, dot(q, q, m), dot(p, p, n), C_t)
                    memcpy(&A[pending, 0], q, m * sizeof(floating))
                    memcpy(&B[pending, 0], p, n * sizeof(floating))
                    n_updates += 1
                    pending += 1
                    counts[3] = pending
                    if pending == capacity:
                        fold_mean(&W[0, 0], m, n, &A[0, 0], &B[0, 0], &steps[0, 0], 1, capacity, room)
                        pending = 0
                        counts[3] = 0
                        break
            share = (share + (1.0 + n_updates) / (2.0 + i)) / 2
    return n_triplets

"""OASIS: passive-aggressive steps on the triplet hinge.

Steps of sparse rows go straight into W. Steps of whole rows stay pending, ``W = W_base + sum_k tau_k q_k p_k'``, and are
folded in by one GEMM after a fixed number of them, or before the next sparse row; products ``q'W_base`` are taken for a
run of triplets at once. Where a run is cut does not change a bit.
"""

from libc.math cimport isfinite
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from .pending cimport fold_mean, read_run
from .rounds cimport has_evidence, note
from .rows cimport Pair, RowView, Workspace, floating, read_pair
from .vectors cimport add_outer, bilinear_form, dot, dots, multiply


# Written so that a vanishing |q|^2 |p|^2 gives C, never 0 / 0.
cdef inline double step(double margin, double q_norm, double p_norm, double C) noexcept nogil:
    return C if C * q_norm * p_norm <= 1 - margin else (1 - margin) / (q_norm * p_norm)


cdef inline double squared_norm(const floating *x, Py_ssize_t n) noexcept nogil:
    cdef double total = 0
    cdef Py_ssize_t k
    for k in range(n):
        total += <double>x[k] * x[k]
    return total


def learn(
    RowView Q, RowView P, RowView N, const int64_t[:, ::1] triplets, const double[::1] weights,
    double[:, ::1] record, floating[:, ::1] W, floating[:, ::1] A, floating[:, ::1] B, double[:, ::1] steps, double C,
    int64_t[::1] counts,
):
    """Learn the triplets in their order, in place; stop before one whose score overflows.

    The pending q, p and tau are rows of A, B and `steps`; ``counts[3]`` says how many there are. Returns the number of
    triplets learned.
    """
    cdef Py_ssize_t m = W.shape[0], n = W.shape[1], most = A.shape[0], n_triplets = triplets.shape[0]
    cdef Py_ssize_t longest = min(2 * most, n_triplets)
    cdef Workspace space = Workspace(m, n, sizeof(floating), longest * (m + 2 * n) + 16 * m + (1 + most) * m)
    cdef Workspace doubles = Workspace(0, 0, sizeof(double), 2 * most)
    cdef Pair *x = &space.pair
    cdef floating *Qs = <floating *>space.take(longest * m)
    cdef floating *Ps = <floating *>space.take(longest * n)
    cdef floating *QsW = <floating *>space.take(longest * n)
    cdef floating *strip = <floating *>space.take(16 * m)
    cdef floating *room = <floating *>space.take((1 + most) * m)
    cdef double *Aq = <double *>doubles.take(most)
    cdef double *Bp = <double *>doubles.take(most)
    cdef floating *q
    cdef floating *p
    cdef Py_ssize_t t = 0, i, k, run, pending = counts[3], n_updates
    cdef double margin, tau, C_t, share = (1.0 + counts[1]) / (1.0 + counts[0])
    cdef bint updates, is_whole
    with nogil:
        while t < n_triplets:
            run = 0
            if most > 0:
                # A fold changes the base and so ends a run: begin none that would hardly be used.
                run = min(longest, n_triplets - t, 1 + <Py_ssize_t>((most - pending) / share))
                run = read_run(x, Q, P, N, &triplets[t, 0], run, m, Qs, Ps)
            else:
                read_pair(x, Qs, &Q.rows, triplets[t, 0], &P.rows, triplets[t, 1], &N.rows, triplets[t, 2])
            is_whole = run > 0
            if is_whole:
                multiply(Qs, run, m, &W[0, 0], n, QsW, strip)
            elif pending > 0:
                fold_mean(&W[0, 0], m, n, &A[0, 0], &B[0, 0], &steps[0, 0], 1, pending, room)
                pending = 0
                counts[3] = 0
            n_updates = 0
            for i in range(max(run, 1)):
                if is_whole:
                    q = Qs + i * m
                    p = Ps + i * n
                    margin = dot(QsW + i * n, p, n)
                    dots(&A[0, 0], pending, m, q, Aq)
                    dots(&B[0, 0], pending, n, p, Bp)
                    for k in range(pending):
                        margin += steps[k, 0] * Aq[k] * Bp[k]
                else:
                    q = <floating *>x.q
                    p = <floating *>x.p
                    margin = bilinear_form(&W[0, 0], x)
                if not isfinite(margin):
                    with gil:
                        return t
                C_t = C if weights is None else C * weights[t]
                updates = margin < 1 and C_t > 0 and (is_whole or has_evidence(x))
                if updates:
                    n_updates += 1
                    if is_whole:
                        steps[pending, 0] = step(margin, dot(q, q, m), dot(p, p, n), C_t)
                        memcpy(&A[pending, 0], q, m * sizeof(floating))
                        memcpy(&B[pending, 0], p, n * sizeof(floating))
                        pending += 1
                        if pending == most:
                            fold_mean(&W[0, 0], m, n, &A[0, 0], &B[0, 0], &steps[0, 0], 1, most, room)
                            pending = 0
                        counts[3] = pending
                    else:
                        tau = step(margin, squared_norm(q, x.k_q), squared_norm(p, x.k_p), C_t)
                        for k in range(x.k_q):
                            room[k] = <floating>(tau * q[k])
                        add_outer(&W[0, 0], room, x)
                note(&counts[0], &record[t, 0] if record is not None else NULL, margin, 0, updates)
                t += 1
                if is_whole and updates and pending == 0:
                    break
            share = (share + (1.0 + n_updates) / (2.0 + i)) / 2
    return n_triplets

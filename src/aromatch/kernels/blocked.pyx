"""f-AROMA as printed, (12) to (14), with pending rank-one updates that are folded a block at a time.

After k updates since the last fold::

    W      = W_base      + sum_k alpha_k a_k b_k'
    Omega  = Omega_base  - sum_k d_k b_k b_k'
    Lambda = Lambda_base - sum_k c_k a_k a_k'

so a triplet needs ``q'W_base``, ``Lambda_base q``, ``Omega_base p`` and a correction of rank k. Sparse rows read a few
rows of the base matrices. For dense rows the products are matrix products over all triplets up to the next fold. The
algorithm is exact: only the order of the sums differs. A fold is one GEMM and two SYRK and follows a fixed number of
updates, counted since the start, so chunk boundaries and reads of the model do not change a bit.
"""

from libc.math cimport isfinite, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memcpy
from scipy.linalg.cython_blas cimport dsyrk, ssyrk

from .pending cimport GROUP, fold_mean, products_with_terms, read_run
from .rounds cimport needs_update, has_evidence, count_round
from .rows cimport Pair, RowView, Workspace, floating
from .vectors cimport add, add_four, bilinear_form, dot, multiply, sparse_dot, symmetric_product


cdef extern from "loops.h" nogil:
    void mirror_float(float *S, Py_ssize_t width)
    void mirror_double(double *S, Py_ssize_t width)


# The columns of `steps`.
cdef enum:
    ALPHA, C, D


def learn(
    RowView Q, RowView P, RowView N, const int64_t[:, ::1] triplets, const double[::1] weights,
    double[:, ::1] record, floating[:, ::1] W, floating[:, ::1] Omega, floating[:, ::1] Lambda,
    floating[:, ::1] A, floating[:, ::1] B, double[:, ::1] steps, double r, bint only_mistakes, int64_t[::1] counts,
):
    """Learn the triplets in order, in place; stop before a variance that is negative or not finite.

    The pending a, b and (alpha, c, d) are rows of A, B and `steps`; ``counts[3]`` is their number.
    Returns the number of triplets learned.
    """
    cdef Py_ssize_t m = W.shape[0], n = W.shape[1], capacity = A.shape[0], n_triplets = triplets.shape[0]
    cdef Py_ssize_t max_run = min(2 * capacity, n_triplets), larger = max(m, n)
    cdef Workspace space = Workspace(m, n, sizeof(floating), max_run * (2 * m + 3 * n) + (16 + capacity) * larger)
    cdef Workspace doubles = Workspace(0, max_run, sizeof(double), 2 * GROUP * capacity)
    cdef Pair *x = &space.pair
    cdef floating *Qs = <floating *>space.take(max_run * m)     # a run of dense rows q and p
    cdef floating *Ps = <floating *>space.take(max_run * n)
    cdef floating *QsW = <floating *>space.take(max_run * n)    # products of the run with the base matrices
    cdef floating *QsLambda = <floating *>space.take(max_run * m)
    cdef floating *PsOmega = <floating *>space.take(max_run * n)
    cdef floating *strip = <floating *>space.take(16 * larger)
    cdef floating *room = <floating *>space.take(capacity * larger)
    cdef double *room_for_Aq = <double *>doubles.take(GROUP * capacity)
    cdef double *room_for_Bp = <double *>doubles.take(GROUP * capacity)
    cdef double *Aq = room_for_Aq
    cdef double *Bp = room_for_Bp
    cdef Py_ssize_t *is_likely = doubles.pair.p_columns         # flags of the probable updates of a run
    cdef Py_ssize_t *likely = doubles.pair.work_columns         # indices of the probable updates
    cdef floating *q
    cdef floating *p
    cdef floating *a                                            # Lambda q
    cdef floating *b                                            # Omega p
    cdef Py_ssize_t t = 0, i = 0, k, run, n_likely, n_updates, pending = counts[3], known = 0
    cdef double margin, q_variance, p_variance, r_t, share = (1.0 + counts[1]) / (1.0 + counts[0])
    cdef bint updates, is_dense
    with nogil:
        while t < n_triplets:
            # A fold changes the base matrices and ends the run, so the run is no longer than the expected distance to it.
            run = min(max_run, n_triplets - t, 1 + <Py_ssize_t>((capacity - pending) / share))
            run = read_run(x, Q, P, N, &triplets[t, 0], run, m, Qs, Ps)
            is_dense = run > 0
            if is_dense:
                multiply(Qs, NULL, run, m, &W[0, 0], n, QsW, strip)
                n_likely = 0
                for i in range(run):
                    Aq = products_with_terms(&A[0, 0], pending, pending, m, Qs, i, run, room_for_Aq, capacity)
                    Bp = products_with_terms(&B[0, 0], pending, pending, n, Ps, i, run, room_for_Bp, capacity)
                    margin = dot(QsW + i * n, Ps + i * n, n) + sum_of_terms(&steps[0, 0], pending, Aq, Bp)
                    is_likely[i] = needs_update(margin, only_mistakes, True, r)
                    if is_likely[i]:
                        likely[n_likely] = i
                        n_likely += 1
                multiply(Qs, likely, n_likely, m, &Lambda[0, 0], m, QsLambda, strip)
                multiply(Ps, likely, n_likely, n, &Omega[0, 0], n, PsOmega, strip)
            n_updates = 0
            for i in range(max(run, 1)):
                a = QsLambda + i * m
                b = PsOmega + i * n
                if is_dense:
                    q = Qs + i * m
                    p = Ps + i * n
                    if i % GROUP == 0:
                        known = pending
                    Aq = products_with_terms(&A[0, 0], pending, known, m, Qs, i, run, room_for_Aq, capacity)
                    Bp = products_with_terms(&B[0, 0], pending, known, n, Ps, i, run, room_for_Bp, capacity)
                    margin = dot(QsW + i * n, p, n) + sum_of_terms(&steps[0, 0], pending, Aq, Bp)
                else:
                    q = <floating *>x.q
                    p = <floating *>x.p
                    for k in range(pending):
                        Aq[k] = sparse_dot(&A[k, 0], q, x.q_columns, x.k_q)
                        Bp[k] = sparse_dot(&B[k, 0], p, x.p_columns, x.k_p)
                    margin = bilinear_form(&W[0, 0], x) + sum_of_terms(&steps[0, 0], pending, Aq, Bp)
                r_t = r if weights is None else r / weights[t]
                updates = needs_update(margin, only_mistakes, is_dense or has_evidence(x), r_t)
                q_variance = 0
                p_variance = 0
                if updates or record is not None:
                    if not is_dense:
                        symmetric_product(&Lambda[0, 0], m, q, x.q_columns, x.k_q, a)
                        symmetric_product(&Omega[0, 0], n, p, x.p_columns, x.k_p, b)
                    elif not is_likely[i]:
                        multiply(q, NULL, 1, m, &Lambda[0, 0], m, a, strip)
                        multiply(p, NULL, 1, n, &Omega[0, 0], n, b, strip)
                    subtract_rows(&A[0, 0], pending, m, Aq, &steps[0, C], a)
                    subtract_rows(&B[0, 0], pending, n, Bp, &steps[0, D], b)
                    q_variance = dot(a, q, m) if is_dense else sparse_dot(a, q, x.q_columns, x.k_q)
                    p_variance = dot(b, p, n) if is_dense else sparse_dot(b, p, x.p_columns, x.k_p)
                    if not (q_variance >= 0 and p_variance >= 0 and isfinite(q_variance * p_variance + margin)):
                        with gil:
                            return t
                if updates:
                    memcpy(&A[pending, 0], a, m * sizeof(floating))
                    memcpy(&B[pending, 0], b, n * sizeof(floating))
                    steps[pending, ALPHA] = (1 - margin) / (r_t + q_variance * p_variance)
                    steps[pending, C] = p_variance / (n * r_t + q_variance * p_variance)
                    steps[pending, D] = q_variance / (m * r_t + q_variance * p_variance)
                    pending += 1
                    n_updates += 1
                    if pending == capacity:
                        fold_all(
                            &W[0, 0], &Omega[0, 0], &Lambda[0, 0], m, n, &A[0, 0], &B[0, 0], &steps[0, 0], capacity, room)
                        pending = 0
                    counts[3] = pending
                count_round(&counts[0], &record[t, 0] if record is not None else NULL, margin, q_variance * p_variance, updates)
                t += 1
                if updates and pending == 0:
                    break
            share = (share + (1.0 + n_updates) / (2.0 + i)) / 2
    return n_triplets


def fold(
    floating[:, ::1] W, floating[:, ::1] Omega, floating[:, ::1] Lambda,
    floating[:, ::1] A, floating[:, ::1] B, double[:, ::1] steps, int64_t[::1] counts,
):
    """Fold all pending updates into the matrices, in place."""
    cdef Py_ssize_t m = W.shape[0], n = W.shape[1], pending = counts[3]
    cdef Workspace space = Workspace(0, 0, sizeof(floating), pending * max(m, n))
    cdef floating *scaled = <floating *>space.take(pending * max(m, n))
    if pending:
        with nogil:
            fold_all(
                &W[0, 0], &Omega[0, 0], &Lambda[0, 0], m, n, &A[0, 0], &B[0, 0], &steps[0, 0], pending, scaled)
            counts[3] = 0


# sum_k alpha_k (a_k'q) (b_k'p): the contribution of the pending terms to a margin
cdef double sum_of_terms(const double *steps, Py_ssize_t pending, const double *Aq, const double *Bp) noexcept nogil:
    cdef double total = 0
    cdef Py_ssize_t k
    for k in range(pending):
        total += steps[3 * k + ALPHA] * Aq[k] * Bp[k]
    return total


# a <- a - sum_k x_k step_k A_k; `step` is a column of `steps`
cdef void subtract_rows(
    const floating *A, Py_ssize_t n_rows, Py_ssize_t width, const double *x, const double *step, floating *a,
) noexcept nogil:
    cdef floating[4] factors
    cdef Py_ssize_t k = 0, i
    while k + 4 <= n_rows:
        for i in range(4):
            factors[i] = <floating>(-x[k + i] * step[3 * (k + i)])
        add_four(a, factors, A + k * width, A + (k + 1) * width, A + (k + 2) * width, A + (k + 3) * width, width)
        k += 4
    while k < n_rows:
        add(a, <floating>(-x[k] * step[3 * k]), A + k * width, width)
        k += 1


cdef void fold_all(
    floating *W, floating *Omega, floating *Lambda, Py_ssize_t m, Py_ssize_t n,
    const floating *A, const floating *B, const double *steps, Py_ssize_t pending, floating *scaled,
) noexcept nogil:
    fold_mean(W, m, n, A, B, steps + ALPHA, 3, pending, scaled)
    subtract_square(Lambda, m, A, steps + C, pending, scaled)
    subtract_square(Omega, n, B, steps + D, pending, scaled)


# S <- S - sum_k step_k a_k a_k': one triangle by SYRK, the other a copy, so S stays exactly symmetric.
cdef void subtract_square(
    floating *S, Py_ssize_t width, const floating *A, const double *step, Py_ssize_t n_rows, floating *scaled,
) noexcept nogil:
    cdef int n_ = <int>width, k_ = <int>n_rows
    cdef floating one = 1, minus_one = -1, root
    cdef Py_ssize_t k, j
    for k in range(n_rows):
        root = <floating>sqrt(step[3 * k])
        for j in range(width):
            scaled[k * width + j] = root * A[k * width + j]
    # BLAS is column-major: its lower triangle is our upper one.
    if floating is double:
        dsyrk(b"L", b"N", &n_, &k_, &minus_one, scaled, &n_, &one, S, &n_)
        mirror_double(S, width)
    else:
        ssyrk(b"L", b"N", &n_, &k_, &minus_one, scaled, &n_, &one, S, &n_)
        mirror_float(S, width)

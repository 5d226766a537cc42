"""f-AROMA as printed, (12) to (14), with its rank-one updates kept pending and folded in a block at a time.

After k pending updates since the last fold::

    W      = W_base      + sum_k alpha_k a_k b_k'
    Omega  = Omega_base  - sum_k d_k b_k b_k'
    Lambda = Lambda_base - sum_k c_k a_k a_k'

so that a triplet needs the base matrices only at the rows that q and p touch, and a correction of rank k. This
is the same algorithm: nothing is approximated, sums are only taken in another order. A fold is one GEMM and two
SYRK, and it comes after a fixed number of updates, counted since the start, so cutting a run into pieces or
reading the model in between does not change a bit.
"""

from libc.math cimport isfinite, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memcpy
from scipy.linalg.cython_blas cimport dgemm, dsyrk, sgemm, ssyrk

from .rounds cimport asks_for_update, note
from .rows cimport Pair, RowView, Workspace, floating, read_pair
from .vectors cimport add, add_four, bilinear_form, dot, sparse_dot, symmetric_product


# The columns of `steps`.
cdef enum:
    ALPHA, C, D


def learn(
    RowView Q, RowView P, RowView N, const int64_t[:, ::1] triplets, const double[::1] weights,
    double[:, ::1] record, floating[:, ::1] W, floating[:, ::1] Omega, floating[:, ::1] Lambda,
    floating[:, ::1] A, floating[:, ::1] B, double[:, ::1] steps, double r, bint only_mistakes, int64_t[::1] counts,
):
    """Learn the triplets in their order, in place; stop before one that the covariance cannot carry.

    The pending a, b and (alpha, c, d) are rows of A, B and `steps`; ``counts[3]`` says how many there are.
    Returns the number of triplets learned.
    """
    cdef Py_ssize_t m = W.shape[0], n = W.shape[1], most = A.shape[0]
    cdef bint may_fold = counts[3] + triplets.shape[0] >= most
    cdef Workspace space = Workspace(m, n, sizeof(floating), m + n + 2 * most + (most * max(m, n) if may_fold else 0))
    cdef Pair *x = &space.pair
    cdef floating *q = <floating *>x.q
    cdef floating *p = <floating *>x.p
    cdef floating *a = <floating *>space.take(m)       # Lambda q
    cdef floating *b = <floating *>space.take(n)       # Omega p
    cdef floating *Aq = <floating *>space.take(most)
    cdef floating *Bp = <floating *>space.take(most)
    cdef floating *scaled = <floating *>space.take(most * max(m, n)) if may_fold else NULL
    cdef Py_ssize_t t, k, pending = counts[3]
    cdef double margin, q_variance, p_variance, r_t
    cdef bint updates
    with nogil:
        for t in range(triplets.shape[0]):
            read_pair(x, q, &Q.rows, triplets[t, 0], &P.rows, triplets[t, 1], &N.rows, triplets[t, 2])
            margin = bilinear_form(&W[0, 0], x)
            for k in range(pending):
                Aq[k] = <floating>sparse_dot(&A[k, 0], q, x.q_columns, x.k_q)
                Bp[k] = <floating>(
                    dot(&B[k, 0], <floating *>x.p_full, n) if x.p_full != NULL
                    else sparse_dot(&B[k, 0], p, x.p_columns, x.k_p))
                margin += steps[k, ALPHA] * Aq[k] * Bp[k]
            r_t = r if weights is None else r / weights[t]
            updates = asks_for_update(margin, only_mistakes, x, r_t)
            q_variance = 0
            p_variance = 0
            if updates or record is not None:
                symmetric_product(&Lambda[0, 0], m, q, x.q_columns, x.k_q, a)
                symmetric_product(&Omega[0, 0], n, p, x.p_columns, x.k_p, b)
                for k in range(pending):
                    Aq[k] *= <floating>-steps[k, C]
                    Bp[k] *= <floating>-steps[k, D]
                add_rows(&A[0, 0], pending, m, Aq, a)
                add_rows(&B[0, 0], pending, n, Bp, b)
                q_variance = sparse_dot(a, q, x.q_columns, x.k_q)
                p_variance = sparse_dot(b, p, x.p_columns, x.k_p)
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
                if pending == most:
                    fold_all(&W[0, 0], &Omega[0, 0], &Lambda[0, 0], m, n, &A[0, 0], &B[0, 0], &steps[0, 0], most, scaled)
                    pending = 0
                counts[3] = pending
            note(&counts[0], &record[t, 0] if record is not None else NULL, margin, q_variance * p_variance, updates)
    return triplets.shape[0]


def fold(
    floating[:, ::1] W, floating[:, ::1] Omega, floating[:, ::1] Lambda,
    floating[:, ::1] A, floating[:, ::1] B, double[:, ::1] steps, int64_t[::1] counts,
):
    """Put all that is pending into the matrices, in place."""
    cdef Py_ssize_t m = W.shape[0], n = W.shape[1], pending = counts[3]
    cdef Workspace space = Workspace(0, 0, sizeof(floating), pending * max(m, n))
    cdef floating *scaled = <floating *>space.take(pending * max(m, n))
    if pending:
        with nogil:
            fold_all(
                &W[0, 0], &Omega[0, 0], &Lambda[0, 0], m, n, &A[0, 0], &B[0, 0], &steps[0, 0], pending, scaled)
            counts[3] = 0


def projections(RowView X, const int64_t[:, ::1] numbers, const floating[:, ::1] A, floating[:, ::1] out):
    """Write ``A x``, x a row of X (one column in `numbers`) or the difference of two rows (two columns)."""
    cdef Workspace space = Workspace(A.shape[1], A.shape[1], sizeof(floating))
    cdef Pair *x = &space.pair
    cdef floating *p = <floating *>x.p
    cdef Py_ssize_t t, k
    cdef bint subtracts = numbers.shape[1] == 2
    with nogil:
        for t in range(numbers.shape[0]):
            read_pair(
                x, p, &X.rows, numbers[t, 0], &X.rows, numbers[t, 0],
                &X.rows if subtracts else NULL, numbers[t, 1] if subtracts else 0)
            for k in range(out.shape[1]):
                out[t, k] = <floating>sparse_dot(&A[k, 0], p, x.p_columns, x.k_p)


# a <- a + sum_k factors_k A_k
cdef void add_rows(
    const floating *A, Py_ssize_t n_rows, Py_ssize_t width, const floating *factors, floating *a,
) noexcept nogil:
    cdef const floating *row = A
    cdef Py_ssize_t k = 0
    while k + 4 <= n_rows:
        add_four(a, factors + k, row, row + width, row + 2 * width, row + 3 * width, width)
        row += 4 * width
        k += 4
    while k < n_rows:
        add(a, factors[k], row, width)
        row += width
        k += 1


cdef void fold_all(
    floating *W, floating *Omega, floating *Lambda, Py_ssize_t m, Py_ssize_t n,
    const floating *A, const floating *B, const double *steps, Py_ssize_t pending, floating *scaled,
) noexcept nogil:
    cdef int m_ = <int>m, n_ = <int>n, k_ = <int>pending
    cdef floating one = 1
    scale_rows(A, pending, m, steps + ALPHA, False, scaled)
    # BLAS counts by columns: our row-major W is its W', so W += A'B is W' += B'A.
    if floating is double:
        dgemm(b"N", b"T", &n_, &m_, &k_, &one, <double *>B, &n_, scaled, &m_, &one, W, &n_)
    else:
        sgemm(b"N", b"T", &n_, &m_, &k_, &one, <float *>B, &n_, scaled, &m_, &one, W, &n_)
    scale_rows(A, pending, m, steps + C, True, scaled)
    subtract_square(Lambda, m, scaled, pending)
    scale_rows(B, pending, n, steps + D, True, scaled)
    subtract_square(Omega, n, scaled, pending)


cdef void scale_rows(
    const floating *A, Py_ssize_t n_rows, Py_ssize_t width, const double *factors, bint root, floating *scaled,
) noexcept nogil:
    cdef Py_ssize_t k, j
    cdef floating factor
    for k in range(n_rows):
        factor = <floating>(sqrt(factors[3 * k]) if root else factors[3 * k])
        for j in range(width):
            scaled[k * width + j] = factor * A[k * width + j]


# S <- S - R'R for R with n_rows rows: one triangle by SYRK, the other copied, so that S stays symmetric to the bit.
cdef void subtract_square(floating *S, Py_ssize_t width, floating *R, Py_ssize_t n_rows) noexcept nogil:
    cdef int n_ = <int>width, k_ = <int>n_rows
    cdef floating one = 1, minus_one = -1
    cdef Py_ssize_t tile = 32, i, j, rows_from, columns_from
    if floating is double:
        dsyrk(b"L", b"N", &n_, &k_, &minus_one, R, &n_, &one, S, &n_)
    else:
        ssyrk(b"L", b"N", &n_, &k_, &minus_one, R, &n_, &one, S, &n_)
    rows_from = 0
    while rows_from < width:
        columns_from = 0
        while columns_from <= rows_from:
            for i in range(rows_from, min(rows_from + tile, width)):
                for j in range(columns_from, min(columns_from + tile, i)):
                    S[i * width + j] = S[j * width + i]
            columns_from += tile
        rows_from += tile

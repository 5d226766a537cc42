# Pending rank-one updates: W = W_base + sum_k factor_k a_k b_k' until the next fold.

from libc.stdint cimport int64_t
from libc.string cimport memcpy
from scipy.linalg.cython_blas cimport dgemm, sgemm

from .rows cimport Pair, Rows, RowView, floating, read_pair, spread
from .vectors cimport dots

# Number of triplets of a run that share one read of the pending terms.
cdef enum:
    GROUP = 4


cdef extern from "loops.h" nogil:
    Py_ssize_t difference_of_float_float(const float *x, const float *y, float *z, Py_ssize_t n)
    Py_ssize_t difference_of_double_float(const double *x, const double *y, float *z, Py_ssize_t n)
    Py_ssize_t difference_of_float_double(const float *x, const float *y, double *z, Py_ssize_t n)
    Py_ssize_t difference_of_double_double(const double *x, const double *y, double *z, Py_ssize_t n)


# Whether each row is contiguous in memory.
cdef inline bint is_contiguous(const Rows *X) noexcept nogil:
    return not X.is_sparse and X.column_stride == (4 if X.is_single else 8)


# z = row i of X, minus row j of Y unless Y is NULL; both contiguous, of one precision. Returns the number of non-zeros.
cdef inline Py_ssize_t contiguous_difference(
    const Rows *X, Py_ssize_t i, const Rows *Y, Py_ssize_t j, floating *z,
) noexcept nogil:
    cdef const char *x = X.values + i * X.row_stride
    cdef const char *y = Y.values + j * Y.row_stride if Y != NULL else NULL
    if floating is double:
        if X.is_single:
            return difference_of_float_double(<const float *>x, <const float *>y, z, X.n_columns)
        return difference_of_double_double(<const double *>x, <const double *>y, z, X.n_columns)
    else:
        if X.is_single:
            return difference_of_float_float(<const float *>x, <const float *>y, z, X.n_columns)
        return difference_of_double_float(<const double *>x, <const double *>y, z, X.n_columns)


# Read q and p of a triplet as dense vectors of lengths m and n, unless three quarters of either are zero. Returns whether
# they are dense; otherwise x holds the pair.
cdef inline bint read_dense(
    Pair *x, const Rows *Q, const Rows *P, const Rows *N, const int64_t *triplet, Py_ssize_t m, floating *q, floating *p,
) noexcept nogil:
    if is_contiguous(Q) and is_contiguous(P) and is_contiguous(N) and P.is_single == N.is_single:
        if (4 * contiguous_difference(Q, triplet[0], NULL, 0, q) > m
                and 4 * contiguous_difference(P, triplet[1], N, triplet[2], p) > x.n):
            return True
    read_pair(x, q, Q, triplet[0], P, triplet[1], N, triplet[2])
    if x.p_full == NULL or 4 * x.k_q <= m:
        return False
    spread(<const floating *>x.q, x.q_columns, x.k_q, q, m)
    memcpy(p, x.p_full, x.n * sizeof(floating))
    return True


# Read at capacity `max_run` triplets, up to the first sparse one, as rows of Qs and Ps. Returns their number.
cdef inline Py_ssize_t read_run(
    Pair *x, RowView Q, RowView P, RowView N, const int64_t *triplets, Py_ssize_t max_run, Py_ssize_t m,
    floating *Qs, floating *Ps,
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(max_run):
        if not read_dense(x, &Q.rows, &P.rows, &N.rows, triplets + 3 * i, m, Qs + i * m, Ps + i * x.n):
            return i
    return max_run


# A x for triplet i of a run, whose rows are in Xs. The first triplet of a group computes the products for the whole group;
# the others add the terms from `known` on, the number of pending terms at the start of the group. `room` holds GROUP times
# `capacity` products. Returns the address of those of triplet i.
cdef inline double *products_with_terms(
    const floating *A, Py_ssize_t pending, Py_ssize_t known, Py_ssize_t width, const floating *Xs, Py_ssize_t i,
    Py_ssize_t run, double *room, Py_ssize_t capacity,
) noexcept nogil:
    cdef double *mine = room + (i % GROUP) * capacity
    if i % GROUP == 0:
        dots(A, pending, width, Xs + i * width, min(GROUP, run - i), room, capacity)
    else:
        dots(A + known * width, pending - known, width, Xs + i * width, 1, mine + known, capacity)
    return mine


# W <- W + sum_k factor_k a_k b_k', the factors `stride` apart; `scaled` holds the scaled a_k.
cdef inline void fold_mean(
    floating *W, Py_ssize_t m, Py_ssize_t n, const floating *A, const floating *B, const double *factors,
    Py_ssize_t stride, Py_ssize_t pending, floating *scaled,
) noexcept nogil:
    cdef int m_ = <int>m, n_ = <int>n, k_ = <int>pending
    cdef floating one = 1, factor
    cdef Py_ssize_t k, j
    for k in range(pending):
        factor = <floating>factors[stride * k]
        for j in range(m):
            scaled[k * m + j] = factor * A[k * m + j]
    # BLAS is column-major: our W is its W', so W += A'B is W' += B'A.
    if floating is double:
        dgemm(b"N", b"T", &n_, &m_, &k_, &one, <double *>B, &n_, scaled, &m_, &one, W, &n_)
    else:
        sgemm(b"N", b"T", &n_, &m_, &k_, &one, <float *>B, &n_, scaled, &m_, &one, W, &n_)

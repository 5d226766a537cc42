# What the kernels that keep updates pending share: W = W_base + sum_k factor_k a_k b_k' until the next fold.

from libc.stdint cimport int64_t
from libc.string cimport memcpy
from scipy.linalg.cython_blas cimport dgemm, sgemm

from .rows cimport Pair, Rows, RowView, floating, read_pair, spread
from .vectors cimport dots

# So many triplets of a run look at the pending terms together, which saves reading these from memory for each.
cdef enum:
    GROUP = 4


cdef extern from "loops.h" nogil:
    Py_ssize_t difference_of_float_float(const float *x, const float *y, float *z, Py_ssize_t n)
    Py_ssize_t difference_of_double_float(const double *x, const double *y, float *z, Py_ssize_t n)
    Py_ssize_t difference_of_float_double(const float *x, const float *y, double *z, Py_ssize_t n)
    Py_ssize_t difference_of_double_double(const double *x, const double *y, double *z, Py_ssize_t n)


# Whether a row lies in one run of memory.
cdef inline bint is_plain(const Rows *X) noexcept nogil:
    return not X.is_sparse and X.column_stride == (4 if X.is_single else 8)


# z = row i of X, less row j of Y unless Y is NULL; both plain and of one precision. Returns the number of non-zeros.
cdef inline Py_ssize_t plain_difference(
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


# Read q and p of a triplet over their whole widths m and n, unless three quarters of either are zero. Tells whether it
# did; otherwise x holds what was read.
cdef inline bint read_whole(
    Pair *x, const Rows *Q, const Rows *P, const Rows *N, const int64_t *triplet, Py_ssize_t m, floating *q, floating *p,
) noexcept nogil:
    if is_plain(Q) and is_plain(P) and is_plain(N) and P.is_single == N.is_single:
        if (4 * plain_difference(Q, triplet[0], NULL, 0, q) > m
                and 4 * plain_difference(P, triplet[1], N, triplet[2], p) > x.n):
            return True
    read_pair(x, q, Q, triplet[0], P, triplet[1], N, triplet[2])
    if x.p_full == NULL or 4 * x.k_q <= m:
        return False
    spread(<const floating *>x.q, x.q_columns, x.k_q, q, m)
    memcpy(p, x.p_full, x.n * sizeof(floating))
    return True


# Read triplets until one is not whole, at most `most`; q and p become rows of Qs and Ps. Returns how many there are.
cdef inline Py_ssize_t read_run(
    Pair *x, RowView Q, RowView P, RowView N, const int64_t *triplets, Py_ssize_t most, Py_ssize_t m,
    floating *Qs, floating *Ps,
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(most):
        if not read_whole(x, &Q.rows, &P.rows, &N.rows, triplets + 3 * i, m, Qs + i * m, Ps + i * x.n):
            return i
    return most


# A x for triplet i of a run, of which Xs has the rows. The first triplet of a group finds it for all of the group, so that
# later ones lack only what came in between: from term `known` on, which is the same number for the whole group. Returns where
# the products are, in `room` for GROUP times `most` of them.
cdef inline double *products_with_terms(
    const floating *A, Py_ssize_t pending, Py_ssize_t known, Py_ssize_t width, const floating *Xs, Py_ssize_t i,
    Py_ssize_t run, double *room, Py_ssize_t most,
) noexcept nogil:
    cdef double *mine = room + (i % GROUP) * most
    if i % GROUP == 0:
        dots(A, pending, width, Xs + i * width, min(GROUP, run - i), room, most)
    else:
        dots(A + known * width, pending - known, width, Xs + i * width, 1, mine + known, most)
    return mine


# W <- W + sum_k factor_k a_k b_k', the factors `stride` apart; `scaled` has room for the a.
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
    # BLAS counts by columns: our row-major W is its W', so W += A'B is W' += B'A.
    if floating is double:
        dgemm(b"N", b"T", &n_, &m_, &k_, &one, <double *>B, &n_, scaled, &m_, &one, W, &n_)
    else:
        sgemm(b"N", b"T", &n_, &m_, &k_, &one, <float *>B, &n_, scaled, &m_, &one, W, &n_)

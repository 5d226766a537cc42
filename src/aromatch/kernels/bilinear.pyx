"""Scores and variances of many pairs ``(q, p)``, p an object or the difference of two objects."""

from libc.stdint cimport int64_t

from .rows cimport Pair, RowView, Workspace, floating, gather, read_pair
from .vectors cimport bilinear_form, sparse_dot


def forms(RowView Q, RowView P, const int64_t[:, ::1] indices, const floating[:, :] A, bint squared, bint apart, floating[::1] out):
    """Compute ``q'Ap`` for every row of `indices`: q a row of Q, p a row of P (two columns) or a difference (three).

    `apart` marks A as a strided view of the interleaved cells of d-AROMA. `squared`, valid for those only, squares q
    and p by element first, which gives the variance under a diagonal covariance.
    """
    cdef Workspace space = Workspace(A.shape[0], A.shape[1], sizeof(floating))
    cdef Pair *x = &space.pair
    cdef floating *q = <floating *>x.q
    cdef floating *p = <floating *>x.p
    cdef Py_ssize_t between = A.strides[1] // <Py_ssize_t>sizeof(floating), t, k
    cdef bint subtracts = indices.shape[1] == 3
    with nogil:
        for t in range(indices.shape[0]):
            read_pair(
                x, q, &Q.rows, indices[t, 0], &P.rows, indices[t, 1],
                &P.rows if subtracts else NULL, indices[t, 2] if subtracts else 0)
            if squared:
                for k in range(x.k_q):
                    q[k] = q[k] * q[k]
                for k in range(x.k_p):
                    p[k] = p[k] * p[k]
            if apart:
                for k in range(x.k_q):
                    x.q_starts[k] *= between
                for k in range(x.k_p):
                    x.p_columns[k] *= between
                x.p_full = NULL
            out[t] = <floating>bilinear_form(&A[0, 0], x)


def products(RowView Q, const floating[:, :] A, floating[:, ::1] out):
    """Compute ``QA`` row by row, without a copy of A, which may be strided."""
    cdef Workspace space = Workspace(A.shape[0], 0, sizeof(floating))
    cdef floating *q = <floating *>space.pair.q
    cdef Py_ssize_t n = A.shape[1], row_apart = A.strides[0] // <Py_ssize_t>sizeof(floating)
    cdef Py_ssize_t apart = A.strides[1] // <Py_ssize_t>sizeof(floating), t, i, j, k_q
    cdef const floating *a
    cdef floating *to
    with nogil:
        for t in range(out.shape[0]):
            k_q = gather(&Q.rows, t, q, space.pair.q_columns)
            to = &out[t, 0]
            for j in range(n):
                to[j] = 0
            for i in range(k_q):
                a = &A[0, 0] + space.pair.q_columns[i] * row_apart
                for j in range(n):
                    to[j] += q[i] * a[apart * j]


def quadratic_forms(RowView X, const int64_t[:, ::1] indices, const floating[:, ::1] A, floating[::1] out):
    """Compute ``x'Ax``, x a row of X (one column in `indices`) or the difference of two rows (two columns)."""
    cdef Workspace space = Workspace(A.shape[0], A.shape[0], sizeof(floating))
    cdef Pair *x = &space.pair
    cdef floating *p = <floating *>x.p
    cdef Pair twice
    cdef Py_ssize_t t, k
    cdef bint subtracts = indices.shape[1] == 2
    with nogil:
        for t in range(indices.shape[0]):
            read_pair(
                x, p, &X.rows, indices[t, 0], &X.rows, indices[t, 0],
                &X.rows if subtracts else NULL, indices[t, 1] if subtracts else 0)
            twice = x[0]
            twice.q = x.p
            twice.q_columns = x.p_columns
            twice.k_q = x.k_p
            for k in range(x.k_p):
                twice.q_starts[k] = x.p_columns[k] * x.n
            out[t] = <floating>bilinear_form(&A[0, 0], &twice)


def projections(RowView X, const int64_t[:, ::1] indices, const floating[:, ::1] A, floating[:, ::1] out):
    """Compute ``A x``, x a row of X (one column in `indices`) or the difference of two rows (two columns)."""
    cdef Workspace space = Workspace(A.shape[1], A.shape[1], sizeof(floating))
    cdef Pair *x = &space.pair
    cdef floating *p = <floating *>x.p
    cdef Py_ssize_t t, k
    cdef bint subtracts = indices.shape[1] == 2
    with nogil:
        for t in range(indices.shape[0]):
            read_pair(
                x, p, &X.rows, indices[t, 0], &X.rows, indices[t, 0],
                &X.rows if subtracts else NULL, indices[t, 1] if subtracts else 0)
            for k in range(out.shape[1]):
                out[t, k] = <floating>sparse_dot(&A[k, 0], p, x.p_columns, x.k_p)

"""Weighted sums of rows, sums of outer products with rows, and row hashes."""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from .rows cimport RowView, Workspace, gather
from .vectors cimport add


def add_sums(
    RowView X, const int64_t[::1] indptr, const int64_t[::1] rows, const double[::1] weights, double[:, ::1] out,
):
    """Add ``weights[k]`` times row ``rows[k]`` of X to row i of `out`, for every k in ``indptr[i]:indptr[i + 1]``.

    Returns the number of non-zero values that were read.
    """
    cdef Workspace space = Workspace(out.shape[1], 0, sizeof(double))
    cdef double *x = <double *>space.pair.q
    cdef Py_ssize_t *columns = space.pair.q_columns
    cdef Py_ssize_t i, j, k, found, width = out.shape[1], n_read = 0
    cdef const double *row
    cdef double *to
    # Contiguous rows in double precision are added without gathering their non-zeros.
    cdef bint is_contiguous = not (X.rows.is_sparse or X.rows.is_single) and X.rows.column_stride == sizeof(double)
    with nogil:
        for i in range(out.shape[0]):
            to = &out[i, 0]
            for k in range(indptr[i], indptr[i + 1]):
                if is_contiguous:
                    row = <const double *>(X.rows.values + rows[k] * X.rows.row_stride)
                    for j in range(width):
                        n_read += row[j] != 0
                    add(to, weights[k], row, width)
                    continue
                found = gather(&X.rows, rows[k], x, columns)
                n_read += found
                for j in range(found):
                    to[columns[j]] += weights[k] * x[j]
    return n_read


def add_outer_products(RowView X, const int64_t[::1] rows, const double[:, ::1] G, double[:, ::1] out):
    """Add ``x_i g_i'`` to `out` for every i, x_i row ``rows[i]`` of X and g_i row i of G."""
    cdef Workspace space = Workspace(out.shape[0], 0, sizeof(double))
    cdef double *x = <double *>space.pair.q
    cdef Py_ssize_t *columns = space.pair.q_columns
    cdef Py_ssize_t i, j, found
    with nogil:
        for i in range(G.shape[0]):
            found = gather(&X.rows, rows[i], x, columns)
            for j in range(found):
                add(&out[columns[j], 0], x[j], <const double *>&G[i, 0], G.shape[1])


cdef inline uint64_t mixed(uint64_t z) noexcept nogil:
    """Return the bits of z, mixed by splitmix64 (Steele, Lea and Flood 2014)."""
    z += <uint64_t>0x9E3779B97F4A7C15
    z = (z ^ (z >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * <uint64_t>0x94D049BB133111EB
    return z ^ (z >> 31)


def hash_rows(RowView X, const int64_t[::1] rows, uint64_t[::1] hashes):
    """Compute a pseudo-random hash of each row, which depends on its values only and not on the container."""
    cdef Workspace space = Workspace(X.rows.n_columns, 0, sizeof(double))
    cdef double *x = <double *>space.pair.q
    cdef Py_ssize_t *columns = space.pair.q_columns
    cdef Py_ssize_t i, j, found
    cdef uint64_t bits, result
    with nogil:
        for i in range(hashes.shape[0]):
            found = gather(&X.rows, rows[i], x, columns)
            result = 0
            for j in range(found):
                memcpy(&bits, &x[j], sizeof(bits))
                result += mixed(bits ^ mixed(<uint64_t>columns[j]))
            hashes[i] = mixed(result)

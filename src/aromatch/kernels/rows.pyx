"""Rows of CSR and dense matrices, read in place."""

import sys

from cpython.buffer cimport PyBUF_RECORDS_RO, PyBUF_STRIDED_RO, PyBuffer_Release, PyObject_GetBuffer
from libc.math cimport isfinite
from libc.stdlib cimport free, malloc


cdef extern from "loops.h" nogil:
    double sum_of_squares_float(const float *x, Py_ssize_t n)
    double sum_of_squares_double(const double *x, Py_ssize_t n)


# With more features, the size of a workspace could overflow; no machine has memory for so many.
cdef Py_ssize_t LARGEST_WIDTH = sys.maxsize // 256


cdef extern from *:
    """
    /* AddressSanitizer sees where an allocation ends, not where an array in it ends: builds with it put gaps between. */
    #ifdef __SANITIZE_ADDRESS__
    #include <sanitizer/asan_interface.h>
    #define GAP 64
    #define FORBID(start, size) ASAN_POISON_MEMORY_REGION(start, size)
    #else
    #define GAP 0
    #define FORBID(start, size)
    #endif
    """
    Py_ssize_t GAP
    void FORBID(void *start, Py_ssize_t size) nogil


cdef enum:
    MOST_ARRAYS = 16    # of a workspace, for the gaps


cdef enum:
    VALID, HAS_NON_FINITE, HAS_BAD_INDEX, IS_NOT_CANONICAL


NOT_FINITE, OUT_OF_RANGE, NOT_CANONICAL = HAS_NON_FINITE, HAS_BAD_INDEX, IS_NOT_CANONICAL


cdef const char *start_of(object array) except? NULL:
    """Return the address of the memory of an array, which the array keeps alive."""
    cdef Py_buffer buffer
    PyObject_GetBuffer(array, &buffer, PyBUF_STRIDED_RO)
    cdef const char *start = <const char *>buffer.buf
    PyBuffer_Release(&buffer)
    return start


cdef class RowView:
    """View of a matrix whose rows the kernels read in place.

    Values are float32 or float64; indices of a CSR matrix are int32 or int64. The arrays must not be resized while the
    view is in use.
    """

    @staticmethod
    def of_dense(array):
        """Return a view of a 2-D array with any strides."""
        cdef RowView view = RowView.__new__(RowView)
        view.rows.values = start_of(array)
        view.rows.n_rows, view.rows.n_columns = array.shape
        view.rows.row_stride, view.rows.column_stride = array.strides
        view.rows.is_sparse = False
        view.rows.is_single = array.itemsize == 4
        view.kept_alive = array
        return view

    @staticmethod
    def of_csr(shape, data, indices, indptr):
        """Return a view of the three contiguous arrays of a CSR matrix."""
        cdef RowView view = RowView.__new__(RowView)
        view.rows.values = start_of(data)
        view.rows.indices = start_of(indices)
        view.rows.indptr = start_of(indptr)
        view.rows.n_rows, view.rows.n_columns = shape
        view.rows.n_entries = min(len(data), len(indices))
        view.rows.is_sparse = True
        view.rows.is_single = data.itemsize == 4
        view.rows.has_wide_indices = indices.itemsize == 8
        view.kept_alive = (data, indices, indptr)
        return view

    @property
    def shape(self):
        """Numbers of rows and columns."""
        return self.rows.n_rows, self.rows.n_columns


cdef class Workspace:
    """Memory for one triplet with m and n columns and for `extra` values of `itemsize` bytes."""

    def __cinit__(self, Py_ssize_t m, Py_ssize_t n, Py_ssize_t itemsize, Py_ssize_t extra=0):
        if max(m, n, extra) > LARGEST_WIDTH:
            raise MemoryError(f"a triplet of {m} x {n} features does not fit in memory")
        self.memory = <char *>malloc(8 * (2 * m + 3 * n) + itemsize * (m + 4 * n + extra) + MOST_ARRAYS * GAP)
        if self.memory == NULL:
            raise MemoryError(f"a triplet of {m} x {n} features does not fit in memory")
        self.itemsize = 8
        self.pair.q_columns = <Py_ssize_t *>self.take(m)
        self.pair.q_starts = <Py_ssize_t *>self.take(m)
        self.pair.p_columns = <Py_ssize_t *>self.take(n)
        self.pair.work_columns = <Py_ssize_t *>self.take(2 * n)
        self.pair.n = n
        self.itemsize = itemsize
        self.pair.q = self.take(m)
        self.pair.p = self.take(n)
        self.pair.work = self.take(2 * n)
        self.pair.room_for_p_full = self.take(n)

    def __dealloc__(self):
        free(self.memory)

    cdef void *take(self, Py_ssize_t count) noexcept:
        cdef char *start = self.memory + self.used
        self.used += self.itemsize * count + GAP
        FORBID(start + self.itemsize * count, GAP)
        return start


cdef inline Py_ssize_t index_at(const char *indices, Py_ssize_t at, bint wide) noexcept nogil:
    return <Py_ssize_t>(<const int64_t *>indices)[at] if wide else <Py_ssize_t>(<const int32_t *>indices)[at]


cdef inline double value_at(const char *address, bint single) noexcept nogil:
    return (<const float *>address)[0] if single else (<const double *>address)[0]


ctypedef fused value:
    float
    double


ctypedef fused index:
    int32_t
    int64_t


cdef inline Py_ssize_t gather_sparse(
    const value *data, const index *indices, Py_ssize_t at, Py_ssize_t end, floating *values, Py_ssize_t *columns,
) noexcept nogil:
    cdef Py_ssize_t found = 0
    while at < end:
        # Always write and advance only for values that are non-zero after rounding: no branch to mispredict.
        values[found] = <floating>data[at]
        columns[found] = indices[at]
        found += values[found] != 0
        at += 1
    return found


cdef inline Py_ssize_t gather_dense(
    const value *row, const Rows *X, floating *values, Py_ssize_t *columns,
) noexcept nogil:
    cdef Py_ssize_t stride = X.column_stride // <Py_ssize_t>sizeof(value), column, found = 0
    for column in range(X.n_columns):
        values[found] = <floating>row[column * stride]
        columns[found] = column
        found += values[found] != 0
    return found


cdef Py_ssize_t gather(const Rows *X, Py_ssize_t row, floating *values, Py_ssize_t *columns) noexcept nogil:
    cdef Py_ssize_t at, end
    if X.is_sparse:
        at = index_at(X.indptr, row, X.has_wide_indices)
        end = index_at(X.indptr, row + 1, X.has_wide_indices)
        if X.is_single:
            if X.has_wide_indices:
                return gather_sparse(<const float *>X.values, <const int64_t *>X.indices, at, end, values, columns)
            return gather_sparse(<const float *>X.values, <const int32_t *>X.indices, at, end, values, columns)
        if X.has_wide_indices:
            return gather_sparse(<const double *>X.values, <const int64_t *>X.indices, at, end, values, columns)
        return gather_sparse(<const double *>X.values, <const int32_t *>X.indices, at, end, values, columns)
    if X.is_single:
        return gather_dense(<const float *>(X.values + row * X.row_stride), X, values, columns)
    return gather_dense(<const double *>(X.values + row * X.row_stride), X, values, columns)


cdef Py_ssize_t subtract(
    const floating *values_a, const Py_ssize_t *columns_a, Py_ssize_t n_a,
    const floating *values_b, const Py_ssize_t *columns_b, Py_ssize_t n_b,
    floating *values, Py_ssize_t *columns,
) noexcept nogil:
    cdef Py_ssize_t a = 0, b = 0, found = 0
    while a < n_a and b < n_b:
        if columns_a[a] < columns_b[b]:
            values[found] = values_a[a]
            columns[found] = columns_a[a]
            found += 1
            a += 1
        elif columns_b[b] < columns_a[a]:
            values[found] = -values_b[b]
            columns[found] = columns_b[b]
            found += 1
            b += 1
        else:
            values[found] = values_a[a] - values_b[b]
            columns[found] = columns_a[a]
            found += values[found] != 0
            a += 1
            b += 1
    while a < n_a:
        values[found] = values_a[a]
        columns[found] = columns_a[a]
        found += 1
        a += 1
    while b < n_b:
        values[found] = -values_b[b]
        columns[found] = columns_b[b]
        found += 1
        b += 1
    return found


cdef void spread(
    const floating *values, const Py_ssize_t *columns, Py_ssize_t found, floating *full, Py_ssize_t width,
) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(width):
        full[k] = 0
    for k in range(found):
        full[columns[k]] = values[k]


cdef void read_pair(
    Pair *x, const floating *kind, const Rows *Q, Py_ssize_t i, const Rows *P, Py_ssize_t j,
    const Rows *N, Py_ssize_t k,
) noexcept nogil:
    cdef floating *p = <floating *>x.p
    cdef floating *work = <floating *>x.work
    cdef Py_ssize_t n_a, n_b, at
    x.k_q = gather(Q, i, <floating *>x.q, x.q_columns)
    for at in range(x.k_q):
        x.q_starts[at] = x.q_columns[at] * x.n
    if N == NULL:
        x.k_p = gather(P, j, p, x.p_columns)
    else:
        n_a = gather(P, j, work, x.work_columns)
        n_b = gather(N, k, work + n_a, x.work_columns + n_a)
        x.k_p = subtract(work, x.work_columns, n_a, work + n_a, x.work_columns + n_a, n_b, p, x.p_columns)
    x.p_full = NULL
    if 4 * x.k_p > x.n:
        spread(p, x.p_columns, x.k_p, <floating *>x.room_for_p_full, x.n)
        x.p_full = x.room_for_p_full


# Check one row. Returns a code and writes the sum of squares of a valid row to `total`.
cdef int check_row(const Rows *X, Py_ssize_t row, double *total) noexcept nogil:
    cdef Py_ssize_t at, start, end, column, previous = -1
    cdef Py_ssize_t width = 4 if X.is_single else 8
    cdef double x
    cdef const char *cell
    cdef int code = VALID
    total[0] = 0
    if X.is_sparse:
        start = index_at(X.indptr, row, X.has_wide_indices)
        end = index_at(X.indptr, row + 1, X.has_wide_indices)
        if start < 0 or end < start or end > X.n_entries:
            return HAS_BAD_INDEX
        for at in range(start, end):
            column = index_at(X.indices, at, X.has_wide_indices)
            if column < 0 or column >= X.n_columns:
                return HAS_BAD_INDEX
            if column <= previous:  # can be repaired, so errors that cannot take precedence
                code = IS_NOT_CANONICAL
            previous = column
            x = value_at(X.values + at * width, X.is_single)
            if not isfinite(x):
                return HAS_NON_FINITE
            total[0] += x * x
        return code
    cell = X.values + row * X.row_stride
    if X.column_stride == width:
        total[0] = (sum_of_squares_float(<const float *>cell, X.n_columns) if X.is_single
                    else sum_of_squares_double(<const double *>cell, X.n_columns))
        if isfinite(total[0]):  # then all values are finite
            return VALID
        total[0] = 0
    for column in range(X.n_columns):
        x = value_at(cell, X.is_single)
        if not isfinite(x):
            return HAS_NON_FINITE
        total[0] += x * x
        cell += X.column_stride
    return VALID


def check_rows(RowView view, const int64_t[:] indices, unsigned char[::1] seen):
    """Check the rows with these indices, each once if `seen` has one element per row.

    Returns a code, the index of the invalid row, and the largest sum of squares of a row.
    """
    cdef Py_ssize_t i, row, where = -1
    cdef bint tracks = seen.shape[0] == view.rows.n_rows
    cdef double total, largest = 0
    cdef int found, code = VALID
    with nogil:
        for i in range(indices.shape[0]):
            row = indices[i]
            if tracks:
                if seen[row]:
                    continue
                seen[row] = 1
            found = check_row(&view.rows, row, &total)
            if found != VALID and (code == VALID or found != IS_NOT_CANONICAL):
                code, where = found, row
            if code == HAS_NON_FINITE or code == HAS_BAD_INDEX:
                break
            if total > largest:
                largest = total
    return code, where, largest


# The address of an array of `ndim` dimensions with one of these type codes, NULL for any other object.
cdef const char *buffer_start(object array, int ndim, bytes kinds, Py_ssize_t *count, Py_ssize_t *stride, char *kind):
    cdef Py_buffer buffer
    cdef const char *start = NULL
    try:
        PyObject_GetBuffer(array, &buffer, PyBUF_RECORDS_RO)
    except (BufferError, TypeError, ValueError):
        return NULL
    if buffer.ndim == ndim and buffer.format[1] == 0 and buffer.format[0] in kinds:
        count[0] = buffer.shape[0]
        stride[0] = buffer.strides[0]
        kind[0] = buffer.format[0]
        if <Py_ssize_t>buffer.buf % buffer.itemsize == 0 and stride[0] % buffer.itemsize == 0:
            start = <const char *>buffer.buf
    PyBuffer_Release(&buffer)
    return start


def single_dense_row(array):
    """Return a view and the sum of squares of a valid float vector, or None if it needs the general check."""
    cdef RowView view = RowView.__new__(RowView)
    cdef char kind
    cdef double total
    view.rows.values = buffer_start(array, 1, b"fd", &view.rows.n_columns, &view.rows.column_stride, &kind)
    if view.rows.values == NULL or view.rows.n_columns == 0:
        return None
    view.rows.n_rows = 1
    view.rows.is_single = kind == b"f"
    view.kept_alive = array
    return (view, total) if check_row(&view.rows, 0, &total) == VALID else None


def single_csr_row(Py_ssize_t n_columns, data, indices, indptr):
    """Return a view and the sum of squares of a valid CSR row, or None if it needs the general check."""
    cdef RowView view = RowView.__new__(RowView)
    cdef Rows *X = &view.rows
    cdef char value_kind, index_kind, indptr_kind
    cdef Py_ssize_t n_values, n_indices, n_indptr, value_stride, index_stride, indptr_stride
    cdef double total
    X.values = buffer_start(data, 1, b"fd", &n_values, &value_stride, &value_kind)
    X.indices = buffer_start(indices, 1, b"ilq", &n_indices, &index_stride, &index_kind)
    X.indptr = buffer_start(indptr, 1, b"ilq", &n_indptr, &indptr_stride, &indptr_kind)
    if X.values == NULL or X.indices == NULL or X.indptr == NULL:
        return None
    X.is_sparse = True
    X.is_single = value_kind == b"f"
    X.has_wide_indices = index_kind != b"i" and sizeof(long) == 8 or index_kind == b"q"
    if index_kind != indptr_kind or n_indptr != 2 or n_columns == 0:
        return None
    if value_stride != (4 if X.is_single else 8) or index_stride != (8 if X.has_wide_indices else 4):
        return None
    if indptr_stride != index_stride:
        return None
    X.n_rows = 1
    X.n_columns = n_columns
    X.n_entries = min(n_values, n_indices)
    view.kept_alive = (data, indices, indptr)
    return (view, total) if check_row(X, 0, &total) == VALID else None


def squared_scales(RowView Q, RowView P, RowView N, const int64_t[:, ::1] triplets, double[::1] out):
    """Compute ``|q|^2 |p|^2`` of every triplet."""
    cdef Workspace space = Workspace(Q.rows.n_columns, P.rows.n_columns, sizeof(double))
    cdef Pair *x = &space.pair
    cdef double *q = <double *>x.q
    cdef double *p = <double *>x.p
    cdef double q_norm, p_norm
    cdef Py_ssize_t t, k
    with nogil:
        for t in range(triplets.shape[0]):
            read_pair(x, q, &Q.rows, triplets[t, 0], &P.rows, triplets[t, 1], &N.rows, triplets[t, 2])
            q_norm = 0
            for k in range(x.k_q):
                q_norm += q[k] * q[k]
            p_norm = 0
            for k in range(x.k_p):
                p_norm += p[k] * p[k]
            out[t] = q_norm * p_norm

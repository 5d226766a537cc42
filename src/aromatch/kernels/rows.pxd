from libc.stdint cimport int32_t, int64_t


ctypedef fused floating:
    float
    double


# A matrix whose rows are read where they lie, whatever its container, precision, order and index type.
cdef struct Rows:
    Py_ssize_t n_rows
    Py_ssize_t n_columns
    Py_ssize_t n_entries      # CSR: length of values and indices
    bint is_sparse
    bint is_single            # values are float32, not float64
    bint has_wide_indices     # CSR: int64 indices, not int32
    const char *values
    const char *indices
    const char *indptr
    Py_ssize_t row_stride     # dense: in bytes
    Py_ssize_t column_stride


cdef class RowView:
    cdef Rows rows
    cdef object kept_alive
    cdef object __weakref__


# q and p of one triplet (or pair) as lists of non-zeros in the order of their columns. The arithmetic of the
# kernels depends on these alone, so dense and CSR rows with the same values give the same bits.
# The values are float or double, as the model is; a struct cannot be fused.
cdef struct Pair:
    void *q
    void *p
    void *p_full                  # p over its whole width when more than a quarter of it is non-zero, else NULL
    Py_ssize_t *q_columns
    Py_ssize_t *q_starts          # where row q_columns[i] of an m x n matrix begins
    Py_ssize_t *p_columns
    Py_ssize_t k_q
    Py_ssize_t k_p
    Py_ssize_t n
    void *room_for_p_full
    void *work
    Py_ssize_t *work_columns


# Memory that lives as long as one call of a kernel: a Pair, and what the kernel takes besides.
cdef class Workspace:
    cdef Pair pair
    cdef char *memory
    cdef Py_ssize_t itemsize
    cdef Py_ssize_t used
    cdef void *take(self, Py_ssize_t count) noexcept


# Read row i of Q as q, and row j of P, less row k of N unless N is NULL, as p.
cdef void read_pair(
    Pair *x, const floating *kind, const Rows *Q, Py_ssize_t i, const Rows *P, Py_ssize_t j,
    const Rows *N, Py_ssize_t k,
) noexcept nogil

# The non-zero values of one row.
cdef Py_ssize_t gather(const Rows *X, Py_ssize_t row, floating *values, Py_ssize_t *columns) noexcept nogil

# A vector over its whole width.
cdef void spread(
    const floating *values, const Py_ssize_t *columns, Py_ssize_t found, floating *full, Py_ssize_t width,
) noexcept nogil

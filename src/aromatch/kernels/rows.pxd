from libc.stdint cimport int32_t, int64_t


ctypedef fused floating:
    float
    double


# A matrix whose rows are read in place: CSR or dense, of any precision, memory order and index type.
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


# q and p of one triplet or pair as lists of non-zeros, sorted by column. The arithmetic of the kernels depends on these
# only, so dense and CSR rows with the same values have bit-identical results. The values have the precision of the model;
# they are void pointers because a struct cannot be fused.
cdef struct Pair:
    void *q
    void *p
    void *p_full                  # p as a dense vector if more than a quarter of it is non-zero, else NULL
    Py_ssize_t *q_columns
    Py_ssize_t *q_starts          # offset of row q_columns[i] in an m x n matrix
    Py_ssize_t *p_columns
    Py_ssize_t k_q
    Py_ssize_t k_p
    Py_ssize_t n
    void *room_for_p_full
    void *work
    Py_ssize_t *work_columns


# Memory of one kernel call: a Pair, and extra values for the kernel.
cdef class Workspace:
    cdef Pair pair
    cdef char *memory
    cdef Py_ssize_t itemsize
    cdef Py_ssize_t used
    cdef void *take(self, Py_ssize_t count) noexcept


# Read row i of Q as q, and row j of P, minus row k of N unless N is NULL, as p. `kind` selects the precision.
cdef void read_pair(
    Pair *x, const floating *kind, const Rows *Q, Py_ssize_t i, const Rows *P, Py_ssize_t j,
    const Rows *N, Py_ssize_t k,
) noexcept nogil

# Write the non-zeros of one row and their columns; return their number.
cdef Py_ssize_t gather(const Rows *X, Py_ssize_t row, floating *values, Py_ssize_t *columns) noexcept nogil

# Write a sparse vector as a dense one.
cdef void spread(
    const floating *values, const Py_ssize_t *columns, Py_ssize_t found, floating *full, Py_ssize_t width,
) noexcept nogil

# Sums over rows of a matrix. Each has two forms: over the few columns of a sparse vector, and over all
# columns of one that fills more than a quarter of its width, where plain runs of memory are faster.
#
# Long sums run in eight lanes: the order is fixed, so the bits are too, and the compiler can use vectors.

from .rows cimport Pair, floating


cdef inline double dot(const floating *x, const floating *y, Py_ssize_t n) noexcept nogil:
    cdef floating a0 = 0, a1 = 0, a2 = 0, a3 = 0, a4 = 0, a5 = 0, a6 = 0, a7 = 0
    cdef Py_ssize_t j = 0
    while j + 8 <= n:
        a0 += x[j] * y[j]
        a1 += x[j + 1] * y[j + 1]
        a2 += x[j + 2] * y[j + 2]
        a3 += x[j + 3] * y[j + 3]
        a4 += x[j + 4] * y[j + 4]
        a5 += x[j + 5] * y[j + 5]
        a6 += x[j + 6] * y[j + 6]
        a7 += x[j + 7] * y[j + 7]
        j += 8
    while j < n:
        a0 += x[j] * y[j]
        j += 1
    return ((<double>a0 + a1) + (<double>a2 + a3)) + ((<double>a4 + a5) + (<double>a6 + a7))


cdef inline double sparse_dot(
    const floating *row, const floating *values, const Py_ssize_t *columns, Py_ssize_t found,
) noexcept nogil:
    cdef double total = 0
    cdef Py_ssize_t k
    for k in range(found):
        total += <double>(row[columns[k]] * values[k])
    return total


# q'Ap
cdef inline double bilinear_form(const floating *A, const Pair *x) noexcept nogil:
    cdef const floating *q = <const floating *>x.q
    cdef const floating *row
    cdef double total = 0
    cdef Py_ssize_t i
    for i in range(x.k_q):
        row = A + x.q_columns[i] * x.n
        if x.p_full != NULL:
            total += q[i] * dot(row, <const floating *>x.p_full, x.n)
        else:
            total += q[i] * sparse_dot(row, <const floating *>x.p, x.p_columns, x.k_p)
    return total


# a = A q for a symmetric A, by rows, which lie in order in memory.
cdef inline void symmetric_product(
    const floating *A, Py_ssize_t width, const floating *q, const Py_ssize_t *q_columns, Py_ssize_t k_q, floating *a,
) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef const floating *row
    cdef floating q_i
    for j in range(width):
        a[j] = 0
    for i in range(k_q):
        row = A + q_columns[i] * width
        q_i = q[i]
        for j in range(width):
            a[j] += q_i * row[j]

# Sums over rows of a matrix, over the few columns of a sparse vector or over plain runs of memory. The order of
# every sum is fixed, so the bits are too.

from .rows cimport Pair, floating


cdef extern from "loops.h" nogil:
    double dot_float(const float *x, const float *y, Py_ssize_t n)
    double dot_double(const double *x, const double *y, Py_ssize_t n)
    void add_float(float *a, float f, const float *x, Py_ssize_t n)
    void add_double(double *a, double f, const double *x, Py_ssize_t n)
    void add_four_float(
        float *a, const float *f, const float *x0, const float *x1, const float *x2, const float *x3, Py_ssize_t n)
    void add_four_double(
        double *a, const double *f, const double *x0, const double *x1, const double *x2, const double *x3, Py_ssize_t n)
    void downdate_float(
        float *w, float *s, const float *p, const float *p2, float f, float g, float floor, Py_ssize_t n)
    void downdate_double(
        double *w, double *s, const double *p, const double *p2, double f, double g, double floor, Py_ssize_t n)
    void add_precision_float(float *w, float *s, const float *p, const float *p2, float f, float g, Py_ssize_t n)
    void add_precision_double(
        double *w, double *s, const double *p, const double *p2, double f, double g, Py_ssize_t n)


cdef inline double dot(const floating *x, const floating *y, Py_ssize_t n) noexcept nogil:
    if floating is double:
        return dot_double(x, y, n)
    else:
        return dot_float(x, y, n)


# a <- a + f x
cdef inline void add(floating *a, floating f, const floating *x, Py_ssize_t n) noexcept nogil:
    if floating is double:
        add_double(a, f, x, n)
    else:
        add_float(a, f, x, n)


# a <- a + f_0 x_0 + f_1 x_1 + f_2 x_2 + f_3 x_3
cdef inline void add_four(
    floating *a, const floating *f, const floating *x0, const floating *x1, const floating *x2, const floating *x3,
    Py_ssize_t n,
) noexcept nogil:
    if floating is double:
        add_four_double(a, f, x0, x1, x2, x3, n)
    else:
        add_four_float(a, f, x0, x1, x2, x3, n)


# Four chains of additions, so that one need not wait for the other.
cdef inline double sparse_dot(
    const floating *row, const floating *values, const Py_ssize_t *columns, Py_ssize_t found,
) noexcept nogil:
    cdef double a0 = 0, a1 = 0, a2 = 0, a3 = 0
    cdef Py_ssize_t k = 0
    while k + 4 <= found:
        a0 += row[columns[k]] * values[k]
        a1 += row[columns[k + 1]] * values[k + 1]
        a2 += row[columns[k + 2]] * values[k + 2]
        a3 += row[columns[k + 3]] * values[k + 3]
        k += 4
    while k < found:
        a0 += row[columns[k]] * values[k]
        k += 1
    return (a0 + a1) + (a2 + a3)


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
    cdef Py_ssize_t i = 0, j
    for j in range(width):
        a[j] = 0
    while i + 4 <= k_q:
        add_four(
            a, q + i, A + q_columns[i] * width, A + q_columns[i + 1] * width, A + q_columns[i + 2] * width,
            A + q_columns[i + 3] * width, width)
        i += 4
    while i < k_q:
        add(a, q[i], A + q_columns[i] * width, width)
        i += 1

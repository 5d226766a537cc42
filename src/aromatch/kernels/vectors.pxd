# The loops of loops.h for either precision: sums over matrix rows, sparse vectors and contiguous memory, each in a fixed
# order.

from .rows cimport Pair, floating


cdef extern from "loops.h" nogil:
    double dot_float(const float *x, const float *y, Py_ssize_t n)
    double dot_double(const double *x, const double *y, Py_ssize_t n)
    void dots_float(
        const float *A, Py_ssize_t n_rows, Py_ssize_t width, const float *X, Py_ssize_t n_x, double *out, Py_ssize_t stride)
    void dots_double(
        const double *A, Py_ssize_t n_rows, Py_ssize_t width, const double *X, Py_ssize_t n_x, double *out, Py_ssize_t stride)
    double form_float(
        const float *A, const Py_ssize_t *starts, const float *q, Py_ssize_t k_q, const float *p, Py_ssize_t width)
    double form_double(
        const double *A, const Py_ssize_t *starts, const double *q, Py_ssize_t k_q, const double *p, Py_ssize_t width)
    void multiply_float(
        const float *A, const Py_ssize_t *rows, Py_ssize_t n_rows, Py_ssize_t depth, const float *B, Py_ssize_t width,
        float *C, float *strip)
    void multiply_double(
        const double *A, const Py_ssize_t *rows, Py_ssize_t n_rows, Py_ssize_t depth, const double *B, Py_ssize_t width,
        double *C, double *strip)
    void add_float(float *a, float f, const float *x, Py_ssize_t n)
    void add_double(double *a, double f, const double *x, Py_ssize_t n)
    void add_four_float(
        float *a, const float *f, const float *x0, const float *x1, const float *x2, const float *x3, Py_ssize_t n)
    void add_four_double(
        double *a, const double *f, const double *x0, const double *x1, const double *x2, const double *x3, Py_ssize_t n)
    double sparse_dot_float(const float *x, const float *y, const Py_ssize_t *columns, Py_ssize_t found)
    double sparse_dot_double(const double *x, const double *y, const Py_ssize_t *columns, Py_ssize_t found)
    double sparse_form_float(
        const float *A, const Py_ssize_t *starts, const float *q, Py_ssize_t k_q,
        const float *p, const Py_ssize_t *columns, Py_ssize_t k_p)
    double sparse_form_double(
        const double *A, const Py_ssize_t *starts, const double *q, Py_ssize_t k_q,
        const double *p, const Py_ssize_t *columns, Py_ssize_t k_p)
    void sparse_add_float(
        float *A, const Py_ssize_t *starts, const float *f, Py_ssize_t k_q,
        const float *p, const Py_ssize_t *columns, Py_ssize_t k_p)
    void sparse_add_double(
        double *A, const Py_ssize_t *starts, const double *f, Py_ssize_t k_q,
        const double *p, const Py_ssize_t *columns, Py_ssize_t k_p)


cdef inline double dot(const floating *x, const floating *y, Py_ssize_t n) noexcept nogil:
    if floating is double:
        return dot_double(x, y, n)
    else:
        return dot_float(x, y, n)


cdef inline void dots(
    const floating *A, Py_ssize_t n_rows, Py_ssize_t width, const floating *X, Py_ssize_t n_x, double *out,
    Py_ssize_t stride,
) noexcept nogil:
    if floating is double:
        dots_double(A, n_rows, width, X, n_x, out, stride)
    else:
        dots_float(A, n_rows, width, X, n_x, out, stride)


cdef inline void multiply(
    const floating *A, const Py_ssize_t *rows, Py_ssize_t n_rows, Py_ssize_t depth, const floating *B, Py_ssize_t width,
    floating *C, floating *strip,
) noexcept nogil:
    if floating is double:
        multiply_double(A, rows, n_rows, depth, B, width, C, strip)
    else:
        multiply_float(A, rows, n_rows, depth, B, width, C, strip)


cdef inline void add(floating *a, floating f, const floating *x, Py_ssize_t n) noexcept nogil:
    if floating is double:
        add_double(a, f, x, n)
    else:
        add_float(a, f, x, n)


cdef inline void add_four(
    floating *a, const floating *f, const floating *x0, const floating *x1, const floating *x2, const floating *x3,
    Py_ssize_t n,
) noexcept nogil:
    if floating is double:
        add_four_double(a, f, x0, x1, x2, x3, n)
    else:
        add_four_float(a, f, x0, x1, x2, x3, n)


cdef inline double sparse_dot(
    const floating *x, const floating *y, const Py_ssize_t *columns, Py_ssize_t found,
) noexcept nogil:
    if floating is double:
        return sparse_dot_double(x, y, columns, found)
    else:
        return sparse_dot_float(x, y, columns, found)


# q'Ap
cdef inline double bilinear_form(const floating *A, const Pair *x) noexcept nogil:
    cdef const floating *q = <const floating *>x.q
    cdef const floating *p = <const floating *>x.p
    if x.p_full != NULL:
        if floating is double:
            return form_double(A, x.q_starts, q, x.k_q, <const double *>x.p_full, x.n)
        else:
            return form_float(A, x.q_starts, q, x.k_q, <const float *>x.p_full, x.n)
    if floating is double:
        return sparse_form_double(A, x.q_starts, q, x.k_q, p, x.p_columns, x.k_p)
    else:
        return sparse_form_float(A, x.q_starts, q, x.k_q, p, x.p_columns, x.k_p)


# A <- A + f p' in the rows of q
cdef inline void add_outer(floating *A, const floating *f, const Pair *x) noexcept nogil:
    cdef const floating *p = <const floating *>x.p
    cdef Py_ssize_t i
    if x.p_full != NULL:
        for i in range(x.k_q):
            add(A + x.q_starts[i], f[i], <const floating *>x.p_full, x.n)
    elif floating is double:
        sparse_add_double(A, x.q_starts, f, x.k_q, p, x.p_columns, x.k_p)
    else:
        sparse_add_float(A, x.q_starts, f, x.k_q, p, x.p_columns, x.k_p)


# a = A q for a symmetric A, by its contiguous rows.
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

# One round of d-AROMA, shared by the dense kernel and the kernel of touched cells.

from libc.math cimport isfinite

from .rounds cimport needs_update, has_evidence
from .rows cimport Pair, Workspace, floating


cdef extern from "loops.h" nogil:
    void cell_forms_float(
        const float *cells, const Py_ssize_t *starts, const float *q, const float *q2, Py_ssize_t k_q,
        const float *pairs, Py_ssize_t n, double *out)
    void cell_forms_double(
        const double *cells, const Py_ssize_t *starts, const double *q, const double *q2, Py_ssize_t k_q,
        const double *pairs, Py_ssize_t n, double *out)
    void sparse_cell_forms_float(
        const float *cells, const Py_ssize_t *starts, const float *q, const float *q2, Py_ssize_t k_q,
        const float *pairs, const Py_ssize_t *columns, Py_ssize_t k_p, double *out)
    void sparse_cell_forms_double(
        const double *cells, const Py_ssize_t *starts, const double *q, const double *q2, Py_ssize_t k_q,
        const double *pairs, const Py_ssize_t *columns, Py_ssize_t k_p, double *out)
    void downdate_float(
        float *cells, const Py_ssize_t *starts, const float *f, const float *g, Py_ssize_t k_q,
        const float *pairs, Py_ssize_t n, float floor)
    void downdate_double(
        double *cells, const Py_ssize_t *starts, const double *f, const double *g, Py_ssize_t k_q,
        const double *pairs, Py_ssize_t n, double floor)
    void add_precision_float(
        float *cells, const Py_ssize_t *starts, const float *f, const float *g, Py_ssize_t k_q,
        const float *pairs, Py_ssize_t n)
    void add_precision_double(
        double *cells, const Py_ssize_t *starts, const double *f, const double *g, Py_ssize_t k_q,
        const double *pairs, Py_ssize_t n)
    void sparse_downdate_float(
        float *cells, const Py_ssize_t *starts, const float *f, const float *g, Py_ssize_t k_q,
        const float *pairs, const Py_ssize_t *columns, Py_ssize_t k_p, float floor)
    void sparse_downdate_double(
        double *cells, const Py_ssize_t *starts, const double *f, const double *g, Py_ssize_t k_q,
        const double *pairs, const Py_ssize_t *columns, Py_ssize_t k_p, double floor)
    void sparse_add_precision_float(
        float *cells, const Py_ssize_t *starts, const float *f, const float *g, Py_ssize_t k_q,
        const float *pairs, const Py_ssize_t *columns, Py_ssize_t k_p)
    void sparse_add_precision_double(
        double *cells, const Py_ssize_t *starts, const double *f, const double *g, Py_ssize_t k_q,
        const double *pairs, const Py_ssize_t *columns, Py_ssize_t k_p)


# Scratch memory of a round; values as in Pair.
cdef struct Scratch:
    void *q2
    void *pairs         # p and p^2 of each entry, interleaved
    void *f
    void *g


cdef inline Py_ssize_t scratch_size(Py_ssize_t m, Py_ssize_t n) noexcept:
    return 3 * m + 2 * n


cdef inline Scratch take_scratch(Workspace space, Py_ssize_t m, Py_ssize_t n) noexcept:
    cdef Scratch scratch
    scratch.q2 = space.take(m)
    scratch.pairs = space.take(2 * n)
    scratch.f = space.take(m)
    scratch.g = space.take(m)
    return scratch


# Learn one triplet and write its margin and variance to `result`. A cell is a mean followed by its variance; offsets in
# the Pair count cells. Returns whether the round was an update, or -1 if a score overflows; then nothing changes.
cdef inline int step(
    floating *cells, const Pair *x, const Scratch *scratch, double r, bint only_mistakes, bint inverse, double *result,
) noexcept nogil:
    cdef const floating *q = <const floating *>x.q
    cdef const floating *p = <const floating *>(x.p if x.p_full == NULL else x.p_full)
    cdef floating *q2 = <floating *>scratch.q2
    cdef floating *pairs = <floating *>scratch.pairs
    cdef floating *f = <floating *>scratch.f
    cdef floating *g = <floating *>scratch.g
    cdef Py_ssize_t k
    cdef double alpha, scale
    for k in range(x.k_q):
        q2[k] = q[k] * q[k]
    for k in range(x.k_p if x.p_full == NULL else x.n):
        pairs[2 * k] = p[k]
        pairs[2 * k + 1] = p[k] * p[k]
    forms(cells, x, q2, pairs, result)
    if not isfinite(result[0] + result[1]):
        return -1
    if not needs_update(result[0], only_mistakes, has_evidence(x), r):
        return False
    alpha = (1 - result[0]) / (result[1] + r)
    scale = (1 / r if inverse else 1 / (result[1] + r))
    for k in range(x.k_q):
        f[k] = <floating>(alpha * q[k])
        g[k] = <floating>(q2[k] * scale)
    update(cells, x, f, g, pairs, <floating>(r / (result[1] + r)), inverse)
    return True


# Margin q'Wp and variance sum_ij q_i^2 Sigma_ij p_j^2.
cdef inline void forms(
    const floating *cells, const Pair *x, const floating *q2, const floating *pairs, double *result,
) noexcept nogil:
    cdef const floating *q = <const floating *>x.q
    if floating is double:
        if x.p_full != NULL:
            cell_forms_double(cells, x.q_starts, q, q2, x.k_q, pairs, x.n, result)
        else:
            sparse_cell_forms_double(cells, x.q_starts, q, q2, x.k_q, pairs, x.p_columns, x.k_p, result)
    elif x.p_full != NULL:
        cell_forms_float(cells, x.q_starts, q, q2, x.k_q, pairs, x.n, result)
    else:
        sparse_cell_forms_float(cells, x.q_starts, q, q2, x.k_q, pairs, x.p_columns, x.k_p, result)


# (5) and (6), or the inverse form of (6), for the cells of q and p.
cdef inline void update(
    floating *cells, const Pair *x, const floating *f, const floating *g, const floating *pairs, floating floor,
    bint inverse,
) noexcept nogil:
    if floating is double:
        if x.p_full != NULL:
            if inverse:
                add_precision_double(cells, x.q_starts, f, g, x.k_q, pairs, x.n)
            else:
                downdate_double(cells, x.q_starts, f, g, x.k_q, pairs, x.n, floor)
        elif inverse:
            sparse_add_precision_double(cells, x.q_starts, f, g, x.k_q, pairs, x.p_columns, x.k_p)
        else:
            sparse_downdate_double(cells, x.q_starts, f, g, x.k_q, pairs, x.p_columns, x.k_p, floor)
    elif x.p_full != NULL:
        if inverse:
            add_precision_float(cells, x.q_starts, f, g, x.k_q, pairs, x.n)
        else:
            downdate_float(cells, x.q_starts, f, g, x.k_q, pairs, x.n, floor)
    elif inverse:
        sparse_add_precision_float(cells, x.q_starts, f, g, x.k_q, pairs, x.p_columns, x.k_p)
    else:
        sparse_downdate_float(cells, x.q_starts, f, g, x.k_q, pairs, x.p_columns, x.k_p, floor)

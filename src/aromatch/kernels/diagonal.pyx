"""d-AROMA: equations (5) and (6), and the inverse form of (6)."""

from libc.math cimport isfinite
from libc.stdint cimport int64_t

from .rounds cimport asks_for_update, has_evidence, note
from .rows cimport Pair, RowView, Workspace, floating, read_pair, spread
from .vectors cimport bilinear_form


cdef extern from "loops.h" nogil:
    void downdate_float(
        float *w, float *s, float f, float g, const float *p, const float *p2, Py_ssize_t n, float floor)
    void downdate_double(
        double *w, double *s, double f, double g, const double *p, const double *p2, Py_ssize_t n, double floor)
    void add_precision_float(float *w, float *s, float f, float g, const float *p, const float *p2, Py_ssize_t n)
    void add_precision_double(
        double *w, double *s, double f, double g, const double *p, const double *p2, Py_ssize_t n)
    void sparse_downdate_float(
        float *W, float *S, const Py_ssize_t *starts, const float *f, const float *g, Py_ssize_t k_q,
        const float *p, const float *p2, const Py_ssize_t *columns, Py_ssize_t k_p, float floor)
    void sparse_downdate_double(
        double *W, double *S, const Py_ssize_t *starts, const double *f, const double *g, Py_ssize_t k_q,
        const double *p, const double *p2, const Py_ssize_t *columns, Py_ssize_t k_p, double floor)
    void sparse_add_precision_float(
        float *W, float *S, const Py_ssize_t *starts, const float *f, const float *g, Py_ssize_t k_q,
        const float *p, const float *p2, const Py_ssize_t *columns, Py_ssize_t k_p)
    void sparse_add_precision_double(
        double *W, double *S, const Py_ssize_t *starts, const double *f, const double *g, Py_ssize_t k_q,
        const double *p, const double *p2, const Py_ssize_t *columns, Py_ssize_t k_p)


def learn(
    RowView Q, RowView P, RowView N, const int64_t[:, ::1] triplets, const double[::1] weights,
    double[:, ::1] record, floating[:, ::1] W, floating[:, ::1] Sigma, double r, bint only_mistakes, bint inverse,
    int64_t[::1] counts,
):
    """Learn the triplets in their order, in place; stop before one whose score overflows.

    Returns the number of triplets learned.
    """
    cdef Py_ssize_t m = W.shape[0], n = W.shape[1]
    cdef Workspace space = Workspace(m, n, sizeof(floating), 3 * m + 2 * n)
    cdef Pair *x = &space.pair
    cdef Pair x2 = space.pair       # the same columns with squared values
    cdef floating *q = <floating *>x.q
    cdef floating *p = <floating *>x.p
    cdef floating *q2 = <floating *>space.take(m)
    cdef floating *p2 = <floating *>space.take(n)
    cdef floating *p2_full = <floating *>space.take(n)
    cdef floating *p_full
    cdef floating *f = <floating *>space.take(m)
    cdef floating *g = <floating *>space.take(m)
    cdef Py_ssize_t t, k
    cdef double margin, variance, alpha, scale, r_t
    cdef floating floor
    cdef bint updates
    x2.q = q2
    x2.p = p2
    with nogil:
        for t in range(triplets.shape[0]):
            read_pair(x, q, &Q.rows, triplets[t, 0], &P.rows, triplets[t, 1], &N.rows, triplets[t, 2])
            p_full = <floating *>x.p_full
            margin = bilinear_form(&W[0, 0], x)
            r_t = r if weights is None else r / weights[t]
            updates = asks_for_update(margin, only_mistakes, has_evidence(x), r_t)
            variance = 0
            if updates or record is not None:
                for k in range(x.k_q):
                    q2[k] = q[k] * q[k]
                for k in range(x.k_p):
                    p2[k] = p[k] * p[k]
                x2.k_q = x.k_q
                x2.k_p = x.k_p
                x2.p_full = NULL
                if p_full != NULL:
                    spread(p2, x.p_columns, x.k_p, p2_full, n)
                    x2.p_full = p2_full
                variance = bilinear_form(&Sigma[0, 0], &x2)
            if not isfinite(margin + variance):
                with gil:
                    return t
            if updates:
                alpha = (1 - margin) / (variance + r_t)
                scale = (1 / r_t if inverse else 1 / (variance + r_t))
                floor = <floating>(r_t / (variance + r_t))
                for k in range(x.k_q):
                    f[k] = <floating>(alpha * q[k])
                    g[k] = <floating>(q2[k] * scale)
                update(&W[0, 0], &Sigma[0, 0], x, &x2, f, g, floor, inverse)
            note(&counts[0], &record[t, 0] if record is not None else NULL, margin, variance, updates)
    return triplets.shape[0]


# (5) and (6), or the inverse form of (6), at the cells of q and p.
cdef inline void update(
    floating *W, floating *Sigma, const Pair *x, const Pair *x2, const floating *f, const floating *g, floating floor,
    bint inverse,
) noexcept nogil:
    cdef const floating *p = <const floating *>(x.p if x.p_full == NULL else x.p_full)
    cdef const floating *p2 = <const floating *>(x2.p if x.p_full == NULL else x2.p_full)
    cdef Py_ssize_t i
    if x.p_full != NULL:
        for i in range(x.k_q):
            if floating is double:
                if inverse:
                    add_precision_double(W + x.q_starts[i], Sigma + x.q_starts[i], f[i], g[i], p, p2, x.n)
                else:
                    downdate_double(W + x.q_starts[i], Sigma + x.q_starts[i], f[i], g[i], p, p2, x.n, floor)
            elif inverse:
                add_precision_float(W + x.q_starts[i], Sigma + x.q_starts[i], f[i], g[i], p, p2, x.n)
            else:
                downdate_float(W + x.q_starts[i], Sigma + x.q_starts[i], f[i], g[i], p, p2, x.n, floor)
    elif floating is double:
        if inverse:
            sparse_add_precision_double(W, Sigma, x.q_starts, f, g, x.k_q, p, p2, x.p_columns, x.k_p)
        else:
            sparse_downdate_double(W, Sigma, x.q_starts, f, g, x.k_q, p, p2, x.p_columns, x.k_p, floor)
    elif inverse:
        sparse_add_precision_float(W, Sigma, x.q_starts, f, g, x.k_q, p, p2, x.p_columns, x.k_p)
    else:
        sparse_downdate_float(W, Sigma, x.q_starts, f, g, x.k_q, p, p2, x.p_columns, x.k_p, floor)

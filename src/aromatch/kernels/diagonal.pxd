# One round of d-AROMA, for whoever keeps the cells: whole matrices, or a block of the cells that a triplet touches.

from libc.math cimport isfinite

from .rounds cimport asks_for_update, has_evidence
from .rows cimport Pair, Workspace, floating, spread
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


# What a round works with besides the triplet; values as in Pair.
cdef struct Room:
    void *q2
    void *p2
    void *p2_full
    void *f
    void *g


cdef inline Py_ssize_t size_of_room(Py_ssize_t m, Py_ssize_t n) noexcept:
    return 3 * m + 2 * n


cdef inline Room take_room(Workspace space, Py_ssize_t m, Py_ssize_t n) noexcept:
    cdef Room room
    room.q2 = space.take(m)
    room.p2 = space.take(n)
    room.p2_full = space.take(n)
    room.f = space.take(m)
    room.g = space.take(m)
    return room


# Learn one triplet, with the margin and the variance in `told`; the variance only of an update, or when it `tells`.
# Returns whether it was an update, or -1 when a score overflows, and then nothing has changed.
cdef inline int step(
    floating *W, floating *Sigma, const Pair *x, const Room *room, double r, bint only_mistakes, bint inverse,
    bint tells, double *told,
) noexcept nogil:
    cdef const floating *q = <const floating *>x.q
    cdef const floating *p = <const floating *>x.p
    cdef floating *q2 = <floating *>room.q2
    cdef floating *p2 = <floating *>room.p2
    cdef floating *f = <floating *>room.f
    cdef floating *g = <floating *>room.g
    cdef Pair x2 = x[0]             # the same columns with squared values
    cdef Py_ssize_t k
    cdef double margin = bilinear_form(W, x), variance = 0, alpha, scale
    cdef bint updates = asks_for_update(margin, only_mistakes, has_evidence(x), r)
    if updates or tells:
        for k in range(x.k_q):
            q2[k] = q[k] * q[k]
        for k in range(x.k_p):
            p2[k] = p[k] * p[k]
        x2.q = q2
        x2.p = p2
        if x.p_full != NULL:
            spread(p2, x.p_columns, x.k_p, <floating *>room.p2_full, x.n)
            x2.p_full = room.p2_full
        variance = bilinear_form(Sigma, &x2)
    if not isfinite(margin + variance):
        return -1
    if updates:
        alpha = (1 - margin) / (variance + r)
        scale = (1 / r if inverse else 1 / (variance + r))
        for k in range(x.k_q):
            f[k] = <floating>(alpha * q[k])
            g[k] = <floating>(q2[k] * scale)
        update(W, Sigma, x, &x2, f, g, <floating>(r / (variance + r)), inverse)
    told[0] = margin
    told[1] = variance
    return updates


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

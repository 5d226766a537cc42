"""d-AROMA: equations (5) and (6), and the inverse form of (6)."""

from libc.math cimport isfinite
from libc.stdint cimport int64_t

from .rounds cimport asks_for_update, note
from .rows cimport Pair, RowView, Workspace, floating, read_pair, spread
from .vectors cimport add_precision_double, add_precision_float, bilinear_form, downdate_double, downdate_float


def learn(
    RowView Q, RowView P, RowView N, const int64_t[:, ::1] triplets, const double[::1] weights,
    double[:, ::1] record, floating[:, ::1] W, floating[:, ::1] Sigma, double r, bint only_mistakes, bint inverse,
    int64_t[::1] counts,
):
    """Learn the triplets in their order, in place; stop before one whose score overflows.

    Returns the number of triplets learned.
    """
    cdef Py_ssize_t m = W.shape[0], n = W.shape[1]
    cdef Workspace space = Workspace(m, n, sizeof(floating), m + 2 * n)
    cdef Pair *x = &space.pair
    cdef Pair x2 = space.pair       # the same columns with squared values
    cdef floating *q = <floating *>x.q
    cdef floating *p = <floating *>x.p
    cdef floating *q2 = <floating *>space.take(m)
    cdef floating *p2 = <floating *>space.take(n)
    cdef floating *p2_full = <floating *>space.take(n)
    cdef floating *p_full
    cdef floating *w
    cdef floating *s
    cdef Py_ssize_t t, i, k
    cdef double margin, variance, alpha, scale, r_t
    cdef floating alpha_q, floor
    cdef bint updates
    x2.q = q2
    x2.p = p2
    with nogil:
        for t in range(triplets.shape[0]):
            read_pair(x, q, &Q.rows, triplets[t, 0], &P.rows, triplets[t, 1], &N.rows, triplets[t, 2])
            p_full = <floating *>x.p_full
            margin = bilinear_form(&W[0, 0], x)
            r_t = r if weights is None else r / weights[t]
            updates = asks_for_update(margin, only_mistakes, x, r_t)
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
                for i in range(x.k_q):
                    w = &W[x.q_columns[i], 0]
                    s = &Sigma[x.q_columns[i], 0]
                    alpha_q = <floating>(alpha * q[i])
                    if p_full != NULL:
                        update_full_row(w, s, p_full, p2_full, n, alpha_q, <floating>(q2[i] * scale), floor, inverse)
                    else:
                        update_sparse_row(w, s, p, p2, x.p_columns, x.k_p, alpha_q, <floating>(q2[i] * scale), floor, inverse)
            note(&counts[0], &record[t, 0] if record is not None else NULL, margin, variance, updates)
    return triplets.shape[0]


# Sigma shrinks by ``1 - s x^2 / (variance + r)``, two numbers that nearly agree when one cell carries the whole
# variance. In exact arithmetic the result is never under ``r / (variance + r)``, so that is its floor, and Sigma
# stays positive whatever the scale of x.
cdef inline void update_sparse_row(
    floating *w, floating *s, const floating *p, const floating *p2, const Py_ssize_t *columns, Py_ssize_t found,
    floating alpha_q, floating q2_scale, floating floor, bint inverse,
) noexcept nogil:
    cdef Py_ssize_t k, j
    cdef floating share
    for k in range(found):
        j = columns[k]
        w[j] += alpha_q * s[j] * p[k]
        if inverse:
            s[j] = s[j] / (1 + s[j] * (q2_scale * p2[k]))
        else:
            share = 1 - s[j] * (q2_scale * p2[k])
            s[j] *= floor if share < floor else share


cdef inline void update_full_row(
    floating *w, floating *s, const floating *p, const floating *p2, Py_ssize_t n,
    floating alpha_q, floating q2_scale, floating floor, bint inverse,
) noexcept nogil:
    if floating is double:
        if inverse:
            add_precision_double(w, s, p, p2, alpha_q, q2_scale, n)
        else:
            downdate_double(w, s, p, p2, alpha_q, q2_scale, floor, n)
    elif inverse:
        add_precision_float(w, s, p, p2, alpha_q, q2_scale, n)
    else:
        downdate_float(w, s, p, p2, alpha_q, q2_scale, floor, n)

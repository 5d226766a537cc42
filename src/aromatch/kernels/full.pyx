"""AROW with a full or a diagonal covariance: equations (3) and (4), for vectors x and for ``x = vec(q p')``."""

from libc.math cimport isfinite, isinf, sqrt
from libc.stdint cimport int64_t

from .rounds cimport count_round
from .rows cimport Pair, RowView, Workspace, floating, gather, read_pair
from .vectors cimport add, sparse_dot, symmetric_product


# One round of (4) with y folded into x. Returns False if the variance is negative or not finite; then nothing changes.
cdef bint step(
    const floating *x, const Py_ssize_t *columns, Py_ssize_t found, floating *w, floating *Sigma, Py_ssize_t width,
    bint diagonal, double r, bint only_mistakes, floating *Sigma_x, int64_t *counts, double *record,
) noexcept nogil:
    cdef double margin = sparse_dot(w, x, columns, found), variance = 0, alpha
    cdef bint updates = (margin <= 0 if only_mistakes else margin < 1) and found > 0 and not isinf(r)
    cdef floating root, share, floor
    cdef Py_ssize_t i, j, k
    if updates or record != NULL:
        if diagonal:
            for k in range(found):
                variance += <double>Sigma[columns[k]] * x[k] * x[k]
        else:
            symmetric_product(Sigma, width, x, columns, found, Sigma_x)
            variance = sparse_dot(Sigma_x, x, columns, found)
        if not (variance >= 0 and isfinite(variance + margin)):
            return False
    if updates:
        alpha = (1 - margin) / (variance + r)
        if diagonal:
            floor = <floating>(r / (variance + r))
            for k in range(found):
                j = columns[k]
                share = <floating>(1 - <double>Sigma[j] * x[k] * x[k] / (variance + r))
                w[j] += <floating>(alpha * Sigma[j] * x[k])
                Sigma[j] *= share if share > floor else floor
        else:
            root = <floating>sqrt(1 / (variance + r))
            for i in range(width):
                w[i] += <floating>(alpha * Sigma_x[i])
                Sigma_x[i] *= root
            for i in range(width):
                add(Sigma + i * width, -Sigma_x[i], Sigma_x, width)
    count_round(counts, record, margin, variance, updates)
    return True


# x = vec(q p') in row-major order; returns its number of non-zeros.
cdef Py_ssize_t outer(const Pair *pair, floating *x, Py_ssize_t *columns) noexcept nogil:
    cdef const floating *q = <const floating *>pair.q
    cdef const floating *p = <const floating *>pair.p
    cdef Py_ssize_t i, k, found = 0
    for i in range(pair.k_q):
        for k in range(pair.k_p):
            x[found] = q[i] * p[k]
            columns[found] = pair.q_columns[i] * pair.n + pair.p_columns[k]
            found += 1
    return found


def learn_triplets(
    RowView Q, RowView P, RowView N, const int64_t[:, ::1] triplets, const double[::1] weights,
    double[:, ::1] record, floating[:, ::1] W, floating[:, ::1] Sigma, double r, bint only_mistakes,
    int64_t[::1] counts,
):
    """Learn the triplets in order, in place; return the number learned.

    Sigma is the covariance of W in row-major order.
    """
    cdef Py_ssize_t m = W.shape[0], n = W.shape[1]
    cdef Workspace space = Workspace(m, n, sizeof(floating))
    cdef Workspace outer_space = Workspace(m * n, 0, sizeof(floating), m * n)
    cdef floating *x = <floating *>outer_space.pair.q
    cdef floating *Sigma_x = <floating *>outer_space.take(m * n)
    cdef Py_ssize_t *columns = outer_space.pair.q_columns
    cdef Py_ssize_t t, found
    cdef double r_t
    with nogil:
        for t in range(triplets.shape[0]):
            read_pair(&space.pair, x, &Q.rows, triplets[t, 0], &P.rows, triplets[t, 1], &N.rows, triplets[t, 2])
            found = outer(&space.pair, x, columns)
            r_t = r if weights is None else r / weights[t]
            if not step(
                x, columns, found, &W[0, 0], &Sigma[0, 0], m * n, False, r_t, only_mistakes, Sigma_x,
                &counts[0], &record[t, 0] if record is not None else NULL,
            ):
                with gil:
                    return t
    return triplets.shape[0]


def learn_labels(
    RowView X, Py_ssize_t first, const double[::1] signs, floating[::1] w, floating[:, ::1] Sigma,
    bint diagonal, double r,
):
    """Learn the rows of X from `first` on with labels +1 and -1, in place; return the number learned."""
    cdef Py_ssize_t width = w.shape[0]
    cdef Workspace space = Workspace(width, 0, sizeof(floating), width)
    cdef floating *x = <floating *>space.pair.q
    cdef floating *Sigma_x = <floating *>space.take(width)
    cdef Py_ssize_t *columns = space.pair.q_columns
    cdef Py_ssize_t t, k, found
    cdef int64_t[3] counts = [0, 0, 0]
    with nogil:
        for t in range(signs.shape[0]):
            found = gather(&X.rows, first + t, x, columns)
            for k in range(found):
                x[k] *= <floating>signs[t]
            if not step(
                x, columns, found, &w[0], &Sigma[0, 0], width, diagonal, r, False, Sigma_x, counts, NULL,
            ):
                with gil:
                    return t
    return signs.shape[0]


def quadratic_forms(
    RowView Q, RowView P, const int64_t[:, ::1] indices, const floating[:, ::1] Sigma, floating[::1] out,
):
    """Compute ``vec(q p')' Sigma vec(q p')``, p a row of P (two columns in `indices`) or a difference (three)."""
    cdef Py_ssize_t m = Q.rows.n_columns, n = P.rows.n_columns
    cdef Workspace space = Workspace(m, n, sizeof(floating))
    cdef Workspace outer_space = Workspace(m * n, 0, sizeof(floating), m * n)
    cdef floating *x = <floating *>outer_space.pair.q
    cdef floating *Sigma_x = <floating *>outer_space.take(m * n)
    cdef Py_ssize_t *columns = outer_space.pair.q_columns
    cdef Py_ssize_t t, found
    cdef bint subtracts = indices.shape[1] == 3
    with nogil:
        for t in range(indices.shape[0]):
            read_pair(
                &space.pair, x, &Q.rows, indices[t, 0], &P.rows, indices[t, 1],
                &P.rows if subtracts else NULL, indices[t, 2] if subtracts else 0)
            found = outer(&space.pair, x, columns)
            symmetric_product(&Sigma[0, 0], m * n, x, columns, found, Sigma_x)
            out[t] = <floating>sparse_dot(Sigma_x, x, columns, found)

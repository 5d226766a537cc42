"""f-AROMA: equations (12) to (14), the two other covariance updates and the mean update of Theorem 2."""

from libc.math cimport isfinite, sqrt
from libc.stdint cimport int64_t

from .rounds cimport needs_update, has_evidence, count_round
from .rows cimport Pair, RowView, Workspace, floating, read_pair
from .vectors cimport add, bilinear_form, sparse_dot, symmetric_product

JACOBI, GAUSS_SEIDEL, JOINT = range(3)


# Coefficients of Omega_i = Omega - d b b' and Lambda_i = growth (Lambda - c a a').
cdef struct Shrinkage:
    double c
    double d
    double growth


cdef Shrinkage shrinkage(
    double q_variance, double p_variance, Py_ssize_t m, Py_ssize_t n, double r, int covariance_update,
) noexcept nogil:
    cdef Shrinkage result
    cdef double product = q_variance * p_variance
    cdef double A, B, C, root, lam, omega, trace
    result.growth = 1
    if covariance_update == 0:  # (13) and (14), each given the previous value of the other matrix
        result.d = q_variance / (m * r + product)
        result.c = p_variance / (n * r + product)
    elif covariance_update == 1:  # (13), then the exact minimiser over Lambda given the new Omega
        result.d = q_variance / (m * r + product)
        trace = 1 - result.d * p_variance / n
        omega = p_variance * (m * r / (m * r + product))
        result.c = omega / (n * r * trace + omega * q_variance)
        result.growth = 1 / trace
    else:  # the joint minimiser with Tr(inv(Lambda_{i-1}) Lambda_i) = m; lam is q'Lambda_i q
        A = (n - 1) * p_variance
        B = n * m * r + product * (m - n)
        C = n * m * r * q_variance
        if not isfinite(B * B + 4 * A * C):  # an r so large that its square overflows: the same equation over m n r
            A, B, C = A / (n * m * r), 1 + product * (m - n) / (n * m * r), q_variance
        root = sqrt(B * B + 4 * A * C)
        lam = 2 * C / (B + root) if B > 0 else (root - B) / (2 * A)
        result.d = lam / (m * r + lam * p_variance)
        trace = n - result.d * p_variance
        omega = p_variance * (m * r / (m * r + lam * p_variance))
        result.c = omega / (r * trace + omega * q_variance)
        result.growth = n / trace
    return result


# A <- growth (A - c a a'), exactly symmetric; `a` is scaled in place.
cdef void shrink(floating *A, floating *a, Py_ssize_t n, double c, double growth) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef floating *row
    cdef floating root = <floating>sqrt(c), g = <floating>growth
    for j in range(n):
        a[j] = root * a[j]
    for i in range(n):
        row = A + i * n
        add(row, -a[i], a, n)
        if growth != 1:
            for j in range(n):
                row[j] *= g


def learn(
    RowView Q, RowView P, RowView N, const int64_t[:, ::1] triplets, const double[::1] weights,
    double[:, ::1] record, floating[:, ::1] W, floating[:, ::1] Omega, floating[:, ::1] Lambda, double r, bint only_mistakes,
    bint updated_mean, int covariance_update, int64_t[::1] counts,
):
    """Learn the triplets in order, in place; stop before a variance that is negative or not finite.

    Returns the number of triplets learned.
    """
    cdef Py_ssize_t m = W.shape[0], n = W.shape[1]
    cdef Workspace space = Workspace(m, n, sizeof(floating), m + 2 * n)
    cdef Pair *x = &space.pair
    cdef floating *q = <floating *>x.q
    cdef floating *p = <floating *>x.p
    cdef floating *a = <floating *>space.take(m)       # Lambda q
    cdef floating *b = <floating *>space.take(n)       # Omega p
    cdef floating *qW = <floating *>space.take(n)
    cdef floating *w
    cdef Py_ssize_t t, i, j
    cdef double margin, q_variance, p_variance, alpha, factor, r_t
    cdef floating left, right
    cdef Shrinkage by
    cdef bint updates
    with nogil:
        for t in range(triplets.shape[0]):
            read_pair(x, q, &Q.rows, triplets[t, 0], &P.rows, triplets[t, 1], &N.rows, triplets[t, 2])
            margin = bilinear_form(&W[0, 0], x)
            r_t = r if weights is None else r / weights[t]
            updates = needs_update(margin, only_mistakes, has_evidence(x), r_t)
            q_variance = 0
            p_variance = 0
            if updates or record is not None:
                symmetric_product(&Lambda[0, 0], m, q, x.q_columns, x.k_q, a)
                symmetric_product(&Omega[0, 0], n, p, x.p_columns, x.k_p, b)
                q_variance = sparse_dot(a, q, x.q_columns, x.k_q)
                p_variance = sparse_dot(b, p, x.p_columns, x.k_p)
                if not (q_variance >= 0 and p_variance >= 0 and isfinite(q_variance * p_variance + margin)):
                    with gil:
                        return t
            if updates:
                alpha = (1 - margin) / (r_t + q_variance * p_variance)
                by = shrinkage(q_variance, p_variance, m, n, r_t, covariance_update)
                if updated_mean:
                    for j in range(n):
                        qW[j] = 0
                    for i in range(x.k_q):
                        add(qW, q[i], &W[x.q_columns[i], 0], n)
                    factor = by.c * by.d * margin + alpha * (1 - by.c * q_variance) * (1 - by.d * p_variance)
                    for i in range(m):
                        w = &W[i, 0]
                        left = <floating>(-by.c * a[i])
                        right = <floating>(factor * a[i] - by.d * sparse_dot(w, p, x.p_columns, x.k_p))
                        add(w, left, qW, n)
                        add(w, right, b, n)
                else:
                    for i in range(m):
                        add(&W[i, 0], <floating>(alpha * a[i]), b, n)
                shrink(&Omega[0, 0], b, n, by.d, 1)
                shrink(&Lambda[0, 0], a, m, by.c, by.growth)
            count_round(&counts[0], &record[t, 0] if record is not None else NULL, margin, q_variance * p_variance, updates)
    return triplets.shape[0]

# One round of OASIS, shared by the dense kernel and the kernel of touched cells.

from libc.math cimport isfinite

from .rounds cimport has_evidence
from .rows cimport Pair, floating
from .vectors cimport add_outer, bilinear_form


# This form returns C, not 0 / 0, when |q|^2 |p|^2 underflows.
cdef inline double step_size(double margin, double q_norm, double p_norm, double C) noexcept nogil:
    return C if C * q_norm * p_norm <= 1 - margin else (1 - margin) / (q_norm * p_norm)


# Learn one triplet and write its margin to `result`. Returns whether the round was an update, or -1 if the score
# overflows; then nothing changes.
cdef inline int step(floating *W, const Pair *x, floating *tau_q, double C, double *result) noexcept nogil:
    cdef const floating *q = <const floating *>x.q
    cdef const floating *p = <const floating *>x.p
    cdef double margin = bilinear_form(W, x), q_norm = 0, p_norm = 0, tau
    cdef bint updates = margin < 1 and C > 0 and has_evidence(x)
    cdef Py_ssize_t k
    if not isfinite(margin):
        return -1
    if updates:
        for k in range(x.k_q):
            q_norm += <double>q[k] * q[k]
        for k in range(x.k_p):
            p_norm += <double>p[k] * p[k]
        tau = step_size(margin, q_norm, p_norm, C)
        for k in range(x.k_q):
            tau_q[k] = <floating>(tau * q[k])
        add_outer(W, tau_q, x)
    result[0] = margin
    return updates

# The update rule and the counters of all online kernels.

from libc.math cimport isinf
from libc.stdint cimport int64_t

from .rows cimport Pair


# Whether the rule requires an update that can change the model: without evidence or with an infinite r it cannot.
cdef inline bint needs_update(double margin, bint only_mistakes, bint has_evidence, double r) noexcept nogil:
    return (margin <= 0 if only_mistakes else margin < 1) and has_evidence and not isinf(r)


# Whether neither q nor p is zero.
cdef inline bint has_evidence(const Pair *x) noexcept nogil:
    return x.k_q > 0 and x.k_p > 0


# Add the round to the counts of triplets, updates and mistakes, and write it to `record` unless that is NULL.
cdef inline void count_round(int64_t *counts, double *record, double margin, double variance, bint updates) noexcept nogil:
    counts[0] += 1
    counts[1] += updates
    counts[2] += margin <= 0
    if record != NULL:
        record[0] = margin
        record[1] = variance
        record[2] = updates

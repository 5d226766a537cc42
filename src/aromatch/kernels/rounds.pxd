# What every online kernel does in a round besides its own arithmetic.

from libc.math cimport isinf
from libc.stdint cimport int64_t

from .rows cimport Pair


# Whether the rule asks for an update that can change something: not without evidence, nor with an infinite r.
cdef inline bint asks_for_update(double margin, bint only_mistakes, bint has_evidence, double r) noexcept nogil:
    return (margin <= 0 if only_mistakes else margin < 1) and has_evidence and not isinf(r)


# Whether neither q nor p is zero.
cdef inline bint has_evidence(const Pair *x) noexcept nogil:
    return x.k_q > 0 and x.k_p > 0


# Count the round: seen, updates, mistakes; and tell about it where somebody wants to know.
cdef inline void note(int64_t *counts, double *record, double margin, double variance, bint updates) noexcept nogil:
    counts[0] += 1
    counts[1] += updates
    counts[2] += margin <= 0
    if record != NULL:
        record[0] = margin
        record[1] = variance
        record[2] = updates

"""Local moves of the Louvain method for communities of a weighted graph."""

from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc


def move_nodes(
    const int64_t[::1] indptr,
    const int64_t[::1] neighbours,
    const double[::1] weights,
    const double[::1] strengths,
    const int64_t[::1] order,
    int64_t[::1] labels,
    double resolution,
    Py_ssize_t max_rounds,
):
    """Move each node to the community of a neighbour with the largest gain in modularity, until none moves.

    The graph is symmetric, in CSR form, with weights of at least 0; the strength of a node is the sum of its weights.
    Labels are communities of nodes, 0 to n - 1, and are changed in place. Nodes are visited in `order`, at most
    `max_rounds` times. Returns the number of moves.
    """
    cdef Py_ssize_t n = strengths.shape[0], n_moves = 0, before, at, i, e, j, k, n_near
    cdef int64_t own, best, label
    cdef double total = 0, strength, gain, best_gain
    # Sums over communities: strengths, and weights of the links to the visited node.
    cdef double *of_community = <double *>malloc(max(1, n) * sizeof(double))
    cdef double *to_community = <double *>malloc(max(1, n) * sizeof(double))
    cdef int64_t *near = <int64_t *>malloc(max(1, n) * sizeof(int64_t))
    if not of_community or not to_community or not near:
        free(of_community)
        free(to_community)
        free(near)
        raise MemoryError
    with nogil:
        for i in range(n):
            of_community[i] = 0
            to_community[i] = -1
        for i in range(n):
            of_community[labels[i]] += strengths[i]
            total += strengths[i]
        for k in range(max_rounds if total > 0 else 0):
            before = n_moves
            for at in range(n):
                i = order[at]
                own, strength, n_near = labels[i], strengths[i], 0
                for e in range(indptr[i], indptr[i + 1]):
                    j = neighbours[e]
                    if j == i:
                        continue
                    label = labels[j]
                    if to_community[label] < 0:
                        to_community[label] = 0
                        near[n_near] = label
                        n_near += 1
                    to_community[label] += weights[e]
                of_community[own] -= strength
                best = own
                best_gain = max(to_community[own], 0) - resolution * strength * of_community[own] / total
                for j in range(n_near):
                    label = near[j]
                    gain = to_community[label] - resolution * strength * of_community[label] / total
                    # A tolerance, so that rounding moves no node back and forth.
                    if gain > best_gain + 1e-12 * strength:
                        best, best_gain = label, gain
                    to_community[label] = -1
                of_community[best] += strength
                n_moves += best != own
                labels[i] = best
            if n_moves == before:
                break
    free(of_community)
    free(to_community)
    free(near)
    return n_moves

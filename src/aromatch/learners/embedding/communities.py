"""Communities of a graph by the Louvain method (Blondel et al. 2008).

With weights ``A_ij``, strengths ``s_i = sum_j A_ij`` and their total s, the modularity at a resolution g is ::

    sum over pairs in one community of  (A_ij - g s_i s_j / s) / s

(Newman and Girvan 2004; Reichardt and Bornholdt 2006). Nodes move to the neighbouring community with the largest gain
until none moves; then communities become the nodes of a smaller graph, and so on. Larger resolutions give smaller
communities.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ...kernels.communities import move_nodes

# Visits of every node on one level. Later ones move few nodes.
_MAX_ROUNDS = 32


def communities(A: Any, resolution: float, generator: np.random.Generator) -> NDArray[np.int64]:
    """Return the community of each node, from 0, for a symmetric sparse matrix of weights of at least 0."""
    found = np.arange(A.shape[0])
    graph = sparse.csr_array(A, dtype=np.float64)
    while True:
        n = graph.shape[0]
        labels = np.arange(n)
        strengths = np.asarray(graph.sum(axis=1)).ravel()
        links = graph.indptr.astype(np.int64), graph.indices.astype(np.int64), graph.data
        move_nodes(*links, strengths, generator.permutation(n), labels, resolution, _MAX_ROUNDS)
        used, labels = np.unique(labels, return_inverse=True)
        found = labels[found]
        if len(used) == n:
            return found
        members = sparse.csr_array((np.ones(n), labels, np.arange(n + 1)), shape=(n, len(used)))
        graph = sparse.csr_array(members.T @ graph @ members)

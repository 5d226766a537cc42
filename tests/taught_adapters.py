"""Clustered objects, and adapters trained with feedback by cluster."""

import numpy as np
from scipy import sparse

CONTAINERS = [np.asarray, sparse.csr_array]


def clusters(n_each=12, n_clusters=4, width=8, spread=0.5, seed=0):
    """Return rows around random centres and the indices of their centres."""
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(n_clusters, width))
    y = np.repeat(np.arange(n_clusters), n_each)
    return centres[y] + spread * generator.normal(size=(len(y), width)), y


def taught(adapter, X, y, rows, seed=0, clicks=True):
    """Search for some rows and judge or click the results by class; return the feedback."""
    generator = np.random.default_rng(seed)
    log = []
    for number, row in enumerate(rows):
        query = X[row] + 0.05 * generator.normal(size=X.shape[1]) if number % 3 else X[row]
        ids = adapter.search(query, 8).ids
        good = y[ids] == y[row]
        if clicks and number % 4 == 3 and good.any():
            log.append(("click", query, ids, ids[good][0]))
        else:
            log.append(("judge", query, ids[good], ids[~good]))
        kind, *arguments = log[-1]
        getattr(adapter, kind)(*arguments)
    return log


def convinced(adapter):
    """Return the adapter after simulated feedback that raises its correction weight above 0.9."""
    generator = np.random.default_rng(0)
    for _ in range(100):
        base, learned = generator.normal(size=(2, 6))
        adapter._monitor.add_judged(base, learned, base + learned > 0)
        adapter._monitor.add_list()
    assert adapter.correction_weight_ > 0.9
    return adapter

"""Rows sampled around group centres, as data for tests of learners."""

import numpy as np

from aromatch.evaluation import evaluate_retrieval


def groups(n_rows=400, n_groups=8, width=40, spread=0.5, decay=np.inf):
    """Return training and test rows around the same centres, with labels; a decay adds noise to the first features."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(n_groups, width)) / np.sqrt(width)
    y = np.arange(2 * n_rows) % n_groups
    X = centres[y] + spread * rng.normal(size=(len(y), width)) * np.exp(-np.arange(width) / decay)
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


# Rows that need a learned metric: the informative features have the least noise.
NOISY = {"n_rows": 1_000, "width": 100, "spread": 1.0, "decay": 30}


def quality(model, X_test, y_test):
    """Return the mAP of retrieving rows of the same group."""
    return evaluate_retrieval(model, X_test, y_test).mean_average_precision

"""Synthetic and real rows and triplets for benchmarks of speed."""

import json
import lzma
import os
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.utils import gen_batches

from aromatch.triplets import from_labels


def zipf_rows(n_features=1000, n_nonzero=40, n_rows=4000, n_classes=20, seed=0):
    """Return sparse rows of unit norm like documents: Zipf-distributed features with class-specific preferences."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n_rows)
    frequency = np.arange(1, n_features + 1) ** -0.7
    preferred = np.ones((n_classes, n_features))
    for own in preferred:
        own[rng.permutation(n_features)[: n_features // 5]] = 8
    logits = np.log(frequency * preferred)
    # The largest Gumbel-perturbed logits are a sample without replacement.
    columns = np.empty((n_rows, n_nonzero), dtype=np.int64)
    for part in gen_batches(n_rows, 500):
        noisy = logits[y[part]] + rng.gumbel(size=(len(y[part]), n_features))
        columns[part] = np.sort(np.argpartition(-noisy, n_nonzero, axis=1)[:, :n_nonzero], axis=1)
    values = rng.random((n_rows, n_nonzero)) + 0.2
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    indptr = np.arange(0, n_rows * n_nonzero + 1, n_nonzero)
    X = sparse.csr_matrix(
        (values.ravel(), columns.ravel().astype(np.int32), indptr.astype(np.int32)), (n_rows, n_features)
    )
    return X, y


def dense_rows(n_features=384, n_rows=4000, n_classes=20, seed=0):
    """Return dense rows of unit norm like sentence embeddings, with classes around centres."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n_rows)
    X = rng.normal(size=(n_classes, n_features))[y] * 0.5 + rng.normal(size=(n_rows, n_features))
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


def newsgroups():
    """Return the training part of 20 Newsgroups as 1,000 tf-idf terms, or None if the data is missing."""
    from aromatch.features import TextFeatures

    path = Path(os.environ.get("AROMATCH_DATA", "../shared/data")) / "20news.jsonl.xz"
    if not path.exists():
        return None
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        posts = [post for post in map(json.loads, lines) if post["split"] == "train"]
    y = np.array([post["group"] for post in posts])
    return TextFeatures(1000).fit_transform([post["text"] for post in posts], y), y


def triplets_of(y, n, seed=0):
    return from_labels(y, n, random_state=seed)

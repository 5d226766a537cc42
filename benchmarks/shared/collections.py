"""Labelled collections and their splits, shared by all benchmarks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from aromatch.datasets import data_folder
from aromatch.paper.spec import read_spec
from aromatch.paper.splits import Split, make_split

RESULTS = Path(__file__).parents[2] / "docs" / "results"
SEED = 0


@dataclass(frozen=True)
class Collection:
    """A collection, the numbers of triplets sampled from it, and targets."""

    title: str
    n_triplets: tuple[int, ...]
    targets: dict[str, float]
    """Targets for the measures after `targets_at` triplets."""
    targets_at: int = 0


COLLECTIONS = {
    "20newsgroups": Collection("20 Newsgroups", (10_000, 50_000, 500_000), {"P@10": 0.80, "mAP": 0.70}, 500_000),
    "banking77": Collection(
        "BANKING77, sentence embeddings", (10_000, 20_000, 50_000), {"P@1": 0.90, "P@10": 0.86, "mAP": 0.76}, 50_000
    ),
    "caltech101_50": Collection("Caltech-101, 50 classes", (10_000, 20_000, 50_000), {}),
    "stdlib": Collection("Docstrings of the standard library", (10_000, 20_000, 50_000), {}),
}


def split_of(name, number):
    """Return the vectors of a split; collections of the paper have the splits of its reproduction."""
    if name == "banking77":
        return _banking77(number)
    spec = read_spec("fig3") if name == "caltech101_50" else read_spec("fig4", task=name)
    return make_split(spec, number, "", RESULTS / "kept" / "vectors")


def _banking77(number):
    with np.load(data_folder() / "banking77" / "minilm_f16.npz", allow_pickle=False) as arrays:
        X, y, is_test = arrays["emb"].astype(np.float64), arrays["category"].astype(str), arrays["split"] == "test"
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    if number > 0:  # split 0 is official, the others have the same size
        is_test = np.random.default_rng([SEED, number]).permutation(is_test)
    return Split(X[~is_test], y[~is_test], X[is_test], y[is_test])

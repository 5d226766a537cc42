"""Vectors of the training and test parts of a split, cached on disk."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.model_selection import StratifiedKFold

from .. import datasets
from ..io.durable import replacing
from .spec import Spec

_DESCRIPTORS = "descriptors"
_TEXTS = ("20newsgroups", "stdlib")
# Parts of the seeds, beside the seed of the figure and the number of the split.
_ROWS, _PARTS, _VALIDATION = 1, 2, 3


@dataclass(frozen=True, slots=True)
class Split:
    """Vectors and classes of a training and a test part."""

    X: sparse.csr_array
    y: NDArray[np.str_]
    X_test: sparse.csr_array
    y_test: NDArray[np.str_]

    @property
    def test_ratio(self) -> float:
        """Size of the test part over that of the training part."""
        return len(self.y_test) / len(self.y)

    def inside(self, share: float, seed: int) -> Split:
        """Split the training part into a training and a validation part."""
        order = np.random.default_rng([seed, _VALIDATION]).permutation(len(self.y))
        n_held_out = round(share * len(self.y))
        fitted, held_out = np.sort(order[n_held_out:]), np.sort(order[:n_held_out])
        return Split(self.X[fitted], self.y[fitted], self.X[held_out], self.y[held_out])


def make_split(spec: Spec, number: int, variant: str, folder: Path) -> Split:
    """Return the vectors of a split, from the cache in `folder` if possible.

    Terms, words and their weights are computed from the training part alone.
    """
    features = spec.features_of(variant)
    settings = [spec.task, spec.seed, spec.split, spec.most_rows, features, number, spec.n_splits]
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]
    path = folder / f"{spec.figure}-{variant or 'main'}-split{number}-{digest}.npz"
    if not path.exists():
        _write(path, _vectors(spec, number, features, folder))
    return _read(path)


def describe_images(spec: Spec, folder: Path, *, n_jobs: int, verbose: bool) -> None:
    """Compute the descriptors of all images in parallel and cache them; does nothing for texts."""
    if spec.task in _TEXTS:
        return
    from ..features import PatchDescriptors

    images, labels = _collection(spec.task, strip_headers=False)
    names = PatchDescriptors().get_params()
    for variant in ("", *(variant["name"] for variant in spec.variants)):
        made = _image_features(spec.features_of(variant)).get_params()
        settings = {name: value for name, value in made.items() if name in names}
        settings |= {"cache": folder / _DESCRIPTORS, "n_jobs": n_jobs, "verbose": verbose}
        for _ in PatchDescriptors(**settings).each([images[row] for row in _rows(spec, labels)], _keep_nothing):
            pass


def _image_features(features: dict[str, Any]) -> Any:
    """Return the transformer of images with the given settings."""
    from ..features import ImageFeatures

    settings = {"preset": "dense", **features}
    return ImageFeatures.from_preset(settings.pop("preset"), **settings)


def _keep_nothing(counts: NDArray[Any], number: int) -> None:
    """Discard descriptors, which are in the cache."""


def _rows(spec: Spec, labels: NDArray[np.str_]) -> NDArray[np.int64]:
    """Return the rows of the data that are used."""
    rows = np.arange(len(labels))
    if spec.most_rows is None:
        return rows
    return np.sort(np.random.default_rng([spec.seed, _ROWS]).permutation(rows)[: spec.most_rows])


def _vectors(spec: Spec, number: int, features: dict[str, Any], folder: Path) -> Split:
    objects, labels = _collection(spec.task, bool(features.get("strip_headers", False)))
    rows = _rows(spec, labels)
    training, test = _parts(spec, number, labels[rows])
    training, test = rows[training], rows[test]
    made = {name: value for name, value in features.items() if name != "strip_headers"}
    transformer: Any
    if spec.task in _TEXTS:
        from ..features import TextFeatures

        transformer = TextFeatures(**made)
    else:
        kept = {"cache": folder / _DESCRIPTORS, "n_jobs": 1, "random_state": spec.seed}
        transformer = _image_features({**made, **kept})
    X = transformer.fit_transform([objects[row] for row in training], labels[training])
    X_test = transformer.transform([objects[row] for row in test])
    return Split(sparse.csr_array(X), labels[training], sparse.csr_array(X_test), labels[test])


@lru_cache(maxsize=1)
def _collection(task: str, strip_headers: bool) -> tuple[list[Any], NDArray[np.str_]]:
    if task == "20newsgroups":
        posts = datasets.load_20newsgroups(strip_headers=strip_headers)
        return posts.texts, posts.labels
    if task == "stdlib":
        docstrings = datasets.load_stdlib()
        return docstrings.texts, docstrings.labels
    loaders = {"caltech101_50": datasets.load_caltech101_50, "caltech256": datasets.load_caltech256}
    if task not in loaders:
        raise ValueError(f"task must be one of {', '.join((*_TEXTS, *loaders))}, got {task!r}")
    found = loaders[task]()
    return list(found.images), found.labels


def _parts(spec: Spec, number: int, labels: NDArray[np.str_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows of the training and of the test part."""
    if spec.split["kind"] == "folds":
        folds = StratifiedKFold(spec.split["n_folds"], shuffle=True, random_state=spec.seed)
        training, test = list(folds.split(np.zeros(len(labels)), labels))[number]
        return training, test
    order = np.random.default_rng([spec.seed, _PARTS, number]).permutation(len(labels))
    n_test = round(spec.split["test_share"] * len(labels))
    return np.sort(order[n_test:]), np.sort(order[:n_test])


def _write(path: Path, split: Split) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {"y": split.y, "y_test": split.y_test}
    for name, X in (("X", split.X), ("X_test", split.X_test)):
        arrays |= {f"{name}_data": X.data, f"{name}_indices": X.indices, f"{name}_indptr": X.indptr}
        arrays[f"{name}_shape"] = np.array(X.shape)
    with replacing(path) as file:  # other processes may read the same split
        np.savez(file, **arrays)


def _read(path: Path) -> Split:
    with np.load(path, allow_pickle=False) as arrays:
        X, X_test = (
            sparse.csr_array(
                (arrays[f"{name}_data"], arrays[f"{name}_indices"], arrays[f"{name}_indptr"]),
                shape=tuple(arrays[f"{name}_shape"]),
            )
            for name in ("X", "X_test")
        )
        return Split(X, arrays["y"], X_test, arrays["y_test"])

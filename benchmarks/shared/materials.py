"""Human judgements of the similarity of materials, and features of the picture of each material.

In a judgement, people vote which of two materials looks more like a reference. A picture is described by 42 features:
mean, standard deviation and seven percentiles of the three CIELAB coordinates, a histogram of uniform local binary
patterns, and statistics of the gradient of grey values (mean, standard deviation, three percentiles). Features are
standardized, each of the three groups has the same weight, and rows have unit norm.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler, normalize

from aromatch.datasets import data_folder

PICTURES = "havran1_ennis_298x298_LDR"


@dataclass(frozen=True)
class Judged:
    """Rows of materials, and judgements with votes; the first object has the majority."""

    X: Any
    train: Any
    test: Any
    votes: Any
    """Votes of the test judgements."""


def described(picture):
    """Return the three groups of features of a picture."""
    from skimage import color, feature

    lab, grey = color.rgb2lab(picture), color.rgb2gray(picture)
    colours = [
        value
        for channel in np.moveaxis(lab, 2, 0)
        for value in (channel.mean(), channel.std(), *np.percentile(channel, [1, 10, 25, 50, 75, 90, 99]))
    ]
    patterns = feature.local_binary_pattern((255 * grey).astype(np.uint8), 8, 1, "uniform").astype(int)
    steepness = np.hypot(*np.gradient(grey))
    return (
        np.array(colours),
        np.bincount(patterns.ravel(), minlength=10) / patterns.size,
        np.array([steepness.mean(), steepness.std(), *np.percentile(steepness, [50, 90, 99])]),
    )


def as_rows(groups):
    """Return rows of standardized groups of equal weight."""
    return normalize(np.hstack([StandardScaler().fit_transform(group) / np.sqrt(group.shape[1]) for group in groups]))


@lru_cache(1)
def materials():
    """Load the pictures and the judgements without ties."""
    from skimage import io

    folder = data_folder() / "material_similarity"
    pictures = (io.imread(path)[..., :3] for path in sorted((folder / PICTURES).iterdir()))
    X = as_rows([np.stack(group) for group in zip(*map(described, pictures), strict=True)])
    parts, votes = {}, {}
    for part in ("train", "test"):
        found = json.loads((folder / f"answers_processed_{part}.json").read_text())
        given, votes[part] = np.array(found["answers"]), np.array(found["agreement"])
        is_tie = votes[part][:, 0] == votes[part][:, 1]
        parts[part], votes[part] = given[~is_tie], votes[part][~is_tie]
    return Judged(X, parts["train"], parts["test"], votes["test"])

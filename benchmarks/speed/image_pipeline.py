"""Comparison of settings of `ImageFeatures`, on images that are not used for reported results.

    python -m benchmarks.speed.image_pipeline validation              # Caltech-101, training part of fold 0
    python -m benchmarks.speed.image_pipeline caltech256              # the 10 Caltech-256 classes
    python -m benchmarks.speed.image_pipeline test default paper --triplets 200000    # final run on fold 0

Prints a row of a Markdown table for each setting: words per image, then precision at 1, at 10 and mAP of each method.
Arguments after the part select settings, `--method` selects methods. Data is read from the folder AROMATCH_DATA;
descriptors are cached in the folder AROMATCH_CACHE if it is set.

Folds are `StratifiedKFold(5, shuffle=True, random_state=0)` of the images sorted by path. "validation" does not use the
test part of fold 0: a quarter of its training part is the validation part, and the dictionary is learned from the rest.
"""

import argparse
import os
import time

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, train_test_split

import aromatch as am
from aromatch.features import ImageFeatures

# Each differs from the default, the one that was chosen, in one respect.
SETTINGS = {
    "default": {},
    "paper": ImageFeatures.PRESETS["paper"],
    "paper, square roots": {
        **ImageFeatures.PRESETS["paper"],
        "scaling": "sqrt",
        "term_weight": "sqrt",
        "colour_weight": 0.15,
    },
    "colour_weight=0": {"colour_weight": 0.0},
    "colour_weight=0.3": {"colour_weight": 0.3},
    "colour_weight=0.5": {"colour_weight": 0.5},
    "rgb 4 x 4 x 4": {"colour_space": "rgb", "colour_bins": (4, 4, 4)},
    "hsv 8 x 3 x 3": {"colour_space": "hsv", "colour_bins": (8, 3, 3)},
    "lab 5 x 5 x 5": {"colour_space": "lab"},
    "one scale": {"scales": (1.0,)},
    "five scales": {"scales": (1.0, 0.7, 0.5, 0.35, 0.25)},
    "patches of 16, stride 8": {"patch_size": 16, "stride": 8},
    "patches of 32, stride 8": {"patch_size": 32, "stride": 8},
    "patches of 32, stride 16": {"patch_size": 32, "stride": 16},
    "stride 8": {"stride": 8},
    "scaling l1": {"scaling": "l1"},
    "scaling l2": {"scaling": "l2"},
    "counts": {"term_weight": "count"},
    "log counts": {"term_weight": "log"},
    "binary": {"term_weight": "binary"},
}


class Probabilities:
    """Reference trained on labels: inner products of the class probabilities of a logistic regression."""

    def fit(self, X, y):
        """Fit the logistic regression."""
        self.classifier = LogisticRegression(C=30.0, max_iter=200).fit(X, y)
        return self

    def similarity(self, Q, P=None):
        """Return the probability that two images are of one class."""
        of_queries = self.classifier.predict_proba(Q)
        return of_queries @ (of_queries if P is None else self.classifier.predict_proba(P)).T


def methods(n):
    return {
        "cosine": am.Euclidean(),
        "OASIS": am.OASIS(C=0.1, n_triplets=n, random_state=0),
        "d-AROMA r=1 from I": am.DiagonalAROMA(r=1.0, init="identity", n_triplets=n, random_state=0),
        "f-AROMA r=0.01": am.FactoredAROMA(r=0.01, n_triplets=n, random_state=0),
        "f-AROMA r=0.1 from I": am.FactoredAROMA(r=0.1, init="identity", n_triplets=n, random_state=0),
        "log. regression": Probabilities(),
    }


def parts(part):
    """Return the images, their classes, and the indices of training and evaluation images."""
    found = am.datasets.load_caltech256_10() if part == "caltech256" else am.datasets.load_caltech101_50()
    images, y = found.images, found.labels
    chosen = np.arange(len(y))
    if part != "caltech256":
        chosen, held_out = next(StratifiedKFold(5, shuffle=True, random_state=0).split(y, y))
        if part == "test":
            return images, y, chosen, held_out
    train, evaluation = train_test_split(chosen, test_size=0.25, stratify=y[chosen], random_state=1)
    return images, y, train, evaluation


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["validation", "caltech256", "test"])
    parser.add_argument("setting", nargs="*", help=f"some of: {'; '.join(SETTINGS)}")
    parser.add_argument("--method", action="append", choices=list(methods(1)))
    parser.add_argument("--triplets", type=int, default=50_000)
    given = parser.parse_args()
    chosen = given.method or list(methods(1))
    images, y, train, evaluation = parts(given.part)
    print(f"| setting | words | {' | '.join(chosen)} | seconds |")
    print("|---" * (len(chosen) + 3) + "|", flush=True)
    for name in given.setting or SETTINGS:
        begun = time.perf_counter()
        cache = os.environ.get("AROMATCH_CACHE")
        features = ImageFeatures(**SETTINGS[name], random_state=0, cache=cache, verbose=True)
        X = features.fit_transform([images[at] for at in train])
        Q = features.transform([images[at] for at in evaluation])
        seconds = time.perf_counter() - begun
        cells = []
        for method in chosen:
            model = methods(given.triplets)[method].fit(X, y[train])
            report = am.evaluation.evaluate_retrieval(model, Q, y[evaluation])
            figures = (report.precision[1], report.precision[10], report.mean_average_precision)
            cells.append(" ".join(f"{figure:.3f}"[1:] for figure in figures))
        words = int(np.median(np.diff(X.indptr)))
        print(f"| {name} | {words} | {' | '.join(cells)} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()

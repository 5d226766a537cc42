"""Is AROMA a good classifier, with the classes as objects? 20 Newsgroups, one pass over the training part.

    python -m benchmarks.studies.multiclass

The objects are the 20 groups as unit vectors, so W has a column of weights per group. A post yields triplets that
prefer its own group to the highest-scored other group, to the three highest-scored ones, or to all. Posts arrive
once, in random order, in small batches, and are predicted before they are learned; wrong predictions are the mistakes
of the pass. One-vs-rest AROW (with diagonal or full covariances) and stochastic gradient descent on the logistic loss
see the same posts in the same order. Logistic regression and `MomentAROMA` are batch methods. Settings are chosen
by accuracy on validation rows. Rows have 1,000 terms, as in the paper.
"""

from __future__ import annotations

import sys

import numpy as np
from sklearn.linear_model import LogisticRegression, SGDClassifier

import aromatch as am
from benchmarks.shared.collections import split_of
from benchmarks.shared.report import paragraph
from benchmarks.studies import study
from benchmarks.studies.study import SEED, chosen, compare, gathered, mean_over_splits, named, p_value, table

NAME = "multiclass"
TITLE = "Multi-class classification"
SPLITS = range(5)
VALIDATION_SHARE = 0.2
# Posts per batch: predicted together, then learned.
BATCH_SIZE = 20
# Points along the pass at which mistakes are counted.
N_POINTS = 20


# -- classifiers: `scores` of all classes, and `learn` (one pass) or `fit` (batch) -----------------------------------


class Matrix:
    """AROMA with the classes as objects."""

    def __init__(self, learner, n_classes, r, others):
        self.model, self.objects = learner(r), np.eye(n_classes)
        self.n_others = n_classes - 1 if others == "all" else min(int(others), n_classes - 1)

    def scores(self, X):
        """Return the score of every class for every row."""
        if not hasattr(self.model, "n_features_in_"):
            return np.zeros((X.shape[0], len(self.objects)))
        return self.model.similarity(X, self.objects)

    def learn(self, X, y):
        """Learn rows with the indices of their classes."""
        scores = self.scores(X)
        scores[np.arange(len(y)), y] = -np.inf
        strongest = np.argsort(-scores, axis=1, kind="stable")[:, : self.n_others]
        rows = np.repeat(np.arange(len(y)), self.n_others)
        self.model.partial_fit_triplets(np.column_stack([rows, y[rows], strongest.ravel()]), X, self.objects)


class OneVsRest:
    """One binary AROW per class."""

    def __init__(self, n_classes, r, covariance):
        self.models = [am.AROW(r, covariance=covariance) for _ in range(n_classes)]

    def scores(self, X):
        """Return the score of every class for every row."""
        if not hasattr(self.models[0], "classes_"):
            return np.zeros((X.shape[0], len(self.models)))
        return np.column_stack([model.decision_function(X) for model in self.models])

    def learn(self, X, y):
        """Learn rows with the indices of their classes."""
        for number, model in enumerate(self.models):
            model.partial_fit(X, y == number, classes=[False, True])


class Gradient:
    """Stochastic gradient descent on the logistic loss, one class against the rest."""

    def __init__(self, n_classes, alpha):
        self.model, self.classes = SGDClassifier(loss="log_loss", alpha=alpha, random_state=SEED), np.arange(n_classes)

    def scores(self, X):
        """Return the score of every class for every row."""
        if not hasattr(self.model, "coef_"):
            return np.zeros((X.shape[0], len(self.classes)))
        return self.model.decision_function(X)

    def learn(self, X, y):
        """Learn rows with the indices of their classes."""
        self.model.partial_fit(X, y, classes=self.classes)


class BatchClassifier:
    """A batch classifier: logistic regression or `MomentAROMA`."""

    def __init__(self, n_classes, kind, **setting):
        self.n_classes, self.kind, self.setting = n_classes, kind, setting

    def fit(self, X, y):
        """Fit all rows."""
        if self.kind == "logistic":
            self.scores = LogisticRegression(max_iter=2_000, **self.setting).fit(X, y).decision_function
            return
        objects, others = np.eye(self.n_classes), np.arange(1, self.n_classes)
        rows = np.repeat(np.arange(len(y)), len(others))
        triplets = np.column_stack([rows, y[rows], (y[:, np.newaxis] + others).ravel() % self.n_classes])
        model = am.MomentAROMA(**self.setting).fit_triplets(triplets, X, objects)
        self.scores = lambda Q: model.similarity(Q, objects)


_OTHERS = [{"r": r, "others": others} for r in (0.3, 1.0, 3.0, 10.0) for others in ("1", "3", "all")]
METHODS = {
    "logistic regression": (BatchClassifier, {"kind": "logistic"}, [{"C": C} for C in (1.0, 3.0, 10.0, 30.0)]),
    "MomentAROMA": (BatchClassifier, {"kind": "moment"}, [{"alpha": alpha} for alpha in (1e-6, 1e-5, 1e-4, 1e-3)]),
    "one-vs-rest AROW": (OneVsRest, {"covariance": "diagonal"}, [{"r": r} for r in (0.1, 0.3, 1.0, 3.0, 10.0)]),
    "one-vs-rest AROW, full": (OneVsRest, {"covariance": "full"}, [{"r": r} for r in (0.3, 1.0, 3.0)]),
    "gradient descent": (Gradient, {}, [{"alpha": a} for a in (1e-6, 1e-5, 1e-4, 1e-3)]),
    "d-AROMA": (Matrix, {"learner": am.DiagonalAROMA}, _OTHERS),
    "f-AROMA": (Matrix, {"learner": am.FactoredAROMA}, [one for one in _OTHERS if one["others"] != "all"]),
}
BATCH_METHODS = ("logistic regression", "MomentAROMA")


def learned(method, setting, n_classes, X, y, generator):
    """Return the trained classifier and, for one-pass methods, the rates of mistakes along the pass."""
    make, fixed, _ = METHODS[method]
    classifier = make(n_classes=n_classes, **fixed, **setting)
    if method in BATCH_METHODS:
        classifier.fit(X, y)
        return classifier, []
    order, wrong = generator.permutation(len(y)), []
    for start in range(0, len(y), BATCH_SIZE):
        rows = order[start : start + BATCH_SIZE]
        wrong += (classifier.scores(X[rows]).argmax(axis=1) != y[rows]).tolist()
        classifier.learn(X[rows], y[rows])
    points = np.linspace(0, len(y), N_POINTS + 1).astype(int)[1:]
    return classifier, [float(np.mean(wrong[:n])) for n in points]


def accuracy(classifier, X, y):
    return float(np.mean(classifier.scores(X).argmax(axis=1) == y))


def compute(method, number):
    """Choose a setting on validation rows, train on the training part, and evaluate on the test part."""
    split = split_of("20newsgroups", number)
    inside = split.inside(VALIDATION_SHARE, SEED)
    classes = np.unique(split.y)
    y, y_test, y_in, y_val = (
        np.searchsorted(classes, labels) for labels in (split.y, split.y_test, inside.y, inside.y_test)
    )
    reached = []
    for setting in METHODS[method][2]:
        classifier, _ = learned(method, setting, len(classes), inside.X, y_in, np.random.default_rng([SEED, number]))
        reached.append(accuracy(classifier, inside.X_test, y_val))
    best = METHODS[method][2][int(np.argmax(reached))]
    classifier, mistakes = learned(method, best, len(classes), split.X, y, np.random.default_rng([SEED, number]))
    found = {"accuracy": accuracy(classifier, split.X_test, y_test)}
    if mistakes:
        found["mistakes"] = mistakes[-1]
    return {
        "method": method,
        "split": number,
        "setting": best,
        "test_ratio": split.test_ratio,
        "n_rows": len(y),
        "n_classes": len(classes),
        "found": found,
        "mistakes": mistakes,
    }


def cells():
    return {
        named(NAME, am.__version__, SEED, VALIDATION_SHARE, BATCH_SIZE, N_POINTS, method, settings, number): (
            compute,
            method,
            number,
        )
        for method, (_, _, settings) in METHODS.items()
        for number in SPLITS
    }


# -- results ----------------------------------------------------------------------------------------------------------


def summary(results):
    """Return the measures of all splits by method, the mistakes along the pass, and tests."""
    methods = gathered(results, "method")
    ratio = results[0]["test_ratio"]
    tests = {}
    for name in ("d-AROMA", "f-AROMA"):
        for rival in ("logistic regression", "one-vs-rest AROW", "gradient descent"):
            for measure in methods[rival]:
                test = compare(methods[name][measure], methods[rival][measure], ratio)
                tests.setdefault(name, {}).setdefault(rival, {})[measure] = [test.difference, test.p]
    return {
        "n_rows": results[0]["n_rows"],
        "n_classes": results[0]["n_classes"],
        "methods": methods,
        "settings": {name: [r["setting"] for r in results if r["method"] == name] for name in methods},
        "along": {name: [r["mistakes"] for r in results if r["method"] == name] for name in methods},
        "tests": tests,
    }


def against(test):
    """Format a difference and its significance."""
    difference, p = test
    word = "not significant" if p > 0.05 else "higher" if difference > 0 else "lower"
    return f"{word}: {difference:+.3f}, {p_value(p)}"


def section(found):
    """Return the section of the page."""
    methods, tests = found["methods"], found["tests"]

    def mean(name, measure="accuracy"):
        return f"{100 * np.mean(methods[name][measure]):.1f} %"

    best = max(("d-AROMA", "f-AROMA"), key=lambda name: np.mean(methods[name]["accuracy"]))
    logistic, rest = tests[best]["logistic regression"]["accuracy"], tests[best]["one-vs-rest AROW"]
    answer = "Yes" if logistic[1] > 0.05 or logistic[0] > 0 else "Nearly" if logistic[0] > -0.02 else "No"
    lines = [
        f"**Is AROMA a good classifier, with the classes as objects? {answer}:** after one pass the test accuracy of "
        f"{best} is {mean(best)}, against {mean('logistic regression')} of batch logistic regression "
        f"({against(logistic)}) and {mean('one-vs-rest AROW')} of one-vs-rest AROW ({against(rest['accuracy'])}). "
        f"Along the pass it mispredicts {mean(best, 'mistakes')}, AROW {mean('one-vs-rest AROW', 'mistakes')} "
        f"({against(rest['mistakes'])}).",
        "",
        paragraph(
            f"20 Newsgroups, {found['n_classes']} classes, 1,000 terms, {found['n_rows']:,} training posts; five",
            "splits with standard errors, differences tested by the corrected resampled t-test. Posts are predicted in",
            f"batches of {BATCH_SIZE} before they are learned.",
        ),
    ]
    rows = []
    for name, values in methods.items():
        pass_ = mean_over_splits(values["mistakes"]) if "mistakes" in values else ""
        rows.append(
            [
                name,
                "batch" if name in BATCH_METHODS else "online",
                mean_over_splits(values["accuracy"]),
                pass_,
                chosen(found["settings"][name]),
            ]
        )
    heads = ["classifier", "training", "accuracy", "mistakes along the pass", "chosen (splits)"]
    return [*lines, *table(heads, rows), f"![Mistakes along the pass](results/study_{NAME}.png)"]


def draw(found, folder):
    """Plot the mistakes along the pass, and the accuracy after the pass."""
    figure, (left, right) = study.panels(2)
    online = [name for name in METHODS if name not in BATCH_METHODS]
    shares = np.arange(1, N_POINTS + 1) / N_POINTS * found["n_rows"]
    for number, name in enumerate(online):
        along = np.array(found["along"][name])
        left.plot(shares, along.mean(axis=0), color=f"C{number}", label=name, linewidth=1.4)
    left.set(xlabel="posts", ylabel="rate of mistakes", title="along one pass")
    left.legend(frameon=False, fontsize=8)
    names = list(METHODS)[::-1]
    means = [mean_over_splits(found["methods"][name]["accuracy"]) for name in names]
    colours = [f"C{online.index(name)}" if name in online else "#9a9a9a" for name in names]
    right.errorbar(
        [m.mean for m in means], names, xerr=[m.error for m in means], fmt="none", ecolor="#444444", capsize=3
    )
    right.scatter([m.mean for m in means], names, color=colours, zorder=3)
    right.set(xlabel="accuracy on test posts (grey: batch)", title="after the pass")
    figure.savefig(folder / f"study_{NAME}.png", dpi=130)


if __name__ == "__main__":
    study.main(sys.modules[__name__])

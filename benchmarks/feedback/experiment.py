"""Search that learns from judgements and clicks, in a closed loop.

A query of the training part is searched against the rest of that part, the ten results are judged (relevant are those
of the query's class), and the search learns. After 100, 1,000 and 5,000 lists it is compared with the baseline, the
cosine, on the test part: test queries against test objects, all unseen. Beside the adapter, Rocchio's relevance
feedback moves a query towards the relevant results of the nearest judged query.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from sklearn.preprocessing import normalize as unit_rows

import aromatch as am
from aromatch.evaluation import evaluate_retrieval
from aromatch.workflows.trial.rocchio import Rocchio
from benchmarks.feedback.page import MEASURES
from benchmarks.shared.collections import SEED, split_of
from benchmarks.shared.kept_cells import named

COLLECTIONS = {"banking77": "BANKING77, sentence embeddings", "20newsgroups": "20 Newsgroups, tf-idf"}
SEEDS = range(3)
CHECKPOINTS = (100, 1_000, 5_000)
K = 10
# Share of the classes with feedback in the scenario of few classes: 15 of the 77 intents.
SHARE_OF_CLASSES = 15 / 77


@dataclass(frozen=True)
class Feedback:
    """A kind of feedback."""

    name: str
    wrong: float = 0.0
    clicks: bool = False
    logged: bool = False
    few: bool = False
    outside: bool = False


FEEDBACK = (
    Feedback("correct"),
    Feedback("10 % wrong", wrong=0.1),
    Feedback("first clicks", clicks=True),
    Feedback("logged lists", logged=True),
    Feedback("few classes", few=True),
    Feedback("queries outside the collection", outside=True),
    Feedback("random", wrong=0.5),
    Feedback("all wrong", wrong=1.0),
)
# Kinds of feedback for which quality must not fall below the floor; the others are adversarial.
GUARANTEED = tuple(feedback.name for feedback in FEEDBACK[:6])


class RocchioSearch:
    """Rocchio's relevance feedback under the names that the loop uses."""

    def __init__(self, objects):
        self.objects = unit_rows(objects)
        self.rocchio = Rocchio(self.objects)

    def search(self, query, k):
        """Return the ids of the k best objects."""
        return np.argsort(-self.similarity(query, self.objects)[0], kind="stable")[:k]

    def judge(self, query, good, bad):
        """Learn a judged list."""
        self.rocchio.judge(unit_rows(query), good, bad)

    def click(self, query, shown, clicked):
        """Learn a click."""
        self.rocchio.click(unit_rows(query), shown, clicked)

    def similarity(self, Q, P):
        """Score all rows of Q with all of P."""
        return self.rocchio.similarity(unit_rows(Q), unit_rows(P))


class AdapterSearch:
    """The adapter with the methods that the loop calls."""

    def __init__(self, objects):
        self.adapter = am.Adapter(objects, random_state=SEED)
        self.judge, self.click, self.similarity = self.adapter.judge, self.adapter.click, self.adapter.similarity

    def search(self, query, k):
        """Return the ids of the k best objects."""
        return self.adapter.search(query, k).ids[0]


METHODS = {"Adapter": AdapterSearch, "Rocchio": RocchioSearch}


def compute(name, kind, seed, method):
    """Run the loop once; return the measures at every checkpoint, and those of the baseline."""
    feedback = next(feedback for feedback in FEEDBACK if feedback.name == kind)
    split = split_of(name, 0)
    generator = np.random.default_rng([SEED, seed])
    X, y = split.X, np.asarray(split.y)
    queried, tested = np.arange(len(y)), np.ones(len(split.y_test), dtype=bool)
    objects = queried
    if feedback.outside:
        queried, objects = np.array_split(generator.permutation(len(y)), 2)
    if feedback.few:
        classes = np.unique(y)
        few = generator.choice(classes, round(SHARE_OF_CLASSES * len(classes)), replace=False)
        queried, tested = queried[np.isin(y[queried], few)], ~np.isin(split.y_test, few)
    searched = METHODS[method](X[objects])
    baseline = am.Adapter(X[objects], random_state=SEED)
    n = CHECKPOINTS[-1]
    order = np.concatenate([generator.permutation(queried) for _ in range(-(-n // len(queried)))])[:n]
    found = []
    for number, row in enumerate(order, start=1):
        query = X[[row]]
        shown = baseline.search(query, K + 1).ids[0] if feedback.logged else searched.search(query, K + 1)
        shown = shown[objects[shown] != row][:K]
        is_good = (y[objects[shown]] == y[row]) ^ (generator.random(len(shown)) < feedback.wrong)
        if not feedback.clicks:
            searched.judge(query, shown[is_good], shown[~is_good])
        elif is_good.any():
            searched.click(query, shown, int(shown[is_good][0]))
        if number in CHECKPOINTS:
            found.append({"n_lists": number, **measured(searched, split, tested)})
    result = {"collection": name, "feedback": kind, "seed": seed, "method": method, "found": found}
    result["baseline"] = measured(baseline, split, tested)
    if method == "Adapter":
        result["correction_weight"] = searched.adapter.correction_weight_
        result["diagnostics"] = [float(value) for value in searched.adapter.diagnostics_]
    return result


def measured(model, split, tested):
    """Return the measures of the tested queries."""
    report = evaluate_retrieval(model, split.X_test, split.y_test)
    kept = tested[report.query_rows]
    values = report.precision_per_query[1], report.precision_per_query[10], report.average_precision
    return {name: float(value[kept].mean()) for name, value in zip(MEASURES, values, strict=True)}


def cell_name(name, feedback, seed, method):
    """Return the key of a cell, a hash of its settings."""
    return named(am.__version__, SEED, CHECKPOINTS, K, SHARE_OF_CLASSES, name, asdict(feedback), seed, method)

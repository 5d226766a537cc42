"""Search that learns from judgements and clicks, in a closed loop.

A query of the training part is searched against the rest of that part, the ten results are judged (relevant are those
of the query's class), and the search learns. After 100, 1,000 and 5,000 lists it is compared with the baseline, the
cosine, on the test part: test queries against test objects, all unseen. Beside the adapter, Rocchio's relevance
feedback moves a query towards the relevant results of the nearest judged query.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

import aromatch as am
from aromatch._utils.chunks import chunks
from aromatch.evaluation import evaluate_retrieval
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


class Rocchio:
    """Relevance feedback: a query moves towards relevant results of the nearest judged query, away from others."""

    positive_weight, negative_weight = 0.75, 0.15

    def __init__(self, objects):
        self.objects = normalize(objects)
        # Preallocated for all judgements.
        self.queries, self.moves = np.empty((2, CHECKPOINTS[-1], objects.shape[1]))
        self.n_judged = 0

    def search(self, query, k):
        """Return the ids of the k best objects."""
        scores = self._scores(query, self.objects)[0]
        return np.argsort(-scores, kind="stable")[:k]

    def judge(self, query, good, bad):
        """Store the move of this query."""
        move = np.zeros(self.objects.shape[1])
        for weight, ids in ((self.positive_weight, good), (-self.negative_weight, bad)):
            if len(ids):
                move += weight * np.asarray(self.objects[ids].mean(axis=0)).ravel()
        self.queries[self.n_judged], self.moves[self.n_judged] = unit_rows(query)[0], move
        self.n_judged += 1

    def click(self, query, shown, clicked):
        """Judge the results above the click as not relevant."""
        rank = int(np.flatnonzero(shown == clicked)[0])
        self.judge(query, shown[rank : rank + 1], shown[:rank])

    def similarity(self, Q, P):
        """Return the scores of moved queries."""
        return self._scores(Q, normalize(P))

    def _scores(self, Q, objects):
        Q = unit_rows(Q)
        if self.n_judged:
            judged = self.queries[: self.n_judged]
            near = [(judged @ Q[chunk].T).argmax(axis=0) for chunk in chunks(len(Q), 1000)]
            Q = Q + self.moves[np.concatenate(near)]
        return np.asarray((objects @ Q.T).T)


def unit_rows(Q):
    """Return rows as an array with unit norm."""
    return normalize(Q.toarray() if sparse.issparse(Q) else np.asarray(Q))


class AdapterSearch:
    """The adapter with the methods that the loop calls."""

    def __init__(self, objects):
        self.adapter = am.Adapter(objects, random_state=SEED)
        self.judge, self.click, self.similarity = self.adapter.judge, self.adapter.click, self.adapter.similarity

    def search(self, query, k):
        """Return the ids of the k best objects."""
        return self.adapter.search(query, k).ids[0]


METHODS = {"Adapter": AdapterSearch, "Rocchio": Rocchio}


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

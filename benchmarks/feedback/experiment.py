"""Whether search that learns from what people judge and click gets better, and never worse.

    make feedback                                        everything; writes docs/feedback.md and its figure
    python -m benchmarks.feedback --only banking77       collections whose name holds "banking77"; writes nothing
    python -m benchmarks.feedback --ways clicks          ways of judging whose name holds "clicks"; writes nothing

The closed loop: a query from the training part is searched against the rest of that part, people judge the ten results
(good is what has the class of the query), and the search learns. After 100, 1,000 and 5,000 lists it is held against
the base, the cosine, on the test part: test queries against test objects, none of which it has seen. Beside the adapter
stands Rocchio's relevance feedback: the query moves towards what was good for the nearest query that was judged.
Finished cells are kept in docs/results/feedback.json, so that an interrupted run goes on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

import aromatch as am
from aromatch.evaluation import evaluate_retrieval
from benchmarks.feedback.page import MEASURES
from benchmarks.shared.collections import RESULTS, SEED, split_of
from benchmarks.shared.kept_cells import named

KEPT = RESULTS / "feedback.json"
COLLECTIONS = {"banking77": "BANKING77, sentence embeddings", "20newsgroups": "20 Newsgroups, tf-idf"}
SEEDS = range(3)
CHECKPOINTS = (100, 1_000, 5_000)
K = 10
# Of the classes, those that are judged at all where feedback is on few of them: 15 of the 77 intents.
SHARE_OF_CLASSES = 15 / 77


@dataclass(frozen=True)
class Way:
    """A way in which lists are judged."""

    name: str
    wrong: float = 0.0
    clicks: bool = False
    logged: bool = False
    few: bool = False
    apart: bool = False


WAYS = (
    Way("all right"),
    Way("a tenth wrong", wrong=0.1),
    Way("first clicks", clicks=True),
    Way("logged lists", logged=True),
    Way("few classes", few=True),
    Way("queries that are no objects", apart=True),
    Way("at random", wrong=0.5),
    Way("all wrong", wrong=1.0),
)
# Ways that the issue asks for, and two more, of which no more is asked than that nothing breaks.
ASKED = tuple(way.name for way in WAYS[:6])


class Rocchio:
    """The classic: a query moves towards what was good for the nearest judged query, and away from what was not."""

    for_good, for_bad = 0.75, 0.15

    def __init__(self, objects):
        self.objects = normalize(objects)
        # Room for all that will be judged: lists of rows would be put together anew for every search.
        self.queries, self.moves = np.empty((2, CHECKPOINTS[-1], objects.shape[1]))
        self.n_judged = 0

    def search(self, query, k):
        """Give the ids of the k best."""
        scores = self._scores(query, self.objects)[0]
        return np.argsort(-scores, kind="stable")[:k]

    def judge(self, query, good, bad):
        """Note where this query should have gone."""
        move = np.zeros(self.objects.shape[1])
        for weight, ids in ((self.for_good, good), (-self.for_bad, bad)):
            if len(ids):
                move += weight * np.asarray(self.objects[ids].mean(axis=0)).ravel()
        self.queries[self.n_judged], self.moves[self.n_judged] = unit_rows(query)[0], move
        self.n_judged += 1

    def click(self, query, shown, clicked):
        """Take what stands above the click as bad."""
        place = int(np.flatnonzero(shown == clicked)[0])
        self.judge(query, shown[place : place + 1], shown[:place])

    def similarity(self, Q, P):
        """Score with queries that moved."""
        return self._scores(Q, normalize(P))

    def _scores(self, Q, objects):
        Q = unit_rows(Q)
        if self.n_judged:
            judged = self.queries[: self.n_judged]
            near = [(judged @ Q[start : start + 1000].T).argmax(axis=0) for start in range(0, len(Q), 1000)]
            Q = Q + self.moves[np.concatenate(near)]
        return np.asarray((objects @ Q.T).T)


def unit_rows(Q):
    """Give rows as an array, with unit norm."""
    return normalize(Q.toarray() if sparse.issparse(Q) else np.asarray(Q))


class AdapterSearch:
    """The adapter under the names that the loop uses."""

    def __init__(self, objects):
        self.adapter = am.search.Adapter(objects, random_state=SEED)
        self.judge, self.click, self.similarity = self.adapter.judge, self.adapter.click, self.adapter.similarity

    def search(self, query, k):
        """Give the ids of the k best."""
        return self.adapter.search(query, k).ids[0]


METHODS = {"Adapter": AdapterSearch, "Rocchio": Rocchio}


def compute(name, way_name, seed, method):
    """Run the loop once; give the measures at every checkpoint, and those of the base."""
    way = next(way for way in WAYS if way.name == way_name)
    split = split_of(name, 0)
    generator = np.random.default_rng([SEED, seed])
    X, y = split.X, np.asarray(split.y)
    asked, tested = np.arange(len(y)), np.ones(len(split.y_test), dtype=bool)
    objects = asked
    if way.apart:
        asked, objects = np.array_split(generator.permutation(len(y)), 2)
    if way.few:
        classes = np.unique(y)
        few = generator.choice(classes, round(SHARE_OF_CLASSES * len(classes)), replace=False)
        asked, tested = asked[np.isin(y[asked], few)], ~np.isin(split.y_test, few)
    searched = METHODS[method](X[objects])
    base = am.search.Adapter(X[objects], random_state=SEED)
    n = CHECKPOINTS[-1]
    order = np.concatenate([generator.permutation(asked) for _ in range(-(-n // len(asked)))])[:n]
    found = []
    for number, row in enumerate(order, start=1):
        query = X[[row]]
        shown = base.search(query, K + 1).ids[0] if way.logged else searched.search(query, K + 1)
        shown = shown[objects[shown] != row][:K]
        is_good = (y[objects[shown]] == y[row]) ^ (generator.random(len(shown)) < way.wrong)
        if not way.clicks:
            searched.judge(query, shown[is_good], shown[~is_good])
        elif is_good.any():
            searched.click(query, shown, int(shown[is_good][0]))
        if number in CHECKPOINTS:
            found.append({"n_lists": number, **judged(searched, split, tested)})
    result = {"collection": name, "way": way_name, "seed": seed, "method": method, "found": found}
    result["base"] = judged(base, split, tested)
    if method == "Adapter":
        result["blend"] = searched.adapter.blend_
        result["watched"] = [float(value) for value in searched.adapter.watched_]
    return result


def judged(model, split, tested):
    """Give the measures of the test queries that are looked at."""
    report = evaluate_retrieval(model, split.X_test, split.y_test)
    looked_at = tested[report.query_rows]
    values = report.precision_per_query[1], report.precision_per_query[10], report.average_precision
    return {name: float(value[looked_at].mean()) for name, value in zip(MEASURES, values, strict=True)}


def cell_name(name, way, seed, method):
    settings = [am.__version__, SEED, CHECKPOINTS, K, SHARE_OF_CLASSES, name, repr(way), seed, method]
    return named(*settings)

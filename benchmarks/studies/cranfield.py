"""Do judgements of some queries improve the ranking of other queries? Cranfield, five folds over the queries.

    python -m benchmarks.studies.cranfield

Learners are trained on the judgements of four folds and evaluated on the queries of the fifth, each fold in turn.
Settings are chosen by nDCG@10 in an inner cross-validation over the four. Terms, their weights and LSA are fitted on
the abstracts alone. Online learners start from ``W = init I``. `MomentAROMA`, which has no initial W, is added to the
cosine with a weight, after both scores are scaled to unit variance.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer, TfidfTransformer
from sklearn.preprocessing import normalize

import aromatch as am
from aromatch.datasets import data_folder
from benchmarks.shared.cranfield import read_entries
from benchmarks.shared.report import paragraph
from benchmarks.studies import study
from benchmarks.studies.study import SEED, chosen, compare, mean_over_splits, named, p_value, table

NAME = "cranfield"
TITLE = "Generalization across queries"
N_FOLDS = 5
MEASURES = ("nDCG@10", "mAP")
K = 10
# Triplets per relevant abstract: with abstracts of a lower grade, and with random ones.
N_JUDGED = N_SAMPLED = 20
N_LSA = 200
# The adapter is given the relevant abstracts as good, and the others among the first of the cosine as bad.
N_SHOWN = 20


@dataclass(frozen=True)
class Collection:
    """Queries and abstracts as counts of terms, and the gain of each abstract for each query."""

    queries: Any
    objects: Any
    gains: Any


# -- methods: functions from rows and training queries to scores ------------------------------------------------------


def bm25(rows, train, k1, b):
    counts = sparse.csr_array(rows.counts, dtype=float, copy=True)
    lengths = counts.sum(axis=1)
    n, df = counts.shape[0], np.bincount(counts.indices, minlength=counts.shape[1])
    damping = np.repeat(k1 * (1 - b + b * lengths / lengths.mean()), np.diff(counts.indptr))
    counts.data *= (k1 + 1) / (counts.data + damping)
    weights = np.log(1 + (n - df + 0.5) / (df + 0.5))
    return (rows.query_counts @ (counts * weights).T).toarray()


def cosine(rows, train):
    return dense(rows.Q @ rows.P.T)


def online(learner):
    def scores(rows, train, **setting):
        model = learner(**setting).fit_triplets(train.triplets(), rows.Q, rows.P)
        return model.similarity(rows.Q, rows.P)

    return scores


def moment(rows, train, alpha, weight):
    model = am.MomentAROMA(alpha).fit_triplets(train.triplets(), rows.Q, rows.P)
    base, learned = cosine(rows, train), model.similarity(rows.Q, rows.P)
    return base / base.std() + weight * learned / learned.std()


def adapter(rows, train):
    model = am.Adapter(rows.P, random_state=SEED)
    base = cosine(rows, train)
    for query in train.queries:
        good = np.flatnonzero(train.gains[query] > 0)
        shown = np.argsort(-base[query], kind="stable")[:N_SHOWN]
        model.judge(rows.Q[[query]], good=good, bad=np.setdiff1d(shown, good))
    return model.similarity(rows.Q, rows.P)


METHODS = {
    # rows, scoring function, and the settings to choose from
    "tf-idf cosine": ("tf-idf", cosine, [{}]),
    "BM25": ("tf-idf", bm25, [{"k1": k1, "b": b} for k1 in (1.2, 2.0, 4.0, 8.0) for b in (0.5, 0.75)]),
    "LSA cosine": ("LSA", cosine, [{}]),
    "d-AROMA from the cosine": (
        "tf-idf",
        online(am.DiagonalAROMA),
        [{"r": r, "init": init} for r in (1.0, 3.0, 10.0) for init in (1.0, 2.0, 4.0)],
    ),
    "OASIS from the cosine": (
        "tf-idf",
        online(am.OASIS),
        [{"C": C, "init": init} for C in (0.01, 0.03, 0.1) for init in (1.0, 2.0, 4.0)],
    ),
    "Adapter": ("tf-idf", adapter, [{}]),
    "f-AROMA from the LSA cosine": (
        "LSA",
        online(am.FactoredAROMA),
        [{"r": r, "init": init} for r in (3.0, 10.0, 30.0) for init in (2.0, 5.0, 10.0)],
    ),
    "MomentAROMA added to the LSA cosine": (
        "LSA",
        moment,
        [{"alpha": alpha, "weight": weight} for alpha in (1e-3, 1e-2) for weight in (0.1, 0.3, 1.0)],
    ),
    "Adapter on LSA": ("LSA", adapter, [{}]),
}
BASES = {"tf-idf": "tf-idf cosine", "LSA": "LSA cosine"}


# -- rows -------------------------------------------------------------------------------------------------------------


def stemmed(text):
    """Return the terms of a text without stop words, plurals as singulars (Harman's S stemmer)."""
    words = (word for word in re.findall(r"\w\w+", text.lower()) if word not in ENGLISH_STOP_WORDS)
    return [_singular(word) for word in words]


def _singular(word):
    if re.search("[^ae]ies$", word):
        return word[:-3] + "y"
    return word[:-1] if re.search("[^aeo]es$|[^use]s$", word) else word


def read_collection(folder):
    """Read abstracts, queries and judgements; grade 1 is the best and has the gain 4."""
    texts = {
        name: [re.split(r"^\.W\n", text, flags=re.MULTILINE)[1] for _, text in read_entries(folder / name)]
        for name in ("cran.all.1400", "cran.qry")
    }
    counter = CountVectorizer(analyzer=stemmed, min_df=2)
    objects = counter.fit_transform(texts["cran.all.1400"])
    queries = counter.transform(texts["cran.qry"])
    gains = np.zeros((queries.shape[0], objects.shape[0]))
    for line in (folder / "cranqrel").read_text().splitlines():
        query, one, grade = map(int, line.split())
        if grade > 0:
            gains[query - 1, one - 1] = 5 - grade
    return Collection(sparse.csr_array(queries), sparse.csr_array(objects), gains)


@lru_cache(1)
def collection():
    return read_collection(data_folder() / "cranfield")


class Rows:
    """Queries and abstracts as vectors of unit norm, and as counts."""

    def __init__(self, kind):
        found = collection()
        self.counts, self.query_counts = found.objects, found.queries
        weights = TfidfTransformer(sublinear_tf=True).fit(self.counts)
        self.P, self.Q = (sparse.csr_array(weights.transform(rows)) for rows in (self.counts, self.query_counts))
        if kind == "LSA":
            space = TruncatedSVD(min(N_LSA, min(self.P.shape) - 1), random_state=SEED).fit(self.P)
            self.P, self.Q = (normalize(space.transform(rows)) for rows in (self.P, self.Q))


class Training:
    """The training queries and their judgements."""

    def __init__(self, queries):
        self.queries, self.gains = queries, collection().gains

    def triplets(self):
        """Return triplets of the judgements."""
        judged = {int(q): {int(p): self.gains[q, p] for p in np.flatnonzero(self.gains[q])} for q in self.queries}
        counts = {"n_judged": N_JUDGED, "n_sampled": N_SAMPLED}
        found = am.triplets.from_qrels(judged, *self.gains.shape, **counts, random_state=SEED)
        return found.triplets


def dense(scores):
    return scores.toarray() if sparse.issparse(scores) else np.asarray(scores)


# -- measures ---------------------------------------------------------------------------------------------------------


def measured(scores, gains):
    """Return nDCG@10 and the average precision of each query."""
    ndcg, average = [], []
    discounts = 1 / np.log2(np.arange(K) + 2)
    for row, gain in zip(scores, gains, strict=True):
        ranked = gain[np.argsort(-row, kind="stable")]
        head, best = ranked[:K], np.sort(gain)[::-1][:K]
        ndcg.append(float(head @ discounts[: len(head)] / (best @ discounts[: len(best)])))
        ranks = np.flatnonzero(ranked > 0) + 1
        average.append(float(np.mean(np.arange(1, len(ranks) + 1) / ranks)))
    return dict(zip(MEASURES, (ndcg, average), strict=True))


def compute(method, fold):
    """Choose a setting within the other folds, train on all of them, and evaluate on the queries of this one."""
    kind, scores_of, settings = METHODS[method]
    rows, gains = Rows(kind), collection().gains
    judged = np.flatnonzero(gains.any(axis=1))
    folds = np.full(len(gains), -1)
    folds[judged] = np.random.default_rng(SEED).permutation(len(judged)) % N_FOLDS
    best = settings[0]
    if len(settings) > 1:
        reached = []
        for setting in settings:
            values = []
            for inner in set(range(N_FOLDS)) - {fold}:
                train, validation = judged[~np.isin(folds[judged], (fold, inner))], np.flatnonzero(folds == inner)
                scores = scores_of(rows, Training(train), **setting)[validation]
                values += measured(scores, gains[validation])["nDCG@10"]
            reached.append(np.mean(values))
        best = settings[int(np.argmax(reached))]
    train, tested = judged[folds[judged] != fold], np.flatnonzero(folds == fold)
    scores = scores_of(rows, Training(train), **best)[tested]
    return {"method": method, "fold": fold, "setting": best, **measured(scores, gains[tested])}


def cells():
    fixed = [am.__version__, SEED, N_FOLDS, K, N_JUDGED, N_SAMPLED, N_LSA, N_SHOWN]
    return {
        named(NAME, *fixed, method, kind, settings, fold): (compute, method, fold)
        for method, (kind, _, settings) in METHODS.items()
        for fold in range(N_FOLDS)
    }


# -- results ----------------------------------------------------------------------------------------------------------


def summary(results):
    """Return for each method the means of the folds, the chosen settings, and tests against baselines."""
    found = {}
    per_query = {}
    for method in METHODS:
        here = [r for r in results if r["method"] == method]
        per_query[method] = {m: [value for r in here for value in r[m]] for m in MEASURES}
        found[method] = {
            "folds": {m: [float(np.mean(r[m])) for r in here] for m in MEASURES},
            "settings": [r["setting"] for r in here],
            "against": {},
        }
    for method in METHODS:
        for base in ("tf-idf cosine", "BM25", "LSA cosine"):
            if method != base:
                tests = {m: compare(per_query[method][m], per_query[base][m], 0.0) for m in MEASURES}
                found[method]["against"][base] = {m: [t.difference, t.p] for m, t in tests.items()}
    return {"n_queries": len(per_query["BM25"]["mAP"]), "methods": found}


def section(found):
    """Return the section of the page."""
    methods = found["methods"]
    ours = "d-AROMA from the cosine"

    def tested(method, base, measure="nDCG@10"):
        difference, p = methods[method]["against"][base][measure]
        word = "not significant" if p > 0.05 else "better" if difference > 0 else "worse"
        return word, f"{difference:+.3f}, {p_value(p)}"

    def mean(method, measure="nDCG@10"):
        return f"{np.mean(methods[method]['folds'][measure]):.3f}"

    gained = {base: tested(ours, base) for base in ("tf-idf cosine", "BM25")}
    better = [tested(ours, base, measure)[0] == "better" for base in gained for measure in MEASURES]
    answer = "Yes" if all(better) else "Mostly" if np.mean(better) > 0.5 else "In part" if any(better) else "No"
    lsa = tested("f-AROMA from the LSA cosine", "LSA cosine")
    rivals = tested("LSA cosine", "tf-idf cosine")
    lines = [
        f"**Do judgements of some queries improve the ranking of others? {answer}:** trained on the judgements of four "
        f"fifths of the {found['n_queries']} queries, d-AROMA has an nDCG@10 of {mean(ours)} on the last fifth, "
        f"against {mean('tf-idf cosine')} of the cosine that it starts from ({gained['tf-idf cosine'][1]}) and "
        f"{mean('BM25')} of BM25 ({gained['BM25'][1]}); its mAP is {mean(ours, 'mAP')} against "
        f"{mean('tf-idf cosine', 'mAP')} ({tested(ours, 'tf-idf cosine', 'mAP')[1]}) and "
        f"{mean('BM25', 'mAP')} ({tested(ours, 'BM25', 'mAP')[1]}). "
        f"LSA, which needs no judgements, has an nDCG@10 of {mean('LSA cosine')} ({rivals[1]}, against the cosine); "
        f"f-AROMA from there has {mean('f-AROMA from the LSA cosine')} ({lsa[1]}, against LSA), "
        + ("a significant gain." if lsa[0] == "better" else "no significant gain."),
        "",
        paragraph(
            "Cranfield, five folds over the queries; means over the folds with standard errors. Tests are paired over",
            "the queries, each evaluated once. The stemmer, LSA, the number of triplets and the settings to choose",
            "from were found in trials on the same folds, so all learned values may be slightly optimistic.",
        ),
    ]
    rows = []
    for method, one in methods.items():
        base = BASES[METHODS[method][0]]
        compared = [(base, "nDCG@10"), (base, "mAP"), ("BM25", "nDCG@10"), ("BM25", "mAP")]
        against = [one["against"].get(rival, {}).get(m) for rival, m in compared]
        tests = [f"{test[0]:+.3f} ({p_value(test[1])})" if test else "" for test in against]
        rows.append([method, *(mean_over_splits(one["folds"][m]) for m in MEASURES), *tests, chosen(one["settings"])])
    differences = [f"{m} minus {rival}" for rival in ("its cosine", "BM25") for m in MEASURES]
    heads = ["method", *MEASURES, *differences, "chosen (folds)"]
    return [*lines, *table(heads, rows), f"![nDCG@10 of each method](results/study_{NAME}.png)"]


def draw(found, folder):
    """Plot nDCG@10 of all methods with its standard error."""
    figure, (axis,) = study.panels(1, width=7.5, height=3.4)
    methods = list(found["methods"])[::-1]
    means = [mean_over_splits(found["methods"][m]["folds"]["nDCG@10"]) for m in methods]
    colours = ["#9a9a9a" if m in ("tf-idf cosine", "BM25", "LSA cosine") else "C0" for m in methods]
    values, errors = [m.mean for m in means], [m.error for m in means]
    axis.errorbar(values, methods, xerr=errors, fmt="none", ecolor="#444444", capsize=3)
    axis.scatter(values, methods, color=colours, zorder=3)
    axis.set(xlabel="nDCG@10 (grey: without judgements)")
    figure.savefig(folder / f"study_{NAME}.png", dpi=130)


if __name__ == "__main__":
    study.main(sys.modules[__name__])

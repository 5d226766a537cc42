"""Can queries and objects have different features? English captions retrieve their German translations.

    python -m benchmarks.studies.spaces

multi30k: 29,000 training pairs of captions, 1,014 pairs for choosing settings, and 1,000 English test captions, each a
query for its translation among the 1,000 German ones. Each language has its own terms, 2,000 and 3,000, so W maps
between unrelated feature spaces. A triplet is an English caption, its translation and a random other German caption.
Split 0 is the official one; the others are random, with parts of the same sizes. Fewer pairs are a prefix of the
training part.

All methods with a matrix W score ``q'Wp / |Wp|^power``; the power is chosen together with the setting of the method,
from the inner product (0) to the cosine (1). Ridge regression maps English to German, or German to English.
"""

from __future__ import annotations

import gzip
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import linalg, sparse
from sklearn.feature_extraction.text import TfidfVectorizer

import aromatch as am
from aromatch.datasets import data_folder
from benchmarks.studies import study
from benchmarks.studies.study import SEED, chosen, compare, gathered, mean_over_splits, named, p_value, table

NAME = "spaces"
TITLE = "Queries and objects with different features"
SPLITS = range(5)
N_PAIRS = (300, 1_000, 5_000, 29_000)
N_TERMS = {"English": 2_000, "German": 3_000}
N_TRIPLETS = 58_000
MEASURES = ("recall@1", "recall@10", "MRR")
POWERS = (0.0, 0.5, 1.0)


@dataclass(frozen=True)
class Captions:
    """Pairs of English and German captions of the three parts."""

    train: Any
    val: Any
    test: Any


# -- methods ----------------------------------------------------------------------------------------------------------


def learned(learner, **fixed):
    def W_of(Q, P, triplets, **setting):
        return learner(**fixed, **setting).fit_triplets(triplets, Q, P).W_

    return W_of


def ridge(Q, P, triplets, alpha):
    """Map queries to objects by least squares."""
    return _solved(Q, P, alpha)


def ridge_back(Q, P, triplets, alpha):
    """Map objects to queries by least squares."""
    return _solved(P, Q, alpha).T


def _solved(X, Y, alpha):
    return linalg.solve((X.T @ X).toarray() + alpha * np.eye(X.shape[1]), (X.T @ Y).toarray(), assume_a="pos")


MAPS = {
    "ridge, English to German": (ridge, [{"alpha": a} for a in (0.3, 1.0, 3.0, 10.0, 30.0)]),
    "ridge, German to English": (ridge_back, [{"alpha": a} for a in (0.3, 1.0, 3.0, 10.0, 30.0)]),
    "OASIS": (learned(am.OASIS, init="zero"), [{"C": C} for C in (0.03, 0.1, 0.3, 1.0, 3.0)]),
    "d-AROMA": (learned(am.DiagonalAROMA), [{"r": r} for r in (0.01, 0.1, 1.0, 10.0)]),
    "f-AROMA": (learned(am.FactoredAROMA), [{"r": r} for r in (0.01, 0.1, 1.0)]),
    "MomentAROMA": (
        lambda Q, P, triplets, alpha: am.MomentAROMA(alpha).fit_triplets(triplets, Q, P).W_,
        [{"alpha": alpha} for alpha in (1e-3, 3e-3, 1e-2, 3e-2)],
    ),
}
SHARED = {
    "cosine of shared words": {},
    "cosine of shared character n-grams": {"analyzer": "char_wb", "ngram_range": (3, 5)},
}


# -- captions ---------------------------------------------------------------------------------------------------------


@lru_cache(1)
def all_captions():
    """Read the pairs of the three parts."""
    folder = data_folder() / "multi30k"
    parts = []
    for part in ("train", "val", "test_2016_flickr"):
        texts = []
        for language in ("en", "de"):
            with gzip.open(folder / f"{part}.{language}.gz", "rt", encoding="utf-8") as lines:
                texts.append([line.strip() for line in lines])
        parts.append(list(zip(*texts, strict=True)))
    return parts


def captions(split, n_pairs):
    train, val, test = all_captions()
    if split:
        pairs = [*train, *val, *test]
        order = np.random.default_rng([SEED, split]).permutation(len(pairs))
        pairs = [pairs[number] for number in order]
        train, val, test = pairs[: len(train)], pairs[len(train) : -len(test)], pairs[-len(test) :]
    return Captions(train[:n_pairs], val, test)


def vectors(found):
    """Return the rows of queries and objects of each part; terms and weights are fitted on the training part."""
    rows = []
    for side, n_terms in enumerate(N_TERMS.values()):
        terms = TfidfVectorizer(max_features=n_terms, sublinear_tf=True).fit([pair[side] for pair in found.train])
        parts = (found.train, found.val, found.test)
        rows.append([sparse.csr_array(terms.transform([pair[side] for pair in part])) for part in parts])
    return list(zip(*rows, strict=True))


def sampled(n_pairs, generator):
    """Return triplets of every pair in turn, with a random other object."""
    own = np.resize(generator.permutation(n_pairs), N_TRIPLETS)
    other = (own + generator.integers(1, n_pairs, size=N_TRIPLETS)) % n_pairs
    return np.column_stack([own, own, other])


# -- measures ---------------------------------------------------------------------------------------------------------


def measured(scores):
    """Return measures of the rank of object i for query i; ties have their mean rank."""
    own = np.diag(scores)[:, np.newaxis]
    ranks = (scores > own).sum(axis=1) + ((scores == own).sum(axis=1) + 1) / 2
    values = (ranks <= 1).mean(), (ranks <= 10).mean(), (1 / ranks).mean()
    return dict(zip(MEASURES, map(float, values), strict=True))


def scored(W, Q, P, power):
    lengths = np.linalg.norm(P @ W.T, axis=1)
    return np.asarray(Q @ W @ P.T) / np.maximum(lengths, 1e-12) ** power


def compute(method, split, n_pairs):
    """Train with every setting, choose the best on validation pairs, and evaluate it on the test part."""
    found = captions(split, n_pairs)
    result = {"method": method, "split": split, "n_pairs": len(found.train), "n_test": len(found.test)}
    if method in SHARED:
        terms = TfidfVectorizer(sublinear_tf=True, **SHARED[method])
        terms.fit([text for pair in found.train for text in pair])
        Q, P = (terms.transform([pair[side] for pair in found.test]) for side in (0, 1))
        return {**result, "setting": {}, "found": measured((Q @ P.T).toarray())}
    (Q, P), val, test = vectors(found)
    triplets = sampled(Q.shape[0], np.random.default_rng([SEED, split]))
    W_of, settings = MAPS[method]
    best = (-1.0, None, None)
    for setting in settings:
        W = W_of(Q, P, triplets, **setting)
        for power in POWERS:
            reached = measured(scored(W, *val, power))["MRR"]
            if reached > best[0]:
                best = reached, {**setting, "power": power}, measured(scored(W, *test, power))
    return {**result, "setting": best[1], "found": best[2]}


def cells():
    fixed = [am.__version__, SEED, N_TERMS, N_TRIPLETS, POWERS]
    jobs = [(method, split, N_PAIRS[-1]) for method in SHARED for split in SPLITS]
    jobs += [(method, split, n) for method in MAPS for split in SPLITS for n in N_PAIRS]
    return {
        named(NAME, *fixed, method, str(SHARED.get(method)) if method in SHARED else MAPS[method][1], split, n): (
            compute,
            method,
            split,
            n,
        )
        for method, split, n in jobs
    }


# -- results ----------------------------------------------------------------------------------------------------------


def summary(results):
    """Return the measures of all splits by number of pairs and method, the chosen settings, and tests against ridge."""
    n_test, most = results[0]["n_test"], max(r["n_pairs"] for r in results)
    at = gathered(sorted(results, key=lambda r: r["n_pairs"]), "n_pairs", "method")
    settings = {}
    for r in results:
        settings.setdefault(str(r["n_pairs"]), {}).setdefault(r["method"], []).append(r["setting"])
    tests = {}
    for n, methods in at.items():
        ridges = [name for name in methods if name.startswith("ridge")]
        strongest = max(ridges, key=lambda name: np.mean(methods[name]["MRR"]))
        tests[n] = {"against": strongest}
        for name, values in methods.items():
            if name not in ridges:
                compared = compare(values["MRR"], methods[strongest]["MRR"], n_test / int(n))
                tests[n][name] = [compared.difference, compared.p]
    ranks = np.arange(1, n_test + 1)
    by_chance = dict(zip(MEASURES, (1 / n_test, 10 / n_test, float(np.mean(1 / ranks))), strict=True))
    return {"most": str(most), "n_test": n_test, "chance": by_chance, "at": at, "settings": settings, "tests": tests}


def section(found):
    """Return the section of the page."""
    most, at = found["most"], found["at"]
    full, tests = at[most], found["tests"][most]

    def mean(name, measure="recall@1", n=most):
        return f"{np.mean(at[n][name][measure]):.3f}"

    learners = [name for name in MAPS if not name.startswith("ridge")]
    best = max(learners, key=lambda name: np.mean(full[name]["MRR"]))
    shared = max(SHARED, key=lambda name: np.mean(full[name]["MRR"]))
    difference, p = tests[best]
    others = max(found["chance"]["recall@1"], np.mean(full[shared]["recall@1"]))
    answer = "Yes" if np.mean(full[best]["recall@1"]) > others else "No"
    against = "not significantly different from" if p > 0.05 else "better than" if difference > 0 else "worse than"
    terms = " and ".join(f"{n:,} {language}" for language, n in N_TERMS.items())
    few = []
    for n in at:
        if n != most:
            name = max(learners, key=lambda one: np.mean(at[n][one]["MRR"]))
            gap, chance_of = found["tests"][n][name]
            few.append(f"{int(n):,} pairs {gap:+.3f} ({name}, {p_value(chance_of)})")
    lines = [
        "**Can English captions retrieve their German translations, with separate terms for each language? "
        f"{answer}:** {best} ranks the translation first among {found['n_test']:,} for "
        f"{100 * np.mean(full[best]['recall@1']):.1f} % of the captions, against "
        f"{100 * found['chance']['recall@1']:.1f} % by chance and {100 * np.mean(full[shared]['recall@1']):.1f} % by "
        f"the {shared}. It is {against} ridge regression ({tests['against']}), which has "
        f"{100 * np.mean(full[tests['against']]['recall@1']):.1f} %: {difference:+.3f} in MRR, {p_value(p)}. "
        f"With fewer pairs, the MRR of the best learner minus that of the best ridge is: {'; '.join(few)}.",
        "",
        f"multi30k, {int(most):,} pairs, {terms} terms, {N_TRIPLETS:,} triplets; five splits with standard errors.",
        "Differences to the better of the two ridges are tested by the corrected resampled t-test.",
    ]
    rows = [["chance", *(f"{found['chance'][m]:.3f}" for m in MEASURES), "", ""]]
    for name, values in full.items():
        test = tests.get(name) if name != "against" else None
        gap = f"{test[0]:+.3f} ({p_value(test[1])})" if test else ""
        settings = chosen(found["settings"][most][name])
        rows.append([name, *(mean_over_splits(values[m]) for m in MEASURES), gap, settings])
    lines += table(["method", *MEASURES, "MRR minus ridge", "chosen (splits)"], rows)
    lines += ["MRR by number of pairs:"]
    rows = [[name, *(mean_over_splits(at[n][name]["MRR"]) for n in at)] for name in MAPS]
    lines += table(["method", *(f"{int(n):,} pairs" for n in at)], rows)
    return [*lines, f"![MRR against pairs](results/study_{NAME}.png)"]


def draw(found, folder):
    """Plot the MRR against the number of pairs."""
    figure, (axis,) = study.panels(1, width=6.5, height=3.8)
    pairs = [int(n) for n in found["at"]]
    for number, name in enumerate(MAPS):
        means = [mean_over_splits(found["at"][str(n)][name]["MRR"]) for n in pairs]
        style = "--" if name.startswith("ridge") else "-"
        axis.errorbar(
            pairs,
            [m.mean for m in means],
            [m.error for m in means],
            fmt=f"o{style}",
            color=f"C{number}",
            label=name,
            markersize=3.5,
            linewidth=1.3,
            capsize=2,
        )
    axis.set(xscale="log", xlabel="training pairs", ylabel="MRR")
    axis.legend(frameon=False, fontsize=8)
    figure.savefig(folder / f"study_{NAME}.png", dpi=130)


if __name__ == "__main__":
    study.main(sys.modules[__name__])

"""Which comparison should be asked next? Judgements that each strategy needs for the same quality.

    python -m benchmarks.studies.asking

f-AROMA starts from the inner product and asks for judgements in small batches, out of some thousand candidates sampled
from a pool each time, without knowing which of the two objects is preferred. Then it learns the answers.

- Materials: people judged which of two materials looks more like a third (`benchmarks.shared.materials`); the majority
  is the answer. Quality is the accuracy on test judgements.
- BANKING77: a question and two others, one of which has the same intent. Quality is mAP on the test part.

All strategies use the setting with which random asking is best on validation data.
"""

from __future__ import annotations

import sys
from typing import ClassVar

import numpy as np
from scipy.special import ndtr

import aromatch as am
from aromatch.evaluation import evaluate_retrieval
from aromatch.search import suggest_comparisons
from benchmarks.shared.collections import split_of
from benchmarks.shared.materials import materials
from benchmarks.studies import study
from benchmarks.studies.study import SEED, named, table

NAME = "asking"
TITLE = "Which comparison to ask next"
SEEDS = {"materials": range(10), "banking77": range(5)}
TITLES = {"materials": "materials, judged by people", "banking77": "BANKING77"}
MEASURE = {"materials": "accuracy on test judgements", "banking77": "mAP"}
SETTINGS = {
    "materials": [{"r": r, "init": 1.0} for r in (1.0, 3.0, 10.0, 30.0)],
    "banking77": [{"r": r, "init": init} for r in (0.01, 0.1, 1.0) for init in (2.0, 4.0)],
}
BATCH_SIZE = {"materials": 5, "banking77": 20}
N_CANDIDATES = {"materials": 2_000, "banking77": 1_000}
N_POOL = 20_000
N_VALIDATION = 3_000
# Numbers of judgements at which quality is measured; random asking, which is cheap, continues with MORE.
CHECKPOINTS = (0, 60, 100, 200, 300, 500, 700, 1_000, 1_400, 2_000)
MORE = (3_000, 4_200, 6_000, 9_000, 13_000, 18_000)
AT = (200, 500, 1_000, 2_000)
N_RESAMPLED = 1_000


# -- strategies: indices of candidates ---------------------------------------------------------------------------------


def at_random(model, candidates, X, n, generator):
    return generator.choice(len(candidates), n, replace=False)


def suggested(model, candidates, X, n, generator):
    return suggest_comparisons(model, candidates, X, n=n)


def by(worth):
    """Return a strategy that asks for the largest values of a function of margins, standard deviations and r."""

    def strategy(model, candidates, X, n, generator):
        margins, stds = model.margins(candidates, X), model.margin_std(candidates, X)
        return np.argsort(-worth(margins, stds, model.r, generator), kind="stable")[:n]

    return strategy


def smallest_margin(margins, stds, r, generator):
    return -np.abs(margins)


def largest_std(margins, stds, r, generator):
    return stds


def mutual_information(margins, stds, r, generator):
    """Return the information of an answer about W if its noise has the variance r (BALD; Houlsby and others 2011)."""
    means, variances = margins / np.sqrt(r), stds**2 / r
    p = np.clip(ndtr(means / np.sqrt(1 + variances)), 1e-12, 1 - 1e-12)
    square = np.pi * np.log(2) / 2
    expected = np.sqrt(square / (variances + square)) * np.exp(-(means**2) / (2 * (variances + square)))
    return -p * np.log2(p) - (1 - p) * np.log2(1 - p) - expected


def sampled_margin(margins, stds, r, generator):
    """Return the negative absolute margin of a W sampled for each comparison (Thompson)."""
    return -np.abs(margins + stds * generator.normal(size=len(stds)))


STRATEGIES = {
    "random": at_random,
    "suggest_comparisons": suggested,
    "smallest margin": by(smallest_margin),
    "largest standard deviation": by(largest_std),
    "mutual information": by(mutual_information),
    "smallest sampled margin": by(sampled_margin),
}
OURS = "suggest_comparisons"


# -- collections ------------------------------------------------------------------------------------------------------


class Materials:
    """Judgements of people."""

    def __init__(self, seed, validates):
        found = materials()
        order = np.random.default_rng([SEED, seed]).permutation(len(found.train))
        n_validation = min(N_VALIDATION, len(order) // 5)
        self.X, self.pool = found.X, found.train[order[n_validation:]]
        self.tested = found.train[order[:n_validation]] if validates else found.test
        # The largest share of votes that any prediction can agree with.
        self.reference = {"people": float(found.votes.max(axis=1).sum() / found.votes.sum())}

    def quality(self, model):
        """Return the accuracy on the tested judgements."""
        return model.triplet_accuracy(self.tested, self.X)


class Banking:
    """Comparisons from intents."""

    reference: ClassVar[dict[str, float]] = {}

    def __init__(self, seed, validates):
        split = split_of("banking77", seed)
        self.split = split.inside(0.2, SEED) if validates else split
        self.X, self.pool = self.split.X, am.triplets.from_labels(self.split.y, N_POOL, random_state=seed)

    def quality(self, model):
        """Return the mAP on unseen questions."""
        return evaluate_retrieval(model, self.split.X_test, self.split.y_test).mean_average_precision


COLLECTIONS = {"materials": Materials, "banking77": Banking}


# -- one cell ---------------------------------------------------------------------------------------------------------


def asked(name, collection, strategy, setting, seed, checkpoints):
    """Ask and learn; return the quality at every checkpoint within the size of the pool."""
    generator = np.random.default_rng([SEED, seed])
    X, pool = collection.X, generator.permutation(collection.pool)
    turned = np.where(generator.random(len(pool)) < 0.5, 2, 1)  # the side of the preferred object
    shown = np.column_stack([pool[:, 0], *(pool[np.arange(len(pool)), side] for side in (turned, 3 - turned))])
    model = am.FactoredAROMA(**setting).fit_triplets(np.empty((0, 3), dtype=np.int64), X)
    left, n, found = np.arange(len(pool)), 0, []
    for checkpoint in checkpoints:
        if checkpoint > len(pool):
            break
        while n < checkpoint:
            n_now = min(BATCH_SIZE[name], checkpoint - n)
            candidates = generator.choice(len(left), min(N_CANDIDATES[name], len(left)), replace=False)
            chosen = candidates[STRATEGIES[strategy](model, shown[left[candidates]], X, n_now, generator)]
            model.partial_fit_triplets(pool[left[chosen]], X)
            left, n = np.delete(left, chosen), n + n_now
        found.append([n, float(collection.quality(model))])
    return found


def compute(name, strategy, seed):
    """Choose the setting by random asking on validation data, then ask and measure on test data."""
    inside = COLLECTIONS[name](seed, True)
    last = CHECKPOINTS[-1:]
    tried = [asked(name, inside, "random", setting, seed, last)[-1][1] for setting in SETTINGS[name]]
    best = SETTINGS[name][int(np.argmax(tried))]
    checkpoints = CHECKPOINTS + MORE if strategy == "random" else CHECKPOINTS
    collection = COLLECTIONS[name](seed, False)
    found = asked(name, collection, strategy, best, seed, checkpoints)
    return {
        "collection": name,
        "strategy": strategy,
        "seed": seed,
        "setting": best,
        "found": found,
        **collection.reference,
    }


def cells():
    def name_of(name, strategy, seed):
        fixed = [am.__version__, SEED, SETTINGS[name], BATCH_SIZE[name], N_CANDIDATES[name], N_POOL, N_VALIDATION]
        return named(NAME, *fixed, CHECKPOINTS, MORE, name, strategy, seed)

    return {
        name_of(name, strategy, seed): (compute, name, strategy, seed)
        for name in COLLECTIONS
        for strategy in STRATEGIES
        for seed in SEEDS[name]
    }


# -- results ----------------------------------------------------------------------------------------------------------


def needed(ns, curve, quality):
    """Return the judgements that a curve needs for a quality, by linear interpolation; inf if it is not reached."""
    best = np.maximum.accumulate(curve)
    if best[-1] < quality:
        return np.inf
    at = int(np.argmax(best >= quality))
    if at == 0:
        return float(ns[0])
    share = (quality - best[at - 1]) / (best[at] - best[at - 1])
    return float(ns[at - 1] + share * (ns[at] - ns[at - 1]))


def factor(ours, theirs, n):
    """Return the ratio of judgements that others need for our quality at n, with quantiles over resampled seeds."""
    (our_ns, our_curves), (their_ns, their_curves) = ours, theirs
    index, generator = our_ns.index(n), np.random.default_rng(SEED)

    def one(rows):
        return needed(their_ns, their_curves[rows].mean(axis=0), our_curves[rows, index].mean()) / n

    seeds = len(our_curves)
    resampled = [one(generator.integers(seeds, size=seeds)) for _ in range(N_RESAMPLED)]
    low, high = np.quantile(resampled, [0.16, 0.84], method="inverted_cdf")
    return {"factor": one(np.arange(seeds)), "low": float(low), "high": float(high), "most": their_ns[-1] / n}


def summary(results):
    """Return the curves of all seeds, and the factors of all strategies against `suggest_comparisons`."""
    curves, settings = {}, {}
    for r in results:
        ns, values = zip(*r["found"], strict=True)
        one = curves.setdefault(r["collection"], {}).setdefault(r["strategy"], {"n": list(ns), "quality": []})
        one["quality"].append(list(values))
        if r["strategy"] == "random":
            settings.setdefault(r["collection"], []).append(r["setting"])
    factors = {}
    for name, strategies in curves.items():
        arrays = {strategy: (one["n"], np.array(one["quality"])) for strategy, one in strategies.items()}
        for strategy in arrays:
            if strategy != OURS:
                at = [n for n in AT if n in arrays[OURS][0]]
                tested = {str(n): factor(arrays[OURS], arrays[strategy], n) for n in at}
                factors.setdefault(name, {})[strategy] = tested
    people = [r["people"] for r in results if "people" in r]
    return {"curves": curves, "settings": settings, "factors": factors, "people": people[0] if people else None}


def formatted(one):
    """Format a factor with its quantiles."""

    def number(value):
        return f"{value:.1f}" if np.isfinite(value) else f"over {one['most']:.0f}"

    if not np.isfinite(one["low"]):
        return number(one["low"])
    return f"{number(one['factor'])} ({number(one['low'])} to {number(one['high'])})"


def section(found):
    """Return the section of the page."""
    n = str(AT[-2])
    factors = {
        name: {strategy: at[n] for strategy, at in strategies.items() if n in at}
        for name, strategies in found["factors"].items()
    }
    by_chance = {name: strategies["random"]["factor"] for name, strategies in factors.items()}
    reached = all(value >= 2 for value in by_chance.values())
    same = [
        TITLES[name]
        for name, strategies in factors.items()
        if strategies["smallest margin"]["low"] <= 1 <= strategies["smallest margin"]["high"]
    ]
    lines = [
        f"**Does it pay to choose which comparison to ask? {'Yes' if reached else 'Less than the target'}:** for the "
        f"quality of `suggest_comparisons` after {int(n):,} judgements, random asking needs "
        + " and ".join(
            f"{formatted(strategies['random'])} times as many ({TITLES[name]})" for name, strategies in factors.items()
        )
        + f"; the target of 2 is {'reached' if reached else 'not reached'}. For its quality after {AT[-1]:,} it needs "
        + " and ".join(formatted(strategies["random"][str(AT[-1])]) for strategies in found["factors"].values())
        + " times as many. Asking for the smallest margin needs "
        + " and ".join(f"{formatted(strategies['smallest margin'])} times as many" for strategies in factors.values())
        + ("; the standard deviation of the margin has no significant effect on " + " and ".join(same) if same else "")
        + ".",
        "",
        "In brackets the 16 % and 84 % quantiles over resampled seeds. f-AROMA starts from the inner product, asks for "
        + " or ".join(f"{BATCH_SIZE[name]} ({TITLES[name]})" for name in factors)
        + " judgements per batch, with the setting that is best for random asking on validation data.",
    ]
    if found["people"] is not None:
        lines.append(
            f"The majority has {100 * found['people']:.1f} % of all votes on the materials, the upper limit of any "
            "prediction."
        )
    for name, strategies in found["curves"].items():
        quality = {
            strategy: dict(zip(one["n"], np.array(one["quality"]).T, strict=True))
            for strategy, one in strategies.items()
        }
        shown = [at for at in (0, *AT) if all(at in one for one in quality.values())]
        rows = []
        for strategy, at in quality.items():
            tested = found["factors"][name].get(strategy, {})
            needs = [
                "1" if not tested else formatted(tested[str(m)]) if tested[str(m)]["most"] > 1 else "" for m in AT[1:]
            ]
            rows.append([strategy, *(study.mean_over_splits(at[m]) for m in shown), *needs])
        heads = [f"{TITLES[name]}: asked", *(f"{m:,} judgements" for m in shown)]
        heads += [f"factor at {m:,}" for m in AT[1:]]
        lines += table(heads, rows)
        lines.append(f"Quality is the {MEASURE[name]}. Settings: {study.chosen(found['settings'][name])}.")
    return [*lines, "", f"![Quality against judgements](results/study_{NAME}.png)"]


def draw(found, folder):
    """Plot quality against judgements."""
    figure, axes = study.panels(len(found["curves"]), width=5.4, height=4.0)
    for axis, (name, strategies) in zip(axes, found["curves"].items(), strict=True):
        for number, (strategy, one) in enumerate(strategies.items()):
            values = np.array(one["quality"])[:, 1:]
            mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))
            axis.plot(one["n"][1:], mean, color=f"C{number}", label=strategy, linewidth=1.4)
            axis.fill_between(one["n"][1:], mean - error, mean + error, color=f"C{number}", alpha=0.15, linewidth=0)
        axis.set(xscale="log", xlabel="judgements", ylabel=MEASURE[name], title=TITLES[name])
    axes[-1].legend(frameon=False, fontsize=7.5)
    figure.savefig(folder / f"study_{NAME}.png", dpi=130)


if __name__ == "__main__":
    study.main(sys.modules[__name__])

"""Are the standard deviations honest? What P(margin > 0) says, against held-out comparisons.

    python -m benchmarks.studies.honesty

A learned distribution says that the margin of a comparison is normal, with a mean and a standard deviation, so that the
first object is better with the probability ``Phi(margin / std)``. d- and f-AROMA learn from comparisons of the training
part, and probabilities are held against comparisons of the test part, whose rows are all new. Three ways to make a
probability: raw, as above; with one number, ``Phi(margin / (c std))``, c chosen on held-out rows of the training part
by their likelihood; and `preference_proba` of the library, which makes it from the margin alone, calibrated on the same
rows. Settings are as they come: r = 1, from the identity.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

import aromatch as am
from aromatch.evaluation import reliability
from benchmarks.shared.collections import COLLECTIONS, split_of
from benchmarks.studies import study
from benchmarks.studies.study import SEED, gathered, mean_over_splits, named, table

NAME = "honesty"
TITLE = "Calibration"
SPLITS = range(5)
NAMES = ("20newsgroups", "banking77", "stdlib")
LEARNERS = {"d-AROMA": am.DiagonalAROMA, "f-AROMA": am.FactoredAROMA}
N_LEARNED = (5_000, 50_000)
N_CALIBRATED, N_TOLD = 8_192, 40_000
WAYS = ("raw", "one number", "probability")
# Of the largest gap, for standard deviations to be called honest.
BOUND = 0.03


def best_scale(ratios):
    """Return the c that makes what happened most likely, of margins over standard deviations."""
    found = minimize_scalar(lambda log_c: -norm.logcdf(ratios / np.exp(log_c)).sum(), bounds=(-7, 7), method="bounded")
    return float(np.exp(found.x))


def compute(name, learner, n_learned, number):
    """Learn, calibrate on held-out rows, and tell how probabilities of test comparisons came true."""
    split = split_of(name, number)
    inside = split.inside(0.2, SEED)
    generator = np.random.default_rng([SEED, number])
    triplets = am.triplets.from_labels(inside.y, n_learned, random_state=generator)
    model = LEARNERS[learner](1.0, init="identity").fit_triplets(triplets, inside.X)
    held_out = am.triplets.from_labels(inside.y_test, N_CALIBRATED, random_state=generator), inside.X_test
    told = am.triplets.from_labels(split.y_test, N_TOLD, random_state=generator), split.X_test

    def ratios(part):
        return model.margins(*part) / np.maximum(model.margin_std(*part), 1e-300)

    scale = best_scale(ratios(held_out))
    found = {
        "raw": norm.cdf(ratios(told)),
        "one number": norm.cdf(ratios(told) / scale),
        "probability": model.calibrate(*held_out).preference_proba(*told),
    }
    margins, stds = model.margins(*told), model.margin_std(*told)
    right = margins > 0
    measures = {"right": float(right.mean()), "c": scale}
    curves = {}
    for way, given in found.items():
        parts = reliability(given)
        measures[f"gap, {way}"] = parts.largest_gap
        measures[f"log loss, {way}"] = float(-np.log(np.clip(given, 1e-12, 1)).mean())
        curves[way] = [parts.predicted.tolist(), parts.observed.tolist()]
    for what, by in (("|margin|", np.abs(margins)), ("|margin| / std", np.abs(ratios(told))), ("-std", -stds)):
        measures[f"AUC of {what}"] = float(roc_auc_score(right, by))
    return {
        "collection": name,
        "learner": learner,
        "n_learned": n_learned,
        "split": number,
        "found": measures,
        "curves": curves,
    }


def cells():
    return {
        named(NAME, am.__version__, SEED, N_CALIBRATED, N_TOLD, name, learner, n, number): (
            compute,
            name,
            learner,
            n,
            number,
        )
        for name in NAMES
        for learner in LEARNERS
        for n in N_LEARNED
        for number in SPLITS
    }


def summary(results):
    """Return for each collection, learner and number of triplets the measures of all splits, and mean curves."""
    curves = {}
    for r in results:
        here = curves.setdefault(r["collection"], {}).setdefault(r["learner"], {}).setdefault(str(r["n_learned"]), {})
        for way, curve in r["curves"].items():
            here.setdefault(way, []).append(curve)
    means = {
        name: {
            learner: {n: {way: np.mean(of, axis=0).tolist() for way, of in ways.items()} for n, ways in at.items()}
            for learner, at in learners.items()
        }
        for name, learners in curves.items()
    }
    return {"cells": gathered(results, "collection", "learner", "n_learned"), "curves": means}


def flat(found):
    """Return all cells as a list of names and measures."""
    return [
        (name, learner, n, measures)
        for name, learners in found["cells"].items()
        for learner, at in learners.items()
        for n, measures in at.items()
    ]


def section(found):
    """Return the section of the page."""
    cells_found = flat(found)

    def span(way):
        gaps = [float(np.mean(measures[f"gap, {way}"])) for *_, measures in cells_found]
        return gaps, f"{min(gaps):.3f} to {max(gaps):.3f}"

    raw, scaled, curve = (span(way) for way in WAYS)
    too_sure = sum(
        np.mean(np.subtract(*found["curves"][name][learner][n]["raw"])) > 0 for name, learner, n, _ in cells_found
    )
    scales = [float(np.mean(measures["c"])) for *_, measures in cells_found]
    answer = "Yes" if max(raw[0]) <= BOUND else "No"
    mended = "is enough" if max(scaled[0]) <= BOUND else "mends most of it, but not all"
    if np.mean(scaled[0]) > 0.5 * np.mean(raw[0]):
        mended = "does not mend it"
    sorts = [np.mean(m["AUC of |margin| / std"]) > np.mean(m["AUC of |margin|"]) for *_, m in cells_found]
    lines = [
        f"**Are the standard deviations honest? {answer}:** the largest gap between what `Phi(margin / std)` says and "
        f"what comes true is {raw[1]} ({too_sure} of {len(cells_found)} cells are too sure of themselves, the others "
        f"not sure enough). One number that multiplies the standard deviations ({min(scales):.2f} to "
        f"{max(scales):.2f}) {mended}: {scaled[1]}. "
        f"`preference_proba`, which looks at the margin alone, has {curve[1]}. "
        f"Dividing by the standard deviation tells wrong from right better than the margin alone in {sum(sorts)} of "
        f"{len(sorts)} cells.",
        "",
        f"{N_TOLD:,} comparisons of test rows, in ten parts by how sure the model is; the gap is the largest over the",
        "parts. Five splits with standard errors. AUC is how well wrong predictions are told from right ones.",
    ]
    rows = []
    for name, learner, n, measures in cells_found:
        gaps = [mean_over_splits(measures[f"gap, {way}"]) for way in WAYS]
        aucs = [f"{np.mean(measures[f'AUC of {what}']):.3f}" for what in ("|margin|", "|margin| / std", "-std")]
        rows.append(
            [
                COLLECTIONS[name].title,
                learner,
                f"{int(n):,}",
                f"{np.mean(measures['right']):.3f}",
                f"{np.mean(measures['c']):.2f}",
                *gaps,
                *aucs,
            ]
        )
    heads = ["collection", "learner", "triplets", "right", "c", *(f"gap, {way}" for way in WAYS)]
    heads += ["AUC: margin", "margin / std", "std"]
    return [*lines, *table(heads, rows), f"![What was told against what came true](results/study_{NAME}.png)"]


def draw(found, folder):
    """Plot what came true against what was told, for each way to make a probability."""
    figure, axes = study.panels(len(WAYS), width=3.8, height=4.3)
    for axis, way in zip(axes, WAYS, strict=True):
        axis.plot([0.5, 1], [0.5, 1], color="#777777", linewidth=0.8)
        for number, name in enumerate(found["curves"]):
            for marker, (learner, at) in zip("os", found["curves"][name].items(), strict=True):
                n = list(at)[-1]
                label = f"{COLLECTIONS[name].title}, {learner}"
                style = {"color": f"C{number}", "marker": marker, "markersize": 3.5, "linewidth": 1, "label": label}
                axis.plot(*at[n][way], linestyle="-" if marker == "o" else "--", **style)
        axis.set(title=way, xlabel="told", xlim=(0.49, 1.01), ylim=(0.45, 1.01))
    axes[0].set_ylabel("came true")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    figure.savefig(folder / f"study_{NAME}.png", dpi=130)


if __name__ == "__main__":
    study.main(sys.modules[__name__])

"""Are the standard deviations of margins calibrated? Predicted against observed frequencies of test comparisons.

    python -m benchmarks.studies.calibration

Under the learned distribution, the margin of a comparison is normal, so the first object is preferred with probability
``Phi(margin / std)``. d- and f-AROMA are trained on comparisons of the training part, and probabilities are compared
with the outcomes of comparisons of the test part. Three kinds of probability: raw, as above; scaled,
``Phi(margin / (c std))`` with c fitted by maximum likelihood on validation rows; and `preference_proba`, a function of
the margin alone, calibrated on the same rows. Settings are the defaults: r = 1, from the identity.
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
from benchmarks.shared.report import paragraph
from benchmarks.studies import study
from benchmarks.studies.study import SEED, gathered, mean_over_splits, named, table

NAME = "calibration"
TITLE = "Standard deviations"
SPLITS = range(5)
NAMES = ("20newsgroups", "banking77", "stdlib")
LEARNERS = {"d-AROMA": am.DiagonalAROMA, "f-AROMA": am.FactoredAROMA}
N_TRIPLETS = (5_000, 50_000)
N_VALIDATION, N_TEST = 8_192, 40_000
PROBABILITIES = ("raw", "scaled", "preference_proba")
# Largest gap of calibrated standard deviations.
MAX_GAP = 0.03


def best_scale(ratios):
    """Return the c of maximum likelihood, from ratios of margins to standard deviations."""
    found = minimize_scalar(lambda log_c: -norm.logcdf(ratios / np.exp(log_c)).sum(), bounds=(-7, 7), method="bounded")
    return float(np.exp(found.x))


def compute(name, learner, n_triplets, number):
    """Train, calibrate on validation rows, and return the calibration of probabilities of test comparisons."""
    split = split_of(name, number)
    inside = split.inside(0.2, SEED)
    generator = np.random.default_rng([SEED, number])
    triplets = am.triplets.from_labels(inside.y, n_triplets, random_state=generator)
    model = LEARNERS[learner](1.0, init="identity").fit_triplets(triplets, inside.X)
    validation = am.triplets.from_labels(inside.y_test, N_VALIDATION, random_state=generator), inside.X_test
    test = am.triplets.from_labels(split.y_test, N_TEST, random_state=generator), split.X_test

    def ratios(part):
        return model.margins(*part) / np.maximum(model.margin_std(*part), 1e-300)

    scale = best_scale(ratios(validation))
    found = {
        "raw": norm.cdf(ratios(test)),
        "scaled": norm.cdf(ratios(test) / scale),
        "preference_proba": model.calibrate(*validation).preference_proba(*test),
    }
    margins, stds = model.margins(*test), model.margin_std(*test)
    is_correct = margins > 0
    measures = {"accuracy": float(is_correct.mean()), "c": scale}
    curves = {}
    for kind, given in found.items():
        bins = reliability(given)
        measures[f"gap, {kind}"] = bins.largest_gap
        measures[f"log loss, {kind}"] = float(-np.log(np.clip(given, 1e-12, 1)).mean())
        curves[kind] = [bins.predicted.tolist(), bins.observed.tolist()]
    for what, by in (("|margin|", np.abs(margins)), ("|margin| / std", np.abs(ratios(test))), ("-std", -stds)):
        measures[f"AUC of {what}"] = float(roc_auc_score(is_correct, by))
    return {
        "collection": name,
        "learner": learner,
        "n_triplets": n_triplets,
        "split": number,
        "found": measures,
        "curves": curves,
    }


def cells():
    return {
        named(NAME, am.__version__, SEED, N_VALIDATION, N_TEST, name, learner, n, number): (
            compute,
            name,
            learner,
            n,
            number,
        )
        for name in NAMES
        for learner in LEARNERS
        for n in N_TRIPLETS
        for number in SPLITS
    }


def summary(results):
    """Return the measures of all splits and mean curves, by collection, learner and number of triplets."""
    curves = {}
    for r in results:
        here = curves.setdefault(r["collection"], {}).setdefault(r["learner"], {}).setdefault(str(r["n_triplets"]), {})
        for kind, curve in r["curves"].items():
            here.setdefault(kind, []).append(curve)
    means = {
        name: {
            learner: {n: {kind: np.mean(of, axis=0).tolist() for kind, of in kinds.items()} for n, kinds in at.items()}
            for learner, at in learners.items()
        }
        for name, learners in curves.items()
    }
    return {"cells": gathered(results, "collection", "learner", "n_triplets"), "curves": means}


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

    def span(kind):
        gaps = [float(np.mean(measures[f"gap, {kind}"])) for *_, measures in cells_found]
        return gaps, f"{min(gaps):.3f} to {max(gaps):.3f}"

    raw, scaled, curve = (span(kind) for kind in PROBABILITIES)
    overconfident = sum(
        np.mean(np.subtract(*found["curves"][name][learner][n]["raw"])) > 0 for name, learner, n, _ in cells_found
    )
    scales = [float(np.mean(measures["c"])) for *_, measures in cells_found]
    answer = "Yes" if max(raw[0]) <= MAX_GAP else "No"
    corrected = "corrects this" if max(scaled[0]) <= MAX_GAP else "corrects most of this"
    if np.mean(scaled[0]) > 0.5 * np.mean(raw[0]):
        corrected = "does not correct this"
    improved = [np.mean(m["AUC of |margin| / std"]) > np.mean(m["AUC of |margin|"]) for *_, m in cells_found]
    lines = [
        f"**Are the standard deviations of margins calibrated? {answer}:** the largest gap between the predicted and "
        f"the observed frequency is {raw[1]} for `Phi(margin / std)` (overconfident in {overconfident} of "
        f"{len(cells_found)} cells, underconfident in the others). Scaling the standard deviations by one constant "
        f"({min(scales):.2f} to {max(scales):.2f}) {corrected}: {scaled[1]}. `preference_proba`, a function of the "
        f"margin alone, has {curve[1]}. Dividing the margin by its standard deviation separates correct from wrong "
        f"predictions better than the margin alone in {sum(improved)} of {len(improved)} cells.",
        "",
        paragraph(
            f"{N_TEST:,} comparisons of test rows, in ten bins by confidence; the gap is the largest over the bins.",
            "Five splits with standard errors. AUC is the area under the ROC curve for separating correct from wrong",
            "predictions.",
        ),
    ]
    rows = []
    for name, learner, n, measures in cells_found:
        gaps = [mean_over_splits(measures[f"gap, {kind}"]) for kind in PROBABILITIES]
        aucs = [f"{np.mean(measures[f'AUC of {what}']):.3f}" for what in ("|margin|", "|margin| / std", "-std")]
        rows.append(
            [
                COLLECTIONS[name].title,
                learner,
                f"{int(n):,}",
                f"{np.mean(measures['accuracy']):.3f}",
                f"{np.mean(measures['c']):.2f}",
                *gaps,
                *aucs,
            ]
        )
    heads = ["collection", "learner", "triplets", "accuracy", "c", *(f"gap, {kind}" for kind in PROBABILITIES)]
    heads += ["AUC: margin", "margin / std", "std"]
    return [*lines, *table(heads, rows), f"![Observed against predicted frequencies](results/study_{NAME}.png)"]


def draw(found, folder):
    """Plot observed against predicted frequencies, for each kind of probability."""
    figure, axes = study.panels(len(PROBABILITIES), width=3.8, height=4.3)
    for axis, kind in zip(axes, PROBABILITIES, strict=True):
        axis.plot([0.5, 1], [0.5, 1], color="#777777", linewidth=0.8)
        for number, name in enumerate(found["curves"]):
            for marker, (learner, at) in zip("os", found["curves"][name].items(), strict=True):
                n = list(at)[-1]
                label = f"{COLLECTIONS[name].title}, {learner}"
                style = {"color": f"C{number}", "marker": marker, "markersize": 3.5, "linewidth": 1, "label": label}
                axis.plot(*at[n][kind], linestyle="-" if marker == "o" else "--", **style)
        axis.set(title=kind, xlabel="predicted", xlim=(0.49, 1.01), ylim=(0.45, 1.01))
    axes[0].set_ylabel("observed")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    figure.savefig(folder / f"study_{NAME}.png", dpi=130)


if __name__ == "__main__":
    study.main(sys.modules[__name__])

"""Whether probabilities come true: of all comparisons that get 80 %, about 80 % should.

    make calibration                                      everything; writes docs/calibration.md and its figure
    python benchmarks/calibration.py --only banking77     collections whose name holds "banking77"; writes nothing

Three learners with a distribution, each as it comes, on three collections. Comparisons come from labels: an object of
the query's class is better than one of another. What is told of was used neither to learn nor to calibrate.

- New rows: learned from four fifths of the training part, calibrated on 8,192 comparisons of the last fifth, held
  against comparisons of the test part. Queries and objects are all new.
- A stream: every query comes once, with eight comparisons between objects that stay the same. It is predicted before
  it is learned, and that is all that calibrates. Then queries of the test part are compared with these objects.
- A stream in which one judgement in ten is wrong, as are those that it is held against.

Finished cells are kept in docs/results/calibration.json, so that an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import os
import platform

if "OMP_NUM_THREADS" not in os.environ:  # must be set before NumPy loads its BLAS
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from kept_cells import computed, named
from quality_collections import COLLECTIONS, RESULTS, SEED, split_of
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

import aromatch as am
from aromatch.evaluation import reliability
from aromatch.paper.statistics import mean_over_splits

KEPT = RESULTS / "calibration.json"
NAMES = ("20newsgroups", "banking77", "stdlib")
LEARNERS = {
    "d-AROMA": lambda: am.DiagonalAROMA(1.0, init="identity"),
    "f-AROMA": lambda: am.FactoredAROMA(1.0, init="identity"),
    "MomentAROMA": lambda: am.MomentAROMA("auto"),
}
WAYS = {"new rows": 0.0, "a stream": 0.0, "a stream, a tenth wrong": 0.1}
SPLITS = range(3)
N_LEARNED, N_CALIBRATED, N_TOLD, A_QUERY = 50_000, 8_192, 40_000, 8
# Queries of a stream that are predicted together before they are learned.
AT_ONCE = 256
# Of the deciles of predictions: no difference to what came true may be larger.
BOUND = 0.03


def compute(name, learner, way, number):
    """Learn, calibrate, and tell how often what was told came true."""
    split = split_of(name, number)
    generator = np.random.default_rng([SEED, number])
    if way == "new rows":
        part = split.inside(0.2, SEED)
        triplets = am.triplets.from_labels(part.y, N_LEARNED, random_state=generator)
        model = LEARNERS[learner]().fit_triplets(triplets, part.X)
        model.calibrate(am.triplets.from_labels(part.y_test, N_CALIBRATED, random_state=generator), part.X_test)
        told = am.triplets.from_labels(split.y_test, N_TOLD, random_state=generator), split.X_test, split.X_test
    else:
        queries, objects = np.array_split(generator.permutation(len(split.y)), 2)
        P, of_objects = split.X[objects], np.asarray(split.y)[objects]

        def judged(labels, n):
            triplets = am.triplets.from_labels(labels, n, random_state=generator, y_objects=of_objects)
            triplets = triplets[np.argsort(triplets[:, 0], kind="stable")]
            is_wrong = generator.random(len(triplets)) < WAYS[way]
            triplets[is_wrong] = triplets[is_wrong][:, [0, 2, 1]]
            return triplets

        Q = split.X[queries]
        triplets = judged(np.asarray(split.y)[queries], A_QUERY * len(queries))
        model = LEARNERS[learner]()
        for first in range(0, len(queries), AT_ONCE):
            piece = triplets[(triplets[:, 0] >= first) & (triplets[:, 0] < first + AT_ONCE)]
            if first:
                model.calibrate(piece, Q, P)
            model.partial_fit_triplets(piece, Q, P)
        told = judged(split.y_test, N_TOLD), split.X_test, P
    margins, found = model.margins(*told), model.probability(*told)
    queries, good, other = told[0].T
    limits = model.pair_score(*told[1:], np.column_stack([queries, other]))
    above = model.probability_above(limits, *told[1:], np.column_stack([queries, good]))
    is_told = margins != 0
    right, sure = margins[is_told] > 0, np.maximum(found, 1 - found)[is_told]
    parts = reliability(found)
    return {
        "collection": name,
        "learner": learner,
        "way": way,
        "split": number,
        "right": float(right.mean()),
        "gap": parts.largest_gap,
        "gap_above": reliability(above).largest_gap,
        "raw_gap": reliability(norm.cdf(margins / np.maximum(model.margin_std(*told), 1e-300))).largest_gap,
        "by_margin": float(roc_auc_score(right, np.abs(margins[is_told]))),
        "by_probability": float(roc_auc_score(right, sure)),
        "predicted": parts.predicted.tolist(),
        "observed": parts.observed.tolist(),
        "curve": model.calibration_._asdict(),
    }


def cell_name(*cell):
    """Name a cell by its settings."""
    settings = [am.__version__, SEED, N_LEARNED, N_CALIBRATED, N_TOLD, A_QUERY, AT_ONCE, WAYS[cell[2]], *cell]
    return named(*settings)


def make_page(results, versions):
    """Write the page."""
    ways = list(dict.fromkeys(r["way"] for r in results))
    above = max(abs(r["gap_above"] - r["gap"]) for r in results)
    worse = [r for r in results if r["by_probability"] < r["by_margin"] - 5e-4]
    lines = [
        "# Calibration: do probabilities come true?",
        "",
        "Written by `make calibration`; do not edit. `benchmarks/calibration.py` tells how it was measured.",
        "",
        f"Comparisons that were used neither to learn nor to calibrate, {N_TOLD:,} in each cell, in ten parts of the",
        "same size by how sure the model was. The gap is the largest difference, over the ten parts, between the",
        "probability that was told and the share that came true; means over three splits, and the largest of them in",
        "brackets. `raw` is the gap of the normal distribution with the standard deviation of the margin, which is",
        "what the learned distribution says. `by margin` and `by probability` tell how well wrong predictions are told",
        "from right ones (area under the curve): by the size of the margin, and by the probability.",
        "",
        f"The bound is {BOUND}, for every cell. " + " ".join(verdict(results, way) for way in ways),
        "",
        "The probability tells wrong from right as well as the margin does, but for 0.0005, in",
        f"{len(results) - len(worse)} of {len(results)} cells, being a curve of it. What is told of a score and a",
        "threshold has the same gaps, with the score of the other object for a threshold: they differ by at most",
        f"{above:.4f}.",
    ]
    for way in ways:
        lines += [
            "",
            f"## {way.capitalize()}",
            "",
            "| collection | learner | right | gap | raw | by margin | by probability | slips |",
            "|---|---|---:|---:|---:|---:|---:|---:|",
        ]
        for name in NAMES:
            for learner in LEARNERS:
                here = [r for r in results if (r["collection"], r["learner"], r["way"]) == (name, learner, way)]
                if not here:
                    continue
                gaps = [r["gap"] for r in here]
                lines.append(
                    f"| {COLLECTIONS[name].title} | {learner} | {mean(here, 'right'):.3f} "
                    f"| {np.mean(gaps):.3f} ({max(gaps):.3f}) | {mean(here, 'raw_gap'):.3f} "
                    f"| {mean(here, 'by_margin'):.4f} | {mean(here, 'by_probability'):.4f} "
                    f"| {np.mean([r['curve']['slips'] for r in here]):.3f} |"
                )
    lines += ["", "![What was told against what came true](results/calibration.png)", ""]
    lines.append("Measured with " + ", ".join(f"{name} {version}" for name, version in versions.items()) + ".")
    return "\n".join(lines) + "\n"


def mean(results, what):
    return mean_over_splits([r[what] for r in results]).mean


def verdict(results, way):
    """Tell whether the bound holds for one way to learn and calibrate."""
    here = [r for r in results if r["way"] == way]
    over, worst = [r for r in here if r["gap"] > BOUND], max(r["gap"] for r in here)
    held = f"it fails in {len(over)} of {len(here)}" if over else "it holds"
    return f"{way.capitalize()}: {held}, the largest gap is {worst:.3f}."


def draw(results, folder):
    """Draw what came true against what was told, a panel for each way."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.9), layout="constrained")
    FigureCanvasAgg(figure)
    for axis, way in zip(figure.subplots(1, len(WAYS), sharey=True), WAYS, strict=True):
        low, high = 0.5, 1.0
        axis.fill_between([low, high], [low - BOUND, high - BOUND], [low + BOUND, high + BOUND], color="#dddddd")
        axis.plot([low, high], [low, high], color="#777777", linewidth=0.8)
        for number, name in enumerate(NAMES):
            for marker, learner in zip("os^", LEARNERS, strict=True):
                here = [r for r in results if (r["collection"], r["learner"], r["way"]) == (name, learner, way)]
                for r in here:
                    axis.plot(
                        r["predicted"],
                        r["observed"],
                        color=f"C{number}",
                        marker=marker,
                        markersize=3.5,
                        linewidth=0.5,
                        alpha=0.8,
                        label=f"{COLLECTIONS[name].title}, {learner}" if r is here[0] else None,
                    )
        axis.set(title=way, xlabel="told", xlim=(low, 1.01), ylim=(low - 0.03, 1.01))
        axis.grid(alpha=0.25, linewidth=0.5)
    figure.axes[0].set_ylabel("came true")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside right center", frameon=False, fontsize=7)
    figure.savefig(folder / "calibration.png", dpi=130)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="collections whose name holds this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    arguments = parser.parse_args()
    names = [name for name in NAMES if arguments.only in name]
    if not names:
        parser.error(f"choose among {', '.join(NAMES)}")
    cells = {
        cell_name(name, learner, way, number): (compute, name, learner, way, number)
        for name in names
        for learner in LEARNERS
        for way in WAYS
        for number in SPLITS
    }
    results = computed(cells, arguments.jobs, "calibration: cells", KEPT)
    versions = {"aromatch": am.__version__, "python": platform.python_version(), "numpy": np.__version__}
    page = make_page(results, versions)
    print(page)
    if names == list(NAMES):
        draw(results, RESULTS)
        (RESULTS.parent / "calibration.md").write_text(page)


if __name__ == "__main__":
    main()

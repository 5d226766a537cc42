"""The page and the figure of the calibration benchmark."""

from __future__ import annotations

import numpy as np

from aromatch.paper.statistics import mean_over_splits
from benchmarks.calibration.experiment import BOUND, LEARNERS, N_TOLD, NAMES, WAYS
from benchmarks.shared.collections import COLLECTIONS


def make_page(results, versions):
    """Write the page."""
    ways = list(dict.fromkeys(r["way"] for r in results))
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
        f"{len(results) - len(worse)} of {len(results)} cells, being a curve of it.",
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

"""Plots of the three panels of a figure of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .table import Results, settings_of

# Colours for colour-blind readers (Okabe and Ito), which also differ in grey.
_STYLES: dict[str, tuple[str, str, str]] = {
    "f-AROMA": ("#000000", "-", "o"),
    "d-AROMA": ("#0072B2", "-", "s"),
    "f-AROMA from I": ("#000000", ":", "o"),
    "d-AROMA from I": ("#0072B2", ":", "s"),
    "OASIS": ("#D55E00", "--", "^"),
    "ITML": ("#009E73", "-.", "v"),
    "LEGO": ("#56B4E9", "-.", "D"),
    "LMNN": ("#CC79A7", "--", "P"),
    "HIER": ("#E69F00", "-.", "X"),
    "Euclidean": ("#999999", "-", "x"),
}


def draw(results: Results, path: Path) -> list[Path]:
    """Plot the panels of a figure; lines are means over the splits, bands one standard error.

    Parameters
    ----------
    results : Results
        The results.
    path : Path
        Output path without suffix; the figure is written as PNG and SVG.

    Returns
    -------
    list of Path
        The two files.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    settings: Any = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "aromatch"}
    with mpl.rc_context(settings):
        figure = Figure(figsize=(12, 3.8), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(1, 3)
        drawers = {"precision at k": _precision_at_k, "learning curve": _learning_curve, "sensitivity": _sensitivity}
        for axis, panel in zip(axes, results.spec.panels.values(), strict=True):
            drawers[panel["kind"]](axis, results, panel)
            axis.set_title(panel["title"], fontsize=9)
            # With many lines the legend is placed above them.
            is_full = len(panel["lines"]) > 6
            if is_full:
                low, high = axis.get_ylim()
                axis.set_ylim(low, high + 0.35 * (high - low))
            placed: dict[str, Any] = {"loc": "upper right", "ncols": 2} if is_full else {}
            axis.legend(frameon=False, fontsize=7.5, **placed)
            axis.grid(alpha=0.25, linewidth=0.5)
        n_splits = results.spec.n_splits
        figure.suptitle(f"{results.spec.title}: mean of {n_splits} splits, bands are one standard error", fontsize=10)
        files = [path.with_suffix(ending) for ending in (".png", ".svg")]
        for file in files:
            # Without a date, so that files are reproducible.
            figure.savefig(file, dpi=160, metadata={"Date": None} if file.suffix == ".svg" else None)
    return files


def _precision_at_k(axis: Any, results: Results, panel: dict[str, Any]) -> None:
    ks = results.spec.ks
    for line in panel["lines"]:
        values = [results.values(f"P@{k}", line["method"], at=line.get("at"), **settings_of(line)) for k in ks]
        _line(axis, ks, np.array(values).T, line["label"])
    axis.set(xscale="log", xlabel="top k", ylabel="precision")
    ticks = [k for k in (1, 3, 10, 30, 100) if k <= ks[-1]]
    axis.set_xticks(ticks, [str(k) for k in ticks])
    axis.set_xlim(ks[0] / 1.1, ks[-1] * 1.1)
    axis.xaxis.set_minor_formatter("")


def _learning_curve(axis: Any, results: Results, panel: dict[str, Any]) -> None:
    for line in panel["lines"]:
        settings = settings_of(line)
        at = results.checkpoints(line["method"], **settings)
        _line(axis, at, results.curve("P@10", line["method"], **settings), line["label"])
    axis.set(xscale="log", xlabel="triplets", ylabel="precision at 10")


def _sensitivity(axis: Any, results: Results, panel: dict[str, Any]) -> None:
    name = panel["parameter"]
    tried = sorted(
        {float(run["cell"]["settings"][name]) for run in results.raw["cells"] if name in run["cell"]["settings"]}
    )
    for line in panel["lines"]:
        settings = settings_of(line)
        if line["method"] == "OASIS":  # without this parameter: a constant level
            level = results.values("P@10", "OASIS", at=panel["at"], **settings)
            _line(axis, tried, np.repeat(np.array(level)[:, None], len(tried), axis=1), line["label"])
            continue
        points: list[dict[str, Any]] = [{**settings, name: value} for value in tried]
        values = [results.values("P@10", line["method"], at=panel["at"], **point) for point in points]
        _line(axis, tried, np.array(values).T, line["label"])
    axis.set(xscale="log", xlabel=name, ylabel="precision at 10")


def _line(axis: Any, x: Any, values: Any, label: str) -> None:
    """Plot the mean over splits, the rows of `values`, with a band of one standard error."""
    colour, dashes, marker = _STYLES.get(label, _STYLES.get(label.split(",")[0], ("#444444", "-", ".")))
    mean = values.mean(axis=0)
    axis.plot(x, mean, color=colour, linestyle=dashes, marker=marker, markersize=3.5, linewidth=1.2, label=label)
    if len(values) > 1:
        error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
        axis.fill_between(x, mean - error, mean + error, color=colour, alpha=0.15, linewidth=0)

"""Plot the results of a trial."""

from __future__ import annotations

from collections.abc import Sequence

from ..evaluate import Measure
from .verdict import MethodReport

_PARTS = (("correct", "all later queries"), ("near", "near judged queries"), ("far", "far from judged queries"))


def plot(results: Sequence[MethodReport], shipped: str | None, path: str) -> str:
    """Plot the gains over the cosine with confidence intervals, for all queries and both parts; return the path."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    others = results[:0:-1]
    figure = Figure(figsize=(9, 1.2 + 0.35 * len(others)), layout="constrained")
    FigureCanvasAgg(figure)
    for axis, (name, title) in zip(figure.subplots(1, 3, sharey=True, sharex=True), _PARTS, strict=True):
        for position, one in enumerate(others):
            measure: Measure | None = getattr(one, name)
            if measure is None or measure.difference is None:
                continue
            colour = "#009E73" if one.name == shipped else "#333333"
            gain, error = 100 * measure.difference, 100 * (measure.error or 0.0)
            axis.errorbar(gain, position, xerr=error, fmt="o", color=colour, capsize=3, markersize=4)
        axis.axvline(0, color="#999999", linewidth=0.8)
        axis.set_title(title, fontsize=9)
        axis.set_xlabel("gain in correct comparisons, %", fontsize=8)
        axis.grid(axis="x", alpha=0.25, linewidth=0.5)
    figure.axes[0].set_yticks(range(len(others)), [one.name for one in others])
    figure.suptitle("Gain over the cosine on later queries (95 % intervals)", fontsize=10)
    figure.savefig(path, dpi=120)
    return path

"""What a trial found, as a picture."""

from __future__ import annotations

from collections.abc import Sequence

from ..evaluate import Measure
from .verdict import Compared

_PARTS = (("right", "all later queries"), ("near", "near to judged ones"), ("unlike", "unlike them"))


def draw(results: Sequence[Compared], shipped: str | None, path: str) -> str:
    """Draw gains against the cosine with their intervals, all queries and both parts; give the path."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    others = results[:0:-1]
    figure = Figure(figsize=(9, 1.2 + 0.35 * len(others)), layout="constrained")
    FigureCanvasAgg(figure)
    for axis, (name, title) in zip(figure.subplots(1, 3, sharey=True, sharex=True), _PARTS, strict=True):
        for place, one in enumerate(others):
            measure: Measure | None = getattr(one, name)
            if measure is None or measure.difference is None:
                continue
            colour = "#009E73" if one.name == shipped else "#333333"
            gain, error = 100 * measure.difference, 100 * (measure.error or 0.0)
            axis.errorbar(gain, place, xerr=error, fmt="o", color=colour, capsize=3, markersize=4)
        axis.axvline(0, color="#999999", linewidth=0.8)
        axis.set_title(title, fontsize=9)
        axis.set_xlabel("more right comparisons, %", fontsize=8)
        axis.grid(axis="x", alpha=0.25, linewidth=0.5)
    figure.axes[0].set_yticks(range(len(others)), [one.name for one in others])
    figure.suptitle("Against the cosine, on what came later (95 % intervals)", fontsize=10)
    figure.savefig(path, dpi=120)
    return path

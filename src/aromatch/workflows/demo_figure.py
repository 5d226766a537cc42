"""Figure of the demo: the ten best results of some queries before and after learning, correct ones in colour."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

N_RESULTS = 10
_N_QUERIES = 20
_CORRECT, _WRONG = "#2a9d5c", "#dde1e5"


def draw(is_correct: dict[str, NDArray[np.bool_]], path: str, random_state: int) -> None:
    """Draw one panel a method.

    Parameters
    ----------
    is_correct : mapping of title to boolean array of shape (n_queries, 10)
        Whether each of the best results of a query is correct, the best first.
    path : str
        Image file to write; the extension selects the format.
    random_state : int
        Random seed of the queries shown; the share of correct results is that of all queries.
    """
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure

    n = len(next(iter(is_correct.values())))
    shown = np.random.default_rng(random_state).choice(n, min(_N_QUERIES, n), replace=False)
    figure = Figure(figsize=(8, 4.4), layout="constrained")
    panels: Any = figure.subplots(1, len(is_correct), sharey=True)
    for axes, (title, correct) in zip(panels, is_correct.items(), strict=True):
        colors = ListedColormap([_WRONG, _CORRECT])
        axes.pcolormesh(correct[shown][::-1], cmap=colors, vmin=0, vmax=1, edgecolors="white", linewidth=2.5)
        axes.set_title(f"{title}\n{correct.mean():.0%} of the ten best results are correct", fontsize=11)
        axes.set_xticks(np.arange(N_RESULTS) + 0.5, range(1, N_RESULTS + 1))
        axes.set_yticks([])
        axes.set_xlabel("rank")
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
    panels[0].set_ylabel(f"{len(shown)} random test queries, one per row")
    figure.savefig(path, dpi=130)

"""What all studies share: where results are kept, how a study runs alone, and how its numbers are put into words.

A study is a module with `NAME`, `TITLE`, `cells()` (by name, a function and its arguments), `summary(results)` (a plain
dict of what the cells found), `section(found)` (lines of the page, the answer first) and `draw(found, folder)`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from pathlib import Path

if "OMP_NUM_THREADS" not in os.environ:  # must be set before NumPy loads its BLAS
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).parent.parent))  # the other benchmarks, whose parts the studies use

import numpy as np
from kept_cells import computed, named
from quality_collections import RESULTS, SEED

from aromatch.paper.statistics import compare, mean_over_splits

__all__ = ["RESULTS", "SEED", "compare", "mean_over_splits", "named"]

KEPT = RESULTS / "studies.json"


def run(study, n_jobs):
    """Compute what is not kept of a study; give its plain dict of results."""
    return study.summary(computed(study.cells(), n_jobs, f"{study.NAME}: cells", KEPT))


def kept(study):
    """Give the results of a study that is complete in the file; None for another."""
    found = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    names = study.cells()
    return study.summary([found[name] for name in names]) if all(name in found for name in names) else None


def main(study):
    """Run one study alone, print what it found, and draw its figure."""
    parser = argparse.ArgumentParser(description=study.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    found = run(study, parser.parse_args().jobs)
    study.draw(found, RESULTS)
    print("\n".join(study.section(found)))
    return found


def gathered(cells, *keys):
    """Put the measures of cells into lists, one value a cell, by the values that the cells have for the keys."""
    lists = {}
    for cell in cells:
        here = lists
        for key in keys:
            here = here.setdefault(str(cell[key]), {})
        for measure, value in cell["found"].items():
            here.setdefault(measure, []).append(value)
    return lists


def table(heads, rows):
    """Write a table: words to the left, numbers to the right."""
    texts = [[str(value) for value in row] for row in rows]
    aligned = [
        "---:" if any(re.match(r"[-+\d]", cell) for cell in column) else "---" for column in zip(*texts, strict=True)
    ]
    return ["", *(f"| {' | '.join(row)} |" for row in (heads, aligned, *texts)), ""]


def chance(p):
    """Put the p of a test into words."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def chosen(settings):
    """Tell what was chosen, and how often when not always the same."""
    texts = [", ".join(f"{name} {value}" for name, value in one.items()) for one in settings]
    counts = {text: texts.count(text) for text in dict.fromkeys(texts)}
    return "; ".join(text if n == len(texts) else f"{text} ({n})" for text, n in counts.items())


def panels(n, width=4.6, height=3.6):
    """Give a figure with n panels side by side."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * n, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = np.atleast_1d(figure.subplots(1, n))
    for axis in axes:
        axis.grid(alpha=0.25, linewidth=0.5)
    return figure, axes

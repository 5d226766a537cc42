"""Parts that the generated pages have in common: tables, versions and empty figures."""

from __future__ import annotations

import argparse
import os
import platform
import re
import textwrap

import numpy as np

import aromatch as am


def parser_of(description):
    """Return a parser of command-line options with the number of processes."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="number of processes")
    return parser


def versions():
    """Return the versions that results depend on, by package."""
    return {"aromatch": am.__version__, "python": platform.python_version(), "numpy": np.__version__}


def footer(versions):
    """Return the last line of a page."""
    return "Measured with " + ", ".join(f"{name} {version}" for name, version in versions.items()) + "."


def paragraph(*sentences):
    """Return sentences as one paragraph with lines of at most 120 characters."""
    return textwrap.fill(" ".join(sentences), 120, break_long_words=False, break_on_hyphens=False)


def table(heads, rows):
    """Return the lines of a Markdown table, with columns of numbers aligned to the right except the first."""
    texts = [[str(value) for value in row] for row in rows]
    columns = list(zip(*texts, strict=True))[1:]
    aligned = ["---", *("---:" if any(re.match(r"[-+\d]", cell) for cell in column) else "---" for column in columns)]
    return ["", *(f"| {' | '.join(row)} |" for row in (heads, aligned, *texts)), ""]


def panels(n, width=4.6, height=3.6, **options):
    """Return a figure with n panels side by side, and the panels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * n, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = np.atleast_1d(figure.subplots(1, n, **options))
    for axis in axes:
        axis.grid(alpha=0.25, linewidth=0.5)
    return figure, axes

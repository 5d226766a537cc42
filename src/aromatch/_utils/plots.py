"""Availability of matplotlib, which is an extra."""

from importlib.util import find_spec


def check_can_plot() -> None:
    """Raise ImportError if matplotlib is missing, before any work whose result would be plotted."""
    if find_spec("matplotlib") is None:
        raise ImportError("plots need matplotlib: pip install 'aromatch[plot]'")

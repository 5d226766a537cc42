"""Triplets: row numbers of a query, of an object that is better for it, and of one that is worse."""

from ._comparisons import Comparisons, Report
from .clicks import from_clicks
from .labels import LabelSampler, from_labels, stream_from_labels
from .qrels import from_qrels
from .sessions import from_sessions

__all__ = [
    "Comparisons",
    "LabelSampler",
    "Report",
    "from_clicks",
    "from_labels",
    "from_qrels",
    "from_sessions",
    "stream_from_labels",
]

"""Make triplets (row of a query, of the preferred object, of the other object) from labels, qrels, clicks, sessions."""

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

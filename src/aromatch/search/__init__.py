"""Search by a learned similarity: `Index`, `Adapter`, explanations, and the next comparison to ask."""

from .active import suggest_comparisons
from .adapter.adapter import Adapter
from .adapter.monitor import Diagnostics
from .explain import Explanation, Part, explain
from .index import Index
from .stores.base import Hits

__all__ = [
    "Adapter",
    "Diagnostics",
    "Explanation",
    "Hits",
    "Index",
    "Part",
    "explain",
    "suggest_comparisons",
]

"""Search by a learned similarity: an index, exploring, and why something was found."""

from .active import suggest_comparisons
from .adapter.adapter import Adapter, Ranked
from .adapter.monitor import Watched
from .explain import Explanation, Part, explain
from .explore import query_vector
from .index import Found, Index
from .low_rank import LowRank, low_rank

__all__ = [
    "Adapter",
    "Explanation",
    "Found",
    "Index",
    "LowRank",
    "Part",
    "Ranked",
    "Watched",
    "explain",
    "low_rank",
    "query_vector",
    "suggest_comparisons",
]

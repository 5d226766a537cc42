"""Search by a learned similarity: an index, exploring, and why something was found."""

from .explain import Explanation, Part, explain
from .explore import query_vector
from .index import Found, Index
from .low_rank import LowRank, low_rank

__all__ = ["Explanation", "Found", "Index", "LowRank", "Part", "explain", "low_rank", "query_vector"]

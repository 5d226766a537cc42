"""Retrieval measures and reliability of probabilities."""

from .retrieval import (
    HasSimilarity,
    Reliability,
    RetrievalReport,
    evaluate_retrieval,
    reliability,
    tie_order,
)

__all__ = ["HasSimilarity", "Reliability", "RetrievalReport", "evaluate_retrieval", "reliability", "tie_order"]

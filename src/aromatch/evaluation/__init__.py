"""Retrieval measures and reliability of probabilities."""

from .reliability import Reliability, reliability
from .retrieval import HasSimilarity, RetrievalReport, evaluate_retrieval, tie_order

__all__ = ["HasSimilarity", "Reliability", "RetrievalReport", "evaluate_retrieval", "reliability", "tie_order"]

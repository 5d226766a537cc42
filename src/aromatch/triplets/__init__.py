"""Triplets: row numbers of a query, of an object that is better for it, and of one that is worse."""

from .labels import LabelSampler, from_labels, stream_from_labels

__all__ = ["LabelSampler", "from_labels", "stream_from_labels"]

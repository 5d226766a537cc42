"""What turns raw objects into vectors, as scikit-learn transformers."""

from .text import TextFeatures

__all__ = ["TextFeatures"]

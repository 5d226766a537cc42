"""What turns raw objects into vectors, as scikit-learn transformers."""

from .descriptors import PatchDescriptors
from .image import ImageFeatures
from .text import TextFeatures

__all__ = ["ImageFeatures", "PatchDescriptors", "TextFeatures"]

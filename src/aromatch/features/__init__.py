"""Transformers from texts and images to vectors."""

from .descriptors import PatchDescriptors
from .image import ImageFeatures
from .text import TextFeatures

__all__ = ["ImageFeatures", "PatchDescriptors", "TextFeatures"]

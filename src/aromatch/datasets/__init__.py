"""Where bytes come from: one file a data set, never a silent download."""

from .stdlib import LabelledTexts, load_stdlib

__all__ = ["LabelledTexts", "load_stdlib"]

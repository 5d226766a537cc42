"""The matrix-variate normal distribution and the mistake bounds of the paper."""

from . import matrix_normal
from .mistake_bounds import (
    ForEveryV,
    Lemma3,
    lemma_3,
    theorem_1,
    theorem_1_holds_for_every_V,
    theorem_2,
    theorem_2_holds_for_every_V,
)
from .recording import Run, record_run

__all__ = [
    "ForEveryV",
    "Lemma3",
    "Run",
    "lemma_3",
    "matrix_normal",
    "record_run",
    "theorem_1",
    "theorem_1_holds_for_every_V",
    "theorem_2",
    "theorem_2_holds_for_every_V",
]

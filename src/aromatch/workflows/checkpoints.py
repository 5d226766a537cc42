"""What was learned so far, in a file beside the model to be, from which the same command goes on."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from .._utils.checks import check_number
from .._utils.rows import Matrix
from ..learners import Similarity
from .bundle import Trained

if TYPE_CHECKING:
    from .learning import Lesson


def digest_of(about: dict[str, Any], lesson: Lesson) -> str:
    """Name the work by all that its result depends on."""
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for matrix in (lesson.Q, lesson.P):
        for array in _arrays(matrix):
            digest.update(_bytes(array))
    digest.update(_bytes(lesson.triplets))
    if lesson.weights is not None:
        digest.update(_bytes(lesson.weights))
    return digest.hexdigest()


def _bytes(array: Any) -> memoryview:
    return np.ascontiguousarray(array).data


def _arrays(matrix: Matrix | None) -> list[Any]:
    if matrix is None:
        return []
    return [matrix.data, matrix.indices, matrix.indptr] if sparse.issparse(matrix) else [matrix]


class Checkpoint:
    """The file of what was learned so far.

    Parameters
    ----------
    output : path
        Of the model to be; the checkpoint lies beside it.
    digest : str
        Of the work: a checkpoint of another one is refused.
    with_all : function
        Puts to a model what belongs to it.
    seconds : float
        How often to write it.
    restart : bool
        Begin anew, whatever is there.
    """

    def __init__(
        self, output: str, digest: str, with_all: Callable[[Similarity], Trained], seconds: float, *, restart: bool
    ) -> None:
        self.path = f"{output}.checkpoint"
        self.resumed_from = 0
        self._digest, self._with_all = digest, with_all
        self._seconds = check_number(seconds, "--checkpoint-seconds", at_least=0)
        self._restart = restart
        self._written = monotonic()

    def load(self) -> Similarity | None:
        """Give the model of an earlier run of the same work; None when there is none."""
        if self._restart or not os.path.exists(self.path):
            return None
        found = Trained.load(self.path)
        if found.about.get("digest") != self._digest:
            raise ValueError(
                f"{self.path} is of a run with other settings or other data; --restart begins anew and replaces it"
            )
        self.resumed_from = int(getattr(found.model, "n_triplets_seen_", 0))
        return found.model

    def perhaps_save(self, model: Any) -> None:
        """Write the file when the last time is long enough ago."""
        if monotonic() - self._written >= self._seconds:
            self.save(model, quietly=True)

    def save(self, model: Any, *, quietly: bool = False) -> None:
        """Write the file."""
        trained = self._with_all(model)
        trained.about = {**trained.about, "digest": self._digest}
        trained.save(self.path)
        self._written = monotonic()
        if not quietly:
            print(
                f"{model.n_triplets_seen_:,} triplets are learned and kept in {self.path}: the same command goes on",
                file=sys.stderr,
            )

    def remove(self) -> None:
        """Remove the file: the work is done."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)

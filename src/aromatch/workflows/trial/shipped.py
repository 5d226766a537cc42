"""What a trial exports: one file that makes vectors to search with, for the index that a team has.

It is a model file of `train`, or a file of an adapter with the way its rows are made beside it, which
`aromatch.load` reads too. Nothing in it is run.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..._utils.rows import Matrix, MatrixLike, as_matrix
from ...exceptions import ModelFileError
from ...io.container import read_model, write_model
from ...io.items import Items
from ...learners.files import ATTACHED
from ...search import Adapter
from ...search.adapter.adapter import load_adapter
from ..bundle import KEY, Trained
from ..preparation import Preparation


class Shipped:
    """A way to search that a trial found to be better, ready to be used."""

    def __init__(self, scorer: Any, preparation: Preparation) -> None:
        self.scorer, self.preparation = scorer, preparation

    def query_vector(self, queries: MatrixLike | Sequence[str]) -> NDArray[Any]:
        """Give what to search with in an index of inner products: a row for each text or vector."""
        rows = self._rows(queries, "queries")
        return np.asarray(self.scorer.transform(rows), dtype=np.float32)

    def object_vectors(self, objects: MatrixLike | Sequence[str]) -> Matrix:
        """Give objects as the index has to hold them: of unit norm, and otherwise as they were."""
        rows = self._rows(objects, "objects")
        return rows if sparse.issparse(rows) else np.asarray(rows, dtype=np.float32)

    def _rows(self, given: Any, name: str) -> Matrix:
        if self.preparation.features is not None:
            texts = [given] if isinstance(given, str) else list(given)
            if not all(isinstance(text, str) for text in texts):
                raise TypeError(f"{name} must be texts, as in the trial")
            return self.preparation.rows(Items(name, [str(at) for at in range(len(texts))], texts=texts))
        matrix = as_matrix(given if sparse.issparse(given) else np.atleast_2d(given), name)
        return self.preparation.rows(Items(name, [str(at) for at in range(matrix.shape[0])], vectors=matrix))

    # -- files --------------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str], about: dict[str, Any]) -> None:
        """Write it to one file, with a few words about what it was learned on."""
        if not isinstance(self.scorer, Adapter):
            Trained(self.scorer, self.preparation, self.preparation, about).save(path)
            return
        header, arrays = self.scorer._to_parts()
        side, found = self.preparation.to_parts()
        arrays |= {f"{ATTACHED}.objects.{label}": array for label, array in found.items()}
        write_model(path, {**header, KEY: {"about": about, "objects": side}}, arrays)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote."""
        header, arrays = read_model(path)
        if header.get("kind") != "adapter":
            trained = Trained.load(path)
            return cls(trained.model, trained.queries)
        scorer, prefix = load_adapter(path), f"{ATTACHED}.objects."
        try:
            found = {name.removeprefix(prefix): one for name, one in arrays.items() if name.startswith(prefix)}
            preparation = Preparation.from_parts(header[KEY]["objects"], found)
            if preparation.width != scorer.n_features_in_:
                raise ValueError("its rows are not made as wide as its objects are")
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFileError(f"{path} does not tell how its rows are made: {error}") from error
        return cls(scorer, preparation)


def load_shipped(path: str | PathLike[str]) -> Shipped:
    """Read what `aromatch trial` exported.

    Give it queries as they were in the trial, texts or vectors: ``query_vector`` makes what to search with, in an index
    of inner products that holds ``object_vectors``.
    """
    return Shipped.load(path)

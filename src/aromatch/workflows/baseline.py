"""What a search was before anything was learned: the cosine, of vectors as they came or of the tf-idf of all words."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from .._utils.rows import Matrix
from ..features.text import SHORT_WORDS
from ..io.items import Items


class Cosine:
    """The inner product, of rows that have unit norm."""

    def similarity(self, Q: Any, P: Any) -> NDArray[Any]:
        """Score all rows of Q with all of P."""
        scores = Q @ P.T
        return np.asarray(scores.toarray() if sparse.issparse(scores) else scores)


def baseline_rows(objects: Items, queries: Items | None) -> tuple[Matrix, Matrix] | None:
    """Give rows of queries and of objects whose cosines are the search of before; None where there is none.

    Texts have all their words, not only those that a model knows: that is the search that people have.
    """
    if objects.texts is not None:
        weigher = TfidfVectorizer(stop_words="english", token_pattern=SHORT_WORDS)
        P = weigher.fit_transform(objects.texts)
        return (P, P) if queries is None else (weigher.transform(queries.texts), P)
    assert objects.vectors is not None
    if queries is None:
        P = normalize(objects.vectors)
        return P, P
    assert queries.vectors is not None
    if queries.vectors.shape[1] != objects.vectors.shape[1]:
        return None
    return normalize(queries.vectors), normalize(objects.vectors)


NAMES = {"texts": "cosine of the tf-idf of all words", "vectors": "cosine of the vectors as they are"}

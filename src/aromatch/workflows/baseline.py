"""The baseline: the cosine of unscaled vectors, or of the tf-idf of all words of texts."""

from __future__ import annotations

from sklearn.feature_extraction.text import TfidfVectorizer

from .._utils.rows import Matrix
from ..features.text import SHORT_WORDS
from ..io.items import Items

NAMES = {"texts": "cosine of the tf-idf of all words", "vectors": "cosine of the unscaled vectors"}


def baseline_rows(objects: Items, queries: Items | None) -> tuple[Matrix, Matrix] | None:
    """Return rows of queries and of objects whose cosine is the baseline; None if they have different features.

    Texts use all their words, not only the terms of a model: this is the search that users have without a model.
    """
    if objects.texts is not None:
        weigher = TfidfVectorizer(stop_words="english", token_pattern=SHORT_WORDS, norm=None)
        P = weigher.fit_transform(objects.texts)
        return (P, P) if queries is None else (weigher.transform(queries.texts), P)
    assert objects.vectors is not None
    if queries is None:
        return objects.vectors, objects.vectors
    assert queries.vectors is not None
    if queries.vectors.shape[1] != objects.vectors.shape[1]:
        return None
    return queries.vectors, objects.vectors

"""From what was read to the rows that a learner sees, and the same again for what comes later.

Texts become tf-idf on chosen terms. Vectors are scaled: a learner's settings are meant for rows of unit norm, and
features in different units, or far from zero, would hide what is small in them. What was found out on the way, terms
and their weights or means and spreads, belongs to the model and is saved with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import row_norms

from .._utils.checks import check_choice, check_integer
from .._utils.rows import Matrix
from ..features import TextFeatures
from ..features.text import SHORT_WORDS
from ..io.items import Items

SCALES = ("none", "unit", "centre", "standard")
MOST_TERMS = 20_000
_UNIT_NORM = 1e-3


@dataclass(frozen=True, eq=False, slots=True)
class Preparation:
    """Makes rows for a learner of texts, by `features`, or of vectors, by `scale`."""

    width: int
    features: TextFeatures | None = None
    scale: str = "none"
    mean: NDArray[np.float64] | None = None
    spread: NDArray[np.float64] | None = None
    names: list[str] | None = None
    """Of the features, where they have names."""

    @property
    def what(self) -> str:
        """What it takes."""
        return "vectors" if self.features is None else "texts"

    def __str__(self) -> str:
        if self.features is not None:
            how = "the most telling" if self.features.choose == "information_gain" else "the most frequent"
            return f"tf-idf on {self.width:,} terms, {how}"
        return (
            f"{self.width:,} features, "
            + {
                "none": "as they are",
                "unit": "rows scaled to unit norm",
                "centre": "centred, then rows scaled to unit norm",
                "standard": "each with mean 0 and spread 1, then rows scaled to unit norm",
            }[self.scale]
        )

    def feature_names(self) -> list[str] | None:
        """Give names of the features that people can read, where there are any."""
        return self.names if self.features is None else self.features.terms_.tolist()

    def rows(self, items: Items) -> Matrix:
        """Make rows of what was read."""
        if items.what != self.what:
            raise ValueError(f"{items.source} has {items.what}, but the model was learned on {self.what}")
        if self.features is not None:
            assert items.texts is not None
            return self.features.transform(items.texts)
        assert items.vectors is not None
        if items.vectors.shape[1] != self.width:
            raise ValueError(
                f"{items.source} has {items.vectors.shape[1]:,} features, but the model was learned on {self.width:,}"
            )
        return self.scaled(items.vectors)

    def scaled(self, vectors: Matrix) -> Matrix:
        """Scale vectors."""
        if self.scale == "none":
            return vectors
        if self.mean is not None:
            vectors = (vectors - self.mean) / (1.0 if self.spread is None else self.spread)
        return normalize(vectors)

    # -- files --------------------------------------------------------------------------------------------

    def to_parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Give what a model file has to hold of it."""
        arrays = {"mean": self.mean, "spread": self.spread}
        kept = {name: array for name, array in arrays.items() if array is not None}
        header: dict[str, Any] = {"width": self.width, "scale": self.scale, "names": self.names}
        if self.features is not None:
            header["text"], found = self.features.to_parts()
            kept |= {f"text.{name}": array for name, array in found.items()}
        return header, kept

    @classmethod
    def from_parts(cls, header: Any, arrays: dict[str, NDArray[Any]]) -> Self:
        """Make it again of what a file says, or say in a ValueError what is wrong with that."""
        if not isinstance(header, dict) or set(header) - {"text"} != {"width", "scale", "names"}:
            raise ValueError("its preparation is none")
        width = check_integer(header["width"], "the width of its preparation", at_least=1)
        scale = check_choice(header["scale"], "the scale of its preparation", SCALES)
        names = header["names"]
        are_names = isinstance(names, list) and len(names) == width and all(isinstance(one, str) for one in names)
        if names is not None and not are_names:
            raise ValueError(f"its features have names that are not {width} names")
        of_text = {name.removeprefix("text."): one for name, one in arrays.items() if name.startswith("text.")}
        numbers = {name: one for name, one in arrays.items() if not name.startswith("text.")}
        expected = {"centre": {"mean"}, "standard": {"mean", "spread"}}.get(scale, set())
        is_right = set(numbers) == expected and all(
            one.shape == (width,) and one.dtype == np.float64 and np.isfinite(one).all() for one in numbers.values()
        )
        if not is_right or ("spread" in numbers and (numbers["spread"] <= 0).any()):
            raise ValueError("its preparation has numbers that are no such")
        features = None
        if "text" in header:
            features = TextFeatures.from_parts(header["text"], of_text)
            if len(features.terms_) != width or scale != "none":
                raise ValueError("its text features are not as wide as the model")
        elif of_text:
            raise ValueError("it has weights of terms, but no terms")
        return cls(width, features, scale, numbers.get("mean"), numbers.get("spread"), names)


def prepare_texts(items: Items, rows: NDArray[np.int64], labels: Any, n_terms: int) -> Preparation:
    """Choose and weigh terms by some of the texts: by their labels where there are any."""
    assert items.texts is not None
    if n_terms > MOST_TERMS:
        raise ValueError(f"--terms must be at most {MOST_TERMS:,}, got {n_terms:,}")
    texts = [items.texts[row] for row in rows]
    choose = "frequency" if labels is None else "information_gain"
    features = TextFeatures(n_terms, token_pattern=SHORT_WORDS, choose=choose)
    try:
        features.fit(texts, labels)
    except ValueError as error:  # "empty vocabulary; perhaps the documents only contain stop words"
        raise ValueError(f"{items.source}: {error}") from None
    return Preparation(len(features.terms_), features)


def prepare_vectors(items: Items, rows: NDArray[np.int64], scale: str) -> Preparation:
    """Find out how to scale vectors, by some of them.

    "auto" leaves rows of unit norm alone, as embeddings are, so that a store that has them can be searched as it is.
    Sparse rows are scaled to unit norm; other dense ones are standardised first.
    """
    check_choice(scale, "--scale", ("auto", *SCALES))
    vectors = items.vectors
    assert vectors is not None
    width = vectors.shape[1]
    is_sparse = sparse.issparse(vectors)
    if scale == "auto":
        norms = row_norms(vectors)
        if np.all((np.abs(norms - 1) < _UNIT_NORM) | (norms == 0)):
            scale = "none"
        else:
            scale = "unit" if is_sparse else "standard"
    if scale in ("none", "unit"):
        return Preparation(width, scale=scale, names=items.names)
    if is_sparse:
        raise ValueError(f"--scale {scale} would fill all cells of the sparse matrix {items.source}; unit does not")
    some = vectors[rows]
    mean = some.mean(axis=0, dtype=np.float64)
    spread = None
    if scale == "standard":
        spread = some.std(axis=0, dtype=np.float64)
        spread[spread <= 1e-12 * np.maximum(1.0, np.abs(mean))] = 1.0  # a feature that is always the same
    return Preparation(width, scale=scale, mean=mean, spread=spread, names=items.names)

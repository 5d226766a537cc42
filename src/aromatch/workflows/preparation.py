"""Make feature rows of texts or vectors, the same for training and for later queries.

Texts become tf-idf vectors over selected terms. Vectors are scaled: the learners' default settings are meant for
rows of unit norm, and features in larger units would dominate the others. Terms and weights, or means and standard
deviations, are saved with the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import row_norms

from .._utils.checks import check_choice, check_integer
from .._utils.rows import Matrix, read_all
from ..features import TextFeatures
from ..features.text import SHORT_WORDS
from ..io.items import Items
from ..learners.inputs import FLOAT64, LARGEST
from .supervision import Supervised

SCALES = ("none", "unit", "centre", "standard")
MAX_TERMS = 20_000
# With labels, and without: terms selected by frequency miss the rarer words of queries.
DEFAULT_TERMS = {True: 1_000, False: 4_000}
_UNIT_NORM = 1e-3


@dataclass(frozen=True, eq=False, slots=True)
class Preparation:
    """Maps texts (by `features`) or vectors (by `scale`) to the rows of a learner."""

    width: int
    features: TextFeatures | None = None
    scale: str = "none"
    mean: NDArray[np.float64] | None = None
    std: NDArray[np.float64] | None = None
    names: list[str] | None = None
    """Names of the features, if the file has names."""

    @property
    def what(self) -> str:
        """The kind of input: "texts" or "vectors"."""
        return "vectors" if self.features is None else "texts"

    def __str__(self) -> str:
        if self.features is not None:
            is_frequent = self.features.choose == "frequency"
            which = "most frequent terms" if is_frequent else "terms with the highest information gain"
            return f"tf-idf, {self.width:,} {which}"
        return (
            f"{self.width:,} features, "
            + {
                "none": "unscaled",
                "unit": "rows scaled to unit norm",
                "centre": "centred, rows scaled to unit norm",
                "standard": "standardised, rows scaled to unit norm",
            }[self.scale]
        )

    def feature_names(self) -> list[str] | None:
        """Return the names of the features: the terms of texts, or the columns of a file; None if there are none."""
        return self.names if self.features is None else self.features.terms_.tolist()

    def rows(self, items: Items) -> Matrix:
        """Return the rows of a collection."""
        if (items.texts is None) != (self.features is None):
            raise ValueError(f"{items.source} has {items.what}, but the model was trained on {self.what}")
        if self.features is not None:
            assert items.texts is not None
            return self.features.transform(items.texts)
        assert items.vectors is not None
        if items.vectors.shape[1] != self.width:
            raise ValueError(
                f"{items.source} has {items.vectors.shape[1]:,} features, but the model was trained on {self.width:,}"
            )
        return self._scaled(items.vectors, items.source)

    def _scaled(self, vectors: Matrix, source: str) -> Matrix:
        """Return scaled vectors."""
        _check_squares(vectors, source)
        if self.scale == "none":
            return vectors
        if self.mean is not None:
            with np.errstate(over="ignore"):  # infinity is refused below
                vectors = (vectors - self.mean) / (1.0 if self.std is None else self.std)
            _check_squares(vectors, f"{source}, scaled as the training data,")
        return normalize(vectors)

    # -- files --------------------------------------------------------------------------------------------

    def to_parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the header and the arrays for a file."""
        arrays = {"mean": self.mean, "std": self.std}
        kept = {name: array for name, array in arrays.items() if array is not None}
        header: dict[str, Any] = {"width": self.width, "scale": self.scale, "names": self.names}
        if self.features is not None:
            header["text"], found = self.features.to_parts()
            kept |= {f"text.{name}": array for name, array in found.items()}
        return header, kept

    @classmethod
    def from_parts(cls, header: Any, arrays: dict[str, NDArray[Any]]) -> Self:
        """Rebuild a preparation from the header and the arrays of a file; raise ValueError if they are invalid."""
        if not isinstance(header, dict) or set(header) - {"text"} != {"width", "scale", "names"}:
            raise ValueError("invalid preparation in the file header")
        width = check_integer(header["width"], "the width of the preparation", at_least=1)
        scale = check_choice(header["scale"], "the scale of the preparation", SCALES)
        names = header["names"]
        are_names = isinstance(names, list) and len(names) == width and all(isinstance(one, str) for one in names)
        if names is not None and not are_names:
            raise ValueError(f"names must be {width} feature names")
        of_text = {name.removeprefix("text."): one for name, one in arrays.items() if name.startswith("text.")}
        numbers = {name: one for name, one in arrays.items() if not name.startswith("text.")}
        expected = {"centre": {"mean"}, "standard": {"mean", "std"}}.get(scale, set())
        is_right = set(numbers) == expected and all(
            one.shape == (width,) and one.dtype == np.float64 and np.isfinite(one).all() for one in numbers.values()
        )
        if not is_right or ("std" in numbers and (numbers["std"] <= 0).any()):
            raise ValueError(f"the preparation must have {width} finite means and positive standard deviations")
        features = None
        if "text" in header:
            features = TextFeatures.from_parts(header["text"], of_text)
            if len(features.terms_) != width or scale != "none":
                raise ValueError(f"text features must have {width} terms and no scale")
        elif of_text:
            raise ValueError("the file has term weights, but no terms")
        return cls(width, features, scale, numbers.get("mean"), numbers.get("std"), names)


def prepare_texts(items: Items, rows: NDArray[np.int64], labels: Any, n_terms: int) -> Preparation:
    """Fit tf-idf features on some texts; terms are selected by information gain if there are labels."""
    assert items.texts is not None
    if n_terms > MAX_TERMS:
        raise ValueError(f"--terms must be at most {MAX_TERMS:,}, got {n_terms:,}")
    texts = [items.texts[row] for row in rows]
    choose = "frequency" if labels is None else "information_gain"
    features = TextFeatures(n_terms, token_pattern=SHORT_WORDS, choose=choose)
    try:
        features.fit(texts, labels)
    except ValueError as error:  # "empty vocabulary; perhaps the documents only contain stop words"
        raise ValueError(f"{items.source}: {error}") from None
    return Preparation(len(features.terms_), features)


def prepare_vectors(items: Items, rows: NDArray[np.int64], scale: str) -> Preparation:
    """Fit the scaling of vectors on some rows.

    "auto" leaves rows of unit norm unscaled, so an existing vector store needs no re-indexing. Sparse rows
    are scaled to unit norm; other dense rows are standardised first.
    """
    check_choice(scale, "--scale", ("auto", *SCALES))
    vectors = items.vectors
    assert vectors is not None
    _check_squares(vectors, items.source)
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
        raise ValueError(f"--scale {scale} would make the sparse matrix {items.source} dense; use unit")
    some = vectors[rows]
    mean = some.mean(axis=0, dtype=np.float64)
    std = None
    if scale == "standard":
        std = some.std(axis=0, dtype=np.float64)
        std[std <= 1e-12 * np.maximum(1.0, np.abs(mean))] = 1.0  # a constant feature
    return Preparation(width, scale=scale, mean=mean, std=std, names=items.names)


def _check_squares(vectors: Matrix, source: str) -> None:
    """Refuse vectors whose sums of squares come near the largest float."""
    if (square := read_all(vectors, source).largest_square) > LARGEST[FLOAT64]:
        raise ValueError(f"{source} has a row with |x|^2 = {square:.1e}, expected at most {LARGEST[FLOAT64]:.0e}")


class Prepared(NamedTuple):
    """The preparations of a collection and its rows; both sides are the same objects if queries are the objects."""

    objects: Preparation
    queries: Preparation
    P: Matrix
    Q: Matrix


def prepare(data: Supervised, rows: NDArray[np.int64], terms: int | None, scale: str) -> Prepared:
    """Fit the preparations of objects and of queries on the training rows only, and prepare all rows."""
    objects, queries = _fit_preparations(data, rows, terms, scale)
    P = objects.rows(data.objects)
    return Prepared(objects, queries, P, P if data.queries is None else queries.rows(data.queries))


def _fit_preparations(
    data: Supervised, rows: NDArray[np.int64], terms: int | None, scale: str
) -> tuple[Preparation, Preparation]:
    is_labelled = data.labels is not None
    labels = data.labels if data.queries is None else data.object_labels
    # With labels every row is a query, so that held-out rows are held out as objects too.
    fitted_on = rows if is_labelled and data.queries is None else np.arange(len(data.objects))
    if data.objects.texts is not None:
        if labels is not None:
            fitted_on = fitted_on[labels[fitted_on] != None]  # noqa: E711 - element by element
        n_terms = terms if terms is not None else DEFAULT_TERMS[labels is not None]
        objects = prepare_texts(data.objects, fitted_on, None if labels is None else labels[fitted_on], n_terms)
        return objects, objects
    objects = prepare_vectors(data.objects, fitted_on, scale)
    if data.queries is None or data.queries.vectors.shape[1] == objects.width:  # type: ignore[union-attr]
        return objects, objects
    return objects, prepare_vectors(data.queries, rows, scale)

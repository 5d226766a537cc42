"""Text to vectors, as in section 5.2 of the paper: the most informative terms, tf-idf, unit norm.

Terms are selected by information gain (Yang & Pedersen 1997), the expected decrease of the entropy of the class if it
is known whether a document contains the term,

    G(t) = H(class) - P(t) H(class | t present) - P(not t) H(class | t absent).

It depends on the presence of a term only, not on its frequency, and is the mutual information of two discrete
variables. With f(x) = x log x, N documents, N_t of them with the term, N_c of class c and N_ct of both kinds,

    N G(t) = f(N) - f(N_t) - f(N - N_t) + sum over c of [f(N_ct) + f(N_c - N_ct) - f(N_c)],

where a class that never contains the term adds nothing, so that the sparse table of N_ct is sufficient.

Without classes, `choose="frequency"` selects the terms with the highest document frequency.

Y. Yang and J. O. Pedersen, "A comparative study on feature selection in text categorization", ICML 1997.
"""

import re
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import xlogy
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.utils.validation import check_is_fitted

from .._utils.checks import as_list, check_choice, check_integer, check_labels

WORDS = r"(?u)\b\w\w+\b"
# Excludes checksums and encoded images, which are words of hundreds of letters.
SHORT_WORDS = r"(?u)\b\w{2,40}\b"
# Patterns accepted from files: a malicious expression could take exponential time.
_PATTERNS_IN_FILES = (WORDS, SHORT_WORDS)
_WAYS_TO_CHOOSE = ("information_gain", "frequency")


def information_gain(presence: Any, y: ArrayLike) -> NDArray[np.float64]:
    """Compute the information gain of every term about the class.

    Parameters
    ----------
    presence : array or sparse matrix, shape (n_documents, n_terms)
        Non-zero if the document contains the term, for instance counts.
    y : array-like, shape (n_documents,)
        The class of each document.

    Returns
    -------
    ndarray, shape (n_terms,)
        The gain in nats, from 0 for an uninformative term to the entropy of the classes.

    Examples
    --------
    The first term determines the class, the second is uninformative.

    >>> from aromatch.features.text import information_gain
    >>> information_gain([[1, 1], [1, 0], [0, 1], [0, 0]], ["a", "a", "b", "b"]).round(3)
    array([0.693, 0.   ])
    """
    table = sparse.csr_array(presence, copy=True)
    if table.ndim != 2 or table.shape[0] == 0:
        raise ValueError(f"presence must be 2-D with at least one document, got the shape {table.shape}")
    table.sum_duplicates()
    n_documents, n_terms = table.shape
    classes, class_of = np.unique(check_labels(y, "y", n_documents), return_inverse=True)
    class_size = np.bincount(class_of)

    documents, terms = table.nonzero()
    # Duplicate pairs are summed, which gives the number of documents with both.
    both = sparse.coo_array((np.ones(len(terms)), (class_of[documents], terms)), shape=(len(classes), n_terms)).tocsr()
    in_class = class_size[np.repeat(np.arange(len(classes)), np.diff(both.indptr))]
    both.data = _xlogx(both.data) + _xlogx(in_class - both.data) - _xlogx(in_class)

    with_term = np.bincount(terms, minlength=n_terms)
    gain = _xlogx(n_documents) - _xlogx(with_term) - _xlogx(n_documents - with_term) + both.sum(axis=0)
    # Rounding may make the gain of an uninformative term negative.
    return np.asarray(np.maximum(gain / n_documents, 0.0))


def _xlogx(x: Any) -> Any:
    return xlogy(x, x)


class TextFeatures(TransformerMixin, BaseEstimator):
    r"""Vectors of unit norm from texts: tf-idf of the most informative terms.

    Terms and document frequencies are computed from the training texts alone, so that no information about test texts
    leaks into their evaluation. Words are lower-cased and stop words removed; there is no stemming.

    Parameters
    ----------
    n_terms : int, default 1000
        Maximum number of terms, the width of the vectors. More terms describe rare subjects better, but the size of a
        learner's matrix grows with the square.
    stop_words : "english", list of str or None, default "english"
        Words to remove; "english" is scikit-learn's list, None keeps all words.
    min_df : int or float, default 1
        Minimum number (int) or share (float) of training documents that contain a term.
    token_pattern : str, default r"(?u)\b\w\w+\b"
        Regular expression of a word; by default two or more letters, digits or underscores.
    choose : {"information_gain", "frequency"}, default "information_gain"
        Select terms by information gain about the class, or by document frequency, which needs no classes.

    Attributes
    ----------
    terms_ : ndarray of str, shape (n,)
        The selected terms, in the order of the columns: the most informative or most frequent first, ties in
        alphabetical order.
    information_gain_ : ndarray, shape (n,)
        The information gain of each term in nats, if terms are selected by it.
    idf_ : ndarray, shape (n,)
        The inverse document frequency of each term, by scikit-learn's smooth formula.

    Examples
    --------
    >>> from aromatch.features import TextFeatures
    >>> texts = ["the cat purrs", "a cat and a mouse", "the dog barks", "a dog and a mouse"]
    >>> features = TextFeatures(n_terms=3).fit(texts, ["cats", "cats", "dogs", "dogs"])
    >>> features.get_feature_names_out()
    array(['cat', 'dog', 'barks'], dtype=object)
    >>> features.transform(["dog, dog, cat!"]).toarray().round(3)
    array([[0.447, 0.894, 0.   ]])

    The row of a text without any of the terms is empty.

    >>> features.transform(["elephant"]).nnz
    0
    """

    def __init__(
        self,
        n_terms: int = 1000,
        *,
        stop_words: str | list[str] | None = "english",
        min_df: int | float = 1,
        token_pattern: str = WORDS,
        choose: str = "information_gain",
    ) -> None:
        self.n_terms = n_terms
        self.stop_words = stop_words
        self.min_df = min_df
        self.token_pattern = token_pattern
        self.choose = choose

    def fit(self, texts: Iterable[str], y: ArrayLike | None = None) -> Self:
        """Select the terms and compute their weights.

        Parameters
        ----------
        texts : iterable of str
            The training documents.
        y : array-like, shape (n_documents,)
            The class of each document; ignored if terms are selected by frequency.

        Returns
        -------
        TextFeatures
            The transformer itself.
        """
        self._learn(texts, y)
        return self

    def fit_transform(self, texts: Iterable[str], y: ArrayLike | None = None) -> Any:
        """Select the terms and return the vectors of the training texts, in one pass.

        Parameters
        ----------
        texts : iterable of str
            The training documents.
        y : array-like, shape (n_documents,)
            The class of each document; ignored if terms are selected by frequency.

        Returns
        -------
        CSR matrix of float64, shape (n_documents, n)
            The same as `fit(texts, y).transform(texts)`.
        """
        counts = self._learn(texts, y)
        return self._weigher.transform(counts)

    def transform(self, texts: Iterable[str]) -> Any:
        """Return the vectors of texts.

        Parameters
        ----------
        texts : iterable of str
            The documents.

        Returns
        -------
        CSR matrix of float64, shape (n_documents, n)
            Rows have norm 1, or are empty if a text contains none of the terms.
        """
        check_is_fitted(self)
        return self._weigher.transform(self._counter.transform(_check_texts(texts)))

    def words(self, text: str) -> list[str]:
        """Return the words of a text without stop words, including those that are not terms."""
        check_is_fitted(self)
        if not isinstance(text, str):
            raise TypeError(f"text must be a str, got {type(text).__name__}")
        analyse = self._counter.build_analyzer()
        return list(analyse(text))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the selected terms, in the order of the columns.

        Parameters
        ----------
        input_features : ignored
            Present for compatibility with scikit-learn.

        Returns
        -------
        ndarray of object, shape (n,)
            The terms.
        """
        check_is_fitted(self)
        names: NDArray[np.object_] = self.terms_.astype(object)
        return names

    # -- files --------------------------------------------------------------------------------------------

    def to_parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the header and the arrays of a model file, from which `from_parts` restores the transformer."""
        check_is_fitted(self)
        if self.token_pattern not in _PATTERNS_IN_FILES:
            raise ValueError(
                f"token_pattern cannot be saved: expected one of {_PATTERNS_IN_FILES}, got {self.token_pattern!r}"
            )
        header = {
            "n_terms": int(self.n_terms),
            "stop_words": self.stop_words if self.stop_words in (None, "english") else list(self.stop_words),
            "min_df": self.min_df,
            "token_pattern": self.token_pattern,
            "choose": self.choose,
            "terms": self.terms_.tolist(),
        }
        arrays = {"idf": np.asarray(self.idf_, dtype=np.float64)}
        if self.choose == "information_gain":
            arrays["gain"] = self.information_gain_
        return header, arrays

    @classmethod
    def from_parts(cls, header: Any, arrays: dict[str, NDArray[Any]]) -> Self:
        """Restore a transformer from the header and the arrays of a file; raise ValueError if they are invalid."""
        names = {"n_terms", "stop_words", "min_df", "token_pattern", "choose", "terms"}
        if not isinstance(header, dict) or set(header) != names:
            raise ValueError("invalid header of the text features")
        settings = dict(header)
        terms, stop_words = settings.pop("terms"), header["stop_words"]
        check_choice(header["token_pattern"], "token_pattern of the text features", _PATTERNS_IN_FILES)
        check_choice(header["choose"], "choose of the text features", _WAYS_TO_CHOOSE)
        check_integer(header["n_terms"], "n_terms of the text features", at_least=1)
        if not _are_texts(terms) or not terms or len(set(terms)) < len(terms):
            raise ValueError("invalid terms of the text features, expected distinct strings")
        if not (stop_words in (None, "english") or _are_texts(stop_words)):
            raise ValueError("invalid stop words of the text features, expected strings")
        expected = {"idf", "gain"} if header["choose"] == "information_gain" else {"idf"}
        is_right = set(arrays) == expected and all(
            array.shape == (len(terms),) and array.dtype == np.float64 and np.isfinite(array).all()
            for array in arrays.values()
        )
        if not is_right or (arrays["idf"] <= 0).any():
            raise ValueError(f"invalid weights of the text features, expected {len(terms)} positive numbers")
        features = cls(**settings)
        features.terms_ = np.array(terms, dtype=str)
        if "gain" in arrays:
            features.information_gain_ = arrays["gain"]
        features._weigh_by(arrays["idf"])
        return features

    def _learn(self, texts: Iterable[str], y: ArrayLike | None) -> Any:
        """Set the fitted attributes; return the counts of the selected terms in the training texts."""
        n_terms = check_integer(self.n_terms, "n_terms", at_least=1)
        check_choice(self.choose, "choose", _WAYS_TO_CHOOSE)
        _check_pattern(self.token_pattern)
        documents = _check_texts(texts)
        needs_classes = self.choose == "information_gain"
        if y is None and needs_classes:
            raise ValueError("y must be the class of each text, got None; use choose='frequency' without classes")
        labels = check_labels(y, "y", len(documents)) if needs_classes and y is not None else None
        vocabulary = CountVectorizer(min_df=self.min_df, **self._settings())
        counts = vocabulary.fit_transform(documents)
        terms = vocabulary.get_feature_names_out()
        if labels is None:
            value = np.bincount(counts.indices, minlength=len(terms)).astype(np.float64)
        else:
            value = information_gain(counts, labels)
        # Terms are in alphabetical order, which a stable sort keeps for equal values. Rounded, because sums in another
        # order differ in the last digits.
        chosen = np.argsort(-value.round(12), kind="stable")[:n_terms]

        self.terms_ = terms[chosen].astype(str)
        self.__dict__.pop("information_gain_", None)
        if labels is not None:
            self.information_gain_ = value[chosen]
        self._weigh_by(TfidfTransformer().fit(counts[:, chosen]).idf_)
        return counts[:, chosen]

    def _weigh_by(self, idf: NDArray[np.float64]) -> None:
        """Set the vectorizer and the weights of the selected terms."""
        self._counter = CountVectorizer(vocabulary=self.terms_, **self._settings())
        self._weigher = TfidfTransformer()
        self._weigher.idf_ = self.idf_ = idf
        self._weigher.n_features_in_ = len(idf)

    def _settings(self) -> dict[str, Any]:
        return {"stop_words": self.stop_words, "token_pattern": self.token_pattern}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = self.choose == "information_gain"
        return tags


def _check_pattern(pattern: Any) -> None:
    """Check that a text is a regular expression; scikit-learn checks the type."""
    if isinstance(pattern, str):
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"token_pattern must be a regular expression, got {pattern!r}: {error}") from None


def _check_texts(texts: Any) -> list[str]:
    """Check texts; return them as a list."""
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        raise TypeError(f"texts must be a sequence of strings, got {type(texts).__name__}")
    documents = as_list(texts, "texts")
    if not documents:
        raise ValueError("texts must contain at least one text, got none")
    for at, text in enumerate(documents):
        if not isinstance(text, str):
            raise TypeError(f"texts must contain strings, got {type(text).__name__} at index {at}")
    return documents


def _are_texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) and value for value in values)

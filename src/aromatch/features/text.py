"""Text to vectors, as in section 5.2 of the paper: the most telling terms, tf-idf, unit norm.

How telling a term is about the class is its information gain (Yang & Pedersen 1997): how much the entropy of
the class falls, on average, once we know whether a document contains the term,

    G(t) = H(class) - P(t) H(class | t present) - P(not t) H(class | t absent).

Only presence counts, not how often. This is the mutual information of two discrete variables, so it can be
read from either side. With f(x) = x log x, N documents, N_t of them with the term, N_c of class c and N_ct of
both kinds,

    N G(t) = f(N) - f(N_t) - f(N - N_t) + sum over c of [f(N_ct) + f(N_c - N_ct) - f(N_c)],

where a class that never contains the term adds nothing: the sparse table of N_ct is all that is needed.

Where there are no classes, `choose="frequency"` takes the terms that are in most documents.

Y. Yang and J. O. Pedersen, "A comparative study on feature selection in text categorization", ICML 1997.
"""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import xlogy
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.utils.validation import check_is_fitted

from .._utils.checks import check_choice, check_integer, check_labels

WORDS = r"(?u)\b\w\w+\b"
# Without the digests and encoded pictures that files of real life hold: those are words of hundreds of letters.
SHORT_WORDS = r"(?u)\b\w{2,40}\b"
# What a file may ask for: any other expression could be made to take for ever.
_PATTERNS_IN_FILES = (WORDS, SHORT_WORDS)
_WAYS_TO_CHOOSE = ("information_gain", "frequency")


def information_gain(presence: Any, y: ArrayLike) -> NDArray[np.float64]:
    """How much knowing whether a document contains a term tells about its class, for every term.

    Parameters
    ----------
    presence : array or sparse matrix, shape (n_documents, n_terms)
        Anything but zero means that the document contains the term; counts will do.
    y : array-like, shape (n_documents,)
        The class of each document.

    Returns
    -------
    ndarray, shape (n_terms,)
        The gain in nats: 0 for a term that tells nothing, at most the entropy of the classes.

    Examples
    --------
    The first term gives the class away, the second says nothing about it.

    >>> from aromatch.features.text import information_gain
    >>> information_gain([[1, 1], [1, 0], [0, 1], [0, 0]], ["a", "a", "b", "b"]).round(3)
    array([0.693, 0.   ])
    """
    table = sparse.csr_array(presence, copy=True)
    if table.ndim != 2 or table.shape[0] == 0:
        raise ValueError(f"presence must be a table with at least one document, got the shape {table.shape}")
    table.sum_duplicates()
    n_documents, n_terms = table.shape
    classes, class_of = np.unique(check_labels(y, "y", n_documents), return_inverse=True)
    class_size = np.bincount(class_of)

    documents, terms = table.nonzero()
    # Building the table from pairs adds up the pairs that are the same: the number of documents of both.
    both = sparse.coo_array((np.ones(len(terms)), (class_of[documents], terms)), shape=(len(classes), n_terms)).tocsr()
    in_class = class_size[np.repeat(np.arange(len(classes)), np.diff(both.indptr))]
    both.data = _xlogx(both.data) + _xlogx(in_class - both.data) - _xlogx(in_class)

    with_term = np.bincount(terms, minlength=n_terms)
    gain = _xlogx(n_documents) - _xlogx(with_term) - _xlogx(n_documents - with_term) + both.sum(axis=0)
    # A term that tells nothing may come out a rounding error below zero.
    return np.asarray(np.maximum(gain / n_documents, 0.0))


def _xlogx(x: Any) -> Any:
    return xlogy(x, x)


class TextFeatures(TransformerMixin, BaseEstimator):
    r"""Vectors of unit norm from texts: tf-idf on the terms that tell most about the class.

    Which terms are chosen and how rare each is are both learned from the training texts alone, so that
    nothing of a held-out part leaks into its own evaluation. Words are lower-cased and stop words left out;
    there is no stemming.

    Parameters
    ----------
    n_terms : int, default 1000
        How many terms to keep: the width of the vectors. More terms describe rare subjects better, but the
        matrix that a learner fills grows with the square. A vocabulary that is smaller is kept whole.
    stop_words : "english", list of str or None, default "english"
        The words to leave out; "english" is scikit-learn's list, None leaves all words in.
    min_df : int or float, default 1
        Terms in fewer training documents than this (a share of them when it is a float) are not considered.
    token_pattern : str, default r"(?u)\b\w\w+\b"
        What a word is, as a regular expression; by default two or more letters, digits or underscores.
    choose : {"information_gain", "frequency"}, default "information_gain"
        Keep the terms that tell most about the class, or, where there are no classes, those in most documents.

    Attributes
    ----------
    terms_ : ndarray of str, shape (n,)
        The chosen terms, the most telling or most frequent first (equal ones in alphabetical order): the columns.
    information_gain_ : ndarray, shape (n,)
        The gain of each chosen term, in nats; only when terms are chosen by it.
    idf_ : ndarray, shape (n,)
        The inverse document frequency of each chosen term, by scikit-learn's smooth formula.

    Examples
    --------
    >>> from aromatch.features import TextFeatures
    >>> texts = ["the cat purrs", "a cat and a mouse", "the dog barks", "a dog and a mouse"]
    >>> features = TextFeatures(n_terms=3).fit(texts, ["cats", "cats", "dogs", "dogs"])
    >>> features.get_feature_names_out()
    array(['cat', 'dog', 'barks'], dtype=object)
    >>> features.transform(["dog, dog, cat!"]).toarray().round(3)
    array([[0.447, 0.894, 0.   ]])

    A text with none of the terms has no direction: its row is empty.

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
        """Choose the terms and weigh them.

        Parameters
        ----------
        texts : iterable of str
            The training documents.
        y : array-like, shape (n_documents,)
            The class of each document; not looked at when terms are chosen by frequency.

        Returns
        -------
        TextFeatures
            The transformer itself.
        """
        self._learn(texts, y)
        return self

    def fit_transform(self, texts: Iterable[str], y: ArrayLike | None = None) -> Any:
        """Choose the terms and give the vectors of the training texts, in one pass over them.

        Parameters
        ----------
        texts : iterable of str
            The training documents.
        y : array-like, shape (n_documents,)
            The class of each document; not looked at when terms are chosen by frequency.

        Returns
        -------
        CSR matrix of float64, shape (n_documents, n)
            The same as `fit(texts, y).transform(texts)`.
        """
        counts = self._learn(texts, y)
        return self._weigher.transform(counts)

    def transform(self, texts: Iterable[str]) -> Any:
        """Give the vectors of texts.

        Parameters
        ----------
        texts : iterable of str
            The documents.

        Returns
        -------
        CSR matrix of float64, shape (n_documents, n)
            Rows have norm 1, or are empty where a text contains none of the chosen terms.
        """
        check_is_fitted(self)
        return self._weigher.transform(self._counter.transform(_check_texts(texts)))

    def words(self, text: str) -> list[str]:
        """Give the words of a text, as they would be counted: without stop words, chosen as terms or not."""
        check_is_fitted(self)
        analyse = self._counter.build_analyzer()
        return list(analyse(text))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Give the chosen terms, in the order of the columns.

        Parameters
        ----------
        input_features : ignored
            Here because scikit-learn passes it.

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
        """Give what a model file has to hold of it: a header and arrays, from which `from_parts` makes it again."""
        check_is_fitted(self)
        if self.token_pattern not in _PATTERNS_IN_FILES:
            raise ValueError(f"token_pattern {self.token_pattern!r} cannot be saved, only the usual ones can")
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
        """Make it again of what a file says, or say in a ValueError what is wrong with that."""
        names = {"n_terms", "stop_words", "min_df", "token_pattern", "choose", "terms"}
        if not isinstance(header, dict) or set(header) != names:
            raise ValueError("its text features are none")
        settings = dict(header)
        terms, stop_words = settings.pop("terms"), header["stop_words"]
        check_choice(header["token_pattern"], "the token pattern of its text features", _PATTERNS_IN_FILES)
        check_choice(header["choose"], "the choice of its text features", _WAYS_TO_CHOOSE)
        check_integer(header["n_terms"], "the number of terms of its text features", at_least=1)
        if not _are_texts(terms) or not terms or len(set(terms)) < len(terms):
            raise ValueError("the terms of its text features are no terms")
        if not (stop_words in (None, "english") or _are_texts(stop_words)):
            raise ValueError("the stop words of its text features are no words")
        expected = {"idf", "gain"} if header["choose"] == "information_gain" else {"idf"}
        is_right = set(arrays) == expected and all(
            array.shape == (len(terms),) and array.dtype == np.float64 and np.isfinite(array).all()
            for array in arrays.values()
        )
        if not is_right or (arrays["idf"] <= 0).any():
            raise ValueError(f"the weights of its {len(terms)} terms are no such")
        features = cls(**settings)
        features.terms_ = np.array(terms, dtype=str)
        if "gain" in arrays:
            features.information_gain_ = arrays["gain"]
        features._weigh_by(arrays["idf"])
        return features

    # -- inside -------------------------------------------------------------------------------------------

    def _learn(self, texts: Iterable[str], y: ArrayLike | None) -> Any:
        """Set what `fit` learns; give the counts of the chosen terms in the training texts."""
        n_terms = check_integer(self.n_terms, "n_terms", at_least=1)
        check_choice(self.choose, "choose", _WAYS_TO_CHOOSE)
        documents = _check_texts(texts)
        needs_classes = self.choose == "information_gain"
        if y is None and needs_classes:
            raise ValueError("y must be the class of each text: information gain needs classes, got None")
        labels = check_labels(y, "y", len(documents)) if needs_classes and y is not None else None
        vocabulary = CountVectorizer(min_df=self.min_df, **self._settings())
        counts = vocabulary.fit_transform(documents)
        terms = vocabulary.get_feature_names_out()
        if labels is None:
            value = np.bincount(counts.indices, minlength=len(terms)).astype(np.float64)
        else:
            value = information_gain(counts, labels)
        # The terms are in alphabetical order, and a stable sort leaves equal values so. The same numbers
        # summed in another order differ in the last digits: unrounded, those would decide between terms.
        chosen = np.argsort(-value.round(12), kind="stable")[:n_terms]

        self.terms_ = terms[chosen].astype(str)
        self.__dict__.pop("information_gain_", None)
        if labels is not None:
            self.information_gain_ = value[chosen]
        self._weigh_by(TfidfTransformer().fit(counts[:, chosen]).idf_)
        return counts[:, chosen]

    def _weigh_by(self, idf: NDArray[np.float64]) -> None:
        """Get ready to count the chosen terms, and to weigh them."""
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


def _check_texts(texts: Any) -> list[str]:
    """Return the documents as a list, or say which of them is not a text."""
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        raise TypeError(f"texts must be a sequence of texts, got {type(texts).__name__}")
    documents = list(texts)
    if not documents:
        raise ValueError("texts must be at least one text, got none")
    for at, text in enumerate(documents):
        if not isinstance(text, str):
            raise TypeError(f"texts must be strings, but number {at} is of type {type(text).__name__}")
    return documents


def _are_texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) and value for value in values)

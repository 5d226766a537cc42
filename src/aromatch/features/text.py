"""Text to vectors, as in section 5.2 of the paper: the most telling terms, tf-idf, unit norm.

How telling a term is about the class is its information gain (Yang & Pedersen 1997): how much the entropy of
the class falls, on average, once we know whether a document contains the term,

    G(t) = H(class) - P(t) H(class | t present) - P(not t) H(class | t absent).

Only presence counts, not how often. This is the mutual information of two discrete variables, so it can be
read from either side. With f(x) = x log x, N documents, N_t of them with the term, N_c of class c and N_ct of
both kinds,

    N G(t) = f(N) - f(N_t) - f(N - N_t) + sum over c of [f(N_ct) + f(N_c - N_ct) - f(N_c)],

where a class that never contains the term adds nothing: the sparse table of N_ct is all that is needed.

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

from .._checks import check_integer, check_labels


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

    Attributes
    ----------
    terms_ : ndarray of str, shape (n,)
        The chosen terms, the most telling first (terms of equal gain in alphabetical order): the columns.
    information_gain_ : ndarray, shape (n,)
        The gain of each chosen term, in nats.
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
        token_pattern: str = r"(?u)\b\w\w+\b",
    ) -> None:
        self.n_terms = n_terms
        self.stop_words = stop_words
        self.min_df = min_df
        self.token_pattern = token_pattern

    def fit(self, texts: Iterable[str], y: ArrayLike | None = None) -> Self:
        """Choose the terms and weigh them.

        Parameters
        ----------
        texts : iterable of str
            The training documents.
        y : array-like, shape (n_documents,)
            The class of each document.

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
            The class of each document.

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

    def _learn(self, texts: Iterable[str], y: ArrayLike | None) -> Any:
        """Set what `fit` learns; give the counts of the chosen terms in the training texts."""
        n_terms = check_integer(self.n_terms, "n_terms", at_least=1)
        documents = _check_texts(texts)
        if y is None:
            raise ValueError("y must be the class of each text: information gain needs classes, got None")
        labels = check_labels(y, "y", len(documents))
        settings = {"stop_words": self.stop_words, "token_pattern": self.token_pattern}
        vocabulary = CountVectorizer(min_df=self.min_df, **settings)
        counts = vocabulary.fit_transform(documents)
        terms = vocabulary.get_feature_names_out()
        gain = information_gain(counts, labels)
        # The terms are in alphabetical order, and a stable sort leaves equal gains so. The same numbers
        # summed in another order differ in the last digits: unrounded, those would decide between terms.
        chosen = np.argsort(-gain.round(12), kind="stable")[:n_terms]

        self._counter = CountVectorizer(vocabulary=terms[chosen], **settings)
        self._weigher = TfidfTransformer().fit(counts[:, chosen])
        self.terms_ = terms[chosen].astype(str)
        self.information_gain_ = gain[chosen]
        self.idf_ = self._weigher.idf_
        return counts[:, chosen]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
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

"""Text features: information gain against two independent computations, and the transformer's behaviour."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.stats import entropy
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import mutual_info_classif
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from aromatch.features import TextFeatures
from aromatch.features.text import information_gain

TEXTS = [
    "The stock market fell; shares fell again today.",
    "Shares rose when the market opened.",
    "Traders sold shares in a nervous market.",
    "The striker scored a goal in the final match.",
    "A late goal decided the match.",
    "The keeper saved the match with one hand.",
]
CLASSES = ["money", "money", "money", "sport", "sport", "sport"]


def one_term_at_a_time(presence, y):
    """Yang & Pedersen's formula (1), straight: the fall of the entropy of the class, term by term."""

    def class_entropy(labels):
        return entropy(np.unique(labels, return_counts=True)[1]) if len(labels) else 0.0

    gains = []
    for contains in np.asarray(presence).T != 0:
        share = contains.mean()
        left = share * class_entropy(y[contains]) + (1 - share) * class_entropy(y[~contains])
        gains.append(class_entropy(y) - left)
    return np.array(gains)


def random_corpus(seed, n_documents=300, n_terms=80, n_classes=7):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n_documents)
    counts = rng.poisson(rng.gamma(0.3, size=(n_classes, n_terms))[y])
    return counts, y


@pytest.mark.parametrize("seed", range(3))
def test_information_gain_is_the_mutual_information_that_scikit_learn_computes(seed):
    counts, y = random_corpus(seed)
    expected = mutual_info_classif(counts > 0, y, discrete_features=True)
    assert_allclose(information_gain(sparse.csr_array(counts), y), expected, rtol=1e-10, atol=1e-13)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_information_gain_is_the_fall_of_entropy_computed_term_by_term(data):
    shape = data.draw(st.tuples(st.integers(1, 12), st.integers(1, 6)))
    presence = data.draw(hnp.arrays(np.int64, shape, elements=st.integers(0, 2)))
    y = data.draw(hnp.arrays(np.int64, shape[0], elements=st.integers(0, 3)))
    gain = information_gain(presence, y)
    assert_allclose(gain, one_term_at_a_time(presence, y), atol=1e-12)
    assert (gain >= 0).all()


def test_only_presence_counts_for_information_gain_in_any_form_of_matrix():
    counts, y = random_corpus(5)
    expected = information_gain(counts > 0, y)
    explicit_zeros = sparse.csr_array(np.ones(counts.shape))
    explicit_zeros.data = counts.ravel().astype(float)
    rows, columns = np.repeat(counts.nonzero(), 2, axis=1)
    pointers = np.searchsorted(rows, np.arange(len(counts) + 1))
    duplicates = sparse.csr_array((np.ones(len(columns)), columns, pointers), shape=counts.shape)
    for form in (counts, sparse.csc_matrix(counts), explicit_zeros, duplicates):
        assert_array_equal(information_gain(form, y), expected)
    assert explicit_zeros.nnz == counts.size
    assert duplicates.nnz == len(columns)


def test_labels_may_be_words_and_their_names_do_not_matter():
    counts, y = random_corpus(1)
    words = np.array(["g", "f", "e", "d", "c", "b", "a"])[y]
    assert_allclose(information_gain(counts, words), information_gain(counts, y), rtol=1e-12, atol=1e-15)


def test_a_term_that_tells_nothing_has_a_gain_of_zero_and_not_a_rounding_error_below():
    # Half of each class contains it; unguarded, this comes out as -1.1e-16.
    assert information_gain([[1], [0], [1], [0]], [0, 0, 1, 1]).tolist() == [0.0]


@pytest.mark.parametrize(
    ("presence", "y", "message"),
    [
        (np.zeros((0, 3)), [], "at least one document"),
        (np.ones((2, 3)), [0, 1, 1], "y must have one label for each of the 2 rows, got 3"),
        (np.ones((2, 3)), [0, np.nan], "y contains NaN"),
    ],
)
def test_information_gain_of_a_bad_table_is_refused(presence, y, message):
    with pytest.raises(ValueError, match=message):
        information_gain(presence, y)


def test_vectors_are_scikit_learns_tf_idf_restricted_to_the_most_telling_terms():
    features = TextFeatures(n_terms=4).fit(TEXTS, CLASSES)
    reference = TfidfVectorizer(stop_words="english", vocabulary=features.terms_).fit(TEXTS)
    new = [*TEXTS, "goal goal market", "nothing known here"]
    assert_allclose(features.transform(new).toarray(), reference.transform(new).toarray(), rtol=1e-14)
    assert_allclose(features.idf_, reference.idf_)


def test_the_chosen_terms_have_the_highest_gain_and_ties_go_by_the_alphabet():
    features = TextFeatures(n_terms=6).fit(TEXTS, CLASSES)
    # Three terms are in all texts of one class and in none of the other, goal in two of three; then come the
    # terms of a single text, all of equal gain.
    assert features.terms_.tolist() == ["market", "match", "shares", "goal", "decided", "fell"]
    assert_allclose(features.information_gain_[:3], np.log(2))
    assert (np.diff(features.information_gain_) <= 1e-15).all()


def test_terms_of_equal_gain_are_not_told_apart_by_rounding():
    # The classes of each term are a permutation of those of the others, so the gains are equal in exact
    # arithmetic, but their sums run in another order.
    rng = np.random.default_rng(0)
    sizes = [1, 3, 5, 7, 11, 13, 2, 9]
    y = np.repeat(np.arange(8), 13)
    texts = [""] * len(y)
    for term in "zyxwvutsrq":
        for which, size in zip(rng.permutation(8), sizes, strict=True):
            for document in np.flatnonzero(y == which)[:size]:
                texts[document] += f" {term}{term}"
    features = TextFeatures(stop_words=None).fit(texts, y)
    assert features.terms_.tolist() == sorted(term * 2 for term in "zyxwvutsrq")


def test_rows_have_norm_one_and_a_text_without_terms_has_an_empty_row():
    X = TextFeatures(n_terms=5).fit(TEXTS, CLASSES).transform([*TEXTS, "elephants"])
    assert X.format == "csr"
    assert X.dtype == np.float64
    assert_allclose(sparse.linalg.norm(X, axis=1), [1, 1, 1, 1, 1, 1, 0])


def test_fit_transform_is_fit_then_transform():
    at_once = TextFeatures(n_terms=7).fit_transform(TEXTS, CLASSES)
    assert_array_equal(at_once.toarray(), TextFeatures(n_terms=7).fit(TEXTS, CLASSES).transform(TEXTS).toarray())


def test_stop_words_are_left_out_and_words_are_not_stemmed():
    terms = TextFeatures(min_df=1).fit(TEXTS, CLASSES).terms_.tolist()
    assert "the" not in terms
    assert "with" not in terms
    assert {"traders", "scored", "opened"} <= set(terms)
    assert "the" in TextFeatures(stop_words=None).fit(TEXTS, CLASSES).terms_
    assert "match" not in TextFeatures(stop_words=["match"]).fit(TEXTS, CLASSES).terms_


def test_rare_terms_are_not_considered_when_min_df_says_so():
    assert sorted(TextFeatures(min_df=2).fit(TEXTS, CLASSES).terms_) == ["goal", "market", "match", "shares"]


def test_token_pattern_says_what_a_word_is():
    features = TextFeatures(token_pattern=r"\d+").fit(["room 12", "room 7"], [0, 1])
    assert sorted(features.terms_) == ["12", "7"]
    assert features.transform(["7"]).nnz == 1


def test_a_vocabulary_smaller_than_n_terms_is_kept_whole():
    features = TextFeatures(n_terms=10**6).fit(TEXTS, CLASSES)
    assert features.transform(TEXTS).shape == (6, len(features.terms_))
    assert features.get_feature_names_out().tolist() == features.terms_.tolist()


def test_it_works_in_a_pipeline_and_clones():
    pipeline = clone(make_pipeline(TextFeatures(n_terms=10), LogisticRegression()))
    assert pipeline.fit(TEXTS, CLASSES).predict(["shares", "a goal"]).tolist() == ["money", "sport"]
    assert not hasattr(clone(pipeline[0]), "terms_")
    assert clone(pipeline[0]).get_params() == pipeline[0].get_params()


def test_arrays_and_generators_of_texts_are_accepted():
    expected = TextFeatures().fit(TEXTS, CLASSES).transform(TEXTS).toarray()
    for texts in (np.array(TEXTS), np.array(TEXTS, dtype=object), tuple(TEXTS)):
        assert_array_equal(TextFeatures().fit(texts, CLASSES).transform(texts).toarray(), expected)
    lazily = TextFeatures().fit((text for text in TEXTS), CLASSES)
    assert_array_equal(lazily.transform(text for text in TEXTS).toarray(), expected)


def test_a_second_fit_that_fails_changes_nothing():
    features = TextFeatures(n_terms=5).fit(TEXTS, CLASSES)
    before = features.transform(TEXTS).toarray()
    with pytest.raises(ValueError, match="one label for each"):
        features.fit(TEXTS, CLASSES[:2])
    assert_array_equal(features.transform(TEXTS).toarray(), before)


@pytest.mark.parametrize(
    ("texts", "y", "error", "message"),
    [
        ([], [], ValueError, "texts"),
        (TEXTS, None, ValueError, "y must be the class of each text"),
        (TEXTS, CLASSES[:4], ValueError, "y must have one label for each of the 6 rows, got 4"),
        ("one text", ["a"], TypeError, "texts must be a sequence of strings, got str"),
        (None, ["a"], TypeError, "texts must be a sequence of strings, got NoneType"),
        (["good", b"bytes"], [0, 1], TypeError, "texts .*got bytes at index 1"),
        (["good", None], [0, 1], TypeError, "got NoneType at index 1"),
        (np.eye(2), [0, 1], TypeError, "got ndarray at index 0"),
        (["the of and"], [0], ValueError, "vocabulary"),
    ],
)
def test_bad_input_to_fit_is_refused_and_named(texts, y, error, message):
    with pytest.raises(error, match=message):
        TextFeatures().fit(texts, y)


@pytest.mark.parametrize(
    ("n_terms", "error"),
    [(0, ValueError), (-3, ValueError), (2.0, TypeError), (True, TypeError), (None, TypeError)],
)
def test_a_number_of_terms_that_is_no_number_of_terms_is_refused(n_terms, error):
    with pytest.raises(error, match="n_terms must be"):
        TextFeatures(n_terms=n_terms).fit(TEXTS, CLASSES)


def test_methods_before_fit_say_so():
    with pytest.raises(NotFittedError):
        TextFeatures().transform(TEXTS)
    with pytest.raises(NotFittedError):
        TextFeatures().get_feature_names_out()


def test_texts_to_transform_are_checked_too():
    features = TextFeatures().fit(TEXTS, CLASSES)
    with pytest.raises(TypeError, match="got int at index 0"):
        features.transform([3])
    with pytest.raises(ValueError, match="at least one text"):
        features.transform([])


def test_without_classes_the_terms_in_most_documents_are_kept():
    texts = ["tea tea tea cup", "tea mug", "cup mug", "tea oil"]
    features = TextFeatures(n_terms=2, choose="frequency").fit(texts)
    assert features.terms_.tolist() == ["tea", "cup"]  # cup and mug are equally frequent: alphabetical order
    assert not hasattr(features, "information_gain_")
    np.testing.assert_array_equal(features.fit_transform(texts).toarray(), features.transform(texts).toarray())
    with pytest.raises(ValueError, match="choose must be one of 'information_gain', 'frequency'"):
        TextFeatures(choose="dice").fit(texts)


@pytest.mark.parametrize("choose", ["information_gain", "frequency"])
def test_features_come_back_from_the_parts_of_a_file_to_the_bit(choose):
    fitted = TextFeatures(n_terms=5, choose=choose, stop_words=["the"]).fit(TEXTS, CLASSES)
    again = TextFeatures.from_parts(*fitted.to_parts())
    assert again.get_params() == fitted.get_params()
    assert again.terms_.tolist() == fitted.terms_.tolist()
    assert again.transform(TEXTS).toarray().tobytes() == fitted.transform(TEXTS).toarray().tobytes()
    assert again.words("The dog, a DOG") == fitted.words("The dog, a DOG") == ["dog", "dog"]


def test_a_pattern_that_could_take_for_ever_does_not_come_from_a_file():
    fitted = TextFeatures(token_pattern=r"\w+").fit(TEXTS, CLASSES)
    with pytest.raises(ValueError, match="cannot be saved"):
        fitted.to_parts()
    header, arrays = TextFeatures().fit(TEXTS, CLASSES).to_parts()
    with pytest.raises(ValueError, match="token_pattern"):
        TextFeatures.from_parts({**header, "token_pattern": "(a+)+$"}, arrays)

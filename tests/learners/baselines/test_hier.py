"""HIER against cases worked by hand and against scikit-learn's own probabilities."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale

import aromatch as am
from aromatch.learners import hierarchy_from_dots
from aromatch.learners.baselines.hier import class_similarity


def wine(n_classes=3):
    X, y = load_wine(return_X_y=True)
    keep = y < n_classes
    return scale(X)[keep], y[keep]


def test_classes_are_alike_by_the_height_of_their_lowest_common_ancestor():
    """root (3) > rec (2) > sport (1) > hockey, baseball; rec > autos; root > sci (1) > space; root > talk."""
    names = ["rec.sport.hockey", "rec.sport.baseball", "rec.autos", "sci.space", "talk"]
    expected = np.eye(5)
    expected[0, 1] = expected[1, 0] = 1 - 1 / 3
    expected[2, :2] = expected[:2, 2] = 1 - 2 / 3
    np.testing.assert_allclose(class_similarity(names, hierarchy_from_dots(names)), expected)


def test_a_hierarchy_of_one_level_is_flat():
    np.testing.assert_array_equal(class_similarity([3, 1, 2], {1: (), 2: (), 3: ()}), np.eye(3))
    np.testing.assert_array_equal(class_similarity([3, 1, 2], {}), np.eye(3))


def test_nodes_are_distinguished_by_their_whole_path():
    names = ["a.x.1", "b.x.1"]
    np.testing.assert_array_equal(class_similarity(names, hierarchy_from_dots(names)), np.eye(2))


def test_classes_that_are_not_in_y_still_have_their_place_in_the_hierarchy():
    paths = {0: ("a",), 1: ("a",), 9: ("b", "c", "d")}
    np.testing.assert_allclose(class_similarity([0, 1], paths), [[1, 0.75], [0.75, 1]])


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_are_those_of_the_logistic_regression(n_classes, container):
    X, y = wine(n_classes)
    model = am.HIER(C=0.5).fit(container(X), y)
    expected = LogisticRegression(C=0.5, max_iter=1000).fit(container(X), y).predict_proba(X)
    np.testing.assert_allclose(model.transform(container(X)), expected, atol=1e-10)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_scores_are_the_expected_likeness_of_the_classes(container):
    X, y = wine()
    model = am.HIER(hierarchy={0: ("red",), 1: ("red",), 2: ("white",)}).fit(X, y)
    S = np.array([[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]])
    np.testing.assert_array_equal(model.S_, S)
    pi = model.transform(X)
    expected = np.array([[sum(a[i] * S[i, j] * b[j] for i in range(3) for j in range(3)) for b in pi] for a in pi[:9]])
    np.testing.assert_allclose(model.similarity(container(X[:9]), container(X)), expected, atol=1e-12)
    numbers = np.array([[0, 3, 70], [8, 9, 100], [0, 0, 0]])
    i, j, k = numbers.T
    Q, P = container(X[:9]), container(X)
    np.testing.assert_allclose(model.pair_score(Q, P, numbers[:, :2]), expected[i, j], atol=1e-12)
    np.testing.assert_allclose(model.margins(numbers, Q, P), expected[i, j] - expected[i, k], atol=1e-12)


def test_a_hierarchy_survives_a_file_whatever_its_keys(tmp_path):
    X, y = wine()
    for names in ([0, 1, 2], ["a.b", "a.c", "d"]):
        hierarchy = {names[0]: ("a",), names[1]: ("a",), names[2]: ()}
        model = am.HIER(hierarchy=hierarchy).fit(X, np.array(names)[y])
        model.save(tmp_path / "model")
        loaded = am.load(tmp_path / "model")
        assert loaded.hierarchy == hierarchy
        np.testing.assert_array_equal(loaded.similarity(X), model.similarity(X))


@pytest.mark.parametrize(
    ("hierarchy", "error", "message"),
    [
        ({0: ("a",), 1: ("a",)}, ValueError, r"\[2\] of y are not in it"),
        ([("a",)], TypeError, "hierarchy must be None or a mapping"),
        ({0: "a", 1: "a", 2: "a"}, TypeError, "tuple of its ancestors"),
        ({0: None, 1: (), 2: ()}, TypeError, "tuple of its ancestors"),
    ],
)
def test_a_hierarchy_that_does_not_fit_is_refused(hierarchy, error, message):
    with pytest.raises(error, match=message):
        am.HIER(hierarchy=hierarchy).fit(*wine())


@pytest.mark.parametrize("names", ["rec.autos", 3, [3]])
def test_names_with_dots_must_be_texts(names):
    with pytest.raises(TypeError, match="names must be"):
        hierarchy_from_dots(names)

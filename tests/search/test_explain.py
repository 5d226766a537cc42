"""Parts of a score, against loops over all pairs of features."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

import aromatch as am
from aromatch.search import explain
from grouped_rows import groups

LEARNERS = {
    "diagonal": lambda: am.DiagonalAROMA(r=0.1),
    "touched": lambda: am.DiagonalAROMA(r=0.1, init="identity", cells="touched"),
    "factored": lambda: am.FactoredAROMA(r=0.1),
    "full": lambda: am.FullAROMA(r=0.1),
    "moment": lambda: am.MomentAROMA(0.01),
    "oasis": lambda: am.OASIS(),
}


def learned(name, width=8):
    X, y, _, _ = groups(n_rows=60, width=width)
    X[np.abs(X) < 0.2] = 0
    return LEARNERS[name]().fit_triplets(am.triplets.from_labels(y, 200, random_state=0), X), X


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, lambda x: x.reshape(-1)])
@pytest.mark.parametrize("name", LEARNERS)
def test_parts_are_those_of_a_loop_over_all_pairs(name, container):
    model, X = learned(name)
    q, p = X[3], X[5]
    W = model.W_.toarray() if sparse.issparse(model.W_) else model.W_
    every = {(i, j): q[i] * W[i, j] * p[j] for i in range(8) for j in range(8) if q[i] and p[j]}
    found = explain(model, container(q[np.newaxis]), container(p[np.newaxis]), top=12)
    expected = sorted(every, key=lambda pair: -abs(every[pair]))[:12]
    assert [(part.query_feature, part.object_feature) for part in found.parts] == expected
    np.testing.assert_allclose([part.value for part in found.parts], [every[pair] for pair in expected], rtol=1e-9)
    assert found.score == pytest.approx(sum(every.values()))
    assert found.rest == pytest.approx(sum(every.values()) - sum(part.value for part in found.parts), abs=1e-12)
    for part in found.parts:
        if name == "oasis":
            assert part.std is None
        else:
            one, other = np.zeros((1, 8)), np.zeros((1, 8))
            one[0, part.query_feature], other[0, part.object_feature] = q[part.query_feature], p[part.object_feature]
            assert part.std == pytest.approx(model.pair_std(one, other)[0])


def test_names_come_from_a_vectoriser_a_list_or_the_model():
    texts = ["tea in a cup", "a cup of tea", "oil for the car", "a car needs oil"]
    vectoriser = TfidfVectorizer().fit(texts)
    X = vectoriser.transform(texts)
    model = am.DiagonalAROMA(r=0.1).fit_triplets([[0, 1, 2], [2, 3, 0]] * 5, X)
    found = explain(model, X[0], X[1], top=3, query_names=vectoriser, object_names=vectoriser)
    assert {part.query_feature for part in found.parts} <= {"tea", "cup", "in"}
    assert {part.object_feature for part in found.parts} <= {"tea", "cup", "of"}
    assert "in x of" in str(found)
    with pytest.raises(ValueError, match="query_names must have"):
        explain(model, X[0], X[1], query_names=["only", "two"])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"q": np.ones((2, 8))}, ValueError, "q must be"),
        ({"p": np.ones(7)}, ValueError, "P has 7 features"),
        ({"top": 0}, ValueError, "top must be at least 1"),
        ({"model": am.Euclidean()}, TypeError, "model"),
    ],
)
def test_what_cannot_be_explained_is_named(arguments, error, message):
    model, X = learned("diagonal")
    with pytest.raises(error, match=message):
        explain(**{"model": model, "q": X[0], "p": X[1], **arguments})


def test_pairs_that_no_triplet_touched_are_as_unsure_as_at_the_start():
    model = am.DiagonalAROMA(r=0.1, init="identity", cells="touched").fit_triplets([[0, 1, 2]], np.eye(4))
    found = {part[:2]: part.std for part in explain(model, np.full(4, 0.5), np.full(4, 2.0), top=16).parts}
    assert len(found) == 16
    assert found[3, 3] == found[2, 1] == 1.0
    assert found[0, 1] < 1.0
    assert found[0, 1] == pytest.approx(float(model.Sigma_[0, 1]) ** 0.5)

"""Parts of a score, against loops over all pairs of features; cuts of W, against the ranking of the whole."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

import aromatch as am
from aromatch.search import explain, low_rank
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


# -- low rank ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LEARNERS)
def test_the_factors_are_those_of_the_singular_values(name):
    model, X = learned(name)
    W = model.W_.toarray() if sparse.issparse(model.W_) else model.W_
    U, values, Vt = np.linalg.svd(W)
    found = low_rank(model, 3, X)
    np.testing.assert_allclose(found.left @ found.right.T, (U[:, :3] * values[:3]) @ Vt[:3], atol=1e-8)
    assert found.lost_share == pytest.approx(1 - np.sum(values[:3] ** 2) / np.sum(values**2), abs=1e-9)
    assert "rank 3" in str(found)


def test_the_cost_is_that_of_the_rankings():
    model, X = learned("moment")
    found = low_rank(model, 2, X)
    whole, cut = model.similarity(X), (X @ found.left) @ (X @ found.right).T
    for scores in (whole, cut):
        np.fill_diagonal(scores, -np.inf)
    first, second = (np.argsort(-scores, axis=1, kind="stable")[:, :10] for scores in (whole, cut))
    shared = np.mean([len(np.intersect1d(*pair)) / 10 for pair in zip(first, second, strict=True)])
    assert found.overlap == pytest.approx(shared)
    assert found.first_kept == pytest.approx(np.mean(first[:, 0] == second[:, 0]))
    everything = low_rank(model, 8, X, X.copy())
    assert everything.overlap == 1.0
    assert everything.lost_share == pytest.approx(0, abs=1e-12)
    assert everything.swapped < 0.001
    assert low_rank(model, 2).overlap is None


def swapped(whole, cut, generator):
    """Share of pairs of columns that two matrices of scores order otherwise."""
    i = generator.integers(whole.shape[1], size=200_000)
    j = (i + generator.integers(1, whole.shape[1], size=len(i))) % whole.shape[1]
    rows = generator.integers(len(whole), size=200_000)
    return np.mean((whole[rows, i] - whole[rows, j]) * (cut[rows, i] - cut[rows, j]) < 0)


@pytest.mark.parametrize("name", ["moment", "touched", "oasis"])
def test_swapped_comparisons_are_those_of_rows_that_point_anywhere_or_of_the_rows_given(name):
    model, X = learned(name)
    generator = np.random.default_rng(1)
    for k in (1, 3):
        anywhere, of_rows = low_rank(model, k), low_rank(model, k, X, X.copy())
        Q, P = generator.normal(size=(2, 2_000, 8))
        for found, queries, objects, tolerance in ((anywhere, Q, P, 0.02), (of_rows, X, X, 0.02)):
            cut = (queries @ found.left) @ (objects @ found.right).T
            expected = swapped(model.similarity(queries, objects), cut, generator)
            assert found.swapped == pytest.approx(expected, abs=tolerance)
            assert found.swapped > 0.05


def test_a_model_that_knows_nothing_has_factors_of_zeros():
    model = am.DiagonalAROMA(cells="touched").fit_triplets(np.empty((0, 3), dtype=int), np.eye(6))
    found = low_rank(model, 2)
    assert found.left.shape == (6, 2)
    assert not found.left.any()
    assert found.lost_share == found.swapped == 0.0


@pytest.mark.parametrize(("k", "message"), [(0, "k must be at least 1"), (9, "k must be at most 8")])
def test_ranks_that_w_cannot_have_are_refused(k, message):
    model, _ = learned("factored")
    with pytest.raises(ValueError, match=message):
        low_rank(model, k)


def test_pairs_that_no_triplet_touched_are_as_unsure_as_at_the_start():
    model = am.DiagonalAROMA(r=0.1, init="identity", cells="touched").fit_triplets([[0, 1, 2]], np.eye(4))
    found = {part[:2]: part.std for part in explain(model, np.full(4, 0.5), np.full(4, 2.0), top=16).parts}
    assert len(found) == 16
    assert found[3, 3] == found[2, 1] == 1.0
    assert found[0, 1] < 1.0
    assert found[0, 1] == pytest.approx(float(model.Sigma_[0, 1]) ** 0.5)

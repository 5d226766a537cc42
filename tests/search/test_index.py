"""The index against scores of all objects, sorted; exploring against the learned distribution."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import aromatch as am
from aromatch._utils.nearest import top_k
from aromatch.search import Index
from aromatch.search import index as index_module
from aromatch.search.stores import memory
from grouped_rows import groups

LEARNERS = {
    "diagonal": lambda: am.DiagonalAROMA(r=0.1),
    "touched": lambda: am.DiagonalAROMA(r=0.1, cells="touched"),
    "factored": lambda: am.FactoredAROMA(r=0.1),
    "full": lambda: am.FullAROMA(r=0.1),
    "moment": lambda: am.MomentAROMA(0.01),
    "oasis": lambda: am.OASIS(),
}
CONFIDENT = [name for name in LEARNERS if name != "oasis"]


def learned(name="factored", n_rows=200, width=12, container=np.asarray, n_triplets=500):
    X, y, _, _ = groups(n_rows=n_rows, width=width)
    triplets = am.triplets.from_labels(y, n_triplets, random_state=0)
    return LEARNERS[name]().fit_triplets(triplets, X), container(X)


def sorted_ids(scores, k):
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]


@pytest.mark.parametrize("container", [np.asarray, np.asfortranarray, np.float32, sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("name", LEARNERS)
def test_what_is_found_is_what_a_full_sort_finds(name, container):
    model, X = learned(name, container=container)
    found = Index(model, X).search(X[:20], k=7)
    scores = model.similarity(X[:20], X)
    np.testing.assert_array_equal(found.ids, sorted_ids(scores, 7))
    np.testing.assert_allclose(found.scores, np.take_along_axis(scores, found.ids, axis=1), rtol=1e-5, atol=1e-7)
    if name == "oasis":
        assert found.stds is None
    else:
        pairs = np.column_stack([np.repeat(np.arange(20), 7), found.ids.ravel()])
        np.testing.assert_allclose(found.stds.ravel(), model.pair_std(X, None, pairs), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("queries_per_chunk", [1, 7, 1_000])
@pytest.mark.parametrize("numbers_per_block", [1, 300, 10**6])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_blocks_of_any_size_find_the_same(numbers_per_block, queries_per_chunk, container, monkeypatch):
    model, X = learned(n_rows=60, container=container)
    expected = Index(model, X).search(X, k=5)
    monkeypatch.setattr(memory, "NUMBERS_PER_BLOCK", numbers_per_block)
    monkeypatch.setattr(index_module, "_QUERIES_PER_CHUNK", queries_per_chunk)
    found = Index(model, X).search(X, k=5)
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_allclose(found.stds, expected.stds)


@pytest.mark.parametrize("name", ["diagonal", "factored", "moment"])
def test_queries_and_objects_may_have_different_features_and_single_precision(name):
    rng = np.random.default_rng(0)
    Q, P = rng.normal(size=(30, 5)), rng.normal(size=(40, 7))
    model = LEARNERS[name]()
    if name != "moment":
        model.set_params(dtype="float32")
    model.fit_triplets(np.column_stack([rng.integers(30, size=99), rng.integers(40, size=(99, 2))]), Q, P)
    index = Index(model, P.astype(np.float32))
    scores = model.similarity(Q, P.astype(np.float32))
    np.testing.assert_array_equal(index.search(Q).ids, sorted_ids(scores, 10))
    drawn = index.search(Q, explore="thompson", random_state=0)
    vectors = model.sample_transform(Q, random_state=0)
    np.testing.assert_array_equal(drawn.ids, sorted_ids(vectors @ P.astype(np.float32).T, 10))
    means = np.take_along_axis(scores, drawn.ids, axis=1)
    np.testing.assert_allclose(drawn.scores, means, rtol=1e-4, atol=1e-5)


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=12), min_size=1, max_size=4), st.integers(1, 14))
@settings(max_examples=200, deadline=None)
def test_equal_scores_come_in_the_order_of_their_columns(rows, k):
    width = min(map(len, rows))
    scores = np.array([row[:width] for row in rows], dtype=float)
    found = top_k(scores, k)
    np.testing.assert_array_equal(found.indices, sorted_ids(scores, k))
    np.testing.assert_array_equal(found.scores, np.take_along_axis(scores, found.indices, axis=1))


def test_what_the_model_learns_counts_at_once_and_objects_stay_as_they_are():
    model, X = learned(n_triplets=20)
    index = Index(model, X)
    before = index.search(X[:50]).ids
    model.partial_fit_triplets(am.triplets.from_labels(groups(n_rows=200, width=12)[1], 2_000, random_state=1), X)
    after = index.search(X[:50]).ids
    assert not np.array_equal(before, after)
    np.testing.assert_array_equal(after, sorted_ids(model.similarity(X[:50], X), 10))


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_objects_come_and_go_under_ids_that_stay(container):
    model, X = learned(container=container)
    index = Index(model, X[:100], ids=np.arange(1_000, 1_100))
    given = [index.add(X[i : i + 1]) for i in range(100, 130)]
    assert np.concatenate(given).tolist() == list(range(1_100, 1_130))
    index.add(X[130:150], ids=np.arange(20))
    gone = [*range(1_000, 1_080), 1_105, 3]
    index.remove(gone)
    rows = {**{1_000 + i: i for i in range(130)}, **{i: 130 + i for i in range(20)}}
    left = [one for one in rows if one not in gone]
    assert index.ids.tolist() == left
    assert len(index) == len(left)
    scores = model.similarity(X[:30], X)[:, [rows[one] for one in left]]
    expected = np.array(left)[sorted_ids(scores, 10)]
    np.testing.assert_array_equal(index.search(X[:30]).ids, expected)
    index.remove(left)
    assert index.search(X[:3]).ids.shape == (3, 0)
    index.add(X[:2], ids=[7, 5])
    assert index.search(X[:1], k=9).ids.tolist() in ([[7, 5]], [[5, 7]])


def test_many_small_additions_are_merged_into_few_chunks():
    model, X = learned()
    index = Index(model, X[:1])
    for i in range(1, 200):
        index.add(X[i : i + 1])
    assert len(index._objects._chunks) <= 8
    np.testing.assert_array_equal(index.search(X[:9]).ids, sorted_ids(model.similarity(X[:9], X), 10))


@pytest.mark.parametrize(
    ("what", "error", "message"),
    [
        (lambda index, X: index.add(X, ids=np.arange(len(X))), ValueError, "ids contains 0, which exists already"),
        (lambda index, X: index.add(X[:2], ids=[900, 900]), ValueError, "ids must be unique"),
        (lambda index, X: index.add(X[:2], ids=[900]), ValueError, "one id for each of the 2 objects, got 1"),
        (lambda index, X: index.add(X[:2], ids=[-1, 900]), ValueError, "ids must be from 0"),
        (lambda index, X: index.add(X[:2], ids=["a", "b"]), TypeError, "ids must be int"),
        (lambda index, X: index.add(X[:, :5]), ValueError, "objects has 5 features"),
        (lambda index, X: index.add(sparse.csr_array(X)), TypeError, "objects must be dense"),
        (lambda index, X: index.add(np.full((1, 12), np.nan)), ValueError, "objects contains NaN or infinity in row 0"),
        (lambda index, X: index.remove([5, 900]), ValueError, "ids contains 900"),
        (lambda index, X: index.search(X, k=0), ValueError, "k must be at least 1"),
        (lambda index, X: index.search(X[:, :5]), ValueError, "features"),
        (lambda index, X: index.search(X, explore="greedy"), ValueError, "explore must be one of"),
        (lambda index, X: index.search(X, explore="ucb", scale=-1), ValueError, "scale must be at least 0"),
        (lambda index, X: Index(am.AROW(), X), TypeError, "model must be a Similarity"),
        (lambda index, X: Index(am.OASIS(), X), ValueError, "not fitted"),
        (lambda index, X: Index(index.model, X[:, :5]), ValueError, "the model was trained on 12"),
    ],
)
def test_what_cannot_be_done_is_named_and_changes_nothing(what, error, message):
    model, X = learned()
    index = Index(model, X)
    before = index.search(X[:5])
    with pytest.raises(error, match=message):
        what(index, X)
    assert len(index) == 200
    np.testing.assert_array_equal(index.search(X[:5]).ids, before.ids)


def test_a_model_that_has_grown_no_longer_fits_its_objects():
    model, X = learned()
    index = Index(model, X)
    model.grow(13)
    with pytest.raises(ValueError, match="objects has 12 features, but the model maps queries to 13"):
        index.search(np.ones((1, 13)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_model_that_leaves_objects_as_they_are_copies_nothing(dtype):
    model, X = learned()
    X = X.astype(dtype)
    for one in (model, am.Euclidean()):
        index = Index(one, X)
        assert all(np.shares_memory(block.rows, X) for block in index._mapped.blocks())
        rows = sparse.csr_array(X)
        index = Index(one, rows)
        assert all(np.shares_memory(block.rows.data, rows.data) for block in index._mapped.blocks())


def test_a_vector_finds_vectors_and_a_matrix_finds_rows():
    model, X = learned()
    index = Index(model, X)
    ids, scores, stds = index.search(X[3], k=4)
    rows = index.search(X[3:4], k=4)
    assert ids.shape == scores.shape == stds.shape == (4,)
    for one, row in zip((ids, scores, stds), rows, strict=True):
        np.testing.assert_array_equal(one, row[0])
    np.testing.assert_array_equal(index.search(X[3].tolist(), k=4).ids, ids)
    assert "ids" in repr(rows)
    assert "200 objects" in repr(index)


def test_string_ids_find_what_integer_ids_find():
    model, X = learned()
    numbers, names = Index(model, X[:100]), Index(model, X[:100], ids=[f"row {i}" for i in range(100)])
    names.add(X[100:110], ids=[f"row {i}" for i in range(100, 110)])
    numbers.add(X[100:110])
    names.remove(["row 4", "row 103"])
    names.remove("row 5")
    numbers.remove([4, 103, 5])
    names.add(X[4:5], ids=["row 4"])
    numbers.add(X[4:5], ids=[4])
    found, expected = names.search(X), numbers.search(X)
    assert found.ids.tolist() == [[f"row {i}" for i in row] for row in expected.ids.tolist()]
    np.testing.assert_array_equal(found.scores, expected.scores)
    assert names.ids.tolist() == [f"row {i}" for i in numbers.ids.tolist()]
    with pytest.raises(ValueError, match="expected str ids"):
        names.add(X[:1])
    with pytest.raises(TypeError, match="ids must be str"):
        names.add(X[:1], ids=[7])
    with pytest.raises(ValueError, match="ids contains 'row 9', which exists already"):
        names.add(X[:2], ids=["new", "row 9"])
    with pytest.raises(ValueError, match="ids contains 'new'"):
        names.remove(["row 9", "new"])
    assert len(names) == 108


# -- exploring --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CONFIDENT)
def test_draws_have_the_mean_and_the_covariance_of_the_learned_scores(name):
    model, X = learned(name, width=6, n_triplets=60)
    q, P = X[:1], X[:4]
    many = np.repeat(q, 40_000, axis=0)
    deviations = (model.sample_transform(many, random_state=0) - model.transform(many)) @ P.T
    stds = model.pair_std(q, P, [[0, i] for i in range(4)])
    error = stds / np.sqrt(40_000)
    assert (np.abs(deviations.mean(axis=0)) < 5 * error).all()
    np.testing.assert_allclose(deviations.std(axis=0), stds, rtol=0.03)
    # Of differences too, and so the covariances.
    margins = model.margin_std([[0, 1, 2], [0, 3, 0]], q, P)
    found = np.array([np.std(deviations[:, 1] - deviations[:, 2]), np.std(deviations[:, 3] - deviations[:, 0])])
    np.testing.assert_allclose(found, margins, rtol=0.03)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("name", CONFIDENT)
def test_standard_deviations_of_all_objects_are_those_of_pairs(name, container):
    model, X = learned(name, container=container)
    found = model.similarity_std(X[:3], X[:10])
    pairs = [[i, j] for i in range(3) for j in range(10)]
    np.testing.assert_allclose(found.ravel(), model.pair_std(X, None, pairs), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", CONFIDENT)
def test_an_upper_bound_ranks_by_mean_and_scaled_standard_deviations(name):
    model, X = learned(name, n_triplets=30)
    index = Index(model, X)
    found = index.search(X[:8], k=6, explore="ucb", scale=2.5)
    pairs = [[i, j] for i in range(8) for j in range(200)]
    bounds = model.similarity(X[:8], X) + 2.5 * model.pair_std(X, None, pairs).reshape(8, 200)
    np.testing.assert_array_equal(found.ids, sorted_ids(bounds, 6))
    means = np.take_along_axis(model.similarity(X[:8], X), found.ids, axis=1)
    np.testing.assert_allclose(found.scores, means, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(index.search(X[:8], explore="ucb", scale=0).ids, index.search(X[:8]).ids)


def test_the_scale_is_that_of_thompson_samples():
    X = np.random.default_rng(0).normal(size=(30, 4))
    model = am.FactoredAROMA().fit_triplets([[0, 1, 2], [3, 4, 5]], X)
    index = Index(model, X)
    mean, drawn, half = (model.sample_transform(X, scale, random_state=0) for scale in (0.0, 1.0, 0.5))
    np.testing.assert_allclose(half - mean, (drawn - mean) / 2)
    np.testing.assert_array_equal(
        index.search(X, 30, explore="thompson", scale=0.5, random_state=0).ids,
        np.argsort(-(half @ X.T), axis=1, kind="stable"),
    )
    plain = index.search(X, 30)
    for explore in ("thompson", "ucb"):
        np.testing.assert_array_equal(index.search(X, 30, explore=explore, scale=0, random_state=0).ids, plain.ids)


def test_thompson_explores_less_the_more_is_known_and_the_same_for_the_same_seed():
    X, y, _, _ = groups(n_rows=200, width=12)
    differing = []
    for n in (20, 20_000):
        model = am.FactoredAROMA(r=0.1).fit_triplets(am.triplets.from_labels(y, n, random_state=0), X)
        index = Index(model, X)
        greedy = index.search(X).ids
        first, second, other = (index.search(X, explore="thompson", random_state=seed) for seed in (0, 0, 1))
        np.testing.assert_array_equal(first.ids, second.ids)
        assert not np.array_equal(first.ids, other.ids)
        differing.append(np.mean([len(np.setdiff1d(*pair)) for pair in zip(greedy, first.ids, strict=True)]))
    assert differing[1] < differing[0]


def test_a_covariance_without_variance_left_can_still_be_drawn_from():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 8))
    model = am.MomentAROMA(0.0).fit(X, np.arange(40) % 2)
    found = Index(model, X).search(X[:5], explore="thompson", random_state=0)
    assert np.isfinite(found.scores).all()


def test_models_that_do_not_know_how_sure_they_are_cannot_explore():
    model, X = learned("oasis")
    with pytest.raises(TypeError, match="explore"):
        Index(model, X).search(X, explore="thompson")


# -- approximate ------------------------------------------------------------------------------------------------------


def approximate(model, X):
    pytest.importorskip("usearch", reason="usearch is not there: pip install 'aromatch[search]'")
    return Index(model, X, approximate=True)


def test_an_approximate_index_finds_nearly_all_and_scores_exactly():
    model, X = learned(n_rows=3_000, width=32, n_triplets=3_000)
    exact, quick = Index(model, X).search(X[:200]), approximate(model, X).search(X[:200])
    shared = np.mean([len(np.intersect1d(*pair)) / 10 for pair in zip(exact.ids, quick.ids, strict=True)])
    assert shared > 0.95
    scores = model.similarity(X[:200], X)
    np.testing.assert_allclose(quick.scores, np.take_along_axis(scores, quick.ids, axis=1), rtol=1e-9, atol=1e-12)
    assert (np.diff(quick.scores, axis=1) <= 0).all()


def test_an_approximate_index_takes_additions_removals_and_exploring():
    model, X = learned(n_rows=500, width=16)
    index = approximate(model, X[:400])
    index.add(X[400:])
    index.remove(np.arange(100))
    found = index.search(X, k=5)
    assert found.ids.min() >= 100
    expected = 100 + sorted_ids(model.similarity(X, X[100:]), 5)
    assert np.mean(found.ids[:, 0] == expected[:, 0]) > 0.95
    bounds = index.search(X[:20], explore="ucb", scale=0.5)
    assert bounds.ids.shape == (20, 10)
    first, second = (index.search(X[:20], explore="thompson", random_state=3).ids for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_an_approximate_index_refuses_sparse_objects():
    model, X = learned()
    with pytest.raises(TypeError, match="approximate=True needs dense objects"):
        Index(model, sparse.csr_array(X), approximate=True)


# -- other stores -----------------------------------------------------------------------------------------------------


def test_transformed_queries_rank_in_a_store_of_inner_products_as_the_index_does():
    model, X = learned("moment")
    index = Index(model, X)
    vectors = model.transform(X[:20])
    np.testing.assert_array_equal(sorted_ids(vectors @ X.T, 10), index.search(X[:20]).ids)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    cosines = vectors / np.linalg.norm(vectors, axis=1, keepdims=True) @ unit.T
    np.testing.assert_array_equal(sorted_ids(cosines, 10), Index(model, unit).search(X[:20]).ids)


def test_objects_with_other_columns_than_the_model_was_fitted_on_are_refused():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(12, 3)), columns=["a", "b", "c"])
    model = am.DiagonalAROMA(n_triplets=20, random_state=0).fit(frame, np.arange(12) % 2)
    index = am.Index(model, frame)
    other = frame[["b", "a", "c"]]
    with pytest.raises(ValueError, match="objects has the columns"):
        am.Index(model, other)
    with pytest.raises(ValueError, match="objects has the columns"):
        index.add(other)
    assert len(index) == 12

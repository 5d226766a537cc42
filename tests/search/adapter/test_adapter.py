"""What the adapter promises."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import cosine_similarity

import aromatch as am
from aromatch.search import Adapter
from taught_adapters import CONTAINERS, clusters, convinced, taught

# -- what it promises -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_without_feedback_it_is_the_base_to_the_bit(container, dtype):
    X, _ = clusters()
    X = X.astype(dtype)
    adapter = Adapter(container(X))
    assert adapter.correction_weight_ == 0
    base = cosine_similarity(container(X), container(X.copy()))  # of a matrix with itself BLAS takes another way
    np.testing.assert_array_equal(adapter.similarity(container(X), container(X)), base)
    dot = Adapter(container(X), metric="dot")
    np.testing.assert_array_equal(dot.similarity(X[:5], X), container(X)[:5] @ X.T)
    ids = adapter.search(container(X), 6).ids
    expected = np.argsort(-cosine_similarity(X, X), axis=1, kind="stable")[:, :6]
    np.testing.assert_array_equal(ids, expected)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("container", CONTAINERS)
def test_a_query_is_known_again_in_any_form(container, kind):
    X = np.abs(clusters()[0])
    adapter = Adapter(container(X), random_state=0)
    for row in range(20):
        adapter.judge(X[row] + 0.1, [row], [row + 1])
    numbers = [adapter._feedback.numbers(adapter._as_queries(kind(X[[row]] + 0.1))) for row in range(20)]
    assert np.concatenate(numbers).tolist() == list(range(20))


def test_a_query_unlike_any_judged_one_keeps_the_base_to_the_bit():
    X, y = clusters(n_clusters=6, spread=0.2)
    adapter = Adapter(X, random_state=0)
    taught(adapter, X, y, np.flatnonzero(y < 2))
    strange = X[y >= 3]
    convinced(adapter)
    np.testing.assert_array_equal(adapter.trust(strange), 0)
    np.testing.assert_array_equal(adapter.similarity(strange, X), cosine_similarity(strange, X))
    assert (adapter.trust(X[y < 2]) > 0.1).all()


def test_a_query_far_from_everything_keeps_the_base_to_the_bit():
    """All that is near to it is known, but it is not near."""
    X, y = clusters(n_clusters=3, spread=0.2)
    adapter = Adapter(X, random_state=0)
    taught(adapter, X, y, range(len(X)))
    far = np.random.default_rng(4).normal(size=(20, X.shape[1]))
    far -= far @ np.linalg.pinv(X[::12]) @ X[::12]
    convinced(adapter)
    assert (adapter.trust(X) > 0.1).all()
    np.testing.assert_array_equal(adapter.trust(far), 0)
    np.testing.assert_array_equal(adapter.similarity(far, X), cosine_similarity(far, X))


def test_feedback_help_queries_nearby():
    """Half of the features are noise that the classes have nothing to do with."""
    generator = np.random.default_rng(3)
    X, y = clusters(n_each=60, width=12, spread=0.8, seed=3)
    X = np.column_stack([X, 2 * generator.normal(size=X.shape)])
    train, test = np.array_split(generator.permutation(len(y)), 2)
    adapter = Adapter(X[train], random_state=0)
    before = am.evaluation.evaluate_retrieval(adapter, X[test], y[test])
    taught(adapter, X[train], y[train], range(len(train)), clicks=False)
    after = am.evaluation.evaluate_retrieval(adapter, X[test], y[test])
    assert after.mean_average_precision > 1.1 * before.mean_average_precision
    assert after.precision[10] > 1.07 * before.precision[10]
    assert adapter.diagnostics_.correction_coef > 0


def test_feedback_that_contradict_each_other_take_the_correction_weight_away():
    X, y = clusters(n_each=40, spread=0.9)
    adapter = Adapter(X, random_state=0)
    taught(adapter, X, y, range(0, len(X), 2), clicks=False)
    high = adapter.correction_weight_
    learned_by_then = adapter.trust(X).mean()
    generator = np.random.default_rng(1)
    for row in generator.permutation(len(X)):
        query = X[row] + 0.05 * generator.normal(size=X.shape[1])
        ids = adapter.search(query, 8).ids
        scores = adapter.similarity(query, X[ids])[0] - cosine_similarity([query], X[ids])[0]
        good = scores < np.median(scores)  # what learning pulled down
        adapter.judge(query, ids[good], ids[~good])
    assert high > 0.7
    assert learned_by_then > 0.1
    assert adapter.diagnostics_.correction_coef < 0
    assert adapter.correction_weight_ < 0.2


@pytest.mark.parametrize("container", CONTAINERS)
def test_the_same_feedback_gives_the_same_bits(container, tmp_path):
    X, y = clusters()
    adapters = [Adapter(container(X), random_state=5) for _ in range(2)]
    log = taught(adapters[0], X, y, range(40))
    for number, (kind, *arguments) in enumerate(log):
        getattr(adapters[1], kind)(*arguments)
        if number == 20:  # goes on in another process
            adapters[1].save(tmp_path / "adapter")
            adapters[1] = am.load(tmp_path / "adapter")
    Q = X + 0.1
    np.testing.assert_array_equal(*(adapter.similarity(Q, X) for adapter in adapters))
    np.testing.assert_array_equal(*(adapter.search(Q, 9).ids for adapter in adapters))
    assert adapters[0].correction_weight_ == adapters[1].correction_weight_
    assert adapters[0].diagnostics_ == adapters[1].diagnostics_


@pytest.mark.parametrize("container", CONTAINERS)
def test_what_was_saved_goes_on_to_the_same_bits_after_objects_came_and_went(container, tmp_path):
    X, y = clusters(n_each=60, width=33)
    adapter = Adapter(container(X[:200]), random_state=5)
    for start in (200, 210, 211):
        adapter.add(container(X[start : start + 3]))
    taught(adapter, X, y, range(0, 200, 7))
    adapter.remove([3, 60, 150, 201])
    convinced(adapter)
    adapter.save(tmp_path / "adapter")
    loaded = am.load(tmp_path / "adapter")
    Q = X + 0.02
    for one in (adapter, loaded):
        one.judge(X[1] + 0.1, [1, 2], [100])
        one.add(container(X[220:224]))
    for row in Q:
        mine, theirs = adapter.search(row, 20), loaded.search(row, 20)
        np.testing.assert_array_equal(mine.ids, theirs.ids)
        np.testing.assert_array_equal(mine.scores, theirs.scores)
    np.testing.assert_array_equal(adapter.search(container(Q), 20).scores, loaded.search(container(Q), 20).scores)


def test_a_search_does_not_change_what_comes_after():
    X, y = clusters()
    log = taught(Adapter(X, random_state=0), X, y, range(12))
    scores = []
    for looks in (False, True):
        adapter = Adapter(X, random_state=0)
        for kind, *arguments in log:
            getattr(adapter, kind)(*arguments)
            if looks:
                adapter.search(X[:3], 2)
                adapter.search(arguments[0], 2)
        scores.append(adapter.similarity(X, X))
    np.testing.assert_array_equal(*scores)


# -- objects come and go ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("container", CONTAINERS)
def test_objects_come_and_go(container):
    X, y = clusters()
    adapter = Adapter(container(X), random_state=0)
    new = adapter.add(container(X[:3] + 0.01))
    np.testing.assert_array_equal(new, [48, 49, 50])
    taught(adapter, X, np.concatenate([y, y[:3]]), range(30))
    adapter.remove([0, 49])
    assert len(adapter) == 49
    found = adapter.search(container(X[:5]), 100)
    assert found.ids.shape == (5, 49)
    assert not np.isin(found.ids, [0, 49]).any()
    np.testing.assert_array_equal(adapter.add(container(X[:1])), [51])


@pytest.mark.parametrize("container", CONTAINERS)
def test_what_was_judged_about_removed_objects_is_forgotten(container):
    """Without the objects that were removed, an adapter that never heard of them knows the same."""
    X, y = clusters()
    gone = np.array([3, 14, 30])
    adapter = Adapter(container(X), random_state=0)
    log = taught(adapter, X, y, range(0, 44, 2), clicks=False)
    adapter.remove(gone)
    other = Adapter(container(X), random_state=0)
    for _, query, good, bad in log:
        good, bad = np.setdiff1d(good, gone), np.setdiff1d(bad, gone)
        if len(good) + len(bad) and not any(np.array_equal(query, X[one]) for one in gone):
            other.judge(query, good, bad)
    other.remove(gone)
    queries = X + 0.05
    views = [one._neighbourhood.correction(one._as_queries(queries)) for one in (adapter, other)]
    for mine, theirs in zip(*views, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-12)
    assert (views[0].trust > 0).any()


def test_once_good_and_once_bad_is_no_judgement():
    X, _ = clusters()
    adapter = Adapter(X, random_state=0)
    adapter.judge(X[0] + 0.1, [1, 2], [20])
    adapter.judge(X[0] + 0.1, [20], [1, 2])
    assert adapter.correction_weight_ > 0
    np.testing.assert_array_equal(adapter.trust(X), 0)
    np.testing.assert_array_equal(adapter.trust(X[0] + 0.1), 0)


# -- what it takes from whom ------------------------------------------------------------------------------------------


def test_likes_alone_move_nothing_and_queries_judged_before_prove_nothing():
    X, y = clusters(n_each=20, spread=0.9)
    adapter = Adapter(X, random_state=0)
    for row in range(0, len(X), 2):
        adapter.judge(X[row], adapter.search(X[row], 8).ids, [])
    assert adapter.correction_weight_ == 0
    again = Adapter(X, random_state=0)
    for _ in range(30):
        ids = again.search(X[0] + 0.1, 8).ids
        again.judge(X[0] + 0.1, ids[y[ids] == y[0]], ids[y[ids] != y[0]])
    assert again.diagnostics_.n_compared == 0


def test_who_asks_again_what_was_judged_finds_what_was_good():
    """Also where one in eight is good, and says little about others."""
    X, y = clusters(n_each=20, spread=0.9)
    adapter = Adapter(X, random_state=0)
    taught(adapter, X, y, range(0, len(X), 2))
    convinced(adapter)
    query = X[1] + 0.3
    shown = adapter.search(query, 8).ids
    for _ in range(3):
        adapter.judge(query, shown[5:6], np.delete(shown, 5))
    assert adapter.trust(query)[0] >= 0.8 * adapter.correction_weight_
    before, after = (np.flatnonzero(ids == shown[5])[0] for ids in (shown, adapter.search(query, 8).ids))
    assert after < before


@pytest.mark.parametrize("shift", [0.0, 3.0])
def test_what_all_objects_have_in_common_makes_no_query_go_further(shift):
    X, y = clusters(n_each=20, spread=0.9)
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    X = X + shift * X.mean(axis=0) / np.linalg.norm(X.mean(axis=0))
    adapter = Adapter(X, random_state=0)
    taught(adapter, X, y, range(0, len(X), 2))
    convinced(adapter)
    Q = X[1::2] / np.linalg.norm(X[1::2], axis=1, keepdims=True)
    moved = np.linalg.norm(adapter.transform(Q) - Q, axis=1)
    spread = np.linalg.norm(Q - Q.mean(axis=0), axis=1)
    assert moved.max() > 0.1 * spread.mean()
    assert (moved < 0.8 * spread).all()


def test_an_object_that_holds_a_query_is_not_the_query():
    """By inner products all objects with all words of a query are as near to it as it is itself."""
    generator = np.random.default_rng(0)
    X = (generator.random((60, 12)) < 0.5).astype(float)
    query = X[3] * (np.arange(12) < 6)
    adapter = Adapter(X, metric="dot", random_state=0)
    adapter.judge(query, [3], [4])
    assert adapter._feedback.queries is not None
    adapter.judge(X[3], [5], [4])
    assert adapter._feedback.columns()[3].tolist() == [-1, 3]


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_query_of_zeros_teaches_nothing(container):
    X, y = clusters()
    adapter = Adapter(container(X), random_state=0)
    taught(adapter, X, y, range(20))
    before = adapter.similarity(container(X), container(X)), len(adapter._feedback)
    adapter.judge(container(np.zeros((1, X.shape[1]))), [0], [1])
    np.testing.assert_array_equal(adapter.similarity(container(X), container(X)), before[0])
    assert len(adapter._feedback) == before[1]
    adapter.remove([0])


# -- the contract -----------------------------------------------------------------------------------------------------


def taught_with(ids):
    """Return an adapter with some ids after feedback, additions and removals, and a translation of row numbers."""
    X, y = clusters()
    names = np.array(ids, dtype=object)
    adapter = Adapter(X[:40], ids=ids[:40], random_state=0)
    row_of = {one: row for row, one in enumerate(ids)}
    for row in range(0, 40, 3):
        shown = adapter.search(X[row] + 0.05, 8).ids
        good = np.array([y[row_of[one]] == y[row] for one in shown.tolist()])
        adapter.judge(X[row] + 0.05, good=shown[good], bad=shown[~good])
    adapter.remove(ids[3])
    adapter.add(X[40:], ids=ids[40:])
    adapter.click(X[1], shown=names[[5, 6, 7]].tolist(), clicked=ids[6])
    return adapter, X


def test_string_ids_behave_as_integer_ids_and_survive_a_file(tmp_path):
    names = [f"Ω {row}" for row in range(48)]
    (numbered, X), (named, _) = taught_with(list(range(48))), taught_with(names)
    named.save(tmp_path / "adapter")
    expected = numbered.search(X, 9)
    for adapter in (named, am.load(tmp_path / "adapter")):
        hits = adapter.search(X, 9)
        np.testing.assert_array_equal(hits.scores, expected.scores)
        assert hits.ids.tolist() == [[names[one] for one in row] for row in expected.ids.tolist()]
        assert adapter.ids.tolist() == [names[one] for one in numbered.ids.tolist()]
        assert adapter.add(X[3], ids="Ω 3").tolist() == ["Ω 3"]
        with pytest.raises(TypeError, match="ids must be str"):
            adapter.remove([3])
        with pytest.raises(ValueError, match="expected str ids"):
            adapter.add(X[3])


def test_good_or_bad_alone_one_id_and_record_numbers(tmp_path):
    X, _ = clusters()
    adapter = Adapter(X, random_state=0)
    assert [adapter.judge(X[0], good=3), adapter.judge(X[0], bad=[4, 5]), adapter.click(X[1], [1, 2], 2)] == [1, 2, 3]
    adapter.save(tmp_path / "adapter")
    assert am.load(tmp_path / "adapter").judge(X[2], good=[np.int64(2)]) == 4
    other = Adapter(X, random_state=0)
    other.judge(X[0], [3], [])
    other.judge(X[0], [], [4, 5])
    other.judge(X[1], [2], [1])
    np.testing.assert_array_equal(other.similarity(X), adapter.similarity(X))


def test_several_clicks_are_positive_and_what_was_passed_over_above_the_last_is_negative():
    X, _ = clusters()
    query = X[0] + 0.1
    clicked, judged = Adapter(X, random_state=0), Adapter(X, random_state=0)
    clicked.click(query, shown=[7, 8, 9, 10, 11], clicked=[10, 8])
    judged.judge(query, good=[8, 10], bad=[7, 9])
    np.testing.assert_array_equal(clicked.similarity(X), judged.similarity(X))
    assert clicked.diagnostics_.n_lists == 1
    everything = Adapter(X, random_state=0)
    everything.click(query, shown=[7, 8], clicked=[7, 8])
    assert everything.diagnostics_.n_lists == 0  # which distinguishes nothing


@pytest.mark.parametrize("container", CONTAINERS)
def test_texts_are_encoded(container, tmp_path):
    X, _ = clusters()
    rows = {"first": 0, "second": 1}

    def encoder(texts):
        return container(X[[rows[text] for text in texts]])

    adapter = Adapter(container(X), encoder=encoder, random_state=0)
    for one in (adapter, Adapter(container(X), random_state=0)):
        one.judge(X[0], [3, 4], [5])
    assert adapter.judge("first", good=3, bad=20) == 2
    adapter.save(tmp_path / "adapter")
    loaded = am.load(tmp_path / "adapter", encoder=encoder)
    for one in (adapter, loaded):
        np.testing.assert_array_equal(one.search("second", 4).ids, adapter.search(X[1], 4).ids)
        np.testing.assert_array_equal(one.search(["first", "second"], 4).scores, adapter.search(X[:2], 4).scores)
        np.testing.assert_array_equal(one.transform(["first"]), adapter.transform(X[:1]))
    assert adapter.search(["second"], 4).ids.shape == (1, 4)
    with pytest.raises(TypeError, match="encoder"):
        am.load(tmp_path / "adapter").search("second")
    adapter.encoder = lambda texts: X[:3]
    with pytest.raises(ValueError, match="encoder must return one row"):
        adapter.search("second")


def test_an_adapter_is_searched_as_its_maps_say_and_shows_its_state():
    X, y = clusters()
    adapter = Adapter(X, random_state=0)
    taught(adapter, X, y, range(20))
    scores = adapter.transform(X) @ adapter.transform_objects(X).T
    np.testing.assert_allclose(scores, adapter.similarity(X), atol=1e-12)
    assert "48 objects, 8 features, metric='cosine', 20 feedback lists" in repr(adapter)


@pytest.mark.parametrize("metric", ["cosine", "dot"])
def test_vectors_are_copied(metric):
    X, _ = clusters()
    mine, query = X.copy(), X[:1] + 0.1
    adapter = Adapter(mine, metric=metric, random_state=0)
    adapter.judge(query, good=[3], bad=[20])
    before = adapter.similarity(X)
    mine[:] = query[:] = 0
    np.testing.assert_array_equal(adapter.similarity(X), before)

"""Rows under ids that stay: where they are, and in which order they come back."""

import numpy as np
import pytest
from scipy import sparse

import aromatch as am
from aromatch.search import Index
from aromatch.search.stores.base import Store
from aromatch.search.stores.memory import MemoryStore


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_rows_come_back_in_the_order_of_their_ids_from_any_chunk(container):
    X = np.arange(60.0).reshape(20, 3)
    store = MemoryStore(container(X[:10]), ids=np.arange(100, 110))
    store.add(container(X[10:15]), ids=[7, 3, 9, 1, 5])
    store.add(container(X[15:19]))
    assert len(store._chunks) > 1
    wanted = [112, 3, 105, 3, 110, 7, 100]
    found = store.rows(np.array(wanted))
    expected = X[[17, 11, 5, 11, 15, 10, 0]]
    np.testing.assert_array_equal(found.toarray() if sparse.issparse(found) else found, expected)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_blocks_show_all_rows_without_a_copy(container):
    X = np.arange(60.0).reshape(20, 3)
    store = MemoryStore(container(X))
    shown = [block.rows for block in store.blocks(2**19)]
    assert len(shown) > 1
    together = sparse.vstack(shown).toarray() if sparse.issparse(shown[0]) else np.concatenate(shown)
    np.testing.assert_array_equal(together, X)
    own = store._chunks[0].rows
    for rows in shown:
        assert np.shares_memory(rows.data, own.data) if sparse.issparse(rows) else np.shares_memory(rows, own)


def test_an_emptied_store_takes_in_what_comes_next():
    store = MemoryStore(np.eye(3))
    store.remove(np.arange(3))
    assert len(store) == 0
    assert store.add(np.eye(3)[:1]).tolist() == [3]
    assert store.ids.tolist() == [3]


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_rows_lie_again_as_they_lay_without_chunks_of_which_nothing_is_left(container):
    X = np.arange(60.0).reshape(20, 3)
    store = MemoryStore(container(X[:10]), ids=np.arange(10)[::-1])
    for start in (10, 16):
        store.add(container(X[start : start + 3]))
    store.remove(np.array([3, 13, 14, 15]))
    again = MemoryStore.from_layout(store.rows(store.present_keys), *store.layout())
    for mine, theirs in zip(store.blocks(), again.blocks(), strict=True):
        there = np.where(mine.is_present)[0]
        np.testing.assert_array_equal(mine.is_present, theirs.is_present)
        np.testing.assert_array_equal(mine.keys[there], theirs.keys[there])
        both = (rows.toarray() if sparse.issparse(rows) else rows for rows in (mine.rows[there], theirs.rows[there]))
        np.testing.assert_array_equal(*both)
    assert len(again) == len(store) == 12
    for one in (store, again):
        for gone in (3, 13):
            with pytest.raises(ValueError, match=f"ids contains {gone}"):
                one.keys([9, gone], "ids")
        with pytest.raises(ValueError, match="ids contains 9, which exists already"):
            one.add(container(X[:2]), ids=[50, 9])
        one.add(container(X[:1] + 7), ids=[3])
        found = one.rows(np.array([3]))
        np.testing.assert_array_equal(found.toarray() if sparse.issparse(found) else found, X[:1] + 7)


def test_an_approximate_index_finds_all_when_all_are_asked_for_and_keeps_the_order_of_ties():
    pytest.importorskip("usearch", reason="usearch is not there: pip install 'aromatch[search]'")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 8))
    model = am.OASIS().fit_triplets(np.empty((0, 3), dtype=int), X)
    index = Index(model, X, ids=np.arange(400)[::-1], approximate=True)
    assert sorted(index.search(X[:1], k=400).ids[0].tolist()) == list(range(400))
    assert all(len(set(row)) == 400 for row in index.search(X[:20], k=400).ids.tolist())
    index.remove(np.arange(350))
    assert sorted(index.search(X[:1], k=60).ids[0].tolist()) == list(range(350, 400))
    twins = Index(model, np.repeat(X[:5], 4, axis=0), ids=np.arange(20)[::-1], approximate=True)
    exact = Index(model, np.repeat(X[:5], 4, axis=0), ids=np.arange(20)[::-1])
    np.testing.assert_array_equal(twins.search(X[:5], k=8).ids, exact.search(X[:5], k=8).ids)


def test_it_is_a_store_whose_keys_and_ids_translate_into_each_other():
    store = MemoryStore(np.eye(3), ids=["a", "b", "c"], metric="euclidean")
    assert isinstance(store, Store)
    keys = store.keys(["c", "a"], "ids")
    assert store.ids_of(keys).tolist() == ["c", "a"]
    np.testing.assert_array_equal(store.rows(keys), np.eye(3)[[2, 0]])
    found = store.nearest(np.array([[0.0, 0.9, 0.1]]), 2)
    assert store.ids_of(found.indices).tolist() == [["b", "c"]]
    np.testing.assert_allclose(found.scores, [[-0.02, -1.62]])
    store.remove(keys)
    assert store.ids.tolist() == ["b"]
    assert store.add(np.eye(3)[:1], ids=["a"]).tolist() == [3]  # keys are not assigned twice

"""Rows under ids that stay: where they are, and in which order they come back."""

import numpy as np
import pytest
from scipy import sparse

import aromatch as am
from aromatch.search import Index
from aromatch.search.stores.memory import Collection


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_rows_come_back_in_the_order_of_their_ids_from_any_piece(container):
    X = np.arange(60.0).reshape(20, 3)
    collection = Collection(container(X[:10]), ids=np.arange(100, 110))
    collection.add(container(X[10:15]), ids=[7, 3, 9, 1, 5])
    collection.add(container(X[15:19]))
    assert len(collection._pieces) > 1
    wanted = [112, 3, 105, 3, 110, 7, 100]
    found = collection.rows(wanted)
    expected = X[[17, 11, 5, 11, 15, 10, 0]]
    np.testing.assert_array_equal(found.toarray() if sparse.issparse(found) else found, expected)
    part = collection.piece(np.array([3, 105, 7, 110]))
    assert part.ids.tolist() == [105, 7, 3, 110]
    rows = part.rows.toarray() if sparse.issparse(part.rows) else part.rows
    np.testing.assert_array_equal(rows, X[[5, 10, 11, 15]])


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_blocks_show_all_rows_without_a_copy(container):
    X = np.arange(60.0).reshape(20, 3)
    collection = Collection(container(X))
    shown = [block.rows for block in collection.blocks(2**19)]
    assert len(shown) > 1
    together = sparse.vstack(shown).toarray() if sparse.issparse(shown[0]) else np.concatenate(shown)
    np.testing.assert_array_equal(together, X)
    own = collection._pieces[0].rows
    for rows in shown:
        assert np.shares_memory(rows.data, own.data) if sparse.issparse(rows) else np.shares_memory(rows, own)


def test_an_emptied_piece_takes_in_what_comes_next():
    collection = Collection(np.eye(3))
    collection.remove([0, 1, 2])
    assert len(collection) == 0
    assert collection.add(np.eye(3)[:1]).tolist() == [3]
    assert collection.ids.tolist() == [3]


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_rows_lie_again_as_they_lay_without_pieces_of_which_nothing_is_left(container):
    X = np.arange(60.0).reshape(20, 3)
    collection = Collection(container(X[:10]), ids=np.arange(10)[::-1])
    for start in (10, 16):
        collection.add(container(X[start : start + 3]))
    collection.remove([3, 13, 14, 15])
    again = Collection.from_layout(collection.rows(collection.ids), *collection.layout())
    for mine, theirs in zip(collection.blocks(), again.blocks(), strict=True):
        there = np.where(mine.is_there)[0]
        np.testing.assert_array_equal(mine.is_there, theirs.is_there)
        np.testing.assert_array_equal(mine.ids[there], theirs.ids[there])
        both = (rows.toarray() if sparse.issparse(rows) else rows for rows in (mine.rows[there], theirs.rows[there]))
        np.testing.assert_array_equal(*both)
    assert len(again) == len(collection) == 12
    for one in (collection, again):
        for gone in (3, 13):
            with pytest.raises(ValueError, match=f"ids has {gone}, which is not there"):
                one.rows([9, gone])
        with pytest.raises(ValueError, match="ids has 9, which is there already"):
            one.add(container(X[:2]), ids=[50, 9])
        one.add(container(X[:1] + 7), ids=[3])
        found = one.rows([3])
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

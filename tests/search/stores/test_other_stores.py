"""What docs/search.md says of other stores, with the stores themselves."""

import numpy as np
import pytest

import aromatch as am
from aromatch.search import Index
from grouped_rows import groups


def learned():
    X, y, X_test, _ = groups(n_rows=400, width=24)
    model = am.FactoredAROMA(r=0.1).fit_triplets(am.triplets.from_labels(y, 2_000, random_state=0), X)
    return model, X.astype(np.float32), X_test[:50]


def test_faiss_gives_scores_larger_ones_first():
    faiss = pytest.importorskip("faiss", reason="faiss is not there: pip install faiss-cpu")
    model, objects, queries = learned()
    store = faiss.IndexFlatIP(objects.shape[1])
    store.add(objects)
    scores, ids = store.search(model.transform(queries).astype(np.float32), 10)
    expected = Index(model, objects).search(queries)
    np.testing.assert_array_equal(ids, expected.ids)
    np.testing.assert_allclose(scores, expected.scores, rtol=1e-4, atol=1e-5)


def test_faiss_with_unit_norms_ranks_by_cosines_alike():
    faiss = pytest.importorskip("faiss", reason="faiss is not there: pip install faiss-cpu")
    model, objects, queries = learned()
    objects /= np.linalg.norm(objects, axis=1, keepdims=True)
    vectors = model.transform(queries).astype(np.float32)
    faiss.normalize_L2(vectors)
    store = faiss.IndexFlatIP(objects.shape[1])
    store.add(objects)
    np.testing.assert_array_equal(store.search(vectors, 10)[1], Index(model, objects).search(queries).ids)


def test_usearch_gives_one_minus_the_score_smaller_ones_first():
    usearch = pytest.importorskip("usearch.index", reason="usearch is not there: pip install 'aromatch[search]'")
    model, objects, queries = learned()
    store = usearch.Index(ndim=objects.shape[1], metric="ip", dtype="f32")
    store.add(np.arange(len(objects)), objects)
    found = store.search(model.transform(queries).astype(np.float32), 10, exact=True)
    expected = Index(model, objects).search(queries)
    np.testing.assert_array_equal(found.keys, expected.ids)
    np.testing.assert_allclose(1 - found.distances, expected.scores, rtol=1e-4, atol=1e-5)

"""`Index` serves every learner of the registry as an exact FAISS store does, and learners that it does not know."""

import numpy as np
import pytest
from scipy import sparse

import aromatch as am
from aromatch.learners import Similarity
from aromatch.learners.contributions import Contributions
from grouped_rows import groups
from learner_classes import SIMILARITIES

K = 10
EPS32 = float(np.finfo(np.float32).eps)
MODELS = {
    **{learner.__name__: learner for learner in SIMILARITIES},
    "TripletEmbedding": lambda: am.TripletEmbedding("linear"),
    "projected": lambda: am.DiagonalAROMA(),
    "unfitted Cosine": am.Cosine,
    "unfitted Euclidean": am.Euclidean,
}


def data():
    X, y, Q, _ = groups(n_rows=150, n_groups=5, width=8)
    return X, y, Q[:40]


def fitted(name, X, y):
    model = MODELS[name]()
    if name.startswith("unfitted"):
        return model
    settings = {"n_triplets": 500, "n_constraints": 300, "random_state": 0}
    model.set_params(**{key: value for key, value in settings.items() if key in model.get_params()})
    model.fit(X, y)
    return model.project(4) if name == "projected" else model


def assert_ranked(hits, scores, tolerance):
    """Check that hits are the largest scores, wherever neighbouring ones differ by more than the tolerance."""
    order = np.argsort(-scores, axis=1, kind="stable")
    ordered = np.take_along_axis(scores, order, axis=1)
    gaps = np.abs(np.diff(ordered, axis=1))[:, :K] > tolerance
    is_clear = gaps & np.column_stack([np.ones(len(gaps), dtype=bool), gaps[:, :-1]])
    np.testing.assert_array_equal(hits[is_clear], order[:, :K][is_clear])
    assert is_clear.mean() > 0.5


def tolerance_of(model, Q, X):
    sizes = [np.linalg.norm(rows, axis=1).max() for rows in (model.transform(Q), model.transform_objects(X))]
    return 16 * EPS32 * (sizes[0] * sizes[1] if model.metric_ == "dot" else max(sizes) ** 2)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("name", MODELS)
def test_hits_are_the_best_objects_with_the_scores_of_pairs(name, container):
    X, y, Q = data()
    model = fitted(name, X, y)
    hits = am.Index(model, container(X)).search(container(Q), K)
    assert_ranked(hits.ids, model.similarity(Q, X), 1e-9)
    pairs = np.column_stack([np.repeat(np.arange(len(Q)), K), hits.ids.ravel()])
    np.testing.assert_allclose(hits.scores.ravel(), model.pair_score(Q, X, pairs), rtol=1e-9, atol=1e-10)
    assert (np.diff(hits.scores, axis=1) <= 1e-10).all()
    assert (hits.stds is not None) == hasattr(model, "similarity_std")


@pytest.mark.parametrize("name", MODELS)
def test_faiss_returns_the_same_ids_from_the_mapped_rows(name):
    faiss = pytest.importorskip("faiss", reason="faiss is not there: pip install faiss-cpu")
    X, y, Q = data()
    model = fitted(name, X, y)
    queries, objects = (rows.astype(np.float32) for rows in (model.transform(Q), model.transform_objects(X)))
    store = {"dot": faiss.IndexFlatIP, "euclidean": faiss.IndexFlatL2}[model.metric_](objects.shape[1])
    store.add(objects)
    values, ids = store.search(queries, K)
    scores, tolerance = model.similarity(Q, X), tolerance_of(model, Q, X)
    assert_ranked(ids, scores, tolerance)
    hits = am.Index(model, X).search(Q, K)
    assert_ranked(hits.ids, scores, tolerance)
    np.testing.assert_allclose(hits.scores, values if model.metric_ == "dot" else -values, rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", [name for name in MODELS if "fitted" not in name and name != "projected"])
def test_a_model_that_is_trained_further_is_served_at_once(name):
    X, y, Q = data()
    model = fitted(name, X, y)
    index = am.Index(model, X[:100])
    before = index.search(Q, K)
    if hasattr(model, "partial_fit_triplets"):
        model.partial_fit_triplets(am.triplets.from_labels((y + np.arange(len(y))) % 3, 500, random_state=1), X)
    else:
        model.fit(X[:, ::-1].copy(), y)
    after = index.search(Q, K)
    assert_ranked(after.ids, model.similarity(Q, X[:100]), 1e-9)
    if name not in ("Cosine", "Euclidean"):  # which do not learn
        assert not np.array_equal(before.scores, after.scores)
    index.add(X[100:])
    index.remove(np.arange(0, 150, 3))
    scores = model.similarity(Q, X)
    scores[:, ::3] = -np.inf
    hits = index.search(Q, K)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :K]
    assert np.mean(hits.ids == order) > 0.99


@pytest.mark.parametrize("name", ["DiagonalAROMA", "ITML", "Cosine", "HIER", "projected"])
def test_an_approximate_index_has_the_metric_of_the_model(name):
    pytest.importorskip("usearch", reason="usearch is not there: pip install 'aromatch[search]'")
    X, y, Q = data()
    model = fitted(name, X, y)
    exact, found = (am.Index(model, X, approximate=one).search(Q, K) for one in (False, True))
    assert np.mean(exact.ids == found.ids) > 0.95
    np.testing.assert_allclose(found.scores, exact.scores, atol=0.01 * np.abs(exact.scores).max())


# -- a learner that search/ has never seen ----------------------------------------------------------------------------


class Weighted(Similarity):
    """Score ``sum_j q_j w_j p_j`` with independent weights of a known variance; the weights map the objects."""

    def __init__(self, variance=0.25):
        self.variance = variance

    def fit(self, X, y=None):
        self.n_features_in_ = self.n_object_features_in_ = X.shape[1]
        self._state = {"w": np.linspace(1.0, 2.0, X.shape[1])}
        return self

    def change(self):
        self._state = {"w": self._state["w"][::-1].copy()}
        self._object_map_version = self.object_map_version_ + 1

    def _map_queries(self, Q):
        return Q

    def _map_objects(self, P):
        return P * self._state["w"]

    def _scores(self, Q, P):
        return Q @ (P * self._state["w"]).T

    def _pair_scores(self, Q, P, numbers):
        return np.einsum("ij,ij->i", Q[numbers[:, 0]], P[numbers[:, 1]] * self._state["w"])

    def similarity_std(self, Q, P=None):
        return np.sqrt(self.variance * (Q**2 @ (Q if P is None else P).T ** 2))

    def sample_transform(self, Q, scale=1.0, random_state=None):
        generator = np.random.default_rng(random_state)
        return Q * (1 + scale * np.sqrt(self.variance) * generator.standard_normal(Q.shape) / self._state["w"])

    def explain_pair(self, q, p):
        features = np.arange(q.shape[1])
        values = np.diag(q[0] * self._state["w"] * p[0])
        return Contributions(features, features, values, np.abs(np.diag(q[0] * p[0])) * np.sqrt(self.variance))


def test_a_new_learner_with_variances_is_searched_explored_and_explained():
    X, _, Q = data()
    model = Weighted().fit(X)
    index = am.Index(model, X[:120], ids=[f"row {i}" for i in range(120)])
    index.add(X[120:], ids=[f"row {i}" for i in range(120, 150)])
    index.remove(["row 7", "row 130"])
    for _ in range(2):  # before and after the map of the objects changes
        scores, stds = model.similarity(Q, X), model.similarity_std(Q, X)
        scores[:, [7, 130]] = -np.inf
        hits = index.search(Q, K)
        expected = np.argsort(-scores, axis=1, kind="stable")[:, :K]
        assert hits.ids.tolist() == [[f"row {i}" for i in row] for row in expected.tolist()]
        np.testing.assert_allclose(hits.scores, np.take_along_axis(scores, expected, axis=1))
        np.testing.assert_allclose(hits.stds, np.take_along_axis(stds, expected, axis=1))
        bounds = np.argsort(-(scores + 2 * stds), axis=1, kind="stable")[:, :K]
        found = index.search(Q, K, explore="ucb", scale=2.0).ids
        assert found.tolist() == [[f"row {i}" for i in row] for row in bounds.tolist()]
        sampled, again, mean = (
            index.search(Q, K, explore="thompson", scale=scale, random_state=3).ids.tolist() for scale in (1, 1, 0)
        )
        assert sampled == again != hits.ids.tolist() == mean
        model.change()
    told = am.explain(model, Q[0], X[0], top=8)
    assert sum(part.value for part in told.parts) == pytest.approx(told.score)
    assert all(part.std is not None for part in told.parts)

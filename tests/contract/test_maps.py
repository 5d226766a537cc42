"""Every model of the registry is two maps and a metric, which any exact vector store can serve."""

import faiss
import numpy as np
import pytest
from scipy import sparse

import aromatch as am
from grouped_rows import groups
from learner_classes import SIMILARITIES, TRIPLET_LEARNERS

SMALL = {"n_triplets": 500, "n_constraints": 300, "random_state": 0}
MODELS = [
    *[learner() for learner in SIMILARITIES],
    *[learner(cells="touched") for learner in (am.DiagonalAROMA, am.OASIS)],
    am.FactoredAROMA(dtype="float32"),
]
IDENTITY = (*TRIPLET_LEARNERS, am.Euclidean)
every_model = pytest.mark.parametrize("model", MODELS, ids=repr)


@pytest.fixture
def data():
    X, y, Q, _ = groups(n_rows=150, n_groups=5, width=8)
    return X, y, Q[:40]


def fitted(model, X, y):
    settings = {name: value for name, value in SMALL.items() if name in model.get_params()}
    return type(model)(**{**model.get_params(), **settings}).fit(X, y)


def scores_of_maps(model, u, v):
    u, v = (rows.toarray() if sparse.issparse(rows) else np.asarray(rows) for rows in (u, v))
    if model.metric_ == "dot":
        return u @ v.T
    return -((u[:, np.newaxis] - v) ** 2).sum(axis=2)


@every_model
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, lambda X: X.astype(np.float32)])
def test_maps_and_metric_give_the_similarity(model, container, data):
    X, y, Q = data
    model = fitted(model, X, y)
    Q, P = container(Q), container(X[:60])
    scores = model.similarity(Q, P)
    is_single = "float32" in (str(Q.dtype), getattr(model, "dtype", ""))
    tolerance = (1e-5 if is_single else 1e-12) * np.abs(scores).max()
    found = scores_of_maps(model, model.transform(Q), model.transform_objects(P))
    np.testing.assert_allclose(found, scores, rtol=0, atol=tolerance)
    pairs = np.column_stack([np.arange(40), np.arange(40)[::-1]])
    np.testing.assert_allclose(model.pair_score(Q, P, pairs), scores[tuple(pairs.T)], rtol=0, atol=tolerance)


@every_model
def test_an_exact_store_ranks_as_a_scan_does(model, data):
    X, y, Q = data
    model = fitted(model, X, y)
    u, v = (np.ascontiguousarray(rows, dtype=np.float32) for rows in (model.transform(Q), model.transform_objects(X)))
    store = {"dot": faiss.IndexFlatIP, "euclidean": faiss.IndexFlatL2}[model.metric_](v.shape[1])
    store.add(v)
    found = store.search(u, 10)[1]
    scores = model.similarity(Q, X)
    order = np.argsort(-scores, axis=1, kind="stable")
    sizes = np.linalg.norm(u, axis=1).max(), np.linalg.norm(v, axis=1).max()
    rounding = 16 * float(np.finfo(np.float32).eps) * max(sizes) ** 2
    gaps = -np.diff(np.take_along_axis(scores, order, axis=1), axis=1)[:, :10] > rounding
    is_clear = gaps & np.column_stack([np.ones(len(Q), dtype=bool), gaps[:, :-1]])
    assert is_clear.mean() > 0.5
    np.testing.assert_array_equal(found[is_clear], order[:, :10][is_clear])


@every_model
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_an_identity_map_copies_nothing(model, container, data):
    X, y, _ = data
    P = container(X)
    found = fitted(model, X, y).transform_objects(P)
    assert (found is P) == isinstance(model, IDENTITY)


@every_model
def test_rows_of_zeros_map_to_zero(model, data):
    """HIER has an intercept: a row of zeros has class probabilities as any other."""
    X, y, _ = data
    model, zeros = fitted(model, X, y), np.zeros((2, X.shape[1]))
    for found in (model.transform(zeros), model.transform_objects(zeros)):
        assert np.any(found) == isinstance(model, am.HIER)


@every_model
def test_the_version_of_the_object_map_changes_with_the_map_and_not_by_use(model, data, tmp_path):
    X, y, Q = data
    model = fitted(model, X, y)
    version, before = model.object_map_version_, model.transform_objects(X)
    model.similarity(Q, X)
    model.transform(Q)
    model.calibrate([[0, 1, 2]], X)
    model.save(tmp_path / "model")
    assert model.object_map_version_ == model.copy().object_map_version_ == version
    if isinstance(model, tuple(TRIPLET_LEARNERS)):
        model.learn_one(X[0], X[1], X[2])
        model.partial_fit_triplets([[0, 1, 2]], X)
        if hasattr(model, "decay"):
            model.decay(0.5)
    model.fit(X[::2], y[::2])
    after = model.transform_objects(X)
    if isinstance(model, IDENTITY):
        assert model.object_map_version_ == version
    elif after.shape != before.shape or np.any(after != before):
        assert model.object_map_version_ != version


def test_the_objects_of_two_spaces_have_names_and_a_width_of_their_own():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    Q, P = pd.DataFrame(rng.normal(size=(5, 3)), columns=list("abc")), pd.DataFrame(rng.normal(size=(5, 3)))
    P.columns = list("xyz")
    model = am.DiagonalAROMA().fit_triplets([[0, 1, 2]], Q, P)
    assert model.transform_objects(P).shape == (5, 3)
    assert list(model.object_feature_names_in_) == list("xyz")
    for wrong in (Q, P[["x", "z", "y"]]):
        with pytest.raises(ValueError, match=r"P has the columns"):
            model.transform_objects(wrong)
        with pytest.raises(ValueError, match=r"P has the columns"):
            model.similarity(Q, wrong)
    with pytest.raises(ValueError, match="P has 2 features"):
        model.transform_objects(np.ones((4, 2)))


@pytest.mark.parametrize("cells", ["dense", "touched"])
def test_oasis_starts_from_the_identity_in_one_space_and_from_zero_across_two(cells, tmp_path):
    X, P = np.random.default_rng(0).normal(size=(2, 5, 3))

    def start(model):
        return np.asarray(model.W_.todense() if sparse.issparse(model.W_) else model.W_)

    one, two = (am.OASIS(cells=cells).fit_triplets([], X, objects) for objects in (None, P))
    np.testing.assert_array_equal(start(one), np.eye(3))
    np.testing.assert_array_equal(start(two), np.zeros((3, 3)))
    np.testing.assert_array_equal(start(am.OASIS(cells=cells, n_triplets=0).fit(X, [0, 0, 1, 1, 1])), np.eye(3))
    for model, grown in ((one, np.eye(4)), (two, np.zeros((4, 4)))):
        model.save(tmp_path / "model")
        np.testing.assert_array_equal(start(am.load(tmp_path / "model").grow(4)), grown)

"""TripletEmbedding: the choice of the method on validation rows, the fallback to the cosine, files and bad input."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import aromatch as am
from aromatch.exceptions import NoSignalError
from aromatch.learners.embedding import choice, training_set
from aromatch.learners.embedding.refinement import Refined
from grouped_rows import NOISY, groups, quality

GROUPS = {"n_rows": 800, "n_groups": 20, "width": 60, "spread": 0.5, "decay": 20}


def judged(n, **settings):
    X, y, X_test, y_test = groups(**settings)
    return X, am.triplets.from_labels(y, n, random_state=0), X_test, y_test


def fitted(method, triplets, X, P=None, **settings):
    sample_weight = settings.pop("sample_weight", None)
    return am.TripletEmbedding(method, random_state=0, **settings).fit_triplets(
        triplets, X, P, sample_weight=sample_weight
    )


@pytest.mark.parametrize("better", ["moment", "spectral"])
def test_linear_takes_the_method_that_ranks_validation_rows_better(monkeypatch, better):
    X, triplets, *_ = judged(20_000, **GROUPS)
    candidates = {name: fitted(name, triplets, X) for name in ("moment", "spectral")}
    log_ranks = training_set.ValidationSet.log_ranks
    ranks = iter([3.0, 2.0] if better == "spectral" else [2.0, 3.0])

    def fixed_at_first(self, L, power):
        value = next(ranks, None)
        return log_ranks(self, L, power) if value is None else np.full(len(self.positive), value)

    monkeypatch.setattr(training_set.ValidationSet, "log_ranks", fixed_at_first)
    model = fitted("linear", triplets, X)
    assert model.method_ == better
    np.testing.assert_array_equal(model.components_, candidates[better].components_)


@pytest.mark.parametrize("settings", [NOISY, GROUPS])
@pytest.mark.parametrize("n", [6_000, 30_000])
def test_auto_is_about_as_good_as_the_best_method_for_unseen_rows(settings, n):
    X, triplets, X_test, y_test = judged(n, **settings)
    model, *others = (fitted(method, triplets, X) for method in ("auto", "moment", "spectral", "cosine"))
    found, best = quality(model, X_test, y_test), max(quality(other, X_test, y_test) for other in others)
    assert found > best - 0.01
    assert set(model.validation_scores_) == {"cosine", "moment", "spectral"}
    assert max(model.validation_scores_, key=model.validation_scores_.get) == model.method_


@pytest.mark.parametrize("n", [0, 1, 5, 20])
@pytest.mark.parametrize("seed", range(3))
def test_from_a_handful_of_triplets_auto_falls_back_to_the_cosine(n, seed):
    X, y, X_test, _ = groups(n_rows=800, n_groups=16, width=60, spread=0.2)
    model = fitted("auto", am.triplets.from_labels(y, n, random_state=seed), X)
    assert model.method_ == "cosine"
    np.testing.assert_allclose(model.similarity(X_test[:5], X_test), am.Cosine().similarity(X_test[:5], X_test))


@pytest.mark.parametrize("n", [300, 3_000, 20_000])
def test_where_groups_are_unrelated_to_the_rows_auto_is_no_worse_than_the_cosine_on_validation_rows(n):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(800, 50)), np.arange(800) % 8
    model = fitted("auto", am.triplets.from_labels(y, n, random_state=0), X)
    scores = model.validation_scores_
    assert not scores or scores[model.method_] >= scores["cosine"]


def test_validation_scores_are_geometric_means_of_reciprocal_ranks():
    X, triplets, *_ = judged(5_000, **GROUPS)
    model = fitted("auto", triplets, X)
    training = training_set.TripletData.read(triplets, X, X, None)
    validation = training_set.ValidationSet.of(training.scaled())
    expected = np.exp(-np.mean(validation.log_ranks(None, 1.0)))
    assert model.validation_scores_["cosine"] == pytest.approx(expected)
    assert 0 < expected < model.validation_scores_[model.method_] <= 1


def test_without_components_above_the_noise_level_linear_is_the_moment_method():
    X, triplets, *_ = judged(300, n_rows=400)
    with pytest.raises(NoSignalError):
        fitted("spectral", triplets, X)
    linear, moment = fitted("linear", triplets, X), fitted("moment", triplets, X)
    assert linear.method_ == "moment"
    np.testing.assert_array_equal(linear.components_, moment.components_)


def test_queries_and_objects_may_be_different_rows():
    X, triplets, X_test, y_test = judged(20_000, **NOISY)
    P = X[::-1].copy()
    triplets[:, 1:] = len(X) - 1 - triplets[:, 1:]
    model = fitted("auto", triplets, X, P, sample_weight=np.full(len(triplets), 2.0))
    assert quality(model, X_test, y_test) > quality(am.Cosine(), X_test, y_test) + 0.2


def test_labels_are_fitted_by_sampled_triplets():
    X, y, X_test, y_test = groups(**NOISY)
    model = am.TripletEmbedding(random_state=5).fit(X, y)
    triplets = am.triplets.from_labels(y, 20_000, random_state=np.random.default_rng(5))
    assert quality(model, X_test, y_test) > quality(am.Cosine(), X_test, y_test) + 0.2
    expected = am.TripletEmbedding(random_state=5).fit_triplets(triplets, X)
    assert quality(model, X_test, y_test) == pytest.approx(quality(expected, X_test, y_test), abs=0.01)


@pytest.mark.parametrize("method", ["auto", "cosine", "moment", "spectral"])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_maps_and_metric_give_every_score(method, container):
    X, triplets, *_ = judged(5_000, n_rows=500)
    X[3] = 0
    model = fitted(method, triplets, container(X))
    U, V = (
        rows.toarray() if sparse.issparse(rows) else rows
        for rows in (model.transform(container(X)), model.transform_objects(container(X)))
    )
    scores = model.similarity(container(X))
    assert model.metric_ == "dot"
    assert not scores[3].any()
    np.testing.assert_allclose(scores, U @ V.T, atol=1e-12)
    pairs = np.random.default_rng(0).integers(500, size=(50, 2))
    np.testing.assert_allclose(
        model.pair_score(container(X), None, pairs), scores[pairs[:, 0], pairs[:, 1]], atol=1e-12
    )
    if method != "cosine" and model.method_ != "cosine":
        Z = X @ model.components_.T
        norms = np.linalg.norm(Z, axis=1, keepdims=True)
        Z = np.divide(Z, norms**0.7, out=np.zeros_like(Z), where=norms > 0)
        np.testing.assert_allclose(scores, Z @ Z.T, atol=1e-9)


@pytest.mark.parametrize("method", ["cosine", "linear"])
def test_contributions_of_features_add_up_to_the_score(method):
    X, triplets, *_ = judged(5_000, n_rows=500)
    model = fitted(method, triplets, X)
    explained = model.explain_pair(X[:1], X[7:8])
    assert explained.values.sum() == pytest.approx(model.pair_score(X[:1], X[7:8])[0])
    assert explained.stds is None


def test_the_same_seed_gives_the_same_bits_and_every_fit_changes_the_version_of_the_map():
    X, triplets, *_ = judged(5_000, n_rows=500)
    first, second = fitted("auto", triplets, X), fitted("auto", triplets, X)
    np.testing.assert_array_equal(first.components_, second.components_)
    before = first.object_map_version_
    first.fit_triplets(triplets[:100], X)
    assert first.object_map_version_ != before


@pytest.mark.parametrize("method", ["auto", "cosine", "spectral"])
def test_a_saved_embedding_is_the_same(method, tmp_path):
    X, triplets, X_test, _ = judged(5_000, n_rows=500)
    model = fitted(method, triplets, X)
    model.save(tmp_path / "model")
    loaded = am.load(tmp_path / "model")
    assert repr(loaded) == repr(model)
    assert (loaded.method_, loaded.validation_scores_) == (model.method_, model.validation_scores_)
    np.testing.assert_array_equal(loaded.components_, model.components_)
    np.testing.assert_array_equal(loaded.similarity(X_test), model.similarity(X_test))
    again = [one.fit_triplets(triplets[:2_000], X).components_ for one in (model, loaded)]
    np.testing.assert_array_equal(*again)


def test_files_do_not_grow_with_the_rows(tmp_path):
    X, triplets, *_ = judged(20_000, **GROUPS)
    model = fitted("linear", triplets, X)
    model.save(tmp_path / "model")
    assert (tmp_path / "model").stat().st_size < 2 * model.components_.nbytes + 10_000


def test_a_changed_state_is_refused(tmp_path):
    X, triplets, *_ = judged(5_000, n_rows=500)
    model = fitted("linear", triplets, X)
    for name, value in (("query_map", np.nan), ("method", 77), ("power", np.inf)):
        broken = model.copy()
        broken._state[name][0] = value
        with pytest.raises(ValueError, match=name):
            broken.save(tmp_path / "model")


def test_triplets_are_read_and_the_graph_is_computed_once(monkeypatch):
    X, triplets, *_ = judged(5_000, **GROUPS)
    calls = []
    for name in ("read_triplets", "graph_of"):
        original = getattr(training_set, name)
        monkeypatch.setattr(training_set, name, lambda *args, f=original, name=name: calls.append(name) or f(*args))
    fitted("auto", triplets, X)
    assert calls == ["read_triplets", "graph_of"]


def test_a_grid_search_chooses_the_method():
    X, y, _, _ = groups(n_rows=300, spread=0.4)
    grid = GridSearchCV(am.TripletEmbedding(random_state=0), {"method": ["cosine", "linear"]}, cv=3).fit(X, y)
    assert grid.best_params_ == {"method": "linear"}
    assert clone(grid.best_estimator_).get_params() == grid.best_estimator_.get_params()


@pytest.mark.parametrize("method", ["linear", "moment", "spectral"])
@pytest.mark.parametrize("weight", [1.0, 0.0])
def test_without_informative_triplets_linear_methods_raise_no_signal(method, weight):
    X, triplets, *_ = judged(100)
    triplets = triplets[:0] if weight else triplets
    with pytest.raises(NoSignalError, match="0 informative triplets"):
        fitted(method, triplets, X, sample_weight=np.full(len(triplets), weight))
    assert fitted("auto", triplets, X, sample_weight=np.full(len(triplets), weight)).method_ == "cosine"


@pytest.mark.parametrize("method", ["moment", "spectral"])
def test_alpha_regularizes_relative_to_the_size_of_features(method, monkeypatch):
    X, triplets, *_ = judged(3_000, n_rows=300)
    monkeypatch.setattr(choice, "refine", lambda L, *_, **__: Refined(L, None))
    sizes = []
    for alpha in (1e-3, 10.0):
        plain, scaled = (fitted(method, triplets, rows, alpha=alpha).components_ for rows in (X, X * 2.0**20))
        sizes.append(np.linalg.norm(plain))
        np.testing.assert_allclose(np.abs(scaled) * 2.0**20, np.abs(plain), rtol=1e-3, atol=1e-3 * np.abs(plain).max())
    assert sizes[0] > 1.5 * sizes[1]


@pytest.mark.parametrize(
    ("settings", "changed", "message"),
    [
        ({"method": "best"}, {}, "method must be.*'best'"),
        ({"n_components": 0}, {}, "n_components"),
        ({"n_components": "all"}, {}, "n_components"),
        ({"alpha": 0}, {}, "alpha must be greater than 0, got 0"),
        ({"alpha": "best"}, {}, "alpha must be.*'best'"),
        ({"alpha": np.nan}, {}, "alpha"),
        ({"random_state": "x"}, {}, "random_state"),
        ({"verbose": 1}, {}, "verbose"),
        ({}, {"P": np.ones((400, 3))}, "P must have the features of Q, 40, got 3; MomentAROMA"),
        ({}, {"sample_weight": [1.0]}, "sample_weight"),
        ({}, {"triplets": [[0, 1, 400]]}, "400"),
        ({}, {"Q": np.full((400, 40), np.nan)}, "NaN"),
        ({}, {"Q": np.full((400, 40), 1e150)}, "too large"),
    ],
)
@pytest.mark.parametrize("method", ["auto", "cosine"])
def test_bad_input_is_named_and_leaves_the_model_as_it_was(method, settings, changed, message):
    X, triplets, *_ = judged(100)
    model = am.TripletEmbedding(method).fit_triplets(triplets, X)
    before = model.similarity(X)
    model.set_params(**settings)
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit_triplets(**{"triplets": triplets, "Q": X, **changed})
    np.testing.assert_array_equal(model.similarity(X), before)

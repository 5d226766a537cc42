"""Refinement: the gradient against differences, the loss against loops, and the ranking of unseen rows."""

from itertools import repeat

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import normalize

import aromatch as am
from aromatch.learners.embedding import refinement, training_set
from aromatch.learners.embedding.projection import moment_map, psd_factor
from aromatch.learners.embedding.refinement import Batch, Settings, loss_and_gradient
from aromatch.learners.embedding.training_set import ScaledSet, Side, TripletData, ValidationSet
from grouped_rows import groups, quality
from saved_state import saved_state

# Groups whose rows spread more along some features than along others, and nearer to some groups than to others.
SPREAD = {"n_rows": 1_500, "n_groups": 30, "width": 60, "spread": 0.5, "decay": 30}


def batch(seed=0, n_queries=12, n_objects=9, width=5, container=np.asarray, is_one=False):
    """Rows in double precision; one query has no positives, and one row is zero."""
    rng = np.random.default_rng(seed)
    Q, P = (normalize(rng.normal(size=(n, width))) for n in (n_queries, n_objects))
    Q[3] = 0
    positive = rng.random((n_queries, n_objects)) < 0.3
    positive[5] = False
    is_self = np.arange(n_queries)[:, np.newaxis] == np.arange(n_objects) if is_one else None
    if is_one:
        P = Q[:n_objects]
        positive &= ~is_self
    return Batch(container(Q), container(P), positive, is_self)


def loss_by_loops(L, batch, temperature):
    """The loss as it is written down."""
    Q, P = (rows.toarray() if sparse.issparse(rows) else rows for rows in (batch.queries, batch.objects))
    losses = []
    for i, q in enumerate(Q):
        of_all = of_positives = 0.0
        for j, p in enumerate(P):
            if batch.is_self is not None and i == j:
                continue
            u, v = q @ L, p @ L
            norm = np.linalg.norm(u) * np.linalg.norm(v)
            weight = np.exp((u @ v / norm if norm else 0.0) / temperature)
            of_all += weight
            of_positives += weight * batch.positive[i, j]
        if of_positives:
            losses.append(-np.log(of_positives / of_all))
    return np.mean(losses)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("is_one", [False, True])
@pytest.mark.parametrize("temperature", [0.1, 1.0])
def test_loss_and_gradient(is_one, container, temperature):
    sampled = batch(container=container, is_one=is_one)
    L = np.random.default_rng(2).normal(size=(5, 3))
    loss, gradient = loss_and_gradient(L, sampled, temperature)
    assert loss == pytest.approx(loss_by_loops(L, sampled, temperature), rel=1e-10)
    step = 1e-6
    for index in np.ndindex(*L.shape):
        change = np.zeros_like(L)
        change[index] = step
        above, below = (loss_and_gradient(L + sign * change, sampled, temperature)[0] for sign in (1, -1))
        assert gradient[index] == pytest.approx((above - below) / (2 * step), rel=1e-5, abs=1e-8)


def test_queries_without_positives_are_ignored():
    alone = batch()._replace(positive=np.zeros((12, 9), dtype=bool))
    loss, gradient = loss_and_gradient(np.eye(5), alone, 0.1)
    assert loss == 0
    np.testing.assert_array_equal(gradient, 0)


def training_of(X, triplets, P=None, sample_weight=None):
    return TripletData.read(triplets, X, X if P is None else P, sample_weight)


def refine(training, maps=None, seed=0, settings=refinement._DEFAULT):
    """The map before and after refinement; started from the moment method unless maps are given."""
    L, L_train = maps or moment_map(training, 128, None)
    return L, refinement.refine(L, L_train, training, 0.7, np.random.default_rng(seed), settings=settings).L


def plain_maps(triplets, X):
    """The maps of `MomentAROMA` without denoising."""
    solution = am.MomentAROMA("auto").fit_triplets(triplets, X)._solution
    return psd_factor(solution.W, None), psd_factor(solution.W_train, None)


def mapped_quality(L, X_test, y_test, power=0.7):
    """How well inner products of mapped rows, divided by a power of their norms, retrieve rows of the same group."""
    Z = X_test @ L
    Z = Z / np.linalg.norm(Z, axis=1, keepdims=True) ** power
    return quality(am.OASIS().fit_triplets(np.empty((0, 3), dtype=int), Z), Z, y_test)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("is_chosen", [True, False])
def test_unseen_rows_are_ranked_better(is_chosen, container):
    X, y, X_test, y_test = groups(**SPREAD)
    training = training_of(container(X), am.triplets.from_labels(y, 30_000, random_state=0))
    maps = moment_map(training, 128, None)
    if not is_chosen:
        maps = maps[0], None
    before, after = refine(training, maps, settings=Settings(0.1, 50))
    assert mapped_quality(after, X_test, y_test) > mapped_quality(before, X_test, y_test) + 0.01
    assert after.shape == before.shape


def test_queries_and_objects_of_two_collections():
    X, y, X_test, y_test = groups(**SPREAD)
    Q, P = X[:600], X[600:]
    triplets = am.triplets.from_labels(y[:600], 30_000, random_state=0, y_objects=y[600:])
    before, after = refine(training_of(Q, triplets, P))
    assert mapped_quality(after, X_test, y_test) > mapped_quality(before, X_test, y_test) + 0.01


def test_the_same_seed_gives_the_same_bits():
    X, y, _, _ = groups(n_rows=1_500)
    training = training_of(X, am.triplets.from_labels(y, 30_000, random_state=0))
    maps = moment_map(training, 128, None)[0], None
    (L, first), (_, second), (_, other) = (
        refine(training, maps, seed, settings=Settings(0.1, 5)) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(maps[0], L)
    np.testing.assert_array_equal(first, second)
    assert np.abs(first - other).max() > 1e-6
    assert np.abs(first - L).max() > 1e-3 * np.abs(L).max()


def test_rows_in_no_triplet_the_order_of_rows_and_their_dtype_make_no_difference():
    X, y, _, _ = groups(n_rows=300)
    X = np.round(8 * X)
    triplets = am.triplets.from_labels(y, 8_000, random_state=0)
    training = training_of(X, triplets)
    maps = moment_map(training, 128, None)[0], None
    expected = refine(training, maps, settings=Settings(0.1, 10))[1]
    expected = X @ expected @ expected.T @ X.T
    more = np.full((700, X.shape[1]), 1e3)
    positions = np.sort(np.random.default_rng(0).choice(700, 300, replace=False))
    more[positions] = X
    for rows in (more, more.astype(np.float32), sparse.csr_array(more), more.astype(object), more.astype(np.int16)):
        found = refine(training_of(rows, positions[triplets]), maps, settings=Settings(0.1, 10))[1]
        np.testing.assert_allclose(X @ found @ found.T @ X.T, expected, atol=0.01 * np.abs(expected).max())


def test_units_of_features_do_not_matter():
    X, y, X_test, _ = groups(n_rows=600)
    triplets = am.triplets.from_labels(y, 12_000, random_state=0)
    units = 2.0 ** np.random.default_rng(0).integers(-6, 7, size=X.shape[1])
    training = training_of(X, triplets)
    L = moment_map(training, 128, None)[0]
    found = refine(training, (L, None), settings=Settings(0.1, 20))[1]
    in_units = refine(training_of(X * units, triplets), (L / units[:, np.newaxis], None), settings=Settings(0.1, 20))[1]
    expected = X_test @ found
    np.testing.assert_allclose(
        (X_test * units) @ in_units @ in_units.T @ (X_test * units).T,
        expected @ expected.T,
        atol=0.01 * np.abs(expected @ expected.T).max(),
    )


def test_without_components_above_the_noise_level_single_triplets_are_learned(monkeypatch):
    X, y, X_test, y_test = groups(**SPREAD)
    choices = []
    choose = refinement._choose
    monkeypatch.setattr(refinement, "_choose", lambda *args: choices.append(choose(*args)) or choices[-1])
    triplets = am.triplets.from_labels(y, 3_000, random_state=0)
    before, after = refine(training_of(X, triplets), plain_maps(triplets, X))
    assert mapped_quality(after, X_test, y_test) > mapped_quality(before, X_test, y_test) + 0.03
    assert choices[0][0].n_steps >= 100


def test_no_triplets_and_an_empty_map_leave_the_map_unchanged():
    X, y, _, _ = groups(n_rows=300)
    training = training_of(X, am.triplets.from_labels(y, 3_000, random_state=0))
    L = np.eye(40)[:, :3]
    np.testing.assert_array_equal(refine(training_of(X, np.empty((0, 3), dtype=int)), (L, L))[1], L)
    assert refine(training, (np.empty((40, 0)), None))[1].shape == (40, 0)


def test_no_step_is_taken_that_does_not_improve_validation_rows():
    # Groups that are unrelated to the rows: memorizing them does not help unseen rows.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(800, 200)), np.arange(800) % 8
    triplets = am.triplets.from_labels(y, 30_000, random_state=0)
    training, maps = training_of(X, triplets), plain_maps(triplets, X)
    before, after = refine(training, maps)
    np.testing.assert_array_equal(after, before)
    memorized = refine(training, (maps[0], None), settings=Settings(0.1, 400))[1]
    assert mapped_quality(memorized, X, y) > mapped_quality(before, X, y) + 0.05


@pytest.mark.parametrize("spread", [0.25, 0.3])
def test_where_the_closed_form_is_best_little_is_lost(spread):
    # Round groups: no linear similarity is better than that of the sums.
    X, y, X_test, y_test = groups(n_rows=800, n_groups=16, width=60, spread=spread)
    before, after = refine(training_of(X, am.triplets.from_labels(y, 30_000, random_state=0)))
    assert mapped_quality(after, X_test, y_test) > mapped_quality(before, X_test, y_test) - 0.02


def test_the_choice_is_made_from_a_map_that_was_fitted_without_validation_rows(monkeypatch):
    X, y, _, _ = groups(**SPREAD)
    triplets = am.triplets.from_labels(y, 20_000, random_state=0)
    model = am.MomentAROMA("auto", denoise=True).fit_triplets(triplets, X)
    training = training_of(X, triplets)
    is_validation = training.graph.validation_queries
    assert len(is_validation) == len(X)
    train = am.MomentAROMA(model.alpha_).fit_triplets(triplets[~is_validation[triplets].any(axis=1)], X)
    assert model.denoise_weight_ == 1
    left, right = (
        np.linalg.inv(saved_state(train)[name] / train.sum_of_weights_ + model.alpha_ * np.eye(60))
        for name in ("qq", "pp")
    )
    W = left @ (saved_state(model)["train_denoised_qp"] / (model.sum_of_weights_ * 49 / 64)) @ right
    starts = []
    choose = refinement._choose
    monkeypatch.setattr(refinement, "_choose", lambda L, *rest: starts.append(L) or choose(L, *rest))
    before, _ = refine(training, moment_map(training, 10, None))
    expected = psd_factor(W, 10)
    start = starts[0] * np.abs(before).mean(axis=1, keepdims=True)
    np.testing.assert_allclose(start @ start.T, expected @ expected.T, atol=1e-4 * np.abs(expected @ expected.T).max())


def by_adam(gradient_of, x, n_steps, rate):
    """Adam as its paper writes it, without an epsilon."""
    m = v = np.zeros_like(x)
    for t in range(1, n_steps + 1):
        g = gradient_of(x)
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g**2
        x = x - rate * (m / (1 - 0.9**t)) / np.sqrt(v / (1 - 0.99**t))
    return x


def test_steps_are_those_of_adam():
    sampled = batch(n_queries=40, n_objects=30)
    L = np.random.default_rng(2).normal(size=(5, 3))
    steps = refinement.adam(L, repeat(sampled), 0.1, lambda steps: None)
    found = [next(steps) for _ in range(7)]
    for n, step in enumerate(found, start=1):
        expected = by_adam(lambda x: loss_and_gradient(x, sampled, 0.1)[1], L, n, 0.02)
        np.testing.assert_allclose(step, expected, rtol=1e-9)
    losses = [loss_and_gradient(one, sampled, 0.1)[0] for one in (L, *found)]
    assert all(np.diff(losses) < 0)


def scaled_set(is_one, directions, n_triplets=400, weights=None):
    """Triplets of 30 queries and 20 objects with the given directions, all in double precision."""
    rng = np.random.default_rng(0)
    sides = [
        Side(normalize(rng.normal(size=(n, 5))), np.ones((n, 1)), directions(n), rng.random(n) < 0.3) for n in (30, 20)
    ]
    queries, objects = (sides[0], sides[0]) if is_one else sides
    triplets = np.column_stack([rng.integers(30, size=n_triplets), rng.integers(20, size=(n_triplets, 2))])
    return ScaledSet(queries, objects, triplets, np.ones(n_triplets) if weights is None else weights)


@pytest.mark.parametrize("is_one", [False, True])
def test_batches_sample_triplets_by_weight_and_add_the_positives_of_the_graph(is_one):
    groups_of = lambda n: np.eye(3)[np.arange(n) % 3]  # noqa: E731
    weights = np.where(np.arange(400) % 2, 0.0, 1.0)
    scaled = scaled_set(is_one, groups_of, weights=weights)
    found = next(refinement.batches(scaled, np.random.default_rng(0)))
    assert found.positive.shape == (256, 512)
    of_query = {row.tobytes(): number for number, row in enumerate(scaled.queries.rows)}
    of_object = {row.tobytes(): number for number, row in enumerate(scaled.objects.rows)}
    query = [of_query[row.tobytes()] for row in found.queries]
    shown = [of_object[row.tobytes()] for row in found.objects]
    allowed = set(map(tuple, scaled.triplets[weights > 0].tolist()))
    assert all((query[i], shown[i], shown[256 + i]) in allowed for i in range(256))
    for i in range(0, 256, 17):
        for j in range(512):
            is_self = is_one and query[i] == shown[j]
            positive = query[i] % 3 == shown[j] % 3 or shown[j] == shown[i]
            assert found.positive[i, j] == (positive and not is_self)
            assert found.is_self is None or found.is_self[i, j] == is_self
    assert len({(query[i], shown[i]) for i in range(256)}) > 50


@pytest.mark.parametrize("is_one", [False, True])
@pytest.mark.parametrize("power", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("is_identity", [False, True])
def test_log_ranks_of_validation_positives(is_one, power, container, is_identity):
    scaled = scaled_set(is_one, lambda n: np.zeros((n, 0)))
    L = np.eye(5) if is_identity else np.random.default_rng(1).normal(size=(5, 3))
    queries, objects = scaled.queries, scaled.objects
    logs = {}
    pairs = {(q, g) for q, g, _ in scaled.triplets.tolist() if queries.is_validation[q] and objects.is_validation[g]}
    for q, g in pairs:
        if is_one and q == g:
            continue
        there = [p for p in np.flatnonzero(objects.is_validation) if not (is_one and p == q)]
        Z = objects.rows[there] @ L
        scores = (Z / np.linalg.norm(Z, axis=1, keepdims=True) ** power) @ (queries.rows[q] @ L)
        own = scores[there.index(g)]
        logs.setdefault(q, []).append(np.log(1 + np.count_nonzero(scores > own)))
    assert len(logs) > 3
    expected = [np.mean(logs[query]) for query in sorted(logs)]
    sides = [side._replace(rows=container(side.rows)) for side in (queries, objects)]
    validation = ValidationSet.of(scaled._replace(queries=sides[0], objects=sides[0] if is_one else sides[1]))
    np.testing.assert_allclose(validation.log_ranks(None if is_identity else L, power), expected, rtol=1e-6)


def test_validation_rows_are_taken_from_the_whole_collection(monkeypatch):
    monkeypatch.setattr(training_set, "_MAX_VALIDATION_ROWS", 40)
    group = np.repeat(np.arange(4), 110)  # in order, as collections often are
    side = Side(np.eye(4)[group], np.ones((440, 1)), np.eye(4)[group], np.ones(440, dtype=bool))
    found = ValidationSet.of(ScaledSet(side, side, np.empty((0, 3), dtype=int), np.empty(0)))
    np.testing.assert_array_equal(found.queries.sum(axis=0), [10, 10, 10, 10])
    np.testing.assert_array_equal(found.objects.rows, found.queries)
    np.testing.assert_array_equal(found.positive.sum(axis=1), 9)


def test_triplets_without_weight_or_difference_are_ignored():
    X, y, _, _ = groups(n_rows=300)
    triplets = am.triplets.from_labels(y, 8_000, random_state=0)
    training = training_of(X, triplets)
    maps = moment_map(training, 128, None)[0], None
    expected = refine(training, maps, settings=Settings(0.1, 5))[1]
    others = np.random.default_rng(0).integers(300, size=(2_000, 3))
    weights = np.append(np.ones(8_000), np.zeros(2_000))
    more = training_of(X, np.concatenate([triplets, others]), sample_weight=weights)
    np.testing.assert_array_equal(refine(more, maps, settings=Settings(0.1, 5))[1], expected)
    others[:, 2] = others[:, 1]
    np.testing.assert_array_equal(
        refine(training_of(X, np.concatenate([triplets, others])), maps, settings=Settings(0.1, 5))[1], expected
    )


def test_components_are_orthogonal_the_largest_first():
    X, y, _, _ = groups(n_rows=300)
    L = refine(training_of(X, am.triplets.from_labels(y, 8_000, random_state=0)))[1]
    squares = L.T @ L
    np.testing.assert_allclose(squares, np.diag(np.diagonal(squares)), atol=1e-9 * squares.max())
    assert all(np.diff(np.diagonal(squares)) <= 0)


@pytest.mark.parametrize("n_objects", [1, 2, 6])
def test_hardly_any_validation_object_leaves_a_finite_map(n_objects):
    rng = np.random.default_rng(0)
    Q, target = rng.normal(size=(300, 8)), rng.integers(0, n_objects + 2, size=300)
    P = np.concatenate([rng.normal(size=(n_objects, 8)), np.eye(8)[:2]])
    Q[np.arange(300), target % 8] += 2
    triplets = np.concatenate([np.column_stack([np.arange(300), target, (target + 1) % len(P)])] * 5)
    training = training_of(Q, triplets, P)
    before, after = refine(training)
    assert np.isfinite(after).all()
    if training.graph.validation_objects.sum() < 2:  # default settings
        assert not np.allclose(after @ after.T, before @ before.T)


def test_the_result_is_the_mean_of_the_last_quarter_of_the_steps(monkeypatch):
    assert refinement.mean_of_last_quarter(5, 8, map(np.float32, range(10))) == 3.5
    assert refinement.mean_of_last_quarter(1, 1, map(np.float32, range(10))) == 0
    X, y, _, _ = groups(n_rows=300)
    triplets = am.triplets.from_labels(y, 3_000, random_state=0)
    L = psd_factor(am.OASIS().fit_triplets(triplets, X).W_, 5)
    taken = []
    steps = refinement.adam
    monkeypatch.setattr(refinement, "adam", lambda *args: (taken.append(L) or L for L in steps(*args)))
    found = refine(training_of(X, triplets), (L, None), settings=Settings(0.2, 9))[1]
    expected = np.mean(taken[7:], axis=0) * np.abs(L).mean(axis=1, keepdims=True)
    assert len(taken) == 9
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, rtol=1e-4, atol=1e-6)

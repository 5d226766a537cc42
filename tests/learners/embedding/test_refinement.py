"""Refined projections: the derivative against differences, the loss against loops, and rows never seen before."""

import pickle
from itertools import repeat

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import normalize

import aromatch as am
from aromatch.kernels.rows import RowView
from aromatch.learners.embedding import refinement
from aromatch.learners.embedding.refinement import Batch, loss_and_gradient
from aromatch.learners.moment.sums import is_held_out
from grouped_rows import groups, quality

# Groups whose rows spread more along some features than along others, and nearer to some groups than to others.
SPREAD = {"n_rows": 1_500, "n_groups": 30, "width": 60, "spread": 0.5, "decay": 30}


def batch(seed=0, n_queries=12, n_objects=9, width=5, container=np.asarray, is_one=False):
    """Rows in double precision; to one query nothing belongs, and one row is zero."""
    rng = np.random.default_rng(seed)
    Q, P = (normalize(rng.normal(size=(n, width))) for n in (n_queries, n_objects))
    Q[3] = 0
    belongs = rng.random((n_queries, n_objects)) < 0.3
    belongs[5] = False
    is_self = np.arange(n_queries)[:, np.newaxis] == np.arange(n_objects) if is_one else None
    if is_one:
        P = Q[:n_objects]
        belongs &= ~is_self
    return Batch(container(Q), container(P), belongs, is_self)


def loss_by_loops(L, batch, temperature):
    """The loss as it is written down."""
    Q, P = (rows.toarray() if sparse.issparse(rows) else rows for rows in (batch.queries, batch.objects))
    losses = []
    for i, q in enumerate(Q):
        of_all = of_right = 0.0
        for j, p in enumerate(P):
            if batch.is_self is not None and i == j:
                continue
            u, v = q @ L, p @ L
            norm = np.linalg.norm(u) * np.linalg.norm(v)
            weight = np.exp((u @ v / norm if norm else 0.0) / temperature)
            of_all += weight
            of_right += weight * batch.belongs[i, j]
        if of_right:
            losses.append(-np.log(of_right / of_all))
    return np.mean(losses)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("is_one", [False, True])
@pytest.mark.parametrize("temperature", [0.1, 1.0])
def test_loss_and_derivative(is_one, container, temperature):
    judged = batch(container=container, is_one=is_one)
    L = np.random.default_rng(2).normal(size=(5, 3))
    loss, gradient = loss_and_gradient(L, judged, temperature)
    assert loss == pytest.approx(loss_by_loops(L, judged, temperature), rel=1e-10)
    step = 1e-6
    for place in np.ndindex(*L.shape):
        change = np.zeros_like(L)
        change[place] = step
        above, below = (loss_and_gradient(L + sign * change, judged, temperature)[0] for sign in (1, -1))
        assert gradient[place] == pytest.approx((above - below) / (2 * step), rel=1e-5, abs=1e-8)


def test_queries_to_which_nothing_belongs_have_no_say():
    alone = batch()._replace(belongs=np.zeros((12, 9), dtype=bool))
    loss, gradient = loss_and_gradient(np.eye(5), alone, 0.1)
    assert loss == 0
    np.testing.assert_array_equal(gradient, 0)


def projected(X, triplets, P=None, normalize=0.7, **settings):
    return am.MomentAROMA("auto").fit_triplets(triplets, X, P).project(normalize=normalize, **settings)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("settings", [{}, {"temperature": 0.1, "n_steps": 50}, {"temperature": 0.1}, {"n_steps": 30}])
def test_new_rows_are_ranked_better(settings, container):
    X, y, X_test, y_test = groups(**SPREAD)
    triplets = am.triplets.from_labels(y, 30_000, random_state=0)
    before = projected(container(X), triplets)
    after = before.refine(triplets, container(X), **settings)
    assert quality(after, X_test, y_test) > quality(before, X_test, y_test) + 0.01
    assert after.L_.shape == before.L_.shape
    assert after.normalize == 0.7


def test_queries_and_objects_of_two_collections():
    X, y, X_test, y_test = groups(**SPREAD)
    Q, P = X[:600], X[600:]
    triplets = am.triplets.from_labels(y[:600], 30_000, random_state=0, y_objects=y[600:])
    before = projected(Q, triplets, P)
    after = before.refine(triplets, Q, P)
    assert quality(after, X_test, y_test) > quality(before, X_test, y_test) + 0.01


def test_the_same_seed_gives_the_same_bits_and_the_projection_stays_as_it_was():
    X, y, _, _ = groups(n_rows=1_500)
    triplets = am.triplets.from_labels(y, 30_000, random_state=0)
    before = projected(X, triplets)
    L = before.L_
    found = [before.refine(triplets, X, temperature=0.1, n_steps=5, random_state=seed).L_ for seed in (0, 0, 1)]
    np.testing.assert_array_equal(before.L_, L)
    np.testing.assert_array_equal(found[0], found[1])
    assert np.abs(found[0] - found[2]).max() > 1e-6
    assert np.abs(found[0] - L).max() > 1e-3 * np.abs(L).max()
    np.testing.assert_array_equal(before.refine(triplets, X, n_steps=0).L_, L)


def test_rows_that_no_triplet_names_and_where_the_others_stand_make_no_difference():
    X, y, _, _ = groups(n_rows=300)
    triplets = am.triplets.from_labels(y, 8_000, random_state=0)
    before = projected(X, triplets)
    expected = before.refine(triplets, X, temperature=0.1, n_steps=10).similarity(X)
    more = np.full((700, X.shape[1]), 1e3)
    places = np.sort(np.random.default_rng(0).choice(700, 300, replace=False))
    more[places] = X
    for rows in (more, more.astype(np.float32), sparse.csr_array(more)):
        found = before.refine(places[triplets], rows, temperature=0.1, n_steps=10).similarity(X)
        np.testing.assert_allclose(found, expected, atol=0.01 * np.abs(expected).max())


def test_units_of_features_do_not_matter():
    X, y, X_test, _ = groups(n_rows=600)
    triplets = am.triplets.from_labels(y, 12_000, random_state=0)
    units = 2.0 ** np.random.default_rng(0).integers(-6, 7, size=X.shape[1])
    before = projected(X, triplets)
    other = before.copy()
    other._state = {**before._state, "L": before.L_ / units[:, np.newaxis]}
    found = before.refine(triplets, X, temperature=0.1, n_steps=20).similarity(X_test)
    in_units = other.refine(triplets, X * units, temperature=0.1, n_steps=20).similarity(X_test * units)
    np.testing.assert_allclose(in_units, found, atol=0.01 * np.abs(found).max())


def test_judgements_of_which_nothing_stands_out_are_learned_one_by_one(monkeypatch):
    X, y, X_test, y_test = groups(**SPREAD)
    triplets = am.triplets.from_labels(y, 3_000, random_state=0)
    before = projected(X, triplets)
    choices = []
    chosen = refinement._chosen
    monkeypatch.setattr(refinement, "_chosen", lambda *args: choices.append(chosen(*args)) or choices[-1])
    found = [quality(model, X_test, y_test) for model in (before, before.refine(triplets, X))]
    assert found[1] > found[0] + 0.03
    assert choices[0].n_steps >= 100


def test_nothing_to_learn_from_leaves_it_as_it_is():
    X, y, _, _ = groups(n_rows=300)
    before = projected(X, am.triplets.from_labels(y, 3_000, random_state=0))
    empty = np.empty((0, 3), dtype=int)
    for settings in ({}, {"temperature": 0.1, "n_steps": 10}):
        np.testing.assert_array_equal(before.refine(empty, X, **settings).L_, before.L_)


def test_a_space_without_directions_stays_one():
    X, y, _, _ = groups(n_rows=300)
    nothing = am.OASIS(init=-1.0).fit_triplets(np.empty((0, 3), dtype=int), X).project()
    assert nothing.refine(am.triplets.from_labels(y, 1_000, random_state=0), X).L_.shape == (40, 0)


def test_no_step_is_taken_that_does_not_help_rows_that_were_held_out():
    # Groups that have nothing to do with the rows: what can be learned by heart says nothing of new rows.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(800, 200)), np.arange(800) % 8
    triplets = am.triplets.from_labels(y, 30_000, random_state=0)
    before = projected(X, triplets)
    after = before.refine(triplets, X)
    by_heart = before.refine(triplets, X, temperature=0.1, n_steps=400)
    assert quality(by_heart, X, y) > quality(before, X, y) + 0.05
    np.testing.assert_array_equal(after.L_, before.L_)


@pytest.mark.parametrize("spread", [0.25, 0.3])
def test_where_the_closed_form_is_best_little_is_lost(spread):
    # Round groups: no linear similarity is better than that of the sums.
    X, y, X_test, y_test = groups(n_rows=800, n_groups=16, width=60, spread=spread)
    triplets = am.triplets.from_labels(y, 30_000, random_state=0)
    before = projected(X, triplets)
    assert quality(before.refine(triplets, X), X_test, y_test) > quality(before, X_test, y_test) - 0.02


@pytest.mark.parametrize("denoise", [False, True])
def test_the_choice_is_made_from_a_projection_that_has_not_seen_what_is_held_out(denoise, monkeypatch):
    X, y, _, _ = groups(**SPREAD)
    triplets = am.triplets.from_labels(y, 20_000, random_state=0)
    model = am.MomentAROMA("auto", denoise=denoise).fit_triplets(triplets, X)
    is_new = is_held_out(RowView.of_dense(X), np.arange(len(X)))
    known = am.MomentAROMA(model.lam_).fit_triplets(triplets[~is_new[triplets].any(axis=1)], X)
    assert model.denoised_ == float(denoise)
    W = known.W_
    if denoise:
        state = model._state
        left, right = (np.linalg.inv(known._state[s] / known.weight_ + model.lam_ * np.eye(60)) for s in ("qq", "pp"))
        W = left @ (state["known_qp"] / (model.weight_ * 49 / 64)) @ right
    np.testing.assert_allclose(model._W_of_known_rows, W, rtol=1e-6, atol=1e-8 * np.abs(W).max())
    starts = []
    chosen = refinement._chosen
    monkeypatch.setattr(refinement, "_chosen", lambda L, *rest: starts.append(L) or chosen(L, *rest))
    nearby = model.project(rank=10)
    nearby.refine(triplets, X)
    expected = am.OASIS(init=W).fit_triplets(np.empty((0, 3), dtype=int), X).project(rank=10).L_
    start = starts[0] * np.abs(nearby.L_).mean(axis=1, keepdims=True)
    np.testing.assert_allclose(start @ start.T, expected @ expected.T, atol=1e-4 * np.abs(expected @ expected.T).max())
    # Nothing is held out by others, and then nothing is chosen.
    am.MomentAROMA(0.01).fit_triplets(triplets, X).project(rank=10).refine(triplets, X)
    assert len(starts) == 1


def by_adam(gradient_of, x, n_steps, rate):
    """Adam as its paper writes it, without an epsilon."""
    m = v = np.zeros_like(x)
    for t in range(1, n_steps + 1):
        g = gradient_of(x)
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g**2
        x = x - rate * (m / (1 - 0.9**t)) / np.sqrt(v / (1 - 0.99**t))
    return x


def test_steps_are_those_of_adam():
    judged = batch(n_queries=40, n_objects=30)
    L = np.random.default_rng(2).normal(size=(5, 3))
    steps = refinement._steps(L, repeat(judged), 0.1, lambda steps: None)
    found = [next(steps) for _ in range(7)]
    for n, step in enumerate(found, start=1):
        expected = by_adam(lambda x: loss_and_gradient(x, judged, 0.1)[1], L, n, 0.02)
        np.testing.assert_allclose(step, expected, rtol=1e-9)
    losses = [loss_and_gradient(one, judged, 0.1)[0] for one in (L, *found)]
    assert all(np.diff(losses) < 0)


def judgements(is_one, directions, n_triplets=400, weights=None):
    """Triplets of 30 queries and 20 objects with the given directions, all in double precision."""
    rng = np.random.default_rng(0)
    sides = [
        refinement.Side(normalize(rng.normal(size=(n, 5))), np.ones((n, 1)), directions(n), rng.random(n) < 0.3)
        for n in (30, 20)
    ]
    queries, objects = (sides[0], sides[0]) if is_one else sides
    triplets = np.column_stack([rng.integers(30, size=n_triplets), rng.integers(20, size=(n_triplets, 2))])
    weights = np.ones(n_triplets) if weights is None else weights
    return refinement.Judgements(queries, objects, triplets, weights)


@pytest.mark.parametrize("is_one", [False, True])
def test_what_a_batch_says(is_one):
    groups_of = lambda n: np.eye(3)[np.arange(n) % 3]  # noqa: E731
    weights = np.where(np.arange(400) % 2, 0.0, 1.0)
    judged = judgements(is_one, groups_of, weights=weights)
    found = next(judged.batches(np.random.default_rng(0)))
    assert found.belongs.shape == (256, 512)
    by_row = {row.tobytes(): number for number, row in enumerate(judged.queries.rows)}
    of_object = {row.tobytes(): number for number, row in enumerate(judged.objects.rows)}
    query = [by_row[row.tobytes()] for row in found.queries]
    shown = [of_object[row.tobytes()] for row in found.objects]
    drawn = set(map(tuple, judged.triplets[weights > 0].tolist()))
    assert all((query[i], shown[i], shown[256 + i]) in drawn for i in range(256))
    preferred = {(query[i], shown[i]) for i in range(256)}
    for i in range(0, 256, 17):
        for j in range(512):
            is_self = is_one and query[i] == shown[j]
            belongs = query[i] % 3 == shown[j] % 3 or shown[j] == shown[i]
            assert found.belongs[i, j] == (belongs and not is_self)
            assert found.is_self is None or found.is_self[i, j] == is_self
    assert len(preferred) > 50


@pytest.mark.parametrize("is_one", [False, True])
@pytest.mark.parametrize("power", [0.0, 0.7, 1.0])
def test_ranks_of_what_is_held_out(is_one, power):
    judged = judgements(is_one, lambda n: np.zeros((n, 0)))
    L = np.random.default_rng(1).normal(size=(5, 3))
    new = refinement._New.of(judged)
    logs = {}
    pairs = {(q, g) for q, g, _ in judged.triplets.tolist() if judged.queries.is_new[q] and judged.objects.is_new[g]}
    for q, g in pairs:
        if is_one and q == g:
            continue
        there = [p for p in np.flatnonzero(judged.objects.is_new) if not (is_one and p == q)]
        Z = judged.objects.rows[there] @ L
        scores = (Z / np.linalg.norm(Z, axis=1, keepdims=True) ** power) @ (judged.queries.rows[q] @ L)
        own = scores[there.index(g)]
        logs.setdefault(q, []).append(np.log(1 + np.count_nonzero(scores > own)))
    assert len(logs) > 3
    expected = [np.mean(logs[query]) for query in sorted(logs)]
    np.testing.assert_allclose(new.log_ranks(L, power), expected, rtol=1e-6)


def test_what_is_held_out_is_looked_at_from_one_end_to_the_other(monkeypatch):
    monkeypatch.setattr(refinement, "_MOST_ROWS", 40)
    group = np.repeat(np.arange(4), 110)  # in order, as collections often are
    side = refinement.Side(np.eye(4)[group], np.ones((440, 1)), np.eye(4)[group], np.ones(440, dtype=bool))
    new = refinement._New.of(refinement.Judgements(side, side, np.empty((0, 3), dtype=int), np.empty(0)))
    np.testing.assert_array_equal(new.queries.sum(axis=0), [10, 10, 10, 10])
    np.testing.assert_array_equal(new.objects.rows, new.queries)
    np.testing.assert_array_equal(new.belongs.sum(axis=1), 9)


def test_judgements_without_weight_and_of_one_object_with_itself_do_not_count():
    X, y, _, _ = groups(n_rows=300)
    triplets = am.triplets.from_labels(y, 8_000, random_state=0)
    before = projected(X, triplets)
    expected = before.refine(triplets, X, temperature=0.1, n_steps=5).L_
    others = np.random.default_rng(0).integers(300, size=(2_000, 3))
    weights = np.append(np.ones(8_000), np.zeros(2_000))
    found = before.refine(np.concatenate([triplets, others]), X, sample_weight=weights, temperature=0.1, n_steps=5)
    np.testing.assert_array_equal(found.L_, expected)
    others[:, 2] = others[:, 1]
    found = before.refine(np.concatenate([triplets, others]), X, temperature=0.1, n_steps=5)
    np.testing.assert_array_equal(found.L_, expected)


def test_what_comes_out_are_eigenvectors_the_largest_first():
    X, y, _, _ = groups(n_rows=300)
    triplets = am.triplets.from_labels(y, 8_000, random_state=0)
    L = projected(X, triplets).refine(triplets, X, temperature=0.1, n_steps=20).L_
    squares = L.T @ L
    np.testing.assert_allclose(squares, np.diag(np.diagonal(squares)), atol=1e-9 * squares.max())
    assert all(np.diff(np.diagonal(squares)) <= 0)


def test_files_and_names(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y, X_test, _ = groups(n_rows=300)
    names = [f"feature {i}" for i in range(X.shape[1])]
    frame = pandas.DataFrame(X, columns=names)
    triplets = am.triplets.from_labels(y, 8_000, random_state=0)
    found = projected(frame, triplets).refine(triplets, frame, temperature=0.1, n_steps=5)
    found.save(tmp_path / "model")
    again = am.load(tmp_path / "model")
    assert list(again.feature_names_in_) == names
    np.testing.assert_array_equal(again.L_, found.L_)
    np.testing.assert_array_equal(again.similarity(X_test), found.similarity(X_test))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": 0.01}, "temperature must be at least 0.03, got 0.01"),
        ({"temperature": "hot"}, "temperature must be one of 'auto', got 'hot'"),
        ({"n_steps": "many"}, "n_steps must be one of 'auto', got 'many'"),
        ({"n_steps": -1}, "n_steps must be at least 0, got -1"),
        ({"sample_weight": [1.0]}, "sample_weight"),
        ({"triplets": [[0, 1, 99]]}, "other object of triplet"),
        ({"Q": np.zeros((3, 2))}, "Q has 2 features, but the model was learned on 3"),
        ({"Q": np.full((3, 3), np.nan)}, "Q contains NaN or infinity in row 0"),
    ],
)
def test_bad_input(settings, message):
    nearby = am.MomentAROMA().fit_triplets([[0, 1, 2]], np.eye(3)).project()
    arguments = {"triplets": [[0, 1, 2], [1, 0, 2]], "Q": np.eye(3)} | settings
    with pytest.raises(ValueError, match=message):
        nearby.refine(**arguments)


def test_a_projection_without_vectors_of_its_own_cannot_be_refined():
    model = am.MomentAROMA().fit_triplets([[0, 1, 2]], np.eye(3))
    with pytest.raises(ValueError, match="refine needs kind 'psd'"):
        model.project("symmetric").refine([[0, 1, 2]], np.eye(3))
    with pytest.raises(NotFittedError):
        am.learners.Projection().refine([[0, 1, 2]], np.eye(3))


@pytest.mark.parametrize("is_one", [True, False])
def test_the_graph_of_the_learner_is_not_made_again_and_no_other_is_taken_for_it(is_one, monkeypatch):
    X, y, _, _ = groups(**SPREAD)
    objects = () if is_one else (X[::-1].copy(),)
    triplets, others = (am.triplets.from_labels(y, 20_000, random_state=seed) for seed in range(2))
    if not is_one:
        triplets[:, 1:], others[:, 1:] = len(X) - 1 - triplets[:, 1:], len(X) - 1 - others[:, 1:]
    nearby = am.MomentAROMA("auto", denoise=True).fit_triplets(triplets, X, *objects).project(rank=10)
    settings = {"temperature": 0.1, "n_steps": 5}
    made = []
    graph_of = refinement.graph_of
    monkeypatch.setattr(refinement, "graph_of", lambda block: made.append(block) or graph_of(block))
    with_known = [nearby.refine(each, X, *objects, **settings).L_ for each in (triplets, others)]
    assert len(made) == 1
    nearby._graph = None
    without = [nearby.refine(each, X, *objects, **settings).L_ for each in (triplets, others)]
    assert len(made) == 3
    np.testing.assert_array_equal(with_known, without)


def test_a_copy_of_a_projection_refines_like_it():
    X, y, _, _ = groups(**SPREAD)
    triplets = am.triplets.from_labels(y, 3_000, random_state=0)
    nearby = projected(X, triplets)
    expected = nearby.refine(triplets, X).L_
    np.testing.assert_array_equal(nearby.copy().refine(triplets, X).L_, expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(nearby)).refine(triplets, X).L_, expected)


@pytest.mark.parametrize("n_objects", [1, 2, 6])
def test_where_hardly_any_object_is_held_out_as_many_steps_are_taken_as_are_asked_for(n_objects):
    rng = np.random.default_rng(0)
    Q, wanted = rng.normal(size=(300, 8)), rng.integers(0, n_objects + 2, size=300)
    P = np.concatenate([rng.normal(size=(n_objects, 8)), np.eye(8)[:2]])
    Q[np.arange(300), wanted % 8] += 2
    triplets = np.column_stack([np.arange(300), wanted, (wanted + 1) % len(P)])
    triplets = np.concatenate([triplets] * 5)
    nearby = am.MomentAROMA("auto", denoise=True).fit_triplets(triplets, Q, P).project()
    assert np.isfinite(nearby.L_).all()
    n_held = np.count_nonzero(is_held_out(RowView.of_dense(P), np.arange(len(P))))
    refined = nearby.refine(triplets, Q, P, n_steps=30)
    if n_held < 2:
        assert not np.allclose(refined.L_ @ refined.L_.T, nearby.L_ @ nearby.L_.T)


def test_rows_that_have_to_be_converted_are_refined_like_those_that_need_not():
    X, y, _, _ = groups(n_rows=300)
    triplets = am.triplets.from_labels(y, 3_000, random_state=0)
    X = np.round(X * 8)
    nearby, settings = projected(X, triplets), {"temperature": 0.2, "n_steps": 5}
    expected = nearby.refine(triplets, X, **settings).L_
    for rows in (X.astype(object), X.astype(np.int16), sparse.csr_array(X.astype(np.int64))):
        np.testing.assert_allclose(nearby.refine(triplets, rows, **settings).L_, expected, atol=1e-4)


def test_files_and_copies_do_not_grow_with_the_rows_that_were_learned():
    X, y, _, _ = groups(**SPREAD)
    triplets = am.triplets.from_labels(y, 20_000, random_state=0)
    nearby = am.MomentAROMA("auto", denoise=True).fit_triplets(triplets, X).project()
    assert nearby._graph is not None
    assert nearby.copy()._graph is None
    assert len(pickle.dumps(nearby)) < 4 * nearby.L_.nbytes + 10_000


def test_what_is_kept_is_the_mean_of_the_last_quarter_of_the_steps(monkeypatch):
    assert refinement._after(5, 8, map(np.float32, range(10))) == 3.5
    assert refinement._after(1, 1, map(np.float32, range(10))) == 0
    X, y, _, _ = groups(n_rows=300)
    triplets = am.triplets.from_labels(y, 3_000, random_state=0)
    nearby = am.OASIS().fit_triplets(triplets, X).project(rank=5)
    taken = []
    steps = refinement._steps
    monkeypatch.setattr(refinement, "_steps", lambda *args: (taken.append(L) or L for L in steps(*args)))
    found = nearby.refine(triplets, X, temperature=0.2, n_steps=9).L_
    sizes = np.abs(nearby.L_).mean(axis=1, keepdims=True)
    expected = np.mean(taken[7:], axis=0) * sizes
    assert len(taken) == 9
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, rtol=1e-4, atol=1e-6)

"""Refined projections: the derivative against differences, the loss against loops, and rows never seen before."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import normalize

import aromatch as am
from aromatch.learners import refinement
from aromatch.learners.refinement import Known, loss_and_gradient
from grouped_rows import groups, quality

# Groups whose rows spread more along some features than along others, and nearer to some groups than to others.
SPREAD = {"n_rows": 1_500, "n_groups": 30, "width": 60, "spread": 0.5, "decay": 30}


def known(seed, n_rows, n_groups=3, width=5, container=np.asarray):
    """Rows in double precision with directions of their groups, one of them of a group of its own."""
    rng = np.random.default_rng(seed)
    directions = np.eye(n_groups + 1)[np.append(rng.integers(n_groups, size=n_rows - 1), n_groups)]
    return Known(container(normalize(rng.normal(size=(n_rows, width)))), np.ones((n_rows, 1)), directions)


def loss_by_loops(L, queries, objects, temperature):
    """The loss as it is written down."""
    dense = [np.asarray(k.rows.todense()) if sparse.issparse(k.rows) else k.rows for k in (queries, objects or queries)]
    losses = []
    for i, q in enumerate(dense[0]):
        of_all = of_right = 0.0
        for j, p in enumerate(dense[1]):
            if objects is None and i == j:
                continue
            u, v = q @ L, p @ L
            norm = np.linalg.norm(u) * np.linalg.norm(v)
            weight = np.exp((u @ v / norm if norm else 0.0) / temperature)
            of_all += weight
            if queries.directions[i] @ (objects or queries).directions[j] > 0.5:
                of_right += weight
        if of_right:
            losses.append(-np.log(of_right / of_all))
    return np.mean(losses)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("n_objects", [None, 9])
@pytest.mark.parametrize("temperature", [0.1, 1.0])
def test_loss_and_derivative(n_objects, container, temperature):
    queries = known(0, 12, container=container)
    objects = None if n_objects is None else known(1, n_objects, container=container)
    if container is np.asarray:
        queries.rows[3] = 0
    L = np.random.default_rng(2).normal(size=(5, 3))
    loss, gradient = loss_and_gradient(L, queries, objects, temperature)
    assert loss == pytest.approx(loss_by_loops(L, queries, objects, temperature), rel=1e-10)
    step = 1e-6
    for place in np.ndindex(*L.shape):
        change = np.zeros_like(L)
        change[place] = step
        above, below = (loss_and_gradient(L + sign * change, queries, objects, temperature)[0] for sign in (1, -1))
        assert gradient[place] == pytest.approx((above - below) / (2 * step), rel=1e-5, abs=1e-8)


def test_queries_to_which_nothing_belongs_have_no_say():
    alone = Known(np.eye(4), np.ones((4, 1)), np.eye(4))
    loss, gradient = loss_and_gradient(np.eye(4), alone, None, 0.1)
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


def test_what_cannot_be_told_is_left_as_it_is():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 6))
    once_each = np.arange(900).reshape(-1, 3)
    before = projected(X, once_each)
    np.testing.assert_array_equal(before.refine(once_each, X).L_, before.L_)
    empty = np.empty((0, 3), dtype=int)
    np.testing.assert_array_equal(before.refine(empty, X, temperature=0.1, n_steps=10).L_, before.L_)


def test_rows_that_want_what_they_are_not_and_a_space_without_directions():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 5)), np.arange(600) % 2
    triplets = am.triplets.from_labels(y, 10_000, random_state=0)
    unlike = triplets[:, [0, 2, 1]]
    before = am.OASIS(init="identity").fit_triplets(unlike[:100], X).project()
    np.testing.assert_array_equal(before.refine(unlike, X, temperature=0.1, n_steps=10).L_, before.L_)
    nothing = am.OASIS(init=-1.0).fit_triplets(np.empty((0, 3), dtype=int), X).project()
    assert nothing.refine(triplets, X).L_.shape == (5, 0)


def test_no_step_is_taken_that_does_not_help_queries_that_were_held_out():
    # Groups that have nothing to do with the rows: what can be learned by heart says nothing of new rows.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(800, 200)), np.arange(800) % 8
    triplets = am.triplets.from_labels(y, 30_000, random_state=0)
    before = am.OASIS(init="identity").fit_triplets(triplets[:1], X).project()
    after = before.refine(triplets, X)
    assert np.abs(before.refine(triplets, X, temperature=0.1, n_steps=100).L_ - before.L_).max() > 0.1
    new = rng.normal(size=(800, 200))
    assert abs(quality(after, new, y) - quality(before, new, y)) < 0.01


def by_adam(gradient_of, x, n_steps, rate):
    """Adam as its paper writes it, without an epsilon."""
    m = v = np.zeros_like(x)
    for t in range(1, n_steps + 1):
        g = gradient_of(x)
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g**2
        x = x - rate * (m / (1 - 0.9**t)) / np.sqrt(v / (1 - 0.99**t))
    return x


def test_steps_are_those_of_adam():
    queries = known(0, 40)
    L = np.random.default_rng(2).normal(size=(5, 3))
    steps = refinement._steps(L, queries, None, 0.1, np.random.default_rng(0), lambda steps: None)
    found = [next(steps) for _ in range(7)]
    for n, step in enumerate(found, start=1):
        expected = by_adam(lambda x: loss_and_gradient(x, queries, None, 0.1)[1], L, n, 0.02)
        np.testing.assert_allclose(step, expected, rtol=1e-9)
    losses = [loss_and_gradient(one, queries, None, 0.1)[0] for one in (L, *found)]
    assert all(np.diff(losses) < 0)


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
        ({"triplets": [[0, 1, 99]]}, "other object of triplet number 0"),
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

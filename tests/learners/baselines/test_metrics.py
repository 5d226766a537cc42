"""The metric baselines against metric-learn, direct solvers and cases worked by hand.

The fixtures are made by tests/fixtures/make_metric_learn.py. ITML is compared after a fixed number of sweeps, with
the same pairs in the same order, so that only rounding differs; 1e-9 leaves room for another BLAS.
"""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse
from sklearn.datasets import load_wine
from sklearn.preprocessing import normalize, scale

import aromatch as am
from aromatch.learners.baselines import lmnn, pairs
from aromatch.learners.baselines.lego import later_distance
from aromatch.learners.baselines.lmnn import Neighbours
from saved_state import saved_state

FIXTURES = np.load(Path(__file__).parents[2] / "fixtures" / "metric_learn.npz")


def wine():
    X, y = load_wine(return_X_y=True)
    return normalize(scale(X)), y


def pairs_of(n_rows, n, seed=0):
    numbers = np.random.default_rng(seed).integers(n_rows, size=(n, 2))
    return numbers[numbers[:, 0] != numbers[:, 1]]


# -- steps in blocks -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
def test_steps_in_blocks_are_the_same_steps_one_by_one(n, container):
    rng = np.random.default_rng(n)
    V = rng.normal(size=(n, 9)) * (rng.random((n, 9)) < 0.5)
    seen, expected_seen = [], []

    def beta_of(i, d, kept):
        kept.append((i, d))
        return 0.0 if i % 3 == 0 or d == 0 else (0.3 - 0.1 * (i % 5)) / d

    M, expected = np.eye(9), np.eye(9)
    pairs.logdet_steps(M, container(V), lambda i, d: beta_of(i, d, seen), lambda steps: None)
    for i, v in enumerate(V):
        expected += beta_of(i, v @ expected @ v, expected_seen) * np.outer(expected @ v, v @ expected)
    np.testing.assert_allclose(M, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(np.array(seen), np.array(expected_seen), rtol=1e-9, atol=1e-12)


# -- ITML ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sweeps", [1, 20])
@pytest.mark.parametrize("gamma", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_itml_agrees_with_metric_learn(gamma, sweeps, container):
    model = am.ITML(gamma=gamma, max_sweeps=sweeps, tol=0.0, bounds=tuple(FIXTURES["bounds"]))
    model.fit_pairs(FIXTURES["pairs"], FIXTURES["is_similar"], container(FIXTURES["X"]))
    np.testing.assert_allclose(model.M_, FIXTURES[f"itml_{gamma}_{sweeps}"], rtol=1e-9, atol=1e-9)
    assert model.n_sweeps_ == sweeps


@pytest.mark.parametrize("gamma", [0.5, 3.0])
def test_itml_converges_to_the_minimum_that_a_direct_solver_finds(gamma):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(8, 2))
    numbers, is_similar, (near, far) = pairs_of(8, 8, seed=2), np.arange(8) % 2 == 0, (0.4, 3.0)
    is_similar = is_similar[: len(numbers)]
    V, xi_0, delta = X[numbers[:, 0]] - X[numbers[:, 1]], np.where(is_similar, near, far), np.where(is_similar, 1, -1)

    def parts(flat):
        L = np.array([[np.exp(flat[0]), 0], [flat[1], np.exp(flat[2])]])
        return L @ L.T, np.exp(flat[3:])

    def objective(flat):
        M, xi = parts(flat)
        ratio = xi / xi_0
        return np.trace(M) - np.linalg.slogdet(M)[1] - 2 + gamma * np.sum(ratio - np.log(ratio) - 1)

    def slack(flat):
        M, xi = parts(flat)
        return delta * (xi - np.einsum("ij,jk,ik->i", V, M, V))

    start = np.concatenate([np.zeros(3), np.log(np.einsum("ij,ij->i", V, V))])
    options = {"maxiter": 1000, "ftol": 1e-10}
    constraints = {"type": "ineq", "fun": slack}
    direct = optimize.minimize(objective, start, method="SLSQP", constraints=constraints, options=options)
    assert direct.success
    model = am.ITML(gamma=gamma, bounds=(near, far), tol=0.0, max_sweeps=3000).fit_pairs(numbers, is_similar, X)
    np.testing.assert_allclose(model.M_, parts(direct.x)[0], atol=1e-4)


def test_more_gamma_satisfies_more_pairs():
    X, y = wine()
    satisfied = []
    for gamma in (0.01, 1.0, 100.0):
        model = am.ITML(gamma=gamma, bounds=(0.5, 2.5), n_constraints=400, max_sweeps=30, random_state=0).fit(X, y)
        triplets = am.triplets.from_labels(y, 2000, random_state=1)
        near = -model.pair_score(X, X, triplets[:, :2])
        far = -model.pair_score(X, X, triplets[:, [0, 2]])
        satisfied.append(np.maximum(near - 0.5, 0).mean() + np.maximum(2.5 - far, 0).mean())
    assert satisfied[0] > satisfied[1] > satisfied[2]


def test_itml_stops_when_its_multipliers_do():
    X, y = wine()
    model = am.ITML(n_constraints=50, max_sweeps=5000, tol=0.01, random_state=0).fit(X, y)
    assert 1 < model.n_sweeps_ < 5000


# -- LEGO ------------------------------------------------------------------------------------------------------


@given(d=st.floats(1e-3, 1e3), y=st.floats(1e-3, 1e3), eta=st.floats(1e-4, 1e4))
def test_the_distance_after_a_step_of_lego_solves_its_quadratic(d, y, eta):
    y_bar = later_distance(d, y, eta)
    assert y_bar > 0
    terms = eta * d * y_bar**2, (1 - eta * y * d) * y_bar, -d
    assert abs(sum(terms)) <= 1e-9 * sum(map(abs, terms)) + 1e-9 * eta * y * d * y_bar
    assert min(d, y) * (1 - 1e-9) <= y_bar <= max(d, y) * (1 + 1e-9)


def test_a_step_of_lego_by_hand():
    """One feature: d = 4, y = 1, eta = 1 gives 4 y_bar^2 - 3 y_bar - 4 = 0, and M = y_bar / 4."""
    model = am.LEGO(eta=1.0, bounds=(1.0, 9.0)).fit_pairs([[0, 1]], [True], [[0.0], [2.0]])
    np.testing.assert_allclose(model.M_, [[(3 + np.sqrt(9 + 64)) / 8 / 4]])


@pytest.mark.parametrize("is_similar", [True, False])
def test_a_step_of_lego_is_the_minimiser_of_its_objective(is_similar):
    X, eta = np.array([[0.0, 0.0], [1.5, -0.5]]), 0.7
    v, y = X[1] - X[0], (0.3 if is_similar else 4.0)

    def objective(flat):
        L = np.array([[flat[0], 0], [flat[1], flat[2]]])
        M = L @ L.T
        return np.trace(M) - np.linalg.slogdet(M)[1] - 2 + eta / 2 * (v @ M @ v - y) ** 2

    direct = optimize.minimize(objective, [1, 0, 1], method="BFGS", options={"gtol": 1e-9}).x
    L = np.array([[direct[0], 0], [direct[1], direct[2]]])
    model = am.LEGO(eta=eta, bounds=(0.3, 4.0)).fit_pairs([[0, 1]], [is_similar], X)
    np.testing.assert_allclose(model.M_, L @ L.T, atol=1e-5)


def test_hinge_leaves_alone_what_is_on_the_right_side_and_squared_does_not():
    X = np.array([[0.0], [1.0], [3.0]])
    given_pairs = [[0, 1], [0, 2]], [True, False]  # at 1 and 9, on the right side of 2 and 8
    np.testing.assert_array_equal(am.LEGO(bounds=(2.0, 8.0)).fit_pairs(*given_pairs, X).M_, [[1.0]])
    model = am.LEGO(bounds=(2.0, 8.0), loss="squared").fit_pairs([[0, 1]], [True], X)
    assert 1 < model.M_[0, 0] < 2
    model = am.LEGO(bounds=(2.0, 8.0), loss="squared").fit_pairs([[0, 2]], [False], X)
    assert 8 / 9 < model.M_[0, 0] < 1


# -- pairs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", [am.ITML, am.LEGO])
def test_bounds_are_percentiles_of_squared_distances(learner):
    X, y = wine()
    distances = -am.Euclidean().fit(X).similarity(X)[np.triu_indices(len(X), 1)]
    model = learner(n_constraints=20, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.bounds_, np.percentile(distances, (5, 95)), rtol=1e-6)
    many = learner(n_constraints=20, random_state=0).fit(np.vstack([X] * 3), np.tile(y, 3))  # a sample of the pairs
    np.testing.assert_allclose(many.bounds_, np.percentile(distances, (5, 95)), rtol=0.05)


@pytest.mark.parametrize("learner", [am.ITML, am.LEGO])
def test_fit_samples_similar_and_dissimilar_pairs_alternately(learner):
    X, y = wine()
    triplets = am.triplets.from_labels(y, 50, random_state=3)
    numbers = triplets[:, [0, 1, 0, 2]].reshape(-1, 2)[:99]
    by_hand = learner(bounds=(0.5, 2.0)).fit_pairs(numbers, np.arange(99) % 2 == 0, X)
    model = learner(bounds=(0.5, 2.0), n_constraints=99, random_state=3).fit(X, y)
    np.testing.assert_array_equal(model.M_, by_hand.M_)


@pytest.mark.parametrize("learner", [am.ITML, am.LEGO])
def test_the_same_row_twice_gives_no_direction(learner):
    X = np.array([[1.0, 2.0], [1.0, 2.0], [0.0, 1.0]])
    model = learner().fit_pairs([[0, 1], [0, 0]], [True, False], X)
    np.testing.assert_array_equal(model.M_, np.eye(2))
    model = learner(n_constraints=10).fit(np.ones((6, 2)), [0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(model.M_, np.eye(2))


def test_itml_samples_forty_pairs_for_each_two_classes():
    X, y = np.random.default_rng(0).normal(size=(30, 3)), np.arange(30) % 3
    default, given = (am.ITML(n_constraints=n, random_state=0).fit(X, y) for n in (None, 240))
    np.testing.assert_array_equal(default.M_, given.M_)


# -- LMNN ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("where", ["identity", "random", "learned"])
@pytest.mark.parametrize("k", [1, 3])
def test_the_objective_of_lmnn_and_its_derivative_agree_with_metric_learn(k, where, container):
    """There M = L'L, and 0.4 is the weight of pulling: here L is transposed, and mu = 0.6."""
    X, y = container(FIXTURES["X"]), FIXTURES["y"]
    targets = lmnn.target_neighbours(X, y, k)
    np.testing.assert_array_equal(np.sort(targets), np.sort(FIXTURES[f"lmnn_{k}_targets"]))
    L = FIXTURES[f"lmnn_{k}_{where}_L"].T
    found, n_beyond = lmnn.find_impostors(X, L, y, targets, 60)
    value, gradient = lmnn.loss_and_gradient(L, X, found, 0.6)
    np.testing.assert_allclose(value, FIXTURES[f"lmnn_{k}_{where}_value"], rtol=1e-9)
    np.testing.assert_allclose(gradient.T, FIXTURES[f"lmnn_{k}_{where}_gradient"], atol=1e-9)
    assert n_beyond == 0


@pytest.mark.parametrize("k", [1, 3])
def test_lmnn_finds_a_metric_at_least_as_good_as_that_of_metric_learn(k):
    X, y = FIXTURES["X"], FIXTURES["y"]
    model = am.LMNN(k, mu=0.6, max_iter=400, tol=1e-6).fit(X, y)
    assert model.objectives_[-1] < FIXTURES[f"lmnn_{k}_learned_value"]
    assert (np.diff(model.objectives_) < 0).all()


def plain_objective(L, X, classes, k, mu):
    """The objective with loops, straight from the paper."""
    Z, total = X @ L, 0.0
    for i in range(len(X)):
        same = [j for j in np.argsort(((X - X[i]) ** 2).sum(axis=1), kind="stable") if classes[j] == classes[i]]
        for j in [j for j in same if j != i][:k]:
            d = np.sum((Z[i] - Z[j]) ** 2)
            gaps = [1 + d - np.sum((Z[i] - Z[x]) ** 2) for x in range(len(X)) if classes[x] != classes[i]]
            total += (1 - mu) * d + mu * sum(max(0, gap) for gap in gaps)
    return total


def small(seed=0, n=25, m=4):
    rng = np.random.default_rng(seed)
    classes = np.append(rng.integers(3, size=n - 3), [3, 3, 4])  # one class of two rows, one of a single row
    return rng.normal(size=(n, m)), classes, rng.normal(size=(m, m))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scale_of_L", [1.0, 0.2])  # at 0.2 everything is within the margin, even of a missing target
def test_the_objective_of_lmnn_is_the_published_one_also_with_small_classes(scale_of_L, seed):
    X, classes, L = small(seed)
    L = scale_of_L * L
    found, _ = lmnn.find_impostors(X, L, classes, lmnn.target_neighbours(X, classes, 3), 25)
    value, gradient = lmnn.loss_and_gradient(L, X, found, 0.3)
    np.testing.assert_allclose(value, plain_objective(L, X, classes, 3, 0.3), rtol=1e-10)
    numeric = optimize.approx_fprime(L.ravel(), lambda flat: plain_objective(flat.reshape(4, 4), X, classes, 3, 0.3))
    np.testing.assert_allclose(gradient.ravel(), numeric, rtol=1e-4, atol=1e-3)


def test_what_lmnn_reports_is_the_objective_of_what_it_learned_and_its_minimum_is_flat():
    X, classes, _ = small()
    model = am.LMNN(2, mu=0.5, max_iter=500, tol=1e-8).fit(X, classes)
    L = saved_state(model)["L"]
    np.testing.assert_allclose(model.objectives_[-1], plain_objective(L, X, classes, 2, 0.5), rtol=1e-9)
    assert model.n_left_out_ == 0
    rng = np.random.default_rng(0)
    for _ in range(50):
        other = L + 0.02 * rng.normal(size=L.shape)
        assert plain_objective(other, X, classes, 2, 0.5) > model.objectives_[-1] * (1 - 1e-3)


def test_the_start_of_lmnn_is_the_best_multiple_of_the_identity():
    X, y = wine()
    targets = lmnn.target_neighbours(X, y, 3)
    c = lmnn.best_scale(X, y, targets, 0.5)
    values = [plain_objective(np.sqrt(c * factor) * np.eye(13), X, y, 3, 0.5) for factor in (0.8, 1.0, 1.25)]
    assert values[1] == min(values)


def test_impostors_beyond_the_limit_are_the_farthest_and_are_counted():
    X, classes, L = small()
    targets = lmnn.target_neighbours(X, classes, 2)
    everything, _ = lmnn.find_impostors(X, L, classes, targets, 25)
    some, n_beyond = lmnn.find_impostors(X, L, classes, targets, 2)
    assert n_beyond == len(everything.impostors) - len(some.impostors) > 0
    Z = X @ L
    for i in range(len(X)):
        kept, known = (each.impostors[each.starts[i] : each.starts[i + 1]] for each in (some, everything))
        by_distance = known[np.argsort(((Z[known] - Z[i]) ** 2).sum(axis=1))]
        assert set(kept) == set(by_distance[:2])
    assert am.LMNN(2, max_impostors=25, max_iter=1).fit(X, classes).n_left_out_ > 0


@pytest.mark.parametrize("seed", [1, 3])
def test_a_round_that_met_new_impostors_is_made_again_with_them(seed):
    X, classes, _ = small(seed)  # where the first round of 10 iterations ends higher than it began
    model = am.LMNN(2, max_iter=300, tol=1e-6).fit(X, classes)
    assert model.n_iter_ > 10
    assert model.objectives_[-1] < 0.95 * model.objectives_[0]


def test_lmnn_learns_also_where_the_limit_leaves_impostors_out():
    X, y = wine()
    model = am.LMNN(max_impostors=5 * len(y), max_iter=30).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > am.Euclidean().fit(X).score(X[1::2], y[1::2]) + 0.02
    X, classes, _ = small()
    model = am.LMNN(2, max_impostors=100, max_iter=50).fit(X, classes)
    assert len(model.objectives_) > 1


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10_000))
def test_a_union_has_the_impostors_of_both_row_by_row(seed):
    rng = np.random.default_rng(seed)
    tables = rng.random((2, 6, 6)) < 0.4
    each = [
        Neighbours(np.zeros((6, 1)), np.append(0, np.cumsum(table.sum(axis=1))), np.nonzero(table)[1])
        for table in tables
    ]
    both, expected = lmnn.union(*each), tables[0] | tables[1]
    np.testing.assert_array_equal(both.starts, np.append(0, np.cumsum(expected.sum(axis=1))))
    np.testing.assert_array_equal(both.impostors, np.nonzero(expected)[1])


# -- all metrics -----------------------------------------------------------------------------------------------

LEARNED = [
    am.ITML(bounds=(0.5, 2.5), n_constraints=400, random_state=0),
    am.LEGO(bounds=(0.5, 2.5), n_constraints=400, random_state=0),
    am.LMNN(),
]


@pytest.mark.parametrize("model", [am.Euclidean(), *LEARNED], ids=repr)
def test_scores_are_minus_squared_distances_by_M(model):
    X, y = wine()
    model.fit(X, y)
    M, Q, P = model.M_, X[:20], X[20:60]
    gaps = Q[:, np.newaxis] - P
    expected = -np.einsum("qpi,ij,qpj->qp", gaps, M, gaps)
    close = {"rtol": 1e-9, "atol": 1e-9}
    for as_rows in (np.asarray, sparse.csr_matrix):
        Q_rows, P_rows = as_rows(Q), as_rows(P)
        np.testing.assert_allclose(model.similarity(Q_rows, P_rows), expected, **close)
        numbers = np.array([[0, 3, 5], [19, 39, 0], [4, 4, 4]])
        i, j, k = numbers.T
        np.testing.assert_allclose(model.pair_score(Q_rows, P_rows, numbers[:, :2]), expected[i, j], **close)
        np.testing.assert_allclose(model.margins(numbers, Q_rows, P_rows), expected[i, j] - expected[i, k], **close)
        Z = model.transform(Q_rows)
        Z = Z.toarray() if sparse.issparse(Z) else Z
        np.testing.assert_allclose(Z @ Z.T, Q @ M @ Q.T, **close)
    assert (np.linalg.eigvalsh(M) > -1e-9).all()


@pytest.mark.parametrize("model", LEARNED, ids=repr)
def test_a_learned_metric_retrieves_better_than_the_euclidean(model):
    X, y = wine()
    assert model.fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > am.Euclidean().fit(X).score(X[1::2], y[1::2]) + 0.02

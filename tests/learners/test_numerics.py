"""Long runs and hostile scales: covariances stay covariances, or the learner refuses; NaN never comes out."""

import numpy as np
import pytest
from scipy import sparse

import aromatch as am
from aromatch.exceptions import NumericalError
from aromatch.learners import triplet


def unit_rows(rng, n_rows, width):
    rows = rng.normal(size=(n_rows, width))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def run_forced_updates(n_updates, **options):
    """Random judgements contradict each other, so nearly all of them ask for an update."""
    rng = np.random.default_rng(0)
    Q, P = unit_rows(rng, 300, 16), unit_rows(rng, 300, 16)
    model = am.FactoredAROMA(**options)
    while not hasattr(model, "_state") or model.n_updates_ < n_updates:
        model.partial_fit_triplets(rng.integers(300, size=(min(n_updates, 1_000_000), 3)), Q, P)
    return model


def check_covariances(model):
    for matrix in (model.Omega_, model.Lambda_):
        assert np.abs(matrix - matrix.T).max() <= 1e-12
        assert np.linalg.eigvalsh(matrix.astype(np.float64))[0] > 0
    assert np.isfinite(model.W_).all()


@pytest.mark.parametrize("r", [0.01, 1.0])
@pytest.mark.parametrize("covariance_update", ["jacobi", "gauss_seidel", "joint"])
def test_a_hundred_thousand_updates_keep_the_covariances_positive_definite_and_symmetric(r, covariance_update):
    check_covariances(run_forced_updates(100_000, r=r, covariance_update=covariance_update))


@pytest.mark.slow
@pytest.mark.parametrize("mean_update", ["previous", "updated"])
def test_ten_million_updates_keep_the_covariances_positive_definite_and_symmetric(mean_update):
    check_covariances(run_forced_updates(10_000_000, mean_update=mean_update))


@pytest.mark.parametrize("learner", [am.FactoredAROMA, am.FullAROMA])
@pytest.mark.parametrize(("dtype", "limit"), [("float64", 1e11), ("float32", 1e6)])
def test_scales_above_the_limit_are_refused_and_those_below_are_accepted(learner, dtype, limit):
    q, good, bad = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]), np.zeros((1, 2))
    for scale in (1.01 * limit, 1e30, 1e150, 1e300):
        model = learner(dtype=dtype)
        with pytest.raises(ValueError, match=r"too large for|expected at most"):
            model.learn_one(q * scale**0.5, good, bad)
        assert not hasattr(model, "_state")
        with pytest.raises(ValueError, match="sample_weight"):
            model.learn_one(q, good, bad, sample_weight=scale)
        if scale < 1e300:
            with pytest.raises(ValueError, match="r"):
                learner(dtype=dtype, r=1 / scale).learn_one(q, good, bad)
    model = learner(dtype=dtype)
    model.learn_one(q * (0.9 * limit) ** 0.5, good, bad)
    assert model.n_updates_ == 1


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("learner", [am.FactoredAROMA, am.FullAROMA])
@pytest.mark.parametrize(("dtype", "limit"), [("float64", 1e11), ("float32", 1e6)])
def test_rows_just_under_the_limit_and_nearly_parallel_never_break_a_model(learner, dtype, limit, seed):
    rng = np.random.default_rng(seed)
    m, n = rng.integers(1, 6, size=2)
    Q, P = rng.normal(size=(12, m)), rng.normal(size=(12, n))
    Q[:6] = Q[0] * (1 + 1e-6 * rng.normal(size=(6, 1))) + 1e-5 * rng.normal(size=(6, m))
    Q *= 10.0 ** rng.uniform(-3, 0, size=(12, 1))
    P *= 10.0 ** rng.uniform(-3, 0, size=(12, 1))
    triplets = rng.integers(12, size=(20_000, 3))
    largest = np.max((Q[triplets[:, 0]] ** 2).sum(1) * ((P[triplets[:, 1]] - P[triplets[:, 2]]) ** 2).sum(1))
    Q *= (0.99 * limit / largest) ** 0.5
    model = learner(dtype=dtype).fit_triplets(triplets, Q, P)
    for name in ("Sigma_", "Omega_", "Lambda_"):
        if hasattr(model, name):
            values = np.linalg.eigvalsh(getattr(model, name).astype(np.float64))
            assert values[0] > -np.finfo(dtype).eps * values[-1]
    assert np.isfinite(model.W_).all()
    assert np.isfinite(model.margin_std(triplets[:500], Q, P)).all()


@pytest.mark.parametrize("covariance_update", ["downdate", "inverse"])
@pytest.mark.parametrize(("dtype", "largest"), [("float64", 1e150), ("float32", 1e18)])
def test_the_diagonal_stays_positive_at_any_scale_that_it_accepts(dtype, largest, covariance_update):
    rng = np.random.default_rng(1)
    for scale in np.geomspace(1e-3, largest, 12):
        Q = np.eye(3)[rng.integers(3, size=40)] * scale**0.5
        P = np.eye(3)[rng.integers(3, size=40)]
        triplets = rng.integers(40, size=(3000, 3))
        model = am.DiagonalAROMA(dtype=dtype, covariance_update=covariance_update).fit_triplets(triplets, Q, P)
        assert (model.Sigma_ > 0).all()
        assert np.isfinite(model.W_).all()


@pytest.mark.parametrize("learner", [am.DiagonalAROMA, am.OASIS, am.FactoredAROMA])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rows_so_small_that_their_squares_vanish_do_no_harm(learner, dtype):
    tiny = {"float64": 1e-200, "float32": 1e-30}[dtype]
    model = learner(dtype=dtype, init="zero")
    for _ in range(5):
        told = model.learn_one(np.full(3, tiny), np.eye(3)[0] * tiny, np.eye(3)[1])
        assert np.isfinite(told.margin)
    assert np.isfinite(model.W_).all()


def test_a_covariance_that_was_used_up_stops_learning_with_a_clear_error():
    model = am.FactoredAROMA().fit_triplets([[0, 1, 2]], np.eye(3))
    model._state["Lambda"][0, 0] = -1.0  # as rounding could leave it
    before = model.W_
    with pytest.raises(NumericalError, match="triplet 1: rounding has used up the covariance"):
        model.partial_fit_triplets([[1, 1, 1], [0, 2, 1]], np.eye(3))
    np.testing.assert_array_equal(model.W_, before)
    assert model.n_triplets_seen_ == 1


@pytest.mark.parametrize("r", [1e-30, 1e30])
def test_extreme_r_is_refused_or_harmless_in_float32(r):
    model = am.DiagonalAROMA(r=r, dtype="float32")
    if r < 1:
        with pytest.raises(ValueError, match="sample_weight / r"):
            model.fit_triplets([[0, 1, 2]], np.eye(3))
    else:
        model.fit_triplets([[0, 1, 2]], np.eye(3))
        assert np.isfinite(model.W_).all()
        assert (model.Sigma_ > 0).all()


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize(("dtype", "largest"), [("float64", 1e150), ("float32", 1e18)])
def test_a_cell_that_carries_the_whole_variance_keeps_what_is_left_of_it(dtype, largest, dense):
    width = 1 if dense else 6
    q, nothing = np.eye(1, width)[0], np.zeros(width)
    for scale in np.geomspace(1.0, largest, 12):
        model = am.DiagonalAROMA(dtype=dtype)
        model.learn_one(q * scale**0.5, q, nothing)
        assert model.Sigma_[0, 0] * (scale + 1) > 0.999  # rounding may leave more, never less


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_variances_of_diagonal_arow_stay_positive_at_any_scale_that_it_accepts(dtype):
    for scale in np.geomspace(1.0, 0.9e20, 12):
        X = np.array([[scale**0.5, 0.0], [0.0, -(scale**0.5)]])
        model = am.AROW(covariance="diagonal", dtype=dtype).fit(X, [1, 0])
        assert (model.Sigma_ > 0).all()
        assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("value", [-4.0, np.inf])
@pytest.mark.parametrize(
    ("learner", "name", "width"),
    [
        (am.FactoredAROMA, "Lambda", 3),
        (am.FactoredAROMA, "Omega", 3),
        (am.FactoredAROMA, "Lambda", 33),
        (am.FactoredAROMA, "Omega", 33),
        (am.FullAROMA, "Sigma", 3),
    ],
)
def test_learning_stops_before_a_triplet_whose_variance_is_negative_or_infinite(learner, name, width, value):
    rows = np.eye(width)
    model = learner().fit_triplets([[1, 1, 0]], rows)
    model._state[name][2, 2] = value  # as rounding could leave it; W[0, 2] is cell 2
    state = {key: array.copy() for key, array in model._state.items()}
    spoiled = [2, 2, 1] if learner is am.FactoredAROMA else [0, 2, 1]
    harmless = [1, 0, 0]
    with pytest.raises(NumericalError, match="triplet 1: rounding has used up the covariance"):
        model.partial_fit_triplets([harmless, spoiled, harmless], rows)
    with pytest.raises(NumericalError, match="triplet 0"):
        model.learn_one(*rows[spoiled])
    for key, array in state.items():
        np.testing.assert_array_equal(model._state[key], array)


@pytest.mark.parametrize("value", [-4.0, np.inf])
@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_arow_refuses_a_row_whose_variance_is_negative_or_infinite_and_names_it(covariance, value):
    model = am.AROW(covariance=covariance).fit(np.eye(3), [0, 1, 0])
    model._state["Sigma"][2 if covariance == "diagonal" else (2, 2)] = value  # as rounding could leave it
    before = model.coef_
    with pytest.raises(NumericalError, match="row 1: rounding has used up the covariance"):
        model.partial_fit(np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), [1, 0])
    np.testing.assert_array_equal(model.coef_, before)


@pytest.mark.parametrize("learner", [am.DiagonalAROMA, am.OASIS, am.FactoredAROMA, am.FullAROMA])
@pytest.mark.parametrize("width", [2, 33], ids=["narrow", "wide"])
def test_a_margin_that_overflows_stops_learning_with_a_clear_error(learner, width):
    model = learner(init="zero").fit_triplets([], np.eye(width))
    model._state.matrix("W")[0, 0] = -1e308
    with pytest.raises(NumericalError, match="triplet 0"):
        model.learn_one(np.eye(width)[0] * 100, np.eye(width)[0], np.zeros(width))
    assert model.n_triplets_seen_ == 0


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("learner", [am.DiagonalAROMA, am.FactoredAROMA, am.FullAROMA, am.OASIS])
def test_values_that_vanish_in_float32_count_as_zeros(learner, container):
    Q, P = container(np.full((1, 2), 1e-60)), container(np.eye(2))
    model = learner(dtype="float32", init="zero").fit_triplets([[0, 0, 1]], Q, P)
    assert (model.n_triplets_seen_, model.n_updates_, model.n_mistakes_) == (1, 0, 1)


def test_many_rows_just_under_the_limit_of_arow_are_not_taken_for_one_large_row():
    X = np.tile(np.array([[0.9e11**0.5, 0.0], [0.0, 0.9e11**0.5]]), (20, 1))
    y = np.tile([0, 1], 20)
    dense, csr = am.AROW().fit(X, y), am.AROW().fit(sparse.csr_matrix(X), y)
    np.testing.assert_array_equal(dense.coef_, csr.coef_)
    assert np.isfinite(dense.coef_).all()


@pytest.mark.parametrize("learner", [am.FactoredAROMA, am.FullAROMA])
@pytest.mark.parametrize(("dtype", "limit"), [("float64", 1e11), ("float32", 1e6)])
def test_the_scale_of_the_objects_counts_as_that_of_the_query(learner, dtype, limit):
    q, good, bad = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]), np.zeros((1, 2))
    for objects in ((good * (1.01 * limit) ** 0.5, bad), (bad, good * (1.01 * limit) ** 0.5)):
        with pytest.raises(ValueError, match=r"triplet 0: .* expected at most"):
            learner(dtype=dtype).learn_one(q, *objects)
    told = learner(dtype=dtype).learn_one(q, good * (0.9 * limit) ** 0.5, bad)
    assert told.updated


def test_a_failure_in_fit_counts_triplets_from_its_own_start_and_keeps_the_model(monkeypatch):
    monkeypatch.setattr("aromatch.triplets.labels.CHUNK", 10)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)), np.arange(20) % 2
    model = am.FactoredAROMA(n_triplets=100, random_state=0).fit(X, y)
    before = model.W_
    learn = am.FactoredAROMA._learn
    monkeypatch.setattr(
        am.FactoredAROMA, "_learn", lambda self, block: learn(self, block) - (self.n_triplets_seen_ > 30)
    )
    with pytest.raises(NumericalError, match=r"triplet 39: .* the model is unchanged"):
        model.fit(X, y)
    np.testing.assert_array_equal(model.W_, before)


@pytest.mark.parametrize("large", [0, 1, 2])
@pytest.mark.parametrize("learner", [am.FactoredAROMA, am.FullAROMA])
def test_a_large_row_is_noticed_in_every_place_of_a_triplet(learner, large):
    rows = np.array([[1.0, 0.5], [0.0, 1.0], [1.0, 0.0]])
    rows[large] *= 1e6
    for P in (None, rows.copy()):
        with pytest.raises(ValueError, match=r"triplet 1: .* expected at most"):
            learner().fit_triplets([[0, 1, 1], [0, 1, 2]], rows, P)


@pytest.mark.parametrize("learner", [am.FactoredAROMA, am.FullAROMA])
def test_fit_refuses_scales_above_the_limit(learner):
    X = np.eye(4)[[0, 0, 1, 1]] * 1e4  # |q|^2 |p|^2 is 2e16
    model = learner(n_triplets=10, random_state=0)
    with pytest.raises(ValueError, match="expected at most"):
        model.fit(X, [0, 0, 1, 1])
    assert not hasattr(model, "_state")


def test_the_triplet_that_used_up_the_covariance_is_named_by_its_number_in_the_whole_call(monkeypatch):
    monkeypatch.setattr(
        triplet, "timed_chunks", lambda n: (slice(i, i + 1) for i in range(n))
    )  # a kernel call for each
    model = am.FactoredAROMA().fit_triplets([[0, 1, 2]], np.eye(3))
    model._state["Lambda"][0, 0] = -1.0  # as rounding could leave it
    with pytest.raises(NumericalError, match="triplet 2: rounding has used up the covariance"):
        model.partial_fit_triplets([[1, 1, 1], [1, 2, 2], [0, 2, 1]], np.eye(3))


@pytest.mark.parametrize(
    ("learner", "names"),
    [(am.FullAROMA, ["Sigma"]), (am.FactoredAROMA, ["Lambda"]), (am.FactoredAROMA, ["Lambda", "Omega"])],
)
def test_a_variance_that_rounding_left_below_zero_is_reported_as_zero(learner, names):
    model = learner().fit_triplets([[1, 1, 0]], np.eye(2))
    for name in names:
        model._state[name][0, 0] = -1e-18
    assert model.pair_std(np.eye(2), np.eye(2), [[0, 0]]) == [0.0]


def test_a_weight_beyond_the_arithmetic_is_refused_even_for_rows_so_small_that_the_scale_is_fine():
    q = np.array([1e-60, 0.0])
    with pytest.raises(ValueError, match=r"sample_weight / r is 1\.0e\+250"):
        am.DiagonalAROMA().learn_one(q, q, 0 * q, sample_weight=1e250)


@pytest.mark.parametrize("learner", [am.DiagonalAROMA, am.FactoredAROMA, am.FullAROMA, am.OASIS])
def test_a_huge_object_is_refused_even_beside_a_query_so_small_that_the_scale_is_fine(learner):
    small, huge = np.array([1e-105, 0.0]), np.array([1e101, 0.0])
    for q, p in ((small, huge), (huge, small)):
        with pytest.raises(ValueError, match="a row has"):
            learner(init="zero").learn_one(q, p, 0 * p)


@pytest.mark.parametrize("learner", [am.FactoredAROMA, am.FullAROMA])
def test_two_opposite_objects_count_with_the_distance_between_them(learner):
    q, p = np.array([1.0, 0.0]), np.array([0.0, (0.3e11) ** 0.5])
    with pytest.raises(ValueError, match=r"triplet 0: .* is 1\.2e\+11, expected at most 1e\+11"):
        learner().learn_one(q, p, -p)


@pytest.mark.parametrize(("dtype", "size"), [("float64", 1e60), ("float32", 1e8)])
@pytest.mark.parametrize("learner", [am.DiagonalAROMA, am.OASIS])
def test_learners_without_a_covariance_matrix_refuse_scales_that_could_overflow(learner, dtype, size):
    q = np.array([size, 0.0])
    with pytest.raises(ValueError, match=r"triplet 0: .* expected at most"):
        learner(dtype=dtype, init="zero").learn_one(q, q, -q)

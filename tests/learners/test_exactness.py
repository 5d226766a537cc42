"""Every learner agrees with a NumPy loop written straight from the paper, after 5,000 triplets."""

import numpy as np
import pytest
from scipy import sparse

import aromatch as am
import reference
from aromatch.learners import triplet
from aromatch.learners.online import pending

VARIANTS = {
    "d-AROMA": (am.DiagonalAROMA, reference.d_aroma, {}),
    "d-AROMA, inverse": (am.DiagonalAROMA, reference.d_aroma, {"covariance_update": "inverse"}),
    "d-AROMA, mistake rule": (am.DiagonalAROMA, reference.d_aroma, {"rule": "mistake"}),
    "f-AROMA": (am.FactoredAROMA, reference.f_aroma, {}),
    "f-AROMA, mistake rule": (am.FactoredAROMA, reference.f_aroma, {"rule": "mistake"}),
    "f-AROMA, updated mean": (am.FactoredAROMA, reference.f_aroma, {"mean_update": "updated"}),
    "f-AROMA, Theorem 2": (
        am.FactoredAROMA,
        reference.f_aroma,
        {"mean_update": "updated", "rule": "mistake"},
    ),
    "f-AROMA, Gauss-Seidel": (am.FactoredAROMA, reference.f_aroma, {"covariance_update": "gauss_seidel"}),
    "FullAROMA": (am.FullAROMA, reference.full_aroma, {}),
    "FullAROMA, mistake rule": (am.FullAROMA, reference.full_aroma, {"rule": "mistake"}),
    "OASIS": (am.OASIS, reference.oasis, {"init": "zero"}),
}
N_TRIPLETS = 5_000


def make_problem(m, n, share_of_zeros, seed, n_triplets=N_TRIPLETS):
    """Rows with classes that can nearly be told apart, and noise so that updates never stop."""
    rng = np.random.default_rng(seed)
    Q = rng.normal(size=(60, m)) * (rng.random((60, m)) >= share_of_zeros)
    P = rng.normal(size=(80, n)) * (rng.random((80, n)) >= share_of_zeros)
    Q[0] = 0  # a zero query
    Q /= np.maximum(np.linalg.norm(Q, axis=1, keepdims=True), 1e-12)
    P /= np.maximum(np.linalg.norm(P, axis=1, keepdims=True), 1e-12)
    P[3] = P[4]  # a repeated row
    triplets = np.column_stack([rng.integers(60, size=n_triplets), rng.integers(80, size=(n_triplets, 2))])
    triplets[::50, 2] = triplets[::50, 1]  # p_pos == p_neg
    return Q, P, triplets, rng.choice([0.0, 0.5, 1.0, 3.0], size=n_triplets)


def relative_error(found, expected):
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


def check_agreement(
    learner, oracle, options, problem, dtype, tolerance, containers=(np.asarray, np.asarray), init=None
):
    Q, P, triplets, weights = problem
    start = np.zeros((Q.shape[1], P.shape[1])) if init is None else init
    options_of_both = {key: value for key, value in options.items() if key != "init"}
    model = learner(dtype=dtype, **{**options, **({} if init is None else {"init": init})})
    model.fit_triplets(triplets, containers[0](Q), containers[1](P), sample_weight=weights)
    expected = oracle(triplets, Q, P, W0=start, weights=weights, **options_of_both)
    for name, matrix in expected.matrices.items():
        assert getattr(model, name).dtype == dtype
        assert relative_error(getattr(model, name), matrix) < tolerance, name
    assert model.n_triplets_seen_ == len(triplets)
    if dtype == "float64":
        assert model.n_updates_ == expected.n_updates
        assert model.n_mistakes_ == expected.n_mistakes


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize(
    ("container", "share_of_zeros"),
    [(np.asarray, 0.0), (sparse.csr_matrix, 0.8), (np.asarray, 0.8)],
    ids=["dense", "CSR", "dense with zeros"],
)
@pytest.mark.parametrize("variant", VARIANTS)
def test_float64_agrees_with_the_paper_to_1e9(variant, container, share_of_zeros, weighted):
    learner, oracle, options = VARIANTS[variant]
    Q, P, triplets, weights = make_problem(8, 8, share_of_zeros, seed=len(variant))
    problem = Q, P, triplets, weights if weighted else None
    check_agreement(learner, oracle, options, problem, "float64", 1e-9, (container, container))


@pytest.mark.parametrize("variant", VARIANTS)
def test_queries_and_objects_may_have_different_widths_and_containers(variant):
    learner, oracle, options = VARIANTS[variant]
    problem = make_problem(5, 13, 0.5, seed=1)
    check_agreement(learner, oracle, options, problem, "float64", 1e-9, (sparse.csr_matrix, np.asarray))
    check_agreement(learner, oracle, options, problem, "float64", 1e-9, (np.asarray, sparse.csr_array))


@pytest.mark.parametrize("share_of_zeros", [0.0, 0.8])
@pytest.mark.parametrize("variant", VARIANTS)
def test_float32_agrees_with_the_paper_to_1e3(variant, share_of_zeros):
    learner, oracle, options = VARIANTS[variant]
    problem = make_problem(8, 8, share_of_zeros, seed=2)
    check_agreement(learner, oracle, options, problem, "float32", 1e-3)


@pytest.mark.parametrize("r", [0.01, 100.0])
@pytest.mark.parametrize("variant", [name for name in VARIANTS if name != "OASIS"])
def test_agreement_holds_for_small_and_large_r(variant, r):
    learner, oracle, options = VARIANTS[variant]
    problem = make_problem(6, 7, 0.3, seed=3)
    check_agreement(learner, oracle, {**options, "r": r}, problem, "float64", 1e-9)


@pytest.mark.parametrize("variant", VARIANTS)
def test_agreement_holds_from_any_start(variant):
    learner, oracle, options = VARIANTS[variant]
    problem = make_problem(6, 7, 0.3, seed=4)
    init = np.random.default_rng(5).normal(size=(6, 7))
    check_agreement(learner, oracle, options, problem, "float64", 1e-9, init=init)


@pytest.mark.parametrize(("m", "n"), [(3, 4), (6, 2)])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-9), ("float32", 1e-3)])
def test_the_joint_update_agrees_with_a_numerical_solution_of_its_equations(m, n, dtype, tolerance):
    problem = make_problem(m, n, 0.3, seed=6)
    options = {"covariance_update": "joint"}
    check_agreement(am.FactoredAROMA, reference.f_aroma, options, problem, dtype, tolerance)


def test_with_one_query_feature_the_joint_update_is_arow():
    rng = np.random.default_rng(7)
    P, triplets = rng.normal(size=(50, 6)), rng.integers(50, size=(400, 3))
    q = np.ones((1, 1))
    triplets[:, 0] = 0
    joint = am.FactoredAROMA(r=0.5, covariance_update="joint").fit_triplets(triplets, q, P)
    w, Sigma = reference.arow(P[triplets[:, 1]] - P[triplets[:, 2]], np.ones(400), r=0.5)
    np.testing.assert_allclose(joint.W_[0], w, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(joint.Lambda_[0, 0] * joint.Omega_, Sigma, rtol=1e-9, atol=1e-12)


def test_with_one_object_feature_the_joint_update_is_arow_on_the_query_side():
    rng = np.random.default_rng(8)
    Q, P = rng.normal(size=(50, 6)), np.array([[1.0], [0.0]])
    triplets = np.column_stack([rng.integers(50, size=400), *rng.permuted(np.tile([0, 1], (400, 1)), axis=1).T])
    joint = am.FactoredAROMA(r=0.5, covariance_update="joint").fit_triplets(triplets, Q, P)
    x = Q[triplets[:, 0]] * (P[triplets[:, 1]] - P[triplets[:, 2]])
    w, Sigma = reference.arow(x, np.ones(400), r=0.5)
    np.testing.assert_allclose(joint.W_[:, 0], w, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(joint.Omega_[0, 0] * joint.Lambda_, Sigma, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-9), ("float32", 1e-3)])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_arow_agrees_with_the_paper(covariance, dtype, tolerance, container):
    rng = np.random.default_rng(9)
    X = rng.normal(size=(5000, 8)) * (rng.random((5000, 8)) < 0.6)
    y = (X @ rng.normal(size=8) + 0.3 * rng.normal(size=5000)) > 0
    model = am.AROW(r=0.7, covariance=covariance, dtype=dtype).fit(container(X), y)
    w, Sigma = reference.arow(X, np.where(y, 1, -1), r=0.7, covariance=covariance)
    assert relative_error(model.coef_[0], w) < tolerance
    assert relative_error(model.Sigma_, Sigma if covariance == "full" else np.diag(Sigma)) < tolerance


@pytest.mark.parametrize("variant", VARIANTS)
def test_margins_and_variances_before_each_update_are_those_of_the_paper(variant):
    learner, oracle, options = VARIANTS[variant]
    Q, P, triplets, _ = make_problem(4, 5, 0.3, seed=10, n_triplets=200)
    model = learner(**options)
    options_of_both = {key: value for key, value in options.items() if key != "init"}
    expected = oracle(triplets, Q, P, W0=np.zeros((4, 5)), **options_of_both)
    told = [model.learn_one(Q[i], P[j], P[k]) for i, j, k in triplets]
    np.testing.assert_allclose([one.margin for one in told], expected.margins, atol=1e-10)
    np.testing.assert_allclose([one.loss for one in told], np.maximum(0, 1 - np.array(expected.margins)), atol=1e-10)
    assert sum(one.updated for one in told) == expected.n_updates
    if learner is am.OASIS:
        assert {one.std for one in told} == {None}
    else:
        np.testing.assert_allclose([one.std for one in told], np.sqrt(expected.variances), atol=1e-10)


@pytest.mark.parametrize("learner", [am.DiagonalAROMA, am.FactoredAROMA, am.FullAROMA])
def test_standard_deviations_are_those_of_the_learned_distribution(learner):
    Q, P, triplets, _ = make_problem(4, 5, 0.3, seed=11, n_triplets=300)
    model = learner().fit_triplets(triplets, Q, P)
    covariance = {
        am.DiagonalAROMA: lambda: np.diag(model.Sigma_.ravel()),
        am.FactoredAROMA: lambda: np.kron(model.Lambda_, model.Omega_),
        am.FullAROMA: lambda: model.Sigma_,
    }[learner]()
    pairs = triplets[:, :2]
    x = np.array([np.outer(Q[i], P[j]).ravel() for i, j in pairs])
    np.testing.assert_allclose(model.pair_std(Q, P, pairs), np.sqrt(np.einsum("ni,ij,nj->n", x, covariance, x)))
    np.testing.assert_allclose(model.pair_score(Q, P, pairs), x @ model.W_.ravel(), atol=1e-12)
    x = np.array([np.outer(Q[i], P[j] - P[k]).ravel() for i, j, k in triplets])
    np.testing.assert_allclose(model.margin_std(triplets, Q, P), np.sqrt(np.einsum("ni,ij,nj->n", x, covariance, x)))
    np.testing.assert_allclose(model.margins(triplets, Q, P), x @ model.W_.ravel(), atol=1e-12)


@pytest.mark.parametrize("rule", ["margin", "mistake"])
@pytest.mark.parametrize(
    ("m", "n", "share_of_zeros", "dtype", "tolerance"),
    [(40, 48, 0.0, "float64", 1e-9), (70, 33, 0.9, "float64", 1e-9), (64, 64, 0.7, "float32", 1e-3)],
)
def test_the_blocked_form_agrees_with_the_paper(rule, m, n, share_of_zeros, dtype, tolerance):
    problem = make_problem(m, n, share_of_zeros, seed=12)
    check_agreement(am.FactoredAROMA, reference.f_aroma, {"rule": rule}, problem, dtype, tolerance)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_blocked_form_agrees_with_the_plain_loop_at_and_between_folds(dtype, monkeypatch):
    """Every reading, after every update: at a block's start, inside it and at its end."""
    Q, P, triplets, weights = make_problem(35, 50, 0.5, seed=13, n_triplets=60)
    monkeypatch.setattr(pending, "block_size", lambda m, n: 7)
    in_blocks = am.FactoredAROMA(r=0.1, dtype=dtype)
    monkeypatch.setattr(pending, "block_size", lambda m, n: 0)
    plain = am.FactoredAROMA(r=0.1, dtype=dtype).fit_triplets(triplets[:0], Q, P)
    monkeypatch.setattr(pending, "block_size", lambda m, n: 7)
    in_blocks.fit_triplets(triplets[:0], Q, P)
    close = {"rtol": 0, "atol": 1e-12 if dtype == "float64" else 1e-5}
    fills = set()
    for i in range(60):
        for model in (in_blocks, plain):
            model.partial_fit_triplets(triplets[i : i + 1], Q, P, sample_weight=weights[i : i + 1])
        fills.add(int(in_blocks._state["counts"][3]))
        assert plain._state["counts"][3] == 0
        for name in ("W_", "Omega_", "Lambda_"):
            np.testing.assert_allclose(getattr(in_blocks, name), getattr(plain, name), **close)
        np.testing.assert_allclose(in_blocks.similarity(Q, P), plain.similarity(Q, P), **close)
        np.testing.assert_allclose(in_blocks.margins(triplets, Q, P), plain.margins(triplets, Q, P), **close)
        np.testing.assert_allclose(in_blocks.margin_std(triplets, Q, P), plain.margin_std(triplets, Q, P), **close)
        np.testing.assert_allclose(
            in_blocks.pair_std(Q, P, triplets[:, :2]), plain.pair_std(Q, P, triplets[:, :2]), **close
        )
    assert fills == set(range(7))


def test_changing_the_covariance_update_in_the_middle_folds_what_is_pending():
    Q, P, triplets, _ = make_problem(40, 40, 0.5, seed=14, n_triplets=200)
    model = am.FactoredAROMA().fit_triplets(triplets[:100], Q, P)
    for i, j, k in triplets[100:]:
        model.learn_one(Q[i], P[j], P[k])
        if model._state["counts"][3]:
            break
    assert model._state["counts"][3] > 0
    before = model.W_, model.Omega_, model.Lambda_
    model.set_params(covariance_update="joint").partial_fit_triplets(triplets[:1, [0, 1, 1]], Q, P)
    assert model._state["counts"][3] == 0
    for found, expected in zip((model.W_, model.Omega_, model.Lambda_), before, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("width", [2, 33], ids=["narrow", "wide"])
@pytest.mark.parametrize("learner", [am.DiagonalAROMA, am.FactoredAROMA, am.FullAROMA, am.OASIS])
def test_a_margin_of_exactly_one_has_no_loss_and_changes_nothing(learner, width):
    q, nothing = np.eye(width)[0], np.zeros(width)
    model = learner(init="identity")
    told = model.learn_one(q, q, nothing)
    assert (told.margin, told.loss, told.updated) == (1.0, 0.0, False)
    assert (model.n_triplets_seen_, model.n_updates_, model.n_mistakes_) == (1, 0, 0)
    np.testing.assert_array_equal(model.W_, np.eye(width))


@pytest.mark.parametrize("rule", ["margin", "mistake"])
def test_in_blocks_the_recorded_deviation_is_that_of_the_margin_before_the_update(rule, monkeypatch):
    monkeypatch.setattr(pending, "block_size", lambda m, n: 7)
    rng = np.random.default_rng(15)
    Q, P = rng.normal(size=(20, 9)) * 0.5, rng.normal(size=(20, 8)) * 0.5
    model = am.FactoredAROMA(r=0.1, rule=rule).fit_triplets([[0, 1, 2]], Q, P)
    updated = set()
    for i, j, k in rng.integers(20, size=(80, 3)):
        expected = model.margin_std([[i, j, k]], Q, P)[0]
        told = model.learn_one(Q[i], P[j], P[k])
        np.testing.assert_allclose(told.std, expected, rtol=1e-9, atol=1e-12)
        updated.add(told.updated)
    assert updated == {True, False}


@pytest.mark.parametrize("r", [1e-10, 1e-6, 1.0])
def test_the_joint_update_keeps_its_precision_where_the_variance_dwarfs_r(r):
    p = np.array([0.6, -0.3, 0.5, 0.2])
    model = am.FactoredAROMA(r=r, covariance_update="joint").fit_triplets([[0, 0, 1]], np.ones((1, 1)), [p, 0 * p])
    _, Sigma = reference.arow(p[None], [1], r=r)  # one query feature: the joint minimiser is AROW
    found = model.Lambda_[0, 0] * model.Omega_
    across = np.array([0.3, 0.6, -0.2, 0.5])  # orthogonal to p, so that nothing cancels
    np.testing.assert_allclose(across @ found @ across, across @ Sigma @ across, rtol=1e-9)


@pytest.mark.parametrize(
    "options",
    [{"mean_update": "updated"}, {"covariance_update": "gauss_seidel"}],
    ids=["updated mean", "Gauss-Seidel"],
)
def test_matrices_wide_enough_for_blocks_learn_the_other_forms_as_the_paper_has_them(options):
    rng = np.random.default_rng(16)
    Q, P, triplets = (
        rng.normal(size=(20, 40)) / 6,
        rng.normal(size=(20, 33)) / 6,
        rng.integers(20, size=(100, 3)),
    )
    model = am.FactoredAROMA(**options).fit_triplets(triplets, Q, P)
    expected = reference.f_aroma(triplets, Q, P, W0=np.zeros((40, 33)), **options)
    for name, matrix in expected.matrices.items():
        np.testing.assert_allclose(getattr(model, name), matrix, rtol=0, atol=1e-10)


def test_scores_and_deviations_with_pending_updates_do_not_depend_on_how_many_pairs_are_read_at_once(
    monkeypatch,
):
    rng = np.random.default_rng(17)
    Q, P, triplets = rng.normal(size=(20, 40)), rng.normal(size=(20, 40)), rng.integers(20, size=(61, 3))
    model = am.FactoredAROMA().fit_triplets(np.array([[0, 1, 2]]), Q, P)
    assert model._state["counts"][3] == 1
    whole = model.margins(triplets, Q, P), model.margin_std(triplets, Q, P), model.pair_std(Q, P)
    monkeypatch.setattr(triplet, "timed_chunks", lambda n: (slice(i, i + 8) for i in range(0, n, 8)))
    pieces = model.margins(triplets, Q, P), model.margin_std(triplets, Q, P), model.pair_std(Q, P)
    for found, expected in zip(pieces, whole, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)

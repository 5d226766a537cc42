"""The contract of all learners: joining the registry means passing these tests."""

import inspect
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import aromatch as am
from aromatch.exceptions import NumericalError
from aromatch.learners import triplet as triplet_learners
from learner_classes import CLASSES, CLOSED_FORMS, ONLINE, SIMILARITIES, TRIPLET_LEARNERS, strength_parameter

BASELINES = [
    am.Euclidean(),
    am.ITML(n_constraints=200, random_state=0),
    am.LEGO(n_constraints=200, random_state=0),
    am.LEGO(n_constraints=200, loss="squared", bounds=(1.0, 9.0), random_state=0),
    am.LMNN(),
    am.HIER(),
    am.HIER(hierarchy={0: ("a",), 1: ("a",), 2: ()}),
]
CONFIDENT = [learner for learner in ONLINE if hasattr(learner(), "pair_std")]
# Every option that changes the arithmetic, so that no path is left out.
CONFIGURATIONS = [
    *[learner(init="zero") for learner in ONLINE],
    *[learner(init="zero", dtype="float32") for learner in ONLINE],
    am.DiagonalAROMA(r=0.1, covariance_update="inverse", rule="mistake"),
    am.DiagonalAROMA(cells="touched"),
    am.DiagonalAROMA(r=0.1, covariance_update="inverse", rule="mistake", dtype="float32", cells="touched"),
    am.OASIS(init="zero", cells="touched"),
    am.FactoredAROMA(r=0.1, mean_update="updated"),
    am.FactoredAROMA(r=0.1, covariance_update="gauss_seidel"),
    am.FactoredAROMA(r=0.1, covariance_update="joint"),
    am.FactoredAROMA(r=0.1, rule="mistake"),
]
online = pytest.mark.parametrize("learner", ONLINE)


@pytest.fixture
def model(request):
    """A fresh model for each test: parametrized ones are shared otherwise."""
    return clone(request.param)


any_model = model  # also closed forms, whose bits depend on batches


def pytest_generate_tests(metafunc):
    for name, models in {
        "model": CONFIGURATIONS,
        "any_model": [*CONFIGURATIONS, *[learner() for learner in CLOSED_FORMS]],
    }.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, models, ids=repr, indirect=True)


WIDE = {"m": 34, "n": 32}  # wide enough for f-AROMA to learn in blocks


def toy(seed=0, m=6, n=5, n_triplets=300, share_of_zeros=0.4):
    rng = np.random.default_rng(seed)
    Q = rng.normal(size=(30, m)) * (rng.random((30, m)) >= share_of_zeros)
    P = rng.normal(size=(40, n)) * (rng.random((40, n)) >= share_of_zeros)
    triplets = np.column_stack([rng.integers(30, size=n_triplets), rng.integers(40, size=(n_triplets, 2))])
    return Q, P, triplets


def labelled(seed=0, n_rows=60, n_features=5):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n_rows)
    return rng.normal(size=(n_rows, n_features)) + 2 * np.eye(n_features)[y], y


def small(learner, **settings):
    """Return the settings that the learner has as parameters."""
    return {name: value for name, value in settings.items() if name in learner._get_param_names()}


def bits(model):
    return {name: (array.dtype, array.shape, array.tobytes()) for name, array in model._to_file().items()}


def whole(matrix):
    return matrix.toarray() if sparse.issparse(matrix) else matrix


@parametrize_with_checks(
    [
        # Fewer pairs than the default, which is for real data: there are many checks.
        *[learner(**small(learner, n_constraints=500)) for learner in SIMILARITIES],
        am.DiagonalAROMA(cells="touched"),
        am.OASIS(cells="touched"),
        am.AROW(),
        am.AROW(covariance="diagonal"),
    ]
)
def test_scikit_learn_checks_pass(estimator, check):
    check(estimator)


def test_the_same_seed_gives_the_same_bits(model):
    X, y = labelled()
    model.set_params(n_triplets=500, random_state=3)
    assert bits(clone(model).fit(X, y)) == bits(clone(model).fit(X, y))
    assert bits(clone(model).fit(X, y)) != bits(clone(model).set_params(random_state=4).fit(X, y))


def test_fit_learns_the_triplets_that_from_labels_samples(model):
    X, y = labelled()
    model.set_params(n_triplets=700, random_state=5)
    triplets = am.triplets.from_labels(y, 700, random_state=5)
    assert bits(clone(model).fit(X, y)) == bits(clone(model).fit_triplets(triplets, X))


@pytest.mark.parametrize("widths", [{}, WIDE], ids=["narrow", "wide"])
def test_a_block_of_triplets_equals_the_same_triplets_one_by_one(model, widths):
    Q, P, triplets = toy(**widths)
    one_by_one = clone(model)
    for i, j, k in triplets:
        one_by_one.learn_one(Q[i], P[j], P[k])
    assert bits(model.fit_triplets(triplets, Q, P)) == bits(one_by_one)


@settings(max_examples=10, deadline=None)
@given(cuts=st.lists(st.integers(0, 300), max_size=5))
@pytest.mark.parametrize("widths", [{}, WIDE], ids=["narrow", "wide"])
@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=repr)
def test_batches_of_any_size_equal_one_batch(configuration, widths, cuts):
    Q, P, triplets = toy(**widths)
    one_batch, batches = clone(configuration).fit_triplets(triplets, Q, P), clone(configuration)
    for batch in np.split(triplets, sorted(cuts)):
        batches.partial_fit_triplets(batch, Q, P)
    assert bits(one_batch) == bits(batches)


@pytest.mark.parametrize("share_of_zeros", [0.0, 0.4, 0.9])
def test_csr_equals_dense_to_the_bit(model, share_of_zeros):
    Q, P, triplets = toy(share_of_zeros=share_of_zeros)
    dense = clone(model).fit_triplets(triplets, Q, P)
    for container in (sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix, sparse.coo_array):
        assert bits(clone(model).fit_triplets(triplets, container(Q), container(P))) == bits(dense)
    csr = clone(model)
    for i, j, k in triplets:
        csr.learn_one(sparse.csr_array(Q)[i], sparse.csr_matrix(P)[j], P[k])
    assert bits(csr) == bits(dense)
    np.testing.assert_array_equal(
        dense.pair_score(sparse.csr_matrix(Q), sparse.csr_matrix(P), triplets[:, :2]),
        dense.pair_score(Q, P, triplets[:, :2]),
    )
    np.testing.assert_allclose(
        dense.similarity(sparse.csr_matrix(Q), sparse.csr_matrix(P)),
        dense.similarity(Q, P),
        rtol=1e-4,
        atol=1e-5,
    )


def test_weights_of_one_change_nothing_and_zero_leaves_a_triplet_out(any_model):
    Q, P, triplets = toy()
    plain = clone(any_model).fit_triplets(triplets, Q, P)
    assert bits(clone(any_model).fit_triplets(triplets, Q, P, sample_weight=np.ones(300))) == bits(plain)
    weights = np.arange(300) % 2
    some = clone(any_model).fit_triplets(triplets, Q, P, sample_weight=weights)
    others = clone(any_model).fit_triplets(triplets[1::2], Q, P)
    np.testing.assert_array_equal(whole(some.W_), whole(others.W_))
    assert some.n_triplets_seen_ == 300


@online
def test_a_weight_divides_the_noise_or_multiplies_the_step_size(learner):
    Q, P, triplets = toy()
    name = strength_parameter(learner)

    def fitted(value, n_triplets=300, weight=1.0):
        weights = np.full(n_triplets, weight)
        return learner(**{name: value}, init="zero").fit_triplets(triplets[:n_triplets], Q, P, sample_weight=weights)

    candidates = [bits(fitted(value)) for value in (2.0**-10, 2.0**-6)]
    assert candidates.count(bits(fitted(2.0**-8, weight=4.0))) == 1
    first_steps = [np.abs(whole(fitted(2.0**-8, n_triplets=1, weight=weight).W_)).max() for weight in (1.0, 4.0)]
    assert first_steps[0] < first_steps[1]


@pytest.mark.parametrize("widths", [{}, WIDE], ids=["narrow", "wide"])
def test_save_and_load_are_exact_and_learning_resumes_with_a_bit_identical_result(model, widths, tmp_path):
    Q, P, triplets = toy(**widths)
    model.fit_triplets(triplets[:150], Q, P)
    model.save(tmp_path / "model.safetensors")
    loaded = am.load(tmp_path / "model.safetensors")
    assert type(loaded) is type(model)
    assert loaded.get_params() == model.get_params()
    assert bits(loaded) == bits(model)
    np.testing.assert_array_equal(loaded.similarity(Q, P), model.similarity(Q, P))
    assert bits(loaded.partial_fit_triplets(triplets[150:], Q, P)) == bits(clone(model).fit_triplets(triplets, Q, P))


def test_pickles_and_copies_are_exact_and_independent(any_model):
    Q, P, triplets = toy()
    any_model.fit_triplets(triplets[:150], Q, P)
    frozen, before = any_model.copy(), bits(any_model)
    assert bits(pickle.loads(pickle.dumps(any_model))) == before
    any_model.partial_fit_triplets(triplets[150:], Q, P)
    assert bits(frozen) == before
    assert bits(any_model) != before


@pytest.mark.parametrize("widths", [{}, WIDE], ids=["narrow", "wide"])
def test_reading_never_changes_later_bits(model, widths):
    Q, P, triplets = toy(**widths)
    quiet = clone(model).fit_triplets(triplets, Q, P)
    names = [name for name in ("W_", "Sigma_", "Omega_", "Lambda_") if hasattr(quiet, name)]
    for start in range(0, 300, 10):
        model.partial_fit_triplets(triplets[start : start + 10], Q, P)
        for name in names:
            matrix = getattr(model, name)  # a copy: writing to it reaches nothing
            (matrix.data if sparse.issparse(matrix) else matrix)[:] = 7.0
        model.similarity(Q, P)
        model.margins(triplets, Q, P)
        model.transform(Q)
        if hasattr(model, "pair_std"):
            model.pair_std(Q, P, triplets[:, :2])
        repr(model)
    assert bits(model) == bits(quiet)


def test_inputs_are_never_modified(any_model):
    Q, P, triplets = toy()
    # Entries out of order, in another precision: what SciPy would put in order in the caller's own matrix.
    Q_csr, weights = sparse.csr_matrix(Q[:, ::-1].astype(np.float32))[:, ::-1], np.linspace(0, 2, 300)
    assert not Q_csr.has_sorted_indices
    before = [array.copy() for array in (Q, P, triplets, weights, Q_csr.data, Q_csr.indices, Q_csr.indptr)]
    any_model.fit_triplets(triplets, Q, P, sample_weight=weights)
    any_model.partial_fit_triplets(triplets, Q_csr, P)
    any_model.learn_one(Q[0], P[0], P[1])
    any_model.similarity(Q, P)
    any_model.margins(triplets, Q_csr, P)
    for was, array in zip(before, (Q, P, triplets, weights, Q_csr.data, Q_csr.indices, Q_csr.indptr), strict=True):
        np.testing.assert_array_equal(was, array)


def test_an_empty_block_is_a_no_op(any_model):
    Q, P, triplets = toy()
    none = np.empty((0, 3), dtype=int)
    started = clone(any_model).fit_triplets(none, Q, P)
    assert started.n_triplets_seen_ == 0
    np.testing.assert_array_equal(whole(started.W_), np.zeros((6, 5)))
    before = bits(any_model.fit_triplets(triplets, Q, P))
    assert bits(any_model.partial_fit_triplets(none, Q, P)) == before
    assert bits(any_model.partial_fit_triplets([], Q, P, sample_weight=[])) == before


def test_the_loss_falls_on_a_separable_toy(any_model):
    rng = np.random.default_rng(1)
    V = rng.normal(size=(5, 5))
    Q, P = rng.normal(size=(50, 5)), rng.normal(size=(50, 5))
    triplets = rng.integers(50, size=(4000, 3))
    wrong = np.einsum("ni,ij,nj->n", Q[triplets[:, 0]], V, P[triplets[:, 1]] - P[triplets[:, 2]]) < 0
    triplets[wrong] = triplets[wrong][:, [0, 2, 1]]
    any_model.fit_triplets(triplets[:3000], Q, P)
    early, late = clone(any_model).fit_triplets(triplets[:30], Q, P), any_model
    assert late.triplet_accuracy(triplets[3000:], Q, P) > max(0.8, early.triplet_accuracy(triplets[3000:], Q, P))


def test_a_tie_is_counted_as_a_mistake_and_changes_nothing(model):
    Q, P, _ = toy()
    model.learn_one(Q[0], P[1], P[1])
    assert (model.n_triplets_seen_, model.n_updates_, model.n_mistakes_) == (1, 0, 1)
    np.testing.assert_array_equal(whole(model.W_), 0)
    update = model.learn_one(np.zeros(6), P[1], P[2])
    assert (update.margin, update.loss, update.updated) == (0.0, 1.0, False)
    assert (model.n_triplets_seen_, model.n_updates_, model.n_mistakes_) == (2, 0, 2)


@pytest.mark.parametrize("widths", [{}, WIDE], ids=["narrow", "wide"])
def test_scores_agree_with_each_other(any_model, widths):
    Q, P, triplets = toy(**widths)
    any_model.fit_triplets(triplets, Q, P)
    close = (
        {"rtol": 1e-4, "atol": 1e-5}
        if any_model.get_params().get("dtype") == "float32"
        else {"rtol": 1e-9, "atol": 1e-12}
    )
    all_scores = Q @ any_model.W_ @ P.T
    np.testing.assert_allclose(any_model.similarity(Q, P), all_scores, **close)
    np.testing.assert_allclose(any_model.transform(Q) @ P.T, all_scores, **close)
    i, j, k = triplets.T
    np.testing.assert_allclose(any_model.pair_score(Q, P, triplets[:, :2]), all_scores[i, j], **close)
    np.testing.assert_allclose(any_model.pair_score(Q, P[:30]), np.diag(all_scores[:, :30]), **close)
    np.testing.assert_allclose(any_model.margins(triplets, Q, P), all_scores[i, j] - all_scores[i, k], **close)
    share = np.mean(any_model.margins(triplets, Q, P) > 0)
    assert any_model.triplet_accuracy(triplets, Q, P) == share


@pytest.mark.parametrize("learner", CONFIDENT)
def test_confidence_grows_with_evidence_and_never_shrinks(learner):
    Q, P, triplets = toy(n_triplets=60)
    model, before = learner(), np.inf
    for i, j, k in triplets:
        update = model.learn_one(Q[i], P[j], P[k])
        after = model.margin_std([[i, j, k]], Q, P)[0]
        assert after < update.std or not update.updated
        now = model.pair_std(Q, P, triplets[:, :2])
        assert (now <= before + 1e-12).all()
        before = now


@pytest.mark.parametrize("learner", TRIPLET_LEARNERS)
def test_a_learner_has_all_methods_of_a_distribution_or_none(learner):
    methods = ("pair_std", "margin_std", "similarity_std", "sample_transform", "decay")
    model = learner().fit_triplets([[0, 1, 2]], np.eye(3))
    (has_distribution,) = {hasattr(model, name) for name in methods}
    q, p_pos, p_neg = np.eye(3)[:, np.newaxis]
    assert (model.explain_pair(q, p_pos).stds is not None) == has_distribution
    assert (model.learn_one(q, p_pos, p_neg).std is not None) == has_distribution


@pytest.mark.parametrize("learner", SIMILARITIES)
def test_a_learner_has_no_attribute_that_is_a_parameter_of_another(learner):
    others = {name for other in CLASSES for name in other._get_param_names()} - {*learner._get_param_names()}
    assert not [name for name in others if hasattr(learner(), name)]


@pytest.mark.parametrize("learner", SIMILARITIES)
def test_pipelines_grids_clones_and_output_containers_work(learner):
    X, y = labelled()
    model = learner(**small(learner, n_triplets=300, n_constraints=300, method="spectral", random_state=0))
    pipeline = make_pipeline(StandardScaler(), clone(model)).fit(X, y)
    assert 0 < pipeline.score(X, y) <= 1
    assert pipeline.transform(X).shape == (len(X), len(pipeline.get_feature_names_out()))
    frame = clone(model).set_output(transform="pandas").fit(X, y).transform(X)
    assert isinstance(frame, pd.DataFrame)
    assert frame.columns.is_unique
    if (name := strength_parameter(learner)) is not None:
        grid = GridSearchCV(clone(model), {name: [0.01, 1.0]}, cv=StratifiedKFold(3)).fit(X, y)
        assert grid.best_params_[name] in (0.01, 1.0)
        assert grid.best_score_ > 0.4
    assert clone(model).get_params() == model.get_params()


@pytest.mark.parametrize("learner", CLASSES)
def test_every_class_documents_its_parameters_and_attributes_with_an_example(learner):
    text = inspect.getdoc(learner)
    assert ">>>" in text
    assert "Attributes" in text
    for name in inspect.signature(learner).parameters:
        assert f"\n{name} : " in text, name
    if learner not in (am.Cosine, am.Euclidean):
        assert "References" in text
        assert "Departure:" in inspect.getmodule(learner).__doc__ or "::" in inspect.getmodule(learner).__doc__
    for name, method in inspect.getmembers(learner, inspect.isfunction):
        if not name.startswith("_") and method.__module__.startswith("aromatch"):
            assert inspect.getdoc(method), name


@online
def test_feature_names_survive_a_file(learner, tmp_path):
    X, y = labelled()
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = learner(n_triplets=50, random_state=0).fit(frame, y)
    model.save(tmp_path / "model")
    assert am.load(tmp_path / "model").feature_names_in_.tolist() == list("abcde")


@online
def test_an_initial_matrix_survives_a_file_and_is_not_shared(learner, tmp_path):
    Q, P, triplets = toy()
    start = np.random.default_rng(0).normal(size=(6, 5))
    model = learner(init=start).fit_triplets(triplets, Q, P)
    model.save(tmp_path / "model")
    loaded = am.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.init, start)
    assert bits(loaded.fit_triplets(triplets, Q, P)) == bits(model)


@online
@pytest.mark.parametrize(
    "generator", [np.random.default_rng(0), np.random.RandomState(0)], ids=["Generator", "RandomState"]
)
def test_a_random_state_that_is_a_generator_is_refused_at_save(learner, generator, tmp_path):
    model = learner(random_state=generator).fit_triplets([[0, 1, 2]], np.eye(3))
    with pytest.raises(TypeError, match="random_state"):
        model.save(tmp_path / "model")
    model.set_params(random_state=3).save(tmp_path / "model")
    assert am.load(tmp_path / "model").random_state == 3


@pytest.mark.parametrize("learner", ONLINE)
def test_weights_stay_with_their_triplets_when_a_call_is_divided_into_chunks(learner, monkeypatch):
    rng = np.random.default_rng(0)
    Q, P, triplets, weights = (
        rng.normal(size=(9, 4)),
        rng.normal(size=(9, 3)),
        rng.integers(9, size=(50, 3)),
        rng.random(50),
    )
    whole = learner(init="zero").fit_triplets(triplets, Q, P, sample_weight=weights)
    monkeypatch.setattr(triplet_learners, "timed_chunks", lambda n: (slice(i, i + 1) for i in range(n)))
    chunked = learner(init="zero").fit_triplets(triplets, Q, P, sample_weight=weights)
    np.testing.assert_array_equal(chunked.W_, whole.W_)
    assert chunked.n_updates_ == whole.n_updates_


@pytest.mark.parametrize("learner", ONLINE)
def test_fit_triplets_drops_the_feature_names_of_an_earlier_fit(learner):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(12, 3)), columns=list("abc"))
    model = learner(n_triplets=20, random_state=0).fit(frame, np.arange(12) % 2)
    model.fit_triplets([[0, 1, 0]], np.eye(2))
    assert not hasattr(model, "feature_names_in_")
    assert model.transform(np.eye(2)).shape == (2, 2)


@online
@pytest.mark.parametrize("container", ["csr", "csc", "coo", "lil", "fortran"])
def test_a_start_may_come_in_any_container(learner, container):
    Q, P, triplets = toy()
    start = np.random.default_rng(9).normal(size=(6, 5)) * (np.arange(5) > 1)
    init = np.asfortranarray(start) if container == "fortran" else sparse.coo_array(start).asformat(container)
    found = learner(init=init).fit_triplets(triplets[:0], Q, P)
    np.testing.assert_array_equal(found.W_, start)
    np.testing.assert_allclose(
        found.pair_score(Q[:9], P[:9]), np.einsum("ij,jk,ik->i", Q[:9], start, P[:9]), atol=1e-12
    )
    assert bits(found.partial_fit_triplets(triplets, Q, P)) == bits(learner(init=start).fit_triplets(triplets, Q, P))


@pytest.mark.parametrize("cells", ["dense", "touched"])
@pytest.mark.parametrize("way", ["fresh", "loaded", "pickled", "copied", "read-only"])
def test_a_triplet_that_fails_leaves_the_model_unchanged_wherever_it_comes_from(way, cells, tmp_path):
    start = np.zeros((2, 2))
    start[0, 0] = 1e200
    X = np.array([[0, 1e50], [0, 1e50], [0, 0.0], [1e100, 0], [5e49, 0]])
    model = am.DiagonalAROMA(r=1e100, init=start, cells=cells).fit_triplets(np.zeros((0, 3), int), X)
    if way == "loaded":
        model.save(tmp_path / "model")
        model = am.load(tmp_path / "model")
    elif way == "pickled":
        model = pickle.loads(pickle.dumps(model))
    elif way == "copied":
        model = model.copy()
    elif way == "read-only":
        for array in model._state.values():
            array.flags.writeable = False
    with pytest.raises(NumericalError, match=r"triplet 1: its score is too large.*model is unchanged"):
        model.partial_fit_triplets([[0, 1, 2], [3, 4, 2]], X)
    assert (model.n_triplets_seen_, model.n_updates_) == (0, 0)
    assert model.W_[1, 1] == 0
    model.partial_fit_triplets([[0, 1, 2]], X)
    np.testing.assert_allclose([model.W_[1, 1], model.Sigma_[1, 1]], [1e-100, 1e-100])


def test_a_parameter_changed_between_two_judgements_is_checked_and_used(model):
    Q, P, _ = toy()
    one_by_one, in_blocks = clone(model), clone(model)
    name = strength_parameter(type(model))
    for value in (0.5, 0.125, 0.125):
        one_by_one.set_params(**{name: value}).learn_one(Q[0], P[0], P[1])
        in_blocks.set_params(**{name: value}).partial_fit_triplets([[0, 0, 1]], Q, P)
    assert bits(one_by_one) == bits(in_blocks)
    with pytest.raises(ValueError, match=name):
        one_by_one.set_params(**{name: -1.0}).learn_one(Q[0], P[0], P[1])
    assert bits(one_by_one) == bits(in_blocks)


# -- baselines: fitted on labels, without further training ------------------------------------------------------------

baselines = pytest.mark.parametrize("baseline", BASELINES, ids=repr)


@baselines
def test_a_baseline_gives_the_same_bits_for_the_same_seed_and_the_same_numbers_for_csr(baseline):
    X, y = labelled()
    X[X < 0.5] = 0
    dense = clone(baseline).fit(X, y)
    assert bits(clone(baseline).fit(X, y)) == bits(dense)
    for container in (sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix):
        found = clone(baseline).fit(container(X), y)
        np.testing.assert_allclose(found.similarity(container(X)), dense.similarity(X), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("learner", [am.ITML, am.LEGO])
def test_another_seed_samples_other_pairs(learner):
    X, y = labelled()
    assert bits(learner(n_constraints=50, random_state=0).fit(X, y)) != bits(
        learner(n_constraints=50, random_state=1).fit(X, y)
    )


@baselines
def test_a_baseline_survives_a_file_a_pickle_and_a_copy(baseline, tmp_path):
    X, y = labelled()
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = clone(baseline).fit(frame, y)
    model.save(tmp_path / "model")
    for other in (am.load(tmp_path / "model"), pickle.loads(pickle.dumps(model)), model.copy()):
        assert type(other) is type(model)
        assert other.get_params() == model.get_params()
        assert bits(other) == bits(model)
        assert other.feature_names_in_.tolist() == list("abcde")
        np.testing.assert_array_equal(other.similarity(frame), model.similarity(frame))
        np.testing.assert_array_equal(other.transform(frame), model.transform(frame))


@baselines
def test_a_baseline_modifies_no_input_and_its_readings_are_copies(baseline):
    X, y = labelled()
    csr = sparse.csr_matrix(X[:, ::-1])[:, ::-1]
    before = [array.copy() for array in (X, y, csr.data, csr.indices)]
    model = clone(baseline).fit(csr, y).fit(X, y)
    was = bits(model)
    model.similarity(csr, X)
    for name in ("M_", "S_", "coef_", "intercept_", "objectives_"):
        if hasattr(model, name):
            getattr(model, name)[:] = 7.0
    assert bits(model) == was
    for old, new in zip(before, (X, y, csr.data, csr.indices), strict=True):
        np.testing.assert_array_equal(old, new)


@baselines
def test_scores_of_a_baseline_agree_with_each_other(baseline):
    X, y = labelled()
    model = clone(baseline).fit(X, y)
    scores = model.similarity(X[:20], X)
    triplets = np.random.default_rng(0).integers(20, size=(30, 3))
    i, j, k = triplets.T
    np.testing.assert_allclose(model.pair_score(X, None, triplets[:, :2]), scores[i, j], atol=1e-9)
    np.testing.assert_allclose(model.margins(triplets, X), scores[i, j] - scores[i, k], atol=1e-9)

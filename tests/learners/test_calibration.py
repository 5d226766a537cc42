"""Probabilities that are as right as they say."""

import json
import pickle

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import norm
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

import aromatch as am
from aromatch.evaluation import reliability
from aromatch.exceptions import ModelFileError
from aromatch.io.container import read_model, write_model
from aromatch.learners.calibration import Calibration
from learner_classes import SIMILARITIES
from saved_state import saved_state

CONFIDENT = {
    "d-AROMA": lambda: am.DiagonalAROMA(10.0),
    "f-AROMA": lambda: am.FactoredAROMA(10.0),
    "MomentAROMA": lambda: am.MomentAROMA(1e-2),
}


def judged(n, truth, seed=0):
    """Margins of comparisons of which a share given by `truth` comes out as the margin says."""
    rng = np.random.default_rng(seed)
    sizes = np.abs(rng.normal(size=n))
    return np.where(rng.random(n) < truth(sizes), sizes, -sizes)


def logistic(x):
    return 1 / (1 + np.exp(-x))


def curve_of(margins):
    return Calibration().added(margins, 0).curve()


def same(curve, other):
    """Whether two curves give the same probabilities."""
    return curve[:2] == other[:2]


@pytest.mark.parametrize("n", [64, 640, 4096])
@pytest.mark.parametrize("unit", [1.0, 1e-100, 1e100])
def test_the_slope_makes_what_happened_most_likely_with_one_mistake_for_no_reason(n, unit):
    margins = judged(n, lambda m: logistic(2 * m))

    def unlikely(a):
        right = (n + 1) / (n + 2)
        return (right * np.logaddexp(0, -a * margins) + (1 - right) * np.logaddexp(0, a * margins)).sum()

    expected = minimize_scalar(unlikely, bounds=(0, 50), method="bounded", options={"xatol": 1e-9}).x
    assert curve_of(unit * margins).slope * unit == pytest.approx(expected, rel=1e-6)


def test_probabilities_come_true_on_comparisons_that_were_not_used():
    curve = curve_of(judged(4096, lambda m: logistic(3 * m)))
    assert curve.slope == pytest.approx(3, rel=0.15)
    assert curve.error_rate == 0
    assert (curve.n_used, curve.n_predictions) == (4096, 4096)
    assert reliability(curve.probabilities(judged(50_000, lambda m: logistic(3 * m), seed=1))).largest_gap < 0.03


def test_judgements_that_go_against_any_margin_are_allowed_for():
    truth = lambda m: 0.1 + 0.8 * logistic(6 * m)  # noqa: E731
    curve = curve_of(judged(4096, truth))
    assert curve.error_rate == pytest.approx(0.1, abs=0.02)
    assert curve.slope == pytest.approx(6, rel=0.25)
    assert reliability(curve.probabilities(judged(50_000, truth, seed=1))).largest_gap < 0.03
    assert curve_of(judged(4096, lambda m: logistic(6 * m))).error_rate == 0


@pytest.mark.parametrize(
    "margins",
    [
        judged(4096, lambda m: np.full(len(m), 0.4)),
        np.zeros(64),
        np.full(64, 1e-310),
        -np.ones(64),
        np.tile([0.1, 0.2, -0.3], 64),
    ],
)
def test_predictions_no_better_than_chance_have_probability_one_half(margins):
    np.testing.assert_allclose(curve_of(margins).probabilities(np.array([-2.0, 0.0, 0.1])), 0.5, atol=1e-12)


@pytest.mark.parametrize("seed", range(50))
def test_predictions_that_balance_break_nothing(seed):
    half = np.random.default_rng(seed).normal(size=64)
    margins = np.random.default_rng(seed).permutation(np.concatenate([half, -half]))
    np.testing.assert_allclose(curve_of(margins).probabilities(np.ones(1)), 0.5, atol=1e-6)


@pytest.mark.parametrize("n", [64, 512, 4096])
@pytest.mark.parametrize("outlier", [-60.0, -1e6, 1e6])
def test_a_single_huge_margin_decides_nothing(n, outlier):
    margins = judged(n, lambda m: logistic(3 * m))
    clean = curve_of(margins).probabilities(np.ones(1))[0]
    margins[n // 2] = outlier
    assert curve_of(margins).probabilities(np.ones(1))[0] == pytest.approx(clean, abs=0.09)


def test_a_few_that_all_came_true_do_not_make_certain():
    assert curve_of(np.ones(64)).probabilities(np.ones(1))[0] == pytest.approx(65 / 66)
    assert curve_of(np.ones(4096)).probabilities(np.ones(1))[0] == pytest.approx(4097 / 4098)


def test_the_last_predictions_count():
    calibration = Calibration().added(judged(20_000, lambda m: logistic(0.5 * m)), 0)
    late = judged(8192, lambda m: logistic(4 * m))
    calibration = calibration.added(late, 0)
    assert same(calibration.curve(), curve_of(late))
    assert (calibration.curve().n_used, calibration.curve().n_predictions) == (8192, 28_192)


@pytest.mark.parametrize(("learned", "counts"), [(740, False), (760, True), (1_330, True), (1_340, False)])
def test_predictions_count_when_about_as_much_was_learned_and_some_hundreds_in_any_case(learned, counts):
    early, late = (judged(n, lambda m: logistic(2 * m), seed=n) for n in (3_072, 1_024))
    both = Calibration().added(early, learned).added(late, 1_000)
    assert same(both.curve(), curve_of(np.concatenate([early, late]) if counts else late))
    assert both.curve().n_learned == 1_000
    few = Calibration().added(early, learned).added(late[:100], 1_000)
    assert same(few.curve(), curve_of(np.concatenate([early if counts else early[-156:], late[:100]])))


@settings(max_examples=30, deadline=None)
@given(cuts=st.lists(st.integers(1, 6000), min_size=1, max_size=8), seed=st.integers(0, 9))
def test_predictions_one_by_one_in_batches_or_together_make_the_same_curve(cuts, seed):
    margins = judged(sum(cuts), lambda m: logistic(m), seed=seed)
    whole, pieces, single = Calibration().added(margins, 7), Calibration(), Calibration()
    for piece in np.split(margins, np.cumsum(cuts)[:-1]):
        pieces = pieces.added(piece, 7)
    for margin in margins.tolist():
        single.add_one(margin, 7)
    for other in (pieces, single):
        np.testing.assert_array_equal(whole.predictions(), other.predictions())
    np.testing.assert_array_equal(whole.predictions()[0], margins[-8192:])
    if len(margins) >= 64:
        assert whole.curve() == pieces.curve() == single.curve()


def digits():
    X, y = load_digits(return_X_y=True)
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


def comparisons(rows, n, seed, wrong=0.1):
    """Triplets of these rows, a share of them with the wrong object preferred."""
    _, y = digits()
    triplets = rows[am.triplets.from_labels(y[rows], n, random_state=seed)]
    is_wrong = np.random.default_rng(seed).random(n) < wrong
    triplets[is_wrong] = triplets[is_wrong][:, [0, 2, 1]]
    return triplets


@pytest.mark.parametrize("wrong", [0.0, 0.1])
@pytest.mark.parametrize("name", CONFIDENT)
def test_probabilities_of_a_learner_come_true_for_rows_that_it_has_not_seen(name, wrong):
    X, _ = digits()
    learned, seen, new = np.array_split(np.random.default_rng(1).permutation(len(X)), [600, 1200])
    model = CONFIDENT[name]().fit_triplets(comparisons(learned, 3_000, 0, wrong), X)
    new_ones = comparisons(new, 20_000, 2, wrong)
    model.calibrate(comparisons(seen, 8_192, 1, wrong), X)
    found, margins = model.preference_proba(new_ones, X), model.margins(new_ones, X)
    assert reliability(found).largest_gap <= 0.03
    sure, right = np.maximum(found, 1 - found), margins > 0
    assert roc_auc_score(right, sure) >= roc_auc_score(right, np.abs(margins)) - 1e-6
    raw = norm.cdf(margins / model.margin_std(new_ones, X))  # what the learned distribution says
    assert reliability(raw).largest_gap > reliability(found).largest_gap


def rms_margin(model):
    """The size of margins, from the sums of the triplets."""
    qq, pp, W = (
        array.astype(np.longdouble) for array in (saved_state(model)["qq"], saved_state(model)["pp"], model.W_)
    )
    return float(np.sqrt(np.trace(W.T @ qq @ W @ pp)) / model.sum_of_weights_)


@pytest.mark.parametrize("name", [*CONFIDENT, "OASIS", "auto"])
def test_learning_one_at_a_time_notes_what_was_predicted_before(name):
    X, _ = digits()
    others = {"OASIS": lambda: am.OASIS(C=0.01), "auto": lambda: am.MomentAROMA("auto")}
    model = {**CONFIDENT, **others}[name]()
    model.fit_triplets(comparisons(np.arange(400), 500, 0), X)
    margins = []
    for triplet in comparisons(np.arange(400, 800), 80, 1):
        unit = rms_margin(model) if name == "auto" else 1.0  # another alpha makes another scale
        margins.append(model.learn_one(*X[list(triplet)]).margin / unit)
    model.learn_one(*X[:3], sample_weight=0)  # nobody judged
    np.testing.assert_allclose(model.calibration_[:4], curve_of(np.array(margins))[:4], rtol=1e-6)
    assert model.calibration_.n_learned == 579


@pytest.mark.parametrize("scale", [1.0, 1e-60, 1e40])
def test_the_unit_of_margins_is_their_size(scale):
    X, _ = digits()
    triplets = comparisons(np.arange(600), 20_000, 0, wrong=0)
    model = am.MomentAROMA("auto").fit_triplets(triplets, scale * X)
    assert model._unit_of_margins == pytest.approx(rms_margin(model), rel=1e-9)
    typical = np.sqrt(np.mean(model.margins(triplets, scale * X) ** 2))
    assert 0.4 * typical < model._unit_of_margins < typical  # queries and differences are not independent here


def test_calibrating_before_each_batch_equals_learning_one_at_a_time():
    X, _ = digits()
    triplets = comparisons(np.arange(300), 200, 0)
    start = am.DiagonalAROMA().fit_triplets(triplets[:50], X)
    pieces, single = start.copy(), start.copy()
    for triplet in triplets[50:]:
        pieces.calibrate(triplet[np.newaxis], X).partial_fit_triplets(triplet[np.newaxis], X)
        single.learn_one(*X[list(triplet)])
    assert pieces.calibration_.slope == pytest.approx(single.calibration_.slope, rel=1e-9)


def calibrated(learner=am.DiagonalAROMA):
    X, y = digits()
    model = learner(n_triplets=1_000, random_state=0).fit(X[:200], y[:200])
    return model.calibrate(comparisons(np.arange(200, 600), 700, 1), X), X


@pytest.mark.parametrize("learner", SIMILARITIES)
def test_every_similarity_can_be_calibrated_saved_and_copied(learner, tmp_path):
    X, y = digits()
    kept = X.var(axis=0) > 1e-3  # few enough features for all of them
    X = X[:, kept][:, :20]
    model = learner()
    if "n_triplets" in model.get_params():
        model.set_params(n_triplets=1_000)
    model.fit(X[:150], y[:150])
    before = model.similarity(X[:5])
    model.calibrate(comparisons(np.arange(150, 600), 700, 1), X)
    np.testing.assert_array_equal(model.similarity(X[:5]), before)
    new = comparisons(np.arange(600, 900), 300, 2)
    expected = model.preference_proba(new, X)
    assert ((expected >= 0) & (expected <= 1)).all()
    assert ((expected > 0.5) == (model.margins(new, X) > 0)).all()
    model.save(tmp_path / "model")
    for one in (model.copy(), am.load(tmp_path / "model")):
        np.testing.assert_array_equal(one.preference_proba(new, X), expected)
        assert one.calibration_ == model.calibration_
    loaded = am.load(tmp_path / "model")
    for one in (model, loaded):
        one.calibrate(new, X)
    assert model.calibration_ == loaded.calibration_
    assert model.fit(X[:150], y[:150]).__dict__.get("_calibration") is None


def test_a_model_that_is_mapped_from_a_file_learns_on_and_what_is_pickled_holds_predictions_only(tmp_path):
    model, X = calibrated()
    joblib.dump(model, tmp_path / "model")
    mapped = joblib.load(tmp_path / "model", mmap_mode="r")
    for one in (model, mapped):
        one.calibrate([[0, 1, 2]], X)
        one.learn_one(*X[:3])
    assert mapped.calibration_ == model.calibration_
    fresh = am.DiagonalAROMA().fit_triplets([], X)
    size = len(pickle.dumps(fresh))
    fresh.learn_one(*X[:3])
    assert len(pickle.dumps(fresh)) < size + 1_000


def test_an_empty_batch_records_no_prediction():
    X, _ = digits()
    model = am.DiagonalAROMA().fit_triplets([[0, 1, 2]], X)
    assert model.calibrate(np.empty((0, 3), dtype=int), X).__dict__.get("_calibration") is None


def test_predictions_before_a_decay_are_not_used():
    X, _ = digits()
    model = am.MomentAROMA(1e-2).fit_triplets(comparisons(np.arange(600), 3_000, 0), X)
    model.calibrate(comparisons(np.arange(600, 1_200), 1_000, 1), X)
    model.decay(0.9)
    model.calibrate(comparisons(np.arange(600, 1_200), 300, 2), X)
    assert model.calibration_.n_used == 300


def test_other_models_made_of_it_have_seen_no_predictions():
    X, y = digits()
    model = am.MomentAROMA("auto").fit(X[:200], y[:200]).calibrate(comparisons(np.arange(200, 600), 700, 1), X)
    triplets = comparisons(np.arange(200), 500, 0, wrong=0)
    others = [am.merge([model, model]), model.project()]
    for other in others:
        with pytest.raises(ValueError, match="0 recorded predictions, expected at least 64"):
            other.preference_proba(triplets, X)


def test_reading_leaves_the_file_as_it_was(tmp_path):
    model, X = calibrated()
    fresh = am.DiagonalAROMA().fit_triplets([[0, 1, 2]], X)
    for number, one in enumerate((model, fresh)):
        one.save(tmp_path / f"{number}")
        if one is model:
            one.preference_proba([[0, 1, 2]], X)
        else:
            with pytest.raises(ValueError, match="0 recorded"):
                one.preference_proba([[0, 1, 2]], X)
        one.save(tmp_path / f"{number}-after")
        assert (tmp_path / f"{number}").read_bytes() == (tmp_path / f"{number}-after").read_bytes()


def test_bad_comparisons_are_refused_and_leave_it_as_it_was():
    model, X = calibrated()
    before = model.calibration_
    with pytest.raises(ValueError, match="other object of triplet"):
        model.calibrate([[0, 1, 5_000]], X)
    with pytest.raises(ValueError, match="Q"):
        model.calibrate([[0, 1, 2]], X[:, :5])
    assert model.calibration_ == before


@pytest.mark.parametrize(
    "change",
    [
        lambda header, arrays: header.update(n_predictions=3),
        lambda header, arrays: header.update(n_predictions=-1),
        lambda header, arrays: header.update(n_predictions="many"),
        lambda header, arrays: header.update(n_predictions=True),
        lambda header, arrays: header.pop("n_predictions"),
        lambda header, arrays: [arrays.pop(f"calibration.{name}") for name in ("margins", "n_learned")],
        lambda header, arrays: arrays.pop("calibration.n_learned"),
        lambda header, arrays: arrays.update({"calibration.more": np.zeros(700)}),
        lambda header, arrays: arrays.update({"calibration.n_learned": np.zeros(3)}),
        lambda header, arrays: arrays["calibration.margins"].fill(np.nan),
        lambda header, arrays: arrays["calibration.n_learned"].fill(-1),
        lambda header, arrays: arrays["calibration.n_learned"].fill(np.inf),
        lambda header, arrays: arrays.update({"calibration.margins": np.zeros(700, dtype=np.float32)}),
        lambda header, arrays: arrays.update({"calibration.margins": np.zeros((700, 1))}),
    ],
)
def test_files_with_a_calibration_that_is_none_are_refused(change, tmp_path):
    model, _ = calibrated()
    model.save(tmp_path / "model")
    header, arrays = read_model(tmp_path / "model")
    arrays = {name: array.copy() for name, array in arrays.items()}
    header = json.loads(json.dumps(header))
    change(header, arrays)
    write_model(tmp_path / "model", header, arrays)
    with pytest.raises(ModelFileError, match=r"calibration|n_predictions"):
        am.load(tmp_path / "model")

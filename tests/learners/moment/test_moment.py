"""MomentAROMA against direct computations; independence of order and batches; exact merging."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import aromatch as am
from aromatch.kernels.moments import add_sums
from aromatch.kernels.rows import RowView
from aromatch.learners.moment import sums
from saved_state import saved_state

CLOSE = {"rtol": 1e-9, "atol": 1e-12}


def toy(seed=0, m=6, n=5, n_triplets=300, share_of_zeros=0.4):
    rng = np.random.default_rng(seed)
    Q = rng.normal(size=(30, m)) * (rng.random((30, m)) >= share_of_zeros)
    P = rng.normal(size=(40, n)) * (rng.random((40, n)) >= share_of_zeros)
    triplets = np.column_stack([rng.integers(30, size=n_triplets), rng.integers(40, size=(n_triplets, 2))])
    return Q, P, triplets, rng.random(n_triplets)


def by_hand(Q, P, triplets, weights, alpha):
    """The formula, triplet by triplet; those without a query or a difference change nothing."""
    m, n = Q.shape[1], P.shape[1]
    qq, qp, pp, total = np.zeros((m, m)), np.zeros((m, n)), np.zeros((n, n)), 0.0
    for (i, j, k), w in zip(triplets, weights, strict=True):
        q, p = Q[i], P[j] - P[k]
        if q.any() and p.any():
            qq, qp, pp = qq + w * np.outer(q, q), qp + w * np.outer(q, p), pp + w * np.outer(p, p)
            total += w
    left = np.linalg.inv(qq / total + alpha * np.eye(m))
    right = np.linalg.inv(pp / total + alpha * np.eye(n))
    return left @ (qp / total) @ right, left / total, right


def state_of(model):
    return saved_state(model)


@pytest.mark.parametrize("share_of_zeros", [0.0, 0.4, 0.95], ids=["dense", "mixed", "sparse"])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, np.asfortranarray], ids=["C", "CSR", "Fortran"])
def test_w_and_its_covariance_are_those_of_the_formula(share_of_zeros, container):
    Q, P, triplets, weights = toy(share_of_zeros=share_of_zeros)
    model = am.MomentAROMA(alpha=0.01).fit_triplets(triplets, container(Q), container(P), sample_weight=weights)
    W, Lambda, Omega = by_hand(Q, P, triplets, weights, 0.01)
    np.testing.assert_allclose(model.W_, W, **CLOSE)
    np.testing.assert_allclose(model.Lambda_, Lambda, **CLOSE)
    np.testing.assert_allclose(model.Omega_, Omega, **CLOSE)
    q, p = Q[triplets[:, 0]], P[triplets[:, 1]] - P[triplets[:, 2]]
    variance = np.einsum("ij,jk,ik->i", q, Lambda, q) * np.einsum("ij,jk,ik->i", p, Omega, p)
    np.testing.assert_allclose(model.margin_std(triplets, Q, P), np.sqrt(variance), **CLOSE)
    np.testing.assert_allclose(model.margins(triplets, Q, P), np.einsum("ij,jk,ik->i", q, W, p), **CLOSE)


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_other_numbers_are_summed_in_float64(dtype):
    Q, P, triplets, weights = toy()
    Q, P = (10 * Q).astype(dtype), (10 * P).astype(dtype)
    model = am.MomentAROMA(alpha=0.1).fit_triplets(triplets, Q, P, sample_weight=weights)
    W, _, _ = by_hand(Q.astype(np.float64), P.astype(np.float64), triplets, weights, 0.1)
    np.testing.assert_allclose(model.W_, W, **CLOSE)


def test_outer_products_by_values_and_by_blas_agree(monkeypatch):
    Q, P, triplets, _ = toy(m=40, n=30)
    found, n_products = [], []
    for name in ("dgemm", "dsyrk"):
        by_blas = getattr(sums, name)
        monkeypatch.setattr(
            sums, name, lambda *args, by_blas=by_blas, **kw: n_products.append(1) or by_blas(*args, **kw)
        )
    for few, expected in ((0.0, 3), (1.1, 0)):
        n_products.clear()
        monkeypatch.setattr(sums, "_SPARSE_BELOW", few)
        found.append(am.MomentAROMA().fit_triplets(triplets, Q, P).W_)
        assert len(n_products) == expected
    np.testing.assert_allclose(*found, rtol=1e-7, atol=1e-9)


def test_sums_of_rows_tell_how_many_values_they_read():
    view = RowView.of_dense(np.array([[0.0, 2.0, 3.0], [1.0, 0.0, 0.0]]))
    out = np.zeros((2, 3))
    assert add_sums(view, np.array([0, 2, 3]), np.array([0, 1, 0]), np.array([1.0, 10.0, -1.0]), out) == 5
    np.testing.assert_array_equal(out, [[10, 2, 3], [0, -2, -3]])


def test_rows_in_many_chunks_give_the_same_sums(monkeypatch):
    Q, P, triplets, _ = toy()
    whole = am.MomentAROMA().fit_triplets(triplets, Q, P)
    monkeypatch.setattr(sums, "_CHUNK", 20)
    chunks_of_rows = am.MomentAROMA().fit_triplets(triplets, Q, P)
    np.testing.assert_allclose(chunks_of_rows.W_, whole.W_, **CLOSE)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), cuts=st.lists(st.integers(0, 300), max_size=5))
def test_neither_order_nor_batches_matter_and_merged_models_equal_one_of_all_triplets(seed, cuts):
    Q, P, triplets, weights = toy()
    whole = am.MomentAROMA().fit_triplets(triplets, Q, P, sample_weight=weights)
    order = np.random.default_rng(seed).permutation(len(triplets))
    in_batches, apart = am.MomentAROMA(), []
    for part in np.split(order, sorted(cuts)):
        in_batches.partial_fit_triplets(triplets[part], Q, P, sample_weight=weights[part])
        apart.append(am.MomentAROMA().fit_triplets(triplets[part], Q, P, sample_weight=weights[part]))
    before = [state_of(model.copy()) for model in apart]
    merged = am.merge(apart)
    for other in (in_batches, merged):
        np.testing.assert_allclose(other.W_, whole.W_, rtol=1e-7, atol=1e-9)
        assert other.sum_of_weights_ == pytest.approx(whole.sum_of_weights_)
        assert (other.n_triplets_seen_, other.n_updates_) == (whole.n_triplets_seen_, whole.n_updates_)
    for model, kept in zip(apart, before, strict=True):
        assert all((saved_state(model)[name] == array).all() for name, array in kept.items())
    again = am.merge([merged, am.MomentAROMA().fit_triplets(triplets[:0], Q, P)])
    assert all((saved_state(again)[name] == array).all() for name, array in state_of(merged).items())


def test_a_weight_is_that_many_triplets_and_no_weight_changes_nothing():
    Q, P, triplets, _ = toy()
    weights = np.random.default_rng(1).integers(0, 4, size=len(triplets))
    weighted = am.MomentAROMA().fit_triplets(triplets, Q, P, sample_weight=weights)
    repeated = am.MomentAROMA().fit_triplets(np.repeat(triplets, weights, axis=0), Q, P)
    np.testing.assert_allclose(weighted.W_, repeated.W_, **CLOSE)
    np.testing.assert_allclose(weighted.Lambda_, repeated.Lambda_, **CLOSE)
    assert weighted.n_triplets_seen_ == len(triplets)
    assert weighted.n_updates_ == len({*np.flatnonzero(weights)} - {*np.flatnonzero(triplets[:, 1] == triplets[:, 2])})
    assert weighted.sum_of_weights_ == repeated.sum_of_weights_


def test_nothing_and_a_comparison_of_an_object_with_itself_leave_w_at_zero():
    Q, P, _, _ = toy()
    for triplets in (np.zeros((0, 3), dtype=int), [[0, 4, 4]]):
        model = am.MomentAROMA(alpha=0.5).fit_triplets(triplets, Q, P)
        assert (model.W_ == 0).all()
        assert (model.n_triplets_seen_, model.n_updates_) == (len(triplets), 0)
        expected = np.linalg.norm(Q[:5], axis=1) * np.linalg.norm(P[:5], axis=1) / 0.5
        np.testing.assert_allclose(model.pair_std(Q[:5], P[:5]), expected)


def test_fitting_again_drops_the_previous_solution():
    Q, P, triplets, _ = toy()
    model = am.MomentAROMA().fit_triplets(triplets, Q, P)
    assert model.W_.any()
    assert not model.fit_triplets(triplets[:0], Q, P).W_.any()


def test_learn_one_returns_margin_and_std_before_the_update():
    Q, P, triplets, weights = toy()
    model = am.MomentAROMA(alpha=0.01).fit_triplets(triplets[:50], Q, P)
    for number in range(50, 60):
        one = triplets[number : number + 1]
        margin, std = model.margins(one, Q, P)[0], model.margin_std(one, Q, P)[0]
        i, j, k = one[0]
        judgement = model.learn_one(Q[i], sparse.csr_array(P[j : j + 1]), P[k], sample_weight=weights[number])
        assert judgement.margin == pytest.approx(margin, rel=1e-9)
        assert judgement.std == pytest.approx(std, rel=1e-9)
        assert judgement.updated == (Q[i].any() and (P[j] != P[k]).any())
    all_weights = np.concatenate([np.ones(50), weights[50:60]])
    together = am.MomentAROMA(alpha=0.01).fit_triplets(triplets[:60], Q, P, sample_weight=all_weights)
    np.testing.assert_allclose(model.W_, together.W_, **CLOSE)


# -- labels ---------------------------------------------------------------------------------------------------------


def all_triplets(y):
    """Every triplet that labels allow, weighted so that every query counts 1."""
    rows = range(len(y))
    found = [(i, j, k) for i in rows for j in rows for k in rows if i != j and y[i] == y[j] and y[i] != y[k]]
    query = [i for i, _, _ in found]
    return np.array(found), 1 / np.bincount(query)[query]


@pytest.mark.parametrize("sizes", [(4, 5, 3), (4, 5, 1, 1), (2, 1), (7, 2, 2, 2)], ids=str)
@pytest.mark.parametrize("share_of_zeros", [0.0, 0.5])
def test_labels_give_the_sums_over_all_triplets(sizes, share_of_zeros):
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    X = rng.normal(size=(len(y), 4)) * (rng.random((len(y), 4)) >= share_of_zeros)
    X[:, 0] += 3  # no rows of zeros or twins, whose triplets change nothing unless they come from labels
    triplets, weights = all_triplets(y)
    model = am.MomentAROMA().fit(sparse.csr_array(X), np.array(["b", "a", "d", "c"])[y])
    expected = am.MomentAROMA().fit_triplets(triplets, X, sample_weight=weights)
    np.testing.assert_allclose(model.W_, expected.W_, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(saved_state(model)["qq"], saved_state(expected)["qq"], **CLOSE)
    np.testing.assert_allclose(saved_state(model)["qp"], saved_state(expected)["qp"], rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(saved_state(model)["pp"], saved_state(expected)["pp"], rtol=1e-8, atol=1e-11)
    assert model.n_triplets_seen_ == len(triplets)
    assert model.sum_of_weights_ == pytest.approx(len(set(triplets[:, 0])))


def test_sampled_triplets_converge_to_all_of_them():
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=80)
    X = rng.normal(size=(80, 5)) + np.eye(5)[y]
    exact = am.MomentAROMA().fit(X, y).W_
    errors = []
    for n in (500, 8_000, 128_000):
        sampled = [am.triplets.from_labels(y, n, random_state=seed) for seed in range(5)]
        errors.append(np.mean([np.linalg.norm(am.MomentAROMA().fit_triplets(t, X).W_ - exact) for t in sampled]))
    # The error of a mean falls with the root of their number: by 4 where there are 16 times as many.
    assert errors[1] < errors[0] / 2.5
    assert errors[2] < errors[1] / 2.5
    assert errors[2] < 0.1 * np.linalg.norm(exact)


@pytest.mark.parametrize("y", [["a", "a", "a"], ["a", "b", "c"]])
def test_labels_without_a_triplet_are_refused(y):
    with pytest.raises(ValueError, match="class"):
        am.MomentAROMA().fit(np.eye(3), y)


# -- numbers that are hard --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.0, 1e-300, 1e-20, 1e-17, 1e-16, 1e-15, 1e-14, 1e-3])
def test_features_that_no_row_has_and_equal_features_do_no_harm(alpha):
    Q, P, triplets, _ = toy(m=4, n=4)
    wide = [np.column_stack([X, X[:, :2], np.zeros((len(X), 3))]) for X in (Q, P)]
    model = am.MomentAROMA(alpha=alpha).fit_triplets(triplets, *wide)
    W = model.W_
    assert np.isfinite(W).all()
    assert np.abs(W).max() < 10
    assert (np.abs(W[6:]) < 1e-9).all()
    assert (np.abs(W[:, 6:]) < 1e-9).all()
    if alpha < 1e-6:
        # Both copies share what the one had: the same scores as without them.
        plain = am.MomentAROMA(alpha=alpha).fit_triplets(triplets, Q, P)
        np.testing.assert_allclose(model.similarity(*wide), plain.similarity(Q, P), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_units_of_a_feature_do_not_matter_to_the_others(scale):
    Q, P, triplets, _ = toy()
    scales = np.array([1, 1, 1, 1, 1, scale])
    plain = am.MomentAROMA(alpha=0.0).fit_triplets(triplets, Q, P).W_
    found = am.MomentAROMA(alpha=0.0).fit_triplets(triplets, Q * scales, P).W_
    np.testing.assert_allclose(found * scales[:, np.newaxis], plain, rtol=1e-6, atol=1e-9)


def test_a_large_feature_hides_neither_others_nor_what_is_unknown():
    X = np.eye(5) * [1e7, 1e7, 1e7, 1, 1]
    model = am.MomentAROMA(alpha=1e-3).fit_triplets([[0, 1, 2]], X)
    assert model.pair_std(X[3:4], X[4:5])[0] == pytest.approx(1000)


@pytest.mark.parametrize("constant", [0.1, 1 / 3, 1.0])
def test_a_column_that_is_the_same_in_all_rows_has_no_part_in_differences(constant, tmp_path):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        y = rng.integers(4, size=60)
        X = np.column_stack([rng.normal(size=(60, 3)), np.full(60, constant)])
        for model in (
            am.MomentAROMA().fit(X, y),
            am.MomentAROMA().fit_triplets(am.triplets.from_labels(y, 500, random_state=seed), X),
        ):
            model.save(tmp_path / "model")
            assert np.abs(model.W_[:, 3]).max() < 1e-6


def test_sums_that_are_too_large_are_refused_and_the_model_stays():
    Q, P, triplets, _ = toy()
    model = am.MomentAROMA().fit_triplets(triplets, Q, P)
    before = model.W_
    with pytest.raises(ValueError, match="too large for float64"):
        model.learn_one(Q[0] * 1e60, P[1] * 1e-100, P[2] * 1e-100, sample_weight=1e199)
    np.testing.assert_array_equal(model.W_, before)


def test_counts_stop_at_the_most_that_they_hold():
    model = am.MomentAROMA().fit(np.eye(3), [0, 0, 1])
    model._state["counts"][:] = 2**62 - 1
    merged = am.merge([model, model.copy()])
    assert merged.n_triplets_seen_ == merged.n_updates_ == 2**62
    assert saved_state(merged)["counts"].dtype == np.int64


def test_many_classes_are_summed_a_few_at_a_time(monkeypatch):
    rng = np.random.default_rng(0)
    y, X = np.repeat(np.arange(15), 2), rng.normal(size=(30, 4))
    whole = am.MomentAROMA().fit(X, y)
    monkeypatch.setattr(sums, "_CHUNK", 12)
    np.testing.assert_allclose(am.MomentAROMA().fit(X, y).W_, whole.W_, rtol=1e-9, atol=1e-12)


def test_a_single_triplet_is_learned():
    model = am.MomentAROMA(alpha=0.0).fit_triplets([[0, 1, 2]], np.eye(3))
    expected = np.zeros((3, 3))
    expected[0, 1:] = 0.5, -0.5
    np.testing.assert_allclose(model.W_, expected, atol=1e-12)
    assert model.margins([[0, 1, 2]], np.eye(3))[0] == pytest.approx(1.0)


@pytest.mark.parametrize("scale", [1e-60, 1e-20, 1e20, 1e40])
def test_rows_of_any_scale_rank_alike_when_lam_has_that_scale(scale):
    Q, P, triplets, _ = toy()
    plain = am.MomentAROMA(alpha=0.01).fit_triplets(triplets, Q, P)
    scaled = am.MomentAROMA(alpha=0.01 * scale**2).fit_triplets(triplets, scale * Q, scale * P)
    np.testing.assert_allclose(scaled.similarity(scale * Q, scale * P), plain.similarity(Q, P), rtol=1e-6, atol=1e-9)


# -- merging ----------------------------------------------------------------------------------------------------------


def test_models_that_do_not_belong_together_are_not_merged():
    Q, P, triplets, _ = toy()
    model = am.MomentAROMA().fit_triplets(triplets, Q, P)
    for others, error, message in (
        ([], ValueError, "models is empty"),
        (model, TypeError, "models must be a sequence"),
        ([model, am.MomentAROMA()], NotFittedError, "model 1 is not fitted"),
        ([model, am.OASIS(init="zero").fit_triplets(triplets, Q, P)], TypeError, "model 1 is a OASIS"),
        (
            [model, am.MomentAROMA(alpha=1.0).fit_triplets(triplets, Q, P)],
            ValueError,
            "parameters must be equal",
        ),
        ([model, am.MomentAROMA().fit_triplets(triplets, P, P)], ValueError, "model 1 has .5, 5. query and object"),
    ):
        with pytest.raises(error, match=message):
            am.merge(others)


def test_models_of_other_columns_are_not_merged():
    frame = pd.DataFrame(np.eye(3), columns=["a", "b", "c"])
    here = am.MomentAROMA().fit(frame, [0, 0, 1])
    there = am.MomentAROMA().fit(frame.rename(columns={"b": "d"}), [0, 0, 1])
    with pytest.raises(ValueError, match="model 1 was trained on other columns than model 0"):
        am.merge([here, there])
    assert list(am.merge([here, here.copy()]).feature_names_in_) == ["a", "b", "c"]


def test_lam_may_change_between_readings_without_learning_anew():
    Q, P, triplets, _ = toy()
    model = am.MomentAROMA(alpha=1.0).fit_triplets(triplets, Q, P)
    first = model.W_
    model.set_params(alpha=0.01)
    np.testing.assert_array_equal(model.W_, am.MomentAROMA(alpha=0.01).fit_triplets(triplets, Q, P).W_)
    assert np.abs(first - model.W_).max() > 0
    with pytest.raises(ValueError, match="alpha"):
        model.set_params(alpha=-1.0).similarity(Q, P)


def test_a_saved_model_resumes_and_an_invalid_one_is_refused(tmp_path):
    Q, P, triplets, _ = toy()
    model = am.MomentAROMA().fit_triplets(triplets[:100], Q, P)
    model.save(tmp_path / "model")
    loaded = am.load(tmp_path / "model")
    assert repr(loaded) == repr(model)
    np.testing.assert_array_equal(loaded.W_, model.W_)
    for one in (model, loaded):
        one.partial_fit_triplets(triplets[100:], Q, P)
    np.testing.assert_array_equal(loaded.W_, model.W_)
    model._state["pp"][0, 0] = -1.0
    with pytest.raises(ValueError, match="sum of squares"):
        model.save(tmp_path / "broken")


def test_reading_changes_no_later_bits_and_readings_are_copies():
    Q, P, triplets, _ = toy()
    quiet, read = am.MomentAROMA(), am.MomentAROMA()
    for start in range(0, 300, 50):
        batch = triplets[start : start + 50]
        quiet.partial_fit_triplets(batch, Q, P)
        read.partial_fit_triplets(batch, Q, P)
        for name in ("W_", "Omega_", "Lambda_"):
            getattr(read, name)[:] = 7.0
        read.margin_std(triplets, Q, P)
    assert all((saved_state(quiet)[name] == array).all() for name, array in saved_state(read).items())
    np.testing.assert_array_equal(quiet.W_, read.W_)


def test_an_interrupt_between_batches_changes_nothing(monkeypatch):
    monkeypatch.setattr("aromatch.learners.moment.moment._BATCH", 50)
    Q, P, triplets, _ = toy()
    model, left = am.MomentAROMA().fit_triplets(triplets[:7], Q, P), [3]
    before = saved_state(model)

    def stop_later(block, m, n, original=sums.of_triplets):
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return original(block, m, n)

    monkeypatch.setattr(sums, "of_triplets", stop_later)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit_triplets(triplets, Q, P)
    assert left[0] == 0
    assert all((before[name] == array).all() for name, array in saved_state(model).items())


def test_the_model_is_as_before_when_a_row_is_refused():
    Q, P, triplets, _ = toy()
    model = am.MomentAROMA().fit_triplets(triplets, Q, P)
    before = state_of(model.copy())
    bad = P.copy()
    bad[triplets[0, 1], 0] = np.nan
    with pytest.raises(ValueError, match="P contains NaN"):
        model.partial_fit_triplets(triplets, Q, bad)
    assert all((saved_state(model)[name] == array).all() for name, array in before.items())
    assert clone(model).get_params() == model.get_params()


@pytest.mark.parametrize(
    "settings",
    [
        {"alpha": "auto"},
        {"alpha": "auto", "denoise": True},
        {"alpha": 0.1},
        {"alpha": 5.0, "alpha_schedule": "inverse"},
    ],
)
def test_a_finalized_model_has_the_same_w_and_confidence_to_the_bit_in_three_matrices(settings, tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(80) % 4
    X = np.eye(4)[y] + 0.5 * rng.normal(size=(80, 4))
    model = am.MomentAROMA(**settings).fit_triplets(am.triplets.from_labels(y, 2_000, random_state=0), X)
    finalized = model.finalized()
    for name in ("W_", "Omega_", "Lambda_"):
        assert getattr(finalized, name).tobytes() == getattr(model, name).tobytes()
    assert finalized.alpha_ == model.alpha_
    assert {*saved_state(finalized)} == {"qq", "qp", "pp", "weight", "counts"}
    before = model.W_
    finalized.learn_one(X[0], X[4], X[1])
    assert not np.array_equal(finalized.W_, before)
    np.testing.assert_array_equal(model.W_, before)
    finalized.save(tmp_path / "m")
    assert am.load(tmp_path / "m").W_.tobytes() == finalized.W_.tobytes()

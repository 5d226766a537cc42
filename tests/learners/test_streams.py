"""Long streams whose scales drift: every state on the way is finite and positive definite, or the learner refuses.

The bound of every check below: the smallest eigenvalue of a covariance is at least ``-32 width eps`` times its largest
variance, eps that of the learner's dtype. Learners check half of it by a factorization; these tests use eigenvalues.
Symmetry is exact.
"""

from itertools import count

import numpy as np
import pytest

import aromatch as am
from aromatch.exceptions import NumericalError
from reference import d_aroma, f_aroma, full_aroma
from saved_state import saved_state

N_ROWS = 40
CHUNK = 2_000
LIMITS = {"float64": 1e11, "float32": 1e6}  # largest |q|^2 |p|^2 / r of a covariance matrix

FACTORED = [
    {"covariance_update": "jacobi"},
    {"covariance_update": "gauss_seidel"},
    {"covariance_update": "joint"},
    {"mean_update": "updated"},
]
DIAGONAL = [
    {"covariance_update": form, "cells": cells} for form in ("downdate", "inverse") for cells in ("dense", "touched")
]
WITH_COVARIANCE = [
    *((am.FactoredAROMA, options, (7, 5)) for options in FACTORED),
    (am.FactoredAROMA, {}, (14, 13)),  # wide enough for pending terms
    (am.FullAROMA, {}, (3, 3)),
]


def name_of(value):
    if isinstance(value, dict):
        return "-".join(value.values()) or "default"
    return "x".join(map(str, value)) if isinstance(value, tuple) else None


def unit_rows(rng, n_rows, width):
    rows = rng.normal(size=(n_rows, width))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def drifting(seed, m, n, limit, *, kind, size=CHUNK):
    """Yield batches of triplets with their rows and weights, of scales up to 0.9 times the limit, without end.

    The norms of queries and of objects drift from 1e-6 to 1e4 and back, independently, within what the limit allows,
    and in every third batch the largest scale is just under the limit. Weights are from 1e-3 to 1e3. The rows of a
    batch have a single feature each ("single"), are within 1e-7 to 0.1 of a direction that turns slowly, so that old
    directions are used up ("parallel"), or of any direction ("any"), then with single features and zeros among them.
    """
    rng = np.random.default_rng(seed)
    rows_q, rows_p = unit_rows(rng, N_ROWS, m), unit_rows(rng, N_ROWS, n)
    plane_q, plane_p = unit_rows(rng, 2, m), unit_rows(rng, 2, n)
    for k in count():
        Q, P = rows_q.copy(), rows_p.copy()
        some = np.arange(0, N_ROWS, 1 if kind == "single" else 4)
        Q[some] *= np.eye(m)[some % m]
        P[some] *= np.eye(n)[some % n]
        P[1] = 0
        if kind == "parallel":
            angle = 2 * np.pi * k / 97
            Q = turned(plane_q, angle) + 10.0 ** rng.uniform(-7, -1) * rows_q
            P = turned(plane_p, angle / 3) + 10.0 ** rng.uniform(-7, -1) * rows_p
            P[::2] *= -1
        Q *= 10.0 ** (-1 + 5 * np.sin(k / 13) + rng.uniform(-1, 0, size=(N_ROWS, 1)))
        P *= 10.0 ** (-1 + 5 * np.sin(k / 29 + 1))
        triplets = rng.integers(N_ROWS, size=(size, 3))
        weights = 10.0 ** rng.uniform(-3, 3, size=size)
        largest = largest_scale(triplets, Q, P, weights)
        if largest > 0.9 * limit or k % 3 == 0:
            Q *= (0.9 * limit / largest) ** 0.5
        yield triplets, Q, P, weights


def turned(plane, angle):
    return np.cos(angle) * plane[0] + np.sin(angle) * plane[1]


def largest_scale(triplets, Q, P, weights):
    q, p = Q[triplets[:, 0]], P[triplets[:, 1]] - P[triplets[:, 2]]
    return float(np.max((q**2).sum(1) * (p**2).sum(1) * weights))


def dense(matrix):
    return matrix if isinstance(matrix, np.ndarray) else matrix.toarray()


def check_covariance(S):
    assert np.isfinite(S).all()
    np.testing.assert_array_equal(S, S.T)
    smallest = np.linalg.eigvalsh(S.astype(np.float64))[0]
    assert smallest >= -32 * len(S) * np.finfo(S.dtype).eps * S.max()


def check_state(model):
    for array in model._state.values():
        assert np.isfinite(array).all()
    assert np.isfinite(dense(model.W_)).all()
    if isinstance(model, am.DiagonalAROMA):
        Sigma = model.Sigma_ if isinstance(model.Sigma_, np.ndarray) else model.Sigma_.data
        assert (Sigma > 0).all()
        assert (Sigma <= 1).all()
        return
    for name in ("Sigma_", "Omega_", "Lambda_"):
        if hasattr(model, name):
            check_covariance(getattr(model, name))


def learn_or_refuse(model, batch):
    """Learn a batch; return whether it was refused, in which case no bit of the model has changed."""
    before = {name: array.copy() for name, array in model._state.items()} if hasattr(model, "_state") else None
    triplets, Q, P, weights = batch
    try:
        model.partial_fit_triplets(triplets, Q, P, sample_weight=weights)
        return False
    except NumericalError:
        for name, array in before.items():
            np.testing.assert_array_equal(model._state[name], array)
        return True


def run_stream(model, batches, n_updates):
    """Learn batches up to a number of updates, checking every state; return the share of batches refused.

    After a refusal, `decay` widens the covariance, so that the stream goes on.
    """
    n_refused = n_batches = 0
    while not n_batches or model.n_updates_ < n_updates:
        refused = learn_or_refuse(model, next(batches))
        if refused:
            model.decay(0.01)
        check_state(model)
        n_refused, n_batches = n_refused + refused, n_batches + 1
        assert n_batches < 10 + 10 * n_updates / CHUNK
    return n_refused / n_batches


def check_long_stream(learner, options, shape, dtype, n_updates, *, kind):
    limit = 1e12 if learner in (am.DiagonalAROMA, am.OASIS) else LIMITS[dtype]
    model = learner(dtype=dtype, init="zero", **options)
    share = run_stream(model, drifting(0, *shape, limit, kind=kind), n_updates)
    assert share < (0.2 if dtype == "float32" else 0.001)


@pytest.mark.parametrize("kind", ["any", "parallel"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("learner", "options", "shape"), WITH_COVARIANCE, ids=name_of)
def test_a_stream_of_drifting_scales_keeps_covariances_semidefinite_or_is_refused(learner, options, shape, dtype, kind):
    check_long_stream(learner, options, shape, dtype, 100_000, kind=kind)


@pytest.mark.parametrize("kind", ["any", "parallel", "single"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("options", DIAGONAL, ids=name_of)
def test_a_stream_of_drifting_scales_keeps_the_variances_of_cells_positive(options, dtype, kind):
    check_long_stream(am.DiagonalAROMA, options, (7, 5), dtype, 100_000, kind=kind)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", [(7, 5), (14, 13)], ids=name_of)
@pytest.mark.parametrize("cells", ["dense", "touched"])
def test_a_stream_of_drifting_scales_keeps_oasis_finite(cells, shape, dtype):
    check_long_stream(am.OASIS, {"cells": cells, "C": 1.0}, shape, dtype, 100_000, kind="any")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("learner", "options", "shape"), WITH_COVARIANCE[:-1], ids=name_of)
def test_ten_million_updates_of_drifting_scales_keep_covariances_semidefinite(learner, options, shape, dtype):
    check_long_stream(learner, options, shape, dtype, 10_000_000, kind="any")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("learner", "options", "shape"), WITH_COVARIANCE, ids=name_of)
def test_a_million_updates_with_parallel_rows_keep_covariances_semidefinite(learner, options, shape, dtype):
    check_long_stream(learner, options, shape, dtype, 1_000_000, kind="parallel")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("options", DIAGONAL, ids=name_of)
def test_ten_million_updates_of_drifting_scales_keep_the_variances_of_cells_positive(options, dtype):
    check_long_stream(am.DiagonalAROMA, options, (7, 5), dtype, 10_000_000, kind="any")


@pytest.mark.parametrize("form", ["float32", "float64"])
def test_sums_of_drifting_scales_stay_finite_and_their_solutions_semidefinite(form):
    model = am.MomentAROMA()
    for k, (triplets, Q, P, weights) in enumerate(drifting(0, 7, 5, 1e12, kind="any")):
        model.partial_fit_triplets(triplets, Q.astype(form), P.astype(form), sample_weight=weights)
        if k % 5 == 0:
            for name in ("qq", "pp"):
                S = saved_state(model)[name]
                assert np.linalg.eigvalsh((S + S.T) / 2)[0] >= -32 * len(S) * np.finfo(float).eps * S.max()
            for S in (model.Omega_, model.Lambda_):
                np.testing.assert_allclose(S, S.T, rtol=0, atol=32 * len(S) * np.finfo(float).eps * np.abs(S).max())
                assert np.linalg.eigvalsh((S + S.T) / 2)[0] > 0
            assert np.isfinite(model.W_).all()
        if k == 50:
            break


# -- refusals --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("learner", "options", "shape"), WITH_COVARIANCE, ids=name_of)
def test_a_batch_of_a_stream_above_the_limit_is_refused_and_changes_no_bit(learner, options, shape, dtype):
    batches = drifting(1, *shape, LIMITS[dtype], kind="any")
    model, twin = learner(dtype=dtype, **options), learner(dtype=dtype, **options)
    for _, (triplets, Q, P, weights) in zip(range(10), batches, strict=False):
        twin.partial_fit_triplets(triplets, Q, P, sample_weight=weights)
        model.partial_fit_triplets(triplets, Q, P, sample_weight=weights)
        factor = (2 * LIMITS[dtype] / largest_scale(triplets, Q, P, weights)) ** 0.5
        with pytest.raises(ValueError, match="expected at most"):
            model.partial_fit_triplets(triplets, Q * factor, P, sample_weight=weights)
    assert_same_state(model, twin)


# Streams that leave an indefinite covariance in float32: eigenvalues of down to -0.014 times the largest variance.
INDEFINITE = [
    (am.FullAROMA, {}, (2, 3), 0),
    (am.FullAROMA, {}, (2, 3), 2),
    (am.FullAROMA, {}, (3, 3), 7),
    (am.FactoredAROMA, {"covariance_update": "joint"}, (7, 5), 1),
    (am.FactoredAROMA, {"covariance_update": "gauss_seidel"}, (7, 5), 5),
]


@pytest.mark.parametrize(("learner", "options", "shape", "seed"), INDEFINITE, ids=name_of)
def test_parallel_rows_in_float32_are_refused_before_they_leave_an_indefinite_covariance(learner, options, shape, seed):
    model, n_refused = learner(dtype="float32", **options), 0
    batches = drifting(seed, *shape, LIMITS["float32"], kind="parallel")
    for _, batch in zip(range(60 if learner is am.FullAROMA else 300), batches, strict=False):
        n_refused += learn_or_refuse(model, batch)
        check_state(model)
    assert n_refused > 0


@pytest.mark.parametrize(("learner", "options", "shape", "seed"), INDEFINITE[:3], ids=name_of)
def test_parallel_rows_in_float32_are_refused_one_by_one_before_they_leave_an_indefinite_covariance(
    learner, options, shape, seed
):
    model, n_refused, n_left = learner(dtype="float32", **options), 0, 3
    for batch in drifting(seed, *shape, LIMITS["float32"], kind="parallel"):
        if not learn_or_refuse(model, batch):
            continue
        triplets, Q, P, weights = batch
        for (query, good, bad), weight in zip(triplets, weights, strict=True):
            before = model.copy()
            try:
                model.learn_one(Q[query], P[good], P[bad], sample_weight=weight)
            except NumericalError:
                n_refused += 1
                for name, array in before._state.items():
                    np.testing.assert_array_equal(model._state[name], array)
            check_state(model)
        n_left -= 1
        if not n_left:
            break
    assert n_refused > 0


def test_a_covariance_that_is_indefinite_without_a_negative_variance_stops_batches_and_single_triplets():
    rows, weights = np.eye(2), np.ones(2000)
    for learner, name in ((am.FactoredAROMA, "Omega"), (am.FactoredAROMA, "Lambda"), (am.FullAROMA, "Sigma")):
        model = learner().fit_triplets([[0, 1, 1]], rows)
        model._state[name][0, 1] = model._state[name][1, 0] = 1.001  # as rounding could leave it
        before = {key: array.copy() for key, array in model._state.items()}
        with pytest.raises(NumericalError, match="not positive semi-definite; the model is unchanged"):
            model.partial_fit_triplets(np.zeros((2000, 3), dtype=int), rows, sample_weight=weights)
        for key, array in before.items():
            np.testing.assert_array_equal(model._state[key], array)
        for _ in range(1024 - model.n_triplets_seen_ - 1):
            model.learn_one(rows[0], rows[1], rows[1])
        with pytest.raises(NumericalError, match="not positive semi-definite; the model is unchanged"):
            model.learn_one(rows[0], rows[1], rows[1])
        assert model.n_triplets_seen_ == 1023


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("learner", [am.DiagonalAROMA, am.FactoredAROMA, am.FullAROMA, am.OASIS])
def test_rows_and_weights_of_any_scale_are_learned_with_a_finite_result_or_refused(learner, dtype):
    exponents = [-24, -16, -8, 0, 8, 12] if dtype == "float32" else [-190, -100, -60, 0, 60, 99]
    rng = np.random.default_rng(0)
    Q, P = rng.normal(size=(6, 3)), rng.normal(size=(6, 3))
    P[:, 0] = 0
    outcomes = set()
    for of_q in exponents:
        for of_p in exponents:
            for of_weight in (*exponents, 24 if dtype == "float32" else 190):
                model, triplets = learner(dtype=dtype, init="zero"), rng.integers(6, size=(60, 3))
                scaled, weights = (Q * 10.0**of_q, P * 10.0**of_p), np.full(60, 10.0**of_weight)
                try:
                    for start in range(0, 60, 20):
                        model.partial_fit_triplets(triplets[start : start + 20], *scaled, sample_weight=weights[:20])
                        check_state(model)
                except ValueError:
                    outcomes.add("refused")
                    continue
                assert np.abs(model.margins(triplets, *scaled)).max() < 1e4
                outcomes.add("learned")
    assert outcomes == {"learned", "refused"}


@pytest.mark.parametrize("form", FACTORED, ids=name_of)
def test_a_weight_so_small_that_the_square_of_the_noise_overflows_does_no_harm(form):
    model = am.FactoredAROMA(**form)
    told = model.learn_one(np.full(3, 1e60), np.eye(3)[0], np.eye(3)[1], sample_weight=1e-190)
    assert np.isfinite(told.margin)
    check_state(model)
    told = model.learn_one(np.full(3, 1e60), np.eye(3)[1], np.eye(3)[0], sample_weight=1e-190)
    assert np.isfinite(told.margin)


# -- reading along the way -------------------------------------------------------------------------------------


def batches_of_any_size(shape, dtype):
    """Return parts of a stream, of a few dozen triplets: reads fall between the folds of pending terms."""
    rng, parts = np.random.default_rng(7), []
    for _, (triplets, Q, P, weights) in zip(range(2), drifting(3, *shape, LIMITS[dtype], kind="any"), strict=False):
        ends = np.unique(rng.integers(1, CHUNK, size=60))
        parts += [(own, Q, P, w) for own, w in zip(np.split(triplets, ends), np.split(weights, ends), strict=True)]
    return parts


def learn_all(model, parts, visit=lambda model: model):
    for triplets, Q, P, weights in parts:
        model.partial_fit_triplets(triplets, Q, P, sample_weight=weights)
        model.learn_one(Q[0], P[1], P[2], sample_weight=weights[0])
        model = visit(model)
    return model


def assert_same_state(model, other):
    state, expected = saved_state(model), saved_state(other)
    assert state.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(state[name], array)


READ = [(am.FactoredAROMA, options, (7, 5)) for options in FACTORED]
READ += [(am.FactoredAROMA, options, (14, 13)) for options in FACTORED] + [(am.FactoredAROMA, {}, (40, 33))]
READ += [(am.FullAROMA, {}, (3, 3)), *((am.DiagonalAROMA, options, (7, 5)) for options in DIAGONAL)]
READ += [(am.OASIS, {"cells": cells}, (14, 13)) for cells in ("dense", "touched")]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("learner", "options", "shape"), READ, ids=name_of)
def test_reading_copying_and_saving_along_the_way_never_change_a_later_bit(learner, options, shape, dtype, tmp_path):
    parts, rng = batches_of_any_size(shape, dtype), np.random.default_rng(11)
    path, pendings = tmp_path / "model.safetensors", set()
    rows, pairs = parts[0][1:3], rng.integers(N_ROWS, size=(50, 2))

    def look(model):
        pendings.add(int(model._state["counts"][-1]) if "pending_a" in model._state else 0)
        what = rng.integers(5)
        if what == 0:
            check_state(model)
        elif what == 1 and hasattr(model, "pair_std"):
            stds = model.pair_std(*rows, pairs)
            assert np.isfinite(stds).all()
            assert (stds >= 0).all()
        elif what == 2:
            check_state(model)
            return model.copy()
        elif what == 3 and rng.random() < 0.2:
            model.save(path)
            model = am.load(path)
            check_state(model)
        return model

    unread = learn_all(learner(dtype=dtype, **options), parts)
    read = learn_all(learner(dtype=dtype, **options), parts, look)
    assert_same_state(read, unread)
    if options in ({}, {"covariance_update": "jacobi"}) and shape != (7, 5) and learner is am.FactoredAROMA:
        assert len(pendings) > 1  # reads between folds


# -- against loops in NumPy ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("learner", "loop", "options", "shape"),
    [
        *((am.FactoredAROMA, f_aroma, options, (7, 5)) for options in FACTORED),
        (am.FactoredAROMA, f_aroma, {}, (14, 13)),
        (am.FullAROMA, full_aroma, {}, (3, 3)),
        *((am.DiagonalAROMA, d_aroma, options, (7, 5)) for options in DIAGONAL),
    ],
    ids=name_of,
)
def test_part_of_a_stream_of_drifting_scales_equals_the_loop_in_float64(learner, loop, options, shape, dtype):
    """Scales of at most 1e3: there, a covariance keeps eps times 1e3 of relative accuracy in every direction."""
    batches = drifting(5, *shape, 1e3, kind="any", size=100)
    triplets, Q, P, weights = (list(part) for part in zip(*(next(batches) for _ in range(20)), strict=True))
    for i, numbers in enumerate(triplets):
        numbers += i * N_ROWS
    triplets, Q, P, weights = np.vstack(triplets), np.vstack(Q), np.vstack(P), np.concatenate(weights)
    Q, P = Q.astype(dtype), P.astype(dtype)
    model = learner(dtype=dtype, **options).fit_triplets(triplets, Q, P, sample_weight=weights)
    own = {name: value for name, value in options.items() if name != "cells"}
    found = loop(triplets, Q, P, W0=np.zeros(shape), weights=weights, **own)
    for name, expected in found.matrices.items():
        tolerance = 1e3 * len(triplets) ** 0.5 * np.finfo(dtype).eps
        assert np.abs(dense(getattr(model, name)) - expected).max() <= tolerance * np.abs(expected).max()
    assert abs(model.n_updates_ - found.n_updates) <= (0 if dtype == "float64" else 2)

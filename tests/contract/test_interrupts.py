"""Ctrl-C stops a call soon and leaves the model unchanged; models are shared between workers."""

import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.base import clone

import aromatch as am
from aromatch.kernels import blocked
from learner_classes import online_models
from saved_state import saved_state

MODELS = [*online_models(), am.FactoredAROMA(covariance_update="joint")]
models = pytest.mark.parametrize("model", MODELS, ids=repr)


def rows(n_rows=60, width=24, seed=0):
    X = np.random.default_rng(seed).normal(size=(n_rows, width))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def interrupted(call, after=0.3):
    """Run a call and press Ctrl-C; return whether it was stopped."""
    timer = threading.Timer(after, signal.raise_signal, [signal.SIGINT])
    timer.start()
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        timer.cancel()
    return False


@models
def test_an_interrupt_leaves_the_model_unchanged(model):
    X, triplets = rows(), np.random.default_rng(1).integers(60, size=(3_000_000, 3))
    model = clone(model).fit_triplets(triplets[:50], X)
    before = {name: array.copy() for name, array in saved_state(model).items()}
    for learn in (model.partial_fit_triplets, model.fit_triplets):
        assert interrupted(lambda learn=learn: learn(triplets, X))
        for name, array in saved_state(model).items():
            np.testing.assert_array_equal(array, before[name])


def test_an_interrupt_before_the_first_triplet_keeps_the_model(monkeypatch):
    model = am.DiagonalAROMA(n_triplets=10).fit(rows(), np.arange(60) % 3)
    before = {name: array.tobytes() for name, array in saved_state(model).items()}

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(am.DiagonalAROMA, "_first_state", stop)
    for call in (
        lambda: model.fit(rows(width=30), np.arange(60) % 3),
        lambda: model.fit_triplets([[0, 1, 2]], rows(width=30)),
    ):
        with pytest.raises(KeyboardInterrupt):
            call()
        assert model.n_features_in_ == 24
        assert {name: array.tobytes() for name, array in saved_state(model).items()} == before


def shared_objects():
    """Return a name, a function that makes an object, one that changes it, and a later change that must last."""
    X, triplets = rows(30, 6), np.random.default_rng(1).integers(30, size=(40, 3))

    def adapter():
        one = am.Adapter(X, random_state=0)
        one.judge(X[0] + 0.1, good=[1, 2], bad=[3])
        return one

    def judge(one):
        return one.judge(X[5] + 0.7, good=[3], bad=[4])

    def factored():
        return am.FactoredAROMA().fit_triplets(triplets, X)

    def index():
        return am.Index(am.DiagonalAROMA().fit_triplets(triplets, X), X)

    return {
        "judge": (adapter, lambda one: one.judge(X[0] + 0.5, good=[1, 7], bad=[2, 3]), judge),
        "click": (adapter, lambda one: one.click(X[0] + 0.5, [4, 5, 1], [5]), judge),
        "add to an adapter": (adapter, lambda one: one.add(X[:3] + 1), judge),
        "remove from an adapter": (adapter, lambda one: one.remove([0, 1, 9]), judge),
        "add to an index": (index, lambda one: one.add(X[:3]), lambda one: one.remove([5])),
        "remove from an index": (index, lambda one: one.remove([0, 1]), lambda one: one.remove([5])),
        "train": (factored, lambda one: one.partial_fit_triplets(triplets, X), lambda one: one.decay(0.1)),
        "learn one": (factored, lambda one: one.learn_one(*X[:3]), lambda one: one.decay(0.1)),
    }


def bytes_of(one):
    if isinstance(one, am.Index):
        return one.ids.tobytes(), len(one)
    header, arrays = one._to_parts()
    return repr(header), {name: array.tobytes() for name, array in arrays.items()}


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers of Unix")
@pytest.mark.parametrize("name", list(shared_objects()))
def test_a_signal_at_any_moment_leaves_an_object_before_or_after_the_call_for_good(name):
    make, call, change = shared_objects()[name]
    start, generator, n_interrupted = make(), np.random.default_rng(0), 0
    whole, begun = start.copy() if hasattr(start, "copy") else make(), perf_counter()
    before = bytes_of(whole)
    call(whole)
    seconds, after = perf_counter() - begun, bytes_of(whole)

    def interrupt(*_):
        raise KeyboardInterrupt

    earlier = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(1_000):
            one, kept = make(), None
            try:
                signal.setitimer(signal.ITIMER_REAL, generator.uniform(1e-5, 1.1 * seconds))
                call(one)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt as error:
                kept = error  # with its frames, as an interactive Python keeps them
            assert bytes_of(one) in (before, after)
            n_interrupted += kept is not None
            change(one)
            changed = bytes_of(one)
            del kept
            assert bytes_of(one) == changed
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, earlier)
    assert n_interrupted  # `learn_one` takes microseconds: only some signals meet it


@pytest.mark.skipif(find_spec("_testcapi") is None, reason="needs the module _testcapi of CPython's test suite")
@pytest.mark.parametrize("name", ["judge", "click", "add", "remove", "partial_fit_triplets", "learn_one"])
def test_an_object_is_before_or_after_a_call_in_which_any_allocation_fails(name):
    command = [sys.executable, str(Path(__file__).parent / "failing_allocations.py"), name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    n_before, n_after = map(int, done.stdout.split())
    assert n_before > 50
    assert n_after < 10


def test_what_is_pending_is_folded_once_even_when_interrupted_right_after():
    X, triplets = rows(width=64), np.random.default_rng(2).integers(60, size=(21, 3))
    model = am.FactoredAROMA().fit_triplets(triplets, X)
    assert saved_state(model)["counts"][3] > 0
    state, expected = model._state, model.W_
    blocked.fold(
        *(state[name] for name in ("W", "Omega", "Lambda", "pending_a", "pending_b", "pending_steps", "counts"))
    )
    assert state["counts"][3] == 0
    np.testing.assert_allclose(model.W_, expected, atol=1e-12)


def test_a_classifier_is_interrupted_and_unchanged():
    X = rows(200_000, 200)  # several seconds of work, so that a fast machine is stopped as well
    y = np.random.default_rng(3).integers(2, size=len(X))
    model = am.AROW().fit(X[:10], y[:10])
    before = model.coef_
    for learn in (model.fit, model.partial_fit):
        assert interrupted(lambda learn=learn: learn(X, y))
        np.testing.assert_array_equal(model.coef_, before)


def test_long_readings_are_interrupted():
    X, triplets = rows(width=60), np.random.default_rng(4).integers(60, size=(3_000_000, 3))
    model = am.FactoredAROMA().fit_triplets(triplets[:100], X)
    assert interrupted(lambda: model.margin_std(triplets, X))


@models
def test_workers_of_joblib_read_a_model_that_is_mapped_read_only(model):
    X, triplets = rows(), np.random.default_rng(5).integers(60, size=(200, 3))
    model = clone(model).fit_triplets(triplets, X)
    found = Parallel(n_jobs=2, max_nbytes=100)(delayed(read_and_learn)(model, X, triplets) for _ in range(2))
    expected = read_and_learn(model.copy(), X, triplets)
    for one in found:
        for a, b in zip(one, expected, strict=True):
            np.testing.assert_array_equal(a, b)


def test_workers_of_joblib_learn_on_where_only_some_of_the_arrays_are_mapped():
    rng = np.random.default_rng(7)
    Q, P, triplets = rng.normal(size=(20, 3)), rng.normal(size=(20, 60)), rng.integers(20, size=(50, 3))
    model = am.FactoredAROMA().fit_triplets(triplets, Q, P)
    (learned,) = Parallel(n_jobs=2, max_nbytes=10_000)([delayed(learn_on)(model, triplets, Q, P)])
    np.testing.assert_array_equal(learned, learn_on(model.copy(), triplets, Q, P))


def learn_on(model, triplets, Q, P):
    return model.partial_fit_triplets(triplets, Q, P).W_


def read_and_learn(model, X, triplets):
    readings = [model.margins(triplets, X), model.similarity(X), model.transform(X)]
    if hasattr(model, "pair_std"):
        readings.append(model.margin_std(triplets, X))
    return [*readings, model.partial_fit_triplets(triplets, X).similarity(X)]


def test_a_copy_is_read_by_threads_while_the_model_learns():
    X, triplets = rows(), np.random.default_rng(6).integers(60, size=(100_000, 3))
    model = am.DiagonalAROMA().fit_triplets(triplets[:1000], X)
    frozen = model.copy()
    expected = frozen.similarity(X)
    with ThreadPoolExecutor(3) as pool:
        learning = pool.submit(model.partial_fit_triplets, triplets, X)
        readings = [pool.submit(frozen.similarity, X) for _ in range(50)]
        for reading in readings:
            np.testing.assert_array_equal(reading.result(), expected)
        learning.result()
    assert model.n_triplets_seen_ == 101_000

"""Threads share objects: calls wait for each other, readers see whole states, and a call that fails changes nothing."""

import contextlib
import copy
import linecache
import os
import pickle
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from time import perf_counter

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import aromatch as am
from aromatch.exceptions import ConcurrentUseError
from learner_classes import CLASSES, TRIPLET_LEARNERS, online_models

PACKAGE = os.path.dirname(am.__file__)
N_ROWS, WIDTH = 30, 6
# Methods of scikit-learn that read only parameters and names, or call methods that are checked.
NOT_CHECKED = {
    "fit_transform",
    "get_feature_names_out",
    "get_metadata_routing",
    "get_params",
    "set_output",
    "metric_",
    "metric",
    "n_features_in_",
    "n_object_features_in_",
    "transform_objects of Adapter",
    "score of AROW",
}


def rows(n_rows=N_ROWS, width=WIDTH, seed=0):
    X = np.random.default_rng(seed).normal(size=(n_rows, width))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def labels():
    return np.arange(N_ROWS) % 3


def triplets(n=40, seed=1):
    return np.random.default_rng(seed).integers(N_ROWS, size=(n, 3))


def fitted(cls):
    if cls is am.AROW:
        return cls().fit(rows(), labels() > 0)
    model = cls(n_triplets=50, random_state=0) if "n_triplets" in cls._get_param_names() else cls()
    model.fit(rows(), labels())
    return model.calibrate(triplets(80), rows()).set_fingerprint(am.Fingerprint.of("toy", rows()))


def adapter(container=np.asarray, ids=None):
    found = am.Adapter(container(rows()), ids=ids, random_state=0)
    for number in range(4):
        hits = found.search(rows()[number] + 0.1, 6)
        found.judge(rows()[number] + 0.1, good=hits.ids[:2], bad=hits.ids[2:5])
    found.judge(rows()[9], good=found.ids[:2], bad=found.ids[3:5])  # a query that is an object
    return found


def saved(shared):
    """Return everything that `save` writes, without the time that writing takes."""
    header, arrays = shared._to_parts()
    return repr(header), {name: array.tobytes() for name, array in arrays.items()}


# -- every public name waits ------------------------------------------------------------------------------------------


def arguments_of(name, folder):
    """Return the arguments of a public method, None for a property."""
    X, y, T = rows(), labels(), triplets()
    return {
        "fit": (X, y),
        "fit_triplets": (T, X),
        "partial_fit_triplets": (T, X),
        "partial_fit": (X, y > 0),
        "fit_pairs": ([[0, 1], [1, 2], [3, 5]], [True, False, True], X),
        "learn_one": (X[0], X[1], X[2]),
        "calibrate": (T, X),
        "decay": (0.1,),
        "grow": (WIDTH + 1,),
        "set_params": (),
        "set_fingerprint": (am.Fingerprint.of("toy", X),),
        "check_fingerprint": (am.Fingerprint.of("toy", X),),
        "similarity": (X,),
        "similarity_std": (X,),
        "pair_score": (X,),
        "pair_std": (X,),
        "margins": (T, X),
        "margin_std": (T, X),
        "triplet_accuracy": (T, X),
        "preference_proba": (T, X),
        "score": (X, y),
        "transform": (X,),
        "transform_objects": (X,),
        "sample_transform": (X,),
        "explain_pair": (X[:1], X[1:2]),
        "project": (2,),
        "copy": (),
        "finalized": (),
        "decision_function": (X,),
        "predict": (X,),
        "predict_groups": (X,),
        "save": (folder / "saved",),
        "search": (X[0],),
        "add": (X[:1] + 1,),
        "remove": ([2],),
        "trust": (X,),
        "judge": (X[0], [1], [2]),
        "click": (X[0], [1, 2, 3], [2]),
    }.get(name)


def public_names(shared):
    kind = type(shared).__name__
    names = [name for name in dir(type(shared)) if not name.startswith("_") and hasattr(shared, name)]
    skipped = {name for name in names if name.startswith("set_") and name.endswith("_request")}
    return [name for name in names if not {name, f"{name} of {kind}"} & (NOT_CHECKED | skipped)]


def shared_objects():
    yield from (pytest.param(lambda cls=cls: fitted(cls), id=cls.__name__) for cls in CLASSES)
    yield pytest.param(adapter, id="Adapter")
    yield pytest.param(lambda: am.Index(fitted(am.FactoredAROMA), rows()), id="Index")
    yield pytest.param(lambda: am.Index(fitted(am.ITML), rows()), id="Index of a map")


@pytest.mark.parametrize("make", list(shared_objects()))
def test_every_public_method_and_property_waits_while_the_object_changes(make, tmp_path):
    shared = make()
    calls = {}
    for name in public_names(shared):
        is_method = callable(getattr(shared, name))
        arguments = arguments_of(name, tmp_path)
        assert not is_method or arguments is not None, f"{name} has no arguments in this test: add it"
        if is_method and (name != "set_params" or (strength := first_number(shared))):
            options = {} if name != "set_params" else strength
            calls[name] = lambda name=name, arguments=arguments, options=options: getattr(shared, name)(
                *arguments, **options
            )
        elif not is_method:
            calls[name] = lambda name=name: getattr(shared, name)
    assert len(calls) > 2
    held = threading.Event()
    release = threading.Event()

    def change():
        with shared._lock.changing:
            held.set()
            release.wait(60)

    with ThreadPoolExecutor(len(calls) + 1) as pool:
        changing = pool.submit(change)
        held.wait(60)
        waiting = {name: pool.submit(call) for name, call in calls.items()}
        pool_is_busy = threading.Event()
        pool_is_busy.wait(0.2)
        early = [name for name, call in waiting.items() if call.done()]
        release.set()
        changing.result(60)
        for call in waiting.values():
            call.exception(60)
    assert early == []


def first_number(shared):
    if not hasattr(shared, "get_params"):
        return None
    return {name: value for name, value in shared.get_params().items() if isinstance(value, float)}


# -- readers and a writer ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [*online_models(), am.MomentAROMA()], ids=repr)
def test_readers_see_the_state_after_a_whole_number_of_calls(model, tmp_path):
    X, T = sparse.csr_array(np.round(rows(60, 40), 1)), np.random.default_rng(2).integers(60, size=(240, 3))
    model, expected = clone(model).fit_triplets(T[:0], X), {}
    alone = clone(model).fit_triplets(T[:0], X)
    ends = [*range(120), *range(120, 241, 12)]
    expected[0] = as_array(alone.W_).tobytes()
    for start, end in pairwise(ends):
        step(alone, T, X, start, end)
        expected[end] = as_array(alone.W_).tobytes()
    done, failures = threading.Event(), []

    def read(number):
        path = tmp_path / str(number)
        while not done.is_set():
            model.save(path)
            for one in (model.copy(), pickle.loads(pickle.dumps(model)), am.load(path)):
                if as_array(one.W_).tobytes() != expected.get(one.n_triplets_seen_):
                    failures.append(one.n_triplets_seen_)
            scores = model.similarity(X)
            assert np.isfinite(scores).all()
            if hasattr(model, "margin_std"):
                assert np.isfinite(model.margin_std(T[:50], X)).all()

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read, number) for number in range(3)]
        for start, end in pairwise(ends):
            step(model, T, X, start, end)
        done.set()
        for reader in readers:
            reader.result(60)
    assert failures == []
    assert as_array(model.W_).tobytes() == expected[240]


def step(model, T, X, start, end):
    if end - start == 1:
        model.learn_one(*(X[[row]] for row in T[start]))
    else:
        model.partial_fit_triplets(T[start:end], X)


def as_array(W):
    return W.toarray() if sparse.issparse(W) else W


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_readers_see_one_fit_or_the_next(cls):
    quick = {"random_state": 0, "n_constraints": 100, "n_triplets": 50, "method": "moment"}
    model, X = cls(**{name: quick[name] for name in quick if name in cls._get_param_names()}), rows()
    targets = [labels() > 0, labels() > 1] if cls is am.AROW else [labels(), (np.arange(N_ROWS) // 5) % 3]

    def read():
        if cls is am.AROW:
            return model.decision_function(X).tobytes(), model.coef_.tobytes()
        return model.similarity(X).tobytes(), repr(saved(model))

    expected = set()
    for y in targets:
        model.fit(X, y)
        expected.add(read())
    # Two calls may read two fits; each result is that of one.
    results = [set(one) for one in zip(*expected, strict=True)]
    done, failures, n_read = threading.Event(), [], [0, 0]

    def check(number):
        while not done.is_set() or not n_read[number]:
            failures.extend(number for one, known in zip(read(), results, strict=True) if one not in known)
            n_read[number] += 1

    with ThreadPoolExecutor(2) as pool:
        reading = [pool.submit(check, number) for number in range(2)]
        begun, n_fits = perf_counter(), 0
        while n_fits < 2 or perf_counter() - begun < 0.5:
            model.fit(X, targets[n_fits % 2])
            n_fits += 1
        done.set()
        for one in reading:
            one.result(60)
    assert failures == []


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_an_adapter_is_searched_judged_extended_and_saved_by_threads(container, tmp_path):
    X = rows(200, 12)
    shared, done = am.Adapter(container(X[:100]), random_state=0), threading.Event()

    def read(number):
        path = tmp_path / str(number)
        while not done.is_set():
            hits = shared.search(X[number] + 0.1, 5)
            assert len(hits.ids) == 5
            shared.save(path)
            loaded = am.load(path)
            assert loaded.search(X[number], 1).ids[0] >= 0

    def write(number):
        for at in range(25):
            hits = shared.search(X[at] + 0.01 * number, 6)
            known = [one for one in hits.ids if one < 50]  # others may be removed meanwhile
            if len(known) > 1:
                shared.judge(X[at] + 0.01 * number, good=known[:1], bad=known[1:])
                shared.click(X[at], shown=known, clicked=known[-1])
            (added,) = shared.add(container(X[100 + at : 101 + at]))
            shared.remove([added])

    with ThreadPoolExecutor(5) as pool:
        readers = [pool.submit(read, number) for number in range(2)]
        for writer in [pool.submit(write, number) for number in range(3)]:
            writer.result(120)
        done.set()
        for reader in readers:
            reader.result(60)
    assert len(shared) == 100


def test_an_index_maps_its_objects_again_while_threads_search():
    X, y = rows(60, 10), np.arange(60) % 3
    model = am.HIER().fit(X, y)
    index, done = am.Index(model, X), threading.Event()

    def read():
        while not done.is_set():
            with model._lock.reading:  # both see the same model
                scores = index.search(X[:3], 60).scores
                np.testing.assert_allclose(np.sort(model.similarity(X[:3], X))[:, ::-1], scores, atol=1e-9)

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read) for _ in range(3)]
        for seed in range(10):
            model.fit(X, np.random.default_rng(seed).permutation(y))
        done.set()
        for reader in readers:
            reader.result(60)


def test_training_in_a_batch_lets_others_read_the_model_before_it():
    X, T = rows(60, 24), np.random.default_rng(6).integers(60, size=(200_000, 3))
    model = am.FactoredAROMA().fit_triplets(T[:10], X)
    before = model.W_
    with ThreadPoolExecutor(1) as pool:
        learning = pool.submit(model.partial_fit_triplets, T, X)
        n_readings = 0
        while not learning.done():
            W, seen = model.copy().W_, model.n_triplets_seen_
            n_readings += seen == 10 and bool((before == W).all())
        learning.result()
    assert n_readings > 0
    assert model.n_triplets_seen_ == 200_010


def test_a_call_that_reads_cannot_change_the_object():
    model = am.DiagonalAROMA().fit_triplets(triplets(), rows())
    with model._lock.reading, pytest.raises(ConcurrentUseError, match="cannot change it"):
        model.learn_one(*rows()[:3])
    model.learn_one(*rows()[:3])


def test_an_encoder_may_use_the_adapter():
    found = adapter()
    found.encoder = lambda texts: np.stack([rows()[found.search(rows()[len(text)], 1).ids[0]] for text in texts])
    hits = found.search("four", 3)
    assert isinstance(found.judge("four", good=hits.ids[:1], bad=hits.ids[1:]), int)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_gets_an_error_for_an_object_that_was_changing_and_reads_others():
    model, other = (am.DiagonalAROMA().fit_triplets(triplets(), rows()) for _ in range(2))
    held, release = threading.Event(), threading.Event()

    def change():
        with model._lock.changing, other._lock.reading:
            held.set()
            release.wait(60)

    with ThreadPoolExecutor(1) as pool:
        changing = pool.submit(change)
        held.wait(60)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                other.learn_one(*rows()[:3])
                model.similarity(rows())
            except ConcurrentUseError:
                code = 0
            finally:
                os._exit(code)
        release.set()
        changing.result(60)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# -- a call that fails changes nothing --------------------------------------------------------------------------------


class Fault(BaseException):
    """Raised at some line of the package, as Ctrl-C or a lack of memory may be."""


def with_fault(call, at, event="line"):
    """Run a call and raise a fault at the line, or opcode, with this number; return whether it was reached."""
    n_events = 0

    def trace(frame, found, _):
        nonlocal n_events
        if not frame.f_code.co_filename.startswith((PACKAGE, contextlib.__file__)):
            return None
        frame.f_trace_opcodes = event == "opcode"
        # On leaving a block, tracing stops at its `with`, or at no line, before the lock is released: no signal is
        # handled there.
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno or 0).lstrip()
        if found == event and line and not line.startswith("with "):
            n_events += 1
            if n_events == at:
                raise Fault
        return trace

    earlier = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except Fault:
        return True
    finally:
        sys.settrace(earlier)
    return False


def changes_of_models():
    X, T = rows(seed=8), triplets(12, seed=3)
    return {
        "partial_fit_triplets": lambda model: model.partial_fit_triplets(T, X),
        "learn_one": lambda model: model.learn_one(X[0], X[1], X[2]),
        "first learn_one": lambda model: model.learn_one(X[0], X[1], X[2]),
        "calibrate": lambda model: model.calibrate(T, X),
        "decay": lambda model: model.decay(0.25),
        "grow": lambda model: model.grow(WIDTH + 2),
    }


MODELS = [*online_models(), am.MomentAROMA(), am.FactoredAROMA(covariance_update="joint")]


@pytest.mark.parametrize("name", list(changes_of_models()))
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_a_fault_at_any_line_leaves_a_model_before_or_after_the_call(model, name):
    call = changes_of_models()[name]
    if name == "decay" and not hasattr(model, "decay"):
        pytest.skip("the learner has no decay")
    start = clone(model)
    if name != "first learn_one":
        start.fit_triplets(triplets(), rows()).learn_one(*rows()[:3])
    check_faults(start, call, state_of)


def state_of(model):
    return saved(model) if hasattr(model, "_state") else repr(model.__dict__)


def check_faults(start, call, state, event="line"):
    """Run a call with a fault at each of its lines; the object must be as before, or as after the whole call."""
    before, whole = state(start), copy.deepcopy(start)
    call(whole)
    after = state(whole)
    assert after != before
    n_before = at = 0
    while True:
        at += 1
        one = copy.deepcopy(start)
        reached = with_fault(lambda one=one: call(one), at, event)
        found = state(one)
        if not reached:
            assert found == after
            break
        assert found in (before, after), f"half changed by a fault at {event} {at}"
        n_before += found == before
        if found == before:
            call(one)
            assert state(one) == after, f"no longer usable after a fault at {event} {at}"
    assert n_before > 3


def adapter_calls(names):
    X = rows(seed=5)
    queries = {"new": X[0], "known": rows()[1] + 0.1, "object": rows()[11], "zero": np.zeros(WIDTH)}
    calls = {}
    for kind, query in queries.items():
        calls[f"judge {kind}"] = lambda one, q=query: one.judge(q, good=names[[1, 7]], bad=names[[2, 3]])
        calls[f"click {kind}"] = lambda one, q=query: one.click(q, shown=names[[4, 5, 1]], clicked=names[[5]])
    calls["add"] = lambda one: one.add(one_kind(one, X[:3]), ids=None if names.dtype.kind == "i" else ["x", "y", "z"])
    calls["remove"] = lambda one: one.remove(names[[0, 1, 9]])
    calls["remove most"] = lambda one: one.remove(names[:25])
    return calls


def one_kind(shared, X):
    return sparse.csr_array(X) if shared._store.is_sparse else X


INTEGERS = np.arange(N_ROWS)
STRINGS = np.array([f"object {number}" for number in range(N_ROWS)], dtype=object)


@pytest.mark.parametrize("name", list(adapter_calls(INTEGERS)))
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_a_fault_at_any_line_leaves_an_adapter_before_or_after_the_call(container, name):
    names = STRINGS if container is np.asarray else INTEGERS
    start = adapter(container, ids=names)
    check_faults(start, adapter_calls(names)[name], saved)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["judge new", "judge known", "click object", "add", "remove"])
def test_a_fault_at_any_opcode_leaves_an_adapter_before_or_after_the_call(name):
    check_faults(adapter(np.asarray, ids=STRINGS), adapter_calls(STRINGS)[name], saved, "opcode")


@pytest.mark.slow
@pytest.mark.parametrize("model", [am.FactoredAROMA(), am.DiagonalAROMA(cells="touched"), am.MomentAROMA()], ids=repr)
def test_a_fault_at_any_opcode_leaves_a_model_before_or_after_training(model):
    start = clone(model).fit_triplets(triplets(), rows())
    check_faults(start, changes_of_models()["partial_fit_triplets"], saved, "opcode")


@pytest.mark.parametrize("approximate", [False, True])
@pytest.mark.parametrize("learner", [am.FactoredAROMA, am.ITML])
@pytest.mark.parametrize("name", ["add", "remove"])
def test_a_fault_at_any_line_leaves_an_index_before_or_after_the_call(name, learner, approximate):
    model, X = fitted(learner), rows(4, seed=9)
    call = {"add": lambda one: one.add(X), "remove": lambda one: one.remove([3, 4])}[name]

    def make():
        return am.Index(model, rows(), approximate=approximate)

    def state(one):
        hits = one.search(X, len(one))
        return one.ids.tobytes(), hits.ids.tobytes(), hits.scores.tobytes()

    before, whole = state(make()), make()
    call(whole)
    after, at, n_before = state(whole), 0, 0
    reached = True
    while reached:
        at += 1
        one = make()
        reached = with_fault(lambda one=one: call(one), at)
        found = state(one)
        assert found in (before, after)
        n_before += found == before
        if found == before:
            call(one)
            assert state(one) == after
    assert n_before > 3


@pytest.mark.parametrize("learner", [*TRIPLET_LEARNERS, am.AROW], ids=lambda cls: cls.__name__)
def test_set_params_sets_all_parameters_or_none(learner):
    model = learner()
    name = next(iter(model.get_params()))
    before = model.get_params()
    with pytest.raises(ValueError, match="Invalid parameter 'nothing'"):
        model.set_params(**{name: 7.0, "nothing": 1})
    assert model.get_params() == before


def test_an_interrupt_ends_the_wait_for_another_thread():
    model = am.DiagonalAROMA().fit_triplets(triplets(), rows())
    held, release = threading.Event(), threading.Event()

    def read():
        with model._lock.reading:
            held.set()
            release.wait(60)

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read)
        held.wait(60)
        timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            model.learn_one(*rows()[:3])
        release.set()
        reading.result(60)
    assert model.n_triplets_seen_ == 40
    assert model.learn_one(*rows()[:3]).margin is not None

"""The fuzzer itself: what a case does to its process is seen, and is attributed to that case."""

import ctypes
import random
import time

import numpy as np
import pytest

pytest.importorskip("resource")  # limits of processes are POSIX

from aromatch import DiagonalAROMA
from tests.fuzz import calls, cases, collection
from tests.fuzz.formats import FORMATS, FileCase, make_case, run_case
from tests.fuzz.sandbox import ACCEPTED, CRASH, EXCEPTION, FAILURES, HANG, MEMORY, REFUSED, GuaranteeError, Sandbox


def behave(case):
    """Do what the name of the case says."""
    match case:
        case "crash":
            ctypes.string_at(0)
        case "hang":
            time.sleep(60)
        case "allocate":
            return str(len(np.ones(2**23)))
        case "allocate too much":
            np.ones(2**40)
        case "raise":
            DiagonalAROMA().W_  # noqa: B018 - raises inside the package
        case "break":
            raise GuaranteeError("a guarantee: 1 of 2")
    return ACCEPTED


@pytest.fixture(scope="module")
def built():
    with cases.workplace() as (base, work):
        yield collection.build(base), base, work


@pytest.mark.parametrize(
    ("case", "kind", "group"),
    [
        ("crash", CRASH, "SIGSEGV: outside the package"),
        ("hang", HANG, "hang: outside the package"),
        ("allocate", MEMORY, "memory: no exception"),
        ("allocate too much", MEMORY, "MemoryError: outside the package"),
        ("raise", EXCEPTION, "NotFittedError: learners/files.py:check_is_fitted"),
        ("break", EXCEPTION, "guarantee: a guarantee"),
    ],
)
def test_a_failure_is_attributed_to_its_case_and_the_next_case_runs(case, kind, group):
    with Sandbox(behave, seconds=2 if case == "hang" else 60, n_bytes=2**25) as sandbox:
        assert sandbox.run("nothing").kind == ACCEPTED
        outcome = sandbox.run(case)
        assert (outcome.kind, outcome.is_failure) == (kind, True)
        if case != "raise":
            assert outcome.group == group
        else:
            assert outcome.group.startswith("NotFittedError: learners/")
        assert sandbox.run("nothing").kind == ACCEPTED


@pytest.mark.parametrize("name", FORMATS)
def test_a_seed_of_each_format_is_accepted_and_mutations_repeat(built, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # and back: cases change the current folder
    seeds, base, work = built
    targets = FORMATS[name].targets
    found = set()
    for target in targets:
        found.add(run_case(FileCase(name, seeds[name][0], target), base, work))
    assert ACCEPTED in found
    first, again = ([make_case(random.Random(number), name, seeds) for number in range(30)] for _ in range(2))
    assert first == again
    assert sum(case.data not in seeds[name] for case in first) > 20


def test_calls_repeat_and_reach_every_public_function():
    known = calls.callees()
    assert {"Adapter", "load", "triplets.from_labels", "evaluation.evaluate_retrieval"} <= {one.name for one in known}
    assert calls.make_calls(1, 20, known) == calls.make_calls(1, 20, known)


def test_a_call_is_stored_as_text_and_read_again(tmp_path):
    case = calls.CallCase("triplets.from_labels", "", {"y": "Y", "n": "-1"})
    sandbox = Sandbox(lambda one: calls.run_call(one, tmp_path / "work"))
    with sandbox:
        outcome = sandbox.run(case)
    assert outcome.kind == REFUSED
    path = cases.store(case, outcome._replace(group="ValueError: x"), tmp_path)
    assert cases.read(path) == case
    assert outcome.kind not in FAILURES


def test_a_case_is_reduced_to_the_argument_that_matters(tmp_path):
    case = calls.CallCase(
        "triplets.from_labels", "", {"y": "Y", "n": "5", "random_state": "object()", "y_objects": "Y"}
    )

    class Fails:
        def run(self, one):
            is_failing = one.arguments.get("random_state") == "object()"
            return outcome if is_failing else outcome._replace(group="other")

    outcome = cases.Outcome(EXCEPTION, "the cause")
    assert cases.minimise(case, outcome, Fails()).arguments == {"y": "Y", "n": "5", "random_state": "object()"}

"""Cases that once crashed, hung, took too much memory or raised an unexpected exception do so no more."""

import pytest

pytest.importorskip("resource")  # limits of processes are POSIX

from tests.fuzz import cases, collection
from tests.fuzz.sandbox import Sandbox


@pytest.fixture(scope="module")
def sandbox():
    with cases.workplace() as (base, work):
        collection.build(base)
        with Sandbox(cases.runner(base, work)) as sandbox:
            yield sandbox


@pytest.mark.parametrize("path", cases.stored(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_stored_case_succeeds_or_is_refused(sandbox, path):
    outcome = sandbox.run(cases.read(path))
    assert not outcome.is_failure, f"{outcome.group}\n{outcome.detail}"

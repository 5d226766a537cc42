"""The driver of `make sanitize` on the ordinary build: no public function of a kernel is left out."""

from types import ModuleType

import numpy as np
import pytest

from tests.sanitize import driver
from tests.sanitize.cases import drives
from tests.sanitize.matrices import CONTAINERS, laid_out, random_csr


def test_every_public_function_of_every_kernel_is_driven_in_each_precision():
    counts = driver.Counts()
    for number in range(6 * len(drives(huge=False))):
        driver.run_case(number, 0, counts, huge=False)
    assert driver.missing(counts) == []


def test_a_new_function_of_a_kernel_that_is_not_driven_is_named(monkeypatch):
    module = ModuleType("aromatch.kernels.new")
    exec("def learn(): ...\ndef _hidden(): ...", vars(module))
    before = driver.modules()
    monkeypatch.setattr(driver, "modules", lambda: [*before, module])
    counts = driver.Counts()
    counts.update(driver.public_calls() - {driver.Call("new.learn", "")})
    assert driver.missing(counts) == ["new.learn"]


@pytest.mark.parametrize("container", CONTAINERS[:3])
def test_dense_rows_fill_their_memory_from_the_first_to_the_last_byte(container):
    rng = np.random.default_rng(0)
    for width in (1, 2, 17):
        X = random_csr(rng, 5, width).toarray()
        found = laid_out(rng, X, container)
        np.testing.assert_array_equal(found, X)
        low, high = np.lib.array_utils.byte_bounds(found)
        memory = found
        while isinstance(memory.base, np.ndarray):
            memory = memory.base
        assert (low, high) == np.lib.array_utils.byte_bounds(memory)

"""Every case gives the frozen results, bit for bit."""

from pathlib import Path

import numpy as np
import pytest

from frozen.cases import CASES, run


@pytest.fixture(scope="module")
def frozen():
    """Give the frozen arrays of every case by their names."""
    found = {}
    with np.load(Path(__file__).parent / "frozen.npz", allow_pickle=False) as file:
        for key in file.files:
            name, _, part = key.partition("/")
            found.setdefault(name, {})[part] = file[key]
    return found


def differs(found, expected):
    """Tell how an array differs from the frozen one; nothing when it does not."""
    if (found.dtype, found.shape) != (expected.dtype, expected.shape):
        return f"{found.dtype}{found.shape} for {expected.dtype}{expected.shape}"
    if not np.array_equal(found, expected, equal_nan=found.dtype.kind == "f"):
        if found.dtype.kind == "f":
            return f"differs by {np.nanmax(np.abs(found - expected)):.1e} at most"
        return "differs"
    return None


@pytest.mark.parametrize("name", CASES)
def test_the_results_are_the_frozen_ones(name, frozen):
    """Compare names, dtypes, shapes and bits."""
    assert name in frozen, f"{name} is not in frozen.npz"
    found, expected = run(name), frozen[name]
    assert sorted(found) == sorted(expected)
    wrong = {key: told for key in expected if (told := differs(found[key], expected[key]))}
    assert not wrong


def test_every_frozen_case_is_still_run(frozen):
    """Refuse a file with cases that nobody runs."""
    assert set(frozen) == set(CASES)

"""Interrupted benchmarks resume from their stored cells."""

import json
import math
import operator
import subprocess

import pytest

from benchmarks.shared import kept_cells


def test_stored_cells_are_not_computed_again(tmp_path):
    path = tmp_path / "cells.json"
    assert kept_cells.computed({"a": (operator.add, 1, 2)}, 1, "test", path) == [3]
    path.write_text(json.dumps({"a": "kept"}))
    cells = {"b": (operator.mul, 2, 5), "a": (operator.add, 1, 2)}
    assert kept_cells.computed(cells, 2, "test", path) == [10, "kept"]
    assert json.loads(path.read_text()) == {"a": "kept", "b": 10}
    assert [each.name for each in tmp_path.iterdir()] == ["cells.json"]


def test_results_before_a_failing_cell_stay_stored(tmp_path):
    path = tmp_path / "cells.json"
    cells = {"right": (math.sqrt, 4.0), "wrong": (math.sqrt, -1.0)}
    with pytest.raises(ValueError, match="math domain error"):
        kept_cells.computed(cells, 1, "test", path)
    assert json.loads(path.read_text()) == {"right": 2.0}


def test_no_cell_is_started_after_one_has_failed(tmp_path):
    later = {f"later {n}": (subprocess.call, ["sh", "-c", f"sleep 0.2; touch {tmp_path}/{n}"]) for n in range(30)}
    with pytest.raises(ValueError, match="math domain error"):
        kept_cells.computed({"wrong": (math.sqrt, -1.0), **later}, 1, "test", tmp_path / "cells.json")
    assert len(list(tmp_path.iterdir())) < 15


def test_keys_depend_on_every_setting_and_on_their_order():
    assert kept_cells.named("a", [1, 2]) == kept_cells.named("a", [1, 2])
    assert len({kept_cells.named("a", [1, 2]), kept_cells.named("a", [2, 1]), kept_cells.named("b", [1, 2])}) == 3

"""What the adapter refuses: bad input, which changes nothing, and files that are not its own."""

import numpy as np
import pytest
from scipy import sparse

import aromatch as am
from aromatch.exceptions import ModelFileError
from aromatch.io.container import read_model, write_model
from aromatch.search import Adapter
from taught_adapters import CONTAINERS, clusters, taught

# -- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda a, q: a.judge(q, [0], [0]), ValueError, "good and bad both contain 0"),
        (lambda a, q: a.judge(q, [], []), ValueError, "good and bad are empty"),
        (lambda a, q: a.judge(q), ValueError, "good and bad are empty"),
        (lambda a, q: a.judge(q, [99], [1]), ValueError, "good contains 99"),
        (lambda a, q: a.judge(q, [1, 1], [2]), ValueError, "good must be unique"),
        (lambda a, q: a.judge(q, [0.5], [1]), TypeError, "good must be all int or all str"),
        (lambda a, q: a.judge(q, ["a"], [1]), TypeError, "good must be int"),
        (lambda a, q: a.judge(q, [-1], [1]), ValueError, "good must be from 0"),
        (lambda a, q: a.judge(q, [[0, 1]], [2]), ValueError, "good must be one-dimensional"),
        (lambda a, q: a.judge(q[:3], [0], [1]), ValueError, "query has 3 features, expected 8"),
        (lambda a, q: a.judge(np.stack([q, q]), [0], [1]), ValueError, "query must be"),
        (lambda a, q: a.judge(q * np.nan, [0], [1]), ValueError, "query contains NaN or infinity"),
        (lambda a, q: a.judge("tea", [0], [1]), TypeError, "encoder"),
        (lambda a, q: a.click(q, [3, 4], 5), ValueError, "clicked contains 5"),
        (lambda a, q: a.click(q, [3, 4], [3, 5]), ValueError, "clicked contains 5"),
        (lambda a, q: a.click(q, [3, 4], []), ValueError, "clicked is empty"),
        (lambda a, q: a.click(q, [3, 4], [3, 3]), ValueError, "clicked must be unique"),
        (lambda a, q: a.click(q, [3, 3], 3), ValueError, "shown must be unique"),
        (lambda a, q: a.search(q, 0), ValueError, "k must be at least 1"),
        (lambda a, q: a.search(["tea", "cup"]), TypeError, "encoder"),
        (lambda a, q: a.remove([77]), ValueError, "ids contains 77"),
        (lambda a, q: a.remove(a.ids), ValueError, "at least one must remain"),
        (lambda a, q: a.add(q[:2]), ValueError, "vectors has 2 features"),
        (lambda a, q: a.add(q, ids=["a"]), TypeError, "ids must be int"),
        (lambda a, q: a.add(q, ids=[3]), ValueError, "ids contains 3, which exists already"),
        (lambda a, q: a.add(sparse.csr_array(q.reshape(1, -1))), TypeError, "vectors must be dense"),
    ],
)
def test_bad_input_changes_nothing(call, kind, message):
    X, y = clusters()
    adapter = Adapter(X, random_state=0)
    taught(adapter, X, y, range(10))
    before = adapter.similarity(X, X), adapter.diagnostics_, len(adapter)
    with pytest.raises(kind, match=message):
        call(adapter, X[0])
    np.testing.assert_array_equal(adapter.similarity(X, X), before[0])
    assert (adapter.diagnostics_, len(adapter)) == before[1:]


def test_bad_arguments_are_named():
    X, _ = clusters()
    with pytest.raises(ValueError, match="metric must be one of 'cosine', 'dot', got 'euclid'"):
        Adapter(X, metric="euclid")
    with pytest.raises(ValueError, match="random_state must be at least 0, got -1"):
        Adapter(X, random_state=-1)
    with pytest.raises(TypeError, match="encoder must be callable"):
        Adapter(X, encoder="model")
    with pytest.raises(TypeError, match="ids must be all int or all str"):
        Adapter(X[:2], ids=["a", 1])
    with pytest.raises(ValueError, match="ids must have one id for each of the 2 objects"):
        Adapter(X[:2], ids=["a"])


# -- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_file_of_something_else_or_with_other_numbers_is_refused(container, tmp_path):
    X, y = clusters()
    adapter = Adapter(container(X), random_state=0)
    taught(adapter, X, y, range(10))
    adapter.remove([0])
    path = tmp_path / "adapter"
    adapter.save(path)
    assert len(am.load(path)) == 47
    header, arrays = read_model(path)
    harms = [
        ({"metric": "euclid"}, {}),
        ({"seed": -1}, {}),
        ({"next_key": "many"}, {}),
        ({"next_key": 3}, {}),
        ({"next_key": 2**70}, {}),
        ({}, {"feedback.query": arrays["feedback.query"] + 1000}),
        ({}, {"feedback.query": arrays["feedback.query"] - 1}),
        ({}, {"feedback.query": arrays["feedback.query"][1:]}),
        ({}, {"feedback.object": arrays["feedback.object"] * 0}),
        ({}, {"feedback.own_object": arrays["feedback.own_object"] * 0 + 1000}),
        ({}, {"feedback.own_object": arrays["feedback.own_object"] * 0 - 1}),
        ({}, {"row_hashes": arrays["row_hashes"][1:]}),
        ({}, {"row_hashes": arrays["row_hashes"] * 0}),
        ({}, {"queries.keys": arrays["queries.keys"] + 1}),
        ({}, {"objects.keys": arrays["objects.keys"][1:]}),
        ({}, {"objects.keys": arrays["objects.keys"] * 0}),
        ({}, {"objects.keys": arrays["objects.keys"] + 2**60}),
        ({}, {"objects.chunks": arrays["objects.chunks"] + 1}),
        ({}, {"objects.chunks": np.array([50, -2])}),
        ({}, {"total": arrays["total"] * np.nan}),
        ({}, {"total": arrays["total"] * 2}),
        ({}, {"monitor": arrays["monitor"][1:]}),
        ({}, {"monitor": -arrays["monitor"]}),
        ({}, {"monitor": np.append(arrays["monitor"][:-1], -9.0)}),
        ({}, {"monitor": np.arange(19.0)}),
        ({}, {"feedback.net": arrays["feedback.net"].astype(np.float64)}),
        ({}, {"feedback.net": arrays["feedback.net"] * 2**60}),
        ({}, {"feedback.query": arrays["feedback.query"] * 0, "feedback.object": arrays["feedback.object"] * 0 + 1}),
        ({}, {name: 1e6 * arrays[name] for name in ("objects.rows", "objects.rows.data") if name in arrays}),
    ]
    for in_header, in_arrays in harms:
        write_model(tmp_path / "harmed", {**header, **in_header}, {**arrays, **in_arrays})
        with pytest.raises(ModelFileError, match="harmed"):
            am.load(tmp_path / "harmed")
    for missing in arrays:
        write_model(tmp_path / "harmed", header, {name: array for name, array in arrays.items() if name != missing})
        with pytest.raises(ModelFileError):
            am.load(tmp_path / "harmed")
    write_model(tmp_path / "harmed", {**header, "kind": "learner"}, arrays)
    with pytest.raises(ModelFileError):
        am.load(tmp_path / "harmed")


# -- another embedding ------------------------------------------------------------------------------------------------


def test_an_adapter_keeps_the_fingerprint_of_its_embedding_and_refuses_others(tmp_path):
    X, y = clusters()
    mine, other = am.Fingerprint.of("mine", X[:3]), am.Fingerprint.of("mine", X[3:6])
    adapter = Adapter(X, random_state=0, fingerprint=mine)
    taught(adapter, X, y, range(10))
    adapter.save(tmp_path / "adapter")
    assert am.load(tmp_path / "adapter").fingerprint_ == mine
    with pytest.raises(ValueError, match="its probe differ"):
        adapter.check_fingerprint(other)
    adapter.check_fingerprint(mine)


def test_without_a_fingerprint_nobody_can_tell_and_one_that_does_not_fit_is_refused(tmp_path):
    X, _ = clusters()
    mine, adapter = am.Fingerprint.of("mine", X[:3]), Adapter(X, random_state=0)
    adapter.save(tmp_path / "adapter")
    assert am.load(tmp_path / "adapter").fingerprint_ is None
    with pytest.raises(ValueError, match="no fingerprint"):
        am.load(tmp_path / "adapter").check_fingerprint(mine)
    with pytest.raises(TypeError, match="fingerprint must be a Fingerprint, got 'mine'"):
        Adapter(X, fingerprint="mine")
    with pytest.raises(ValueError, match="fingerprint has 3 dimensions, but the objects have 8"):
        Adapter(X, fingerprint=am.Fingerprint.of("narrow", X[:3, :3]))
    Adapter(X, fingerprint=mine).save(tmp_path / "adapter")
    header, arrays = read_model(tmp_path / "adapter")
    for changed, message in (({"dimension": 9}, "9 dimensions"), ({"probe": "x"}, "fingerprint")):
        write_model(tmp_path / "other", {**header, "fingerprint": {**header["fingerprint"], **changed}}, arrays)
        with pytest.raises(ModelFileError, match=message):
            am.load(tmp_path / "other")

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
        (lambda a, q: a.judge(q, [0], [0]), ValueError, "good and bad both have 0"),
        (lambda a, q: a.judge(q, [], []), ValueError, "good and bad are empty"),
        (lambda a, q: a.judge(q, [99], [1]), ValueError, "good has 99, which is not there"),
        (lambda a, q: a.judge(q, [1, 1], [2]), ValueError, "good has an id twice"),
        (lambda a, q: a.judge(q, [0.5], [1]), TypeError, "good must be whole numbers"),
        (lambda a, q: a.judge(q[:3], [0], [1]), ValueError, "query has 3 features, expected 8"),
        (lambda a, q: a.judge(np.stack([q, q]), [0], [1]), ValueError, "query must be"),
        (lambda a, q: a.judge(q * np.nan, [0], [1]), ValueError, "query contains NaN or infinity"),
        (lambda a, q: a.click(q, [3, 4], 5), ValueError, "clicked is 5, which is not among those shown"),
        (lambda a, q: a.click(q, [3, 4], [3, 4]), ValueError, "clicked must be one id, got 2"),
        (lambda a, q: a.click(q, [3, 3], 3), ValueError, "shown has an id twice"),
        (lambda a, q: a.search(q, 0), ValueError, "k must be at least 1"),
        (lambda a, q: a.suggest(0), ValueError, "n must be at least 1"),
        (lambda a, q: a.remove([77]), ValueError, "ids has 77, which is not there"),
        (lambda a, q: a.remove(a.ids), ValueError, "one has to stay"),
        (lambda a, q: a.add(q[:2]), ValueError, "objects has 2 features"),
        (lambda a, q: a.add(sparse.csr_array(q.reshape(1, -1))), TypeError, "objects must be dense"),
    ],
)
def test_bad_input_changes_nothing(call, kind, message):
    X, y = clusters()
    adapter = Adapter(X, random_state=0)
    taught(adapter, X, y, range(10))
    before = adapter.similarity(X, X), adapter.watched_, len(adapter)
    with pytest.raises(kind, match=message):
        call(adapter, X[0])
    np.testing.assert_array_equal(adapter.similarity(X, X), before[0])
    assert (adapter.watched_, len(adapter)) == before[1:]


def test_bad_arguments_are_named():
    X, _ = clusters()
    with pytest.raises(ValueError, match="base must be one of 'cosine', 'dot', got 'euclid'"):
        Adapter(X, base="euclid")
    with pytest.raises(ValueError, match="random_state must be at least 0, got -1"):
        Adapter(X, random_state=-1)
    with pytest.raises(ValueError, match="a comparison needs three objects, there are 2"):
        Adapter(X[:2]).suggest()


# -- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_file_of_something_else_or_with_other_numbers_is_refused(container, tmp_path):
    X, y = clusters()
    adapter = Adapter(container(X), random_state=0)
    taught(adapter, X, y, range(10))
    adapter.remove([0])
    path = tmp_path / "adapter"
    adapter.save(path)
    assert len(Adapter.load(path)) == 47
    header, arrays = read_model(path)
    harms = [
        ({"base": "euclid"}, {}),
        ({"seed": -1}, {}),
        ({"next_id": "many"}, {}),
        ({"next_id": 3}, {}),
        ({"next_id": 2**70}, {}),
        ({}, {"judged": arrays["judged"] + 1000}),
        ({}, {"judged": arrays["judged"] - 1}),
        ({}, {"judged": arrays["judged"][1:]}),
        ({}, {"judged_object": arrays["judged_object"] * 0}),
        ({}, {"itself": arrays["itself"] * 0 + 1000}),
        ({}, {"itself": arrays["itself"] * 0 - 1}),
        ({}, {"names": arrays["names"][1:]}),
        ({}, {"names": arrays["names"] * 0}),
        ({}, {"queries.ids": arrays["queries.ids"] + 1}),
        ({}, {"objects.ids": arrays["objects.ids"][1:]}),
        ({}, {"objects.ids": arrays["objects.ids"] * 0}),
        ({}, {"objects.ids": arrays["objects.ids"] + 2**60}),
        ({}, {"objects.pieces": arrays["objects.pieces"] + 1}),
        ({}, {"objects.pieces": np.array([50, -2])}),
        ({}, {"total": arrays["total"] * np.nan}),
        ({}, {"total": arrays["total"] * 2}),
        ({}, {"watched": arrays["watched"][1:]}),
        ({}, {"watched": -arrays["watched"]}),
        ({}, {"watched": np.append(arrays["watched"][:-1], -9.0)}),
        ({}, {"watched": np.arange(19.0)}),
        ({}, {"net": arrays["net"].astype(np.float64)}),
        ({}, {"net": arrays["net"] * 2**60}),
        ({}, {"judged": arrays["judged"] * 0, "judged_object": arrays["judged_object"] * 0 + 1}),
        ({}, {name: 1e6 * arrays[name] for name in ("objects.rows", "objects.rows.data") if name in arrays}),
    ]
    for in_header, in_arrays in harms:
        write_model(tmp_path / "harmed", {**header, **in_header}, {**arrays, **in_arrays})
        with pytest.raises(ModelFileError, match="is not an adapter that this version can use"):
            Adapter.load(tmp_path / "harmed")
    for missing in arrays:
        write_model(tmp_path / "harmed", header, {name: array for name, array in arrays.items() if name != missing})
        with pytest.raises(ModelFileError):
            Adapter.load(tmp_path / "harmed")
    am.DiagonalAROMA().fit_triplets([[0, 1, 2]], np.eye(3)).save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="it holds a DiagonalAROMA"):
        Adapter.load(tmp_path / "model")
    with pytest.raises(ModelFileError, match="Adapter"):
        am.load(path)


# -- another embedding ------------------------------------------------------------------------------------------------


def test_an_adapter_keeps_the_fingerprint_of_its_embedding_and_refuses_others(tmp_path):
    X, y = clusters()
    mine, other = am.Fingerprint.of("mine", X[:3]), am.Fingerprint.of("mine", X[3:6])
    adapter = Adapter(X, random_state=0, fingerprint=mine)
    taught(adapter, X, y, range(10))
    adapter.save(tmp_path / "adapter")
    assert Adapter.load(tmp_path / "adapter", fingerprint=am.Fingerprint.of("mine", X[:3])).fingerprint_ == mine
    with pytest.raises(ValueError, match="learned on 'mine', got 'mine': its probe differ"):
        Adapter.load(tmp_path / "adapter", fingerprint=other)
    with pytest.raises(ValueError, match="its probe differ"):
        adapter.check_fingerprint(other)
    adapter.check_fingerprint(mine)


def test_without_a_fingerprint_nobody_can_tell_and_one_that_does_not_fit_is_refused(tmp_path):
    X, _ = clusters()
    mine, adapter = am.Fingerprint.of("mine", X[:3]), Adapter(X, random_state=0)
    adapter.save(tmp_path / "adapter")
    assert Adapter.load(tmp_path / "adapter").fingerprint_ is None
    with pytest.raises(ValueError, match="made without a fingerprint"):
        Adapter.load(tmp_path / "adapter", fingerprint=mine)
    with pytest.raises(TypeError, match="fingerprint must be a Fingerprint, got 'mine'"):
        Adapter(X, fingerprint="mine")
    with pytest.raises(ValueError, match="fingerprint has 3 dimensions, but the objects have 8"):
        Adapter(X, fingerprint=am.Fingerprint.of("narrow", X[:3, :3]))
    Adapter(X, fingerprint=mine).save(tmp_path / "adapter")
    header, arrays = read_model(tmp_path / "adapter")
    for changed, message in (({"dimension": 9}, "9 dimensions"), ({"probe": "x"}, "its fingerprint is none")):
        write_model(tmp_path / "other", {**header, "fingerprint": {**header["fingerprint"], **changed}}, arrays)
        with pytest.raises(ModelFileError, match=message):
            Adapter.load(tmp_path / "other")

"""The benchmark of ranking quality on small synthetic collections."""

import re

import numpy as np
import pytest

from aromatch.paper.splits import Split
from benchmarks.quality import experiment, page, sampling
from benchmarks.quality.methods import METHODS
from benchmarks.shared import collections
from grouped_rows import groups


@pytest.fixture
def toy_collection(monkeypatch):
    """The benchmark with one small collection."""

    def split_of(name, number):
        X, y, X_test, y_test = groups(n_rows=160, n_groups=4, width=12, spread=0.4)
        order = np.random.default_rng(number).permutation(160)
        return Split(X[order], y[order].astype(str), X_test, y_test.astype(str))

    toy = collections.Collection("Toy", (150, 300), {"P@1": 0.1, "P@10": 0.9999}, 300)
    monkeypatch.setitem(collections.COLLECTIONS, "toy", toy)
    monkeypatch.setattr(experiment, "split_of", split_of)
    monkeypatch.setattr(experiment, "N_TO_CHOOSE", 200)


def without_torch():
    return [method for method in METHODS if "torch" not in method.name]


def test_every_method_is_tuned_evaluated_and_reported(toy_collection):
    methods = without_torch()
    cells = [experiment.compute("toy", number, method.name) for number in range(2) for method in methods]
    for cell in cells:
        method = next(method for method in methods if method.name == cell["method"])
        assert cell["setting"] in method.settings
        assert len(cell["tried"]) == (len(method.settings) if len(method.settings) > 1 else 0)
        if cell["tried"]:
            best = max(one["P@10"] for one in cell["tried"])
            assert next(one for one in cell["tried"] if one["setting"] == cell["setting"])["P@10"] == best
        at = [found["n_triplets"] for found in cell["found"]]
        assert at == ([150, 300] if method.trained_on == "triplets" else [0])
    of_cosine = next(cell for cell in cells if cell["method"] == "cosine")["found"][-1]
    for ours in ("TripletEmbedding (moment)", "TripletEmbedding"):
        assert next(cell for cell in cells if cell["method"] == ours)["found"][-1]["mAP"] > of_cosine["mAP"]
    chosen = {cell["method"]: cell["setting"] for cell in cells if cell["split"] == 0}
    times = experiment.compute_times("toy", chosen)
    assert all(seconds > 0 for each in times["seconds"].values() for seconds in each)
    results = page.Results(cells, [times])
    text = page.make_page(results, [], {"aromatch": "0"})
    for method in methods:
        means = " | ".join(str(results.mean("toy", method.name, measure)) for measure in page.MEASURES)
        assert re.search(rf"\n\| {re.escape(method.name)} \| [^|]+ \| {re.escape(means)} \| ", text)
    precision = results.mean("toy", "TripletEmbedding", "P@10").mean
    assert page.verdict(precision, 0.9999) in text


def test_samplers_are_compared_by_the_precision_of_each_learner(toy_collection, monkeypatch):
    samplers = {"uniform": sampling.uniform, "near": sampling.harder(0, 5)}
    monkeypatch.setattr(experiment, "SAMPLERS", samplers)
    cells = [experiment.compute_sampling("toy", 0, name) for name in samplers]
    assert all(set(cell["found"]) == set(sampling.LEARNERS) for cell in cells)
    assert cells[0]["found"] != cells[1]["found"]


def test_the_fastest_method_ahead_of_a_model_in_torch_is_reported_with_its_share_of_the_time(toy_collection):
    def cells(method, values):
        found = [{"n_triplets": n, **dict.fromkeys(page.MEASURES, v)} for n, v in zip((150, 300), values, strict=True)]
        return {"collection": "toy", "method": method, "found": found, "setting": {}, "test_ratio": 0.5}

    torch = "two towers (torch)"
    found = [cells(torch, (0.5, 0.6)), cells("MomentAROMA", (0.59, 0.7)), cells("TripletEmbedding", (0.6, 0.8))]
    seconds = {torch: [10.0, 20.0], "MomentAROMA": [1.0, 5.0], "TripletEmbedding": [4.0, 8.0]}
    results = page.Results(found, [{"collection": "toy", "seconds": seconds}])
    assert re.search(r"TripletEmbedding with 150 .* 1/5\.0 ", page.fastest_ahead(results, "toy", torch, 300))
    found[0] = cells(torch, (0.5, 0.9))
    results = page.Results(found, [{"collection": "toy", "seconds": seconds}])
    assert not re.search("MomentAROMA|TripletEmbedding", page.fastest_ahead(results, "toy", torch, 300))


@pytest.mark.parametrize("sampler", ["balanced", "harder"])
def test_samplers_return_triplets_of_labels_and_hard_negatives_within_their_ranks(toy_collection, sampler):
    split = experiment.split_of("toy", 0)
    y = np.concatenate([split.y[:40], np.repeat(split.y[0], 30)])  # one class is larger
    X = np.concatenate([split.X[:40], split.X[:30]])
    sample = sampling.balanced if sampler == "balanced" else sampling.harder(2, 5)
    query, good, other = sample(X, y, np.random.default_rng(0)).T
    assert (y[query] == y[good]).all()
    assert (y[query] != y[other]).all()
    assert (query != good).all()
    if sampler == "balanced":
        counts = np.unique(y[query], return_counts=True)[1]
        assert counts.max() < 1.1 * counts.min()
    else:
        unit = X / np.linalg.norm(X, axis=1, keepdims=True)
        scores = np.where(y[query][:, np.newaxis] != y, unit[query] @ unit.T, -np.inf)
        ranks = np.count_nonzero(scores > scores[np.arange(len(query)), other][:, np.newaxis] + 1e-12, axis=1)
        assert set(np.unique(ranks).tolist()) <= {1, 2, 3, 4}


def test_every_model_in_torch_is_better_than_the_cosine(toy_collection):
    pytest.importorskip("torch", reason="torch is not installed: pip install 'aromatch[quality]'")
    split = experiment.split_of("toy", 0)
    triplets = experiment.sample_triplets(split.y, 300, 0, 0)
    cosine = experiment.evaluated(METHODS[0].learn(split.X, split.y, triplets), split)["mAP"]
    for method in METHODS:
        if "torch" in method.name:
            model = method.learn(split.X, split.y, triplets, **{**method.settings[0], "steps": 60})
            assert experiment.evaluated(model, split)["mAP"] > cosine

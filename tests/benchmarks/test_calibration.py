"""The calibration benchmark on a small synthetic collection."""

import re

import pytest

from aromatch.paper.splits import Split
from benchmarks.calibration import experiment, page
from benchmarks.shared import collections
from grouped_rows import groups


@pytest.fixture
def toy(monkeypatch):
    """The benchmark with one small collection."""
    X, y, X_test, y_test = groups(n_rows=400, n_groups=5, width=8, spread=0.5)
    split = Split(X, y.astype(str), X_test, y_test.astype(str))
    monkeypatch.setitem(collections.COLLECTIONS, "toy", collections.Collection("Toy", (1,), {}))
    for name, value in {"N_TRAIN": 800, "N_CALIBRATION": 500, "N_TEST": 2_000, "BATCH": 50}.items():
        monkeypatch.setattr(experiment, name, value)
    monkeypatch.setattr(page, "NAMES", ("toy",))
    monkeypatch.setattr(experiment, "split_of", lambda name, number: split)


def test_every_learner_is_calibrated_by_every_protocol(toy, tmp_path):
    results = [
        experiment.compute("toy", learner, protocol, number)
        for learner in experiment.LEARNERS
        for protocol in experiment.PROTOCOLS
        for number in range(2)
    ]
    for result in results:
        assert len(result["predicted"]) == len(result["observed"]) == 10
        assert result["gap"] == max(abs(p - o) for p, o in zip(result["predicted"], result["observed"], strict=True))
        assert result["gap"] < 0.25
        assert 0.5 < result["auc_probability"] <= 1
    clean, noisy = ([r["accuracy"] for r in results if r["protocol"] == name] for name in ("stream", "noisy stream"))
    assert sum(noisy) / len(noisy) < sum(clean) / len(clean) - 0.02
    text = page.make_page(results, {"aromatch": "0"})
    assert text.count("| Toy | ") == 9
    for protocol in experiment.PROTOCOLS:
        gaps = [r["gap"] for r in results if r["protocol"] == protocol]
        assert re.search(rf"{protocol.capitalize()}: .*{max(gaps):.3f}\.", text)
    page.draw(results, tmp_path)
    assert (tmp_path / "calibration.png").stat().st_size > 10_000

"""The measurement of `make calibration`, on rows so few that it takes seconds."""

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
    for name, value in {
        "NAMES": ("toy",),
        "N_LEARNED": 800,
        "N_CALIBRATED": 500,
        "N_TOLD": 2_000,
        "AT_ONCE": 50,
    }.items():
        monkeypatch.setattr(experiment, name, value)
    monkeypatch.setattr(page, "NAMES", ("toy",))
    monkeypatch.setattr(experiment, "split_of", lambda name, number: split)


def test_every_learner_is_calibrated_in_every_way_and_told_of(toy, tmp_path):
    results = [
        experiment.compute("toy", learner, way, number)
        for learner in experiment.LEARNERS
        for way in experiment.WAYS
        for number in range(2)
    ]
    for result in results:
        assert len(result["predicted"]) == len(result["observed"]) == 10
        assert result["gap"] == max(abs(p - o) for p, o in zip(result["predicted"], result["observed"], strict=True))
        assert result["gap"] < 0.25
        assert 0.5 < result["by_probability"] <= 1
    clean, wrong = ([r["right"] for r in results if r["way"] == way] for way in ("a stream", "a stream, a tenth wrong"))
    assert sum(wrong) / len(wrong) < sum(clean) / len(clean) - 0.02
    text = page.make_page(results, {"aromatch": "0"})
    assert text.count("| Toy | ") == 9
    for way in experiment.WAYS:
        gaps = [r["gap"] for r in results if r["way"] == way]
        over = sum(gap > experiment.BOUND for gap in gaps)
        held = f"it fails in {over} of {len(gaps)}" if over else "it holds"
        assert f"{way.capitalize()}: {held}, the largest gap is {max(gaps):.3f}." in text
    page.draw(results, tmp_path)
    assert (tmp_path / "calibration.png").stat().st_size > 10_000

"""The measurement of `make calibration`, on rows so few that it takes seconds."""

import sys
from pathlib import Path

import pytest

from aromatch.paper.splits import Split
from grouped_rows import groups

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def calibration(monkeypatch):
    """The benchmark with one small collection."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import calibration
    import quality_collections

    X, y, X_test, y_test = groups(n_rows=400, n_groups=5, width=8, spread=0.5)
    split = Split(X, y.astype(str), X_test, y_test.astype(str))
    monkeypatch.setitem(quality_collections.COLLECTIONS, "toy", quality_collections.Collection("Toy", (1,), {}))
    for name, value in {
        "NAMES": ("toy",),
        "N_LEARNED": 800,
        "N_CALIBRATED": 500,
        "N_TOLD": 2_000,
        "AT_ONCE": 50,
    }.items():
        monkeypatch.setattr(calibration, name, value)
    monkeypatch.setattr(calibration, "split_of", lambda name, number: split)
    yield calibration
    for name in ("calibration", "kept_cells", "quality_collections"):
        sys.modules.pop(name, None)


def test_every_learner_is_calibrated_in_every_way_and_told_of(calibration, tmp_path):
    results = [
        calibration.compute("toy", learner, way, number)
        for learner in calibration.LEARNERS
        for way in calibration.WAYS
        for number in range(2)
    ]
    for result in results:
        assert len(result["predicted"]) == len(result["observed"]) == 10
        assert result["gap"] == max(abs(p - o) for p, o in zip(result["predicted"], result["observed"], strict=True))
        assert result["gap"] < 0.25
        assert 0.5 < result["by_probability"] <= 1
    clean, wrong = ([r["right"] for r in results if r["way"] == way] for way in ("a stream", "a stream, a tenth wrong"))
    assert sum(wrong) / len(wrong) < sum(clean) / len(clean) - 0.02
    page = calibration.make_page(results, {"aromatch": "0"})
    assert page.count("| Toy | ") == 9
    for way in calibration.WAYS:
        gaps = [r["gap"] for r in results if r["way"] == way]
        over = sum(gap > calibration.BOUND for gap in gaps)
        held = f"it fails in {over} of {len(gaps)}" if over else "it holds"
        assert f"{way.capitalize()}: {held}, the largest gap is {max(gaps):.3f}." in page
    calibration.draw(results, tmp_path)
    assert (tmp_path / "calibration.png").stat().st_size > 10_000

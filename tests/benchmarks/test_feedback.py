"""The closed loop of search and feedback on a small synthetic collection."""

import numpy as np
import pytest

from aromatch.paper.splits import Split
from benchmarks.feedback import experiment, page
from grouped_rows import groups


@pytest.fixture
def toy(monkeypatch):
    """The benchmark with one small collection."""
    X, y, X_test, y_test = groups(n_rows=300, n_groups=10, width=24, spread=0.35)
    monkeypatch.setattr(
        experiment, "split_of", lambda name, number: Split(X, y.astype(str), X_test, y_test.astype(str))
    )
    monkeypatch.setattr(experiment, "CHECKPOINTS", (20, 200))


def test_quality_rises_in_the_loop_and_is_reported(toy, tmp_path):
    results = [
        experiment.compute("toy", kind.name, seed, method)
        for kind in experiment.FEEDBACK
        for seed in range(2)
        for method in experiment.METHODS
    ]
    assert len({(r["baseline"]["mAP"]) for r in results if "few" not in r["feedback"]}) == 1
    correct = [r for r in results if (r["feedback"], r["method"]) == ("correct", "Adapter")]
    for result in correct:
        assert [found["n_lists"] for found in result["found"]] == [20, 200]
        assert result["found"][-1]["mAP"] > 1.02 * result["baseline"]["mAP"]
        assert result["correction_weight"] > 0.5
    text = page.make_page(results, {"toy": "Toy"}, experiment.GUARANTEED, {"aromatch": "0"})
    lowest = min(
        found[measure] / r["baseline"][measure] - 1
        for r in results
        if r["method"] == "Adapter" and r["feedback"] in experiment.GUARANTEED
        for found in r["found"]
        for measure in ("P@1", "P@10", "mAP")
    )
    kinds = [kind.name for kind in experiment.FEEDBACK if kind.name in experiment.GUARANTEED]
    assert page.lowest_gain(results, kinds)[0] == pytest.approx(100 * lowest)
    assert f"{100 * lowest:+.2f} %" in text
    gain = np.mean([100 * (r["found"][-1]["mAP"] / r["baseline"]["mAP"] - 1) for r in correct])
    worst = np.min([100 * (r["found"][-1]["mAP"] / r["baseline"]["mAP"] - 1) for r in correct])
    row = next(line for line in text.splitlines() if line.startswith("| correct | Adapter | 200 |"))
    assert row.endswith(f"{gain:+.1f} ({worst:+.1f}) |")
    page.draw(results, {"toy": "Toy"}, tmp_path)
    assert (tmp_path / "feedback.png").stat().st_size > 10_000

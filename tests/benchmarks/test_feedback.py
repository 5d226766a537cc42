"""The closed loop of `make feedback`, on rows so few that it takes seconds."""

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


def test_the_loop_teaches_and_the_page_tells(toy, tmp_path):
    results = [
        experiment.compute("toy", way.name, seed, method)
        for way in experiment.WAYS
        for seed in range(2)
        for method in experiment.METHODS
    ]
    assert len({(r["base"]["mAP"]) for r in results if "few" not in r["way"]}) == 1
    taught = [r for r in results if (r["way"], r["method"]) == ("all right", "Adapter")]
    for result in taught:
        assert [found["n_lists"] for found in result["found"]] == [20, 200]
        assert result["found"][-1]["mAP"] > 1.02 * result["base"]["mAP"]
        assert result["blend"] > 0.5
    text = page.make_page(results, {"toy": "Toy"}, experiment.ASKED, {"aromatch": "0"})
    lowest = min(
        found[measure] / r["base"][measure] - 1
        for r in results
        if r["method"] == "Adapter" and r["way"] in experiment.ASKED
        for found in r["found"]
        for measure in ("P@1", "P@10", "mAP")
    )
    assert f"that the adapter came to is {100 * lowest:+.2f} %" in text
    assert ("it held" if lowest >= -0.005 else "it did not hold") in text
    gain = np.mean([100 * (r["found"][-1]["mAP"] / r["base"]["mAP"] - 1) for r in taught])
    worst = np.min([100 * (r["found"][-1]["mAP"] / r["base"]["mAP"] - 1) for r in taught])
    row = next(line for line in text.splitlines() if line.startswith("| all right | Adapter | 200 |"))
    assert row.endswith(f"{gain:+.1f} ({worst:+.1f}) |")
    page.draw(results, {"toy": "Toy"}, tmp_path)
    assert (tmp_path / "feedback.png").stat().st_size > 10_000


def test_a_click_teaches_what_stands_above_it():
    objects = np.eye(4) + 0.1
    rocchio = experiment.Rocchio(objects)
    rocchio.click(objects[:1], np.array([2, 1, 3]), 1)
    P = objects / np.linalg.norm(objects, axis=1, keepdims=True)
    np.testing.assert_allclose(rocchio.moves[0], 0.75 * P[1] - 0.15 * P[2])
    np.testing.assert_allclose(rocchio.similarity(objects, objects), (P + rocchio.moves[0]) @ P.T)

"""The exploration benchmark on a small synthetic collection."""

import numpy as np
import pytest

from aromatch.paper.splits import Split
from benchmarks.exploration import experiment, page
from grouped_rows import groups


@pytest.fixture
def toy(monkeypatch):
    """The benchmark with one small collection."""
    X, y, X_test, y_test = groups(n_rows=200, n_groups=5, width=10, spread=0.4)
    split = Split(X, y.astype(str), X_test, y_test.astype(str))
    monkeypatch.setattr(experiment, "split_of", lambda name, number: split)
    monkeypatch.setattr(experiment, "N_OBJECTS", 120)


def test_rewards_rise_along_the_stream_and_are_reported(toy, tmp_path):
    results = [
        experiment.compute(start, policy, seed, 60)
        for start in experiment.STARTS
        for policy in experiment.POLICIES
        for seed in range(3)
    ]
    assert all(len(r["rewards"]) == 60 and 0 <= min(r["rewards"]) <= max(r["rewards"]) <= 1 for r in results)
    greedy = page.select(results, "from the cosine", "greedy")
    assert greedy.shape == (3, 60)
    blind = page.select(results, "from zero", "greedy")
    assert greedy[:, :20].mean() > blind[:, :20].mean()  # the cosine is a good start
    assert blind[:, -20:].mean() > blind[:, :20].mean()  # clicks are informative
    text = page.make_page(results, 60, {"aromatch": "0"})
    thompson = page.select(results, "from the cosine", "Thompson")
    gap = thompson.mean() - greedy.mean()
    row = next(line for line in text.splitlines() if line.startswith("| Thompson |"))
    assert f"| {gap:+.3f} ± " in row
    better, same = np.array([[0.5, 0.6], [0.4, 0.6], [0.5, 0.7]]), np.full((3, 2), 0.4)
    assert page.better_policies({"greedy": same, "UCB": better, "Thompson": same}) == ["UCB"]
    assert page.better_policies({"greedy": better, "UCB": same}) == []
    page.draw(results, tmp_path)
    assert (tmp_path / "exploration.png").stat().st_size > 10_000


def test_all_policies_see_the_same_queries_and_the_first_list_of_greedy_is_the_cosine(toy):
    split = experiment.split_of("", 0)
    first = experiment.compute("from the cosine", "greedy", 1, 1)["rewards"][0]
    rows = np.random.default_rng([experiment.SEED, 1]).permutation(len(split.y))[:121]
    scores = split.X[rows[:120]] @ split.X[rows[120]]
    best = np.argsort(-scores, kind="stable")[:10]
    assert first == np.mean(np.asarray(split.y)[rows[:120]][best] == split.y[rows[120]])

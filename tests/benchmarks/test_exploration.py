"""The stream of `make exploration`, on rows so few that it takes seconds."""

import sys
from pathlib import Path

import numpy as np
import pytest

from aromatch.paper.splits import Split
from grouped_rows import groups

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def exploration(monkeypatch):
    """The benchmark with one small collection."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import exploration

    X, y, X_test, y_test = groups(n_rows=200, n_groups=5, width=10, spread=0.4)
    split = Split(X, y.astype(str), X_test, y_test.astype(str))
    monkeypatch.setattr(exploration, "split_of", lambda name, number: split)
    monkeypatch.setattr(exploration, "N_OBJECTS", 120)
    yield exploration
    for name in ("exploration", "kept_cells"):
        sys.modules.pop(name, None)


def test_streams_are_rewarded_and_told_of(exploration, tmp_path):
    results = [
        exploration.compute(start, policy, seed, 60)
        for start in exploration.STARTS
        for policy in exploration.POLICIES
        for seed in range(3)
    ]
    assert all(len(r["rewards"]) == 60 and 0 <= min(r["rewards"]) <= max(r["rewards"]) <= 1 for r in results)
    greedy = exploration.of(results, "from the cosine", "greedy")
    assert greedy.shape == (3, 60)
    blind = exploration.of(results, "from nothing", "greedy")
    assert greedy[:, :20].mean() > blind[:, :20].mean()  # who begins from the cosine begins well
    assert blind[:, -20:].mean() > blind[:, :20].mean()  # clicks teach
    page = exploration.make_page(results, 60, {"aromatch": "0"})
    thompson = exploration.of(results, "from the cosine", "Thompson")
    gap = thompson.mean() - greedy.mean()
    row = next(line for line in page.splitlines() if line.startswith("| Thompson |"))
    assert f"| {gap:+.3f} ± " in row
    better, same = np.array([[0.5, 0.6], [0.4, 0.6], [0.5, 0.7]]), np.full((3, 2), 0.4)
    assert exploration.verdict({"greedy": same, "UCB": better, "Thompson": same}) == "Exploring pays here with UCB."
    assert exploration.verdict({"greedy": better, "UCB": same}).startswith("Exploring does not pay here")
    exploration.draw(results, tmp_path)
    assert (tmp_path / "exploration.png").stat().st_size > 10_000


def test_all_policies_see_the_same_queries_and_the_first_list_of_greedy_is_the_cosine(exploration):
    split = exploration.split_of("", 0)
    first = exploration.compute("from the cosine", "greedy", 1, 1)["rewards"][0]
    rows = np.random.default_rng([exploration.SEED, 1]).permutation(len(split.y))[:121]
    scores = split.X[rows[:120]] @ split.X[rows[120]]
    best = np.argsort(-scores, kind="stable")[:10]
    assert first == np.mean(np.asarray(split.y)[rows[:120]][best] == split.y[rows[120]])

"""Whether exploring pays: searches with clicks, one after another, ranked by what a model has learned from them so far.

    make exploration                              everything; writes docs/exploration.md and its figure
    python benchmarks/exploration.py --lists 200  shorter; writes nothing

A query of BANKING77 comes, ten objects are shown, and somebody looks at them from the top: at each place they go on
with a chance of 0.85, and click the first good one that they come to. The model, f-AROMA, learns that the click is
better than up to three results that were passed over (with a tenth of the weight) and than five objects of the whole
collection. Ranks are by the mean score (greedy), by a draw from the learned distribution (Thompson) or by the mean plus
standard deviations (UCB). The reward of a list is the share of good ones in it. It begins from the cosine, as anybody
with embeddings would, or from nothing. Finished cells are kept in docs/results/exploration.json: an interrupted run
goes on.
"""

from __future__ import annotations

import argparse
import os
import platform

if "OMP_NUM_THREADS" not in os.environ:  # must be set before NumPy loads its BLAS
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from kept_cells import computed, named
from quality_collections import RESULTS, SEED, split_of

import aromatch as am
from aromatch.paper.statistics import mean_over_splits

KEPT = RESULTS / "exploration.json"
SEEDS = range(10)
N_LISTS = 1_000
N_OBJECTS = 3_000
K = 10
GOES_ON = 0.85
N_PASSED, WEIGHT_PASSED, N_DRAWN = 3, 0.1, 5
STARTS = {"from the cosine": 4.0, "from nothing": "zero"}
POLICIES = {
    "greedy": {},
    "Thompson, width 0.03": {"explore": "thompson", "width": 0.03},
    "Thompson, width 0.1": {"explore": "thompson", "width": 0.1},
    "Thompson": {"explore": "thompson"},
    "UCB": {"explore": "ucb"},
}


def compute(start, policy, seed, n_lists):
    """Run one stream; give the reward of every list."""
    split = split_of("banking77", 0)
    generator = np.random.default_rng([SEED, seed])  # the same for all policies: queries, objects, patience
    rows = generator.permutation(len(split.y))[: N_OBJECTS + n_lists]
    objects, queries = np.split(rows, [N_OBJECTS])
    X, y, good_class = split.X, np.asarray(split.y)[objects], np.asarray(split.y)[queries]
    P = np.ascontiguousarray(X[objects])
    model = am.FactoredAROMA(1.0, init=STARTS[start]).fit_triplets(np.empty((0, 3), dtype=int), P)
    index = am.search.Index(model, P)
    rewards = []
    for row, wanted in zip(queries, good_class, strict=True):
        query = X[[row]]
        looks, drawn, noise = generator.geometric(1 - GOES_ON), generator.integers(N_OBJECTS, size=N_DRAWN), generator
        shown = index.search(query, K, **POLICIES[policy], random_state=noise.integers(2**31)).ids[0]
        is_good = y[shown] == wanted
        rewards.append(float(is_good.mean()))
        clicks = np.flatnonzero(is_good[:looks])
        if len(clicks):
            clicked, passed = shown[clicks[0]], shown[: clicks[0]][-N_PASSED:]
            drawn = drawn[drawn != clicked]
            others = np.concatenate([passed, drawn])
            triplets = np.column_stack([np.zeros_like(others), np.full_like(others, clicked), others])
            weights = np.repeat([WEIGHT_PASSED, 1.0], [len(passed), len(drawn)])
            model.partial_fit_triplets(triplets, query, P, sample_weight=weights)
    return {"start": start, "policy": policy, "seed": seed, "rewards": rewards}


def cell_name(start, policy, seed, n_lists):
    """Name a cell by its settings."""
    settings = [am.__version__, SEED, N_OBJECTS, K, GOES_ON, N_PASSED, WEIGHT_PASSED, N_DRAWN, STARTS[start]]
    settings += [start, POLICIES[policy], seed, n_lists]
    return named(*settings)


def make_page(results, n_lists, versions):
    """Write the page."""
    lines = [
        "# Does exploring pay?",
        "",
        "Written by `make exploration`; do not edit.",
        "",
        f"A stream of {n_lists:,} searches with clicks on BANKING77 embeddings ({N_OBJECTS:,} objects), which f-AROMA",
        "learns from as they come. Numbers are the mean share of good results in the lists shown, over",
        f"{len({r['seed'] for r in results})} seeds with standard errors: along the whole stream, and in its last",
        "tenth. The difference to greedy is paired over seeds. `benchmarks/exploration.py` tells how people click.",
    ]
    for start in STARTS:
        lines += [
            "",
            f"## {start.capitalize()}",
            "",
            "| ranked | whole stream | last tenth | less greedy, whole stream |",
        ]
        lines.append("|---|---:|---:|---:|")
        rewards = {policy: of(results, start, policy) for policy in POLICIES}
        for policy, found in rewards.items():
            whole, last = found.mean(axis=1), found[:, -max(1, n_lists // 10) :].mean(axis=1)
            less = "" if policy == "greedy" else str(difference(whole, rewards["greedy"].mean(axis=1)))
            lines.append(f"| {policy} | {mean_over_splits(whole)} | {mean_over_splits(last)} | {less} |")
        lines += ["", verdict(rewards)]
    lines += ["", "![Reward along the stream](results/exploration.png)", ""]
    lines.append("Measured with " + ", ".join(f"{name} {version}" for name, version in versions.items()) + ".")
    return "\n".join(lines) + "\n"


def of(results, start, policy):
    """Give the rewards of all seeds: an array of seeds and lists."""
    return np.array([r["rewards"] for r in results if (r["start"], r["policy"]) == (start, policy)])


def difference(ours, theirs):
    """Give the mean of paired differences and its standard error."""
    gaps = np.asarray(ours) - np.asarray(theirs)
    return f"{gaps.mean():+.3f} ± {gaps.std(ddof=1) / np.sqrt(len(gaps)):.3f}"


def verdict(rewards):
    """Tell whether a way to explore pays: more than twice the standard error of the difference."""
    greedy = rewards["greedy"].mean(axis=1)
    gaps = {policy: found.mean(axis=1) - greedy for policy, found in rewards.items() if policy != "greedy"}
    pays = [policy for policy, gap in gaps.items() if gap.mean() > 2 * gap.std(ddof=1) / np.sqrt(len(gap))]
    return (
        f"Exploring pays here with {' and '.join(pays)}."
        if pays
        else "Exploring does not pay here, in any of these ways."
    )


def draw(results, folder):
    """Draw the mean reward so far along the stream."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    for axis, start in zip(figure.subplots(1, len(STARTS)), STARTS, strict=True):
        for number, policy in enumerate(POLICIES):
            rewards = of(results, start, policy)
            so_far = rewards.cumsum(axis=1) / np.arange(1, rewards.shape[1] + 1)
            mean, error = so_far.mean(axis=0), so_far.std(axis=0, ddof=1) / np.sqrt(len(so_far))
            lists = np.arange(1, len(mean) + 1)
            axis.plot(lists, mean, color=f"C{number}", label=policy, linewidth=1.2)
            axis.fill_between(lists, mean - error, mean + error, color=f"C{number}", alpha=0.2, linewidth=0)
        axis.set(xlabel="lists shown", title=start)
        axis.grid(alpha=0.25, linewidth=0.5)
    figure.axes[0].set_ylabel("mean share of good results so far")
    figure.axes[0].legend(frameon=False, fontsize=8)
    figure.savefig(folder / "exploration.png", dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lists", type=int, default=N_LISTS, help="searches in a stream")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    arguments = parser.parse_args()
    cells = {
        cell_name(start, policy, seed, arguments.lists): (compute, start, policy, seed, arguments.lists)
        for start in STARTS
        for policy in POLICIES
        for seed in SEEDS
    }
    results = computed(cells, arguments.jobs, "exploration: streams", KEPT)
    versions = {"aromatch": am.__version__, "python": platform.python_version(), "numpy": np.__version__}
    page = make_page(results, arguments.lists, versions)
    print(page)
    if arguments.lists == N_LISTS:
        draw(results, RESULTS)
        (RESULTS.parent / "exploration.md").write_text(page)


if __name__ == "__main__":
    main()

"""The page and the figure of the exploration benchmark."""

from __future__ import annotations

import numpy as np

from aromatch.paper.statistics import mean_over_splits
from benchmarks.exploration.experiment import N_OBJECTS, POLICIES, STARTS


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

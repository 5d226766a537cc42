"""The page and the figures of the quality benchmark."""

from __future__ import annotations

import numpy as np

from aromatch.paper.statistics import compare, mean_over_splits
from benchmarks.quality.methods import METHODS, N_SETTINGS, N_TO_CHOOSE, RANK
from benchmarks.quality.sampling import LEARNERS, N_SPLITS, N_TRIPLETS
from benchmarks.shared.collections import COLLECTIONS

MEASURES = ("P@1", "P@10", "mAP")
# What is held against the bars and the models in torch: as it comes, with settings chosen here, and with less time.
OURS = "best projection", "MomentAROMA refined", "spectral refined", "spectral refined in 50 steps"
# What is beyond the paper.
BEYOND = "MomentAROMA", "spectral", "best"
# Linear methods that see the class of every row.
LINEAR_FROM_LABELS = "MomentAROMA of labels", "LDA", "ridge"
# What learns a triplet at a time with one setting, held against the closed form.
CLOSED_FORM = "MomentAROMA"
ALONG_A_STREAM = (
    "f-AROMA",
    "f-AROMA updated",
    "f-AROMA joint",
    "f-AROMA averaged",
    "f-AROMA two passes",
    "MomentAROMA r",
)


class Results:
    """What was found, by collection and method."""

    def __init__(self, results, times):
        self.times = {one["collection"]: one["seconds"] for one in times}
        self.cells = {}
        for result in results:
            self.cells.setdefault(result["collection"], {}).setdefault(result["method"], []).append(result)

    def methods(self, name, learns_from=("nothing", "triplets", "labels")):
        """Return the methods that were run on a collection, by what they learn from."""
        return [m.name for m in METHODS if m.learns_from in learns_from and m.name in self.cells[name]]

    def at(self, name, method):
        """Return the numbers of triplets after which a method was judged."""
        return [found["n_triplets"] for found in self.cells[name][method][0]["found"]]

    def values(self, name, method, measure, n=None):
        """Return a measure on every split; after the last triplet unless `n` says otherwise."""
        return [cell["found"][self._place(name, method, n)][measure] for cell in self.cells[name][method]]

    def seconds(self, name, method, n=None):
        """Return the seconds on the first split, None when they were not measured."""
        return self.times[name][method][self._place(name, method, n)] if name in self.times else None

    def _place(self, name, method, n):
        return -1 if n is None or self.at(name, method) == [0] else self.at(name, method).index(n)

    def mean(self, name, method, measure, n=None):
        """Return the mean of what `values` gives, with its error."""
        return mean_over_splits(self.values(name, method, measure, n))

    def compared(self, name, ours, theirs, measure, n):
        """Test one method against another, after so many triplets."""
        ratio = float(np.mean([cell["test_ratio"] for cell in self.cells[name][ours]]))
        return compare(self.values(name, ours, measure, n), self.values(name, theirs, measure, n), ratio)


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def settings_chosen(results, name, method):
    """Format what was chosen, with a star at what is smallest or largest of all that was offered."""
    offered = next(m.settings for m in METHODS if m.name == method)

    def told(key, value):
        values = sorted({setting[key] for setting in offered})
        is_end = len(values) > 2 and value in (values[0], values[-1])
        return f"{key} {value:g}{'*' if is_end else ''}"

    chosen = [cell["setting"] for cell in results.cells[name][method]]
    return "; ".join(dict.fromkeys(", ".join(told(*each) for each in setting.items()) for setting in chosen))


def verdict(mean, bar):
    return f"reached by {mean - bar:.4f}" if mean >= bar else f"missed by {bar - mean:.4f}"


def part_of(results, name):
    """Write what was found on one collection."""
    collection = COLLECTIONS[name]
    n = collection.bars_at or collection.n_triplets[-1]
    rows = []
    for method in results.methods(name):
        learns_from = next(m.learns_from for m in METHODS if m.name == method)
        told = f"{n:,} triplets" if learns_from == "triplets" else learns_from
        means = [results.mean(name, method, measure, n) for measure in MEASURES]
        seconds = results.seconds(name, method, n)
        told_seconds = "" if seconds is None else f"{seconds:.2g}" if seconds < 10 else f"{seconds:.0f}"
        rows.append([method, told, *means, told_seconds, settings_chosen(results, name, method)])
    parts = [
        f"## {collection.title}",
        table(["method", "learns from", *MEASURES, "seconds", "chosen"], rows),
    ]
    from_triplets = results.methods(name, ("triplets",))
    for measure in ("P@10", "mAP"):
        rows = [
            [method, *(results.mean(name, method, measure, at) for at in collection.n_triplets)]
            for method in from_triplets
        ]
        parts.append(table([f"{measure} after", *(f"{at:,}" for at in collection.n_triplets)], rows))
    along = [method for method in from_triplets if method in ALONG_A_STREAM]
    if along and CLOSED_FORM in from_triplets:
        told = []
        for method in along:
            gaps = (
                ", ".join(
                    f"{results.mean(name, method, m, at).mean - results.mean(name, CLOSED_FORM, m, at).mean:+.3f}"
                    for at in collection.n_triplets
                )
                for m in ("P@10", "mAP")
            )
            told.append(f"{method} {' and '.join(gaps)}")
        parts.append(
            f"Along a stream, with one r for all of it, less {CLOSED_FORM}, which chooses alpha anew for every number "
            f"of triplets, in P@10 and mAP: {'; '.join(told)}."
        )
    for ours in (method for method in OURS if method in from_triplets):
        told = []
        for measure, bar in collection.bars.items():
            found = results.mean(name, ours, measure, n)
            told.append(f"{measure} {found} (bar {bar:.2f}, {verdict(found.mean, bar)})")
        if told:
            parts.append(f"{ours}, from {n:,} triplets: {'; '.join(told)}.")
        for theirs in (method for method in from_triplets if "torch" in method):
            told = [f"{m} {results.compared(name, ours, theirs, m, n)}" for m in MEASURES]
            line = f"{ours} less {theirs}, from {n:,} triplets: {', '.join(told)}"
            if name in results.times:
                factor = results.seconds(name, theirs, n) / results.seconds(name, ours, n)
                line += f"; {theirs} takes {factor:.1f} times as long"
            parts.append(f"{line}.")
    if name in results.times:
        parts += [quickest_ahead(results, name, theirs, n) for theirs in from_triplets if "torch" in theirs]
    linear = [method for method in LINEAR_FROM_LABELS if method in results.cells[name]]
    if linear and collection.bars:
        best = [
            f"{measure} {max(results.mean(name, method, measure).mean for method in linear):.3f}"
            for measure in collection.bars
        ]
        parts.append(
            f"What a linear map can do here: {', '.join(linear)} are linear too, and see the class of every row "
            f"instead of triplets. The best of them has {', '.join(best)}."
        )
    return parts


def quickest_ahead(results, name, theirs, n):
    """Format which of ours, from these triplets or some of them, is the first to be ahead of a model in torch."""
    ahead = [
        (results.seconds(name, ours, at), ours, at)
        for ours in results.methods(name, ("triplets",))
        for at in results.at(name, ours)
        if ours.startswith(BEYOND) and at <= n
        if all(results.mean(name, ours, m, at).mean >= results.mean(name, theirs, m, n).mean for m in MEASURES)
    ]
    if not ahead:
        return f"None is ahead of {theirs} from {n:,} triplets in all three measures."
    seconds, ours, at = min(ahead)
    return (
        f"The quickest that is ahead of {theirs} from {n:,} triplets in all three measures is {ours} from {at:,} of "
        f"them, which takes 1/{results.seconds(name, theirs, n) / seconds:.1f} of its seconds."
    )


def summary_of(results):
    """Write the main lines of all collections, precision at 10 and mAP, side by side."""
    shown = ["cosine", "f-AROMA", "MomentAROMA", *OURS, *(m.name for m in METHODS if "torch" in m.name)]
    shown += ["class probabilities"]
    rows = []
    for method in shown:
        row = [method]
        for name in results.cells:
            n = COLLECTIONS[name].n_triplets[-1]
            has = method in results.cells[name]
            row.append(
                " / ".join(f"{results.mean(name, method, m, n).mean:.3f}" for m in ("P@10", "mAP")) if has else ""
            )
        rows.append(row)
    heads = [f"{COLLECTIONS[name].title}, {COLLECTIONS[name].n_triplets[-1]:,}" for name in results.cells]
    return ["## In short", "P@10 / mAP from the most triplets.", table(["method", *heads], rows)]


def samplers_of(results):
    """Write which triplets are best to learn from."""
    parts = ["## Which triplets to draw"]
    parts.append(
        f"Precision at 10 on the validation part of {N_SPLITS} splits, from {N_TRIPLETS:,} triplets, for the best "
        "setting of each learner on that very part: compare within a column. Ranks are among the objects of other "
        "classes, by the cosine to the query."
    )
    for name in dict.fromkeys(result["collection"] for result in results):
        here = [result for result in results if result["collection"] == name]
        rows = []
        for sampler in dict.fromkeys(result["sampler"] for result in here):
            found = [result["found"] for result in here if result["sampler"] == sampler]
            rows.append([sampler, *(mean_over_splits([one[learner] for one in found]) for learner in LEARNERS)])
        parts.append(table([COLLECTIONS[name].title, *LEARNERS], rows))
    return parts


PREFACE = f"""\
# Quality: how well rankings get from triplets

Written by `make quality`; do not edit.

Means over five splits with their standard errors, which are too small by what the training parts have in common;
differences are tested by the corrected resampled t-test, paired over the splits, which allows for that (Nadeau and
Bengio 2003), each on its own, however many there are.

Every method chooses among at most {N_SETTINGS} settings on a validation part of the training part, by precision at 10
from {N_TO_CHOOSE:,} triplets; `chosen` lists what it chose on one split or another, and a star marks the first and the
last that were offered. Learners from triplets see no labels; but the terms of the two collections of texts are chosen
by what they tell of the classes of the training part, as in the paper, for all methods alike. Those that learn from
labels are there to compare with: they see the class of every row. Seconds are of the first split, until the model can
score, on one thread with nothing beside it.

`MomentAROMA` chooses its alpha by itself, `MomentAROMA r` has `alpha=r` with `alpha_schedule="inverse"` instead,
`denoised` is `MomentAROMA("auto", denoise=True)` and `projected` its `project()`, with rows divided by a power of their
norm. `refined` is the moment method of `TripletEmbedding` with the temperature and the number of steps chosen here,
`in 50 steps` with the temperature alone, and `refined by default` with its own choice. `spectral` is the spectral
method before refinement, and its `refined` the same after it; without components above the noise level it is the
projection of `MomentAROMA`. `best projection` is `TripletEmbedding("linear")`, which has no settings. The {RANK}
components, the power 0.7 and the constants of the refinement were found on validation parts of these collections and on
synthetic ones.

Models in torch map rows to {RANK} numbers too: two linear towers or one for both sides, with a softmax over the objects
of a batch or a margin.

![Precision at 10 against triplets](results/quality_triplets.png)

![Precision at 10 against the time to learn](results/quality_time.png)"""


def make_page(results, sampling, versions):
    parts = [PREFACE, *summary_of(results)]
    for name in results.cells:
        parts += part_of(results, name)
    if sampling:
        parts += samplers_of(sampling)
    parts.append("Measured with " + ", ".join(f"{what} {version}" for what, version in versions.items()) + ".")
    return "\n\n".join(parts) + "\n"


STYLES = {
    "OASIS": ("#D55E00", "--", "^"),
    "d-AROMA": ("#0072B2", "-", "s"),
    "f-AROMA": ("#000000", "-", "o"),
    "MomentAROMA": ("#009E73", "-", "v"),
    "MomentAROMA projected": ("#009E73", "--", "P"),
    "MomentAROMA refined": ("#009E73", "-.", "x"),
    "spectral": ("#CC79A7", "--", "D"),
    "spectral refined in 50 steps": ("#CC79A7", ":", "h"),
    "best projection": ("#CC79A7", "-", "*"),
    "two towers (torch)": ("#E69F00", "-.", "X"),
    "one tower (torch)": ("#D55E00", "-.", "p"),
    "triplet margin (torch)": ("#56B4E9", "-.", "d"),
}


def draw(results, folder):
    """Plot precision at 10 against triplets and against time, a panel for each collection."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullLocator

    for what, label in (("triplets", "triplets"), ("time", "seconds to learn")):
        names = list(results.cells)
        figure = Figure(figsize=(3.6 * len(names) + 1.9, 3.6), layout="constrained")
        FigureCanvasAgg(figure)
        for axis, name in zip(np.atleast_1d(figure.subplots(1, len(names))), names, strict=True):
            for method in (m for m in results.methods(name, ("triplets",)) if m in STYLES):
                at = COLLECTIONS[name].n_triplets
                means = [results.mean(name, method, "P@10", n) for n in at]
                x = at if what == "triplets" else [results.seconds(name, method, n) for n in at]
                colour, dashes, marker = STYLES[method]
                y, error = np.array([m.mean for m in means]), np.array([m.error for m in means])
                axis.plot(
                    x, y, color=colour, linestyle=dashes, marker=marker, markersize=4, label=method, linewidth=1.2
                )
                axis.fill_between(x, y - error, y + error, color=colour, alpha=0.15, linewidth=0)
            for method, grey in (("class probabilities", ":"), ("cosine", (0, (1, 4)))):
                if method in results.cells[name]:
                    level = results.mean(name, method, "P@10").mean
                    axis.axhline(level, color="#777777", linestyle=grey, linewidth=1, label=f"{method} (no triplets)")
            axis.set(xscale="log", xlabel=label, title=COLLECTIONS[name].title)
            axis.xaxis.set_major_locator(
                LogLocator(subs=(1, 2, 5) if axis.get_xlim()[1] < 40 * axis.get_xlim()[0] else (1,))
            )
            axis.xaxis.set_major_formatter("{x:,g}")
            axis.xaxis.set_minor_locator(NullLocator())
            axis.title.set_fontsize(9)
            axis.grid(alpha=0.25, linewidth=0.5)
        figure.axes[0].set_ylabel("precision at 10")
        shown = {}
        for axis in figure.axes:
            shown |= dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
        order = sorted(shown, key=lambda method: list(STYLES).index(method) if method in STYLES else len(STYLES))
        handles = [shown[method] for method in order]
        figure.legend(handles, order, loc="outside right center", frameon=False, fontsize=8)
        figure.savefig(folder / f"quality_{what}.png", dpi=150)

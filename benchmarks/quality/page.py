"""The page and the figures of the quality benchmark."""

from __future__ import annotations

import numpy as np

from aromatch.paper.statistics import compare, mean_over_splits
from benchmarks.quality.methods import METHODS, N_COMPONENTS, N_SETTINGS, N_TO_CHOOSE
from benchmarks.quality.sampling import LEARNERS, N_SPLITS, N_TRIPLETS
from benchmarks.shared import report
from benchmarks.shared.collections import COLLECTIONS

MEASURES = ("P@1", "P@10", "mAP")
# The method that is compared with the targets and with the models in torch.
OURS = "TripletEmbedding"
# Methods that are not in the paper, by the beginnings of their names.
BEYOND = "MomentAROMA", "TripletEmbedding"
# Linear methods that see the class of every row.
LINEAR_FROM_LABELS = "MomentAROMA (labels)", "LDA", "ridge"
# Methods with one setting for all numbers of triplets, compared with MomentAROMA, which chooses alpha for each.
CLOSED_FORM = "MomentAROMA"
ONE_SETTING = (
    "f-AROMA",
    "f-AROMA (updated mean)",
    "f-AROMA (joint covariance)",
    "f-AROMA (averaged)",
    "f-AROMA (two passes)",
    "MomentAROMA (inverse schedule)",
)


class Results:
    """Measures and training times by collection and method."""

    def __init__(self, results, times):
        self.times = {one["collection"]: one["seconds"] for one in times}
        self.cells = {}
        for result in results:
            self.cells.setdefault(result["collection"], {}).setdefault(result["method"], []).append(result)

    def methods(self, name, trained_on=("nothing", "triplets", "labels")):
        """Return the names of the methods that were run on a collection."""
        return [m.name for m in METHODS if m.trained_on in trained_on and m.name in self.cells[name]]

    def at(self, name, method):
        """Return the numbers of triplets that a method was trained on."""
        return [found["n_triplets"] for found in self.cells[name][method][0]["found"]]

    def values(self, name, method, measure, n=None):
        """Return a measure on every split, trained on `n` triplets, by default on all."""
        return [cell["found"][self._index(name, method, n)][measure] for cell in self.cells[name][method]]

    def seconds(self, name, method, n=None):
        """Return the training time on the first split, None if it was not measured."""
        return self.times[name][method][self._index(name, method, n)] if name in self.times else None

    def _index(self, name, method, n):
        return -1 if n is None or self.at(name, method) == [0] else self.at(name, method).index(n)

    def mean(self, name, method, measure, n=None):
        """Return the mean over the splits with its standard error."""
        return mean_over_splits(self.values(name, method, measure, n))

    def compared(self, name, ours, theirs, measure, n):
        """Return the paired test of one method against another, trained on `n` triplets."""
        ratio = float(np.mean([cell["test_ratio"] for cell in self.cells[name][ours]]))
        return compare(self.values(name, ours, measure, n), self.values(name, theirs, measure, n), ratio)


def table(heads, rows):
    return "\n".join(report.table(heads, rows)).strip()


def settings_chosen(results, name, method):
    """Format the chosen settings, with a star at the smallest and the largest of the values to choose from."""
    offered = next(m.settings for m in METHODS if m.name == method)

    def formatted(key, value):
        values = sorted({setting[key] for setting in offered})
        is_end = len(values) > 2 and value in (values[0], values[-1])
        return f"{key} {value:g}{'*' if is_end else ''}"

    chosen = [cell["setting"] for cell in results.cells[name][method]]
    return "; ".join(dict.fromkeys(", ".join(formatted(*each) for each in setting.items()) for setting in chosen))


def verdict(mean, target):
    return f"reached by {mean - target:.4f}" if mean >= target else f"missed by {target - mean:.4f}"


def section(results, name):
    """Return the parts of the page about one collection."""
    collection = COLLECTIONS[name]
    n = collection.targets_at or collection.n_triplets[-1]
    rows = []
    for method in results.methods(name):
        trained_on = next(m.trained_on for m in METHODS if m.name == method)
        supervision = f"{n:,} triplets" if trained_on == "triplets" else trained_on
        means = [results.mean(name, method, measure, n) for measure in MEASURES]
        seconds = results.seconds(name, method, n)
        shown = "" if seconds is None else f"{seconds:.2g}" if seconds < 10 else f"{seconds:.0f}"
        rows.append([method, supervision, *means, shown, settings_chosen(results, name, method)])
    parts = [f"## {collection.title}", table(["method", "trained on", *MEASURES, "seconds", "chosen"], rows)]
    from_triplets = results.methods(name, ("triplets",))
    for measure in ("P@10", "mAP"):
        rows = [
            [method, *(results.mean(name, method, measure, at) for at in collection.n_triplets)]
            for method in from_triplets
        ]
        parts.append(table([f"{measure}, by triplets", *(f"{at:,}" for at in collection.n_triplets)], rows))
    one_setting = [method for method in from_triplets if method in ONE_SETTING]
    if one_setting and CLOSED_FORM in from_triplets:
        gaps = [
            [
                method,
                *(
                    f"{results.mean(name, method, m, at).mean - results.mean(name, CLOSED_FORM, m, at).mean:+.3f}"
                    for m in ("P@10", "mAP")
                    for at in collection.n_triplets
                ),
            ]
            for method in one_setting
        ]
        parts.append(
            f"Difference to {CLOSED_FORM}, which chooses alpha for each number of triplets; the other methods have one "
            "setting for all:"
        )
        heads = [f"{m}, {at:,}" for m in ("P@10", "mAP") for at in collection.n_triplets]
        parts.append(table(["method", *heads], gaps))
    if OURS in from_triplets:
        parts += comparisons(results, name, n)
    linear = [method for method in LINEAR_FROM_LABELS if method in results.cells[name]]
    if linear and collection.targets:
        best = [
            f"{measure} {max(results.mean(name, method, measure).mean for method in linear):.3f}"
            for measure in collection.targets
        ]
        parts.append(
            f"{', '.join(linear)} are linear maps trained on the class of every row. The best values among them are "
            f"{', '.join(best)}."
        )
    return parts


def comparisons(results, name, n):
    """Return paragraphs that compare our method with the targets and with the models in torch."""
    parts, found = [], []
    for measure, target in COLLECTIONS[name].targets.items():
        mean = results.mean(name, OURS, measure, n)
        found.append(f"{measure} {mean} (target {target:.2f}, {verdict(mean.mean, target)})")
    if found:
        parts.append(f"{OURS}, {n:,} triplets: {'; '.join(found)}.")
    rivals = [method for method in results.methods(name, ("triplets",)) if "torch" in method]
    for rival in rivals:
        found = [f"{m} {results.compared(name, OURS, rival, m, n)}" for m in MEASURES]
        line = f"{OURS} minus {rival}, {n:,} triplets: {', '.join(found)}"
        if name in results.times:
            ratio = results.seconds(name, rival, n) / results.seconds(name, OURS, n)
            line += f"; {rival} takes {ratio:.1f} times as long"
        parts.append(f"{line}.")
    return parts + [fastest_ahead(results, name, rival, n) for rival in rivals if name in results.times]


def fastest_ahead(results, name, rival, n):
    """Return a sentence about the fastest method that has higher means than a model in torch with n triplets."""
    ahead = [
        (results.seconds(name, ours, at), ours, at)
        for ours in results.methods(name, ("triplets",))
        for at in results.at(name, ours)
        if ours.startswith(BEYOND) and at <= n
        if all(results.mean(name, ours, m, at).mean >= results.mean(name, rival, m, n).mean for m in MEASURES)
    ]
    if not ahead:
        return f"No method has higher means than {rival} with {n:,} triplets in all three measures."
    seconds, ours, at = min(ahead)
    return (
        f"The fastest method with higher means than {rival} with {n:,} triplets in all three measures is {ours} with "
        f"{at:,} triplets; it takes 1/{results.seconds(name, rival, n) / seconds:.1f} of the time."
    )


def summary_of(results):
    """Return the summary: P@10 and mAP of the main methods on all collections."""
    shown = ["cosine", "f-AROMA", "MomentAROMA", OURS, *(m.name for m in METHODS if "torch" in m.name)]
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
    return ["## Summary", "P@10 / mAP with the largest number of triplets.", table(["method", *heads], rows)]


def samplers_of(results):
    """Return the section about sampling strategies."""
    parts = [
        "## Sampling strategies",
        report.paragraph(
            f"Precision at 10 on the validation rows of {N_SPLITS} splits, {N_TRIPLETS:,} triplets. Each learner has",
            "the setting that is best on these same rows, so only values within a column are comparable. Ranks of",
            "negatives are among the objects of other classes, by cosine to the query.",
        ),
    ]
    for name in dict.fromkeys(result["collection"] for result in results):
        here = [result for result in results if result["collection"] == name]
        rows = []
        for sampler in dict.fromkeys(result["sampler"] for result in here):
            found = [result["found"] for result in here if result["sampler"] == sampler]
            rows.append([sampler, *(mean_over_splits([one[learner] for one in found]) for learner in LEARNERS)])
        parts.append(table([COLLECTIONS[name].title, *LEARNERS], rows))
    return parts


PREFACE = f"""\
# Ranking quality

Generated by `make quality`; do not edit. `benchmarks/quality/experiment.py` describes the protocol.

Values are means over five splits with standard errors. The errors are too small, because the training parts overlap;
differences are tested by the corrected resampled t-test, which accounts for that (Nadeau and Bengio 2003), paired over
the splits and without correction for multiple comparisons.

Every method chooses among at most {N_SETTINGS} settings by precision at 10 on validation rows, with {N_TO_CHOOSE:,}
triplets. `chosen` lists the choices of all splits; a star marks the smallest and the largest value to choose from.
Methods trained on triplets see no labels, except that the terms of the two text collections are selected by their
information about the classes of the training part, as in the paper, for all methods. Methods trained on labels are a
reference: they see the class of every row. Seconds are the training time on the first split, until the model can score,
on one thread of an otherwise idle machine.

- `TripletEmbedding` is `am.TripletEmbedding("linear")`; `(moment)` has `method="moment"`. Neither has settings.
- `MomentAROMA` has `alpha="auto"`; `(inverse schedule)` has a tuned alpha and `alpha_schedule="inverse"`; `(denoised)`
  has `denoise=True`; `(projected)` is `project()` of that, with rows divided by a power of their norm; `(labels)` is
  the same projection of a model trained on labels.
- `f-AROMA (updated mean)` has `mean_update="updated"`; `(joint covariance)` has `covariance_update="joint"`;
  `(averaged)` scores with the mean of W over the second half of the triplets; `(two passes)` sees every triplet twice.
- `two towers` and `one tower` are linear maps trained in torch with a softmax over the objects of a batch, separate
  maps of queries and objects or one for both; `triplet margin` is one map trained with a hinge loss.
- `class probabilities` is `am.HIER`: inner products of the class probabilities of a logistic regression.

`TripletEmbedding` and the models in torch have {N_COMPONENTS} dimensions. The constants of `TripletEmbedding` were
found on validation parts of these collections and on synthetic ones.

![Precision at 10 against triplets](results/quality_triplets.png)

![Precision at 10 against training time](results/quality_time.png)"""


def make_page(results, sampling, versions):
    """Return the page."""
    parts = [PREFACE, *summary_of(results)]
    for name in results.cells:
        parts += section(results, name)
    if sampling:
        parts += samplers_of(sampling)
    return "\n\n".join([*parts, report.footer(versions)]) + "\n"


STYLES = {
    "OASIS": ("#D55E00", "--", "^"),
    "d-AROMA": ("#0072B2", "-", "s"),
    "f-AROMA": ("#000000", "-", "o"),
    "MomentAROMA": ("#009E73", "-", "v"),
    "MomentAROMA (projected)": ("#009E73", "--", "P"),
    "TripletEmbedding": ("#CC79A7", "-", "*"),
    "two towers (torch)": ("#E69F00", "-.", "X"),
    "one tower (torch)": ("#D55E00", "-.", "p"),
    "triplet margin (torch)": ("#56B4E9", "-.", "d"),
}


def draw(results, folder):
    """Plot precision at 10 against triplets and against training time, one panel per collection."""
    from matplotlib.ticker import LogLocator, NullLocator

    names = list(results.cells)
    for what, label in (("triplets", "triplets"), ("time", "training time in seconds")):
        figure, axes = report.panels(len(names), width=4.1)
        for axis, name in zip(axes, names, strict=True):
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
        figure.axes[0].set_ylabel("precision at 10")
        shown = {}
        for axis in figure.axes:
            shown |= dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
        order = sorted(shown, key=lambda method: list(STYLES).index(method) if method in STYLES else len(STYLES))
        handles = [shown[method] for method in order]
        figure.legend(handles, order, loc="outside right center", frameon=False, fontsize=8)
        figure.savefig(folder / f"quality_{what}.png", dpi=150)

"""How well rankings get from triplets, against the strongest alternatives, all tuned alike.

    make quality                                        everything; writes docs/quality.md and its figures
    python benchmarks/quality.py --only banking77       collections whose name holds "banking77"; writes nothing
    python benchmarks/quality.py --methods cosine,LDA   some methods only; writes nothing

On five splits of each collection every method chooses among at most six settings on a validation part of the training
part, by precision at 10 from 50,000 triplets. With what it chose it learns the whole training part, from more and more
triplets, and is judged on the test part. Each runs on one thread, two or more side by side. Finished cells are kept in
docs/results/kept, so that an interrupted run goes on. Models in torch need `pip install 'aromatch[quality]'`, and are
left out without it. Last, ways to draw triplets are tried on validation parts.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import platform
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

if "OMP_NUM_THREADS" not in os.environ:  # must be set before NumPy loads its BLAS
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import quality_methods
import quality_sampling
from quality_methods import METHODS, N_SETTINGS, RANK
from quality_sampling import LEARNERS, N_TRIPLETS, SAMPLERS, learners

import aromatch as am
from aromatch._progress import progress_bar
from aromatch.datasets import data_folder
from aromatch.evaluation import evaluate_retrieval
from aromatch.experiments.methods import draw_triplets
from aromatch.experiments.spec import read_spec
from aromatch.experiments.splits import Split, make_split
from aromatch.experiments.statistics import compare, mean_over_splits

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs"
KEPT = DOCS / "results" / "kept"
SEED = 0
N_SPLITS = 5
VALIDATION_SHARE = 0.2
N_TO_CHOOSE = 50_000
N_SPLITS_OF_SAMPLING = 3
MEASURES = ("P@1", "P@10", "mAP")
# What is held against the bars, and with less time against the models in torch.
OURS, QUICK = "MomentAROMA refined", "MomentAROMA refined in 50 steps"


@dataclass(frozen=True)
class Collection:
    """Rows with classes, and how many triplets are drawn from them."""

    title: str
    n_triplets: tuple[int, ...]
    bars: dict[str, float]
    """What is asked for from the triplets of `bars_at`."""
    bars_at: int = 0


COLLECTIONS = {
    "20newsgroups": Collection("20 Newsgroups", (10_000, 50_000, 500_000), {"P@10": 0.80, "mAP": 0.70}, 500_000),
    "banking77": Collection(
        "BANKING77, sentence embeddings", (10_000, 20_000, 50_000), {"P@1": 0.90, "P@10": 0.86, "mAP": 0.76}, 50_000
    ),
    "caltech101_50": Collection("Caltech-101, 50 classes", (10_000, 20_000, 50_000), {}),
    "stdlib": Collection("Docstrings of the standard library", (10_000, 20_000, 50_000), {}),
}


def split_of(name, number):
    """Give the vectors of a split; those of the paper's collections are the paper's."""
    if name == "banking77":
        return _banking77(number)
    spec = read_spec("fig3") if name == "caltech101_50" else read_spec("fig4", task=name)
    return make_split(spec, number, "", KEPT / "vectors")


def _banking77(number):
    with np.load(data_folder() / "banking77" / "minilm_f16.npz", allow_pickle=False) as arrays:
        X, y, is_test = arrays["emb"].astype(np.float64), arrays["category"].astype(str), arrays["split"] == "test"
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    if number > 0:  # split 0 is the official one, the others are of its size
        is_test = np.random.default_rng([SEED, number]).permutation(is_test)
    return Split(X[~is_test], y[~is_test], X[is_test], y[is_test])


# -- one cell ---------------------------------------------------------------------------------------------------------


def judged(model, split):
    report = evaluate_retrieval(model, split.X_test, split.y_test)
    return dict(zip(MEASURES, (report.precision[1], report.precision[10], report.mean_average_precision), strict=True))


def learned(method, split, triplets, setting):
    """Learn, and give the model and the seconds until it could score."""
    begun = perf_counter()
    model = method.learn(split.X, split.y, triplets, **setting)
    model.similarity(split.X_test[:1], split.X_test[:1])  # what is computed when it is first read counts too
    return model, perf_counter() - begun


def compute(name, number, method_name):
    """Choose a setting on the validation part, learn with it and judge on the test part."""
    method = next(method for method in METHODS if method.name == method_name)
    split = split_of(name, number)
    inside = split.inside(VALIDATION_SHARE, SEED)
    tried = []
    if len(method.settings) > 1:
        triplets = draw_triplets(inside.y, N_TO_CHOOSE, SEED, number)
        for setting in method.settings:
            model, seconds = learned(method, inside, triplets, setting)
            tried.append({"setting": setting, "seconds": seconds, **judged(model, inside)})
    best = max(tried, key=lambda one: one["P@10"])["setting"] if tried else method.settings[0]
    most = COLLECTIONS[name].n_triplets[-1]
    triplets = draw_triplets(split.y, most, SEED, number)
    found = []
    for n in COLLECTIONS[name].n_triplets if method.learns_from == "triplets" else (0,):
        model, seconds = learned(method, split, triplets[:n], best)
        found.append({"n_triplets": n, "seconds": seconds, **judged(model, split)})
    return {
        "collection": name,
        "split": number,
        "method": method_name,
        "setting": best,
        "tried": tried,
        "test_ratio": split.test_ratio,
        "found": found,
    }


def compute_sampling(name, number, sampler):
    """Judge the triplets of a sampler on a validation part: the best precision at 10 of each learner."""
    inside = split_of(name, number).inside(VALIDATION_SHARE, SEED)
    triplets = SAMPLERS[sampler](inside.X, inside.y, np.random.default_rng([SEED, number]))
    found = {}
    for method in learners():
        models = (method.learn(inside.X, inside.y, triplets, **setting) for setting in method.settings)
        found[method.name] = max(judged(model, inside)["P@10"] for model in models)
    return {"collection": name, "split": number, "sampler": sampler, "found": found}


def cell_path(name, number, method):
    """Name a cell by its settings; when code changes, the folder of kept cells has to be emptied by hand."""
    of_methods = [quality_methods.RANK, quality_methods.BATCH, quality_methods.N_AVERAGED]
    settings = [am.__version__, SEED, N_TO_CHOOSE, VALIDATION_SHARE, COLLECTIONS[name].n_triplets, name, number]
    return kept_as([*settings, *of_methods, method.name, method.settings])


def sampling_path(name, number, sampler):
    """Name a cell of the comparison of samplers."""
    tried = [[method.name, method.settings] for method in learners()]
    return kept_as([am.__version__, SEED, VALIDATION_SHARE, N_TRIPLETS, name, number, sampler, tried])


def kept_as(settings):
    return KEPT / "quality" / f"{hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:20]}.json"


def work(cell, path):
    """Compute a cell, which begins with the function that does."""
    function, *arguments = cell
    result = function(*arguments)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}.part")
    unfinished.write_text(json.dumps(result))
    unfinished.replace(path)


def run(collections, methods, samplers, n_jobs):
    """Compute all cells that are not kept; give those of the methods and those of the samplers."""
    cells = {
        cell_path(name, number, method): (compute, name, number, method.name)
        for name in collections
        for number in range(N_SPLITS)
        for method in methods
        if name in method.only or not method.only
    }
    cells |= {
        sampling_path(name, number, sampler): (compute_sampling, name, number, sampler)
        for name in collections
        if name in quality_sampling.COLLECTIONS
        for number in range(N_SPLITS_OF_SAMPLING)
        for sampler in samplers
    }
    missing = [(cell, path) for path, cell in cells.items() if not path.exists()]
    with (
        ProcessPoolExecutor(n_jobs, mp_context=get_context("spawn")) as pool,
        progress_bar("quality: cells", len(missing), enabled=True) as advance,
    ):
        for done in as_completed([pool.submit(work, *each) for each in missing]):
            done.result()
            advance(1)
    results = [json.loads(path.read_text()) for path in cells]
    return [r for r in results if "method" in r], [r for r in results if "sampler" in r]


# -- the page ---------------------------------------------------------------------------------------------------------


class Results:
    """What was found, by collection and method."""

    def __init__(self, results):
        self.cells = {}
        for result in results:
            self.cells.setdefault(result["collection"], {}).setdefault(result["method"], []).append(result)

    def methods(self, name, learns_from=("nothing", "triplets", "labels")):
        """Give the methods that were run on a collection, by what they learn from."""
        return [m.name for m in METHODS if m.learns_from in learns_from and m.name in self.cells[name]]

    def at(self, name, method):
        """Give the numbers of triplets after which a method was judged."""
        return [found["n_triplets"] for found in self.cells[name][method][0]["found"]]

    def values(self, name, method, measure, n=None):
        """Give a measure, or the seconds, on every split; after the last triplet unless `n` says otherwise."""
        place = -1 if n is None or self.at(name, method) == [0] else self.at(name, method).index(n)
        return [cell["found"][place][measure] for cell in self.cells[name][method]]

    def mean(self, name, method, measure, n=None):
        """Give the mean of what `values` gives, with its error."""
        return mean_over_splits(self.values(name, method, measure, n))

    def compared(self, name, ours, theirs, measure, n):
        """Test one method against another, after so many triplets."""
        ratio = float(np.mean([cell["test_ratio"] for cell in self.cells[name][ours]]))
        return compare(self.values(name, ours, measure, n), self.values(name, theirs, measure, n), ratio)


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def settings_chosen(results, name, method):
    chosen = [cell["setting"] for cell in results.cells[name][method]]
    told = [", ".join(f"{key} {value:g}" for key, value in setting.items()) for setting in chosen]
    return "; ".join(dict.fromkeys(told))


def part_of(results, name):
    """Write what was found on one collection."""
    collection = COLLECTIONS[name]
    n = collection.bars_at or collection.n_triplets[-1]
    rows = []
    for method in results.methods(name):
        learns_from = next(m.learns_from for m in METHODS if m.name == method)
        told = f"{n:,} triplets" if learns_from == "triplets" else learns_from
        means = [results.mean(name, method, measure, n) for measure in MEASURES]
        seconds = results.mean(name, method, "seconds", n).mean
        rows.append([method, told, *means, f"{seconds:.1f}", settings_chosen(results, name, method)])
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
    closed, stream = "MomentAROMA", "MomentAROMA r"
    if {closed, stream} <= {*from_triplets}:
        gaps = [
            results.mean(name, closed, "P@10", at).mean - results.mean(name, stream, "P@10", at).mean
            for at in collection.n_triplets
        ]
        parts.append(
            f"Along the stream: {stream}, with one r for all of it, less {closed}, which chooses lam anew for every "
            f"number of triplets, in precision at 10: {', '.join(f'{-gap:+.3f}' for gap in gaps)}."
        )
    for ours in (method for method in (OURS, QUICK) if method in from_triplets):
        told = []
        for measure, bar in collection.bars.items():
            found = results.mean(name, ours, measure, n)
            told.append(f"{measure} {found} (bar {bar:.2f}, {'reached' if found.mean >= bar else 'missed'})")
        if told:
            parts.append(f"{ours}, from {n:,} triplets: {'; '.join(told)}.")
        for theirs in (method for method in from_triplets if "torch" in method):
            factor = results.mean(name, theirs, "seconds", n).mean / results.mean(name, ours, "seconds", n).mean
            told = [f"{m} {results.compared(name, ours, theirs, m, n)}" for m in MEASURES]
            parts.append(
                f"{ours} less {theirs}, from {n:,} triplets: {', '.join(told)}; {theirs} takes {factor:.1f} times as "
                "long."
            )
    return parts


def summary_of(results):
    """Write the main lines of all collections, precision at 10 and mAP, side by side."""
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
    return ["## In short", "P@10 / mAP from the most triplets.", table(["method", *heads], rows)]


def samplers_of(results):
    """Write which triplets are best to learn from."""
    parts = ["## Which triplets to draw"]
    parts.append(
        f"Precision at 10 on the validation part of {N_SPLITS_OF_SAMPLING} splits, from {N_TRIPLETS:,} triplets, for "
        "the best setting of each learner. Ranks are among the objects of other classes, by the cosine to the query."
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
# Quality: from triplets to the quality of labels

Written by `make quality`; do not edit. Means over five splits with their standard errors; differences are tested by the
corrected resampled t-test, paired over the splits (Nadeau and Bengio 2003).

Every method chooses among at most {N_SETTINGS} settings on a validation part of the training part, by precision at 10
from {N_TO_CHOOSE:,} triplets; `chosen` lists what it chose on one split or another. Methods that learn from triplets
see nothing else. Those that learn from labels are there to compare with: they see the class of every row. Seconds are
of one thread, until the model can score; two processes share the cores. `MomentAROMA` chooses its lam by itself,
`MomentAROMA r` has `r=...` instead, `denoised` is `MomentAROMA("auto", denoise=True)` and `projected` its
`project(normalize=...)`. `refined` is `project(rank={RANK}, normalize=0.7).refine(triplets, X, ...)` of the same with
what was chosen here, `in 50 steps` with the temperature alone, and `refined by default` with what it chooses by itself.

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
    "MomentAROMA denoised": ("#009E73", "--", "D"),
    "MomentAROMA projected": ("#CC79A7", "--", "P"),
    "MomentAROMA refined in 50 steps": ("#CC79A7", ":", "h"),
    "MomentAROMA refined": ("#CC79A7", "-", "*"),
    "two towers (torch)": ("#E69F00", "-.", "X"),
    "triplet margin (torch)": ("#56B4E9", "-.", "d"),
}


def draw(results, folder):
    """Draw precision at 10 against triplets and against time, a panel for each collection."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    for what, label in (("triplets", "triplets"), ("time", "seconds to learn")):
        names = list(results.cells)
        figure = Figure(figsize=(3.6 * len(names) + 1.9, 3.6), layout="constrained")
        FigureCanvasAgg(figure)
        for axis, name in zip(np.atleast_1d(figure.subplots(1, len(names))), names, strict=True):
            for method in (m for m in results.methods(name, ("triplets",)) if m in STYLES):
                at = COLLECTIONS[name].n_triplets
                means = [results.mean(name, method, "P@10", n) for n in at]
                x = at if what == "triplets" else [results.mean(name, method, "seconds", n).mean for n in at]
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
            axis.title.set_fontsize(9)
            axis.grid(alpha=0.25, linewidth=0.5)
        figure.axes[0].set_ylabel("precision at 10")
        figure.legend(
            *figure.axes[0].get_legend_handles_labels(), loc="outside right center", frameon=False, fontsize=8
        )
        figure.savefig(folder / f"quality_{what}.png", dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="collections whose name holds this")
    parser.add_argument("--methods", default="", help="names of methods, with commas between them")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    arguments = parser.parse_args()
    has_torch = importlib.util.find_spec("torch") is not None
    wanted = [name for name in arguments.methods.split(",") if name]
    methods = [m for m in METHODS if (has_torch or "torch" not in m.name) and (not wanted or m.name in wanted)]
    collections = [name for name in COLLECTIONS if arguments.only in name]
    if not methods or not collections:
        parser.error(f"choose among {', '.join(COLLECTIONS)} and {', '.join(m.name for m in METHODS)}")
    cells, sampling = run(collections, methods, [] if wanted else SAMPLERS, arguments.jobs)
    results = Results(cells)
    versions = {"aromatch": am.__version__, "python": platform.python_version(), "numpy": np.__version__}
    if has_torch:
        import torch

        versions["torch"] = torch.__version__
    page = make_page(results, sampling, versions)
    print(page)
    if len(methods) == len(METHODS) and len(collections) == len(COLLECTIONS):
        draw(results, DOCS / "results")
        raw = {
            "versions": versions,
            "cells": cells,
            "sampling": sampling,
        }
        (DOCS / "results" / "quality.json").write_text(json.dumps(raw, indent=1) + "\n")
        (DOCS / "quality.md").write_text(page)
    elif not has_torch:
        print("Without torch nothing is written: pip install 'aromatch[quality]'", file=sys.stderr)


if __name__ == "__main__":
    main()

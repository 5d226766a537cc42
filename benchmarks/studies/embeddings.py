"""What should one learn on sentence embeddings? BANKING77: quality against triplets, time to learn, and size.

    python -m benchmarks.studies.embeddings         needs torch: pip install 'aromatch[quality]'

Rows are 384 numbers of a sentence encoder, classes are 77 intents. A test question looks for other test questions with
its intent. Learners from triplets get triplets drawn from the labels. LDA sees the labels. The query adapter is what
people with embeddings train today: a matrix on the query side, from the identity, with a softmax over all objects of a
batch (torch, Adam); objects stay as they are. Settings are chosen by mAP on a validation part, for
each number of triplets anew. Seconds are of the processor, on one thread. Size is how many numbers are kept, to score
and, by learners that go on, to go on.
"""

from __future__ import annotations

import sys
from itertools import islice
from time import process_time

import numpy as np

import aromatch as am
from aromatch.evaluation import evaluate_retrieval
from benchmarks.quality.methods import Embedded, cosine, dense, lda, moment
from benchmarks.shared.collections import split_of
from benchmarks.studies import study
from benchmarks.studies.study import SEED, chosen, compare, gathered, mean_over_splits, named, p_value, table

NAME = "embeddings"
TITLE = "Embeddings"
SPLITS = range(5)
N_TRIPLETS = (1_000, 5_000, 20_000, 50_000)
VALIDATION_SHARE = 0.2
MEASURES = ("P@1", "P@10", "mAP")
BATCH = 256


def query_adapter(X, y, triplets, temperature, steps, rate=1e-3):
    """Train a matrix that queries are multiplied with, by a softmax over the objects of a batch."""
    import torch
    from torch.nn import functional

    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(SEED)
    rows, drawn = torch.from_numpy(dense(X).astype(np.float32)), torch.from_numpy(np.asarray(triplets))
    matrix = torch.eye(X.shape[1], requires_grad=True)
    optimiser = torch.optim.Adam([matrix], lr=rate)
    batches = (batch for _ in range(steps) for batch in torch.randperm(len(drawn), generator=generator).split(BATCH))
    for batch in islice(batches, steps):
        query, good, bad = drawn[batch].T
        wanted = functional.normalize(rows[query] @ matrix, dim=1)
        loss = functional.cross_entropy(
            wanted @ torch.cat([rows[good], rows[bad]]).T / temperature, torch.arange(len(batch))
        )
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    W = matrix.detach().numpy().astype(np.float64)
    model = Embedded(lambda Q: dense(Q) @ W, dense)
    model.n_numbers = W.size
    return model


def online(learner):
    def learn(X, y, triplets, **setting):
        return learner(**setting).fit_triplets(triplets, X)

    return learn


def each(name, values):
    """Return settings of one parameter, each from the cosine and from four times the cosine."""
    return [{name: value, "init": init} for value in values for init in (1.0, 4.0)]


def best(X, y, triplets):
    return am.TripletEmbedding("linear", random_state=0).fit_triplets(triplets, X)


def sized_lda(X, y, triplets, **setting):
    model = lda(X, y, triplets, **setting)
    model.n_numbers = X.shape[1] * (len(np.unique(y)) - 1)
    return model


METHODS = {
    # what it learns from, how, and the settings to choose from
    "cosine": ("nothing", cosine, [{}]),
    "OASIS": ("triplets", online(am.OASIS), each("C", (0.1, 1.0, 10.0))),
    "d-AROMA": ("triplets", online(am.DiagonalAROMA), each("r", (0.1, 1.0, 10.0))),
    "f-AROMA": ("triplets", online(am.FactoredAROMA), each("r", (0.0001, 0.001, 0.01))),
    "MomentAROMA": ("triplets", moment, [{}]),
    "best_projection": ("triplets", best, [{}]),
    "query adapter (torch)": (
        "triplets",
        query_adapter,
        [{"temperature": t, "steps": steps} for t in (0.05, 0.1) for steps in (100, 300, 1_000, 3_000)],
    ),
    "LDA": ("labels", sized_lda, [{"shrinkage": s, "cosine": c} for s in (1e-4, 1e-3, 0.1) for c in (False, True)]),
}


def judged(model, split):
    report = evaluate_retrieval(model, split.X_test, split.y_test)
    return dict(zip(MEASURES, (report.precision[1], report.precision[10], report.mean_average_precision), strict=True))


def size(model):
    """Count the numbers that a model keeps."""
    if hasattr(model, "n_numbers"):
        return int(model.n_numbers)
    arrays = ("L_",) if hasattr(model, "L_") else ("W_", "Sigma_", "Omega_", "Lambda_")
    return int(sum(np.size(getattr(model, name)) for name in arrays if hasattr(model, name)))


def compute(method, number):
    """Choose a setting on the validation part, learn from more and more triplets, and measure on the test part."""
    learns_from, learn, settings = METHODS[method]
    split = split_of("banking77", number)
    inside = split.inside(VALIDATION_SHARE, SEED)
    triplets, to_choose = (
        am.triplets.from_labels(part.y, N_TRIPLETS[-1], random_state=number) for part in (split, inside)
    )
    at, chosen_at = {}, {}
    for n in N_TRIPLETS if learns_from == "triplets" else N_TRIPLETS[-1:]:
        setting = settings[0]
        if len(settings) > 1:
            reached = [judged(learn(inside.X, inside.y, to_choose[:n], **one), inside)["mAP"] for one in settings]
            setting = settings[int(np.argmax(reached))]
        begun = process_time()
        model = learn(split.X, split.y, triplets[:n], **setting)
        model.similarity(split.X_test[:1], split.X_test[:1])  # what is computed when it is first read counts too
        seconds = process_time() - begun
        at[str(n)] = {**judged(model, split), "seconds": seconds, "numbers": size(model)}
        chosen_at[str(n)] = setting
    return {"method": method, "split": number, "settings": chosen_at, "test_ratio": split.test_ratio, "at": at}


def cells():
    fixed = [am.__version__, SEED, N_TRIPLETS, VALIDATION_SHARE, BATCH]
    return {
        named(NAME, *fixed, method, settings, number): (compute, method, number)
        for method, (_, _, settings) in METHODS.items()
        for number in SPLITS
    }


def summary(results):
    """Return for each number of triplets and method the measures of all splits, and tests against the query adapter."""
    flat = [{"n": n, "method": r["method"], "found": found} for r in results for n, found in r["at"].items()]
    at = gathered(flat, "n", "method")
    settings = {}
    for r in results:
        settings.setdefault(r["method"], []).append(r["settings"][str(N_TRIPLETS[-1])])
    tests = {}
    rival = "query adapter (torch)"
    for n, methods in at.items():
        for name, values in methods.items():
            if name != rival and rival in methods:
                test = compare(values["mAP"], methods[rival]["mAP"], results[0]["test_ratio"])
                tests.setdefault(n, {})[name] = [test.difference, test.p]
    return {"at": dict(sorted(at.items(), key=lambda one: int(one[0]))), "settings": settings, "tests": tests}


def section(found):
    """Return the section of the page."""
    last = list(found["at"])[-1]
    full, few = found["at"][last], next(iter(found["at"]))

    def mean(name, measure="mAP", n=last):
        return float(np.mean(found["at"][n][name][measure]))

    online_ones = [name for name in ("OASIS", "d-AROMA", "f-AROMA") if name in full]
    ours = max(online_ones, key=mean)
    winner = max((name for name in full if METHODS[name][0] == "triplets"), key=mean)
    rival, extra = "query adapter (torch)", "best_projection"

    def against(name, n=last):
        difference, p = found["tests"][n][name]
        word = "not told apart" if p > 0.05 else "ahead" if difference > 0 else "behind"
        return f"{word}: {difference:+.3f}, {p_value(p)}"

    best_few = max(online_ones, key=lambda name: mean(name, n=few))
    lines = [
        f"**What should one learn on embeddings? {winner}, of all that learns from triplets:** its mAP is "
        f"{mean(winner):.3f} from {int(last):,} triplets, against {mean('cosine'):.3f} of the cosine, "
        f"{mean(rival):.3f} of a query adapter in torch and {mean('LDA'):.3f} of LDA, which sees the labels. {ours}, "
        f"the best of the online learners, has {mean(ours):.3f} ({against(ours)} against the adapter); "
        f"`best_projection` has {mean(extra):.3f} "
        f"({against(extra)}). From {int(few):,} triplets {best_few} has {mean(best_few, n=few):.3f} "
        f"({against(best_few, few)}), the adapter {mean(rival, n=few):.3f} and `best_projection` "
        f"{mean(extra, n=few):.3f} ({against(extra, few)}). {ours} takes {mean(ours, 'seconds'):.1f} s for "
        f"{int(last):,}, the adapter {mean(rival, 'seconds'):.1f} s, `best_projection` {mean(extra, 'seconds'):.1f} s.",
        "",
        f"BANKING77, from {int(last):,} triplets; five splits with standard errors. Differences in mAP are by the",
        "corrected resampled t-test. The query adapter was offered more steps, and a choice for every number of",
        "triplets, after a first run in which it did worse.",
    ]
    rows = []
    for name, values in full.items():
        test = found["tests"][last].get(name)
        rows.append(
            [
                name,
                METHODS[name][0],
                *(mean_over_splits(values[m]) for m in MEASURES),
                f"{test[0]:+.3f} ({p_value(test[1])})" if test else "",
                f"{mean(name, 'seconds'):.1f}",
                f"{mean(name, 'numbers'):,.0f}",
                chosen(found["settings"][name]),
            ]
        )
    heads = ["learner", "learns from", *MEASURES, "mAP less adapter", "seconds", "numbers kept", "chosen (splits)"]
    lines += table(heads, rows)
    lines.append("mAP from fewer triplets:")
    names = [name for name in full if METHODS[name][0] == "triplets"]
    rows = [[name, *(mean_over_splits(found["at"][n][name]["mAP"]) for n in found["at"])] for name in names]
    lines += table(["learner", *(f"{int(n):,} triplets" for n in found["at"])], rows)
    return [*lines, f"![mAP against triplets and against time](results/study_{NAME}.png)"]


def draw(found, folder):
    """Plot mAP against the number of triplets, and against the time to learn."""
    figure, (left, right) = study.panels(2, width=5.4, height=3.8)
    at = found["at"]
    last = list(at)[-1]
    for number, name in enumerate(at[last]):
        means = [mean_over_splits(at[n][name]["mAP"]) for n in at if name in at[n]]
        if METHODS[name][0] != "triplets":
            left.axhline(means[-1].mean, color=f"C{number}", linestyle="--", linewidth=1.2, label=name)
        else:
            style = {"color": f"C{number}", "fmt": "o-", "markersize": 3.5, "linewidth": 1.3, "capsize": 2}
            left.errorbar([int(n) for n in at], [m.mean for m in means], [m.error for m in means], label=name, **style)
        if name != "cosine":
            seconds = [np.mean(at[n][name]["seconds"]) for n in at if name in at[n]]
            right.plot(seconds, [m.mean for m in means], "o-", color=f"C{number}", markersize=3.5, linewidth=1.3)
    left.set(xscale="log", xlabel="triplets", ylabel="mAP")
    right.set(xscale="log", xlabel="seconds to learn", ylabel="mAP")
    figure.legend(*left.get_legend_handles_labels(), loc="outside right center", frameon=False, fontsize=8)
    figure.savefig(folder / f"study_{NAME}.png", dpi=130)


if __name__ == "__main__":
    study.main(sys.modules[__name__])

"""Which learner suits sentence embeddings? BANKING77: quality against triplets, training time and size.

    python -m benchmarks.studies.embeddings         needs torch: pip install 'aromatch[quality]'

Rows are embeddings of questions with 384 dimensions, classes are 77 intents. A test question is a query for the other
test questions with its intent. Triplets are sampled from the labels; LDA is trained on the labels. The query adapter is
the usual way to adapt embeddings: a matrix applied to queries, initialized with the identity and trained with a softmax
over the objects of a batch (torch, Adam), while the objects are unchanged. Settings are chosen by mAP on validation
rows, for each number of triplets. Seconds are processor time on one thread. Size is the number of stored parameters,
including those that only further training needs.
"""

from __future__ import annotations

import sys
from itertools import islice
from time import process_time

import numpy as np

import aromatch as am
from benchmarks.quality.experiment import evaluated
from benchmarks.quality.methods import Embedded, cosine, dense, lda, moment, triplet_embedding
from benchmarks.shared.collections import split_of
from benchmarks.shared.report import paragraph
from benchmarks.studies import study
from benchmarks.studies.study import SEED, chosen, compare, gathered, mean_over_splits, named, p_value, table

NAME = "embeddings"
TITLE = "Sentence embeddings"
SPLITS = range(5)
N_TRIPLETS = (1_000, 5_000, 20_000, 50_000)
VALIDATION_SHARE = 0.2
MEASURES = ("P@1", "P@10", "mAP")
BATCH = 256


def query_adapter(X, y, triplets, temperature, steps, rate=1e-3):
    """Train a matrix for the queries with a softmax over the objects of a batch."""
    import torch
    from torch.nn import functional

    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(SEED)
    rows, numbers = torch.from_numpy(dense(X).astype(np.float32)), torch.from_numpy(np.asarray(triplets))
    matrix = torch.eye(X.shape[1], requires_grad=True)
    optimiser = torch.optim.Adam([matrix], lr=rate)
    batches = (batch for _ in range(steps) for batch in torch.randperm(len(numbers), generator=generator).split(BATCH))
    for batch in islice(batches, steps):
        query, good, bad = numbers[batch].T
        mapped = functional.normalize(rows[query] @ matrix, dim=1)
        loss = functional.cross_entropy(
            mapped @ torch.cat([rows[good], rows[bad]]).T / temperature, torch.arange(len(batch))
        )
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    W = matrix.detach().numpy().astype(np.float64)
    model = Embedded(lambda Q: dense(Q) @ W, dense)
    model.n_parameters = W.size
    return model


def online(learner):
    def learn(X, y, triplets, **setting):
        return learner(**setting).fit_triplets(triplets, X)

    return learn


def each(name, values):
    """Return settings of one parameter, each with the identity and four times the identity as `init`."""
    return [{name: value, "init": init} for value in values for init in (1.0, 4.0)]


def sized_lda(X, y, triplets, **setting):
    model = lda(X, y, triplets, **setting)
    model.n_parameters = X.shape[1] * (len(np.unique(y)) - 1)
    return model


METHODS = {
    # supervision, training function, and the settings to choose from
    "cosine": ("nothing", cosine, [{}]),
    "OASIS": ("triplets", online(am.OASIS), each("C", (0.1, 1.0, 10.0))),
    "d-AROMA": ("triplets", online(am.DiagonalAROMA), each("r", (0.1, 1.0, 10.0))),
    "f-AROMA": ("triplets", online(am.FactoredAROMA), each("r", (0.0001, 0.001, 0.01))),
    "MomentAROMA": ("triplets", moment, [{}]),
    "TripletEmbedding": ("triplets", triplet_embedding, [{}]),
    "query adapter (torch)": (
        "triplets",
        query_adapter,
        [{"temperature": t, "steps": steps} for t in (0.05, 0.1) for steps in (100, 300, 1_000, 3_000)],
    ),
    "LDA": ("labels", sized_lda, [{"shrinkage": s, "cosine": c} for s in (1e-4, 1e-3, 0.1) for c in (False, True)]),
}


def size(model):
    """Return the number of stored parameters of a model."""
    if hasattr(model, "n_parameters"):
        return int(model.n_parameters)
    arrays = ("components_", "W_", "Sigma_", "Omega_", "Lambda_")
    return int(sum(np.size(getattr(model, name)) for name in arrays if hasattr(model, name)))


def compute(method, number):
    """For each number of triplets, choose a setting on validation rows, train, and evaluate on the test part."""
    trained_on, learn, settings = METHODS[method]
    split = split_of("banking77", number)
    inside = split.inside(VALIDATION_SHARE, SEED)
    triplets, to_choose = (
        am.triplets.from_labels(part.y, N_TRIPLETS[-1], random_state=number) for part in (split, inside)
    )
    at, chosen_at = {}, {}
    for n in N_TRIPLETS if trained_on == "triplets" else N_TRIPLETS[-1:]:
        setting = settings[0]
        if len(settings) > 1:
            reached = [evaluated(learn(inside.X, inside.y, to_choose[:n], **one), inside)["mAP"] for one in settings]
            setting = settings[int(np.argmax(reached))]
        begun = process_time()
        model = learn(split.X, split.y, triplets[:n], **setting)
        model.similarity(split.X_test[:1], split.X_test[:1])  # includes what is computed on first use
        seconds = process_time() - begun
        at[str(n)] = {**evaluated(model, split), "seconds": seconds, "n_parameters": size(model)}
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
    rival, extra = "query adapter (torch)", "TripletEmbedding"

    def against(name, n=last):
        difference, p = found["tests"][n][name]
        word = "not significant" if p > 0.05 else "better" if difference > 0 else "worse"
        return f"{word}: {difference:+.3f}, {p_value(p)}"

    best_few = max(online_ones, key=lambda name: mean(name, n=few))
    lines = [
        f"**Which learner suits sentence embeddings? {winner}, among those trained on triplets:** its mAP is "
        f"{mean(winner):.3f} with {int(last):,} triplets, against {mean('cosine'):.3f} of the cosine, "
        f"{mean(rival):.3f} of a query adapter in torch and {mean('LDA'):.3f} of LDA, which is trained on labels. "
        f"{ours}, the best online learner, has {mean(ours):.3f} ({against(ours)}, against the adapter); `{extra}` has "
        f"{mean(extra):.3f} ({against(extra)}). With {int(few):,} triplets {best_few} has "
        f"{mean(best_few, n=few):.3f} ({against(best_few, few)}), the adapter {mean(rival, n=few):.3f} and `{extra}` "
        f"{mean(extra, n=few):.3f} ({against(extra, few)}). Training with {int(last):,} triplets takes "
        f"{mean(ours, 'seconds'):.1f} s ({ours}), {mean(rival, 'seconds'):.1f} s (adapter) and "
        f"{mean(extra, 'seconds'):.1f} s (`{extra}`).",
        "",
        paragraph(
            f"BANKING77, {int(last):,} triplets; five splits with standard errors. Differences in mAP are tested by",
            "the corrected resampled t-test. After a first run, in which the query adapter was worse, it got more",
            "steps to choose from, and a choice for every number of triplets.",
        ),
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
                f"{mean(name, 'n_parameters'):,.0f}",
                chosen(found["settings"][name]),
            ]
        )
    heads = ["learner", "trained on", *MEASURES, "mAP minus adapter", "seconds", "parameters", "chosen (splits)"]
    lines += table(heads, rows)
    lines.append("mAP by number of triplets:")
    names = [name for name in full if METHODS[name][0] == "triplets"]
    rows = [[name, *(mean_over_splits(found["at"][n][name]["mAP"]) for n in found["at"])] for name in names]
    lines += table(["learner", *(f"{int(n):,} triplets" for n in found["at"])], rows)
    return [*lines, f"![mAP against triplets and against training time](results/study_{NAME}.png)"]


def draw(found, folder):
    """Plot mAP against the number of triplets, and against training time."""
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
    right.set(xscale="log", xlabel="training time in seconds", ylabel="mAP")
    figure.legend(*left.get_legend_handles_labels(), loc="outside right center", frameon=False, fontsize=8)
    figure.savefig(folder / f"study_{NAME}.png", dpi=130)


if __name__ == "__main__":
    study.main(sys.modules[__name__])

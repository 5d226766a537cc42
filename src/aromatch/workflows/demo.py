"""Learn on any machine which docstrings belong together, evaluate all methods, and show neighbours before and after.

The corpus is the standard library of the running Python. The label of a docstring is its top-level module, so similar
means of the same module. Terms and learners see the training part only. All measures are of the held-out part, where
each docstring is a query for the others of its module.
"""

from __future__ import annotations

import platform
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from .. import __version__
from .._utils.checks import check_integer
from .._utils.nearest import top_k
from .._utils.plots import check_can_plot
from ..datasets import LabelledTexts, load_stdlib
from ..evaluation.retrieval import HasSimilarity, evaluate_retrieval
from ..features import TextFeatures
from ..learners import OASIS, Cosine, DiagonalAROMA, FactoredAROMA, TripletEmbedding
from ..triplets import from_labels
from .demo_figure import N_RESULTS, draw

TRAINING_SHARE = 0.65
N_TERMS = 1000
N_TRIPLETS = 50_000
EMBEDDING = "embedding"
# C is the paper's; each r was selected from 0.01, 0.1, 1 and 10 on a part of the training part.
LEARNERS: tuple[tuple[str, type[Any], dict[str, Any]], ...] = (
    ("OASIS", OASIS, {"C": 0.1, "init": "identity"}),
    ("d-AROMA", DiagonalAROMA, {"r": 1.0, "init": "identity"}),
    ("f-AROMA", FactoredAROMA, {"r": 0.1, "init": "identity"}),
    (EMBEDDING, TripletEmbedding, {"random_state": 0}),
)
N_QUERIES = 3
N_NEIGHBOURS = 5
# Lengths of docstrings that fit on a line of a terminal and are informative.
READABLE_LENGTHS = range(30, 75)


@dataclass(frozen=True, slots=True)
class MethodResult:
    """Measures of one method on the held-out part."""

    method: str
    """Its name, as in the paper."""
    settings: dict[str, Any]
    """Parameters of the learner."""
    n_triplets: int
    """Number of training triplets."""
    n_updates: int | None
    """Number of triplets that changed the model; None for learners that do not count them."""
    seconds: float
    """Training time."""
    precision_at_1: float
    """Share of queries whose nearest neighbour is of their module."""
    precision_at_10: float
    """Mean share of the ten nearest neighbours that are of the query's module."""
    mean_average_precision: float
    """Mean average precision of the whole rankings."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A neighbour of a query."""

    name: str
    """The documented object."""
    module: str
    """Its top-level module."""
    same_module: bool
    """Whether the query is of this module too."""
    score: float
    """The similarity."""


@dataclass(frozen=True, slots=True)
class QueryResult:
    """A held-out docstring with its nearest neighbours before and after learning, nearest first."""

    name: str
    """The documented object."""
    module: str
    """Its top-level module."""
    text: str
    """The docstring."""
    before: list[Neighbour]
    """By the cosine."""
    after: list[Neighbour]
    """By the learned embedding."""


@dataclass(frozen=True, slots=True)
class DemoReport:
    """The result of `run_demo`."""

    aromatch_version: str
    python_version: str
    """The corpus is the library of this Python."""
    seed: int
    """Random seed of the split and of the triplets."""
    n_entries: int
    """Number of docstrings in the corpus."""
    n_modules: int
    n_training: int
    n_held_out: int
    n_terms: int
    """Number of features."""
    results: list[MethodResult]
    """The cosine, the learners of the paper, and `TripletEmbedding`."""
    queries: list[QueryResult]
    """Held-out docstrings that have more, or fewer, neighbours of their module after learning."""
    seconds: float
    """Total time."""

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON types."""
        return asdict(self)


def run_demo(
    seed: int = 0,
    n_triplets: int = N_TRIPLETS,
    *,
    corpus: LabelledTexts | None = None,
    plot: str | None = None,
    verbose: bool = True,
) -> DemoReport:
    """Learn similarity from the docstrings of the standard library; compare the cosine with all learners.

    The paper's learners start from the cosine. All learners see the same triplets in the same order. `TripletEmbedding`
    is not in the paper.

    Parameters
    ----------
    seed : int, default 0
        Random seed of the split and of the triplets.
    n_triplets : int, default 50,000
        Number of triplets to sample from the training part.
    corpus : LabelledTexts, optional
        Other texts than those of the standard library.
    plot : str, optional
        Image file to write: the best results of some queries before and after learning.
    verbose : bool, default True
        Show progress bars if standard error is a terminal.

    Returns
    -------
    DemoReport
        Measures of every method, and a few queries with their neighbours.

    Examples
    --------
    A small corpus of two classes: each text has two words of its class and one that both classes share.

    >>> import numpy as np
    >>> from aromatch.datasets import LabelledTexts
    >>> from aromatch.workflows.demo import run_demo
    >>> rng = np.random.default_rng(0)
    >>> words = {"fruit": ["apple", "pear", "plum", "cherry"], "tool": ["hammer", "saw", "drill", "chisel"]}
    >>> labels = np.repeat(list(words), 50)
    >>> texts = [" ".join([*rng.choice(words[label], 2), f"thing{rng.integers(5)}"]) for label in labels]
    >>> report = run_demo(n_triplets=500, corpus=LabelledTexts(texts, labels, texts))
    >>> for result in report.results:
    ...     print(result.method, round(result.mean_average_precision, 2))
    cosine 0.84
    OASIS 1.0
    d-AROMA 1.0
    f-AROMA 1.0
    embedding 1.0
    """
    started = perf_counter()
    seed = check_integer(seed, "seed", at_least=0)
    n_triplets = check_integer(n_triplets, "n_triplets", at_least=1)
    if plot is not None:
        check_can_plot()
    rng = np.random.default_rng(seed)
    if corpus is None:
        corpus = load_stdlib(verbose=verbose)

    training, held_out = np.split(rng.permutation(len(corpus)), [round(TRAINING_SHARE * len(corpus))])
    features = TextFeatures(N_TERMS)
    X = features.fit_transform([corpus.texts[row] for row in training], corpus.labels[training])
    X_held_out = features.transform([corpus.texts[row] for row in held_out])
    y_held_out = corpus.labels[held_out]
    triplets = from_labels(corpus.labels[training], n_triplets, rng)

    results = [MethodResult("cosine", {}, 0, 0, 0.0, *_measures(Cosine(), X_held_out, y_held_out))]
    models = {}
    for method, learner, settings in LEARNERS:
        begun = perf_counter()
        # BLAS threads gain little on matrices of this size, and lose much if other programs use the cores.
        with threadpool_limits(1):
            models[method] = model = learner(**settings, verbose=verbose).fit_triplets(triplets, X)
        counts = n_triplets, getattr(model, "n_updates_", None), perf_counter() - begun
        results.append(MethodResult(method, settings, *counts, *_measures(model, X_held_out, y_held_out)))
    if plot is not None:
        compared = {"Before: cosine": Cosine(), f"After: {n_triplets:,} comparisons": models[EMBEDDING]}
        draw({title: _are_correct(one, X_held_out, y_held_out) for title, one in compared.items()}, plot, seed)
    names = [corpus.names[row] for row in held_out]
    texts = [corpus.texts[row] for row in held_out]
    return DemoReport(
        aromatch_version=__version__,
        python_version=platform.python_version(),
        seed=seed,
        n_entries=len(corpus),
        n_modules=len(np.unique(corpus.labels)),
        n_training=len(training),
        n_held_out=len(held_out),
        n_terms=X.shape[1],
        results=results,
        queries=_changed_queries(models[EMBEDDING], X_held_out, names, y_held_out, texts),
        seconds=perf_counter() - started,
    )


def _measures(model: HasSimilarity, X: Any, y: NDArray[np.str_]) -> tuple[float, float, float]:
    report = evaluate_retrieval(model, X, y, ks=(1, 10))
    return report.precision[1], report.precision[10], report.mean_average_precision


def _are_correct(model: HasSimilarity, X: Any, y: NDArray[np.str_]) -> NDArray[np.bool_]:
    """Return whether each of the ten best results of every row is of its module."""
    scores = np.asarray(model.similarity(X, X))
    np.fill_diagonal(scores, -np.inf)
    best = top_k(scores, N_RESULTS).indices
    return np.asarray(y[best] == y[:, np.newaxis])


def _changed_queries(
    model: Any, X: Any, names: list[str], modules: NDArray[np.str_], texts: list[str]
) -> list[QueryResult]:
    """Return the first readable docstrings, each of another module, that have more or fewer neighbours of theirs.

    The held-out part is in random order, and changes for the worse are shown like those for the better.
    """
    queries: dict[str, QueryResult] = {}
    for query, (name, module, text) in enumerate(zip(names, modules.tolist(), texts, strict=True)):
        if len(queries) == N_QUERIES:
            break
        if module in queries or not _is_readable(name, text):
            continue
        before, after = (
            [
                Neighbour(names[row], str(modules[row]), bool(modules[row] == module), float(scores[row]))
                for row in _nearest(scores, query)
            ]
            for scores in (one.similarity(X[[query]], X)[0] for one in (Cosine(), model))
        )
        if sum(one.same_module for one in before) != sum(one.same_module for one in after):
            queries[module] = QueryResult(name, module, text, before, after)
    return list(queries.values())


def _is_readable(name: str, text: str) -> bool:
    """Return whether a docstring fits on one line and documents a public object."""
    public = not any(part.startswith("_") for part in name.split("."))
    return public and len(text) in READABLE_LENGTHS and text.isprintable()


def _nearest(scores: NDArray[np.float64], query: int) -> NDArray[np.intp]:
    """Return the rows of the highest scores, without the query itself."""
    order = np.argsort(-scores, kind="stable")
    others: NDArray[np.intp] = order[order != query]
    return others[:N_NEIGHBOURS]

"""The whole story on any machine: learn from docstrings which of them belong together, measure it, show it.

The corpus is the standard library of the running Python. The label of a docstring is its top-level module, so
"similar" means "of the same module". Terms and learners see the training part only. All figures are of the
held-out part, where each docstring looks for the others of its module.
"""

from __future__ import annotations

import platform
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from .. import __version__
from .._utils.checks import check_integer
from ..datasets import LabelledTexts, load_stdlib
from ..evaluation.retrieval import HasSimilarity, evaluate_retrieval
from ..features import TextFeatures
from ..learners import OASIS, DiagonalAROMA, FactoredAROMA, TripletEmbedding, TripletLearner
from ..triplets import from_labels

if TYPE_CHECKING:
    from rich.console import OverflowMethod, RenderableType

TRAINING_SHARE = 0.65
N_TERMS = 1000
N_TRIPLETS = 50_000
# C is the paper's; each r was chosen from 0.01, 0.1, 1 and 10 on a part of the training part.
LEARNERS: tuple[tuple[str, type[TripletLearner], dict[str, Any]], ...] = (
    ("OASIS", OASIS, {"C": 0.1, "init": "identity"}),
    ("d-AROMA", DiagonalAROMA, {"r": 1.0, "init": "identity"}),
    ("f-AROMA", FactoredAROMA, {"r": 0.1, "init": "identity"}),
)
N_QUERIES = 3
N_NEIGHBOURS = 5
# How long a docstring may be to stand on one line of a terminal, and how long it must be to say something.
READABLE_LENGTHS = range(30, 75)


@dataclass(frozen=True, slots=True)
class MethodResult:
    """How one method did on the held-out part."""

    method: str
    """Its name, as in the paper."""
    settings: dict[str, Any]
    """The parameters of the learner."""
    n_triplets: int
    """Triplets it learned from."""
    n_updates: int | None
    """How many of those changed it; None where nobody counts."""
    seconds: float
    """Time it took to learn."""
    precision_at_1: float
    """Share of queries whose nearest neighbour is of their module."""
    precision_at_10: float
    """Mean share of the ten nearest that are of the query's module."""
    mean_average_precision: float
    """Mean over the queries of the average precision of the whole ranking."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A docstring that a query found."""

    name: str
    """What it documents."""
    module: str
    """The top-level module of that."""
    same_module: bool
    """Whether the query is of this module too."""
    score: float
    """The similarity."""
    std: float | None
    """Standard deviation of the score under the learned distribution; None for the cosine, which has none."""


@dataclass(frozen=True, slots=True)
class QueryResult:
    """A held-out docstring with its nearest neighbours before and after learning, the nearest first."""

    name: str
    """What it documents."""
    module: str
    """The top-level module of that."""
    text: str
    """The docstring itself."""
    before: list[Neighbour]
    """By cosine."""
    after: list[Neighbour]
    """By the AROMA that the report names."""


@dataclass(frozen=True, slots=True)
class DemoReport:
    """All that the demo found."""

    aromatch_version: str
    python_version: str
    """The corpus is the library of this Python."""
    seed: int
    """Decides the split, the triplets and the queries shown."""
    n_entries: int
    """Docstrings in the corpus."""
    n_modules: int
    n_training: int
    n_held_out: int
    n_terms: int
    """Width of the vectors."""
    results: list[MethodResult]
    """The cosine first, then the learners, last what goes beyond the paper, `TripletEmbedding`."""
    best_aroma: str
    """The AROMA of the paper with the higher precision at 10: its neighbours are shown."""
    queries: list[QueryResult]
    """A few held-out docstrings that find more, or fewer, of their module after learning."""
    seconds: float
    """Time that all of it took."""

    def to_dict(self) -> dict[str, Any]:
        """Give the report as dictionaries, lists, strings and numbers, as JSON knows them."""
        return asdict(self)


def run_demo(
    seed: int = 0,
    n_triplets: int = N_TRIPLETS,
    *,
    corpus: LabelledTexts | None = None,
    show_progress: bool = True,
) -> DemoReport:
    """Learn similarity from the docstrings of the standard library; compare cosine, OASIS and AROMA.

    The paper's learners start from the cosine, so the difference is what they learned. All see the same triplets in
    the same order. Last comes `TripletEmbedding`, which is not in the paper.

    Parameters
    ----------
    seed : int, default 0
        Decides the split, the triplets and the queries shown.
    n_triplets : int, default 50,000
        How many triplets to draw from the training part.
    corpus : LabelledTexts, optional
        Other texts than the standard library's.
    show_progress : bool, default True
        Show progress bars where standard error is a terminal.

    Returns
    -------
    DemoReport
        The figures of every method, and a few queries with their neighbours.

    Examples
    --------
    Docstrings of two modules in miniature: each text is two words of its class and one that both share.

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
    best 1.0
    """
    started = perf_counter()
    seed = check_integer(seed, "seed", at_least=0)
    n_triplets = check_integer(n_triplets, "n_triplets", at_least=1)
    rng = np.random.default_rng(seed)
    if corpus is None:
        corpus = load_stdlib(verbose=show_progress)

    training, held_out = np.split(rng.permutation(len(corpus)), [round(TRAINING_SHARE * len(corpus))])
    features = TextFeatures(N_TERMS)
    X = features.fit_transform([corpus.texts[row] for row in training], corpus.labels[training])
    X_held_out = features.transform([corpus.texts[row] for row in held_out])
    y_held_out = corpus.labels[held_out]
    triplets = from_labels(corpus.labels[training], n_triplets, rng)

    cosine = _Cosine()
    results = [MethodResult("cosine", {}, 0, 0, 0.0, *_figures(cosine, X_held_out, y_held_out))]
    models = {}

    for method, learner, settings in LEARNERS:
        begun = perf_counter()
        # Threads of BLAS gain little on matrices of this size, and lose much when other programs want the cores.
        with threadpool_limits(1):
            models[method] = model = learner(**settings, verbose=show_progress).fit_triplets(triplets, X)
        counts = model.n_triplets_seen_, model.n_updates_, perf_counter() - begun
        results.append(MethodResult(method, settings, *counts, *_figures(model, X_held_out, y_held_out)))
    best = max((result for result in results if "AROMA" in result.method), key=lambda r: r.precision_at_10)
    begun = perf_counter()
    with threadpool_limits(1):
        nearby = TripletEmbedding("linear", random_state=0, verbose=show_progress).fit_triplets(triplets, X)
    spent = len(triplets), None, perf_counter() - begun
    results.append(MethodResult("best", {}, *spent, *_figures(nearby, X_held_out, y_held_out)))
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
        best_aroma=best.method,
        queries=_changed_queries(models[best.method], X_held_out, names, y_held_out, texts),
        seconds=perf_counter() - started,
    )


class _Cosine:
    """Search without learning: on rows of unit norm the cosine is the product, where the learners start.

    `Euclidean` would rank such rows the same, but not the few that are empty.
    """

    def similarity(self, Q: Any, P: Any) -> NDArray[np.float64]:
        scores: NDArray[np.float64] = (Q @ P.T).toarray()
        return scores


def _figures(model: HasSimilarity, X: Any, y: NDArray[np.str_]) -> tuple[float, float, float]:
    report = evaluate_retrieval(model, X, y, ks=(1, 10))
    return report.precision[1], report.precision[10], report.mean_average_precision


def _changed_queries(
    model: TripletLearner, X: Any, names: list[str], modules: NDArray[np.str_], texts: list[str]
) -> list[QueryResult]:
    """Take the first readable docstrings, each of another module, that find more or fewer of theirs.

    The held-out part is in random order, and a change for the worse is shown like one for the better.
    """

    def neighbour(module: str, row: int, score: float, std: float | None) -> Neighbour:
        return Neighbour(names[row], str(modules[row]), bool(modules[row] == module), score, std)

    queries: dict[str, QueryResult] = {}
    for query, (name, module, text) in enumerate(zip(names, modules.tolist(), texts, strict=True)):
        if len(queries) == N_QUERIES:
            break
        if module in queries or not _is_readable(name, text):
            continue
        cosines = _Cosine().similarity(X[[query]], X)[0]
        scores = model.similarity(X[[query]], X)[0]
        nearest_before, nearest_after = _nearest(cosines, query), _nearest(scores, query)
        if np.sum(modules[nearest_before] == module) == np.sum(modules[nearest_after] == module):
            continue
        stds = model.pair_std(X, X, np.column_stack([np.full_like(nearest_after, query), nearest_after]))
        before = [neighbour(module, row, float(cosines[row]), None) for row in nearest_before]
        after = [
            neighbour(module, row, float(scores[row]), float(std)) for row, std in zip(nearest_after, stds, strict=True)
        ]
        queries[module] = QueryResult(name, module, text, before, after)
    return list(queries.values())


def _is_readable(name: str, text: str) -> bool:
    """Whether the docstring stands on one line, and of something public, that a reader may know."""
    public = not any(part.startswith("_") for part in name.split("."))
    return public and len(text) in READABLE_LENGTHS and text.isprintable()


def _nearest(scores: NDArray[np.float64], query: int) -> NDArray[np.intp]:
    """Give the rows of the highest scores, without the query itself."""
    order = np.argsort(-scores, kind="stable")
    others: NDArray[np.intp] = order[order != query]
    return others[:N_NEIGHBOURS]


def render(report: DemoReport, *, plain: bool = False) -> RenderableType:
    """Lay the report out for a terminal.

    Parameters
    ----------
    report : DemoReport
        What `run_demo` returned.
    plain : bool, default False
        Use ASCII characters only, for terminals that have no others.

    Returns
    -------
    rich renderable
        To be printed by a `rich.console.Console`, which leaves out colours where there is no terminal.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Group
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    hit, miss, plus_minus = ("+", "-", "+/-") if plain else ("✓", "·", "±")
    overflow: OverflowMethod = "crop" if plain else "ellipsis"

    def marked(neighbour: Neighbour) -> Text:
        if neighbour.same_module:
            return Text(f"{hit} {neighbour.name}", style="green")
        return Text(f"{miss} {neighbour.name}", style="dim")

    def hits(neighbours: list[Neighbour]) -> str:
        return f"{sum(n.same_module for n in neighbours)} of {len(neighbours)}"

    figures = Table(box=None if plain else SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    figures.add_column("")
    for title in ("P@1", "P@10", "mAP", "triplets", "seconds"):
        figures.add_column(title, justify="right")
    best = max(result.precision_at_10 for result in report.results)
    for result in report.results:
        values = (result.precision_at_1, result.precision_at_10, result.mean_average_precision)
        cost = (f"{result.n_triplets:,}", f"{result.seconds:.1f}") if result.n_triplets else ()
        style = "bold green" if result.precision_at_10 == best else ""
        figures.add_row(result.method, *(f"{value:.3f}" for value in values), *cost, style=style)

    parts: list[RenderableType] = [
        Text(f"Which docstrings of Python {report.python_version} belong together?", style="bold"),
        Text(
            f"{report.n_entries:,} docstrings of {report.n_modules} modules, {report.n_terms:,} terms, "
            f"seed {report.seed}. Learned from {report.n_training:,};\n"
            f"each of the other {report.n_held_out:,} looks for docstrings of its own module."
        ),
        Padding(figures, (1, 2)),
        Text(
            "P@k: share of the k nearest of the same module. mAP: over the whole ranking.\n"
            "best: TripletEmbedding, which goes beyond the paper.",
            style="dim",
        ),
    ]
    for query in report.queries:
        table = Table(box=None, pad_edge=False, expand=True, header_style="italic")
        table.add_column(f"cosine, {hits(query.before)}", ratio=1, no_wrap=True, overflow=overflow)
        table.add_column(f"{report.best_aroma}, {hits(query.after)}", ratio=1, no_wrap=True, overflow=overflow)
        table.add_column(f"score {plus_minus} std", justify="right", no_wrap=True)
        for before, after in zip(query.before, query.after, strict=True):
            table.add_row(marked(before), marked(after), f"{after.score:.2f} {plus_minus} {after.std:.2f}")
        parts += [Text(f"\n{query.name}", style="bold"), Text(query.text), Padding(table, (0, 2))]
    if report.queries:
        parts.append(
            Text(
                f"\n{hit} same module. std: how unsure the score is; 1 before anything is learned.",
                style="dim",
            )
        )
    return Group(*parts)

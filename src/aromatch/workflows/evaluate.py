"""Before and after: how well a model ranks, or compares, queries that it has not learned from.

Whether a difference is more than chance is told by a paired t-test over queries, which has kept what it promises best
among the tests that people use for rankings (Urbano, Lima and Hanjalic, SIGIR 2019).
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from threadpoolctl import threadpool_limits

from .._utils.rows import Matrix
from ..evaluation.retrieval import RetrievalReport, evaluate_retrieval
from ..io.items import Items
from .baseline import NAMES, Cosine, baseline_rows
from .bundle import Trained
from .problem import Numbers, Problem, marks, read_problem
from .search import best

_LONGEST_RUN = 1000


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure before and after."""

    name: str
    before: float | None
    """None where there was no search before, as between different spaces."""
    after: float
    difference: float | None
    error: float | None
    """Half of the 95 % confidence interval of the difference."""
    p: float | None
    """How likely such a difference is by chance."""


@dataclass(frozen=True, slots=True)
class EvalReport:
    """What `evaluate` found."""

    model: str
    data: str
    supervision: str
    measures: list[Measure]
    n_queries: int
    n_queries_left_out: int
    """Queries without anything relevant."""
    n_learned_left_out: int
    """Queries that the model was learned from."""
    n_objects: int
    before: str
    """What the search of before was."""
    runs: list[str]
    """Files that were written."""
    notes: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Give the report as JSON knows it."""
        return asdict(self)


@dataclass(frozen=True, eq=False, slots=True)
class _Side:
    """Rows of queries and of objects, and who scores them."""

    scorer: Any
    Q: Matrix
    P: Matrix


def evaluate(
    path: str,
    *,
    data: str | None = None,
    queries: str | None = None,
    missing: str | None = None,
    ks: Sequence[int] = (1, 10),
    run: str | None = None,
    include_learned: bool = False,
    files: Mapping[str, str | None] | None = None,
) -> EvalReport:
    """Measure a model, and the search of before, on the same queries.

    Parameters
    ----------
    path : path
        Of the model file.
    data, queries, files
        As in `train`; without them, those that the model was learned on.
    missing : {"error", "skip"}, optional
    ks : whole numbers
        For precision and nDCG at k.
    run : path, optional
        Write the rankings as TREC runs: after learning to this file, before it to the same with ``.before`` at the end.
    include_learned : bool, default False
        Measure queries that the model was learned from as well: flattering figures.
    """
    trained = Trained.load(path)
    problem = _read(trained, data, queries, missing, files or {})
    rows, n_learned, notes = _rows_to_ask(trained, problem, include_learned)
    notes = [*problem.notes(), *notes]
    own_labels = problem.supervision.labels is not None and problem.queries is None
    objects, asking = problem.objects, problem.queries
    if own_labels:  # those that the model does not know look for each other
        objects = _only(objects, rows)
    P = trained.objects.rows(objects)
    Q = P if asking is None else trained.queries.rows(asking)
    plain = baseline_rows(objects, asking)
    sides = [_Side(trained.model, Q, P), *([] if plain is None else [_Side(Cosine(), *plain)])]
    with threadpool_limits(1):
        if problem.supervision.kind in ("triplets", "clicks"):
            if run is not None:
                raise ValueError(f"--run needs labels or qrels: {problem.supervision.kind} say nothing of rankings")
            measures, n_queries, n_left_out = _compared(problem, sides, rows)
            reports: list[RetrievalReport] = []
        else:
            reports = [_ranked(problem, side, rows, ks, own_labels=own_labels) for side in sides]
            measures, n_queries, n_left_out = (
                _measures(reports, ks),
                reports[0].n_queries,
                reports[0].n_queries_left_out,
            )
    runs = [] if run is None else _write_runs(run, sides, objects, asking, reports[0].query_rows)
    return EvalReport(
        model=path,
        data=problem.objects.source,
        supervision=problem.supervision.told,
        measures=measures,
        n_queries=n_queries,
        n_queries_left_out=n_left_out,
        n_learned_left_out=n_learned,
        n_objects=len(objects),
        before=NAMES[objects.what] if plain is not None else "nothing: queries and objects have different features",
        runs=runs,
        notes=notes,
    )


def _read(
    trained: Trained, data: str | None, queries: str | None, missing: str | None, files: Mapping[str, str | None]
) -> Problem:
    """Read what is named; what is not named is what the model was learned on."""
    about = trained.about
    if data is None and not isinstance(about.get("data"), str):
        raise ValueError("the model does not tell what it was learned on: name the collection with --data")
    given = {kind: file for kind, file in files.items() if file is not None}
    if data is None:
        queries = queries if queries is not None else about.get("queries")
        given = given or dict(about.get("files", {}))
    return read_problem(
        data if data is not None else about["data"],
        queries,
        missing=missing if missing is not None else about.get("missing", "error"),
        seed=int(about.get("seed", 0)),
        widths=(trained.queries.width, trained.objects.width),
        files=given,
    )


def _rows_to_ask(trained: Trained, problem: Problem, include_learned: bool) -> tuple[Numbers, int, list[str]]:
    """Give rows of queries that the model does not know, and how many it does."""
    rows = problem.supervision.query_rows
    if trained.learned is None:
        return rows, 0, ["the model does not tell which queries it knows: figures may flatter it"]
    is_known = np.isin(marks(problem.who_asks, rows), trained.learned)
    if include_learned:
        told = f"{np.count_nonzero(is_known):,} of {len(rows):,} queries were learned from: these figures flatter"
        return rows, 0, [told] if is_known.any() else []
    if is_known.all():
        told = "all queries were learned from, so that these figures flatter: train with --hold-out 0.2 to keep some"
        return rows, 0, [told]
    return rows[~is_known], int(np.count_nonzero(is_known)), []


def _only(items: Items, rows: Numbers) -> Items:
    return Items(
        items.source,
        [items.ids[row] for row in rows],
        None if items.vectors is None else items.vectors[rows],
        None if items.texts is None else [items.texts[row] for row in rows],
        None if items.labels is None else items.labels[rows],
        items.names,
    )


def _ranked(problem: Problem, side: _Side, rows: Numbers, ks: Sequence[int], *, own_labels: bool) -> RetrievalReport:
    said = problem.supervision
    if said.labels is None:
        P = None if problem.queries is None else side.P
        return evaluate_retrieval(side.scorer, side.Q, P=P, qrels=said.grades, query_rows=rows, ks=ks)
    if own_labels:
        return evaluate_retrieval(side.scorer, side.Q, said.labels[rows].astype(str), ks=ks)
    assert said.object_labels is not None
    there = np.flatnonzero(said.object_labels != None)  # noqa: E711
    labels, of_objects = said.labels[rows].astype(str), said.object_labels[there].astype(str)
    return evaluate_retrieval(side.scorer, side.Q[rows], labels, side.P[there], of_objects, ks=ks)


def _measures(reports: list[RetrievalReport], ks: Sequence[int]) -> list[Measure]:
    def values(report: RetrievalReport) -> dict[str, NDArray[np.float64]]:
        return {
            **{f"P@{k}": report.precision_per_query[k] for k in ks},
            **{f"nDCG@{k}": report.ndcg_per_query[k] for k in ks},
            "mAP": report.average_precision,
        }

    after, *before = map(values, reports)
    return [compare(name, before[0][name] if before else None, value) for name, value in after.items()]


def compare(name: str, before: NDArray[np.float64] | None, after: NDArray[np.float64]) -> Measure:
    """Compare figures of the same queries by a paired t-test.

    >>> import numpy as np
    >>> found = compare("P@1", np.array([0.0, 0.0, 1.0, 0.0]), np.array([1.0, 0.0, 1.0, 1.0]))
    >>> round(found.difference, 2), round(found.p, 2)
    (0.5, 0.18)
    """
    if before is None:
        return Measure(name, None, float(after.mean()), None, None, None)
    differences = after - before
    difference, error, p = float(differences.mean()), None, None
    if not differences.any():
        error, p = 0.0, 1.0
    elif len(differences) > 1 and differences.std() > 1e-12 * np.abs(differences).max():  # more than rounding
        test = stats.ttest_rel(after, before)
        interval = test.confidence_interval(0.95)
        error, p = float(interval.high - interval.low) / 2, float(test.pvalue)
    elif len(differences) > 1:  # all differ by the same: a sign test, and no interval from so few that chance may do it
        p = min(1.0, 2.0 ** (1 - len(differences)))
        error = 0.0 if p < 0.05 else None
    return Measure(name, float(before.mean()), float(after.mean()), difference, error, p)


def _compared(problem: Problem, sides: list[_Side], rows: Numbers) -> tuple[list[Measure], int, int]:
    """Tell how many comparisons come out right; those of one query count together, for they are much alike."""
    triplets = problem.supervision.triplets
    assert triplets is not None
    triplets = triplets[np.isin(triplets[:, 0], rows)]
    _, query = np.unique(triplets[:, 0], return_inverse=True)
    shares = []
    for side in sides:
        if isinstance(side.scorer, Cosine):
            margins = _cosine_margins(side, triplets)
        else:
            margins = side.scorer.margins(triplets, side.Q, None if side.Q is side.P else side.P)
        right = np.where(margins == 0, 0.5, margins > 0)
        shares.append(np.bincount(query, right) / np.bincount(query))
    before = shares[1] if len(shares) > 1 else None
    return [compare("right", before, shares[0])], int(query.max()) + 1, 0


def _cosine_margins(side: _Side, triplets: Numbers) -> NDArray[np.float64]:
    scores = []
    for objects in (triplets[:, 1], triplets[:, 2]):
        left, right = side.Q[triplets[:, 0]], side.P[objects]
        product = left.multiply(right).sum(axis=1) if hasattr(left, "multiply") else (left * right).sum(axis=1)
        scores.append(np.asarray(product).ravel())
    return np.asarray(scores[0] - scores[1])


def _write_runs(path: str, sides: list[_Side], objects: Items, asking: Items | None, rows: Numbers) -> list[str]:
    """Write what was found for each query, as trec_eval and its like read it."""
    names = [path, f"{path}.before"][: len(sides)]
    who = objects if asking is None else asking
    for side, name, tag in zip(sides, names, ("aromatch", "cosine"), strict=False):
        found = best(side.scorer, side.Q[rows], side.P, _LONGEST_RUN, rows if asking is None else None)
        with replacing(name) as file:
            for at, row in enumerate(rows.tolist()):
                for place, one in enumerate(found.rows[at].tolist()):
                    score = float(found.scores[at, place])
                    file.write(f"{_word(who.ids[row])} Q0 {_word(objects.ids[one])} {place + 1} {score:.9g} {tag}\n")
    return names


def _word(one: str) -> str:
    """Give an id without spaces, which part the columns of a run."""
    return "_".join(one.split())


@contextmanager
def replacing(path: str) -> Iterator[TextIO]:
    """Write a text file that appears whole or not at all."""
    temporary = os.path.join(os.path.dirname(os.path.abspath(path)), f".aromatch-{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "x", encoding="utf-8") as file:
            yield file
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)

"""Evaluate a model against the baseline on queries that it was not trained on.

Differences are tested by a paired t-test over queries, which among the common tests for rankings keeps its error rate
best (Urbano, Lima and Hanjalic, SIGIR 2019).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from threadpoolctl import threadpool_limits

from .._utils.rows import Matrix
from ..evaluation.retrieval import RetrievalReport, evaluate_retrieval
from ..io.durable import replacing_text
from ..io.items import Items
from ..learners import Cosine
from .baseline import NAMES, baseline_rows
from .bundle import TrainedModel, read_bundle
from .collection import SUPERVISION, choose_sources
from .search import best_objects
from .supervision import Rows, Supervised, content_hashes, read_supervised

_RUN_LENGTH = 1000


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of the baseline and of the model."""

    name: str
    baseline: float | None
    """None if queries and objects have different features, so that there is no baseline."""
    learned: float
    difference: float | None
    error: float | None
    """Half of the 95 % confidence interval of the difference."""
    p: float | None
    """p-value of the difference."""


@dataclass(frozen=True, slots=True)
class EvalReport:
    """The result of `evaluate`."""

    model: str
    data: str
    supervision: str
    measures: list[Measure]
    n_queries: int
    n_queries_left_out: int
    """Queries without a relevant object."""
    n_training_left_out: int
    """Training queries of the model."""
    n_objects: int
    baseline: str
    """Name of the baseline."""
    runs: list[str]
    """TREC run files that were written."""
    notes: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON types."""
        return asdict(self)


@dataclass(frozen=True, eq=False, slots=True)
class _Side:
    """A scorer with its rows of queries and objects."""

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
    include_training: bool = False,
    files: Mapping[str, str | None] | None = None,
    trust_recorded_paths: bool = False,
) -> EvalReport:
    """Evaluate a model and the baseline on the same queries.

    Parameters
    ----------
    path : path
        The model file.
    data, queries, files
        As in `train`; `data` is required unless `trust_recorded_paths` is set.
    missing : {"error", "skip"}, optional
    ks : integers
        Cutoffs of precision and nDCG.
    run : path, optional
        Write the rankings as TREC runs: of the model to this file, of the baseline to the same name with ``.baseline``.
    include_training : bool, default False
        Include the training queries of the model, which biases the measures.
    trust_recorded_paths : bool, default False
        Read the paths that the model file records where none are given.
    """
    trained = read_bundle(path)
    given = {"data": data, "queries": queries, **dict.fromkeys(SUPERVISION), **(files or {})}
    sources = choose_sources(path, trained, given, trust_recorded_paths=trust_recorded_paths)
    data_set = read_supervised(
        sources.data,
        sources.queries,
        files=sources.files,
        missing=missing if missing is not None else trained.metadata.get("missing", "error"),
        seed=int(trained.metadata.get("seed", 0)),
        widths=(trained.queries.width, trained.objects.width),
    )
    rows, n_training, notes = _evaluated_rows(trained, data_set, include_training)
    among_themselves = data_set.labels is not None and data_set.queries is None
    objects, asking = data_set.objects, data_set.queries
    if among_themselves:  # objects are the evaluated queries only
        objects = objects.select(rows)
    P = trained.objects.rows(objects)
    Q = P if asking is None else trained.queries.rows(asking)
    baseline = baseline_rows(objects, asking)
    sides = [_Side(trained.model, Q, P), *([] if baseline is None else [_Side(Cosine(), *baseline)])]
    with threadpool_limits(1):
        if data_set.kind in ("triplets", "clicks"):
            if run is not None:
                raise ValueError(f"--run needs labels or qrels, got {data_set.kind}")
            measures, n_queries = _comparisons(data_set, sides, rows)
            n_left_out, runs = 0, []
        else:
            reports = [_rankings(data_set, side, rows, ks, among_themselves=among_themselves) for side in sides]
            measures, n_queries = _measures(reports, ks), reports[0].n_queries
            n_left_out = reports[0].n_queries_left_out
            runs = [] if run is None else _write_runs(run, sides, objects, asking, reports[0].query_rows)
    return EvalReport(
        model=path,
        data=objects.source,
        supervision=data_set.summary,
        measures=measures,
        n_queries=n_queries,
        n_queries_left_out=n_left_out,
        n_training_left_out=n_training,
        n_objects=len(objects),
        baseline=NAMES[objects.what] if baseline is not None else "none: queries and objects have different features",
        runs=runs,
        notes=[*sources.notes, *data_set.notes, *notes],
    )


def _evaluated_rows(trained: TrainedModel, data: Supervised, include_training: bool) -> tuple[Rows, int, list[str]]:
    """Return the rows of the queries to evaluate, the number of training queries left out, and notes."""
    rows = data.query_rows
    if trained.row_hashes is None:
        return rows, 0, ["the model file does not name its training queries: the measures may be biased"]
    is_training = np.isin(content_hashes(data.asking, rows), trained.row_hashes)
    n_training = int(np.count_nonzero(is_training))
    if include_training:
        note = f"{n_training:,} of {len(rows):,} queries are training queries: the measures are biased"
        return rows, 0, [note] if n_training else []
    if is_training.all():
        return rows, 0, ["all queries are training queries: the measures are biased; train with --hold-out 0.2"]
    return rows[~is_training], n_training, []


def _rankings(
    data: Supervised, side: _Side, rows: Rows, ks: Sequence[int], *, among_themselves: bool
) -> RetrievalReport:
    if data.labels is None:
        P = None if data.queries is None else side.P
        return evaluate_retrieval(side.scorer, side.Q, P=P, qrels=data.grades, query_rows=rows, ks=ks)
    labels = data.labels[rows].astype(str)
    if among_themselves:
        return evaluate_retrieval(side.scorer, side.Q, labels, ks=ks)
    assert data.object_labels is not None
    labelled = data.labelled_objects
    of_objects = data.object_labels[labelled].astype(str)
    return evaluate_retrieval(side.scorer, side.Q[rows], labels, side.P[labelled], of_objects, ks=ks)


def _measures(reports: list[RetrievalReport], ks: Sequence[int]) -> list[Measure]:
    def values(report: RetrievalReport) -> dict[str, NDArray[np.float64]]:
        return {
            **{f"P@{k}": report.precision_per_query[k] for k in ks},
            **{f"nDCG@{k}": report.ndcg_per_query[k] for k in ks},
            "mAP": report.average_precision,
        }

    learned, *baseline = map(values, reports)
    return [compare(name, baseline[0][name] if baseline else None, value) for name, value in learned.items()]


def compare(name: str, baseline: NDArray[np.float64] | None, learned: NDArray[np.float64]) -> Measure:
    """Compare a measure of the same queries by a paired t-test.

    >>> import numpy as np
    >>> found = compare("P@1", np.array([0.0, 0.0, 1.0, 0.0]), np.array([1.0, 0.0, 1.0, 1.0]))
    >>> round(found.difference, 2), round(found.p, 2)
    (0.5, 0.18)
    """
    if baseline is None:
        return Measure(name, None, float(learned.mean()), None, None, None)
    differences = learned - baseline
    difference, error, p = float(differences.mean()), None, None
    if not differences.any():
        error, p = 0.0, 1.0
    elif len(differences) > 1 and differences.std() > 1e-12 * np.abs(differences).max():  # more than rounding
        test = stats.ttest_rel(learned, baseline)
        interval = test.confidence_interval(0.95)
        error, p = float(interval.high - interval.low) / 2, float(test.pvalue)
    elif len(differences) > 1:  # all differences are equal: a sign test, and no interval unless it is significant
        p = min(1.0, 2.0 ** (1 - len(differences)))
        error = 0.0 if p < 0.05 else None
    return Measure(name, float(baseline.mean()), float(learned.mean()), difference, error, p)


def _comparisons(data: Supervised, sides: list[_Side], rows: Rows) -> tuple[list[Measure], int]:
    """Return the share of correctly ordered comparisons, averaged by query, whose comparisons are dependent."""
    assert data.triplets is not None
    triplets = data.triplets[np.isin(data.triplets[:, 0], rows)]
    _, query = np.unique(triplets[:, 0], return_inverse=True)
    shares = []
    for side in sides:
        preferred, other = (side.scorer.pair_score(side.Q, side.P, triplets[:, [0, column]]) for column in (1, 2))
        margins = preferred - other
        correct = np.where(margins == 0, 0.5, margins > 0)
        shares.append(np.bincount(query, correct) / np.bincount(query))
    return [compare("correct", shares[1] if len(shares) > 1 else None, shares[0])], int(query.max()) + 1


def _write_runs(path: str, sides: list[_Side], objects: Items, asking: Items | None, rows: Rows) -> list[str]:
    """Write the rankings in the format of trec_eval."""
    names = [path, f"{path}.baseline"][: len(sides)]
    queries = objects if asking is None else asking
    for side, name, tag in zip(sides, names, ("aromatch", "cosine"), strict=False):
        found = best_objects(side.scorer, side.Q[rows], side.P, _RUN_LENGTH, rows if asking is None else None)
        with replacing_text(name) as file:
            for at, row in enumerate(rows.tolist()):
                for rank, one in enumerate(found.ids[at].tolist(), start=1):
                    score = float(found.scores[at, rank - 1])
                    file.write(f"{_word(queries.ids[row])} Q0 {_word(objects.ids[one])} {rank} {score:.9g} {tag}\n")
    return names


def _word(one: str) -> str:
    """Return an id without spaces, which separate the columns of a run."""
    return "_".join(one.split())

"""Replay the log of a search: train several methods on older lists, compare them on later ones, decide."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ..._utils.checks import check_choice, check_integer, check_number
from ..._utils.printable import as_unicode
from ..._utils.progress import progress_bar
from ...io.durable import write_text
from ...io.items import Items, read_items
from ...io.logs import COLUMNS
from ...learners import Cosine
from ..baseline import baseline_rows
from ..bundle import TrainedModel
from ..preparation import Preparation, prepare_texts, prepare_vectors
from .log import JudgedList, Log, read_log
from .measures import QueryMeasures, are_near, measure, queries_of
from .methods import BASELINE, ROCCHIO, Method, TrialRows, methods
from .plot import plot
from .verdict import SHIP, MethodReport, Verdict, compare_method, decide, too_little

__all__ = ["MethodReport", "TrialReport", "Verdict", "run_trial"]

# The last share of the older lists, on which settings are validated.
_VALIDATION_SHARE = 0.25
_N_TERMS = 2_000
_SHIPPED, _PLOT, _REPORT = "shipped.safetensors", "trial.png", "trial.json"


@dataclass(frozen=True, slots=True)
class TrialReport:
    """The result of `run_trial`."""

    data: str
    log: str
    kind: str
    """"judgements" or "clicks"."""
    prepared: str
    """Summary of how rows are made."""
    n_objects: int
    n_training_lists: int
    """Informative older lists, on which methods were trained."""
    n_queries: int
    """Queries of informative later lists, on which methods are compared."""
    n_near: int
    """Those among them that are near judged queries."""
    seed: int
    results: list[MethodReport]
    """The cosine first; empty if there were too few lists."""
    verdict: Verdict
    written: list[str]
    code: list[str]
    """Lines of Python that use the shipped file."""
    notes: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON types."""
        return asdict(self)


def run_trial(
    data: str,
    log: str,
    *,
    kind: str,
    queries: str | None = None,
    later: float = 0.3,
    output: str = "trial",
    missing: str = "error",
    seed: int = 0,
    verbose: bool = True,
) -> TrialReport:
    """Compare several methods on a log, and decide whether to ship one of them.

    Parameters
    ----------
    data : path
        The objects: vectors or texts.
    log : path
        Lists with judgements or clicks, in the format of `aromatch.io.logs`.
    kind : {"judgements", "clicks"}
    queries : path, optional
        The queries, if these are not objects.
    later : float, default 0.3
        Share of the lists, the latest, on which methods are compared.
    output : path, default "trial"
        Folder for the plot, the report and, if the decision is to ship, the model file.
    missing : {"error", "skip"}
        Whether unknown object ids raise an error or are skipped.
    seed : int, default 0
        Random seed.
    """
    check_choice(kind, "kind", tuple(COLUMNS))
    check_choice(missing, "--missing", ("error", "skip"))
    check_integer(seed, "--seed", at_least=0)
    if not 0 < check_number(later, "--later", above=0) < 1:
        raise ValueError(f"--later must be a share below 1, got {later:g}")
    if os.path.exists(output) and not os.path.isdir(output):
        raise NotADirectoryError(f"{output} is not a folder")
    objects = read_items(data)
    width = None if objects.vectors is None else objects.vectors.shape[1]
    asking = None if queries is None else read_items(queries, width=width)
    if asking is not None and asking.what != objects.what:
        raise ValueError(f"{asking.source} has {asking.what}, but {objects.source} has {objects.what}")
    found = read_log(log, kind, objects, asking, missing=missing)
    preparation = _prepare(objects)
    rows = TrialRows(preparation.rows(found.queries), preparation.rows(objects))
    n_older = len(found.lists) - round(later * len(found.lists))
    older, newer = found.lists[:n_older], found.lists[n_older:]
    training = [one for one in older if one.is_informative]
    test, n_repeated = _without_repetitions([one for one in newer if one.is_informative], older)
    test_queries = queries_of(test)
    notes = _notes(objects, asking, found)
    if n_repeated:
        notes.append(f"{n_repeated:,} later lists repeat an older one and were left out")
    if n_known := np.count_nonzero(np.isin(test_queries, queries_of(older))):
        notes.append(f"{n_known:,} of the later queries also occur in older lists")
    verdict, near = too_little(len(training), len(test_queries)), np.zeros(len(test_queries), dtype=np.bool_)
    results: list[MethodReport] = []
    models: dict[str, Any] = {}
    if verdict is None:
        near = are_near(rows, queries_of(training), test_queries)
        names = [one.name for one in methods(1)]
        with threadpool_limits(1):
            results, models = _compare_methods(rows, found, older, test, near, seed, verbose)
            notes += _note_on_all_words(objects, found, test, results)
        notes += [
            f"{name} was left out: {rows.P.shape[1]:,} features are too many for it"
            for name in names
            if name not in models
        ]
        verdict = decide(results, tuple(name for name in names if name not in (BASELINE, ROCCHIO)), kind)
    report = TrialReport(
        data=data,
        log=log,
        kind=kind,
        prepared=str(preparation),
        n_objects=len(objects),
        n_training_lists=len(training),
        n_queries=len(test_queries),
        n_near=int(near.sum()),
        seed=seed,
        results=results,
        verdict=verdict,
        written=[],
        code=[],
        notes=notes,
    )
    return _write(report, output, models, preparation)


def _prepare(objects: Items) -> Preparation:
    """Prepare rows whose inner products are cosines."""
    rows = np.arange(len(objects))
    if objects.texts is not None:
        return prepare_texts(objects, rows, None, _N_TERMS)
    return prepare_vectors(objects, rows, "unit")


def _notes(objects: Items, asking: Items | None, found: Log) -> list[str]:
    notes = [note for items in (objects, asking) if items is not None for note in items.notes]
    if not found.has_times:
        notes.append("lines have no time: they are used in order")
    if asking is None and objects.texts is not None:
        n_objects = int(np.count_nonzero(found.own_rows >= 0))
        notes.append(f"{n_objects:,} queries are ids of objects, {len(found.own_rows) - n_objects:,} are words")
    if found.n_unknown:
        notes.append(f"{found.n_unknown:,} unknown object ids were skipped")
    if found.n_empty:
        notes.append(f"{found.n_empty:,} lists have no judgements or clicks and were left out")
    if n_uninformative := sum(not one.is_informative for one in found.lists):
        needed = "good and one bad object" if found.kind == "judgements" else "clicked and one other object"
        notes.append(
            f"{n_uninformative:,} of {len(found.lists):,} lists were left out of the comparison, which needs at least "
            f"one {needed} in a list"
        )
    return notes


def _without_repetitions(lists: list[JudgedList], older: list[JudgedList]) -> tuple[list[JudgedList], int]:
    """Leave out lists that repeat an older one, which a method could memorize; return their number too."""

    def key(one: JudgedList) -> tuple[int, bytes, bytes]:
        return one.query, np.sort(one.good).tobytes(), np.sort(one.others).tobytes()

    known = {key(one) for one in older}
    new = [one for one in lists if key(one) not in known]
    return new, len(lists) - len(new)


def _compare_methods(
    rows: TrialRows,
    found: Log,
    older: list[JudgedList],
    test: list[JudgedList],
    near: np.ndarray[Any, np.dtype[np.bool_]],
    seed: int,
    verbose: bool,
) -> tuple[list[MethodReport], dict[str, Any]]:
    """Train and measure every method; return the reports and the models by name."""
    all_methods = methods(rows.P.shape[1])
    results: list[MethodReport] = []
    models: dict[str, Any] = {}
    baseline: QueryMeasures | None = None
    with progress_bar("trial", sum(len(one.settings) for one in all_methods), enabled=verbose) as advance:
        for method in all_methods:
            started = perf_counter()
            setting = _validated(method, rows, found, older, seed)
            model = models[method.name] = method.train(rows, older, found.kind, seed, **setting)
            seconds = perf_counter() - started
            measured = measure(model, rows, test, found.own_rows)
            baseline = measured if baseline is None else baseline
            results.append(compare_method(method.name, setting, baseline, measured, near, seconds))
            advance(len(method.settings))
    return results, models


def _validated(method: Method, rows: TrialRows, found: Log, older: list[JudgedList], seed: int) -> dict[str, float]:
    """Return the best setting on the last of the older lists."""
    n_training = round((1 - _VALIDATION_SHARE) * len(older))
    training, validation = older[:n_training], [one for one in older[n_training:] if one.is_informative]
    if len(method.settings) == 1 or not validation or not any(one.is_informative for one in training):
        return method.settings[0]
    scores = []
    for setting in method.settings:
        model = method.train(rows, training, found.kind, seed, **setting)
        scores.append(float(measure(model, rows, validation, found.own_rows).correct.mean()))
    return method.settings[int(np.argmax(scores))]


def _note_on_all_words(objects: Items, found: Log, test: list[JudgedList], results: list[MethodReport]) -> list[str]:
    """Compare with the cosine of all words of texts: all methods use the most frequent terms only."""
    if objects.texts is None or (rows := baseline_rows(objects, found.queries)) is None:
        return []
    correct = float(measure(Cosine(), TrialRows(*rows), test, found.own_rows).correct.mean())
    share = results[0].correct.learned
    return [f"the cosine of all words orders {correct:.3f} correctly, that of {_N_TERMS:,} terms {share:.3f}"]


def _write(report: TrialReport, folder: str, models: dict[str, Any], preparation: Preparation) -> TrialReport:
    """Write the plot, the shipped model and the report; remove those of an earlier trial."""
    os.makedirs(folder, exist_ok=True)
    written, code, notes = [], [], list(report.notes)
    if report.results:
        try:
            written.append(plot(report.results, report.verdict.method, os.path.join(folder, _PLOT)))
        except ImportError:
            notes.append("no plot without matplotlib: pip install 'aromatch[plot]'")
    path = os.path.join(folder, _SHIPPED)
    if report.verdict.decision == SHIP:
        assert report.verdict.method is not None
        metadata = {
            "data": as_unicode(report.data),
            "n_objects": report.n_objects,
            "supervision": f"{report.n_training_lists:,} lists of {report.kind}",
            "files": {report.kind: as_unicode(report.log)},
            "n_queries": report.n_training_lists,
            "n_held_out": report.n_queries,
            "made_by": "aromatch trial",
            "seed": report.seed,
        }
        shipped = TrainedModel(models[report.verdict.method], preparation, preparation, metadata)
        shipped.save(path)
        written.append(path)
        code = [
            f"model = aromatch.load({path!r})",
            f"index.add(model.transform_objects(objects))  # the metric is {shipped.metric_!r}",
            "found = index.search(model.transform(queries), 10)",
        ]
    for stale in {path, os.path.join(folder, _PLOT)} - set(written):
        if os.path.exists(stale):
            os.unlink(stale)
    whole = replace(report, written=[*written, os.path.join(folder, _REPORT)], code=code, notes=notes)
    write_text(whole.written[-1], json.dumps(whole.to_dict(), indent=1))
    return whole

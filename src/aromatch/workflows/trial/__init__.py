"""Would this help us? A team's own log is cut in time, replayed, and several ways to search are held against it."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ..._utils.checks import check_choice, check_integer, check_number
from ..._utils.progress import progress_bar
from ...io.items import Items, read_items
from ..baseline import Cosine, baseline_rows
from ..preparation import Preparation, prepare_texts, prepare_vectors
from ..problem import notes_of
from .contestants import ADAPTER, Contestant, Rows, contestants
from .log import KINDS, Judged, Log, read_log
from .measures import Figures, are_near, asked_in, figures
from .picture import draw
from .shipped import Shipped, load_shipped
from .verdict import SHIP, Compared, Verdict, compared, decide, too_little

__all__ = ["Compared", "TrialReport", "Verdict", "load_shipped", "run_trial"]

# What has a file that others can use; Rocchio is there to compare with.
SHIPPABLE = ("OASIS", "d-AROMA", "f-AROMA", "MomentAROMA", ADAPTER)
# Of the older lists, the last that settings are chosen on.
_CHOSEN_ON = 0.25
_TERMS = 2_000
_SHIPPED, _PICTURE = "shipped.safetensors", "trial.png"


@dataclass(frozen=True, slots=True)
class TrialReport:
    """What a trial found."""

    data: str
    log: str
    kind: str
    """"judgements" or "clicks"."""
    rows: str
    """What the rows are that all ways to search see."""
    n_objects: int
    n_before: int
    """Older lists that tell good from bad, which were learned."""
    n_after: int
    """Queries of later lists that tell good from bad, which everything is measured on."""
    n_near: int
    """Those among them that are near to judged ones."""
    seed: int
    results: list[Compared]
    """The cosine first; nothing when there was too little to try."""
    verdict: Verdict
    written: list[str]
    code: list[str]
    """Lines that use what was exported."""
    notes: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Give the report as JSON knows it."""
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
    show_progress: bool = True,
) -> TrialReport:
    """Hold several ways to search against a team's log, and say whether one of them should be shipped.

    Parameters
    ----------
    data : path
        The objects: vectors or texts.
    log : path
        Lists that people judged or clicked; `workflows.trial.log` says what it looks like.
    kind : {"judgements", "clicks"}
    queries : path, optional
        Of the queries, when these are no objects.
    later : float, default 0.3
        Share of the lists, the latest, that everything is measured on.
    output : path, default "trial"
        Folder for the picture, the report and what is shipped. Only when something is to be shipped there is a file of
        it.
    missing : {"error", "skip"}
        What to do with ids of objects that are not there.
    seed : int, default 0
        Decides all that is drawn.
    """
    check_choice(kind, "kind", tuple(KINDS))
    check_choice(missing, "--missing", ("error", "skip"))
    check_integer(seed, "--seed", at_least=0)
    if not 0 < check_number(later, "--later", above=0) < 1:
        raise ValueError(f"--later must be a share below 1, got {later:g}")
    if os.path.exists(output) and not os.path.isdir(output):
        raise NotADirectoryError(f"{output} is there and is no folder")
    objects = read_items(data)
    asking = None if queries is None else read_items(queries, width=_width(objects))
    if asking is not None and asking.what != objects.what:
        raise ValueError(f"{asking.source} has {asking.what}, but {objects.source} has {objects.what}")
    found = read_log(log, kind, objects, asking, missing=missing)
    preparation = _prepared(objects)
    rows = Rows(preparation.rows(found.queries), preparation.rows(objects))
    n_later = round(later * len(found.lists))
    before, after = found.lists[: len(found.lists) - n_later], found.lists[len(found.lists) - n_later :]
    learned, measured = ([one for one in lists if one.tells_apart] for lists in (before, after))
    measured, n_repeated = _new_lists(measured, before)
    asked = asked_in(measured)
    notes = _notes(objects, asking, found)
    if n_repeated:
        notes.append(f"{n_repeated:,} later lists are the same as an older one, and were left out")
    if n_known := np.count_nonzero(np.isin(asked, asked_in(before))):
        notes.append(f"{n_known:,} of the later queries were judged before, too")
    verdict, near, results = too_little(len(learned), len(asked)), np.zeros(len(asked), dtype=np.bool_), []
    scorers: dict[str, Any] = {}
    if verdict is None:
        near = are_near(rows, asked_in(learned), asked)
        with threadpool_limits(1):
            results = _tried(rows, found, before, measured, near, seed, scorers, show_progress)
            notes += _note_on_all_words(objects, found, measured, results)
        notes += [
            f"{name} was left out: {rows.P.shape[1]:,} features are too many for it"
            for name in ("Rocchio", *SHIPPABLE)
            if name not in scorers
        ]
        verdict = decide(results, SHIPPABLE, kind)
    report = TrialReport(
        data=data,
        log=log,
        kind=kind,
        rows=str(preparation),
        n_objects=len(objects),
        n_before=len(learned),
        n_after=len(asked),
        n_near=int(near.sum()),
        seed=seed,
        results=results,
        verdict=verdict,
        written=[],
        code=[],
        notes=notes,
    )
    return _written(report, output, scorers, preparation)


def _width(objects: Items) -> int | None:
    return None if objects.vectors is None else objects.vectors.shape[1]


def _prepared(objects: Items) -> Preparation:
    """Make rows whose inner products are cosines."""
    everything = np.arange(len(objects))
    if objects.texts is not None:
        return prepare_texts(objects, everything, None, _TERMS)
    return prepare_vectors(objects, everything, "unit")


def _notes(objects: Items, asking: Items | None, found: Log) -> list[str]:
    notes = [note for items in (objects, asking) if items is not None for note in notes_of(items)]
    if not found.has_times:
        notes.append("no line has a time: the last lines are taken for the latest")
    if asking is None and objects.texts is not None:
        n_objects = int(np.count_nonzero(found.itself >= 0))
        notes.append(f"{n_objects:,} queries are objects by their ids, {len(found.itself) - n_objects:,} are words")
    if found.n_unknown:
        notes.append(f"{found.n_unknown:,} ids of objects that are not there were left out")
    if found.n_empty:
        notes.append(f"{found.n_empty:,} lists say nothing, and were left out")
    return notes


def _new_lists(lists: list[Judged], before: list[Judged]) -> tuple[list[Judged], int]:
    """Leave out what was said word by word before, and count it: to know it by heart is no gain."""

    def said(one: Judged) -> tuple[int, bytes, bytes]:
        return one.query, np.sort(one.good).tobytes(), np.sort(one.others).tobytes()

    known = {said(one) for one in before}
    new = [one for one in lists if said(one) not in known]
    return new, len(lists) - len(new)


def _note_on_all_words(objects: Items, found: Log, measured: list[Judged], results: list[Compared]) -> list[str]:
    """Tell how the cosine of all words does, where everything else has the most frequent ones only."""
    if objects.texts is None or (plain := baseline_rows(objects, found.queries)) is None:
        return []
    right = float(figures(Cosine(), Rows(*plain), measured, found.itself).right.mean())
    told = f"the cosine of all words, not only {_TERMS:,} terms, gets {right:.3f} right"
    return [f"{told}, against {results[0].right.after:.3f}"]


def _tried(
    rows: Rows,
    found: Log,
    before: list[Judged],
    measured: list[Judged],
    near: np.ndarray[Any, np.dtype[np.bool_]],
    seed: int,
    scorers: dict[str, Any],
    show_progress: bool,
) -> list[Compared]:
    """Let every way to search learn, and measure it; what was learned goes into `scorers`."""
    ways = contestants(rows.P.shape[1])
    results: list[Compared] = []
    base: Figures | None = None
    with progress_bar("trial", sum(len(way.settings) for way in ways), enabled=show_progress) as advance:
        for way in ways:
            begun = perf_counter()
            setting = _chosen(way, rows, found, before, seed)
            scorer = scorers[way.name] = way.learn(rows, before, found.kind, seed, **setting)
            seconds = perf_counter() - begun
            of_way = figures(scorer, rows, measured, found.itself)
            base = of_way if base is None else base
            results.append(compared(way.name, setting, base, of_way, near, seconds))
            advance(len(way.settings))
    return results


def _chosen(way: Contestant, rows: Rows, found: Log, before: list[Judged], seed: int) -> dict[str, float]:
    """Choose settings on the last of the older lists, from what came before them."""
    if len(way.settings) == 1:
        return way.settings[0]
    cut = round((1 - _CHOSEN_ON) * len(before))
    tried_on = [one for one in before[cut:] if one.tells_apart]
    if not tried_on or not any(one.tells_apart for one in before[:cut]):
        return way.settings[0]
    scores = [
        float(
            figures(
                way.learn(rows, before[:cut], found.kind, seed, **setting), rows, tried_on, found.itself
            ).right.mean()
        )
        for setting in way.settings
    ]
    return way.settings[int(np.argmax(scores))]


def _written(report: TrialReport, folder: str, scorers: dict[str, Any], preparation: Preparation) -> TrialReport:
    """Write the picture, what is to be shipped and the report."""
    os.makedirs(folder, exist_ok=True)
    written, code, notes = [], [], list(report.notes)
    if report.results:
        try:
            written.append(draw(report.results, report.verdict.method, os.path.join(folder, _PICTURE)))
        except ImportError:
            notes.append("no picture without matplotlib: pip install 'aromatch[plot]'")
    path = os.path.join(folder, _SHIPPED)
    if report.verdict.decision == SHIP:
        assert report.verdict.method is not None
        about = {
            "data": report.data,
            "n_objects": report.n_objects,
            "supervision": f"{report.n_before:,} lists of {report.kind}",
            "files": {report.kind: report.log},
            "n_queries": report.n_before,
            "n_held_out": report.n_after,
            "made_by": "aromatch trial",
            "seed": report.seed,
        }
        Shipped(scorers[report.verdict.method], preparation).save(path, about)
        written.append(path)
        code = [
            f"from aromatch.workflows.trial import load_shipped; shipped = load_shipped({path!r})",
            "index.add(shipped.object_vectors(objects))  # inner products",
            "found = index.search(shipped.query_vector(queries), 10)",
        ]
    # Of a trial before, which would be taken for one of this.
    for stale in {path, os.path.join(folder, _PICTURE)} - set(written):
        if os.path.exists(stale):
            os.unlink(stale)
    changed = {"written": [*written, os.path.join(folder, "trial.json")], "code": code, "notes": notes}
    whole = TrialReport(**{name: getattr(report, name) for name in TrialReport.__slots__} | changed)
    temporary = os.path.join(folder, ".trial.json.part")
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(whole.to_dict(), file, indent=1)
    os.replace(temporary, os.path.join(folder, "trial.json"))
    return whole

"""`aromatch trial`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .options import Json, MaxMemory, Missing, Seed
from .rendering import Screen, show

if TYPE_CHECKING:
    from ..workflows.evaluate import Measure
    from ..workflows.trial import TrialReport

_STYLES = {"ship": "bold green", "don't ship": "bold red", "not enough evidence": "bold yellow"}


def trial(
    data: Annotated[str, typer.Argument(help="The objects: vectors or texts, a file or a folder.", metavar="DATA")],
    judgements: Annotated[
        str | None, typer.Option(help="Log with query, good and bad, and an optional time: .csv or .jsonl.")
    ] = None,
    clicks: Annotated[
        str | None, typer.Option(help="Log with query, shown and clicked, and an optional time: .csv or .jsonl.")
    ] = None,
    queries: Annotated[str | None, typer.Option(help="Queries, if they are neither ids of objects nor words.")] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", help="Folder for the report, the plot and the shipped model.")
    ] = "trial",
    later: Annotated[float, typer.Option(help="Share of the lists, the latest, to compare methods on.")] = 0.3,
    missing: Missing = "error",
    seed: Seed = 0,
    max_memory: MaxMemory = None,
    json: Json = False,
) -> None:
    """Find out from a log whether learning would help a search: ship, don't ship, or not enough evidence.

    The log is split in time. Cosine, Rocchio, OASIS, d-AROMA, f-AROMA, MomentAROMA, TripletEmbedding and the adapter
    are trained on the older lists and compared on the later ones, for queries near judged ones and far from them.
    """
    from ..workflows.trial import run_trial

    given = {kind: path for kind, path in (("judgements", judgements), ("clicks", clicks)) if path is not None}
    if len(given) != 1:
        raise ValueError(f"exactly one of --judgements and --clicks is required, got {'both' if given else 'neither'}")
    ((kind, log),) = given.items()
    report = run_trial(data, log, kind=kind, queries=queries, later=later, output=output, missing=missing, seed=seed)
    show(report, render, json)


def render(screen: Screen, report: TrialReport) -> None:
    """Print the report."""
    screen.print(screen.text(f"{report.log} on {report.data}", "bold"))
    if report.results:
        screen.print(
            screen.text(f"{report.n_objects:,} objects, {report.prepared}; seed {report.seed}."),
            screen.text(
                f"Trained on {report.n_training_lists:,} older lists, compared on {report.n_queries:,} queries of "
                f"later ones, {report.n_near:,} of them near judged queries."
            ),
        )
        table = screen.table("", "correct", "gain", "near", "far", "first", "judged")
        for one in report.results:
            gain = f"{_gain(one.correct)} {screen.plus_minus} {one.correct.error or 0.0:.3f}"
            gains = map(_gain, (one.near, one.far, one.first))
            is_shipped = one.name == report.verdict.method
            style = "green" if is_shipped else "dim" if one.worse_part else ""
            table.add_row(one.name, f"{one.correct.learned:.3f}", gain, *gains, f"{one.judged:.0%}", style=style)
        screen.padded(table)
        screen.print(
            screen.text(
                "correct: share of correctly ordered comparisons in a list. gain: over the cosine, with a 95 % "
                "interval, paired over queries. near, far: gain for queries near judged ones and for the others. "
                "first: gain in the share of lists whose top object is good. judged: share of the ten best objects "
                "that were in the list; objects that were not shown have no feedback.",
                "dim",
            )
        )
    else:
        screen.print(screen.text(f"{report.n_objects:,} objects. Nothing was compared."))
    verdict = report.verdict
    screen.print("", screen.text(verdict.decision.capitalize(), _STYLES[verdict.decision]))
    screen.print(screen.text(f"{verdict.reason[0].upper()}{verdict.reason[1:]}."))
    if report.code:
        screen.print("")
        for line in report.code:  # to be copied, so never wrapped
            screen.terminal.print(screen.text(f"    {line}"), soft_wrap=True)
        screen.print("")
    for path in report.written:
        screen.print(screen.text(f"wrote {path}"))
    screen.notes(report.notes)


def _gain(measure: Measure | None) -> str:
    return "-" if measure is None or measure.difference is None else f"{measure.difference:+.3f}"

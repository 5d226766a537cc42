"""`aromatch search`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .options import Data, Json, MaxMemory, Model, TrustRecordedPaths
from .rendering import Screen, show

if TYPE_CHECKING:
    from ..workflows.search import Answer, SearchReport


def search(
    model: Model,
    words: Annotated[str | None, typer.Argument(help="The query.", metavar="[WORDS]")] = None,
    like: Annotated[str | None, typer.Option(help="Id of an object that is the query.")] = None,
    queries: Annotated[str | None, typer.Option(help="A file or folder of queries.")] = None,
    data: Data = None,
    trust_recorded_paths: TrustRecordedPaths = False,
    k: Annotated[int, typer.Option("-k", min=1, help="Number of results.")] = 10,
    compare: Annotated[bool, typer.Option("--compare", help="Show the results of the cosine as well.")] = False,
    max_memory: MaxMemory = None,
    json: Json = False,
) -> None:
    """Search a collection with a model.

    With --json each score has its standard deviation, if the model has one.
    """
    from ..workflows.search import search as run

    report = run(
        model,
        words,
        like=like,
        queries=queries,
        data=data,
        k=k,
        compare=compare,
        trust_recorded_paths=trust_recorded_paths,
    )
    show(report, render, json)


def render(screen: Screen, report: SearchReport) -> None:
    """Print the report."""
    screen.notes(report.notes)
    for answer in report.answers:
        screen.print(screen.text(answer.query, "bold"))
        if answer.is_baseline:
            screen.notes(
                ["no word is a term of the model: these are the results of the cosine; train with more --terms"]
            )
        elif answer.unknown_words:
            screen.print(screen.text(f"unknown words: {', '.join(answer.unknown_words)}", "dim"))
        if answer.baseline is None:
            _print_hits(screen, answer)
        else:
            _print_both(screen, answer)
        screen.print("")


def _print_hits(screen: Screen, answer: Answer) -> None:
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(justify="right", style="dim")
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold", style="bold")
    for hit in answer.hits:
        table.add_row(str(hit.rank), f"{hit.score:.3f}", screen.text(hit.id))
        if hit.text:
            table.add_row("", "", screen.text(hit.text, "not bold dim"))
    screen.print(table)


def _print_both(screen: Screen, answer: Answer) -> None:
    from rich.table import Table

    assert answer.baseline is not None
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="italic", expand=True)
    table.add_column(justify="right", style="dim")
    for name in ("baseline", "model"):
        table.add_column(name, ratio=1, no_wrap=True, overflow="crop" if screen.is_ascii else "ellipsis")
    for rank, (before, after) in enumerate(zip(answer.baseline, answer.hits, strict=True), start=1):
        table.add_row(str(rank), screen.text(before.id), screen.text(after.id))
    screen.print(table)

"""`aromatch explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .options import Data, Json, MaxMemory, Model, TrustRecordedPaths
from .rendering import Screen, show

if TYPE_CHECKING:
    from ..workflows.explain import ExplainReport


def explain(
    model: Model,
    found: Annotated[str, typer.Argument(help="Id of the object.", metavar="ID")],
    words: Annotated[str | None, typer.Argument(help="The query.", metavar="[WORDS]")] = None,
    like: Annotated[str | None, typer.Option(help="Id of an object that is the query.")] = None,
    data: Data = None,
    trust_recorded_paths: TrustRecordedPaths = False,
    top: Annotated[int, typer.Option(min=1, help="Number of pairs.")] = 10,
    max_memory: MaxMemory = None,
    json: Json = False,
) -> None:
    """Explain a score by the pairs of terms or features that contribute most to it."""
    from ..workflows.explain import explain as run

    report = run(model, found, words, like=like, data=data, top=top, trust_recorded_paths=trust_recorded_paths)
    show(report, render, json)


def render(screen: Screen, report: ExplainReport) -> None:
    """Print the report."""
    screen.print(screen.text(f"{report.query}  ->  {report.object}", "bold"))
    if report.text:
        screen.print(screen.text(report.text, "dim"))
    table = screen.table("query", "object", "contribution", "std", left=2)
    for one in report.contributions:
        std = "" if one.std is None else f"{one.std:.3f}"
        names = screen.text(one.of_query), screen.text(one.of_object)
        table.add_row(*names, f"{one.value:+.3f}", std, style="green" if one.value > 0 else "red")
    table.add_row("all other pairs", "", f"{report.rest:+.3f}", "", style="dim")
    std = "" if report.std is None else f"{report.std:.3f}"
    table.add_row("score", "", f"{report.score:+.3f}", std, style="bold")
    screen.padded(table)
    screen.notes(report.notes)

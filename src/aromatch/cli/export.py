"""`aromatch export`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .options import Json, MaxMemory, Model
from .rendering import Screen, show

if TYPE_CHECKING:
    from ..workflows.export import ExportReport


def export(
    model: Model,
    output: Annotated[str, typer.Option("--output", "-o", help="The folder to write to.")],
    n_components: Annotated[
        int | None,
        typer.Option(min=1, help="Number of dimensions of the vectors.", show_default="the exact maps"),
    ] = None,
    max_memory: MaxMemory = None,
    json: Json = False,
) -> None:
    """Write the maps of a model for a vector store, with recipes for FAISS and pgvector.

    The maps of queries and objects are written as npz and safetensors. The report names the metric of the store.
    """
    from ..workflows.export import export as run

    show(run(model, output, n_components=n_components), render, json)


def render(screen: Screen, report: ExportReport) -> None:
    """Print the report."""
    lost = "" if report.lost_share is None else f", {report.lost_share:.1%} of the squared norm of W lost"
    screen.print(screen.text(f"{report.model}: vectors of {report.n_components:,} dimensions{lost}", "bold"))
    screen.grid(
        [("metric", report.metric), *(("written" if not at else "", path) for at, path in enumerate(report.files))]
    )
    screen.notes(report.notes)

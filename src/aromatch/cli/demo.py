"""`aromatch demo`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .options import Json
from .rendering import Screen, show

if TYPE_CHECKING:
    from rich.text import Text

    from ..workflows.demo import DemoReport, Neighbour, QueryResult

_NEXT = (
    ("aromatch train FOLDER -o MODEL", "train on a folder of texts"),
    ('aromatch search MODEL "WORDS" --data FOLDER', "search it"),
    ("aromatch trial VECTORS.npz --clicks LOG.jsonl", "replay the log of a search"),
)


def demo(
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the split and of the triplets.")] = 0,
    triplets: Annotated[
        int | None, typer.Option(min=1, help="Number of training triplets.", show_default="50,000")
    ] = None,
    plot: Annotated[str | None, typer.Option(help="Image file for the best results before and after.")] = None,
    json: Json = False,
) -> None:
    """Learn which docstrings of Python's standard library belong to the same module.

    The corpus is on every machine, and the demo takes less than half a minute. It prints precision and mAP of the
    cosine, OASIS, d-AROMA, f-AROMA and TripletEmbedding on held-out docstrings, and neighbours before and after.
    """
    from ..workflows.demo import N_TRIPLETS, run_demo

    show(run_demo(seed, N_TRIPLETS if triplets is None else triplets, plot=plot), render, json)


def render(screen: Screen, report: DemoReport) -> None:
    """Print the report."""
    screen.print(
        screen.text(f"Which docstrings of Python {report.python_version} belong together?", "bold"),
        screen.text(
            f"{report.n_entries:,} docstrings of {report.n_modules} modules, {report.n_terms:,} terms, seed "
            f"{report.seed}. Trained on {report.n_training:,};"
        ),
        screen.text(f"each of the other {report.n_held_out:,} is a query for docstrings of its module."),
    )
    table = screen.table("", "P@1", "P@10", "mAP", "triplets", "seconds")
    best = max(result.precision_at_10 for result in report.results)
    for result in report.results:
        values = (result.precision_at_1, result.precision_at_10, result.mean_average_precision)
        cost = (f"{result.n_triplets:,}", f"{result.seconds:.1f}") if result.n_triplets else ()
        style = "bold green" if result.precision_at_10 == best else ""
        table.add_row(result.method, *(f"{value:.3f}" for value in values), *cost, style=style)
    screen.padded(table)
    screen.print(
        screen.text(
            "P@k: share of the k nearest that are of the same module. mAP: of the whole ranking.",
            "dim",
        ),
        screen.text("embedding: TripletEmbedding, which is not in the paper.", "dim"),
    )
    for query in report.queries:
        _print_query(screen, query)
    screen.print("", screen.text("Try next:", "bold"))
    screen.grid((command, description) for command, description in _NEXT)


def _print_query(screen: Screen, query: QueryResult) -> None:
    from rich.padding import Padding
    from rich.table import Table

    def marked(neighbour: Neighbour) -> Text:
        sign = ("+" if screen.is_ascii else "✓") if neighbour.same_module else ("-" if screen.is_ascii else "·")
        return screen.text(f"{sign} {neighbour.name}", "green" if neighbour.same_module else "dim")

    table = Table(box=None, pad_edge=False, expand=True, header_style="italic")
    for name, found in (("cosine", query.before), ("embedding", query.after)):
        n_same = sum(one.same_module for one in found)
        title = f"{name}, {n_same} of {len(found)} of the module"
        table.add_column(title, ratio=1, no_wrap=True, overflow="crop" if screen.is_ascii else "ellipsis")
    for before, after in zip(query.before, query.after, strict=True):
        table.add_row(marked(before), marked(after))
    screen.print("", screen.text(query.name, "bold"), screen.text(query.text), Padding(table, (0, 2)))

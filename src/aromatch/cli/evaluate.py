"""`aromatch eval`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .options import Clicks, Data, Json, Labels, MaxMemory, Model, Qrels, Queries, Triplets, TrustRecordedPaths
from .rendering import Screen, show

if TYPE_CHECKING:
    from ..workflows.evaluate import EvalReport, Measure


def evaluate(
    model: Model,
    data: Data = None,
    queries: Queries = None,
    labels: Labels = None,
    triplets: Triplets = None,
    qrels: Qrels = None,
    clicks: Clicks = None,
    trust_recorded_paths: TrustRecordedPaths = False,
    k: Annotated[str, typer.Option("-k", help="Cutoffs of precision and nDCG, separated by commas.")] = "1,10",
    run: Annotated[
        str | None, typer.Option(help="Write the rankings as a TREC run; those of the baseline with .baseline.")
    ] = None,
    include_training: Annotated[
        bool, typer.Option("--include-training", help="Include the training queries, which biases the measures.")
    ] = False,
    missing: Annotated[str | None, typer.Option(help="Unknown ids: error or skip.", metavar="NAME")] = None,
    max_memory: MaxMemory = None,
    json: Json = False,
) -> None:
    """Compare a model with the cosine on queries that it was not trained on.

    Prints precision at k, nDCG at k and mAP with a paired t-test. For triplets and clicks it prints the share of
    correctly ordered comparisons.
    """
    from ..workflows.evaluate import evaluate as run_evaluation

    report = run_evaluation(
        model,
        data=data,
        queries=queries,
        files={"labels": labels, "triplets": triplets, "qrels": qrels, "clicks": clicks},
        missing=missing,
        ks=_integers(k),
        run=run,
        include_training=include_training,
        trust_recorded_paths=trust_recorded_paths,
    )
    show(report, render, json)


def _integers(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and int(part) > 0 for part in parts):
        raise ValueError(f"-k must be integers separated by commas, such as 1,10, got {text!r}")
    return list(dict.fromkeys(map(int, parts)))


def render(screen: Screen, report: EvalReport) -> None:
    """Print the report."""
    left_out = f" ({report.n_training_left_out:,} training queries left out)" if report.n_training_left_out else ""
    screen.print(
        screen.text(f"{report.model} on {report.data}", "bold"),
        screen.text(f"{report.n_queries:,} queries{left_out}, {report.n_objects:,} objects; {report.supervision}"),
    )
    table = screen.table("", "baseline", "model", "difference", "95 %", "p")
    for measure in report.measures:
        table.add_row(*_cells(screen, measure), style=_style(measure))
    screen.padded(table)
    screen.print(screen.text(f"baseline: {report.baseline}. p: paired t-test over queries.", "dim"))
    for path in report.runs:
        screen.print(screen.text(f"wrote {path}"))
    if report.n_queries_left_out:
        screen.notes([f"{report.n_queries_left_out:,} queries without a relevant object are left out"])
    screen.notes(report.notes)


def _cells(screen: Screen, measure: Measure) -> list[str]:
    name = "correct comparisons" if measure.name == "correct" else measure.name
    if measure.baseline is None or measure.difference is None:
        return [name, "-", f"{measure.learned:.3f}", "", "", ""]
    error = "" if measure.error is None else f"{screen.plus_minus}{measure.error:.3f}"
    p = "" if measure.p is None else "< 0.001" if measure.p < 0.001 else f"{measure.p:.3f}"
    return [name, f"{measure.baseline:.3f}", f"{measure.learned:.3f}", f"{measure.difference:+.3f}", error, p]


def _style(measure: Measure) -> str:
    """Return a colour for significant differences."""
    if measure.p is None or measure.p >= 0.05 or not measure.difference:
        return ""
    return "green" if measure.difference > 0 else "red"

"""`aromatch train`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ..learners.registry import COMMANDS
from .options import Clicks, Json, Labels, MaxMemory, Missing, Qrels, Queries, Seed, Triplets
from .rendering import Screen, show, size

if TYPE_CHECKING:
    from ..workflows.train import TrainReport


def train(
    data: Annotated[
        str,
        typer.Argument(
            help="The collection: a folder of texts, or a file .csv, .tsv, .jsonl, .npy, .npz or .svmlight.",
            metavar="DATA",
        ),
    ],
    output: Annotated[str, typer.Option("--output", "-o", help="The model file to write.")],
    queries: Queries = None,
    labels: Labels = None,
    triplets: Triplets = None,
    qrels: Qrels = None,
    clicks: Clicks = None,
    learner: Annotated[str, typer.Option(help=f"auto, or one of {', '.join(COMMANDS)}.", metavar="NAME")] = "auto",
    r: Annotated[float | None, typer.Option("--r", help="Noise variance; larger values learn more slowly.")] = None,
    c: Annotated[float | None, typer.Option("--c", help="Largest step size.")] = None,
    alpha: Annotated[
        float | None,
        typer.Option(help="Regularization strength.", show_default="chosen by validation"),
    ] = None,
    init: Annotated[
        str | None,
        typer.Option(help="Initial W: zero, identity or a multiple of it."),
    ] = None,
    n_triplets: Annotated[int, typer.Option(min=1, help="Number of triplets to sample from labels.")] = 50_000,
    terms: Annotated[
        int | None,
        typer.Option(min=1, help="Number of terms of texts.", show_default="1,000 with labels, 4,000 without"),
    ] = None,
    scale: Annotated[
        str, typer.Option(help="Scaling of vectors: none, unit, centre or standard.", metavar="NAME")
    ] = "auto",
    hold_out: Annotated[float, typer.Option(help="Share of the queries to hold out for `aromatch eval`.")] = 0.0,
    missing: Missing = "error",
    seed: Seed = 0,
    force: Annotated[
        bool, typer.Option("--force", help="Write the model even if validation finds no improvement.")
    ] = False,
    restart: Annotated[bool, typer.Option("--restart", help="Ignore an existing checkpoint.")] = False,
    checkpoint_seconds: Annotated[float, typer.Option(min=0, help="Seconds between checkpoints.")] = 30.0,
    max_memory: MaxMemory = None,
    json: Json = False,
) -> None:
    """Train a model of similarity on a collection and write it to a file.

    The supervision is labels (subfolders of DATA are labels), triplets, relevance judgements or clicks. With the
    default learner, auto, all candidates are validated and the best one is trained; if none beats the cosine, nothing
    is written and the exit code is 3. After Ctrl-C the same command resumes with a bit-identical result.
    """
    from ..workflows.fitting import LearnerOptions
    from ..workflows.train import TrainOptions
    from ..workflows.train import train as run

    options = TrainOptions(
        data=data,
        output=output,
        queries=queries,
        labels=labels,
        triplets=triplets,
        qrels=qrels,
        clicks=clicks,
        missing=missing,
        learner=LearnerOptions(learner, r=r, C=c, alpha=alpha, init=init, n_triplets=n_triplets),
        terms=terms,
        scale=scale,
        hold_out=hold_out,
        seed=seed,
        force=force,
        restart=restart,
        checkpoint_seconds=checkpoint_seconds,
    )
    show(run(options), render, json)


def render(screen: Screen, report: TrainReport) -> None:
    """Print the report."""
    rows = [
        (report.what, f"{report.n_objects:,}, {report.prepared}"),
        ("supervision", report.supervision),
        ("queries", f"{report.n_queries:,} for training, {report.n_held_out:,} held out, seed {report.seed}"),
        ("learner", report.learner),
    ]
    if report.n_updates is not None and report.n_triplets:
        resumed = f", {report.resumed_from:,} of them in an earlier run" if report.resumed_from else ""
        rows.append(("triplets", f"{report.n_triplets:,}{resumed}, {report.n_updates / report.n_triplets:.0%} updates"))
    if report.validation_scores:
        best = max(report.validation_scores.values())
        rows.append(("validation", "mAP on a fifth of the training queries:"))
        for name, score in report.validation_scores.items():
            rows.append(("", f"{score:.3f}  {name}{' (best)' if score == best else ''}"))
    rows.append(("written", f"{report.output}, {size(report.n_bytes)}, after {report.seconds:.1f} s"))
    screen.print(screen.text(f"Trained on {report.data}.", "bold"))
    screen.grid(rows)
    screen.notes(report.notes)

"""The command that tells a team whether learning would help its search."""

from typing import Annotated, Any

import typer


def trial(
    data: Annotated[
        str, typer.Argument(help="The objects that are searched: vectors or texts, a file or a folder.", metavar="DATA")
    ],
    judgements: Annotated[
        str | None, typer.Option(help="The log: query, good and bad, .csv or .jsonl, with a time if you like.")
    ] = None,
    clicks: Annotated[
        str | None, typer.Option(help="The log: query, shown and clicked, .csv or .jsonl, with a time if you like.")
    ] = None,
    queries: Annotated[
        str | None, typer.Option(help="A file or folder of queries, when these are neither objects nor words.")
    ] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", help="Folder for the report, the picture and what is shipped.")
    ] = "trial",
    later: Annotated[float, typer.Option(help="Share of the lists, the latest, that is measured on.")] = 0.3,
    missing: Annotated[
        str, typer.Option(help="What to do with ids of objects that are gone: error or skip.", metavar="NAME")
    ] = "error",
    seed: Annotated[int, typer.Option(min=0, help="Decides all that is drawn.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print JSON only, for programs.")] = False,
) -> None:
    """Tell whether learning would help your search: ship, don't ship, or not enough evidence.

    Your own log is cut in time and replayed. Cosine, Rocchio, OASIS, d-AROMA, f-AROMA, MomentAROMA and the safe adapter
    learn from the older lists and are held against the later ones, near to judged queries and unlike them.
    """
    from ..workflows.trial import run_trial

    given = {kind: path for kind, path in (("judgements", judgements), ("clicks", clicks)) if path is not None}
    if len(given) != 1:
        raise ValueError(f"give --judgements or --clicks, one of them, got {len(given)}")
    ((kind, log),) = given.items()
    report = run_trial(data, log, kind=kind, queries=queries, later=later, output=output, missing=missing, seed=seed)
    if json:
        from json import dumps

        typer.echo(dumps(report.to_dict(), indent=2, ensure_ascii=False))
    else:
        from .trial_printing import TrialPrinter

        TrialPrinter().trial(report)


def add_to(app: Any) -> None:
    """Add the command."""
    app.command(epilog="Example: aromatch trial articles.npz --queries queries.npz --clicks log.jsonl")(trial)

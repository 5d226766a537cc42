"""The commands about the paper: a demonstration, and its experiments."""

from typing import Annotated

import typer


def demo(
    seed: Annotated[int, typer.Option(min=0, help="Decides the split, the triplets and the queries shown.")] = 0,
    triplets: Annotated[
        int | None, typer.Option(min=1, help="How many triplets to learn from.", show_default="50,000")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON only, for programs.")] = False,
) -> None:
    """Learn which docstrings of Python's standard library belong together.

    The corpus is on every machine, and it takes less than half a minute. Shows precision and mAP of cosine,
    OASIS, d-AROMA, f-AROMA and the best that we know on docstrings held out from learning, and what a few of these
    find before and after.
    """
    from ..workflows.demo import N_TRIPLETS, render, run_demo

    report = run_demo(seed, N_TRIPLETS if triplets is None else triplets)
    if json:
        from json import dumps

        typer.echo(dumps(report.to_dict(), indent=2))
    else:
        from .printing import console

        terminal = console()
        terminal.print(render(report, plain=not terminal.encoding.startswith("utf")))


def reproduce(
    figure: Annotated[str, typer.Argument(help="fig3 (images), fig4 (texts) or all.", metavar="fig3|fig4|all")] = "all",
    quick: Annotated[bool, typer.Option("--quick", help="A smaller version of everything.")] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Decides splits and triplets.", show_default="that of the settings")
    ] = None,
    output: Annotated[
        str, typer.Option(help="Folder for results.md, and for results/ with figures and raw results.")
    ] = "reproduced",
    jobs: Annotated[int | None, typer.Option(min=1, help="How many processes.", show_default="all cores")] = None,
    cell: Annotated[
        str | None, typer.Option(help="Compute only this cell of the raw results again, and compare.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON only, for programs.")] = False,
) -> None:
    """Run the paper's experiments: both tasks, all methods, all six panels, every claim.

    Writes figures, raw results and a page of tables and verdicts. After an interruption the same command goes on
    where it stopped. The data sets have to be there: a message says where to get one that is not.
    """
    from json import dumps

    from ..paper.reproduce import reproduce as run
    from ..paper.reproduce import reproduce_cell
    from ..paper.spec import FIGURES

    if figure not in (*FIGURES, "all"):
        raise ValueError(f"the figure must be fig3, fig4 or all, got {figure!r}")
    if cell is not None:
        if figure == "all":
            raise ValueError("--cell needs to know the figure: aromatch reproduce fig4 --cell ...")
        report = reproduce_cell(output, figure, cell)
        typer.echo(
            dumps(report, indent=2) if json else f"{report['name']}: {'same' if report['same'] else 'DIFFERENT'}"
        )
        raise typer.Exit(0 if report["same"] else 1)
    report = run(FIGURES if figure == "all" else (figure,), folder=output, quick=quick, seed=seed, n_jobs=jobs)
    typer.echo(dumps(report, indent=2) if json else "\n".join(report["written"]))


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(epilog="Example: aromatch demo --seed 1 --json > demo.json")(demo)
    app.command(epilog="Example: aromatch reproduce fig4 --quick --output quick")(reproduce)

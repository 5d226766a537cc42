"""The command line: parse, call one function, print.

Only typer is imported here; what a command needs is imported when it runs, so that help comes at once.
"""

import sys
from io import TextIOWrapper
from typing import Annotated

import typer

from . import __version__

# Columns: lines that are longer are hard to read, however wide the terminal.
WIDEST = 100
# Exit code that typer gives after Ctrl-C.
INTERRUPTED = 130

app = typer.Typer(
    name="aromatch",
    help="Learn what similar means from relative judgements, one at a time, and know how sure you are.",
    add_completion=False,
    pretty_exceptions_enable=False,
    # Help and usage errors as plain text: formatting them with rich would double the time they take.
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"aromatch {__version__}")
        raise typer.Exit


@app.callback(epilog="Example: aromatch demo")
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command(epilog="Example: aromatch demo --seed 1 --json > demo.json")
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
    from .experiments.demo import N_TRIPLETS, render, run_demo

    report = run_demo(seed, N_TRIPLETS if triplets is None else triplets)
    if json:
        from json import dumps

        typer.echo(dumps(report.to_dict(), indent=2))
    else:
        from rich.console import Console

        console = Console(highlight=False)
        console.width = min(console.width, WIDEST)
        console.print(render(report, plain=not console.encoding.startswith("utf")))


@app.command(epilog="Example: aromatch reproduce fig4 --quick --output quick")
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

    from .experiments.reproduce import reproduce as run
    from .experiments.reproduce import reproduce_cell
    from .experiments.spec import FIGURES

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


def main() -> None:
    """Run the command line; say in one line, with exit code 2, what is wrong with the input."""
    # A docstring may hold a character that the terminal does not have.
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    try:
        code = app(sys.argv[1:] or ["--help"], prog_name="aromatch", standalone_mode=False) or 0
    except Exception as error:
        # Typer's usage errors have a `format_message`; their class is not public.
        usage = getattr(error, "format_message", None)
        if usage is None and not isinstance(error, ValueError | TypeError | OSError | MemoryError | ImportError):
            raise
        message = str(error) if usage is None else usage()
        print(f"aromatch: {' '.join(message.split()) or type(error).__name__}", file=sys.stderr)
        code = 2
    if code == INTERRUPTED:
        print("aromatch: interrupted", file=sys.stderr)
    sys.exit(code)

"""The command line: parse, call one function, print.

Only typer is imported here; what a command needs is imported when it runs, so that help comes at once.
"""

import sys
from io import TextIOWrapper
from typing import Annotated

import typer

from .. import __version__
from . import models, paper, trials

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


@app.callback(epilog="Example: aromatch train papers --output papers.safetensors")
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


models.add_to(app)
trials.add_to(app)
paper.add_to(app)


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

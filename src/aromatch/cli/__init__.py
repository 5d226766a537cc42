"""The command line: one command a file, which parses options, calls one function and prints its report.

Only typer is imported here; commands import what they need when they run, so that help is printed at once.
"""

import sys
import warnings
from io import TextIOWrapper
from typing import Annotated

import typer

from .. import __version__
from .._utils.printable import print_lines
from ..exceptions import AromatchError, NoImprovementError
from .ask import ask
from .demo import demo
from .evaluate import evaluate
from .explain import explain
from .export import export
from .info import info
from .reproduce import reproduce
from .search import search
from .train import train
from .trial import trial

BAD_INPUT, NO_IMPROVEMENT, INTERRUPTED = 2, 3, 130

app = typer.Typer(
    name="aromatch",
    help="Learn similarity from relative feedback, online and with uncertainty.",
    add_completion=False,
    pretty_exceptions_enable=False,
    # Help and usage errors as plain text: formatting them with rich would double their time.
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print_lines(f"aromatch {__version__}")
        raise typer.Exit


@app.callback(epilog="Example: aromatch train papers --output papers.safetensors")
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


app.command(epilog="Example: aromatch train papers --hold-out 0.2 --output papers.safetensors")(train)
app.command("eval", epilog="Example: aromatch eval papers.safetensors --data papers --run papers.run")(evaluate)
app.command(epilog='Example: aromatch search papers.safetensors "a few words" --data papers --compare')(search)
app.command(epilog='Example: aromatch explain papers.safetensors space/17.txt "a few words" --data papers')(explain)
app.command(epilog="Example: aromatch ask papers.safetensors --data papers -n 20")(ask)
app.command(epilog="Example: aromatch export papers.safetensors --n-components 64 --output vectors")(export)
app.command(epilog="Example: aromatch info papers.safetensors --json")(info)
app.command(epilog="Example: aromatch trial articles.npz --queries queries.npz --clicks log.jsonl")(trial)
app.command(epilog="Example: aromatch demo --seed 1 --json > demo.json")(demo)
app.command(epilog="Example: aromatch reproduce fig4 --quick --output quick")(reproduce)


def main() -> None:
    """Run the command line; print errors in one line, with exit code 2, or 3 for a model without improvement."""
    # A text may contain a character that the terminal cannot print.
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: _print_error(f"warning: {message}")
        try:
            code = app(sys.argv[1:] or ["--help"], prog_name="aromatch", standalone_mode=False) or 0
        except Exception as error:
            # Typer's usage errors have a `format_message`; their class is not public.
            usage = getattr(error, "format_message", None)
            expected = AromatchError | ValueError | TypeError | OSError | MemoryError | ImportError
            if usage is None and not isinstance(error, expected):
                raise
            _print_error((str(error) if usage is None else usage()) or type(error).__name__)
            code = NO_IMPROVEMENT if isinstance(error, NoImprovementError) else BAD_INPUT
    if code == INTERRUPTED:
        _print_error("interrupted")
    sys.exit(code)


def _print_error(message: str) -> None:
    line = " ".join(part.strip() for part in message.split("\n"))
    print_lines(f"aromatch: {line}", to_stderr=True)

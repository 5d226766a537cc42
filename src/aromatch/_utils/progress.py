"""Progress bars on standard error."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .printable import printable


@contextmanager
def progress_bar(description: str, total: int, *, enabled: bool = True) -> Iterator[Callable[..., None]]:
    """Show a progress bar; the context manager returns a function of the completed steps and an optional note.

    The bar shows the remaining time. It is written to standard error if that is a terminal, else nothing is written.

    >>> with progress_bar("learning", total=2, enabled=False) as advance:
    ...     advance(2)
    """
    if not (enabled and sys.stderr.isatty()):
        yield lambda steps, note="": None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from .terminal import Terminal

    title, note = (TextColumn(part, markup=False) for part in ("{task.description}", "{task.fields[note]}"))
    columns = (title, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), note)
    with Progress(*columns, console=Terminal(stderr=True), transient=True) as bar:
        task = bar.add_task(printable(description), total=total, note="")
        yield lambda steps, note="": bar.update(task, advance=steps, note=note)

"""Progress bars on standard error."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


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
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    counts, note = MofNCompleteColumn(), TextColumn("{task.fields[note]}")
    columns = (TextColumn("{task.description}"), BarColumn(), counts, TimeRemainingColumn(), note)
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=total, note="")
        yield lambda steps, note="": bar.update(task, advance=steps, note=note)

"""Long work in pieces: Ctrl-C is answered between two of them, and a bar moves where a person is watching."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter


@contextmanager
def progress_bar(description: str, total: int, *, enabled: bool = True) -> Iterator[Callable[..., None]]:
    """Give a function that takes how many more steps are done, and what else there is to tell, if anything.

    The bar goes to standard error, with the time that remains, and only when that is a terminal.

    >>> with progress_bar("learning", total=2, enabled=False) as advance:
    ...     advance(2)
    """
    if not (enabled and sys.stderr.isatty()):
        yield lambda steps, told="": None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    counts, told = MofNCompleteColumn(), TextColumn("{task.fields[told]}")
    columns = (TextColumn("{task.description}"), BarColumn(), counts, TimeRemainingColumn(), told)
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=total, told="")
        yield lambda steps, told="": bar.update(task, advance=steps, told=told)


def pieces(total: int, *, seconds: float = 0.05, most: int = 2**14) -> Iterator[slice]:
    """Cut `total` steps into slices that take about `seconds` each, by how long the last one took.

    >>> list(pieces(20, most=8))
    [slice(0, 8, None), slice(8, 16, None), slice(16, 20, None)]
    """
    start, size = 0, min(16, most)
    while start < total:
        end = min(start + size, total)
        begun = perf_counter()
        yield slice(start, end)
        took = perf_counter() - begun
        if took < seconds / 2:
            size = min(2 * size, most)
        elif took > 2 * seconds:
            size = max(1, size // 2)
        start = end

"""Slices over long arrays and long loops, so that memory stays bounded and an interrupt is answered."""

from collections.abc import Iterator
from time import perf_counter


def chunks(n: int, size: int) -> Iterator[slice]:
    """Return consecutive slices of `size` rows that cover n rows; the last one may be shorter.

    A `size` below one counts as one, so a memory budget divided by the width of a row can be passed as it is.

    >>> list(chunks(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    >>> list(chunks(0, 2))
    []
    """
    size = max(1, size)
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def timed_chunks(n: int, *, seconds: float = 0.05, max_size: int = 2**14) -> Iterator[slice]:
    """Return consecutive slices that cover n rows and take about `seconds` each.

    The size of a chunk is adapted to the time that the caller spent on the previous one, so that Ctrl-C is answered
    and a progress bar moves whatever a row costs. Results must not depend on where the chunks end.

    >>> list(timed_chunks(20, max_size=8))
    [slice(0, 8, None), slice(8, 16, None), slice(16, 20, None)]
    """
    start, size = 0, min(16, max_size)
    while start < n:
        end = min(start + size, n)
        began = perf_counter()
        yield slice(start, end)
        elapsed = perf_counter() - began
        if elapsed < seconds / 2:
            size = min(2 * size, max_size)
        elif elapsed > 2 * seconds:
            size = max(1, size // 2)
        start = end

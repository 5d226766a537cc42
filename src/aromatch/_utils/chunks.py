"""Slices over long arrays and long loops, which bound the memory and the time until an interrupt is handled."""

from collections.abc import Iterator
from time import perf_counter


def chunks(n: int, size: int) -> Iterator[slice]:
    """Return consecutive slices of `size` rows that cover n rows; the last one may be shorter.

    A `size` below one counts as one, so it can be a memory budget divided by the width of a row.

    >>> list(chunks(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    >>> list(chunks(0, 2))
    []
    """
    size = max(1, size)
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def timed_chunks(n: int, *, seconds: float = 0.05, max_size: int = 2**14) -> Iterator[slice]:
    """Return consecutive slices that cover n rows and take about `seconds` each.

    The size of a chunk adapts to the time that the caller spent on the previous one, so the response to Ctrl-C and the
    steps of a progress bar do not depend on the cost of a row. Results must not depend on the chunk boundaries.

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

"""Limits on the memory that a file may take.

A few bytes can ask for any amount: an archive expands a thousand times, and a sparse row of 30 bytes may have a value
in column 2,000,000,000. A reader therefore computes what it is about to allocate, conversions included, and calls
`check_memory` first. The limit is half of the machine's memory, and no more than `MAX_EXPANSION` times the size of the
file or `MIN_LIMIT`, whichever is larger. A limit that the user sets (``--max-memory``) replaces both.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from .._utils.checks import check_fits_in_memory, machine_memory, max_memory
from ..exceptions import InsufficientMemoryError

# Dense arrays with few non-zeros compress up to about this ratio; a thousand is the limit of the method.
MAX_EXPANSION = 100
MIN_LIMIT = 2**30
# Bytes of a row: its id, a str of its own, and its entries in lists and dicts.
BYTES_OF_ROW = 256
# Bytes of a column of a sparse matrix: the smallest model has a weight for each. Training keeps eight vectors of this
# length, with the copies that validation, checkpoints and the file need; twice that is counted.
BYTES_OF_FEATURE = 128
# Bytes of a value of a sparse matrix, which a conversion to CSR holds twice, with wider indices.
BYTES_OF_ENTRY = 48


def check_memory(path: str | PathLike[str], n_bytes: int, size: int | None = None, *, what: str = "") -> None:
    """Raise `InsufficientMemoryError` if `n_bytes` of memory are too much for a file or not available.

    `size` is the number of bytes on disk, for a folder of files; `what` describes the content in the message.
    """
    name = f"{path} {what}".rstrip()
    if size is None:
        size = Path(path).stat().st_size
    limit = max_memory()
    if limit is None:
        limit = max(MIN_LIMIT, MAX_EXPANSION * size)
        machine = machine_memory()
        limit = limit if machine is None else min(limit, machine // 2)
    if n_bytes > limit:
        raise InsufficientMemoryError(
            f"{name} would take {n_bytes:,} bytes ({n_bytes / 2**30:.1f} GiB) of memory, expected at most {limit:,} "
            f"for {size:,} bytes on disk; --max-memory sets another limit"
        )
    check_fits_in_memory(n_bytes, f"reading {name}")

from typing import Any

from .rows import RowView

NEEDS_SLOTS: int
NEEDS_BLOCK: int
SIZE_OF_ROOM: int

def learn_diagonal(
    Q: RowView,
    P: RowView,
    N: RowView,
    triplets: Any,
    weights: Any,
    record: Any,
    rows: Any,
    columns: Any,
    room: Any,
    counts: Any,
    start: Any,
    W: Any,
    Sigma: Any,
    r: float,
    only_mistakes: bool,
    inverse: bool,
    slots: Any,
    cells: Any,
    needs: Any,
) -> int: ...
def learn_oasis(
    Q: RowView,
    P: RowView,
    N: RowView,
    triplets: Any,
    weights: Any,
    record: Any,
    rows: Any,
    columns: Any,
    room: Any,
    counts: Any,
    start: Any,
    W: Any,
    C: float,
    slots: Any,
    cells: Any,
    needs: Any,
) -> int: ...
def forms(
    Q: RowView,
    P: RowView,
    indices: Any,
    rows: Any,
    columns: Any,
    A: Any,
    on_diagonal: float,
    elsewhere: float,
    squared: bool,
    out: Any,
    apart: bool,
    slots: Any,
    cells: Any,
    needs: Any,
) -> int: ...
def add_products(
    Q: RowView,
    first: int,
    rows: Any,
    columns: Any,
    W: Any,
    on_diagonal: float,
    out: Any,
) -> None: ...
def close_gaps(order: Any, rows: Any, columns: Any, room: Any, W: Any, Sigma: Any) -> None: ...
def table_sizes(cells: Any, n: int, sizes: Any) -> None: ...
def list_cells(rows: Any, columns: Any, columns_out: Any, slots_out: Any) -> None: ...
def insert_cells(rows: Any, columns: Any, n: int, indptr: Any, columns_in: Any, slots_out: Any) -> None: ...

from typing import Any

from .rows import RowView

def learn(
    Q: RowView,
    P: RowView,
    N: RowView,
    triplets: Any,
    weights: Any,
    record: Any,
    cells: Any,
    r: float,
    only_mistakes: bool,
    inverse: bool,
    counts: Any,
) -> int: ...

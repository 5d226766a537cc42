from typing import Any

from .rows import RowView

def learn(
    Q: RowView,
    P: RowView,
    N: RowView,
    triplets: Any,
    weights: Any,
    record: Any,
    W: Any,
    A: Any,
    B: Any,
    steps: Any,
    C: float,
    counts: Any,
) -> int: ...

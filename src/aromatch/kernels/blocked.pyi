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
    Omega: Any,
    Lambda: Any,
    A: Any,
    B: Any,
    steps: Any,
    r: float,
    only_mistakes: bool,
    counts: Any,
) -> int: ...
def fold(W: Any, Omega: Any, Lambda: Any, A: Any, B: Any, steps: Any, counts: Any) -> None: ...

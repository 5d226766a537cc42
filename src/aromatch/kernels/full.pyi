from typing import Any

from .rows import RowView

def learn_triplets(
    Q: RowView,
    P: RowView,
    N: RowView,
    triplets: Any,
    weights: Any,
    record: Any,
    W: Any,
    Sigma: Any,
    r: float,
    only_mistakes: bool,
    counts: Any,
) -> int: ...
def learn_labels(
    X: RowView,
    first: int,
    signs: Any,
    w: Any,
    Sigma: Any,
    diagonal: bool,
    r: float,
) -> int: ...
def quadratic_forms(
    Q: RowView,
    P: RowView,
    indices: Any,
    Sigma: Any,
    out: Any,
) -> None: ...

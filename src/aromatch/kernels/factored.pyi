from typing import Any

from .rows import RowView

JACOBI: int
GAUSS_SEIDEL: int
JOINT: int

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
    r: float,
    only_mistakes: bool,
    updated_mean: bool,
    covariance_update: int,
    counts: Any,
) -> int: ...

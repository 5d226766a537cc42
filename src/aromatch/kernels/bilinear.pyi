from typing import Any

from .rows import RowView

def forms(
    Q: RowView,
    P: RowView,
    indices: Any,
    A: Any,
    squared: bool,
    apart: bool,
    out: Any,
) -> None: ...
def quadratic_forms(
    X: RowView,
    indices: Any,
    A: Any,
    out: Any,
) -> None: ...
def projections(X: RowView, indices: Any, A: Any, out: Any) -> None: ...
def products(Q: RowView, A: Any, out: Any) -> None: ...

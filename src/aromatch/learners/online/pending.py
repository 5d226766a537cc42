"""Updates that a learner keeps as rank-one terms until a block of them is folded into its matrices."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...kernels.bilinear import projections
from ...kernels.rows import RowView

Arrays = dict[str, NDArray[Any]]


def block_size(m: int, n: int) -> int:
    """How many updates are folded in at once, by measurement; 0 where that would not pay."""
    size = min(80, min(m, n) // 6)
    return size if size > 1 else 0


def shapes(m: int, n: int, n_factors: int) -> dict[str, tuple[int, ...]]:
    """Name the arrays of a state: a and b of each term, its factors, and with the counts how many there are."""
    size = block_size(m, n)
    return {"pending_a": (size, m), "pending_b": (size, n), "pending_steps": (size, n_factors), "counts": (4,)}


def start(m: int, n: int, n_factors: int, dtype: np.dtype[Any]) -> Arrays:
    """Give the arrays of a state without any terms."""
    size = block_size(m, n)
    return {
        "pending_a": np.zeros((size, m), dtype=dtype),
        "pending_b": np.zeros((size, n), dtype=dtype),
        "pending_steps": np.zeros((size, n_factors)),
    }


def terms(state: Arrays) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Give a, b and factors, one row a term; the first factor is that of W, ``W + sum_k factor_k a_k b_k'``."""
    if "pending_a" not in state:
        return np.empty((0, 0)), np.empty((0, 0)), np.empty((0, 1))
    n_pending = int(state["counts"][3])
    steps = state["pending_steps"][:n_pending].astype(state["pending_a"].dtype)
    return state["pending_a"][:n_pending], state["pending_b"][:n_pending], steps


def check(state: Arrays) -> None:
    """Refuse a state from a file that says it has more terms than there is room for."""
    if "pending_a" in state and state["counts"][3] >= max(1, len(state["pending_a"])):
        raise ValueError(
            f"it has {state['counts'][3]} pending updates, expected less than {max(1, len(state['pending_a']))}"
        )


def projected(rows: RowView, numbers: NDArray[np.int64], vectors: NDArray[Any]) -> NDArray[Any]:
    """Products of rows, or differences of two rows, with each of the vectors."""
    out = np.empty((len(numbers), len(vectors)), dtype=vectors.dtype)
    projections(rows, np.ascontiguousarray(numbers), vectors, out)
    return out

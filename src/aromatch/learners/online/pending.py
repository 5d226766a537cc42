"""Updates of dense rows that are kept as rank-one terms until a block of them is folded into the matrices.

OASIS and FactoredAROMA use it: with terms ``a_k``, ``b_k`` and steps ``s_k``, the matrix of the score is
``W + sum_k s_k a_k b_k'``. Folding a block by GEMM is several times faster than rank-one updates of W.
The state of such a learner has the arrays `pending_a`, `pending_b` and `pending_steps`, and ``counts[3]`` is the number
of pending terms. Reading a model folds into a copy, so that reading never changes later bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._utils.rows import Matrix
from ...kernels.bilinear import projections
from ...kernels.rows import RowView
from ..inputs import product

Arrays = dict[str, NDArray[Any]]


class Pending(NamedTuple):
    """The pending terms of a state, one row each."""

    a: NDArray[Any]
    b: NDArray[Any]
    steps: NDArray[Any]
    """The first column is the step of W; further columns belong to the covariances."""

    @classmethod
    def of(cls, state: Mapping[str, NDArray[Any]]) -> Pending | None:
        """Return the pending terms of a state; None if there are none."""
        if "pending_a" not in state or not (n := int(state["counts"][3])):
            return None
        steps = state["pending_steps"][:n].astype(state["pending_a"].dtype)
        return cls(state["pending_a"][:n], state["pending_b"][:n], steps)

    def matrix(self) -> NDArray[Any]:
        """Return the sum of the terms of W."""
        return np.asarray((self.steps[:, :1] * self.a).T @ self.b)

    def product(self, Q: Matrix) -> NDArray[Any]:
        """Return Q times the sum of the terms of W."""
        return np.asarray((product(Q, self.a.T) * self.steps[:, 0]) @ self.b)

    def forms(self, queries: RowView, objects: RowView, numbers: NDArray[np.int64]) -> NDArray[Any]:
        """Return the part of ``q'Wp`` that is pending, for rows (query, object) or (query, preferred, other)."""
        return np.asarray((self.of_queries(queries, numbers) * self.of_objects(objects, numbers)) @ self.steps[:, 0])

    def of_queries(self, queries: RowView, numbers: NDArray[np.int64]) -> NDArray[Any]:
        """Return the inner products of the queries with every a."""
        return _projected(queries, numbers[:, :1], self.a)

    def of_objects(self, objects: RowView, numbers: NDArray[np.int64]) -> NDArray[Any]:
        """Return the inner products of the objects, or of differences of two objects, with every b."""
        return _projected(objects, numbers[:, 1:], self.b)


def block_size(m: int, n: int) -> int:
    """Return the number of updates folded at once, by measurement; 0 where blocks do not pay."""
    size = min(80, min(m, n) // 6)
    return size if size > 1 else 0


def shapes(m: int, n: int, n_factors: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the pending arrays, for `n_factors` steps per term."""
    size = block_size(m, n)
    return {"pending_a": (size, m), "pending_b": (size, n), "pending_steps": (size, n_factors)}


def start(m: int, n: int, n_factors: int, dtype: np.dtype[Any]) -> Arrays:
    """Return the pending arrays of a state without terms."""
    return {
        name: np.zeros(shape, dtype=np.float64 if name == "pending_steps" else dtype)
        for name, shape in shapes(m, n, n_factors).items()
    }


def check(state: Mapping[str, NDArray[Any]]) -> None:
    """Refuse a state with more pending terms than its arrays have rows, or with steps that no update has."""
    if "pending_a" not in state:
        return
    if state["counts"][3] >= max(1, len(state["pending_a"])):
        raise ValueError(
            f"it has {state['counts'][3]} pending updates, expected less than {max(1, len(state['pending_a']))}"
        )
    steps = state["pending_steps"]
    if (steps < 0).any():
        raise ValueError(f"pending_steps of the model has {steps.min():g}, expected steps of at least 0")


def _projected(rows: RowView, numbers: NDArray[np.int64], vectors: NDArray[Any]) -> NDArray[Any]:
    out = np.empty((len(numbers), len(vectors)), dtype=vectors.dtype)
    projections(rows, np.ascontiguousarray(numbers), vectors, out)
    return out

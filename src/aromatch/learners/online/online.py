"""Learners that change W a little with every triplet, from a start that one chooses."""

from __future__ import annotations

import copy
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from ..._utils import checks
from ..._utils.rows import Matrix, MatrixLike
from ...kernels.bilinear import forms
from ...kernels.rows import RowView
from ...triplets import stream_from_labels
from ..inputs import Block, check_dtype, initial_scale, product, write_initial
from ..triplet import TripletLearner
from . import pending


class OnlineLearner(TripletLearner):
    """A bilinear score ``q'Wp`` that is learned one triplet at a time.

    A subclass is two hooks and a docstring: `_start` gives the arrays besides W that the first step needs,
    `_learn` runs its kernel over a block. One that keeps a distribution adds `_variances`.
    """

    n_triplets: int
    init: Any
    dtype: Any
    random_state: Any

    _dtypes: ClassVar[dict[str, np.dtype[Any]]] = {
        "counts": np.dtype(np.int64),
        "pending_steps": np.dtype(np.float64),
    }
    """Arrays of the state that do not have the model's own precision."""

    def _start(self, m: int, n: int, dtype: np.dtype[Any]) -> dict[str, NDArray[Any]]:
        raise NotImplementedError

    def fit(self, X: MatrixLike, y: ArrayLike) -> Self:
        """Draw `n_triplets` triplets from the labels and learn them, starting from `init`.

        A triplet is a random row, a random other row with the same label and a random row with another.
        """
        with self._unchanged_on_error() as begin:
            r = self._check_common_params()
            (view, _, square), y = self._read_labelled(X, y)
            stream = stream_from_labels(y, self.n_triplets, self.random_state)
            self.__dict__.pop("_state", None)
            self._begin(view.shape[1], view.shape[1])
            begin()
            with self._bar(self.n_triplets) as advance:
                for triplets in stream:
                    block = Block(view, view, view, triplets, None)
                    self._check_scale(block, square, square, r)
                    first = self.n_triplets_seen_
                    self._learn_in_pieces(block, advance, "the model is as it was before", first)
        return self

    @property
    def W_(self) -> NDArray[Any]:
        """The matrix of the score ``q'Wp``, of shape (m, n): a copy, so that reading it changes nothing."""
        return self._array("W")

    @property
    def n_mistakes_(self) -> int:
        """Number of triplets that the model had wrong when it met them; a tie is a mistake."""
        return int(self._counts[2])

    # -- inside -------------------------------------------------------------------------------------------

    def _grown(self, m: int, n: int) -> dict[str, NDArray[Any]]:
        if self._precision != check_dtype(self.dtype):
            raise ValueError(f"dtype must stay {self._precision.name!r} while the model grows, got {self.dtype!r}")
        # A matrix to start from says nothing of features that it does not have.
        grown = copy.copy(self)
        if initial_scale(self.init, *([self.n_features_in_] * 2)) is None:
            grown.init = "zero"
        grown._state = self._folded()
        return super(OnlineLearner, grown)._grown(m, n)

    def _folded(self) -> dict[str, NDArray[Any]]:
        """Give the state without pending terms, whose room depends on the number of features."""
        is_pending = "pending_a" in self._state
        state = {name: array for name, array in self._state.items() if not name.startswith("pending_")}
        if is_pending:
            counts = state.pop("counts").copy()
            counts[3] = 0
            state = {**{name: self._array(name) for name in state}, "counts": counts}
        return state

    def _check_state(self, state: dict[str, NDArray[Any]], m: int, n: int) -> None:
        super()._check_state(state, m, n)
        self._check_common_params()
        for name, array in state.items():
            expected = self._dtypes.get(name, check_dtype(self.dtype))
            if array.dtype != expected:
                raise ValueError(f"the model's {name} is {array.dtype}, but its dtype says {expected}")
            if not np.isfinite(array).all():
                raise ValueError(f"the model's {name} contains NaN or infinity")
        if (state["counts"] < 0).any():
            raise ValueError("the model's counts are negative")
        pending.check(state)

    def _matrix(self, name: str) -> NDArray[Any]:
        """Give a matrix as it lies in the state, without what is pending."""
        return self._state[name]

    @property
    def _precision(self) -> np.dtype[Any]:
        return self._matrix("W").dtype

    def _array(self, name: str) -> NDArray[Any]:
        check_is_fitted(self)
        array = self._matrix(name).copy()
        if name == "W":
            a, b, steps = pending.terms(self._state)
            if len(a):
                array += (steps[:, :1] * a).T @ b
        return array

    def _check_common_params(self) -> float:
        r = super()._check_common_params()
        checks.check_integer(self.n_triplets, "n_triplets", at_least=0)
        check_dtype(self.dtype)
        return r

    def _check_widths(self, Q: Matrix | RowView, P: Matrix | RowView, q_name: str = "Q", p_name: str = "P") -> None:
        super()._check_widths(Q, P, q_name, p_name)
        if hasattr(self, "_state") and self._precision != check_dtype(self.dtype):
            raise ValueError(
                f"dtype must stay {self._precision.name!r} while the model goes on learning, got {self.dtype!r}"
            )

    def _first_state(self, m: int, n: int) -> dict[str, NDArray[Any]]:
        dtype = check_dtype(self.dtype)
        self._check_fits(m, n, dtype)
        state = {"W": np.zeros((m, n), dtype=dtype), **self._start(m, n, dtype)}
        write_initial(self.init, state["W"])
        return {**state, "counts": np.zeros(self._shapes(m, n)["counts"], dtype=np.int64)}

    def _map_queries(self, Q: Matrix) -> NDArray[Any]:
        wanted = product(Q, self._matrix("W"))
        a, b, steps = pending.terms(self._state)
        if len(a):
            wanted += (product(Q, a.T) * steps[:, 0]) @ b
        return wanted

    def _forms(self, queries: RowView, objects: RowView, numbers: NDArray[np.int64]) -> NDArray[Any]:
        """``q'Wp`` for rows (query, object) or (query, preferred, other)."""
        W = self._matrix("W")
        out = np.empty(len(numbers), dtype=W.dtype)
        forms(queries, objects, numbers, W, False, False, out)
        a, b, steps = pending.terms(self._state)
        if len(a):
            left, right = pending.projected(queries, numbers[:, :1], a), pending.projected(objects, numbers[:, 1:], b)
            out += (left * right) @ steps[:, 0]
        return out

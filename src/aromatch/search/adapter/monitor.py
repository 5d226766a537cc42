"""Monitor of the learned correction: every list of feedback is predicted before it is learned.

Whether an examined object is positive is regressed on its base score and on the learned correction of the score::

    positive ~ a * base + b * correction

The objects of a judged list are compared with each other. Of a clicked list only the first object is used: it was
examined in any case, and clicked or not. How far users look depends on what they find, which would bias the regression
for the others. Which objects were shown depends on both scores, and does not bias it; it does bias a count of which of
the two orders the shown objects better.

The correction is applied as far as b supports it, with a prior in its favour while few lists have been compared. Lists
with only positive feedback are ignored. So are queries that had feedback before: their positive objects are known,
which is no evidence about others. The weight of old lists decays slowly, so that a change for the worse is noticed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Number of lists at which the weight reaches half of its limit.
_HALF_WEIGHT_LISTS = 10
# Standard errors of b above zero at which the correction gets no weight, and full weight; and the prior for b in
# standard errors, which halves after the given number of compared lists.
_NO_WEIGHT, _FULL_WEIGHT = -1.5, 1.5
_PRIOR, _HALF_PRIOR_LISTS = 1.5, 10
# A few lists may fit a line by chance.
_MIN_VARIANCE = 0.01
# Lists after which the weight of one is about a third.
_MEMORY = 1_000
_TINY = 1e-300
# Largest |x|^2 of objects and queries, by their precision: products of scores are summed, and divided by each other.
LARGEST_SQUARE: dict[np.dtype[Any], float] = {np.dtype(np.float64): 1e60, np.dtype(np.float32): 1e25}


class Diagnostics(NamedTuple):
    """Evidence about the learned correction, from predictions made before learning."""

    n_lists: int
    """Number of learned lists with at least one positive and one other object."""
    n_compared: int
    """Number of lists among them for which a correction was predicted."""
    base_coef: float
    """Coefficient a of the base score; NaN without sufficient data."""
    correction_coef: float
    """Coefficient b of the correction; negative if it is harmful."""
    standard_error: float
    """Standard error of b."""


class Monitor:
    """Sums of the least squares, and the weight that follows from them."""

    def __init__(self, sums: Array | None = None) -> None:
        # Products of (1 for a clicked list, base, correction, positive), number of rows, of lists, of compared lists.
        self.sums = np.zeros(19) if sums is None else sums
        self._weight: float | None = None

    def add_judged(self, base: Array, correction: Array, is_good: NDArray[np.bool_]) -> None:
        """Compare the predictions of a judged list."""
        if is_good.any() and not is_good.all() and correction.any():
            columns = np.stack([np.zeros(len(base)), base, correction, is_good])
            self._add(columns - columns.mean(axis=1, keepdims=True), len(base) - 1)

    def add_clicked(self, base: Array, correction: Array, is_clicked: NDArray[np.bool_]) -> None:
        """Compare the prediction for the first object of a clicked list."""
        if correction[0]:
            self._add(np.array([[1.0], base[:1], correction[:1], is_clicked[:1]]), 1)

    def add_list(self) -> None:
        """Count a learned list with positive and other objects."""
        sums = self.sums.copy()
        sums[17] += 1
        self.sums, self._weight = sums, None

    def diagnostics(self) -> Diagnostics:
        """Return the regression."""
        squares, n = self.sums[:16].reshape(4, 4), self.sums[16]
        X, y = squares[:3, :3], squares[:3, 3]
        used = np.flatnonzero(np.diag(X) > 0)
        a, b, error = np.nan, np.nan, np.inf
        if 2 in used and n > len(used):
            inverse = np.linalg.pinv(X[np.ix_(used, used)], hermitian=True)
            coef = np.zeros(3)
            coef[used] = inverse @ y[used]
            variance = max((squares[3, 3] - float(y @ coef)) / (n - len(used)), _MIN_VARIANCE)
            a, b, error = float(coef[1]), float(coef[2]), float(np.sqrt(variance * inverse[-1, -1]))
        return Diagnostics(int(self.sums[17]), int(self.sums[18]), a, b, error)

    @property
    def correction_weight(self) -> float:
        """Weight of the correction, from 0 to 1."""
        if self._weight is None:  # read at every search, changed only by learning
            found = self.diagnostics()
            support = _PRIOR * _HALF_PRIOR_LISTS / (found.n_compared + _HALF_PRIOR_LISTS)
            if np.isfinite(found.standard_error):
                support += found.correction_coef / max(found.standard_error, _TINY)
            limit = min(1.0, max(0.0, (support - _NO_WEIGHT) / (_FULL_WEIGHT - _NO_WEIGHT)))
            self._weight = limit * found.n_lists / (found.n_lists + _HALF_WEIGHT_LISTS)
        return self._weight

    def _add(self, columns: Array, n: int) -> None:
        sums = self.sums.copy()
        sums[:17] *= 1 - 1 / _MEMORY
        sums[:16] += (columns @ columns.T).ravel()
        sums[16] += n
        sums[18] += 1
        self.sums, self._weight = sums, None

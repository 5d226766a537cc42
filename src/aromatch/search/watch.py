"""Whether what was learned helps: every judgement is predicted before it is learned.

An object that was looked at is good or not; a line through the base score and what was learned tells it best::

    good ~ a * base + b * learned

Objects of a list that was judged are compared with each other. Of a list that was clicked only those down to the click
were looked at, and they are compared with the first one. Which objects were shown depends on both scores, and this does
not bend the line; it does bend a count of which of the two ranked the shown ones better, whichever made the list.

What was learned is used as far as this speaks for it. Lists of which all was good say nothing, nor do queries that were
judged before: of those it is known what is good, and that says little of others. Old lists are forgotten slowly, so
that a bad week is noticed after a good year.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Lists that trust begins with half of.
_HALF_TRUST = 10
# Standard errors that b is above zero where what was learned is not trusted at all, and where it is fully.
_NO_TRUST, _FULL_TRUST = -1.0, 2.0
# Lists after which about a third of what one said is left.
_MEMORY = 1_000
_TINY = 1e-300


class Watched(NamedTuple):
    """What is known about the use of what was learned, from predictions made before learning."""

    n_lists: int
    """Lists with something good that were learned."""
    n_compared: int
    """Lists among them that said something about what was learned before."""
    base: float
    """What the base score explains, a; NaN before there is enough."""
    learned: float
    """What is learned explains beside it, b; negative when it misleads."""
    standard_error: float
    """Of b."""


class Watch:
    """Sums of the least squares, and what follows from them."""

    def __init__(self, sums: Array | None = None) -> None:
        # X'X, X'y and y'y of (first of a clicked list, base, learned, good), the number of rows, lists, lists compared.
        self.sums = np.zeros(19) if sums is None else sums

    def judged(self, base: Array, learned: Array, is_good: NDArray[np.bool_]) -> None:
        """Look at a list that was judged."""
        if is_good.any() and not is_good.all() and learned.any():
            columns = np.stack([np.zeros(len(base)), base, learned, is_good])
            self._compare(columns - columns.mean(axis=1, keepdims=True), len(base) - 1)

    def clicked(self, base: Array, learned: Array) -> None:
        """Look at a list down to the click, its last."""
        if (learned != learned[0]).any():
            is_click = np.arange(len(base)) == len(base) - 1
            self._compare(np.stack([np.ones(len(base)), base - base[0], learned - learned[0], is_click]), len(base))

    def learned(self) -> None:
        """Count a list with something good."""
        self.sums[17] += 1

    def result(self) -> Watched:
        """Tell what is known."""
        squares, n = self.sums[:16].reshape(4, 4), self.sums[16]
        X, y = squares[:3, :3], squares[:3, 3]
        used = np.flatnonzero(np.diag(X) > 0)
        a, b, error = np.nan, np.nan, np.inf
        if 2 in used and n > len(used):
            inverse = np.linalg.pinv(X[np.ix_(used, used)], hermitian=True)
            line = np.zeros(3)
            line[used] = inverse @ y[used]
            variance = max(squares[3, 3] - float(y @ line), 0.0) / (n - len(used))
            a, b, error = float(line[1]), float(line[2]), float(np.sqrt(variance * inverse[-1, -1]))
        return Watched(int(self.sums[17]), int(self.sums[18]), a, b, error)

    @property
    def blend(self) -> float:
        """How much of what was learned to use: nothing at first, all when it helps, and nothing when it misleads."""
        found = self.result()
        if not found.n_compared or not np.isfinite(found.standard_error):
            return 0.0
        above = found.learned / max(found.standard_error, _TINY)
        held = min(1.0, max(0.0, (above - _NO_TRUST) / (_FULL_TRUST - _NO_TRUST)))
        return held * found.n_compared / (found.n_compared + _HALF_TRUST)

    def _compare(self, columns: Array, n: int) -> None:
        self.sums[:17] *= 1 - 1 / _MEMORY
        self.sums[:16] += (columns @ columns.T).ravel()
        self.sums[16] += n
        self.sums[18] += 1

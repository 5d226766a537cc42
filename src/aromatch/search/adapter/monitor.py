"""Whether what was learned helps: every judgement is predicted before it is learned.

An object that was looked at is good or not; a line through the base score and what was learned tells it best::

    good ~ a * base + b * learned

Objects of a list that was judged are compared with each other. Of a list that was clicked only the first one counts: it
was looked at in any case, and was clicked or not. How far people looked depends on what they found, and that would bend
the line for the others. Which objects were shown depends on both scores, and this does not bend it; it does bend a
count of which of the two ranked the shown ones better, whichever made the list.

What was learned is used as far as this speaks for it; before there is much to compare, it has the benefit of the doubt
if people told good from bad. Lists of which all was said to be good count for nothing, nor do queries that were judged
before: of those it is known what is good, and that says little of others. Old lists are forgotten slowly, so that a bad
week is noticed after a good year.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Lists that trust begins with half of.
_HALF_TRUST = 10
# Standard errors that b is above zero where what was learned is not trusted at all, and where it is fully; and as many
# as it is taken to be above zero until so many lists were compared, half of them then, and so on.
_NO_TRUST, _FULL_TRUST = -1.5, 1.5
_BENEFIT_OF_DOUBT, _HALF_DOUBT = 1.5, 10
# Nobody's judgements are as regular as a few may look.
_LEAST_VARIANCE = 0.01
# Lists after which about a third of what one said is left.
_MEMORY = 1_000
_TINY = 1e-300


class Watched(NamedTuple):
    """What is known about the use of what was learned, from predictions made before learning."""

    n_lists: int
    """Lists that were learned and told good from bad: something was good, and others were not, or not clicked."""
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
        # X'X, X'y and y'y of (1 for a clicked list, base, learned, good), the number of rows, lists, lists compared.
        self.sums = np.zeros(19) if sums is None else sums
        # Asked for at every search, and only lists that are learned change it.
        self._blend: float | None = None

    def judged(self, base: Array, learned: Array, is_good: NDArray[np.bool_]) -> None:
        """Look at a list that was judged."""
        if is_good.any() and not is_good.all() and learned.any():
            columns = np.stack([np.zeros(len(base)), base, learned, is_good])
            self._compare(columns - columns.mean(axis=1, keepdims=True), len(base) - 1)

    def clicked(self, base: Array, learned: Array) -> None:
        """Look at a list down to the click, its last."""
        if learned[0]:
            self._compare(np.array([[1.0], base[:1], learned[:1], [len(base) == 1]]), 1)

    def learned(self) -> None:
        """Count a list that told good from bad."""
        self.sums[17] += 1
        self._blend = None

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
            variance = max((squares[3, 3] - float(y @ line)) / (n - len(used)), _LEAST_VARIANCE)
            a, b, error = float(line[1]), float(line[2]), float(np.sqrt(variance * inverse[-1, -1]))
        return Watched(int(self.sums[17]), int(self.sums[18]), a, b, error)

    @property
    def blend(self) -> float:
        """How much of what was learned to use: nothing at first, all when it helps, and nothing when it misleads."""
        if self._blend is None:
            self._blend = self._blend_of(self.result())
        return self._blend

    @staticmethod
    def _blend_of(found: Watched) -> float:
        above = _BENEFIT_OF_DOUBT * _HALF_DOUBT / (found.n_compared + _HALF_DOUBT)
        if np.isfinite(found.standard_error):
            above += found.learned / max(found.standard_error, _TINY)
        held = min(1.0, max(0.0, (above - _NO_TRUST) / (_FULL_TRUST - _NO_TRUST)))
        return held * found.n_lists / (found.n_lists + _HALF_TRUST)

    def _compare(self, columns: Array, n: int) -> None:
        self.sums[:17] *= 1 - 1 / _MEMORY
        self.sums[:16] += (columns @ columns.T).ravel()
        self.sums[16] += n
        self.sums[18] += 1
        self._blend = None

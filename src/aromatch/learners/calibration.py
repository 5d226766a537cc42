"""How often a prediction comes true: probabilities that are as right as they say (beyond the paper).

The learned distribution says how far W may be off, if the model is right about the world. It says nothing of
judgements that contradict each other, or of what no W can tell, so that ``Phi(margin / std)`` is not how often a
margin has the right sign. That has to be seen. Comparisons are predicted before anybody tells how they turned out, and
the margins m of the last few thousand predictions give a curve::

    P(the first is better) = e + (1 - 2 e) / (1 + exp(-a m))

The slope a makes what happened most likely: one number, which a few hundred predictions tell. More flexible curves were
no better for rows not seen before, on texts and embeddings. One of N + 2 predictions is taken to be wrong for no reason
(Platt 1999), so that a few that all came true do not make certain. When predictions are no better than chance, a is 0
and every probability 1/2.

The share e of judgements goes against any margin, however large: people err and slip. It is 0 unless another value
makes what happened surely more likely.

The standard deviation of a margin is not in it. It tells wrong predictions from right ones little better than the size
of the margin alone does, and sometimes worse, and it falls as the model learns on, whether it gets better or not.

Predictions have to be like those that are to be told of. What a model learned from rows that it has met many times
says little about how right it is for new ones. And a model gets better: those predictions count for which it had
learned about as much as for the last one, and some hundreds in any case.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize
from scipy.special import expit

from .._utils import checks

Array = NDArray[np.float64]

# Predictions that are kept, the last ones, and how many are needed.
_MOST, _FEWEST = 2**13, 2**6
# For those that count the model had learned this part, or as many times more, of what it had for the last one; but so
# many of the last ones count in any case.
_AS_LEARNED, _IN_ANY_CASE = 0.75, 2**8
# So many times the median, a margin is as good as any larger one: a single huge one must not decide the slope.
_HUGE = 20.0
# Margins below this are nothing but rounding of zero.
_NOTHING = 1e-290
# Shares of slips, and by how much one must raise the logarithm of what is likely.
_SLIPS, _MORE_LIKELY = (1e-6, 0.45), 3.0
_ROWS = "margins", "n_learned"


class Curve(NamedTuple):
    """What makes probabilities of margins."""

    slope: float
    """Of the margin, in the logarithm of the odds; 0 when predictions are no better than chance."""
    slips: float
    """Share of judgements that go against any margin."""
    n_used: int
    """Predictions that made the curve."""
    n_predictions: int
    """Predictions that were ever made."""
    n_learned: float
    """How much the model had learned for the last of them."""

    def probabilities(self, margins: NDArray[Any]) -> Array:
        """Give the chance that each margin has the right sign."""
        return np.asarray(self.slips + (1 - 2 * self.slips) * expit(self.slope * np.asarray(margins, np.float64)))


class Calibration:
    """The last predictions of a model, and the curve that they make."""

    def __init__(self, predictions: NDArray[Any] | None = None, n_predictions: int = 0) -> None:
        # Margins and how much was learned before, in the order in which they came. At the end of the room the last ones
        # move to its beginning.
        self._kept, self._end = np.zeros((len(_ROWS), 2 * _MOST)), 0
        self._curve: Curve | None = None
        self.n_predictions = n_predictions
        if predictions is not None:
            self._end = predictions.shape[1]
            self._kept[:, : self._end] = predictions

    def add(self, margins: NDArray[Any], n_learned: float) -> None:
        """Note predictions of a model that has learned so much."""
        n = min(len(margins), _MOST)
        self._make_room(n)
        self._kept[0, self._end : self._end + n] = margins[len(margins) - n :]
        self._kept[1, self._end : self._end + n] = n_learned
        self._end += n
        self.n_predictions += len(margins)

    def add_one(self, margin: float, n_learned: float) -> None:
        """Note one prediction, in a microsecond."""
        if self._end == 2 * _MOST:
            self._make_room(1)
        self._kept[0, self._end] = margin
        self._kept[1, self._end] = n_learned
        self._end += 1
        self.n_predictions += 1

    def predictions(self) -> Array:
        """Give the last predictions, all that is kept of them."""
        return self._kept[:, max(0, self._end - _MOST) : self._end]

    def curve(self) -> Curve:
        """Give the curve of the last predictions."""
        if self.n_predictions < _FEWEST:
            raise ValueError(
                f"the model has made {self.n_predictions} predictions that came out, and {_FEWEST} are needed to tell "
                "probabilities; `calibrate` takes comparisons that it has not learned"
            )
        found = self._curve
        if found is None or found.n_predictions != self.n_predictions:
            margins, n_learned = self.predictions()
            last = float(n_learned[-1])
            is_unlike = (n_learned < _AS_LEARNED * last) | (_AS_LEARNED * n_learned > last)
            n_unlike = int(np.flatnonzero(is_unlike)[-1]) + 1 if is_unlike.any() else 0
            used = margins[max(0, min(n_unlike, len(margins) - _IN_ANY_CASE)) :]
            found = self._curve = Curve(*_slope_and_slips(used), len(used), self.n_predictions, last)
        return found

    def _make_room(self, n: int) -> None:
        if self._end + n > 2 * _MOST:
            last = self.predictions().copy()
            self._end = last.shape[1]
            self._kept[:, : self._end] = last

    # -- copies and files ---------------------------------------------------------------------------------

    def __getstate__(self) -> tuple[Array, int]:
        return self.predictions(), self.n_predictions

    def __setstate__(self, state: tuple[Array, int]) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def to_parts(self) -> tuple[int, dict[str, Array]]:
        """Give what a file has to hold."""
        return self.n_predictions, dict(zip(_ROWS, self.predictions(), strict=True))

    @classmethod
    def from_parts(cls, n_predictions: Any, arrays: dict[str, NDArray[Any]]) -> Self:
        """Put it together, or say in a ValueError what does not fit."""
        n = min(checks.check_integer(n_predictions, "the number of predictions of its calibration", at_least=1), _MOST)
        if set(arrays) != set(_ROWS) or any(a.dtype != np.float64 or a.shape != (n,) for a in arrays.values()):
            raise ValueError(f"its calibration has not what {n_predictions} predictions leave")
        if not all(np.isfinite(array).all() for array in arrays.values()) or (arrays["n_learned"] < 0).any():
            raise ValueError("its calibration has numbers that are no such")
        return cls(np.stack([arrays[name] for name in _ROWS]), n_predictions)


def _slope_and_slips(margins: Array) -> tuple[float, float]:
    """Give what makes what happened most likely, all margins being on the side of what happened."""
    sizes = np.abs(margins)
    typical = float(np.median(sizes[sizes > _NOTHING])) if (sizes > _NOTHING).any() else 0.0
    if not typical:
        return 0.0, 0.0
    u = np.clip(margins / typical, -_HUGE, _HUGE)
    right = (len(u) + 1) / (len(u) + 2)

    def downhill(a: float) -> float:
        """Give the derivative of what is to be least when nobody slips, which grows with a and ends above 0."""
        return float(u @ (expit(a * u) - right))

    def unlikely(at: Array) -> float:
        """Give how unlikely a slope, by its logarithm, and a share of slips above 0 make what happened."""
        x, slips = np.exp(at[0]) * u, at[1]
        good, bad = (np.log(slips + (1 - 2 * slips) * expit(side)).sum() for side in (x, -x))
        return -float(right * good + (1 - right) * bad)

    slope, high = 0.0, 1.0
    if downhill(0.0) < 0:
        while downhill(high) < 0:
            high *= 2
        slope = float(brentq(downhill, 0.0, high))
    without = right * np.logaddexp(0, -slope * u).sum() + (1 - right) * np.logaddexp(0, slope * u).sum()
    starts = [(0.0, 0.1)] if slope == 0 else [(0.0, 0.1), (float(np.log(2 * slope)), 0.05)]
    tried = [minimize(unlikely, start, method="L-BFGS-B", bounds=[(-7, 7), _SLIPS]) for start in starts]
    best = min(tried, key=lambda one: float(one.fun))
    if float(best.fun) < float(without) - _MORE_LIKELY:
        return float(np.exp(best.x[0])) / typical, float(best.x[1])
    return slope / typical, 0.0

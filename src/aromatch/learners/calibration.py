"""How often a prediction comes true: probabilities that are as right as they say (beyond the paper).

The learned distribution says how far W may be off, if the model is right about the world. It says nothing of
judgements that contradict each other, or of what no W can tell, so that ``Phi(margin / std)`` is not how often a
margin has the right sign. That has to be seen. Comparisons are predicted before anybody tells how they turned out, and
the last few thousand predictions, with margins m and standard deviations s, give a curve::

    P(the first is better) = e + (1 - 2 e) / (1 + exp(-a u)),        u = m (s / s0)^b

The slope a makes what happened most likely: one number, which thousands of predictions tell well. More flexible curves
were no better for rows not seen before, on texts and embeddings. One of N + 2 predictions is taken to be wrong for no
reason (Platt 1999), so that a few that all came true do not make certain. When predictions are no better than chance, a
is 0 and every probability 1/2.

The share e of judgements goes against any margin, however large: people err and slip. It is 0 unless another value
makes what happened surely more likely.

The power b is 0, and the size of the margin alone decides, unless another one tells wrong predictions from right ones
better, by more than twice the error of the difference: -1 would be the margin in standard deviations. Mostly the
deviations tell little that margins do not; but this is seen, too, and not assumed. s0 is the median of s.

Predictions have to be like those that are to be told of. What a model learned from rows that it has met many times
says little about how right it is for new ones. And a model gets better: predictions count as long as it had learned at
least half of what it has now, if there are some hundreds of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize
from scipy.special import expit
from scipy.stats import rankdata

Array = NDArray[np.float64]

# Predictions that the curve is made from, the last ones; and how many new ones make a new curve.
_WINDOW, _EVERY = 2**13, 2**6
_ROOM = _WINDOW + _EVERY
# A prediction counts if this part of what the model has learned was learned before it; but so many count anyhow.
_AS_LEARNED, _FEWEST = 0.8, 2**9
# Below this part of their median, a standard deviation is nothing but rounding.
_CERTAIN = 1e-6
_POWERS = (-1.0, -0.5, 0.5, 1.0)
# Shares of slips, and by how much one must raise the logarithm of what is likely.
_SLIPS, _MORE_LIKELY = (1e-6, 0.45), 3.0
# Parts of the predictions that show whether a power is better, and so many standard errors better it must be.
_PARTS, _ERRORS = 8, 2.0


_ROWS = "margins", "stds", "n_learned"


class Curve(NamedTuple):
    """What makes probabilities of margins and their standard deviations."""

    slope: float
    """Of the margin, in the logarithm of the odds; 0 when predictions are no better than chance."""
    power: float
    """Of the standard deviation, in units of `std`; 0 when it is of no use."""
    std: float
    """The median of the standard deviations; 1 where there are none."""
    slips: float
    """Share of judgements that go against any margin."""
    n_predictions: int
    """How many predictions there were; the last few thousand made the curve."""

    def probabilities(self, margins: NDArray[Any], stds: NDArray[Any] | None) -> Array:
        """Give the chance that each margin has the right sign."""
        sure = expit(self.slope * _weighed(margins, stds, self.power, self.std))
        return np.asarray(self.slips + (1 - 2 * self.slips) * sure)


class Calibration:
    """The last predictions of a model, and the curve that they make."""

    def __init__(self, predictions: Array | None = None, n_predictions: int = 0) -> None:
        # Margin, standard deviation and triplets learned before, in the order in which they came. At the end of the
        # room the last ones move to its beginning.
        self._kept, self._end = np.empty((len(_ROWS), 2 * _ROOM)), 0
        self._curve: Curve | None = None
        self.n_predictions = n_predictions
        if predictions is not None:
            self._end = predictions.shape[1]
            self._kept[:, : self._end] = predictions

    def add(self, margins: NDArray[Any], stds: NDArray[Any] | None, n_learned: float) -> None:
        """Note predictions of a model that has learned so many triplets; without a distribution `stds` is None."""
        n = min(len(margins), _ROOM)
        self._make_room(n)
        here = slice(self._end, self._end + n)
        self._kept[0, here] = margins[len(margins) - n :]
        self._kept[1, here] = np.nan if stds is None else stds[len(margins) - n :]
        self._kept[2, here] = n_learned
        self._end += n
        self.n_predictions += len(margins)

    def add_one(self, margin: float, std: float | None, n_learned: float) -> None:
        """Note one prediction, in a microsecond."""
        if self._end == 2 * _ROOM:
            self._make_room(1)
        kept, end = self._kept, self._end
        kept[0, end] = margin
        kept[1, end] = np.nan if std is None else std
        kept[2, end] = n_learned
        self._end += 1
        self.n_predictions += 1

    def _make_room(self, n: int) -> None:
        if self._end + n > 2 * _ROOM:
            last = self.predictions().copy()
            self._end = last.shape[1]
            self._kept[:, : self._end] = last

    def predictions(self) -> Array:
        """Give the last predictions, all that is needed of them."""
        return self._kept[:, max(0, self._end - _ROOM) : self._end]

    def curve(self) -> Curve:
        """Give the curve of the last predictions but for a few, so that it is not made anew for each of them."""
        n_used = self.n_predictions - self.n_predictions % _EVERY
        if n_used == 0:
            raise ValueError(
                f"the model has made {self.n_predictions} predictions that came out, and {_EVERY} are needed to tell "
                "probabilities; `calibrate` takes comparisons that it has not learned"
            )
        if self._curve is None or self._curve.n_predictions != n_used:
            end = self._end - (self.n_predictions - n_used)
            margins, stds, n_learned = self._kept[:, max(0, end - _WINDOW) : end]
            n_old = int(np.searchsorted(n_learned, _AS_LEARNED * n_learned[-1]))
            last = slice(max(0, min(n_old, len(margins) - _FEWEST)), None)
            margins, stds = margins[last], stds[last]
            self._curve = _curve_of(margins, None if np.isnan(stds).any() else stds, n_used)
        return self._curve

    # -- files --------------------------------------------------------------------------------------------

    def to_parts(self) -> tuple[int, dict[str, Array]]:
        """Give what a file has to hold."""
        return self.n_predictions, dict(zip(_ROWS, self.predictions(), strict=True))

    @classmethod
    def from_parts(cls, n_predictions: Any, arrays: dict[str, NDArray[Any]]) -> Self:
        """Put it together, or say in a ValueError what does not fit."""
        if set(arrays) != set(_ROWS) or not isinstance(n_predictions, int) or isinstance(n_predictions, bool):
            raise ValueError("its calibration is none")
        n = min(n_predictions, _ROOM)
        if any(array.dtype != np.float64 or array.shape != (n,) for array in arrays.values()):
            raise ValueError(f"its calibration has not the predictions that {n_predictions} should leave")
        margins, stds, n_learned = (arrays[name] for name in _ROWS)
        if not np.isfinite(margins).all() or np.isinf(stds).any() or (stds < 0).any():
            raise ValueError("the margins and standard deviations of its calibration are no such")
        if not np.isfinite(n_learned).all() or (np.diff(n_learned, prepend=0) < 0).any():
            raise ValueError("the predictions of its calibration are not in their order")
        return cls(np.stack([margins, stds, n_learned]), n_predictions)


def _curve_of(margins: Array, stds: Array | None, n_predictions: int) -> Curve:
    std = 1.0
    if stds is not None and (stds > 0).any():
        std = float(np.median(stds[stds > 0]))
    power = 0.0 if stds is None else _best_power(margins, stds, std)
    u = _weighed(margins, stds, power, std)
    scale = float(np.abs(u).max(initial=0.0)) or 1.0
    slope, slips = _slope_and_slips(u / scale)
    return Curve(slope / scale, power, std, slips, n_predictions)


def _weighed(margins: NDArray[Any], stds: NDArray[Any] | None, power: float, std: float) -> Array:
    """Give ``m (s / s0)^b``; a margin that is certain counts as it is."""
    if power == 0 or stds is None:
        return np.asarray(margins, dtype=np.float64)
    return np.asarray(margins * np.where(stds > _CERTAIN * std, stds / std, 1.0) ** power)


def _slope_and_slips(u: Array) -> tuple[float, float]:
    """Give what makes what happened most likely, all u being on the side of what happened and none above 1 in size."""
    if not u.sum() > 0:
        return 0.0, 0.0
    right = (len(u) + 1) / (len(u) + 2)

    def downhill(a: float) -> float:
        """Give the derivative of what is to be least when nobody slips, which grows with a and ends above 0."""
        return float(u @ (expit(a * u) - right))

    def unlikely(at: Array) -> float:
        """Give how unlikely a slope, by its logarithm, and a share of slips above 0 make what happened."""
        x, slips = np.exp(at[0]) * u, at[1]
        good, bad = (np.log(slips + (1 - 2 * slips) * expit(side)).sum() for side in (x, -x))
        return -float(right * good + (1 - right) * bad)

    high = 1.0
    while downhill(high) < 0:
        high *= 2
    slope = float(brentq(downhill, 0.0, high))
    steep = float(np.log(2 * slope))
    found = minimize(unlikely, [steep, 0.05], method="L-BFGS-B", bounds=[(steep - 5, steep + 5), _SLIPS])
    without = right * np.logaddexp(0, -slope * u).sum() + (1 - right) * np.logaddexp(0, slope * u).sum()
    if float(found.fun) < float(without) - _MORE_LIKELY:
        return float(np.exp(found.x[0])), float(found.x[1])
    return slope, 0.0


def _best_power(margins: Array, stds: Array, std: float) -> float:
    """Give the power that tells right predictions from wrong ones best, 0 unless another is better for sure."""
    best, largest = 0.0, 0.0
    parts = [slice(first, None, _PARTS) for first in range(_PARTS)]
    plain = [_telling(margins[part] > 0, np.abs(margins[part])) for part in parts]
    for power in _POWERS:
        sizes = np.abs(_weighed(margins, stds, power, std))
        gains = np.array([_telling(margins[p] > 0, sizes[p]) for p in parts]) - plain
        gains = gains[np.isfinite(gains)]
        if len(gains) > 2 and gains.mean() > max(largest, _ERRORS * gains.std(ddof=1) / np.sqrt(len(gains))):
            best, largest = power, float(gains.mean())
    return best


def _telling(is_right: NDArray[np.bool_], sizes: Array) -> float:
    """Give the chance that a right prediction has a larger size than a wrong one; NaN when all are the same."""
    n_right, n_wrong = np.count_nonzero(is_right), np.count_nonzero(~is_right)
    if not n_right or not n_wrong:
        return np.nan
    ranks = rankdata(sizes)
    return float(ranks[is_right].sum() - n_right * (n_right + 1) / 2) / (n_right * n_wrong)

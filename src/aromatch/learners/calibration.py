"""Calibrated probabilities of preferences (beyond the paper).

The learned distribution describes the uncertainty about W if the model is right. It ignores triplets that contradict
each other and preferences that no W can express, so that ``Phi(margin / std)`` is not the frequency with which a
margin has the right sign. That frequency is estimated from predictions: the margins m of the last few thousand triplets
that were predicted before they were learned give a curve::

    P(the first is preferred) = e + (1 - 2 e) / (1 + exp(-a m))

The slope a is fitted by maximum likelihood; a few hundred predictions suffice. More flexible curves were no better on
unseen rows of texts and embeddings. One of N + 2 predictions is assumed to be wrong (Platt 1999), so that a few correct
ones do not give certainty. If predictions are no better than chance, a is 0 and every probability 1/2.

The error rate e is the share of triplets that contradict any margin, however large. It is 0 unless another value has a
clearly larger likelihood.

The standard deviation of a margin is not used. It separates wrong from right predictions hardly better than the size of
the margin, sometimes worse, and it falls during training whether the model improves or not.

Predictions should be like those in use later: on rows that the model has learned from many times it is better than on
new ones. As a model improves with training, only predictions count that were made after about as much training as the
last one, and some hundreds in any case.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize
from scipy.special import expit

from .._utils import checks
from .invariants import LARGEST_COUNT

Array = NDArray[np.float64]

# Number of predictions that are kept at most, and that a curve needs.
_MAX_PREDICTIONS, _MIN_PREDICTIONS = 2**13, 2**6
# Predictions are used if the amount of training differs from that of the last one by at most this factor; at least
# this number of the last ones is used.
_SIMILAR_TRAINING, _MIN_USED = 0.75, 2**8
# Margins are clipped at this multiple of the median, so that a single huge one does not determine the slope.
_MAX_MARGIN = 20.0
# Smaller margins are rounding errors of zero.
_MIN_MARGIN = 1e-290
# Range of the error rate, and the gain in log-likelihood that it needs.
_ERROR_RATES, _MIN_GAIN = (1e-6, 0.45), 3.0
_ROWS = "margins", "n_learned"


class Curve(NamedTuple):
    """The curve from margins to probabilities."""

    slope: float
    """Slope of the log-odds; 0 if predictions are no better than chance."""
    error_rate: float
    """Share of triplets that contradict any margin."""
    n_used: int
    """Number of predictions that the curve was fitted to."""
    n_predictions: int
    """Number of predictions that were ever recorded."""
    n_learned: float
    """Amount of training before the last of them."""

    def probabilities(self, margins: NDArray[Any]) -> Array:
        """Return the probability that each margin has the right sign."""
        return np.asarray(
            self.error_rate + (1 - 2 * self.error_rate) * expit(self.slope * np.asarray(margins, np.float64))
        )


class Calibration:
    """The last predictions of a model, and the curve fitted to them."""

    def __init__(self, predictions: NDArray[Any] | None = None, n_predictions: int = 0) -> None:
        # A buffer of margins and amounts of training in order, the number in it, and the number of all predictions: one
        # attribute, which an interrupt cannot leave half changed.
        self._log = (*_buffer(predictions), n_predictions)
        self._curve: Curve | None = None

    @property
    def n_predictions(self) -> int:
        """Number of predictions that were ever recorded."""
        return self._log[2]

    def added(self, margins: NDArray[Any], n_learned: float) -> Calibration:
        """Return a calibration with more predictions, made after this amount of training."""
        if not np.isfinite(margins).all():
            raise ValueError("the margins of triplets contain NaN or infinity; scale the rows down")
        more = np.stack([margins, np.full(len(margins), n_learned)])
        return Calibration(np.concatenate([self.predictions(), more], axis=1), self.n_predictions + len(margins))

    def add_one(self, margin: float, n_learned: float) -> None:
        """Record one prediction in place; `learn_one` has no time for more."""
        kept, end, n = self._log
        if end == 2 * _MAX_PREDICTIONS:
            kept, end = _buffer(self.predictions())
        kept[0, end] = margin
        kept[1, end] = n_learned
        self._log = kept, end + 1, n + 1

    def predictions(self) -> Array:
        """Return the predictions that are kept."""
        kept, end, _ = self._log
        return kept[:, max(0, end - _MAX_PREDICTIONS) : end]

    def curve(self) -> Curve:
        """Return the curve of the last predictions."""
        if self.n_predictions < _MIN_PREDICTIONS:
            raise ValueError(
                f"the model has {self.n_predictions} recorded predictions, expected at least {_MIN_PREDICTIONS}; call "
                "`calibrate` with validation triplets"
            )
        found = self._curve
        if found is None or found.n_predictions != self.n_predictions:
            margins, n_learned = self.predictions()
            last = float(n_learned[-1])
            is_unlike = (n_learned < _SIMILAR_TRAINING * last) | (_SIMILAR_TRAINING * n_learned > last)
            n_unlike = int(np.flatnonzero(is_unlike)[-1]) + 1 if is_unlike.any() else 0
            used = margins[max(0, min(n_unlike, len(margins) - _MIN_USED)) :]
            found = self._curve = Curve(*_fit_curve(used), len(used), self.n_predictions, last)
        return found

    # -- copies and files ---------------------------------------------------------------------------------

    def __getstate__(self) -> tuple[Array, int]:
        return self.predictions().copy(), self.n_predictions

    def __setstate__(self, state: tuple[Array, int]) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def to_parts(self) -> tuple[int, dict[str, Array]]:
        """Return the number of predictions and the arrays of a file."""
        return self.n_predictions, dict(zip(_ROWS, self.predictions(), strict=True))

    @classmethod
    def from_parts(cls, n_predictions: Any, arrays: dict[str, NDArray[Any]]) -> Self:
        """Return the calibration of a file; raise a ValueError if it is invalid."""
        what = "the number of predictions of its calibration"
        if checks.check_integer(n_predictions, what, at_least=1) > LARGEST_COUNT:
            raise ValueError(f"{what} must be at most {LARGEST_COUNT}")
        n = min(n_predictions, _MAX_PREDICTIONS)
        if set(arrays) != set(_ROWS) or any(a.dtype != np.float64 or a.shape != (n,) for a in arrays.values()):
            raise ValueError(f"the arrays of the calibration do not fit its {n_predictions} predictions")
        if not all(np.isfinite(array).all() for array in arrays.values()) or (arrays["n_learned"] < 0).any():
            raise ValueError("the calibration contains NaN, infinity or negative amounts of training")
        return cls(np.stack([arrays[name] for name in _ROWS]), n_predictions)


def _buffer(predictions: NDArray[Any] | None) -> tuple[Array, int]:
    """Return a new buffer with the last predictions at its beginning, and their number."""
    kept = np.zeros((len(_ROWS), 2 * _MAX_PREDICTIONS))
    if predictions is None:
        return kept, 0
    last = predictions[:, -_MAX_PREDICTIONS:]
    kept[:, : last.shape[1]] = last
    return kept, last.shape[1]


def _fit_curve(margins: Array) -> tuple[float, float]:
    """Return slope and error rate of maximum likelihood for margins of preferences that were observed."""
    sizes = np.abs(margins)
    typical = float(np.median(sizes[sizes > _MIN_MARGIN])) if (sizes > _MIN_MARGIN).any() else 0.0
    if not typical:
        return 0.0, 0.0
    u = np.clip(margins / typical, -_MAX_MARGIN, _MAX_MARGIN)
    right = (len(u) + 1) / (len(u) + 2)

    def gradient(a: float) -> float:
        """Return the derivative of the loss without an error rate, which grows with a and ends above 0."""
        return float(u @ (expit(a * u) - right))

    def negative_log_likelihood(at: Array) -> float:
        """Return the negative log-likelihood of the logarithm of a slope and an error rate above 0."""
        x, error_rate = np.exp(at[0]) * u, at[1]
        good, bad = (np.log(error_rate + (1 - 2 * error_rate) * expit(side)).sum() for side in (x, -x))
        return -float(right * good + (1 - right) * bad)

    slope, high = 0.0, 1.0
    if gradient(0.0) < 0:
        while gradient(high) < 0:
            high *= 2
        slope = float(brentq(gradient, 0.0, high))
    without = right * np.logaddexp(0, -slope * u).sum() + (1 - right) * np.logaddexp(0, slope * u).sum()
    starts = [(0.0, 0.1)] if slope == 0 else [(0.0, 0.1), (float(np.log(2 * slope)), 0.05)]
    tried = [
        minimize(negative_log_likelihood, start, method="L-BFGS-B", bounds=[(-7, 7), _ERROR_RATES]) for start in starts
    ]
    best = min(tried, key=lambda one: float(one.fun))
    if float(best.fun) < float(without) - _MIN_GAIN:
        return float(np.exp(best.x[0])) / typical, float(best.x[1])
    return slope / typical, 0.0

"""W of `MomentAROMA` and the distribution around it, from sums; open choices are made on validation sums.

With W from the training sums, the margin ``q'Wp`` of a validation triplet has a mean and a mean square, and the larger
their ratio ::

    E[q'Wp] / sqrt(E[(q'Wp)^2]),      E[q'Wp] = tr(W' E[qp']),      E[(q'Wp)^2] ~ tr(W' E[qq'] W E[pp'])

the larger the share of margins with the right sign, whatever the scale of W. Both come from the validation sums, so
that no triplet is stored; the mean square as if queries and differences were independent. In the eigenvectors of
both sides of the training sums, W is a division for each alpha, and the validation sums of squares are taken as
diagonal there, as they nearly are when both parts are alike: all candidates together cost less than one solve.

For the raw sums alpha has to suppress the noise of the triplets, and is chosen on triplets with validation queries.
Denoised sums have little noise, and there alpha has to prevent overfitting to the rows: it is chosen on the graph's
scores of validation queries with validation objects. Plain sums, denoised sums or their mean is again decided on
triplets with validation queries, with W from training rows alone. The graph itself includes these triplets, one in
eight; a separate graph of training rows takes as long again, and chose worse on real data.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ...exceptions import NumericalError
from . import sums

Array = NDArray[np.float64]
State = dict[str, NDArray[Any]]

# Eigenvalues below this times the number of rows times the largest are rounding.
_EPSILON = float(np.finfo(np.float64).eps)
# Candidates for alpha in units of the mean square of a feature, the largest first.
_ALPHAS = 10.0 ** np.arange(2.0, -4.5, -0.5)
# Candidates for the weight of the denoised sum.
_DENOISE_WEIGHTS = (0.0, 0.5, 1.0)


class Choice(NamedTuple):
    """Settings of a solution."""

    alpha: float
    denoise_weight: float
    """Weight of the denoised ``E[qp']``; the raw one has the rest."""


def choose(state: State, alpha: float | None, denoise: bool) -> Choice:
    """Choose on validation sums: alpha if it is None, and with `denoise` the weight of the denoised sum.

    Without training or validation triplets, alpha is the mean square of a feature and the sum the raw one.
    """
    if alpha is not None and not denoise:
        return Choice(alpha, 0.0)
    scale = feature_square(state)
    n_train, n_validation = float(state["train_weight"][0]), float(state["validation_weight"][0])
    if n_train <= 0 or n_validation <= 0:
        return Choice(scale if alpha is None else alpha, 0.0)
    a, U = _eigen(state["train_qq"] / n_train)
    b, V = _eigen(state["train_pp"] / n_train)
    squares_q, squares_p = _squares_along(U, state["validation_qq"]), _squares_along(V, state["validation_pp"])
    margins = _Margins(a, b, U.T @ state["validation_qp"] @ V, squares_q, squares_p)
    alphas = [alpha] if alpha is not None else (_ALPHAS * scale).tolist()
    raw = U.T @ (state["train_qp"] / n_train) @ V
    best = margins.best_alpha(raw, alphas, otherwise=scale)
    if not denoise:
        return Choice(best, 0.0)
    graph_squares_p = _squares_along(V, state["validation_denoised_pp"])
    graph_margins = _Margins(a, b, U.T @ state["validation_denoised_qp"] @ V, squares_q, graph_squares_p)
    denoised = U.T @ _of_train(state) @ V
    best_denoised = graph_margins.best_alpha(denoised, alphas, otherwise=best)
    choices = [Choice(best ** (1 - weight) * best_denoised**weight, weight) for weight in _DENOISE_WEIGHTS]
    scores = np.array([margins.score((1 - weight) * raw + weight * denoised, alpha) for alpha, weight in choices])
    # The standard error of the score of n triplets is about 1 / sqrt(n): smaller gains than half of it do not count.
    if np.isfinite(scores[0]):
        scores[0] += abs(scores[0]) * 0.5 / np.sqrt(max(n_validation, 1.0))
    return choices[int(np.argmax(scores))]


class _Margins(NamedTuple):
    """Validation sums in the eigenvectors of the training sums."""

    a: Array
    b: Array
    """Eigenvalues of both sides of the training sums."""
    target: Array
    """A multiple of the validation ``E[qp']``."""
    squares_q: Array
    squares_p: Array
    """Multiples of the diagonals of the validation ``E[qq']`` and ``E[pp']``."""

    def score(self, qp: Array, alpha: float) -> float:
        """Return the mean of the margins over the root of their mean square, up to a factor."""
        W = _scaled(qp * _inverted(self.a + alpha)[:, np.newaxis] * _inverted(self.b + alpha))
        square = float(_scaled(self.squares_q) @ (W * W) @ _scaled(self.squares_p))
        return float(np.vdot(W, _scaled(self.target))) / np.sqrt(square) if square > 0 else -np.inf

    def best_alpha(self, qp: Array, alphas: list[float], otherwise: float) -> float:
        """Return the alpha with the highest score, the first of equals; `otherwise` if no score is finite."""
        scores = [self.score(qp, alpha) for alpha in alphas]
        return alphas[int(np.argmax(scores))] if len(alphas) == 1 or np.isfinite(max(scores)) else otherwise


class Solution:
    """W and its covariance for given sums, each computed on first use."""

    def __init__(self, state: State, alpha: float | None, denoise: bool) -> None:
        self.state = state
        self.settings = alpha, denoise
        # Without triplets all sums, and so all means, are zero.
        self._weight = float(state["weight"][0]) or 1.0

    @cached_property
    def choice(self) -> Choice:
        """Alpha and the weight of the denoised sum."""
        return choose(self.state, *self.settings)

    @cached_property
    def _queries(self) -> Inverse:
        return Inverse(self.state["qq"] / self._weight, self.choice.alpha)

    @cached_property
    def _objects(self) -> Inverse:
        return Inverse(self.state["pp"] / self._weight, self.choice.alpha)

    @property
    def qp(self) -> Array:
        """``E[qp']`` times the sum of weights: the raw sum, the denoised one, or their mean."""
        weight, qp = self.choice.denoise_weight, self.state["qp"]
        return (1 - weight) * qp + weight * self.state["denoised_qp"] if weight > 0 else qp

    @cached_property
    def W(self) -> Array:
        """The matrix of the score."""
        with np.errstate(over="ignore", invalid="ignore"):  # refused
            left = self._queries.times(self.qp / self._weight)
            return _finite(np.ascontiguousarray(self._objects.times(left.T).T), "W")

    @cached_property
    def typical_margin(self) -> float:
        """The root of ``E[(q'Wp)^2]``, as if queries and differences were independent; 1 when there are none."""
        sizes = [float(np.abs(array).max()) for array in (self.W, self.state["qq"], self.state["pp"])]
        if not all(sizes):
            return 1.0
        W, qq, pp = (a / size for a, size in zip((self.W, self.state["qq"], self.state["pp"]), sizes, strict=True))
        square = max(0.0, float(np.vdot(qq @ W, W @ pp)))  # of numbers that neither overflow nor vanish
        return sizes[0] * np.sqrt(sizes[1] / self._weight) * np.sqrt(sizes[2] / self._weight) * np.sqrt(square) or 1.0

    @cached_property
    def W_train(self) -> Array | None:
        """W of the training rows alone; None without training triplets or without a split."""
        n_train = float(self.state["train_weight"][0]) if "train_weight" in self.state else 0.0
        if n_train <= 0:
            return None
        alpha, weight = self.choice
        qp = self.state["train_qp"] / n_train
        if weight > 0:
            qp = (1 - weight) * qp + weight * _of_train(self.state)
        left = Inverse(self.state["train_qq"] / n_train, alpha).times(qp)
        return np.ascontiguousarray(Inverse(self.state["train_pp"] / n_train, alpha).times(left.T).T)

    @cached_property
    def Lambda(self) -> Array:
        """Covariance between rows of W."""
        with np.errstate(over="ignore", invalid="ignore"):  # refused
            Lambda = self._queries.times(np.eye(len(self.state["qq"]))) / self._divisor
        return _finite(sums.mirrored(Lambda), "Lambda")

    @cached_property
    def Omega(self) -> Array:
        """Covariance between columns of W."""
        with np.errstate(over="ignore", invalid="ignore"):  # refused
            Omega = self._objects.times(np.eye(len(self.state["pp"])))
        return _finite(sums.mirrored(Omega), "Omega")

    def judge(self, q: Array, p: Array) -> tuple[float, float]:
        """Return the mean and the variance of ``q'Wp`` without computing W."""
        a, b = self._queries.times(q), self._objects.times(p)
        variance = max(0.0, float(q @ a)) * max(0.0, float(p @ b)) / self._divisor
        mean, weight = float(a @ self.state["qp"] @ b), self.choice.denoise_weight
        if weight > 0:
            mean = (1 - weight) * mean + weight * float(a @ self.state["denoised_qp"] @ b)
        return mean / self._weight, variance

    @property
    def _divisor(self) -> float:
        """Divisor of the variance: the sum of weights, at least 1."""
        return max(float(self.state["weight"][0]), 1.0)


class Inverse:
    """The inverse of ``S + alpha I`` for a symmetric S that is positive semi-definite up to rounding.

    All features are first scaled to the same mean square, so that the rounding level does not depend on units.
    """

    def __init__(self, S: Array, alpha: float) -> None:
        S[np.diag_indices_from(S)] += alpha
        squares = np.diagonal(S)
        self._scales = np.divide(1.0, np.sqrt(squares), out=np.zeros(len(S)), where=squares > 0)
        S *= self._scales
        S *= self._scales[:, np.newaxis]
        norm = linalg.norm(S, 1)
        self._factor: tuple[Array, bool] | None = None
        try:
            factor = linalg.cho_factor(S, lower=True)
            well_posed = linalg.lapack.dpocon(factor[0], norm, uplo="L")[0] > _EPSILON * len(S)
        except linalg.LinAlgError:
            well_posed = False
        if well_posed:
            self._factor = factor
            return
        values, vectors = linalg.eigh(S)
        kept = values > _EPSILON * len(S) * max(float(values[-1]), 0.0)
        self._values, self._vectors = values[kept], vectors[:, kept]

    def times(self, B: Array) -> Array:
        """Return the product with a vector or with the columns of a matrix."""
        scales = self._scales if B.ndim == 1 else self._scales[:, np.newaxis]
        scaled = scales * B
        if self._factor is not None:
            return np.asarray(scales * linalg.cho_solve(self._factor, scaled))
        return np.asarray(scales * ((self._vectors / self._values) @ (self._vectors.T @ scaled)))


def _finite(values: Array, name: str) -> Array:
    """Return a matrix, or refuse the sums that made it overflow."""
    if not np.isfinite(values).all():
        raise NumericalError(f"{name} is too large for float64; use a larger alpha, or scale the rows up")
    return values


def _of_train(state: State) -> Array:
    """Return the denoised ``E[qp']`` of training rows."""
    # The graph has all triplets; this is the share of training queries with training objects in it.
    return np.asarray(state["train_denoised_qp"] / (float(state["weight"][0]) * (1 - sums.VALIDATION_SHARE) ** 2))


def feature_square(state: State) -> float:
    """Return the mean square of a feature, the geometric mean over queries and differences; 1 without triplets."""
    weight = float(state["weight"][0]) or 1.0
    of_query, of_object = (float(np.trace(state[name])) / len(state[name]) / weight for name in ("qq", "pp"))
    return np.sqrt(of_query) * np.sqrt(of_object) or 1.0


def _eigen(S: Array) -> tuple[Array, Array]:
    values, vectors = linalg.eigh(S, driver="evd")
    return np.maximum(values, 0), vectors


def _squares_along(vectors: Array, S: Array) -> Array:
    """Return ``v' S v`` for every column v."""
    return np.asarray(np.maximum(np.einsum("ij,ij->j", vectors, S @ vectors), 0))


def _scaled(values: Array) -> Array:
    """Scale the largest value to 1, so that squares neither overflow nor vanish."""
    largest = float(np.abs(values).max())
    return values / largest if largest > 0 else values


def _inverted(values: Array) -> Array:
    """Return the reciprocal of each value, and 0 for values at the rounding level."""
    smallest = _EPSILON * len(values) * float(values.max())
    return np.divide(1.0, values, out=np.zeros(len(values)), where=values > smallest)

"""W of `MomentAROMA` and the distribution around it, from sums; what is to be chosen is chosen on held-out ones.

With W from the learning part, the margin ``q'Wp`` of a held-out triplet has a mean and a mean square, and the larger
their ratio ::

    E[q'Wp] / sqrt(E[(q'Wp)^2]),      E[q'Wp] = tr(W' E[qp']),      E[(q'Wp)^2] ~ tr(W' E[qq'] W E[pp'])

the more of the margins have the right sign, whatever the scale of W. Both come from the sums of the held-out part, so
that no triplet need be kept; the mean square as if queries and differences were independent. In the eigenvectors of
both sides of the learning part, W is a division for each lam, and the held-out sums of squares are taken as diagonal
there, as they nearly are when both parts are alike: then all candidates cost less than one solve.

For the plain sums lam has to keep the noise of the triplets small, and is chosen on judgements of new queries. Denoised
sums have little of it, and there lam has to keep W from learning its rows by heart: it is chosen on what the graph says
of new queries with new objects. Which sums to take, or both, is again decided by judgements of new queries, as before
with W from known rows alone. The graph that tells which known rows belong together has these judgements in it, one part
in eight; a graph of its own for the known ones takes as long again, and chose worse on real data.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from . import sums

Array = NDArray[np.float64]
State = dict[str, NDArray[Any]]

# Below this part of the largest, an eigenvalue is rounding: as many times the smallest number that 1 + x tells from 1
# as the matrix has rows.
_EPSILON = float(np.finfo(np.float64).eps)
# Candidates for lam, as parts of the mean square of a feature, the largest first.
_LAMS = 10.0 ** np.arange(2.0, -4.5, -0.5)
# Candidates for the share of the denoised sum.
_SHARES = (0.0, 0.5, 1.0)


class Choice(NamedTuple):
    """What a solution is made with."""

    lam: float
    share: float
    """Of the denoised ``E[qp']``; the rest is the plain one."""


def choose(state: State, lam: float | None, denoise: bool) -> Choice:
    """Choose what makes held-out margins most surely positive: lam when it is None, the share when it may be.

    Without anything held out, or anything to learn from, it is a lam as large as the mean square of a feature, and the
    plain sum.
    """
    if lam is not None and not denoise:
        return Choice(lam, 0.0)
    scale = _feature_square(state)
    learned, held = float(state["learn_weight"][0]), float(state["held_weight"][0])
    if learned <= 0 or held <= 0:
        return Choice(scale if lam is None else lam, 0.0)
    a, U = _eigen(state["learn_qq"] / learned)
    b, V = _eigen(state["learn_pp"] / learned)
    squares_q, squares_p = _squares_along(U, state["held_qq"]), _squares_along(V, state["held_pp"])
    judged = _Margins(a, b, U.T @ state["held_qp"] @ V, squares_q, squares_p)
    lams = [lam] if lam is not None else (_LAMS * scale).tolist()
    plain = U.T @ (state["learn_qp"] / learned) @ V
    best = judged.best_lam(plain, lams, otherwise=scale)
    if not denoise:
        return Choice(best, 0.0)
    new = _Margins(a, b, U.T @ state["new_qp"] @ V, squares_q, _squares_along(V, state["new_pp"]))
    denoised = U.T @ _of_known(state) @ V
    best_denoised = new.best_lam(denoised, lams, otherwise=best)
    choices = [Choice(best ** (1 - share) * best_denoised**share, share) for share in _SHARES]
    scores = np.array([judged.score((1 - c.share) * plain + c.share * denoised, c.lam) for c in choices])
    # The score of n triplets is off by about 1 / sqrt(n): less than half of that is no reason to leave the plain sum.
    if np.isfinite(scores[0]):
        scores[0] += abs(scores[0]) * 0.5 / np.sqrt(max(held, 1.0))
    return choices[int(np.argmax(scores))]


class _Margins(NamedTuple):
    """What held-out margins are made of, in the eigenvectors of the learning part."""

    a: Array
    b: Array
    """Eigenvalues of both sides of the learning part."""
    wanted: Array
    """A multiple of the held-out ``E[qp']``."""
    squares_q: Array
    squares_p: Array
    """Multiples of the diagonals of the held-out ``E[qq']`` and ``E[pp']``."""

    def score(self, qp: Array, lam: float) -> float:
        """Give the mean of the margins over the root of their mean square, but for a factor."""
        W = _scaled(qp * _inverted(self.a + lam)[:, np.newaxis] * _inverted(self.b + lam))
        square = float(_scaled(self.squares_q) @ (W * W) @ _scaled(self.squares_p))
        return float(np.vdot(W, _scaled(self.wanted))) / np.sqrt(square) if square > 0 else -np.inf

    def best_lam(self, qp: Array, lams: list[float], otherwise: float) -> float:
        """Give the lam with the highest score, the first of equals; `otherwise` when none has any."""
        scores = [self.score(qp, lam) for lam in lams]
        return lams[int(np.argmax(scores))] if len(lams) == 1 or np.isfinite(max(scores)) else otherwise


class Solution:
    """W and its covariance for given sums, each computed when it is first wanted."""

    def __init__(self, state: State, lam: float | None, denoise: bool) -> None:
        self.state = state
        self.asked = lam, denoise
        # Without a single triplet all sums, and so all means, are zero.
        self._weight = float(state["weight"][0]) or 1.0

    @cached_property
    def choice(self) -> Choice:
        """What it is made with."""
        return choose(self.state, *self.asked)

    @cached_property
    def _queries(self) -> Inverse:
        return Inverse(self.state["qq"] / self._weight, self.choice.lam)

    @cached_property
    def _objects(self) -> Inverse:
        return Inverse(self.state["pp"] / self._weight, self.choice.lam)

    @property
    def qp(self) -> Array:
        """``E[qp']`` times the weight: the plain sum, the denoised one, or something between."""
        share, qp = self.choice.share, self.state["qp"]
        return (1 - share) * qp + share * self.state["denoised_qp"] if share > 0 else qp

    @cached_property
    def W(self) -> Array:
        """The matrix of the score."""
        left = self._queries.times(self.qp / self._weight)
        return np.ascontiguousarray(self._objects.times(left.T).T)

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
    def W_of_known(self) -> Array | None:
        """The same from rows that were not held out; None when there are none, or all were taken as they came."""
        learned = float(self.state["learn_weight"][0]) if "learn_weight" in self.state else 0.0
        if learned <= 0:
            return None
        lam, share = self.choice
        qp = self.state["learn_qp"] / learned
        if share > 0:
            qp = (1 - share) * qp + share * _of_known(self.state)
        left = Inverse(self.state["learn_qq"] / learned, lam).times(qp)
        return np.ascontiguousarray(Inverse(self.state["learn_pp"] / learned, lam).times(left.T).T)

    @cached_property
    def Lambda(self) -> Array:
        """Covariance between rows of W."""
        return np.ascontiguousarray(self._queries.times(np.eye(len(self.state["qq"]))) / self._judgements)

    @cached_property
    def Omega(self) -> Array:
        """Covariance between columns of W."""
        return np.ascontiguousarray(self._objects.times(np.eye(len(self.state["pp"]))))

    def judge(self, q: Array, p: Array) -> tuple[float, float]:
        """Give the mean and the variance of ``q'Wp`` without all of W."""
        a, b = self._queries.times(q), self._objects.times(p)
        variance = max(0.0, float(q @ a)) * max(0.0, float(p @ b)) / self._judgements
        mean, share = float(a @ self.state["qp"] @ b), self.choice.share
        if share > 0:
            mean = (1 - share) * mean + share * float(a @ self.state["denoised_qp"] @ b)
        return mean / self._weight, variance

    @property
    def _judgements(self) -> float:
        """What the variance is divided by: less than one judgement says nothing yet."""
        return max(float(self.state["weight"][0]), 1.0)


class Inverse:
    """The inverse of ``S + lam I``, S symmetric without negative eigenvalues but for rounding.

    All features are first scaled to the same mean square, so that what counts as rounding does not depend on units.
    """

    def __init__(self, S: Array, lam: float) -> None:
        S[np.diag_indices_from(S)] += lam
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
        """Multiply a vector, or the columns of a matrix."""
        scales = self._scales if B.ndim == 1 else self._scales[:, np.newaxis]
        scaled = scales * B
        if self._factor is not None:
            return np.asarray(scales * linalg.cho_solve(self._factor, scaled))
        return np.asarray(scales * ((self._vectors / self._values) @ (self._vectors.T @ scaled)))


def _of_known(state: State) -> Array:
    """Give the denoised ``E[qp']`` of known rows."""
    # All triplets are in the graph, and this is the share of known queries with known objects in it.
    return np.asarray(state["known_qp"] / (float(state["weight"][0]) * (1 - sums.HELD_OUT) ** 2))


def _feature_square(state: State) -> float:
    """Give the mean square of a feature, the geometric mean of queries and differences; 1 when there is none."""
    weight = float(state["weight"][0]) or 1.0
    of_query, of_object = (float(np.trace(state[name])) / len(state[name]) / weight for name in ("qq", "pp"))
    return np.sqrt(of_query) * np.sqrt(of_object) or 1.0


def _eigen(S: Array) -> tuple[Array, Array]:
    values, vectors = linalg.eigh(S, driver="evd")
    return np.maximum(values, 0), vectors


def _squares_along(vectors: Array, S: Array) -> Array:
    """Give ``v' S v`` for every column v."""
    return np.asarray(np.maximum(np.einsum("ij,ij->j", vectors, S @ vectors), 0))


def _scaled(values: Array) -> Array:
    """Make the largest 1, so that rows of any scale neither overflow nor vanish where they are squared."""
    largest = float(np.abs(values).max())
    return values / largest if largest > 0 else values


def _inverted(values: Array) -> Array:
    """Give one over each value, and 0 for those that are nothing but rounding."""
    smallest = _EPSILON * len(values) * float(values.max())
    return np.divide(1.0, values, out=np.zeros(len(values)), where=values > smallest)

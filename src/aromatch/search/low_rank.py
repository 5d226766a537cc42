"""W as a product of two thin matrices: smaller vectors on both sides, and what that costs the ranking.

The best W of rank k, in the sum of squares, is that of its k largest singular values. With ``W ~ A B'`` a score is the
inner product of ``A'q`` and ``B'p``, k numbers each. Objects have to be stored anew for that, and whenever the model
has learned much: it is for models that stand still, and for collections whose vectors are too long.

What the cut costs is a matter of the rows. Without any, it is told for rows that point anywhere: for a query q and
normal objects, scores by W and by its cut ``W_k`` have the correlation ``c = |W_k'q| / |W'q|``, so that two objects
change places with the probability ``arccos(c) / pi``. Its mean over normal queries is `swapped`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse.linalg import svds

from .._utils import checks
from .._utils.nearest import top_k
from .._utils.rows import MatrixLike
from ..learners.inputs import product
from .stores.memory import NUMBERS_PER_BLOCK

Array = NDArray[np.float64]

_K_OF_OVERLAP = 10
_QUERIES_AT_ONCE = 256
# Comparisons for each query, and queries that point anywhere.
_PAIRS, _N_ANYWHERE = 100, 1_000


class LowRank(NamedTuple):
    """Factors of W, ``W ~ left @ right.T``, and what is lost with the rest."""

    left: Array
    """Of shape (m, k): ``Q @ left`` are the queries."""
    right: Array
    """Of shape (n, k): ``P @ right`` are the objects."""
    lost_share: float
    """Share of the sum of squares of W that is lost."""
    swapped: float
    """Share of comparisons of two objects that come out otherwise: for the rows given, or for rows that point anywhere.
    """
    overlap: float | None
    """Mean share of the 10 best objects of a query that are still among its 10 best; None without rows to try."""
    first_kept: float | None
    """Share of queries whose best object is still the best."""

    def __str__(self) -> str:
        lines = (
            f"rank {self.left.shape[1]}: {self.lost_share:.2%} of the squares of W lost, "
            f"{self.swapped:.1%} of all comparisons come out otherwise"
        )
        if self.overlap is not None:
            lines += f", {self.overlap:.1%} of the best 10 kept, the best one for {self.first_kept:.1%} of the queries"
        return lines


def low_rank(model: Any, k: int, Q: MatrixLike | None = None, P: MatrixLike | None = None) -> LowRank:
    """Cut W of a learner to a rank, and report what that costs.

    Parameters
    ----------
    model : a learner with ``q'Wp``, fitted
    k : int
        The rank: so many numbers for a query or an object.
    Q, P : queries and objects to try the ranking on, optional
        P is Q when it is None, and then a row does not find itself.

    Examples
    --------
    >>> import aromatch as am
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = am.MomentAROMA().fit(X[::2], y[::2])
    >>> print(am.search.low_rank(model, 9, X[1::2]))
    rank 9: ... of the squares of W lost, ... come out otherwise, ... of the best 10 kept, ... of the queries
    """
    k = checks.check_integer(k, "k", at_least=1)
    if k > min(model.n_features_in_, model.n_object_features_in_):
        raise ValueError(
            f"k must be at most {min(model.n_features_in_, model.n_object_features_in_)}, the size of W, got {k}"
        )
    if Q is None and P is not None:
        raise ValueError("P needs Q, the queries to rank its rows for")
    W = model.W_
    total = float(sparse.linalg.norm(W) if sparse.issparse(W) else linalg.norm(W)) ** 2
    U, values, V = _largest(W, k)
    kept = float(np.sum(values**2)) / total if total > 0 else 1.0
    roots = np.sqrt(values)
    left, right = U * roots, V * roots
    costs = (_swapped_anywhere(W, U, values), None, None) if Q is None else _costs(model, left, right, Q, P)
    return LowRank(left, right, max(0.0, 1.0 - kept), *costs)


def _largest(W: Any, k: int) -> tuple[Array, Array, Array]:
    if sparse.issparse(W) and k < min(W.shape):
        if not W.count_nonzero():
            return np.zeros((W.shape[0], k)), np.zeros(k), np.zeros((W.shape[1], k))
        # From a fixed start, so that the same model gives the same bits.
        U, values, Vt = svds(W.astype(np.float64), k=k, v0=np.ones(min(W.shape)))
        return U[:, ::-1], values[::-1], Vt[::-1].T
    U, values, Vt = linalg.svd(W.toarray() if sparse.issparse(W) else W.astype(np.float64), full_matrices=False)
    return U[:, :k], values[:k], Vt[:k].T


def _swapped_anywhere(W: Any, U: Array, values: Array) -> float:
    """Give the share of comparisons that the cut changes, for rows that point anywhere."""
    # From a fixed start, so that the same model is told the same.
    generator, angles = np.random.default_rng(0), []
    at_once = max(1, NUMBERS_PER_BLOCK // max(W.shape))
    for start in range(0, _N_ANYWHERE, at_once):
        Q = generator.standard_normal((min(at_once, _N_ANYWHERE - start), len(U)))
        whole, cut = np.linalg.norm(np.asarray(Q @ W), axis=1), np.linalg.norm((Q @ U) * values, axis=1)
        correlations = np.divide(cut, whole, out=np.ones_like(whole), where=whole > 0)
        angles += np.arccos(np.minimum(correlations, 1.0)).tolist()
    return float(np.mean(angles) / np.pi)


def _pairs(n_objects: int, n_queries: int, generator: np.random.Generator) -> tuple[Any, Any]:
    """Draw pairs of different objects for each query."""
    first = generator.integers(n_objects, size=(n_queries, _PAIRS))
    return first, (first + generator.integers(1, max(2, n_objects), size=first.shape)) % n_objects


def _costs(model: Any, left: Array, right: Array, Q: Any, P: Any) -> tuple[float, float, float]:
    """Rank the objects with W and with its factors; compare pairs of them, the first ten and the first."""
    queries, objects = model._check_both(Q, P)
    n_best = min(_K_OF_OVERLAP, objects.shape[0] - (objects is queries))
    if n_best < 1:
        raise ValueError("Q must have at least two rows when P is None: a row does not find itself")
    swapped, shared, same_first = [], [], []
    generator = np.random.default_rng(0)
    short_objects = product(objects, right)
    for start in range(0, queries.shape[0], _QUERIES_AT_ONCE):
        some = queries[start : start + _QUERIES_AT_ONCE]
        both = model.similarity(some, objects), product(some, left) @ short_objects.T
        pairs = _pairs(objects.shape[0], some.shape[0], generator)
        exact, cut = (np.sign(np.subtract(*(np.take_along_axis(scores, pair, 1) for pair in pairs))) for scores in both)
        swapped += (exact * cut < 0).mean(axis=1).tolist()
        if objects is queries:
            own = np.arange(some.shape[0])
            for scores in both:
                scores[own, start + own] = -np.inf
        exact, cut = (top_k(scores, n_best).indices for scores in both)
        shared += [len(np.intersect1d(*pair)) / n_best for pair in zip(exact, cut, strict=True)]
        same_first += (exact[:, 0] == cut[:, 0]).tolist()
    return float(np.mean(swapped)), float(np.mean(shared)), float(np.mean(same_first))

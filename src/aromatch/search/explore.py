"""What a query looks for, as a distribution: the learned one over W, seen through the query.

A score is ``q'Wp = u'p`` with ``u = W'q``. When W is Gaussian, so is u, and all that exploring needs is in it::

    diagonal:  u ~ N(W'q, diag(v)),               v_j = sum_i q_i^2 Sigma_ij
    factored:  u ~ N(W'q, (q'Lambda q) Omega)
    full:      u ~ N(W'q, C),                     C_jl = sum_ik q_i q_k Sigma_(ij)(kl)

Thompson sampling draws u once and ranks by it: a single vector, which any index of inner products can search with. An
upper confidence bound adds so many standard deviations ``sqrt(p' Cov(u) p)`` to the score of every object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from .._utils import checks
from .._utils.rows import Matrix, MatrixLike
from ..learners import DiagonalAROMA, FactoredAROMA, FullAROMA, MomentAROMA
from ..learners.triplet import TripletLearner

Array = NDArray[Any]


class Spread(Protocol):
    """How far what some queries look for may be from its mean."""

    def draw(self, generator: np.random.Generator) -> Array:
        """Draw one deviation for each query."""

    def stds(self, P: Matrix) -> Array:
        """Give the standard deviation of the score of every query with every object."""


class Spreads:
    """The learned distribution of a model, read once for all queries of a search."""

    def __init__(self, kind: type[Any], *matrices: Any) -> None:
        self._kind, self._matrices = kind, matrices

    @classmethod
    def of_model(cls, model: Any, *, needed: bool) -> Spreads | None:
        """Read the distribution of a model; None where it has none, unless it is needed."""
        if isinstance(model, DiagonalAROMA):
            return cls(_Diagonal, model.Sigma_.astype(np.float64, copy=False))
        if isinstance(model, FactoredAROMA | MomentAROMA):
            Lambda, Omega = (S.astype(np.float64, copy=False) for S in (model.Lambda_, model.Omega_))
            return cls(_Factored, Lambda, Omega, cache(lambda: _root(Omega)))
        if isinstance(model, FullAROMA):
            m, n = model.n_features_in_, model.n_object_features_in_
            return cls(_Full, model.Sigma_.astype(np.float64, copy=False).reshape(m, n, m, n))
        if needed:
            raise TypeError(
                "exploring needs a model that knows how sure it is (DiagonalAROMA, FactoredAROMA, FullAROMA or "
                f"MomentAROMA), got {type(model).__name__}"
            )
        return None

    def of(self, Q: Matrix) -> Spread:
        """Give how far what these queries look for is spread."""
        spread: Spread = self._kind(Q, *self._matrices)
        return spread


def query_vector(
    model: Any, queries: MatrixLike, *, explore: str | None = None, width: float = 1.0, random_state: Any = None
) -> NDArray[Any]:
    """Give ``u = Q @ W``: what to search with in any store of the objects that ranks by inner products.

    The larger the inner product of u and an object, the better. With objects of unit norm a store of cosines ranks them
    alike, whatever the length of u.

    Parameters
    ----------
    model : a learner with ``q'Wp``, fitted
    queries : array or CSR matrix of shape (n_queries, m)
    explore : {None, "thompson"}, default None
        Give the mean, or a draw from the learned distribution, another one for each query.
    width : float, default 1.0
        For "thompson": how far from the mean to draw, in standard deviations of the learned distribution.
    random_state : None, int, Generator or RandomState
        For "thompson".

    Returns
    -------
    array of shape (n_queries, n)

    Examples
    --------
    >>> import numpy as np
    >>> import aromatch as am
    >>> model = am.DiagonalAROMA(r=0.1).fit_triplets([[0, 1, 2]], np.eye(3))
    >>> am.search.query_vector(model, np.eye(3)[:1]).round(2)
    array([[ 0.  ,  0.48, -0.48]])
    """
    check_bilinear(model)
    Q = model._check_rows(queries)
    wanted = np.asarray(model._queries_times_W(Q))
    if explore is None:
        return wanted
    checks.check_choice(explore, "explore", ("thompson",))
    spreads = Spreads.of_model(model, needed=True)
    assert spreads is not None
    how_far = checks.check_number(width, "width", at_least=0)
    return np.asarray(wanted + how_far * spreads.of(Q).draw(checks.random_generator(random_state)))


def check_bilinear(model: Any) -> None:
    """Refuse what has no ``q'Wp``, or has learned nothing yet."""
    if not isinstance(model, TripletLearner):
        raise TypeError(f"model must be a learner with q'Wp, got {type(model).__name__}")
    model._check_is_fitted()


class _Diagonal:
    def __init__(self, Q: Matrix, Sigma: Any) -> None:
        squares = _squares(Q)
        if sparse.issparse(Sigma):  # cells that are not stored have variance 1
            known = sparse.csr_array((Sigma.data - 1, Sigma.indices, Sigma.indptr), shape=Sigma.shape)
            products = squares @ known
            products = products.toarray() if sparse.issparse(products) else products
            variances = products + np.asarray(squares.sum(axis=1)).reshape(-1, 1)
        else:
            variances = squares @ Sigma
        self._variances = np.maximum(np.asarray(variances), 0)

    def draw(self, generator: np.random.Generator) -> Array:
        return np.asarray(np.sqrt(self._variances) * generator.standard_normal(self._variances.shape))

    def stds(self, P: Matrix) -> Array:
        return np.asarray(np.sqrt(np.maximum(np.asarray((_squares(P) @ self._variances.T).T), 0)))


class _Factored:
    def __init__(self, Q: Matrix, Lambda: Array, Omega: Array, root_of_Omega: Callable[[], Array]) -> None:
        self._of_query, self._Omega, self._root = np.sqrt(_forms(Q, Lambda)), Omega, root_of_Omega

    def draw(self, generator: np.random.Generator) -> Array:
        z = generator.standard_normal((len(self._of_query), len(self._Omega)))
        return np.asarray(self._of_query[:, np.newaxis] * (z @ self._root().T))

    def stds(self, P: Matrix) -> Array:
        return np.asarray(self._of_query[:, np.newaxis] * np.sqrt(_forms(P, self._Omega)))


class _Full:
    def __init__(self, Q: Matrix, Sigma: Array) -> None:
        self._rows, self._Sigma = Q.toarray() if sparse.issparse(Q) else Q, Sigma

    def draw(self, generator: np.random.Generator) -> Array:
        z = generator.standard_normal((len(self._rows), self._Sigma.shape[1]))
        return np.array([_root(C) @ one for C, one in zip(self._covariances(), z, strict=True)])

    def stds(self, P: Matrix) -> Array:
        return np.array([np.sqrt(_forms(P, C)) for C in self._covariances()])

    def _covariances(self) -> Iterator[Array]:
        """Give the covariance of what each query looks for; all at once could be large."""
        for q in self._rows:
            yield np.einsum("i,ijkl,k->jl", q, self._Sigma, q, optimize=True)


def _squares(X: Matrix) -> Matrix:
    return X.multiply(X).tocsr() if sparse.issparse(X) else X * X


def _forms(X: Matrix, S: Array) -> Array:
    """Give ``x'Sx`` for every row, and 0 where rounding leaves less."""
    products = np.asarray(X @ S)
    forms = X.multiply(products).sum(axis=1) if sparse.issparse(X) else np.einsum("ij,ij->i", X, products)
    return np.asarray(np.maximum(np.asarray(forms).ravel(), 0))


def _root(C: Array) -> Array:
    """Give R with ``R R' = C``: by Cholesky, or by eigenvectors where directions have no variance left."""
    try:
        return np.asarray(linalg.cholesky(C, lower=True))
    except linalg.LinAlgError:
        values, vectors = linalg.eigh(C)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))

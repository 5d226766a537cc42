"""The learned distribution of a query's image ``u = W'q`` in the space of the objects.

A score is ``q'Wp = u'p``. If W is Gaussian, so is u::

    diagonal:  u ~ N(W'q, diag(v)),               v_j = sum_i q_i^2 Sigma_ij
    factored:  u ~ N(W'q, (q'Lambda q) Omega)
    full:      u ~ N(W'q, C),                     C_jl = sum_ik q_i q_k Sigma_(ij)(kl)

Thompson sampling ranks by one sampled u per query, which any index of inner products can serve. The standard deviation
of a score is ``sqrt(p' Cov(u) p)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from .._utils.rows import Matrix

Array = NDArray[Any]

# The squares of larger numbers overflow in single precision.
_LARGEST_SINGLE = 1e15


class Spread(Protocol):
    """Deviation of the images of some queries from their means."""

    def sample(self, generator: np.random.Generator) -> Array:
        """Return one sampled deviation for each query."""

    def stds(self, P: Matrix) -> Array:
        """Return the standard deviation of the score of every query with every object."""


class DiagonalSpread:
    """Deviation for a variance of each cell of W; cells that a sparse Sigma does not store have variance 1."""

    def __init__(self, Q: Matrix, Sigma: Any) -> None:
        squares = _squares(Q)
        if sparse.issparse(Sigma):
            stored = sparse.csr_array((Sigma.data - 1, Sigma.indices, Sigma.indptr), shape=Sigma.shape)
            products = squares @ stored
            products = products.toarray() if sparse.issparse(products) else products
            variances = products + np.asarray(squares.sum(axis=1)).reshape(-1, 1)
        else:
            variances = squares @ Sigma
        self._variances = np.maximum(np.asarray(variances), 0)

    def sample(self, generator: np.random.Generator) -> Array:
        """Return one sampled deviation for each query."""
        return np.asarray(np.sqrt(self._variances) * generator.standard_normal(self._variances.shape))

    def stds(self, P: Matrix) -> Array:
        """Return the standard deviation of the score of every query with every object."""
        return np.asarray(np.sqrt(np.maximum(np.asarray((_squares(P) @ self._variances.T).T), 0)))


class FactoredSpread:
    """Deviation for the covariance ``Omega (x) Lambda``."""

    def __init__(self, Q: Matrix, Lambda: Array, Omega: Array) -> None:
        self._query_stds, self._Omega = np.sqrt(_quadratic_forms(Q, Lambda)), Omega

    def sample(self, generator: np.random.Generator) -> Array:
        """Return one sampled deviation for each query."""
        z = generator.standard_normal((len(self._query_stds), len(self._Omega)))
        return np.asarray(self._query_stds[:, np.newaxis] * (z @ _root(self._Omega).T))

    def stds(self, P: Matrix) -> Array:
        """Return the standard deviation of the score of every query with every object."""
        return np.asarray(self._query_stds[:, np.newaxis] * np.sqrt(_quadratic_forms(P, self._Omega)))


class FullSpread:
    """Deviation for the covariance of all cells of W, an array of shape (m, n, m, n)."""

    def __init__(self, Q: Matrix, Sigma: Array) -> None:
        self._rows, self._Sigma = Q.toarray() if sparse.issparse(Q) else Q, Sigma

    def sample(self, generator: np.random.Generator) -> Array:
        """Return one sampled deviation for each query."""
        z = generator.standard_normal((len(self._rows), self._Sigma.shape[1]))
        return np.array([_root(C) @ one for C, one in zip(self._covariances(), z, strict=True)])

    def stds(self, P: Matrix) -> Array:
        """Return the standard deviation of the score of every query with every object."""
        return np.array([np.sqrt(_quadratic_forms(P, C)) for C in self._covariances()])

    def _covariances(self) -> Iterator[Array]:
        # One query at a time: the covariances of all queries together could be large.
        for q in self._rows:
            yield np.einsum("i,ijkl,k->jl", q, self._Sigma, q, optimize=True)


def _squares(X: Matrix) -> Matrix:
    if X.dtype == np.float32 and np.abs(X.data if sparse.issparse(X) else X).max(initial=0.0) > _LARGEST_SINGLE:
        X = X.astype(np.float64)
    return X.multiply(X).tocsr() if sparse.issparse(X) else X * X


def _quadratic_forms(X: Matrix, S: Array) -> Array:
    """Return ``x'Sx`` for every row, 0 where rounding leaves less."""
    products = np.asarray(X @ S)
    forms = X.multiply(products).sum(axis=1) if sparse.issparse(X) else np.einsum("ij,ij->i", X, products)
    return np.asarray(np.maximum(np.asarray(forms).ravel(), 0))


def _root(C: Array) -> Array:
    """Return R with ``R R' = C``: by Cholesky, or by eigenvectors if some directions have no variance left."""
    try:
        return np.asarray(linalg.cholesky(C, lower=True))
    except linalg.LinAlgError:
        values, vectors = linalg.eigh(C)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))

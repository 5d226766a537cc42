"""The matrix-variate normal ``N(W, Omega (x) Lambda)``: density, divergence, sampling, and objective (11).

A random (m, n) matrix X with mean W, column covariance Omega (n, n) and row covariance Lambda (m, m)::

    Cov(X[i, j], X[k, l]) = Lambda[i, k] Omega[j, l]

so the covariance of X with its columns stacked (the paper's ``vec``) is ``kron(Omega, Lambda)``, and that of
NumPy's row-major ``X.ravel()`` is ``kron(Lambda, Omega)``. A margin ``q'Xp`` has the mean ``q'Wp`` and the
variance ``(q'Lambda q)(p'Omega p)``. Only the product is determined: ``Omega * c, Lambda / c`` is the same
distribution for every c > 0.

f-AROMA learns this distribution (paper, section 4.2). No matrix is inverted: everything is computed from the Cholesky
factors ``Lambda = L L'`` and ``Omega = K K'`` and from triangular solves with them.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.blas import dtrsm

from .._utils import checks

__all__ = ["kl_divergence", "log_density", "objective", "sample"]

# Tolerance relative to the largest entry, for rounding in float32.
_SYMMETRIC_TO = 1e-6
# Products of six numbers, and quotients by r of at least its inverse, must not overflow.
LARGEST = 1e40


def log_density(X: ArrayLike, W: ArrayLike, Omega: ArrayLike, Lambda: ArrayLike) -> Any:
    """Return the logarithm of the density (7) at X.

    Parameters
    ----------
    X : array of shape (m, n) or (..., m, n)
        One matrix or a stack of matrices.
    W : array of shape (m, n)
        The mean.
    Omega : array of shape (n, n)
        Covariance between columns, positive definite.
    Lambda : array of shape (m, m)
        Covariance between rows, positive definite.

    Returns
    -------
    float, or array of shape (...) for a stack

    Examples
    --------
    >>> import numpy as np
    >>> from aromatch.theory import matrix_normal
    >>> W = np.zeros((1, 2))
    >>> round(matrix_normal.log_density(W, W, np.eye(2), np.eye(1)), 6)  # -log(2 pi): two standard normals at 0
    -1.837877
    >>> matrix_normal.log_density(np.array([[[0, 0]], [[1, 1]]]), W, np.eye(2), np.eye(1)).round(3)
    array([-1.838, -2.838])
    """
    W = as_floats(W, "W", ndim=2)
    m, n = W.shape
    K, L = cholesky(Omega, "Omega", n), cholesky(Lambda, "Lambda", m)
    X = as_floats(X, "X")
    if X.shape[-2:] != W.shape:
        raise ValueError(f"X must have the shape {W.shape} of W, or be a stack of such matrices, got {X.shape}")
    distance = squared_distance(X - W, K, L)
    value = -0.5 * (m * n * math.log(2 * math.pi) + n * log_determinant(L) + m * log_determinant(K) + distance)
    return float(value) if X.ndim == 2 else value


def kl_divergence(
    W: ArrayLike, Omega: ArrayLike, Lambda: ArrayLike, W0: ArrayLike, Omega0: ArrayLike, Lambda0: ArrayLike
) -> float:
    """Return the Kullback-Leibler divergence of ``N(W, Omega (x) Lambda)`` from ``N(W0, Omega0 (x) Lambda0)``.

    Departure: (8) is printed up to an additive constant. This is (8) minus ``m n / 2``, the exact divergence:
    zero when the two distributions are equal, positive otherwise.

    Parameters
    ----------
    W, W0 : arrays of shape (m, n)
        The two means.
    Omega, Omega0 : arrays of shape (n, n)
        The two covariances between columns, positive definite.
    Lambda, Lambda0 : arrays of shape (m, m)
        The two covariances between rows, positive definite.

    Returns
    -------
    float
        In nats.

    Examples
    --------
    >>> import numpy as np
    >>> from aromatch.theory import matrix_normal
    >>> W, Omega, Lambda = np.ones((2, 3)), np.eye(3), np.eye(2)
    >>> matrix_normal.kl_divergence(W, Omega, Lambda, W, Omega, Lambda)
    0.0
    >>> matrix_normal.kl_divergence(W, Omega, Lambda, W - 1, Omega, Lambda)  # half of |W - W0|^2
    3.0
    >>> matrix_normal.kl_divergence(W, 4 * Omega, Lambda / 4, W, Omega, Lambda) < 1e-12  # only the product counts
    True
    """
    W = as_floats(W, "W", ndim=2)
    m, n = W.shape
    W0 = as_floats(W0, "W0", shape=W.shape)
    K, L = cholesky(Omega, "Omega", n), cholesky(Lambda, "Lambda", m)
    K0, L0 = cholesky(Omega0, "Omega0", n), cholesky(Lambda0, "Lambda0", m)
    divergence: float = _equation_8(W - W0, K, L, K0, L0) - 0.5 * m * n
    # For nearly equal distributions rounding may result in a small negative value.
    return max(0.0, divergence)


def sample(
    W: ArrayLike,
    Omega: ArrayLike,
    Lambda: ArrayLike,
    size: int | tuple[int, ...] | None = None,
    random_state: Any = None,
) -> NDArray[np.float64]:
    """Sample matrices from ``N(W, Omega (x) Lambda)``.

    Parameters
    ----------
    W : array of shape (m, n)
        The mean.
    Omega : array of shape (n, n)
        Covariance between columns, positive definite.
    Lambda : array of shape (m, m)
        Covariance between rows, positive definite.
    size : int or tuple of ints, optional
        Shape of the sample, as in NumPy; a single matrix by default.
    random_state : None, int, Generator or RandomState
        Random seed.

    Returns
    -------
    array of shape (m, n), or (size, m, n), or (*size, m, n)

    Examples
    --------
    >>> import numpy as np
    >>> from aromatch.theory import matrix_normal
    >>> q, p = np.array([1.0, 0.0]), np.array([1.0, -1.0, 0.0])
    >>> X = matrix_normal.sample(np.ones((2, 3)), np.eye(3), 4 * np.eye(2), size=10_000, random_state=0)
    >>> X.shape
    (10000, 2, 3)
    >>> margins = q @ X @ p  # mean q'Wp = 0, variance (q'Lambda q)(p'Omega p) = 8
    >>> round(margins.var())
    8
    """
    W = as_floats(W, "W", ndim=2)
    m, n = W.shape
    K, L = cholesky(Omega, "Omega", n), cholesky(Lambda, "Lambda", m)
    if size is None:
        lengths: tuple[int, ...] = ()
    else:
        lengths = size if isinstance(size, tuple) else (size,)
        lengths = tuple(checks.check_integer(length, "size", at_least=0) for length in lengths)
    rng = checks.random_generator(random_state)
    checks.check_fits_in_memory(8 * math.prod((*lengths, m, n)), f"A sample of size {size} of {m} x {n} matrices")
    return np.asarray(W + L @ rng.standard_normal((*lengths, m, n)) @ K.T)


def objective(
    W: ArrayLike,
    Omega: ArrayLike,
    Lambda: ArrayLike,
    W_previous: ArrayLike,
    Omega_previous: ArrayLike,
    Lambda_previous: ArrayLike,
    q: ArrayLike,
    p: ArrayLike,
    r: float,
) -> float:
    """Return objective (11) as printed, which an update of f-AROMA minimizes in parts.

    It is the sum of (8), the divergence from the previous distribution plus ``m n / 2``; of ``hinge^2 / (2 r)``, the
    loss of the new mean on the triplet; and of ``(p'Omega p)(q'Lambda q) / (2 r)``, the variance of its margin.

    (12) minimizes it over W, (13) over Omega with the previous Lambda, and (14) over Lambda with the previous Omega.
    Both together are a simultaneous step, not the joint minimum.

    Parameters
    ----------
    W, Omega, Lambda : arrays of shape (m, n), (n, n) and (m, m)
        The distribution to evaluate; the covariances are positive definite.
    W_previous, Omega_previous, Lambda_previous : arrays of the same shapes
        The distribution before the triplet.
    q : array of shape (m,)
        The query.
    p : array of shape (n,)
        The preferred object minus the other.
    r : float
        Noise variance of a judgement, positive.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from aromatch.theory import matrix_normal
    >>> one = np.eye(1)
    >>> matrix_normal.objective(0 * one, one, one, 0 * one, one, one, q=[1], p=[1], r=1)  # without an update
    1.5
    >>> matrix_normal.objective(0.5 * one, one, one, 0 * one, one, one, q=[1], p=[1], r=1)  # move W by (12)
    1.25
    """
    W = as_floats(W, "W", ndim=2)
    m, n = W.shape
    W_previous = as_floats(W_previous, "W_previous", shape=W.shape)
    K, L = cholesky(Omega, "Omega", n), cholesky(Lambda, "Lambda", m)
    K_previous = cholesky(Omega_previous, "Omega_previous", n)
    L_previous = cholesky(Lambda_previous, "Lambda_previous", m)
    q, p = as_floats(q, "q", shape=(m,)), as_floats(p, "p", shape=(n,))
    r = checks.check_number(r, "r", above=0)
    hinge = max(0.0, 1.0 - float(q @ W @ p))
    variance = float(np.sum((q @ L) ** 2) * np.sum((p @ K) ** 2))
    return _equation_8(W - W_previous, K, L, K_previous, L_previous) + (hinge**2 + variance) / (2 * r)


def _equation_8(
    step: NDArray[np.float64],
    K: NDArray[np.float64],
    L: NDArray[np.float64],
    K0: NDArray[np.float64],
    L0: NDArray[np.float64],
) -> float:
    """Return (8) as printed, from the Cholesky factors K of Omega and L of Lambda."""
    m, n = step.shape
    determinants = n * (log_determinant(L0) - log_determinant(L)) + m * (log_determinant(K0) - log_determinant(K))
    # Tr(inv(Lambda0) Lambda) is the squared Frobenius norm of inv(L0) L.
    L_ratio, K_ratio = _solve(L0, L), _solve(K0, K)
    traces = np.square(L_ratio).sum() * np.square(K_ratio).sum()
    return 0.5 * float(determinants + traces + squared_distance(step, K0, L0))


# -- shared with mistake_bounds.py -------------------------------------------------------------------------


def as_floats(
    value: ArrayLike, name: str, *, ndim: int | None = None, shape: tuple[int, ...] | None = None
) -> NDArray[np.float64]:
    """Check real numbers, their dimensions or their shape; return them as float64."""
    array = checks.as_array(value, name)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be an array of real numbers, got an array of {array.dtype}")
    if ndim is not None and array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimensions, got the shape {array.shape}")
    if shape is not None and array.shape != shape:
        raise ValueError(f"{name} must have the shape {shape}, got {array.shape}")
    if array.size == 0 and ndim is not None:
        raise ValueError(f"{name} is empty: its shape is {array.shape}")
    array = array.astype(np.float64, copy=False)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} contains NaN or infinity, expected finite numbers")
    if (largest := np.abs(array).max(initial=0.0)) > LARGEST:
        raise ValueError(f"{name} contains a number of size {largest:.1e}, expected at most {LARGEST:.0e}")
    return array


def cholesky(A: ArrayLike, name: str, size: int) -> NDArray[np.float64]:
    """Return the lower Cholesky factor of a covariance."""
    A = as_floats(A, name, shape=(size, size))
    # The factorization reads one triangle only.
    if np.abs(A - A.T).max() > _SYMMETRIC_TO * np.abs(A).max():
        raise ValueError(f"{name} must be symmetric, but differs from its transpose by {np.abs(A - A.T).max():.3g}")
    try:
        return np.asarray(np.linalg.cholesky(A), dtype=np.float64)
    except np.linalg.LinAlgError:
        smallest = np.linalg.eigvalsh(A)[0]
        raise ValueError(f"{name} must be positive definite, but its smallest eigenvalue is {smallest:.3g}") from None


def log_determinant(factor: NDArray[np.float64]) -> float:
    """Return the logarithm of the determinant of a matrix from its Cholesky factor."""
    return 2.0 * float(np.log(np.diagonal(factor)).sum())


def squared_distance(X: NDArray[np.float64], K: NDArray[np.float64], L: NDArray[np.float64]) -> Any:
    """Return ``Tr(inv(Lambda) X inv(Omega) X')`` for one (m, n) matrix or each of a stack.

    With ``Lambda = L L'`` and ``Omega = K K'`` this is the squared norm of ``inv(L) X inv(K)'``.
    """
    m, n = X.shape[-2:]
    stack = X.shape[:-2]
    # Side by side, so that a stack takes one triangular solve from each side.
    half = _solve(L, np.moveaxis(X, -2, 0).reshape(m, -1)).reshape(m, *stack, n)
    whole = _solve(K, np.moveaxis(half, -1, 0).reshape(n, -1))
    return np.square(whole).sum(axis=0).reshape(m, *stack).sum(axis=0)


def _solve(factor: NDArray[np.float64], B: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``inv(factor) B`` for a lower triangular factor."""
    # SciPy 1.17's solve_triangular starts all threads of BLAS even for a 3 x 3 matrix, which is 200 times slower.
    return np.asarray(dtrsm(1.0, factor, B, lower=1)) if B.size else B

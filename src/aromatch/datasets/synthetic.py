r"""Synthetic rows with independent or correlated features, to compare diagonal and factored covariances.

The paper ends with a conjecture: d-AROMA "is likely to be superior when the variance of individual features is
large relative to feature dependencies", f-AROMA "when the data has strong correlations across features"
(section 6). The two generators here test it: they differ in nothing else.

Both sample coordinates along n directions. Along direction j a row of class c has the coordinate

    z_j = s_j (sqrt(signal) m_cj + sqrt(1 - signal) e_j)    if j is informative,
    z_j = s_j e_j                                           otherwise,

with independent standard normal variables m_cj, one for each class, and e_j, one for each row. Every second direction
is informative, the others are noise. The standard deviations decrease by a constant factor,

    s_j = a strength^(-j / (n - 1)),    j = 0, ..., n - 1,    with a such that the s_j^2 sum to 1,

so that `strength` is the ratio of the largest to the smallest, informative and noise directions have all scales, and
the mean squared norm of a row is 1, the scale for which r is meant.

- *Independent* features are the directions: x = z. Within a class all correlations are zero, variances differ by
  strength^2, and a diagonal covariance is sufficient.
- *Correlated* features mix the directions: x = R z with a uniformly random rotation R. Within a class the covariance is
  R diag(v) R', where v_j is the variance within a class along direction j. Variances of features are similar,
  correlations grow with `strength`, and half of the combinations of features are noise.

With the same seed the second generator returns the rows of the first, rotated: all inner products of rows are equal,
and so is the result of every method that is equivariant under rotations. f-AROMA from W = 0 or a multiple of I is such
a method: with R q and R p in place of q and p its equations (12) to (14) give R W R', R Omega R' and R Lambda R', and
the same margins. Its quality is the same on both, up to rounding, and the conjecture becomes a statement about d-AROMA
alone: that it is better than f-AROMA on independent features and worse on correlated ones.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._utils.checks import check_fits_in_memory, check_integer, check_number, random_generator

# Arrays of the size of the rows, and of a rotation, that are in memory at a time.
_N_ARRAYS, _N_ROTATIONS = 4, 4

Rows = tuple[NDArray[np.float64], NDArray[np.int64]]


def make_independent_features(
    n_samples: int = 1000,
    n_features: int = 50,
    n_classes: int = 10,
    *,
    strength: float = 10.0,
    signal: float = 0.5,
    random_state: Any = None,
) -> Rows:
    """Sample labelled rows with independent features of very different variances.

    Parameters
    ----------
    n_samples : int, default 1000
        Number of rows. Class sizes differ by one at most.
    n_features : int, default 50
        Number of features, at least 2; those with an even index are informative, the others are noise.
    n_classes : int, default 10
        Number of classes, at least 2.
    strength : float, default 10.0
        Ratio of the largest to the smallest standard deviation of a feature, at least 1.
    signal : float, default 0.5
        Share of the variance of informative features that is between classes, from 0 (noise) to 1 (constant within
        a class).
    random_state : int, RandomState, Generator or None
        Random seed.

    Returns
    -------
    X : ndarray, shape (n_samples, n_features)
        The rows, with a mean squared norm of 1.
    y : ndarray of int, shape (n_samples,)
        The class of each row, 0 to n_classes - 1.

    Examples
    --------
    >>> from aromatch.datasets import make_independent_features
    >>> X, y = make_independent_features(2000, 5, n_classes=2, strength=100.0, random_state=0)
    >>> (X[:, 1].std() / X[:, 3].std()).round()  # two of the four steps from 100 to 1
    np.float64(10.0)
    """
    return _sample(n_samples, n_features, n_classes, strength, signal, random_generator(random_state))


def make_correlated_features(
    n_samples: int = 1000,
    n_features: int = 50,
    n_classes: int = 10,
    *,
    strength: float = 10.0,
    signal: float = 0.5,
    random_state: Any = None,
) -> Rows:
    """Sample labelled rows with strongly correlated features: independent features under a random rotation.

    Parameters
    ----------
    n_samples : int, default 1000
        Number of rows. Class sizes differ by one at most.
    n_features : int, default 50
        Number of features, at least 2. Each mixes as many directions, half of which are informative.
    n_classes : int, default 10
        Number of classes, at least 2.
    strength : float, default 10.0
        Ratio of the largest to the smallest standard deviation along a direction; larger values mean stronger
        correlations.
    signal : float, default 0.5
        Share of the variance of informative directions that is between classes.
    random_state : int, RandomState, Generator or None
        Random seed; the rows are those of `make_independent_features` with the same seed, rotated.

    Returns
    -------
    X : ndarray, shape (n_samples, n_features)
        The rows, with a mean squared norm of 1.
    y : ndarray of int, shape (n_samples,)
        The class of each row, 0 to n_classes - 1.

    Examples
    --------
    >>> import numpy as np
    >>> from aromatch.datasets import make_correlated_features, make_independent_features
    >>> X, y = make_correlated_features(100, 20, strength=30.0, random_state=0)
    >>> Z, _ = make_independent_features(100, 20, strength=30.0, random_state=0)
    >>> np.allclose(X @ X.T, Z @ Z.T)
    True
    """
    from scipy.stats import special_ortho_group  # slow to import

    generator = random_generator(random_state)
    Z, y = _sample(n_samples, n_features, n_classes, strength, signal, generator, is_rotated=True)
    rotation = special_ortho_group.rvs(Z.shape[1], random_state=generator)
    return Z @ rotation.T, y


def standard_deviations(n_features: int, strength: float) -> NDArray[np.float64]:
    """Return the s_j of the module docstring: decreasing by a constant factor, with squares that sum to 1."""
    falling = strength ** -np.linspace(0.0, 1.0, n_features)
    deviations: NDArray[np.float64] = falling / np.linalg.norm(falling)
    return deviations


def _sample(
    n_samples: int,
    n_features: int,
    n_classes: int,
    strength: float,
    signal: float,
    generator: Any,
    *,
    is_rotated: bool = False,
) -> Rows:
    n_samples = check_integer(n_samples, "n_samples", at_least=1)
    n_features = check_integer(n_features, "n_features", at_least=2)
    n_classes = check_integer(n_classes, "n_classes", at_least=2)
    strength = check_number(strength, "strength", at_least=1.0)
    signal = check_number(signal, "signal", at_least=0.0)
    if signal > 1:
        raise ValueError(f"signal must be a share of the variance, from 0 to 1, got {signal!r}")
    n_numbers = _N_ARRAYS * (n_samples + n_classes) * n_features
    if is_rotated:
        n_numbers += _N_ROTATIONS * n_features**2
    check_fits_in_memory(
        n_numbers * np.dtype(np.float64).itemsize,
        f"n_samples={n_samples:,} rows and n_classes={n_classes:,} means of n_features={n_features:,} features",
    )
    share = np.where(np.arange(n_features) % 2 == 0, signal, 0.0)
    y = np.arange(n_samples, dtype=np.int64) % n_classes
    means = np.sqrt(share) * generator.standard_normal((n_classes, n_features))
    noise = np.sqrt(1 - share) * generator.standard_normal((n_samples, n_features))
    return standard_deviations(n_features, strength) * (means[y] + noise), y

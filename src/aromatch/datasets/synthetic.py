r"""Two kinds of data on which diagonal and factored covariances should differ, if the paper's summary is right.

The paper ends with a conjecture: d-AROMA "is likely to be superior when the variance of individual features is
large relative to feature dependencies", f-AROMA "when the data has strong correlations across features"
(section 6). To test it, the two kinds here differ in nothing but that.

Both begin with n directions. Along direction j a row of class c has the coordinate

    z_j = s_j (sqrt(signal) m_cj + sqrt(1 - signal) e_j)    where j is informative,
    z_j = s_j e_j                                           where it is not,

with m_cj, one for each class, and e_j, one for each row, independent standard normal numbers: every second
direction tells about the class, the others are noise. The standard deviations fall by a constant factor,

    s_j = a strength^(-j / (n - 1)),    j = 0, ..., n - 1,    with a such that the s_j^2 sum to 1,

so that `strength` is the ratio of the largest to the smallest, telling and noisy directions come in all sizes,
and a row has a squared norm of 1 on average, which is the scale that r is meant for.

- *Independent* features are the directions: x = z. Within a class all correlations are zero, variances differ
  by strength^2, and a covariance that is diagonal can say all there is to say.
- *Correlated* features mix the directions: x = R z with a random rotation R, uniform over all of them. Within a
  class the covariance is R diag(v) R', where v_j is the variance within a class along direction j. Every
  feature has a share of every direction: variances are much alike, correlations are as strong as the s_j are
  unequal, and half of what there is to learn is which combinations to ignore.

With the same seed the second kind is the first, rotated: all inner products of rows are equal. So is everything
that does not look at single coordinates. f-AROMA from W = 0 or a multiple of I is such a method: with R q and
R p in place of q and p its equations (12) to (14) give R W R', R Omega R' and R Lambda R', and the same margins.
Its figures on the two kinds agree to rounding, and the conjecture becomes a statement about d-AROMA alone: that
it is ahead of this common figure on the first kind and behind it on the second.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._utils.checks import check_integer, check_number, random_generator

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
    """Draw labelled rows whose features are independent and of very different variance.

    Parameters
    ----------
    n_samples : int, default 1000
        How many rows. Classes take turns, so that their sizes differ by one at most.
    n_features : int, default 50
        How many features, at least 2; those with an even number tell about the class, the others are noise.
    n_classes : int, default 10
        How many classes, at least 2.
    strength : float, default 10.0
        How unequal the features are: the standard deviation of the first is this many times that of the
        last, and those between fall by a constant factor. At 1 all are equal.
    signal : float, default 0.5
        How telling the telling features are: the share of their variance that lies between classes, from 0
        (noise as well) to 1 (constant within a class).
    random_state : int, RandomState, Generator or None
        The same number gives the same rows.

    Returns
    -------
    X : ndarray, shape (n_samples, n_features)
        The rows; their squared norm is 1 on average.
    y : ndarray of int, shape (n_samples,)
        The class of each row, 0 to n_classes - 1.

    Examples
    --------
    >>> from aromatch.datasets import make_independent_features
    >>> X, y = make_independent_features(2000, 5, n_classes=2, strength=100.0, random_state=0)
    >>> (X[:, 1].std() / X[:, 3].std()).round()  # two of the four steps from 100 to 1
    np.float64(10.0)
    """
    return _draw(n_samples, n_features, n_classes, strength, signal, random_generator(random_state))


def make_correlated_features(
    n_samples: int = 1000,
    n_features: int = 50,
    n_classes: int = 10,
    *,
    strength: float = 10.0,
    signal: float = 0.5,
    random_state: Any = None,
) -> Rows:
    """Draw labelled rows whose features are strongly correlated: independent ones under a random rotation.

    Parameters
    ----------
    n_samples : int, default 1000
        How many rows. Classes take turns, so that their sizes differ by one at most.
    n_features : int, default 50
        How many features, at least 2. As many directions lie behind them; half of these tell about the
        class, the others are noise, and every feature mixes all.
    n_classes : int, default 10
        How many classes, at least 2.
    strength : float, default 10.0
        How strong the correlations are: the standard deviation along the widest direction is this many times
        that along the narrowest.
    signal : float, default 0.5
        How telling the telling directions are: the share of their variance that lies between classes.
    random_state : int, RandomState, Generator or None
        The same number gives the same rows, and those of `make_independent_features` rotated.

    Returns
    -------
    X : ndarray, shape (n_samples, n_features)
        The rows; their squared norm is 1 on average.
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
    from scipy.stats import special_ortho_group  # takes a second, which those who only read files need not wait

    generator = random_generator(random_state)
    Z, y = _draw(n_samples, n_features, n_classes, strength, signal, generator)
    rotation = special_ortho_group.rvs(Z.shape[1], random_state=generator)
    return Z @ rotation.T, y


def standard_deviations(n_features: int, strength: float) -> NDArray[np.float64]:
    """Give the s_j of this module's text: falling by a constant factor, with squares that sum to 1."""
    falling = strength ** -np.linspace(0.0, 1.0, n_features)
    deviations: NDArray[np.float64] = falling / np.linalg.norm(falling)
    return deviations


def _draw(n_samples: int, n_features: int, n_classes: int, strength: float, signal: float, generator: Any) -> Rows:
    n_samples = check_integer(n_samples, "n_samples", at_least=1)
    n_features = check_integer(n_features, "n_features", at_least=2)
    n_classes = check_integer(n_classes, "n_classes", at_least=2)
    strength = check_number(strength, "strength", at_least=1.0)
    signal = check_number(signal, "signal", at_least=0.0)
    if signal > 1:
        raise ValueError(f"signal must be a share of the variance, from 0 to 1, got {signal!r}")
    share = np.where(np.arange(n_features) % 2 == 0, signal, 0.0)
    y = np.arange(n_samples, dtype=np.int64) % n_classes
    means = np.sqrt(share) * generator.standard_normal((n_classes, n_features))
    noise = np.sqrt(1 - share) * generator.standard_normal((n_samples, n_features))
    return standard_deviations(n_features, strength) * (means[y] + noise), y

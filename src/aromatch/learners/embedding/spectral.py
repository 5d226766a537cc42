"""A linear map by regression on the graph of the triplets, without sums over triplets (beyond the paper).

Where triplets share rows, the components of their graph above the noise level (`triplet_graph`) give each row a
direction: rows that match, compared or not, have similar directions. Directions play the part of labels, and a linear
map of the features to them is a regression, with ``x_i`` the rows, ``t_i`` their directions minus the mean of all, and
s the mean square of a feature::

    L  =  argmin_L  mean_i |L'x_i - t_i|^2  +  alpha s |L|^2      =  inv(mean x x' + alpha s I)  mean x t'

Rows are compared by ``L'q`` and ``L'p``. Ridge regression on spectral coordinates is known as spectral regression (Cai,
He and Han, Spectral Regression for Efficient Regularized Subspace Learning, ICCV 2007); there the graph is made from
labels or distances, here from triplets.

`MomentAROMA` with `denoise` estimates ``E[q p']`` from the same graph, and solves on both sides of it, which takes sums
over all triplets and several decompositions of matrices as large as the features. Here there is one Cholesky
factorization per alpha, but no map at all without components above the noise level.

alpha is chosen on validation rows: the map of the training rows that predicts their directions best.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._utils import checks
from ..moment import sums
from ..moment.solution import Inverse
from .projection import principal
from .training_set import TripletData

Array = NDArray[np.float64]

# Candidates, and where the search begins.
_ALPHAS = 10.0 ** np.arange(-4, 2.1, 0.5)
_FIRST, _FAR_APART = 6, (2, 10)
# Matrices of width x width that the regression holds.
_N_MATRICES = 5


def spectral_map(training: TripletData, n_components: int, alpha: float | None) -> tuple[Array, Array | None] | None:
    """Return the map of all rows and that of the training rows; None without components above the noise level.

    `alpha` is in units of the mean square of a feature; None chooses it on validation rows.
    """
    width = training.Q.shape[1]
    checks.check_fits_in_memory(_N_MATRICES * width**2 * 8, f"The regression on {width} features")
    train, validation = _targets(training, width)
    everything = train.plus(validation)
    if not everything.n_rows:
        return None
    L_train = None
    if alpha is None and train.n_rows and validation.n_rows:
        alpha, L_train = _best_alpha(train, validation)
    elif alpha is None:
        alpha = float(_ALPHAS[_FIRST])
    if L_train is None and train.n_rows:
        L_train = train.regression(alpha)
    L = principal(everything.regression(alpha), n_components)
    return L, None if L_train is None else principal(L_train, n_components)


class _Targets(NamedTuple):
    """Sums over rows x and their target directions t."""

    squares: Array
    """``sum x x'``."""
    products: Array
    """``sum x t'``."""
    n_rows: int

    def plus(self, more: _Targets) -> _Targets:
        """Return the sums over these rows and others."""
        return _Targets(self.squares + more.squares, self.products + more.products, self.n_rows + more.n_rows)

    def regression(self, alpha: float) -> Array:
        """Return the map that minimizes the regularized error."""
        mean_square = float(np.trace(self.squares)) / len(self.squares) / self.n_rows
        return Inverse(self.squares / self.n_rows, alpha * mean_square).times(self.products / self.n_rows)

    def error(self, L: Array) -> float:
        """Return the mean ``|L'x - t|^2`` minus the mean ``|t|^2``."""
        return float(np.vdot(L, self.squares @ L) - 2 * np.vdot(L, self.products)) / self.n_rows


def _targets(training: TripletData, width: int) -> tuple[_Targets, _Targets]:
    """Return the targets of training rows and of validation rows."""
    block, graph = training.block, training.graph
    of_queries, of_objects = graph.directions()
    sides = [(block.queries, graph.query_rows, graph.validation_queries, of_queries)]
    if block.queries is not block.preferred:
        sides.append((block.preferred, graph.object_rows, graph.validation_objects, of_objects))
    informative = [directions.any(axis=1) for *_, directions in sides]
    n_informative = sum(int(np.count_nonzero(rows)) for rows in informative)
    mean = np.sum([directions.sum(axis=0) for *_, directions in sides], axis=0) / max(1, n_informative)
    parts = []
    for part in (False, True):
        squares, products, n = np.zeros((width, width)), np.zeros((width, len(mean))), 0
        for (view, rows, is_validation, directions), has_direction in zip(sides, informative, strict=True):
            here = has_direction & (is_validation == part)
            sums.add_squares(squares, view, rows[here], np.ones(np.count_nonzero(here)))
            sums.add_rows_times(view, rows[here], directions[here] - mean, products)
            n += int(np.count_nonzero(here))
        parts.append(_Targets(squares, products, n))
    return parts[0], parts[1]


def _best_alpha(train: _Targets, validation: _Targets) -> tuple[float, Array]:
    """Return the candidate with the smallest error on validation rows, and its map of the training rows.

    The error mostly has one minimum, but not always: the search starts at the best of three distant candidates.
    """
    maps: dict[int, Array] = {}
    errors: dict[int, float] = {}

    def error(index: int) -> float:
        if index not in range(len(_ALPHAS)):
            return np.inf
        if index not in errors:
            maps[index] = train.regression(_ALPHAS[index])
            errors[index] = validation.error(maps[index])
        return errors[index]

    index = min((_FIRST, *_FAR_APART), key=error)
    for step in (-1, 1):
        while error(index + step) < error(index):
            index += step
    return float(_ALPHAS[index]), maps[index]

"""A projection straight from the graph of the judgements, without sums over triplets (beyond the paper).

Where triplets name the same rows again and again, what stands out of their graph (`triplet_graph`) gives
each row a direction: rows that belong together, compared or not, point the same way. That is as good as a label. A
linear map of the features to the directions is then a regression, with ``x_i`` the rows, ``t_i`` their directions less
the mean of all, and s the mean square of a feature::

    L  =  argmin_L  mean_i |L'x_i - t_i|^2  +  lam s |L|^2      =  inv(mean x x' + lam s I)  mean x t'

Rows are compared by ``L'q`` and ``L'p``: the projection onto ``W = L L'``. Ridge regression on spectral coordinates is
known as spectral regression (Cai, He and Han 2007); there the graph is made from labels or distances, here from
judgements.

`MomentAROMA` with `denoise` asks the same graph for ``E[q p']``, and solves on both sides of it. That costs sums over
all triplets and several decompositions of matrices as large as the features. Here there is one Cholesky factorisation
for every lam that is tried. In return there is no confidence, no merging, and nothing at all where no direction stands
out.

lam is chosen by rows that are held out, one in eight, the ones that `MomentAROMA` would hold out: it is the one whose
map from the other rows comes nearest to their directions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from ..._utils import checks
from ..._utils.rows import MatrixLike, as_matrix
from ...exceptions import NoSignalError
from ..inputs import FLOAT64, Block, feature_names, read_triplets
from ..moment import sums
from ..moment.solution import Inverse
from ..moment.triplet_graph import Graph, graph_of
from .projection import Projection, check_kind, check_square, new_projection

Array = NDArray[np.float64]

# What lam is chosen from, and where the search begins: a change of lam by less than this step matters little.
_LAMS = 10.0 ** np.arange(-4, 2.1, 0.5)
_FIRST, _FAR_APART = 6, (2, 10)
# Matrices as large as the squares of all features that are there at once.
_N_MATRICES = 5


def spectral_projection(
    triplets: ArrayLike,
    Q: MatrixLike,
    P: MatrixLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    lam: float | str = "auto",
    rank: int | None = None,
    normalize: bool | float = 0.7,
) -> Projection:
    """Map rows to a space where those lie together that judgements put together: the quickest way to a good ranking.

    For triplets of rows of one collection, or of queries and objects with the same features, that name each row a few
    times. `refine` makes it better still.

    Parameters
    ----------
    triplets, Q, P, sample_weight : as in `fit_triplets`
    lam : float or "auto", default "auto"
        How much the map is held back, in units of the mean square of a feature. "auto" chooses it by rows that are held
        out.
    rank : int, optional
        How many dimensions to keep at most.
    normalize : bool or float, default 0.7
        Score by cosines in the new space; a number between 0 and 1 divides by that power of the norms.

    Returns
    -------
    Projection
        Of kind "psd", with a dimension for each direction that stands out.

    Raises
    ------
    NoSignalError
        A ValueError: triplets are too few for their rows. `MomentAROMA` makes something of fewer.

    References
    ----------
    Cai, He and Han, Spectral Regression for Efficient Regularized Subspace Learning, ICCV 2007.

    Examples
    --------
    >>> import aromatch as am
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> triplets = am.triplets.from_labels(y[::2], 10_000, random_state=0)
    >>> nearby = am.spectral_projection(triplets, X[::2])
    >>> [round(model.score(X[1::2], y[1::2]), 2) for model in (am.Euclidean().fit(X), nearby)]
    [0.66, 0.84]
    """
    check_kind("psd", normalize)
    given = None if isinstance(lam, str) else checks.check_number(lam, "lam", above=0)
    if isinstance(lam, str):
        checks.check_choice(lam, "lam", ("auto",))
    most = None if rank is None else checks.check_integer(rank, "rank", at_least=1)
    queries = as_matrix(Q, "Q")
    objects = queries if P is None or P is Q else as_matrix(P, "P")
    if objects.shape[1] != queries.shape[1]:
        raise ValueError(f"P must have as many features as Q, {queries.shape[1]}, got {objects.shape[1]}")
    n_bytes = _N_MATRICES * queries.shape[1] ** 2 * FLOAT64.itemsize
    checks.check_fits_in_memory(n_bytes, f"The regression on {queries.shape[1]} features")
    judged = read_triplets(triplets, queries, objects, sample_weight)
    check_square(judged.largest_square, np.empty((0, 0)))
    block, _ = sums.telling(judged.block)
    graph = graph_of(block)
    found = projection_of_graph(block, graph, given, most, normalize, feature_names(Q))
    if found is None:
        raise NoSignalError(
            f"nothing stands out of the graph of these triplets: {len(block.triplets)} that say something name "
            f"{len(graph.query_rows)} queries, too few for each; MomentAROMA makes something of fewer"
        )
    return found


def projection_of_graph(
    block: Block, graph: Graph, lam: float | None, rank: int | None, normalize: bool | float, names: Any
) -> Projection | None:
    """Do what `spectral_projection` does, with the graph of these triplets; give None when nothing stands out of it."""
    known, new = _known_and_new(block, graph, block.queries.shape[1])
    everything = known.and_those_of(new)
    if not everything.n_rows:
        return None
    of_known = None
    if lam is None and known.n_rows and new.n_rows:
        lam, of_known = _best_lam(known, new)
    elif lam is None:
        lam = float(_LAMS[_FIRST])
    L = _principal(everything.best_map(lam), rank)
    if of_known is None and known.n_rows:
        of_known = known.best_map(lam)
    L_of_known = None if of_known is None else _principal(of_known, rank)
    signs = np.ones(L.shape[1])
    return new_projection(Projection("psd", normalize=normalize), L, signs, names, L_of_known, graph.to_keep())


def _principal(L: Array, rank: int | None) -> Array:
    """Give the same ``L L'`` by its eigenvectors, the largest first and so many of them."""
    vectors, roots, _ = linalg.svd(L, full_matrices=False)
    return np.ascontiguousarray((vectors * roots)[:, :rank])


class _Targets(NamedTuple):
    """Rows and where they are to be mapped, in sums over them."""

    squares: Array
    """``sum x x'``."""
    products: Array
    """``sum x t'``."""
    n_rows: int

    def and_those_of(self, more: _Targets) -> _Targets:
        """Give the sums over these rows and others."""
        return _Targets(self.squares + more.squares, self.products + more.products, self.n_rows + more.n_rows)

    def best_map(self, lam: float) -> Array:
        """Give the regression."""
        mean_square = float(np.trace(self.squares)) / len(self.squares) / self.n_rows
        return Inverse(self.squares / self.n_rows, lam * mean_square).times(self.products / self.n_rows)

    def error(self, L: Array) -> float:
        """Give the mean ``|L'x - t|^2``, less the mean ``|t|^2``."""
        return float(np.vdot(L, self.squares @ L) - 2 * np.vdot(L, self.products)) / self.n_rows


def _known_and_new(block: Block, graph: Graph, width: int) -> tuple[_Targets, _Targets]:
    """Give the targets of rows to learn from, and of rows that are held out."""
    wanted, offered = graph.directions()
    sides = [(block.queries, graph.query_rows, wanted)]
    if block.queries is not block.preferred:
        sides.append((block.preferred, graph.object_rows, offered))
    is_told = [directions.any(axis=1) for _, _, directions in sides]
    are_new = [sums.is_held_out(view, rows) for view, rows, _ in sides]
    n_told = sum(int(np.count_nonzero(told)) for told in is_told)
    mean = np.sum([directions.sum(axis=0) for _, _, directions in sides], axis=0) / max(1, n_told)
    parts = []
    for is_new in (False, True):
        squares, products, n = np.zeros((width, width)), np.zeros((width, len(mean))), 0
        for (view, rows, directions), told, held_out in zip(sides, is_told, are_new, strict=True):
            here = told & (held_out == is_new)
            sums.add_squares(squares, view, rows[here], np.ones(np.count_nonzero(here)))
            sums.add_rows_times(view, rows[here], directions[here] - mean, products)
            n += int(np.count_nonzero(here))
        parts.append(_Targets(squares, products, n))
    return parts[0], parts[1]


def _best_lam(known: _Targets, new: _Targets) -> tuple[float, Array]:
    """Give the lam, among those that are tried, that is best for rows that are held out, and the map of the others.

    The error mostly has one valley, but not always: three places that lie far apart are looked at first.
    """
    maps: dict[int, Array] = {}
    errors: dict[int, float] = {}

    def error(place: int) -> float:
        if place not in range(len(_LAMS)):
            return np.inf
        if place not in errors:
            maps[place] = known.best_map(_LAMS[place])
            errors[place] = new.error(maps[place])
        return errors[place]

    place = min((_FIRST, *_FAR_APART), key=error)
    for step in (-1, 1):
        while error(place + step) < error(place):
            place += step
    return float(_LAMS[place]), maps[place]

"""The best ranking that we know how to get from triplets, in one call (beyond the paper).

There are two ways to a space in which rows are compared: by the sums of `MomentAROMA` and what it denoises, and by
regression on what stands out of the graph of the judgements (`spectral`). The first is better with few
triplets, where little stands out, the second where features are many and noisy. Both hold out the same rows, one in
eight, and see the same graph. So both are tried on these rows, held-out objects for held-out queries, and the better
one is refined.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from ..._utils import checks
from ..._utils.rows import MatrixLike
from ..inputs import feature_names, read_triplets
from ..moment import sums
from ..moment.moment import MomentAROMA
from ..moment.triplet_graph import graph_of
from .projection import Projection
from .refinement import log_ranks_of_new
from .spectral import projection_of_graph

# Between inner products and cosines, where most rankings are best.
_NORMALIZE = 0.7


def best_projection(
    triplets: ArrayLike,
    Q: MatrixLike,
    P: MatrixLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    rank: int = 128,
    random_state: Any = 0,
    verbose: bool = False,
) -> Projection:
    """Learn a space in which rows lie as triplets say, with all settings chosen by rows that are held out.

    For rows of one collection, or queries and objects with the same features. It takes seconds. The more often triplets
    name the same rows, the more it makes of them; from a handful it makes less than the plain similarity is worth.

    Parameters
    ----------
    triplets, Q, P, sample_weight : as in `fit_triplets`
    rank : int, default 128
        Dimensions of the space, at most.
    random_state : None, int, Generator or RandomState, default 0
        Draws the rows of every step of the refinement.
    verbose : bool, default False
        Show a progress bar on a terminal.

    Returns
    -------
    Projection
        Its `transform` gives vectors for any index or tool; inner products of them are the similarity.

    Examples
    --------
    >>> import aromatch as am
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> triplets = am.triplets.from_labels(y[::2], 10_000, random_state=0)
    >>> model = am.best_projection(triplets, X[::2])
    >>> [round(one.score(X[1::2], y[1::2]), 2) for one in (am.Euclidean().fit(X), model)]
    [0.66, 0.85]
    """
    checks.check_integer(rank, "rank", at_least=1)
    generator = checks.random_generator(random_state)
    model = MomentAROMA("auto", denoise=True, verbose=verbose)
    model.fit_triplets(triplets, Q, P, sample_weight=sample_weight)
    nearby = model.project(rank=rank, normalize=_NORMALIZE)
    if not nearby.L_.size:
        raise ValueError("triplets say nothing: there are none with a weight, a query and two objects that differ")
    queries, objects = model._check_both(Q, P)
    judged = read_triplets(triplets, queries, objects, sample_weight)
    block, tells = sums.telling(judged.block)
    graph = model._graph or graph_of(block)
    other = projection_of_graph(block, graph, None, rank, _NORMALIZE, feature_names(Q))
    if other is not None:
        maps = [one._L_of_known for one in (nearby, other)]
        ranks = log_ranks_of_new(maps, _NORMALIZE, block, graph, queries, objects, judged.numbers[tells])
        if ranks and ranks[1] < ranks[0]:
            nearby = other
    return nearby.refine(triplets, Q, P, sample_weight=sample_weight, random_state=generator, verbose=verbose)

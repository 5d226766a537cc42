"""What a query looks for, as a distribution: the learned one over W, seen through the query.

A score is ``q'Wp = u'p`` with ``u = W'q``. When W is Gaussian, so is u, and all that exploring needs is in it::

    diagonal:  u ~ N(W'q, diag(v)),               v_j = sum_i q_i^2 Sigma_ij
    factored:  u ~ N(W'q, (q'Lambda q) Omega)
    full:      u ~ N(W'q, C),                     C_jl = sum_ik q_i q_k Sigma_(ij)(kl)

Thompson sampling draws u once and ranks by it: a single vector, which any index of inner products can search with. An
upper confidence bound adds so many standard deviations ``sqrt(p' Cov(u) p)`` to the score of every object.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._utils import checks
from .._utils.rows import MatrixLike
from ..learners.triplet import TripletLearner

Array = NDArray[Any]


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
    wanted = np.asarray(model._map_queries(Q))
    if explore is None:
        return wanted
    checks.check_choice(explore, "explore", ("thompson",))
    check_has_distribution(model)
    return np.asarray(model.sample_transform(queries, width, random_state))


def check_bilinear(model: Any) -> None:
    """Refuse what has no ``q'Wp``, or has learned nothing yet."""
    if not isinstance(model, TripletLearner):
        raise TypeError(f"model must be a learner with q'Wp, got {type(model).__name__}")
    model._check_is_fitted()


def check_has_distribution(model: Any) -> None:
    """Refuse a model without a distribution over its scores."""
    if not hasattr(model, "sample_transform"):
        raise TypeError(f"explore needs a model with standard deviations, got {type(model).__name__}")

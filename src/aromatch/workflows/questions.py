"""Which comparison to ask next, by the learned distribution.

Of two objects a model shows the one with the larger mean score first. If the margin between both is m with standard
deviation s, it may be wrong about that, and what it loses then is the margin it has the wrong way round. Expected
before the answer is known, this is ::

    s phi(m / s) - |m| Phi(-|m| / s)

with phi and Phi of the standard normal distribution. The comparison where that is largest is asked: objects that are
both near the top of a list, nearly equal, and of which little is known.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from .._utils.nearest import top_k
from .._utils.rows import Matrix

Triplet = tuple[int, int, int]

_QUERIES = 32
_TOP = 6


def worth_asking(
    model: Any, Q: Matrix, P: Matrix, asked: set[Triplet], generator: np.random.Generator, *, own: bool
) -> Triplet | None:
    """Give the rows of a query and two objects, the first one first by the model; None when all was asked.

    Parameters
    ----------
    model : a learner that knows how sure it is
    Q, P : matrices of queries and objects
    asked : triplets not to ask again, in any order of the two objects
    generator : numpy.random.Generator
        Draws the queries that are looked at.
    own : bool
        Whether queries are the objects, and a row is not compared with itself.
    """
    for looked_at in np.array_split(generator.permutation(Q.shape[0]), max(1, Q.shape[0] // _QUERIES)):
        triplets = _candidates(model, Q, P, looked_at, own=own)
        triplets = [one for one in triplets if one not in asked and (one[0], one[2], one[1]) not in asked]
        if not triplets:
            continue
        numbers = np.array(triplets, dtype=np.int64)
        objects = None if own else P
        worth = expected_loss(model.margins(numbers, Q, objects), model.margin_std(numbers, Q, objects))
        return triplets[int(np.argmax(worth))]
    return None


def expected_loss(margins: NDArray[Any], stds: NDArray[Any]) -> NDArray[np.float64]:
    """Give what is lost on average by trusting the sign of each margin.

    >>> expected_loss(np.array([0.0, 1.0]), np.array([1.0, 1.0])).round(3)
    array([0.399, 0.083])
    """
    sizes, spread = np.abs(margins).astype(np.float64), np.maximum(stds.astype(np.float64), 1e-300)
    z = sizes / spread
    return np.asarray(spread * norm.pdf(z) - sizes * norm.sf(z))


def _candidates(model: Any, Q: Matrix, P: Matrix, rows: NDArray[np.int64], *, own: bool) -> list[Triplet]:
    """Pair what stands at the top of the lists of some queries."""
    scores = model.similarity(Q[rows], P)
    if own:
        scores[np.arange(len(rows)), rows] = -np.inf
    top = top_k(scores, min(_TOP, P.shape[0] - own)).indices
    found = []
    for row, list_of_row in zip(rows.tolist(), top.tolist(), strict=True):
        found += [(row, first, second) for first, second in combinations(list_of_row, 2)]
    return found

"""Active learning: which comparison to ask next.

An answer is most informative where both outcomes are about equally likely: where the margin is small relative to its
standard deviation. docs/studies.md compares this rule with others: asking at random, or where the standard deviation is
largest, needs two to four times as many answers. The smallest margin alone performs alike. The mutual information of an
answer and W is better on embeddings at first, and worse on human answers, which are noisy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._utils import checks
from .._utils.rows import MatrixLike
from ..learners import Similarity


def suggest_comparisons(
    model: Similarity, candidates: ArrayLike, Q: MatrixLike, P: MatrixLike | None = None, n: int = 1
) -> NDArray[np.int64]:
    """Return the candidate comparisons whose outcome is least certain.

    Certainty is the absolute margin divided by its standard deviation, or the absolute margin if the model has no
    `margin_std`. No query is suggested twice while there are others. Learn the answers before asking for more: small
    batches are chosen better.

    Parameters
    ----------
    model : a fitted learner
        Fit an untrained model on no triplets: ``fit_triplets`` accepts an empty array.
    candidates : integer array of shape (N, 3)
        Comparisons that could be asked: row of the query in Q, rows of two objects in P. The order of the two objects
        does not matter.
    Q : array or CSR matrix of shape (n_queries, m)
    P : array or CSR matrix of shape (n_objects, n), default Q
    n : int, default 1
        Number of comparisons; all candidates if there are fewer.

    Returns
    -------
    int64 array of at most n indices into `candidates`, the most informative first
        Ties are ordered as in `candidates`. Comparisons of objects that the model cannot distinguish come last.

    Examples
    --------
    >>> import numpy as np
    >>> import aromatch as am
    >>> X = np.eye(4)
    >>> model = am.FactoredAROMA(r=0.1).fit_triplets([[0, 1, 2], [0, 1, 3]], X)
    >>> candidates = np.array([[0, 1, 2], [0, 2, 3], [1, 0, 2]])
    >>> am.suggest_comparisons(model, candidates, X, n=2)
    array([2, 1])
    """
    n = checks.check_integer(n, "n", at_least=1)
    if isinstance(model, type) or not hasattr(model, "margins"):
        raise TypeError(f"model must be a fitted learner, with the method margins, got {type(model).__name__}")
    margins = np.abs(np.asarray(model.margins(candidates, Q, P), dtype=np.float64))
    stds = np.ones_like(margins)
    if hasattr(model, "margin_std"):
        stds = np.asarray(model.margin_std(candidates, Q, P), dtype=np.float64)
    queries = checks.check_row_indices(candidates, "candidates", 3)[:, 0]
    certainty = np.full_like(margins, np.inf)
    np.divide(margins, stds, out=certainty, where=stds > 0)
    order = np.argsort(certainty, kind="stable")
    return order[np.argsort(_n_earlier(queries[order]), kind="stable")][:n]


def _n_earlier(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each value the number of equal ones before it."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))
    numbers = np.empty_like(order)
    numbers[order] = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
    return numbers

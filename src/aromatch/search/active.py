"""Which comparison to ask a person next, for a model that learns from the answers.

An answer tells most where the model is least sure of it: where the margin is small against its standard deviation, so
that both answers are about as likely. docs/studies.md compares it with other ways. Asking at random, or where the
standard deviation is largest, needs two to four times as many answers. Asking where the margin alone is smallest is as
good. What an answer tells about W (mutual information) is better on embeddings at first, and worse on answers of
people, who disagree.
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
    """Choose the comparisons that are worth asking next: those that the model is least sure about.

    Sure is a margin that is large against its standard deviation, or, of a model that has none, a large margin. As long
    as there are others, no query is asked about twice. Learn the answers before you ask for more: the fewer at a time,
    the better each is chosen.

    Parameters
    ----------
    model : a fitted learner
        One that knows nothing yet has to be fitted too: ``fit_triplets`` takes no triplets at all.
    candidates : integer array of shape (N, 3)
        Comparisons that could be asked: row of the query in Q, rows of two objects in P. It does not matter which of
        the two comes first.
    Q : array or CSR matrix of shape (n_queries, m)
    P : array or CSR matrix of shape (n_objects, n), default Q
    n : int, default 1
        How many to choose; all when there are fewer.

    Returns
    -------
    int64 array of at most n places in `candidates`, what is most worth asking first
        Of two that are equal the first is taken. Comparisons of objects between which the model can see no difference
        come last.

    Examples
    --------
    >>> import numpy as np
    >>> import aromatch as am
    >>> X = np.eye(4)
    >>> model = am.FactoredAROMA(r=0.1).fit_triplets([[0, 1, 2], [0, 1, 3]], X)
    >>> candidates = np.array([[0, 1, 2], [0, 2, 3], [1, 0, 2]])
    >>> am.search.suggest_comparisons(model, candidates, X, n=2)
    array([2, 1])
    """
    n = checks.check_integer(n, "n", at_least=1)
    sizes = np.abs(np.asarray(model.margins(candidates, Q, P), dtype=np.float64))
    unsure = np.ones_like(sizes)
    if hasattr(model, "margin_std"):
        unsure = np.asarray(model.margin_std(candidates, Q, P), dtype=np.float64)
    queries = checks.check_row_indices(candidates, "candidates", 3)[:, 0]
    sure = np.full_like(sizes, np.inf)
    np.divide(sizes, unsure, out=sure, where=unsure > 0)
    order = np.argsort(sure, kind="stable")
    return order[np.argsort(_earlier(queries[order]), kind="stable")][:n]


def _earlier(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give for each value how many equal ones come before it."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))
    numbers = np.empty_like(order)
    numbers[order] = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
    return numbers

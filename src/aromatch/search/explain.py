"""Explanation of a score by pairs of features.

A bilinear score is a sum over pairs of a query feature and an object feature, ``q'Wp = sum_ij q_i W_ij p_j``. With a
covariance of W each contribution has a standard deviation, ``|q_i p_j| sqrt(Var W_ij)``. Any model with `explain_pair`
can be explained.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._utils import checks
from .._utils.printable import printable
from .._utils.rows import MatrixLike, as_single_row

Array = NDArray[Any]


class Part(NamedTuple):
    """Contribution of one pair of features to a score."""

    query_feature: str | int
    object_feature: str | int
    value: float
    std: float | None
    """Standard deviation under the learned distribution; None if the model has none."""


class Explanation(NamedTuple):
    """The largest contributions to a score in absolute value, and the sum of the others."""

    score: float
    parts: list[Part]
    rest: float
    """Sum of all contributions that are not listed."""

    def __str__(self) -> str:
        lines = [f"score {self.score:+.4f}"]
        for part in self.parts:
            spread = "" if part.std is None else f" +- {part.std:.4f}"
            names = printable(f"{part.query_feature} x {part.object_feature}")
            lines.append(f"{part.value:+.4f}{spread}  {names}")
        lines.append(f"{self.rest:+.4f}  all other pairs")
        return "\n".join(lines)


def explain(
    model: Any,
    q: MatrixLike,
    p: MatrixLike,
    top: int = 10,
    *,
    query_names: Any = None,
    object_names: Any = None,
) -> Explanation:
    """Return the pairs of features that contribute most to the score of a query and an object.

    Parameters
    ----------
    model : a fitted model with `explain_pair`
    q, p : vectors, or matrices with one row
        The query and the object.
    top : int, default 10
        Number of pairs, by decreasing absolute contribution.
    query_names, object_names : sequences of str, or objects with `get_feature_names_out`, optional
        Names of the features. The default for queries is the model's `feature_names_in_`; otherwise features are
        numbered.

    Examples
    --------
    >>> import numpy as np
    >>> import aromatch as am
    >>> model = am.DiagonalAROMA(r=0.1).fit_triplets([[0, 1, 2]], np.eye(3))
    >>> print(am.explain(model, [1, 0, 0], [0, 1, 0.5], query_names=["tea", "cup", "car"]))
    score +0.2381
    +0.4762 +- 0.7237  tea x 1
    -0.2381 +- 0.3619  tea x 2
    +0.0000  all other pairs
    """
    if isinstance(model, type) or not hasattr(model, "explain_pair"):
        raise TypeError(f"model must have the method explain_pair, got {type(model).__name__}")
    top = checks.check_integer(top, "top", at_least=1)
    rows = [as_single_row(x, name) for x, name in ((q, "q"), (p, "p"))]
    score = float(model.pair_score(*rows)[0])
    found = model.explain_pair(*rows)
    names = [
        _names(given, name, row.shape[1], getattr(model, "feature_names_in_", None) if name == "query_names" else None)
        for given, name, row in ((query_names, "query_names", rows[0]), (object_names, "object_names", rows[1]))
    ]
    largest = np.argsort(-np.abs(found.values), axis=None, kind="stable")[:top]
    parts = []
    for a, b in zip(*np.unravel_index(largest, found.values.shape), strict=True):
        std = None if found.stds is None else float(found.stds[a, b])
        i, j = found.query_features[a], found.object_features[b]
        parts.append(Part(names[0][i], names[1][j], float(found.values[a, b]), std))
    return Explanation(score, parts, score - sum(part.value for part in parts))


def _names(given: Any, name: str, width: int, known: Any) -> Sequence[Any]:
    if given is None:
        return range(width) if known is None else [str(one) for one in known]
    if hasattr(given, "get_feature_names_out"):
        given = given.get_feature_names_out()
    names = [str(one) for one in checks.as_list(given, name)]
    if len(names) != width:
        raise ValueError(f"{name} must have {width} names, one per feature, got {len(names)}")
    return names

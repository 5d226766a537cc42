"""Why a score is what it is: the pairs of features that make it, and how sure each is.

``q'Wp = sum_ij q_i W_ij p_j``, so every pair of a feature of the query and one of the object has its part. With the
covariance of W each part has a standard deviation of its own, ``|q_i p_j| sqrt(Var W_ij)``. A projection divides all of
them by the same norms, and has no standard deviations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._utils import checks
from .._utils.rows import MatrixLike
from ..learners import DiagonalAROMA, FullAROMA, Projection
from .explore import check_bilinear

Array = NDArray[Any]


class Part(NamedTuple):
    """What one pair of features adds to a score."""

    query_feature: str | int
    object_feature: str | int
    value: float
    """``q_i W_ij p_j``."""
    std: float | None
    """Its standard deviation under the learned distribution; None where the model has none."""


class Explanation(NamedTuple):
    """The parts of a score that are largest in size, and the rest."""

    score: float
    parts: list[Part]
    rest: float
    """The sum of all parts that are not listed."""

    def __str__(self) -> str:
        lines = [f"score {self.score:+.4f}"]
        for part in self.parts:
            spread = "" if part.std is None else f" +- {part.std:.4f}"
            lines.append(f"{part.value:+.4f}{spread}  {part.query_feature} x {part.object_feature}")
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
    """Give the pairs of features that drive the score of a query and an object.

    Parameters
    ----------
    model : a learner with ``q'Wp``, fitted, or a projection of one
    q, p : vectors, or matrices with one row
        The query and the object.
    top : int, default 10
        How many pairs, those with the largest part in size first.
    query_names, object_names : sequences of names, or something with `get_feature_names_out`, optional
        Names of the features. By default those that the model was learned with, or numbers.

    Examples
    --------
    >>> import numpy as np
    >>> import aromatch as am
    >>> model = am.DiagonalAROMA(r=0.1).fit_triplets([[0, 1, 2]], np.eye(3))
    >>> print(am.search.explain(model, [1, 0, 0], [0, 1, 0.5], query_names=["tea", "cup", "car"]))
    score +0.2381
    +0.4762 +- 0.7237  tea x 1
    -0.2381 +- 0.3619  tea x 2
    +0.0000  all other pairs
    """
    if not isinstance(model, Projection):
        check_bilinear(model)
    top = checks.check_integer(top, "top", at_least=1)
    rows = [_one_row(x, name) for x, name in ((q, "q"), (p, "p"))]
    score = float(model.pair_score(*rows)[0])
    (i, left), (j, right) = (_values(row) for row in rows)
    names = [
        _names(given, name, row.shape[1], getattr(model, "feature_names_in_", None) if name == "query_names" else None)
        for given, name, row in ((query_names, "query_names", rows[0]), (object_names, "object_names", rows[1]))
    ]
    weights = np.outer(left, right)
    if isinstance(model, Projection):
        values = _cells_of_projection(model, i, left, j, right) * weights
    else:
        values = _cells(model.W_, i, j, 0.0) * weights
    stds = _stds(model, i, j) if hasattr(model, "pair_std") else None
    largest = np.argsort(-np.abs(values), axis=None, kind="stable")[:top]
    parts = []
    for a, b in zip(*np.unravel_index(largest, values.shape), strict=True):
        std = None if stds is None else float(abs(weights[a, b]) * stds[a, b])
        parts.append(Part(names[0][i[a]], names[1][j[b]], float(values[a, b]), std))
    return Explanation(score, parts, score - sum(part.value for part in parts))


def _stds(model: Any, i: Array, j: Array) -> Array:
    """Give the standard deviations of some cells of W."""
    if isinstance(model, DiagonalAROMA):
        return np.sqrt(_cells(model.Sigma_, i, j, 1.0))
    if isinstance(model, FullAROMA):
        n = model.n_object_features_in_
        return np.asarray(np.sqrt(np.diagonal(model.Sigma_)[i[:, np.newaxis] * n + j]))
    return np.sqrt(np.outer(np.diagonal(model.Lambda_)[i], np.diagonal(model.Omega_)[j]))


def _cells_of_projection(model: Projection, i: Array, left: Array, j: Array, right: Array) -> Array:
    """Give some cells of ``L L'``, divided by what the scores of this query and object are divided by."""
    L, power = model.L_, float(model.normalize)
    norms = np.array([np.linalg.norm(left @ L[i]), np.linalg.norm(right @ L[j])]) ** power
    scale = 1 / float(np.prod(norms)) if norms.all() else 0.0
    return np.asarray((L[i] * model.signs_) @ L[j].T * scale)


def _cells(matrix: Any, i: Array, j: Array, otherwise: float) -> Array:
    """Give some cells of a matrix; of a sparse one, `otherwise` where nothing is stored."""
    if not sparse.issparse(matrix):
        return np.asarray(matrix[np.ix_(i, j)])
    rows = matrix[i]
    stored = sparse.csr_array((np.ones(rows.nnz), rows.indices, rows.indptr), shape=rows.shape)
    is_stored = stored[:, j].toarray() > 0
    return np.where(is_stored, rows[:, j].toarray(), otherwise)


def _one_row(x: Any, name: str) -> Any:
    if sparse.issparse(x):
        matrix = sparse.csr_array(x.reshape(1, -1) if x.ndim == 1 else x)
    else:
        matrix = np.atleast_2d(checks.as_array(x, name))
    if matrix.ndim != 2 or matrix.shape[0] != 1:
        raise ValueError(f"{name} must be one row, got the shape {matrix.shape}")
    return matrix


def _values(row: Any) -> tuple[Array, Array]:
    """Give the places of what is not zero, and the values."""
    dense = np.asarray(row.toarray() if sparse.issparse(row) else row, dtype=np.float64).ravel()
    places = np.flatnonzero(dense)
    return places, dense[places]


def _names(given: Any, name: str, width: int, known: Any) -> Sequence[Any]:
    if given is None:
        return range(width) if known is None else [str(one) for one in known]
    if hasattr(given, "get_feature_names_out"):
        given = given.get_feature_names_out()
    names = [str(one) for one in given]
    if len(names) != width:
        raise ValueError(f"{name} must have one name for each of the {width} features, got {len(names)}")
    return names

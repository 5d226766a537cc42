"""Recorded runs of an online learner, the input of the mistake bounds."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from .._utils import checks
from .._utils.rows import as_float64, as_matrix, check_structure, read_rows
from .matrix_normal import LARGEST, as_floats


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """Rounds of a learner that starts from W = 0.

    `record_run` returns one; it can also be created from the arrays of another implementation.

    Parameters
    ----------
    queries : array of shape (N, m)
        The query q of each round.
    differences : array of shape (N, n)
        The preferred object minus the other, p, of each round.
    margins : array of shape (N,)
        ``q'Wp`` before the update.
    updated : boolean array of shape (N,)
        Whether the model was updated.
    variances_after : array of shape (N,)
        Variance of the margin under the covariance after the round: for f-AROMA
        ``(q'Lambda_i q)(p'Omega_i p)``.
    r : float
        The parameter r of the learner.
    Sigma : array, optional
        The final covariance of a learner with a single matrix: (m, n) for d-AROMA.
    Omega, Lambda : arrays of shape (n, n) and (m, m), optional
        The final covariances of f-AROMA, required by Theorem 2 and Lemma 3.

    Examples
    --------
    >>> from aromatch.theory import Run
    >>> Run(queries=[[1]], differences=[[1]], margins=[0], updated=[True], variances_after=[0.5], r=1)
    Run(1 rounds, m=1, n=1, r=1, 1 mistakes, 1 updates)
    """

    queries: NDArray[np.float64]
    differences: NDArray[np.float64]
    margins: NDArray[np.float64]
    updated: NDArray[np.bool_]
    variances_after: NDArray[np.float64]
    r: float
    Sigma: NDArray[np.float64] | None = None
    Omega: NDArray[np.float64] | None = None
    Lambda: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        queries = as_floats(self.queries, "queries", ndim=2)
        N, m = queries.shape
        differences = as_floats(self.differences, "differences", ndim=2)
        if len(differences) != N:
            raise ValueError(f"differences must have one row for each of the {N} queries, got {len(differences)}")
        n = differences.shape[1]
        updated = np.asarray(self.updated)
        if updated.dtype != np.bool_ or updated.shape != (N,):
            raise ValueError(f"updated must be {N} booleans, got {updated.dtype} of shape {updated.shape}")
        r = checks.check_number(self.r, "r", above=0)
        if r < 1 / LARGEST:
            raise ValueError(f"r must be at least {1 / LARGEST:.0e}, got {self.r!r}")
        checked = {
            "queries": queries,
            "differences": differences,
            "margins": as_floats(self.margins, "margins", shape=(N,)),
            "updated": updated,
            "variances_after": as_floats(self.variances_after, "variances_after", shape=(N,)),
            "r": r,
            "Sigma": None if self.Sigma is None else as_floats(self.Sigma, "Sigma", ndim=2),
            "Omega": None if self.Omega is None else as_floats(self.Omega, "Omega", shape=(n, n)),
            "Lambda": None if self.Lambda is None else as_floats(self.Lambda, "Lambda", shape=(m, m)),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of query features m and object features n."""
        return self.queries.shape[1], self.differences.shape[1]

    @property
    def mistakes(self) -> NDArray[np.bool_]:
        """Whether each round was a mistake (the set M): a margin of at most zero, including ties."""
        return self.margins <= 0

    def __repr__(self) -> str:
        m, n = self.shape
        return (
            f"Run({len(self.margins)} rounds, m={m}, n={n}, r={self.r:g}, "
            f"{self.mistakes.sum()} mistakes, {self.updated.sum()} updates)"
        )


def check_run(run: Any) -> Run:
    """Return an argument after checking that it is a run."""
    if not isinstance(run, Run):
        raise TypeError(f"run must be a Run, as `record_run` returns, got {type(run).__name__}")
    return run


def record_run(learner: Any, triplets: ArrayLike, Q: ArrayLike, P: ArrayLike | None = None) -> Run:
    """Train an unfitted clone of a learner on the triplets one at a time, and record every round.

    Parameters
    ----------
    learner : DiagonalAROMA, FactoredAROMA or FullAROMA
        Its parameters are used; its state is neither used nor changed. It must start from zero, as the theorems assume.
    triplets : integer array of shape (N, 3)
        Row of the query in Q, of the preferred object in P, and of the other object in P.
    Q, P : arrays or CSR matrices
        Queries and objects, one per row; by default P is Q.

    Returns
    -------
    Run
        The recorded rounds, with dense copies of the rows (``8 N (m + n)`` bytes).

    Examples
    --------
    >>> import numpy as np
    >>> from aromatch import FactoredAROMA, theory
    >>> objects = np.eye(3)
    >>> learner = FactoredAROMA(r=1.0, rule="mistake", mean_update="updated")
    >>> run = theory.record_run(learner, [[0, 1, 2], [0, 2, 1], [0, 1, 2]], objects)
    >>> run
    Run(3 rounds, m=3, n=3, r=1, 3 mistakes, 3 updates)
    >>> round(theory.theorem_2(run, V=np.zeros((3, 3))), 6)  # at V = 0 the bound is the number of mistakes
    3.0
    >>> theory.theorem_2_holds_for_every_V(run).holds
    True
    """
    # The rest of this package does not need scikit-learn.
    from sklearn.base import clone

    if isinstance(learner, type) or not hasattr(learner, "margin_std"):
        raise TypeError(f"learner must be an AROMA learner, with the method margin_std, got {type(learner).__name__}")
    init = check_structure(learner.init, "init").toarray() if sparse.issparse(learner.init) else learner.init
    if not (init == "zero" if isinstance(init, str) else not np.any(init)):
        raise ValueError(f"learner must have init='zero', as the theorems assume, got {learner.init!r}")
    numbers = checks.check_row_indices(triplets, "triplets", 3)
    if not len(numbers):
        raise ValueError("triplets is empty, expected at least one round")
    Q_matrix = as_matrix(Q, "Q")
    P_matrix = Q_matrix if P is None else as_matrix(P, "P")
    checks.check_fits_in_memory(8 * len(numbers) * (Q_matrix.shape[1] + 3 * P_matrix.shape[1]), "The recorded rows")
    queries = _dense_rows(Q_matrix, "Q", "query", numbers[:, 0])
    preferred = _dense_rows(P_matrix, "P", "preferred object", numbers[:, 1])
    others = _dense_rows(P_matrix, "P", "other object", numbers[:, 2])

    learner = clone(learner)
    if "cells" in learner.get_params():
        learner.set_params(cells="dense")  # bit-identical, and the theorems need every cell
    margins, variances_after = np.empty(len(numbers)), np.empty(len(numbers))
    updated = np.empty(len(numbers), dtype=np.bool_)
    for i, (q, p_pos, p_neg) in enumerate(zip(queries, preferred, others, strict=True)):
        judgement = learner.learn_one(q, p_pos, p_neg)
        margins[i], updated[i] = judgement.margin, judgement.updated
        variances_after[i] = learner.margin_std([[0, 0, 1]], q[None], np.stack([p_pos, p_neg])).item() ** 2
    return Run(
        queries=queries,
        differences=preferred - others,
        margins=margins,
        updated=updated,
        variances_after=variances_after,
        r=learner.r,
        Sigma=getattr(learner, "Sigma_", None),
        Omega=getattr(learner, "Omega_", None),
        Lambda=getattr(learner, "Lambda_", None),
    )


def _dense_rows(X: Any, matrix: str, role: str, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
    checks.check_range(numbers, f"{role} of triplet", X.shape[0], matrix)
    read_rows(X, matrix, [np.ascontiguousarray(numbers)])
    is_sparse, rows = sparse.issparse(X), X[numbers]
    return np.asarray(as_float64(rows.toarray() if is_sparse else rows, matrix))

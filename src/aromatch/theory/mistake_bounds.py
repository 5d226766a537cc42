"""The mistake bounds of the paper, computed for a recorded run: Theorem 1, Theorem 2 and Lemma 3.

Record what a learner did with `record_run`, then ask what the theorems say of it. With M the rounds that were
mistakes (a tie is one: margin <= 0) and U the rounds with an update and no mistake, each theorem bounds the
number of mistakes ``|M|`` by a right-hand side that depends on a matrix V of your choice, for instance the
best similarity in hindsight:

- `theorem_1` and `theorem_2` give that right-hand side for one V;
- `theorem_1_holds_for_every_V` and `theorem_2_holds_for_every_V` decide the bound for all V at once, exactly;
- `lemma_3` gives the three numbers of the lemma on which Theorem 2 stands.

All of them compute for any run. Each says for which learner the paper promises something, and where the
promise is not kept.

Deciding for every V
--------------------
Both right-hand sides have the form, with ``x_i = q_i p_i'`` and ``<V, x_i> = q_i'V p_i``::

    F(V) = sum_i max(0, 1 - <V, x_i>) - |U| + |V|_A sqrt(R)

where the sum has ``|M| + |U|`` terms (Theorem 2: ``|M|``, and nothing is subtracted), ``|V|_A`` is a norm and
``R >= 0`` does not depend on V. Let S be the sum of the ``x_i`` and ``|S|_*`` the dual norm, the largest
``<V, S>`` over ``|V|_A = 1``. Then ``|M| <= F(V)`` for every V if and only if ``|S|_*^2 <= R``:

- If it is, then since a hinge is at least its linear part, ``F(V) >= |M| - <V, S> + |V|_A sqrt(R) >= |M|``.
- If it is not, take the V with ``<V, S> = |V|_A |S|_*`` and scale it towards 0 until no ``<V, x_i>`` is over
  1. There every hinge is its linear part, and ``F(V) = |M| - |V|_A (|S|_* - sqrt(R)) < |M|``.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from .._utils import checks
from .._utils.rows import as_float64, as_matrix, read_rows
from .matrix_normal import as_floats, cholesky, log_determinant, squared_distance

__all__ = [
    "ForEveryV",
    "Lemma3",
    "Run",
    "lemma_3",
    "record_run",
    "theorem_1",
    "theorem_1_holds_for_every_V",
    "theorem_2",
    "theorem_2_holds_for_every_V",
]

# Sums over thousands of rounds carry this much rounding, relative to their size.
_ROUNDING = 1e-10


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """What a learner met and did, round by round, starting from W = 0.

    `record_run` makes one; it can also be built from the arrays of your own loop.

    Parameters
    ----------
    queries : array of shape (N, m)
        The query q of each round.
    differences : array of shape (N, n)
        The preferred object minus the other, p, of each round.
    margins : array of shape (N,)
        ``q'Wp`` before the update.
    updated : boolean array of shape (N,)
        Whether the round changed the model.
    variances_after : array of shape (N,)
        Variance of the round's own margin under the covariance after the round: for f-AROMA
        ``(q'Lambda_i q)(p'Omega_i p)``.
    r : float
        The regularizer of the learner.
    Sigma : array, optional
        The last covariance of a learner that has one matrix of it: (m, n) for d-AROMA.
    Omega, Lambda : arrays of shape (n, n) and (m, m), optional
        The last covariances of f-AROMA; Theorem 2 and Lemma 3 need them.

    Examples
    --------
    >>> from aromatch.theory.mistake_bounds import Run
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
        checked = {
            "queries": queries,
            "differences": differences,
            "margins": as_floats(self.margins, "margins", shape=(N,)),
            "updated": updated,
            "variances_after": as_floats(self.variances_after, "variances_after", shape=(N,)),
            "r": checks.check_number(self.r, "r", above=0),
            "Sigma": None if self.Sigma is None else as_floats(self.Sigma, "Sigma", ndim=2),
            "Omega": None if self.Omega is None else as_floats(self.Omega, "Omega", shape=(n, n)),
            "Lambda": None if self.Lambda is None else as_floats(self.Lambda, "Lambda", shape=(m, m)),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def mistakes(self) -> NDArray[np.bool_]:
        """Whether each round was a mistake (the set M): a margin of at most zero, ties included."""
        return self.margins <= 0

    def __repr__(self) -> str:
        m, n = _sizes(self)
        return (
            f"Run({len(self.margins)} rounds, m={m}, n={n}, r={self.r:g}, "
            f"{self.mistakes.sum()} mistakes, {self.updated.sum()} updates)"
        )


class Lemma3(NamedTuple):
    """The three numbers of Lemma 3: a sum of variances and its two bounds."""

    left: float
    """``sum_i (q_i'Lambda_i q_i)(p_i'Omega_i p_i)`` over the rounds with an update."""
    right_omega: float
    """``m r log det inv(Omega_N)``."""
    right_lambda: float
    """``n r log det inv(Lambda_N)``."""

    @property
    def holds(self) -> bool:
        """Whether both inequalities hold, up to rounding."""
        return _at_most(self.left, min(self.right_omega, self.right_lambda))


class ForEveryV(NamedTuple):
    """Whether a theorem's bound holds for every V at once: it does exactly when ``left <= right``."""

    left: float
    right: float
    V: NDArray[np.float64]
    """The V, of shape (m, n), that is hardest for the bound: where it fails for some V, it fails for this."""

    @property
    def holds(self) -> bool:
        """Whether ``left <= right``, up to rounding."""
        return _at_most(self.left, self.right)


def record_run(learner: Any, triplets: ArrayLike, Q: ArrayLike, P: ArrayLike | None = None) -> Run:
    """Let a fresh copy of a learner learn the triplets one at a time, and record every round.

    Parameters
    ----------
    learner : DiagonalAROMA, FactoredAROMA or FullAROMA
        Its parameters are used; what it has learned is neither used nor changed. It must start from zero, as
        the theorems do.
    triplets : integer array of shape (N, 3)
        Rows of the query in Q, of the preferred object in P, of the other object in P.
    Q, P : arrays or CSR matrices
        Queries and objects, one a row; P None means Q.

    Returns
    -------
    Run
        With dense copies of the rows: it takes ``8 N (m + n)`` bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from aromatch import FactoredAROMA
    >>> from aromatch.theory import mistake_bounds as theory
    >>> objects = np.eye(3)
    >>> learner = FactoredAROMA(r=1.0, rule="mistake", mean_update="updated")
    >>> run = theory.record_run(learner, [[0, 1, 2], [0, 2, 1], [0, 1, 2]], objects)
    >>> run
    Run(3 rounds, m=3, n=3, r=1, 3 mistakes, 3 updates)
    >>> round(theory.theorem_2(run, V=np.zeros((3, 3))), 6)  # V = 0 allows every mistake
    3.0
    >>> theory.theorem_2_holds_for_every_V(run).holds
    True
    """
    # Estimators bring scikit-learn with them; this module is used without it, too.
    from sklearn.base import clone

    if not hasattr(learner, "margin_std"):
        raise TypeError(
            f"learner must be an AROMA learner, which knows the variance of a margin, got {type(learner).__name__}"
        )
    init = learner.init.toarray() if sparse.issparse(learner.init) else learner.init
    if not (init == "zero" if isinstance(init, str) else not np.any(init)):
        raise ValueError(f"learner must start from init='zero', which the theorems assume, got {learner.init!r}")
    numbers = checks.check_row_numbers(triplets, "triplets", 3)
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
        learner.set_params(cells="dense")  # the same bits, and the theorems look at every cell
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


def theorem_1(run: Run, V: ArrayLike, corrected: bool = True) -> float:
    """Right-hand side of Theorem 1, which bounds the number of mistakes of d-AROMA, for one V.

    With ``D = 1 + sum_i x_i * x_i / r`` (elementwise, over M and U) it is::

        sum_i max(0, 1 - q_i'V p_i) - |U| + sqrt(sum(V * V * D)) sqrt(r sum(log(D)) + 2 r |U|)

    Departure: the paper prints ``2 |U|`` at the end. With S the sum of the ``x_i``, that is right
    for a mean of ``Sigma * S``, but the mean of AROW is ``Sigma * S / r``. ``corrected=False`` gives the form
    as printed.

    Parameters
    ----------
    run : Run
    V : array of shape (m, n)
        Any similarity to compare with.
    corrected : bool, default True
        ``2 r |U|`` or, as printed, ``2 |U|``.

    Returns
    -------
    float
        The bound is kept for this V when it is at least ``run.mistakes.sum()``.

    Notes
    -----
    D is one over Sigma for ``covariance_update="inverse"``; (6) shrinks Sigma less. The paper leaves out the
    proof. The one for vectors follows ``sum(S * S / D)``. Round i adds to it at most
    ``2 <Sigma_i * S_{i-1}, x_i> + sum(x_i * Sigma_i * x_i)``, and the second terms add up to at most
    ``r sum(log(D))``. The first is 2 r times a margin, but not that of W: it is the margin of
    ``Sigma_i * S_{i-1} / r``, whose variances already know the round. So:

    - An algorithm that judges by that margin keeps the corrected bound, at any r.
    - Where every round touches a single cell (m = n = 1, or one feature in each q and p) the two margins have
      the same sign, and a round of U adds at most r. There d-AROMA keeps the corrected bound at any r and the
      printed one for r <= 2. For larger r the printed one fails: 20 rounds of q = p = 1 at r = 100 make one
      mistake, and the right-hand side at V = 1 is -10.8.
    - In general d-AROMA can break both forms, at any r, with either covariance update. An example is m = 1,
      n = 2, q = 1, r = 1, and every p a unit vector a hair over a right angle from W: every round is a
      mistake, and after 200 the left side of `theorem_1_holds_for_every_V` is 3 times the right. On random
      rounds we have not seen it.

    Examples
    --------
    >>> from aromatch.theory.mistake_bounds import Run, theorem_1
    >>> run = Run([[1], [1]], [[1], [1]], [0, 0.5], updated=[True, True], variances_after=[0.5, 0.33], r=1)
    >>> round(theorem_1(run, V=[[0]]), 6)  # V = 0 explains nothing: the bound is the number of mistakes
    1.0
    >>> round(theorem_1(run, V=[[1]]), 2)
    2.05
    """
    V = as_floats(V, "V", shape=_sizes(run))
    terms = _theorem_1_terms(run, corrected)
    norm = np.sqrt(np.sum(V * V * terms.D))
    return _sum_of_hinges(terms.queries, terms.differences, V) - terms.n_updates + float(norm * np.sqrt(terms.R))


def theorem_1_holds_for_every_V(run: Run, corrected: bool = True) -> ForEveryV:
    """Decide whether the bound of Theorem 1 is kept for every V.

    With D as in `theorem_1` and S the sum of the ``x_i`` over M and U, it is if and only if::

        sum(S * S / D) <= r sum(log(D)) + 2 r |U|          (as printed: 2 |U|)

    The norm is ``|V|_A^2 = sum(V * V * D)``, its dual ``|S|_*^2 = sum(S * S / D)``, reached at ``V = S / D``;
    the argument is at the top of this module.

    Parameters
    ----------
    run : Run
    corrected : bool, default True
        ``2 r |U|`` or, as printed, ``2 |U|``.

    Returns
    -------
    ForEveryV

    Examples
    --------
    The printed form fails at r = 100: the learner makes one mistake, yet V = 1 allows for less than none.

    >>> import numpy as np
    >>> from aromatch import DiagonalAROMA
    >>> from aromatch.theory import mistake_bounds as theory
    >>> run = theory.record_run(DiagonalAROMA(r=100), [[0, 0, 1]] * 20, Q=[[1.0]], P=[[1.0], [0.0]])
    >>> int(run.mistakes.sum()), round(theory.theorem_1(run, V=[[1]], corrected=False), 1)
    (1, -10.8)
    >>> theory.theorem_1_holds_for_every_V(run, corrected=False).holds
    False
    >>> theory.theorem_1_holds_for_every_V(run).holds
    True
    """
    terms = _theorem_1_terms(run, corrected)
    S = terms.queries.T @ terms.differences
    V = S / terms.D
    return ForEveryV(float(np.sum(S * V)), terms.R, _scaled(V, terms.queries, terms.differences))


def theorem_2(run: Run, V: ArrayLike) -> float:
    """Right-hand side of Theorem 2, which bounds the number of mistakes of f-AROMA, for one V.

    It is, with the sum over the mistakes::

        sum_i max(0, 1 - q_i'V p_i) + 2 sqrt(Tr(V inv(Omega_N) V' inv(Lambda_N)))
                                      sqrt(r min(m log det inv(Omega_N), n log det inv(Lambda_N)))

    Parameters
    ----------
    run : Run
        Of a learner with Omega and Lambda.
    V : array of shape (m, n)
        Any similarity to compare with.

    Returns
    -------
    float
        The bound is kept for this V when it is at least ``run.mistakes.sum()``.

    Notes
    -----
    The theorem is about ``FactoredAROMA(rule="mistake", mean_update="updated")``; the paper sketches a proof.
    With ``1 / r`` in place of alpha in its mean update, ``W_{i-1}`` is ``Lambda_{i-1} S_{i-1} Omega_{i-1} / r``,
    and the proof is complete: a mistake adds at most ``(q_i'Lambda_i q_i)(p_i'Omega_i p_i)`` to the left side of
    `theorem_2_holds_for_every_V`, so by Lemma 3 it is at most a quarter of the right. But alpha is smaller for a
    margin of large variance, and then W does not follow S. So:

    - In few features we have not found a run that breaks the bound. A search that chooses each round against the
      learner, up to 3 x 3 and 5 x 2 features and 300 rounds, got the left side to 0.26 times the right.
    - In many features it can be broken, since (13) and (14) divide by m and n where alpha does not: m = n = 100,
      r = 0.1, only the first feature in use, 1 in q and 1 or -0.1 in p, whichever is a mistake. After 100 rounds
      the left side is 1.4 times the right.
    - The mean update of Fig. 2 (``mean_update="previous"``) can break it for m = n = 1: q = 1, p = 1 or -1,
      whichever is a mistake, r = 0.01. After 80 rounds the left side is 1.15 times the right.

    For other covariance updates a determinant can be under 1 where (13) and (14) keep it over; a negative
    logarithm counts as zero.

    Examples
    --------
    >>> import numpy as np
    >>> from aromatch.theory import mistake_bounds as theory
    >>> run = theory.Run([[1.0]], [[1.0]], [0.0], [True], [0.25], r=1, Omega=[[0.5]], Lambda=[[0.5]])
    >>> round(theory.theorem_2(run, V=[[1]]), 3)  # 2 sqrt(1 / (0.5 * 0.5)) sqrt(log 2)
    3.33
    """
    V = as_floats(V, "V", shape=_sizes(run))
    K, L = _factors(run, "Theorem 2")
    norm = np.sqrt(squared_distance(V, K, L))
    mistakes = run.mistakes
    hinges = _sum_of_hinges(run.queries[mistakes], run.differences[mistakes], V)
    return hinges + float(norm * np.sqrt(_theorem_2_R(run, K, L)))


def theorem_2_holds_for_every_V(run: Run) -> ForEveryV:
    """Decide whether the bound of Theorem 2 is kept for every V.

    With S the sum of ``q_i p_i'`` over the mistakes, it is if and only if::

        Tr(Lambda_N S Omega_N S') <= 4 r min(m log det inv(Omega_N), n log det inv(Lambda_N))

    The norm is ``|V|_A^2 = Tr(V inv(Omega_N) V' inv(Lambda_N))``, its dual the left side, reached at
    ``V = Lambda_N S Omega_N``; the argument is at the top of this module.

    Parameters
    ----------
    run : Run
        Of a learner with Omega and Lambda; `theorem_2` says for which one the paper promises this.

    Returns
    -------
    ForEveryV

    Examples
    --------
    Fig. 2 updates the mean with the older matrices, and that can break the bound:

    >>> import numpy as np
    >>> from aromatch import FactoredAROMA
    >>> from aromatch.theory import mistake_bounds as theory
    >>> Q, P = np.eye(1), np.array([[1.0], [0.0]])
    >>> learner, triplets = FactoredAROMA(r=0.01, rule="mistake"), []
    >>> for _ in range(80):  # prefer whichever object the learner does not
    ...     wrong = [0, 1, 0] if triplets and learner.W_.item() > 0 else [0, 0, 1]
    ...     triplets.append(wrong)
    ...     learner = learner.partial_fit_triplets([wrong], Q, P)
    >>> test = theory.theorem_2_holds_for_every_V(theory.record_run(learner, triplets, Q, P))
    >>> test.holds, round(test.left / test.right, 2)
    (False, 1.15)
    """
    K, L = _factors(run, "Theorem 2")
    queries, differences = run.queries[run.mistakes], run.differences[run.mistakes]
    half = L.T @ (queries.T @ differences) @ K
    V = _scaled(L @ half @ K.T, queries, differences)
    return ForEveryV(float(np.sum(half * half)), _theorem_2_R(run, K, L), V)


def lemma_3(run: Run) -> Lemma3:
    """Compute the sum of variances that Lemma 3 bounds, and its two bounds.

    ::

        sum_i (q_i'Lambda_i q_i)(p_i'Omega_i p_i)  <=  m r log det inv(Omega_N)
                                                   <=  n r log det inv(Lambda_N)

    each bound on its own; the sum is over the rounds with an update, with the matrices just after each.

    Parameters
    ----------
    run : Run
        Of a learner with Omega and Lambda.

    Returns
    -------
    Lemma3

    Notes
    -----
    Holds for ``covariance_update="jacobi"``, the printed (13) and (14), with either rule and either mean
    update: the bounds do not look at the mean. It does not hold for ``"gauss_seidel"`` and ``"joint"``, which
    let one matrix grow while the other shrinks.

    The determinants are those of the stored matrices: where ``|q|^2 |p|^2 / r`` stays under 1e-7 in all rounds,
    their rounding outweighs what separates the two sides.

    Examples
    --------
    >>> import numpy as np
    >>> from aromatch import FactoredAROMA
    >>> from aromatch.theory import mistake_bounds as theory
    >>> run = theory.record_run(FactoredAROMA(r=1.0), [[0, 0, 1]], Q=[[1.0]], P=[[1.0], [0.0]])
    >>> [round(number, 3) for number in theory.lemma_3(run)]  # 1/4 <= log 2, twice
    [0.25, 0.693, 0.693]
    """
    K, L = _factors(run, "Lemma 3")
    m, n = _sizes(run)
    return Lemma3(
        float(run.variances_after[run.updated].sum()),
        -m * run.r * log_determinant(K),
        -n * run.r * log_determinant(L),
    )


# -- inside ----------------------------------------------------------------------------------------------


class _Theorem1Terms(NamedTuple):
    queries: NDArray[np.float64]
    differences: NDArray[np.float64]
    n_updates: int
    D: NDArray[np.float64]
    R: float


def _theorem_1_terms(run: Run, corrected: bool) -> _Theorem1Terms:
    rounds = run.mistakes | run.updated
    queries, differences = run.queries[rounds], run.differences[rounds]
    n_updates = int((run.updated & ~run.mistakes).sum())
    excess = np.square(queries).T @ np.square(differences) / run.r
    # log1p, because D rounds to 1 for a large r.
    R = run.r * float(np.log1p(excess).sum()) + 2 * (run.r if corrected else 1) * n_updates
    return _Theorem1Terms(queries, differences, n_updates, 1 + excess, R)


def _theorem_2_R(run: Run, K: NDArray[np.float64], L: NDArray[np.float64]) -> float:
    m, n = _sizes(run)
    return 4 * run.r * max(0.0, min(-m * log_determinant(K), -n * log_determinant(L)))


def _factors(run: Run, what: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Cholesky factors of the last Omega and Lambda."""
    if run.Omega is None or run.Lambda is None:
        raise ValueError(f"{what} needs the Omega and Lambda of f-AROMA, which this run does not have")
    m, n = _sizes(run)
    return cholesky(run.Omega, "Omega", n), cholesky(run.Lambda, "Lambda", m)


def _sizes(run: Run) -> tuple[int, int]:
    return run.queries.shape[1], run.differences.shape[1]


def _sum_of_hinges(queries: NDArray[np.float64], differences: NDArray[np.float64], V: NDArray[np.float64]) -> float:
    return float(np.maximum(0, 1 - _scores(queries, differences, V)).sum())


def _scores(
    queries: NDArray[np.float64], differences: NDArray[np.float64], V: NDArray[np.float64]
) -> NDArray[np.float64]:
    """``q_i'V p_i`` for every round."""
    return np.asarray(np.einsum("in,in->i", queries @ V, differences))


def _scaled(
    V: NDArray[np.float64], queries: NDArray[np.float64], differences: NDArray[np.float64]
) -> NDArray[np.float64]:
    """V times the largest number that leaves every ``q_i'V p_i`` at most 1, where all hinges are linear."""
    largest = _scores(queries, differences, V).max(initial=0)
    return V / largest if largest > 0 else V


def _at_most(left: float, right: float) -> bool:
    return left <= right + _ROUNDING * (abs(left) + abs(right))


def _dense_rows(X: Any, matrix: str, role: str, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
    checks.check_range(numbers, f"{role} of triplet", X.shape[0], matrix)
    read_rows(X, matrix, [np.ascontiguousarray(numbers)])
    is_sparse, rows = sparse.issparse(X), X[numbers]
    return np.asarray(as_float64(rows.toarray() if is_sparse else rows, matrix))

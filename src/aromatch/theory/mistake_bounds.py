"""The mistake bounds of the paper, computed for a recorded run: Theorem 1, Theorem 2 and Lemma 3.

With M the set of mistakes of a run (margin <= 0, including ties) and U the set of updates without a mistake, each
theorem bounds the number of mistakes ``|M|`` by a right-hand side that depends on a matrix V, for instance the best
similarity in hindsight:

- `theorem_1` and `theorem_2` compute that right-hand side for one V;
- `theorem_1_holds_for_every_V` and `theorem_2_holds_for_every_V` decide exactly whether the bound holds for all V;
- `lemma_3` computes both sides of the lemma on which Theorem 2 depends.

All of them accept any run (`record_run`). Their docstrings state for which learner the paper claims the result, and
where it does not hold.

Deciding for every V
--------------------
Both right-hand sides have the form, with ``x_i = q_i p_i'`` and ``<V, x_i> = q_i'V p_i``::

    F(V) = sum_i max(0, 1 - <V, x_i>) - |U| + |V|_A sqrt(R)

where the sum has ``|M| + |U|`` terms (Theorem 2: ``|M|`` terms, without ``- |U|``), ``|V|_A`` is a norm and ``R >= 0``
does not depend on V. Let S be the sum of the ``x_i`` and ``|S|_*`` the dual norm, the largest
``<V, S>`` over ``|V|_A = 1``. Then ``|M| <= F(V)`` for every V if and only if ``|S|_*^2 <= R``:

- If ``|S|_*^2 <= R``, then ``F(V) >= |M| - <V, S> + |V|_A sqrt(R) >= |M|``, because a hinge is at least its linear
  part.
- Otherwise take the V with ``<V, S> = |V|_A |S|_*`` and scale it down until every ``<V, x_i>`` is at most 1. There
  every hinge equals its linear part, and ``F(V) = |M| - |V|_A (|S|_* - sqrt(R)) < |M|``.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .matrix_normal import as_floats, cholesky, log_determinant, squared_distance
from .recording import Run, check_run

__all__ = [
    "ForEveryV",
    "Lemma3",
    "lemma_3",
    "theorem_1",
    "theorem_1_holds_for_every_V",
    "theorem_2",
    "theorem_2_holds_for_every_V",
]

# Relative rounding error of sums over thousands of rounds.
_ROUNDING = 1e-10


class Lemma3(NamedTuple):
    """Both sides of Lemma 3: a sum of variances and its two bounds."""

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
    """Result of a test of a bound for all V: the bound holds for every V if and only if ``left <= right``."""

    left: float
    right: float
    V: NDArray[np.float64]
    """The critical V, of shape (m, n): if the bound fails for any V, it fails for this one."""

    @property
    def holds(self) -> bool:
        """Whether ``left <= right``, up to rounding."""
        return _at_most(self.left, self.right)


def theorem_1(run: Run, V: ArrayLike, corrected: bool = True) -> float:
    """Right-hand side of Theorem 1, which bounds the number of mistakes of d-AROMA, for one V.

    With ``D = 1 + sum_i x_i * x_i / r`` (elementwise, over M and U) it is::

        sum_i max(0, 1 - q_i'V p_i) - |U| + sqrt(sum(V * V * D)) sqrt(r sum(log(D)) + 2 r |U|)

    Departure: the paper prints ``2 |U|`` at the end. With S the sum of the ``x_i``, that is correct for a mean of
    ``Sigma * S``, but the mean of AROW is ``Sigma * S / r``. ``corrected=False`` computes the printed form.

    Parameters
    ----------
    run : Run
    V : array of shape (m, n)
        The matrix to compare with.
    corrected : bool, default True
        Use ``2 r |U|`` instead of the printed ``2 |U|``.

    Returns
    -------
    float
        The bound holds for this V if it is at least ``run.mistakes.sum()``.

    Notes ----- D is ``1 / Sigma`` for ``covariance_update="inverse"``; (6) shrinks Sigma less. The paper omits the
    proof. The proof for vectors bounds ``sum(S * S / D)``: round i adds at most ``2 <Sigma_i * S_{i-1}, x_i> + sum(x_i
    * Sigma_i * x_i)``, and the second terms sum to at most ``r sum(log(D))``. The first is 2 r times a margin, but not
    that of W: it is the margin of ``Sigma_i * S_{i-1} / r``, which includes the covariance update of the round.
    Therefore:

    - An algorithm that predicts by that margin satisfies the corrected bound, for any r.
    - If every round has a single cell (m = n = 1, or one feature in each q and p), the two margins have the same sign,
      and a round of U adds at most r. Then d-AROMA satisfies the corrected bound for any r and the printed one for
      r <= 2. For larger r the printed one fails: 20 rounds of q = p = 1 at r = 100 make one mistake, and the right-hand
      side at V = 1 is -10.8.
    - In general d-AROMA can violate both forms, for any r, with either covariance update. An example is m = 1, n = 2,
      q = 1, r = 1, and every p a unit vector at slightly more than a right angle to W: every round is a mistake, and
      after 200 rounds the left side of `theorem_1_holds_for_every_V` is 3 times the right. No violation was observed on
      random rounds.

    Examples
    --------
    >>> from aromatch.theory import Run, theorem_1
    >>> run = Run([[1], [1]], [[1], [1]], [0, 0.5], updated=[True, True], variances_after=[0.5, 0.33], r=1)
    >>> round(theorem_1(run, V=[[0]]), 6)  # at V = 0 the bound is the number of mistakes
    1.0
    >>> round(theorem_1(run, V=[[1]]), 2)
    2.05
    """
    V = as_floats(V, "V", shape=check_run(run).shape)
    terms = _theorem_1_terms(run, corrected)
    norm = np.sqrt(np.sum(V * V * terms.D))
    return _sum_of_hinges(terms.queries, terms.differences, V) - terms.n_updates + float(norm * np.sqrt(terms.R))


def theorem_1_holds_for_every_V(run: Run, corrected: bool = True) -> ForEveryV:
    """Test whether the bound of Theorem 1 holds for every V.

    With D as in `theorem_1` and S the sum of the ``x_i`` over M and U, it does if and only if::

        sum(S * S / D) <= r sum(log(D)) + 2 r |U|          (as printed: 2 |U|)

    The norm is ``|V|_A^2 = sum(V * V * D)``, its dual ``|S|_*^2 = sum(S * S / D)``, attained at ``V = S / D``; see
    the module docstring.

    Parameters
    ----------
    run : Run
    corrected : bool, default True
        Use ``2 r |U|`` instead of the printed ``2 |U|``.

    Returns
    -------
    ForEveryV

    Examples
    --------
    The printed form fails at r = 100: the learner makes one mistake, but the bound at V = 1 is negative.

    >>> import numpy as np
    >>> from aromatch import DiagonalAROMA, theory
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
        A run of a learner with Omega and Lambda.
    V : array of shape (m, n)
        The matrix to compare with.

    Returns
    -------
    float
        The bound holds for this V if it is at least ``run.mistakes.sum()``.

    Notes
    -----
    The theorem is about ``FactoredAROMA(rule="mistake", mean_update="updated")``; the paper outlines a proof.
    With ``1 / r`` in place of alpha in its mean update, ``W_{i-1}`` is ``Lambda_{i-1} S_{i-1} Omega_{i-1} / r``,
    and the proof is complete: a mistake adds at most ``(q_i'Lambda_i q_i)(p_i'Omega_i p_i)`` to the left side of
    `theorem_2_holds_for_every_V`, so by Lemma 3 it is at most a quarter of the right. But alpha is smaller for a
    margin of large variance, and then W is not proportional to S. Therefore:

    - No violation was found with few features. In an adversarial search over up to 3 x 3 and 5 x 2 features and 300
      rounds, the left side reached 0.26 times the right.
    - With many features the bound can fail, because (13) and (14) divide by m and n, and alpha does not: m = n = 100,
      r = 0.1, a single non-zero feature, 1 in q and 1 or -0.1 in p, whichever is a mistake. After 100 rounds the left
      side is 1.4 times the right.
    - With the mean update of Fig. 2 (``mean_update="previous"``) it can fail for m = n = 1: q = 1, p = 1 or -1,
      whichever is a mistake, r = 0.01. After 80 rounds the left side is 1.15 times the right.

    With other covariance updates than (13) and (14) a determinant can be below 1; a negative logarithm is replaced by
    zero.

    Examples
    --------
    >>> import numpy as np
    >>> from aromatch import theory
    >>> run = theory.Run([[1.0]], [[1.0]], [0.0], [True], [0.25], r=1, Omega=[[0.5]], Lambda=[[0.5]])
    >>> round(theory.theorem_2(run, V=[[1]]), 3)  # 2 sqrt(1 / (0.5 * 0.5)) sqrt(log 2)
    3.33
    """
    V = as_floats(V, "V", shape=check_run(run).shape)
    K, L = _factors(run, "Theorem 2")
    norm = np.sqrt(squared_distance(V, K, L))
    mistakes = run.mistakes
    hinges = _sum_of_hinges(run.queries[mistakes], run.differences[mistakes], V)
    return hinges + float(norm * np.sqrt(_theorem_2_R(run, K, L)))


def theorem_2_holds_for_every_V(run: Run) -> ForEveryV:
    """Test whether the bound of Theorem 2 holds for every V.

    With S the sum of ``q_i p_i'`` over the mistakes, it does if and only if::

        Tr(Lambda_N S Omega_N S') <= 4 r min(m log det inv(Omega_N), n log det inv(Lambda_N))

    The norm is ``|V|_A^2 = Tr(V inv(Omega_N) V' inv(Lambda_N))``, its dual the left side, attained at
    ``V = Lambda_N S Omega_N``; see the module docstring.

    Parameters
    ----------
    run : Run
        A run of a learner with Omega and Lambda; see `theorem_2` for the learner that the paper means.

    Returns
    -------
    ForEveryV

    Examples
    --------
    With the mean update of Fig. 2, which uses the previous covariances, the bound can fail:

    >>> import numpy as np
    >>> from aromatch import FactoredAROMA, theory
    >>> Q, P = np.eye(1), np.array([[1.0], [0.0]])
    >>> learner, triplets = FactoredAROMA(r=0.01, rule="mistake"), []
    >>> for _ in range(80):  # prefer the object with the lower score
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
    """Compute the sum of variances in Lemma 3 and its two bounds.

    ::

        sum_i (q_i'Lambda_i q_i)(p_i'Omega_i p_i)  <=  m r log det inv(Omega_N)
                                                   <=  n r log det inv(Lambda_N)

    where both bounds hold separately; the sum is over the updates, with the covariances after each.

    Parameters
    ----------
    run : Run
        A run of a learner with Omega and Lambda.

    Returns
    -------
    Lemma3

    Notes ----- The lemma holds for ``covariance_update="jacobi"``, the printed (13) and (14), with either rule and
    either mean update, since the bounds do not depend on the mean. It does not hold for ``"gauss_seidel"`` and
    ``"joint"``, in which one matrix can grow while the other shrinks.

    The determinants are those of the stored matrices: if ``|q|^2 |p|^2 / r`` is below 1e-7 in all rounds, their
    rounding error exceeds the difference of the two sides.

    Examples
    --------
    >>> import numpy as np
    >>> from aromatch import FactoredAROMA, theory
    >>> run = theory.record_run(FactoredAROMA(r=1.0), [[0, 0, 1]], Q=[[1.0]], P=[[1.0], [0.0]])
    >>> [round(number, 3) for number in theory.lemma_3(run)]  # 1/4 <= log 2, twice
    [0.25, 0.693, 0.693]
    """
    K, L = _factors(run, "Lemma 3")
    m, n = run.shape
    return Lemma3(
        float(run.variances_after[run.updated].sum()),
        -m * run.r * log_determinant(K),
        -n * run.r * log_determinant(L),
    )


class _Theorem1Terms(NamedTuple):
    queries: NDArray[np.float64]
    differences: NDArray[np.float64]
    n_updates: int
    D: NDArray[np.float64]
    R: float


def _theorem_1_terms(run: Run, corrected: bool) -> _Theorem1Terms:
    rounds = check_run(run).mistakes | run.updated
    queries, differences = run.queries[rounds], run.differences[rounds]
    n_updates = int((run.updated & ~run.mistakes).sum())
    excess = np.square(queries).T @ np.square(differences) / run.r
    # log1p, because D rounds to 1 if r is large.
    R = run.r * float(np.log1p(excess).sum()) + 2 * (run.r if corrected else 1) * n_updates
    return _Theorem1Terms(queries, differences, n_updates, 1 + excess, R)


def _theorem_2_R(run: Run, K: NDArray[np.float64], L: NDArray[np.float64]) -> float:
    m, n = run.shape
    return 4 * run.r * max(0.0, min(-m * log_determinant(K), -n * log_determinant(L)))


def _factors(run: Run, what: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the Cholesky factors of the final Omega and Lambda."""
    run = check_run(run)
    if run.Omega is None or run.Lambda is None:
        raise ValueError(f"{what} requires Omega and Lambda, got a run without them; record one of FactoredAROMA")
    m, n = run.shape
    return cholesky(run.Omega, "Omega", n), cholesky(run.Lambda, "Lambda", m)


def _sum_of_hinges(queries: NDArray[np.float64], differences: NDArray[np.float64], V: NDArray[np.float64]) -> float:
    return float(np.maximum(0, 1 - _scores(queries, differences, V)).sum())


def _scores(
    queries: NDArray[np.float64], differences: NDArray[np.float64], V: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return ``q_i'V p_i`` for every round."""
    return np.asarray(np.einsum("in,in->i", queries @ V, differences))


def _scaled(
    V: NDArray[np.float64], queries: NDArray[np.float64], differences: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Scale V by the largest factor with every ``q_i'V p_i`` at most 1, where all hinges are linear."""
    largest = _scores(queries, differences, V).max(initial=0)
    return V / largest if largest > 0 else V


def _at_most(left: float, right: float) -> bool:
    return left <= right + _ROUNDING * (abs(left) + abs(right))

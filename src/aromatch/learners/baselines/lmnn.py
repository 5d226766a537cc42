"""LMNN: large margin nearest neighbours (Weinberger et al. 2005; Weinberger and Saul 2009).

Every row i has k target neighbours j: the nearest rows with its label in Euclidean distance, fixed before training. An
impostor is a row l with another label that is nearer to i than a target neighbour plus a margin of 1. The objective
pulls target neighbours and pushes impostors. With ``d(i, j) = |x_i L - x_j L|^2`` and ``M = L L'``::

    minimise over L    (1 - mu) * sum over (i, j) of d(i, j)
                         + mu * sum over (i, j, l) of max(0, 1 + d(i, j) - d(i, l))

Its gradient is ``2 X'A X L``, where A is the Laplacian of a graph: an edge (i, j) has the weight ``1 - mu`` plus mu for
each of its impostors, an edge (i, l) has -mu for each target neighbour of which l is an impostor.

Optimization. L is a full m x m matrix, without dimensionality reduction. SciPy's L-BFGS runs on L, as in several
published implementations; the problem is convex in M. The initial L is the best multiple of the identity, since the
margin of 1 assumes a scale of the rows. Few of all triples (i, j, l) are active: a search over all pairs of rows
collects the impostors, L-BFGS runs some iterations on these, and the next search adds new ones. After each search the
objective covers all triples. With sparse rows only ``X L`` is dense.

Departure: at most `max_impostors` pairs (i, l) are collected, the nearest of each row; the authors' implementation has
such a limit too. `n_left_out_` is the number of pairs that the last search found beyond it. If it is 0, the objective
is the published one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, sparse
from sklearn.metrics.pairwise import euclidean_distances

from ..._utils import checks
from ..._utils.chunks import chunks
from ..._utils.progress import progress_bar
from ..._utils.rows import Matrix, MatrixLike
from ..._utils.sharing import drafts, reads
from ...triplets import LabelSampler
from ..inputs import FLOAT64
from .metric import MetricSimilarity, squares

_ITERATIONS_OF_A_ROUND = 10
_DISTANCES_PER_CHUNK = 2**23
# A search in single precision looks this much further, so that rounding leaves no impostor out.
_SLACK = 1e-3
# Larger coordinates are scaled down for it, since their squares overflow.
_LARGEST_SINGLE = 1e15
# Arrays with a number for each target neighbour that the objective has in memory.
_N_TARGET_ARRAYS = 8


class Neighbours(NamedTuple):
    """The triples of the objective."""

    targets: NDArray[np.int64]
    """Target neighbours of each row, (n, k); a row with fewer has its own number in their place."""
    starts: NDArray[np.int64]
    """Where the impostors of each row start in `impostors`, and where the last ends: (n + 1,)."""
    impostors: NDArray[np.int64]
    """Rows of other labels, row by row in order."""


class LMNN(MetricSimilarity):
    """The metric that pulls each row's nearest rows of its label near and pushes other labels away by a margin.

    Parameters
    ----------
    n_neighbors : int, default 3
        Target neighbours of each row, k. A row has fewer when its class is smaller.
    mu : float, default 0.5
        Between 0 and 1: how much pushing impostors away counts against pulling targets near.
    max_iter : int, default 50
        Largest number of iterations of L-BFGS. Fewer stay nearer to the Euclidean distance, which can be better for
        new rows.
    tol : float, default 0.0001
        Learning ends when a round of 10 iterations lowers the objective by less than this share of it.
    max_impostors : int, default 1_000_000
        Pairs of a row and an impostor that one search keeps. Time grows with it; raise it where `n_left_out_` is
        far from 0 and there is time.
    verbose : bool, default False
        Show a progress bar if standard error is a terminal.

    Attributes
    ----------
    M_ : array of shape (m, m)
        The matrix of the metric.
    objectives_ : array
        The objective at the start and after each round that lowered it, the last of which is what was learned.
        It falls from one to the next where no impostors were left out.
    n_iter_ : int
        Iterations of L-BFGS.
    n_left_out_ : int
        Impostors beyond `max_impostors` in the last search.

    References
    ----------
    Weinberger, Blitzer and Saul, Distance metric learning for large margin nearest neighbor classification,
    NIPS 2005. Weinberger and Saul, the same title, JMLR 10, 2009.

    Examples
    --------
    The second feature separates the classes; the first is noise.

    >>> import numpy as np
    >>> from aromatch import LMNN
    >>> X = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0], [2.0, 1.0]])
    >>> model = LMNN(n_neighbors=1).fit(X, [0, 0, 1, 1])
    >>> bool(model.M_[1, 1] > 100 * model.M_[0, 0])
    True
    """

    def __init__(
        self,
        n_neighbors: int = 3,
        *,
        mu: float = 0.5,
        max_iter: int = 50,
        tol: float = 1e-4,
        max_impostors: int = 1_000_000,
        verbose: bool = False,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.mu = mu
        self.max_iter = max_iter
        self.tol = tol
        self.max_impostors = max_impostors
        self.verbose = verbose

    @drafts
    def fit(self, X: MatrixLike, y: ArrayLike) -> Self:
        """Fit to labels; nothing is random."""
        self._check_params()
        X, y = self._check_labelled(X, y)
        LabelSampler(y)  # raises if no row has another one of its label and one of another label
        self._check_fits(X.shape[1], n_matrices=30)  # L-BFGS remembers ten steps and ten gradients
        classes = checks.class_indices(y, None)[0]
        with progress_bar("LMNN", int(self.max_iter), enabled=self.verbose) as advance:
            L, objectives, counts = self._minimise(X, classes, advance)
        self._replace_state({"L": L, "objectives": np.array(objectives), "counts": np.array(counts)})
        return self

    @property
    @reads
    def objectives_(self) -> NDArray[Any]:
        """The objective at the start and after each round: a copy."""
        return self._array("objectives")

    @property
    @reads
    def n_left_out_(self) -> int:
        """Number of impostors of the last search beyond `max_impostors`."""
        return int(self._array("counts")[1])

    @property
    @reads
    def n_iter_(self) -> int:
        """Number of iterations of L-BFGS."""
        return int(self._array("counts")[0])

    def _shapes_in_file(self, state: dict[str, NDArray[Any]], m: int, n: int) -> dict[str, tuple[int, ...]]:
        n_objectives = len(state["objectives"]) if "objectives" in state else 1
        return {**self._shapes(m, n), "objectives": (n_objectives,), "counts": (2,)}

    def _check_params(self) -> None:
        checks.check_integer(self.n_neighbors, "n_neighbors", at_least=1)
        if checks.check_number(self.mu, "mu", above=0) >= 1:
            raise ValueError(f"mu must be less than 1, got {self.mu!r}")
        checks.check_integer(self.max_iter, "max_iter", at_least=0)
        checks.check_number(self.tol, "tol", at_least=0)
        checks.check_integer(self.max_impostors, "max_impostors", at_least=1)
        checks.check_flag(self.verbose, "verbose")

    def _minimise(
        self, X: Matrix, classes: NDArray[np.int64], advance: Callable[[int], None]
    ) -> tuple[NDArray[Any], list[float], list[int]]:
        n, m = X.shape
        mu, tol, max_iter = float(self.mu), float(self.tol), int(self.max_iter)
        k = min(int(self.n_neighbors), n - 1)  # no row has more
        checks.check_fits_in_memory(
            _N_TARGET_ARRAYS * n * k * FLOAT64.itemsize, f"n_neighbors={k:,} target neighbours of each of {n:,} rows"
        )
        targets = target_neighbours(X, classes, k)
        most = max(1, int(self.max_impostors) // n)
        scale = best_scale(X, classes, targets, mu)
        L = np.sqrt(scale) * np.eye(m)
        found, n_left_out = find_impostors(X, L, classes, targets, most)
        value = loss_and_gradient(L, X, found, mu)[0]
        objectives = [value]
        n_iterations = 0
        while n_iterations < max_iter:
            result = optimize.minimize(
                lambda flat, found: _flat(loss_and_gradient(flat.reshape(m, m), X, found, mu)),
                L.ravel(),
                args=(found,),
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": min(_ITERATIONS_OF_A_ROUND, max_iter - n_iterations), "ftol": 0, "gtol": 0},
                callback=lambda intermediate_result: advance(1),
            )
            n_iterations += max(1, result.nit)
            newer = result.x.reshape(m, m)
            more, n_beyond = find_impostors(X, newer, classes, targets, most)
            known, found = len(found.impostors), union(found, more)
            # Both on what is known now: at L the new ones count nothing, unless it was the limit that hid them.
            before, value = (loss_and_gradient(each, X, found, mu)[0] for each in (L, newer))
            if value < before:
                L, n_left_out = newer, n_beyond
                objectives.append(value)
                if before - value <= tol * before:
                    break
            elif len(found.impostors) == known:
                break  # with new impostors the next round starts where this one did, and knows better
        return L, objectives, [n_iterations, n_left_out]


def _flat(both: tuple[float, NDArray[Any]]) -> tuple[float, NDArray[Any]]:
    return both[0], both[1].ravel()


def loss_and_gradient(L: NDArray[Any], X: Matrix, found: Neighbours, mu: float) -> tuple[float, NDArray[Any]]:
    """Return the objective of these triples and its derivative by L."""
    Z = np.asarray(X @ L)
    n, k = found.targets.shape
    norms = squares(Z)
    is_target = found.targets != np.arange(n)[:, np.newaxis]
    near = np.column_stack([squares(Z - Z[found.targets[:, j]]) for j in range(k)])
    far = np.empty(len(found.impostors))
    for i in np.flatnonzero(np.diff(found.starts)):
        here = slice(found.starts[i], found.starts[i + 1])
        rows = found.impostors[here]
        far[here] = norms[rows] + norms[i] - 2 * (Z[rows] @ Z[i])

    owners = np.repeat(np.arange(n), np.diff(found.starts))
    pull, push = 1 - mu, 0.0
    edges = np.where(is_target, pull, 0.0)
    too_near = np.zeros(len(far))
    for j in range(k):
        gaps = 1 + near[owners, j] - far
        active = (gaps > 0) & is_target[owners, j]
        push += float(gaps[active].sum())
        edges[:, j] += mu * np.bincount(owners[active], minlength=n)
        too_near += active
    value = pull * float(near[is_target].sum()) + mu * push

    graph = sparse.csr_array(
        (
            np.concatenate([edges.ravel(), -mu * too_near]),
            (
                np.concatenate([np.repeat(np.arange(n), k), owners]),
                np.concatenate([found.targets.ravel(), found.impostors]),
            ),
        ),
        shape=(n, n),
    )
    graph = graph + graph.T
    pushed = np.asarray(graph.sum(axis=1)).reshape(-1, 1) * Z - graph @ Z
    return value, 2 * np.asarray(X.T @ pushed)


def target_neighbours(X: Matrix, classes: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Return the k nearest rows of its class for each row; its own index where the class has fewer."""
    targets = np.repeat(np.arange(X.shape[0])[:, np.newaxis], k, axis=1)
    for number in range(int(classes.max()) + 1):
        members = np.flatnonzero(classes == number)
        n_targets = min(k, len(members) - 1)
        distances = euclidean_distances(X[members], squared=True)
        np.fill_diagonal(distances, np.inf)
        nearest = np.argsort(distances, axis=1, kind="stable")[:, :n_targets]
        targets[members, :n_targets] = members[nearest]
    return targets


def find_impostors(
    X: Matrix, L: NDArray[Any], classes: NDArray[np.int64], targets: NDArray[np.int64], most: int
) -> tuple[Neighbours, int]:
    """Return the nearest `most` rows of other classes within the margin of each row, and the number of further ones."""
    Z = np.asarray(X @ L)
    reach = 1 + _SLACK + np.max([squares(Z - Z[column]) for column in targets.T], axis=0)
    reach[(targets == np.arange(len(Z))[:, np.newaxis]).all(axis=1)] = -np.inf
    if (largest := np.abs(Z).max()) > _LARGEST_SINGLE:  # by a power of two, which rounds nothing
        scale = np.ldexp(1.0, -int(np.frexp(largest)[1]))
        Z, reach = Z * scale, reach * scale * scale
    Z = Z.astype(np.float32)
    norms = squares(Z)
    counts, columns, n_beyond = [], [], 0
    for chunk in chunks(len(Z), _DISTANCES_PER_CHUNK // len(Z)):
        distances = Z[chunk] @ (-2 * Z.T)
        distances += norms
        distances += norms[chunk, np.newaxis]
        is_impostor = (distances < reach[chunk, np.newaxis]) & (classes[chunk, np.newaxis] != classes)
        for i, row in enumerate(is_impostor):
            inside = np.flatnonzero(row)
            if len(inside) > most:
                n_beyond += len(inside) - most
                inside = np.sort(inside[np.argpartition(distances[i, inside], most - 1)[:most]])
            counts.append(len(inside))
            columns.append(inside)
    starts = np.concatenate([[0], np.cumsum(counts)])
    return Neighbours(targets, starts, np.concatenate(columns)), n_beyond


def union(one: Neighbours, other: Neighbours) -> Neighbours:
    """Return the impostors that are in either."""
    n = len(one.targets)
    keys = [np.repeat(np.arange(n), np.diff(each.starts)) * n + each.impostors for each in (one, other)]
    both = np.union1d(*keys)
    starts = np.searchsorted(both, np.arange(n + 1) * n)
    return Neighbours(one.targets, starts, both % n)


def best_scale(X: Matrix, classes: NDArray[np.int64], targets: NDArray[np.int64], mu: float) -> float:
    """Return the c of the best ``M = c I``, from at most 500 equally spaced rows."""
    n, k = targets.shape
    rows = np.arange(0, n, -(-n // 500))
    distances = euclidean_distances(X[rows], X, squared=True)
    is_target = targets[rows] != rows[:, np.newaxis]
    near = np.where(is_target, np.take_along_axis(distances, targets[rows], axis=1), -np.inf)
    far = np.where(classes[rows, np.newaxis] != classes, distances, np.inf)
    pull = (1 - mu) * near[is_target].sum()
    if pull <= 0:
        return 1.0

    def objective(log_c: float) -> float:
        c = np.exp(log_c)
        gaps = sum(np.maximum(0, 1 + c * (near[:, [j]] - far)).sum() for j in range(k))
        return float(c * pull + mu * gaps)

    # Targets stay a tenth of the margin apart: where no c is any good the best is 0, and L = 0 has no way out.
    least = -np.log(10 * near[is_target].mean())
    found = optimize.minimize_scalar(objective, bounds=(least, least + 10.0), method="bounded", options={"xatol": 1e-2})
    return float(np.exp(found.x))

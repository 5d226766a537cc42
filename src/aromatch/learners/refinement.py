"""The factor L of a projection, improved step by step on what a ranking is judged by (beyond the paper).

A projection is near to what the sums say; how it ranks was never asked. Here it is. The graph of the judgements
(`learners.judgement_graph`) says of queries and objects, compared or not, whether they belong together: where what
stands out of both points the same way, with a cosine above 1/2. With ``c_ij`` the cosine of ``L'q_i`` and ``L'p_j``, t
a temperature and A(i) the objects that belong to query i, L goes downhill on the mean over the queries of ::

    -log( sum_{j in A(i)} exp(c_ij / t)  /  sum_j exp(c_ij / t) )

A neighbour drawn by these weights should be one that belongs: neighbourhood components analysis (Goldberger et al.
2004), with cosines, and judgements in the place of labels. The few objects that are nearest have nearly all the weight,
so that the top of the ranking decides. That nobody compared two rows does not count against them. Rows of which nothing
can be told take no part.

Steps are those of Adam (Kingma and Ba 2015), each with other queries and objects drawn at random. Features are scaled
so that all rows of L have the same mean size, which is what a step is a part of: units of features do not matter.
Started from a projection, a hundred steps are enough.

How many, and at which temperature, is chosen with one query in eight held out: the others take steps as long as the
precision at 10 of those that are held out rises, by what the graph says of them. The graph may be wrong, so their own
judgements have the last word: when the steps turn more of them wrong than right, none is taken. Both have been in the
sums that the projection is from, which speaks for no steps rather than for many.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from sklearn.utils.extmath import row_norms

from .._progress import progress_bar
from .._rows import Matrix
from . import sums
from .inputs import Block
from .judgement_graph import Denoised, denoised

Array = NDArray[Any]
Numbers = NDArray[np.int64]

# Below, single precision cannot hold the weights of objects that are far away.
LOWEST_TEMPERATURE = 0.03
_BATCH = 512
_RATE = 0.02
_MEAN_OF_GRADIENTS, _MEAN_OF_SQUARES = 0.9, 0.99
# What is tried when it is to be chosen, and rows that show which is best.
_TEMPERATURES = (0.1, 0.2)
_NUMBERS_OF_STEPS = (25, 50, 100, 200)
_MOST_NEW_QUERIES, _MOST_OBJECTS, _MOST_JUDGEMENTS = 2**11, 2**13, 2**16
_DEPTH = 10


class Known(NamedTuple):
    """Rows of one collection, and what the judgements say of each."""

    rows: Matrix
    """Of unit norm: the cosine of L'x is that of any multiple of x."""
    norms: Array
    """What they were divided by, but for a factor."""
    directions: Array
    """Of unit norm, or zero: rows whose directions have a cosine above 1/2 belong together."""

    def part(self, which: Any) -> Known:
        """Give some of them."""
        return Known(*(array[which] for array in self))

    def sample(self, most: int, generator: np.random.Generator) -> Known:
        """Give all of them, or as many drawn at random as are asked for."""
        n = len(self.norms)
        return self if n <= most else self.part(generator.choice(n, most, replace=False))


class Judged(NamedTuple):
    """What to refine by: rows that the graph knows, and the triplets as places among them."""

    queries: Known
    objects: Known | None
    """None when the queries are the objects."""
    triplets: Numbers
    is_new: NDArray[np.bool_]
    """Which queries are held out where something is to be chosen."""

    def known(self) -> tuple[Known, Known | None]:
        """Give rows to take steps with: those that are not held out, and that something can be told of."""
        return self.told(~self.is_new)

    def told(self, which: Any = slice(None)) -> tuple[Known, Known | None]:
        """Give rows to take steps with: of these queries, those that something can be told of."""
        queries = self.queries.part(which)
        queries = queries.part(queries.directions.any(axis=1))
        return queries, self.objects and self.objects.part(self.objects.directions.any(axis=1))


def refined(
    L: NDArray[np.float64],
    power: float,
    block: Block,
    Q: Matrix,
    P: Matrix,
    triplets: Numbers,
    *,
    temperature: float | None,
    n_steps: int | None,
    generator: np.random.Generator,
    show_progress: bool,
) -> NDArray[np.float64]:
    """Give an L that ranks better, or the same one.

    `triplets` are rows of Q and P, which are the same object when they are one collection, and `block` is the same for
    a kernel. `power` is that of the norm in the scores. A temperature or a number of steps that is None is chosen.
    """
    changes = sums.changing(block)
    weights = None if block.weights is None else block.weights[changes]
    graph = denoised(block._replace(triplets=block.triplets[changes], weights=weights))
    sizes = np.abs(L).mean(axis=1, keepdims=True) if L.size else np.zeros((len(L), 1))
    if graph is None or n_steps == 0 or not sizes.any():
        return L
    judged = _judged(graph, Q, P, triplets[changes], sizes.ravel())
    if judged is None:
        return L
    start = np.divide(L, sizes, out=np.zeros_like(L), where=sizes > 0).astype(np.float32)
    most = _NUMBERS_OF_STEPS[-1] if n_steps is None else n_steps
    n_tried = len(_TEMPERATURES) if temperature is None else int(n_steps is None)
    with progress_bar("refining", (n_tried + 1) * most, enabled=show_progress) as advance:
        if temperature is None or n_steps is None:
            choice = _chosen(start, power, judged, temperature, n_steps, generator, advance)
        else:
            choice = _Choice(temperature, n_steps)
        if choice is None:
            return L
        best = _after(choice.n_steps, _steps(start, *judged.told(), choice.temperature, generator, advance))
    # As eigenvectors of L L', the largest first.
    vectors, roots, _ = linalg.svd(best * sizes, full_matrices=False)
    return np.asarray(vectors * roots)


def _steps(
    L: Array,
    queries: Known,
    objects: Known | None,
    temperature: float,
    generator: np.random.Generator,
    advance: Callable[[int], None],
) -> Iterator[Array]:
    """Give L after every step."""
    mean, square = np.zeros_like(L), np.zeros_like(L)
    step = 0
    while True:
        step += 1
        some_queries = queries.sample(_BATCH, generator)
        some_objects = None if objects is None else objects.sample(_BATCH, generator)
        gradient = loss_and_gradient(L, some_queries, some_objects, temperature)[1]
        mean += (1 - _MEAN_OF_GRADIENTS) * (gradient - mean)
        square += (1 - _MEAN_OF_SQUARES) * (gradient * gradient - square)
        root = np.sqrt(square / (1 - _MEAN_OF_SQUARES**step))
        L = L - _RATE * np.divide(mean / (1 - _MEAN_OF_GRADIENTS**step), root, out=np.zeros_like(L), where=root > 0)
        advance(1)
        yield L


def _after(n: int, steps: Iterator[Array]) -> Array:
    """Take n steps, and keep what the last one gives."""
    return deque(islice(steps, n), maxlen=1).pop()


def loss_and_gradient(L: Array, queries: Known, objects: Known | None, temperature: float) -> tuple[float, Array]:
    """Give the mean loss of the queries, and its derivative by L, in the precision of L.

    Without objects the queries are the objects, each for all others. Queries that nothing belongs to have no say.
    """
    right = queries if objects is None else objects
    U, u_norms = _unit(queries.rows @ L)
    V, v_norms = (U, u_norms) if objects is None else _unit(right.rows @ L)
    belongs = queries.directions @ right.directions.T > 0.5
    weights = U @ V.T
    weights -= 1  # no exponential overflows
    weights /= temperature
    np.exp(weights, out=weights)
    if objects is None:
        np.fill_diagonal(weights, 0)
    of_all, of_right = weights.sum(axis=1), np.where(belongs, weights, 0).sum(axis=1)
    has_say = of_right > 0
    n = max(1, int(np.count_nonzero(has_say)))
    loss = -float(np.log(of_right[has_say] / of_all[has_say]).sum()) / n
    # From here on: the derivative by the cosines.
    in_all, in_right = (
        np.divide(1 / (temperature * n), total, out=np.zeros_like(total), where=has_say)[:, np.newaxis]
        for total in (of_all, of_right)
    )
    weights *= np.where(belongs, in_all - in_right, in_all)
    by_U, by_V = weights @ V, weights.T @ U
    if objects is None:
        return loss, queries.rows.T @ _by_rows(by_U + by_V, U, u_norms)
    return loss, queries.rows.T @ _by_rows(by_U, U, u_norms) + right.rows.T @ _by_rows(by_V, V, v_norms)


# -- how many steps ---------------------------------------------------------------------------------------------------


class _Choice(NamedTuple):
    temperature: float
    n_steps: int


def _chosen(
    L: Array,
    power: float,
    judged: Judged,
    temperature: float | None,
    n_steps: int | None,
    generator: np.random.Generator,
    advance: Callable[[int], None],
) -> _Choice | None:
    """Take steps without the queries that are held out, as long as these find more; None when they never do."""
    known = judged.known()
    if not judged.is_new.any() or not len(known[0].norms):
        return None
    new = np.flatnonzero(judged.is_new)
    if len(new) > _MOST_NEW_QUERIES:
        new = generator.choice(new, _MOST_NEW_QUERIES, replace=False)
    found_in = np.arange(len((judged.objects or judged.queries).norms))
    if len(found_in) > _MOST_OBJECTS:
        found_in = generator.choice(found_in, _MOST_OBJECTS, replace=False)
    best, best_L, choice = _precision(L, power, judged, new, found_in), L, None
    for t in _TEMPERATURES if temperature is None else (temperature,):
        steps, done, highest = _steps(L, *known, t, generator, advance), 0, 0.0
        for n in _NUMBERS_OF_STEPS if n_steps is None else (n_steps,):
            latest = _after(n - done, steps)
            done, found = n, _precision(latest, power, judged, new, found_in)
            if found > best:
                best, best_L, choice = found, latest, _Choice(t, n)
            if found <= highest:
                break
            highest = found
    triplets = judged.triplets[judged.is_new[judged.triplets[:, 0]]]
    if len(triplets) > _MOST_JUDGEMENTS:
        triplets = generator.choice(triplets, _MOST_JUDGEMENTS, replace=False)
    return choice if _n_right(best_L, power, judged, triplets) >= _n_right(L, power, judged, triplets) else None


def _precision(L: Array, power: float, judged: Judged, new: Numbers, found_in: Numbers) -> float:
    """Give the share of objects among the first ten that belong to their query."""
    queries, objects = judged.queries.part(new), (judged.objects or judged.queries).part(found_in)
    scores = (queries.rows @ L) @ _for_scores(objects, L, power).T
    if judged.objects is None:
        scores[new[:, np.newaxis] == found_in] = -np.inf
    depth = min(_DEPTH, scores.shape[1])
    first = np.argpartition(-scores, depth - 1, axis=1)[:, :depth]
    cosines = np.einsum("ik,ijk->ij", queries.directions, objects.directions[first])
    return float(np.mean(cosines > 0.5))


def _n_right(L: Array, power: float, judged: Judged, triplets: Numbers) -> int:
    """Count the judgements that come out right."""
    query, good, bad = triplets.T
    left, right = judged.queries.rows @ L, _for_scores(judged.objects or judged.queries, L, power)
    return int(np.count_nonzero(np.einsum("ij,ij->i", left[query], right[good] - right[bad]) > 0))


def _for_scores(objects: Known, L: Array, power: float) -> Array:
    """Map objects so that inner products with queries are scores, each query's but for a factor."""
    V, norms = _unit(objects.rows @ L)
    return V * (norms * objects.norms) ** (1 - power)


# -- rows ------------------------------------------------------------------------------------------------


def _judged(graph: Denoised, Q: Matrix, P: Matrix, triplets: Numbers, sizes: NDArray[np.float64]) -> Judged | None:
    """Put rows and judgements together; None when nothing can be told of any query, or of any object."""
    wanted, offered = graph.directions()
    if not (wanted.any() and offered.any()):
        return None
    # The graph has the rows that triplets name, in the order of their numbers.
    if P is Q:
        used, places = np.unique(triplets, return_inverse=True)
        return Judged(_known(Q[used], sizes, wanted), None, places.reshape(triplets.shape), graph.is_new_query)
    used, of_query = np.unique(triplets[:, 0], return_inverse=True)
    queries = _known(Q[used], sizes, wanted)
    used, of_object = np.unique(triplets[:, 1:], return_inverse=True)
    places = np.column_stack([of_query, of_object.reshape(-1, 2)])
    return Judged(queries, _known(P[used], sizes, offered), places, graph.is_new_query)


def _known(X: Matrix, sizes: NDArray[np.float64], directions: NDArray[np.float64]) -> Known:
    """Scale features, and rows to unit norm; in single precision, in which a step takes half the time."""
    X = X @ sparse.diags_array(sizes) if sparse.issparse(X) else X * sizes
    norms = row_norms(X)
    inverse = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
    rows = sparse.diags_array(inverse) @ X if sparse.issparse(X) else X * inverse[:, np.newaxis]
    norms = norms[:, np.newaxis] / (norms.max(initial=0.0) or 1.0)
    return Known(*(array.astype(np.float32) for array in (rows, norms, directions)))


def _unit(Z: Array) -> tuple[Array, Array]:
    """Give rows of unit norm and what they were divided by; rows of zeros stay."""
    norms = np.linalg.norm(Z, axis=1, keepdims=True)
    norms[norms == 0] = 1
    return Z / norms, norms


def _by_rows(by_unit: Array, unit: Array, norms: Array) -> Array:
    """Turn the derivative by rows of unit norm into that by the rows that they were made of."""
    along = np.einsum("ij,ij->i", by_unit, unit)[:, np.newaxis]
    return np.asarray((by_unit - along * unit) / norms)

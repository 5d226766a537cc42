"""The factor L of a projection, improved step by step on what a ranking is judged by (beyond the paper).

A projection is near to what the sums say; how it ranks was never asked. Here it is. With ``c_ij`` the cosine of
``L'q_i`` and ``L'p_j``, t a temperature and A(i) the objects that belong to query i, L goes downhill on the mean of ::

    -log( sum_{j in A(i)} exp(c_ij / t)  /  sum_j exp(c_ij / t) )

A neighbour drawn by these weights should be one that belongs: neighbourhood components analysis (Goldberger et al.
2004), with cosines, and judgements in the place of labels. The few objects that are nearest have nearly all the weight,
so that the top of the ranking decides.

Each step draws triplets, and ranks all their objects for each of their queries. To a query belongs the object that it
prefers, and every other of which the graph of all judgements (`triplet_graph`) says so, compared or not:
where what stands out of both points the same way, with a cosine above 1/2. With few judgements nothing stands out. Then
objects that belong are taken for ones that do not when they are drawn for others; that is rare, and costs little.

Steps are those of Adam (Kingma and Ba 2015), and what is kept is the mean of L over the last quarter of them: each step
follows the chance of its draw, and their mean does not (Polyak and Juditsky 1992). Features are scaled so that all rows
of L have the same mean size, which is what a step is a part of: units of features do not matter. Started from a
projection, a few hundred steps are enough.

How many, and at which temperature, is chosen by rows that are held out, one in eight: from a projection that has not
seen them, the others take steps as long as held-out objects that belong to held-out queries come nearer to the top, by
the mean logarithm of their ranks. Both have to be new: objects that steps were taken with find their place by heart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from sklearn.utils.extmath import row_norms

from ..._utils.progress import progress_bar
from ..._utils.rows import Matrix, as_float64, nonzero_norms
from ...kernels.rows import RowView
from ..inputs import Block
from ..moment import sums
from ..moment.triplet_graph import Graph, graph_of

Array = NDArray[Any]
Numbers = NDArray[np.int64]

# Below, single precision cannot hold the weights of objects that are far away.
LOWEST_TEMPERATURE = 0.03
# Triplets of a step.
_BATCH = 256
_RATE = 0.02
# Features whose row of L has less than this part of the largest mean size are left out.
_NO_SIZE = 1e-9
_MEAN_OF_GRADIENTS, _MEAN_OF_SQUARES = 0.9, 0.99
# What is tried when it is to be chosen, and the most queries, and objects, that show which is best.
_TEMPERATURES = (0.1, 0.2)
_NUMBERS_OF_STEPS = (50, 100, 200, 400)
_MOST_ROWS = 2**11
# So many standard errors of the mean must a gain be, to be more than chance.
_ERRORS = 1.5


class _Choice(NamedTuple):
    temperature: float
    n_steps: int


# Where there is nothing to choose by.
_USUAL = _Choice(0.2, 100)


class Side(NamedTuple):
    """The queries, or the objects, that triplets name."""

    rows: Matrix
    """Of unit norm: the cosine of L'x is that of any multiple of x."""
    norms: Array
    """What they were divided by, but for a factor."""
    directions: Array
    """Of unit norm, or zero: rows whose directions have a cosine above 1/2 belong together."""
    is_new: NDArray[np.bool_]
    """Which are held out where something is to be chosen."""


class Judgements(NamedTuple):
    """Triplets as places among the rows that they name."""

    queries: Side
    objects: Side
    """The same as the queries when they are one collection."""
    triplets: Numbers
    weights: Array

    def part(self, which: NDArray[np.bool_]) -> Judgements:
        """Give some of the triplets."""
        return self._replace(triplets=self.triplets[which], weights=self.weights[which])

    def batches(self, generator: np.random.Generator) -> Iterator[Batch]:
        """Draw triplets by their weights, without end."""
        ends = np.cumsum(self.weights)
        while True:
            drawn = np.searchsorted(ends, generator.random(_BATCH) * ends[-1], side="right")
            query, *objects = self.triplets[np.minimum(drawn, len(ends) - 1)].T
            shown = np.concatenate(objects)
            belongs = self.queries.directions[query] @ self.objects.directions[shown].T > 0.5
            belongs |= shown == objects[0][:, np.newaxis]
            is_self = None
            if self.objects is self.queries:
                is_self = shown == query[:, np.newaxis]
                belongs &= ~is_self
            yield Batch(self.queries.rows[query], self.objects.rows[shown], belongs, is_self)


class Batch(NamedTuple):
    """Queries and objects to rank for each of them."""

    queries: Matrix
    objects: Matrix
    belongs: NDArray[np.bool_]
    is_self: NDArray[np.bool_] | None
    """Where an object is the query itself, which is not to be found."""


def refined(
    L: NDArray[np.float64],
    L_of_known: NDArray[np.float64] | None,
    graph: Graph | None,
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
    a kernel. `power` is that of the norm in the scores. A temperature or a number of steps that is None is chosen, by
    what it would have done for `L_of_known`, which has not seen the rows that are held out. `graph` may be that of
    these triplets, and need not be made again then.
    """
    block, changes = sums.telling(block)
    sizes = np.abs(L).mean(axis=1, keepdims=True) if L.size else np.zeros((len(L), 1))
    sizes[sizes < _NO_SIZE * sizes.max()] = 0
    if n_steps == 0 or not changes.any() or not sizes.any():
        return L
    judgements = _judgements(block, graph, Q, P, triplets[changes], sizes.ravel())
    most = _NUMBERS_OF_STEPS[-1] if n_steps is None else n_steps
    n_tried = len(_TEMPERATURES) if temperature is None else int(n_steps is None)
    with progress_bar("refining", (n_tried + 1) * most, enabled=show_progress) as advance:
        choice: _Choice | None = _Choice(temperature or _USUAL.temperature, n_steps or _USUAL.n_steps)
        if n_tried and L_of_known is not None and (parts := _parts(judgements)) is not None:
            start = _scaled(L_of_known, sizes)
            choice = _chosen(start, power, *parts, temperature, n_steps, generator, advance)
        if choice is None:
            return L
        steps = _steps(_scaled(L, sizes), judgements.batches(generator), choice.temperature, advance)
        best = _after(choice.n_steps, choice.n_steps, steps)
    # As eigenvectors of L L', the largest first.
    vectors, roots, _ = linalg.svd(best * sizes, full_matrices=False)
    return np.asarray(vectors * roots)


def log_ranks_of_new(
    maps: Sequence[NDArray[np.float64] | None],
    power: float,
    block: Block,
    graph: Graph,
    Q: Matrix,
    P: Matrix,
    triplets: Numbers,
) -> list[float]:
    """Tell how far down objects that are held out come, for held-out queries that they belong to, by each of some maps.

    The arguments are those of `refined`, of triplets that say something. Nothing when there is nothing to tell by, or
    a map is not there.
    """
    there = [L.astype(np.float32) for L in maps if L is not None]
    if len(there) < len(maps):
        return []
    new = _New.of(_judgements(block, graph, Q, P, triplets, np.ones(Q.shape[1])))
    return [] if new is None else [float(new.log_ranks(L, power).mean()) for L in there]


def _steps(L: Array, batches: Iterator[Batch], temperature: float, advance: Callable[[int], None]) -> Iterator[Array]:
    """Give L after every step."""
    mean, square = np.zeros_like(L), np.zeros_like(L)
    for step, batch in enumerate(batches, start=1):
        gradient = loss_and_gradient(L, batch, temperature)[1]
        mean += (1 - _MEAN_OF_GRADIENTS) * (gradient - mean)
        square += (1 - _MEAN_OF_SQUARES) * (gradient * gradient - square)
        root = np.sqrt(square / (1 - _MEAN_OF_SQUARES**step))
        L = L - _RATE * np.divide(mean / (1 - _MEAN_OF_GRADIENTS**step), root, out=np.zeros_like(L), where=root > 0)
        advance(1)
        yield L


def _after(n_more: int, n: int, steps: Iterator[Array]) -> Array:
    """Take so many more steps, n with those before, and give the mean of L over the last quarter of the n."""
    n_last = max(1, n // 4)
    return np.asarray(sum(islice(steps, n_more - n_last, n_more)) / np.float32(n_last))


def loss_and_gradient(L: Array, batch: Batch, temperature: float) -> tuple[float, Array]:
    """Give the mean loss of the queries, and its derivative by L, in the precision of L.

    Queries to which nothing belongs have no say.
    """
    U, V = batch.queries @ L, batch.objects @ L
    u_norms, v_norms = nonzero_norms(U), nonzero_norms(V)
    U, V = U / u_norms, V / v_norms
    weights = U @ V.T
    weights -= 1  # no exponential overflows
    weights /= temperature
    np.exp(weights, out=weights)
    if batch.is_self is not None:
        weights[batch.is_self] = 0
    of_all, of_right = weights.sum(axis=1), np.where(batch.belongs, weights, 0).sum(axis=1)
    has_say = of_right > 0
    n = max(1, int(np.count_nonzero(has_say)))
    loss = -float(np.log(of_right[has_say] / of_all[has_say]).sum()) / n
    # From here on: the derivative by the cosines.
    in_all, in_right = (
        np.divide(1 / (temperature * n), total, out=np.zeros_like(total), where=has_say)[:, np.newaxis]
        for total in (of_all, of_right)
    )
    weights *= np.where(batch.belongs, in_all - in_right, in_all)
    by_queries = batch.queries.T @ _by_rows(weights @ V, U, u_norms)
    return loss, by_queries + batch.objects.T @ _by_rows(weights.T @ U, V, v_norms)


# -- how many steps, and at which temperature -------------------------------------------------------------------------


def _parts(judgements: Judgements) -> tuple[Judgements, _New] | None:
    """Give triplets of known rows, and rows that are held out; None when there is nothing to choose by."""
    is_new_query, is_new_object = judgements.queries.is_new, judgements.objects.is_new
    query, good, bad = judgements.triplets.T
    known = judgements.part(~(is_new_query[query] | is_new_object[good] | is_new_object[bad]))
    new = _New.of(judgements)
    return None if new is None or not len(known.triplets) else (known, new)


def _chosen(
    L: Array,
    power: float,
    known: Judgements,
    new: _New,
    temperature: float | None,
    n_steps: int | None,
    generator: np.random.Generator,
    advance: Callable[[int], None],
) -> _Choice | None:
    """Take steps without rows that are held out, as long as that helps those; None when chance could have helped."""
    before = new.log_ranks(L, power)
    best, choice = before, None
    for t in _TEMPERATURES if temperature is None else (temperature,):
        steps, done, lowest = _steps(L, known.batches(generator), t, advance), 0, np.inf
        for n in _NUMBERS_OF_STEPS if n_steps is None else (n_steps,):
            latest, done = _after(n - done, n, steps), n
            found = new.log_ranks(latest, power)
            if found.mean() < best.mean():
                best, choice = found, _Choice(t, n)
            if found.mean() >= lowest:
                break
            lowest = float(found.mean())
    gains = before - best
    return choice if gains.mean() > _ERRORS * gains.std() / np.sqrt(len(gains)) else None


class _New(NamedTuple):
    """Queries and objects that are held out, and who belongs to whom."""

    queries: Matrix
    objects: Side
    belongs: NDArray[np.bool_]
    is_self: NDArray[np.bool_] | None

    @classmethod
    def of(cls, judgements: Judgements) -> _New | None:
        """Give those of queries to which some objects belong and others do not; None when there are none."""
        queries, objects = judgements.queries, judgements.objects
        rows, columns = (_spread_out(np.flatnonzero(side.is_new)) for side in (queries, objects))
        belongs = queries.directions[rows] @ objects.directions[columns].T > 0.5
        query, good = judgements.triplets[:, 0], judgements.triplets[:, 1]
        is_new = np.isin(query, rows) & np.isin(good, columns)
        belongs[np.searchsorted(rows, query[is_new]), np.searchsorted(columns, good[is_new])] = True
        is_self = rows[:, np.newaxis] == columns if objects is queries else None
        if is_self is not None:
            belongs &= ~is_self
        asks = belongs.any(axis=1) & ~(belongs if is_self is None else belongs | is_self).all(axis=1)
        if not asks.any():
            return None
        there = Side(*(array[columns] for array in objects))
        return cls(queries.rows[rows[asks]], there, belongs[asks], None if is_self is None else is_self[asks])

    def log_ranks(self, L: Array, power: float) -> Array:
        """Rank the objects for each query, and give its mean logarithm of the ranks of those that belong."""
        scores = (self.queries @ L) @ _for_scores(self.objects, L, power).T
        if self.is_self is not None:
            scores[self.is_self] = -np.inf
        ranks = np.empty(scores.shape)
        np.put_along_axis(ranks, np.argsort(-scores, axis=1), np.arange(1.0, scores.shape[1] + 1)[np.newaxis], axis=1)
        return np.asarray(np.where(self.belongs, np.log(ranks), 0).sum(axis=1) / self.belongs.sum(axis=1))


def _spread_out(numbers: Numbers) -> Numbers:
    """Give all of them, or so many at equal distances: rows that are alike often stand together."""
    return numbers[:: max(1, -(-len(numbers) // _MOST_ROWS))]


def _for_scores(objects: Side, L: Array, power: float) -> Array:
    """Map objects so that inner products with queries are scores, each query's but for a factor."""
    V = objects.rows @ L
    norms = nonzero_norms(V)
    return np.asarray(V / norms * (norms * objects.norms) ** (1 - power))


# -- rows -------------------------------------------------------------------------------------------------------------


def _judgements(
    block: Block, graph: Graph | None, Q: Matrix, P: Matrix, triplets: Numbers, sizes: NDArray[np.float64]
) -> Judgements:
    """Put together the triplets, the rows that they name and what the graph says of these, in the same order."""
    weights = np.ones(len(triplets)) if block.weights is None else block.weights
    if graph is None or not graph.is_of(block):
        graph = graph_of(block)

    def side(X: Matrix, view: RowView, numbers: Numbers, rows: Numbers, directions: Array) -> tuple[Side, Numbers]:
        used, places = sums.used_rows(numbers, X.shape[0])
        scaled = _scaled_rows(X[used], sizes)
        return Side(*scaled, directions.astype(np.float32), sums.is_held_out(view, rows)), places

    wanted, offered = graph.directions()
    if P is Q:
        queries, places = side(Q, block.queries, triplets, graph.query_rows, wanted)
        return Judgements(queries, queries, places, weights)
    queries, query = side(Q, block.queries, triplets[:, 0], graph.query_rows, wanted)
    objects, of_objects = side(P, block.preferred, triplets[:, 1:], graph.object_rows, offered)
    return Judgements(queries, objects, np.column_stack([query, of_objects]), weights)


def _scaled_rows(X: Matrix, sizes: NDArray[np.float64]) -> tuple[Matrix, Array]:
    """Scale features, and rows to unit norm; in single precision, in which a step takes half the time."""
    X = X if X.dtype in (np.float32, np.float64) else as_float64(X, "Q or P")
    X = X @ sparse.diags_array(sizes) if sparse.issparse(X) else X * sizes
    norms = row_norms(X)
    inverse = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
    rows = sparse.diags_array(inverse) @ X if sparse.issparse(X) else X * inverse[:, np.newaxis]
    norms = norms[:, np.newaxis] / (norms.max(initial=0.0) or 1.0)
    return rows.astype(np.float32), norms.astype(np.float32)


def _scaled(L: NDArray[np.float64], sizes: NDArray[np.float64]) -> Array:
    return np.divide(L, sizes, out=np.zeros_like(L), where=sizes > 0).astype(np.float32)


def _by_rows(by_unit: Array, unit: Array, norms: Array) -> Array:
    """Turn the derivative by rows of unit norm into that by the rows that they were made of."""
    along = np.einsum("ij,ij->i", by_unit, unit)[:, np.newaxis]
    return np.asarray((by_unit - along * unit) / norms)

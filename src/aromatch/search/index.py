"""Search by a learned similarity in objects as they are: the query is transformed, the objects never are.

``q'Wp`` is the inner product of ``u = W'q`` and p. So when the model learns, nothing of the objects changes, in this
index or in any other store of vectors: `query_vector` gives what to search with there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from .._utils import checks
from .._utils.rows import Matrix, MatrixLike
from ..learners import Fingerprint
from ..learners.spread import Spread
from .approximate import Neighbours
from .explore import check_bilinear, check_has_distribution, query_vector
from .stores.memory import Collection, Ids, Piece, check_ids
from .top_k import best_among, products

Array = NDArray[Any]

_QUERIES_AT_ONCE = 256
# Candidates of the approximate index that are scored again, for each that is wanted.
_OVERSAMPLED = 4


class Found(NamedTuple):
    """What a search found, the best first: a row for each query."""

    ids: Ids
    scores: Array
    stds: Array | None
    """Standard deviations of the scores under the learned distribution; None where the model has none."""


class Index:
    """Finds the objects with the largest score ``q'Wp``.

    Parameters
    ----------
    model : a learner with ``q'Wp``, fitted
        Looked at when a search comes: what it learns in between counts at once.
    objects : array or CSR matrix of shape (n_objects, n)
        Copied.
    ids : array of whole numbers, optional
        Ids of the objects; 0, 1, 2, ... when there are none.
    approximate : bool, default False
        Search among the neighbours that usearch finds (``pip install 'aromatch[search]'``), for many dense objects.
        Otherwise all objects are scored.
    effort : int, default 128
        Of an approximate search: the more, the more surely it finds the best, and the longer it takes.
    fingerprint : Fingerprint, optional
        Of the objects. Refused when the model is not bound to the same embedding.

    Examples
    --------
    >>> import numpy as np
    >>> import aromatch as am
    >>> objects = np.eye(3)
    >>> model = am.DiagonalAROMA(init="identity").fit_triplets([[0, 1, 2]], objects)
    >>> index = am.search.Index(model, objects)
    >>> found = index.search(objects[:1], k=2)
    >>> found.ids
    array([[0, 1]])
    """

    def __init__(
        self,
        model: Any,
        objects: MatrixLike,
        ids: ArrayLike | None = None,
        *,
        approximate: bool = False,
        effort: int = 128,
        fingerprint: Fingerprint | None = None,
    ) -> None:
        check_bilinear(model)
        if fingerprint is not None:
            model.check_fingerprint(model.fingerprints_[0] if model.fingerprints_ else fingerprint, fingerprint)
        self.model = model
        is_approximate = checks.check_flag(approximate, "approximate")
        effort = checks.check_integer(effort, "effort", at_least=1)
        if is_approximate and sparse.issparse(objects):
            raise TypeError("an approximate index needs dense objects, got a sparse matrix; approximate=False takes it")
        self._collection = Collection(objects, ids)
        self._check_width()
        self._neighbours: Neighbours | None = None
        if is_approximate:
            self._neighbours = Neighbours(self._collection.width, effort)
            for block in self._collection.blocks():
                self._neighbours.add(block.ids, block.rows)

    def __len__(self) -> int:
        return len(self._collection)

    @property
    def ids(self) -> Ids:
        """Ids of all objects, in the order in which they came."""
        return self._collection.ids

    def add(self, objects: MatrixLike, ids: ArrayLike | None = None) -> Ids:
        """Add objects; give their ids, which go on from the largest so far unless they are given."""
        given = self._collection.add(objects, ids)
        if self._neighbours is not None:
            self._neighbours.add(given, self._collection.rows(given))
        return given

    def remove(self, ids: ArrayLike) -> None:
        """Remove objects by their ids."""
        self._collection.remove(ids)
        if self._neighbours is not None:
            self._neighbours.remove(check_ids(ids, "ids"))

    def query_vector(
        self, queries: MatrixLike, *, explore: str | None = None, width: float = 1.0, random_state: Any = None
    ) -> Array:
        """Give what to search with in any store of the objects; `aromatch.search.query_vector` tells more."""
        return query_vector(self.model, queries, explore=explore, width=width, random_state=random_state)

    def search(
        self,
        queries: MatrixLike,
        k: int = 10,
        *,
        explore: str | None = None,
        width: float = 1.0,
        random_state: Any = None,
    ) -> Found:
        """Find the k best objects for every query.

        Parameters
        ----------
        queries : array or CSR matrix of shape (n_queries, m)
        k : int, default 10
            How many to find, all when there are fewer.
        explore : {None, "thompson", "ucb"}, default None
            Rank by the mean score; by a draw from the learned distribution, another one for each query; or by the mean
            plus `width` standard deviations. In an approximate index "ucb" looks at the best candidates only.
        width : float, default 1.0
            How far to go from the mean, in standard deviations: the bonus of "ucb", or the scale of "thompson".
        random_state : None, int, Generator or RandomState
            For "thompson".

        Returns
        -------
        Found
            Ids and mean scores, with standard deviations where the model has them. Equal scores are in the order in
            which the objects came.
        """
        k = min(checks.check_integer(k, "k", at_least=1), len(self))
        if explore is not None:
            checks.check_choice(explore, "explore", ("thompson", "ucb"))
        how_far = checks.check_number(width, "width", at_least=0)
        generator = checks.random_generator(random_state) if explore == "thompson" else None
        Q = self.model._check_rows(queries)
        self._check_width()
        if explore is not None:
            check_has_distribution(self.model)
        has_stds = hasattr(self.model, "similarity_std")
        parts = []
        for start in range(0, Q.shape[0], _QUERIES_AT_ONCE):
            some = Q[start : start + _QUERIES_AT_ONCE]
            spread = self.model._spread(some) if has_stds else None
            parts.append(self._search(some, k, spread, explore, how_far, generator))
        ids, scores, stds = zip(*parts, strict=True)
        return Found(np.concatenate(ids), np.concatenate(scores), np.concatenate(stds) if has_stds else None)

    # -- inside -------------------------------------------------------------------------------------------

    def _check_width(self) -> None:
        expected = self.model.n_object_features_in_
        if self._collection.width != expected:
            raise ValueError(f"objects has {self._collection.width} features, but the model was learned on {expected}")

    def _search(
        self,
        Q: Matrix,
        k: int,
        spread: Spread | None,
        explore: str | None,
        how_far: float,
        generator: np.random.Generator | None,
    ) -> Found:
        if k == 0:
            nothing = np.empty((Q.shape[0], 0))
            return Found(nothing.astype(np.int64), nothing, nothing)
        ranked_by = wanted = self.model._map_queries(Q)
        if generator is not None and spread is not None:
            ranked_by = wanted + how_far * spread.sample(generator)
        ids = self._best(ranked_by, k, how_far, spread if explore == "ucb" and how_far else None)
        used, place = np.unique(ids, return_inverse=True)
        rows, place = self._collection.rows(used), place.reshape(ids.shape)
        scores = np.take_along_axis(products(rows, wanted), place, axis=1)
        stds = np.empty(0) if spread is None else np.take_along_axis(spread.stds(rows), place, axis=1)
        return Found(ids, scores, stds)

    def _best(self, ranked_by: Array, k: int, how_far: float, bonus: Spread | None) -> Ids:
        """Give the best ids for each query: of all objects, a block at a time, or of candidates."""
        blocks: Iterable[Piece] = self._collection.blocks(len(ranked_by))
        if self._neighbours is not None:
            candidates = np.unique(self._neighbours.nearest(ranked_by, min(_OVERSAMPLED * k, len(self))))
            blocks = [self._collection.piece(candidates)]

        def score(rows: Matrix) -> Array:
            scores = products(rows, ranked_by)
            return scores if bonus is None else scores + how_far * bonus.stds(rows)

        return best_among(blocks, score, len(ranked_by), k).places

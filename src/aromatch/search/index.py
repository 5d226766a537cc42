"""Search by a learned similarity.

A model is two maps and a metric: a query q is searched as ``u = transform(q)`` among the vectors
``v = transform_objects(p)``, by ``u.v`` or ``-|u - v|^2``. If the model leaves objects as they are, as bilinear
learners do, the index holds the objects themselves and further training takes effect at the next search. Otherwise the
index also holds the mapped objects, and maps them again when the model's `object_map_version_` changes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from .._utils import checks
from .._utils.chunks import chunks
from .._utils.journal import Journal
from .._utils.rows import Matrix, MatrixLike, as_dense, as_rows
from .._utils.sharing import Shared, changes, reads
from ..learners import Fingerprint, Similarity
from .stores.base import Array, Hits, Keys
from .stores.memory import NUMBERS_PER_BLOCK, Chunk, MemoryStore, products, squared_norms

_QUERIES_PER_CHUNK = 256


class Index(Shared):
    """Search for the objects with the best score under any model.

    Parameters
    ----------
    model : Similarity
        Any learner, embedding or baseline; fitted, unless it is stateless.
    objects : array or CSR matrix of shape (n_objects, n_features)
        Not copied if it is a C-contiguous or CSR matrix of float32 or float64: do not change it afterwards.
    ids : sequence of int or of str, optional
        Unique ids of the objects; 0, 1, 2, ... by default.
    approximate : bool, default False
        Find candidates with the HNSW index of usearch (``pip install 'aromatch[search]'``) and score those exactly, for
        many dense objects. Otherwise all objects are scored.
    effort : int, default 128
        Candidates that the approximate search examines: larger values have a higher recall and take longer.
    fingerprint : Fingerprint, optional
        Fingerprint of the objects; a ValueError is raised if the model was trained on another embedding.

    Examples
    --------
    >>> import numpy as np
    >>> import aromatch as am
    >>> objects = np.eye(3)
    >>> model = am.DiagonalAROMA(init="identity").fit_triplets([[0, 1, 2]], objects)
    >>> index = am.Index(model, objects, ids=["tea", "cup", "car"])
    >>> index.search(objects[0], k=2).ids.tolist()
    ['tea', 'cup']
    """

    def __init__(
        self,
        model: Similarity,
        objects: MatrixLike,
        ids: ArrayLike | None = None,
        *,
        approximate: bool = False,
        effort: int = 128,
        fingerprint: Fingerprint | None = None,
    ) -> None:
        if not hasattr(type(model), "object_map_version_"):  # of the class: on an unfitted model the property raises
            raise TypeError(f"model must be a Similarity, got {type(model).__name__}")
        if fingerprint is not None:
            model.check_fingerprint(model.fingerprints_[0] if model.fingerprints_ else fingerprint, fingerprint)
        self.model = model
        self._is_approximate = checks.check_flag(approximate, "approximate")
        self._effort = checks.check_integer(effort, "effort", at_least=1)
        rows = self._check_objects(objects)
        mapped = self._map(rows)
        if mapped is rows:
            self._objects = self._mapped = self._searchable(rows, ids)
        else:
            self._objects = MemoryStore(rows, ids)
            self._mapped = self._searchable(mapped, self._objects.present_keys)

    @reads
    def __len__(self) -> int:
        return len(self._objects)

    @reads
    def __repr__(self) -> str:
        kind = "approximate" if self._is_approximate else "exact"
        return f"Index({self.model!r}, {len(self)} objects, {self._objects.n_features} features, {kind})"

    @property
    @reads
    def ids(self) -> Array:
        """Ids of all objects, in the order in which they were added."""
        return self._objects.ids

    def add(self, objects: MatrixLike, ids: ArrayLike | None = None) -> Array:
        """Add objects and return their ids; integer ids default to numbers that continue from the largest so far."""
        rows = self._check_objects(objects)
        with self.model._lock.reading:
            self._update_map()
            with self._lock.changing, Journal() as journal:
                mapped = self.model.transform_objects(rows)
                keys = self._objects.add(rows, ids, "objects", journal)
                if self._mapped is not self._objects and len(self._mapped):
                    self._mapped.add(mapped, keys, journal=journal)
                elif self._mapped is not self._objects:
                    journal.attributes(self, "_mapped")
                    self._mapped = self._searchable(mapped, keys)
                return self._objects.ids_of(keys)

    @changes
    def remove(self, ids: ArrayLike) -> None:
        """Remove objects by their ids."""
        keys = self._objects.keys(ids, "ids")
        with Journal() as journal:
            self._objects.remove(keys, journal)
            if self._mapped is not self._objects:
                self._mapped.remove(keys, journal)

    def search(
        self,
        queries: MatrixLike,
        k: int = 10,
        *,
        explore: str | None = None,
        scale: float = 1.0,
        random_state: Any = None,
    ) -> Hits:
        """Return the k best objects for every query.

        Parameters
        ----------
        queries : vector, or array or CSR matrix of shape (n_queries, m)
        k : int, default 10
            Number of objects; all if there are fewer.
        explore : {None, "thompson", "ucb"}, default None
            Rank by the mean score; by a sample of the learned distribution, independent for each query (needs a model
            with `sample_transform`); or by the mean plus `scale` standard deviations (needs `similarity_std`). An
            approximate index computes this bound for its candidates only.
        scale : float, default 1.0
            Factor of the standard deviation in "thompson" and "ucb".
        random_state : None, int, Generator or RandomState
            Random seed of "thompson".

        Returns
        -------
        Hits
            Ids and mean scores, and their standard deviations if the model has `similarity_std`. Ties are ordered as
            the objects were added. A vector as query returns vectors.
        """
        k = checks.check_integer(k, "k", at_least=1)
        factor = checks.check_number(scale, "scale", at_least=0)
        if explore is not None:
            capability = {"thompson": "sample_transform", "ucb": "similarity_std"}[
                checks.check_choice(explore, "explore", ("thompson", "ucb"))
            ]
            if not hasattr(self.model, capability):
                name = type(self.model).__name__
                raise TypeError(f"explore={explore!r} needs a model with {capability}, got {name}")
        generator = checks.random_generator(random_state) if explore == "thompson" else None
        is_vector = checks.n_dimensions(queries, "queries") == 1
        with self.model._lock.reading:
            self._update_map()
            with self._lock.reading:
                Q = self.model._check_rows(as_rows(queries, "queries") if is_vector else queries)
                hits = self._hits(Q, min(k, len(self)), factor, explore, generator)
        return Hits(hits.ids[0], hits.scores[0], None if hits.stds is None else hits.stds[0]) if is_vector else hits

    def _hits(
        self, Q: Matrix, k: int, factor: float, explore: str | None, generator: np.random.Generator | None
    ) -> Hits:
        """Return the k best objects for every row of a matrix."""
        parts = []
        for chunk in chunks(Q.shape[0], min(_QUERIES_PER_CHUNK, NUMBERS_PER_BLOCK // self._mapped.n_features)):
            some = Q[chunk]
            vectors = ranked_by = as_dense(self.model._map_queries(some))
            if k and vectors.shape[1] != self._mapped.n_features:
                raise ValueError(
                    f"objects has {self._mapped.n_features} features, but the model maps queries to {vectors.shape[1]}"
                )
            if generator is not None:
                ranked_by = self.model.sample_transform(some, factor, generator)
            parts.append(self._search(some, vectors, ranked_by, k, factor if explore == "ucb" else 0.0))
        keys, scores, stds = zip(*parts, strict=True)
        return Hits(
            self._objects.ids_of(np.concatenate(keys)),
            np.concatenate(scores),
            None if stds[0] is None else np.concatenate(stds),
        )

    # -- inside -------------------------------------------------------------------------------------------

    def _searchable(self, rows: Matrix, ids: ArrayLike | None) -> MemoryStore:
        if self._is_approximate and sparse.issparse(rows):
            raise TypeError("approximate=True needs dense objects, got a sparse matrix; use approximate=False")
        return MemoryStore(rows, ids, metric=self.model.metric_, approximate=self._is_approximate, effort=self._effort)

    def _check_objects(self, objects: MatrixLike) -> Matrix:
        """Return objects as rows; check the number of features and, of a data frame, their names."""
        self.model._check_names(objects, "objects", self.model._object_names())
        rows = as_rows(objects, "objects")
        expected = getattr(self.model, "n_object_features_in_", rows.shape[1])
        if rows.shape[1] != expected:
            raise ValueError(f"objects has {rows.shape[1]} features, but the model was trained on {expected}")
        return rows

    def _map(self, rows: Matrix) -> Matrix:
        """Return the mapped objects, and note the version of the map."""
        self._version = self.model.object_map_version_
        return self.model.transform_objects(rows)

    def _update_map(self) -> None:
        """Map the objects again if the model, which the caller holds, maps them differently now.

        Every call that uses both locks takes that of the model first, so that no two threads wait for each other.
        """
        if self.model.object_map_version_ != self._version:
            with self._lock.changing, Journal() as journal:
                journal.attributes(self, "_version", "_mapped")
                if self.model.object_map_version_ != self._version and len(self):
                    keys = self._objects.present_keys
                    self._mapped = self._searchable(self._map(self._objects.rows(keys)), keys)

    def _search(
        self, Q: Matrix, vectors: Array, ranked_by: Array, k: int, n_stds: float
    ) -> tuple[Keys, Array, Array | None]:
        """Return the keys of the best objects for each query, their mean scores and standard deviations."""
        has_stds = hasattr(self.model, "similarity_std")
        if k == 0:
            nothing = np.empty((Q.shape[0], 0))
            return nothing.astype(np.int64), nothing, nothing if has_stds else None

        def upper_bounds(chunk: Chunk, scores: Array) -> Array:
            if self._mapped is self._objects:
                return np.asarray(scores + n_stds * self.model.similarity_std(Q, chunk.rows))
            present, stds = chunk.is_present, np.zeros_like(scores)
            stds[:, present] = self.model.similarity_std(Q, self._objects.rows(chunk.keys[present]))
            return np.asarray(scores + n_stds * stds)

        keys = self._mapped.nearest(ranked_by, k, upper_bounds if n_stds else None).indices
        used, indices = np.unique(keys, return_inverse=True)
        indices = indices.reshape(keys.shape)
        rows = self._mapped.rows(used)
        stds = None
        if has_stds:
            objects = rows if self._mapped is self._objects else self._objects.rows(used)
            stds = np.take_along_axis(self.model.similarity_std(Q, objects), indices, axis=1)
        if self._mapped.metric == "dot":
            return keys, np.take_along_axis(products(rows, vectors), indices, axis=1), stds
        scores = _negative_squared_distances(vectors, rows, indices)
        if not n_stds and ranked_by is vectors:  # the differences are more exact than the ranking by products
            order = np.argsort(-scores, axis=1, kind="stable")
            keys, scores = (np.take_along_axis(part, order, axis=1) for part in (keys, scores))
            stds = None if stds is None else np.take_along_axis(stds, order, axis=1)
        return keys, scores, stds


def _negative_squared_distances(vectors: Array, rows: Matrix, indices: Keys) -> Array:
    """Return ``-|u - v|^2`` for each vector u and the rows v at its indices."""
    vectors = vectors.astype(np.float64, copy=False)
    if sparse.issparse(rows):  # differences would be dense
        squares = squared_norms(rows) + squared_norms(vectors)[:, np.newaxis]
        return np.asarray(np.minimum(np.take_along_axis(2 * products(rows, vectors) - squares, indices, axis=1), 0.0))
    scores = np.empty(indices.shape)
    for one, u, at in zip(scores, vectors, indices, strict=True):
        one[:] = 0.0 - squared_norms(rows[at] - u)
    return scores

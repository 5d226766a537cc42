"""Search that learns from judgements and clicks, and keeps the base ranking where there is no feedback.

The base score of a query q and an object p, their cosine or inner product, becomes ``(q + w t l u)'p``:

- u, of unit norm, is the direction of the targets in the neighbourhood: the mean of the positive objects of nearby
  queries, minus the mean of all objects, minus a fraction of the negative ones. The neighbourhood consists of the ten
  nearest among the objects and the queries with feedback, weighted by rank and by the precision of their lists
  (`feedback`, `credit`).
- t, the trust, is the coverage of the neighbourhood by feedback: the credit of the ten nearest objects, minus that of
  objects with only negative feedback. It decreases for queries that are further from all objects than most queries with
  feedback. A query unlike any of them has t = 0 and the base ranking, bit for bit. A query that has feedback of its own
  is always trusted (`neighbourhood`).
- l is half the norm of q without its part along the mean of all objects, which does not distinguish them.
- w, the correction weight, is one number for all queries: how far predictions made before learning support the
  correction (`monitor`).

The corrected query is a vector to search with in any store of the objects. There is no matrix that wrong feedback could
spoil: a wrong judgement pulls the queries around it to a wrong object, and no others.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils.extmath import safe_sparse_dot

from ..._utils import checks
from ..._utils.chunks import chunks
from ..._utils.journal import Journal
from ..._utils.rows import Matrix, MatrixLike, as_dense, as_rows, unit_rows
from ..._utils.sharing import Shared, changes, reads
from ...io.container import write_model
from ...learners.fingerprint import Fingerprint, check_fingerprint, check_same
from ..stores.base import Array, Hits, Keys
from ..stores.memory import NUMBERS_PER_BLOCK, MemoryStore, products
from .feedback import Feedback
from .files import Parts, from_file, to_file
from .monitor import LARGEST_SQUARE, Diagnostics, Monitor
from .neighbourhood import Correction, Neighbourhood

Encoder = Callable[[list[str]], Any]
Queries = MatrixLike | str | Sequence[str]

_MAX_QUERIES_PER_CHUNK = 256


class Adapter(Shared):
    """Search by cosine or inner product that learns from judgements and clicks.

    Parameters
    ----------
    vectors : array or CSR matrix of shape (n_objects, n_features)
        Vectors of the objects, which are copied.
    ids : sequence of int or of str, optional
        Unique ids of the objects; 0, 1, 2, ... by default.
    metric : {"cosine", "dot"}, default "cosine"
        The base score of queries and objects, which share one space.
    encoder : callable, optional
        Function from a list of texts to their vectors, for queries that are strings. It is not saved.
    random_state : None, int, Generator or RandomState
        Random seed, stored with the adapter. Searching and learning are deterministic and sample nothing.
    fingerprint : Fingerprint, optional
        Fingerprint of the embedding of queries and objects, saved with the adapter; see `check_fingerprint`.

    Attributes
    ----------
    correction_weight_ : float
        Weight of the learned correction, from 0 (the base score) to 1.
    diagnostics_ : Diagnostics
        Evidence for or against the correction, from predictions made before learning.

    Examples
    --------
    >>> import numpy as np
    >>> import aromatch as am
    >>> vectors = np.random.default_rng(0).normal(size=(100, 8))
    >>> adapter = am.Adapter(vectors)
    >>> query = vectors[7] + 0.3
    >>> hits = adapter.search(query, k=5)
    >>> record = adapter.click(query, shown=hits.ids, clicked=hits.ids[2])
    >>> record = adapter.judge(query, good=hits.ids[2:4], bad=hits.ids[:2])
    >>> adapter
    Adapter(100 objects, 8 features, metric='cosine', 2 feedback lists, correction_weight_=0.17)
    """

    metric_ = "dot"
    """How `transform` and `transform_objects` are compared, as in a `Similarity`."""

    def __init__(
        self,
        vectors: MatrixLike,
        ids: ArrayLike | None = None,
        metric: str = "cosine",
        encoder: Encoder | None = None,
        random_state: Any = None,
        fingerprint: Fingerprint | None = None,
    ) -> None:
        self.metric = checks.check_choice(metric, "metric", ("cosine", "dot"))
        self.encoder = _checked_encoder(encoder)
        if random_state is None:
            self._seed = secrets.randbits(63)
        elif isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
            self._seed = checks.check_integer(random_state, "random_state", at_least=0)
        else:
            self._seed = int(checks.random_generator(random_state).integers(2**63))
        rows = self._normalized(as_rows(vectors, "vectors", largest_square=LARGEST_SQUARE), copy=True)
        self._fingerprint = None if fingerprint is None else _checked_fingerprint(fingerprint, rows.shape[1])
        self._set_state(MemoryStore(rows, ids), Feedback(), Monitor(), _sum(rows))
        self._n_records = 0

    @reads
    def __len__(self) -> int:
        return len(self._store)

    @reads
    def __repr__(self) -> str:
        return (
            f"Adapter({len(self)} objects, {self.n_features_in_} features, metric={self.metric!r}, "
            f"{self._n_records} feedback lists, correction_weight_={self.correction_weight_:.2f})"
        )

    @property
    @reads
    def ids(self) -> Array:
        """Ids of all objects, in the order in which they were added."""
        return self._store.ids

    @property
    @reads
    def n_features_in_(self) -> int:
        """Number of features of queries and objects."""
        return self._store.n_features

    n_object_features_in_ = n_features_in_

    @property
    @reads
    def correction_weight_(self) -> float:
        """Weight of the learned correction, from 0 to 1."""
        return self._monitor.correction_weight

    @property
    @reads
    def diagnostics_(self) -> Diagnostics:
        """Evidence for or against the correction, from predictions made before learning."""
        return self._monitor.diagnostics()

    @property
    @reads
    def fingerprint_(self) -> Fingerprint | None:
        """Fingerprint of the embedding; None if there is none."""
        return self._fingerprint

    @reads
    def check_fingerprint(self, fingerprint: Fingerprint) -> None:
        """Raise a ValueError if the fingerprint is not that of the adapter, or if the adapter has none."""
        if self._fingerprint is None:
            raise ValueError("the adapter has no fingerprint; pass one when it is made")
        check_same(self._fingerprint, check_fingerprint(fingerprint, "fingerprint"), "")

    # -- searching ----------------------------------------------------------------------------------------

    def search(self, query: Queries, k: int = 10) -> Hits:
        """Return the k best objects for every query, all if there are fewer.

        Parameters
        ----------
        query : vector, matrix, str or list of str
            A vector or a str returns vectors of ids and scores, otherwise there is one row for each query.
        k : int, default 10

        Returns
        -------
        Hits
            Ties are ordered as the objects were added.
        """
        k, rows = checks.check_integer(k, "k", at_least=1), self._as_queries(query)
        with self._lock.reading:
            k = min(k, self._store.n_objects)
            found = [self._store.nearest(self._transform(some), k) for some in self._chunks(rows)]
            keys, scores = (np.concatenate(part) for part in zip(*found, strict=True))
            ids = self._store.ids_of(keys)
        is_single = isinstance(query, str) or (checks.n_dimensions(query, "query") == 1 and not _is_text(query))
        return Hits(ids[0], scores[0]) if is_single else Hits(ids, scores)

    def similarity(self, Q: Queries, P: MatrixLike | None = None) -> Array:
        """Return the score of every query with every object, of the adapter or not; P is Q by default."""
        queries = self._as_queries(Q, "Q")
        objects = queries if P is None else self._as_queries(P, "P")
        scores = np.array(safe_sparse_dot(queries, objects.T, dense_output=True))
        start = 0
        with self._lock.reading:
            for some in self._chunks(queries):
                correction, end = self._weighted_correction(some), start + some.shape[0]
                changed = np.flatnonzero(correction.any(axis=1))
                if len(changed):
                    scores[start + changed] += products(objects, correction[changed])
                start = end
        return scores

    def transform(self, Q: Queries) -> Array:
        """Return the corrected queries, to search with in any store of `transform_objects` by inner products."""
        rows = self._as_queries(Q, "Q")
        with self._lock.reading:
            return np.concatenate([self._transform(some) for some in self._chunks(rows)])

    def transform_objects(self, P: MatrixLike) -> Matrix:
        """Return objects as a store that is searched with `transform` must hold them: normalized for the cosine."""
        return self._normalized(as_rows(P, "P", largest_square=LARGEST_SQUARE))

    def trust(self, Q: Queries) -> Array:
        """Return the share of the correction that each query gets, from 0 (the base score) to 1."""
        rows = self._as_queries(Q, "Q")
        with self._lock.reading:
            trust = [self._neighbourhood.correction(some).trust for some in self._chunks(rows)]
            return np.asarray(self._monitor.correction_weight * np.concatenate(trust))

    # -- learning -----------------------------------------------------------------------------------------

    def judge(self, query: Queries, good: ArrayLike = (), bad: ArrayLike = ()) -> int:
        """Learn which objects are relevant to a query and which are not.

        Lists with only positive feedback do not raise `correction_weight_`; pass `bad` as well, or use `click`.

        Parameters
        ----------
        query : vector, matrix of one row, or str
        good, bad : ids of objects, one or several
            Either may be empty.

        Returns
        -------
        int
            The number of the feedback record.
        """
        row = self._as_query(query)
        with self._lock.changing:
            positive, negative = self._keys(good, "good"), self._keys(bad, "bad")
            both = set(positive.tolist()) & set(negative.tolist())
            if both:
                raise ValueError(f"good and bad both contain {self._store.ids_of(np.array([min(both)])).tolist()[0]!r}")
            if not len(positive) and not len(negative):
                raise ValueError("good and bad are empty, expected at least one id")
            correction = self._neighbourhood.correction(row)
            with self._learning() as journal:
                if self._feedback.numbers(row)[0] < 0:
                    base, learned = self._predict(row, correction, np.concatenate([positive, negative]))
                    self._monitor.add_judged(base, learned, np.arange(len(base)) < len(positive))
                return self._learn(row, correction, positive, negative, journal, is_informative=len(negative) > 0)

    def click(self, query: Queries, shown: ArrayLike, clicked: ArrayLike) -> int:
        """Learn from clicks in a list of results.

        Clicked objects are positive. Objects above the last click that were not clicked are negative: they were
        examined and passed over. Objects below it are ignored.

        Parameters
        ----------
        query : vector, matrix of one row, or str
        shown : ids of the objects, in the order in which they were shown
        clicked : ids of objects among them, one or several

        Returns
        -------
        int
            The number of the feedback record.
        """
        row = self._as_query(query)
        with self._lock.changing:
            listed, chosen = self._keys(shown, "shown"), self._keys(clicked, "clicked")
            if not len(chosen):
                raise ValueError("clicked is empty, expected at least one id")
            missing = ~np.isin(chosen, listed)
            if missing.any():
                raise ValueError(
                    f"clicked contains {self._store.ids_of(chosen[missing]).tolist()[0]!r}, which is not in shown"
                )
            is_clicked = np.isin(listed, chosen)
            examined = slice(int(np.flatnonzero(is_clicked)[-1]) + 1)
            listed, is_clicked, n_passed = listed[examined], is_clicked[examined], len(listed) - len(chosen)
            correction = self._neighbourhood.correction(row)
            good, bad = listed[is_clicked], listed[~is_clicked]
            with self._learning() as journal:
                if self._feedback.numbers(row)[0] < 0:
                    self._monitor.add_clicked(*self._predict(row, correction, listed), is_clicked)
                return self._learn(row, correction, good, bad, journal, is_informative=n_passed > 0)

    # -- objects ------------------------------------------------------------------------------------------

    @changes
    def add(self, vectors: MatrixLike, ids: ArrayLike | None = None) -> Array:
        """Add objects and return their ids; integer ids default to numbers that continue from the largest so far."""
        rows = self._normalized(
            as_rows(vectors, "vectors", largest_square=LARGEST_SQUARE, dtype=self._store.dtype), copy=True
        )
        added = _sum(rows)
        with self._learning() as journal:
            keys = self._store.add(rows, ids, "vectors", journal)
            self._neighbourhood.update(added)
            return self._store.ids_of(keys)

    @changes
    def remove(self, ids: ArrayLike) -> None:
        """Remove objects, and the feedback on them."""
        keys = np.unique(self._store.keys(ids, "ids"))
        if len(keys) == len(self):
            raise ValueError("ids contains all objects, and at least one must remain")
        if len(keys):
            removed = _sum(self._store.rows(keys))
            with self._learning() as journal:
                self._store.remove(keys, journal)
                self._feedback.remove_objects(keys, journal)
                self._neighbourhood.update(-removed)

    # -- files --------------------------------------------------------------------------------------------

    @reads
    def save(self, path: str | PathLike[str]) -> None:
        """Write the objects and all feedback to a file; `aromatch.load` resumes with bit-identical results.

        The encoder is not saved: pass it to `aromatch.load`.
        """
        write_model(path, *self._to_parts())

    def _to_parts(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return the header and the arrays of the file."""
        return to_file(
            Parts(
                self.metric,
                self._seed,
                self._n_records,
                self._store,
                self._neighbourhood.total,
                self._feedback,
                self._monitor,
                self._fingerprint,
            )
        )

    @classmethod
    def _from_parts(cls, header: dict[str, Any], arrays: dict[str, Array], *, encoder: Encoder | None = None) -> Self:
        """Restore an adapter from the header and the arrays of its file; a ValueError if they are inconsistent."""
        parts, adapter = from_file(header, arrays), cls.__new__(cls)
        adapter.metric, adapter.encoder = parts.metric, _checked_encoder(encoder)
        adapter._seed, adapter._n_records, adapter._fingerprint = parts.seed, parts.n_records, parts.fingerprint
        adapter._set_state(parts.store, parts.feedback, parts.monitor, parts.total)
        return adapter

    # -- inside -------------------------------------------------------------------------------------------

    def _set_state(self, store: MemoryStore, feedback: Feedback, monitor: Monitor, total: Array) -> None:
        self._store, self._feedback, self._monitor = store, feedback, monitor
        self._neighbourhood = Neighbourhood(store, feedback, unit_norm=self.metric == "cosine")
        self._neighbourhood.update(total)

    def _normalized(self, rows: Matrix, *, copy: bool = False) -> Matrix:
        """Return rows in the form in which inner products are the base score."""
        if self.metric == "cosine":
            return unit_rows(rows)
        return rows.copy() if copy else rows

    def _as_queries(self, Q: Queries, name: str = "query") -> Matrix:
        """Return checked queries with the dtype and sparsity of the objects, normalized as these are.

        An encoder may take long, or use the adapter itself: queries are read before the lock is held.
        """
        if _is_text(Q):
            Q = self._encode(Q, name)
        store = self._store
        rows = as_rows(Q, name, largest_square=LARGEST_SQUARE, dtype=store.dtype)
        if rows.shape[1] != store.n_features:
            raise ValueError(f"{name} has {rows.shape[1]} features, expected {store.n_features} like the objects")
        # Converted before anything is computed, so that a query has the same bits whatever its container was.
        if rows.dtype != store.dtype:
            rows = rows.astype(store.dtype)
        if store.is_sparse:
            rows = sparse.csr_array(rows, copy=True)
            rows.sum_duplicates()
        elif sparse.issparse(rows):
            rows = rows.toarray()
        return self._normalized(rows)

    def _encode(self, texts: str | Sequence[str], name: str) -> MatrixLike:
        if self.encoder is None:
            raise TypeError(f"{name} is text, but the adapter has no encoder; set `encoder`, or pass vectors")
        listed = [texts] if isinstance(texts, str) else [str(text) for text in texts]
        rows = as_rows(self.encoder(listed), "encoder")
        if rows.shape[0] != len(listed):
            raise ValueError(f"encoder must return one row for each of the {len(listed)} texts, got {rows.shape[0]}")
        return rows

    def _as_query(self, query: Queries) -> Matrix:
        row = self._as_queries(query)
        if row.shape[0] != 1:
            raise ValueError(f"query must be one row, got {row.shape[0]}")
        return row

    def _keys(self, ids: ArrayLike, name: str) -> Keys:
        keys = self._store.keys(ids, name)
        if len(set(keys.tolist())) < len(keys):
            raise ValueError(f"{name} must be unique, got some id twice")
        return keys

    def _chunks(self, Q: Matrix) -> Iterable[Matrix]:
        size = min(_MAX_QUERIES_PER_CHUNK, NUMBERS_PER_BLOCK // self._store.n_features)
        return [Q] if Q.shape[0] <= size else (Q[chunk] for chunk in chunks(Q.shape[0], size))

    def _transform(self, Q: Matrix) -> Array:
        return np.asarray(as_dense(Q) + self._weighted_correction(Q))

    def _weighted_correction(self, Q: Matrix) -> Array:
        """Return the correction of each query; zero without feedback nearby."""
        weight = self._monitor.correction_weight
        if not weight:
            return np.zeros(Q.shape, dtype=Q.dtype)
        found = self._neighbourhood.correction(Q)
        return np.asarray((weight * found.trust)[:, np.newaxis] * found.directions, dtype=Q.dtype)

    def _predict(self, row: Matrix, correction: Correction, keys: Keys) -> tuple[Array, Array]:
        """Return the base scores of some objects, and the corrections of these at full weight."""
        rows = self._store.rows(keys)
        learned = correction.trust[0] * products(rows, correction.directions)[0]
        return products(rows, as_dense(row))[0].astype(np.float64), learned.astype(np.float64)

    def _learning(self) -> Journal:
        """Return a journal that has noted what every change of the adapter replaces."""
        journal = Journal()
        journal.attributes(self, "_n_records")
        journal.attributes(self._monitor, "sums", "_weight")
        journal.attributes(self._neighbourhood, "total", "_last")
        return journal

    def _learn(
        self, row: Matrix, correction: Correction, good: Keys, bad: Keys, journal: Journal, *, is_informative: bool
    ) -> int:
        self._n_records += 1
        if (row.data if sparse.issparse(row) else row).any():  # a query of zeros has no neighbourhood
            own_object, proximity = int(correction.own_object[0]), float(correction.proximity[0])
            self._feedback.add(row, own_object, proximity, good, bad, journal)
            if len(good) and is_informative:
                self._monitor.add_list()
            self._neighbourhood.update()
        return self._n_records


def _is_text(Q: Any) -> bool:
    if isinstance(Q, list | tuple):
        return len(Q) > 0 and all(isinstance(one, str) for one in Q)
    return isinstance(Q, str) or getattr(getattr(Q, "dtype", None), "kind", "") == "U"


def _checked_encoder(encoder: Any) -> Encoder | None:
    if encoder is not None and not callable(encoder):
        raise TypeError(f"encoder must be callable or None, got {encoder!r}")
    return encoder  # type: ignore[no-any-return]


def _checked_fingerprint(fingerprint: Any, dimension: int) -> Fingerprint:
    if check_fingerprint(fingerprint, "fingerprint").dimension != dimension:
        raise ValueError(f"fingerprint has {fingerprint.dimension} dimensions, but the objects have {dimension}")
    return fingerprint  # type: ignore[no-any-return]


def _sum(rows: Matrix) -> Array:
    return np.asarray(rows.sum(axis=0, dtype=np.float64)).ravel()

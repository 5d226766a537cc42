"""Search that gets better from what people judge and click, and keeps what they had where it knows nothing.

The base score of a query q and an object p, their cosine or inner product, becomes ``(q + b t l u)'p``:

- u, of length 1, is what queries nearby asked for: the mean of what was good for them, less the mean of all objects,
  less a part of what was bad. Nearby are the ten nearest among the objects and the queries that were judged; the first
  counts most, and one whose list was mostly bad counts little (`judgements`).
- t, the trust, is how much of the neighbourhood is known: the share of the ten nearest objects that were liked, each
  with the precision of the queries that liked it, less the share of those that were only disliked. It falls for a query
  that is further from everything than most that were judged. A query unlike any of them has t = 0, and keeps the base
  ranking to the bit. One that was judged itself is trusted in any case.
- l is half the length of q without what it has in common with all objects, which does not tell them apart.
- b, the blend, is one number for all queries: how far predictions made before learning say that this helps (`watch`).

It is a vector to search with in any store of the objects, like those of other models. There is no matrix to be led
astray: the worst that a wrong judgement does is to pull queries around it to a wrong object.
"""

from __future__ import annotations

import secrets
from os import PathLike
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.extmath import safe_sparse_dot

from ..._utils import checks
from ..._utils.rows import Matrix, MatrixLike, as_float64, as_matrix, read_all, unit_rows
from ...exceptions import ModelFileError
from ...io.container import read_model, write_model
from ...learners.fingerprint import Fingerprint, check_same
from ..stores.memory import NUMBERS_AT_ONCE, Collection, Ids, check_ids
from ..top_k import products
from .feedback import Judgements
from .files import Parts, from_file, to_file
from .monitor import Watch, Watched
from .neighbourhood import Surroundings, View, dense
from .suggest import suggest

Array = NDArray[Any]

_MOST_QUERIES_AT_ONCE = 256


class Ranked(NamedTuple):
    """What a search found, the best first: a row for each query, or one row for a query that is a vector."""

    ids: Ids
    scores: Array


class Adapter:
    """Learns from judgements and clicks, beside the cosine or inner product that a search has now.

    Parameters
    ----------
    objects : array or CSR matrix of shape (n_objects, n_features)
        Copied. Their ids are 0, 1, 2, ...
    base : {"cosine", "dot"}, default "cosine"
        The score to begin with, of queries and objects in one space.
    random_state : None, int, Generator or RandomState
        For `suggest`.
    fingerprint : Fingerprint, optional
        Of the embedding that objects and queries come from; it is saved with the adapter, and `load` can check it.

    Attributes
    ----------
    blend_ : float
        From 0, the base score alone, to 1. What a query gets of it depends on how well its surroundings are known.
    watched_ : Watched
        What predictions that were made before learning say about the use of what was learned.

    Examples
    --------
    >>> import numpy as np
    >>> import aromatch as am
    >>> objects = np.random.default_rng(0).normal(size=(100, 8))
    >>> adapter = am.search.Adapter(objects)
    >>> query = objects[7] + 0.3
    >>> ids, scores = adapter.search(query, k=5)
    >>> adapter.click(query, shown=ids, clicked=ids[2])
    >>> adapter.judge(query, good=ids[2:4], bad=ids[:2])
    >>> 0 < adapter.blend_ < 1
    True
    """

    def __init__(
        self,
        objects: MatrixLike,
        *,
        base: str = "cosine",
        random_state: Any = None,
        fingerprint: Fingerprint | None = None,
    ) -> None:
        self.base = checks.check_choice(base, "base", ("cosine", "dot"))
        if random_state is None:
            self._seed = secrets.randbits(63)
        elif isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
            self._seed = checks.check_integer(random_state, "random_state", at_least=0)
        else:
            self._seed = int(checks.random_generator(random_state).integers(2**63))
        rows = self._based(_rows_of(objects, "objects"))
        self._fingerprint = None if fingerprint is None else _checked(fingerprint, rows.shape[1])
        self._put(Collection(rows), Judgements(), Watch())
        self._surroundings.changed(_sum_of(rows))
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._objects)

    @property
    def ids(self) -> Ids:
        """Ids of all objects, in the order in which they came."""
        return self._objects.ids

    @property
    def width(self) -> int:
        """How many features objects and queries have."""
        return int(self._objects.width)

    @property
    def blend_(self) -> float:
        """How much of what was learned is used where all is known, from 0 to 1."""
        return self._watch.blend

    @property
    def watched_(self) -> Watched:
        """What predictions made before learning say about the use of what was learned."""
        return self._watch.result()

    @property
    def fingerprint_(self) -> Fingerprint | None:
        """Of the embedding that it was made for; None when nobody said."""
        return self._fingerprint

    def check_fingerprint(self, fingerprint: Fingerprint) -> None:
        """Refuse an embedding that is not the one that the adapter was made for; without one, all are refused."""
        if self._fingerprint is None:
            raise ValueError("the adapter was made without a fingerprint, so that nobody can tell")
        check_same(self._fingerprint, _checked(fingerprint), "")

    # -- searching ----------------------------------------------------------------------------------------

    def search(self, queries: MatrixLike, k: int = 10) -> Ranked:
        """Find the k best objects for every query, all when there are fewer.

        Equal scores are in the order in which the objects came. For a query that is a vector, ids and scores are too.
        """
        k = min(checks.check_integer(k, "k", at_least=1), len(self))
        Q = self._queries(queries)
        parts = [self._surroundings.nearest(self._vectors(some), k) for some in self._batches(Q)]
        ids, scores = (np.concatenate(part) for part in zip(*parts, strict=True))
        is_one = not sparse.issparse(queries) and np.ndim(queries) == 1
        return Ranked(ids[0], scores[0]) if is_one else Ranked(ids, scores)

    def similarity(self, Q: MatrixLike, P: MatrixLike) -> Array:
        """Score every query with every object, those of the adapter or any others."""
        queries, objects = self._queries(Q), self._queries(P, "P")
        scores = np.array(safe_sparse_dot(queries, objects.T, dense_output=True))
        start = 0
        for some in self._batches(queries):
            added, end = self._added(some), start + some.shape[0]
            changed = np.flatnonzero(added.any(axis=1))
            if len(changed):
                scores[start + changed] += products(objects, added[changed])
            start = end
        return scores

    def query_vector(self, queries: MatrixLike) -> Array:
        """Give what to search with in any store of the objects that ranks by inner products.

        For base="cosine" the objects in that store have to have unit norm.
        """
        Q = self._queries(queries)
        return np.concatenate([self._vectors(some) for some in self._batches(Q)])

    def trust(self, queries: MatrixLike) -> Array:
        """Give how much of what was learned each query gets, from 0, the base score alone, to 1."""
        Q = self._queries(queries)
        return self.blend_ * np.concatenate([self._surroundings.view(some).trust for some in self._batches(Q)])

    # -- learning -----------------------------------------------------------------------------------------

    def judge(self, query: MatrixLike, good: ArrayLike, bad: ArrayLike) -> None:
        """Learn which objects are good for a query and which are not.

        Parameters
        ----------
        query : vector or matrix of one row
        good, bad : ids of objects that were shown for it
        """
        row = self._one_query(query)
        liked, disliked = self._known_ids(good, "good"), self._known_ids(bad, "bad")
        both = set(liked.tolist()) & set(disliked.tolist())
        if both:
            raise ValueError(f"good and bad both have {min(both)}")
        if not len(liked) and not len(disliked):
            raise ValueError("good and bad are empty, expected at least one id")
        view = self._surroundings.view(row)
        if self._judgements.numbers(row)[0] < 0:
            base, learned = self._predicted(row, view, np.concatenate([liked, disliked]))
            self._watch.judged(base, learned, np.arange(len(base)) < len(liked))
        self._learn(row, view, liked, disliked, tells_apart=len(disliked) > 0)

    def click(self, query: MatrixLike, shown: ArrayLike, clicked: int) -> None:
        """Learn from a click: what stands above it was looked at and passed over, what stands below was not.

        Parameters
        ----------
        query : vector or matrix of one row
        shown : ids of objects in the order in which they were shown
        clicked : int
            The one among them that was clicked.
        """
        row = self._one_query(query)
        listed = self._known_ids(shown, "shown")
        one = int(self._known_ids(clicked, "clicked", n=1)[0])
        if one not in listed:
            raise ValueError(f"clicked is {one}, which is not among those shown")
        looked_at = listed[: int(np.flatnonzero(listed == one)[0]) + 1]
        view = self._surroundings.view(row)
        if self._judgements.numbers(row)[0] < 0:
            self._watch.clicked(*self._predicted(row, view, looked_at))
        self._learn(row, view, looked_at[-1:], looked_at[:-1], tells_apart=len(listed) > 1)

    def suggest(self, n: int = 1) -> Ids:
        """Give the n comparisons that are worth asking next, as rows of ids: query, first and second object.

        Queries are objects that have much near them of which little is known. The first object is the nearest one, the
        second the least known of the next. Answer with ``judge(row of the query, good=[the better one], bad=[the
        other])``. The same feedback before it gives the same suggestions. They cover the collection; on real data they
        taught no more than neighbours drawn at random did.
        """
        n = checks.check_integer(n, "n", at_least=1)
        return suggest(self._objects, self._surroundings, n, np.random.default_rng([self._seed, self._sequence]))

    # -- objects ------------------------------------------------------------------------------------------

    def add(self, objects: MatrixLike) -> Ids:
        """Add objects; give their ids, which go on from the largest so far."""
        rows = self._based(_rows_of(objects, "objects"))
        ids = self._objects.add(rows)
        self._surroundings.changed(_sum_of(rows))
        return ids

    def remove(self, ids: ArrayLike) -> None:
        """Remove objects by their ids, and forget what was judged about them."""
        gone = np.unique(self._known_ids(ids, "ids", may_repeat=True))
        if len(gone) == len(self):
            raise ValueError("ids has all objects, and one has to stay")
        if len(gone):
            removed = _sum_of(self._objects.rows(gone))
            self._objects.remove(gone)
            self._judgements.forget(gone)
            self._surroundings.changed(-removed)

    # -- files --------------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to a file: the objects, and what was learned; `load` goes on exactly from there."""
        write_model(path, *self._to_parts())

    def _to_parts(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Give the header and the arrays of its file."""
        total, judgements = self._surroundings.total, self._judgements
        return to_file(
            Parts(
                self.base,
                self._seed,
                self._sequence,
                self._objects,
                total,
                judgements,
                self._watch,
                self._fingerprint,
            )
        )

    @classmethod
    def load(cls, path: str | PathLike[str], *, fingerprint: Fingerprint | None = None) -> Self:
        """Read what `save` wrote. Nothing in the file is run, and what it says is checked.

        With a fingerprint, an adapter of another embedding is refused.
        """
        file = read_model(path)
        try:
            parts = from_file(*file)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ModelFileError(f"{path} is not an adapter that this version can use: {error}") from error
        self = cls.__new__(cls)
        self.base, self._seed, self._sequence = parts.base, parts.seed, parts.sequence
        self._put(parts.objects, parts.judgements, parts.watch)
        self._surroundings.changed(parts.total)
        self._fingerprint = parts.fingerprint
        if fingerprint is not None:
            self.check_fingerprint(fingerprint)
        return self

    # -- inside -------------------------------------------------------------------------------------------

    def _put(self, objects: Collection, judgements: Judgements, watch: Watch) -> None:
        self._objects, self._judgements, self._watch = objects, judgements, watch
        self._surroundings = Surroundings(objects, judgements, unit_norm=self.base == "cosine")

    def _based(self, rows: Matrix) -> Matrix:
        """Give rows in the form in which inner products are the base score."""
        return unit_rows(rows) if self.base == "cosine" else rows

    def _queries(self, queries: MatrixLike, name: str = "queries") -> Matrix:
        """Check rows and give them as the objects are: of their kind and type, normalised where they are."""
        rows = _rows_of(queries, name)
        if rows.shape[1] != self._objects.width:
            raise ValueError(f"{name} has {rows.shape[1]} features, expected {self._objects.width} like the objects")
        # In one form before anything is computed, so that the same query has the same bits whatever it came in.
        if rows.dtype != self._objects.dtype:
            rows = rows.astype(self._objects.dtype)
        if self._objects.is_sparse:
            rows = sparse.csr_array(rows, copy=True)
            rows.sum_duplicates()
        return self._based(rows.toarray() if sparse.issparse(rows) and not self._objects.is_sparse else rows)

    def _one_query(self, query: MatrixLike) -> Matrix:
        row = self._queries(query, "query")
        if row.shape[0] != 1:
            raise ValueError(f"query must be one row, got {row.shape[0]}")
        return row

    def _known_ids(self, ids: ArrayLike, name: str, *, n: int | None = None, may_repeat: bool = False) -> Ids:
        found = check_ids(ids, name)
        if n is not None and len(found) != n:
            raise ValueError(f"{name} must be one id, got {len(found)}")
        if not may_repeat and len(set(found.tolist())) < len(found):
            raise ValueError(f"{name} has an id twice")
        self._objects.check_there(found, name)
        return found

    def _batches(self, Q: Matrix) -> list[Matrix]:
        at_once = min(_MOST_QUERIES_AT_ONCE, max(1, NUMBERS_AT_ONCE // self._objects.width))
        if Q.shape[0] <= at_once:
            return [Q]
        return [Q[start : start + at_once] for start in range(0, Q.shape[0], at_once)]

    def _vectors(self, Q: Matrix) -> Array:
        """Give what to search with."""
        return np.asarray(dense(Q) + self._added(Q))

    def _added(self, Q: Matrix) -> Array:
        """Give what is added to each query: nothing where nothing is known."""
        blend = self.blend_
        if not blend:
            return np.zeros(Q.shape, dtype=Q.dtype)
        view = self._surroundings.view(Q)
        return np.asarray((blend * view.trust)[:, np.newaxis] * view.directions, dtype=Q.dtype)

    def _predicted(self, row: Matrix, view: View, ids: Ids) -> tuple[Array, Array]:
        """Give base scores of some objects, and what learning adds to them."""
        objects = self._objects.rows(ids)
        base, learned = products(objects, dense(row))[0], view.trust[0] * products(objects, view.directions)[0]
        return base.astype(np.float64), learned.astype(np.float64)

    def _learn(self, row: Matrix, view: View, good: Ids, bad: Ids, *, tells_apart: bool) -> None:
        self._sequence += 1
        if not (row.data if sparse.issparse(row) else row).any():  # a query of zeros is near to nothing
            return
        self._judgements.add(row, int(view.itself[0]), float(view.nearness[0]), good, bad)
        if len(good) and tells_apart:
            self._watch.learned()
        self._surroundings.changed()


def _rows_of(X: MatrixLike, name: str) -> Matrix:
    """Check a matrix, or a vector, which is one row."""
    if not sparse.issparse(X):
        X = checks.as_array(X, name)
        X = X.reshape(1, -1) if X.ndim == 1 else X
    rows = as_matrix(X, name)
    read_all(rows, name)
    if rows.dtype not in (np.float32, np.float64):
        rows = as_float64(rows, name)
    return rows


def _checked(fingerprint: Any, dimension: int | None = None) -> Fingerprint:
    """Refuse what is no fingerprint, or one of an embedding with another number of features."""
    if not isinstance(fingerprint, Fingerprint):
        raise TypeError(f"fingerprint must be a Fingerprint, got {fingerprint!r}")
    if dimension not in (None, fingerprint.dimension):
        raise ValueError(f"fingerprint has {fingerprint.dimension} dimensions, but the objects have {dimension}")
    return fingerprint


def _sum_of(rows: Matrix) -> Array:
    return np.asarray(rows.sum(axis=0, dtype=np.float64)).ravel()

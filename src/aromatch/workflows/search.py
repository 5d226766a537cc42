"""Search a collection with a trained model: by words, by an object of the collection, or by a file of queries."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from .._utils.checks import check_integer
from .._utils.rows import Matrix
from ..io.items import Items, read_items
from ..learners import Cosine
from ..search import Hits, Index
from .baseline import baseline_rows
from .bundle import TrainedModel, read_bundle
from .collection import read_objects, read_query
from .snippets import snippet


@dataclass(frozen=True, slots=True)
class Hit:
    """One result."""

    rank: int
    id: str
    score: float
    std: float | None
    """Standard deviation of the score; None if the model has none."""
    label: str | None
    text: str | None
    """The line of the text with most words of the query."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A query with its results."""

    query: str
    """Its id, or the words."""
    text: str | None
    unknown_words: list[str]
    """Words that are not terms of the model."""
    is_baseline: bool
    """Whether all words are unknown, so that the hits are those of the baseline."""
    hits: list[Hit]
    baseline: list[Hit] | None
    """Hits of the baseline, if they were requested."""


@dataclass(frozen=True, slots=True)
class SearchReport:
    """The result of `search`."""

    model: str
    data: str
    n_objects: int
    answers: list[Answer]
    notes: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON types."""
        return asdict(self)


def search(
    path: str,
    words: str | None = None,
    *,
    like: str | None = None,
    queries: str | None = None,
    data: str | None = None,
    k: int = 10,
    compare: bool = False,
    trust_recorded_paths: bool = False,
) -> SearchReport:
    """Return the best objects for one query or several.

    Parameters
    ----------
    path : path
        The model file.
    words : str, optional
        The query, for a model that was trained on texts.
    like : str, optional
        Id of an object that is the query.
    queries : path, optional
        A file or a folder of queries.
    data : path, optional
        The collection; required unless `trust_recorded_paths` is set.
    k : int, default 10
    compare : bool, default False
        Add the results of the baseline.
    trust_recorded_paths : bool, default False
        Search the collection that the model file records if `data` is None.
    """
    n_given = sum(value is not None for value in (words, like, queries))
    if n_given != 1:
        raise ValueError(f"exactly one of WORDS, --like and --queries is required, got {n_given}")
    check_integer(k, "-k", at_least=1)
    trained = read_bundle(path)
    objects = read_objects(path, trained, data, trust_recorded_paths=trust_recorded_paths)
    asking = (
        read_query(trained, objects, words, like)
        if queries is None
        else read_items(queries, width=trained.queries.width)
    )
    Q, P = trained.queries.rows(asking), trained.objects.rows(objects)
    own = None if like is None else np.array([objects.ids.index(like)])
    unknown, is_baseline = ([], False) if words is None else _unknown_words(trained, words)
    baseline = None
    if compare or is_baseline:
        rows = baseline_rows(objects, asking)
        if rows is None:
            raise ValueError("--compare needs queries and objects with the same features")
        if is_baseline and not rows[0].nnz:
            raise ValueError(f"no text in {objects.source} contains any of the words {words!r:.100}")
        baseline = best_objects(Cosine(), *rows, k, own)
    if is_baseline and baseline is not None:
        found = baseline
    else:
        with threadpool_limits(1):
            found = best_objects(trained.model, Q, P, k, own)
    answers = [
        Answer(
            query=words if words is not None else asking.ids[at],
            text=None if asking.texts is None else asking.texts[at],
            unknown_words=unknown,
            is_baseline=is_baseline,
            hits=_hits(found, at, objects, asking),
            baseline=_hits(baseline, at, objects, asking) if compare and baseline is not None else None,
        )
        for at in range(len(asking))
    ]
    return SearchReport(path, objects.source, len(objects), answers, objects.notes)


def best_objects(model: Any, Q: Matrix, P: Matrix, k: int, own: NDArray[np.int64] | None = None) -> Hits:
    """Return the k best objects of every query; `own` has the row of each query among the objects, to leave out."""
    found = Index(model, P).search(Q, min(k + (own is not None), P.shape[0]))
    if own is None:
        return found
    order = np.argsort(found.ids == own[:, np.newaxis], axis=1, kind="stable")[:, : min(k, P.shape[0] - 1)]
    return Hits(*(None if part is None else np.take_along_axis(part, order, axis=1) for part in found))  # type: ignore[arg-type]


def _hits(found: Hits, at: int, objects: Items, asking: Items) -> list[Hit]:
    query = "" if asking.texts is None else asking.texts[at]
    return [
        Hit(
            rank=rank,
            id=objects.ids[row],
            score=float(found.scores[at, rank - 1]),
            std=None if found.stds is None else float(found.stds[at, rank - 1]),
            label=None if objects.labels is None else objects.labels[row],
            text=None if objects.texts is None else snippet(objects.texts[row], query),
        )
        for rank, row in enumerate(found.ids[at].tolist(), start=1)
    ]


def _unknown_words(trained: TrainedModel, words: str) -> tuple[list[str], bool]:
    """Return the words that are not terms of the model, and whether these are all."""
    assert trained.queries.features is not None
    listed = list(dict.fromkeys(trained.queries.features.words(words)))
    terms = set(trained.queries.features.terms_.tolist())
    unknown = [word for word in listed if word not in terms]
    return unknown, len(unknown) == len(listed)

"""The best objects for a query, by any model; words, an object of the collection or a file of queries may ask."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from .._utils.checks import check_integer
from .._utils.nearest import top_k
from .._utils.rows import Matrix
from ..io.items import Items, read_items
from ..learners import Similarity, TripletLearner
from ..search import Index
from .baseline import Cosine, baseline_rows
from .bundle import Trained
from .problem import notes_of
from .snippets import snippet

_SCORES_AT_ONCE = 2**22


class Best(NamedTuple):
    """The best objects of each query, the best first."""

    rows: NDArray[np.int64]
    scores: NDArray[Any]
    stds: NDArray[Any] | None


@dataclass(frozen=True, slots=True)
class Hit:
    """An object that was found."""

    rank: int
    id: str
    score: float
    std: float | None
    """Standard deviation of the score; None where the model does not know."""
    label: str | None
    text: str | None
    """Where words of the query are in it, or its beginning."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A query, with what was found for it."""

    query: str
    """Its id, or the words themselves."""
    text: str | None
    unknown_words: list[str]
    """Words that the model has not seen, or that say too little."""
    is_plain: bool
    """Whether the model knows none of the words, so that they were looked for as they are."""
    hits: list[Hit]
    before: list[Hit] | None
    """What the search of before finds; None when nobody wanted to know."""


@dataclass(frozen=True, slots=True)
class SearchReport:
    """What `search` found."""

    model: str
    data: str
    n_objects: int
    answers: list[Asked]
    notes: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Give the report as JSON knows it."""
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
) -> SearchReport:
    """Find the best objects.

    Parameters
    ----------
    path : path
        Of the model file.
    words : str, optional
        What to look for, when the model was learned on texts.
    like : str, optional
        Id of an object to find others like it.
    queries : path, optional
        A file or a folder of queries.
    data : path, optional
        Where to look; what the model was learned on when it is not given.
    k : int, default 10
    compare : bool, default False
        Show what the cosine finds, too.
    """
    given = [value is not None for value in (words, like, queries)]
    if sum(given) != 1:
        raise ValueError("say what to look for in one way: words, --like an id, or --queries a file")
    check_integer(k, "-k", at_least=1)
    trained = Trained.load(path)
    objects = read_objects(trained, data)
    asking = _queries(trained, objects, words, like, queries)
    own = None if like is None else np.array([objects.ids.index(like)])
    unknown, is_plain = ([], False) if words is None else _unknown(trained, words)
    before = None
    if compare or is_plain:
        rows = baseline_rows(objects, asking)
        if rows is None:
            raise ValueError("--compare needs queries and objects with the same features")
        if is_plain and not rows[0].nnz:
            raise ValueError(f"nothing in {objects.source} holds any of these words: {words!r}")
        before = best(Cosine(), *rows, k, own)
    if is_plain and before is not None:
        found = before
    else:
        with threadpool_limits(1):
            found = best(trained.model, trained.queries.rows(asking), trained.objects.rows(objects), k, own)
    answers = [
        Asked(
            query=words if words is not None else asking.ids[at],
            text=None if asking.texts is None else asking.texts[at],
            unknown_words=unknown,
            is_plain=is_plain,
            hits=_hits(found, at, objects, asking),
            before=_hits(before, at, objects, asking) if compare and before is not None else None,
        )
        for at in range(len(asking))
    ]
    return SearchReport(path, objects.source, len(objects), answers, notes_of(objects))


def read_objects(trained: Trained, data: str | None) -> Items:
    """Read where to look: what is named, or what the model was learned on."""
    source = data if data is not None else trained.about.get("data")
    if not isinstance(source, str):
        raise ValueError("the model does not tell what it was learned on: say where to look with --data")
    try:
        return read_items(source, width=trained.objects.width)
    except FileNotFoundError as error:
        if data is not None:
            raise
        raise FileNotFoundError(f"{error}; it is what the model was learned on, --data names another") from None


def read_query(trained: Trained, objects: Items, words: str | None, like: str | None) -> Items:
    """Give one query: words, or an object of the collection."""
    if words is not None:
        if trained.queries.what != "texts":
            raise ValueError("the model was learned on vectors and knows no words: give --like an id, or --queries")
        if not words.strip():
            raise ValueError("say what to look for: there are no words")
        return Items("the words", [words], texts=[words])
    assert like is not None
    if trained.queries is not trained.objects:
        raise ValueError("queries have other features than objects, so that no object can ask: give --queries")
    if like not in objects.ids:
        raise ValueError(f"--like: nothing in {objects.source} has the id {like!r}; ids are such as {objects.ids[0]!r}")
    row = objects.ids.index(like)
    texts = None if objects.texts is None else [objects.texts[row]]
    return Items(objects.source, [like], None if objects.vectors is None else objects.vectors[[row]], texts)


def _queries(trained: Trained, objects: Items, words: str | None, like: str | None, queries: str | None) -> Items:
    if queries is None:
        return read_query(trained, objects, words, like)
    return read_items(queries, width=trained.queries.width)


def best(model: Any, Q: Matrix, P: Matrix, k: int, own: NDArray[np.int64] | None = None) -> Best:
    """Find the k best objects for every query; `own` has the row that each query is, which it does not find."""
    wanted = min(k + (own is not None), P.shape[0])
    if isinstance(model, TripletLearner):
        found = Best(*Index(model, P).search(Q, wanted))
    else:
        parts = [top_k(scores, wanted) for scores in _blocks(model, Q, P)]
        rows, scores = (np.concatenate(part) for part in zip(*parts, strict=True))
        found = Best(rows, scores, None)
    return found if own is None else _without(found, own, min(k, P.shape[0] - 1))


def _blocks(model: Similarity | Cosine, Q: Matrix, P: Matrix) -> Iterator[NDArray[Any]]:
    step = max(1, _SCORES_AT_ONCE // P.shape[0])
    for start in range(0, Q.shape[0], step):
        yield model.similarity(Q[start : start + step], P)


def _without(found: Best, own: NDArray[np.int64], k: int) -> Best:
    """Leave out what each query is itself, and the last where it was not found."""
    order = np.argsort(found.rows == own[:, np.newaxis], axis=1, kind="stable")[:, :k]
    parts = [None if part is None else np.take_along_axis(part, order, axis=1) for part in found]
    return Best(*parts)  # type: ignore[arg-type]


def _hits(found: Best, at: int, objects: Items, asking: Items) -> list[Hit]:
    wanted = "" if asking.texts is None else asking.texts[at]
    return [
        Hit(
            rank=place + 1,
            id=objects.ids[row],
            score=float(found.scores[at, place]),
            std=None if found.stds is None else float(found.stds[at, place]),
            label=None if objects.labels is None else objects.labels[row],
            text=None if objects.texts is None else snippet(objects.texts[row], wanted),
        )
        for place, row in enumerate(found.rows[at].tolist())
    ]


def _unknown(trained: Trained, words: str) -> tuple[list[str], bool]:
    """Give words that are no terms of the model, and whether there is no other."""
    assert trained.queries.features is not None
    listed = list(dict.fromkeys(trained.queries.features.words(words)))
    known = set(trained.queries.features.terms_.tolist())
    unknown = [word for word in listed if word not in known]
    return unknown, len(unknown) == len(listed)

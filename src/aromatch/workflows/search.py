"""Search a collection with a trained model: by words, by an object of the collection, or by a file of queries."""

from __future__ import annotations

import re
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

_WORD = re.compile(r"\w{3,}")
_SNIPPET_LENGTH = 200
_SNIPPET_LINES = 400


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
        The collection; by default the one that the model was trained on.
    k : int, default 10
    compare : bool, default False
        Add the results of the baseline.
    """
    if sum(value is not None for value in (words, like, queries)) != 1:
        raise ValueError("give the query in one way: words, --like an id, or --queries a file")
    check_integer(k, "-k", at_least=1)
    trained = read_bundle(path)
    objects = read_objects(trained, data)
    asking = (
        read_query(trained, objects, words, like)
        if queries is None
        else read_items(queries, width=trained.queries.width)
    )
    own = None if like is None else np.array([objects.ids.index(like)])
    unknown, is_baseline = ([], False) if words is None else _unknown_words(trained, words)
    baseline = None
    if compare or is_baseline:
        rows = baseline_rows(objects, asking)
        if rows is None:
            raise ValueError("--compare needs queries and objects with the same features")
        if is_baseline and not rows[0].nnz:
            raise ValueError(f"no text in {objects.source} contains any of the words {words!r}")
        baseline = best_objects(Cosine(), *rows, k, own)
    if is_baseline and baseline is not None:
        found = baseline
    else:
        with threadpool_limits(1):
            found = best_objects(trained.model, trained.queries.rows(asking), trained.objects.rows(objects), k, own)
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


def read_objects(trained: TrainedModel, data: str | None) -> Items:
    """Read the collection; by default the one that the model was trained on."""
    source = data if data is not None else trained.metadata.get("data")
    if not isinstance(source, str):
        raise ValueError("the model file does not name its training data: give the collection with --data")
    try:
        return read_items(source, width=trained.objects.width)
    except FileNotFoundError as error:
        if data is not None:
            raise
        raise FileNotFoundError(f"{error}; the model was trained on it, --data names another collection") from None


def read_query(trained: TrainedModel, objects: Items, words: str | None, like: str | None) -> Items:
    """Return one query: words, or an object of the collection."""
    if words is not None:
        if trained.queries.what != "texts":
            raise ValueError("the model was trained on vectors, not on texts: give --like an id, or --queries a file")
        if not words.strip():
            raise ValueError(f"the query must contain words, got {words!r}")
        return Items("the query", [words], texts=[words])
    assert like is not None
    if trained.queries is not trained.objects:
        raise ValueError("--like needs queries with the features of objects: give --queries a file")
    if like not in objects.ids:
        raise ValueError(f"--like: {objects.source} has no id {like!r}; ids are such as {objects.ids[0]!r}")
    return objects.select([objects.ids.index(like)])


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


def snippet(text: str, query: str) -> str:
    r"""Return the line with most words of the query, or the first line with words, without control characters.

    >>> snippet("A letter\n\nThe shuttle flew to the moon.\nBye", "moon shuttle")
    'The shuttle flew to the moon.'
    """
    words = {word.lower() for word in _WORD.findall(query)}
    lines = lines_with_words(text)
    scores = [len(words & {word.lower() for word in _WORD.findall(line)}) for line in lines]
    return clean_line(lines[scores.index(max(scores))] if lines else text)


def lines_with_words(text: str) -> list[str]:
    """Return the lines that contain words, among the first 400."""
    return [line for line in text.splitlines()[:_SNIPPET_LINES] if _WORD.search(line)]


def clean_line(line: str) -> str:
    """Return at most 200 printable characters, so that a text cannot control the terminal."""
    kept = "".join(letter if letter.isprintable() else " " for letter in line[: 4 * _SNIPPET_LENGTH])
    short = " ".join(kept.split())
    return short if len(short) <= _SNIPPET_LENGTH else short[: _SNIPPET_LENGTH - 1] + "…"

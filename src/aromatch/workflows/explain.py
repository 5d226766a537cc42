"""Explain a score by the pairs of terms or features that contribute most to it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from threadpoolctl import threadpool_limits

from .._utils.checks import check_integer
from ..search import explain as explain_score
from .bundle import read_bundle
from .collection import read_objects, read_query
from .snippets import snippet


@dataclass(frozen=True, slots=True)
class Contribution:
    """The contribution of one pair of features to a score."""

    of_query: str
    of_object: str
    value: float
    std: float | None
    """Standard deviation; None if the model has none."""


@dataclass(frozen=True, slots=True)
class ExplainReport:
    """The result of `explain`."""

    model: str
    query: str
    object: str
    text: str | None
    score: float
    std: float | None
    contributions: list[Contribution]
    """Largest first."""
    rest: float
    """Sum of all other contributions."""
    notes: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON types."""
        return asdict(self)


def explain(
    path: str,
    one: str,
    words: str | None = None,
    *,
    like: str | None = None,
    data: str | None = None,
    top: int = 10,
    trust_recorded_paths: bool = False,
) -> ExplainReport:
    """Explain the score of an object, by its id, for words or for another object.

    The collection is `data`, or with `trust_recorded_paths` the one that the model file records.
    """
    if (words is None) == (like is None):
        raise ValueError(f"exactly one of WORDS and --like is required, got {'neither' if words is None else 'both'}")
    check_integer(top, "--top", at_least=1)
    trained = read_bundle(path)
    if trained.queries is not trained.objects:
        raise ValueError("`aromatch explain` needs queries with the features of objects")
    objects = read_objects(path, trained, data, trust_recorded_paths=trust_recorded_paths)
    asking = read_query(trained, objects, words, like)
    if one not in objects.ids:
        raise ValueError(f"{objects.source} has no id {one!r:.100}; ids are such as {objects.ids[0]!r:.100}")
    found = objects.select([objects.ids.index(one)])
    q, p, model = trained.queries.rows(asking), trained.objects.rows(found), trained.model
    names = trained.objects.feature_names()
    with threadpool_limits(1):
        explained = explain_score(model, q, p, top, query_names=names, object_names=names)
        std = float(model.pair_std(q, p)[0]) if hasattr(model, "pair_std") else None
    contributions = [
        Contribution(str(part.query_feature), str(part.object_feature), part.value, part.std)
        for part in explained.parts
    ]
    text = None if found.texts is None else snippet(found.texts[0], words or "")
    query, rest = words or str(like), explained.rest
    return ExplainReport(path, query, one, text, explained.score, std, contributions, rest, objects.notes)

"""Why an object was found: the pairs of terms, or of features, that make its score."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from threadpoolctl import threadpool_limits

from .._utils.checks import check_integer
from ..search import explain as explain_score
from .bundle import Trained
from .search import read_objects, read_query
from .snippets import snippet


@dataclass(frozen=True, slots=True)
class Reason:
    """What one pair of features adds to a score."""

    of_query: str
    of_object: str
    value: float
    std: float | None
    """Its standard deviation; None where the model does not know."""


@dataclass(frozen=True, slots=True)
class ExplainReport:
    """Why a score is what it is."""

    model: str
    query: str
    object: str
    text: str | None
    score: float
    std: float | None
    reasons: list[Reason]
    """The largest first."""
    rest: float
    """What all other pairs add."""

    def to_dict(self) -> dict[str, Any]:
        """Give the report as JSON knows it."""
        return asdict(self)


def explain(
    path: str, one: str, words: str | None = None, *, like: str | None = None, data: str | None = None, top: int = 10
) -> ExplainReport:
    """Tell why an object, by its id, is found for words or for another object."""
    if (words is None) == (like is None):
        raise ValueError("say what was looked for in one way: words, or --like an id")
    check_integer(top, "--top", at_least=1)
    trained = Trained.load(path)
    objects = read_objects(trained, data)
    asking = read_query(trained, objects, words, like)
    if one not in objects.ids:
        raise ValueError(f"nothing in {objects.source} has the id {one!r}; ids are such as {objects.ids[0]!r}")
    found = read_query(trained, objects, None, one) if trained.queries is trained.objects else None
    if found is None:
        raise ValueError("queries have other features than objects: `explain` cannot tell of those yet")
    q, p = trained.queries.rows(asking), trained.objects.rows(found)
    model: Any = trained.model
    with threadpool_limits(1):
        names = [side.feature_names() for side in (trained.queries, trained.objects)]
        why = explain_score(model, q, p, top, query_names=names[0], object_names=names[1])
        std = float(model.pair_std(q, p)[0]) if hasattr(model, "pair_std") else None
    reasons = [Reason(str(part.query_feature), str(part.object_feature), part.value, part.std) for part in why.parts]
    text = None if found.texts is None else snippet(found.texts[0], words or "")
    return ExplainReport(path, words or str(like), one, text, why.score, std, reasons, why.rest)

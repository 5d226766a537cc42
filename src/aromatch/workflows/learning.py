"""The learners by the names that the command line has for them, and the steps in which they learn.

- ``auto``, the default: the one of ``moment`` and ``diagonal`` that is best for queries that it has not seen
  (`workflows.choosing`). Both know how sure they are.
- ``moment``: `MomentAROMA`, which chooses its own regularisation and combines judgements of the same rows. Best
  where there are many of those, as labels give them.
- ``refined``: the best ranking we know for queries and objects with the same features, `TripletEmbedding`.
  It has no confidence, and cannot be asked what to compare next.
- ``diagonal``, ``factored``: the paper's AROMA, one triplet at a time, from the plain similarity on.
- ``oasis``: the paper's baseline.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._utils.checks import check_choice, check_integer, check_number
from .._utils.progress import progress_bar
from .._utils.rows import Matrix
from ..exceptions import NoSignalError
from ..learners import (
    OASIS,
    DiagonalAROMA,
    FactoredAROMA,
    MomentAROMA,
    Similarity,
    TripletEmbedding,
)
from .checkpoints import Checkpoint
from .choosing import Tried, choose, name_of
from .problem import Numbers

LEARNERS = ("auto", "moment", "refined", "diagonal", "factored", "oasis")
_ONLINE: dict[str, type[Any]] = {"diagonal": DiagonalAROMA, "factored": FactoredAROMA, "oasis": OASIS}
# What each setting is for, and its name in Python.
_FOR = {
    "r": ("diagonal", "factored"),
    "C": ("oasis",),
    "init": tuple(_ONLINE),
    "lam": ("moment", "refined"),
}
# Of the demo: chosen on a part of its training part.
_DEFAULTS: dict[str, dict[str, Any]] = {"diagonal": {"r": 1.0}, "factored": {"r": 0.1}, "oasis": {"C": 0.1}}
_WIDE = 2000
# Triplets between two looks at the clock.
_AT_ONCE = {"diagonal": 2**13, "factored": 2**9, "oasis": 2**13}


@dataclass(frozen=True, slots=True)
class Settings:
    """Which learner, and how it is set; None means what is best as far as we know."""

    learner: str = "auto"
    r: float | None = None
    C: float | None = None
    lam: float | None = None
    init: str | None = None
    draws: int = 50_000
    """Triplets to draw from labels."""

    def to_dict(self) -> dict[str, Any]:
        """Give what was set."""
        return {name: value for name, value in asdict(self).items() if value is not None and name != "learner"}


class Lesson(NamedTuple):
    """Rows, and triplets of them."""

    Q: Matrix
    P: Matrix | None
    """None when the queries are the objects."""
    triplets: Numbers
    weights: NDArray[np.float64] | None
    labels: NDArray[Any] | None = None
    """Of all rows, where triplets were drawn from them."""


class Learned(NamedTuple):
    """A model, and what there is to tell of how it came about."""

    model: Similarity
    settings: Settings
    """Those that were used."""
    tried: list[Tried]
    notes: list[str]


def learn(lesson: Lesson, settings: Settings, seed: int, checkpoint: Checkpoint) -> Learned:
    """Learn all triplets, from a checkpoint on where there is one."""
    _check(settings)
    begun = checkpoint.load()  # whatever the learner: one of another run must not be lost
    tried: list[Tried] = []
    notes: list[str] = []
    if settings.learner == "auto":
        settings, tried, notes = choose(lesson, settings, seed, lambda part, one: _learn(part, one, seed)[0])
    model, more = _learn(lesson, settings, seed, checkpoint, begun)
    return Learned(model, settings, tried, notes + more)


def _learn(
    lesson: Lesson,
    settings: Settings,
    seed: int,
    checkpoint: Checkpoint | None = None,
    begun: Similarity | None = None,
) -> tuple[Similarity, list[str]]:
    if settings.learner == "moment":
        return _moment(lesson, settings)
    if settings.learner == "refined":
        return _refined(lesson, settings, seed)
    model: Any = begun
    if model is None:
        widths = lesson.Q.shape[1], lesson.Q.shape[1] if lesson.P is None else lesson.P.shape[1]
        set_by_hand = {name: getattr(settings, name) for name in ("r", "C") if getattr(settings, name) is not None}
        given = {**_DEFAULTS[settings.learner], **set_by_hand, "init": _init(settings.init, widths[0] == widths[1])}
        # Half the room, where a model takes hundreds of megabytes.
        given["dtype"] = "float32" if max(widths) > _WIDE else "float64"
        model = _ONLINE[settings.learner](**given)
    description = f"learning ({settings.learner})" if checkpoint else f"trying {name_of(settings)}"
    return _online(model, lesson, settings.learner, description, checkpoint), []


def _check(settings: Settings) -> None:
    check_choice(settings.learner, "--learner", LEARNERS)
    check_integer(settings.draws, "--draws", at_least=1)
    for name in _FOR:
        if getattr(settings, name) is not None and not _is_for(name, settings):
            option = f"--{name}" if len(name) > 1 else f"--{name.lower()}"
            raise ValueError(f"{option} is for {' and '.join(_FOR[name])}, not for {settings.learner}")
    for name in ("r", "C", "lam"):
        if (value := getattr(settings, name)) is not None:
            check_number(value, f"--{name.lower()}", above=0)


def _is_for(name: str, settings: Settings) -> bool:
    return settings.learner in _FOR[name]


def _init(given: str | None, is_square: bool) -> Any:
    """Begin with the plain similarity where there is one: what is not judged stays as it was."""
    if given is None:
        return "identity" if is_square else "zero"
    if given in ("zero", "identity"):
        return given
    try:
        return check_number(float(given), "--init")
    except ValueError:
        raise ValueError(f"--init must be zero, identity or a number, got {given!r}") from None


def _online(model: Any, lesson: Lesson, name: str, description: str, checkpoint: Checkpoint | None) -> Similarity:
    """Learn a piece at a time; Ctrl-C, or the end of the machine, loses what is since the last checkpoint at most."""
    Q, P, triplets, weights, _ = lesson
    if not hasattr(model, "n_features_in_"):
        model.fit_triplets(triplets[:0], Q, P)
    n, step = len(triplets), _AT_ONCE[name]
    try:
        with progress_bar(description, n) as advance:
            advance(model.n_triplets_seen_, _share_of_updates(model))
            while (done := model.n_triplets_seen_) < n:
                some = slice(done, done + step)
                of_some = None if weights is None else weights[some]
                model.partial_fit_triplets(triplets[some], Q, P, sample_weight=of_some)
                advance(model.n_triplets_seen_ - done, _share_of_updates(model))
                if checkpoint is not None:
                    checkpoint.perhaps_save(model)
    except KeyboardInterrupt:
        if checkpoint is not None:  # after the bar has gone, which would write over what is said
            checkpoint.save(model)
        raise
    return model  # type: ignore[no-any-return]


def _share_of_updates(model: Any) -> str:
    return f"{model.n_updates_ / max(1, model.n_triplets_seen_):.0%} updates"


def _moment(lesson: Lesson, settings: Settings) -> tuple[Similarity, list[str]]:
    Q, P, triplets, weights, labels = lesson
    lam: Any = "auto" if settings.lam is None else settings.lam
    if labels is not None:  # all triplets that labels allow, without drawing one
        model = MomentAROMA(lam).fit(Q, labels)
    else:
        model = MomentAROMA(lam, denoise=True, verbose=True)
        model.fit_triplets(triplets, Q, P, sample_weight=weights)
    return model.finalized(), []


def _refined(lesson: Lesson, settings: Settings, seed: int) -> tuple[Similarity, list[str]]:
    Q, P, triplets, weights, _ = lesson
    if P is not None and P.shape[1] != Q.shape[1]:
        raise ValueError(
            f"refined needs queries and objects with the same features, got {Q.shape[1]:,} and {P.shape[1]:,}; "
            "moment does not"
        )
    lam: Any = "auto" if settings.lam is None else settings.lam
    notes: list[str] = []
    model = TripletEmbedding("spectral", alpha=lam, random_state=seed, verbose=True)
    try:
        model.fit_triplets(triplets, Q, P, sample_weight=weights)
    except NoSignalError:
        notes.append("judgements are few for their rows: began with moment, since nothing stands out of their graph")
        model.set_params(method="moment", alpha="auto").fit_triplets(triplets, Q, P, sample_weight=weights)
    return model, notes

"""Learn a model from a collection and what was said about it, in a way that can be stopped and taken up again.

Queries that are held out are not looked at: neither terms nor scales nor the model know them. The same settings and
files give the same file, to the bit, however often the work was interrupted.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.utils.extmath import row_norms
from threadpoolctl import threadpool_limits

from .._utils.rows import Matrix
from ..learners import Similarity
from ..triplets import from_labels
from .bundle import Trained
from .checkpoints import Checkpoint, digest_of
from .choosing import name_of
from .learning import Lesson, Settings, learn
from .preparation import Preparation, prepare_texts, prepare_vectors
from .problem import Numbers, Problem, marks, read_problem, split

# Comparisons that were not learned and tell how often predictions come true, at most.
_MOST_PREDICTIONS = 5_000
# With labels, and without: then a term is chosen for being frequent, which rare words of a query are not.
_TERMS = {True: 1_000, False: 4_000}


@dataclass(frozen=True, slots=True)
class Training:
    """What to learn from, what to learn, and where to put it."""

    data: str
    output: str
    queries: str | None = None
    labels: str | None = None
    triplets: str | None = None
    qrels: str | None = None
    clicks: str | None = None
    missing: str = "error"
    settings: Settings = field(default_factory=Settings)
    terms: int | None = None
    """Terms of texts; None is 1,000 with labels, which choose them well, and 4,000 without."""
    scale: str = "auto"
    hold_out: float = 0.0
    seed: int = 0
    restart: bool = False
    checkpoint_seconds: float = 30.0

    @property
    def files(self) -> dict[str, str | None]:
        """The files of what was said, by kind."""
        return {"labels": self.labels, "triplets": self.triplets, "qrels": self.qrels, "clicks": self.clicks}


@dataclass(frozen=True, slots=True)
class TrainReport:
    """What `train` did."""

    output: str
    """The model file."""
    n_bytes: int
    learner: str
    """What was learned with, in the words of the command line."""
    tried: list[dict[str, Any]]
    """Learners that were tried on queries held out from them, when nobody said which."""
    model: str
    """The model with its settings, as Python writes it."""
    data: str
    n_objects: int
    what: str
    """Whether objects are texts or vectors."""
    n_queries: int
    """Queries that were learned from."""
    n_held_out: int
    supervision: str
    """What was said about them, in a few words."""
    prepared: str
    """How rows were made."""
    n_triplets: int
    n_updates: int | None
    """Triplets that changed the model; None where nobody counts them."""
    resumed_from: int
    """Triplets that an earlier run had learned; 0 when there was none."""
    seed: int
    seconds: float
    notes: list[str]
    """What else there is to know."""

    def to_dict(self) -> dict[str, Any]:
        """Give the report as JSON knows it."""
        return asdict(self)


def train(wanted: Training) -> TrainReport:
    """Learn a model and write it to a file."""
    begun = perf_counter()
    _check_output(wanted.output)
    problem = read_problem(wanted.data, wanted.queries, missing=wanted.missing, seed=wanted.seed, files=wanted.files)
    known, held = split(problem, wanted.hold_out, wanted.seed)
    objects, queries = prepare(problem, known, wanted.terms, wanted.scale)
    lesson = _lesson(problem, objects, queries, known, wanted)
    notes = [*problem.notes(), *_empty_rows(lesson, problem)]
    about = _about(wanted, problem, len(known), len(held))
    learned = np.unique(marks(problem.who_asks, known))

    def with_all(model: Similarity) -> Trained:
        return Trained(model, objects, queries, about, learned)

    digest = digest_of(about, lesson)
    checkpoint = Checkpoint(wanted.output, digest, with_all, wanted.checkpoint_seconds, restart=wanted.restart)
    with threadpool_limits(1):  # the same bits on any number of cores
        model, used, tried, told = learn(lesson, wanted.settings, wanted.seed, checkpoint)
        notes += told
        about["used"] = {"learner": used.learner, **used.to_dict()}
        about["n_predicted"] = _calibrate(model, problem, objects, queries, held, wanted.seed)
        with_all(model).save(wanted.output)
    checkpoint.remove()
    return TrainReport(
        output=wanted.output,
        n_bytes=os.path.getsize(wanted.output),
        learner=name_of(used),
        tried=[one.to_dict() for one in tried],
        model=" ".join(repr(model).split()),
        data=wanted.data,
        n_objects=len(problem.objects),
        what=problem.objects.what,
        n_queries=len(known),
        n_held_out=len(held),
        supervision=problem.supervision.told,
        prepared=str(objects),
        n_triplets=int(getattr(model, "n_triplets_seen_", len(lesson.triplets))),
        n_updates=getattr(model, "n_updates_", None),
        resumed_from=checkpoint.resumed_from,
        seed=wanted.seed,
        seconds=perf_counter() - begun,
        notes=notes,
    )


def prepare(problem: Problem, known: Numbers, terms: int | None, scale: str) -> tuple[Preparation, Preparation]:
    """Find out how to make rows of objects and of queries, without a look at what is held out."""
    of_labels = problem.supervision.kind == "labels"
    labels = problem.supervision.labels if problem.queries is None else problem.supervision.object_labels
    # With labels every row is a query, and those that are held out are out as objects too.
    rows = known if of_labels and problem.queries is None else np.arange(len(problem.objects))
    if problem.objects.texts is not None:
        usable = rows if labels is None else rows[labels[rows] != None]  # noqa: E711
        n_terms = terms if terms is not None else _TERMS[labels is not None]
        objects = prepare_texts(problem.objects, usable, None if labels is None else labels[usable], n_terms)
        return objects, objects
    objects = prepare_vectors(problem.objects, rows, scale)
    if problem.queries is None or problem.queries.vectors.shape[1] == objects.width:  # type: ignore[union-attr]
        return objects, objects
    return objects, prepare_vectors(problem.queries, known, scale)


def _lesson(problem: Problem, objects: Preparation, queries: Preparation, known: Numbers, wanted: Training) -> Lesson:
    """Give rows, and triplets of them without any query that is held out."""
    said, P = problem.supervision, objects.rows(problem.objects)
    Q = P if problem.queries is None else queries.rows(problem.queries)
    if said.labels is None:
        assert said.triplets is not None
        is_known = np.isin(said.triplets[:, 0], known)
        weights = None if said.weights is None else said.weights[is_known]
        return Lesson(Q, None if Q is P else P, said.triplets[is_known], weights)
    n = wanted.settings.draws
    if problem.queries is None:
        X, y = P[known], said.labels[known]
        return Lesson(X, None, from_labels(y, n, wanted.seed), None, y)
    assert said.object_labels is not None
    there = np.flatnonzero(said.object_labels != None)  # noqa: E711
    triplets = from_labels(said.labels[known], n, wanted.seed, said.object_labels[there])
    return Lesson(Q[known], P[there], triplets, None)


def _about(wanted: Training, problem: Problem, n_known: int, n_held: int) -> dict[str, Any]:
    """Tell what the model is learned on: nothing of when, so that the same work gives the same file."""
    return {
        "made_by": f"aromatch {version('aromatch')}",
        "learner": wanted.settings.learner,
        "settings": wanted.settings.to_dict(),
        "seed": wanted.seed,
        "data": wanted.data,
        "queries": wanted.queries,
        "files": {kind: path for kind, path in wanted.files.items() if path is not None},
        "missing": wanted.missing,
        "what": problem.objects.what,
        "n_objects": len(problem.objects),
        "n_queries": n_known,
        "n_held_out": n_held,
        "hold_out": wanted.hold_out,
        "supervision": problem.supervision.told,
    }


def _calibrate(
    model: Any, problem: Problem, objects: Preparation, queries: Preparation, held: Numbers, seed: int
) -> int:
    """Let the model predict comparisons of queries that it does not know; give how many."""
    said = problem.supervision
    if not len(held):
        return 0
    P: Matrix = objects.rows(problem.objects)
    Q = P if problem.queries is None else queries.rows(problem.queries)
    if said.labels is None:
        assert said.triplets is not None
        triplets = said.triplets[np.isin(said.triplets[:, 0], held)][:_MOST_PREDICTIONS]
    else:
        try:
            if problem.queries is None:
                drawn = from_labels(said.labels[held], _MOST_PREDICTIONS, seed)
                triplets = held[drawn]
            else:
                assert said.object_labels is not None
                there = np.flatnonzero(said.object_labels != None)  # noqa: E711
                drawn = from_labels(said.labels[held], _MOST_PREDICTIONS, seed, said.object_labels[there])
                triplets = np.column_stack([held[drawn[:, 0]], there[drawn[:, 1]], there[drawn[:, 2]]])
        except ValueError:  # what is held out has one label, or each only once
            return 0
    model.calibrate(triplets, Q, None if Q is P else P)
    return len(triplets)


def _empty_rows(lesson: Lesson, problem: Problem) -> list[str]:
    """Tell of rows without a single number: no model can say anything of them."""
    P = lesson.Q if lesson.P is None else lesson.P
    n_empty = int(np.count_nonzero(row_norms(P) == 0))
    return [f"{n_empty:,} {problem.objects.what} have none of the terms or only zeros"] if n_empty else []


def _check_output(path: str) -> None:
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"cannot write {path}: the folder {folder} is not there")
    if os.path.isdir(path):
        raise IsADirectoryError(f"cannot write {path}: it is a folder, expected the name of a file")

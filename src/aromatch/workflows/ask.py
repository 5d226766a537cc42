"""Ask people, or a program, for comparisons that are worth knowing, and learn the answers.

Every answer is written to a log at once, before it is learned. The log is a file of triplets that `train` takes, and
replayed on the model that it began with it gives the same model, to the bit.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import time
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from .._utils.checks import check_integer
from .._utils.rows import Matrix
from ..io.items import Items, read_items
from ..io.records import Record, records
from ..learners import DiagonalAROMA, MomentAROMA
from .bundle import Trained
from .questions import Triplet, worth_asking
from .search import read_objects

PERSON, JUDGE = "person", "judge"
_MARGINS_LOOKED_AT = 2_000


class Thing(NamedTuple):
    """A query or an object, to be shown."""

    id: str
    text: str | None


class Question(NamedTuple):
    """A comparison: which of two objects is better for a query."""

    query: Thing
    first: Thing
    second: Thing
    number: int
    """From 1."""


# Takes a question; gives 1, 2, or 0 for neither. Raises EOFError when there are to be no more.
Answerer = Callable[[Question], int]


@dataclass(frozen=True, slots=True)
class AskReport:
    """What came of it."""

    model: str
    """Where the model was written."""
    log: str
    n_asked: int
    n_learned: int
    n_skipped: int
    n_surprises: int
    """Answers that were not what the model thought."""
    n_compared: int
    """People's answers that a judge was asked for too."""
    n_disagreed: int
    """Those that it answered in another way."""
    seed: int
    notes: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Give the report as JSON knows it."""
        return asdict(self)


class _Session:
    """A model with rows to ask about."""

    def __init__(self, path: str, data: str | None, queries: str | None) -> None:
        self.trained = Trained.load(path)
        model: Any = self.trained.model
        if not hasattr(model, "learn_one") or not hasattr(model, "margin_std"):
            raise ValueError(
                f"{path} holds a {type(model).__name__}, which does not know how sure it is: "
                "train with --learner moment, diagonal or factored to ask"
            )
        self.objects = read_objects(self.trained, data)
        source = queries if queries is not None or data is not None else self.trained.about.get("queries")
        self.asking: Items | None = None if source is None else read_items(source, width=self.trained.queries.width)
        self.P: Matrix = self.trained.objects.rows(self.objects)
        self.Q: Matrix = self.P if self.asking is None else self.trained.queries.rows(self.asking)
        if self.P.shape[0] < 2 + (self.asking is None):
            raise ValueError(
                f"{self.objects.source} has {len(self.objects)} objects, too few to compare two for a query"
            )
        self.notes: list[str] = []
        if isinstance(model, MomentAROMA):
            self.trained.model = model = one_at_a_time(model, self.Q, self.P)
            self.notes.append(
                "answers are learned one at a time, by a DiagonalAROMA that begins with what moment found"
            )
        self.model = model
        self._rows = [{one: row for row, one in enumerate(items.ids)} for items in (self.who_asks, self.objects)]

    @property
    def who_asks(self) -> Items:
        return self.objects if self.asking is None else self.asking

    def question(self, triplet: Triplet, number: int) -> Question:
        sides = (self.who_asks, self.objects, self.objects)
        things = [
            Thing(items.ids[row], None if items.texts is None else items.texts[row])
            for items, row in zip(sides, triplet, strict=True)
        ]
        return Question(things[0], things[1], things[2], number)

    def rows(self, ids: tuple[str, str, str], where: str) -> Triplet:
        found = []
        for one, rows in zip(ids, (self._rows[0], self._rows[1], self._rows[1]), strict=True):
            if one not in rows:
                raise ValueError(f"{where}: nothing has the id {one!r}")
            found.append(rows[one])
        return found[0], found[1], found[2]

    def learn(self, query: int, better: int, worse: int) -> bool:
        """Learn a judgement; tell whether the model had thought otherwise."""
        told = self.model.learn_one(self.Q[[query]], self.P[[better]], self.P[[worse]])
        return bool(told.margin <= 0)

    def save(self, path: str) -> None:
        about = self.trained.about
        about["n_answers"] = int(about.get("n_answers", 0)) + self.n_learned
        self.trained.save(path)

    n_learned = 0


def one_at_a_time(model: MomentAROMA, Q: Matrix, P: Matrix) -> DiagonalAROMA:
    """Give an online learner that begins with what a closed form has found.

    Its lam is right for what all judgements say on average. A single one more, of words that hardly any other has, is
    multiplied with the inverse of next to nothing, and rankings get worse with every answer. Learned online from the
    same W they do not. Margins of 1 are what online learners aim at, so W is scaled until that is what margins are.
    """
    drawn = np.random.default_rng(0)
    sides = (Q.shape[0], P.shape[0], P.shape[0])
    some = np.column_stack([drawn.integers(n, size=_MARGINS_LOOKED_AT) for n in sides])
    typical = float(np.sqrt(np.mean(model.margins(some, Q, P) ** 2)))
    begun = DiagonalAROMA(init=model.W_ / typical if typical > 0 else model.W_)
    return begun.fit_triplets(some[:0], Q, P)


def ask(
    path: str,
    answer: Answerer,
    *,
    n: int = 10,
    by: str = PERSON,
    data: str | None = None,
    queries: str | None = None,
    log: str | None = None,
    output: str | None = None,
    seed: int = 0,
) -> AskReport:
    """Ask for comparisons, and learn the answers.

    Parameters
    ----------
    path : path
        Of the model file.
    answer : function
        Takes a question; gives 1, 2 or 0 for neither, or raises EOFError to end.
    n : int, default 10
        How many comparisons to ask.
    by : {"person", "judge"}
        Who answers. A judge is first asked what people have answered in the log, to see whether both agree; nothing is
        learned from that.
    data, queries : paths, optional
        What the model was learned on, when they are not given.
    log : path, optional
        Where answers are written to, at the end; the model file with ``.answers.jsonl`` when it is not given.
    output : path, optional
        Where the model is written to; in place of the old one when it is not given.
    seed : int, default 0
        Draws queries that are looked at.
    """
    check_integer(n, "-n", at_least=1)
    check_integer(seed, "--seed", at_least=0)
    session, target = _Session(path, data, queries), output or path
    log = log or f"{path}.answers.jsonl"
    answered = _answers(log) if os.path.exists(log) else []
    people = [one for one in answered if one.values.get("by") == PERSON]
    n_asked = n_skipped = n_surprises = n_compared = n_disagreed = 0
    asked: set[Triplet] = {session.rows(_ids(one), one.where) for one in answered}
    with threadpool_limits(1), open(log, "a", encoding="utf-8") as file:

        def note(**values: Any) -> None:
            file.write(json.dumps({**values, "time": time()}, ensure_ascii=False) + "\n")
            file.flush()

        note(session=session.model.n_triplets_seen_, model=path, seed=seed, by=by)
        try:
            for one in people[:n] if by == JUDGE else []:
                triplet = session.rows(_ids(one), one.where)
                choice = answer(session.question(triplet, n_compared + 1))
                n_compared += choice != 0
                n_disagreed += choice == 2  # what people preferred was shown first
            for number in range(1, n + 1):
                generator = np.random.default_rng([seed, number, session.model.n_triplets_seen_])
                found = worth_asking(session.model, session.Q, session.P, asked, generator, own=session.asking is None)
                if found is None:
                    break
                query, first, second = found
                # Not always the model's favourite first: people, and programs, prefer what they see first.
                if generator.random() < 0.5:
                    first, second = second, first
                asked.add((query, first, second))
                question = session.question((query, first, second), number)
                choice = answer(question)
                n_asked += 1
                shown = {"query": question.query.id, "first": question.first.id, "second": question.second.id}
                if choice == 0:
                    n_skipped += 1
                    note(skipped=True, **shown, by=by)
                    continue
                better, worse = (first, second) if choice == 1 else (second, first)
                ids = session.objects.ids
                note(query=question.query.id, better=ids[better], worse=ids[worse], by=by)
                n_surprises += session.learn(query, better, worse)
                session.n_learned += 1
        except EOFError:
            pass
        finally:
            if session.n_learned:
                session.save(target)
    notes = session.notes
    if by == JUDGE and not people:
        notes.append(f"no answers of people are in {log}, so that nobody can tell whether the judge agrees with them")
    counts = n_asked, session.n_learned, n_skipped, n_surprises, n_compared, n_disagreed
    return AskReport(target if session.n_learned else path, log, *counts, seed, notes)


def replay(path: str, log: str, output: str, *, data: str | None = None, queries: str | None = None) -> AskReport:
    """Learn the answers of a log, on the model that it began with."""
    if not Path(log).is_file():
        raise FileNotFoundError(f"{log} is not there, expected the log of `aromatch ask`")
    session = _Session(path, data, queries)
    n_surprises = n_skipped = 0
    with threadpool_limits(1):
        for where, values in _lines(log):
            if "session" in values:
                _check_same_start(session, values["session"], where)
            elif "skipped" in values:
                n_skipped += 1
            else:
                n_surprises += session.learn(*session.rows(_ids(Record(where, values)), where))
                session.n_learned += 1
        session.save(output)
    n = session.n_learned
    return AskReport(output, log, n + n_skipped, n, n_skipped, n_surprises, 0, 0, 0, session.notes)


def _check_same_start(session: _Session, seen: Any, where: str) -> None:
    mine = session.model.n_triplets_seen_
    if seen != mine:
        raise ValueError(
            f"{where}: the log goes on from a model that had learned {seen:,} triplets, this one has learned {mine:,}; "
            "replay it on the model that it began with"
            if isinstance(seen, int)
            else f"{where}: session must be a whole number, got {seen!r}"
        )


def _lines(log: str) -> Iterator[Record]:
    if Path(log).suffix.lower() != ".jsonl":
        raise ValueError(f"{log} must be a file .jsonl")
    return records(log, is_header=lambda row: False, unnamed=lambda n: [])


def _answers(log: str) -> list[Record]:
    """Give all comparisons of a log that were answered."""
    return [one for one in _lines(log) if "session" not in one.values and "skipped" not in one.values]


def _ids(one: Record) -> tuple[str, str, str]:
    absent = [name for name in ("query", "better", "worse") if not isinstance(one.values.get(name), str)]
    if absent:
        raise ValueError(f"{one.where} has no {absent[0]!r}, expected the log of `aromatch ask`")
    return one.values["query"], one.values["better"], one.values["worse"]

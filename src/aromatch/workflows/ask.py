"""Ask people or a program for comparisons, and learn the answers.

Candidates are pairs of objects near the top of a query's ranking; `suggest_comparisons` selects the one with the
smallest margin relative to its standard deviation (docs/studies.md compares selection rules).

The log decides. An answer counts once its record is on disk, and it is there before it is learned and before the next
question. A model file records how many answers of a log it contains (``"answers"`` in its metadata: by the hash of the
first record, their number and their hash), and `ask` and `replay` first learn those that it does not contain. So the
model is the one that the first session started from, with all answers learned in order, however often sessions were
interrupted or killed, and `replay` of the log on that first model writes a bit-identical file. A record that a crash
cut off was never acknowledged and is dropped. If a model learns in other ways between the sessions of a log, for
example from another log, it still learns every answer once, but `replay` refuses the log and `ask` adds a note.

The log is a triplet file for `train`. One process at a time appends to it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from time import time
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from .._utils.checks import check_integer
from .._utils.nearest import top_k
from .._utils.rows import Matrix
from ..io.items import Items, read_items
from ..io.record_log import RecordLog, read_log
from ..io.records import Record
from ..learners import DiagonalAROMA
from ..learners.registry import COMMANDS
from ..search import suggest_comparisons
from .bundle import read_bundle
from .collection import choose_sources
from .fitting import is_closed_form
from .supervision import TRIPLET

Triplet = tuple[int, int, int]

PERSON, PROGRAM = "person", "judge"
# Sampled queries, and objects at the top of their rankings, from which comparisons are selected.
_N_QUERIES, _N_TOP = 32, 6
_N_MARGINS = 2_000


class Shown(NamedTuple):
    """A query or an object in a question."""

    id: str
    text: str | None


class Question(NamedTuple):
    """A comparison: which of two objects is better for a query."""

    query: Shown
    first: Shown
    second: Shown
    number: int
    """From 1."""


# Takes a question and returns 1, 2, or 0 for neither; raises EOFError to end the session.
Answerer = Callable[[Question], int]


@dataclass(frozen=True, slots=True)
class AskReport:
    """The result of `ask` or `replay`."""

    model: str
    """The model file that was written."""
    log: str
    n_asked: int
    n_learned: int
    """Answers in this session, without those of earlier ones in the log."""
    n_skipped: int
    n_mispredicted: int
    """Answers that the model had predicted wrongly."""
    n_compared: int
    """Answers of people that the program was asked for as well."""
    n_disagreed: int
    """Answers of the program that differ from those of people."""
    seed: int
    notes: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON types."""
        return asdict(self)


class _Session:
    """A model with the rows to ask about."""

    n_learned = 0
    n_contained = 0
    """Answers of the log that the model contains: the first ones."""

    def __init__(self, path: str, data: str | None, queries: str | None, trust_recorded_paths: bool) -> None:
        self.trained = read_bundle(path)
        given = {"data": data, "queries": queries}
        source = choose_sources(path, self.trained, given, trust_recorded_paths=trust_recorded_paths)
        self.objects = read_items(source.data, width=self.trained.objects.width)
        self.queries: Items | None = None
        if source.queries is not None:
            self.queries = read_items(source.queries, width=self.trained.queries.width)
        self.asking = self.objects if self.queries is None else self.queries
        read = (self.objects,) if self.queries is None else (self.objects, self.queries)
        self.notes = [*source.notes, *(note for items in read for note in items.notes)]
        self.P: Matrix = self.trained.objects.rows(self.objects)
        self.Q: Matrix = self.P if self.queries is None else self.trained.queries.rows(self.queries)
        if self.P.shape[0] < 2 + (self.queries is None):
            raise ValueError(f"{self.objects.source} has {len(self.objects)} objects, too few for a comparison")
        model = self.trained.model
        if not hasattr(model, "learn_one"):
            able = [command for command, row in COMMANDS.items() if hasattr(row.cls, "learn_one")]
            raise ValueError(
                f"{path} contains a {type(model).__name__}, which cannot learn single answers: train with --learner "
                f"{', '.join(able)}"
            )
        if is_closed_form(model):
            self.trained.model = model = as_online(model, self.Q, self.P)
            self.notes.append("the closed form was converted to a DiagonalAROMA, which learns single answers")
        self.model: Any = model
        self._row_of = [{one: row for row, one in enumerate(items.ids)} for items in (self.asking, self.objects)]

    def question(self, triplet: Triplet, number: int) -> Question:
        sides = (self.asking, self.objects, self.objects)
        shown = [
            Shown(items.ids[row], None if items.texts is None else items.texts[row])
            for items, row in zip(sides, triplet, strict=True)
        ]
        return Question(shown[0], shown[1], shown[2], number)

    def rows(self, one: Record) -> Triplet:
        """Return the rows of an answer in the log."""
        missing = [name for name in TRIPLET if not isinstance(one.values.get(name), str)]
        if missing:
            raise ValueError(f"{one.where} has no {missing[0]!r}, expected the log of `aromatch ask`")
        of_objects = self._row_of[1]
        ids = [one.values[name] for name in TRIPLET]
        found = [rows.get(each) for each, rows in zip(ids, (self._row_of[0], of_objects, of_objects), strict=True)]
        if None in found:
            raise ValueError(f"{one.where}: unknown id {ids[found.index(None)]!r:.100}")
        return tuple(found)  # type: ignore[return-value]

    def next_comparison(self, asked: set[Triplet], generator: np.random.Generator) -> Triplet | None:
        """Return the most informative comparison that was not asked yet, the object ranked higher first."""
        is_own, n_queries = self.queries is None, self.Q.shape[0]
        for rows in np.array_split(generator.permutation(n_queries), max(1, n_queries // _N_QUERIES)):
            scores = self.model.similarity(self.Q[rows], self.P)
            if is_own:
                scores[np.arange(len(rows)), rows] = -np.inf
            top = top_k(scores, min(_N_TOP, self.P.shape[0] - is_own)).indices
            candidates = [
                (row, first, second)
                for row, ranked in zip(rows.tolist(), top.tolist(), strict=True)
                for first, second in combinations(ranked, 2)
                if (row, first, second) not in asked and (row, second, first) not in asked
            ]
            if candidates:
                best = suggest_comparisons(self.model, candidates, self.Q, None if is_own else self.P)
                return candidates[int(best[0])]
        return None

    def learn(self, query: int, better: int, worse: int) -> bool:
        """Learn an answer; return whether the model had predicted it wrongly."""
        result = self.model.learn_one(self.Q[[query]], self.P[[better]], self.P[[worse]])
        self.n_learned += 1
        self.n_contained += 1
        return bool(result.margin <= 0)

    def count_contained(self, log: str, records: list[Record]) -> str | None:
        """Find out how many answers of a log the model contains; return why the log cannot be replayed, if so."""
        n, digest = self.trained.metadata.get("answers", {}).get(_digest(records[:1]), (0, _digest([])))
        answers = _answers(records)
        if len(answers) < n or _digest(answers[:n]) != digest:
            raise ValueError(
                f"{log} was changed: its first {n} answers are not those that the model contains; restore it, or "
                "replay it on the model that it started from"
            )
        self.n_contained = n
        expected = self.model.n_triplets_seen_ - n
        for one in records:
            if "session" in one.values and one.values["session"] != expected:
                return (
                    f"{one.where}: the session started from a model with {one.values['session']} triplets, got "
                    f"{expected}; a log can be replayed on the model that it started from"
                )
            expected += _is_answer(one)
        return None

    def learn_rest(self, records: list[Record]) -> tuple[int, int]:
        """Learn the answers that the model does not contain; return the number mispredicted, and the number skipped."""
        n_mispredicted = n_skipped = 0
        for one in _rest(records, self.n_contained):
            if _is_answer(one):
                n_mispredicted += self.learn(*self.rows(one))
            else:
                n_skipped += "skipped" in one.values
        return n_mispredicted, n_skipped

    def save(self, path: str, records: list[Record]) -> None:
        metadata = self.trained.metadata
        metadata["n_answers"] = int(metadata.get("n_answers", 0)) + self.n_learned
        if self.n_contained:
            progress = [self.n_contained, _digest(_answers(records)[: self.n_contained])]
            metadata["answers"] = {**metadata.get("answers", {}), _digest(records[:1]): progress}
        self.trained.save(path)


def as_online(model: Any, Q: Matrix, P: Matrix) -> DiagonalAROMA:
    """Return an online learner that starts from the W of a closed form.

    The regularization of a closed form is right for all triplets on average, but a single answer about rare features
    would be multiplied by the inverse of almost nothing, and rankings would degrade with every answer. W is scaled to
    margins of about 1, which online learners aim at.
    """
    generator = np.random.default_rng(0)
    sizes = (Q.shape[0], P.shape[0], P.shape[0])
    triplets = np.column_stack([generator.integers(n, size=_N_MARGINS) for n in sizes])
    margins = model.margins(triplets, Q, P)
    exponent = int(np.frexp(np.abs(margins).max())[1])  # squares could overflow; powers of two round nothing
    scale = float(np.ldexp(np.sqrt(np.mean(np.ldexp(margins, -exponent) ** 2)), exponent))
    return DiagonalAROMA(init=model.W_ / scale if scale > 0 else model.W_).fit_triplets(triplets[:0], Q, P)


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
    trust_recorded_paths: bool = False,
) -> AskReport:
    """Ask for comparisons and learn the answers.

    Parameters
    ----------
    path : path
        The model file.
    answer : callable
        Takes a question and returns 1, 2 or 0 for neither; raises EOFError to end the session.
    n : int, default 10
        Number of comparisons.
    by : {"person", "judge"}
        Who answers. A program ("judge") is asked first for comparisons that people have answered in the log, to count
        how often both agree; these are not learned.
    data, queries : paths, optional
        The objects, and the queries if these are not the objects; `data` is required unless `trust_recorded_paths` is
        set.
    log : path, optional
        File to append the answers to; by default the model file with ``.answers.jsonl``, which must not be a symbolic
        link.
    output : path, optional
        The model file to write; by default the old one is replaced.
    seed : int, default 0
        Random seed.
    trust_recorded_paths : bool, default False
        Read the paths that the model file records where none are given.
    """
    check_integer(n, "-n", at_least=1)
    check_integer(seed, "--seed", at_least=0)
    session, target = _Session(path, data, queries, trust_recorded_paths), output or path
    is_named, log = bool(log), log or f"{path}.answers.jsonl"
    _check_log(log)
    n_asked = n_learned = n_skipped = n_mispredicted = n_compared = n_disagreed = 0
    with threadpool_limits(1), RecordLog(log, follow_links=is_named) as file:
        answered = _answers(file.records)
        of_people = [one for one in answered if one.values.get("by") == PERSON]
        asked = {session.rows(one) for one in answered}
        problem = session.count_contained(log, file.records)
        session.learn_rest(file.records)
        session.notes += [*_torn(log, file.n_torn), *([] if problem is None else [problem])]
        if session.n_learned:
            session.notes.append(f"learned {session.n_learned} answers of {log} that the model did not contain")

        def write(**values: Any) -> None:
            file.append({**values, "time": time()})

        write(session=session.model.n_triplets_seen_, model=path, seed=seed, by=by)
        try:
            for one in of_people[:n] if by == PROGRAM else []:
                choice = answer(session.question(session.rows(one), n_compared + 1))
                n_compared += choice != 0
                n_disagreed += choice == 2  # the object that people preferred is shown first
            for number in range(1, n + 1):
                generator = np.random.default_rng([seed, number, session.model.n_triplets_seen_])
                found = session.next_comparison(asked, generator)
                if found is None:
                    break
                query, first, second = found
                if generator.random() < 0.5:  # people and programs prefer what is shown first
                    first, second = second, first
                asked.add((query, first, second))
                question = session.question((query, first, second), number)
                choice = answer(question)
                n_asked += 1
                if choice == 0:
                    n_skipped += 1
                    ids = {"query": question.query.id, "first": question.first.id, "second": question.second.id}
                    write(skipped=True, **ids, by=by)
                    continue
                better, worse = (first, second) if choice == 1 else (second, first)
                ids = {"better": session.objects.ids[better], "worse": session.objects.ids[worse]}
                write(query=question.query.id, **ids, by=by)
                n_mispredicted += session.learn(query, better, worse)
                n_learned += 1
        except EOFError:
            pass
        finally:
            if session.n_learned:
                session.save(target, file.records)
    if by == PROGRAM and not of_people:
        session.notes.append(f"{log} has no answers of people to compare the program with")
    counts = n_asked, n_learned, n_skipped, n_mispredicted, n_compared, n_disagreed
    return AskReport(target if session.n_learned else path, log, *counts, seed, session.notes)


def replay(
    path: str,
    log: str,
    output: str,
    *,
    data: str | None = None,
    queries: str | None = None,
    trust_recorded_paths: bool = False,
) -> AskReport:
    """Learn the answers of a log on the model that it started from, or the rest on one that contains the first.

    The parameters are those of `ask`.
    """
    if not Path(log).is_file():
        raise FileNotFoundError(f"{log} does not exist, expected the log of `aromatch ask`")
    _check_log(log)
    session, content = _Session(path, data, queries, trust_recorded_paths), read_log(log)
    session.notes += _torn(log, content.n_torn)
    with threadpool_limits(1):
        if (problem := session.count_contained(log, content.records)) is not None:
            raise ValueError(problem)
        n_mispredicted, n_skipped = session.learn_rest(content.records)
        session.save(output, content.records)
    n = session.n_learned
    return AskReport(output, log, n + n_skipped, n, n_skipped, n_mispredicted, 0, 0, 0, session.notes)


def _check_log(log: str) -> None:
    if Path(log).suffix.lower() != ".jsonl":
        raise ValueError(f"{log} must be a file .jsonl")


def _torn(log: str, n_bytes: int) -> list[str]:
    return [f"dropped the last record of {log}, which was cut off after {n_bytes} bytes"] if n_bytes else []


def _digest(records: list[Record]) -> str:
    """Return a hash of the values of records."""
    values = json.dumps([one.values for one in records], sort_keys=True)
    return hashlib.sha256(values.encode()).hexdigest()[:16]


def _answers(records: list[Record]) -> list[Record]:
    return [one for one in records if _is_answer(one)]


def _rest(records: list[Record], n: int) -> list[Record]:
    """Return the records after the first n answers."""
    at = [0, *(at for at, one in enumerate(records, start=1) if _is_answer(one))]
    return records[at[n] :]


def _is_answer(one: Record) -> bool:
    return "session" not in one.values and "skipped" not in one.values

"""Triplets from relevance judgements, graded or not, in the formats of TREC and BEIR.

An object is preferred over objects with a lower grade if its own grade is relevant. Objects without a judgement count
as not relevant: judged collections leave out most objects that are not. Negatives are judged objects, which are hard,
and objects sampled from the whole collection: learning from hard negatives alone degrades the easy comparisons.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from .._utils.checks import check_integer, check_not_sparse, check_number, random_generator
from ..io.logs import is_sequence
from ..io.records import lines_of
from ._comparisons import Comparisons, IdRows, Report, UnknownIds, as_triplets, sample_negatives


def from_qrels(
    qrels: str | PathLike[str] | Mapping[Any, Mapping[Any, float]] | Iterable[tuple[Any, Any, float]],
    query_ids: Sequence[int] | Sequence[str] | int,
    object_ids: Sequence[int] | Sequence[str] | int,
    *,
    n_judged: int = 5,
    n_sampled: int = 5,
    min_grade: float = 1,
    missing: str = "error",
    random_state: Any = None,
) -> Comparisons:
    """Make triplets from relevance judgements.

    Parameters
    ----------
    qrels : path, mapping or iterable
        A file with lines ``query iteration object grade`` (TREC) or ``query<tab>object<tab>grade`` with or without
        column names (BEIR); ``{query: {object: grade}}``; or tuples (query, object, grade). Higher grades are better.
    query_ids, object_ids : sequences of int or str, or int
        The id of every row of Q and of P, as they appear in `qrels`. With a number of rows, ids are row indices.
    n_judged : int, default 5
        Maximum number of triplets per relevant object with an object of a lower grade.
    n_sampled : int, default 5
        Number of triplets per relevant object with a negative sampled from all objects that are not known to be
        relevant.
    min_grade : float, default 1
        Lowest relevant grade.
    missing : {"error", "skip"}, default "error"
        Whether unknown ids raise an error or are skipped.
    random_state : None, int, Generator or RandomState
        Random seed.

    Returns
    -------
    Comparisons
        `triplets` and `sample_weight` for `fit_triplets`, and a `report` of counts.

    Examples
    --------
    >>> from aromatch.triplets import from_qrels
    >>> found = from_qrels({"q1": {"a": 2, "b": 1, "c": 0}}, ["q1"], ["a", "b", "c", "d"], n_sampled=0, random_state=0)
    >>> found.triplets
    array([[0, 0, 1],
           [0, 0, 2],
           [0, 1, 2]])
    >>> print(found.report)
    read 3, judged 3, sampled 0, unknown 0, duplicates 0, contradictions 0, dropped 0
    """
    n_judged = check_integer(n_judged, "n_judged", at_least=0)
    n_sampled = check_integer(n_sampled, "n_sampled", at_least=0)
    lowest = check_number(min_grade, "min_grade")
    generator = random_generator(random_state)
    queries, objects, unknown = IdRows(query_ids, "query_ids"), IdRows(object_ids, "object_ids"), UnknownIds(missing)
    grades: dict[int, dict[int, float]] = {}
    n_read = n_duplicates = n_contradictions = 0
    for where, query, one, grade in read_qrels(qrels):
        n_read += 1
        row, column = unknown.row(queries, query, where), unknown.row(objects, one, where)
        if row is None or column is None:
            continue
        of_query = grades.setdefault(row, {})
        n_duplicates += column in of_query
        n_contradictions += column in of_query and of_query[column] != grade
        of_query[column] = grade
    unknown.check()
    judged: list[tuple[int, int, int]] = []
    relevant: list[tuple[int, int]] = []
    of_judged: list[int] = []
    for row, of_query in grades.items():
        names, values = np.array(list(of_query)), np.array(list(of_query.values()))
        for good in np.flatnonzero(values >= lowest):
            lower = names[values < values[good]]
            if len(lower) > n_judged:
                lower = np.sort(generator.choice(lower, n_judged, replace=False))
            judged += [(row, names[good], other) for other in lower]
            of_judged += [len(relevant)] * len(lower)
            relevant.append((row, names[good]))
    triplets, pairs = as_triplets(judged), np.array(relevant, dtype=np.int64).reshape(-1, 2)
    sampled, of_sampled = sample_negatives(pairs, objects.n, n_sampled, generator)
    n_dropped = n_sampled * len(pairs) - len(sampled)
    report = Report(n_read, len(triplets), len(sampled), unknown.n, n_duplicates, n_contradictions, n_dropped)
    # Judged and sampled negatives of a relevant object together: an online learner forgets what came long before.
    order = np.argsort(np.concatenate([np.array(of_judged, dtype=np.int64), of_sampled]), kind="stable")
    return Comparisons(np.concatenate([triplets, sampled])[order], np.ones(len(order)), report)


def read_qrels(qrels: Any) -> Iterable[tuple[str, Any, Any, float]]:
    """Iterate over judgements: file and line, query, object, grade."""
    if isinstance(qrels, str | PathLike):
        yield from _lines(Path(qrels))
    elif isinstance(qrels, Mapping):
        for query, of_query in qrels.items():
            if not isinstance(of_query, Mapping):
                raise TypeError(f"qrels[{query!r:.100}] must be a mapping of objects to grades, got {of_query!r:.100}")
            for one, grade in of_query.items():
                where = f"qrels[{query!r:.100}][{one!r:.100}]"
                yield where, query, one, check_number(grade, where)
    else:
        for number, judgement in enumerate(check_not_sparse(qrels, "qrels")):
            where = f"qrels, item {number}"
            if not is_sequence(judgement, 3):
                raise TypeError(f"{where} must be (query, object, grade), got {judgement!r:.100}")
            query, one, grade = judgement.tolist() if isinstance(judgement, np.ndarray) else judgement
            yield where, query, one, check_number(grade, f"the grade of {where}")


def _lines(path: Path) -> Iterable[tuple[str, Any, Any, float]]:
    """Read a TREC or BEIR file; a first line whose grade is not a number contains column names."""
    for number, line in enumerate(lines_of(path), start=1):
        text = line.strip("\r\n")
        if not text.strip():
            continue
        where = f"{path}, line {number}"
        parts = text.split("\t") if text.count("\t") == 2 else text.split()
        if len(parts) not in (3, 4):
            raise ValueError(
                f"{where}: expected 'query iteration object grade' (TREC) or 'query<tab>object<tab>grade' (BEIR), "
                f"got {text[:80]!r}"
            )
        query, one, grade = parts[0], parts[-2], parts[-1]
        try:
            value = float(grade)
        except ValueError:
            if number == 1 and len(parts) == 3:
                continue
            raise ValueError(f"{where}: the grade must be a number, got {grade!r:.100}") from None
        yield where, query, one, check_number(value, f"the grade of {where}")

"""Triplets from relevance judgements, graded or not, as TREC and BEIR write them.

An object with a higher grade is better for the query than one with a lower grade, when the first is relevant. What was
not judged is taken to be not relevant: judged collections leave out most of what is not. Other objects come from the
judged ones, which are hard, and from the whole collection: who learns from hard ones alone forgets what is easy.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from .._utils.checks import check_integer, check_number, random_generator
from ._comparisons import Comparisons, Report, Rows, Unknown, as_triplets, drawn_from_all, is_list_of


def from_qrels(
    qrels: str | PathLike[str] | Mapping[Any, Mapping[Any, float]] | Iterable[tuple[Any, Any, float]],
    query_ids: Sequence[Hashable] | int,
    object_ids: Sequence[Hashable] | int,
    *,
    n_judged: int = 5,
    n_drawn: int = 5,
    relevant: float = 1,
    missing: str = "error",
    random_state: Any = None,
) -> Comparisons:
    """Make triplets from relevance judgements.

    Parameters
    ----------
    qrels : path, mapping or iterable
        A file with lines ``query iteration object grade`` (TREC) or ``query<tab>object<tab>grade`` with or without a
        line of names (BEIR); ``{query: {object: grade}}``; or tuples (query, object, grade). Higher grades are better.
    query_ids, object_ids : sequences of ids, or numbers of rows
        The id of every row of Q, and of P, as `qrels` names them. With a number of rows, ids are row numbers.
    n_judged : int, default 5
        For each relevant object, so many triplets at most with an object that was judged lower.
    n_drawn : int, default 5
        For each relevant object, so many triplets with an object from the whole collection that is not known to be
        relevant.
    relevant : float, default 1
        The lowest grade that is relevant.
    missing : {"error", "skip"}, default "error"
        What to do with ids that no row has.
    random_state : None, int, Generator or RandomState
        The same number gives the same triplets.

    Returns
    -------
    Comparisons
        `triplets` and `sample_weight` for `fit_triplets`, and a `report` that counts what was found.

    Examples
    --------
    >>> from aromatch.triplets import from_qrels
    >>> found = from_qrels({"q1": {"a": 2, "b": 1, "c": 0}}, ["q1"], ["a", "b", "c", "d"], n_drawn=0, random_state=0)
    >>> found.triplets
    array([[0, 0, 1],
           [0, 0, 2],
           [0, 1, 2]])
    >>> print(found.report)
    read 3, judged 3, drawn 0, unknown 0, duplicates 0, contradictions 0, given_up 0
    """
    check_integer(n_judged, "n_judged", at_least=0)
    check_integer(n_drawn, "n_drawn", at_least=0)
    lowest = check_number(relevant, "relevant")
    generator = random_generator(random_state)
    queries, objects, unknown = Rows(query_ids, "query_ids"), Rows(object_ids, "object_ids"), Unknown(missing)
    grades: dict[int, dict[int, float]] = {}
    n_read = n_twice = n_both_ways = 0
    for where, query, one, grade in judgements(qrels):
        n_read += 1
        row, column = unknown.row(queries, query, where), unknown.row(objects, one, where)
        if row is None or column is None:
            continue
        of_query = grades.setdefault(row, {})
        n_twice += column in of_query
        n_both_ways += column in of_query and of_query[column] != grade
        of_query[column] = grade
    unknown.check()
    judged: list[tuple[int, int, int]] = []
    asked: list[tuple[int, int]] = []
    of_judged: list[int] = []
    for row, of_query in grades.items():
        names, values = np.array(list(of_query)), np.array(list(of_query.values()))
        for good in np.flatnonzero(values >= lowest):
            lower = names[values < values[good]]
            if len(lower) > n_judged:
                lower = np.sort(generator.choice(lower, n_judged, replace=False))
            judged += [(row, names[good], other) for other in lower]
            of_judged += [len(asked)] * len(lower)
            asked.append((row, names[good]))
    triplets, pairs = as_triplets(judged), np.array(asked, dtype=np.int64).reshape(-1, 2)
    drawn, of_drawn = drawn_from_all(pairs, objects.n, n_drawn, generator)
    n_given_up = n_drawn * len(pairs) - len(drawn)
    report = Report(n_read, len(triplets), len(drawn), unknown.n, n_twice, n_both_ways, n_given_up)
    # Both kinds of a relevant object together: who learns one kind after the other forgets the first.
    order = np.argsort(np.concatenate([np.array(of_judged, dtype=np.int64), of_drawn]), kind="stable")
    return Comparisons(np.concatenate([triplets, drawn])[order], np.ones(len(order)), report)


def judgements(qrels: Any) -> Iterable[tuple[str, Any, Any, float]]:
    """Give where each judgement stands, its query, its object and its grade."""
    if isinstance(qrels, str | PathLike):
        yield from _lines(Path(qrels))
    elif isinstance(qrels, Mapping):
        for query, of_query in qrels.items():
            if not isinstance(of_query, Mapping):
                raise TypeError(f"qrels[{query!r}] must be a mapping of objects to grades, got {of_query!r}")
            for one, grade in of_query.items():
                where = f"qrels[{query!r}][{one!r}]"
                yield where, query, one, check_number(grade, where)
    else:
        for number, judgement in enumerate(qrels):
            where = f"qrels, item {number}"
            if not is_list_of(judgement, 3):
                raise TypeError(f"{where} must be (query, object, grade), got {judgement!r}")
            query, one, grade = judgement.tolist() if isinstance(judgement, np.ndarray) else judgement
            yield where, query, one, check_number(grade, f"the grade of {where}")


def _lines(path: Path) -> Iterable[tuple[str, Any, Any, float]]:
    """Read a file; a grade that is no number is forgiven in a first line, which may hold names."""
    with path.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, start=1):
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
                raise ValueError(f"{where}: the grade must be a number, got {grade!r}") from None
            yield where, query, one, check_number(value, f"the grade of {where}")

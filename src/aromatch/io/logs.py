"""Read search logs: result lists with relevance judgements or clicks.

A list has a query and two columns of object ids: ``good`` and ``bad`` for judgements, ``shown`` (in rank order) and
``clicked`` for clicks. A ``time`` is optional. In ``.jsonl`` the columns are lists of ids or a single id; in ``.csv``
and ``.tsv`` they are ids separated by spaces.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._utils.checks import check_not_sparse
from .records import records

COLUMNS = {"judgements": ("good", "bad"), "clicks": ("shown", "clicked")}


class ResultList(NamedTuple):
    """One result list, with ids as in the log."""

    where: str
    """File and line, for error messages."""
    query: Any
    first: list[Any]
    """Ids in the column ``good`` or ``shown``."""
    second: list[Any]
    """Ids in the column ``bad`` or ``clicked``."""
    time: Any
    """As in the log; None if the list has no time."""


def read_lists(
    log: str | PathLike[str] | Iterable[Any], kind: str, known: Container[Any] = frozenset()
) -> Iterator[ResultList]:
    """Iterate over the result lists of a log.

    Parameters
    ----------
    log : path or iterable
        A ``.csv``, ``.tsv`` or ``.jsonl`` file, or mappings or tuples in memory.
    kind : {"judgements", "clicks"}
    known : container of ids, optional
        A csv cell that equals a known id is a single id, even if it contains spaces.
    """
    columns = COLUMNS[kind]
    lists = _from_file(Path(log), columns, known) if isinstance(log, str | PathLike) else _from_items(log, columns)
    for one in lists:
        if kind == "clicks":
            not_shown = [each for each in one.second if each not in one.first]
            if not_shown:
                raise ValueError(f"{one.where}: {not_shown[0]!r:.100} was clicked, but is not in shown")
        yield one


def _from_file(path: Path, columns: tuple[str, str], known: Container[Any]) -> Iterator[ResultList]:
    expected = f"query, {columns[0]} and {columns[1]}"

    def refuse(n: int) -> Sequence[str]:
        raise ValueError(f"{path} has no column names in its first line, expected {expected}")

    for where, values in records(path, is_header=lambda row: "query" in row, unnamed=refuse):
        if path.suffix.lower() != ".jsonl":
            cells = {name: values[name].strip() for name in columns if name in values}
            values |= {name: [cell] if cell in known else cell.split() for name, cell in cells.items()}
        try:
            yield _from_mapping(values, columns, where)
        except TypeError as error:
            raise ValueError(str(error)) from None


def _from_items(items: Iterable[Any], columns: tuple[str, str]) -> Iterator[ResultList]:
    for number, item in enumerate(check_not_sparse(items, "log")):
        where = f"log, item {number}"
        if isinstance(item, Mapping):
            yield _from_mapping(item, columns, where)
            continue
        if not is_sequence(item, 3):
            raise TypeError(f"{where} must be (query, {columns[0]}, {columns[1]}), got {item!r:.100}")
        yield _from_mapping(dict(zip(("query", *columns), item, strict=True)), columns, where)


def _from_mapping(values: Mapping[str, Any], columns: tuple[str, str], where: str) -> ResultList:
    missing = [name for name in ("query", *columns) if name not in values]
    if missing:
        raise ValueError(f"{where} has no {missing[0]!r}, expected query, {columns[0]} and {columns[1]}")
    first, second = (_as_ids(values[name], name, where) for name in columns)
    return ResultList(where, values["query"], first, second, values.get("time"))


def _as_ids(value: Any, name: str, where: str) -> list[Any]:
    """Return a list of ids; a single id is accepted except for what was shown."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    if name != "shown" and (value is None or isinstance(value, str | int | np.integer)):
        return [] if value is None else [value]
    raise TypeError(f"{where}: {name} must be a list of ids, got {value!r:.100}")


def is_sequence(item: Any, length: int) -> bool:
    """Return whether an item is a tuple, a list or an array row of the given length."""
    return isinstance(item, list | tuple | np.ndarray) and len(item) == length

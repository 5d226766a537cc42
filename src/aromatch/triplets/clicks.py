"""Triplets from clicks: what was clicked is better than what stood above it and was passed over.

A click says little by itself, since people click what they are shown. But who clicks the third of a list has, most
likely, seen the first two and left them (Joachims 2002, "skip above"). What stands below may never have been seen.

Two dangers. What is shown first is looked at most, whatever it is: a click far down is rarer and says more. With
`position_bias` a click at place k counts k**position_bias, one over the chance that anybody looks there, up to
`most_weight` (Joachims, Swaminathan and Schnabel 2017). And all objects in a list are near to the query already: who
learns only from those forgets what is far, and search gets worse than it was. So objects from the whole collection are
mixed in, unless they are refused.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._utils.checks import check_integer, check_number, random_generator
from ._comparisons import (
    Comparisons,
    Report,
    Rows,
    Unknown,
    as_triplets,
    count_contradictions,
    count_duplicates,
    drawn_from_all,
    is_list_of,
)

_COLUMNS = ("query", "shown", "clicked")


class _Shown(NamedTuple):
    """One list of results, where it was read, and what was clicked."""

    where: str
    query: Any
    shown: list[Any]
    clicked: list[Any]


def from_clicks(
    log: str | PathLike[str] | Iterable[Any],
    query_ids: Sequence[Hashable] | int,
    object_ids: Sequence[Hashable] | int,
    *,
    n_judged: int = 3,
    n_drawn: int = 5,
    judged_weight: float = 0.1,
    position_bias: float = 0.0,
    most_weight: float = 10.0,
    missing: str = "error",
    random_state: Any = None,
) -> Comparisons:
    """Make triplets from a log of searches.

    Parameters
    ----------
    log : path or iterable
        Lists of results: the query, the objects shown in their order, and those that were clicked. A file ``.csv`` has
        the columns ``query``, ``shown`` and ``clicked``, with spaces between ids; a file ``.jsonl`` has one object with
        these three names a line, lists of ids or a single one. An iterable has such objects, or tuples.
    query_ids, object_ids : sequences of ids, or numbers of rows
        The id of every row of Q, and of P, as the log names them. With a number of rows, ids are row numbers. Ids in
        a file ``.csv`` are text.
    n_judged : int, default 3
        For each click, so many triplets at most with an object that was passed over, the last ones above the click.
    n_drawn : int, default 5
        For each click, so many triplets with an object from the whole collection that was not clicked for this query.
        Without them search is likely to get worse.
    judged_weight : float, default 0.1
        How much a triplet with an object that was passed over counts, against 1 for one that was drawn: what is shown
        beside a good result is often good as well.
    position_bias : float, default 0.0
        A click at place k (from 1) counts ``k**position_bias``: 1 corrects for attention that falls as 1/k.
    most_weight : float, default 10.0
        A click counts so much at most for its place.
    missing : {"error", "skip"}, default "error"
        What to do with ids that no row has: objects that are gone are usual in logs.
    random_state : None, int, Generator or RandomState
        The same number gives the same triplets.

    Returns
    -------
    Comparisons
        `triplets` and `sample_weight` for `fit_triplets`, in the order of the log, and a `report` that counts what was
        found.

    Examples
    --------
    >>> from aromatch.triplets import from_clicks
    >>> log = [{"query": 0, "shown": [4, 7, 2, 5], "clicked": 2}]
    >>> from_clicks(log, 1, 10, n_drawn=0).triplets  # 4 and 7 were passed over, 5 may not have been seen
    array([[0, 2, 4],
           [0, 2, 7]])
    """
    check_integer(n_drawn, "n_drawn", at_least=0)
    check_integer(n_judged, "n_judged", at_least=0)
    of_judged = check_number(judged_weight, "judged_weight", at_least=0)
    bias = check_number(position_bias, "position_bias", at_least=0)
    most = check_number(most_weight, "most_weight", at_least=1)
    generator = random_generator(random_state)
    queries, objects, unknown = Rows(query_ids, "query_ids"), Rows(object_ids, "object_ids"), Unknown(missing)
    passed_over: list[tuple[int, int, int]] = []
    clicks: list[tuple[int, int]] = []
    weights: list[float] = []
    click_of: list[int] = []
    n_read = 0
    for where, query, shown, clicked in _lists(log):
        n_read += 1
        row = unknown.row(queries, query, where)
        if row is None:
            continue
        places = [unknown.row(objects, one, where) for one in shown]
        chosen = {objects.find(one) for one in clicked} - {None}
        for place, good in enumerate(places):
            if good is None or good not in chosen or good in places[:place]:
                continue
            above = [other for other in dict.fromkeys(places[:place]) if other is not None and other not in chosen]
            above = above[max(0, len(above) - n_judged) :]
            passed_over += [(row, good, other) for other in above]
            click_of += [len(clicks)] * len(above)
            clicks.append((row, good))
            weights.append(min(most, float(place + 1) ** bias))
    unknown.check()
    judged, pairs = as_triplets(passed_over), np.array(clicks, dtype=np.int64).reshape(-1, 2)
    drawn, of_click = drawn_from_all(pairs, objects.n, n_drawn, generator)
    # In the order of the log: what was passed over at a click, and then what was drawn for it.
    clicks_of_all = np.concatenate([np.array(click_of, dtype=np.int64), of_click])
    order = np.argsort(clicks_of_all, kind="stable")
    by_kind = np.repeat([of_judged, 1.0], [len(judged), len(drawn)])
    report = Report(
        n_read,
        len(judged),
        len(drawn),
        unknown.n,
        count_duplicates(judged),
        count_contradictions(judged),
        n_drawn * len(pairs) - len(drawn),
    )
    triplets = np.concatenate([judged, drawn])[order]
    return Comparisons(triplets, (by_kind * np.array(weights, dtype=np.float64)[clicks_of_all])[order], report)


# -- reading ----------------------------------------------------------------------------------------------------------


def _lists(log: Any) -> Iterator[_Shown]:
    """Give the lists of a file or of what is there already, and see that what was clicked was shown."""
    if isinstance(log, str | PathLike):
        path = Path(log)
        kind = path.suffix.lower()
        if kind not in (".csv", ".jsonl"):
            raise ValueError(f"log must be a file .csv or .jsonl, got {path}")
        found = _of_csv(path) if kind == ".csv" else _of_jsonl(path)
    else:
        found = (_of_item(item, f"log, item {number}") for number, item in enumerate(log))
    for one in found:
        never_shown = [each for each in one.clicked if each not in one.shown]
        if never_shown:
            raise ValueError(f"{one.where}: {never_shown[0]!r} was clicked, but is not among what was shown")
        yield one


def _of_csv(path: Path) -> Iterator[_Shown]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        absent = [name for name in _COLUMNS if name not in (reader.fieldnames or ())]
        if absent:
            raise ValueError(f"{path} has no column {absent[0]!r}, expected query, shown and clicked")
        for line in reader:
            where = f"{path}, line {reader.line_num}"
            if any(line[name] is None for name in _COLUMNS):
                raise ValueError(f"{where}: expected a query, what was shown and what was clicked")
            yield _Shown(where, line["query"], line["shown"].split(), line["clicked"].split())


def _of_jsonl(path: Path) -> Iterator[_Shown]:
    with path.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            where = f"{path}, line {number}"
            try:
                item = json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(f"{where} is not JSON: {error}") from None
            yield _of_item(item, where)


def _of_item(item: Any, where: str) -> _Shown:
    if isinstance(item, Mapping):
        absent = [name for name in _COLUMNS if name not in item]
        if absent:
            raise ValueError(f"{where} has no {absent[0]!r}, expected query, shown and clicked")
        item = [item[name] for name in _COLUMNS]
    if not is_list_of(item, 3):
        raise TypeError(f"{where} must be (query, shown, clicked), got {item!r}")
    query, *lists = item
    shown, clicked = (_as_list(ids, name, where) for ids, name in zip(lists, _COLUMNS[1:], strict=True))
    return _Shown(where, query, shown, clicked)


def _as_list(ids: Any, name: str, where: str) -> list[Any]:
    if isinstance(ids, np.ndarray):
        ids = ids.tolist()
    if isinstance(ids, list | tuple) or (name == "clicked" and isinstance(ids, set | frozenset)):
        return list(ids)
    if name == "clicked" and isinstance(ids, Hashable):
        return [] if ids is None else [ids]
    raise TypeError(f"{where}: {name} must be a list of ids, got {ids!r}")

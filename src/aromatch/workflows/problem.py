"""A collection, queries to it and what was said about both: what is learned from, and what is measured on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._utils.checks import check_integer, check_number
from ..io.items import Items, read_items
from .supervision import Supervision, read_supervision

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class Problem:
    """What was read."""

    objects: Items
    queries: Items | None
    """None when the objects are the queries."""
    supervision: Supervision

    @property
    def who_asks(self) -> Items:
        """The queries, whatever they are."""
        return self.objects if self.queries is None else self.queries

    def notes(self) -> list[str]:
        """Tell what was left out, and what else people should know."""
        sides = [self.objects] if self.queries is None else [self.objects, self.queries]
        return [note for items in sides for note in notes_of(items)]


def notes_of(items: Items) -> list[str]:
    """Tell what was left out when something was read, or changed."""
    return [f"{items.source}: {count:,} {reason}" for reason, count in items.left_out.items()]


def read_problem(
    data: str,
    queries: str | None = None,
    *,
    missing: str = "error",
    seed: int = 0,
    widths: tuple[int | None, int | None] = (None, None),
    files: Mapping[str, str | None],
) -> Problem:
    """Read a collection, queries and what was said; `read_supervision` says what `files` are."""
    check_integer(seed, "--seed", at_least=0)
    objects = read_items(data, width=widths[1])
    asking = None if queries is None else read_items(queries, width=widths[0])
    if asking is not None and asking.what != objects.what:
        raise ValueError(f"{asking.source} has {asking.what}, but {objects.source} has {objects.what}")
    return Problem(objects, asking, read_supervision(objects, asking, missing=missing, seed=seed, files=files))


def split(problem: Problem, share: float, seed: int) -> tuple[Numbers, Numbers]:
    """Give rows of queries to learn from, and rows that are held out, both in their order."""
    check_number(share, "--hold-out", at_least=0)
    if share >= 1:
        raise ValueError(f"--hold-out must be a share below 1, got {share:g}")
    rows = problem.supervision.query_rows
    n_held = round(share * len(rows))
    if n_held == len(rows):
        raise ValueError(f"--hold-out {share:g} leaves nothing of {len(rows)} queries to learn from")
    order = np.random.default_rng([seed, 1]).permutation(rows)
    return np.sort(order[n_held:]), np.sort(order[:n_held])


def marks(items: Items, rows: Numbers) -> Numbers:
    """Give a number for each row, by what is in it: the same in any file, at any place."""
    if items.texts is not None:
        contents: Any = (items.texts[row].encode("utf-8", "replace") for row in rows)
    elif sparse.issparse(vectors := items.vectors):
        contents = (_sparse_bytes(vectors[[row]]) for row in rows)  # type: ignore[index]
    else:
        assert vectors is not None
        contents = (np.asarray(vectors[row] + 0.0, dtype=np.float64).tobytes() for row in rows)
    digests = b"".join(hashlib.sha256(content).digest()[:8] for content in contents)
    return np.frombuffer(digests, dtype="<i8").astype(np.int64)


def _sparse_bytes(row: Any) -> bytes:
    is_there = row.data != 0
    order = np.argsort(row.indices[is_there], kind="stable")
    places, values = row.indices[is_there][order], row.data[is_there][order]
    return bytes(places.astype("<i8").tobytes() + values.astype("<f8").tobytes())

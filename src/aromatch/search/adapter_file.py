"""An adapter taken apart into the header and arrays of a file, and put together again."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .. import _checks as checks
from .._rows import Matrix
from ..learners.files import sparse_matrix, sparse_parts
from .collection import Collection
from .judgements import GONE, Judgements
from .watch import Watch

Array = NDArray[Any]

_COLUMNS = "judged", "judged_object", "net", "itself"


class Parts(NamedTuple):
    """What an adapter is made of."""

    base: str
    seed: int
    sequence: int
    objects: Collection
    total: Array
    judgements: Judgements
    watch: Watch


def to_file(parts: Parts) -> tuple[dict[str, Any], dict[str, Array]]:
    """Give the header and the arrays that hold everything about an adapter."""
    ids, queries = parts.objects.ids, parts.judgements.queries
    arrays = {**_to_arrays("objects", parts.objects.rows(ids)), "ids": ids, "total": parts.total}
    if queries is not None:
        arrays |= {**_to_arrays("queries", queries.rows(queries.ids)), "numbers": queries.ids}
    arrays |= dict(zip(_COLUMNS, parts.judgements.arrays(), strict=True))
    arrays |= {"names": parts.judgements.names(), "nearness": parts.judgements.nearness}
    header = {
        "learner": "Adapter",
        "base": parts.base,
        "seed": parts.seed,
        "sequence": parts.sequence,
        "next_id": parts.objects.next_id,
    }
    return header, {**arrays, "watched": parts.watch.sums}


def from_file(header: dict[str, Any], arrays: dict[str, Array]) -> Parts:
    """Put the parts together, or say in a ValueError what does not fit."""
    if header["learner"] != "Adapter":
        raise ValueError(f"it holds a {header['learner']}, which aromatch.load reads")
    objects = Collection(_from_arrays("objects", arrays), arrays["ids"])
    objects.next_id = max(objects.next_id, _whole_number(header, "next_id"))
    return Parts(
        checks.check_choice(header["base"], "base", ("cosine", "dot")),
        _whole_number(header, "seed"),
        _whole_number(header, "sequence"),
        objects,
        _vector(arrays, "total", objects.width),
        _judgements(arrays, objects),
        Watch(_vector(arrays, "watched", len(Watch().sums))),
    )


def _judgements(arrays: dict[str, Array], objects: Collection) -> Judgements:
    judged, judged_object, net, itself = columns = tuple(arrays[name] for name in _COLUMNS)
    names = arrays["names"]
    if any(column.ndim != 1 for column in columns) or any(a.dtype != np.int64 for a in (*columns, names)):
        raise ValueError("its judgements are not whole numbers")
    if not len(judged) == len(judged_object) == len(net) or names.shape != (len(itself), 4):
        raise ValueError("its judgements are not as many as they should be")
    if len(judged) and (judged.min() < 0 or judged.max() >= len(itself) or (itself[judged] == GONE).any()):
        raise ValueError("its judgements are of queries that it does not have")
    objects.check_there(np.concatenate([judged_object, itself[itself >= 0]]), "its judgements")
    queries = None
    if "numbers" in arrays:
        queries = Collection(_from_arrays("queries", arrays), arrays["numbers"])
        if queries.width != objects.width or queries.is_sparse != objects.is_sparse:
            raise ValueError("its queries are not like its objects")
    if not np.array_equal(np.sort(arrays.get("numbers", judged[:0])), np.flatnonzero(itself == -1)):
        raise ValueError("its queries are not those that were judged")
    nearness = _vector(arrays, "nearness", len(itself))
    return Judgements.from_arrays((judged, judged_object, net, itself), nearness, names, queries)


def _whole_number(header: dict[str, Any], name: str) -> int:
    return checks.check_integer(header[name], name, at_least=0)


def _to_arrays(name: str, rows: Matrix) -> dict[str, Array]:
    return sparse_parts(name, rows) if sparse.issparse(rows) else {name: rows}


def _from_arrays(name: str, arrays: dict[str, Array]) -> Matrix:
    if name in arrays:
        return arrays[name]
    return sparse_matrix(name, **{part: arrays[f"{name}.{part}"] for part in ("data", "indices", "indptr", "shape")})


def _vector(arrays: dict[str, Array], name: str, length: int) -> Array:
    values = arrays[name]
    if values.shape != (length,) or values.dtype != np.float64 or not np.isfinite(values).all():
        raise ValueError(f"its {name} is not {length} numbers")
    return values

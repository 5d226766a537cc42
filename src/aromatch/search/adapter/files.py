"""An adapter taken apart into the header and arrays of a file, and put together again."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.extmath import row_norms

from ..._utils import checks
from ..._utils.rows import Matrix
from ...learners.files import sparse_matrix, sparse_parts
from ...learners.fingerprint import Fingerprint
from ..stores.memory import Collection
from .feedback import GONE, Judgements
from .monitor import Watch

Array = NDArray[Any]

# Ids, and judgements of one query and object, are fewer.
_MOST = 2**53
_UNIT_NORM = 1e-3
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
    fingerprint: Fingerprint | None = None


def to_file(parts: Parts) -> tuple[dict[str, Any], dict[str, Array]]:
    """Give the header and the arrays that hold everything about an adapter."""
    arrays = {**_to_arrays("objects", parts.objects), "total": parts.total}
    if parts.judgements.queries is not None:
        arrays |= _to_arrays("queries", parts.judgements.queries)
    arrays |= dict(zip(_COLUMNS, parts.judgements.arrays(), strict=True))
    arrays |= {"names": parts.judgements.names(), "nearness": parts.judgements.nearness}
    header = {
        "learner": "Adapter",
        "base": parts.base,
        "seed": parts.seed,
        "sequence": parts.sequence,
        "next_id": parts.objects.next_id,
    }
    if parts.fingerprint is not None:
        header["fingerprint"] = parts.fingerprint.to_header()
    return header, {**arrays, "watched": parts.watch.sums}


def from_file(header: dict[str, Any], arrays: dict[str, Array]) -> Parts:
    """Put the parts together, or say in a ValueError what does not fit."""
    if header["learner"] != "Adapter":
        raise ValueError(f"it holds a {header['learner']}, which aromatch.load reads")
    base = checks.check_choice(header["base"], "base", ("cosine", "dot"))
    objects = _from_arrays("objects", arrays, unit_norm=base == "cosine")
    objects.next_id = _whole_number(header, "next_id")
    if not int(objects.ids.max()) < objects.next_id < _MOST:
        raise ValueError(f"its next id is {objects.next_id}")
    total, added_up, largest = _vector(arrays, "total", objects.width), np.zeros(objects.width), 0.0
    for block in objects.blocks():  # with zeros in place of rows that are gone
        added_up += block.rows.sum(axis=0, dtype=np.float64)
        largest = max(largest, float(abs(block.rows).max()))
    if not np.allclose(total, added_up, rtol=1e-6, atol=1e-6 * (largest or 1)):
        raise ValueError("its total is not the sum of its objects")
    return Parts(
        base,
        _whole_number(header, "seed"),
        _whole_number(header, "sequence"),
        objects,
        total,
        _judgements(arrays, objects, unit_norm=base == "cosine"),
        _watch(arrays),
        _fingerprint(header, objects.width),
    )


def _fingerprint(header: dict[str, Any], width: int) -> Fingerprint | None:
    if "fingerprint" not in header:
        return None
    found = Fingerprint.from_header(header["fingerprint"])
    if found.dimension != width:
        raise ValueError(f"its fingerprint has {found.dimension} dimensions, and its objects {width}")
    return found


def _watch(arrays: dict[str, Array]) -> Watch:
    sums = _vector(arrays, "watched", len(Watch().sums))
    squares = sums[:16].reshape(4, 4)
    is_possible = np.array_equal(squares, squares.T) and (sums[16:] >= 0).all()
    if not is_possible or np.linalg.eigvalsh(squares)[0] < -1e-9 * max(1.0, float(np.trace(squares))):
        raise ValueError("what it watched is not what anybody could have seen")
    return Watch(sums)


def _judgements(arrays: dict[str, Array], objects: Collection, *, unit_norm: bool) -> Judgements:
    judged, judged_object, net, itself = columns = tuple(arrays[name] for name in _COLUMNS)
    names = arrays["names"]
    if any(column.ndim != 1 for column in columns) or any(a.dtype != np.int64 for a in (*columns, names)):
        raise ValueError("its judgements are not whole numbers")
    if not len(judged) == len(judged_object) == len(net) or names.shape != (len(itself), 4):
        raise ValueError("its judgements are not as many as they should be")
    if len(judged) and (judged.min() < 0 or judged.max() >= len(itself) or (itself[judged] == GONE).any()):
        raise ValueError("its judgements are of queries that it does not have")
    objects.check_there(np.concatenate([judged_object, itself[itself >= 0]]), "its judgements")
    kept = names[itself != GONE]
    if len(np.unique(np.column_stack([judged, judged_object]), axis=0)) < len(judged):
        raise ValueError("its judgements of a query and an object are more than one")
    if len(np.unique(kept, axis=0)) < len(kept) or (np.abs(net) > _MOST).any() or (itself < GONE).any():
        raise ValueError("its judgements are none")
    queries = None
    if "queries.ids" in arrays:
        queries = _from_arrays("queries", arrays, unit_norm=unit_norm)
        if (queries.width, queries.is_sparse, queries.dtype) != (objects.width, objects.is_sparse, objects.dtype):
            raise ValueError("its queries are not like its objects")
    if not np.array_equal(judged[:0] if queries is None else np.sort(queries.ids), np.flatnonzero(itself == -1)):
        raise ValueError("its queries are not those that were judged")
    nearness = _vector(arrays, "nearness", len(itself))
    return Judgements.from_arrays((judged, judged_object, net, itself), nearness, names, queries)


def _whole_number(header: dict[str, Any], name: str) -> int:
    return checks.check_integer(header[name], name, at_least=0)


def _to_arrays(name: str, collection: Collection) -> dict[str, Array]:
    """Give rows that are there, and how they lie in memory."""
    rows, (ids, lengths) = collection.rows(collection.ids), collection.layout()
    arrays = sparse_parts(f"{name}.rows", rows) if sparse.issparse(rows) else {f"{name}.rows": rows}
    return {**arrays, f"{name}.ids": ids, f"{name}.pieces": lengths}


def _from_arrays(name: str, arrays: dict[str, Array], *, unit_norm: bool) -> Collection:
    rows: Matrix
    if (whole := f"{name}.rows") in arrays:
        rows = arrays[whole]
    else:
        parts = {part: arrays[f"{whole}.{part}"] for part in ("data", "indices", "indptr", "shape")}
        rows = sparse_matrix(name, **parts)
    ids, lengths = arrays[f"{name}.ids"], arrays[f"{name}.pieces"]
    if any(array.ndim != 1 or array.dtype != np.int64 for array in (ids, lengths)) or (ids >= _MOST).any():
        raise ValueError(f"the ids of its {name} are none")
    found = Collection.from_layout(rows, ids, lengths)
    lengths_of_rows = row_norms(rows)
    if unit_norm and not np.all((lengths_of_rows == 0) | (np.abs(lengths_of_rows - 1) < _UNIT_NORM)):
        raise ValueError(f"its {name} are not of unit norm")
    return found


def _vector(arrays: dict[str, Array], name: str, length: int) -> Array:
    values = arrays[name]
    if values.shape != (length,) or values.dtype != np.float64 or not np.isfinite(values).all():
        raise ValueError(f"its {name} is not {length} numbers")
    return values

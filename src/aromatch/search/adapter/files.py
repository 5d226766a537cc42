"""Conversion of an adapter to the header and arrays of a file, and back."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.extmath import row_norms

from ..._utils import checks
from ..._utils.ids import MAX_ID
from ..._utils.row_hashes import HASH_LENGTH
from ..._utils.rows import Matrix, as_rows
from ...io.sparse import sparse_matrix, sparse_parts
from ...learners.fingerprint import Fingerprint
from ..stores.memory import MemoryStore
from .feedback import REMOVED, Feedback
from .monitor import LARGEST_SQUARE, Monitor

Array = NDArray[Any]

KIND = "adapter"
_NORM_TOLERANCE = 1e-3
# What rows of at most LARGEST_SQUARE cannot reach.
_LARGEST_SUM, _LARGEST_SUM_OF_SQUARES = 1e100, 1e150
_COLUMNS = "feedback.query", "feedback.object", "feedback.net", "feedback.own_object"
_STRING_IDS = "objects.ids.characters", "objects.ids.ends"
_ENCODING = "utf-32-le", "surrogatepass"


class Parts(NamedTuple):
    """State of an adapter."""

    metric: str
    seed: int
    n_records: int
    store: MemoryStore
    total: Array
    feedback: Feedback
    monitor: Monitor
    fingerprint: Fingerprint | None = None


def to_file(parts: Parts) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the header and the arrays of a file."""
    arrays = {**_store_to_arrays("objects", parts.store), "total": parts.total}
    ids = parts.store.ids
    if ids.dtype == object:
        characters = np.frombuffer("".join(ids).encode(*_ENCODING), dtype="<i4").astype(np.int32)
        ends = np.cumsum([len(one) for one in ids], dtype=np.int64)
        arrays |= dict(zip(_STRING_IDS, (characters, ends), strict=True))
    if parts.feedback.queries is not None:
        arrays |= _store_to_arrays("queries", parts.feedback.queries)
    arrays |= dict(zip(_COLUMNS, parts.feedback.columns(), strict=True))
    arrays |= {"row_hashes": parts.feedback.hashes(), "proximity": parts.feedback.proximity}
    header = {
        "kind": KIND,
        "metric": parts.metric,
        "seed": parts.seed,
        "n_records": parts.n_records,
        "next_key": parts.store.next_key,
    }
    if parts.fingerprint is not None:
        header["fingerprint"] = parts.fingerprint.to_header()
    return header, {**arrays, "monitor": parts.monitor.sums}


def from_file(header: dict[str, Any], arrays: dict[str, Array]) -> Parts:
    """Restore the state of an adapter; raise a ValueError if something is inconsistent."""
    if header.get("kind") != KIND:
        raise ValueError(f"kind is {header.get('kind')!r}, expected {KIND!r}")
    metric = checks.check_choice(header["metric"], "metric", ("cosine", "dot"))
    store = _store_from_arrays("objects", arrays, unit_norm=metric == "cosine")
    store.next_key = _integer(header, "next_key")
    if not int(store.present_keys.max()) < store.next_key <= MAX_ID:
        raise ValueError(f"next_key is {store.next_key}, expected more than the largest key")
    total, actual, largest = _vector(arrays, "total", store.n_features, _LARGEST_SUM), np.zeros(store.n_features), 0.0
    for block in store.blocks():  # removed rows are zero
        actual += block.rows.sum(axis=0, dtype=np.float64)
        largest = max(largest, float(abs(block.rows).max()))
    if not np.allclose(total, actual, rtol=1e-6, atol=1e-6 * (largest or 1)):
        raise ValueError("total is not the sum of the objects")
    return Parts(
        metric,
        _integer(header, "seed"),
        _integer(header, "n_records"),
        store,
        total,
        _feedback(arrays, store, unit_norm=metric == "cosine"),
        _monitor(arrays),
        _fingerprint(header, store.n_features),
    )


def _fingerprint(header: dict[str, Any], n_features: int) -> Fingerprint | None:
    if "fingerprint" not in header:
        return None
    found = Fingerprint.from_header(header["fingerprint"])
    if found.dimension != n_features:
        raise ValueError(f"fingerprint has {found.dimension} dimensions, expected {n_features} like the objects")
    return found


def _monitor(arrays: dict[str, Array]) -> Monitor:
    sums = _vector(arrays, "monitor", len(Monitor().sums), _LARGEST_SUM_OF_SQUARES)
    squares = sums[:16].reshape(4, 4)
    is_possible = np.array_equal(squares, squares.T) and (sums[16:] >= 0).all()
    if not is_possible or np.linalg.eigvalsh(squares)[0] < -1e-9 * max(1.0, float(np.trace(squares))):
        raise ValueError("monitor is not a positive semi-definite matrix of sums with counts")
    return Monitor(sums)


def _feedback(arrays: dict[str, Array], store: MemoryStore, *, unit_norm: bool) -> Feedback:
    query, objects, net, own_object = columns = tuple(arrays[name] for name in _COLUMNS)
    hashes = arrays["row_hashes"]
    if any(column.ndim != 1 for column in columns) or any(a.dtype != np.int64 for a in (*columns, hashes)):
        raise ValueError("feedback must be vectors of int64")
    if not len(query) == len(objects) == len(net) or hashes.shape != (len(own_object), HASH_LENGTH):
        raise ValueError("the columns of feedback differ in length")
    if len(query) and (query.min() < 0 or query.max() >= len(own_object) or (own_object[query] == REMOVED).any()):
        raise ValueError("feedback.query contains a number without a query")
    store.check_keys(np.concatenate([objects, own_object[own_object >= 0]]), "feedback")
    kept = hashes[own_object != REMOVED]
    if len(np.unique(np.column_stack([query, objects]), axis=0)) < len(query):
        raise ValueError("feedback contains a pair of query and object twice")
    if len(np.unique(kept, axis=0)) < len(kept) or (np.abs(net) > MAX_ID).any() or (own_object < REMOVED).any():
        raise ValueError("feedback contains a query twice, or numbers out of range")
    queries = None
    if "queries.keys" in arrays:
        queries = _store_from_arrays("queries", arrays, unit_norm=unit_norm)
        kinds = ((one.n_features, one.is_sparse, one.dtype) for one in (queries, store))
        if len(set(kinds)) > 1:
            raise ValueError("queries differ from objects in width, dtype or sparsity")
    if not np.array_equal(
        query[:0] if queries is None else np.sort(queries.present_keys), np.flatnonzero(own_object == -1)
    ):
        raise ValueError("queries.keys are not the queries with feedback")
    proximity = _vector(arrays, "proximity", len(own_object), _LARGEST_SUM)
    return Feedback.from_columns((query, objects, net, own_object), proximity, hashes, queries)


def _integer(header: dict[str, Any], name: str) -> int:
    return checks.check_integer(header[name], name, at_least=0)


def _store_to_arrays(name: str, store: MemoryStore) -> dict[str, Array]:
    """Return the rows, and how they lie in memory."""
    rows, (keys, lengths) = store.rows(store.present_keys), store.layout()
    arrays = sparse_parts(f"{name}.rows", rows) if sparse.issparse(rows) else {f"{name}.rows": rows}
    return {**arrays, f"{name}.keys": keys, f"{name}.chunks": lengths}


def _store_from_arrays(name: str, arrays: dict[str, Array], *, unit_norm: bool) -> MemoryStore:
    rows: Matrix
    if (whole := f"{name}.rows") in arrays:
        rows = arrays[whole]
    else:
        parts = {part: arrays[f"{whole}.{part}"] for part in ("data", "indices", "indptr", "shape")}
        rows = sparse_matrix(name, **parts)
    rows = as_rows(rows, whole, largest_square=LARGEST_SQUARE)
    keys, lengths = arrays[f"{name}.keys"], arrays[f"{name}.chunks"]
    if any(array.ndim != 1 or array.dtype != np.int64 for array in (keys, lengths)) or (keys > MAX_ID).any():
        raise ValueError(f"{name}.keys and {name}.chunks must be vectors of int64, at most 2**53 - 1")
    store = MemoryStore.from_layout(rows, keys, lengths, _string_ids(arrays) if name == "objects" else None)
    norms = row_norms(rows)
    if unit_norm and not np.all((norms == 0) | (np.abs(norms - 1) < _NORM_TOLERANCE)):
        raise ValueError(f"{name}.rows must have unit norm")
    return store


def _string_ids(arrays: dict[str, Array]) -> list[str] | None:
    if not any(name in arrays for name in _STRING_IDS):
        return None
    characters, ends = (arrays[name] for name in _STRING_IDS)
    is_valid = characters.ndim == ends.ndim == 1 and characters.dtype == np.int32 and ends.dtype == np.int64
    if not is_valid or (np.diff(ends, prepend=0) < 0).any() or ends.max(initial=0) != len(characters):
        raise ValueError("the string ids are not code points with ascending ends")
    text = characters.astype("<i4").tobytes().decode(*_ENCODING)
    return [text[start:end] for start, end in pairwise([0, *ends.tolist()])]


def _vector(arrays: dict[str, Array], name: str, length: int, largest: float) -> Array:
    values = arrays[name]
    if values.shape != (length,) or values.dtype != np.float64 or not (np.abs(values) <= largest).all():
        raise ValueError(f"{name} must be {length} numbers in float64, of at most {largest:.0e} in size")
    return values

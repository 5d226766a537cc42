"""Export the maps of a model for a vector store, with recipes for FAISS and pgvector.

A model is two maps and a metric: the store contains mapped objects, is searched with mapped queries, and compares them
by inner products ("dot") or by distances ("euclidean"). Bilinear learners leave objects as they are, so that a store
that has them is searched as it is; with ``--n-components`` both sides are mapped to short vectors.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from importlib.resources import files
from string import Template
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from threadpoolctl import threadpool_limits

from .._utils.checks import check_integer
from .._utils.chunks import chunks
from .._utils.rows import as_dense
from ..io.container import write_tensors
from ..io.durable import replacing
from .bundle import read_bundle
from .preparation import Preparation

Array = NDArray[Any]

# The largest number of dimensions that pgvector indexes.
_MAX_INDEXED = 2000
_N_PROBES = 8
# Maps with more cells are read in chunks and stored as sparse matrices.
_MAX_CELLS = 2**24
# Products with larger numbers could overflow.
_LARGEST_IMAGE = 1e100
# That of a factor that is not infinite: 4**500.
_SMALLEST_EXPONENT = -500
# By metric: the FAISS index, the operator and the operator class of pgvector, and the score from the operator.
_STORES = {
    "dot": {
        "faiss": "IndexFlatIP",
        "operator": "<#>",
        "operators": "vector_ip_ops",
        "score": "-(embedding <#> :query)",
    },
    "euclidean": {
        "faiss": "IndexFlatL2",
        "operator": "<->",
        "operators": "vector_l2_ops",
        "score": "-(embedding <-> :query) ^ 2",
    },
}


@dataclass(frozen=True, slots=True)
class ExportReport:
    """The result of `export`."""

    model: str
    folder: str
    files: list[str]
    metric: str
    """The metric that the store must use: "dot" or "euclidean"."""
    n_components: int
    """Number of dimensions of the vectors."""
    lost_share: float | None
    """Share of the squared norm of W that is lost by ``--n-components``."""
    notes: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON types."""
        return asdict(self)


def export(path: str, folder: str, *, n_components: int | None = None) -> ExportReport:
    """Write the maps of a model and recipes to a folder.

    Parameters
    ----------
    path : path
        The model file.
    folder : path
        Created if it does not exist; files of the same names in it are replaced.
    n_components : int, optional
        Map queries and objects of a bilinear learner to so many dimensions; by default the maps are exact.
    """
    trained = read_bundle(path)
    model = trained.model
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise NotADirectoryError(f"{folder} is not a folder")
    with threadpool_limits(1):
        W = None
        if n_components is not None:
            check_integer(n_components, "--n-components", at_least=1)
            if not hasattr(model, "project"):
                raise ValueError(
                    f"--n-components is for bilinear learners; {path} contains a {type(model).__name__}, "
                    "whose vectors have a fixed number of dimensions"
                )
            W, model = model.W_, model.project(n_components, symmetric=False)
        maps = {
            "queries": _linear_map(model.transform, model.n_features_in_),
            "objects": _linear_map(model.transform_objects, model.n_object_features_in_),
        }
        lost = None if W is None else _lost_share(W, maps["queries"][0], maps["objects"][0])
    notes: list[str] = []
    arrays: dict[str, Array] = {}
    width = model.n_object_features_in_
    description: dict[str, Any] = {"metric": model.metric_, "trained_on": trained.metadata}
    for name, side in (("queries", trained.queries), ("objects", trained.objects)):
        matrix, power = maps[name]
        width = width if matrix is None else matrix.shape[1]
        description[name], of_side = _preparation(side)
        description[name] |= {"is_mapped": matrix is not None, "power": power}
        arrays |= {f"{name}_{label}": array for label, array in of_side.items()}
        if sparse.issparse(matrix):
            notes.append(f"the map of the {name} is a sparse matrix, in {name}_map.npz")
        elif matrix is not None:
            arrays[name] = matrix
    if maps["objects"][0] is None:
        notes.append("objects are not mapped: a store of the prepared vectors can be searched as it is")
    os.makedirs(folder, exist_ok=True)
    written: list[str] = []
    with ExitStack() as stack:  # moves the files into place when all are written

        def create(name: str) -> BinaryIO:
            written.append(os.path.join(folder, name))
            return stack.enter_context(replacing(written[-1]))

        np.savez(create("maps.npz"), **arrays)  # type: ignore[arg-type]
        write_tensors(create("maps.safetensors"), arrays)
        for name, (matrix, _) in maps.items():
            if sparse.issparse(matrix):
                sparse.save_npz(create(f"{name}_map.npz"), matrix)
        create("model.json").write(json.dumps(description, indent=1, ensure_ascii=False).encode())
        for name, text in _recipes(model.metric_, width).items():
            create(name).write(text.encode())
    return ExportReport(path, folder, sorted(written), model.metric_, width, lost, notes)


def _linear_map(transform: Callable[[Any], Any], width: int) -> tuple[Any, float]:
    """Return the matrix L and the power a of a map ``L'x / |L'x|^a``, found by its values; None for the identity.

    Raises ValueError for other maps.
    """
    parts: list[Any] = []
    for chunk in chunks(width, _MAX_CELLS // width):
        basis = sparse.csr_array(sparse.eye_array(chunk.stop - chunk.start, width, k=chunk.start))
        part = transform(basis)
        if part is basis:
            return None, 0.0
        parts.append(sparse.csr_array(part) if width * part.shape[1] > _MAX_CELLS else part)
    mapped = parts[0] if len(parts) == 1 else sparse.vstack(parts) if sparse.issparse(parts[0]) else np.vstack(parts)
    probes = np.random.default_rng(0).normal(size=(_N_PROBES, width))
    expected, doubled = (as_dense(transform(scale * probes)).astype(np.float64) for scale in (1.0, 2.0))
    if (largest := np.abs(doubled).max()) > _LARGEST_IMAGE:
        raise ValueError(f"the map of this model returns {largest:.1e} for vectors of unit size, too large to export")
    norms = np.linalg.norm(expected), np.linalg.norm(doubled)
    power = round(1 - float(np.log2(norms[1] / norms[0])), 9) + 0.0 if norms[0] else 0.0
    if 0 < power < 1:  # the image of a unit vector has the norm |L_i|^(1 - a)
        mapped = as_dense(mapped).astype(np.float64)
        lengths = np.linalg.norm(mapped, axis=1, keepdims=True)
        mapped *= lengths ** (power / (1 - power))
    linear = as_dense(probes @ mapped)
    lengths = np.linalg.norm(linear, axis=1, keepdims=True) ** power
    found = np.divide(linear, lengths, out=np.zeros_like(linear), where=lengths > 0)
    if not np.allclose(found, expected, rtol=1e-5, atol=1e-5 * (np.abs(expected).max() or 1.0)):
        raise ValueError("the map of this model is not linear: serve it from Python with aromatch.load(...).transform")
    return mapped, power


def _lost_share(W: Any, left: Array, right: Array) -> float:
    """Return the share of the squared norm of W that the short vectors lose."""
    # Squares of large weights overflow: all are divided by a power of two, which rounds nothing.
    exponent = max(int(np.frexp(abs(W).max())[1]) // 2, _SMALLEST_EXPONENT)
    W, left, right = W * 0.25**exponent, left * 0.5**exponent, right * 0.5**exponent
    total = float(sparse.linalg.norm(W) if sparse.issparse(W) else np.linalg.norm(W)) ** 2
    kept = float(np.sum((left.T @ left) * (right.T @ right)))
    return max(0.0, 1.0 - kept / total) if total > 0 else 0.0


def _preparation(side: Preparation) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return how rows are made, for a recipe without this package."""
    if side.features is not None:
        text = side.features
        terms = {"what": "texts", "scale": "none", "terms": text.terms_.tolist()}
        return {**terms, "stop_words": text.stop_words, "token_pattern": text.token_pattern}, {"idf": text.idf_}
    arrays = {name: one for name, one in (("mean", side.mean), ("std", side.std)) if one is not None}
    return {"what": "vectors", "scale": side.scale}, arrays


def _recipes(metric: str, width: int) -> dict[str, str]:
    """Return the recipes by file name."""
    recipes = files("aromatch.workflows") / "recipes"
    index_note = "remove it for an exact search."
    if width > _MAX_INDEXED:
        index_note = f"pgvector indexes up to {_MAX_INDEXED:,} dimensions: remove it, or export with --n-components."
    values = {**_STORES[metric], "metric": metric, "n_components": width, "index_note": index_note}
    return {
        name.removesuffix(".in"): Template((recipes / name).read_text(encoding="utf-8")).substitute(values)
        for name in ("vectors.py.in", "faiss_recipe.py.in", "pgvector.sql")
    }

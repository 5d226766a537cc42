"""A model for other people's stores: its matrices as plain files, with recipes for FAISS and pgvector.

Two ways lead to the learned score. ``query_transform`` has W: transform the query, and search among objects as they
are. ``factors`` has two thin matrices: short vectors on both sides, and objects are stored anew. A projection has only
the second.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from scipy import sparse
from threadpoolctl import threadpool_limits

from .._utils.checks import check_integer
from ..learners import TripletEmbedding, TripletLearner
from .bundle import Trained
from .preparation import Preparation

Array = NDArray[Any]

_RANK = 128
# What pgvector indexes of the type vector.
_MOST_INDEXED = 2000


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What was written."""

    model: str
    folder: str
    files: list[str]
    rank: int
    """How many numbers a short vector has."""
    lost_share: float
    """Share of the squares of W that the factors lose."""
    notes: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Give the report as JSON knows it."""
        return asdict(self)


def export(path: str, folder: str, *, rank: int | None = None) -> ExportReport:
    """Write matrices and recipes into a folder.

    Parameters
    ----------
    path : path
        Of the model file.
    folder : path
        It is made when it is not there. Files of the same names in it are replaced.
    rank : int, optional
        How many numbers a short vector has: 128 when it is not given, or fewer where the model has fewer.
    """
    trained = Trained.load(path)
    model: Any = trained.model
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise NotADirectoryError(f"{folder} is there and is no folder")
    with threadpool_limits(1):
        left, right, lost, normalize = _factors(model, rank)
    arrays = {"left": left, "right": right}
    about: dict[str, Any] = {"rank": left.shape[1], "normalize": normalize, "learned_on": trained.about}
    for name, side in (("queries", trained.queries), ("objects", trained.objects)):
        about[name], of_side = _preparation(side)
        arrays |= {f"{name}_{label}": array for label, array in of_side.items()}
    notes = []
    os.makedirs(folder, exist_ok=True)
    written: list[str] = []
    with tempfile.TemporaryDirectory(dir=folder, prefix=".aromatch-") as beside:
        place = Path(beside)
        _write_arrays(place / "factors", arrays)
        if isinstance(model, TripletLearner):
            W = model.W_
            if sparse.issparse(W):
                sparse.save_npz(place / "query_transform.npz", W)
                notes.append(
                    "W is sparse: query_transform.npz is as SciPy saves it, and there is no .safetensors of it"
                )
            else:
                _write_arrays(place / "query_transform", {"W": W})
        (place / "about.json").write_text(json.dumps(about, indent=1, ensure_ascii=False), encoding="utf-8")
        recipes = files("aromatch.workflows") / "recipes"
        for name in ("vectors.py", "faiss_recipe.py"):
            (place / name).write_text((recipes / f"{name}.in").read_text(encoding="utf-8"), encoding="utf-8")
        index_note = "remove it for an exact search."
        if left.shape[1] > _MOST_INDEXED:
            index_note = (
                f"pgvector indexes up to {_MOST_INDEXED:,} numbers, so leave it out or export with less --rank."
            )
        sql = Template((recipes / "pgvector.sql").read_text(encoding="utf-8"))
        (place / "pgvector.sql").write_text(sql.substitute(rank=left.shape[1], index_note=index_note), encoding="utf-8")
        for file in sorted(place.iterdir()):
            written.append(os.path.join(folder, file.name))
            shutil.move(file, written[-1])
    return ExportReport(path, folder, written, left.shape[1], lost, notes)


def _factors(model: Any, rank: int | None) -> tuple[Array, Array, float, float]:
    """Give thin matrices of both sides, what is lost by them, and the power of norms that rows are divided by."""
    if rank is not None:
        check_integer(rank, "--rank", at_least=1)
    if isinstance(model, TripletEmbedding):
        L = model.components_.T
        kept = L.shape[1] if rank is None else min(rank, L.shape[1])
        squares = np.sum(L**2, axis=0) ** 2
        lost = 1 - float(squares[:kept].sum() / squares.sum()) if squares.any() else 0.0
        return L[:, :kept].copy(), L[:, :kept].copy(), max(0.0, lost), float(model._state["power"][0])
    if not isinstance(model, TripletLearner):
        raise TypeError(f"a {type(model).__name__} has no W to export")
    most = min(model.n_features_in_, model.n_object_features_in_)
    if rank is not None and rank > most:
        raise ValueError(f"--rank must be at most {most}, the number of features, got {rank}")
    cut = model.project(min(_RANK, most) if rank is None else rank, symmetric=False)
    total = float(sparse.linalg.norm(model.W_) if sparse.issparse(model.W_) else np.linalg.norm(model.W_)) ** 2
    kept = float(np.sum(np.sum(cut.components_**2, axis=1) ** 2))
    return cut.components_.T.copy(), cut.object_components_.T.copy(), max(0.0, 1 - kept / total) if total else 0.0, 0.0


def _preparation(side: Preparation) -> tuple[dict[str, Any], dict[str, Array]]:
    """Tell how rows are made, so that a few lines of Python can do it."""
    if side.features is not None:
        text = side.features
        told = {"what": "texts", "scale": "none", "terms": text.terms_.tolist()}
        return {**told, "stop_words": text.stop_words, "token_pattern": text.token_pattern}, {"idf": text.idf_}
    arrays = {name: one for name, one in (("mean", side.mean), ("spread", side.spread)) if one is not None}
    return {"what": "vectors", "scale": side.scale}, arrays


def _write_arrays(path: Path, arrays: dict[str, Array]) -> None:
    np.savez(path.with_suffix(".npz"), **arrays)  # type: ignore[arg-type]
    save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, path.with_suffix(".safetensors"))

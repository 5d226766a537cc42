"""Load any file that this package writes.

Every file names its kind in the header. `KINDS` maps a kind to the callable that rebuilds the object from header and
arrays. The callables are dotted names that are imported on use, so that this module imports none of the layers above.
"""

from __future__ import annotations

from importlib import import_module
from operator import attrgetter
from os import PathLike
from typing import Any

from numpy.typing import NDArray

from ..exceptions import ModelFileError
from .container import read_model

KINDS = {
    "learner": "aromatch.learners.files:from_parts",
    "adapter": "aromatch.search:Adapter._from_parts",
    "bundle": "aromatch.workflows.bundle:TrainedModel._from_parts",
}


def load(path: str | PathLike[str], *, encoder: Any = None, store: Any = None) -> Any:
    """Load a file that this package wrote: a learner, an embedding, an adapter or a trained bundle.

    No code in the file is executed.

    Parameters
    ----------
    path : str or path-like
        A file written by ``save``, `aromatch train` or `aromatch trial`.
    encoder : callable, optional
        For adapters: maps texts to vectors. Encoders are not stored in files.
    store : None
        Reserved for adapters whose objects are in another store; files of this version contain the objects.

    Returns
    -------
    Similarity, Adapter or TrainedModel

    Raises
    ------
    ModelFileError
        If the file is truncated, changed, or not written by this package.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> import aromatch as am
    >>> model = am.DiagonalAROMA().fit_triplets([[0, 1, 2]], np.eye(3))
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "similarity.safetensors"
    >>> model.save(path)
    >>> bool((am.load(path).W_ == model.W_).all())
    True
    """
    header, arrays = read_model(path)
    if store is not None:
        raise ValueError(f"store must be None, got {store!r}: {path} contains the objects")
    if encoder is not None and header.get("kind") != "adapter":
        raise ValueError(f"encoder must be None, got {encoder!r}: {path} contains no adapter")
    try:
        return assemble(header, arrays, **({} if encoder is None else {"encoder": encoder}))
    except ModelFileError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path} is not a model that this version can use: {error}") from error


def assemble(header: dict[str, Any], arrays: dict[str, NDArray[Any]], **options: Any) -> Any:
    """Rebuild an object from the header and the arrays of its file; raise ValueError if these are inconsistent."""
    kind = header.get("kind")
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    module, _, name = KINDS[kind].partition(":")
    return attrgetter(name)(import_module(module))(header, arrays, **options)

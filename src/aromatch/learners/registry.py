"""Every learner by its name, and the way back from a model file."""

from collections.abc import Mapping
from os import PathLike

from ..exceptions import ModelFileError
from ..io.container import read_model
from .base import Similarity
from .baselines.cosine import Cosine
from .baselines.euclidean import Euclidean
from .baselines.hier import HIER
from .baselines.itml import ITML
from .baselines.lego import LEGO
from .baselines.lmnn import LMNN
from .embedding.projection import Projection
from .files import Parts, from_parts
from .moment.moment import MomentAROMA
from .online.diagonal import DiagonalAROMA
from .online.factored import FactoredAROMA
from .online.full import FullAROMA
from .online.oasis import OASIS

LEARNERS: Mapping[str, type[Similarity]] = {
    learner.__name__: learner
    for learner in (
        DiagonalAROMA,
        FactoredAROMA,
        FullAROMA,
        MomentAROMA,
        OASIS,
        Cosine,
        Euclidean,
        ITML,
        LEGO,
        LMNN,
        HIER,
    )
}


def load(path: str | PathLike[str]) -> Similarity:
    """Read a model that `save` wrote.

    Nothing in the file is run. A file that is truncated, changed or not a model is refused with a
    `ModelFileError` that names it.

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
    return model_of(path, read_model(path))


def model_of(path: str | PathLike[str], parts: Parts) -> Similarity:
    """Put a model together from what was read from a file."""
    try:
        model: Similarity = from_parts(*parts, {**LEARNERS, "Projection": Projection})
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path} is not a model that this version can use: {error}") from error
    return model

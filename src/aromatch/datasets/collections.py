"""Return types of the loaders: texts or images with labels and names."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, slots=True)
class LabelledTexts:
    """Texts with their classes.

    Attributes
    ----------
    texts : list of str
        The documents.
    labels : ndarray of str, shape (n,)
        The class of each document.
    names : list of str
        A readable name of each document, such as `"json.decoder.JSONDecoder.decode"`.
    """

    texts: list[str]
    labels: NDArray[np.str_]
    names: list[str]

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True, eq=False, slots=True)
class LabelledImages:
    """Encoded images with their classes.

    Attributes
    ----------
    images : list of bytes or of Path
        The encoded images, mostly JPEG: all bytes if they were read from a tar file, all paths if they are in a
        folder.
    labels : ndarray of str, shape (n,)
        The class of each image.
    names : list of str
        The class and the file name of each image, such as `"bonsai/image_0001.jpg"`.
    """

    images: Sequence[bytes] | Sequence[Path]
    labels: NDArray[np.str_]
    names: list[str]

    def __len__(self) -> int:
        return len(self.images)

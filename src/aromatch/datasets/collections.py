"""What the loaders return: texts or images, with their classes and names."""

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
        What each document is called, for people to read, such as `"json.decoder.JSONDecoder.decode"`.
    """

    texts: list[str]
    labels: NDArray[np.str_]
    names: list[str]

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True, eq=False, slots=True)
class LabelledImages:
    """Images with their classes, not decoded.

    Attributes
    ----------
    images : list of bytes or of Path
        The images as they are stored, mostly JPEG: the bytes of those that come out of a tar file, the
        paths of those that lie in a folder. All are of one kind.
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

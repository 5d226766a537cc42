"""Reading of pictures from files, bytes and arrays as 8-bit RGB.

Grey pictures get three equal channels, transparent ones a white background, 16-bit ones are rounded to 8 bits, and
photographs are rotated by their EXIF orientation. Of an animation the first frame is used.
"""

import io
import os
import warnings
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._utils.checks import as_array, as_list

if TYPE_CHECKING:
    from PIL import Image

# A file of a few kilobytes can declare gigapixels: larger pictures are refused before they are decoded.
MAX_PIXELS = 50_000_000

Picture = str | os.PathLike[str] | bytes | NDArray[Any]


def require_image_extra() -> None:
    """Raise ImportError if the optional dependencies for images are missing."""
    missing = [name for module, name in (("skimage", "scikit-image"), ("PIL", "Pillow")) if find_spec(module) is None]
    if missing:
        raise ImportError(f"image features require {' and '.join(missing)}: pip install 'aromatch[image]'")


def check_pictures(images: Any) -> list[Any]:
    """Check pictures; return them as a list."""
    single = isinstance(images, str | bytes | os.PathLike)
    if isinstance(images, np.ndarray):
        single = images.ndim == 2 or (images.ndim == 3 and images.shape[2] in (3, 4))
    if single or not isinstance(images, Iterable) or isinstance(images, Mapping):
        raise TypeError(f"images must be a sequence of pictures, got {type(images).__name__}")
    pictures = as_list(images, "images")
    if not pictures:
        raise ValueError("images must contain at least one picture, got none")
    for at, picture in enumerate(pictures):
        if not isinstance(picture, str | bytes | os.PathLike | np.ndarray):
            raise TypeError(f"images must contain paths, bytes or arrays, got {type(picture).__name__} at index {at}")
    return pictures


def content(picture: Picture, name: str) -> tuple[bytes, bytes]:
    """Return the kind and the bytes that identify a picture; a file is read here."""
    if isinstance(picture, bytes):
        return b"file", picture
    if isinstance(picture, np.ndarray):
        _check_shape(picture, name)
        return f"array {picture.dtype.str} {picture.shape}".encode(), picture.tobytes()
    return b"file", Path(picture).read_bytes()


def open_picture(picture: Picture, file: bytes, name: str) -> "Image.Image":
    """Return a picture as 8-bit RGB.

    Parameters
    ----------
    picture : path, bytes or array
        The picture.
    file : bytes
        The bytes of its file, as returned by `content`; ignored for an array.
    name : str
        Name of the picture in error messages.

    Returns
    -------
    PIL.Image.Image
        In mode RGB, with at least one pixel.
    """
    from PIL import Image, ImageOps

    if isinstance(picture, np.ndarray):
        return Image.fromarray(_as_bytes(picture, name))
    try:
        with warnings.catch_warnings():
            # Pillow warns about sizes, for which our limit is lower, and about unused metadata.
            warnings.simplefilter("ignore")
            opened: Image.Image = Image.open(io.BytesIO(file))
            if opened.width * opened.height > MAX_PIXELS:
                raise ValueError(f"{opened.width} x {opened.height} pixels are more than {MAX_PIXELS:,}")
            opened = ImageOps.exif_transpose(opened)
            opened.load()
            if opened.mode.startswith(("I", "F")):
                return Image.fromarray(_as_bytes(_wide(np.asarray(opened)), name))
            if opened.has_transparency_data:
                white = Image.new("RGBA", opened.size, "white")
                return Image.alpha_composite(white, opened.convert("RGBA")).convert("RGB")
            return opened.convert("RGB")
    except MemoryError:
        raise
    except Exception as error:  # Pillow raises many kinds of errors for damaged files
        raise ValueError(f"{name} cannot be read as a picture: {error}") from error


def _wide(values: NDArray[Any]) -> NDArray[Any]:
    """Return the values of a 16-bit file as uint16; Pillow returns some of them as 32-bit integers."""
    return values if values.dtype.kind == "f" else np.clip(values, 0, 65535).astype(np.uint16)


def _as_bytes(values: NDArray[Any], name: str) -> NDArray[np.uint8]:
    """Return an array of grey values, RGB or RGBA as (height, width, 3) bytes."""
    array = as_array(values, name)
    _check_shape(array, name)
    array = array.reshape(*array.shape[:2], -1)
    height, width, channels = array.shape
    scaled = _in_unit(array, name) * 255.0
    if channels == 4:
        opacity = scaled[:, :, 3:] / 255.0
        scaled = scaled[:, :, :3] * opacity + 255.0 * (1.0 - opacity)
    eight_bits: NDArray[np.uint8] = np.rint(scaled).astype(np.uint8)
    return np.ascontiguousarray(np.broadcast_to(eight_bits, (height, width, 3)))


def _check_shape(array: NDArray[Any], name: str) -> None:
    if array.ndim not in (2, 3) or array.shape[2:] not in ((), (1,), (3,), (4,)):
        raise ValueError(
            f"{name} must have the shape (height, width), (height, width, 3) or (height, width, 4), got {array.shape}"
        )
    height, width = array.shape[:2]
    if height == 0 or width == 0:
        raise ValueError(f"{name} has no pixels: its shape is {array.shape}")
    if height * width > MAX_PIXELS:
        raise ValueError(f"{name} has {width} x {height} pixels, more than {MAX_PIXELS:,}")


def _in_unit(array: NDArray[Any], name: str) -> NDArray[np.float64]:
    """Scale values to the range from 0 to 1, by their type."""
    if array.dtype.kind == "b":
        return array.astype(np.float64)
    if array.dtype == np.uint16:
        return array / 65535.0
    if array.dtype.kind in "iu":
        if array.min() < 0 or array.max() > 255:
            raise ValueError(f"{name} must have values from 0 to 255, got {array.min()} to {array.max()}")
        return array / 255.0
    if array.dtype.kind != "f":
        raise TypeError(f"{name} must be an array of numbers, got {array.dtype}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} contains NaN or infinity, expected values from 0 to 1")
    if array.min() < 0 or array.max() > 1:
        raise ValueError(f"{name} must have values from 0 to 1, as floats, got {array.min():g} to {array.max():g}")
    return array.astype(np.float64)

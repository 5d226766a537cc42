"""Descriptors of patches: a histogram of texture and a histogram of colours.

Texture is the uniform local binary pattern LBP(8, 2) (Ojala, Pietikäinen & Mäenpää 2002). For each pixel c, the picture
is interpolated bilinearly at 8 points of a circle of radius 2, and each point contributes one bit: whether it is at
least as bright as c. A pattern is uniform if its bits change at most twice around the circle. There are 58 uniform
patterns (8 * 7 edges and corners, all ones, all zeros); all others share a 59th bin. The histogram is invariant to
exposure and contrast.

Colour is a joint histogram of the three coordinates of a colour space, with equal bins.

Patches are overlapping squares on a grid with equal margins. To count them efficiently, the picture is divided into
cells of g = gcd(patch size, stride) pixels and the codes of each cell are counted. With I the sums of these counts over
all cells above and to the left, a patch that begins at cell (i, j) and is k = size / g cells wide has the counts

    I[i + k, j + k] - I[i, j + k] - I[i + k, j] + I[i, j],

which are integers and exact.

T. Ojala, M. Pietikäinen and T. Mäenpää, "Multiresolution gray-scale and rotation invariant texture classification
with local binary patterns", IEEE PAMI 24(7), 2002.
"""

from functools import lru_cache
from math import gcd, prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._utils.checks import check_fits_in_memory

if TYPE_CHECKING:
    from PIL import Image

N_PATTERNS = 59
RADIUS = 2
COLOUR_SPACES = ("rgb", "hsv", "lab", "opponent")
# Colours are rounded to 6 bits per channel, so that any colour space is one lookup in a table of 2^18 bins.
COLOUR_BITS = 6
# Codes of patterns, of colours and of cells have 8 bytes each, and copies of them are made.
_BYTES_OF_A_PIXEL = 48


def texture_codes(channel: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the LBP(8, 2) bin, 0 to 58, of every pixel, with reflection at the edges.

    >>> bool((texture_codes(np.zeros((4, 5), dtype=np.uint8)) == 57).all())  # constant brightness
    True
    """
    from skimage import feature

    local_binary_pattern: Any = feature.local_binary_pattern  # untyped in scikit-image
    # scikit-image pads with black, which would add an edge around every picture.
    padded = np.pad(channel, RADIUS + 1, mode="symmetric")
    inner = slice(RADIUS + 1, -RADIUS - 1)
    codes = local_binary_pattern(padded, 8, RADIUS, method="nri_uniform")[inner, inner]
    return np.asarray(codes, dtype=np.int64)


def colour_codes(rgb: NDArray[np.uint8], space: str, bins: tuple[int, int, int]) -> NDArray[np.int64]:
    """Return the colour bin of every pixel."""
    red, green, blue = np.moveaxis(rgb >> (8 - COLOUR_BITS), 2, 0)
    return np.asarray(_colour_table(space, bins)[red, green, blue])


@lru_cache(maxsize=8)
def _colour_table(space: str, bins: tuple[int, int, int]) -> NDArray[np.int64]:
    from skimage import color

    levels = (np.arange(2**COLOUR_BITS) + 0.5) / 2**COLOUR_BITS
    rgb = np.stack(np.meshgrid(levels, levels, levels, indexing="ij"), axis=-1)
    if space == "rgb":
        coordinates = rgb
    elif space == "hsv":
        coordinates = color.rgb2hsv(rgb)
    elif space == "lab":
        # Few colours of photographs are further than 50 from grey; these are counted in the outermost bins.
        coordinates = (color.rgb2lab(rgb) + np.array([0.0, 50.0, 50.0])) / 100.0
    else:
        red, green, blue = np.moveaxis(rgb, 3, 0)
        light, red_green, yellow_blue = (red + green + blue) / 3, red - green, (red + green) / 2 - blue
        coordinates = np.stack([light, red_green + 0.5, yellow_blue + 0.5], axis=-1)
    bin_indices = np.clip((coordinates * bins).astype(np.int64), 0, np.array(bins) - 1)
    return np.asarray(np.ravel_multi_index(tuple(np.moveaxis(bin_indices, 3, 0)), bins), dtype=np.int64)


def grid(length: int, patch_size: int, stride: int) -> NDArray[np.int64]:
    """Return the first pixels of patches along a side: every `stride` pixels, with equal margins.

    >>> grid(70, patch_size=32, stride=16)
    array([ 3, 19, 35])
    """
    steps = (length - patch_size) // stride
    return (length - patch_size - steps * stride) // 2 + stride * np.arange(steps + 1)


def count_in_patches(codes: NDArray[np.int64], n_bins: int, patch_size: int, stride: int) -> NDArray[np.int64]:
    """Count each code in each patch.

    Parameters
    ----------
    codes : ndarray of int64, shape (height, width)
        A code from 0 to `n_bins` - 1 for each pixel; both sides are at least `patch_size`.
    n_bins : int
        The number of codes.
    patch_size, stride : int
        Side of a patch, and distance to the next one.

    Returns
    -------
    ndarray of int64, shape (n_patches, n_bins)
        Counts of the patches, row by row.

    Examples
    --------
    >>> count_in_patches(np.array([[0, 0, 1, 1], [0, 2, 1, 1]]), n_bins=3, patch_size=2, stride=1)
    array([[3, 0, 1],
           [1, 2, 1],
           [0, 4, 0]])
    """
    rows, columns = (grid(length, patch_size, stride) for length in codes.shape)
    cell = gcd(patch_size, stride)
    covered = codes[rows[0] : rows[-1] + patch_size, columns[0] : columns[-1] + patch_size]
    height, width = covered.shape[0] // cell, covered.shape[1] // cell
    cell_of = (np.arange(covered.shape[0]) // cell)[:, None] * width + np.arange(covered.shape[1]) // cell
    in_cells = np.bincount((cell_of * n_bins + covered).ravel(), minlength=height * width * n_bins)
    sums = np.zeros((height + 1, width + 1, n_bins), dtype=np.int64)
    sums[1:, 1:] = in_cells.reshape(height, width, n_bins).cumsum(axis=0).cumsum(axis=1)
    top, left = ((starts - starts[0]) // cell for starts in (rows, columns))
    bottom, right = top + patch_size // cell, left + patch_size // cell
    counts = sums[bottom][:, right] - sums[top][:, right] - sums[bottom][:, left] + sums[top][:, left]
    return np.asarray(counts.reshape(-1, n_bins))


def describe(
    picture: "Image.Image",
    *,
    patch_size: int,
    stride: int,
    scales: tuple[float, ...],
    longest_side: int | None,
    colour_space: str,
    colour_bins: tuple[int, int, int],
) -> NDArray[Any]:
    """Count patterns and colours in every patch of a picture at every scale.

    Returns
    -------
    ndarray of uint16, shape (n_patches, 59 + number of colour bins)
        Each half of a row sums to the area of a patch; uint32 if that overflows uint16.
    """
    from PIL import Image

    shrink = 1.0 if longest_side is None else min(1.0, longest_side / max(picture.size))
    blocks = []
    for scale in scales:
        width, height = (max(1, round(side * shrink * scale)) for side in picture.size)
        # BOX averages pixels, and is fast.
        same = (width, height) == picture.size
        seen = picture if same else picture.resize((width, height), Image.Resampling.BOX)
        rgb, grey = (_at_least(np.asarray(image), patch_size) for image in (seen, seen.convert("L")))
        texture = count_in_patches(texture_codes(grey), N_PATTERNS, patch_size, stride)
        colours = colour_codes(rgb, colour_space, colour_bins)
        blocks.append(np.hstack([texture, count_in_patches(colours, prod(colour_bins), patch_size, stride)]))
    return np.vstack(blocks).astype(np.uint16 if patch_size < 256 else np.uint32)


def _at_least(image: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """Pad a picture by reflection until a patch fits."""
    missing = [max(0, side - length) for length in image.shape[:2]]
    widths = [(short // 2, short - short // 2) for short in missing] + [(0, 0)] * (image.ndim - 2)
    if not any(missing):
        return image
    n_pixels = prod(max(side, length) for length in image.shape[:2])
    check_fits_in_memory(n_pixels * _BYTES_OF_A_PIXEL, f"A picture of patch_size={side}")
    return np.pad(image, widths, mode="symmetric")

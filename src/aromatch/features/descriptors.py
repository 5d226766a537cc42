"""Descriptors of the patches of many pictures, computed in parallel and cached.

The name of a cache file is the SHA-256 of everything its values depend on: the bytes of the picture, the parameters and
the version of the computation. Renamed pictures are therefore found, and changed ones are not. Weights and scalings are
applied later and need no new descriptors.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from math import prod
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from .._utils.checks import check_choice, check_integer, check_number
from .._utils.progress import progress_bar
from ..io.durable import remove_stale, replacing
from . import patches
from .pictures import Picture, check_pictures, content, open_picture, require_image_extra

# Increase it if the values for the same picture and parameters change, to invalidate old cache files.
VERSION = 1
# Starting processes takes about as long as describing this many pictures.
FEW = 32
_LARGEST_BINS = 256


class PatchDescriptors(TransformerMixin, BaseEstimator):
    """Counts of texture patterns and of colours in overlapping square patches; stateless.

    Parameters
    ----------
    patch_size : int, default 24
        Side of a patch in pixels. Small patches give many simple words, large ones few specific words. A picture
        smaller than a patch is padded by reflection.
    stride : int, default 12
        Distance between neighbouring patches in pixels; they overlap if it is less than `patch_size`.
    scales : sequence of float, default (1.0, 0.5, 0.25)
        Scales to which a picture is reduced. At smaller scales patches contain coarser patterns.
    longest_side : int or None, default 300
        Larger pictures are first reduced so that their longer side has this many pixels. None keeps their size; a
        photograph from a camera then has some hundred thousand patches.
    colour_space : "opponent", "rgb", "hsv" or "lab", default "opponent"
        Coordinates of the colour histogram. "opponent" is lightness, red-green and yellow-blue.
    colour_bins : three ints of at most 256, default (5, 5, 5)
        Number of bins of each coordinate. With odd numbers nearly grey colours share one bin of an opponent axis.
    cache : path or None, default None
        Folder of the cache; None disables it.
    n_jobs : int, default -1
        Number of processes; -1 means one per core. Does not change the result.
    verbose : bool, default False
        Show a progress bar if standard error is a terminal.

    Examples
    --------
    >>> import numpy as np
    >>> from aromatch.features import PatchDescriptors
    >>> stripes = np.tile(np.repeat([0, 255], 4), (64, 8)).astype(np.uint8)
    >>> counts, = PatchDescriptors(patch_size=32, stride=16, scales=[1.0]).transform([stripes])
    >>> counts.shape  # 3 x 3 patches; 59 patterns and 125 colours
    (9, 184)
    >>> counts[:, :59].sum(axis=1).tolist() == [32 * 32] * 9
    True
    """

    def __init__(
        self,
        patch_size: int = 24,
        *,
        stride: int = 12,
        scales: Iterable[float] = (1.0, 0.5, 0.25),
        longest_side: int | None = 300,
        colour_space: str = "opponent",
        colour_bins: Iterable[int] = (5, 5, 5),
        cache: str | os.PathLike[str] | None = None,
        n_jobs: int = -1,
        verbose: bool = False,
    ) -> None:
        self.patch_size = patch_size
        self.stride = stride
        self.scales = scales
        self.longest_side = longest_side
        self.colour_space = colour_space
        self.colour_bins = colour_bins
        self.cache = cache
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, images: Any = None, y: Any = None) -> Self:
        """Check the parameters; nothing is fitted.

        Parameters
        ----------
        images, y : ignored
            Present for compatibility with scikit-learn.

        Returns
        -------
        PatchDescriptors
            The transformer itself.
        """
        self._settings()
        return self

    def transform(self, images: Iterable[Picture]) -> list[NDArray[Any]]:
        """Compute the descriptors of all patches of all pictures.

        Parameters
        ----------
        images : iterable of paths, bytes of picture files, or arrays
            Arrays are (height, width) grey values, (height, width, 3) RGB or (height, width, 4) RGBA: bytes,
            16-bit numbers, or floats from 0 to 1.

        Returns
        -------
        list of ndarray of uint16, each of shape (n_patches, 59 + number of colour bins)
            Counts of each pattern and each colour in each patch, by scale, row and column.
        """
        return list(self.each(images, _unchanged))

    def each(
        self,
        images: Iterable[Picture],
        function: Callable[[NDArray[Any], int], Any],
        doing: str = "describing pictures",
    ) -> Iterator[Any]:
        """Apply a function to the descriptors of each picture, in the process that computes them.

        Parameters
        ----------
        images : iterable of pictures
            As for `transform`.
        function : callable
            Called with the counts of one picture and its index; must be picklable.
        doing : str
            Description of the progress bar.

        Yields
        ------
        object
            Return value of the function, in the order of the pictures.
        """
        from joblib import Parallel, delayed

        require_image_extra()
        settings = self._settings()
        pictures = check_pictures(images)
        cache = None if self.cache is None else Path(self.cache)
        if cache is not None:
            cache.mkdir(parents=True, exist_ok=True)
            remove_stale(cache)
        jobs = (delayed(_work)(function, picture, at, settings, cache) for at, picture in enumerate(pictures))
        n_jobs = 1 if len(pictures) <= FEW else int(self.n_jobs)
        with progress_bar(doing, len(pictures), enabled=self.verbose) as advance:
            for result in Parallel(n_jobs=n_jobs, return_as="generator")(jobs):
                yield result
                advance(1)

    def _settings(self) -> dict[str, Any]:
        """Check the parameters; return those that the values depend on."""
        patch_size = check_integer(self.patch_size, "patch_size", at_least=2)
        for name in ("scales", "colour_bins"):
            if not isinstance(getattr(self, name), Iterable):
                raise TypeError(f"{name} must be a sequence of numbers, got {getattr(self, name)!r}")
        bins = tuple(check_integer(number, "colour_bins", at_least=1) for number in self.colour_bins)
        if max(bins, default=1) > _LARGEST_BINS:
            raise ValueError(f"colour_bins must be at most {_LARGEST_BINS}, the values of a colour, got {bins!r:.100}")
        scales = tuple(check_number(scale, "scales", above=0) for scale in self.scales)
        if len(bins) != 3:
            raise ValueError(f"colour_bins must be three numbers, got {self.colour_bins!r}")
        if not scales or max(scales) > 1:
            raise ValueError(f"scales must be one or more numbers of at most 1, got {self.scales!r}")
        longest_side = self.longest_side
        if longest_side is not None:
            longest_side = check_integer(longest_side, "longest_side", at_least=1)
        if check_integer(self.n_jobs, "n_jobs", at_least=-(2**31)) == 0:
            raise ValueError("n_jobs must be a number of processes, or -1 for one per core, got 0")
        return {
            "patch_size": patch_size,
            "stride": check_integer(self.stride, "stride", at_least=1),
            "scales": scales,
            "longest_side": longest_side,
            "colour_space": check_choice(self.colour_space, "colour_space", patches.COLOUR_SPACES),
            "colour_bins": bins,
        }


def _unchanged(counts: NDArray[Any], number: int) -> NDArray[Any]:
    return counts


def _work(
    function: Callable[[NDArray[Any], int], Any],
    picture: Picture,
    at: int,
    settings: dict[str, Any],
    cache: Path | None,
) -> Any:
    name = f"images[{at}]" + ("" if isinstance(picture, bytes | np.ndarray) else f" ({os.fspath(picture)})")
    kind, file = content(picture, name)
    if cache is None:
        return function(patches.describe(open_picture(picture, file, name), **settings), at)
    digest = hashlib.sha256(json.dumps([VERSION, settings], sort_keys=True).encode())
    digest.update(kind + b"\0")
    digest.update(file)
    path = cache / f"{digest.hexdigest()}.npz"
    counts = _read(path, patches.N_PATTERNS + prod(settings["colour_bins"]), settings["patch_size"] ** 2)
    if counts is None:
        counts = patches.describe(open_picture(picture, file, name), **settings)
        with replacing(path, clean=False) as cached:
            np.savez_compressed(cached, counts=counts)
    return function(counts, at)


def _read(path: Path, n_columns: int, area: int) -> NDArray[Any] | None:
    """Return the content of a cache file, or None if it is missing or damaged."""
    try:
        with np.load(path, allow_pickle=False) as file:
            counts: NDArray[Any] = file["counts"]
    except Exception:  # damaged files raise many kinds of errors, and the descriptors can be computed again
        return None
    if counts.ndim != 2 or counts.dtype.kind != "u" or counts.shape[1] != n_columns:
        return None
    # Row sums are known, which detects files of other parameters and flipped bits.
    valid = (counts.sum(axis=1, dtype=np.int64) == 2 * area).all()
    return counts if len(counts) and valid else None

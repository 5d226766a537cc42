"""Data folder, errors for missing files, and checksums.

The data folder is the `folder` argument of a loader, else the environment variable `AROMATCH_DATA`, else
`~/aromatch_data`. It is not a cache folder, because users put files there by hand. Nothing is written there and nothing
is downloaded.
"""

import hashlib
import os
from functools import lru_cache
from pathlib import Path

from .._utils.progress import progress_bar
from ..exceptions import DataFileError

DEFAULT_FOLDER = "~/aromatch_data"
VARIABLE = "AROMATCH_DATA"
BLOCK = 2**22

Folder = str | os.PathLike[str] | None


def data_folder(folder: Folder = None) -> Path:
    """Return the folder in which loaders look for data files.

    Parameters
    ----------
    folder : path, optional
        Takes precedence over the environment variable `AROMATCH_DATA` and the default `~/aromatch_data`.

    Returns
    -------
    Path
        The folder, which need not exist.

    Examples
    --------
    >>> from aromatch.datasets import data_folder
    >>> data_folder("my/data").as_posix()
    'my/data'
    """
    # Shell scripts often unset a variable by making it empty.
    return Path(os.environ.get(VARIABLE) or DEFAULT_FOLDER if folder is None else folder).expanduser()


def missing(what: str, directory: Path, remedy: str) -> FileNotFoundError:
    """Return an error that names the missing data set, its source and the folder to put it in."""
    return FileNotFoundError(
        f"{what} is not in {directory}: {remedy}; set the argument folder or the environment variable {VARIABLE} "
        "to use another folder"
    )


def check_digest(path: Path, expected: str, *, algorithm: str = "sha256", verbose: bool = False) -> None:
    """Raise an error if the checksum of a file is wrong; an unchanged file is read once per process."""
    stat = path.stat()
    found = _digest(path.resolve(), algorithm, stat.st_size, stat.st_mtime_ns, verbose)
    if found != expected:
        raise DataFileError(
            f"{path} is truncated or modified: expected the {algorithm} checksum {expected}, got {found}; get it again"
        )


@lru_cache(maxsize=64)
def _digest(path: Path, algorithm: str, size: int, changed: int, verbose: bool) -> str:
    """Compute a checksum; size and modification time are part of the cache key."""
    digest = hashlib.new(algorithm, usedforsecurity=False)
    with (
        path.open("rb") as file,
        progress_bar(f"checking {path.name} (MiB)", -(-size // 2**20), enabled=verbose) as advance,
    ):
        while block := file.read(BLOCK):
            digest.update(block)
            advance(BLOCK // 2**20)
    return digest.hexdigest()

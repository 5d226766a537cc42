"""Where data files are looked for, what to say when they are missing, and whether they are whole.

A data set is looked for in the folder that the caller names, else in the one that the environment variable
`AROMATCH_DATA` names, else in `aromatch_data` in the home folder: a place in plain sight, because people put
files there by hand and a cache is what cleaning programs empty. Nothing is written there and nothing is
downloaded.
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
    """Say where data files are looked for.

    Parameters
    ----------
    folder : path, optional
        The caller's choice, which comes before the environment variable `AROMATCH_DATA` and the folder
        `aromatch_data` in the home folder.

    Returns
    -------
    Path
        The folder, whether it exists or not.

    Examples
    --------
    >>> from aromatch.datasets import data_folder
    >>> data_folder("my/data").as_posix()
    'my/data'
    """
    # An empty variable is what a shell makes of one that was meant to be unset.
    return Path(os.environ.get(VARIABLE) or DEFAULT_FOLDER if folder is None else folder).expanduser()


def missing(what: str, place: Path, remedy: str) -> FileNotFoundError:
    """Make the error that says in one sentence what is missing, where it comes from and where it belongs."""
    return FileNotFoundError(
        f"{what} is not in {place}: {remedy}; the argument folder or the environment variable {VARIABLE} names "
        "another folder"
    )


def check_digest(path: Path, expected: str, *, algorithm: str = "sha256", show_progress: bool = False) -> None:
    """Refuse a file whose checksum is not the expected one; the same file is read through only once a process."""
    stat = path.stat()
    found = _digest(path.resolve(), algorithm, stat.st_size, stat.st_mtime_ns, show_progress)
    if found != expected:
        raise DataFileError(
            f"{path} is cut or changed: its {algorithm} checksum should be {expected}, but is {found}; get it once more"
        )


@lru_cache(maxsize=64)
def _digest(path: Path, algorithm: str, size: int, changed: int, show_progress: bool) -> str:
    """Read a file through; its size and time are there to tell it from what stood at this path before."""
    digest = hashlib.new(algorithm, usedforsecurity=False)
    with (
        path.open("rb") as file,
        progress_bar(f"checking {path.name} (MiB)", -(-size // 2**20), enabled=show_progress) as advance,
    ):
        while block := file.read(BLOCK):
            digest.update(block)
            advance(BLOCK // 2**20)
    return digest.hexdigest()

"""Read a folder of text files: every file is a text, and its subfolder may be its label."""

from __future__ import annotations

import os
import stat
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._utils.printable import as_unicode
from .limits import BYTES_OF_ROW, check_memory

# Larger files are logs or dumps, which would outweigh the texts.
_MAX_SIZE = 2**24
# A file with a zero byte among its first bytes is binary.
_PROBED_BYTES = 2**13
_FILES_BETWEEN_CHECKS = 2**8

NOT_UTF_8 = "files are not UTF-8: invalid bytes are replaced"


class Folder(NamedTuple):
    """The texts of a folder, sorted by path."""

    ids: list[str]
    texts: list[str]
    labels: NDArray[np.object_] | None
    left_out: dict[str, int]


def read_folder(folder: Path) -> Folder:
    """Read all texts under a folder; hidden files are ignored, and so are links that lead out of it."""
    ids: list[str] = []
    texts: list[str] = []
    left_out: Counter[str] = Counter()
    n_bytes = n_bytes_on_disk = 0
    for path in _files(folder, left_out):
        with path.open("rb") as file:
            is_large = os.fstat(file.fileno()).st_size > _MAX_SIZE
            content = b"" if is_large else file.read(_MAX_SIZE + 1)  # it may grow
        if is_large or len(content) > _MAX_SIZE:
            left_out["files over 16 MiB left out"] += 1
            continue
        if b"\0" in content[:_PROBED_BYTES]:
            left_out["binary files left out"] += 1
            continue
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = content.decode("utf-8", "replace")
            left_out[NOT_UTF_8] += 1
        if not any(letter.isalnum() for letter in text):
            left_out["empty files left out"] += 1
            continue
        ids.append(as_unicode(path.relative_to(folder).as_posix()))
        texts.append(text)
        n_bytes += sys.getsizeof(text) + BYTES_OF_ROW
        n_bytes_on_disk += len(content)
        if len(ids) % _FILES_BETWEEN_CHECKS == 0:
            check_memory(folder, n_bytes, n_bytes_on_disk)
    left_out = +left_out
    if not ids:
        why = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items())
        raise ValueError(f"{folder} contains no text file{f' ({why})' if why else ''}")
    folders = [name.split("/")[0] if "/" in name else None for name in ids]
    labels = None if None in folders else np.array(folders, dtype=object)
    return Folder(ids, texts, labels, dict(left_out))


def _files(folder: Path, left_out: Counter[str]) -> list[Path]:
    """Return the regular files under a folder, sorted by path; links that stay inside it are followed to files."""
    found = []
    inside = os.path.join(os.path.realpath(folder), "")
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        left_out["links to folders left out"] += sum(os.path.islink(os.path.join(root, name)) for name in folders)
        for name in names:
            path = Path(root, name)
            if name.startswith("."):
                continue
            if path.is_symlink() and not os.path.realpath(path).startswith(inside):
                left_out["links out of the folder left out"] += 1
            elif not _is_regular(path):
                left_out["broken links, pipes, sockets and devices left out"] += 1
            else:
                found.append(path)
    return sorted(found, key=lambda path: path.relative_to(folder).as_posix())


def _is_regular(path: Path) -> bool:
    """Return whether a path is a file that can be read to its end without waiting for another process."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False

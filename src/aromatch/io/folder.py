"""Read a folder of text files: every file is a text, and its subfolder may be its label."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Larger files are logs or dumps, which would outweigh the texts.
_MAX_SIZE = 2**24
# A file with a zero byte among its first bytes is binary.
_PROBED_BYTES = 2**13

NOT_UTF_8 = "files are not UTF-8: invalid bytes are replaced"


class Folder(NamedTuple):
    """The texts of a folder, sorted by path."""

    ids: list[str]
    texts: list[str]
    labels: NDArray[np.object_] | None
    left_out: dict[str, int]


def read_folder(folder: Path) -> Folder:
    """Read all texts under a folder; links to folders are not followed, hidden files are ignored."""
    ids: list[str] = []
    texts: list[str] = []
    left_out: Counter[str] = Counter()
    for path in _files(folder):
        status = path.stat()
        if status.st_size > _MAX_SIZE:
            left_out["files over 16 MiB left out"] += 1
            continue
        content = path.read_bytes()
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
        # File names may contain arbitrary bytes; ids must be valid Unicode.
        ids.append(os.fsencode(path.relative_to(folder).as_posix()).decode("utf-8", "replace"))
        texts.append(text)
    if not ids:
        why = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items())
        raise ValueError(f"{folder} contains no text file{f' ({why})' if why else ''}")
    folders = [name.split("/")[0] if "/" in name else None for name in ids]
    labels = None if None in folders else np.array(folders, dtype=object)
    return Folder(ids, texts, labels, dict(left_out))


def _files(folder: Path) -> list[Path]:
    found = []
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(root, name) for name in names if not name.startswith(".")]
    return sorted((path for path in found if path.is_file()), key=lambda path: path.relative_to(folder).as_posix())

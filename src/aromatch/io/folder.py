"""A folder of text files: every file is a text, and the folder that it is in may be its label."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Texts are shorter; what is longer is a log or a dump, and one of those would outweigh everything else.
_LARGEST_FILE = 2**24
# A file with a zero byte at its beginning is no text.
_LOOKED_AT = 2**13

NOT_UTF_8 = "files are not in UTF-8: what cannot be read is replaced"


class Folder(NamedTuple):
    """The texts of a folder, in the order of their paths."""

    ids: list[str]
    texts: list[str]
    labels: NDArray[np.object_] | None
    left_out: dict[str, int]


def read_folder(folder: Path) -> Folder:
    """Read all texts under a folder. Links to other folders are not followed, and what is hidden is not seen."""
    ids: list[str] = []
    texts: list[str] = []
    left_out: Counter[str] = Counter()
    for path in _files(folder):
        status = path.stat()
        if status.st_size > _LARGEST_FILE:
            left_out["files over 16 MiB left out"] += 1
            continue
        content = path.read_bytes()
        if b"\0" in content[:_LOOKED_AT]:
            left_out["files that are no text left out"] += 1
            continue
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = content.decode("utf-8", "replace")
            left_out[NOT_UTF_8] += 1
        if not any(letter.isalnum() for letter in text):
            left_out["empty files left out"] += 1
            continue
        # A name may hold bytes that are no letters; an id has to be text that can be printed and saved.
        ids.append(os.fsencode(path.relative_to(folder).as_posix()).decode("utf-8", "replace"))
        texts.append(text)
    if not ids:
        why = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items())
        raise ValueError(f"{folder} has no text file in it{f' ({why})' if why else ''}")
    folders = [name.split("/")[0] if "/" in name else None for name in ids]
    labels = None if None in folders else np.array(folders, dtype=object)
    return Folder(ids, texts, labels, dict(left_out))


def _files(folder: Path) -> list[Path]:
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(place, name) for name in names if not name.startswith(".")]
    return sorted((path for path in found if path.is_file()), key=lambda path: path.relative_to(folder).as_posix())

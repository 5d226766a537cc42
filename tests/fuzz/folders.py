"""Folders of texts as one file: JSON of paths and contents, in which a character is a byte."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.fuzz.mutations import BYTES, WORDS, mutate_bytes

_LINK, _FIFO, _FOLDER = b"\0link:", b"\0fifo", b"\0folder"
_NAMES = [
    b"\x1b[2J.txt", b"a\nb.txt", b"\xff\xfe.txt", b".hidden", b"..txt", b"-o", b"a" * 250, b"x/" * 60 + b"y.txt", b"\xe2\x80\xae.txt",
    b"[red].txt", b" ", b"\r", b"0", b"con", b"a,b.csv", b"\x9b31m", b"\xed\xa0\x80",
]  # fmt: skip
_LINKS = [b"/etc/passwd", b".", b"..", b"missing", b"0.txt", b"loop", b"/dev/zero", b"/proc/self/mem", b"/dev/stdin"]


def pack_folder(files: Mapping[str | bytes, bytes]) -> bytes:
    """Return the files of a folder, by path, as one file."""
    texts = {
        (name.encode() if isinstance(name, str) else name).decode("latin-1"): content for name, content in files.items()
    }
    return json.dumps({name: content.decode("latin-1") for name, content in texts.items()}).encode()


def unpack_folder(data: bytes, folder: Path) -> None:
    """Write the files into a folder; what the system refuses is left out."""
    root = os.fsencode(folder)
    os.makedirs(root, exist_ok=True)
    for name, content in _files(data).items():
        path = os.path.join(root, name)
        try:
            os.makedirs(path if content == _FOLDER else os.path.dirname(path), exist_ok=True)
            if content.startswith(_LINK):
                os.symlink(content.removeprefix(_LINK), path)
            elif content == _FIFO:
                os.mkfifo(path)
            elif content != _FOLDER:
                with open(path, "wb") as file:
                    file.write(content)
        except (OSError, ValueError):
            continue


def _files(data: bytes) -> dict[bytes, bytes]:
    return {name.encode("latin-1"): content.encode("latin-1") for name, content in json.loads(data).items()}


def mutate_folder(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Return a folder with other names, contents, links or special files."""
    files = _files(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        name = rng.choice(list(files))
        match rng.randrange(10):
            case 0:
                files[rng.choice(_NAMES)] = files[name]
            case 1:
                files = {rng.choice(_NAMES) if one == name else one: content for one, content in files.items()}
            case 2:
                files[os.path.dirname(name) + b"/" + rng.choice(_NAMES) if b"/" in name else rng.choice(_NAMES)] = (
                    b"word thing"
                )
            case 3:
                files[rng.choice((b"loop", b"a/link", name))] = _LINK + rng.choice(_LINKS)
            case 4:
                files[rng.choice((b"fifo", name))] = _FIFO
            case 5:
                files[rng.choice((b"empty", name + b"/x", name))] = _FOLDER
            case 6 if len(files) > 1:
                del files[name]
            case 7:
                files[name] = rng.choice(
                    (b"", b"\xff\xfea\0b\0", b"word " * 20_000, b"\xef\xbb\xbf", b"a" * 100_000, b"12 34")
                )
            case 8:
                at = rng.randrange(len(files[name]) + 1)
                piece = rng.choice((rng.choice(BYTES), rng.choice(WORDS).encode()))
                files[name] = files[name][:at] + piece + files[name][at:]
            case _:
                files[name] = mutate_bytes(rng, files[name], list(files.values()))
    return pack_folder(files)

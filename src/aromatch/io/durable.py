"""Write files that are complete and on disk when the call returns, whatever stops the process.

Every file of this package is written here. `replacing` writes beside the target under a temporary name, syncs the file,
moves it into place and syncs the folder, so a reader finds the old or the new file and never a part of one, also after
a kill or a power failure. Writers to one path do not wait for each other: each has its own temporary file, and the last
one to finish wins.

A killed writer leaves its temporary file behind; the next writer in the folder removes it. A writer holds a lock
(``flock``) on its temporary file until it has moved it into place, and the kernel releases the lock when the process
ends, however it ends. So a file without a lock is stale. Process ids would not tell, because they are reused and differ
between containers; an age would not, because a large file on a slow disk takes long. Locks reach other hosts on most
network file systems, but mounts exist that keep them local, so a file of another host must also be a day old. Only
regular files are removed, and only under names that nothing else creates:
``.aromatch-<hash of the host name>-<16 random digits>.tmp``. Without locks (Windows, some network file systems)
temporary files of killed writers stay.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import os
import platform
import re
import secrets
import stat
from collections.abc import Iterator
from os import PathLike
from time import time
from typing import Any, BinaryIO, TextIO

_IS_POSIX = os.name == "posix"
if _IS_POSIX:
    import fcntl

_HOST = hashlib.sha256(platform.node().encode()).hexdigest()[:8]
_TEMPORARY = re.compile(r"\.aromatch-([0-9a-f]{8})-[0-9a-f]{16}\.tmp")
_STALE_SECONDS = 24 * 3600
_PRIVATE, _DEFAULT = 0o600, 0o666  # the umask applies to the default
_CLOSE_ON_EXEC = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class System:
    """The calls that change files. Tests substitute `system` to stop a process at each of them."""

    def open(self, path: str, flags: int, mode: int) -> int:
        """Open a file, which the flags may create; return its descriptor."""
        return os.open(path, flags | _CLOSE_ON_EXEC, mode)

    def write(self, descriptor: int, data: Any) -> int:
        """Write bytes, or the first part of them; return the number of bytes."""
        return os.write(descriptor, data)

    def truncate(self, descriptor: int, size: int) -> None:
        """Shorten a file."""
        os.truncate(descriptor, size)

    def chmod(self, path: str, mode: int) -> None:
        """Set the permissions of a file."""
        os.chmod(path, mode)

    def sync(self, descriptor: int) -> None:
        """Return when the content of a file or a folder is on disk."""
        os.fsync(descriptor)

    def replace(self, source: str, target: str) -> None:
        """Rename a file to the name of another one."""
        os.replace(source, target)

    def unlink(self, path: str) -> None:
        """Remove a file."""
        os.unlink(path)


system = System()


@contextlib.contextmanager
def replacing(path: str | PathLike[str], *, clean: bool = True) -> Iterator[BinaryIO]:
    """Write a file that appears complete or not at all.

    If the block raises, an existing file is unchanged. An existing file keeps its permissions; if `path` is a symbolic
    link, its target is replaced.

    Parameters
    ----------
    path : path
        The file to write; the folder must exist.
    clean : bool, default True
        Remove the temporary files of killed writers first, which lists the folder. A caller that writes thousands of
        files into a folder calls `remove_stale` once.

    Yields
    ------
    BinaryIO
        A binary file, which can be rewound.

    Raises
    ------
    OSError
        If the file cannot be written; the message names `path`. An error when the folder is synced leaves the new file
        in place.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from aromatch.io.durable import replacing
    >>> path = Path(tempfile.mkdtemp()) / "numbers"
    >>> with replacing(path) as file:
    ...     _ = file.write(b"123")
    ...     path.exists()
    False
    >>> path.read_bytes()
    b'123'
    """
    name = os.fspath(path)
    target = os.path.realpath(name)
    folder = os.path.dirname(target)
    with naming(name):
        mode = _permissions(target)
        if clean:
            remove_stale(folder)
        descriptor, temporary = _open_temporary(folder, _DEFAULT if mode is None else _PRIVATE)
    raw = _RawFile(descriptor, name)
    try:
        file: BinaryIO = io.BufferedWriter(raw)
        yield file
        file.flush()
        with naming(name):
            if mode is not None:
                system.chmod(temporary, mode)
            system.sync(descriptor)
            if not _IS_POSIX:  # Windows moves closed files only
                raw.close()
            system.replace(temporary, target)
            sync_folder(folder)
    except BaseException:
        with contextlib.suppress(OSError):
            system.unlink(temporary)
        raise
    finally:
        raw.close()  # without the buffer, which may contain what could not be written


@contextlib.contextmanager
def replacing_text(path: str | PathLike[str]) -> Iterator[TextIO]:
    """Write a text file in UTF-8 that appears complete or not at all, as `replacing` does."""
    with replacing(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8")
        yield text
        text.flush()


def write_text(path: str | PathLike[str], text: str) -> None:
    """Write a text as a file in UTF-8 that appears complete or not at all, as `replacing` does."""
    with replacing_text(path) as file:
        file.write(text)


def remove_stale(folder: str | PathLike[str]) -> None:
    """Remove the temporary files of killed writers in a folder."""
    if not _IS_POSIX:
        return
    with contextlib.suppress(OSError):  # a folder that can be written and not read
        for name in os.listdir(folder):
            if (found := _TEMPORARY.fullmatch(name)) is not None:
                with contextlib.suppress(OSError):
                    _remove_if_stale(os.path.join(folder, name), found[1] == _HOST)


def lock(descriptor: int) -> bool | None:
    """Lock an open file until it is closed.

    Returns False if it is locked already, None if the system or the file system has no locks.
    """
    if not _IS_POSIX:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def sync_folder(folder: str) -> None:
    """Return when the names in a folder are on disk, where the system can sync folders."""
    if not _IS_POSIX:
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | _CLOSE_ON_EXEC)
    except PermissionError:  # a folder that can be written and not read
        return
    try:
        system.sync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # file systems that sync no folders
            raise
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def naming(name: str) -> Iterator[None]:
    """Name the file that the user named in every OSError of writing, and not a temporary one."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, f"cannot write the file: {error.strerror or error}", name) from error


class _RawFile(io.FileIO):
    """The temporary file below its buffer; errors name the target."""

    def __init__(self, descriptor: int, name: str) -> None:
        super().__init__(descriptor, "r+")
        self._target = name

    def write(self, data: Any, /) -> int:
        with naming(self._target):
            return system.write(self.fileno(), data)


def _permissions(target: str) -> int | None:
    """Return the permissions of an existing file; None if there is none."""
    try:
        mode = os.lstat(target).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it exists and is not a regular file")
    return stat.S_IMODE(mode)


def _open_temporary(folder: str, mode: int) -> tuple[int, str]:
    """Create and lock a temporary file; return its descriptor and path."""
    while True:
        path = os.path.join(folder, f".aromatch-{_HOST}-{secrets.token_hex(8)}.tmp")
        descriptor = system.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
        # Without locks nobody removes it.
        if lock(descriptor) is not False and os.path.exists(path):
            return descriptor, path
        os.close(descriptor)  # another writer took it for stale before it was locked


def _remove_if_stale(path: str, is_of_this_host: bool) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | _CLOSE_ON_EXEC)
    try:
        status = os.fstat(descriptor)
        is_old = is_of_this_host or time() - status.st_mtime > _STALE_SECONDS
        # If its writer moves it into place just now, the path is gone, and no other file ever gets the same name.
        if stat.S_ISREG(status.st_mode) and is_old and lock(descriptor):
            system.unlink(path)
    finally:
        os.close(descriptor)

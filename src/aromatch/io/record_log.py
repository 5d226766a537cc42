"""A log of JSON records, one a line, that survives kills and power failures.

A record is on disk when `RecordLog.append` returns, so only the last one can be incomplete, and only if its `append`
did not return. A torn record is the last line of a file and a beginning of a record as `RecordLog` writes it; after at
least one whole record, it may also end in zero bytes, which some file systems leave where data was lost. It is dropped:
by `read_log` from the result, by `RecordLog` from the file. Any other line that is not JSON is an error. A complete
record without a line end, as editors leave it, is kept.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import os
import re
import stat
from collections.abc import Mapping
from os import PathLike
from types import TracebackType
from typing import BinaryIO, NamedTuple, Self

from .._utils.printable import to_json
from . import durable
from .limits import BYTES_OF_ROW, check_memory
from .records import LINES_BETWEEN_CHECKS, MAX_LENGTH, Record, json_record

# What the first key of a record can be.
KEYS = ("session", "query", "skipped")
_MODE = 0o666  # the umask applies
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)

# A beginning of an object as `to_json` writes it, without values that are nested.
_PART = r'"(?:[^"\\\x00-\x1f]|\\(?:["\\bfnrt]|u[0-9a-f]{4}))*+'
_STRING = _PART + '"'
_CUT_STRING = _PART + r"(?:\\(?:u[0-9a-f]{0,3})?)?"
_WORD = r"[-+.0-9A-Za-z]"
_VALUE = f"(?:{_STRING}|{_WORD}++)"
_ITEM = f"{_STRING}: {_VALUE}"
_BEGINNING = re.compile(rf"\{{(?:{_ITEM}, )*+(?:{_ITEM},?|{_STRING}(?:: ?)?|{_STRING}: {_CUT_STRING}|{_CUT_STRING})?")


class LogContent(NamedTuple):
    """The records of a log."""

    records: list[Record]
    n_bytes: int
    """Size without the torn record."""
    n_torn: int
    """Size of the torn record; 0 if there is none."""


def read_log(path: str | PathLike[str]) -> LogContent:
    """Read a log; a torn record is not returned and stays in the file."""
    with open(path, "rb") as file:
        return _read(file, path)


def _read(file: BinaryIO, path: str | PathLike[str]) -> LogContent:
    records: list[Record] = []
    n_bytes = number = 0
    while line := file.readline(MAX_LENGTH):
        number += 1
        if number % LINES_BETWEEN_CHECKS == 0:
            check_memory(path, number * BYTES_OF_ROW + n_bytes)
        try:
            if line.strip():
                records.append(json_record(_decoded(line, path, number), path, number))
        except ValueError:
            if not file.read(1) and _is_torn(line, is_first=not records):
                return LogContent(records, n_bytes, len(line))
            raise
        n_bytes += len(line)
    return LogContent(records, n_bytes, 0)


def _is_torn(line: bytes, is_first: bool) -> bool:
    """Return whether a crash can have left this last line, which is not a record."""
    written, zeros, _ = line.partition(b"\0")
    if not zeros:
        return _is_beginning(line)
    return not is_first and (not written or _is_beginning(written))


def _is_beginning(line: bytes) -> bool:
    """Return whether a record that is longer can begin with this."""
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(line)  # without half a character at the end
    except UnicodeDecodeError:
        return False
    if _BEGINNING.fullmatch(text) is None:
        return False
    return any((start := f'{{"{key}": ')[: len(text)] == text[: len(start)] for key in KEYS)


def _decoded(line: bytes, path: str | PathLike[str], number: int) -> str:
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}, line {number} is not UTF-8: {error.reason}") from None


class RecordLog:
    r"""A log that is appended to by one process at a time.

    It is created if it does not exist, and locked. A torn record is removed by the first `append`, so that a caller who
    refuses the records leaves the file as it is.

    Parameters
    ----------
    path : path
        The file.
    follow_links : bool, default True
        Append to the target of a symbolic link; otherwise links are refused. The folder of the file may be a link.

    Raises
    ------
    BlockingIOError
        If another process has it open.
    ValueError
        If the file is not a log, or is a symbolic link that is not followed. It is unchanged then.
    OSError
        If the file cannot be opened or written; the message names it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from aromatch.io.record_log import RecordLog
    >>> path = Path(tempfile.mkdtemp()) / "log.jsonl"
    >>> _ = path.write_text('{"query": "a"}\n{"query": ')
    >>> with RecordLog(path) as log:
    ...     log.append({"query": "b"})
    ...     log.n_torn, [one.values for one in log.records]
    (10, [{'query': 'a'}, {'query': 'b'}])
    >>> path.read_text()
    '{"query": "a"}\n{"query": "b"}\n'
    """

    def __init__(self, path: str | PathLike[str], *, follow_links: bool = True) -> None:
        self.path = os.fspath(path)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | (0 if follow_links else _NO_FOLLOW)
        with durable.naming(self.path):
            try:
                self._descriptor = durable.system.open(self.path, flags, _MODE)
            except OSError as error:
                if follow_links or error.errno != errno.ELOOP or not os.path.islink(self.path):
                    raise
                raise ValueError(
                    f"{self.path} must be a regular file, got a symbolic link to {os.readlink(self.path)}; --log "
                    "appends to the target of a link"
                ) from None
        try:
            if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
                raise ValueError(f"{self.path} must be a regular file")
            if durable.lock(self._descriptor) is False:
                raise BlockingIOError(f"{self.path} is in use: another process appends to it")
            with open(self._descriptor, "rb", closefd=False) as file:
                self.records, self._size, self.n_torn = _read(file, self.path)
            self._is_repaired = False
            with durable.naming(self.path):
                # Also a record whose writer was killed before it was synced.
                durable.system.sync(self._descriptor)
                durable.sync_folder(os.path.dirname(os.path.realpath(self.path)))
        except BaseException:
            os.close(self._descriptor)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        os.close(self._descriptor)

    def append(self, values: Mapping[str, str | int | float | bool | None]) -> None:
        """Append a record and return when it is on disk; if that fails, the log is as before.

        Its first key is one of `KEYS`.
        """
        if next(iter(values), None) not in KEYS:
            raise ValueError(f"the first key of a record must be one of {', '.join(KEYS)}, got {[*values]!r:.100}")
        line = to_json(dict(values)).encode() + b"\n"
        with durable.naming(self.path):
            self._repair()
            before = self._size
            try:
                self._write(line)
                durable.system.sync(self._descriptor)
                self.records.append(Record(f"{self.path}, record {len(self.records) + 1}", dict(values)))
            except BaseException:
                self._size = before
                with contextlib.suppress(OSError):
                    durable.system.truncate(self._descriptor, before)
                raise

    def _repair(self) -> None:
        """Remove a torn record, and end the last line."""
        if self._is_repaired:
            return
        durable.system.truncate(self._descriptor, self._size)
        if self._size and os.pread(self._descriptor, 1, self._size - 1) != b"\n":
            self._write(b"\n")
        self._is_repaired = True

    def _write(self, line: bytes) -> None:
        rest = memoryview(line)
        while rest:
            rest = rest[durable.system.write(self._descriptor, rest) :]
        self._size += len(line)

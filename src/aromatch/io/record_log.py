"""A log of JSON records, one a line, that survives kills and power failures.

A record is on disk when `RecordLog.append` returns, so only the last one can be incomplete, and only if its `append`
did not return. A torn record is the last line of a file, is not JSON, and has no line end or contains zero bytes, which
some file systems leave where data was lost. It is dropped: by `read_log` from the result, by `RecordLog` from the file.
Any other line that is not JSON is an error. A complete record without a line end, as editors leave it, is kept.
"""

from __future__ import annotations

import contextlib
import os
import stat
from os import PathLike
from types import TracebackType
from typing import Any, NamedTuple, Self

from .._utils.printable import to_json
from . import durable
from .records import MAX_LENGTH, Record, json_record

_MODE = 0o666  # the umask applies


class LogContent(NamedTuple):
    """The records of a log."""

    records: list[Record]
    n_bytes: int
    """Size without the torn record."""
    n_torn: int
    """Size of the torn record; 0 if there is none."""


def read_log(path: str | PathLike[str]) -> LogContent:
    """Read a log; a torn record is not returned and stays in the file."""
    records: list[Record] = []
    n_bytes = number = 0
    with open(path, "rb") as file:
        while line := file.readline(MAX_LENGTH):
            number += 1
            try:
                if line.strip():
                    records.append(json_record(_decoded(line, path, number), path, number))
            except ValueError:
                is_last = not file.read(1)
                if is_last and (not line.endswith(b"\n") or b"\0" in line):
                    return LogContent(records, n_bytes, len(line))
                raise
            n_bytes += len(line)
    return LogContent(records, n_bytes, 0)


def _decoded(line: bytes, path: str | PathLike[str], number: int) -> str:
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}, line {number} is not UTF-8: {error.reason}") from None


class RecordLog:
    r"""A log that is appended to by one process at a time.

    It is created if it does not exist, locked, and freed of a torn record.

    Parameters
    ----------
    path : path
        The file.

    Raises
    ------
    BlockingIOError
        If another process has it open.
    ValueError
        If the file is not a log.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from aromatch.io.record_log import RecordLog
    >>> path = Path(tempfile.mkdtemp()) / "log.jsonl"
    >>> _ = path.write_text('{"n": 1}\n{"n": ')
    >>> with RecordLog(path) as log:
    ...     log.append({"n": 2})
    ...     log.n_torn, [one.values for one in log.records]
    (6, [{'n': 1}, {'n': 2}])
    >>> path.read_text()
    '{"n": 1}\n{"n": 2}\n'
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._descriptor = durable.system.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, _MODE)
        try:
            if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
                raise ValueError(f"{self.path} must be a regular file")
            if durable.lock(self._descriptor) is False:
                raise BlockingIOError(f"{self.path} is in use: another process appends to it")
            self.records, self._size, self.n_torn = read_log(self.path)
            if self.n_torn:
                durable.system.truncate(self._descriptor, self._size)
            if self._size and os.pread(self._descriptor, 1, self._size - 1) != b"\n":
                self._write(b"\n")
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

    def append(self, values: dict[str, Any]) -> None:
        """Append a record and return when it is on disk; if that fails, the log is as before."""
        line = to_json(values).encode() + b"\n"
        before = self._size
        try:
            self._write(line)
            durable.system.sync(self._descriptor)
            self.records.append(Record(f"{self.path}, record {len(self.records) + 1}", values))
        except BaseException:
            self._size = before
            with contextlib.suppress(OSError):
                durable.system.truncate(self._descriptor, before)
            raise

    def _write(self, line: bytes) -> None:
        rest = memoryview(line)
        while rest:
            rest = rest[durable.system.write(self._descriptor, rest) :]
        self._size += len(line)

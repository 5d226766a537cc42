"""Ask a program for comparisons: JSON lines in, answers out.

The program reads a line ``{"query": {"id": ..., "text": ...}, "first": {...}, "second": {...}}`` for each
comparison and writes a line: ``1``, ``2`` or ``0``, or ``{"answer": "first"}``, ``"second"`` or ``"skip"``. It is
started once.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import subprocess
from queue import Empty, Queue
from threading import TIMEOUT_MAX, Thread
from types import TracebackType
from typing import Any, Self

from .._utils.checks import check_number
from .._utils.printable import to_json
from .ask import Question

_ANSWERS = {"1": 1, "2": 2, "0": 0, "first": 1, "second": 2, "skip": 0}


class Judge:
    """A program that answers comparisons; a context manager.

    Parameters
    ----------
    command : str
        The program and its arguments, split as by a shell, but run without one.
    timeout : float, default 120
        Maximum number of seconds for an answer.
    """

    def __init__(self, command: str, timeout: float = 120.0) -> None:
        self._timeout = min(check_number(timeout, "--judge-timeout", above=0), TIMEOUT_MAX)
        try:
            self._arguments = shlex.split(command)
        except ValueError as error:
            raise ValueError(f"--judge {command!r} is not a valid command: {error}") from None
        if not self._arguments:
            raise ValueError(f"--judge must be a command, got {command!r}")
        self._lines: Queue[str | None] = Queue()

    def __enter__(self) -> Self:
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(self._arguments, stdin=pipe, stdout=pipe, text=True, encoding="utf-8")
        except OSError as error:
            raise ValueError(f"--judge: {self._arguments[0]!r} cannot be started: {error.strerror}") from None
        # In a thread, so that a program that writes half a line cannot delay the timeout.
        Thread(target=self._read, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._process.stdin.close()  # type: ignore[union-attr]
        try:
            self._process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __call__(self, question: Question) -> int:
        """Return 1, 2 or 0."""
        asked = {name: getattr(question, name)._asdict() for name in ("query", "first", "second")}
        try:
            self._process.stdin.write(to_json(asked) + "\n")  # type: ignore[union-attr]
            self._process.stdin.flush()  # type: ignore[union-attr]
        except (BrokenPipeError, OSError):
            pass  # the program has ended, which the reader reports
        try:
            line = self._lines.get(timeout=self._timeout)
        except Empty:
            raise ValueError(f"--judge: no answer within {self._timeout:g} seconds") from None
        if line is None:
            code = self._process.wait()
            raise ValueError(
                f"--judge: the program ended with exit code {code} before its answer to comparison {question.number}"
            )
        return _read_answer(line, question.number)

    def _read(self) -> None:
        try:
            for line in self._process.stdout:  # type: ignore[union-attr]
                if line.strip():
                    self._lines.put(line.strip())
        except (UnicodeDecodeError, ValueError):
            pass
        self._lines.put(None)


def _read_answer(line: str, number: int) -> int:
    """Return the answer on a line: 1, 2 or 0.

    >>> _read_answer('{"answer": "second"}', 1)
    2
    """
    value: Any = line
    if line.startswith("{"):
        try:
            value = json.loads(line).get("answer")
        except (json.JSONDecodeError, RecursionError):
            value = None
    chosen = _ANSWERS.get(str(value).strip().lower())
    if chosen is None:
        raise ValueError(f"--judge: the answer to comparison {number} must be 1, 2 or 0, got {line[:60]!r}")
    return chosen

"""A program that answers comparisons: JSON lines in, answers out.

It gets ``{"query": {"id": ..., "text": ...}, "first": {...}, "second": {...}}`` on a line, and answers with a line:
``1``, ``2`` or ``0``, or ``{"answer": "first"}``, ``"second"`` or ``"skip"``. It is started once for all comparisons.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import subprocess
from queue import Empty, Queue
from threading import Thread
from types import TracebackType
from typing import Any, Self

from .._utils.checks import check_number
from .ask import Question

_ANSWERS = {"1": 1, "2": 2, "0": 0, "first": 1, "second": 2, "skip": 0}


class Judge:
    """A program that answers; use it in a ``with``.

    Parameters
    ----------
    command : str
        The program and its arguments, as in a shell, but without one.
    timeout : float, default 120
        Seconds that an answer may take.
    """

    def __init__(self, command: str, timeout: float = 120.0) -> None:
        self._timeout = check_number(timeout, "--judge-timeout", above=0)
        try:
            self._arguments = shlex.split(command)
        except ValueError as error:
            raise ValueError(f"--judge {command!r} cannot be read: {error}") from None
        if not self._arguments:
            raise ValueError("--judge must be a command, got nothing")
        self._lines: Queue[str | None] = Queue()

    def __enter__(self) -> Self:
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(self._arguments, stdin=pipe, stdout=pipe, text=True, encoding="utf-8")
        except OSError as error:
            raise ValueError(f"--judge: {self._arguments[0]!r} cannot be started: {error.strerror}") from None
        # In a thread: a program that writes half a line must not hold up the clock.
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
        """Give 1, 2 or 0."""
        asked = {name: getattr(question, name)._asdict() for name in ("query", "first", "second")}
        try:
            self._process.stdin.write(json.dumps(asked, ensure_ascii=False) + "\n")  # type: ignore[union-attr]
            self._process.stdin.flush()  # type: ignore[union-attr]
        except (BrokenPipeError, OSError):
            pass  # it has ended: the next line tells
        try:
            line = self._lines.get(timeout=self._timeout)
        except Empty:
            raise ValueError(f"the judge gave no answer within {self._timeout:g} seconds") from None
        if line is None:
            code = self._process.wait()
            raise ValueError(
                f"the judge ended with the exit code {code} before it answered comparison {question.number}"
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
    """Read an answer, or say what is wrong with it.

    >>> _read_answer('{"answer": "second"}', 1)
    2
    """
    value: Any = line
    if line.startswith("{"):
        try:
            value = json.loads(line).get("answer")
        except json.JSONDecodeError:
            value = None
    chosen = _ANSWERS.get(str(value).strip().lower())
    if chosen is None:
        raise ValueError(f"the judge answered comparison {number} with {line[:60]!r}, expected 1, 2 or 0")
    return chosen

"""Run cases in child processes, under limits of time and memory.

The parent imports the package, prepares everything and then forks a worker, which inherits it and runs one case after
another. A worker that crashes, hangs or passes the memory limit is replaced, and the case that it was running is the
culprit. Forks need no second import, so a thousand cases take seconds.
"""

from __future__ import annotations

import contextlib
import faulthandler
import math
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from multiprocessing import Pipe
from pathlib import Path
from typing import Any, NamedTuple

import aromatch
from aromatch.exceptions import InsufficientMemoryError

ACCEPTED, REFUSED = "accepted", "refused"
EXCEPTION, CRASH, HANG, MEMORY = "exception", "crash", "hang", "memory"
FAILURES = (EXCEPTION, CRASH, HANG, MEMORY)

_PACKAGE = str(Path(aromatch.__file__).parent)
# State that a case leaves behind in the process ends with the worker.
_CASES_PER_WORKER = 500
# Multiples of the time limit after which a case hangs, however little of the processor it had.
_MAX_WAITS = 5
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+),? in (?P<function>\S+)')


class GuaranteeError(AssertionError):
    """A case was accepted, but a guarantee does not hold."""


class Outcome(NamedTuple):
    """The result of one case."""

    kind: str
    group: str = ""
    """Equal for cases with the same cause: the type of the exception and the innermost frame of the package."""
    detail: str = ""
    """The traceback, or a description."""

    @property
    def is_failure(self) -> bool:
        return self.kind in FAILURES


class Sandbox:
    """A worker process that runs cases.

    Parameters
    ----------
    run : callable
        Takes a case and returns whether it was accepted or refused; exceptions are failures.
    seconds : float
        Time limit of a case, in seconds of a processor: other jobs of the machine do not make a case hang. A case that
        waits five times as long hangs too.
    n_bytes : int
        Memory that a case may take above that of a new worker.
    """

    def __init__(self, run: Callable[[Any], str], *, seconds: float = 10.0, n_bytes: int = 2**30) -> None:
        self._run, self._seconds, self._n_bytes = run, seconds, n_bytes
        self._pid: int | None = None
        self._n_cases = 0
        # Where the worker writes its stack when it crashes or hangs.
        self._stack = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the sandbox

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        self._stack.close()

    def run(self, case: Any) -> Outcome:
        """Run one case and return its outcome."""
        if self._n_cases >= _CASES_PER_WORKER:
            self._end()
        if self._pid is None:
            self._start()
        assert self._pid is not None
        self._n_cases += 1
        try:
            self._connection.send(case)
            if not self._is_answered():
                return self._hang()
            outcome: Outcome = self._connection.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return self._crash()
        if outcome.kind == MEMORY:
            self._end()
        return outcome

    def _is_answered(self) -> bool:
        """Return whether the worker ends its case within the limit."""
        assert self._pid is not None
        start = _processor_seconds(self._pid)
        if self._connection.poll(self._seconds):
            return True
        for _ in range(_MAX_WAITS - 1):
            if not _processor_seconds(self._pid) - start < 0.95 * self._seconds:
                return False
            if self._connection.poll(self._seconds):
                return True
        return False

    def _start(self) -> None:
        self._connection, of_worker = Pipe()
        self._n_cases = 0
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            self._connection.close()
            with contextlib.suppress(BaseException):
                self._work(of_worker)
            os._exit(0)
        of_worker.close()
        self._pid = pid

    def _work(self, connection: Any) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._stack.truncate(0)
        faulthandler.enable(self._stack)
        faulthandler.register(signal.SIGUSR1, self._stack)
        start = _peak()
        # The peak is what counts; the limit prevents that a case takes all memory of the machine.
        limit = _data_size() + 2 * self._n_bytes
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        while True:
            case = connection.recv()
            try:
                outcome = Outcome(self._run(case))
            except BaseException as error:  # whatever a case raises is a finding
                outcome = describe(error)
            taken = _peak() - start
            if taken > self._n_bytes and outcome.kind != MEMORY:
                detail = f"{taken / 2**20:,.0f} MiB\n{outcome.detail}"
                outcome = Outcome(MEMORY, f"{MEMORY}: {outcome.group or 'no exception'}", detail)
            connection.send(outcome)

    def _hang(self) -> Outcome:
        assert self._pid is not None
        os.kill(self._pid, signal.SIGUSR1)  # faulthandler writes the stack, whoever holds the GIL
        self._connection.poll(0.5)
        stack = self._read_stack()
        self._end()
        return Outcome(HANG, f"{HANG}: {_innermost(stack)}", stack)

    def _crash(self) -> Outcome:
        assert self._pid is not None
        status = os.waitpid(self._pid, 0)[1]
        self._pid = None
        self._connection.close()
        name = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"exit {status >> 8}"
        stack = self._read_stack()
        return Outcome(CRASH, f"{name}: {_innermost(stack)}", stack)

    def _read_stack(self) -> str:
        self._stack.seek(0)
        return self._stack.read().decode(errors="replace")

    def _end(self) -> None:
        if self._pid is not None:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            self._connection.close()
            self._pid = None


def enter_empty(folder: Path) -> None:
    """Empty a folder and make it the current one, where a case writes if it names a file without a folder."""
    os.chdir(folder.parent)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    os.chdir(folder)


def describe(error: BaseException) -> Outcome:
    """Return the outcome of an exception that is a finding."""
    frames = traceback.extract_tb(error.__traceback__)
    detail = "".join(traceback.format_exception(error, limit=-12))[-4000:]
    if isinstance(error, GuaranteeError):
        return Outcome(EXCEPTION, f"guarantee: {str(error).partition(':')[0]}", detail)
    own = [frame for frame in frames if frame.filename.startswith(_PACKAGE)]
    where = f"{_short(own[-1].filename)}:{own[-1].name}" if own else "outside the package"
    is_memory = isinstance(error, MemoryError) and not isinstance(error, InsufficientMemoryError)
    if is_memory:
        return Outcome(MEMORY, f"MemoryError: {where}", detail)
    return Outcome(EXCEPTION, f"{type(error).__name__}: {where}", detail)


def _innermost(stack: str) -> str:
    """Return the innermost frame of the package in a stack of faulthandler, whose first frame is the innermost."""
    for frame in _FRAME.finditer(stack):
        if frame["file"].startswith(_PACKAGE):
            return f"{_short(frame['file'])}:{frame['function']}"
    return "outside the package"


def _short(filename: str) -> str:
    return str(Path(filename).relative_to(_PACKAGE))


def _peak() -> int:
    """Return the peak of the resident memory of this process in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _data_size() -> int:
    """Return the size of the private memory of this process in bytes, which RLIMIT_DATA limits."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmData:"):
                return int(line.split()[1]) * 1024
    return _peak()


def _processor_seconds(pid: int) -> float:
    """Return the processor time of a process so far; infinity if the system does not report it."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return math.inf
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

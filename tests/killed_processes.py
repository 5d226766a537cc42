"""Processes that are killed: a server that has imported the package forks them, so that each starts in milliseconds."""

import json
import os
import signal
import subprocess
import sys
import traceback
from functools import partial
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from time import sleep

from aromatch.io import durable


class Forks:
    """A server that imports modules and forks a process for each function to run."""

    def __init__(self, *modules):
        paths = os.pathsep.join([str(Path(__file__).parent), *(path for path in sys.path if path)])
        self._server = subprocess.Popen(
            [sys.executable, "-c", "import killed_processes; killed_processes.serve()", *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        )
        self._server.stdout.readline()  # its modules are imported

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._server.stdin.close()
        self._server.wait()

    def start(self, function, *arguments):
        """Run a function of an importable module in a new process; return its id."""
        return self._request(_plain(function), [*map(_plain, arguments)])

    def wait(self, process):
        """Wait for a process; return whether it was killed. Raise an error if it failed in another way."""
        status = self._request("wait", process)
        assert status in (0, -signal.SIGKILL), f"the process ended with {status}"
        return status != 0

    def run(self, function, *arguments):
        """Run a function and wait for it; return whether it was killed."""
        return self.wait(self.start(function, *arguments))

    def run_and_kill(self, seconds, function, *arguments):
        """Run a function and kill it after some seconds; return whether it was killed before its end."""
        process = self.start(function, *arguments)
        sleep(seconds)
        os.kill(process, signal.SIGKILL)  # until `wait` no other process has its id
        return self.wait(process)

    def _request(self, what, arguments):
        print(json.dumps([what, arguments]), file=self._server.stdin, flush=True)
        return json.loads(self._server.stdout.readline())


def _plain(argument):
    if callable(argument):
        return f"{argument.__module__}:{argument.__qualname__}"
    return str(argument) if isinstance(argument, Path) else argument


def serve():
    """Import the modules in the arguments, and run what the lines of standard input request."""
    for module in sys.argv[1:]:
        import_module(module)
    print(flush=True)
    for line in sys.stdin:
        what, arguments = json.loads(line)
        if what == "wait":
            answer = os.waitstatus_to_exitcode(os.waitpid(arguments, 0)[1])
        else:
            answer = os.fork()
            if answer == 0:
                _run(what, arguments)
        print(json.dumps(answer), flush=True)


def _function(name):
    module, _, function = name.partition(":")
    return attrgetter(function)(import_module(module))


def _run(name, arguments):
    try:
        os.dup2(2, 1)  # standard output belongs to the server
        _function(name)(*arguments)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def acknowledge(path, number):
    """Append a number to a file, which a kill of the process does not undo."""
    with open(path, "a", encoding="ascii") as file:
        file.write(f"{number}\n")


def last_acknowledged(path):
    """Return the last number, or 0."""
    numbers = path.read_text().split() if path.exists() else []
    return int(numbers[-1]) if numbers else 0  # a process may be killed before it writes to the file


class StoppingSystem:
    """The calls that change files; the process is killed before, during or after call number `at`."""

    def __init__(self, at=None, moment="before"):
        self.at, self.moment, self.calls = at, moment, []

    def __getattr__(self, name):
        return partial(self._call, name)

    def _call(self, name, *arguments):
        is_here = len(self.calls) == self.at
        self.calls.append(name)
        if is_here and self.moment == "during" and name == "write":
            os.write(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
        if is_here and self.moment != "after":
            os.kill(os.getpid(), signal.SIGKILL)
        result = getattr(durable.System(), name)(*arguments)
        if is_here:
            os.kill(os.getpid(), signal.SIGKILL)
        return result


def run_stopping(calls, at, moment, function, *arguments):
    """Run a function and kill this process at a call; write the names of the calls if there is no call number `at`."""
    durable.system = StoppingSystem(at, moment)
    _function(function)(*arguments)
    Path(calls).write_text(json.dumps(durable.system.calls))

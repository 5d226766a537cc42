"""Stored cases: one small file for each cause that was found, in a folder for each format."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.fuzz import calls, formats
from tests.fuzz.sandbox import Outcome, Sandbox

FOLDER = Path(__file__).parent / "cases"
# Larger cases are stored compressed.
_MAX_PLAIN = 4096
_MINIMISING_SECONDS = 3.0

Case = Any
"""A `FileCase` or a `CallCase`."""


@contextlib.contextmanager
def workplace() -> Iterator[tuple[Path, Path]]:
    """Return a folder for the valid collection and one for the cases, in memory if the system can."""
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="aromatch-fuzz-", dir=parent) as folder:
        base = Path(folder) / "collection"
        base.mkdir()
        formats.without_data()
        yield base, Path(folder) / "work"


def runner(base: Path, work: Path) -> Callable[[Case], str]:
    """Return a function that runs a case of any format."""

    def run(case: Case) -> str:
        return calls.run_call(case, work) if case.format == "calls" else formats.run_case(case, base, work)

    return run


def stored(folder: Path = FOLDER) -> list[Path]:
    """Return the files of all stored cases."""
    return sorted(path for path in folder.glob("*/*") if path.is_file())


def read(path: Path) -> Case:
    """Return a stored case, which all targets of its format run."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return calls.CallCase.of(data) if path.parent.name == "calls" else formats.FileCase(path.parent.name, data)


def store(case: Case, outcome: Outcome, folder: Path = FOLDER) -> Path:
    """Write a case under a name made of its cause and its content; return the path."""
    cause = re.sub(r"[^A-Za-z0-9]+", "-", outcome.group).strip("-")[:80]
    name = f"{cause}-{hashlib.sha256(case.data).hexdigest()[:8]}"
    suffix = ".json" if case.format in ("calls", "folder") else formats.FORMATS[case.format].suffix
    data = case.data
    if len(data) > _MAX_PLAIN:
        data, suffix = gzip.compress(data, mtime=0), f"{suffix}.gz"
    path = folder / case.format / (name + suffix)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def minimise(case: Case, outcome: Outcome, sandbox: Sandbox) -> Case:
    """Return a smaller case with the same cause, after a few seconds of trying."""
    deadline = time.monotonic() + _MINIMISING_SECONDS
    smaller = True
    while smaller and time.monotonic() < deadline:
        smaller = False
        for candidate in _reduced(case):
            if time.monotonic() > deadline:
                break
            if sandbox.run(candidate).group == outcome.group:
                case, smaller = candidate, True
                break
    return case


def _reduced(case: Case) -> Iterator[Case]:
    """Iterate over simpler cases, the simplest first."""
    if case.format == "calls":
        known = {one.name: one for one in calls.callees() if not one.on}
        known |= {f"{on}.{one.name}": one for one in calls.callees() for on in one.on}
        callee = known[f"{case.on}.{case.name}" if case.on else case.name]
        for name, value in case.arguments.items():
            rest = {other: inner for other, inner in case.arguments.items() if other != name}
            if not callee.needs(name):
                yield case._replace(arguments=rest)
            elif value != callee.valid(name):
                yield case._replace(arguments=case.arguments | {name: callee.valid(name)})
        return
    data = case.data
    size = len(data) // 2
    while size >= 1 and size * 64 > len(data):
        for at in range(0, len(data), size):
            yield case._replace(data=data[:at] + data[at + size :])
        size //= 2

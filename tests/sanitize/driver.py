"""Drive every public function of every kernel with random valid input: `python -m tests.sanitize.driver --seconds 60`.

Each case has its own generator, so `--first` repeats one of them. The run fails if no case calls a public function of a
kernel, or its version for one of the precisions.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import pkgutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from aromatch import kernels

PRECISIONS = ("double", "float")
_ALL = 10**9


class Call(NamedTuple):
    """A public function of a kernel; `precision` is that of the model, empty if the function has one version."""

    function: str
    precision: str


class Counts(Counter[Call]):
    """Numbers of calls of the public functions of the kernels."""

    def __init__(self) -> None:
        super().__init__()
        self.precision = PRECISIONS[0]

    def note(self, name: str, *, is_fused: bool = False) -> None:
        """Count a call in the current precision."""
        self[Call(name, self.precision if is_fused else "")] += 1

    @contextlib.contextmanager
    def of_kernels(self) -> Iterator[None]:
        """Count the calls of the functions that are looked up in the modules of the kernels."""
        functions = [
            (module, name, value)
            for module in modules()
            for name, value in members(module)
            if not isinstance(value, type)
        ]
        try:
            for module, name, function in functions:
                setattr(module, name, self._counted(f"{stem(module)}.{name}", function))
            yield
        finally:
            for module, name, function in functions:
                setattr(module, name, function)

    def _counted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        is_fused = hasattr(function, "__signatures__")

        @wraps(function)
        def counted(*arguments: Any) -> Any:
            self.note(name, is_fused=is_fused)
            return function(*arguments)

        return counted


def modules() -> list[ModuleType]:
    """Return the kernels."""
    return [importlib.import_module(f"{kernels.__name__}.{one.name}") for one in pkgutil.iter_modules(kernels.__path__)]


def stem(module: ModuleType) -> str:
    """Return the name of a kernel."""
    return module.__name__.rpartition(".")[2]


def members(module: ModuleType) -> list[tuple[str, Any]]:
    """Return the public functions and classes that a kernel defines."""
    return [
        (name, value)
        for name, value in vars(module).items()
        if not name.startswith("_") and callable(value) and value.__module__ == module.__name__
    ]


def public_calls() -> set[Call]:
    """Return what must be called: functions in each of their precisions, classes, and public members of classes."""
    found = set()
    for module in modules():
        for name, value in members(module):
            path = f"{stem(module)}.{name}"
            if isinstance(value, type):
                found.add(Call(path, ""))
                found |= {Call(f"{path}.{each}", "") for each in vars(value) if not each.startswith("_")}
            else:
                found |= {Call(path, precision) for precision in getattr(value, "__signatures__", None) or [""]}
    return found


def run_case(number: int, seed: int, counts: Counts, *, huge: bool = True) -> None:
    """Run one case."""
    from tests.sanitize.cases import Case, drives

    a_round = drives(huge=huge)
    counts.precision = PRECISIONS[number // len(a_round) % len(PRECISIONS)]
    dtype = np.dtype(np.float64 if counts.precision == "double" else np.float32)
    with counts.of_kernels():
        a_round[number % len(a_round)](Case(np.random.default_rng([seed, number]), dtype, counts))


def missing(counts: Counts) -> list[str]:
    """Return the public functions that were not called, or not in one of their precisions."""
    return sorted(f"{name} {precision}".strip() for name, precision in public_calls() - set(counts))


def main() -> int:
    """Drive the kernels for some seconds; return 1 if one of their functions was not called."""
    options = _options()
    counts: Counts = Counts()
    begun = shown = time.monotonic()
    number = options.first
    print(f"random kernel driver: seed {options.seed}, {options.seconds:.0f} s", flush=True)
    with contextlib.ExitStack() as stack:
        trace = stack.enter_context(open(options.trace, "wb", buffering=0)) if options.trace else None
        while number - options.first < options.cases:
            if trace is not None:  # read when a sanitizer has ended this process
                os.pwrite(trace.fileno(), f"--seed {options.seed} --first {number:<12}".encode(), 0)
            run_case(number, options.seed, counts)
            number += 1
            now = time.monotonic()
            if now - shown >= 10:
                shown = now
                print(f"{number - options.first:,} cases, {counts.total():,} calls, {now - begun:.0f} s", flush=True)
            if now - begun >= options.seconds:
                break
    print(table(counts))
    print(f"{number - options.first:,} cases, {counts.total():,} calls in {time.monotonic() - begun:.0f} s")
    if (not_called := missing(counts)) and options.cases == _ALL:
        print("no case calls " + ", ".join(not_called))
        return 1
    return 0


def table(counts: Counts) -> str:
    """Return the numbers of calls by function, one line each."""
    totals: dict[str, Counter[str]] = {}
    for (name, precision), found in counts.items():
        totals.setdefault(name, Counter())[precision] += found
    width = max(map(len, totals), default=0)
    lines = [f"{'function':{width}}  {'calls':>9}  {'float64':>9}  {'float32':>9}"]
    for name, each in sorted(totals.items()):
        versions = "".join(f"  {each[precision]:>9,}" for precision in PRECISIONS) if not each[""] else ""
        lines.append(f"{name:{width}}  {each.total():>9,}{versions}")
    return "\n".join(lines)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.sanitize.driver", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="time to run")
    parser.add_argument("--seed", type=int, default=0, help="random seed")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--cases", type=int, default=_ALL, help="largest number of cases")
    parser.add_argument("--trace", type=Path, help="file to which the current case is written")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

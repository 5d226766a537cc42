"""Fuzz the readers, the command line and the public functions: `python -m tests.fuzz --seconds 600`.

Mutated files and calls run in child processes under limits of time and memory. What crashes, hangs, passes the limit or
raises an unexpected exception is grouped by its cause, reduced and stored in `tests/fuzz/cases`, which `make test`
replays.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.fuzz import calls, collection
from tests.fuzz.cases import Case, minimise, runner, store, workplace
from tests.fuzz.formats import FORMATS, make_case, warm
from tests.fuzz.sandbox import ACCEPTED, FAILURES, REFUSED, Outcome, Sandbox

_COLUMNS = (ACCEPTED, REFUSED, *FAILURES)
_TITLES = ("accepted", "refused", "exceptions", "crashes", "hangs", "over memory")
# A round takes some seconds: as many files of every format, and calls, which are faster.
_FILES_A_ROUND, _CALLS_A_ROUND = 10, 300


class Finding(NamedTuple):
    """A cause, with its first case."""

    format: str
    outcome: Outcome
    case: Case
    path: str


def main() -> int:
    """Fuzz for some seconds; return 1 if anything was found."""
    options = _options()
    warnings.simplefilter("ignore")
    names = [options.format] if options.format else [*FORMATS, "calls"]
    counts: dict[str, Counter[str]] = {name: Counter() for name in names}
    findings: dict[tuple[str, str], Finding] = {}
    with workplace() as (base, work):
        seeds = collection.build(base)
        warm(seeds, base, work)
        limit = int(options.memory * 2**30)
        with Sandbox(runner(base, work), seconds=options.timeout, n_bytes=limit) as sandbox:
            progress = _Progress(options.seconds)
            for case in _cases(names, options.seed, seeds):
                outcome = sandbox.run(case)
                counts[case.format][outcome.kind] += 1
                key = case.format, outcome.group
                if outcome.is_failure and key not in findings:
                    progress.clear()
                    findings[key] = found = _keep(case, outcome, sandbox, options.keep)
                    print(_text(found), flush=True, file=sys.stderr if options.json else sys.stdout)
                if progress.is_over(sum(map(Counter.total, counts.values())), len(findings)):
                    break
    progress.clear()
    if options.json:
        print(json.dumps(_report(counts, findings, options), indent=2))
    else:
        print(_table(counts))
    return 1 if findings else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600, help="time to run")
    parser.add_argument("--seed", type=int, default=0, help="random seed")
    parser.add_argument("--format", choices=[*FORMATS, "calls"], help="one format only")
    parser.add_argument("--timeout", type=float, default=10, help="seconds that a case may take")
    parser.add_argument("--memory", type=float, default=1, help="GiB that a case may take")
    parser.add_argument("--no-keep", dest="keep", action="store_false", help="do not store what is found")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser.parse_args()


def _cases(names: list[str], seed: int, seeds: collection.Seeds) -> Iterator[Case]:
    """Iterate over the cases of all formats, round by round; each round has its own generator."""
    known = calls.callees()
    number = 0
    while True:
        for name in names:
            if name == "calls":
                yield from calls.make_calls(1_000_003 * seed + number, _CALLS_A_ROUND, known)
                continue
            rng = random.Random(f"{seed} {name} {number}")
            for _ in range(_FILES_A_ROUND):
                yield make_case(rng, name, seeds)
        number += 1


def _keep(case: Case, outcome: Outcome, sandbox: Sandbox, keep: bool) -> Finding:
    reduced = minimise(case, outcome, sandbox)
    return Finding(case.format, outcome, reduced, str(store(reduced, outcome)) if keep else "")


def _text(found: Finding) -> str:
    call = str(found.case) if found.format == "calls" else f"target {found.case.target!r}, {found.case.data[:200]!r}"
    lines = [line for line in found.outcome.detail.splitlines() if line.strip()]
    return f"\n{found.format}: {found.outcome.group}\n  {call}\n  {found.path}\n" + "\n".join(
        f"    {line}" for line in lines[-14:]
    )


def _table(counts: dict[str, Counter[str]]) -> str:
    rows = [("format", "cases", *_TITLES)]
    rows += [(name, *_numbers(found)) for name, found in counts.items()]
    rows.append(("all", *_numbers(sum(counts.values(), Counter()))))
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join(lines)


def _numbers(found: Counter[str]) -> list[str]:
    return [f"{found.total():,}", *(f"{found[kind]:,}" for kind in _COLUMNS)]


def _report(
    counts: dict[str, Counter[str]], findings: dict[Any, Finding], options: argparse.Namespace
) -> dict[str, Any]:
    return {
        "seconds": options.seconds,
        "seed": options.seed,
        "formats": {
            name: {"cases": found.total(), **{kind: found[kind] for kind in _COLUMNS}} for name, found in counts.items()
        },
        "findings": [
            {
                "format": one.format,
                "kind": one.outcome.kind,
                "group": one.outcome.group,
                "case": one.path,
                "detail": one.outcome.detail,
            }
            for one in findings.values()
        ],
    }


class _Progress:
    """A bar on a terminal, a line every half minute elsewhere."""

    def __init__(self, seconds: float) -> None:
        self._begun = self._shown = time.monotonic()
        self._seconds = seconds
        self._is_terminal = sys.stderr.isatty()

    def is_over(self, n_cases: int, n_findings: int) -> bool:
        now = time.monotonic()
        passed = now - self._begun
        if now - self._shown >= (0.5 if self._is_terminal else 30):
            self._shown = now
            done = min(1.0, passed / self._seconds)
            line = f"{n_cases:,} cases, {n_findings:,} findings, {passed:.0f} of {self._seconds:.0f} s"
            if self._is_terminal:
                print(f"\r[{'#' * int(30 * done):30}] {line} ", end="", flush=True, file=sys.stderr)
            else:
                print(line, flush=True, file=sys.stderr)
        return passed >= self._seconds

    def clear(self) -> None:
        if self._is_terminal:
            print("\r" + " " * 100 + "\r", end="", flush=True, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())

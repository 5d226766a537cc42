"""Run the kernels under the sanitizers of GCC: `python -m tests.sanitize --seconds 60`.

AddressSanitizer and UndefinedBehaviorSanitizer watch the kernel tests and the random kernel driver, ThreadSanitizer
watches threads that share models. Each build first has to report deliberate defects.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from tests.sanitize import child, defects
from tests.sanitize.build import ADDRESS, HERE, KERNELS, ROOT, THREAD, Build, MissingSanitizerError, Sanitizer, build

# Tests that call the kernels, directly or through the learners.
TESTS = (
    "tests/_utils/test_rows.py",
    "tests/learners/test_kernels.py",
    "tests/learners/test_exactness.py",
    "tests/learners/test_numerics.py",
    "tests/learners/online",
    "tests/learners/moment/test_moment.py",
    "tests/contract/test_sharing.py",
)
# These stop Python at every line, which takes minutes and exercises no kernel more.
_SKIPPED = "not fault_at_any_line"
_REPORT = "report"


class Run(NamedTuple):
    """The end of a child process: what sanitizers reported, and what it wrote to standard error."""

    exit_code: int
    report: str
    output: str


class FailureError(Exception):
    """A sanitizer found something, a check failed, or a deliberate defect went unseen."""


def main() -> int:
    """Build, prove the builds, and run tests, driver and threads; return 1 if anything was found."""
    options = _options()
    begun = time.monotonic()
    try:
        if options.case is not None:
            built = Build(ADDRESS, HERE / ADDRESS.name)
            if not built.kernels:
                raise FailureError("a case needs the build that make sanitize leaves behind")
            _drive(built, options)
            return 0
        _check_address(options)
        _check_threads(options)
    except MissingSanitizerError as error:
        print(f"aromatch: {error}", file=sys.stderr)
        return 1
    except FailureError as error:
        print(f"\naromatch: {error}", file=sys.stderr)
        return 1
    print(f"no findings in {time.monotonic() - begun:.0f} s")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.sanitize", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="time of the driver and of the threads")
    parser.add_argument("--seed", type=int, default=0, help="random seed")
    parser.add_argument("--case", type=int, help="repeat this case of the driver, with the build that is there")
    return parser.parse_args()


def _check_address(options: argparse.Namespace) -> None:
    built = _built_and_proved(ADDRESS)
    begun = time.monotonic()
    _say("kernel tests")
    options_of_pytest = ["-q", "-n", "auto", "--capture=sys", "-p", "no:cacheprovider", "-k", _SKIPPED]
    run = _run(built, "pytest", *options_of_pytest, *TESTS, shows=True)
    _refuse(run, "the kernel tests")
    _say(f"{time.monotonic() - begun:.0f} s")
    _drive(built, options)


def _drive(built: Build, options: argparse.Namespace) -> None:
    trace = built.folder / "case"
    arguments = ["--seconds", options.seconds, "--seed", options.seed, "--trace", trace]
    if options.case is not None:
        arguments += ["--first", options.case, "--cases", 1]
    run = _run(built, "driver", *map(str, arguments), shows=True, finds_leaks=True)
    if run.exit_code or _errors(run):
        seed, number = re.findall(r"\d+", trace.read_text()) if trace.exists() else ("0", "0")
        again = f"{sys.executable} -m tests.sanitize --seed {seed} --case {number}"
        _refuse(run, f"the driver in case {number}; to repeat it: {again}")


def _check_threads(options: argparse.Namespace) -> None:
    built = _built_and_proved(THREAD)
    _refuse(
        _run(built, "threads", "--seconds", str(options.seconds), "--seed", str(options.seed), shows=True), "threads"
    )


def _built_and_proved(sanitizer: Sanitizer) -> Build:
    begun = time.monotonic()
    _say(f"{sanitizer.name}: building the kernels with {' '.join(sanitizer.flags)}")
    built = build(sanitizer)
    if missing := {path.stem for path in KERNELS.glob("*.pyx")} - {
        path.name.partition(".")[0] for path in built.kernels
    }:
        raise FailureError(f"the build has no {', '.join(sorted(missing))}")
    for path in [*built.kernels, _defects(built)]:
        symbols = subprocess.run(["nm", "-D", "-u", path], capture_output=True, text=True, check=True).stdout
        for symbol in sanitizer.symbols:
            if symbol not in symbols:
                raise FailureError(f"{path} is not instrumented: it does not refer to {symbol}")
    _say(f"{sanitizer.name}: {len(built.kernels)} instrumented kernels, {time.monotonic() - begun:.0f} s")
    for name, words in defects.REPORTS[sanitizer.name].items():
        run = _run(built, "defect", name, finds_leaks=name == "leak")
        if words not in _errors(run):
            raise FailureError(f"the defect {name} was not reported as {words!r}\n{run.output}\n{run.report}")
        _say(f"{sanitizer.name}: reports {name}")
    return built


def _defects(built: Build) -> Path:
    """Compile the deliberate defects with the flags of the kernels."""
    path = built.folder / "defects.so"
    source = Path(__file__).with_name("defects.c")
    subprocess.run([built.compiler, "-O3", "-fPIC", "-shared", "-pthread", source, "-o", path], check=True)
    return path


def _run(built: Build, *arguments: str, shows: bool = False, finds_leaks: bool = False) -> Run:
    """Run a child process on the instrumented package, with what it must load before Python."""
    for path in built.folder.glob(f"{_REPORT}.*"):
        path.unlink()
    # With leaks the child keeps its own exit code: the interpreter leaves memory behind, which the report tells apart.
    common = f"log_path={built.folder / _REPORT}:exitcode={0 if finds_leaks else 99}"
    environment = {
        **os.environ,
        "LD_PRELOAD": built.preloaded(),
        "PYTHONPATH": os.pathsep.join([str(built.package), str(ROOT)]),
        # Each object of Python is then an allocation of its own, whose end is watched.
        "PYTHONMALLOC": "malloc",
        "OMP_NUM_THREADS": "1",
        "ASAN_OPTIONS": f"{common}:allocator_may_return_null=1:max_allocation_size_mb=16384:"
        f"detect_stack_use_after_return=1:detect_leaks={int(finds_leaks)}",
        "UBSAN_OPTIONS": f"{common}:print_stacktrace=1:halt_on_error=1",
        "TSAN_OPTIONS": f"{common}:history_size=7",
        child.PACKAGE: str(built.package),
        defects.LIBRARY: str(built.folder / "defects.so"),
    }
    command = [sys.executable, "-m", "tests.sanitize.child", *arguments]
    with (built.folder / "stderr").open("w+") as stderr:
        stdout = None if shows else subprocess.DEVNULL
        done = subprocess.run(command, cwd=ROOT, env=environment, stdout=stdout, stderr=stderr, check=False)
        stderr.seek(0)
        output = stderr.read()
    reports = [path.read_text() for path in sorted(built.folder.glob(f"{_REPORT}.*"))]
    # UndefinedBehaviorSanitizer beside AddressSanitizer writes to standard error only.
    undefined = re.search(r"^\S+: runtime error: .*", output, re.DOTALL | re.MULTILINE)
    if undefined:
        reports.append(undefined[0])
    return Run(done.returncode, "".join(reports), output)


def _errors(run: Run) -> str:
    """Return what was reported, without refused allocations and memory that the interpreter left behind."""
    report = re.sub(r"^==\d+==WARNING: AddressSanitizer failed to allocate .*\n", "", run.report, flags=re.MULTILINE)
    errors, is_leaking, leaks = report.partition("==ERROR: LeakSanitizer: detected memory leaks")
    if not is_leaking:
        return report
    own = [leak for leak in leaks.split("\n\n") if re.search(r" leak of (.|\n)*(aromatch/kernels/|defects\.c)", leak)]
    return errors + "\n\n".join(own) if own or "ERROR" in errors else ""


def _refuse(run: Run, what: str) -> None:
    errors = _errors(run)
    if errors or run.exit_code:
        raise FailureError(f"a failure of {what}: exit code {run.exit_code}\n{errors or run.output}")


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())

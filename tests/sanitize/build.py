"""Builds of the package whose kernels a sanitizer of GCC instruments."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
HERE = ROOT / "build" / "sanitize"
KERNELS = ROOT / "src" / "aromatch" / "kernels"
# What the build of the package reads.
_SOURCES = ("setup.py", "pyproject.toml", "README.md", "LICENSE")
_COMMON = ("-O1", "-g", "-fno-omit-frame-pointer", "-fno-sanitize-recover=all")


class MissingSanitizerError(Exception):
    """A library of the sanitizers is missing."""


class Sanitizer(NamedTuple):
    """Flags of the compiler, libraries that must be loaded first, and symbols that instrumented code refers to."""

    name: str
    flags: tuple[str, ...]
    libraries: tuple[str, ...]
    symbols: tuple[str, ...]


# Division by zero is not among the undefined operations: floats follow IEEE 754, and an infinite noise has a meaning.
# Builds of Python define the overflow of integers (-fwrapv), other builds do not, and no kernel should need it.
ADDRESS = Sanitizer(
    "address",
    ("-fsanitize=address,undefined,float-cast-overflow", "-fno-wrapv", *_COMMON),
    ("libasan.so", "libubsan.so"),
    ("__asan_report_", "__ubsan_handle_"),
)
THREAD = Sanitizer("thread", ("-fsanitize=thread", *_COMMON), ("libtsan.so",), ("__tsan_read", "__tsan_write"))


class Build(NamedTuple):
    """An instrumented copy of the package."""

    sanitizer: Sanitizer
    folder: Path

    @property
    def package(self) -> Path:
        """Folder to import `aromatch` from."""
        return self.folder / "package"

    @property
    def kernels(self) -> list[Path]:
        """The compiled kernels."""
        suffix = sysconfig.get_config_var("EXT_SUFFIX")
        return sorted((self.package / "aromatch" / "kernels").glob(f"*{suffix}"))

    @property
    def compiler(self) -> Path:
        """A compiler that adds the flags of the sanitizer last, where they override those of `setup.py`."""
        return self.folder / "cc"

    def preloaded(self) -> str:
        """Return the libraries that must be loaded before Python, which is not instrumented."""
        # The C++ library comes along, because its exceptions are intercepted: SciPy raises some.
        return " ".join(str(_library(name)) for name in (*self.sanitizer.libraries, "libstdc++.so"))


def build(sanitizer: Sanitizer) -> Build:
    """Compile the kernels into a copy of the package below `build/`, by the same `setup.py` as always."""
    result = Build(sanitizer, HERE / sanitizer.name)
    for name in sanitizer.libraries:
        _library(name)
    shutil.rmtree(result.folder, ignore_errors=True)
    source = result.folder / "source"
    shutil.copytree(
        ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.so", "*.c", "__pycache__", "*.egg-info")
    )
    for name in _SOURCES:
        shutil.copy2(ROOT / name, source)
    result.compiler.write_text(f'#!/bin/sh\nexec {shlex.join(_compiler())} "$@" {shlex.join(sanitizer.flags)}\n')
    result.compiler.chmod(0o755)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run(
        [*command, "--target", result.package, source], env={**os.environ, "CC": str(result.compiler)}, check=True
    )
    return result


def _compiler() -> list[str]:
    return shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")


def _library(name: str) -> Path:
    found = subprocess.run([*_compiler(), f"-print-file-name={name}"], capture_output=True, text=True, check=False)
    path = Path(found.stdout.strip())
    if found.returncode or not path.is_absolute() or not path.exists():
        raise MissingSanitizerError(
            f"{shlex.join(_compiler())} has no {name}, and the sanitizers need GCC with its libraries. "
            "On Debian and Ubuntu: apt install gcc libgcc-12-dev, with the major version of your gcc"
        )
    return path.resolve()

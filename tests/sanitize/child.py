"""Run tests, the driver or a defect on instrumented kernels: `python -m tests.sanitize.child pytest tests/learners`.

Also a plugin of pytest, because its workers are processes of their own.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

# The folder of the instrumented package.
PACKAGE = "AROMATCH_INSTRUMENTED"


def check_kernels() -> None:
    """Exit unless every kernel comes from the instrumented build."""
    from tests.sanitize.driver import modules

    folder = Path(os.environ[PACKAGE]) / "aromatch" / "kernels"
    for module in modules():
        if Path(str(module.__file__)).parent != folder:
            sys.exit(f"{module.__name__} is {module.__file__}, which is not of the instrumented build in {folder}")


def pytest_configure(config: Any) -> None:
    """Check the kernels, and give examples the time that instrumented code takes."""
    check_kernels()
    import hypothesis  # not before pytest, which rewrites its assertions

    hypothesis.settings.register_profile("instrumented", deadline=None)
    hypothesis.settings.load_profile("instrumented")


def main() -> int:
    """Run what the arguments name."""
    kind, *arguments = sys.argv[1:]
    check_kernels()
    if kind == "pytest":
        return int(pytest.main(["-p", "tests.sanitize.child", *arguments]))
    if kind == "defect":
        from tests.sanitize import defects

        defects.commit(*arguments)
        return 0
    sys.argv[1:] = arguments
    if kind == "driver":
        from tests.sanitize import driver

        return driver.main()
    from tests.sanitize import threads

    return threads.main()


if __name__ == "__main__":
    sys.exit(main())

"""The commands in docs/command-line.md run in order and print the output of the page."""

import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```console\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
STEPS = [
    tuple(step.split("\n", 1)) for block in BLOCKS for step in re.split(r"^\$ ", block, flags=re.MULTILINE) if step
]


def as_printed(expected, got):
    """Return whether an output equals that of the page, up to whitespace and ellipses."""
    expected = re.sub(r"\.\.\.(?:\.*)", "...", expected)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return doctest.OutputChecker().check_output(expected, got, flags)


@pytest.mark.skipif(shutil.which("bash") is None, reason="the page needs a shell")
def test_the_commands_of_the_page_print_its_output(tmp_path):
    assert len(STEPS) >= 11
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": path, "COLUMNS": "80", "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"}
    for command, expected in STEPS:
        done = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8", timeout=120
        )
        assert (done.returncode, done.stderr) == (0, ""), command
        assert as_printed(expected, done.stdout), f"$ {command}\n{done.stdout}\nexpected\n{expected}"
    assert (tmp_path / "questions.txt").read_text(encoding="utf-8")


def test_different_output_is_detected():
    assert as_printed("asked 3, ... skipped\n", "  asked   3, 12 skipped\n")
    assert not as_printed("asked 3, 0 skipped\n", "asked 3, 1 skipped\n")

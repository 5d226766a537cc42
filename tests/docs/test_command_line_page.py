"""The walk-through in docs/command-line.md is true: its commands are run in order, and what they print is compared."""

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
    """Tell whether an output is what the page shows, but for spaces and what dots stand for."""
    expected = re.sub(r"\.\.\.(?:\.*)", "...", expected)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return doctest.OutputChecker().check_output(expected, got, flags)


@pytest.mark.skipif(shutil.which("bash") is None, reason="the commands of the page are for a shell")
def test_the_commands_of_the_walk_through_print_what_the_page_shows(tmp_path):
    assert len(STEPS) >= 11
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    places = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": places, "COLUMNS": "80", "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"}
    for command, expected in STEPS:
        done = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8", timeout=120
        )
        assert (done.returncode, done.stderr) == (0, ""), command
        assert as_printed(expected, done.stdout), f"$ {command}\n{done.stdout}\nthe page has\n{expected}"
    assert "which is better for this?" in (tmp_path / "questions.txt").read_text(encoding="utf-8")


def test_an_output_that_differs_is_noticed():
    assert as_printed("asked 3, ... skipped\n", "  asked   3, 12 skipped\n")
    assert not as_printed("asked 3, 0 skipped\n", "asked 3, 1 skipped\n")

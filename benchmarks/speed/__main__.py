"""Speed and memory of the learners, as ratios against plain loops measured in the same run.

    make bench                                   everything; writes docs/benchmarks.md
    python -m benchmarks.speed --only sparse     the parts whose name holds "sparse"; writes nothing

Sides alternate and each figure is the median of five rounds, so that a noisy machine is noisy for all. All sides
start from the same model, in the middle of learning, and learn the same next triplets; the results are compared
before a time is believed.
"""

import argparse
import os
import platform
from pathlib import Path

import numpy as np

from benchmarks.speed.loops import compile_plain_loops
from benchmarks.speed.parts import PARTS, ROOT


def machine():
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        cpu = next((line.split(":")[1].strip() for line in info.read_text().splitlines() if "model name" in line), cpu)
    return (
        f"{cpu}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}, "
        f"NumPy {np.__version__}, {os.environ['OMP_NUM_THREADS']} thread unless it says otherwise"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="run the parts whose name holds this")
    only = parser.parse_args().only
    loops = compile_plain_loops()
    lines = ["| what | ratio | at least | |", "|---|---|---|---|"]
    print(machine())
    for name, part in PARTS.items():
        if only in name:
            for figure in part(loops):
                ratio = "" if figure.ratio is None else f"{figure.ratio:.3g}x"
                print(f"{figure.what:70} {ratio:>8}  {figure.bar:>7}  {figure.detail}", flush=True)
                lines.append(f"| {figure.what} | {ratio} | {figure.bar} | {figure.detail} |")
    if not only:
        page = ROOT / "docs" / "benchmarks.md"
        text = f"# Benchmarks\n\nWritten by `make bench` on: {machine()}.\n\n"
        text += __doc__.split("\n\n")[2].strip() + "\n\n" + "\n".join(lines) + "\n"
        page.write_text(text)
        print(f"written: {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()

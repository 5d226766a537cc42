"""All studies, one after another, and the page that tells what they found.

    make studies                              everything; writes docs/studies.md and its figures
    python benchmarks/studies/all.py --kept   runs nothing; writes the page with the studies that are complete

Finished cells are kept in docs/results/studies.json, so that an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import os
import platform

import study

# isort: split
import asking
import cranfield
import embeddings
import honesty
import multiclass
import numpy as np
import spaces

import aromatch as am

STUDIES = (asking, spaces, cranfield, embeddings, multiclass, honesty)


def make_page(found, versions):
    """Write the page: `found` has for each study what it found, or None."""
    lines = [
        "# Studies: what learning from comparisons is good for, and what not",
        "",
        "Written by `make studies`; do not edit. Each study is a file in `benchmarks/studies/`, which tells how it was",
        "measured and runs alone. Settings are chosen on validation parts, never on test parts. A ± is a standard",
        "error.",
    ]
    for one, result in found.items():
        lines += ["", f"## {one.TITLE}", ""]
        lines += one.section(result) if result is not None else ["Not measured yet."]
    return "\n".join([*lines, "", "Measured with " + ", ".join(f"{n} {v}" for n, v in versions.items()) + "."]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--kept", action="store_true", help="run nothing, write what is complete")
    arguments = parser.parse_args()
    found = {one: study.kept(one) if arguments.kept else study.run(one, arguments.jobs) for one in STUDIES}
    for one, result in found.items():
        if result is not None:
            one.draw(result, study.RESULTS)
    versions = {"aromatch": am.__version__, "python": platform.python_version(), "numpy": np.__version__}
    page = make_page(found, versions)
    (study.RESULTS.parent / "studies.md").write_text(page)
    print(page)


if __name__ == "__main__":
    main()

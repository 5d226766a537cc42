"""Measure ranking quality against the strongest alternatives, all tuned alike; write docs/quality.md and its figures.

    make quality                                       everything
    python -m benchmarks.quality --only banking77      collections whose name contains "banking77"; writes no file
    python -m benchmarks.quality --methods cosine,LDA  some methods only; writes no file

Completed cells are stored in docs/results/quality.json, so that an interrupted run resumes. The methods in torch need
`pip install 'aromatch[quality]'`, and are left out without it. Leave the machine idle while seconds are measured.
"""

import importlib.util
import sys

from benchmarks.quality.experiment import run, run_times
from benchmarks.quality.methods import METHODS
from benchmarks.quality.page import Results, draw, make_page
from benchmarks.quality.sampling import SAMPLERS
from benchmarks.shared.collections import COLLECTIONS, RESULTS
from benchmarks.shared.report import parser_of, versions


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--only", default="", help="collections whose name contains this")
    parser.add_argument("--methods", default="", help="names of methods, separated by commas")
    parser.add_argument("--no-times", dest="times", action="store_false", help="do not measure seconds; writes no file")
    arguments = parser.parse_args()
    has_torch = importlib.util.find_spec("torch") is not None
    names = [name for name in arguments.methods.split(",") if name]
    methods = [m for m in METHODS if (has_torch or "torch" not in m.name) and (not names or m.name in names)]
    collections = [name for name in COLLECTIONS if arguments.only in name]
    if not methods or not collections:
        parser.error(f"choose from {', '.join(COLLECTIONS)} and {', '.join(m.name for m in METHODS)}")
    cells, sampling = run(collections, methods, [] if names else SAMPLERS, arguments.jobs)
    times = run_times(cells) if arguments.times else []
    results, used = Results(cells, times), versions()
    if has_torch:
        import torch

        used["torch"] = torch.__version__
    page = make_page(results, sampling, used)
    print(page)
    if times and len(methods) == len(METHODS) and len(collections) == len(COLLECTIONS):
        draw(results, RESULTS)
        (RESULTS.parent / "quality.md").write_text(page)
    elif not has_torch:
        print("No file is written without torch: pip install 'aromatch[quality]'", file=sys.stderr)


if __name__ == "__main__":
    main()

"""Measure the calibration of predicted probabilities; write docs/calibration.md and its figure.

    make calibration                                    all collections
    python -m benchmarks.calibration --only banking77   collections whose name contains "banking77"; writes no file

Completed cells are stored in docs/results/calibration.json, so that an interrupted run resumes.
"""

from benchmarks.calibration.experiment import LEARNERS, NAMES, PROTOCOLS, SPLITS, cell_name, compute
from benchmarks.calibration.page import draw, make_page
from benchmarks.shared.collections import RESULTS
from benchmarks.shared.kept_cells import computed
from benchmarks.shared.report import parser_of, versions


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--only", default="", help="collections whose name contains this")
    arguments = parser.parse_args()
    names = [name for name in NAMES if arguments.only in name]
    if not names:
        parser.error(f"--only must match at least one of {', '.join(NAMES)}, got {arguments.only!r}")
    cells = {
        cell_name(name, learner, protocol, number): (compute, name, learner, protocol, number)
        for name in names
        for learner in LEARNERS
        for protocol in PROTOCOLS
        for number in SPLITS
    }
    results = computed(cells, arguments.jobs, "calibration: cells", RESULTS / "calibration.json")
    page = make_page(results, versions())
    print(page)
    if names == list(NAMES):
        draw(results, RESULTS)
        (RESULTS.parent / "calibration.md").write_text(page)


if __name__ == "__main__":
    main()

"""Measure search that learns from feedback, in a closed loop; write docs/feedback.md and its figure.

    make feedback                                    everything
    python -m benchmarks.feedback --only banking77   collections whose name contains "banking77"; writes no file
    python -m benchmarks.feedback --kinds clicks     kinds of feedback whose name contains "clicks"; writes no file

Completed cells are stored in docs/results/feedback.json, so that an interrupted run resumes.
"""

from benchmarks.feedback.experiment import COLLECTIONS, FEEDBACK, GUARANTEED, METHODS, SEEDS, cell_name, compute
from benchmarks.feedback.page import draw, make_page
from benchmarks.shared.collections import RESULTS
from benchmarks.shared.kept_cells import computed
from benchmarks.shared.report import parser_of, versions


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--only", default="", help="collections whose name contains this")
    parser.add_argument("--kinds", default="", help="kinds of feedback whose name contains this")
    arguments = parser.parse_args()
    names = [name for name in COLLECTIONS if arguments.only in name]
    ways = [way for way in FEEDBACK if arguments.kinds in way.name]
    if not names or not ways:
        parser.error(f"choose from {', '.join(COLLECTIONS)} and {', '.join(way.name for way in FEEDBACK)}")
    cells = {
        cell_name(name, way, seed, method): (compute, name, way.name, seed, method)
        for name in names
        for way in ways
        for seed in SEEDS
        for method in METHODS
    }
    results = computed(cells, arguments.jobs, "feedback: cells", RESULTS / "feedback.json")
    page = make_page(results, COLLECTIONS, GUARANTEED, versions())
    print(page)
    if len(names) == len(COLLECTIONS) and len(ways) == len(FEEDBACK):
        draw(results, COLLECTIONS, RESULTS)
        (RESULTS.parent / "feedback.md").write_text(page)


if __name__ == "__main__":
    main()

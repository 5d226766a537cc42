"""Measure the reward of exploration policies in a stream of searches; write docs/exploration.md and its figure.

    make exploration                               everything
    python -m benchmarks.exploration --lists 200   shorter streams; writes no file

Completed cells are stored in docs/results/exploration.json, so that an interrupted run resumes.
"""

from benchmarks.exploration.experiment import N_LISTS, POLICIES, SEEDS, STARTS, cell_name, compute
from benchmarks.exploration.page import draw, make_page
from benchmarks.shared.collections import RESULTS
from benchmarks.shared.kept_cells import computed
from benchmarks.shared.report import parser_of, versions


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--lists", type=int, default=N_LISTS, help="searches per stream")
    arguments = parser.parse_args()
    cells = {
        cell_name(start, policy, seed, arguments.lists): (compute, start, policy, seed, arguments.lists)
        for start in STARTS
        for policy in POLICIES
        for seed in SEEDS
    }
    results = computed(cells, arguments.jobs, "exploration: streams", RESULTS / "exploration.json")
    page = make_page(results, arguments.lists, versions())
    print(page)
    if arguments.lists == N_LISTS:
        draw(results, RESULTS)
        (RESULTS.parent / "exploration.md").write_text(page)


if __name__ == "__main__":
    main()

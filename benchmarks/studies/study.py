"""Running a study, and putting its numbers into a page.

A study is a module with `NAME`, `TITLE`, `cells()` (a function and its arguments, by the key of the cell),
`summary(results)` (a plain dict computed from the cells), `section(found)` (lines of the page, the answer first) and
`draw(found, folder)`.
"""

from __future__ import annotations

import json

from aromatch.paper.statistics import compare, mean_over_splits
from benchmarks.shared.collections import RESULTS, SEED
from benchmarks.shared.kept_cells import computed, named
from benchmarks.shared.report import panels, parser_of, table

__all__ = ["RESULTS", "SEED", "compare", "mean_over_splits", "named", "panels", "table"]

STORED = RESULTS / "studies.json"


def run(study, n_jobs):
    """Compute the missing cells of a study; return its summary."""
    return study.summary(computed(study.cells(), n_jobs, f"{study.NAME}: cells", STORED))


def stored(study):
    """Return the summary of a study whose cells are all stored; None for any other."""
    found = json.loads(STORED.read_text()) if STORED.exists() else {}
    names = study.cells()
    return study.summary([found[name] for name in names]) if all(name in found for name in names) else None


def main(study):
    """Run one study, print its section of the page, and draw its figure."""
    found = run(study, parser_of(study.__doc__).parse_args().jobs)
    study.draw(found, RESULTS)
    print("\n".join(study.section(found)))
    return found


def gathered(cells, *keys):
    """Return nested dicts of measures: one level per key, and a list with the value of each cell."""
    lists = {}
    for cell in cells:
        here = lists
        for key in keys:
            here = here.setdefault(str(cell[key]), {})
        for measure, value in cell["found"].items():
            here.setdefault(measure, []).append(value)
    return lists


def p_value(p):
    """Format the p-value of a test."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def chosen(settings):
    """Format the chosen settings, with their counts if they differ between splits."""
    texts = [", ".join(f"{name} {value}" for name, value in one.items()) for one in settings]
    counts = {text: texts.count(text) for text in dict.fromkeys(texts)}
    return "; ".join(text if n == len(texts) else f"{text} ({n})" for text, n in counts.items())

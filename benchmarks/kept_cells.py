"""Parts of a long benchmark, computed side by side and kept, so that an interrupted run goes on."""

from __future__ import annotations

import json
import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from aromatch._progress import progress_bar


def computed(cells, n_jobs, what):
    """Compute all cells that are not kept; give the results of all.

    `cells` has, by the path that a cell is kept at, a function of the main module and its arguments. When code changes,
    the folder of kept cells has to be emptied by hand.
    """
    missing = [(cell, path) for path, cell in cells.items() if not path.exists()]
    with (
        ProcessPoolExecutor(n_jobs, mp_context=get_context("spawn")) as pool,
        progress_bar(what, len(missing), enabled=True) as advance,
    ):
        for done in as_completed([pool.submit(_work, *each) for each in missing]):
            done.result()
            advance(1)
    return [json.loads(path.read_text()) for path in cells]


def _work(cell, path):
    function, *arguments = cell
    result = function(*arguments)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}.part")
    unfinished.write_text(json.dumps(result))
    unfinished.replace(path)

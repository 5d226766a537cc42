"""Parts of a long benchmark, computed side by side and kept, so that an interrupted run goes on, here or elsewhere."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from aromatch._utils.progress import progress_bar


def named(*settings):
    """Name a cell by its settings."""
    return hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:20]


def computed(cells, n_jobs, what, path):
    """Compute all cells that are not kept in the file at `path`; give the results of all.

    `cells` has, by the name of each, a function of the main module and its arguments. When code changes that results
    depend on, the file has to be removed by hand.
    """
    kept = json.loads(path.read_text()) if path.exists() else {}
    missing = {name: cell for name, cell in cells.items() if name not in kept}
    with (
        ProcessPoolExecutor(n_jobs, mp_context=get_context("spawn")) as pool,
        progress_bar(what, len(missing), enabled=True) as advance,
    ):
        names = {pool.submit(function, *arguments): name for name, (function, *arguments) in missing.items()}
        try:
            for done in as_completed(names):
                kept[names[done]] = done.result()
                _write(path, kept)
                advance(1)
        except BaseException:
            pool.shutdown(cancel_futures=True)  # nobody would keep what the others find
            raise
    return [kept[name] for name in cells]


def _write(path, kept):
    """Write a line for each cell, all or nothing."""
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(kept[name])}" for name in sorted(kept))
    unfinished = path.with_suffix(".part")
    unfinished.write_text(f"{{\n{lines}\n}}\n")
    unfinished.replace(path)

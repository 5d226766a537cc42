"""Parallel computation of the cells of a long benchmark, stored so that an interrupted run resumes."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from aromatch._utils.progress import progress_bar
from aromatch.io.durable import write_text


def named(*settings):
    """Return the key of a cell, a hash of its settings."""
    return hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:20]


def computed(cells, n_jobs, what, path):
    """Compute the cells that are not stored in the file at `path`; return the results of all.

    `cells` maps the key of each cell to a function, which must be importable by other processes, and its arguments. If
    code changes that results depend on, remove the file.
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
            pool.shutdown(cancel_futures=True)  # results of other cells would be lost anyway
            raise
    return [kept[name] for name in cells]


def _write(path, kept):
    """Write one line per cell."""
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(kept[name])}" for name in sorted(kept))
    write_text(path, f"{{\n{lines}\n}}\n")

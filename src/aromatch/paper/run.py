"""Parallel computation of the cells of a figure.

Each completed cell is a small JSON file in the working folder, named by its settings. An interrupted run resumes with
the remaining cells; a cell whose settings have changed is computed again.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import platform
import signal
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy
import scipy
import sklearn
from threadpoolctl import threadpool_limits

from .. import __version__
from .._utils.progress import progress_bar
from ..exceptions import DataFileError
from ..io.durable import write_text
from .methods import compute
from .spec import Cell, Spec
from .splits import describe_images, make_split

# Approximate seconds per triplet and per fit, for the progress bar and to start with the longest cells.
_SECONDS_A_TRIPLET = {"f-AROMA": 2e-4, "d-AROMA": 1e-5, "OASIS": 1e-5}
_SECONDS_A_FIT = {"Euclidean": 0.0, "labels": 10.0, "HIER": 10.0, "ITML": 60.0, "LEGO": 60.0, "LMNN": 120.0}
_SECONDS_AN_EVALUATION = 4.0

Result = dict[str, Any]


def run_figure(spec: Spec, folder: Path, *, n_jobs: int, verbose: bool = True) -> dict[str, Any]:
    """Compute the missing cells of a figure; return all results in a form that can be written as JSON.

    Parameters
    ----------
    spec : Spec
        The specification.
    folder : Path
        Folder of completed cells and vectors.
    n_jobs : int
        Number of processes.
    verbose : bool, default True
        Show a progress bar if standard error is a terminal.

    Returns
    -------
    dict
        The specification, versions of packages, and the result of every cell.
    """
    begun = perf_counter()
    variants = ["", *(variant["name"] for variant in spec.variants)]
    jobs = [(spec, number, variant, folder / "vectors") for variant in variants for number in range(spec.n_splits)]
    describe_images(spec, folder / "vectors", n_jobs=n_jobs, verbose=verbose)
    # Forking a process that has used BLAS or Python threads is not safe.
    with multiprocessing.get_context("spawn").Pool(n_jobs, _init_worker) as pool:
        with progress_bar(f"{spec.figure}: vectors", len(jobs), enabled=verbose) as advance:
            for _ in pool.imap_unordered(_prepare, jobs):
                advance(1)
        results, n_computed = _run_cells(pool, spec, spec.cells(), folder, verbose)
        found = {name: precision_at_10(spec, result) for name, result in results.items()}
        # A chosen cell may be among those already computed.
        chosen = [cell for cell in spec.chosen_cells(found) if cell.name not in results]
        more, n_more = _run_cells(pool, spec, chosen, folder, verbose)
    results |= more
    return {
        "spec": spec.to_dict(),
        "versions": {
            "aromatch": __version__,
            "python": platform.python_version(),
            "numpy": numpy.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
        },
        "machine": {"cores": os.cpu_count(), "processor": platform.machine(), "system": platform.system()},
        # Of the last run, which computes fewer cells after an interruption.
        "run": {"seconds": perf_counter() - begun, "processes": n_jobs, "cells": n_computed + n_more},
        "cells": list(results.values()),
    }


def run_cell(spec: Spec, cell: Cell, folder: Path) -> Result:
    """Compute one cell, which depends on its settings and the seed of the specification only."""
    begun = perf_counter()
    split = make_split(spec, cell.split, cell.variant, folder / "vectors")
    # One thread, as in a complete run, because BLAS sums depend on the number of threads.
    with threadpool_limits(1):
        found = compute(spec, cell, split)
    ratio = split.test_ratio
    return {
        "name": cell.name,
        "cell": cell.to_dict(),
        "seed": spec.seed,
        "test_ratio": ratio,
        "found": asdict(found),
        "seconds": perf_counter() - begun,
    }


def read_json(path: Path) -> dict[str, Any]:
    """Read a file of results."""
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise DataFileError(f"{path} is not JSON: {error}; remove it to compute it again") from error
    if not isinstance(found, dict):
        raise DataFileError(f"{path} must be a JSON object; remove it to compute it again")
    return found


def precision_at_10(spec: Spec, result: Result) -> float:
    """Return the final precision at 10 of a cell."""
    found: float = result["found"]["precision"][-1][spec.ks.index(10)]
    return found


def _run_cells(
    pool: Any, spec: Spec, cells: Iterable[Cell], folder: Path, verbose: bool
) -> tuple[dict[str, Result], int]:
    """Return the results of cells by name, and the number of cells that had to be computed."""
    results: dict[str, Result] = {}
    missing = []
    for cell in cells:
        path = folder / "cells" / f"{_digest(spec, cell)}.json"
        if path.exists():
            results[cell.name] = read_json(path)
        else:
            missing.append((spec, cell, folder, path))
    missing.sort(key=lambda work: -_expected_seconds(spec, work[1]))
    total = round(sum(_expected_seconds(spec, work[1]) for work in missing))
    with progress_bar(f"{spec.figure}: expected seconds of work", total, enabled=verbose) as advance:
        for cell, result in pool.imap_unordered(_work, missing):
            results[cell.name] = result
            advance(round(_expected_seconds(spec, cell)))
    return results, len(missing)


def _expected_seconds(spec: Spec, cell: Cell) -> float:
    n_evaluations = sum(at <= cell.n_triplets for at in spec.checkpoints) if cell.curve else 1
    learning = cell.n_triplets * _SECONDS_A_TRIPLET.get(cell.method, 0.0) + _SECONDS_A_FIT.get(cell.method, 0.0)
    return learning + n_evaluations * _SECONDS_AN_EVALUATION


def _digest(spec: Spec, cell: Cell) -> str:
    """Return a hash of everything that determines the result of a cell."""
    deciding = (
        spec.task,
        spec.seed,
        spec.n_splits,
        spec.ks,
        spec.checkpoints,
        spec.split,
        spec.most_rows,
        spec.hierarchy,
    )
    settings = [*deciding, spec.features_of(cell.variant), cell.to_dict(), __version__]
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:20]


# -- worker processes -------------------------------------------------------------------------------------------


def _init_worker() -> None:
    # The main process handles interrupts and terminates the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threadpool_limits(1)


def _prepare(job: tuple[Spec, int, str, Path]) -> None:
    make_split(*job)


def _work(work: tuple[Spec, Cell, Path, Path]) -> tuple[Cell, Result]:
    spec, cell, folder, path = work
    result = run_cell(spec, cell, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(result))
    return cell, result

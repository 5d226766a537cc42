"""Reproduction of the paper's figures from raw data: cells, panels, claims and the page of results."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from joblib import cpu_count

from .._utils.checks import check_integer
from .._utils.plots import check_can_plot
from ..exceptions import DataFileError
from ..io.durable import write_text
from .figures import draw
from .page import make_page
from .run import read_json, run_cell, run_figure
from .spec import FIGURES, Cell, read_spec
from .synthetic import claim_on_covariances
from .table import Results

FOLDER = "reproduced"
# Folder of figures and raw results, and below it the folder of cells that are kept between runs.
_FILES, _KEPT = "results", "kept"
# What determines whether a recomputed cell is the same.
_COMPARED = ("n_triplets", "n_updates", "precision", "mean_average_precision")


def reproduce(
    figures: tuple[str, ...] = FIGURES,
    *,
    folder: str | os.PathLike[str] = FOLDER,
    quick: bool = False,
    seed: int | None = None,
    n_jobs: int | None = None,
    verbose: bool = True,
) -> dict[str, Any]:
    """Run the paper's experiments and write `results.md`, figures and raw results into a folder.

    An interrupted run resumes. The page also contains the figures of earlier runs in the same folder.

    Parameters
    ----------
    figures : tuple of {"fig3", "fig4"}
        Figures to reproduce.
    folder : path, default "reproduced"
        Output folder.
    quick : bool, default False
        Use fewer splits, rows and triplets.
    seed : int, optional
        Seed that replaces the one of the specification.
    n_jobs : int, optional
        Number of processes; one per core by default.
    verbose : bool, default True
        Show progress bars if standard error is a terminal.

    Returns
    -------
    dict
        Paths of the written files.
    """
    n_jobs = check_integer(cpu_count() if n_jobs is None else n_jobs, "n_jobs", at_least=1)
    check_can_plot()  # before the long computation
    files = Path(folder) / _FILES
    files.mkdir(parents=True, exist_ok=True)
    written = []
    for figure in figures:
        spec = read_spec(figure, quick=quick, seed=seed)
        raw = run_figure(spec, files / _KEPT, n_jobs=n_jobs, verbose=verbose)
        path = files / f"{figure}.json"
        write_text(path, json.dumps(raw, separators=(",", ":")) + "\n")
        written += [path, *draw(Results(raw), files / figure)]
    claims = [claim_on_covariances(quick=quick, seed=seed or 0, verbose=verbose)]
    there = [read_results(folder, figure) for figure in FIGURES if (files / f"{figure}.json").exists()]
    page = Path(folder) / "results.md"
    write_text(page, make_page(there, claims, _command(figures, folder, quick, seed), _FILES))
    return {"written": [str(path) for path in (page, *written)]}


def reproduce_cell(folder: str | os.PathLike[str], figure: str, name: str) -> dict[str, Any]:
    """Recompute one cell of a figure from the settings and the seed in its raw results.

    Returns
    -------
    dict
        The stored and the recomputed result, and whether they are bit-identical.
    """
    results = read_results(folder, figure)
    known = {result["name"]: result for result in results.raw["cells"]}
    if name not in known:
        example = f", such as {next(iter(known))!r}" if known else ", which has none"
        raise ValueError(f"cell must be a name in {figure}.json{example}, got {name!r}")
    before = known[name]
    again = run_cell(results.spec, Cell(**before["cell"]), Path(folder) / _FILES / _KEPT)
    same = all(before["found"][key] == again["found"][key] for key in _COMPARED)
    return {"name": name, "stored": before["found"], "recomputed": again["found"], "same": same}


def read_results(folder: str | os.PathLike[str], figure: str) -> Results:
    """Read the raw results of a figure."""
    path = Path(folder) / _FILES / f"{figure}.json"
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; `aromatch reproduce {figure}` writes it")
    raw = read_json(path)
    try:
        results = Results(raw)
        for result in raw["cells"]:
            Cell(**result["cell"])
            if not isinstance(result["name"], str) or not set(_COMPARED) <= set(result["found"]):
                raise ValueError(f"a cell must have a name and {', '.join(_COMPARED)}")
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise DataFileError(f"{path} must contain the results of {figure}: {type(error).__name__} {error}") from error
    return results


def _command(figures: tuple[str, ...], folder: str | os.PathLike[str], quick: bool, seed: int | None) -> str:
    """Return the equivalent command line."""
    parts = ["aromatch reproduce", "all" if figures == FIGURES else " ".join(figures)]
    parts += ["--quick"] if quick else []
    parts += [f"--seed {seed}"] if seed is not None else []
    parts += [f"--output {Path(folder).name}"] if Path(folder).name != FOLDER else []
    return " ".join(parts)

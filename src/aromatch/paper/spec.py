"""Experiments: TOML specifications and the cells they consist of.

A cell is one method with one setting on one split. Its result is determined by its settings and the seed, so that any
cell can be recomputed alone.
"""

from __future__ import annotations

import tomllib
from dataclasses import asdict, dataclass, field
from importlib import resources
from itertools import product
from typing import Any

FIGURES = ("fig3", "fig4")
# Counts that the quick version divides.
_COUNTS = frozenset({"n_triplets", "n_triplets_of_choice", "at", "n_constraints", "n_constraints_of_choice"})
_NOT_PARAMETERS = frozenset({"method", "n_triplets", "n_triplets_of_choice", "n_constraints_of_choice", "curve"})


@dataclass(frozen=True, slots=True)
class Cell:
    """One method with one setting on one split."""

    split: int
    """Number of the split, from 0."""
    part: str
    """`"test"`: trained on the training part; `"validation"`: trained on a part of it, evaluated on the rest."""
    variant: str
    """Name of the variant of the features, empty for the main one."""
    method: str
    """Name of the method, as in the paper."""
    settings: dict[str, Any]
    """Parameters of the learner."""
    n_triplets: int
    """Number of triplets; 0 for methods that use labels directly."""
    curve: bool = False
    """Whether it is evaluated at all checkpoints, or at the end only."""

    @property
    def name(self) -> str:
        """The name of the cell, which contains every setting."""
        settings = " ".join(f"{key}={value}" for key, value in self.settings.items())
        parts = f"split {self.split}", self.part, self.variant, self.method, settings, self.n_triplets or ""
        return " / ".join(str(part) for part in parts if part != "")

    def to_dict(self) -> dict[str, Any]:
        """Return the cell as a dict for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Spec:
    """The specification of a figure, from its TOML file or reduced for a quick run."""

    figure: str
    title: str
    task: str
    seed: int
    n_splits: int
    ks: list[int]
    checkpoints: list[int]
    split: dict[str, Any]
    features: dict[str, Any]
    runs: list[dict[str, Any]]
    tuned: list[dict[str, Any]]
    panels: dict[str, dict[str, Any]]
    remarks: list[str] = field(default_factory=list)
    """Remarks about the choice of the settings, for the page of results."""
    variants: list[dict[str, Any]] = field(default_factory=list)
    """Variants of the features for the main comparison."""
    hierarchy: dict[str, list[str]] = field(default_factory=dict)
    """The ancestors of each class from the root, if the names of the classes do not contain them."""
    most_rows: int | None = None
    """Maximum number of rows."""

    def to_dict(self) -> dict[str, Any]:
        """Return the specification as a dict for JSON."""
        return asdict(self)

    def features_of(self, variant: str) -> dict[str, Any]:
        """Return the settings of the features of a variant."""
        changed = [v["features"] for v in self.variants if v["name"] == variant]
        return {**self.features, **(changed[0] if changed else {})}

    def cells(self) -> list[Cell]:
        """Return all cells without chosen settings."""
        cells = []
        for split in range(self.n_splits):
            for run in self.runs:
                curve = run.get("curve", False)
                cells += [Cell(split, "test", "", *what, curve) for what in expand(run, run.get("n_triplets", 0))]
            for run in self.tuned:
                cells += [Cell(split, "validation", "", *what) for what in _expand_for_choice(run)]
            for variant in self.variants:
                for run in variant["runs"]:
                    n_triplets = run.get("n_triplets", 0)
                    cells += [Cell(split, "test", variant["name"], *what) for what in expand(run, n_triplets)]
        return list({cell.name: cell for cell in cells}.values())

    def chosen_cells(self, precision_at_10: dict[str, float]) -> list[Cell]:
        """Return the cells with chosen settings, given the precision of every validation cell."""
        return [cell for split in range(self.n_splits) for cell in self.choices(split, precision_at_10).values()]

    def choices(self, split: int, precision_at_10: dict[str, float]) -> dict[tuple[str, str], Cell]:
        """Return the cell of the best setting on one split, for each tuned method and initialization."""
        best: dict[tuple[str, str], tuple[float, Cell]] = {}
        for run in self.tuned:
            for tried, what in zip(_expand_for_choice(run), expand(run, run.get("n_triplets", 0)), strict=True):
                found = precision_at_10[Cell(split, "validation", "", *tried).name]
                cell = Cell(split, "test", "", *what)
                key = cell.method, str(cell.settings.get("init", ""))
                if key not in best or found > best[key][0]:
                    best[key] = found, cell
        return {key: cell for key, (_, cell) in best.items()}


def expand(run: dict[str, Any], n_triplets: int) -> list[tuple[str, dict[str, Any], int]]:
    """Return method, settings and number of triplets for every combination of listed values.

    >>> expand({"method": ["d-AROMA", "OASIS"], "init": "zero"}, 10)
    [('d-AROMA', {'init': 'zero'}, 10), ('OASIS', {'init': 'zero'}, 10)]
    """
    names = [name for name in run if name not in _NOT_PARAMETERS]
    lists = [run[name] if isinstance(run[name], list) else [run[name]] for name in ("method", *names)]
    return [(method, dict(zip(names, values, strict=True)), n_triplets) for method, *values in product(*lists)]


def _expand_for_choice(run: dict[str, Any]) -> list[tuple[str, dict[str, Any], int]]:
    """Expand a tuned run for the validation part, which may have fewer triplets or pairs."""
    if "n_constraints_of_choice" in run:
        run = {**run, "n_constraints": run["n_constraints_of_choice"]}
    return expand(run, run.get("n_triplets_of_choice", 0))


def read_spec(
    figure: str,
    *,
    quick: bool = False,
    seed: int | None = None,
    task: str | None = None,
    cut: dict[str, Any] | None = None,
) -> Spec:
    """Read the specification of a figure.

    Parameters
    ----------
    figure : {"fig3", "fig4"}
        The paper's figure.
    quick : bool, default False
        Use fewer splits, rows and triplets.
    seed : int, optional
        Seed of splits and triplets that replaces the one in the file.
    task : str, optional
        Data set that replaces the one in the file.
    cut : dict, optional
        Reduction that replaces the section `quick` of the file.

    Returns
    -------
    Spec
        The specification.

    Examples
    --------
    >>> from aromatch.paper.spec import read_spec
    >>> spec = read_spec("fig4")
    >>> print(spec.title, len(spec.cells()))
    20 Newsgroups 415
    >>> print(spec.cells()[0].name)
    split 0 / test / f-AROMA / init=zero r=0.01 / 500000
    """
    if figure not in FIGURES:
        raise ValueError(f"figure must be one of {', '.join(FIGURES)}, got {figure!r}")
    raw = tomllib.loads((resources.files(__package__) / "specs" / f"{figure}.toml").read_text())
    quick_cut = raw.pop("quick")
    if seed is not None:
        raw["seed"] = seed
    if task is not None:
        raw["task"] = task
    if quick or cut is not None:
        raw = _cut_down(raw, quick_cut if cut is None else cut)
    return Spec(**raw)


def _cut_down(raw: dict[str, Any], cut: dict[str, Any]) -> dict[str, Any]:
    by = cut["divide_triplets_by"]

    def divided(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: max(1, inner // by) if key in _COUNTS else divided(inner) for key, inner in value.items()}
        return [divided(inner) for inner in value] if isinstance(value, list) else value

    changed: dict[str, Any] = divided(raw)
    changed["checkpoints"] = [at // by for at in raw["checkpoints"]]
    changed["n_splits"] = cut["n_splits"]
    changed["most_rows"] = cut["most_rows"]
    changed["features"] = {**raw["features"], **cut.get("features", {})}
    return changed

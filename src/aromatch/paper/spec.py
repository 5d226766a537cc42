"""What an experiment is: a TOML file in, a list of cells out.

A cell is the smallest piece of work that has a result of its own: one method with one setting on one split. Its
settings and the seed determine its result, so any cell can be computed again alone.
"""

from __future__ import annotations

import tomllib
from dataclasses import asdict, dataclass, field
from importlib import resources
from itertools import product
from typing import Any

FIGURES = ("fig3", "fig4")
# What a quick look divides.
_COUNTS = frozenset({"n_triplets", "n_triplets_of_choice", "at", "n_constraints", "n_constraints_of_choice"})
_NOT_PARAMETERS = frozenset({"method", "n_triplets", "n_triplets_of_choice", "n_constraints_of_choice", "curve"})


@dataclass(frozen=True, slots=True)
class Cell:
    """One method with one setting on one split."""

    split: int
    """Number of the split, from 0."""
    part: str
    """`"test"`: learns the training part; `"validation"`: learns a part of that, and is judged on the rest of it."""
    variant: str
    """Name of the features that differ from the main ones, or empty."""
    method: str
    """Name of the method, as in the paper."""
    settings: dict[str, Any]
    """Parameters of the learner."""
    n_triplets: int
    """Triplets to learn; 0 for methods that read labels themselves."""
    curve: bool = False
    """Whether it is evaluated at all checkpoints on the way, or at the end only."""

    @property
    def name(self) -> str:
        """What to call the cell: every setting is in it."""
        settings = " ".join(f"{key}={value}" for key, value in self.settings.items())
        parts = f"split {self.split}", self.part, self.variant, self.method, settings, self.n_triplets or ""
        return " / ".join(str(part) for part in parts if part != "")

    def to_dict(self) -> dict[str, Any]:
        """Give the cell as JSON knows it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Spec:
    """The settings of a figure, as its TOML file has them or cut down for a quick look."""

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
    """What readers of the results should know of how the settings came about."""
    variants: list[dict[str, Any]] = field(default_factory=list)
    """The main comparison with other settings of the features."""
    hierarchy: dict[str, list[str]] = field(default_factory=dict)
    """The ancestors of each class, from the root down, where the names of the classes do not give them."""
    most_rows: int | None = None
    """Use so many rows of the data at most."""

    def to_dict(self) -> dict[str, Any]:
        """Give the spec as JSON knows it."""
        return asdict(self)

    def features_of(self, variant: str) -> dict[str, Any]:
        """Give the settings of the features for a variant, or the main ones."""
        changed = [v["features"] for v in self.variants if v["name"] == variant]
        return {**self.features, **(changed[0] if changed else {})}

    def cells(self) -> list[Cell]:
        """List all cells whose settings are known from the start."""
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
        """List the cells whose parameter was chosen, given the precision of every cell of the validation part."""
        return [cell for split in range(self.n_splits) for cell in self.choices(split, precision_at_10).values()]

    def choices(self, split: int, precision_at_10: dict[str, float]) -> dict[tuple[str, str], Cell]:
        """Give the cell of the best parameter for each tuned method and start (if it has one), on one split."""
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
    """Give method, settings and triplets for every combination of what stands in lists.

    >>> expand({"method": ["d-AROMA", "OASIS"], "init": "zero"}, 10)
    [('d-AROMA', {'init': 'zero'}, 10), ('OASIS', {'init': 'zero'}, 10)]
    """
    names = [name for name in run if name not in _NOT_PARAMETERS]
    lists = [run[name] if isinstance(run[name], list) else [run[name]] for name in ("method", *names)]
    return [(method, dict(zip(names, values, strict=True)), n_triplets) for method, *values in product(*lists)]


def _expand_for_choice(run: dict[str, Any]) -> list[tuple[str, dict[str, Any], int]]:
    """Expand a tuned run as it is tried on the validation part: with fewer triplets, or pairs, where it says so."""
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
    """Read the settings of a figure.

    Parameters
    ----------
    figure : {"fig3", "fig4"}
        The paper's figure.
    quick : bool, default False
        Cut everything down to a short look.
    seed : int, optional
        Another seed than the file's: it decides the splits and the triplets.
    task : str, optional
        Another data set than the file's.
    cut : dict, optional
        How to cut everything down, in place of what the file says under `quick`.

    Returns
    -------
    Spec
        The settings.

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

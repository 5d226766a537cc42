"""Experiments: TOML specifications and the cells they consist of.

A cell is one method with one setting on one split. Its result is determined by its settings and the seed, so that any
cell can be recomputed alone.
"""

from __future__ import annotations

import tomllib
from dataclasses import asdict, dataclass, field
from importlib import resources
from itertools import product
from math import prod
from typing import Any

from .._utils.checks import check_choice, check_flag, check_integer

FIGURES = ("fig3", "fig4")
# Counts that the quick version divides.
_COUNTS = frozenset({"n_triplets", "n_triplets_of_choice", "at", "n_constraints", "n_constraints_of_choice"})
_KINDS: dict[type, str] = {str: "text", dict: "a table", list: "a list"}
# Far more than the paper's; a spec with more is a mistake that would run for years.
_MAX_SPLITS, _MAX_SETTINGS = 1000, 10_000
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

    def __post_init__(self) -> None:
        check_integer(self.split, "split", at_least=0)
        check_choice(self.part, "part", ("test", "validation"))
        for name in ("variant", "method"):
            _check_type(getattr(self, name), name, str)
        _check_type(self.settings, "settings", dict)
        check_integer(self.n_triplets, "n_triplets", at_least=0)
        check_flag(self.curve, "curve")

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

    def __post_init__(self) -> None:
        for name in ("figure", "title", "task"):
            _check_type(getattr(self, name), name, str)
        check_integer(self.seed, "seed", at_least=0)
        if check_integer(self.n_splits, "n_splits", at_least=1) > _MAX_SPLITS:
            raise ValueError(f"n_splits must be at most {_MAX_SPLITS}, got {self.n_splits}")
        for name in ("ks", "checkpoints"):
            for number in _items(getattr(self, name), name):
                check_integer(number, f"an entry of {name}", at_least=0)
        for name in ("split", "features", "panels", "hierarchy"):
            _check_type(getattr(self, name), name, dict)
        for name in ("runs", "tuned"):
            _check_runs(getattr(self, name), name)
        for number, variant in enumerate(_items(self.variants, "variants")):
            where = f"variants[{number}]"
            _check_type(variant, where, dict)
            for key, kind in (("name", str), ("features", dict)):
                _check_type(variant.get(key), f"{where}.{key}", kind)
            _check_runs(variant.get("runs"), f"{where}.runs")
        if self.most_rows is not None:
            check_integer(self.most_rows, "most_rows", at_least=1)

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


def _check_type(value: Any, name: str, kind: type) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be {_KINDS[kind]}, got {value!r:.60}")


def _items(values: Any, name: str) -> list[Any]:
    _check_type(values, name, list)
    found: list[Any] = values
    return found


def _check_runs(runs: Any, name: str) -> None:
    for number, run in enumerate(_items(runs, name)):
        where = f"{name}[{number}]"
        _check_type(run, where, dict)
        methods = run.get("method")
        for method in methods if isinstance(methods, list) else [methods]:
            _check_type(method, f"{where}.method", str)
        for key in ("n_triplets", "n_triplets_of_choice"):
            check_integer(run.get(key, 0), f"{where}.{key}", at_least=0)
        check_flag(run.get("curve", False), f"{where}.curve")
        n_settings = prod(len(values) for values in run.values() if isinstance(values, list))
        if n_settings > _MAX_SETTINGS:
            raise ValueError(f"{where} has {n_settings:,} combinations of values, expected at most {_MAX_SETTINGS:,}")


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
    try:
        raw = tomllib.loads((resources.files(__package__) / "specs" / f"{figure}.toml").read_text())
    except RecursionError:
        raise ValueError(f"{figure}.toml is nested too deeply") from None
    quick_cut = raw.pop("quick", None)
    if seed is not None:
        raw["seed"] = seed
    if task is not None:
        raw["task"] = task
    spec = Spec(**raw)
    return Spec(**_cut_down(raw, quick_cut if cut is None else cut)) if quick or cut is not None else spec


def _cut_down(raw: dict[str, Any], cut: Any) -> dict[str, Any]:
    _check_type(cut, "quick", dict)
    missing = {"divide_triplets_by", "n_splits", "most_rows"} - set(cut)
    if missing:
        raise ValueError(f"quick has no {sorted(missing)[0]}")
    by = check_integer(cut["divide_triplets_by"], "divide_triplets_by", at_least=1)

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

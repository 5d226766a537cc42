"""The page of results: tables and claims in Markdown, made from the raw results and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .claims import AROMAS, Claim, claims_of, factors_of_triplets
from .spec import expand
from .table import Results

_MEASURES = ("P@1", "P@10", "mAP")


def make_page(figures: list[Results], claims_on_synthetic: list[Claim], command: str, folder: str) -> str:
    """Write the page.

    Parameters
    ----------
    figures : list of Results
        The figures to report, in their order.
    claims_on_synthetic : list of Claim
        What is tested on synthetic data.
    command : str
        The command that made the results.
    folder : str
        Where the figures and the raw results are, from where the page is.

    Returns
    -------
    str
        Markdown.
    """
    parts = [
        "# The paper's experiments",
        f"Written by `{command}`; do not edit. Figures are means over splits with their standard errors. Differences "
        "are tested by the corrected resampled t-test, paired over the splits (Nadeau and Bengio 2003).",
    ]
    for results in figures:
        parts += _section(results, folder)
    if claims_on_synthetic:
        parts += ["## Synthetic data", _table_of_claims(claims_on_synthetic, "")]
    return "\n\n".join(parts) + "\n"


def _section(results: Results, folder: str) -> list[str]:
    spec, raw = results.spec, results.raw
    versions = ", ".join(f"{name} {version}" for name, version in raw["versions"].items())
    name = f"Figure {spec.figure.removeprefix('fig')}"
    rows_a_part = 1 + results.test_ratio
    return [
        f"## {name}: {spec.title}",
        f"![{name}]({folder}/{spec.figure}.png)",
        f"{spec.n_splits} splits with {1 / rows_a_part:.0%} of the rows to learn from, seed {spec.seed}, "
        f"{_time_taken(raw)} {versions}. Raw: [{spec.figure}.json]({folder}/{spec.figure}.json); "
        f"`aromatch reproduce {spec.figure} --cell NAME` computes one of its cells again.",
        *spec.remarks,
        "### All methods",
        _main_table(results),
        "`chosen`: on a validation part of the training part, by precision at 10, on each split apart (in brackets). "
        "`labels`: dot product of the class probabilities of a logistic regression, which uses labels directly, "
        "as an upper reference. Seconds are of cells that run side by side, whatever else the machine does.",
        *_variants(results),
        "### How many times more triplets OASIS needs",
        _table_of_factors(results),
        "For what AROMA has after so many triplets, with the settings of the middle panel. `>`: not reached.",
        "### The paper's claims",
        _table_of_claims(claims_of(results), spec.task),
    ]


def _time_taken(raw: dict[str, Any]) -> str:
    """Say how long it took: in one run where it was one, else the sum over the cells."""
    n_cells, run = len(raw["cells"]), raw["run"]
    if run["cells"] == n_cells:
        return f"{n_cells} cells in one run of {run['seconds'] / 60:.1f} minutes, {run['processes']} at a time."
    seconds = sum(result["seconds"] for result in raw["cells"])
    return f"{n_cells} cells, in more than one run, that took {seconds / 3600:.1f} hours in all, a core each."


def _main_table(results: Results) -> str:
    rows = []
    for label, n, arguments in _entries(results):
        means = [str(results.mean(measure, **arguments)) for measure in _MEASURES]
        rows.append([label, n, *means, f"{results.seconds(**arguments):.1f}"])
    return _table(["method", "triplets", *_MEASURES, "seconds to learn"], rows)


def _entries(results: Results) -> Iterable[tuple[str, str, dict[str, Any]]]:
    """Give a label, the number of triplets and what to ask for, for every line of the main table."""
    for run in results.spec.runs:
        if "n_triplets" not in run:
            yield from (
                (_label(method, settings), "", {"method": method, **settings}) for method, settings, _ in expand(run, 0)
            )
    of_paper = [line for panel in ("left", "middle") for line in results.spec.panels[panel]["lines"] if "init" in line]
    seen = set()
    for line in of_paper:
        for init in ("zero", "identity"):
            settings = {name: value for name, value in line.items() if name in ("r", "C")}
            name, value = next(iter(settings.items()))
            key = line["method"], init, value
            if key in seen or not results.has(line["method"], init=init, **settings):
                continue
            seen.add(key)
            arguments = {"method": line["method"], "init": init, **settings}
            at = results.checkpoints(**arguments)[-1]
            yield f"{line['method']}, {name} = {value:g}, from {_start(init)}", f"{at:,}", arguments
    for run in results.spec.tuned:
        names = [name for name, value in run.items() if isinstance(value, list) and name not in ("method", "init")]
        n_triplets = run.get("n_triplets", 0)
        for method, settings, _ in expand({key: value for key, value in run.items() if key not in names}, n_triplets):
            start = {"init": settings["init"]} if "init" in settings else {}
            found = [results.choice(split, method, **start) for split in range(results.spec.n_splits)]
            listed = "; ".join(", ".join(f"{choice[name]}" for name in names) for choice in found)
            label = f"{method}, {' and '.join(names)} chosen ({listed})" + "".join(
                f", from {_start(s)}" for s in start.values()
            )
            yield label, f"{n_triplets:,}" if n_triplets else "", {"method": method, **start, names[0]: "chosen"}


def _variants(results: Results) -> list[str]:
    parts = []
    for variant in results.spec.variants:
        rows = []
        for run in variant["runs"]:
            for method, settings, n in expand(run, run.get("n_triplets", 0)):
                arguments = {"method": method, **settings, "at": n or None}
                label = _label(method, settings)
                usual, other = (
                    [str(results.mean(measure, **arguments, variant=name)) for measure in _MEASURES]
                    for name in ("", variant["name"])
                )
                rows.append([label, f"{n:,}" if n else "", *usual, *other])
        header = ["method", "triplets", *_MEASURES, *(f"{measure}, {variant['column']}" for measure in _MEASURES)]
        parts += [f"### With {variant['says']}", _table(header, rows)]
    return parts


def _table_of_factors(results: Results) -> str:
    rows, checkpoints = [], []
    for measure in ("P@10", "mAP"):
        for method in AROMAS:
            for init, oasis_init in (("zero", "identity"), ("zero", "zero"), ("identity", "identity")):
                factors = factors_of_triplets(results, measure, method, init, oasis_init)
                checkpoints = list(factors)
                listed = [f"{'' if reached else '> '}{factor:.1f}" for factor, reached in factors.values()]
                rows.append([measure, f"{method} from {_start(init)}", f"OASIS from {_start(oasis_init)}", *listed])
    return _table(["measure", "AROMA", "OASIS", *(f"{n:,}" for n in checkpoints)], rows)


def _table_of_claims(claims: list[Claim], task: str) -> str:
    where = {"caltech101_50": "on Caltech-101, 50 classes: "}.get(task, "")
    rows = [[claim.number, claim.says, f"**{where}{claim.verdict}**", claim.found, claim.why] for claim in claims]
    return _table(["", "the paper", "verdict", "found", "rule"], rows)


def _table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def _label(method: str, settings: dict[str, Any]) -> str:
    return ", ".join([method, *(f"{name} = {value}" for name, value in settings.items())])


def _start(init: str) -> str:
    return {"zero": "0", "identity": "I"}[init]

"""Write docs/reference.md from the docstrings of the public names.

python docs/reference.py
"""

import inspect
import re
from pathlib import Path

import aromatch as am

PAGE = Path(__file__).with_name("reference.md")
GROUPS = {
    "Search": ("Adapter", "Index", "explain", "suggest_comparisons"),
    "Learners": (
        "TripletEmbedding", "DiagonalAROMA", "FactoredAROMA", "FullAROMA", "MomentAROMA", "OASIS", "Cosine",
        "Euclidean", "ITML", "LEGO", "LMNN", "HIER", "AROW", "merge", "load", "Fingerprint",
    ),
    "Triplets": ("triplets.from_labels", "triplets.from_qrels", "triplets.from_clicks", "triplets.from_sessions"),
    "Evaluation": ("evaluation.evaluate_retrieval", "evaluation.reliability"),
    "Features and data": (
        "features.TextFeatures", "features.ImageFeatures", "datasets.load_stdlib", "datasets.load_20newsgroups",
        "datasets.load_caltech256", "datasets.load_caltech101_50", "datasets.load_caltech256_10",
        "datasets.make_independent_features", "datasets.make_correlated_features",
    ),
    "Theory": (
        "theory.record_run", "theory.theorem_1", "theory.theorem_2", "theory.lemma_3",
        "theory.matrix_normal.log_density",
        "theory.matrix_normal.kl_divergence", "theory.matrix_normal.sample", "theory.matrix_normal.objective",
    ),
    "Exceptions": tuple(f"exceptions.{name}" for name in sorted(vars(am.exceptions)) if name.endswith("Error")),
}  # fmt: skip
SECTION = re.compile(r"^(\w[\w ]*)\n-+\n", re.MULTILINE)


def public(name):
    """Return the object of a dotted name."""
    found = am
    for part in name.split("."):
        found = getattr(found, part)
    return found


def signature(value):
    """Return the parameters without annotations."""
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return ""
    bare = [one.replace(annotation=inspect.Parameter.empty) for one in parameters if one.name != "self"]
    return str(inspect.Signature(bare))


def markdown(docstring):
    """Return the summary and the sections of a numpydoc docstring, without examples and references."""
    summary, *rest = SECTION.split(inspect.cleandoc(docstring or ""))
    lines = [summary.strip()]
    for title, body in zip(rest[::2], rest[1::2], strict=True):
        if title in ("Examples", "References"):
            continue
        lines += ["", f"**{title}**", ""]
        for entry in re.split(r"\n(?=\S)", body.strip()):
            head, _, text = entry.partition("\n")
            lines.append(f"- `{head}`" + (f": {' '.join(text.split())}" if text.strip() else ""))
    return lines


def members(cls):
    """Return a table of the public methods and properties of a class."""
    rows = []
    for name, value in inspect.getmembers(cls):
        ours = (getattr(value, "__module__", "") or "").startswith("aromatch") or isinstance(value, property)
        if name.startswith("_") or not ours or not (callable(value) or isinstance(value, property)):
            continue
        summary = inspect.cleandoc(inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
        rows.append(f"| `{name}{'' if isinstance(value, property) else signature(value)}` | {summary} |")
    return ["", "| member | |", "|---|---|", *rows] if rows else []


def page():
    """Return the page."""
    lines = ["# Reference", "", "Generated from docstrings by `python docs/reference.py`; do not edit.", ""]
    for title, names in GROUPS.items():
        lines += [f"## {title}", ""]
        for name in names:
            value = public(name)
            is_error = inspect.isclass(value) and issubclass(value, Exception)
            lines += [f"### `am.{name}{'' if is_error else signature(value)}`", "", *markdown(value.__doc__)]
            if inspect.isclass(value) and not is_error:
                lines += members(value)
            lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

"""`aromatch info`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .options import Json, MaxMemory, Model
from .rendering import Screen, show, size

if TYPE_CHECKING:
    from ..workflows.info import InfoReport


def info(model: Model, max_memory: MaxMemory = None, json: Json = False) -> None:
    """Describe a model file: the model, its training data and its uncertainty."""
    from ..workflows.info import info as run

    show(run(model), render, json)


def render(screen: Screen, report: InfoReport) -> None:
    """Print the report."""
    metadata = report.metadata
    parameters = ", ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value!r}"
        for name, value in report.parameters.items()
        if value is not None and name != "verbose"
    )
    rows = [
        ("model", f"{report.model}({parameters})"),
        ("size", f"{report.n_query_features:,} x {report.n_object_features:,} features, {size(report.n_bytes)}"),
        ("rows", report.prepared),
    ]
    if "data" in metadata:
        sources = [str(metadata.get("supervision")), *map(str, metadata.get("files", {}).values())]
        rows += [
            ("trained on", f"{metadata['data']}: {metadata.get('n_objects', 0):,} {metadata.get('what', 'objects')}"),
            ("supervision", ", ".join(sources)),
            ("queries", f"{metadata.get('n_queries', 0):,}, {metadata.get('n_held_out', 0):,} held out"),
            ("made by", f"{metadata.get('made_by')}, seed {metadata.get('seed')}"),
        ]
    if metadata.get("n_answers"):
        rows.append(("answers", f"{metadata['n_answers']:,} learned by `aromatch ask`"))
    if report.n_triplets is not None:
        is_online = "init" in report.parameters  # closed forms use every triplet
        updates = f", {(report.n_updates or 0) / max(1, report.n_triplets):.0%} updates" if is_online else ""
        rows.append(("triplets", f"{report.n_triplets:,}{updates}"))
    if report.share_correct is not None:
        which = "held-out comparisons predicted correctly"
        if report.n_predicted != metadata.get("n_predicted", report.n_predicted):
            which = "comparisons predicted correctly before they were learned"
        rows.append(("accuracy", f"{report.share_correct:.1%} of {report.n_predicted:,} {which}"))
    rows.append(("uncertainty", _uncertainty(report)))
    screen.print(screen.text(report.path, "bold"))
    screen.grid(rows)


def _uncertainty(report: InfoReport) -> str:
    if report.mean_variance is not None:
        return f"mean variance of W {report.mean_variance:.3f}, 1 before training"
    return f"scores have {'' if report.has_std else 'no '}standard deviations"

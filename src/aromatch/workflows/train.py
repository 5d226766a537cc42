"""Train a model on a collection with supervision, and write it to a file.

Held-out queries influence neither terms nor scaling nor the model. The same options and files give a bit-identical
file, however often the training was interrupted.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import row_norms
from threadpoolctl import threadpool_limits

from .._utils.checks import check_fits_in_memory
from .._utils.printable import as_unicode
from .._utils.rows import Matrix
from ..exceptions import NoImprovementError
from ..triplets import from_labels
from .baseline import baseline_rows
from .bundle import TrainedModel
from .fitting import AUTO, Checkpoint, LearnerOptions, TrainingSet, fit, is_online
from .preparation import Prepared, prepare
from .selection import BASELINE, select
from .supervision import Rows, Supervised, content_hashes, read_supervised

# Copies of the values of a collection: scaled and split; with validation, also split again.
_COPIES, _COPIES_OF_AUTO = 3, 6
_BYTES_OF_VALUE = {False: 8, True: 16}
# Maximum number of held-out comparisons for calibration.
_MAX_PREDICTIONS = 5_000


@dataclass(frozen=True, slots=True)
class TrainOptions:
    """The options of `aromatch train`."""

    data: str
    output: str
    queries: str | None = None
    labels: str | None = None
    triplets: str | None = None
    qrels: str | None = None
    clicks: str | None = None
    missing: str = "error"
    learner: LearnerOptions = field(default_factory=LearnerOptions)
    terms: int | None = None
    """Number of terms of texts; None is 1,000 with labels and 4,000 without."""
    scale: str = "auto"
    hold_out: float = 0.0
    seed: int = 0
    force: bool = False
    """Write the model even if validation finds it no better than the baseline."""
    restart: bool = False
    checkpoint_seconds: float = 30.0

    @property
    def files(self) -> dict[str, str | None]:
        """The supervision files by kind."""
        return {"labels": self.labels, "triplets": self.triplets, "qrels": self.qrels, "clicks": self.clicks}


@dataclass(frozen=True, slots=True)
class TrainReport:
    """The result of `train`."""

    output: str
    """The model file."""
    n_bytes: int
    learner: str
    """The learner that was fitted, by its command-line name."""
    validation_scores: dict[str, float]
    """mAP on validation queries of the baseline and of all candidates of ``--learner auto``."""
    model: str
    """The representation of the model in Python."""
    data: str
    n_objects: int
    what: str
    """The kind of objects: "texts" or "vectors"."""
    n_queries: int
    """Number of training queries."""
    n_held_out: int
    supervision: str
    """Summary of the supervision."""
    prepared: str
    """Summary of how rows are made."""
    n_triplets: int
    n_updates: int | None
    """Triplets that changed an online learner; None for the others."""
    resumed_from: int
    """Triplets learned by an interrupted run; 0 if there was none."""
    seed: int
    seconds: float
    notes: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON types."""
        return asdict(self)


def train(options: TrainOptions) -> TrainReport:
    """Train a model and write it to a file.

    Raises
    ------
    NoImprovementError
        If ``--learner auto`` finds no learner that beats the baseline on validation queries. Nothing is written then,
        unless ``options.force`` is set.
    """
    started = perf_counter()
    _check_output(options.output)
    files = options.files
    options.learner.check()
    data = read_supervised(options.data, options.queries, files=files, missing=options.missing, seed=options.seed)
    _check_copies(data, options.learner.learner == AUTO)
    rows, held_out = data.split(options.hold_out, options.seed)
    hashes, notes = np.unique(content_hashes(data.asking, rows)), data.notes
    prepared = prepare(data, rows, options.terms, options.scale)
    how_prepared = str(prepared.objects)
    training = _training_set(data, prepared, rows, options)
    notes += _empty_rows(training, data)
    metadata = _metadata(options, data, len(rows), len(held_out))

    def bundle(model: Any) -> TrainedModel:
        return TrainedModel(model, prepared.objects, prepared.queries, metadata, hashes)

    checkpoint = Checkpoint(options.output, metadata, training, bundle, options.checkpoint_seconds)
    resumed = None if options.restart else checkpoint.load()
    chosen, scores = options.learner, {}
    with threadpool_limits(1):  # the same bits on any number of cores
        if chosen.learner == AUTO:
            selection = select(training, chosen, options.seed, _baseline(data, rows))
            chosen, scores = selection.options, selection.scores
            notes += selection.notes
            if not selection.improves:
                result = (
                    f"on validation queries {chosen} has a mAP of {scores[str(chosen)]:.3f}, "
                    f"the baseline {scores[BASELINE]:.3f}"
                )
                if not options.force:
                    raise NoImprovementError(f"{options.output} was not written: {result}; --force writes it")
                notes.append(f"no improvement: {result}")
        model = fit(training, chosen, options.seed, checkpoint, resumed)
        metadata["used"] = {"learner": chosen.learner, **chosen.to_dict()}
        metadata["n_predicted"] = _calibrate(model, data, prepared, held_out, options.seed)
        bundle(model).save(options.output)
    checkpoint.remove()
    return TrainReport(
        output=options.output,
        n_bytes=os.path.getsize(options.output),
        learner=str(chosen),
        validation_scores=scores,
        model=" ".join(repr(model).split()),
        data=options.data,
        n_objects=len(data.objects),
        what=data.objects.what,
        n_queries=len(rows),
        n_held_out=len(held_out),
        supervision=data.summary,
        prepared=how_prepared,
        n_triplets=int(getattr(model, "n_triplets_seen_", len(training.triplets))),
        n_updates=model.n_updates_ if is_online(model) else None,
        resumed_from=checkpoint.resumed_from,
        seed=options.seed,
        seconds=perf_counter() - started,
        notes=notes,
    )


def _check_output(path: str) -> None:
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"cannot write {path}: the folder {folder} does not exist")
    if os.path.isdir(path):
        raise IsADirectoryError(f"cannot write {path}: it is a folder, expected a file name")


def _check_copies(data: Supervised, is_auto: bool) -> None:
    """Raise an InsufficientMemoryError if the copies of the vectors that training makes do not fit in memory."""
    for items in (data.objects, data.queries):
        if items is None or items.vectors is None:
            continue
        is_sparse = sparse.issparse(items.vectors)
        n_values = items.vectors.nnz if is_sparse else items.vectors.size
        n_copies = _COPIES_OF_AUTO if is_auto else _COPIES
        what = f"training on {items.source} ({n_copies} copies of {n_values:,} values)"
        check_fits_in_memory(n_copies * n_values * _BYTES_OF_VALUE[is_sparse], what)


def _training_set(data: Supervised, prepared: Prepared, rows: Rows, options: TrainOptions) -> TrainingSet:
    """Return rows and triplets without held-out queries."""
    P, Q = prepared.P, prepared.Q
    if data.labels is None:
        assert data.triplets is not None
        is_in = np.isin(data.triplets[:, 0], rows)
        weights = None if data.weights is None else data.weights[is_in]
        return TrainingSet(Q, None if Q is P else P, data.triplets[is_in], weights)
    n_triplets = options.learner.n_triplets
    if data.object_labels is None:
        X, y = P[rows], data.labels[rows]
        return TrainingSet(X, None, from_labels(y, n_triplets, options.seed), None, y)
    labelled = data.labelled_objects
    triplets = from_labels(data.labels[rows], n_triplets, options.seed, data.object_labels[labelled])
    return TrainingSet(Q[rows], P[labelled], triplets, None)


def _baseline(data: Supervised, rows: Rows) -> tuple[Matrix, Matrix] | None:
    """Return the rows of the training set whose cosine is the baseline, the one of `aromatch eval`."""
    if data.labels is None:
        return baseline_rows(data.objects, data.queries)
    if data.queries is None:
        return baseline_rows(data.objects.select(rows), None)
    return baseline_rows(data.objects.select(data.labelled_objects), data.queries.select(rows))


def _metadata(options: TrainOptions, data: Supervised, n_queries: int, n_held_out: int) -> dict[str, Any]:
    return {
        "made_by": f"aromatch {version('aromatch')}",
        "learner": options.learner.learner,
        "settings": options.learner.to_dict(),
        "seed": options.seed,
        "data": as_unicode(options.data),
        "queries": None if options.queries is None else as_unicode(options.queries),
        "files": {kind: as_unicode(path) for kind, path in options.files.items() if path is not None},
        "missing": options.missing,
        "what": data.objects.what,
        "n_objects": len(data.objects),
        "n_queries": n_queries,
        "n_held_out": n_held_out,
        "hold_out": options.hold_out,
        "supervision": data.summary,
    }


def _calibrate(model: Any, data: Supervised, prepared: Prepared, held_out: Rows, seed: int) -> int:
    """Calibrate the model on comparisons of held-out queries; return their number."""
    if not len(held_out) or not hasattr(model, "calibrate"):
        return 0
    P, Q = prepared.P, prepared.Q
    if data.labels is None:
        assert data.triplets is not None
        triplets = data.triplets[np.isin(data.triplets[:, 0], held_out)][:_MAX_PREDICTIONS]
    else:
        try:
            if data.object_labels is None:
                triplets = held_out[from_labels(data.labels[held_out], _MAX_PREDICTIONS, seed)]
            else:
                labelled = data.labelled_objects
                found = from_labels(data.labels[held_out], _MAX_PREDICTIONS, seed, data.object_labels[labelled])
                triplets = np.column_stack([held_out[found[:, 0]], labelled[found[:, 1]], labelled[found[:, 2]]])
        except ValueError:  # the held-out queries have one label only, or each label once
            return 0
    model.calibrate(triplets, Q, None if Q is P else P)
    return len(triplets)


def _empty_rows(training: TrainingSet, data: Supervised) -> list[str]:
    P = training.Q if training.P is None else training.P
    n_empty = int(np.count_nonzero(row_norms(P) == 0))
    return [f"{n_empty:,} {data.objects.what} have no known term or only zeros"] if n_empty else []

"""Fit the learner that `aromatch train` names, in chunks with checkpoints where it learns online."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._utils.checks import check_choice, check_integer, check_number
from .._utils.chunks import timed_chunks
from .._utils.printable import print_lines
from .._utils.progress import progress_bar
from .._utils.rows import Matrix
from ..learners.registry import COMMANDS
from .bundle import TrainedModel, read_bundle
from .supervision import Rows

AUTO = "auto"
# Above this width online learners use float32, which halves models of hundreds of megabytes.
_MAX_FLOAT64_WIDTH = 2000


@dataclass(frozen=True, slots=True)
class LearnerOptions:
    """The learner and its parameters; None stands for the default of the command line."""

    learner: str = AUTO
    r: float | None = None
    C: float | None = None
    alpha: float | None = None
    init: str | None = None
    n_triplets: int = 50_000
    """Number of triplets to sample from labels."""

    def __str__(self) -> str:
        return self.learner if self.init is None else f"{self.learner} --init {self.init}"

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the learner that are set."""
        return {name: value for name, value in self.to_dict().items() if name != "n_triplets"}

    def to_dict(self) -> dict[str, Any]:
        """Return the options that are set, without the learner."""
        return {name: value for name, value in asdict(self).items() if value is not None and name != "learner"}

    def check(self) -> None:
        """Check the learner, and that each option is a parameter of it."""
        check_choice(self.learner, "--learner", (AUTO, *COMMANDS))
        check_integer(self.n_triplets, "--n-triplets", at_least=1)
        for name, value in self.parameters.items():
            users = [command for command, row in COMMANDS.items() if row.has_parameter(name)]
            if self.learner not in users:
                raise ValueError(f"--{name.lower()} is for --learner {', '.join(users)}, got {self.learner}")
            if name != "init":
                check_number(value, f"--{name.lower()}", above=0)


class TrainingSet(NamedTuple):
    """Rows, and triplets of their indices."""

    Q: Matrix
    P: Matrix | None
    """None if the queries are the objects."""
    triplets: Rows
    weights: NDArray[np.float64] | None
    labels: NDArray[Any] | None = None
    """Labels of all rows, if the triplets were sampled from them."""

    @property
    def is_square(self) -> bool:
        """Whether queries and objects have the same number of features."""
        return self.P is None or self.P.shape[1] == self.Q.shape[1]


def fit(
    training: TrainingSet, options: LearnerOptions, seed: int, checkpoint: Checkpoint | None = None, model: Any = None
) -> Any:
    """Fit a learner on a training set, continuing from `model`, the one of a checkpoint, if it is given."""
    Q, P, triplets, weights, labels = training
    if model is None:
        model = _new(training, options, seed, verbose=checkpoint is not None)
    if is_online(model):
        title = f"learning ({options.learner})" if checkpoint else f"validating {options}"
        _fit_in_chunks(model, training, title, checkpoint)
    elif is_closed_form(model) and labels is not None:
        model = model.fit(Q, labels)  # all triplets of the labels, without sampling
    else:
        model = model.fit_triplets(triplets, Q, P, sample_weight=weights)
    return model.finalized() if hasattr(model, "finalized") else model


def is_online(learner: Any) -> bool:
    """Return whether a learner, or its class, updates an initial W triplet by triplet."""
    return hasattr(learner, "partial_fit_triplets") and "init" in learner._get_param_names()


def is_closed_form(learner: Any) -> bool:
    """Return whether a learner, or its class, accumulates sums of triplets and solves for W."""
    return hasattr(learner, "partial_fit_triplets") and not is_online(learner)


def _new(training: TrainingSet, options: LearnerOptions, seed: int, *, verbose: bool) -> Any:
    row = COMMANDS[options.learner]
    given = {**row.settings, **options.parameters}
    if is_online(row.cls):
        width = max(training.Q.shape[1], 0 if training.P is None else training.P.shape[1])
        given["init"] = _read_init(options.init, training.is_square)
        given["dtype"] = "float32" if width > _MAX_FLOAT64_WIDTH else "float64"
    else:
        # Triplets that are sampled or judged are noisy, all triplets of labels are not.
        given |= {"denoise": training.labels is None, "random_state": seed, "verbose": verbose}
    return row.cls(**{name: value for name, value in given.items() if row.has_parameter(name)})


def _read_init(text: str | None, is_square: bool) -> Any:
    """Start from the cosine where there is one, so that scores without supervision stay as they were."""
    if text is None:
        return "identity" if is_square else "zero"
    if text in ("zero", "identity"):
        return text
    try:
        return check_number(float(text), "--init")
    except ValueError:
        raise ValueError(f"--init must be zero, identity or a number, got {text!r}") from None


def _fit_in_chunks(model: Any, training: TrainingSet, title: str, checkpoint: Checkpoint | None) -> None:
    Q, P, triplets, weights, _ = training
    if not hasattr(model, "n_features_in_"):
        model.fit_triplets(triplets[:0], Q, P)
    try:
        with progress_bar(title, len(triplets)) as advance:
            seen = model.n_triplets_seen_
            advance(seen)
            # Every call copies the state: long chunks make that negligible.
            for chunk in timed_chunks(len(triplets) - seen, seconds=0.5, max_size=2**18):
                part = slice(seen + chunk.start, seen + chunk.stop)
                weights_of_part = None if weights is None else weights[part]
                model.partial_fit_triplets(triplets[part], Q, P, sample_weight=weights_of_part)
                updates = f"{model.n_updates_ / model.n_triplets_seen_:.0%} updates"
                advance(part.stop - part.start, updates)
                if checkpoint is not None:
                    checkpoint.save_if_due(model)
    except KeyboardInterrupt:
        if checkpoint is not None:  # after the progress bar is gone, which would overwrite the message
            checkpoint.save(model)
            print_lines(
                f"{model.n_triplets_seen_:,} triplets are learned and saved in {checkpoint.path}: "
                "run the same command to continue",
                to_stderr=True,
            )
        raise


class Checkpoint:
    """A file beside the model from which the same command continues.

    Parameters
    ----------
    output : path
        The model file.
    metadata, training
        Determine the result; a checkpoint of another training is refused.
    bundle : callable
        Adds preparation and metadata to a model.
    seconds : float
        Time between two checkpoints.
    """

    def __init__(
        self,
        output: str,
        metadata: dict[str, Any],
        training: TrainingSet,
        bundle: Callable[[Any], TrainedModel],
        seconds: float,
    ) -> None:
        self.path = f"{output}.checkpoint"
        self.resumed_from = 0
        self._digest, self._bundle = _digest(metadata, training), bundle
        self._seconds = check_number(seconds, "--checkpoint-seconds", at_least=0)
        self._saved = monotonic()

    def load(self) -> Any:
        """Return the model of an earlier run of the same training; None if there is none."""
        if not os.path.exists(self.path):
            return None
        found = read_bundle(self.path)
        if found.metadata.get("digest") != self._digest:
            raise ValueError(f"{self.path} is of a training with other options or data; --restart replaces it")
        self.resumed_from = int(found.model.n_triplets_seen_)
        return found.model

    def save_if_due(self, model: Any) -> None:
        """Write the file if the last checkpoint is old enough."""
        if monotonic() - self._saved >= self._seconds:
            self.save(model)

    def save(self, model: Any) -> None:
        """Write the file."""
        bundle = self._bundle(model)
        bundle.metadata = {**bundle.metadata, "digest": self._digest}
        bundle.save(self.path)
        self._saved = monotonic()

    def remove(self) -> None:
        """Remove the file."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)


def _digest(metadata: dict[str, Any], training: TrainingSet) -> str:
    digest = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for matrix in (training.Q, training.P, training.triplets, training.weights):
        if matrix is not None:
            is_sparse = sparse.issparse(matrix)
            for array in (matrix.data, matrix.indices, matrix.indptr) if is_sparse else (matrix,):  # type: ignore[union-attr]
                digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()

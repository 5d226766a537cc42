"""The file formats of the package: how each is mutated, and what reads it.

A target runs a mutated file through a reader or a command and returns whether the file was accepted or refused. A
reader refuses with ValueError, TypeError or OSError; a command with exit code 2 or 3 and one line on standard error.
Every other outcome raises, and is a finding.
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import shutil
import unicodedata
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

import aromatch as am
from aromatch._utils.checks import set_max_memory
from aromatch.cli import BAD_INPUT, NO_IMPROVEMENT
from aromatch.exceptions import AromatchError
from aromatch.io.items import read_items
from aromatch.io.logs import read_lists
from aromatch.paper import spec as specs
from aromatch.paper.reproduce import read_results
from aromatch.triplets.qrels import read_qrels
from tests.fuzz.collection import Seeds, run_main
from tests.fuzz.containers import mutate_model, mutate_npy, mutate_npz
from tests.fuzz.folders import mutate_folder, unpack_folder
from tests.fuzz.mutations import mutate_bytes, mutate_json_lines, mutate_text
from tests.fuzz.sandbox import ACCEPTED, REFUSED, GuaranteeError, enter_empty

_REFUSALS = (ValueError, TypeError, OSError, AromatchError)
# `aromatch reproduce --cell` returns 1 if the cell differs from the one in the file.
_CODES = (0, BAD_INPUT, NO_IMPROVEMENT)

# The limit of the package; what a case takes is measured, and may be twice as much.
MAX_MEMORY = 2**29

Mutate = Callable[[random.Random, bytes, Sequence[bytes]], bytes]
Target = Callable[[Path, Path, Path], str]
"""Takes the mutated file, the folder of the valid collection, and an empty folder."""


class Format(NamedTuple):
    """A file format."""

    suffix: str
    mutate: Mutate
    targets: Mapping[str, Target]
    share_of_bytes: float = 0.2
    """Share of the cases that are mutated as bytes."""


class FileCase(NamedTuple):
    """One mutated file and what reads it; all targets of the format if that is empty."""

    format: str
    data: bytes
    target: str = ""


def make_case(rng: random.Random, name: str, seeds: Seeds) -> FileCase:
    """Return a mutated file of a format."""
    form, own = FORMATS[name], seeds[name]
    seed = rng.choice(own)
    mutate = mutate_bytes if rng.random() < form.share_of_bytes else form.mutate
    targets = list(form.targets)
    # A reader takes a tenth of the time of a command.
    fast = [target for target in ("read", "load") if target in targets]
    return FileCase(name, mutate(rng, seed, own), rng.choice(fast if fast and rng.random() < 0.4 else targets))


def run_case(case: FileCase, base: Path, work: Path) -> str:
    """Run a case; return whether any target accepted it."""
    form = FORMATS[case.format]
    targets = [case.target] if case.target else list(form.targets)
    found = []
    for target in targets:
        enter_empty(work)
        file = work / f"file{form.suffix}"
        if case.format == "folder":
            unpack_folder(case.data, file)
        else:
            file.write_bytes(case.data)
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            found.append(form.targets[target](file, base, work))
    return ACCEPTED if ACCEPTED in found else REFUSED


def warm(seeds: Seeds, base: Path, work: Path) -> None:
    """Run a seed of every format in this process: workers inherit what it imports, and every seed must be valid."""
    usual = Path.cwd()
    for name, form in FORMATS.items():
        found = set()
        for target in form.targets:
            with contextlib.suppress(Exception):  # a finding, which the cases will show
                found.add(run_case(FileCase(name, seeds[name][0], target), base, work))
        if ACCEPTED not in found:
            raise RuntimeError(f"the seed of the format {name} is refused")
    os.chdir(usual)


# -- targets ----------------------------------------------------------------------------------------------------------


def _reader(read: Callable[[Path], Any]) -> Target:
    def target(file: Path, base: Path, work: Path) -> str:
        set_max_memory(MAX_MEMORY)
        try:
            read(file)
        except _REFUSALS:
            return REFUSED
        return ACCEPTED

    return target


def _command(line: str, answers: str = "", codes: Sequence[int] = _CODES) -> Target:
    """Return a target that runs a command line; {file}, {base} and {work} stand for the paths."""

    def target(file: Path, base: Path, work: Path) -> str:
        arguments = [part.format(file=file, base=base, work=work) for part in line.split()]
        if arguments[0] != "reproduce":
            arguments += ["--max-memory", f"{MAX_MEMORY // 2**20}M"]
        code, out, err = run_main(*arguments, answers=answers)
        name = arguments[0]
        if code not in codes:
            raise GuaranteeError(f"{name} returns exit code {code}: {err[:500]!r}")
        # A command that asks may fail at an answer: its questions are above the error.
        error = err[max(0, err.rfind("aromatch: ")) :] if answers else err
        if code in (BAD_INPUT, NO_IMPROVEMENT) and error.count("\n") != 1:
            raise GuaranteeError(f"{name} prints {error.count(chr(10))} lines for an error: {error[:500]!r}")
        if code == 0 and err and not answers:
            raise GuaranteeError(f"{name} prints to standard error: {err[:500]!r}")
        control = next(
            (sign for sign in out + err if sign != "\n" and unicodedata.category(sign) in ("Cc", "Cs")), None
        )
        if control is not None:
            at = (out + err).index(control)
            raise GuaranteeError(
                f"{name} prints the control character {control!r}: {(out + err)[max(0, at - 200) :][:300]!r}"
            )
        if "Unable to allocate" in err or err == "aromatch: MemoryError\n":
            raise MemoryError(f"{name}: {err[:500]}")
        return ACCEPTED if code == 0 else REFUSED

    return target


def _check_model(path: Path) -> None:
    """Check what a file that loads guarantees: finite scores, and a save that loads."""
    found = am.load(path)
    model = getattr(found, "model", found)
    rows = [
        _rows(width) for width in (model.n_features_in_, getattr(model, "n_object_features_in_", model.n_features_in_))
    ]
    scores = model.search(rows[0], k=3).scores if hasattr(model, "judge") else model.similarity(*rows)
    if not np.isfinite(scores).all():
        raise GuaranteeError(f"a loaded {type(model).__name__} returns scores that are not finite: {scores!r:.300}")
    again = path.with_name("again.safetensors")
    found.save(again)
    if not isinstance(am.load(again), type(found)):
        raise GuaranteeError(f"a saved {type(found).__name__} loads as another class")


def _rows(width: int) -> Any:
    """Return two rows so small that finite weights give finite scores."""
    if width > 10_000:
        raise GuaranteeError(f"a small file loads as a model of {width} features")
    return np.array([np.linspace(0.01, 0.1, width), np.linspace(-0.1, 0.05, width)])


def _model_reader(file: Path, base: Path, work: Path) -> str:
    set_max_memory(MAX_MEMORY)
    try:
        am.load(file)
    except _REFUSALS:
        return REFUSED
    _check_model(file)  # from here on nothing may be refused
    return ACCEPTED


def _read_toml(file: Path) -> None:
    """Read a specification in the place of those of the package, which has no other way in."""
    folder = file.parent / "specs"
    folder.mkdir(exist_ok=True)
    for figure in specs.FIGURES:
        shutil.copy(file, folder / f"{figure}.toml")
    usual = specs.resources
    specs.resources = SimpleNamespace(files=lambda package: file.parent)  # type: ignore[assignment]
    try:
        for quick in (False, True):
            specs.read_spec("fig3", quick=quick).cells()
    finally:
        specs.resources = usual


def _placed(name: str, target: Target) -> Target:
    """Return a target that reads the file under another name in the working folder."""

    @functools.wraps(target)
    def placed(file: Path, base: Path, work: Path) -> str:
        to = work / name
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, to)
        return target(file, base, work)

    return placed


_TRAIN = "--learner diagonal --n-triplets 30 -o {work}/out"
_MODEL = "{base}/vectors.safetensors"
_VECTORS = {
    "read": _reader(read_items),
    "train": _command(f"train {{file}} --triplets {{base}}/triplets.npy {_TRAIN}"),
    "train own labels": _command(f"train {{file}} {_TRAIN} --hold-out 0.3"),
    "train labels": _command(f"train {{file}} --labels {{base}}/labels.csv --missing skip {_TRAIN}"),
    "train scaled": _command(
        "train {file} --triplets {base}/triplets.npy --learner factored --scale standard -o {work}/out"
    ),
    "train moment": _command("train {file} --triplets {base}/triplets.npy --learner moment --alpha 1 -o {work}/out"),
    "train with queries": _command(
        f"train {{base}}/vectors.csv --queries {{file}} --qrels {{base}}/qrels.tsv {_TRAIN} --missing skip"
    ),
    "eval": _command(f"eval {_MODEL} --data {{file}} --triplets {{base}}/triplets.npy --include-training"),
    "eval own labels": _command(f"eval {_MODEL} --data {{file}} --json"),
    "search": _command(f"search {_MODEL} --data {{file}} --like 0 --compare"),
    "search queries": _command(f"search {_MODEL} --data {{base}}/vectors.csv --queries {{file}} --json"),
    "explain": _command(f"explain {_MODEL} 1 --like 0 --data {{file}}"),
    "ask": _command(
        f"ask {_MODEL} --data {{file}} -n 2 --log {{work}}/log.jsonl -o {{work}}/out", answers="1\n2\n0\nq\n"
    ),
}
_TEXTS = {
    "train texts": _command(f"train {{file}} --triplets {{base}}/triplets.npy {_TRAIN} --terms 20"),
    "search texts": _command("search {base}/texts.safetensors apple --data {file} --compare"),
    "explain texts": _command("explain {base}/texts.safetensors 0 apple --data {file}"),
}
_SUPERVISION = {
    "eval": f"eval {_MODEL} --data {{base}}/vectors.csv --{{kind}} {{file}} --include-training --missing skip --json",
    "train": f"train {{base}}/vectors.csv --{{kind}} {{file}} {_TRAIN}",
    "train skip": "train {base}/vectors.csv --{kind} {file} --learner moment --alpha 1 -o {work}/out --missing skip",
}


def _supervision(kind: str, **more: Target) -> dict[str, Target]:
    return {name: _command(line.replace("{kind}", kind)) for name, line in _SUPERVISION.items()} | more


def _lists(kind: str) -> Target:
    return _reader(lambda file: list(read_lists(file, kind)))


_QRELS = _reader(lambda file: list(read_qrels(file)))


def _trial(kind: str) -> Target:
    return _command(f"trial {{base}}/vectors.csv --{kind} {{file}} -o {{work}}/trial --missing skip")


def _cells(separators: str) -> Mutate:
    return functools.partial(mutate_text, separators=separators)


def _either(first: Mutate, second: Mutate) -> Mutate:
    def mutate(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
        return rng.choice((first, first, second))(rng, data, others)

    return mutate


_JSON = _either(mutate_json_lines, _cells(',:"'))
_MODELS = {
    "load": _model_reader,
    "info": _command("info {file}"),
    "info json": _command("info {file} --json"),
    "search": _command("search {file} --data {base}/vectors.csv --like 0"),
    "search texts": _command("search {file} apple --data {base}/texts.jsonl"),
    "eval": _command("eval {file} --data {base}/vectors.csv --labels {base}/labels.csv --include-training"),
    "explain": _command("explain {file} 1 --like 0 --data {base}/vectors.csv --json"),
    "export": _command("export {file} -o {work}/out"),
    "export 2": _command("export {file} -o {work}/out --n-components 2"),
    "ask": _command("ask {file} --data {base}/vectors.csv -n 2 --log {work}/log.jsonl", answers="1\n2\nq\n"),
    "search recorded": _command("search {file} --like 0 --trust-recorded-paths"),
}

FORMATS: dict[str, Format] = {
    "npy": Format(".npy", mutate_npy, _VECTORS),
    "npz": Format(".npz", mutate_npz, _VECTORS),
    "sparse-npz": Format(".npz", mutate_npz, _VECTORS, 0.1),
    "csv": Format(".csv", _cells(",\""), _VECTORS | _TEXTS),
    "tsv": Format(".tsv", _cells("\t\""), _VECTORS | _TEXTS),
    "jsonl": Format(".jsonl", _JSON, _VECTORS | _TEXTS),
    "svmlight": Format(".svmlight", _cells(" :"), _VECTORS),
    "folder": Format("", mutate_folder, _TEXTS | {"read": _reader(read_items)}, 0),
    "labels": Format(".csv", _cells(","), _supervision("labels")),
    "labels-npy": Format(".npy", mutate_npy, _supervision("labels")),
    "triplets": Format(".jsonl", _JSON, _supervision("triplets")),
    "triplets-csv": Format(".csv", _cells(","), _supervision("triplets")),
    "triplets-npy": Format(".npy", mutate_npy, _supervision("triplets")),
    "qrels-trec": Format(".qrels", _cells(" "), _supervision("qrels", read=_QRELS)),
    "qrels-beir": Format(".tsv", _cells("\t"), _supervision("qrels", read=_QRELS)),
    "clicks": Format(".jsonl", _JSON, _supervision("clicks", read=_lists("clicks"), trial=_trial("clicks"))),
    "clicks-csv": Format(".csv", _cells(", "), _supervision("clicks", read=_lists("clicks"), trial=_trial("clicks"))),
    "judgements": Format(".jsonl", _JSON, {"read": _lists("judgements"), "trial": _trial("judgements")}),
    "ask-log": Format(
        ".jsonl",
        _JSON,
        {
            "replay": _command(f"ask {_MODEL} --replay {{file}} --data {{base}}/vectors.csv -o {{work}}/out"),
            "continue": _command(
                f"ask {_MODEL} --log {{file}} --data {{base}}/vectors.csv -n 2 -o {{work}}/out", answers="1\n2\nq\n"
            ),
            "train": _command(f"train {{base}}/vectors.csv --triplets {{file}} {_TRAIN}"),
        },
    ),
    "model": Format(".safetensors", mutate_model, _MODELS, 0.05),
    "adapter": Format(
        ".safetensors",
        mutate_model,
        {"load": _model_reader, "info": _MODELS["info"], "export": _MODELS["export"], "search": _MODELS["search"]},
        0.05,
    ),
    "checkpoint": Format(
        ".checkpoint",
        mutate_model,
        {
            "train": _placed(
                "kept.safetensors.checkpoint",
                _command("train {base}/vectors.csv --learner diagonal --n-triplets 60 -o {work}/kept.safetensors"),
            )
        },
        0.05,
    ),
    "toml": Format(".toml", _cells("=,\"[]"), {"read": _reader(_read_toml)}),
    "results": Format(
        ".json",
        mutate_json_lines,
        {
            "read": _placed("results/fig4.json", _reader(lambda file: read_results(file.parent, "fig4"))),
            "reproduce": _placed(
                "results/fig4.json",
                _command("reproduce fig4 --cell x --output {work}", codes=(0, 1, BAD_INPUT)),
            ),
        },
    ),
}  # fmt: skip


def without_data() -> None:
    """Hide the data sets of this machine, so that no case computes an experiment of the paper."""
    os.environ["AROMATCH_DATA"] = os.devnull

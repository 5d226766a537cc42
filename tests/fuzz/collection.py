"""A small valid collection: files that the cases replace one at a time, and the seeds that are mutated."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import typer.main
from scipy import sparse

import aromatch as am
from aromatch.cli import main
from aromatch.paper.spec import FIGURES, read_spec
from aromatch.workflows import fitting
from tests.collections_on_disk import texts_and_labels
from tests.fuzz.containers import npy, npz, sparse_arrays
from tests.fuzz.folders import pack_folder
from tests.learner_classes import SIMILARITIES, WITH_TOUCHED_CELLS
from tests.taught_adapters import clusters, taught

N, WIDTH = 12, 4
Seeds = dict[str, list[bytes]]

# Typer builds its commands anew for every call, which takes longer than most cases.
typer.main.get_command = functools.cache(typer.main.get_command)


def build(folder: Path) -> Seeds:
    """Write the collection into a folder; return the seeds of every format."""
    rng = np.random.default_rng(0)
    y = np.arange(N) % 3
    X = np.round(rng.normal(size=(3, WIDTH))[y] + 0.3 * rng.normal(size=(N, WIDTH)), 3)
    texts, text_labels = texts_and_labels(n_each=4)
    labels = [f"class {one}" for one in y]
    triplets = _triplets(y)
    seeds: Seeds = {
        "npy": [npy(X), npy(X.astype("f4")), npy(np.asfortranarray(X)), npy((10 * X).astype("i2"))],
        "npz": [npz({"X": X, "ids": np.arange(N).astype(str), "labels": y}), npz({"vectors": X})],
        "sparse-npz": [npz(sparse_arrays(make(np.where(X > 0, X, 0)))) for make in _SPARSE],
        "csv": [_csv(X, labels, ","), _csv(X, None, ","), _table(texts, text_labels, ",")],
        "tsv": [_csv(X, labels, "\t"), _table(texts, text_labels, "\t")],
        "jsonl": [
            _jsonl({"id": str(at), "label": labels[at], "vector": X[at].tolist()} for at in range(N)),
            _jsonl({"_id": str(at), "title": "t", "text": texts[at], "label": text_labels[at]} for at in range(N)),
        ],
        "svmlight": [_svmlight(X, y), b"# comment\n1 qid:1 1:0.5 3:2 # x\n2 qid:1 2:1\n1 qid:2 4:-1e3\n"],
        "labels": [
            "".join(f"{at},{label}\n" for at, label in enumerate(labels)).encode(),
            ("id,label\n" + "".join(f"{at},{label}\n" for at, label in enumerate(labels))).encode(),
        ],
        "labels-npy": [npy(y), npy(np.array(labels))],
        "triplets": [
            _jsonl({"query": str(q), "better": str(p), "worse": str(n), "weight": 0.5} for q, p, n in triplets)
        ],
        "triplets-csv": [("query,better,worse\n" + "".join(f"{q},{p},{n}\n" for q, p, n in triplets)).encode()],
        "triplets-npy": [npy(triplets), npy(triplets.astype("i4")), npy(triplets.astype("u1"))],
        "qrels-trec": ["".join(f"{q} 0 {p} {1 + q % 2}\n{q} 0 {n} 0\n" for q, p, n in triplets).encode()],
        "qrels-beir": [
            ("query-id\tcorpus-id\tscore\n" + "".join(f"{q}\t{p}\t{1 + q % 2}\n" for q, p, _ in triplets)).encode()
        ],
        "clicks": [_jsonl(_clicks(triplets, with_time)) for with_time in (False, True)],
        "clicks-csv": [
            ("query,shown,clicked\n" + "".join(f"{q},{n} {p},{p}\n" for q, p, n in triplets)).encode(),
            ("query,shown,clicked,time\n" + "".join(f"{q},{n} {p},{p},{q}\n" for q, p, n in triplets)).encode(),
        ],
        "judgements": [
            _jsonl({"query": str(q), "good": [str(p)], "bad": [str(n)], "time": int(q)} for q, p, n in triplets)
        ],
        "folder": [
            pack_folder({f"{label}/{at}.txt": text.encode() for at, (text, label) in _numbered(texts, text_labels)}),
            pack_folder({f"{at}.txt": text.encode() for at, text in enumerate(texts)}),
        ],
        "toml": [_spec(figure) for figure in FIGURES],
        "results": [_results()],
    }
    files = {
        "vectors.csv": seeds["csv"][0], "texts.jsonl": seeds["jsonl"][1], "triplets.npy": npy(triplets),
        "labels.csv": seeds["labels"][1], "triplets.jsonl": seeds["triplets"][0], "qrels.tsv": seeds["qrels-beir"][0],
        "judgements.jsonl": seeds["judgements"][0], "vectors.npy": npy(X),
    }  # fmt: skip
    for name, content in files.items():
        (folder / name).write_bytes(content)
    _train(folder)
    seeds["model"], seeds["adapter"] = _models(folder, X, y), _adapters(folder)
    seeds["checkpoint"] = [(folder / "kept.safetensors.checkpoint").read_bytes()]
    seeds["ask-log"] = [_ask_log(triplets)]
    return seeds


_SPARSE = (sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.bsr_array, sparse.dia_array)


def run_main(*arguments: str, answers: str = "") -> tuple[int, str, str]:
    """Run the command line in this process; return exit code, standard output and standard error."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", errors=errors) for errors in ("strict", "backslashreplace"))
    before = sys.argv, sys.stdin
    sys.argv, sys.stdin = ["aromatch", *arguments], io.StringIO(answers)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    finally:
        sys.argv, sys.stdin = before
    for stream in (out, err):
        stream.flush()
    return code, *(stream.buffer.getvalue().decode("utf-8", "surrogatepass") for stream in (out, err))  # type: ignore


def _train(folder: Path) -> None:
    """Train models of vectors and of texts, and keep a checkpoint."""
    vectors, texts = str(folder / "vectors.csv"), str(folder / "texts.jsonl")
    options = "--learner", "diagonal", "--n-triplets", "60", "--hold-out", "0.25"
    _succeed("train", vectors, *options, "-o", str(folder / "vectors.safetensors"))
    _succeed("train", texts, *options, "-o", str(folder / "texts.safetensors"))
    remove = fitting.Checkpoint.remove
    fitting.Checkpoint.remove = lambda self: None  # type: ignore[method-assign]
    try:
        options = "--learner", "diagonal", "--n-triplets", "60", "--checkpoint-seconds", "0"
        _succeed("train", vectors, *options, "-o", str(folder / "kept.safetensors"))
    finally:
        fitting.Checkpoint.remove = remove  # type: ignore[method-assign]


def _succeed(*arguments: str) -> None:
    code, _, err = run_main(*arguments)
    if code:
        raise RuntimeError(f"a seed of the fuzzer cannot be built: aromatch {' '.join(arguments)}: {err}")


def _triplets(y: Any) -> Any:
    """Return a triplet of the labels for each row."""
    rows = np.arange(N)
    return np.array([[q, rows[(y == y[q]) & (rows != q)][q % 3], rows[y != y[q]][q % 8]] for q in rows])


def _models(folder: Path, X: Any, y: Any) -> list[bytes]:
    """Return a file of every learner with every way to keep its state, and of bundles."""
    path = folder / "seed.safetensors"
    triplets = _triplets(y)
    found: list[Any] = []
    for cls in SIMILARITIES:
        variants: list[dict[str, Any]] = [{}]
        if cls in WITH_TOUCHED_CELLS:
            variants.append({"cells": "touched"})
        if cls is am.TripletEmbedding:
            variants = [{"method": name, "n_components": 2} for name in ("moment", "spectral", "cosine")]
        for variant in variants:
            model = cls(**variant)
            found.append(model.fit_triplets(triplets, X) if hasattr(cls, "learn_one") else model.fit(X, y))
            found.append(found[-1].copy().calibrate(np.repeat(triplets, 8, axis=0), X))
    found.append(am.DiagonalAROMA(dtype="float32").fit_triplets(triplets, X))
    found.append(found[0].copy().set_fingerprint(am.Fingerprint.of("x", X)))
    files = []
    for model in found:
        model.save(path)
        files.append(path.read_bytes())
    bundles = [(folder / name).read_bytes() for name in ("vectors.safetensors", "texts.safetensors")]
    return files + 4 * bundles  # most commands need a bundle


def _adapters(folder: Path) -> list[bytes]:
    X, y = clusters(n_each=4, n_clusters=3, width=WIDTH)
    files = []
    for number, ids in enumerate((None, [f"o{at}" for at in range(len(X))])):
        adapter = am.Adapter(X, ids=ids, random_state=0)
        if number == 0:
            taught(adapter, X, y, range(0, len(X), 2))
        else:
            adapter.judge(X[0], good=["o1"], bad=["o8"])
        adapter.save(folder / "seed.safetensors")
        files.append((folder / "seed.safetensors").read_bytes())
    return files


def _ask_log(triplets: Any) -> bytes:
    seen = 60
    lines: list[dict[str, Any]] = [{"session": seen, "model": "m", "seed": 0, "by": "person", "time": 1.5}]
    lines += [{"query": str(q), "better": str(p), "worse": str(n), "by": "person", "time": 2.5} for q, p, n in triplets]
    lines += [{"skipped": True, "query": "0", "first": "1", "second": "2", "by": "judge", "time": 3.5}]
    return _jsonl([*lines, {"session": seen + len(triplets), "model": "m", "seed": 1, "by": "judge", "time": 4.5}])


def _clicks(triplets: Any, with_time: bool) -> Any:
    for q, p, n in triplets.tolist():
        yield {"query": str(q), "shown": [str(n), str(p)], "clicked": str(p)} | ({"time": q} if with_time else {})


def _numbered(*columns: Any) -> Any:
    return enumerate(zip(*columns, strict=True))


def _jsonl(values: Any) -> bytes:
    return "".join(json.dumps(one, default=str) + "\n" for one in values).encode()


def _csv(X: Any, labels: Any, separator: str) -> bytes:
    names = ["id", *([] if labels is None else ["label"]), *(f"f{at}" for at in range(X.shape[1]))]
    rows = [[str(at), *([] if labels is None else [labels[at]]), *map(str, row)] for at, row in enumerate(X)]
    return "".join(separator.join(row) + "\n" for row in [names, *rows]).encode()


def _table(texts: Any, labels: Any, separator: str) -> bytes:
    rows = [["id", "label", "text"], *([str(at), label, f'"{text}"'] for at, (text, label) in _numbered(texts, labels))]
    return "".join(separator.join(row) + "\n" for row in rows).encode()


def _svmlight(X: Any, y: Any) -> bytes:
    rows = (" ".join(f"{at + 1}:{value}" for at, value in enumerate(row) if value > 0) for row in X)
    return "".join(f"{label} {row}\n" for label, row in zip(y, rows, strict=True)).encode()


def _spec(figure: str) -> bytes:
    from importlib import resources

    return (resources.files("aromatch.paper") / "specs" / f"{figure}.toml").read_bytes()


def _results() -> bytes:
    """Return raw results of one cell, which would be computed again from a data set that is not there."""
    spec = read_spec("fig4", quick=True)
    spec = replace(spec, runs=spec.runs[:1], tuned=[], variants=[], n_splits=1)
    cell = spec.cells()[0]
    found = {"n_triplets": [1], "n_updates": [1], "precision": [[0.5] * len(spec.ks)], "mean_average_precision": [0.5]}
    result = {"name": cell.name, "cell": cell.to_dict(), "seed": 0, "test_ratio": 1.0, "found": found, "seconds": 1.0}
    return json.dumps({"spec": spec.to_dict(), "cells": [result]}).encode()

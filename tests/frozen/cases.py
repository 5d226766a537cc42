"""Cases whose results are frozen in frozen.npz, to the bit.

If public names change, edit the calls here and keep frozen.npz. A case returns a flat dict of arrays.
"""

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from scipy import sparse
from threadpoolctl import threadpool_info, threadpool_limits

import aromatch as am
from aromatch import datasets, evaluation, theory
from aromatch.features import TextFeatures
from aromatch.features.text import information_gain
from aromatch.learners import hierarchy_from_dots
from aromatch.theory import matrix_normal as gaussian

CASES = {}
COMMAND_LINE = []
"""Names of the cases that start new processes."""


def case(name, function=None):
    """Register a case under a name; as a decorator without the function."""
    if function is None:
        return lambda given: case(name, given)
    if name in CASES:
        raise ValueError(f"there are two cases {name}")
    CASES[name] = function
    return function


def run(name):
    """Run a case with one thread; return its arrays."""
    with threadpool_limits(1):
        found = CASES[name]()
    flat = {}
    for key, value in found.items():
        if sparse.issparse(value):
            value = value.tocsr()
            parts = (value.data, value.indices.astype(np.int64), value.indptr.astype(np.int64), np.array(value.shape))
            flat |= {
                f"{key}.{part}": one for part, one in zip(("data", "indices", "indptr", "shape"), parts, strict=True)
            }
        else:
            flat[key] = np.asarray(value)
    if bad := [key for key, value in flat.items() if value.dtype.kind not in "biufU"]:
        raise TypeError(f"{name}: {bad} are not plain arrays")
    return flat


def platform():
    """Return what the last bits depend on: the BLAS kernels and the versions of the numerical libraries."""
    kernels = sorted({info["architecture"] for info in threadpool_info() if "architecture" in info})
    return {"blas": kernels, **{name: version(name) for name in ("numpy", "scipy", "scikit-learn")}}


# -- data -------------------------------------------------------------------------------------------------------------


def labelled(n=60, width=14, n_classes=4, seed=0, container=np.asarray):
    """Return rows of about unit norm around centres, and their labels; sparse rows have many zeros."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    X = (rng.normal(size=(n_classes, width))[y] + rng.normal(size=(n, width))) / np.sqrt(2 * width)
    if container is not np.asarray:
        X[rng.random(X.shape) < 0.6] = 0
    return container(X), y


def two_spaces(m=16, n=13, n_triplets=240, seed=1, container=np.asarray):
    """Return queries and objects of different widths, and triplets of a random bilinear score."""
    rng = np.random.default_rng(seed)
    Q, P = rng.normal(size=(40, m)) / np.sqrt(m), rng.normal(size=(50, n)) / np.sqrt(n)
    if container is not np.asarray:
        Q[rng.random(Q.shape) < 0.6] = 0
        P[rng.random(P.shape) < 0.6] = 0
    truth = Q @ rng.normal(size=(m, n)) @ P.T
    query, one, other = rng.integers(40, size=n_triplets), *rng.integers(50, size=(2, n_triplets))
    is_one = truth[query, one] >= truth[query, other]
    triplets = np.column_stack([query, np.where(is_one, one, other), np.where(is_one, other, one)])
    return container(Q), container(P), triplets


def one_space(n_triplets=240, seed=2, container=np.asarray, **settings):
    """Return rows, None for the objects, and triplets from labels."""
    X, y = labelled(seed=seed, container=container, **settings)
    return X, None, am.triplets.from_labels(y, n_triplets, random_state=seed)


def weights(n, seed=3):
    """Return weights, some of them zero."""
    found = np.random.default_rng(seed).uniform(0.1, 2.5, n)
    found[::7] = 0
    return found


DATA = {
    "two": two_spaces,
    "two-csr": lambda: two_spaces(container=sparse.csr_array),
    "one": one_space,
    "one-csr": lambda: one_space(container=sparse.csr_array),
    "small": lambda: two_spaces(m=6, n=5),
    "small-csr": lambda: two_spaces(m=6, n=5, container=sparse.csr_array),
    "float32": lambda: (*(rows.astype(np.float32) for rows in two_spaces()[:2]), two_spaces()[2]),
}


# -- outputs of a model -----------------------------------------------------------------------------------------------

ATTRIBUTES = (
    "W_", "Sigma_", "Omega_", "Lambda_", "M_", "L_", "signs_", "coef_", "intercept_", "S_",
    "alpha_", "denoise_weight_", "sum_of_weights_", "objectives_", "n_iter_", "n_left_out_", "n_sweeps_", "bounds_",
)  # fmt: skip


# Names of results that were renamed after they were frozen.
FROZEN_NAMES = {"alpha_": "lam_", "denoise_weight_": "denoised_", "sum_of_weights_": "weight_"}
FROZEN_STATE_NAMES = {
    "train_denoised_qp": "known_qp", "validation_denoised_qp": "new_qp", "validation_denoised_pp": "new_pp",
    **{f"train_{one}": f"learn_{one}" for one in ("qq", "qp", "pp", "weight")},
    **{f"validation_{one}": f"held_{one}" for one in ("qq", "qp", "pp", "weight")},
}  # fmt: skip


def attributes(model):
    """Return the fitted public attributes of the model."""
    found = {FROZEN_NAMES.get(name, name): getattr(model, name) for name in ATTRIBUTES if hasattr(model, name)}
    if hasattr(model, "components_"):
        L = np.ascontiguousarray(model.components_.T)
        found |= {"L_": L, "signs_": np.ones(L.shape[1]), "W_": (L * 1.0) @ L.T}
    counts = [
        getattr(model, f"n_{one}_") for one in ("triplets_seen", "updates", "mistakes") if hasattr(model, f"n_{one}_")
    ]
    return found | ({"counts": np.array(counts)} if counts else {})


def scores(model, Q, P, triplets):
    """Return all scores of a few rows, and the probabilities of a calibrated copy."""
    objects = Q if P is None else P
    pairs = triplets[:10, :2]
    found = {
        "similarity": model.similarity(Q[:5], objects[:8]),
        "pair_score": model.pair_score(Q, P, pairs),
        "margins": model.margins(triplets[-10:], Q, P),
        "triplet_accuracy": model.triplet_accuracy(triplets, Q, P),
        "transform": model.transform(Q[:3]),
    }
    if hasattr(model, "pair_std"):
        found["pair_std"] = model.pair_std(Q, P, pairs)
        found["margin_std"] = model.margin_std(triplets[-10:], Q, P)
    calibrated = model.copy().calibrate(triplets[:100], Q, P)
    found["probability"] = calibrated.preference_proba(triplets[-10:], Q, P)
    found["calibration"] = np.array(calibrated.calibration_[:5], dtype=float)
    return found


def judgements(model, Q, P, triplets):
    """Learn some triplets one at a time; return the results."""
    objects = Q if P is None else P
    rows = []
    for number, (query, good, bad) in enumerate(triplets):
        weight = 1.0 if number % 3 else 0.5
        one = model.learn_one(Q[[query]], objects[[good]], objects[[bad]], sample_weight=weight)
        rows.append([one.margin, np.nan if one.std is None else one.std, one.loss, one.updated])
    return np.array(rows, dtype=float)


def written(model):
    """Return the arrays of the model file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        model.save(path)
        arrays = load_file(path)
    names = {name: name.removeprefix("state.") for name in arrays}
    return {f"file.{name.replace(one, FROZEN_STATE_NAMES.get(one, one))}": arrays[name] for name, one in names.items()}


def reloaded(model):
    """Return the model after saving and loading."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        model.save(path)
        return am.load(path)


def prefixed(prefix, found):
    """Return the same arrays with prefixed names."""
    return {f"{prefix}.{name}": value for name, value in found.items()}


# -- learners of triplets ---------------------------------------------------------------------------------------------

START = np.random.default_rng(9).normal(size=(16, 13)) / 10
SPARSE_START = sparse.csr_array(np.where(START > 0.08, START, 0))

TRIPLET_LEARNERS = {
    "diagonal": (lambda: am.DiagonalAROMA(), "two"),
    "diagonal-csr": (lambda: am.DiagonalAROMA(0.1), "two-csr"),
    "diagonal-touched": (lambda: am.DiagonalAROMA(0.1, cells="touched"), "two-csr"),
    "diagonal-touched-dense-rows": (lambda: am.DiagonalAROMA(0.1, cells="touched"), "two"),
    "diagonal-dense-cells": (lambda: am.DiagonalAROMA(0.1, cells="dense"), "one-csr"),
    "diagonal-touched-identity": (lambda: am.DiagonalAROMA(cells="touched", init="identity"), "one-csr"),
    "diagonal-touched-inverse": (
        lambda: am.DiagonalAROMA(cells="touched", covariance_update="inverse", rule="mistake", dtype="float32"),
        "one-csr",
    ),
    "diagonal-float32": (lambda: am.DiagonalAROMA(0.5, dtype="float32"), "two"),
    "diagonal-of-float32-rows": (lambda: am.DiagonalAROMA(0.5), "float32"),
    "diagonal-mistake": (lambda: am.DiagonalAROMA(rule="mistake"), "two"),
    "diagonal-inverse": (lambda: am.DiagonalAROMA(0.3, covariance_update="inverse"), "two"),
    "diagonal-identity": (lambda: am.DiagonalAROMA(init="identity"), "one"),
    "diagonal-multiple": (lambda: am.DiagonalAROMA(init=2.5), "one-csr"),
    "diagonal-own-start": (lambda: am.DiagonalAROMA(init=START), "two"),
    "diagonal-sparse-start": (lambda: am.DiagonalAROMA(init=SPARSE_START, cells="touched"), "two-csr"),
    "factored": (lambda: am.FactoredAROMA(), "two"),
    "factored-csr": (lambda: am.FactoredAROMA(0.1), "two-csr"),
    "factored-small": (lambda: am.FactoredAROMA(0.1), "small"),
    "factored-small-csr": (lambda: am.FactoredAROMA(0.1), "small-csr"),
    "factored-float32": (lambda: am.FactoredAROMA(0.5, dtype="float32"), "two"),
    "factored-mistake": (lambda: am.FactoredAROMA(rule="mistake"), "two"),
    "factored-updated": (lambda: am.FactoredAROMA(0.5, mean_update="updated"), "two"),
    "factored-gauss-seidel": (lambda: am.FactoredAROMA(0.5, covariance_update="gauss_seidel"), "two"),
    "factored-joint": (lambda: am.FactoredAROMA(0.5, covariance_update="joint"), "two-csr"),
    "factored-identity": (lambda: am.FactoredAROMA(init="identity"), "one"),
    "factored-own-start": (lambda: am.FactoredAROMA(init=START), "two"),
    "full": (lambda: am.FullAROMA(), "small"),
    "full-csr": (lambda: am.FullAROMA(0.1), "small-csr"),
    "full-float32-mistake": (lambda: am.FullAROMA(dtype="float32", rule="mistake"), "small"),
    "full-own-start": (lambda: am.FullAROMA(init=START[:6, :5]), "small"),
    "moment": (lambda: am.MomentAROMA(), "two"),
    "moment-csr": (lambda: am.MomentAROMA(0.05), "two-csr"),
    "moment-r": (lambda: am.MomentAROMA(5.0, alpha_schedule="inverse"), "two"),
    "moment-auto": (lambda: am.MomentAROMA("auto"), "two"),
    "moment-auto-one-csr": (lambda: am.MomentAROMA("auto"), "one-csr"),
    "moment-of-float32-rows": (lambda: am.MomentAROMA(), "float32"),
    "oasis": (lambda: am.OASIS(init="zero"), "two"),
    "oasis-csr": (lambda: am.OASIS(0.5, init="zero"), "two-csr"),
    "oasis-small": (lambda: am.OASIS(init="zero"), "small"),
    "oasis-identity": (lambda: am.OASIS(), "one"),
    "oasis-float32": (lambda: am.OASIS(dtype="float32"), "one-csr"),
    "oasis-touched": (lambda: am.OASIS(cells="touched"), "one-csr"),
    "oasis-own-start": (lambda: am.OASIS(init=START), "two"),
}  # fmt: skip


def learn_triplets(make, data):
    """Learn triplets in two parts and then one at a time."""
    Q, P, triplets = DATA[data]()
    model = make().fit_triplets(triplets[:150], Q, P)
    found = attributes(model) | scores(model, Q, P, triplets)
    model.partial_fit_triplets(triplets[150:220], Q, P)
    found["later.similarity"] = model.similarity(Q[-3:], (Q if P is None else P)[:8])
    found["judgements"] = judgements(model, Q, P, triplets[220:232])
    found["last.W_"] = model.W_
    return found


def learn_weighted(make, data):
    """Learn triplets with weights, some of them zero, in two parts."""
    Q, P, triplets = DATA[data]()
    model = make().fit_triplets(triplets[:150], Q, P, sample_weight=weights(150))
    model.partial_fit_triplets(triplets[150:], Q, P, sample_weight=weights(len(triplets) - 150, seed=4))
    return attributes(model) | {"margins": model.margins(triplets[:10], Q, P)}


def learn_singly(make, data):
    """Learn from the first triplet on one at a time, so that predictions calibrate the model."""
    Q, P, triplets = DATA[data]()
    model = make()
    found = {"judgements": judgements(model, Q, P, triplets[:90])}
    return (
        found
        | attributes(model)
        | {
            "probability": model.preference_proba(triplets[-10:], Q, P),
            "calibration": np.array(model.calibration_[:5], dtype=float),
        }
    )


def grow_and_forget(make, data):
    """Learn, forget some, grow, learn on with wider rows, and go through a file."""
    Q, P, triplets = DATA[data]()
    model = make().fit_triplets(triplets[:100], Q, P)
    found = {}
    if hasattr(model, "decay"):
        found |= prefixed("forgot", attributes(model.decay(0.3)))
        model.partial_fit_triplets(triplets[100:130], Q, P)
    m, n = Q.shape[1] + 2, (Q if P is None else P).shape[1] + 2
    model.grow(m, n)
    rng = np.random.default_rng(5)
    stack = sparse.hstack if sparse.issparse(Q) else np.hstack
    wide = [None if rows is None else stack([rows, rng.normal(size=(rows.shape[0], 2)) / 3]) for rows in (Q, P)]
    if sparse.issparse(Q):
        wide = [None if rows is None else sparse.csr_array(rows) for rows in wide]
    model.partial_fit_triplets(triplets[130:200], *wide)
    found |= prefixed("grown", attributes(model))
    again = reloaded(model).partial_fit_triplets(triplets[200:], *wide)
    return found | {"last.W_": again.W_, "last.margins": again.margins(triplets[:10], *wide)}


def written_state(make, data):
    """Learn triplets and return the arrays of the model file."""
    Q, P, triplets = DATA[data]()
    model = make().fit_triplets(triplets[:150], Q, P).calibrate(triplets[150:220], Q, P)
    return written(model)


for _name, (_make, _data) in TRIPLET_LEARNERS.items():
    case(f"learn-{_name}", lambda make=_make, data=_data: learn_triplets(make, data))
for _name in (
    "diagonal", "diagonal-touched", "diagonal-float32", "diagonal-inverse", "factored", "factored-small",
    "factored-updated", "factored-joint", "full", "moment", "moment-r", "moment-auto", "oasis", "oasis-touched",
):  # fmt: skip
    _make, _data = TRIPLET_LEARNERS[_name]
    case(f"weighted-{_name}", lambda make=_make, data=_data: learn_weighted(make, data))
    case(f"state-{_name}", lambda make=_make, data=_data: written_state(make, data))
for _name in ("diagonal", "diagonal-touched", "factored", "factored-small", "full", "moment", "moment-auto", "oasis"):
    _make, _data = TRIPLET_LEARNERS[_name]
    case(f"singly-{_name}", lambda make=_make, data=_data: learn_singly(make, data))
    case(f"grown-{_name}", lambda make=_make, data=_data: grow_and_forget(make, data))


# -- learners from labels ---------------------------------------------------------------------------------------------

CLASS_NAMES = np.array(["a.one", "a.two", "b.one", "b.two"])
CSR = {"container": sparse.csr_array}

LABEL_LEARNERS = {
    "diagonal": (lambda: am.DiagonalAROMA(n_triplets=200, random_state=0), {}),
    "diagonal-csr": (lambda: am.DiagonalAROMA(n_triplets=200, random_state=1), CSR),
    "diagonal-touched": (lambda: am.DiagonalAROMA(n_triplets=200, random_state=1, cells="touched"), CSR),
    "factored": (lambda: am.FactoredAROMA(n_triplets=200, random_state=0), {}),
    "full": (lambda: am.FullAROMA(n_triplets=150, random_state=0), {"width": 6}),
    "oasis": (lambda: am.OASIS(n_triplets=200, random_state=0), {}),
    "oasis-csr": (lambda: am.OASIS(n_triplets=200, random_state=0, dtype="float32"), CSR),
    "moment": (lambda: am.MomentAROMA(), {}),
    "moment-csr": (lambda: am.MomentAROMA(0.02), CSR),
    "moment-auto": (lambda: am.MomentAROMA("auto"), {"n": 120}),
    "moment-r": (lambda: am.MomentAROMA(2.0, alpha_schedule="inverse"), {}),
    "moment-denoise": (lambda: am.MomentAROMA("auto", denoise=True), {"n": 120}),
    "euclidean": (lambda: am.Euclidean(), {}),
    "euclidean-csr": (lambda: am.Euclidean(), CSR),
    "itml": (lambda: am.ITML(n_constraints=80, random_state=0), {}),
    "itml-csr": (lambda: am.ITML(0.3, n_constraints=80, random_state=0, max_sweeps=3), CSR),
    "itml-bounds": (lambda: am.ITML(n_constraints=60, random_state=1, bounds=(0.5, 1.5)), {}),
    "lego": (lambda: am.LEGO(n_constraints=200, random_state=0), {}),
    "lego-csr": (lambda: am.LEGO(0.1, n_constraints=200, random_state=0), CSR),
    "lego-squared": (lambda: am.LEGO(loss="squared", n_constraints=200, random_state=0), {}),
    "lmnn": (lambda: am.LMNN(max_iter=15), {}),
    "lmnn-csr": (lambda: am.LMNN(2, mu=0.3, max_iter=10), CSR),
    "hier": (lambda: am.HIER(10.0, hierarchy=hierarchy_from_dots(CLASS_NAMES)), {}),
    "hier-csr": (lambda: am.HIER(), CSR),
}


def named_classes(settings):
    """Return rows and the names of their classes."""
    X, y = labelled(seed=6, **settings)
    return X, CLASS_NAMES[y]


def learn_labels(make, settings):
    """Learn from labels; return fitted attributes, scores and the mAP."""
    X, y = named_classes(settings)
    model = make().fit(X, y)
    triplets = am.triplets.from_labels(y, 120, random_state=7)
    found = attributes(model) | scores(model, X, None, triplets)
    return found | {"score": model.score(X, y), "reloaded.similarity": reloaded(model).similarity(X[:3], X[-4:])}


for _name, (_make, _settings) in LABEL_LEARNERS.items():
    case(f"labels-{_name}", lambda make=_make, settings=_settings: learn_labels(make, settings))
for _name in ("moment-auto", "moment-denoise", "itml", "lego", "lmnn", "hier"):
    _make, _settings = LABEL_LEARNERS[_name]
    case(
        f"state-labels-{_name}",
        lambda make=_make, settings=_settings: written(make().fit(*named_classes(settings))),
    )


@case("pairs-itml-lego")
def learn_pairs():
    """Learn metrics from given pairs."""
    X, y = labelled(seed=8)
    pairs = np.random.default_rng(8).integers(len(y), size=(80, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    is_similar = y[pairs[:, 0]] == y[pairs[:, 1]]
    found = {}
    for name, model in (("itml", am.ITML()), ("lego", am.LEGO()), ("bounded", am.LEGO(bounds=(0.4, 1.6)))):
        found |= prefixed(name, attributes(model.fit_pairs(pairs, is_similar, X)))
    return found


AROWS = {
    "full": ({}, {}),
    "full-csr": ({"r": 0.1}, CSR),
    "diagonal": ({"covariance": "diagonal"}, {}),
    "diagonal-csr": ({"covariance": "diagonal", "r": 0.2}, CSR),
    "float32": ({"dtype": "float32"}, {}),
}


def learn_arow(settings, rows):
    """Learn two classes in two parts."""
    X, y = labelled(seed=10, n_classes=2, **rows)
    y = np.array(["no", "yes"])[y]
    model = am.AROW(**settings).fit(X[:40], y[:40])
    found = {"coef_": model.coef_, "Sigma_": model.Sigma_, "decision": model.decision_function(X)}
    model.partial_fit(X[40:], y[40:])
    found |= {"last.coef_": model.coef_, "last.Sigma_": model.Sigma_, "predict": model.predict(X)}
    return found | {"score": model.score(X, y), "classes_": model.classes_}


for _name, (_settings, _rows) in AROWS.items():
    case(f"arow-{_name}", lambda settings=_settings, rows=_rows: learn_arow(settings, rows))


# -- moments ----------------------------------------------------------------------------------------------------------


def grouped(n_triplets=2_500, **settings):
    """Return grouped rows with noisy first features, triplets that contain each row often, and labels."""
    rng = np.random.default_rng(11)
    n, n_groups, width = 120, 6, 16
    y = np.arange(n) % n_groups
    noise = rng.normal(size=(n, width)) * np.exp(-np.arange(width) / 8)
    X = rng.normal(size=(n_groups, width))[y] / np.sqrt(width) + 0.5 * noise
    if settings.get("sparse"):
        X = sparse.csr_array(np.where(np.abs(X) > 0.15, X, 0))
    return X, am.triplets.from_labels(y, n_triplets, random_state=11), y


@case("moment-denoise")
def moment_denoise():
    """Denoise triplets of the same rows, with alpha chosen and with alpha given."""
    X, triplets, _ = grouped()
    found = {}
    for name, model in (("auto", am.MomentAROMA("auto", denoise=True)), ("given", am.MomentAROMA(0.01, denoise=True))):
        model.fit_triplets(triplets, X)
        found |= prefixed(name, attributes(model))
        found[f"{name}.settled.W_"] = model.finalized().W_
    return found


@case("moment-denoise-two-spaces")
def moment_denoise_two_spaces():
    """Denoise triplets of queries and objects of different widths."""
    Q, P, triplets = two_spaces(n_triplets=1_500)
    return attributes(am.MomentAROMA("auto", denoise=True).fit_triplets(triplets, Q, P))


@case("state-moment-denoise")
def moment_denoise_state():
    """Return the arrays of the files of a denoising model and of its finalized copy."""
    X, triplets, _ = grouped()
    model = am.MomentAROMA("auto", denoise=True).fit_triplets(triplets, X)
    return written(model) | prefixed("settled", written(model.finalized()))


@case("moment-merge")
def moment_merge():
    """Merge models of disjoint triplets."""
    Q, P, triplets = two_spaces()
    found = {}
    for name, settings in (
        ("plain", {}),
        ("auto", {"alpha": "auto"}),
        ("r", {"alpha": 3.0, "alpha_schedule": "inverse"}),
    ):
        parts = [
            am.MomentAROMA(**settings).fit_triplets(part, Q, P)
            for part in (triplets[:90], triplets[90:150], triplets[150:])
        ]
        found |= prefixed(name, attributes(am.merge(parts)))
    return found


@case("moment-settled")
def moment_settled():
    """Finalize models, and continue training."""
    Q, P, triplets = two_spaces()
    found = {}
    for name, settings in (
        ("auto", {"alpha": "auto"}),
        ("r", {"alpha": 3.0, "alpha_schedule": "inverse"}),
        ("plain", {}),
    ):
        settled = am.MomentAROMA(**settings).fit_triplets(triplets[:150], Q, P).finalized()
        found |= prefixed(name, attributes(settled)) | {f"{name}.lam": 1e-3 if name == "r" else settled.alpha}
        found[f"{name}.later.W_"] = settled.partial_fit_triplets(triplets[150:], Q, P).W_
    return found


# -- projections ------------------------------------------------------------------------------------------------------


def shown(model, X, prefix):
    """Return the arrays of an embedding and a few of its scores."""
    found = attributes(model) | {"similarity": model.similarity(X[:4], X[-6:]), "transform": model.transform(X[:3])}
    return prefixed(prefix, found | {"pair_score": model.pair_score(X, None, np.arange(16).reshape(8, 2))})


@case("project")
def project():
    """Project models to their positive semi-definite part."""
    X, y = labelled(seed=12)
    triplets = am.triplets.from_labels(y, 200, random_state=12)
    model = am.DiagonalAROMA(0.1).fit_triplets(triplets[:150], X)
    found = shown(model.project(), X, "psd") | shown(model.project(3), X, "psd-3")
    return found | shown(am.MomentAROMA().fit(X, y).project(5), X, "moment")


@case("project-touched")
def project_touched():
    """Project a model of touched cells."""
    X, _, triplets = DATA["one-csr"]()
    model = am.DiagonalAROMA(0.1, cells="touched").fit_triplets(triplets, X)
    return shown(model.project(3), X, "psd")


@case("best-projection")
def best_projection():
    """Select and refine an embedding: dense, sparse, two collections, and few triplets."""
    X, triplets, _ = grouped()
    found = shown(am.TripletEmbedding("linear", random_state=3).fit_triplets(triplets, X), X, "dense")
    other = np.column_stack([triplets[:, 0], len(X) - 1 - triplets[:, 1:]])
    found |= shown(am.TripletEmbedding("linear", 4, random_state=4).fit_triplets(other, X, X[::-1].copy()), X, "two")
    found |= shown(am.TripletEmbedding("linear", random_state=0).fit_triplets(triplets[:150], X), X, "few")
    X, triplets, _ = grouped(sparse=True)
    weighted = am.TripletEmbedding("linear", random_state=0)
    weighted.fit_triplets(triplets, X, sample_weight=weights(len(triplets)))
    return found | shown(weighted, X, "csr")


# -- search -----------------------------------------------------------------------------------------------------------

SEARCHED = {
    "diagonal": ("diagonal", True),
    "diagonal-csr": ("diagonal-csr", True),
    "diagonal-touched": ("diagonal-touched", True),
    "factored": ("factored", True),
    "factored-csr": ("factored-csr", True),
    "full": ("full", True),
    "moment": ("moment", True),
    "oasis": ("oasis", False),
}


def search_index(name, knows):
    """Search an index, explore, add, remove and search again."""
    make, data = TRIPLET_LEARNERS[name]
    Q, P, triplets = DATA[data]()
    model = make().fit_triplets(triplets[:120], Q, P)
    index = am.Index(model, P[:35])
    found = {}

    def note(prefix, **settings):
        ids, values, stds = index.search(Q[:6], 5, **settings)
        found.update({f"{prefix}.ids": ids, f"{prefix}.scores": values})
        if stds is not None:
            found[f"{prefix}.stds"] = stds

    note("plain")
    if knows:
        note("thompson", explore="thompson", random_state=3)
        note("ucb", explore="ucb", scale=1.5)
        found["drawn_vector"] = model.sample_transform(Q[:3], 0.5, random_state=4)
    found["query_vector"] = model.transform(Q[:3])
    found["added"] = index.add(P[35:])
    index.remove([1, 4, 40])
    model.partial_fit_triplets(triplets[120:], Q, P)
    note("later")
    found["ids"] = index.ids
    index.add(P[:2], ids=[100, 90])
    note("named")
    return found


for _name, (_learner, _knows) in SEARCHED.items():
    case(f"index-{_name}", lambda name=_learner, knows=_knows: search_index(name, knows))


@case("low-rank")
def low_rank():
    """Project models to few components."""
    found = {}
    for name in ("diagonal", "diagonal-touched", "moment"):
        make, data = TRIPLET_LEARNERS[name]
        Q, P, triplets = DATA[data]()
        model = make().fit_triplets(triplets, Q, P)
        for k in (3, 5):
            cut = model.project(k, symmetric=False)
            found |= {f"{name}-{k}.left": cut.components_.T, f"{name}-{k}.right": cut.object_components_.T}
    return found


@case("explain")
def explain():
    """Explain scores, with names of features and without."""
    found = {}
    for name in ("diagonal", "diagonal-touched", "factored", "full", "moment", "oasis"):
        make, data = TRIPLET_LEARNERS[name]
        Q, P, triplets = DATA[data]()
        model = make().fit_triplets(triplets, Q, P)
        names = [f"q{one}" for one in range(Q.shape[1])], [f"p{one}" for one in range(P.shape[1])]
        for top, given in ((4, {}), (6, {"query_names": names[0], "object_names": names[1]})):
            told = am.explain(model, Q[[2]], P[[3]], top, **given)
            found[f"{name}-{top}.numbers"] = np.array([told.score, told.rest])
            rows = [[one.value, np.nan if one.std is None else one.std] for one in told.parts]
            found[f"{name}-{top}.parts"] = np.array(rows, dtype=float)
            features = [[str(one.query_feature), str(one.object_feature)] for one in told.parts]
            found[f"{name}-{top}.features"] = np.array(features)
    X, y = labelled(seed=12)
    told = am.explain(am.MomentAROMA().fit(X, y).project(3), X[0], X[4], 5)
    return found | {"projection": np.array([told.score, told.rest, *(one.value for one in told.parts)])}


@case("suggest-comparisons")
def suggest_comparisons():
    """Select comparisons with models with and without standard deviations."""
    found = {}
    for name in ("diagonal", "factored-csr", "moment", "oasis"):
        make, data = TRIPLET_LEARNERS[name]
        Q, P, triplets = DATA[data]()
        model = make().fit_triplets(triplets[:100], Q, P)
        found[name] = am.suggest_comparisons(model, triplets[100:], Q, P, n=12)
    return found


# -- the adapter ------------------------------------------------------------------------------------------------------


def collection(container=np.asarray):
    """Return objects, queries near them, and the groups of both."""
    X, y = labelled(140, width=16, n_classes=5, seed=13, container=container)
    return X[:90], X[90:], y[:90], y[90:]


def feedback(adapter, queries, wanted, groups, start):
    """Judge some result lists and click in others."""
    for number in range(start, start + 16):
        query = queries[[number]]
        ids = adapter.search(query, 8).ids[0]
        is_good = groups[ids] == wanted[number]
        if number % 2 or not is_good.any():
            adapter.judge(query, ids[is_good], ids[~is_good])
        else:
            adapter.click(query, ids, int(ids[is_good][-1]))


def adapted(adapter, queries, prefix):
    """Return search results and diagnostics of an adapter."""
    ids, values, _ = adapter.search(queries[-8:], 6)
    found = {
        "ids": ids,
        "scores": values,
        "trust": adapter.trust(queries[-8:]),
        "query_vector": adapter.transform(queries[-4:]),
        "similarity": adapter.similarity(queries[-3:], queries[:5]),
        "blend": adapter.correction_weight_,
        "watched": np.array(adapter.diagnostics_, dtype=float),
        "own": adapter.ids,
    }
    return prefixed(prefix, found)


def use_adapter(container, metric):
    """Search, judge, click, add, remove, and continue after saving and loading."""
    X, queries, groups, wanted = collection(container)
    adapter = am.Adapter(X[:80], metric=metric, random_state=0)
    found = adapted(adapter, queries, "new")
    feedback(adapter, queries, wanted, groups, 0)
    found |= adapted(adapter, queries, "taught")
    found["added"] = adapter.add(X[80:])
    adapter.remove([3, 17, 80])
    found |= adapted(adapter, queries, "changed")
    feedback(adapter, queries, wanted, groups, 16)
    with tempfile.TemporaryDirectory() as folder:
        adapter.save(Path(folder) / "adapter")
        again = am.load(Path(folder) / "adapter")
    feedback(again, queries, wanted, groups, 24)
    return found | adapted(again, queries, "loaded")


for _name, _container, _metric in (
    ("dense", np.asarray, "cosine"),
    ("csr", sparse.csr_array, "cosine"),
    ("dot", np.asarray, "dot"),
    ("dot-csr", sparse.csr_array, "dot"),
):
    case(f"adapter-{_name}", lambda container=_container, metric=_metric: use_adapter(container, metric))


# Arrays of the file, by the names they had when they were frozen.
RENAMED_IN_FILE = {
    f"file.{name}": f"file.{before}"
    for name, before in {
        "objects.keys": "objects.ids",
        "objects.chunks": "objects.pieces",
        "queries.keys": "queries.ids",
        "queries.chunks": "queries.pieces",
        "feedback.query": "judged",
        "feedback.object": "judged_object",
        "feedback.net": "net",
        "feedback.own_object": "itself",
        "row_hashes": "names",
        "proximity": "nearness",
        "monitor": "watched",
    }.items()
}


@case("state-adapter")
def adapter_state():
    """Return the arrays of the file of an adapter."""
    X, queries, groups, wanted = collection(sparse.csr_array)
    adapter = am.Adapter(X, random_state=0)
    feedback(adapter, queries, wanted, groups, 0)
    adapter.remove([5])
    return {RENAMED_IN_FILE.get(name, name): array for name, array in written(adapter).items()}


# -- triplets, evaluation, theory, features ---------------------------------------------------------------------------


def compared(found, prefix):
    """Return triplets, weights and the report."""
    report = found.report
    names = ("n_read", "n_judged", "n_sampled", "n_unknown", "n_duplicates", "n_contradictions", "n_dropped")
    return prefixed(
        prefix,
        {
            "triplets": found.triplets,
            "weights": found.sample_weight,
            "report": np.array([getattr(report, name) for name in names]),
        },
    )


@case("triplets-labels")
def triplets_labels():
    """Sample triplets from labels."""
    y = np.random.default_rng(14).integers(5, size=70)
    streamed = np.concatenate(list(am.triplets.stream_from_labels(y, 60, random_state=2)))
    return {
        "one": am.triplets.from_labels(y, 100, random_state=0),
        "two": am.triplets.from_labels(y[:30].astype(str), 100, random_state=1, y_objects=y.astype(str)),
        "stream": streamed,
        "sampler": am.triplets.LabelSampler(y).sample(40, np.random.default_rng(3)),
    }


@case("triplets-qrels")
def triplets_qrels():
    """Make triplets from relevance judgements."""
    rng = np.random.default_rng(15)
    qrels = [(f"q{q}", f"d{d}", int(g)) for q, d, g in rng.integers((8, 33, 4), size=(90, 3))]
    ids = [f"q{one}" for one in range(8)], [f"d{one}" for one in range(30)]
    found = compared(am.triplets.from_qrels(qrels, *ids, missing="skip", random_state=0), "plain")
    settings = {"n_judged": 2, "n_sampled": 1, "min_grade": 2, "missing": "skip", "random_state": 1}
    return found | compared(am.triplets.from_qrels(qrels, *ids, **settings), "settings")


@case("triplets-clicks")
def triplets_clicks():
    """Make triplets from a log of searches."""
    rng = np.random.default_rng(16)
    log = []
    for query in rng.integers(9, size=40).tolist():
        listed = rng.permutation(30)[:8]
        log.append((query, listed.tolist(), listed[rng.random(8) < 0.25].tolist()))
    found = compared(am.triplets.from_clicks(log, 9, 30, random_state=0), "plain")
    settings = {"n_judged": 1, "n_sampled": 2, "judged_weight": 0.5, "position_bias": 0.7, "max_weight": 3.0}
    return found | compared(am.triplets.from_clicks(log, 9, 30, random_state=1, **settings), "settings")


@case("triplets-sessions")
def triplets_sessions():
    """Sample triplets from sessions."""
    rng = np.random.default_rng(17)
    sessions = [rng.integers(25, size=rng.integers(2, 9)).tolist() for _ in range(50)]
    found = compared(am.triplets.from_sessions(sessions, 25, 120, random_state=0), "plain")
    return found | compared(
        am.triplets.from_sessions(sessions, 25, 80, discount=0.5, max_length=4, random_state=1), "settings"
    )


def retrieved(report, prefix):
    """Return a retrieval report."""
    ks = sorted(report.precision)
    found = {
        "precision": [report.precision[k] for k in ks],
        "ndcg": [report.ndcg[k] for k in ks],
        "map": report.mean_average_precision,
        "counts": [report.n_queries, report.n_queries_left_out],
        "average_precision": report.average_precision,
        "precision_per_query": np.array([report.precision_per_query[k] for k in ks]),
        "ndcg_per_query": np.array([report.ndcg_per_query[k] for k in ks]),
        "query_rows": report.query_rows,
    }
    return prefixed(prefix, found)


@case("evaluation")
def evaluate():
    """Evaluate rankings and probabilities."""
    X, y = labelled(seed=18)
    model = am.MomentAROMA().fit(X[:30], y[:30])
    found = retrieved(evaluation.evaluate_retrieval(model, X, y, ks=(1, 3, 10)), "one")
    found |= retrieved(evaluation.evaluate_retrieval(model, X[:20], y[:20] + 1, X[20:], y[20:], ks=(2,)), "two")
    tied = am.DiagonalAROMA().fit_triplets(np.empty((0, 3), dtype=int), X)
    found |= retrieved(evaluation.evaluate_retrieval(tied, X, y), "tied")
    told = evaluation.reliability(np.random.default_rng(19).beta(3, 1, size=200), 7)
    found |= {"predicted": told.predicted, "observed": told.observed, "parts": told.counts, "gap": told.largest_gap}
    return found | {"tie_order": evaluation.tie_order(40)}


@case("theory")
def bounds():
    """Record runs and compute the bounds on mistakes."""
    rng = np.random.default_rng(20)
    Q, P, triplets = two_spaces(m=6, n=5, n_triplets=60)
    V = rng.normal(size=(6, 5)) / 3
    found = {}

    def note(name, learner):
        run = theory.record_run(learner, triplets, Q, P)
        for part in ("margins", "updated", "variances_after", "Sigma", "Omega", "Lambda", "mistakes"):
            if getattr(run, part) is not None:
                found[f"{name}.{part}"] = getattr(run, part)
        return run

    run = note("diagonal", am.DiagonalAROMA(0.7, covariance_update="inverse"))
    found["theorem_1"] = [theory.theorem_1(run, V), theory.theorem_1(run, V, corrected=False)]
    for name, corrected in (("corrected", True), ("printed", False)):
        every = theory.theorem_1_holds_for_every_V(run, corrected)
        found |= {f"{name}.sides": [every.left, every.right], f"{name}.V": every.V, f"{name}.holds": every.holds}
    run = note("factored", am.FactoredAROMA(0.7, rule="mistake", mean_update="updated"))
    found["theorem_2"] = theory.theorem_2(run, V)
    every = theory.theorem_2_holds_for_every_V(run)
    found |= {"theorem_2.sides": [every.left, every.right], "theorem_2.V": every.V}
    lemma = theory.lemma_3(run)
    found["lemma_3"] = [lemma.left, lemma.right_omega, lemma.right_lambda]
    note("full", am.FullAROMA(0.7))
    return found


@case("gaussian")
def matrix_gaussian():
    """Compute densities, divergences and samples of a matrix Gaussian."""
    rng = np.random.default_rng(21)
    W, W0 = rng.normal(size=(2, 4, 3))

    def covariance(n):
        root = rng.normal(size=(n, n + 2))
        return root @ root.T / n

    Omega, Lambda, Omega0, Lambda0 = covariance(3), covariance(4), covariance(3), covariance(4)
    both = W, Omega, Lambda, W0, Omega0, Lambda0
    return {
        "log_density": gaussian.log_density(rng.normal(size=(5, 4, 3)), W, Omega, Lambda),
        "one": gaussian.log_density(W0, W, Omega, Lambda),
        "kl": gaussian.kl_divergence(*both),
        "sample": gaussian.sample(W, Omega, Lambda, (2, 3), random_state=0),
        "objective": gaussian.objective(*both, rng.normal(size=4), rng.normal(size=3), 0.5),
    }


WORDS = {
    "fruit": ["apple", "pear", "plum", "cherry", "grape", "melon"],
    "tools": ["hammer", "saw", "drill", "chisel", "plane", "clamp"],
    "birds": ["heron", "robin", "eagle", "swift", "raven", "crane"],
}
COMMON = ["thing", "case", "place", "number", "point", "week"]


def texts_and_labels(n_each, seed=0):
    """Return texts of two words of their class and three common words, and their labels."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(list(WORDS), n_each)
    texts = [" ".join([*rng.choice(WORDS[label], 2), *rng.choice(COMMON, 3)]) for label in labels]
    return texts, labels


@case("text-features")
def text_features():
    """Compute text features."""
    texts, labels = texts_and_labels(8)
    found = {}
    for name, y, settings in (
        ("labels", labels, {"n_terms": 12}),
        ("plain", None, {"n_terms": 15, "choose": "frequency"}),
        ("rare", labels, {"n_terms": 10, "min_df": 3, "stop_words": ["thing"]}),
    ):
        features = TextFeatures(**settings).fit(texts, y)
        found |= {
            f"{name}.rows": features.transform([*texts[:8], "an unknown apple, and a saw"]),
            f"{name}.names": features.get_feature_names_out().astype(str),
        }
    found["words"] = np.array(features.words("The apple and a SAW, in week 7"))
    presence = np.random.default_rng(22).integers(2, size=(30, 9))
    return found | {"information_gain": information_gain(presence, np.arange(30) % 3)}


@case("datasets-synthetic")
def synthetic():
    """Sample synthetic rows."""
    found = {}
    for name in ("make_independent_features", "make_correlated_features"):
        for prefix, settings in (("plain", {}), ("strong", {"strength": 30.0, "signal": 0.8})):
            X, y = getattr(datasets, name)(20, 7, 3, random_state=4, **settings)
            found |= {f"{name}.{prefix}.X": X, f"{name}.{prefix}.y": y}
    return found


# -- the command line -------------------------------------------------------------------------------------------------

DROPPED = ("second", "time", "bytes", "path", "version", "digest", "fingerprint", "parameters", "hashes", "lost_share")
"""Parts of names in reports that are not compared."""
KEPT_TEXTS = ("id", "query", "object")
"""Names of texts in reports that are compared."""


RENAMED = {
    "baseline": "before",
    "learned": "after",
    "is_baseline": "is_plain",
    "n_training_left_out": "n_learned_left_out",
    "contributions": "reasons",
    "metadata": "about",
    "mean_variance": "variance_left",
    "share_correct": "came_true",
    "has_std": "knows_how_sure",
    "n_components": "rank",
    "correct": "right",
    "skipped": "passed",
    "far": "unlike",
    "n_training_lists": "n_before",
}
"""Names in reports that were renamed since the results were frozen: the new and the frozen name."""


def frozen_name(name, parent):
    """Return the name that a value had in frozen reports."""
    if name == "n_triplets" and parent in ("settings", "used"):
        return "draws"
    return RENAMED.get(name, name)


def flattened(value, path="", into=None):
    """Return the leaves of JSON by path, without list indices."""
    into = {} if into is None else into
    if isinstance(value, dict):
        is_trial = "n_training_lists" in value
        for name, one in value.items():
            if not any(part in name for part in DROPPED):
                name = "n_after" if is_trial and name == "n_queries" else frozen_name(name, path.rpartition(".")[2])
                flattened(one, f"{path}.{name}" if path else name, into)
    elif isinstance(value, list):
        for one in value:
            if not (isinstance(one, dict) and one.get("name") == "embedding"):  # trials have a new method
                flattened(one, path, into)
    elif not isinstance(value, str) or path.rpartition(".")[2] in KEPT_TEXTS:
        into.setdefault(path, []).append(value)
    return into


def numbers(report):
    """Return the numbers of a report, None as NaN, and the texts to compare."""
    found = {}
    for path, values in flattened(report).items():
        kinds = {type(one) for one in values}
        if str in kinds:
            found[path] = np.array(["" if one is None else str(one) for one in values])
        elif kinds != {type(None)}:
            values = [np.nan if one is None else one for one in values]
            found[path] = np.array(values, dtype=float if {float, type(None)} & kinds else np.int64)
    return found


class Terminal:
    """Folder in which commands run."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def __call__(self, *arguments):
        """Run a command with --json; return its numbers."""
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "aromatch", *arguments, "--json"]
        done = subprocess.run(
            command, capture_output=True, cwd=self.folder, env=environment, timeout=120, encoding="utf-8", check=False
        )
        if done.returncode:
            raise RuntimeError(f"{arguments[0]} failed: {done.stderr}")
        return numbers(json.loads(done.stdout))

    def together(self, **commands):
        """Run independent commands concurrently; return their numbers by name."""
        with ThreadPoolExecutor(4) as pool:
            running = {name: pool.submit(self, *arguments) for name, arguments in commands.items()}
        return {f"{name}.{key}": value for name, one in running.items() for key, value in one.result().items()}

    def write(self, name, lines):
        """Write a text file, or JSON lines."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in lines)
        path.write_text(text, encoding="utf-8")


def command_line(name):
    """Register a case that receives a terminal in a new folder."""

    def register(function):
        def run_in_folder():
            with tempfile.TemporaryDirectory() as folder:
                return function(Terminal(folder))

        COMMAND_LINE.append(name)
        run_in_folder.__doc__ = function.__doc__
        return case(name, run_in_folder)

    return register


def write_notes(terminal):
    """Write text files, one folder per label."""
    texts, labels = texts_and_labels(20)
    for number, (text, label) in enumerate(zip(texts, labels, strict=True)):
        terminal.write(f"notes/{label}/{number:03}.txt", [f"Note {number}", "", text])


def write_vectors(terminal):
    """Write labelled rows with features of different scales."""
    rng = np.random.default_rng(23)
    centres = rng.normal(size=(3, 8))
    lines = ["id,label," + ",".join(f"f{at}" for at in range(8))]
    for at in range(75):
        row = (centres[at % 3] + 0.7 * rng.normal(size=8)) * 10.0 ** np.linspace(0, 3, 8) + 5
        lines.append(f"r{at},{'abc'[at % 3]}," + ",".join(f"{value:.6g}" for value in row))
    terminal.write("rows.csv", lines)


def write_search(terminal):
    """Write a corpus, queries, relevance judgements and clicks."""
    texts, labels = texts_and_labels(15)
    terminal.write("corpus.jsonl", [{"_id": f"d{at}", "title": "", "text": text} for at, text in enumerate(texts)])
    rng = np.random.default_rng(24)
    classes = [list(WORDS)[at % 3] for at in range(36)]
    asked = [f"{rng.choice(WORDS[one])} {rng.choice(COMMON)}" for one in classes]
    terminal.write("queries.jsonl", [{"_id": f"q{at}", "text": text} for at, text in enumerate(asked)])
    qrels, clicks = ["query-id\tcorpus-id\tscore"], []
    for at, one in enumerate(classes):
        good = rng.choice(np.flatnonzero(labels == one), 4, replace=False)
        qrels += [f"q{at}\td{row}\t{1 + at % 2}" for row in good]
        listed = rng.permutation([*good[:2], *rng.choice(np.flatnonzero(labels != one), 4, replace=False)])
        clicks.append({"query": f"q{at}", "shown": [f"d{row}" for row in listed], "clicked": [f"d{good[0]}"]})
    terminal.write("qrels.tsv", qrels)
    terminal.write("clicks.jsonl", clicks)


def file_arrays(path, names):
    """Return some arrays of an npz file."""
    with np.load(path) as found:
        return {name: found[name] for name in names}


@command_line("cli-labels-diagonal")
def cli_diagonal(terminal):
    """Train on a folder of texts; evaluate, search, explain, describe and export."""
    write_notes(terminal)
    options = ["--learner", "diagonal", "--n-triplets", "400", "--hold-out", "0.3", "--terms", "20"]
    found = prefixed("train", terminal("train", "notes", "-o", "model", *options))
    found |= terminal.together(
        eval=["eval", "model"],
        search=["search", "model", "raven week", "-k", "5", "--compare"],
        explain=["explain", "model", "birds/041.txt", "raven", "--top", "4"],
        info=["info", "model"],
        export=["export", "model", "-o", "out", "--n-components", "4"],
    )
    terminal("export", "model", "-o", "exact")
    left, right = file_arrays(terminal.folder / "out" / "maps.npz", ("queries", "objects")).values()
    (W,) = file_arrays(terminal.folder / "exact" / "maps.npz", ("queries",)).values()
    return found | {"factors.left": left, "factors.right": right, "transform.W": W}


@command_line("cli-labels-factored")
def cli_factored(terminal):
    """Train on labelled vectors; evaluate and search for objects similar to a row."""
    write_vectors(terminal)
    options = ["--learner", "factored", "--n-triplets", "300", "--hold-out", "0.3", "--r", "0.5"]
    found = prefixed("train", terminal("train", "rows.csv", "-o", "model", *options))
    return found | terminal.together(
        eval=["eval", "model", "-k", "1,5"], search=["search", "model", "--like", "r7", "-k", "4"]
    )


@command_line("cli-triplets-moment")
def cli_triplets(terminal):
    """Train on triplets; evaluate on them."""
    write_vectors(terminal)
    triplets = am.triplets.from_labels(np.arange(75) % 3, 300, random_state=5)
    lines = [",".join(f"r{one}" for one in row) for row in triplets]
    terminal.write("triplets.csv", ["query,better,worse", *lines])
    options = ["--triplets", "triplets.csv", "--learner", "moment", "--hold-out", "0.3"]
    found = prefixed("train", terminal("train", "rows.csv", "-o", "model", *options))
    return found | terminal.together(eval=["eval", "model"], info=["info", "model"])


@command_line("cli-qrels")
def cli_qrels(terminal):
    """Train on relevance judgements; evaluate and search with queries of a file."""
    write_search(terminal)
    given = ["--queries", "queries.jsonl", "--qrels", "qrels.tsv"]
    options = ["--learner", "moment", "--hold-out", "0.3", "--alpha", "0.01"]
    found = prefixed("train", terminal("train", "corpus.jsonl", "-o", "model", *given, *options))
    return found | terminal.together(
        eval=["eval", "model"], search=["search", "model", "--queries", "queries.jsonl", "-k", "3"]
    )


@command_line("cli-clicks")
def cli_clicks(terminal):
    """Train on clicks; evaluate."""
    write_search(terminal)
    given = ["--queries", "queries.jsonl", "--clicks", "clicks.jsonl"]
    options = ["--learner", "oasis", "--init", "zero", "--hold-out", "0.3"]
    found = prefixed("train", terminal("train", "corpus.jsonl", "-o", "model", *given, *options))
    return found | prefixed("eval", terminal("eval", "model"))


@command_line("cli-trial")
def cli_trial(terminal):
    """Run trials on a log of judgements and on a log of clicks."""
    rng = np.random.default_rng(25)
    n, n_groups, width = 200, 8, 12
    y = np.arange(2 * n) % n_groups
    noise = rng.normal(size=(2 * n, width)) * np.exp(-np.arange(width) / 6)
    rows = rng.normal(size=(n_groups, width))[y] / np.sqrt(width) + 0.5 * noise
    np.savez(terminal.folder / "objects.npz", X=rows[:n], ids=[f"o{row}" for row in range(n)])
    np.savez(terminal.folder / "queries.npz", X=rows[n:], ids=[f"q{row}" for row in range(n)])
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    judged, clicked = [], []
    for time, query in enumerate(rng.permutation(n)[:130].tolist()):
        top = np.argsort(-(unit[:n] @ unit[n + query]), kind="stable")[:10]
        is_good = y[top] == y[n + query]
        names, about = [f"o{row}" for row in top], {"query": f"q{query}", "time": time}
        good = [one for one, yes in zip(names, is_good, strict=True) if yes]
        judged.append(about | {"good": good, "bad": [one for one in names if one not in good]})
        clicked.append(about | {"shown": names, "clicked": good[0] if good else None})
    commands = {}
    for kind, log in (("judgements", judged), ("clicks", clicked)):
        terminal.write(f"{kind}.jsonl", log)
        files = ["objects.npz", "--queries", "queries.npz", f"--{kind}", f"{kind}.jsonl"]
        commands[kind] = ["trial", *files, "-o", f"out-{kind}"]
    return terminal.together(**commands)

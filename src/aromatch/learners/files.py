"""Models as the header and the arrays of a file, and back."""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._utils.checks import check_number, n_dimensions
from ..io.sparse import as_stored, sparse_matrix, sparse_parts
from .calibration import Calibration
from .fingerprint import Fingerprint
from .registry import LEARNERS

Parts = tuple[dict[str, Any], dict[str, NDArray[Any]]]

_OBJECT_NAMES = "object_feature_names_in_", "object_feature_names_in"


def to_parts(model: Any, state: dict[str, NDArray[Any]]) -> Parts:
    """Return the header and the arrays of a fitted model."""
    arrays = {f"state.{name}": array for name, array in state.items()}
    parameters: dict[str, Any] = {}
    for name, value in model.get_params(deep=False).items():
        if sparse.issparse(value):
            arrays |= sparse_parts(f"sparse.{name}", value)
        elif name == "init" and not isinstance(value, str) and n_dimensions(value, name) > 0:
            arrays[f"parameter.{name}"] = as_stored(np.asarray(value))
        elif isinstance(value, np.random.RandomState | np.random.Generator):
            raise TypeError(
                f"{name}={value!r} cannot be saved: a generator has no place in a model file; call "
                f"set_params({name}=None) or pass an integer seed"
            )
        elif isinstance(value, type | np.dtype):
            parameters[name] = np.dtype(value).name
        elif isinstance(value, Real) and not isinstance(value, bool | np.bool_ | Integral):
            parameters[name] = check_number(value, name, allow_inf=True)
        else:
            parameters[name] = _as_header(value)
    header: dict[str, Any] = {
        "kind": "learner",
        "learner": type(model).__name__,
        "parameters": parameters,
        "n_features_in": getattr(model, "n_features_in_", None),
        "n_object_features_in": getattr(model, "n_object_features_in_", None),
        "feature_names_in": _as_texts(getattr(model, "feature_names_in_", None)),
    }
    if (names := getattr(model, "object_feature_names_in_", None)) is not None:
        header["object_feature_names_in"] = _as_texts(names)
    if "_one_space" in model.__dict__:
        header["one_space"] = model._one_space
    if (classes := getattr(model, "classes_", None)) is not None:
        header["classes"] = {"values": classes.tolist(), "dtype": classes.dtype.str}
    if (fingerprints := model.__dict__.get("_fingerprints")) is not None:
        header["fingerprints"] = [fingerprint.to_header() for fingerprint in fingerprints]
    if "_calibration" in model.__dict__:
        header["n_predictions"], predictions = model._calibration.to_parts()
        arrays |= {f"calibration.{name}": array for name, array in predictions.items()}
    return header, arrays


def _as_texts(names: Any) -> list[str] | None:
    return None if names is None else [str(name) for name in names]


def _as_header(value: Any) -> Any:
    """Return a parameter in the form of a header: JSON has neither tuples nor keys other than text."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple):
        return {"tuple": [_as_header(part) for part in value]}
    if isinstance(value, Mapping):
        return {"mapping": [[_as_header(key), _as_header(part)] for key, part in value.items()]}
    return value


def _from_header(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"tuple"}:
            return tuple(_from_header(part) for part in value["tuple"])
        if set(value) == {"mapping"}:
            return {_from_header(key): _from_header(part) for key, part in value["mapping"]}
    return value


def from_parts(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Any:
    """Build a model; raise a ValueError that names what does not fit."""
    name = header["learner"]
    if name not in LEARNERS:
        raise ValueError(f"its learner is {name!r}, expected one of {', '.join(LEARNERS)}")
    learner = LEARNERS[name].cls
    parameters = {name: _from_header(value) for name, value in header["parameters"].items()}
    state: dict[str, NDArray[Any]] = {}
    predictions: dict[str, NDArray[Any]] = {}
    matrices: dict[str, dict[str, NDArray[Any]]] = {}
    for key, array in arrays.items():
        kind, _, short = key.partition(".")
        if kind == "sparse":
            parameter, _, part = short.partition(".")
            matrices.setdefault(parameter, {})[part] = array
        elif kind in (arrays_of := {"state": state, "parameter": parameters, "calibration": predictions}):
            arrays_of[kind][short] = array
        else:
            raise ValueError(f"it has an unknown array {key!r}")
    for parameter, parts in matrices.items():
        parameters[parameter] = sparse_matrix(parameter, **parts)
    expected = learner._get_param_names()
    if sorted(parameters) != sorted(expected):
        raise ValueError(f"its parameters are {sorted(parameters)}, expected {sorted(expected)}")
    model = learner(**parameters)
    m, n = header["n_features_in"], header["n_object_features_in"]
    if getattr(learner, "_is_stateless", False) and m is None and n is None:
        model._check_state(state, 0, 0)
        return model
    if not all(isinstance(width, int) and width > 0 for width in ((m,) if "classes" in header else (m, n))):
        raise ValueError(f"its numbers of features are {m!r} and {n!r}")
    if getattr(learner, "_is_stateless", False) and m != n:
        raise ValueError(f"its numbers of features are {m} and {n}, expected as many")
    model._check_state(state, m, n)
    model._state = model._from_file(state, n)
    model.n_features_in_ = m
    if n is not None:
        model.n_object_features_in_ = n
    if "fingerprints" in header:
        model.set_fingerprint(*map(Fingerprint.from_header, header["fingerprints"]))
    if predictions or "n_predictions" in header:
        model._calibration = Calibration.from_parts(header["n_predictions"], predictions)
    for name, key, width in (("feature_names_in_", "feature_names_in", m), (*_OBJECT_NAMES, n)):
        if (names := header.get(key)) is not None:
            if not isinstance(names, list) or len(names) != width:
                raise ValueError(f"its {key} are not {width} names")
            setattr(model, name, np.array([str(one) for one in names], dtype=object))
    if "one_space" in header:
        model._one_space = bool(header["one_space"])
    if "classes" in header:
        classes = np.array(header["classes"]["values"], dtype=header["classes"]["dtype"])
        if classes.shape != (2,) or not classes[0] < classes[1]:
            raise ValueError(f"its classes are {header['classes']['values']!r:.100}, expected two in ascending order")
        model.classes_ = classes
    return model

"""A model taken apart into the header and arrays of a file, and put together again."""

import warnings
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._utils.rows import check_structure
from .calibration import Calibration
from .fingerprint import Fingerprint
from .registry import LEARNERS

Parts = tuple[dict[str, Any], dict[str, NDArray[Any]]]


def to_parts(model: Any, state: dict[str, NDArray[Any]]) -> Parts:
    """Give the header and the arrays that hold everything about a fitted model."""
    arrays = {f"state.{name}": array for name, array in state.items()}
    parameters: dict[str, Any] = {}
    for name, value in model.get_params(deep=False).items():
        if sparse.issparse(value):
            arrays |= sparse_parts(f"sparse.{name}", value)
        elif name == "init" and not isinstance(value, str) and np.ndim(value) > 0:
            arrays[f"parameter.{name}"] = _as_stored(np.asarray(value))
        elif isinstance(value, np.random.RandomState | np.random.Generator):
            warnings.warn(f"{name} is an object and is not stored: it loads as None", stacklevel=3)
            parameters[name] = None
        elif isinstance(value, type | np.dtype):
            parameters[name] = np.dtype(value).name
        elif isinstance(value, Real) and not isinstance(value, bool | np.bool_ | Integral):
            parameters[name] = float(value)
        else:
            parameters[name] = _as_header(value)
    names = getattr(model, "feature_names_in_", None)
    header = {
        "kind": "learner",
        "learner": type(model).__name__,
        "parameters": parameters,
        "n_features_in": getattr(model, "n_features_in_", None),
        "n_object_features_in": getattr(model, "n_object_features_in_", None),
        "feature_names_in": None if names is None else [str(name) for name in names],
    }
    if model.fingerprints_ is not None:
        header["fingerprints"] = [fingerprint.to_header() for fingerprint in model.fingerprints_]
    if "_calibration" in model.__dict__:
        header["n_predictions"], predictions = model._calibration.to_parts()
        arrays |= {f"calibration.{name}": array for name, array in predictions.items()}
    return header, arrays


def sparse_parts(name: str, matrix: Any) -> dict[str, NDArray[Any]]:
    """Give the arrays of a sparse matrix, which `sparse_matrix` puts together again."""
    rows = sparse.csr_array(matrix)
    parts = {part: np.array(getattr(rows, part), dtype=np.int64) for part in ("indices", "indptr", "shape")}
    return {f"{name}.data": _as_stored(rows.data)} | {f"{name}.{part}": array for part, array in parts.items()}


def _as_header(value: Any) -> Any:
    """Give a parameter in the form that a header has, which knows neither tuples nor keys other than text."""
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


def _as_stored(array: NDArray[Any]) -> NDArray[Any]:
    return array if array.dtype == np.float32 else array.astype(np.float64)


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
            raise ValueError(f"it has an array {key!r} that no learner knows")
    for parameter, parts in matrices.items():
        parameters[parameter] = sparse_matrix(parameter, **parts)
    expected = learner._get_param_names()
    if sorted(parameters) != sorted(expected):
        raise ValueError(f"its parameters are {sorted(parameters)}, expected {sorted(expected)}")
    model = learner(**parameters)
    m, n = header["n_features_in"], header["n_object_features_in"]
    if model._is_stateless and m is None and n is None:
        model._check_state(state, 0, 0)
        return model
    if not all(isinstance(width, int) and width > 0 for width in (m, n)):
        raise ValueError(f"its numbers of features are {m!r} and {n!r}")
    model._check_state(state, m, n)
    model._state = model._from_file(state, n)
    model.n_features_in_, model.n_object_features_in_ = m, n
    if "fingerprints" in header:
        model.set_fingerprint(*map(Fingerprint.from_header, header["fingerprints"]))
    if predictions or "n_predictions" in header:
        model._calibration = Calibration.from_parts(header["n_predictions"], predictions)
    names = header["feature_names_in"]
    if names is not None:
        if not isinstance(names, list) or len(names) != m:
            raise ValueError(f"its feature names are not {m} names")
        model.feature_names_in_ = np.array([str(name) for name in names], dtype=object)
    return model


def sparse_matrix(
    name: str, data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: NDArray[Any]
) -> Any:
    """Put a sparse matrix together; what a file says of it is not believed."""
    size = tuple(shape.tolist())
    if len(size) != 2 or any(array.ndim != 1 for array in (data, indices, indptr)) or len(indptr) != size[0] + 1:
        raise ValueError(f"its {name} is not a sparse matrix")
    matrix = sparse.csr_array(size, dtype=data.dtype)
    matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
    check_structure(matrix, name)
    return matrix

"""AROW: adaptive regularisation of weights, for binary labels (paper, section 3; Crammer et al. 2009).

A Gaussian ``N(w, Sigma)`` over weight vectors. With labels y of +1 and -1 and ``v = x'Sigma x``, a row whose
margin ``y x'w`` is under 1 gives::

    w     += (1 - y x'w) / (v + r) * Sigma y x       (4)
    Sigma -= Sigma x x'Sigma / (v + r)

With ``covariance="diagonal"`` only the diagonal of Sigma is kept (section 4.1).
"""

from __future__ import annotations

from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ..._utils import checks
from ..._utils.checks import check_dtype
from ..._utils.chunks import timed_chunks
from ..._utils.rows import MatrixLike, read_all
from ..._utils.sharing import Shared, drafts, reads
from ...exceptions import NumericalError
from ...io.container import write_model
from ...kernels.full import learn_labels
from ..files import to_parts
from ..inputs import (
    LARGEST,
    LARGEST_SCALE_OF_A_COVARIANCE,
    check_class_labels,
    check_finite,
    check_labelled_rows,
    check_rows,
)
from ..invariants import check_covariance, check_size, check_variances


class AROW(Shared, ClassifierMixin, BaseEstimator):
    """Binary linear classifier, learned online, with a covariance of its weights.

    AROMA is its extension to matrices. There is no intercept: add a constant feature if the classes are not separated
    through the origin. `fit` makes one pass over the rows in order.

    Parameters
    ----------
    r : float, default 1.0
        Noise variance; larger values learn more slowly. Raise it for noisy labels.
    covariance : {"full", "diagonal"}, default "full"
        The full covariance has n_features^2 entries, the diagonal one n_features.
    dtype : {"float64", "float32"}, default "float64"
        Precision of the weights and their covariance.

    Attributes
    ----------
    coef_ : array of shape (1, n_features)
        The mean weights; positive means ``classes_[1]``.
    Sigma_ : array of shape (n_features, n_features), or (n_features,) if diagonal
        The covariance of the weights, or their variances.
    classes_ : array of shape (2,)

    References
    ----------
    Crammer, Kulesza and Dredze, Adaptive regularization of weight vectors, NIPS 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from aromatch import AROW
    >>> X = np.array([[1.0, 0.2], [0.9, -0.1], [-1.1, 0.1], [-0.8, -0.3]])
    >>> model = AROW(r=0.1).fit(X, ["yes", "yes", "no", "no"])
    >>> model.predict([[0.5, 0.0], [-0.5, 0.0]])
    array(['yes', 'no'], dtype='<U3')
    """

    def __init__(self, r: float = 1.0, *, covariance: str = "full", dtype: Any = "float64") -> None:
        self.r = r
        self.covariance = covariance
        self.dtype = dtype

    @drafts
    def fit(self, X: MatrixLike, y: ArrayLike) -> Self:
        """Start from zero weights and learn the rows of X in order."""
        return self._learn(X, y, None, starts=True)

    @drafts
    def partial_fit(self, X: MatrixLike, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Continue learning; `classes` lists both labels at the first call if y may hold only one."""
        return self._learn(X, y, classes, starts=not hasattr(self, "_state"))

    @reads
    def decision_function(self, X: MatrixLike) -> NDArray[Any]:
        """Return the margin of each row; positive means ``classes_[1]``."""
        check_is_fitted(self)
        X = check_rows(self, X)
        w = self._state["w"]
        if (square := read_all(X, "X").largest_square) > LARGEST[w.dtype]:
            raise ValueError(f"X has a row with |x|^2 = {square:.1e}, too large for a model in {w.dtype}")
        with np.errstate(over="ignore", invalid="ignore"):  # refused
            return check_finite(np.asarray(X.astype(w.dtype, copy=False) @ w), "the margins")

    @reads
    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """Return the label of each row."""
        margins = self.decision_function(X)
        return np.asarray(self.classes_[(margins > 0).astype(int)])

    @reads
    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy of `predict`, weighted by `sample_weight` if it is given."""
        labels = checks.check_labels(y, "y")
        check_class_labels(labels, "y")
        weights = checks.check_weights(sample_weight, len(labels))
        if weights is not None and not weights.any():
            raise ValueError("sample_weight must have a weight above 0, got zeros only")
        return float(super().score(X, labels, weights))

    @reads
    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a file for `aromatch.load`; learning resumes with a bit-identical result."""
        check_is_fitted(self)
        self._check_state(self._state, self.n_features_in_, None)
        write_model(path, *to_parts(self, self._state))

    @property
    @reads
    def coef_(self) -> NDArray[Any]:
        """The mean weights, of shape (1, n_features): a copy."""
        check_is_fitted(self)
        return self._state["w"].reshape(1, -1).copy()

    @property
    @reads
    def Sigma_(self) -> NDArray[Any]:
        """The covariance of the weights, or their variances if it is diagonal: a copy."""
        check_is_fitted(self)
        return self._state["Sigma"].copy()

    def _learn(self, X: Any, y: Any, classes: Any, *, starts: bool) -> Self:
        r, dtype = self._check_params()
        X, y = check_labelled_rows(self, X, y, reset=starts)
        if starts:
            self.classes_ = _two_classes(y, "y") if classes is None else _two_classes(classes, "classes")
            self._state = self._first_state(X.shape[1], dtype)
        elif classes is not None and not np.array_equal(_two_classes(classes, "classes"), self.classes_):
            raise ValueError(f"classes must stay {self.classes_.tolist()}, got {np.unique(classes).tolist()}")
        self._check_layout(self._state, X.shape[1])
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"y has labels {unknown.tolist()} that are not in classes {self.classes_.tolist()}")
        signs = np.where(y == self.classes_[1], 1.0, -1.0)
        view, _, square = read_all(X, "X")
        is_diagonal = self.covariance == "diagonal"
        limit = (LARGEST if is_diagonal else LARGEST_SCALE_OF_A_COVARIANCE)[dtype]
        if square / r > limit:
            raise ValueError(
                f"X has a row with |x|^2 / r = {square / r:.1e}, expected at most {limit:.0e} in {dtype}; scale "
                "the rows down or raise r"
            )
        if not starts:  # others may be reading it
            self._state = {name: array.copy() for name, array in self._state.items()}
        w, Sigma = self._state["w"], self._state["Sigma"]
        for chunk in timed_chunks(len(signs)):
            learned = learn_labels(view, chunk.start, signs[chunk], w, Sigma.reshape(-1, len(w)), is_diagonal, r)
            if learned < len(signs[chunk]):
                at = chunk.start + learned
                raise NumericalError(
                    f"row {at}: rounding has used up the covariance; the model is unchanged; use a larger r"
                )
        check_size(w, "w")
        self._state = {"w": w, "Sigma": Sigma}
        return self

    def _check_params(self) -> tuple[float, np.dtype[Any]]:
        checks.check_choice(self.covariance, "covariance", ("full", "diagonal"))
        return checks.check_number(self.r, "r", above=0), check_dtype(self.dtype)

    def _first_state(self, width: int, dtype: np.dtype[Any]) -> dict[str, NDArray[Any]]:
        shape = self._shape(width)
        n_bytes = int(np.prod(shape, dtype=object)) * dtype.itemsize
        checks.check_fits_in_memory(n_bytes, f"The covariance of AROW for {width} features")
        Sigma = np.ones(shape, dtype=dtype) if self.covariance == "diagonal" else np.eye(width, dtype=dtype)
        return {"w": np.zeros(width, dtype=dtype), "Sigma": Sigma}

    def _shape(self, width: int) -> tuple[int, ...]:
        return (width,) if self.covariance == "diagonal" else (width, width)

    def _check_state(self, state: dict[str, NDArray[Any]], m: int, n: int | None) -> None:
        """Check the arrays of a file."""
        self._check_layout(state, m)
        check_size(state["w"], "w")
        if self.covariance == "diagonal":
            check_variances(state["Sigma"], "Sigma")
        else:
            check_covariance(state["Sigma"], "Sigma")

    def _check_layout(self, state: dict[str, NDArray[Any]], m: int) -> None:
        """Check that shapes and precision of the arrays fit the parameters."""
        dtype = self._check_params()[1]
        expected = {"w": ((m,), dtype), "Sigma": (self._shape(m), dtype)}
        found = {name: (array.shape, array.dtype) for name, array in state.items()}
        if found != expected:
            raise ValueError(f"covariance and dtype must stay as fitted: the arrays are {found}, expected {expected}")

    def _from_file(self, state: dict[str, NDArray[Any]], n: int | None) -> dict[str, NDArray[Any]]:
        return state

    @drafts
    def set_params(self, **params: Any) -> Self:
        """Set parameters by name: all of them, or none if a name is invalid."""
        super().set_params(**params)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_state")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags


def _two_classes(labels: ArrayLike, name: str) -> NDArray[Any]:
    given = checks.check_labels(labels, name)
    check_class_labels(given, name)
    classes = np.unique(given)
    if len(classes) > 2:
        raise ValueError("Only binary classification is supported. The type of the target is multiclass.")
    if len(classes) < 2:
        raise ValueError(f"AROW needs two classes, got one class only: {classes.tolist()}")
    return classes

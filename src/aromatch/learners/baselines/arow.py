"""AROW: adaptive regularisation of weights, for binary labels (paper, section 3; Crammer et al. 2009).

A Gaussian ``N(w, Sigma)`` over weight vectors. With labels y of +1 and -1 and ``v = x'Sigma x``, a row whose
margin ``y x'w`` is under 1 gives::

    w     += (1 - y x'w) / (v + r) * Sigma y x       (4)
    Sigma -= Sigma x x'Sigma / (v + r)

With ``covariance="diagonal"`` only the diagonal of Sigma is kept (section 4.1).
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ..._utils import checks
from ..._utils.chunks import timed_chunks
from ..._utils.rows import MatrixLike, check_structure, read_all
from ...exceptions import NumericalError
from ...kernels.full import learn_labels
from ..inputs import LARGEST, LARGEST_SCALE_OF_A_COVARIANCE, check_dtype


class AROW(ClassifierMixin, BaseEstimator):
    """Binary linear classifier that learns one row at a time and keeps a covariance of its weights.

    The vector algorithm that AROMA lifts to matrices. There is no intercept: add a constant feature if the
    classes are not separated through the origin. `fit` makes one pass over the rows in their order.

    Parameters
    ----------
    r : float, default 1.0
        How much a single label is doubted. Raise it when labels are noisy.
    covariance : {"full", "diagonal"}, default "full"
        Full keeps correlations between features in n_features^2 numbers; diagonal keeps one for each feature.
    dtype : {"float64", "float32"}, default "float64"
        Precision of the weights and their covariance.

    Attributes
    ----------
    coef_ : array of shape (1, n_features)
        The mean weights; positive speaks for ``classes_[1]``.
    Sigma_ : array of shape (n_features, n_features), or (n_features,) when diagonal
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

    def fit(self, X: MatrixLike, y: ArrayLike) -> Self:
        """Start anew and learn the rows of X in their order."""
        return self._learn(X, y, None, starts=True)

    def partial_fit(self, X: MatrixLike, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Go on learning; `classes` names both labels at the first call when y may hold only one."""
        return self._learn(X, y, classes, starts=not hasattr(self, "_w"))

    def decision_function(self, X: MatrixLike) -> NDArray[Any]:
        """Give the margin of each row; positive speaks for ``classes_[1]``."""
        check_is_fitted(self)
        check_structure(X, "X")
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        if (square := read_all(X, "X").largest_square) > LARGEST[self._w.dtype]:
            raise ValueError(f"a row of X has |x|^2 = {square:.1e}, too large for a model in {self._w.dtype}")
        return np.asarray(X.astype(self._w.dtype, copy=False) @ self._w)

    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """Give the label of each row."""
        margins = self.decision_function(X)
        return np.asarray(self.classes_[(margins > 0).astype(int)])

    @property
    def coef_(self) -> NDArray[Any]:
        """The mean weights, of shape (1, n_features): a copy."""
        check_is_fitted(self)
        return self._w.reshape(1, -1).copy()

    @property
    def Sigma_(self) -> NDArray[Any]:
        """The covariance of the weights, or their variances when it is diagonal: a copy."""
        check_is_fitted(self)
        return self._Sigma[0].copy() if self._is_diagonal else self._Sigma.copy()

    def _learn(self, X: Any, y: Any, classes: Any, *, starts: bool) -> Self:
        r = checks.check_number(self.r, "r", above=0)
        is_diagonal = checks.check_choice(self.covariance, "covariance", ("full", "diagonal")) == "diagonal"
        dtype = check_dtype(self.dtype)
        before, has_begun = dict(self.__dict__), False
        try:
            check_structure(X, "X")
            X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], reset=starts)
            if starts:
                self.classes_ = _two_classes(y if classes is None else classes)
                self._begin(X.shape[1], dtype, is_diagonal)
            elif classes is not None and not np.array_equal(_two_classes(classes), self.classes_):
                raise ValueError(f"classes must stay {self.classes_.tolist()}, got {np.unique(classes).tolist()}")
            elif (is_diagonal, dtype) != (self._is_diagonal, self._w.dtype):
                raise ValueError("covariance and dtype must stay as they are while the model goes on learning")
            unknown = np.setdiff1d(y, self.classes_)
            if len(unknown):
                raise ValueError(f"y has labels {unknown.tolist()} that are not in classes {self.classes_.tolist()}")
            signs = np.where(y == self.classes_[1], 1.0, -1.0)
            view, _, square = read_all(X, "X")
            limit = (LARGEST if is_diagonal else LARGEST_SCALE_OF_A_COVARIANCE)[dtype]
            if square / r > limit:
                raise ValueError(
                    f"X has a row with |x|^2 / r = {square / r:.1e}, over {limit:.0e}, the most that AROW carries in "
                    f"{dtype}; scale the rows down or raise r"
                )
            has_begun = True
            for piece in timed_chunks(len(signs)):
                learned = learn_labels(view, piece.start, signs[piece], self._w, self._Sigma, is_diagonal, r)
                if learned < len(signs[piece]):
                    at = piece.start + learned
                    raise NumericalError(f"row {at}: rounding has used up the covariance; larger r avoids this")
        except BaseException as error:
            if isinstance(error, Exception) or not has_begun:
                self.__dict__.clear()
                self.__dict__.update(before)
            raise
        return self

    def _begin(self, width: int, dtype: np.dtype[Any], is_diagonal: bool) -> None:
        cells = width * (1 if is_diagonal else width)
        checks.check_fits_in_memory(cells * dtype.itemsize, f"The covariance of AROW for {width} features")
        self._w = np.zeros(width, dtype=dtype)
        self._Sigma = np.ones((1, width), dtype=dtype) if is_diagonal else np.eye(width, dtype=dtype)
        self._is_diagonal = is_diagonal

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_w")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags


def _two_classes(labels: ArrayLike) -> NDArray[Any]:
    check_classification_targets(labels)
    classes = np.unique(np.asarray(labels))
    if len(classes) > 2:
        raise ValueError("Only binary classification is supported. The type of the target is multiclass.")
    if len(classes) < 2:
        raise ValueError(f"AROW needs two classes, got one class only: {classes.tolist()}")
    return classes

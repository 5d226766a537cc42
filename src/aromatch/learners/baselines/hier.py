"""HIER: class probabilities compared through a hierarchy of the classes (Deng, Berg and Fei-Fei 2011).

A classifier is trained on the labels and returns the class probabilities ``pi(x)`` of a row x. The similarity of two
classes is derived from a given hierarchy: with the lowest common ancestor ``a`` of the classes i and j, its height
``h(a)`` (the length of the longest path from it to a class) and the height ``h*`` of the root::

    S_ij = 1 - h(a) / h*
    similarity(q, p) = pi(q)' S pi(p)

This is the expected similarity of the two classes. A class has height 0, so the diagonal of S is 1. Without a hierarchy
all classes are children of the root, S is the identity, and the similarity is the probability that both rows have the
same class.

Departure: the paper trains one binary classifier with Platt's calibration per class. Here it is one multinomial
logistic regression of scikit-learn, whose objective is the likelihood of the probabilities.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from ..._utils import checks
from ..._utils.indices import read_both
from ..._utils.rows import Matrix, MatrixLike, as_float64
from ..._utils.sharing import drafts, reads
from ...triplets import LabelSampler
from ..base import Similarity
from ..inputs import FLOAT64, LARGEST, product
from ..invariants import check_integers, check_map

Path = tuple[Hashable, ...]

# The penalty is 1 / C times a square, which must not overflow.
_SMALLEST_C = 1e-100


class HIER(Similarity):
    """Expected similarity of the classes of two rows, from class probabilities; learns from labels, not triplets.

    Parameters
    ----------
    C : float, default 1.0
        Inverse regularization strength of the logistic regression. Raise it for many rows.
    hierarchy : mapping of class to path, optional
        The ancestors of every class from below the root down to its parent, as a tuple; classes with a longer
        common beginning are more alike. None means flat: only the same class is alike. `hierarchy_from_dots`
        makes one from names such as "rec.sport.hockey".
    max_iter : int, default 1000
        Largest number of iterations of the logistic regression.

    Attributes
    ----------
    S_ : array of shape (n_classes, n_classes)
        Similarity of the classes, in the order of the sorted labels.
    coef_, intercept_ : arrays of shape (n_classes, m) and (n_classes,)
        The logistic regression: probabilities are the softmax of ``X @ coef_.T + intercept_``.
    n_iter_ : int
        Number of iterations.

    References
    ----------
    Deng, Berg and Fei-Fei, Hierarchical semantic indexing for large scale image retrieval, CVPR 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from aromatch import HIER
    >>> from aromatch.learners import hierarchy_from_dots
    >>> groups = ["rec.autos", "rec.motorcycles", "sci.space"] * 2
    >>> X = np.vstack([np.eye(3), np.eye(3)])
    >>> model = HIER(C=100.0, hierarchy=hierarchy_from_dots(groups)).fit(X, groups)
    >>> model.S_
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0. ],
           [0. , 0. , 1. ]])
    >>> model.similarity(X[:1], X[:3]).round(2)
    array([[0.98, 0.5 , 0.02]])
    """

    def __init__(self, C: float = 1.0, *, hierarchy: Any = None, max_iter: int = 1000) -> None:
        self.C = C
        self.hierarchy = hierarchy
        self.max_iter = max_iter

    @drafts
    def fit(self, X: MatrixLike, y: ArrayLike) -> Self:
        """Train the classifier and compute the similarity of its classes."""
        self._check_params()
        X, y = self._check_labelled(X, y)
        LabelSampler(y)  # raises if no row has another one of its label and one of another label
        classes = np.unique(y)
        paths = {} if self.hierarchy is None else check_hierarchy(self.hierarchy)
        S = class_similarity(classes.tolist(), paths)
        classifier = LogisticRegression(C=float(self.C), max_iter=int(self.max_iter)).fit(X, y)
        coef, intercept = classifier.coef_, classifier.intercept_
        if len(classes) == 2:  # scikit-learn keeps one row, for the difference of the two
            coef, intercept = np.vstack([-coef, coef]) / 2, np.concatenate([-intercept, intercept]) / 2
        n_iter = np.array([classifier.n_iter_.max()], dtype=np.int64)
        coef = np.ascontiguousarray(coef)
        self._replace_state({"coef": coef, "intercept": intercept, "S": S, "n_iter": n_iter})
        return self

    @reads
    def transform(self, Q: MatrixLike) -> NDArray[Any]:
        """Return the class probabilities of every query, classes in the order of the sorted labels."""
        return np.asarray(super().transform(Q))

    @property
    @reads
    def S_(self) -> NDArray[Any]:
        """Similarity of the classes: a copy."""
        return self._array("S")

    @property
    @reads
    def coef_(self) -> NDArray[Any]:
        """Weights of the logistic regression: a copy."""
        return self._array("coef")

    @property
    @reads
    def intercept_(self) -> NDArray[Any]:
        """Intercepts of the logistic regression: a copy."""
        return self._array("intercept")

    @property
    @reads
    def n_iter_(self) -> int:
        """Number of iterations of the logistic regression."""
        return int(self._array("n_iter")[0])

    def _array(self, name: str) -> NDArray[Any]:
        check_is_fitted(self)
        return self._state[name].copy()

    @property
    def _n_features_out(self) -> int:
        return len(self._state["S"])

    def _shapes_in_file(self, state: dict[str, NDArray[Any]], m: int, n: int) -> dict[str, tuple[int, ...]]:
        c = state["S"].shape[0] if "S" in state and state["S"].ndim else 0
        return {"coef": (c, m), "intercept": (c,), "S": (c, c), "n_iter": (1,)}

    def _check_state(self, state: dict[str, NDArray[Any]], m: int, n: int) -> None:
        super()._check_state(state, m, n)
        self._check_params()
        if m != n:
            raise ValueError(f"the model has {m} features of queries and {n} of objects, expected as many")
        self._check_values(state)

    def _check_values(self, state: dict[str, NDArray[Any]]) -> None:
        for name in ("coef", "intercept"):
            check_map(state[name], name)
        check_integers(state["n_iter"], "n_iter")
        S = state["S"]
        is_valid = S.dtype == FLOAT64 and ((S >= 0) & (S <= 1)).all() and (np.diagonal(S) == 1).all()
        if not is_valid or not np.array_equal(S, S.T):
            raise ValueError("S of the model must be a symmetric matrix of similarities from 0 to 1, 1 on its diagonal")

    def _check_params(self) -> None:
        checks.check_number(self.C, "C", at_least=_SMALLEST_C)
        checks.check_integer(self.max_iter, "max_iter", at_least=1)
        if self.hierarchy is not None:
            check_hierarchy(self.hierarchy)

    def _check_square(self, square: float) -> None:
        coef = self._state["coef"]
        if square * max(1.0, float(np.vdot(coef, coef))) > LARGEST[FLOAT64]:
            raise ValueError(f"a row has |x|^2 = {square:.1e}, too large for a model in float64")

    def _map_queries(self, Q: Matrix) -> NDArray[Any]:
        return self._probabilities(Q)

    def _map_objects(self, P: Matrix) -> NDArray[Any]:
        return np.asarray(self._probabilities(P) @ self._state["S"])

    def _probabilities(self, X: Matrix) -> NDArray[Any]:
        scores = product(X, self._state["coef"].T) + self._state["intercept"]
        return np.asarray(softmax(scores, axis=1))

    def _scores(self, Q: Matrix, P: Matrix) -> NDArray[Any]:
        left = self._probabilities(as_float64(Q, "Q"))
        right = left if P is Q else self._probabilities(as_float64(P, "P"))
        return np.asarray(left @ self._state["S"] @ right.T)

    def _pair_scores(self, Q: Matrix, P: Matrix, numbers: NDArray[np.int64]) -> NDArray[Any]:
        rows = read_both(Q, P, numbers)
        self._check_square(max(rows.query_square, rows.object_square))
        used, inverse = np.unique(numbers[:, 0], return_inverse=True)
        mapped = (self._probabilities(as_float64(Q[used], "Q")) @ self._state["S"])[inverse]
        scores = []
        for column in numbers.T[1:]:
            used, inverse = np.unique(column, return_inverse=True)
            scores.append(np.einsum("ij,ij->i", mapped, self._probabilities(as_float64(P[used], "P"))[inverse]))
        return np.asarray(scores[0] if len(scores) == 1 else scores[0] - scores[1])


def hierarchy_from_dots(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the hierarchy of names with dots, such as those of newsgroups.

    Parameters
    ----------
    names : iterable of str
        The names of the classes, or a label for every row.

    Returns
    -------
    dict of str to tuple of str
        The parts of every name before the last.

    Examples
    --------
    >>> from aromatch.learners import hierarchy_from_dots
    >>> hierarchy_from_dots(["rec.sport.hockey", "sci.space"])
    {'rec.sport.hockey': ('rec', 'sport'), 'sci.space': ('sci',)}
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise TypeError(f"names must be a sequence of texts, got {type(names).__name__}")
    found = {}
    for name in checks.check_not_sparse(names, "names"):
        if not isinstance(name, str):
            raise TypeError(f"names must be texts, got {name!r} ({type(name).__name__})")
        found[str(name)] = tuple(name.split(".")[:-1])
    return found


def check_hierarchy(hierarchy: Any) -> dict[Hashable, Path]:
    """Return the path of every class as a tuple."""
    if not isinstance(hierarchy, Mapping):
        raise TypeError(f"hierarchy must be None or a mapping of class to path, got {type(hierarchy).__name__}")
    for name, path in hierarchy.items():
        if not isinstance(path, Sequence) or isinstance(path, str):
            raise TypeError(f"hierarchy must give each class a tuple of its ancestors, got {path!r} for {name!r}")
    return {name: tuple(path) for name, path in hierarchy.items()}


def class_similarity(classes: Sequence[Hashable], paths: Mapping[Hashable, Path]) -> NDArray[np.float64]:
    """Return ``1 - h(a) / h*`` for each two classes, with `a` their lowest common ancestor; flat without paths.

    Heights are those of the whole hierarchy, also where it has classes that are not among these.
    """
    if not paths:
        return np.eye(len(classes))
    missing = [name for name in classes if name not in paths]
    if missing:
        raise ValueError(f"hierarchy must have a path for every class, but {missing[:5]} of y are not in it")
    heights: dict[Path, int] = {}
    for path in paths.values():
        for depth in range(len(path) + 1):  # a node is the way to it; the class itself is one below its path
            heights[path[:depth]] = max(heights.get(path[:depth], 0), len(path) + 1 - depth)
    S = np.eye(len(classes))
    for i, one in enumerate(classes):
        for j, other in enumerate(classes[:i]):
            S[i, j] = S[j, i] = 1 - heights[_common(paths[one], paths[other])] / heights[()]
    return S


def _common(one: Path, other: Path) -> Path:
    """Return the common prefix of two paths."""
    depth = 0
    while depth < min(len(one), len(other)) and one[depth] == other[depth]:
        depth += 1
    return one[:depth]

"""A learned W made symmetric, positive or of low rank, so that it compares rows in a space of their own.

The paper leaves W free: ``q'Wp`` need not be ``p'Wq``, and no distance belongs to it. Where queries and objects are of
one kind and have the same features, its section 2 names the other reading: the metric ``(q - p)'W(q - p)``, which
ranks alike when all rows have the same W-norm, ``x'Wx``. That takes a W that is symmetric and positive semi-definite.
Such a W has a factor L with ``W = L L'``; the score is the inner product of ``L'q`` and ``L'p``, the metric their
squared distance, and tools for vectors apply to them: nearest neighbours, clusters, maps. `normalize` gives all rows
the same W-norm, so that score and metric do rank alike.

With ``S = (W + W') / 2`` and its eigenvalues ``d_i`` and eigenvectors ``u_i``::

    "symmetric":  sum_i d_i u_i u_i'              over the `rank` eigenvalues largest in size
    "psd":        sum_i max(d_i, 0) u_i u_i'      over the `rank` largest eigenvalues

S is the symmetric matrix nearest to W, its positive part the nearest positive semi-definite one (Higham 1988), and cut
to a rank each is the nearest of that rank (Eckart and Young 1936), all in the Frobenius norm. Directions that few
judgements speak of have small eigenvalues, so a cut often ranks better than the whole.

With `normalize` the score is the cosine of ``L'q`` and ``L'p``. An inner product puts rows that are typical of their
kind first, since L maps them far out; a cosine treats all rows alike. A number between 0 and 1 is a way between: rows
are divided by that power of their norm. A row that L maps to zero has the score 0 with all.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, sparse
from scipy.sparse.linalg import eigsh
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from ..._utils import checks
from ..._utils.rows import Matrix, MatrixLike
from ..base import Similarity
from ..contributions import Contributions, nonzero_values
from ..inputs import FLOAT64, LARGEST, check_triplets, product, read_both, read_triplets
from ..moment.triplet_graph import Graph
from .refinement import LOWEST_TEMPERATURE, refined

Array = NDArray[np.float64]
Number = TypeVar("Number", int, float)

_PAIRS_AT_ONCE = 2**12
_NUMBERS_AT_ONCE = 2**20


class Projection(Similarity):
    """A symmetric similarity; `project` of a learner gives it, or `spectral_projection`.

    Parameters
    ----------
    kind : {"psd", "symmetric"}
        Which part of W it has.
    normalize : bool or float
        Whether scores are cosines, or the power of its norm that a row is divided by.

    Attributes
    ----------
    W_ : array of shape (m, m)
        The projected matrix, ``L_ @ diag(signs_) @ L_.T``.
    L_ : array of shape (m, rank)
        Eigenvectors, each times the root of the size of its eigenvalue, largest first.
    signs_ : array of shape (rank,)
        Signs of the eigenvalues; all 1 for "psd".
    """

    _needs_labels = False
    # The same from rows that the learner has not held out, where it has: to choose by, and not in files.
    _L_of_known: Array | None = None
    # What its learner found in the graph of its last triplets, where it looked: not in files or copies.
    _graph: Graph | None = None

    def __init__(self, kind: str = "psd", *, normalize: bool | float = False) -> None:
        self.kind = kind
        self.normalize = normalize

    @property
    def W_(self) -> Array:
        """The projected matrix: a copy."""
        return (self.L_ * self.signs_) @ self.L_.T

    @property
    def L_(self) -> Array:
        """Eigenvectors times the roots of their eigenvalues: a copy."""
        self._check_is_fitted()
        return self._state["L"].copy()

    @property
    def signs_(self) -> Array:
        """Signs of the eigenvalues: a copy."""
        self._check_is_fitted()
        return self._state["signs"].copy()

    def transform(self, Q: MatrixLike) -> Array:
        """Return ``Q @ L_``, each row divided by its norm, or a power of it, when normalised.

        For "psd" the inner products of these rows are the similarity (cosines when normalised), so queries and objects
        are treated alike, and anything that works with vectors can take them. For "symmetric" a coordinate with the
        sign -1 counts against.
        """
        return np.asarray(super().transform(Q))

    def explain_pair(self, q: MatrixLike, p: MatrixLike) -> Contributions:
        """Return the contribution of every pair of non-zero features to the score of q and p."""
        (i, left), (j, right) = (nonzero_values(row) for row in self._check_both(q, p))
        L, power = self.L_, float(self.normalize)
        norms = np.array([np.linalg.norm(left @ L[i]), np.linalg.norm(right @ L[j])]) ** power
        scale = 1 / float(np.prod(norms)) if norms.all() else 0.0
        cells = np.asarray((L[i] * self.signs_) @ L[j].T * scale)
        return Contributions(i, j, cells * np.outer(left, right), None)

    def refine(
        self,
        triplets: ArrayLike,
        Q: MatrixLike,
        P: MatrixLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        temperature: float | str = "auto",
        n_steps: int | str = "auto",
        random_state: Any = 0,
        verbose: bool = False,
    ) -> Projection:
        """Give a projection that ranks better, from triplets such as those that the model has learned.

        What is improved are cosines, whatever power of the norms the score has; `refinement` says how. It does
        most where triplets name the same rows again and again, so that they tell which rows belong together that nobody
        compared.

        Parameters
        ----------
        triplets, Q, P, sample_weight : as in `fit_triplets`
        temperature : float or "auto", default "auto"
            How far down a ranking counts: the smaller, the more the first places. At least 0.03.
        n_steps : int or "auto", default "auto"
            Steps to take, a few hundred at most.

            What is "auto" is chosen among temperatures of 0.1 and 0.2, and up to 400 steps, by rows that were held
            out. Where nothing helps them a copy of this projection comes back. For that it must be fresh from
            `spectral_projection`, or from a `MomentAROMA` with `lam="auto"` or `denoise`, which hold out one row in
            eight, and the rows must be the very ones that were learned, bit for bit. Of others nobody can tell, and
            0.2 and 100 are taken.
        random_state : None, int, Generator or RandomState, default 0
            Draws the rows of every step.
        verbose : bool, default False
            Show a progress bar on a terminal.

        Returns
        -------
        Projection
            Of the same kind and rank. This one stays as it is.

        Examples
        --------
        >>> import aromatch as am
        >>> from sklearn.datasets import load_digits
        >>> X, y = load_digits(return_X_y=True)
        >>> triplets = am.triplets.from_labels(y[::2], 10_000, random_state=0)
        >>> nearby = am.MomentAROMA("auto").fit_triplets(triplets, X[::2]).project(normalize=0.7)
        >>> better = nearby.refine(triplets, X[::2])
        >>> [round(model.score(X[1::2], y[1::2]), 2) for model in (nearby, better)]
        [0.83, 0.85]
        """
        check_kind(self.kind, self.normalize)
        if self.kind != "psd":
            raise ValueError(f"refine needs kind 'psd', a space with vectors of its own, got kind {self.kind!r}")
        t = _or_auto(temperature, "temperature", lambda *it: checks.check_number(*it, at_least=LOWEST_TEMPERATURE))
        most = _or_auto(n_steps, "n_steps", lambda *it: checks.check_integer(*it, at_least=0))
        show_progress = checks.check_flag(verbose, "verbose")
        generator = checks.random_generator(random_state)
        queries, objects = self._check_both(Q, P)
        judged = read_triplets(triplets, queries, objects, sample_weight)
        self._check_square(judged.largest_square)
        L = refined(
            self._state["L"],
            self._L_of_known,
            self._graph,
            float(self.normalize),
            judged.block,
            queries,
            objects,
            judged.numbers,
            temperature=t,
            n_steps=most,
            generator=generator,
            show_progress=show_progress,
        )
        other = copy.copy(self)
        other._L_of_known = other._graph = None
        other.__dict__.pop("_calibration", None)
        other._state = {"L": L.copy(), "signs": self.signs_}
        return other

    def __getstate__(self) -> dict[str, Any]:
        # A graph that is not there is made again when it is wanted.
        return {name: value for name, value in super().__getstate__().items() if name != "_graph"}

    # -- hooks of the base class --------------------------------------------------------------------------

    def _check_is_fitted(self) -> None:
        # Not scikit-learn's own check, which looks for a `fit`: a projection is made from a model that has one.
        if not hasattr(self, "_state"):
            raise NotFittedError("This Projection is empty: `project` of a fitted learner makes one that is not")

    def _shapes(self, m: int, n: int) -> dict[str, tuple[int, ...]]:
        return {"L": (m, n), "signs": (n,)}

    def _shapes_in_file(self, state: dict[str, NDArray[Any]], m: int, n: int) -> dict[str, tuple[int, ...]]:
        return self._shapes(m, state["signs"].size if "signs" in state else 0)

    def _check_state(self, state: dict[str, NDArray[Any]], m: int, n: int) -> None:
        super()._check_state(state, m, n)
        check_kind(self.kind, self.normalize)
        if m != n:
            raise ValueError(f"the model has {m} features of queries and {n} of objects, expected as many")
        if not all(array.dtype == FLOAT64 and np.isfinite(array).all() for array in state.values()):
            raise ValueError("the model's arrays are not finite numbers in float64")
        if not np.isin(state["signs"], (-1, 1) if self.kind == "symmetric" else (1,)).all():
            raise ValueError(f"the model's signs do not fit its kind {self.kind!r}")

    def _scores(self, Q: Matrix, P: Matrix) -> Array:
        left = self._embed(Q)
        right = left if P is Q else self._embed(P)
        return np.asarray((left * self._state["signs"]) @ right.T)

    def _pair_scores(self, Q: Matrix, P: Matrix, numbers: NDArray[np.int64]) -> Array:
        rows = read_both(Q, P, numbers)
        self._check_square(max(rows.query_square, rows.object_square))
        out = np.empty(len(numbers))
        for start in range(0, len(numbers), _PAIRS_AT_ONCE):
            query, *objects = numbers[start : start + _PAIRS_AT_ONCE].T
            left = self._embed(Q[query]) * self._state["signs"]
            scores = [np.einsum("ij,ij->i", left, self._embed(P[number])) for number in objects]
            out[start : start + len(query)] = scores[0] - (scores[1] if len(scores) > 1 else 0.0)
        return out

    def _check_square(self, square: float) -> None:
        check_square(square, self._state["L"])

    @property
    def _n_features_out(self) -> int:
        return len(self._state["signs"])

    def _map_queries(self, Q: Matrix) -> Array:
        return self._embed(Q)

    def _map_objects(self, P: Matrix) -> Array:
        return np.asarray(self._embed(P) * self._state["signs"])

    def _embed(self, X: Matrix) -> Array:
        check_kind(self.kind, self.normalize)
        rows = product(X, self._state["L"])
        return _divided_by_norms(rows, float(self.normalize)) if self.normalize else rows


def make_projection(
    model: Any, kind: str, rank: int | str | None, normalize: bool | float, triplets: Any, Q: Any, P: Any
) -> Projection:
    """Project W of a fitted bilinear learner; its method `project` says what the arguments are."""
    check_is_fitted(model)
    check_kind(kind, normalize)
    m, n = model.n_features_in_, model.n_object_features_in_
    if m != n:
        raise ValueError(f"project needs as many query as object features, got {m} and {n}")
    is_chosen = isinstance(rank, str) and checks.check_choice(rank, "rank", ("auto",)) == "auto"
    given = [name for name, value in (("triplets", triplets), ("Q", Q), ("P", P)) if value is not None]
    if is_chosen and not {"triplets", "Q"} <= set(given):
        raise ValueError("rank='auto' needs triplets and their rows, Q (and P), to choose by")
    if given and not is_chosen:
        raise ValueError(f"{given[0]} is for rank='auto' only, got rank={rank!r}")
    most = None if rank is None or is_chosen else checks.check_integer(rank, "rank", at_least=1)
    L, signs = _factors(model.W_, kind, most)
    if is_chosen:
        queries, objects = model._check_both(Q, P)
        numbers = check_triplets(triplets, queries, objects)
        if not len(numbers):
            raise ValueError("triplets is empty, expected some to choose the rank by")
        rows = read_both(queries, objects, numbers)
        check_square(max(rows.query_square, rows.object_square), L)
        most = _best_rank(queries, objects, numbers, L, signs, float(normalize))
    names, graph = getattr(model, "feature_names_in_", None), getattr(model, "_graph", None)
    W_of_known, L_of_known = getattr(model, "_W_of_known_rows", None), None
    if kind == "psd" and W_of_known is not None:
        L_of_known = np.ascontiguousarray(_factors(W_of_known, kind, most)[0][:, :most])
    empty = Projection(kind, normalize=normalize)
    projection = new_projection(empty, L[:, :most], signs[:most], names, L_of_known, graph)
    if model.fingerprints_ is not None:
        projection.set_fingerprint(*model.fingerprints_)
    return projection


def new_projection(
    empty: Projection, L: Array, signs: Array, names: Any, L_of_known: Array | None, graph: Graph | None
) -> Projection:
    """Fill a projection with its factor, the names of features and what a refinement may want."""
    empty.n_features_in_ = empty.n_object_features_in_ = len(L)
    if names is not None:
        empty.feature_names_in_ = np.array(names, dtype=object)
    empty._state = {"L": np.array(L, order="C"), "signs": signs.copy()}
    empty._L_of_known, empty._graph = L_of_known, graph
    return empty


def _or_auto(value: Any, name: str, check: Callable[[Any, str], Number]) -> Number | None:
    """Give a value that is checked, None for "auto"."""
    if isinstance(value, str):
        checks.check_choice(value, name, ("auto",))
        return None
    return check(value, name)


def check_square(square: float, L: Array) -> None:
    """Refuse rows that are so large that their scores could overflow."""
    if square * max(1.0, float(np.vdot(L, L))) > LARGEST[FLOAT64]:
        raise ValueError(f"a row has |x|^2 = {square:.1e}, too large for a model in float64")


def check_kind(kind: str, normalize: bool | float) -> None:
    """Check the parameters of a projection."""
    checks.check_choice(kind, "kind", ("psd", "symmetric"))
    if not isinstance(normalize, bool | np.bool_) and checks.check_number(normalize, "normalize", at_least=0) > 1:
        raise ValueError(f"normalize must be True, False or a number from 0 to 1, got {normalize!r}")
    if normalize and kind != "psd":
        raise ValueError(f"normalize needs kind 'psd', where no row is unlike itself, got kind {kind!r}")


def _factors(W: Any, kind: str, rank: int | None) -> tuple[Array, Array]:
    """Give L and signs of the projection of W, an array or a sparse array, largest eigenvalue first."""
    S = (W + W.T) / 2
    if sparse.issparse(S):
        if rank is None:
            raise ValueError("rank must be a number for a model that keeps only touched cells")
        if rank >= S.shape[0]:
            return _factors(W.toarray(), kind, rank)
        if not S.count_nonzero():
            return np.empty((S.shape[0], 0)), np.empty(0)
        # From a fixed start, so that the same model gives the same bits.
        start, which = np.ones(S.shape[0]), "LA" if kind == "psd" else "LM"
        values, vectors = eigsh(S.astype(np.float64), k=rank, which=which, v0=start)
    elif kind == "psd" and rank is not None and rank < len(S) // 2:
        values, vectors = linalg.eigh(S.astype(np.float64), subset_by_index=[len(S) - rank, len(S) - 1])
    else:
        values, vectors = linalg.eigh(S.astype(np.float64), driver="evd")
    if kind == "psd":
        values = np.maximum(values, 0)
    sizes = np.abs(values)
    order = np.argsort(-sizes, kind="stable")[:rank]
    order = order[sizes[order] > np.finfo(np.float64).eps * len(vectors) * sizes.max(initial=0)]  # the rest is rounding
    return vectors[:, order] * np.sqrt(sizes[order]), np.sign(values[order])


def _best_rank(
    queries: Matrix, objects: Matrix, triplets: NDArray[np.int64], L: Array, signs: Array, power: float
) -> int:
    """Give the rank that orders most triplets rightly, the smallest of the best; one pass tries all."""
    n_right = np.zeros(len(signs), dtype=np.int64)
    at_once = max(1, _NUMBERS_AT_ONCE // max(L.shape))
    for start in range(0, len(triplets), at_once):
        query, *others = triplets[start : start + at_once].T
        left = product(queries[query], L) * signs
        scores = []
        for number in others:
            right = product(objects[number], L)
            score = np.cumsum(left * right, axis=1)
            if power:  # the norm of the query is on both sides
                norm = np.cumsum(right * right, axis=1) ** (power / 2)
                score = np.divide(score, norm, out=np.zeros_like(score), where=norm > 0)
            scores.append(score)
        n_right += np.count_nonzero(scores[0] > scores[1], axis=0)
    return int(np.argmax(n_right)) + 1 if len(n_right) else 1


def _divided_by_norms(X: Array, power: float) -> Array:
    """Divide each row by a power of its norm, and leave rows of zeros."""
    norms = np.linalg.norm(X, axis=1, keepdims=True) ** power
    return np.asarray(np.divide(X, norms, out=np.zeros_like(X), where=norms > 0))

"""OASIS: passive-aggressive online learning of a bilinear similarity (Chechik et al. 2009, 2010).

With ``p = p_pos - p_neg``, a triplet whose margin ``q'Wp`` is under 1 gives::

    tau = min(C, (1 - q'Wp) / (|q|^2 |p|^2))
    W  += tau * q p'

the smallest change of W that satisfies the triplet, limited by C. There is no confidence: the learning rate of a cell
does not depend on how often it was updated, which is what AROMA changes.

Steps of dense rows stay pending as rank-one terms and are folded into W in blocks (`pending`, `kernels.oasis`), which
is the same algorithm up to rounding.
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..._utils import checks
from ..._utils.checks import check_dtype
from ...kernels import oasis, touched
from ..inputs import Block
from ..triplet import TripletLearner
from . import pending
from .cells import Cells, DenseCells, TouchedCells, stores_touched, touched_shapes
from .initial import initial_weights


class OASIS(TripletLearner):
    """Similarity ``q'Wp`` learned online by passive-aggressive steps; the main baseline of the paper.

    Parameters
    ----------
    C : float, default 0.1
        Largest step. Raise it to learn faster, lower it for noisy triplets.
    init : None, {"identity", "zero"}, float, array or sparse matrix of shape (m, n), default None
        W before the first triplet. None means the identity if queries and objects are rows of one space, and zero if
        they are not: `fit` and triplets without P start from the identity, triplets with P from zero, even if m = n. A
        new model that starts with `learn_one` counts as one space if q and p_pos have as many features. "identity" and
        a float need m = n.
    n_triplets : int, default 200_000
        Number of triplets that `fit` samples from the labels.
    dtype : {"float64", "float32"}, default "float64"
        Precision of W.
    cells : {"auto", "dense", "touched"}, default "auto"
        Store every cell of W, or only those that triplets touched, with the same results (on dense rows, up to
        rounding). Use "touched" for sparse rows with many features: memory grows with the touched cells, and `W_` is a
        CSR array. "auto" stores touched cells if all cells would take more than 2 GiB, as over 16,384 x 16,384 do in
        float64.
    random_state : None, int, Generator or RandomState
        Random seed of the triplets that `fit` samples.
    verbose : bool, default False
        Show a progress bar if standard error is a terminal.

    Attributes
    ----------
    W_ : array or CSR array of shape (m, n)
    n_triplets_seen_, n_updates_, n_mistakes_ : int
        Number of triplets learned so far, of updates, and of mistakes; a tie is a mistake.

    References
    ----------
    Chechik, Sharma, Shalit and Bengio, Large scale online learning of image similarity through ranking,
    JMLR 11, 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from aromatch import OASIS
    >>> objects = np.eye(3)
    >>> model = OASIS(C=0.1).fit_triplets([[0, 1, 2]], objects)
    >>> model.similarity(objects[:1], objects)
    array([[ 1. ,  0.1, -0.1]])
    """

    _state: Cells
    _failure: ClassVar[str] = "its score is too large to learn from"
    _remedy: ClassVar[str] = "Use rows of unit norm and a small initial W"
    _strength: ClassVar[str] = "sample_weight * C"

    def __init__(
        self,
        C: float = 0.1,
        *,
        init: Any = None,
        n_triplets: int = 200_000,
        dtype: Any = "float64",
        cells: str = "auto",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.C = C
        self.init = init
        self.n_triplets = n_triplets
        self.dtype = dtype
        self.cells = cells
        self.random_state = random_state
        self.verbose = verbose

    def _check_params(self) -> float:
        checks.check_choice(self.cells, "cells", ("auto", "dense", "touched"))
        return 1 / checks.check_number(self.C, "C", above=0)

    def _initial(self) -> Any:
        if self.init is None:
            return "identity" if self._one_space else "zero"
        return self.init

    def _stores_touched(self, m: int, n: int) -> bool:
        return stores_touched(self.cells, 1, m, n, check_dtype(self.dtype))

    def _first_state(self, m: int, n: int, init: Any) -> Cells:
        dtype = check_dtype(self.dtype)
        if self._stores_touched(m, n):
            return TouchedCells.start(("W",), init, m, n, dtype)
        checks.check_shapes_fit(self._shapes(m, n), dtype, f"The state of {type(self).__name__} for {m} x {n} features")
        W, terms = initial_weights(init, m, n, dtype), pending.start(m, n, 1, dtype)
        return DenseCells(W=W, **terms, counts=np.zeros(4, dtype=np.int64))

    def _shapes(self, m: int, n: int) -> dict[str, tuple[int, ...]]:
        return {"W": (m, n), **pending.shapes(m, n, n_factors=1), "counts": (4,)}  # the factor is tau

    def _shapes_in_file(self, state: dict[str, NDArray[Any]], m: int, n: int) -> dict[str, tuple[int, ...]]:
        return touched_shapes(state, ("W",), m) if self._stores_touched(m, n) else self._shapes(m, n)

    def _learn(self, block: Block) -> int:
        return self._state.learn(block, oasis.learn, touched.learn_oasis, self.C)

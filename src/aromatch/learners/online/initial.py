"""W before the first triplet, from the parameter `init`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..._utils import checks
from ..._utils.rows import Matrix, check_structure
from ..inputs import LARGEST


def write_initial(init: Any, W: NDArray[Any]) -> None:
    """Write the initial values into an array of zeros."""
    scale = initial_scale(init, *W.shape)
    with np.errstate(over="ignore"):  # refused below
        if scale is None:
            matrix = initial_matrix(init, *W.shape)
            W[...] = matrix.toarray() if sparse.issparse(matrix) else matrix
        elif scale != 0:
            np.fill_diagonal(W, scale)
    check_initial_values(W, W.dtype)


def initial_weights(init: Any, m: int, n: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return W before the first triplet."""
    W = np.zeros((m, n), dtype=dtype)
    write_initial(init, W)
    return W


def initial_scale(init: Any, m: int, n: int) -> float | None:
    """Return the c of an init that is c times the identity, zero included; None if it is a matrix."""
    if isinstance(init, str):
        checks.check_choice(init, "init", ("zero", "identity"))
        if init == "zero":
            return 0.0
        init = 1.0
    if isinstance(init, Sequence) or checks.n_dimensions(init, "init") > 0:
        return None
    scale = checks.check_number(init, "init")
    if m != n:
        raise ValueError(f"init is a multiple of the identity, which needs m = n, got m = {m} and n = {n}")
    return scale


def initial_matrix(init: Any, m: int, n: int) -> Matrix:
    """Return an init that is a numeric array or sparse matrix of shape (m, n)."""
    array = check_structure(init, "init") if sparse.issparse(init) else checks.as_array(init, "init")
    if array.dtype.kind not in "fiub":
        raise TypeError(f"init must be 'zero', 'identity', a number or an array of numbers, got {array.dtype}")
    if array.shape != (m, n):
        raise ValueError(f"init must have the shape ({m}, {n}), got {array.shape}")
    return array


def check_initial_values(W: NDArray[Any], dtype: np.dtype[Any]) -> None:
    """Refuse values of W that an update could overflow from."""
    # The largest and the smallest value need no copy as absolute values do; NaN is neither.
    if W.size and not (W.max() <= LARGEST[dtype] and W.min() >= -LARGEST[dtype]):
        raise ValueError(f"init contains NaN, infinity or numbers too large for {dtype}")

"""Rows of length 1."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import row_norms
from sklearn.utils.sparsefuncs_fast import inplace_csr_row_normalize_l2

from ..._utils.rows import Matrix


def unit_rows(rows: Matrix) -> Matrix:
    """Give rows of numbers in float32 or float64 divided by their lengths, as they are where there is next to none.

    This is scikit-learn's `normalize` to the bit; but that asks more questions than a single row has numbers.
    """
    if sparse.issparse(rows):
        found = rows.copy()
        inplace_csr_row_normalize_l2(found)
        return found
    lengths = row_norms(rows)
    lengths[lengths < 10 * np.finfo(lengths.dtype).eps] = 1.0
    return rows / lengths[:, np.newaxis]

"""Names of rows by what is in them, so that the same query is known again."""

from __future__ import annotations

import hashlib
from itertools import pairwise

import numpy as np
from scipy import sparse

from ..._utils.rows import Matrix

# Whole numbers of 8 bytes that a name is.
DIGEST_NUMBERS = 4


def digests(rows: Matrix) -> list[bytes]:
    """Name each row; a value that is stored as 0 is the same as none, and -0.0 is 0.0."""
    if not sparse.issparse(rows):
        return [hashlib.sha256(row.tobytes()).digest() for row in rows + 0.0]
    is_stored = rows.data != 0
    indices, values = rows.indices[is_stored].astype(np.int64), rows.data[is_stored]
    ends = np.append(0, np.cumsum(is_stored))[rows.indptr].tolist()
    return [
        hashlib.sha256(indices[start:end].tobytes() + b"|" + values[start:end].tobytes()).digest()
        for start, end in pairwise(ends)
    ]

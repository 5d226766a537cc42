"""Hashes of rows, by which a query is recognized."""

import hashlib
from itertools import pairwise

import numpy as np
from scipy import sparse

from .rows import Matrix

HASH_LENGTH = 4
"""Length of a hash in int64 numbers."""


def row_hashes(rows: Matrix) -> list[bytes]:
    """Return a hash of each row; explicit zeros of a sparse row are ignored, and -0.0 equals 0.0."""
    if not sparse.issparse(rows):
        return [hashlib.sha256(row.tobytes()).digest() for row in rows + 0.0]
    is_stored = rows.data != 0
    indices, values = rows.indices[is_stored].astype(np.int64), rows.data[is_stored]
    ends = np.append(0, np.cumsum(is_stored))[rows.indptr].tolist()
    return [
        hashlib.sha256(indices[start:end].tobytes() + b"|" + values[start:end].tobytes()).digest()
        for start, end in pairwise(ends)
    ]

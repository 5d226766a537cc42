"""Cython loops on arrays.

The kernels do not validate or convert their arguments: the layer above does. Every loop runs without the GIL. When it
returns, the model is in the state after a whole number of triplets.

=========== =================================================================
rows        rows of CSR and dense matrices, read in place
bilinear    scores ``q'Wp`` and quadratic forms ``q'Aq`` of many pairs
diagonal    d-AROMA
factored    f-AROMA in all its variants, one update at a time
blocked     f-AROMA as printed, updates folded a block at a time
full        AROW for vectors, and for ``vec(W)`` with a full covariance
oasis       OASIS
moments     weighted sums of rows and row hashes for the moment learner
communities local moves of the Louvain method
touched     d-AROMA and OASIS on matrices that store touched cells only
lock        a lock for many readers or one writer, not a loop
=========== =================================================================

A ``.pxd`` file holds the round of an algorithm that two kernels share. `rounds.pxd` holds the update rule and the
counters, `pending.pxd` the pending rank-one updates, `vectors.pxd` and `loops.h` the innermost loops.
"""

"""Cython loops on plain arrays.

Nothing in here validates, converts or explains: that is the work of the layer above. Every loop runs
without the GIL and leaves its model at the boundary between two triplets.

========== ==================================================================
rows       reads rows of CSR and dense matrices in place
bilinear   scores ``q'Wp`` and quadratic forms ``q'Aq`` of many pairs
diagonal   d-AROMA
factored   f-AROMA in all its forms, one update at a time
blocked    f-AROMA as printed, updates folded in a block at a time
full       AROW for vectors, and for ``vec(W)`` with a full covariance
oasis      OASIS
touched    d-AROMA and OASIS on matrices of which only touched cells are kept
========== ==================================================================

One round of an algorithm, where two kernels share it, is in its ``.pxd``; `vectors.pxd` and `loops.h` have the loops
over memory, and `pending.pxd` what it takes to keep updates pending.
"""

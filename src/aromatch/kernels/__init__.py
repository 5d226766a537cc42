"""Cython loops on plain arrays.

Nothing in here validates, converts or explains: that is the work of the layer above. Every loop runs
without the GIL and leaves its model at the boundary between two triplets.

========== ==================================================================
rows       reads rows of CSR and dense matrices in place
bilinear   scores ``q'Wp`` and quadratic forms ``q'Aq`` of many pairs
diagonal   d-AROMA, and AROW with a diagonal covariance
factored   f-AROMA
full       AROW with a full covariance, for vectors and for ``vec(W)``
oasis      OASIS
touched    d-AROMA and OASIS on matrices of which only touched cells are kept
========== ==================================================================
"""

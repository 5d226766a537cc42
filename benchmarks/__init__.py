"""Benchmarks, one folder per subject; run one as ``python -m benchmarks.speed`` from the root of the repository."""

import os

if "OMP_NUM_THREADS" not in os.environ:  # must be set before NumPy loads its BLAS
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

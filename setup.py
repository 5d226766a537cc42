"""The compiled kernels; everything else stands in pyproject.toml."""

import os
import sys

from Cython.Build import cythonize
from setuptools import Extension, setup

KERNELS = [
    "rows",
    "bilinear",
    "diagonal",
    "factored",
    "blocked",
    "full",
    "oasis",
    "touched",
    "moments",
    "communities",
    "lock",
]
# No -ffast-math: sums keep the order they are written in, so that the same seed gives the same bits.
FLAGS = [] if sys.platform == "win32" else ["-O3", "-fno-math-errno", "-fno-trapping-math", "-Wno-unused-function"]

setup(
    ext_modules=cythonize(
        [
            Extension(
                f"aromatch.kernels.{name}",
                [f"src/aromatch/kernels/{name}.pyx"],
                depends=["src/aromatch/kernels/loops.h", "src/aromatch/kernels/loops_of_t.h"],
                include_dirs=["src/aromatch/kernels"],
                extra_compile_args=FLAGS,
            )
            for name in KERNELS
        ],
        compiler_directives={
            "language_level": 3,
            "boundscheck": False,
            "wraparound": False,
            "initializedcheck": False,
            "cdivision": True,
        },
    ),
    options={"build_ext": {"parallel": os.cpu_count()}},
)

"""Fingerprints of embeddings, so that a model is not used with vectors of another embedding.

A model fitted on one embedding returns meaningless scores for vectors of another one of the same width. A fingerprint
is a name, the width, whether vectors have unit norm, and a probe: a few numbers computed from the vectors of fixed
inputs, for example three sentences. They are inner products with fixed vectors of signs, summed over the inputs with
weights 1, 1/2, 1/3, ...; they differ between embeddings and hardly change with rounding.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import row_norms

from .._utils import checks
from .._utils.rows import MatrixLike, as_matrix, read_all
from .inputs import FLOAT64, LARGEST

_PROBES = 8
_TOLERANCE = 1e-2
_UNIT_NORM = 1e-3


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Identity of an embedding; made by `Fingerprint.of`.

    Parameters
    ----------
    name : str
        Name of the embedding, with its version.
    dimension : int
        Number of features of a vector.
    is_normalised : bool
        Whether vectors have unit norm.
    probe : tuple of float
        Numbers computed from the vectors of the probed inputs.

    Examples
    --------
    >>> import numpy as np
    >>> import aromatch as am
    >>> probes = np.random.default_rng(0).normal(size=(3, 8))  # vectors of three texts that never change
    >>> mini = am.Fingerprint.of("mini-v1", probes)
    >>> model = am.DiagonalAROMA().fit_triplets([[0, 1, 2]], probes).set_fingerprint(mini)
    >>> model.check_fingerprint(am.Fingerprint.of("mini-v2", probes + 1))
    Traceback (most recent call last):
        ...
    ValueError: the model was fitted on 'mini-v1', got 'mini-v2': its name and its probe differ
    """

    name: str
    dimension: int
    is_normalised: bool
    probe: tuple[float, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise TypeError(f"name must be text, got {self.name!r}")
        dimension = checks.check_integer(self.dimension, "dimension", at_least=1)
        is_normalised = checks.check_flag(self.is_normalised, "is_normalised")
        if not isinstance(self.probe, tuple):
            raise TypeError(f"probe must be a tuple of numbers, got {self.probe!r}")
        probe = tuple(checks.check_number(number, "probe") for number in self.probe)
        # Numbers of NumPy have no place in the header of a file.
        for name, value in (("dimension", dimension), ("is_normalised", is_normalised), ("probe", probe)):
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, name: str, vectors: MatrixLike) -> Self:
        """Return the fingerprint of an embedding.

        Parameters
        ----------
        name : str
            Name of the embedding, with its version.
        vectors : array or CSR matrix of shape (n_inputs, dimension)
            Vectors of a few fixed inputs.
        """
        matrix = as_matrix(vectors, "vectors")
        if (square := read_all(matrix, "vectors").largest_square) > LARGEST[FLOAT64]:
            raise ValueError(f"vectors has a row with |x|^2 = {square:.1e}, expected at most {LARGEST[FLOAT64]:.0e}")
        rows = sparse.csr_array(matrix).astype(np.float64) if sparse.issparse(matrix) else matrix.astype(np.float64)
        signs = np.random.default_rng(rows.shape[1]).choice([-1.0, 1.0], size=(rows.shape[1], _PROBES))
        probe = (1 / np.arange(1, rows.shape[0] + 1)) @ np.asarray(rows @ signs)
        is_normalised = bool(np.all(np.abs(row_norms(rows) - 1) < _UNIT_NORM))
        return cls(name, rows.shape[1], is_normalised, tuple(probe.tolist()))

    def differences(self, other: Fingerprint) -> list[str]:
        """Return the names of the fields in which another fingerprint differs; probes are compared up to rounding."""
        check_fingerprint(other, "other")
        found = [name for name in ("name", "dimension", "is_normalised") if getattr(self, name) != getattr(other, name)]
        size = max(1e-300, float(np.abs(self.probe).max(initial=0.0)))
        if len(self.probe) != len(other.probe) or not np.allclose(self.probe, other.probe, atol=_TOLERANCE * size):
            found.append("probe")
        return found

    def __repr__(self) -> str:
        return f"Fingerprint({self.name!r}, dimension={self.dimension}, is_normalised={self.is_normalised})"

    def to_header(self) -> dict[str, Any]:
        """Return the fingerprint in the form of a file header."""
        return {**asdict(self), "probe": list(self.probe)}

    @classmethod
    def from_header(cls, header: Any) -> Self:
        """Return the fingerprint of a file header; raise a ValueError if it is invalid."""
        if not isinstance(header, dict) or set(header) != {field.name for field in fields(cls)}:
            raise ValueError("invalid fingerprint in the file header")
        if not isinstance(header["probe"], list):
            raise ValueError("invalid fingerprint in the file header")
        try:
            return cls(**{**header, "probe": tuple(header["probe"])})
        except (TypeError, ValueError) as error:
            raise ValueError(f"invalid fingerprint in the file header: {error}") from None


def check_fingerprint(given: Any, name: str) -> Fingerprint:
    """Return an argument after checking that it is a fingerprint."""
    if not isinstance(given, Fingerprint):
        raise TypeError(f"{name} must be a Fingerprint, got {given!r}")
    return given


def check_same(known: Fingerprint, given: Fingerprint, what: str) -> None:
    """Raise a ValueError if an embedding is not the one that a model was fitted on."""
    differing = known.differences(given)
    if differing:
        names = " and ".join(f"its {name.replace('_', ' ')}" for name in differing)
        raise ValueError(f"the model was fitted on {known.name!r}{what}, got {given.name!r}: {names} differ")

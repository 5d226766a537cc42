"""What tells one embedding from another, so that a model is not used with vectors that mean something else.

A model that was learned on one embedding gives numbers for any other of the same width, and they mean nothing. A
fingerprint is a name, the width, whether vectors have unit norm, and a probe: a few numbers that depend on the vectors
of inputs that are always the same, say three sentences. They are inner products with fixed vectors of signs, added up
over the inputs with weights 1, 1/2, 1/3, ...; another embedding gives others, and rounding hardly changes them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import row_norms

from .._utils import checks
from .._utils.rows import MatrixLike, as_matrix, read_all

_PROBES = 8
_TOLERANCE = 1e-2
_UNIT_NORM = 1e-3


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What tells an embedding from another; `Fingerprint.of` makes one.

    Parameters
    ----------
    name : str
        Of the embedding, with its version.
    dimension : int
        How many numbers a vector has.
    is_normalised : bool
        Whether vectors have unit norm.
    probe : tuple of float
        Numbers that vectors of the probed inputs give.

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
    ValueError: the model was learned on 'mini-v1', got 'mini-v2': its name and its probe differ
    """

    name: str
    dimension: int
    is_normalised: bool
    probe: tuple[float, ...]

    @classmethod
    def of(cls, name: str, vectors: MatrixLike) -> Self:
        """Make the fingerprint of an embedding.

        Parameters
        ----------
        name : str
            Of the embedding, with its version.
        vectors : array or CSR matrix of shape (n_inputs, dimension)
            What it makes of a few inputs, the same ones every time.
        """
        if not isinstance(name, str) or not name:
            raise TypeError(f"name must be text, got {name!r}")
        matrix = as_matrix(vectors, "vectors")
        read_all(matrix, "vectors")
        rows = sparse.csr_array(matrix).astype(np.float64) if sparse.issparse(matrix) else matrix.astype(np.float64)
        signs = np.random.default_rng(rows.shape[1]).choice([-1.0, 1.0], size=(rows.shape[1], _PROBES))
        probe = (1 / np.arange(1, rows.shape[0] + 1)) @ np.asarray(rows @ signs)
        is_normalised = bool(np.all(np.abs(row_norms(rows) - 1) < _UNIT_NORM))
        return cls(name, rows.shape[1], is_normalised, tuple(probe.tolist()))

    def differences(self, other: Fingerprint) -> list[str]:
        """Tell what is different about another one; names are compared to the letter, probes but for rounding."""
        found = [name for name in ("name", "dimension", "is_normalised") if getattr(self, name) != getattr(other, name)]
        size = max(1e-300, float(np.abs(self.probe).max(initial=0.0)))
        if len(self.probe) != len(other.probe) or not np.allclose(self.probe, other.probe, atol=_TOLERANCE * size):
            found.append("probe")
        return found

    def to_header(self) -> dict[str, Any]:
        """Give it in the form that a model file has."""
        return {**asdict(self), "probe": list(self.probe)}

    @classmethod
    def from_header(cls, header: Any) -> Self:
        """Make one of what a file says, or say in a ValueError what is wrong with that."""
        if not isinstance(header, dict) or set(header) != {field.name for field in fields(cls)}:
            raise ValueError("its fingerprint is none")
        name, probe = header["name"], header["probe"]
        if not isinstance(name, str) or not isinstance(probe, list) or not isinstance(header["is_normalised"], bool):
            raise ValueError("its fingerprint is none")
        dimension = checks.check_integer(header["dimension"], "the dimension of its fingerprint", at_least=1)
        numbers = (checks.check_number(value, "the probe of its fingerprint") for value in probe)
        return cls(name, dimension, header["is_normalised"], tuple(numbers))


def check_same(known: Fingerprint, given: Fingerprint, what: str) -> None:
    """Refuse an embedding that is not the one that a model was learned on."""
    differing = known.differences(given)
    if differing:
        told = " and ".join(f"its {name.replace('_', ' ')}" for name in differing)
        raise ValueError(f"the model was learned on {known.name!r}{what}, got {given.name!r}: {told} differ")

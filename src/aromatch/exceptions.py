"""Exceptions of this package; all derive from `AromatchError`."""


class AromatchError(Exception):
    """Base class of the exceptions that this package defines."""


class ModelFileError(AromatchError, ValueError):
    """A model file is truncated, changed, or not a model file."""


class DataFileError(AromatchError, ValueError):
    """A data file is truncated, changed, or not in the expected format."""


class InsufficientMemoryError(AromatchError, ValueError, MemoryError):
    """The request exceeds the available memory; nothing was allocated."""


class NoSignalError(AromatchError, ValueError):
    """The triplets contain no signal above the noise level."""


class NumericalError(AromatchError, ArithmeticError):
    """An update is impossible in the precision of the model."""


class NoImprovementError(AromatchError):
    """Validation found no learner that beats the baseline."""


class ConcurrentUseError(AromatchError, RuntimeError):
    """A thread cannot change an object that it, or a process it was forked from, is using."""

"""One row a learner: public names, `load`, the command line and the contract tests derive from this table.

To add a learner, write its file and its kernel, and add a row. Importing this module imports no learner.
"""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple


class Learner(NamedTuple):
    """A learner of the package."""

    name: str
    """Name of the class, which is public as ``aromatch.<name>`` and stands in model files."""
    module: str
    """Module that defines the class."""
    command: str | None = None
    """Value of ``aromatch train --learner``; None where the command line does not offer the learner."""
    settings: Mapping[str, Any] = MappingProxyType({})
    """Parameters of the command line that differ from the defaults of the class."""

    @property
    def cls(self) -> Any:
        """The class, imported on first use."""
        return getattr(import_module(self.module), self.name)

    def has_parameter(self, name: str) -> bool:
        """Return whether the class has a parameter of this name."""
        return name in self.cls._get_param_names()


LEARNERS: dict[str, Learner] = {
    name: Learner(name, f"aromatch.learners.{module}", command, *settings)
    for name, module, command, *settings in (
        ("DiagonalAROMA", "online.diagonal", "diagonal", {"r": 1.0}),
        ("FactoredAROMA", "online.factored", "factored", {"r": 0.1}),
        ("FullAROMA", "online.full", None),
        ("OASIS", "online.oasis", "oasis", {"C": 0.1}),
        ("MomentAROMA", "moment.moment", "moment", {"alpha": "auto"}),
        ("TripletEmbedding", "embedding.triplet_embedding", "embedding"),
        ("Cosine", "baselines.cosine", None),
        ("Euclidean", "baselines.euclidean", None),
        ("ITML", "baselines.itml", None),
        ("LEGO", "baselines.lego", None),
        ("LMNN", "baselines.lmnn", None),
        ("HIER", "baselines.hier", None),
        ("AROW", "baselines.arow", None),
    )
}
COMMANDS = {row.command: row for row in LEARNERS.values() if row.command is not None}
"""The learners of the command line by their names there."""

"""One row a learner: public names, `load`, the command line and the contract tests derive from this table.

To add a learner, write its file and its kernel, and add a row. Importing this module imports no learner.
"""

from importlib import import_module
from typing import Any, NamedTuple


class Learner(NamedTuple):
    """A learner of the package."""

    name: str
    """Name of the class, which is public as ``aromatch.<name>`` and stands in model files."""
    module: str
    """Module that defines the class."""
    command: str | None = None
    """Value of ``aromatch train --learner``; None where the command line does not offer the learner."""

    @property
    def cls(self) -> Any:
        """The class, imported on first use."""
        return getattr(import_module(self.module), self.name)


LEARNERS: dict[str, Learner] = {
    name: Learner(name, f"aromatch.learners.{module}", command)
    for name, module, command in (
        ("DiagonalAROMA", "online.diagonal", "diagonal"),
        ("FactoredAROMA", "online.factored", "factored"),
        ("FullAROMA", "online.full", None),
        ("OASIS", "online.oasis", "oasis"),
        ("MomentAROMA", "moment.moment", "moment"),
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

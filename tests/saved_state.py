"""The state of a model as its file shows it."""

import tempfile
from pathlib import Path

from aromatch.io.container import read_model


def saved_state(model):
    """Return the arrays of the state that `save` writes, by name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        model.save(path)
        arrays = read_model(path)[1]
    return {name.removeprefix("state."): array for name, array in arrays.items() if name.startswith("state.")}

"""Undo the changes of a call that fails: every change is noted before it is made.

A note restores an earlier value, whether the change was made or not, so that an interrupt at any point is undone::

    with Journal() as journal:
        journal.attributes(self, "n")
        self.n += 1
"""

from __future__ import annotations

from collections.abc import MutableSequence
from typing import Any

from ..kernels.lock import Undoing

_ABSENT = object()


class Journal(Undoing):
    """Context manager that undoes the changes noted in it if its block fails or is interrupted."""

    def attributes(self, owner: Any, *names: str) -> None:
        """Note attributes whose values are replaced."""
        before = [(name, getattr(owner, name)) for name in names]

        def undo() -> None:
            for name, value in before:
                setattr(owner, name, value)

        self.note(undo)

    def item(self, container: Any, key: Any) -> None:
        """Note the item of a dict, list or array that is replaced, inserted or deleted."""
        before = container.get(key, _ABSENT) if isinstance(container, dict) else container[key]

        def undo() -> None:
            if before is _ABSENT:
                container.pop(key, None)
            else:
                container[key] = before

        self.note(undo)

    def length(self, *sequences: MutableSequence[Any]) -> None:
        """Note lists or arrays that are appended to."""
        before = [(sequence, len(sequence)) for sequence in sequences]

        def undo() -> None:
            for sequence, n in before:
                del sequence[n:]

        self.note(undo)

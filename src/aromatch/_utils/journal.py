"""Undo the changes of a call that fails: every change is noted before it is made.

A note restores an earlier value, whether the change was made or not, so that an interrupt at any point is undone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableSequence
from contextlib import contextmanager
from typing import Any

_ABSENT = object()


class Journal:
    """Notes of the values before a change, the last one first."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def note(self, undo: Callable[[], None]) -> None:
        """Note how to restore what is about to change."""
        self._undo.append(undo)

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

    def roll_back(self) -> None:
        """Restore everything."""
        while self._undo:
            self._undo[-1]()
            self._undo.pop()

    def forget(self) -> None:
        """Keep the changes."""
        self._undo = []


@contextmanager
def undone_on_error() -> Iterator[Journal]:
    """Yield a journal, and undo the changes noted in it if the block fails or is interrupted."""
    journal = Journal()
    try:
        yield journal
        journal.forget()
    except BaseException:
        journal.roll_back()
        raise

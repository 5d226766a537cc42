"""The terminal as a console of rich."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from .printable import printable


class Terminal(Console):
    """A console that interprets no markup in strings and shows control characters in any text escaped."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render an object; every text on its way to the terminal passes here."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=_printable_lines(segment.text))

    def render_str(self, text: str, **options: Any) -> Text:
        """Convert a string, escaped before its width is measured."""
        return super().render_str(_printable_lines(text), **options)


def _printable_lines(text: str) -> str:
    return "\n".join(map(printable, text.split("\n")))

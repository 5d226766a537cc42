"""Print reports: JSON for programs, or tables that use the characters and colours of the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from .._utils.printable import print_lines, printable, to_json

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from .._utils.terminal import Terminal

# Longer lines are hard to read.
MAX_WIDTH = 100


def show(report: Any, render: Callable[[Screen, Any], None], as_json: bool) -> None:
    """Print a report as JSON, or by the function that renders it."""
    if as_json:
        print_lines(*to_json(report.to_dict(), indent=2).split("\n"))
    else:
        render(Screen(), report)


def console(*, stderr: bool = False) -> Terminal:
    """Return the terminal, at most 100 columns wide."""
    from .._utils.terminal import Terminal

    terminal = Terminal(stderr=stderr)
    terminal.width = min(terminal.width, MAX_WIDTH)
    return terminal


def size(n_bytes: float) -> str:
    """Return a file size with its unit."""
    for unit in ("bytes", "KB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}" if unit == "bytes" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.1f} GB"


class Screen:
    """Standard output, in ASCII if the terminal has no UTF-8."""

    def __init__(self) -> None:
        self.terminal = console()
        self.is_ascii = not self.terminal.encoding.startswith("utf")
        self.plus_minus = "+/-" if self.is_ascii else "±"

    def print(self, *parts: RenderableType) -> None:
        """Print renderables, and strings without wrapping."""
        for part in parts:
            self.terminal.print(part, soft_wrap=isinstance(part, str))

    def text(self, text: str, style: str = "") -> Text:
        """Return one line of literal text, with its control characters escaped before its width is measured."""
        from rich.text import Text

        text = printable(text)
        return Text(text.replace("…", "...").replace("±", "+/-") if self.is_ascii else text, style=style)

    def table(self, *columns: str, left: int = 0) -> Table:
        """Return a table; the first `left` columns and those without a title are left-aligned."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table

        box = None if self.is_ascii else SIMPLE_HEAD
        table = Table(box=box, show_edge=False, pad_edge=False, header_style="bold", expand=False)
        for at, column in enumerate(columns):
            table.add_column(column, justify="right" if column and at >= left else "left")
        return table

    def grid(self, rows: Iterable[tuple[str, str]]) -> None:
        """Print names and values."""
        from rich.padding import Padding
        from rich.table import Table

        grid = Table(box=None, show_header=False, pad_edge=False)
        grid.add_column(style="dim", no_wrap=True)
        grid.add_column(overflow="fold")
        for name, value in rows:
            grid.add_row(name, self.text(value))
        self.print(Padding(grid, (0, 2), expand=False))

    def padded(self, table: Table) -> None:
        """Print a table with margins."""
        from rich.padding import Padding

        self.print(Padding(table, (1, 2), expand=False))

    def notes(self, notes: Iterable[str]) -> None:
        """Print notes."""
        for note in notes:
            self.print(self.text(f"note: {note}", "yellow"))

"""A comparison on the terminal, and the answer of the person in front of it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ..workflows.snippets import beginning
from .printing import WIDEST

if TYPE_CHECKING:
    from ..workflows.ask import Answerer, Question, Thing

_ANSWERS = {"1": 1, "2": 2, "0": 0, "s": 0, "": 0}
_LINES = 6


def ask_person(n: int) -> Answerer:
    """Give a function that shows a question and takes the answer; it goes to standard error, for results are apart."""
    from rich.columns import Columns
    from rich.console import Console, Group
    from rich.panel import Panel
    from rich.text import Text

    terminal = Console(stderr=True, highlight=False)
    terminal.width = min(terminal.width, WIDEST)

    def shown(thing: Thing, title: str, width: int, style: str) -> Panel:
        name = Text(beginning(thing.id, 1), style="" if thing.text is None else "dim")
        body = name if thing.text is None else Group(name, Text(beginning(thing.text, _LINES)))
        return Panel(body, title=title, title_align="left", width=width, border_style=style)

    def answer(question: Question) -> int:
        half = (terminal.width - 1) // 2
        terminal.print()
        terminal.print(
            shown(question.query, f"{question.number} of {n}: which is better for this?", terminal.width, "")
        )
        sides = (("1", question.first), ("2", question.second))
        terminal.print(Columns([shown(thing, title, half, "cyan") for title, thing in sides], padding=(0, 1)))
        while True:
            terminal.print("[1] [2], [0] neither, [q] enough: ", end="", markup=False)
            line = sys.stdin.readline()
            word = line.strip().lower()
            if not line or word == "q":
                raise EOFError
            if word in _ANSWERS:
                return _ANSWERS[word]

    return answer

"""`aromatch ask`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import Data, Json, MaxMemory, Model, Queries, Seed, TrustRecordedPaths
from .rendering import Screen, console, show

if TYPE_CHECKING:
    from ..workflows.ask import Answerer, AskReport, Question, Shown


_ANSWERS = {"1": 1, "2": 2, "0": 0, "s": 0, "": 0}
_N_LINES = 6


def ask(
    model: Model,
    n: Annotated[int, typer.Option("-n", min=1, help="Number of comparisons.")] = 10,
    data: Data = None,
    queries: Queries = None,
    trust_recorded_paths: TrustRecordedPaths = False,
    judge: Annotated[
        str | None, typer.Option(help="A program that answers: JSON lines in, 1, 2 or 0 out.", metavar="CMD")
    ] = None,
    judge_timeout: Annotated[float, typer.Option(help="Maximum seconds for an answer of the program.")] = 120.0,
    log: Annotated[
        str | None, typer.Option(help="File .jsonl to append the answers to.", show_default="MODEL.answers.jsonl")
    ] = None,
    replay: Annotated[str | None, typer.Option(help="Learn the answers of this log instead of asking.")] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="The model file to write.", show_default="MODEL itself")
    ] = None,
    seed: Seed = 0,
    max_memory: MaxMemory = None,
    json: Json = False,
) -> None:
    """Ask which of two objects is better for a query, where the model is least certain, and learn the answers.

    The log is a file for `aromatch train --triplets`, and can be replayed on the model that it started from.
    """
    from ..workflows import ask as workflow

    sources: dict[str, Any] = {"data": data, "queries": queries, "trust_recorded_paths": trust_recorded_paths}
    if replay is not None:
        if judge is not None:
            raise ValueError("--replay and --judge exclude each other")
        report = workflow.replay(model, replay, output or model, **sources)
    elif judge is not None:
        from ..workflows.judge import Judge

        with Judge(judge, judge_timeout) as program:
            by = workflow.PROGRAM
            report = workflow.ask(model, program, n=n, by=by, log=log, output=output, seed=seed, **sources)
    else:
        report = workflow.ask(model, ask_person(n), n=n, log=log, output=output, seed=seed, **sources)
    show(report, render, json)


def ask_person(n: int) -> Answerer:
    """Return a function that asks the person at the terminal, on standard error."""
    from rich.columns import Columns
    from rich.console import Group
    from rich.panel import Panel
    from rich.text import Text

    from .._utils.printable import printable
    from ..workflows.snippets import lines_with_words, shortened

    terminal = console(stderr=True)

    def panel(shown: Shown, title: str, width: int, style: str) -> Panel:
        name = Text(printable(shortened(shown.id)), style="" if shown.text is None else "dim")
        body: Text | Group = name
        if shown.text is not None:
            lines = lines_with_words(shown.text)[:_N_LINES] or [shown.text]
            body = Group(name, Text("\n".join(printable(shortened(line)) for line in lines)))
        return Panel(body, title=title, title_align="left", width=width, border_style=style)

    def answer(question: Question) -> int:
        half = (terminal.width - 1) // 2
        terminal.print()
        title = f"{question.number} of {n}: which is better for this?"
        terminal.print(panel(question.query, title, terminal.width, ""))
        sides = (("1", question.first), ("2", question.second))
        terminal.print(Columns([panel(shown, title, half, "cyan") for title, shown in sides], padding=(0, 1)))
        while True:
            terminal.print("[1] [2], [0] neither, [q] quit: ", end="")
            line = "" if sys.stdin is None else sys.stdin.readline()
            word = line.strip().lower()
            if not line or word == "q":
                raise EOFError
            if word in _ANSWERS:
                return _ANSWERS[word]

    return answer


def render(screen: Screen, report: AskReport) -> None:
    """Print the report."""
    rows = [
        ("asked", f"{report.n_asked:,}, {report.n_skipped:,} skipped"),
        ("learned", f"{report.n_learned:,}, {report.n_mispredicted:,} of them predicted wrongly"),
    ]
    if report.n_compared:
        n_agreed = report.n_compared - report.n_disagreed
        rows.append(("judge", f"agrees with people on {n_agreed:,} of {report.n_compared:,}"))
    rows.append(("log", report.log))
    if report.n_learned:
        rows.append(("model", report.model))
    screen.grid(rows)
    screen.notes(report.notes)

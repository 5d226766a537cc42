"""What a trial found, as a person reads it in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .printing import Printer

if TYPE_CHECKING:
    from ..workflows.evaluate import Measure
    from ..workflows.trial import Compared, TrialReport

_STYLES = {"ship": "bold green", "don't ship": "bold red", "not enough evidence": "bold yellow"}


class TrialPrinter(Printer):
    """Lays the report of a trial out."""

    def trial(self, report: TrialReport) -> None:
        """Show the table, and then the verdict."""
        from rich.padding import Padding

        self._print(
            self._text(f"{report.log} on {report.data}", "bold"),
            self._text(
                f"{report.n_objects:,} objects, {report.rows}; seed {report.seed}.\n"
                f"Learned from {report.n_before:,} older lists, measured on {report.n_after:,} queries of later ones,\n"
                f"{report.n_near:,} of them near to judged ones."
                if report.results
                else f"{report.n_objects:,} objects. Nothing was tried."
            ),
        )
        if report.results:
            table = self._table("", "right", "against cosine", "near", "unlike", "first", "shown")
            for one in report.results:
                is_chosen = one.name == report.verdict.method
                table.add_row(*self._row(one), style="green" if is_chosen else "dim" if one.is_worse else "")
            self._print(Padding(table, (1, 2), expand=False))
            self._print(
                self._text(
                    "right: share of comparisons in a list in the right order, its gain against\n"
                    "the cosine with a 95 % interval, paired over queries, and that of queries near\n"
                    "to judged ones and unlike them. first: gain of lists with a good one first.\n"
                    "shown: share of its first ten that were in the list: of others no log can tell.",
                    "dim",
                )
            )
        verdict = report.verdict
        self._print(self._text(f"\n{verdict.decision.capitalize()}", _STYLES[verdict.decision]))
        reason = f"{verdict.reason[0].upper()}{verdict.reason[1:]}.".replace("±", self._plus_minus)
        self._print(self._text(reason))
        if report.code:
            self._print("")
            for line in report.code:  # to be copied: never wrapped
                self.terminal.print(self._text(f"    {line}"), soft_wrap=True)
            self._print("")
        for path in report.written:
            self._print(self._text(f"wrote {path}"))
        self._notes(report.notes)

    def _row(self, one: Compared) -> list[str]:
        return [
            one.name,
            f"{one.right.after:.3f}",
            f"{_gain(one.right)} {self._plus_minus} {one.right.error or 0.0:.3f}",
            *(_gain(measure) for measure in (one.near, one.unlike, one.first)),
            f"{one.judged:.0%}",
        ]


def _gain(measure: Measure | None) -> str:
    return "-" if measure is None or measure.difference is None else f"{measure.difference:+.3f}"

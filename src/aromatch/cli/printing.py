"""Reports as a person reads them in a terminal; without colours and lines where there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

    from ..workflows.ask import AskReport
    from ..workflows.evaluate import EvalReport, Measure
    from ..workflows.explain import ExplainReport
    from ..workflows.export import ExportReport
    from ..workflows.info import InfoReport
    from ..workflows.search import Asked, SearchReport
    from ..workflows.train import TrainReport

# Columns: lines that are longer are hard to read, however wide the terminal.
WIDEST = 100


def console() -> Console:
    """Give the terminal, not too wide."""
    from rich.console import Console

    terminal = Console(highlight=False)
    terminal.width = min(terminal.width, WIDEST)
    return terminal


class Printer:
    """Lays reports out, with signs that the terminal has."""

    def __init__(self) -> None:
        self.terminal = console()
        self._plain = not self.terminal.encoding.startswith("utf")
        self._plus_minus = "+/-" if self._plain else "±"

    def _print(self, *parts: RenderableType) -> None:
        for part in parts:
            self.terminal.print(part, soft_wrap=isinstance(part, str))

    def _text(self, text: str, style: str = "") -> Any:
        """Give text that is taken as it is: files and their names may hold what looks like markup, or like commands."""
        from rich.text import Text

        text = "".join(sign if sign.isprintable() or sign == "\n" else " " for sign in text)
        return Text(text.replace("…", "...") if self._plain else text, style=style)

    def _table(self, *columns: str) -> Table:
        from rich.box import SIMPLE_HEAD
        from rich.table import Table

        box = None if self._plain else SIMPLE_HEAD
        table = Table(box=box, show_edge=False, pad_edge=False, header_style="bold", expand=False)
        for column in columns:
            table.add_column(column, justify="right" if column else "left")
        return table

    def _grid(self, rows: list[tuple[str, str]]) -> Any:
        from rich.padding import Padding
        from rich.table import Table

        grid = Table(box=None, show_header=False, pad_edge=False)
        grid.add_column(style="dim", no_wrap=True)
        grid.add_column(overflow="fold")
        for name, value in rows:
            grid.add_row(name, self._text(value))
        return Padding(grid, (0, 2), expand=False)

    def _notes(self, notes: list[str]) -> None:
        for note in notes:
            self._print(self._text(f"note: {note}", "yellow"))

    # -- commands -----------------------------------------------------------------------------------------

    def train(self, report: TrainReport) -> None:
        """Tell what was learned."""
        told = f"Learned what is similar in {report.data}."
        rows = [
            (report.what, f"{report.n_objects:,}, {report.prepared}"),
            ("said", report.supervision),
            ("queries", f"{report.n_queries:,} learned from, {report.n_held_out:,} held out, seed {report.seed}"),
            ("learner", report.learner),
        ]
        if report.n_updates is not None and report.n_triplets:
            share = f"{report.n_updates / report.n_triplets:.0%} changed the model"
            resumed = f", {report.resumed_from:,} of them before" if report.resumed_from else ""
            rows.append(("triplets", f"{report.n_triplets:,}{resumed}, {share}"))
        if report.tried:
            best = max(one["mean_average_precision"] for one in report.tried)
            rows.append(("tried", "mAP, with a fifth of the queries held out from learning:"))
            for one in report.tried:
                figure = one["mean_average_precision"]
                rows.append(("", f"{figure:.3f}  {one['learner']}{' (best)' if figure == best else ''}"))
        rows.append(("written", f"{report.output}, {_size(report.n_bytes)}, after {report.seconds:.1f} s"))
        self._print(self._text(told, "bold"), self._grid(rows))
        self._notes(report.notes)

    def evaluate(self, report: EvalReport) -> None:
        """Show before and after."""
        from rich.padding import Padding

        known = (
            f" ({report.n_learned_left_out:,} that it was learned from left out)" if report.n_learned_left_out else ""
        )
        self._print(
            self._text(f"{report.model} on {report.data}", "bold"),
            self._text(f"{report.n_queries:,} queries{known}, {report.n_objects:,} objects; {report.supervision}"),
        )
        table = self._table("", "before", "after", "difference", "95 %", "p")
        for measure in report.measures:
            table.add_row(*self._measure(measure), style=_style(measure))
        self._print(Padding(table, (1, 2), expand=False))
        self._print(
            self._text(f"before: {report.before}. p: paired t-test over queries.", "dim"),
        )
        for path in report.runs:
            self._print(self._text(f"wrote {path}"))
        if report.n_queries_left_out:
            self._notes([f"{report.n_queries_left_out:,} queries have nothing relevant and are left out"])
        self._notes(report.notes)

    def _measure(self, measure: Measure) -> list[str]:
        name = "right comparisons" if measure.name == "right" else measure.name
        if measure.before is None or measure.difference is None:
            return [name, "-", f"{measure.after:.3f}", "", "", ""]
        error = "" if measure.error is None else f"{self._plus_minus}{measure.error:.3f}"
        p = "" if measure.p is None else "< 0.001" if measure.p < 0.001 else f"{measure.p:.3f}"
        return [name, f"{measure.before:.3f}", f"{measure.after:.3f}", f"{measure.difference:+.3f}", error, p]

    def search(self, report: SearchReport) -> None:
        """Show what was found."""
        self._notes(report.notes)
        for answer in report.answers:
            self._answer(answer)

    def _answer(self, answer: Asked) -> None:
        from rich.table import Table

        self._print(self._text(answer.query, "bold"))
        if answer.is_plain:
            self._notes(["the model knows none of these words: found by the cosine alone; more --terms know more"])
        elif answer.unknown_words:
            self._print(self._text(f"not known: {', '.join(answer.unknown_words)}", "dim"))
        sides = (
            [("after", answer.hits)] if answer.before is None else [("before", answer.before), ("after", answer.hits)]
        )
        if len(sides) == 1:
            table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
            table.add_column(justify="right", style="dim")
            table.add_column(no_wrap=True)
            table.add_column(overflow="fold", style="bold")
            for hit in answer.hits:
                table.add_row(str(hit.rank), f"{hit.score:.3f}", self._text(hit.id))
                if hit.text:
                    table.add_row("", "", self._text(hit.text, "not bold dim"))
        else:
            table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="italic", expand=True)
            table.add_column(justify="right", style="dim")
            for name, _ in sides:
                table.add_column(name, ratio=1, no_wrap=True, overflow="crop" if self._plain else "ellipsis")
            for place in range(max(len(hits) for _, hits in sides)):
                cells = [self._text(hits[place].id if place < len(hits) else "") for _, hits in sides]
                table.add_row(str(place + 1), *cells)
        self._print(table, "")

    def explain(self, report: ExplainReport) -> None:
        """Show why."""
        from rich.padding import Padding

        spread = "" if report.std is None else f"{report.std:.3f}"
        self._print(self._text(f"{report.query}  ->  {report.object}", "bold"))
        if report.text:
            self._print(self._text(report.text, "dim"))
        table = self._table("query", "object", "adds", "std")
        for column in table.columns[:2]:
            column.justify = "left"
        for reason in report.reasons:
            std = "" if reason.std is None else f"{reason.std:.3f}"
            style = "green" if reason.value > 0 else "red"
            table.add_row(
                self._text(reason.of_query), self._text(reason.of_object), f"{reason.value:+.3f}", std, style=style
            )
        table.add_row("all other pairs", "", f"{report.rest:+.3f}", "", style="dim")
        table.add_row("score", "", f"{report.score:+.3f}", spread, style="bold")
        self._print(Padding(table, (1, 2), expand=False))

    def ask(self, report: AskReport) -> None:
        """Tell what came of it."""
        rows = [
            ("asked", f"{report.n_asked:,}, {report.n_skipped:,} skipped"),
            ("learned", f"{report.n_learned:,}, {report.n_surprises:,} of them not as the model thought"),
        ]
        if report.n_compared:
            agreed = report.n_compared - report.n_disagreed
            rows.append(("judge", f"agrees with people on {agreed:,} of {report.n_compared:,}"))
        rows.append(("log", report.log))
        if report.n_learned:
            rows.append(("model", report.model))
        self._print(self._grid(rows))
        self._notes(report.notes)

    def export(self, report: ExportReport) -> None:
        """Tell what was written."""
        self._print(
            self._text(
                f"{report.model}: vectors of {report.rank:,} numbers, which lose {report.lost_share:.1%} of W", "bold"
            )
        )
        self._print(self._grid([("wrote" if not at else "", path) for at, path in enumerate(report.files)]))
        self._notes(report.notes)

    def info(self, report: InfoReport) -> None:
        """Tell what a model file is."""
        about = report.about
        set_to = ", ".join(
            f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value!r}"
            for name, value in report.parameters.items()
            if value is not None and name != "verbose"
        )
        rows = [
            ("kind", f"{report.kind}({set_to})"),
            ("size", f"{report.n_query_features:,} x {report.n_object_features:,} features, {_size(report.n_bytes)}"),
            ("rows", report.prepared),
        ]
        if "data" in about:
            rows += [
                ("learned on", f"{about['data']}: {about.get('n_objects', 0):,} {about.get('what', 'objects')}"),
                ("said", ", ".join([str(about.get("supervision")), *map(str, about.get("files", {}).values())])),
                ("queries", f"{about.get('n_queries', 0):,}, {about.get('n_held_out', 0):,} more held out"),
                ("made by", f"{about.get('made_by')}, seed {about.get('seed')}"),
            ]
        elif about:
            rows.append(("learned on", ", ".join(f"{name} {value}" for name, value in about.items())))
        if about.get("n_answers"):
            rows.append(("answers", f"{about['n_answers']:,} learned with `aromatch ask`"))
        if report.n_triplets is not None:
            updates = f", {report.n_updates / max(1, report.n_triplets):.0%} changed it" if report.n_updates else ""
            rows.append(("triplets", f"{report.n_triplets:,}{updates}"))
        rows.append(("how sure", "; ".join(_how_sure(report))))
        self._print(self._text(report.path, "bold"), self._grid(rows))


def _how_sure(report: InfoReport) -> list[str]:
    told = []
    if report.came_true is not None:
        told.append(f"{report.came_true:.1%} of {report.n_predicted:,} comparisons came out as it said beforehand")
    if report.variance_left is not None:
        told.append(f"{report.variance_left:.1%} of the variance of W is left")
    if not report.knows_how_sure:
        told.append("it has no distribution, so that it cannot tell for a single score")
    elif not told:
        told.append("it can tell for each score; nothing was held out to see whether that is right")
    return told


def _style(measure: Measure) -> str:
    """Mark what is more than chance."""
    if measure.p is None or measure.p >= 0.05 or not measure.difference:
        return ""
    return "green" if measure.difference > 0 else "red"


def _size(n_bytes: int) -> str:
    for unit in ("bytes", "KB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}" if unit == "bytes" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000  # type: ignore[assignment]
    return f"{n_bytes:.1f} GB"

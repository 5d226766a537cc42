"""`aromatch reproduce`."""

from typing import Annotated

import typer

from .options import Json


def reproduce(
    figure: Annotated[str, typer.Argument(help="fig3 (images), fig4 (texts) or all.", metavar="fig3|fig4|all")] = "all",
    quick: Annotated[bool, typer.Option("--quick", help="Run smaller experiments.")] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Random seed of splits and triplets.", show_default="that of the spec")
    ] = None,
    output: Annotated[
        str, typer.Option(help="Folder for results.md, and for results/ with figures and raw results.")
    ] = "reproduced",
    jobs: Annotated[int | None, typer.Option(min=1, help="Number of processes.", show_default="all cores")] = None,
    cell: Annotated[str | None, typer.Option(help="Recompute only this cell of the raw results, and compare.")] = None,
    json: Json = False,
) -> None:
    """Run the experiments of the paper: both tasks, all methods, all six panels, every claim.

    Writes figures, raw results and a page of tables and verdicts. After an interruption the same command resumes. If a
    data set is missing, an error message names its source.
    """
    from .._utils.printable import print_lines, to_json
    from ..paper.reproduce import reproduce as run
    from ..paper.reproduce import reproduce_cell
    from ..paper.spec import FIGURES

    if figure not in (*FIGURES, "all"):
        raise ValueError(f"the figure must be fig3, fig4 or all, got {figure!r}")
    if cell is not None:
        if figure == "all":
            raise ValueError("--cell needs a figure: aromatch reproduce fig4 --cell ...")
        report = reproduce_cell(output, figure, cell)
        text = f"{report['name']}: {'same' if report['same'] else 'DIFFERENT'}"
        print_lines(*(to_json(report, indent=2).split("\n") if json else [text]))
        raise typer.Exit(0 if report["same"] else 1)
    report = run(FIGURES if figure == "all" else (figure,), folder=output, quick=quick, seed=seed, n_jobs=jobs)
    print_lines(*(to_json(report, indent=2).split("\n") if json else report["written"]))

"""Arguments and options that several commands share."""

import re
from typing import Annotated

import typer

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def _limit_memory(size: str | None) -> str | None:
    """Set the limit of this process."""
    from .._utils.checks import set_max_memory  # imports NumPy, which help does without

    found = re.fullmatch(r"([0-9]{1,15})([KMGT]?)(i?B)?", size or "0", re.IGNORECASE)
    if found is None:
        raise typer.BadParameter(f"must be a size such as 500M or 4G, got {size!r}")
    set_max_memory(None if size is None else int(found[1]) * _UNITS[found[2].upper()])
    return size


Model = Annotated[str, typer.Argument(help="The model file.", metavar="MODEL")]
Data = Annotated[
    str | None,
    typer.Option("--data", "-d", help="The collection: a folder of texts or a file, such as the training data."),
]
TrustRecordedPaths = Annotated[
    bool,
    typer.Option("--trust-recorded-paths", help="Read the paths recorded in the model file where none are given."),
]
Queries = Annotated[str | None, typer.Option(help="Queries, if they are not the objects themselves.")]
Labels = Annotated[
    str | None, typer.Option(help="File with id and label: .csv, .tsv, .jsonl; or .npy with a label for each row.")
]
Triplets = Annotated[
    str | None,
    typer.Option(help="File with query, better and worse: ids in .csv, .tsv or .jsonl; row indices in .npy."),
]
Qrels = Annotated[str | None, typer.Option(help="File of relevance judgements in the format of TREC or BEIR.")]
Clicks = Annotated[str | None, typer.Option(help="File with query, shown and clicked: .csv, .tsv or .jsonl.")]
Missing = Annotated[str, typer.Option(help="Unknown ids: error or skip.", metavar="NAME")]
MaxMemory = Annotated[
    str | None,
    typer.Option(
        callback=_limit_memory,
        metavar="SIZE",
        help="Maximum memory for files and models, such as 500M or 4G.",
        show_default="half of the machine's, and 1 GiB or 100 times the size of a file",
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Random seed.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON only.")]

"""Arguments and options that several commands share."""

from typing import Annotated

import typer

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
Seed = Annotated[int, typer.Option(min=0, help="Random seed.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON only.")]

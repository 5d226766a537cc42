"""The commands that make a model from files and use it."""

from typing import Annotated, Any

import typer

Model = Annotated[str, typer.Argument(help="The model file.", metavar="MODEL")]
Data = Annotated[
    str | None,
    typer.Option(help="The collection: a folder of texts or a file.", show_default="what the model was learned on"),
]
Queries = Annotated[str | None, typer.Option(help="A file or folder of queries, when objects are not their own.")]
Labels = Annotated[
    str | None, typer.Option(help="File with id and label: .csv, .tsv, .jsonl; or .npy in the order of rows.")
]
Triplets = Annotated[
    str | None, typer.Option(help="File with query, better and worse: .csv, .tsv, .jsonl by ids; .npy by row numbers.")
]
Qrels = Annotated[str | None, typer.Option(help="File of relevance judgements, as TREC or BEIR write them.")]
Clicks = Annotated[str | None, typer.Option(help="File with query, shown and clicked: .csv or .jsonl.")]
Seed = Annotated[int, typer.Option(min=0, help="Decides all that is drawn.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON only, for programs.")]


def train(
    data: Annotated[
        str,
        typer.Argument(
            help="The collection: a folder of texts, or a file .csv, .tsv, .jsonl, .npy, .npz or .svmlight.",
            metavar="DATA",
        ),
    ],
    output: Annotated[str, typer.Option("--output", "-o", help="The model file to write.")],
    queries: Queries = None,
    labels: Labels = None,
    triplets: Triplets = None,
    qrels: Qrels = None,
    clicks: Clicks = None,
    learner: Annotated[
        str, typer.Option(help="auto, moment, refined, diagonal, factored or oasis.", metavar="NAME")
    ] = "auto",
    r: Annotated[
        float | None, typer.Option("--r", help="How much one judgement is doubted (diagonal, factored).")
    ] = None,
    c: Annotated[float | None, typer.Option("--c", help="The largest step (oasis).")] = None,
    lam: Annotated[
        float | None, typer.Option(help="How much W is held back (moment, refined).", show_default="chosen")
    ] = None,
    init: Annotated[
        str | None,
        typer.Option(help="W to begin with: zero, identity or a multiple of it (diagonal, factored, oasis)."),
    ] = None,
    draws: Annotated[int, typer.Option(min=1, help="How many triplets to draw from labels.")] = 50_000,
    terms: Annotated[
        int | None,
        typer.Option(min=1, help="How many terms of texts to keep.", show_default="1,000 with labels, else 4,000"),
    ] = None,
    scale: Annotated[str, typer.Option(help="Of vectors: none, unit, centre or standard.", metavar="NAME")] = "auto",
    hold_out: Annotated[float, typer.Option(help="Share of the queries to keep for `aromatch eval`.")] = 0.0,
    missing: Annotated[str, typer.Option(help="What to do with unknown ids: error or skip.", metavar="NAME")] = "error",
    seed: Seed = 0,
    restart: Annotated[bool, typer.Option("--restart", help="Begin anew, also when a checkpoint is there.")] = False,
    checkpoint_seconds: Annotated[float, typer.Option(min=0, help="How often to keep what was learned so far.")] = 30.0,
    json: Json = False,
) -> None:
    """Learn what similar means in a collection, and write a model.

    What belongs together is told by labels (a folder in DATA is one), triplets, relevance judgements or clicks. After
    Ctrl-C the same command goes on where it stopped, to the same result.
    """
    from ..workflows.learning import Settings
    from ..workflows.train import Training
    from ..workflows.train import train as run

    settings = Settings(learner=learner, r=r, C=c, lam=lam, init=init, draws=draws)
    wanted = Training(
        data=data,
        output=output,
        queries=queries,
        labels=labels,
        triplets=triplets,
        qrels=qrels,
        clicks=clicks,
        missing=missing,
        settings=settings,
        terms=terms,
        scale=scale,
        hold_out=hold_out,
        seed=seed,
        restart=restart,
        checkpoint_seconds=checkpoint_seconds,
    )
    _show(run(wanted), "train", json)


def evaluate(
    model: Model,
    data: Data = None,
    queries: Queries = None,
    labels: Labels = None,
    triplets: Triplets = None,
    qrels: Qrels = None,
    clicks: Clicks = None,
    k: Annotated[str, typer.Option("-k", help="For precision and nDCG at k, with commas between.")] = "1,10",
    run: Annotated[
        str | None, typer.Option(help="Write rankings as a TREC run; those of before to the same with .before.")
    ] = None,
    include_learned: Annotated[
        bool, typer.Option("--include-learned", help="Measure queries that it was learned from, too.")
    ] = False,
    missing: Annotated[
        str | None, typer.Option(help="What to do with unknown ids: error or skip.", metavar="NAME")
    ] = None,
    json: Json = False,
) -> None:
    """Show how well a model ranks, before and after learning.

    Precision at k, nDCG at k and mAP for queries that it was not learned from, against the cosine, with a paired test.
    Triplets and clicks give the share of comparisons that come out right.
    """
    from ..workflows.evaluate import evaluate as run_it

    report = run_it(
        model,
        data=data,
        queries=queries,
        files={"labels": labels, "triplets": triplets, "qrels": qrels, "clicks": clicks},
        missing=missing,
        ks=_whole_numbers(k),
        run=run,
        include_learned=include_learned,
    )
    _show(report, "evaluate", json)


def search(
    model: Model,
    words: Annotated[str | None, typer.Argument(help="What to look for.", metavar="[WORDS]")] = None,
    like: Annotated[str | None, typer.Option(help="Find what is like the object with this id.")] = None,
    queries: Annotated[str | None, typer.Option(help="A file or folder of queries, in place of words.")] = None,
    data: Data = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many to find.")] = 10,
    compare: Annotated[bool, typer.Option("--compare", help="Show what the cosine finds beside it.")] = False,
    json: Json = False,
) -> None:
    """Find what is similar, by what was learned.

    With --json each score comes with its standard deviation, where the model knows it.
    """
    from ..workflows.search import search as run

    report = run(model, words, like=like, queries=queries, data=data, k=k, compare=compare)
    _show(report, "search", json)


def explain(
    model: Model,
    found: Annotated[str, typer.Argument(help="Id of the object that was found.", metavar="ID")],
    words: Annotated[str | None, typer.Argument(help="What was looked for.", metavar="[WORDS]")] = None,
    like: Annotated[str | None, typer.Option(help="Id of the object that was looked for.")] = None,
    data: Data = None,
    top: Annotated[int, typer.Option(min=1, help="How many pairs to show.")] = 10,
    json: Json = False,
) -> None:
    """Tell why something was found: which pairs of terms or features make its score."""
    from ..workflows.explain import explain as run

    _show(run(model, found, words, like=like, data=data, top=top), "explain", json)


def ask(
    model: Model,
    n: Annotated[int, typer.Option("-n", min=1, help="How many comparisons.")] = 10,
    data: Data = None,
    queries: Queries = None,
    judge: Annotated[
        str | None, typer.Option(help="A command that answers instead: JSON lines in, 1, 2 or 0 out.", metavar="CMD")
    ] = None,
    judge_timeout: Annotated[float, typer.Option(help="Seconds that the command may take for an answer.")] = 120.0,
    log: Annotated[
        str | None, typer.Option(help="File .jsonl for the answers.", show_default="MODEL.answers.jsonl")
    ] = None,
    replay: Annotated[str | None, typer.Option(help="Learn the answers of this log; nobody is asked.")] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="The model file to write.", show_default="MODEL itself")
    ] = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Ask which of two objects is better, where the model is least sure, and learn the answers.

    The log can be given to `aromatch train --triplets`, or replayed on the model that it began with.
    """
    from ..workflows import ask as asking

    if replay is not None:
        if judge is not None:
            raise ValueError("--replay asks nobody, so that --judge has nothing to do")
        report = asking.replay(model, replay, output or model, data=data, queries=queries)
    elif judge is not None:
        from ..workflows.judge import Judge

        with Judge(judge, judge_timeout) as program:
            report = asking.ask(
                model, program, n=n, by=asking.JUDGE, data=data, queries=queries, log=log, output=output, seed=seed
            )
    else:
        from .terminal import ask_person

        answer = ask_person(n)
        report = asking.ask(model, answer, n=n, data=data, queries=queries, log=log, output=output, seed=seed)
    _show(report, "ask", json)


def export(
    model: Model,
    output: Annotated[str, typer.Option("--output", "-o", help="The folder to write into.")],
    rank: Annotated[
        int | None, typer.Option(min=1, help="How many numbers a vector has.", show_default="128, or all")
    ] = None,
    json: Json = False,
) -> None:
    """Write a model for other stores of vectors, with recipes for FAISS and pgvector.

    The query transform and low-rank factors, as npz and safetensors.
    """
    from ..workflows.export import export as run

    _show(run(model, output, rank=rank), "export", json)


def info(model: Model, json: Json = False) -> None:
    """Tell what a model file is, what it was learned on and how sure it is."""
    from ..workflows.info import info as run

    _show(run(model), "info", json)


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(epilog="Example: aromatch train papers --hold-out 0.2 --output papers.safetensors")(train)
    app.command("eval", epilog="Example: aromatch eval papers.safetensors --run papers.run")(evaluate)
    app.command(epilog='Example: aromatch search papers.safetensors "a few words" --compare')(search)
    app.command(epilog='Example: aromatch explain papers.safetensors space/17.txt "a few words"')(explain)
    app.command(epilog="Example: aromatch ask papers.safetensors -n 20")(ask)
    app.command(epilog="Example: aromatch export papers.safetensors --rank 64 --output vectors")(export)
    app.command(epilog="Example: aromatch info papers.safetensors --json")(info)


def _whole_numbers(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and int(part) > 0 for part in parts):
        raise ValueError(f"-k must be whole numbers with commas between, such as 1,10, got {text!r}")
    return list(dict.fromkeys(map(int, parts)))


def _show(report: Any, name: str, as_json: bool) -> None:
    """Print a report for a program or for a person."""
    if as_json:
        from json import dumps

        typer.echo(dumps(report.to_dict(), indent=2, ensure_ascii=False))
    else:
        from .printing import Printer

        getattr(Printer(), name)(report)

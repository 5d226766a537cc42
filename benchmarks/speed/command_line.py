"""What `aromatch train` comes to on two collections, with each learner: the table of docs/command-line.md.

    AROMATCH_DATA=... python -m benchmarks.speed.command_line

Posts of eight newsgroups with their labels, and the abstracts of Cranfield with queries and relevance judgements. Three
in ten queries are held out, and figures are mAP for those. It takes about two minutes.
"""

import json
import lzma
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path

from aromatch.datasets import data_folder
from aromatch.workflows.evaluate import evaluate
from aromatch.workflows.fitting import LearnerOptions
from aromatch.workflows.train import TrainOptions, train

GROUPS = (
    "comp.graphics",
    "comp.sys.mac.hardware",
    "rec.autos",
    "rec.sport.hockey",
    "sci.electronics",
    "sci.med",
    "sci.space",
    "talk.politics.mideast",
)
N_EACH = 150
# The closed form keeps thirteen matrices while it learns: at 4,000 terms they take 1.7 GB.
TERMS = {"moment": 2_000}


def write_newsgroups(folder):
    """Write the first posts of each group, without their headers."""
    counts = Counter()
    with lzma.open(data_folder() / "20news.jsonl.xz", "rt", encoding="utf-8") as lines:
        for line in lines:
            post = json.loads(line)
            group, text = post["group"], post["text"]
            if group in GROUPS and counts[group] < N_EACH:
                counts[group] += 1
                path = folder / group / f"{counts[group]:03}.txt"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text.partition("\n\n")[2] or text, encoding="utf-8")
    return {"data": str(folder)}


def parts_of(path):
    """Read a file of Cranfield: the parts of each entry by their letters, in order."""
    entries, letter = [], None
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith(".I"):
            entries.append({"I": line.split()[1]})
        elif re.fullmatch(r"\.[TABWN]\s*", line):
            letter = line[1]
        else:
            entries[-1][letter] = f"{entries[-1].get(letter, '')}{line}\n"
    return entries


def write_cranfield(folder):
    """Write the abstracts and the queries in the form of BEIR; judgements number queries from 1."""
    source = data_folder() / "cranfield"
    folder.mkdir()
    abstracts = [
        {"_id": one["I"], "title": one.get("T", "").strip(), "text": one.get("W", "").strip()}
        for one in parts_of(source / "cran.all.1400")
    ]
    queries = [
        {"_id": str(number), "text": one["W"].strip()}
        for number, one in enumerate(parts_of(source / "cran.qry"), start=1)
    ]
    for name, records in (("corpus.jsonl", abstracts), ("queries.jsonl", queries)):
        (folder / name).write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    lines = [line for line in (source / "QRelsCorrectedforTRECeval").read_text().splitlines() if len(line.split()) == 4]
    (folder / "qrels.txt").write_text("\n".join(lines) + "\n")
    return {name: str(folder / file) for name, file in (("data", "corpus.jsonl"), ("queries", "queries.jsonl"))} | {
        "qrels": str(folder / "qrels.txt")
    }


def main(seeds=(0,)):
    with tempfile.TemporaryDirectory() as place:
        path = str(Path(place, "model"))
        for name, write in (("newsgroups", write_newsgroups), ("cranfield", write_cranfield)):
            files = write(Path(place, name))
            for learner in ("auto", "moment", "embedding", "diagonal"):
                for seed in seeds:
                    terms = TERMS.get(learner) if "qrels" in files else None
                    report = train(
                        TrainOptions(
                            output=path,
                            learner=LearnerOptions(learner),
                            hold_out=0.3,
                            seed=seed,
                            terms=terms,
                            force=True,
                            **files,
                        )
                    )
                    (figure,) = (one for one in evaluate(path).measures if one.name == "mAP")
                    print(
                        f"{name:12}{learner:10}seed {seed}  mAP {figure.baseline:.3f} -> {figure.learned:.3f}  "
                        f"p {figure.p:.2g}  {report.learner}, {report.seconds:.1f} s",
                        flush=True,
                    )


if __name__ == "__main__":
    main(tuple(map(int, sys.argv[1:])) or (0,))

"""mAP of `aromatch train` with each learner on two collections: the figures of docs/command-line.md.

    AROMATCH_DATA=... python -m benchmarks.speed.command_line 0 1 2    with these seeds

Posts of eight newsgroups with their labels, and the abstracts of Cranfield with queries and relevance judgements. mAP
is that of held-out queries, 30 % of all. A seed takes several minutes.
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
from benchmarks.shared.cranfield import read_entries

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
# MomentAROMA has thirteen matrices during training: 1.7 GB with 4,000 terms.
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


def field(text, letter):
    """Return a field of an entry of Cranfield."""
    found = re.findall(rf"^\.{letter}\s*\n((?:(?!\.[TABW]\s*$).*\n)*)", text, flags=re.MULTILINE)
    return "".join(found).strip()


def write_cranfield(folder):
    """Write abstracts and queries in the format of BEIR; judgements number queries from 1."""
    source = data_folder() / "cranfield"
    folder.mkdir()
    abstracts = [
        {"_id": number, "title": field(text, "T"), "text": field(text, "W")}
        for number, text in read_entries(source / "cran.all.1400")
    ]
    queries = [
        {"_id": str(number), "text": field(text, "W")}
        for number, (_, text) in enumerate(read_entries(source / "cran.qry"), start=1)
    ]
    for name, records in (("corpus.jsonl", abstracts), ("queries.jsonl", queries)):
        (folder / name).write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    lines = [line for line in (source / "QRelsCorrectedforTRECeval").read_text().splitlines() if len(line.split()) == 4]
    (folder / "qrels.txt").write_text("\n".join(lines) + "\n")
    return {name: str(folder / file) for name, file in (("data", "corpus.jsonl"), ("queries", "queries.jsonl"))} | {
        "qrels": str(folder / "qrels.txt")
    }


def main(seeds=(0,)):
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "model"))
        for name, write in (("newsgroups", write_newsgroups), ("cranfield", write_cranfield)):
            files = write(Path(folder, name))
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
                    (figure,) = (one for one in evaluate(path, trust_recorded_paths=True).measures if one.name == "mAP")
                    print(
                        f"{name:12}{learner:10}seed {seed}  mAP {figure.baseline:.3f} -> {figure.learned:.3f}  "
                        f"p {figure.p:.2g}  {report.learner}, {report.seconds:.1f} s",
                        flush=True,
                    )


if __name__ == "__main__":
    main(tuple(map(int, sys.argv[1:])) or (0,))

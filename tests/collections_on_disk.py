"""Small collections in files, for tests of the workflows and the command line."""

import json

import numpy as np

WORDS = {
    "fruit": ["apple", "pear", "plum", "cherry", "grape", "melon"],
    "tools": ["hammer", "saw", "drill", "chisel", "plane", "clamp"],
    "birds": ["heron", "robin", "eagle", "swift", "raven", "crane"],
}
COMMON = ["thing", "case", "place", "number", "point", "week"]


def texts_and_labels(n_each=30, seed=0):
    """Return texts of two words of their class and three common words, and their labels."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(list(WORDS), n_each)
    texts = [" ".join([*rng.choice(WORDS[label], 2), *rng.choice(COMMON, 3)]) for label in labels]
    return texts, labels


def write_folder(folder, n_each=30, seed=0):
    """Write text files, one folder per label; return the top folder."""
    texts, labels = texts_and_labels(n_each, seed)
    for number, (text, label) in enumerate(zip(texts, labels, strict=True)):
        place = folder / label
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number:03}.txt").write_text(f"Note {number}\n\n{text}\n", encoding="utf-8")
    return folder


def write_jsonl(path, records):
    """Write one line of JSON per record; return the path."""
    path.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    return path


def write_search(folder, n_each=20, n_queries=36, seed=0):
    """Write a corpus, queries and qrels in BEIR format; the texts of the class of a query are relevant."""
    texts, labels = texts_and_labels(n_each, seed)
    write_jsonl(
        folder / "corpus.jsonl", [{"_id": f"d{at}", "title": "", "text": text} for at, text in enumerate(texts)]
    )
    rng = np.random.default_rng(seed + 1)
    classes = [list(WORDS)[at % 3] for at in range(n_queries)]
    write_jsonl(
        folder / "queries.jsonl",
        [
            {"_id": f"q{at}", "text": f"{rng.choice(WORDS[name])} {rng.choice(COMMON)} code{at}"}
            for at, name in enumerate(classes)
        ],
    )
    lines = ["query-id\tcorpus-id\tscore"]
    for at, name in enumerate(classes):
        for row in rng.choice(np.flatnonzero(labels == name), 5, replace=False):
            lines.append(f"q{at}\td{row}\t{1 + at % 2}")
    (folder / "qrels.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def write_vectors(path, n_each=30, width=12, seed=0):
    """Write a csv file of labelled rows with features of different scales; return the path."""
    rng = np.random.default_rng(seed)
    names = ["a", "b", "c"]
    centres = rng.normal(size=(3, width))
    lines = ["id,label," + ",".join(f"f{at}" for at in range(width))]
    for at in range(3 * n_each):
        row = (centres[at % 3] + 0.7 * rng.normal(size=width)) * 10.0 ** np.linspace(0, 3, width) + 5
        lines.append(f"r{at},{names[at % 3]}," + ",".join(f"{value:.6g}" for value in row))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path

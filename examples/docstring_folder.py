"""Write docstrings of the standard library as text files, one folder per module, as data for the command line.

    python examples/docstring_folder.py FOLDER

Uses the 24 modules with most docstrings, and up to 60 docstrings of each.
"""

import sys
from collections import Counter
from pathlib import Path

import aromatch as am

N_MODULES, N_PER_MODULE, MIN_LENGTH = 24, 60, 80


def main(folder="docstrings"):
    corpus = am.datasets.load_stdlib()
    labels = corpus.labels.tolist()
    sizes = Counter(labels)
    modules = sorted(sizes, key=lambda module: (-sizes[module], module))[:N_MODULES]
    texts = {module: {} for module in modules}
    for text, module, name in zip(corpus.texts, labels, corpus.names, strict=True):
        if module in texts and len(texts[module]) < N_PER_MODULE and len(text) >= MIN_LENGTH:
            texts[module][name] = text
    for module, docstrings in texts.items():
        path = Path(folder, module)
        path.mkdir(parents=True, exist_ok=True)
        for name, text in docstrings.items():
            (path / f"{name}.txt").write_text(text, encoding="utf-8")
    n_files = sum(map(len, texts.values()))
    print(f"wrote {n_files:,} files to {folder}")
    return n_files


if __name__ == "__main__":
    main(*sys.argv[1:2])

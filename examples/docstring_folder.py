"""Write docstrings of your Python as text files, a folder for each module: something to try the command line on.

    python examples/docstring_folder.py FOLDER

Takes the modules of the standard library with most docstrings, as many as 24, and up to 60 docstrings of each.
"""

import sys
from collections import Counter
from pathlib import Path

import aromatch as am

N_MODULES, N_EACH, SHORTEST = 24, 60, 80


def main(folder="docstrings"):
    corpus = am.datasets.load_stdlib(verbose=False)
    sizes = Counter(corpus.labels.tolist())
    modules = sorted(sizes, key=lambda name: (-sizes[name], name))[:N_MODULES]
    written = {module: {} for module in modules}
    for text, module, name in zip(corpus.texts, corpus.labels.tolist(), corpus.names, strict=True):
        if module in written and len(written[module]) < N_EACH and len(text) >= SHORTEST:
            written[module][name] = text
    for module, texts in written.items():
        place = Path(folder, module)
        place.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (place / f"{name}.txt").write_text(text, encoding="utf-8")
    n_files = sum(map(len, written.values()))
    print(f"wrote {n_files:,} files to {folder}")
    return n_files


if __name__ == "__main__":
    main(*sys.argv[1:2])

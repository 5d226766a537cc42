"""Where the tests find real data: the folder of `AROMATCH_DATA`, or the one that developers share."""

import os
from pathlib import Path

import pytest

SHARED = Path(__file__).parent.parent.parent / "shared" / "data"
FOLDER = Path(os.environ.get("AROMATCH_DATA") or SHARED)


def needs(name, source):
    """Skip a test where a file is missing, and say where it comes from."""
    path = FOLDER / name
    return pytest.mark.skipif(not path.exists(), reason=f"{name} is not in {FOLDER}: {source}")


needs_newsgroups = needs("20news.jsonl.xz", "pack the posts of http://qwone.com/~jason/20Newsgroups/ so")
needs_caltech101 = needs("caltech101_50.tar", "pack the images of https://data.caltech.edu/records/mzrjq-6wc02 so")
needs_caltech256_10 = needs("caltech256_10.tar", "pack the images of https://data.caltech.edu/records/nyy15-4j048 so")
needs_banking77 = needs(
    "banking77/minilm_f16.npz", "embed the questions of https://github.com/PolyAI-LDN/task-specific-datasets so"
)
needs_cranfield = needs("cranfield/cran.all.1400", "unpack http://ir.dcs.gla.ac.uk/resources/test_collections/cran/")
needs_caltech256 = needs("256_ObjectCategories", "unpack what https://data.caltech.edu/records/nyy15-4j048 has")

"""Location of real data for tests: the folder `AROMATCH_DATA`, or the shared folder of the developers."""

import os
from pathlib import Path

import pytest

SHARED = Path(__file__).parent.parent.parent / "shared" / "data"
FOLDER = Path(os.environ.get("AROMATCH_DATA") or SHARED)


def needs(name, source):
    """Return a mark that skips a test if a file is missing, with its source as the reason."""
    path = FOLDER / name
    return pytest.mark.skipif(not path.exists(), reason=f"{name} is not in {FOLDER}: {source}")


needs_newsgroups = needs("20news.jsonl.xz", "pack the posts of http://qwone.com/~jason/20Newsgroups/")
needs_caltech101 = needs("caltech101_50.tar", "pack the images of https://data.caltech.edu/records/mzrjq-6wc02")
needs_caltech256_10 = needs("caltech256_10.tar", "pack the images of https://data.caltech.edu/records/nyy15-4j048")
needs_banking77 = needs(
    "banking77/minilm_f16.npz", "embed the questions of https://github.com/PolyAI-LDN/task-specific-datasets"
)
needs_cranfield = needs("cranfield/cran.all.1400", "unpack http://ir.dcs.gla.ac.uk/resources/test_collections/cran/")
needs_caltech256 = needs("256_ObjectCategories", "unpack https://data.caltech.edu/records/nyy15-4j048")

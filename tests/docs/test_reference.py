"""The reference page is what the docstrings give."""

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_reference_page_is_up_to_date():
    page = runpy.run_path(str(DOCS / "reference.py"))["page"]
    assert (DOCS / "reference.md").read_text(encoding="utf-8") == page(), "run `make reference`"


def test_every_public_name_is_in_the_reference():
    groups = runpy.run_path(str(DOCS / "reference.py"))["GROUPS"]
    listed = {name.split(".")[0] for names in groups.values() for name in names}
    import aromatch as am

    assert set(am.__all__) - listed == {"learners", "search"}

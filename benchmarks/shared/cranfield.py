"""The text files of the Cranfield collection."""

import re


def read_entries(path):
    """Return the number and the text of each abstract or query; lines such as `.W` begin the fields of the text."""
    parts = re.split(r"^\.I (\d+)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))

"""Text from outside on the terminal: names of files, ids, labels, columns and the headers of models.

Such a text can contain control characters, which command a terminal, and bidirectional ones, which make a line look
like another. Whatever this package prints is printed by `print_lines` or by `aromatch._utils.terminal.Terminal`, and
both show these characters escaped. The linter refuses other ways.
"""

import json
import os
import re
import sys
from typing import Any

# C0, DEL and C1; line and paragraph separators; bidirectional embeddings, overrides and isolates; lone surrogates,
# which stand for bytes of file names that cannot be decoded. Joiners and marks, which scripts and emoji need, stay.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    r"""Return a text with its control characters escaped as in Python, line breaks included.

    >>> print(printable("red\x1b[31m, café, 日本, 👩\u200d🔬"))
    red\x1b[31m, café, 日本, 👩‍🔬
    """
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def as_unicode(name: str) -> str:
    r"""Return the name of a file as valid Unicode: it may contain bytes that cannot be decoded.

    >>> as_unicode("caf\udce9")
    'caf�'
    """
    return os.fsencode(name).decode("utf-8", "replace")


def to_json(value: Any, *, indent: int | None = None) -> str:
    r"""Return JSON with control characters escaped as in JSON, so that it can be printed, and encoded as UTF-8.

    >>> print(to_json({"é": "\x9b1m"}))
    {"é": "\u009b1m"}
    """
    lines = json.dumps(value, indent=indent, ensure_ascii=False).split("\n")
    return "\n".join(_CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", line) for line in lines)


def print_lines(*lines: str, to_stderr: bool = False) -> None:
    """Print lines of text; if standard error is closed or full, nothing is printed there."""
    stream = sys.stderr if to_stderr else sys.stdout
    if stream is None:
        return
    try:
        stream.writelines(f"{printable(line)}\n" for line in lines)
        stream.flush()
    except OSError:
        if not to_stderr:
            raise
        sys.stderr = None  # Python would flush it again at the end, and change the exit code

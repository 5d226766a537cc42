"""A line of a text that shows what it is about: the one with most words of the query."""

from __future__ import annotations

import re

_WORD = re.compile(r"\w{3,}")
_LONGEST = 200
_LINES_LOOKED_AT = 400


def snippet(text: str, query: str) -> str:
    r"""Give the line with most words of the query, or the first one with words; on one line, without control signs.

    >>> snippet("A letter\n\nThe shuttle flew to the moon.\nBye", "moon shuttle")
    'The shuttle flew to the moon.'
    """
    wanted = {word.lower() for word in _WORD.findall(query)}
    lines = [line for line in text.splitlines()[:_LINES_LOOKED_AT] if _WORD.search(line)]
    if not lines:
        return _clean(text)
    scores = [len(wanted & {word.lower() for word in _WORD.findall(line)}) for line in lines]
    return _clean(lines[scores.index(max(scores))])


def beginning(text: str, n_lines: int) -> str:
    """Give the first lines of a text that have words in them."""
    lines = [line for line in text.splitlines()[:_LINES_LOOKED_AT] if _WORD.search(line)]
    return "\n".join(_clean(line) for line in lines[:n_lines]) or _clean(text)


def _clean(line: str) -> str:
    """Leave out what a terminal could take for a command."""
    kept = "".join(letter if letter.isprintable() else " " for letter in line[: 4 * _LONGEST])
    short = " ".join(kept.split())
    return short if len(short) <= _LONGEST else short[: _LONGEST - 1] + "…"

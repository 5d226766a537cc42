"""Lines of texts for the terminal."""

import re

_WORD = re.compile(r"\w{3,}")
_SNIPPET_LENGTH = 200
_SNIPPET_LINES = 400


def snippet(text: str, query: str) -> str:
    r"""Return the line with most words of the query, or the first line with words.

    >>> snippet("A letter\n\nThe shuttle flew to the moon.\nBye", "moon shuttle")
    'The shuttle flew to the moon.'
    """
    words = {word.lower() for word in _WORD.findall(query)}
    lines = lines_with_words(text)
    scores = [len(words & {word.lower() for word in _WORD.findall(line)}) for line in lines]
    return shortened(lines[scores.index(max(scores))] if lines else text)


def lines_with_words(text: str) -> list[str]:
    """Return the lines that contain words, among the first 400."""
    return [line for line in text.splitlines()[:_SNIPPET_LINES] if _WORD.search(line)]


def shortened(line: str) -> str:
    """Return at most 200 characters, with single spaces."""
    short = " ".join(line[: 4 * _SNIPPET_LENGTH].split())
    return short if len(short) <= _SNIPPET_LENGTH else short[: _SNIPPET_LENGTH - 1] + "…"

"""Mutations of files: of bytes, lines, cells, JSON values, and hostile values to put into them."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Sequence
from typing import Any

NUMBERS = [
    "-1", "0", "-0", "1", "2", "127", "128", "255", "256", "32767", "32768", "65536", "2147483647", "2147483648",
    "-2147483648", "-2147483649", "4294967295", "4294967296", "9007199254740993", "9223372036854775807",
    "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551615",
    "18446744073709551616", "2000000000", "1e308", "-1e308", "1e309", "1e-320", "1e-400", "nan", "-nan", "inf", "-inf",
    "Infinity", "NaN", "1_0", "0x10", "1e", "1.", ".5", "+1", "--1", "1,5", "١٢", "9" * 30, "9" * 400, "9" * 5000,
    "0." + "0" * 400 + "1", "1e99999999999", "True", "None", "null", "",
]  # fmt: skip
WORDS = [
    "\0", "\x1b[2J", "\x1b]0;x\x07", "\x9b31m", "\x7f", "\r", "\n", "\r\n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028",
    "\ufeff", "\u202e", "\u200b", "'", '"', '""', '"""', ",", "\t", ";", "#", ":", "\\", "\\u0000", "\\ud800", "{", "[",
    "]", "}", "=", "|", "%s", "{}", "[red]", "[/]", "[bold", "$", "`", "../../../etc/passwd", "/dev/zero", "/dev/stdin",
    "é", "𝕏", "a" * 300, "a" * 70_000, "ß" * 5000, "id", "label", "text", "vector", "query", "good", "bad", "shown",
    "clicked", "time", "weight", "session", "skipped", "qid:1", "qid:-1", "qid:99999999999999999999", "# comment",
    "2026-01-01", "9999-12-31T23:59:59+23:59", "0001-01-01", "0", "1",
]  # fmt: skip
BYTES = [
    b"\0", b"\xff", b"\xfe\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\x80", b"\xef\xbb\xbf", b"\xff\xff\xff\x7f",
    b"\xff\xff\xff\xff", b"\0\0\0\x80", b"\xff\xff\xff\xff\xff\xff\xff\x7f", b"\0\0\0\0\0\0\0\x80", b"\xff" * 8,
    b"\0\0\0\0\0\0\xf8\x7f", b"\0\0\0\0\0\0\xf0\x7f", b"\0\0\0\0\0\0\xf0\xff", b"\xff\xff\xff\xff\xff\xff\xef\x7f",
    b"\0" * 64, b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"PK\x06\x06", b"\x93NUMPY\x01\0", b"\x93NUMPY\x03\0",
]  # fmt: skip


def mutate_bytes(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Return the bytes after one to four changes: flips, cuts, insertions, copies and splices with another seed."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        at = rng.randrange(len(changed) + 1)
        end = min(len(changed), at + rng.choice((1, 1, 2, 4, 8, 16, 100, 1000)))
        match rng.randrange(9):
            case 0 | 1 if at < len(changed):
                changed[at] ^= 1 << rng.randrange(8)
            case 2 if at < len(changed):
                changed[at] = rng.randrange(256)
            case 3:
                del changed[at:]
            case 4:
                del changed[at:end]
            case 5:
                changed[at:at] = rng.choice(BYTES)
            case 6:
                piece = rng.choice(BYTES)
                changed[at : at + len(piece)] = piece
            case 7:
                to = rng.randrange(len(changed) + 1)
                changed[to:to] = changed[at:end] * rng.choice((1, 1, 2, 50))
            case 8:
                other = rng.choice(others)
                changed[at:] = other[rng.randrange(len(other) + 1) :]
    return bytes(changed)


def mutate_text(rng: random.Random, data: bytes, others: Sequence[bytes], separators: str) -> bytes:
    """Return a text after changes of its lines and cells; the separators are the characters between cells."""
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(len(lines))
        match rng.randrange(10):
            case 0:
                del lines[at]
                lines = lines or [""]
            case 1:
                lines.insert(at, rng.choice(lines))
            case 2:
                other = rng.choice(others).decode("utf-8", "surrogateescape").split("\n")
                lines.insert(at, rng.choice(other))
            case 3:
                lines.insert(at, rng.choice(WORDS + NUMBERS))
            case 4:
                lines[at] = lines[at][: rng.randrange(len(lines[at]) + 1)]
            case _:
                lines[at] = _mutate_cells(rng, lines[at], separators)
    return rng.choice(("\n",) * 9 + ("\r\n",)).join(lines).encode("utf-8", "surrogatepass")


def _mutate_cells(rng: random.Random, line: str, separators: str) -> str:
    separator = rng.choice([one for one in separators if one in line] or [separators[0]])
    cells = line.split(separator)
    at = rng.randrange(len(cells))
    match rng.randrange(8):
        case 0:
            del cells[at]
        case 1:
            cells.insert(at, cells[at])
        case 2:
            cells.insert(at, rng.choice(WORDS + NUMBERS))
        case 3:
            place = rng.randrange(len(cells[at]) + 1)
            cells[at] = cells[at][:place] + rng.choice(WORDS) + cells[at][place:]
        case 4 | 5:
            cells[at] = rng.choice(WORDS)
        case _:
            cells[at] = rng.choice(NUMBERS)
    return separator.join(cells)


# -- JSON -------------------------------------------------------------------------------------------------------------


class Raw(str):
    """Text to be written into JSON as it is."""


VALUES = [
    None, True, False, 0, -1, 1, 1.5, -0.5, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63), 10**30, 10**400, 1e308, -1e308, 5e-324,
    Raw("NaN"), Raw("Infinity"), Raw("-Infinity"), Raw("1e999"), Raw("-0"), Raw("1E+5"), Raw("9" * 4999), Raw("9" * 5001),
    Raw("[" * 500 + "]" * 500), Raw("[" * 100_000), Raw('{"a":' * 2000 + "1" + "}" * 2000), Raw('{"a":1,"a":2}'),
    Raw('"\\ud800"'), Raw('"\\ud83d\\ude00"'), Raw('"\\u0000"'), Raw("'x'"), Raw(""), Raw("//"), Raw('"\t"'),
    "", " ", "0", "1", "-1", "nan", "inf", "1e999", "x" * 10_000, "\x1b[2J", "\x9b1m", "\x7f", "\n", "\u2028", "../x", "/dev/zero",
    [], [[]], [None], [0], [0, 0], [0, 0, 0], ["0", "0"], ["a"], [1.5], [True], [[0]], [{}], ["0"] * 3000, [0] * 3000,
    {}, {"": ""}, {"a": 1}, {"id": {}}, {"0": 0},
]  # fmt: skip


def dumps(value: Any) -> str:
    """Return JSON in which `Raw` texts stand as they are."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{_name(key)}:{dumps(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(dumps, value)) + "]"
    if isinstance(value, int) and not isinstance(value, bool):
        return hex(value) if abs(value) > 10**4000 else str(value)
    return json.dumps(value, ensure_ascii=False)


def _name(key: str) -> str:
    return json.dumps(key.rstrip("\0") if isinstance(key, Raw) else key, ensure_ascii=False)


def mutate_json(rng: random.Random, value: Any, values: Sequence[Any] = VALUES) -> Any:
    """Return a JSON value after a change in one place, at any depth."""
    if not isinstance(value, dict | list) or not value or rng.random() < 0.06:
        return _neighbour(rng, value, values)
    if isinstance(value, list):
        changed = list(value)
        at = rng.randrange(len(changed))
        match rng.randrange(8):
            case 0:
                del changed[at]
            case 1:
                changed.insert(at, changed[at])
            case 2:
                changed.insert(at, rng.choice(values))
            case _:
                changed[at] = mutate_json(rng, changed[at], values)
        return changed
    changed = dict(value)
    key = rng.choice(list(changed))
    match rng.randrange(10):
        case 0:
            del changed[key]
        case 1:
            changed[rng.choice(WORDS)] = rng.choice(values)
        case 2:
            changed = {rng.choice(WORDS) if name == key else name: inner for name, inner in changed.items()}
        case 3:
            changed[Raw(key + "\0")] = rng.choice(values)  # the same key a second time
        case 4:
            changed[key] = changed[rng.choice(list(changed))]
        case _:
            changed[key] = mutate_json(rng, changed[key], values)
    return changed


def _neighbour(rng: random.Random, value: Any, values: Sequence[Any]) -> Any:
    """Return a hostile value, or one that is near the given one."""
    if rng.random() < 0.5:
        return rng.choice(values)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice((value + 1, value - 1, -value, value % 2 + 0.5, str(value), 2 * value))
    if isinstance(value, float):
        return rng.choice((-value, 0.0, value * 1e300, round(value, 1), str(value)))
    if isinstance(value, str):
        at = rng.randrange(len(value) + 1)
        return rng.choice((value[:at] + rng.choice(WORDS) + value[at:], value[:at], value.upper(), [value]))
    return [value]


def mutate_json_lines(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Return lines of JSON after a change of one value, line or key."""
    lines = data.decode().split("\n")
    places = [at for at, line in enumerate(lines) if line.strip()]
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.choice(places)
        with contextlib.suppress(ValueError, RecursionError):  # of a line that was changed before
            lines[at] = dumps(mutate_json(rng, json.loads(lines[at])))
    return "\n".join(lines).encode("utf-8", "surrogatepass")

"""Read the lines of csv, tsv and jsonl files as records, with file and line for error messages."""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from .limits import BYTES_OF_ROW, check_memory

SEPARATORS = {".csv": ",", ".tsv": "\t"}
# Maximum number of characters in a line and in a csv cell.
MAX_LENGTH = 2**26
# What is kept of each line is counted after so many.
LINES_BETWEEN_CHECKS = 2**14
# Lines of this length are checked before they are parsed: they take up to this many bytes for a character.
_LONG, _BYTES_OF_CHARACTER = 2**20, 32
# Rows of this many cells are checked before they become records: a name, a value and their places in a dict.
_WIDE, _BYTES_OF_CELL = 2**13, 192


class Record(NamedTuple):
    """File and line, and the values by name."""

    where: str
    values: dict[str, Any]


def is_number(cell: str) -> bool:
    """Return whether a cell contains a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def has_letters(row: Sequence[str]) -> bool:
    """Return whether a first line contains names rather than numbers."""
    return not all(is_number(cell) for cell in row)


def records(
    path: str | PathLike[str],
    *,
    is_header: Callable[[Sequence[str]], bool],
    unnamed: Callable[[int], Sequence[str]],
) -> Iterator[Record]:
    """Iterate over the lines of a csv, tsv or jsonl file.

    Parameters
    ----------
    path : path
        Text in UTF-8, with or without a byte order mark.
    is_header : callable
        Returns whether the first line of a csv file contains column names.
    unnamed : callable
        Returns the names of n columns if it does not.
    """
    file = Path(path)
    kind = file.suffix.lower()
    if kind == ".jsonl":
        yield from _of_jsonl(file)
    elif kind in SEPARATORS:
        yield from _of_csv(file, SEPARATORS[kind], is_header, unnamed)
    else:
        raise ValueError(f"{file} must be a file .csv, .tsv or .jsonl")


def lines_of(path: Path) -> Iterator[str]:
    """Iterate over the lines of a file in UTF-8; raise a ValueError that names the file and the line if it is not."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        number = 0
        try:
            while line := file.readline(MAX_LENGTH):
                number += 1
                if len(line) == MAX_LENGTH:
                    raise ValueError(f"{path}, line {number} has {MAX_LENGTH:,} characters or more, expected fewer")
                if number % LINES_BETWEEN_CHECKS == 0:
                    check_memory(path, number * BYTES_OF_ROW)
                yield line
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            raise ValueError(f"{path} is not UTF-8 after line {number}: {error.reason} (byte 0x{byte:02x})") from None


def _of_jsonl(path: Path) -> Iterator[Record]:
    for number, line in enumerate(lines_of(path), start=1):
        if line.strip():
            yield json_record(line, path, number)


def json_record(line: str, path: str | PathLike[str], number: int) -> Record:
    """Return the record in a line of a jsonl file."""
    where = f"{path}, line {number}"
    if len(line) > _LONG:
        check_memory(path, len(line) * _BYTES_OF_CHARACTER)
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where} is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise ValueError(f"{where} must be a JSON object, got {line.strip()[:40]!r}")
    return Record(where, values)


def _of_csv(
    path: Path,
    separator: str,
    is_header: Callable[[Sequence[str]], bool],
    unnamed: Callable[[int], Sequence[str]],
) -> Iterator[Record]:
    usual = csv.field_size_limit(MAX_LENGTH)
    n_characters = n_checked = 0

    def lines() -> Iterator[str]:
        nonlocal n_characters, n_checked
        for line in lines_of(path):
            n_characters += len(line)  # of a row, which may have several lines
            if n_characters > n_checked + _LONG:
                check_memory(path, n_characters * _BYTES_OF_CHARACTER)
                n_checked = n_characters
            yield line

    try:
        reader = csv.reader(lines(), delimiter=separator, strict=True)
        names: list[str] | None = None
        for row in reader:
            n_characters = n_checked = 0
            if len(row) > _WIDE:
                check_memory(path, len(row) * _BYTES_OF_CELL)
            if not row:
                continue
            if names is None:
                starts_with_names = is_header(row)
                names = [cell.strip() for cell in row] if starts_with_names else list(unnamed(len(row)))
                if len(set(names)) < len(names):
                    twice = Counter(names).most_common(1)[0][0]
                    raise ValueError(f"{path}, line {reader.line_num}: the column {twice!r:.100} occurs twice")
                if starts_with_names:
                    continue
            where = f"{path}, line {reader.line_num}"
            if len(row) != len(names):
                raise ValueError(f"{where} has {len(row)} columns, expected {len(names)}")
            yield Record(where, dict(zip(names, row, strict=True)))
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: {error}") from None
    finally:
        csv.field_size_limit(usual)


def as_id(value: Any, name: str, where: str) -> str:
    """Return an id as str; integers are valid ids."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and value.strip():
        return value.strip()
    raise ValueError(f"{where}: {name} must be a non-empty string or an integer, got {value!r:.100}")


def as_number(value: Any, name: str, where: str) -> float:
    """Return a finite number."""
    try:
        number = math.nan if isinstance(value, bool | None) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{where}: {name} must be a finite number, got {value!r:.100}")
    return number


def as_time(value: Any, where: str) -> float:
    """Return a time as a number; ISO 8601 dates become timestamps."""
    if isinstance(value, str):
        with suppress(ValueError, OverflowError):
            return datetime.fromisoformat(value.strip()).timestamp()
    return as_number(value, "the time", where)

"""The files that a command reads: those that its user names.

A model file records the paths of its training data. A stranger's file could record any path of this machine, so
recorded paths are shown, and read only with ``--trust-recorded-paths``.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from typing import NamedTuple

from ..io.items import Items, read_items
from .bundle import TrainedModel

SUPERVISION = ("labels", "triplets", "qrels", "clicks")


class Sources(NamedTuple):
    """The paths that a command reads."""

    data: str
    queries: str | None
    files: dict[str, str]
    """Supervision by kind."""
    notes: list[str]
    """Recorded paths that are not used."""


def choose_sources(
    path: str, trained: TrainedModel, given: Mapping[str, str | None], *, trust_recorded_paths: bool
) -> Sources:
    """Return the paths to read; the only place that decides about recorded ones.

    Parameters
    ----------
    path : path
        The model file, for error messages.
    trained : TrainedModel
        Its content.
    given : mapping of option to path
        The options of the command, by name, and their values or None. Other recorded paths are ignored.
    trust_recorded_paths : bool
        Whether recorded paths replace those that are not given. Without it, an error names the recorded paths that must
        be given, if the collection is the recorded one; for another collection they are not used.
    """
    named = {option: value for option, value in given.items() if value is not None}
    has_supervision = any(option in named for option in SUPERVISION)
    recorded = {
        option: value
        for option, value in _recorded(trained).items()
        if option in given and option not in named and not (has_supervision and option in SUPERVISION)
    }
    if "data" not in named and "data" not in recorded:
        raise ValueError(f"--data is required: {path} does not record its training data")
    notes: list[str] = []
    if trust_recorded_paths:
        for option, value in recorded.items():
            if not os.path.exists(value):
                raise FileNotFoundError(f"{value} does not exist; {path} records it as --{option}, pass another one")
        named |= recorded
    elif recorded and ("data" in recorded or _is_recorded(trained, named["data"])):
        raise ValueError(
            f"paths recorded in {path} are not read unless they are given: pass {_as_options(recorded)}, "
            "or --trust-recorded-paths"
        )
    elif recorded:
        notes.append(f"not used, since {path} records it for another collection: {_as_options(recorded)}")
    files = {option: value for option, value in named.items() if option in SUPERVISION}
    return Sources(named["data"], named.get("queries"), files, notes)


def _recorded(trained: TrainedModel) -> dict[str, str]:
    metadata = trained.metadata
    paths = {"data": metadata.get("data"), "queries": metadata.get("queries"), **metadata.get("files", {})}
    return {option: value for option, value in paths.items() if value is not None}


def _is_recorded(trained: TrainedModel, data: str) -> bool:
    """Return whether a collection is the recorded one, by its path alone."""
    recorded = _recorded(trained).get("data")
    return recorded is not None and os.path.abspath(data) == os.path.abspath(recorded)


def _as_options(paths: Mapping[str, str]) -> str:
    return " ".join(f"--{option} {shlex.quote(value)}" for option, value in paths.items())


def read_objects(path: str, trained: TrainedModel, data: str | None, *, trust_recorded_paths: bool) -> Items:
    """Read the collection of a command that reads no other file."""
    sources = choose_sources(path, trained, {"data": data}, trust_recorded_paths=trust_recorded_paths)
    return read_items(sources.data, width=trained.objects.width)


def read_query(trained: TrainedModel, objects: Items, words: str | None, like: str | None) -> Items:
    """Return one query: words, or an object of the collection."""
    if words is not None:
        if trained.queries.what != "texts":
            raise ValueError("WORDS are for models of texts, got a model of vectors: use --like or --queries")
        if not words.strip():
            raise ValueError(f"WORDS must contain at least one word, got {words!r:.100}")
        return Items("the query", [words], texts=[words])
    assert like is not None
    if trained.queries is not trained.objects:
        raise ValueError("--like needs queries with the features of objects: use --queries")
    if like not in objects.ids:
        raise ValueError(f"--like: {objects.source} has no id {like!r:.100}; ids are such as {objects.ids[0]!r:.100}")
    return objects.select([objects.ids.index(like)])

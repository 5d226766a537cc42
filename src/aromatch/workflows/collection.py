"""The collection and the query of a command: by default the collection that the model was trained on."""

from __future__ import annotations

from ..io.items import Items, read_items
from .bundle import TrainedModel


def collection_path(trained: TrainedModel, data: str | None) -> str:
    """Return the path of the collection: `data`, or the one in the metadata of the model."""
    path = data if data is not None else trained.metadata.get("data")
    if not isinstance(path, str):
        raise ValueError("--data is required: the model file does not name its training data")
    return path


def read_objects(trained: TrainedModel, data: str | None) -> Items:
    """Read the collection; by default the one that the model was trained on."""
    source = collection_path(trained, data)
    try:
        return read_items(source, width=trained.objects.width)
    except FileNotFoundError as error:
        if data is not None:
            raise
        raise FileNotFoundError(f"{error}; the model was trained on it, --data names another collection") from None


def read_query(trained: TrainedModel, objects: Items, words: str | None, like: str | None) -> Items:
    """Return one query: words, or an object of the collection."""
    if words is not None:
        if trained.queries.what != "texts":
            raise ValueError("WORDS are for models of texts, got a model of vectors: use --like or --queries")
        if not words.strip():
            raise ValueError(f"WORDS must contain at least one word, got {words!r}")
        return Items("the query", [words], texts=[words])
    assert like is not None
    if trained.queries is not trained.objects:
        raise ValueError("--like needs queries with the features of objects: use --queries")
    if like not in objects.ids:
        raise ValueError(f"--like: {objects.source} has no id {like!r}; ids are such as {objects.ids[0]!r}")
    return objects.select([objects.ids.index(like)])

"""Triplets from class labels: an object of the query's class is better than an object of another class.

The paper does not say how it draws its triplets. Here the query is uniform over the rows that can be one.
Given the query, the preferred object is uniform over the other rows of its class, and the other object is
uniform over all rows of the other classes, so that a large class gives more of them than a small one. The
draws are exactly uniform, not nearly so: with the objects sorted by class, a class is a block, the preferred
object is an offset in the block that skips the query's own place, and the other object is a place that skips
the block.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._utils.checks import check_fits_in_memory, check_integer, check_labels, class_indices, random_generator

# A part of the contract: other chunks would give other triplets for the same seed.
CHUNK = 2**18


class LabelSampler:
    """Draws triplets from labels, as many as are asked for and whenever they are.

    Parameters
    ----------
    y : sequence of labels, one for each query
        Anything that sorts: numbers, strings, bools. Without `y_objects` the queries are the objects too, and
        a query is never its own preferred object: a row that is alone in its class is never a query, but it
        may be the other object of one.
    y_objects : sequence of labels, one for each object, optional
        Labels of a separate set of objects, in the same classes. A row of `y` is a query when its class has
        an object and another class has one too.

    Examples
    --------
    >>> import numpy as np
    >>> from aromatch.triplets import LabelSampler
    >>> sampler = LabelSampler(["cat", "dog"], y_objects=["dog", "cat", "cow"])
    >>> triplets = sampler.draw(1000, np.random.default_rng(0))
    >>> np.unique(triplets, axis=0)
    array([[0, 1, 0],
           [0, 1, 2],
           [1, 0, 1],
           [1, 0, 2]])
    """

    def __init__(self, y: ArrayLike, y_objects: ArrayLike | None = None) -> None:
        labels = check_labels(y, "y")
        objects = None if y_objects is None else check_labels(y_objects, "y_objects")
        classes, object_classes = class_indices(labels, objects)
        self._classes = classes
        self._counts = np.bincount(object_classes, minlength=int(classes.max(initial=-1)) + 1)
        self._starts = np.cumsum(self._counts) - self._counts
        self._order = np.argsort(object_classes, kind="stable")
        self._place_in_class: NDArray[np.int64] | None = None
        if objects is None:
            self._place_in_class = np.empty_like(self._order)
            self._place_in_class[self._order] = np.arange(len(classes)) - self._starts[classes[self._order]]
        n_preferred = self._counts[classes] - (objects is None)
        n_others = len(object_classes) - self._counts[classes]
        self._queries = np.flatnonzero((n_preferred > 0) & (n_others > 0))
        if not len(self._queries):
            raise ValueError(_why_no_query(labels, objects))

    def draw(self, n: int, generator: np.random.Generator) -> NDArray[np.int64]:
        """Draw `n` independent triplets.

        Parameters
        ----------
        n : int
            How many.
        generator : numpy.random.Generator
            Where the randomness comes from; it moves on, so that the next call draws new triplets.

        Returns
        -------
        triplets : int64 array of shape (n, 3)
            Row of the query in `y`, row of the preferred object and row of the other object in `y_objects`
            (in `y` where there is none).
        """
        n = check_integer(n, "n", at_least=0)
        triplets = np.empty((n, 3), dtype=np.int64)
        queries = self._queries[generator.integers(0, len(self._queries), size=n)]
        classes = self._classes[queries]
        start, count = self._starts[classes], self._counts[classes]

        if self._place_in_class is None:
            preferred = generator.integers(0, count)
        else:
            preferred = generator.integers(0, count - 1)
            preferred += preferred >= self._place_in_class[queries]
        others = generator.integers(0, len(self._order) - count)
        others += np.where(others >= start, count, 0)

        triplets[:, 0] = queries
        triplets[:, 1] = self._order[start + preferred]
        triplets[:, 2] = self._order[others]
        return triplets


def from_labels(
    y: ArrayLike, n: int, random_state: Any = None, y_objects: ArrayLike | None = None
) -> NDArray[np.int64]:
    """Draw `n` triplets from class labels.

    The query is uniform over the rows that can be one, the preferred object is uniform over its class without
    the query itself, and the other object is uniform over all rows of other classes. Triplets are
    independent, so that the same one may come twice.

    Parameters
    ----------
    y : sequence of labels, one for each query
        Anything that sorts: numbers, strings, bools. A row that is alone in its class is never a query, but
        it may be the other object of one.
    n : int
        How many triplets.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        The same number gives the same triplets.
    y_objects : sequence of labels, one for each object, optional
        When the objects are not the queries: the labels of the objects, in the same classes as `y`. A row of
        `y` whose class has no object is never a query.

    Returns
    -------
    triplets : int64 array of shape (n, 3)
        Row of the query, row of the preferred object, row of the other object.

    See Also
    --------
    stream_from_labels : the same triplets, a chunk at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from aromatch.triplets import from_labels
    >>> y = np.array(["cat", "cat", "dog", "dog", "dog", "cow"])
    >>> triplets = from_labels(y, 1000, random_state=0)
    >>> triplets.shape
    (1000, 3)
    >>> query, preferred, other = triplets.T
    >>> bool(np.all(y[query] == y[preferred]) and np.all(y[query] != y[other]))
    True
    >>> bool(np.any(query == preferred)), bool(np.any(query == 5)), bool(np.any(other == 5))
    (False, False, True)
    """
    n = check_integer(n, "n", at_least=0)
    check_fits_in_memory(n * 3 * np.dtype(np.int64).itemsize, f"an array of {n:,} triplets (n)")
    chunks = stream_from_labels(y, n, random_state, y_objects)
    triplets = np.empty((n, 3), dtype=np.int64)
    for start, chunk in zip(range(0, n, CHUNK), chunks, strict=True):
        triplets[start : start + CHUNK] = chunk
    return triplets


def stream_from_labels(
    y: ArrayLike, n: int, random_state: Any = None, y_objects: ArrayLike | None = None
) -> Iterator[NDArray[np.int64]]:
    """Draw the triplets of `from_labels` a chunk at a time, without all of them in memory at once.

    The parameters are those of `from_labels`, and they are checked by the call, before the first chunk is
    asked for.

    Parameters
    ----------
    y : sequence of labels, one for each query
        Anything that sorts.
    n : int
        How many triplets in all.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        The same number gives the same triplets.
    y_objects : sequence of labels, one for each object, optional
        When the objects are not the queries: the labels of the objects.

    Yields
    ------
    chunk : int64 array of shape (up to 262,144, 3)
        The chunks, one after the other, are the rows of `from_labels`, to the bit. No chunk when `n` is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from aromatch.triplets import from_labels, stream_from_labels
    >>> y = [0, 0, 1, 1, 1]
    >>> chunks = list(stream_from_labels(y, 600_000, random_state=0))
    >>> [len(chunk) for chunk in chunks]
    [262144, 262144, 75712]
    >>> np.array_equal(np.concatenate(chunks), from_labels(y, 600_000, random_state=0))
    True
    """
    n = check_integer(n, "n", at_least=0)
    sampler = LabelSampler(y, y_objects)
    generator = random_generator(random_state)
    return (sampler.draw(min(CHUNK, n - start), generator) for start in range(0, n, CHUNK))


def _why_no_query(labels: NDArray[Any], object_labels: NDArray[Any] | None) -> str:
    """Say what keeps every row from being a query."""
    if not len(labels):
        return "y is empty, expected labels of at least two classes"
    if object_labels is not None and not len(object_labels):
        return "y_objects is empty, expected labels of at least two classes"
    name, objects = ("y", labels) if object_labels is None else ("y_objects", object_labels)
    if bool(np.all(objects == objects[0])):
        return (
            f"{name} holds one class only ({objects[:1].tolist()[0]!r}), "
            "expected at least two: a triplet needs an object of another class"
        )
    if object_labels is None:
        return (
            f"y has {len(labels)} rows of {len(labels)} classes, "
            "expected a class with at least two rows: a query and an object that is like it"
        )
    return "y and y_objects have no class in common, expected labels of the same classes"

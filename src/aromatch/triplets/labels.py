"""Triplets from class labels: objects of the query's class are preferred over objects of other classes.

The paper does not specify how triplets are sampled. Here the query is uniform over the rows that have a valid triplet.
Given the query, the preferred object is uniform over the other rows of its class, and the other object is uniform over
all rows of the other classes. Sampling is exactly uniform: with the objects sorted by class, a class is a block, the
preferred object is an offset in the block that skips the query's own position, and the other object is a position
outside the block.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._utils.checks import check_fits_in_memory, check_integer, check_labels, class_indices, random_generator

# Part of the contract: another chunk size would change the triplets of a seed.
CHUNK = 2**18


class LabelSampler:
    """Sample triplets from labels, in as many calls as needed.

    Parameters
    ----------
    y : sequence of labels, one for each query
        Sortable: numbers, strings, bools. Without `y_objects` the queries are the objects, and a query is never its own
        preferred object: the only row of a class is never a query, but may be the other object.
    y_objects : sequence of labels, one for each object, optional
        Labels of a separate set of objects, in the same classes. A row of `y` is a query if its class and another
        class have an object.

    Examples
    --------
    >>> import numpy as np
    >>> from aromatch.triplets import LabelSampler
    >>> sampler = LabelSampler(["cat", "dog"], y_objects=["dog", "cat", "cow"])
    >>> triplets = sampler.sample(1000, np.random.default_rng(0))
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
        self._position_in_class: NDArray[np.int64] | None = None
        if objects is None:
            self._position_in_class = np.empty_like(self._order)
            self._position_in_class[self._order] = np.arange(len(classes)) - self._starts[classes[self._order]]
        n_preferred = self._counts[classes] - (objects is None)
        n_others = len(object_classes) - self._counts[classes]
        self._queries = np.flatnonzero((n_preferred > 0) & (n_others > 0))
        if not len(self._queries):
            raise ValueError(_why_no_query(labels, objects))

    def sample(self, n: int, generator: np.random.Generator) -> NDArray[np.int64]:
        """Sample `n` independent triplets.

        Parameters
        ----------
        n : int
            Number of triplets.
        generator : numpy.random.Generator
            Source of randomness; advanced by every call.

        Returns
        -------
        triplets : int64 array of shape (n, 3)
            Row of the query in `y`, row of the preferred object and row of the other object in `y_objects`
            (in `y` without `y_objects`).
        """
        n, generator = check_integer(n, "n", at_least=0), random_generator(generator)
        check_fits_in_memory(n * 3 * np.dtype(np.int64).itemsize, f"an array of {n:,} triplets (n)")
        triplets = np.empty((n, 3), dtype=np.int64)
        queries = self._queries[generator.integers(0, len(self._queries), size=n)]
        classes = self._classes[queries]
        start, count = self._starts[classes], self._counts[classes]

        if self._position_in_class is None:
            preferred = generator.integers(0, count)
        else:
            preferred = generator.integers(0, count - 1)
            preferred += preferred >= self._position_in_class[queries]
        others = generator.integers(0, len(self._order) - count)
        others += np.where(others >= start, count, 0)

        triplets[:, 0] = queries
        triplets[:, 1] = self._order[start + preferred]
        triplets[:, 2] = self._order[others]
        return triplets


def from_labels(
    y: ArrayLike, n: int, random_state: Any = None, y_objects: ArrayLike | None = None
) -> NDArray[np.int64]:
    """Sample `n` triplets from class labels.

    The query is uniform over the rows that have a valid triplet, the preferred object is uniform over its class without
    the query itself, and the other object is uniform over all rows of other classes. Triplets are independent and may
    repeat.

    Parameters
    ----------
    y : sequence of labels, one for each query
        Sortable: numbers, strings, bools. The only row of a class is never a query, but may be the other object.
    n : int
        Number of triplets.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        Random seed.
    y_objects : sequence of labels, one for each object, optional
        Labels of the objects, if these are not the queries, in the same classes as `y`. A row of `y` whose class has no
        object is never a query.

    Returns
    -------
    triplets : int64 array of shape (n, 3)
        Row of the query, row of the preferred object, row of the other object.

    See Also
    --------
    stream_from_labels : the same triplets in chunks.

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
    """Sample the triplets of `from_labels` in chunks, so that they need not fit in memory.

    The parameters are those of `from_labels`. They are checked by the call, before the first chunk is sampled.

    Parameters
    ----------
    y : sequence of labels, one for each query
        Sortable: numbers, strings, bools.
    n : int
        Total number of triplets.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        Random seed.
    y_objects : sequence of labels, one for each object, optional
        Labels of the objects, if these are not the queries.

    Yields
    ------
    chunk : int64 array of shape (up to 262,144, 3)
        Concatenated, the chunks equal the result of `from_labels`. No chunk if `n` is 0.

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
    return (sampler.sample(min(CHUNK, n - start), generator) for start in range(0, n, CHUNK))


def _why_no_query(labels: NDArray[Any], object_labels: NDArray[Any] | None) -> str:
    """Return why no row has a valid triplet."""
    if not len(labels):
        return "y is empty, expected labels of at least two classes"
    if object_labels is not None and not len(object_labels):
        return "y_objects is empty, expected labels of at least two classes"
    name, objects = ("y", labels) if object_labels is None else ("y_objects", object_labels)
    if bool(np.all(objects == objects[0])):
        return (
            f"{name} holds one class only ({objects[:1].tolist()[0]!r:.100}), "
            "expected at least two: a triplet needs an object of another class"
        )
    if object_labels is None:
        return (
            f"y has {len(labels)} rows of {len(labels)} classes, "
            "expected a class with at least two rows: a query and an object that is like it"
        )
    return "y and y_objects have no class in common, expected labels of the same classes"

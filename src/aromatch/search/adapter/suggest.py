"""Which comparison to ask people next."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..stores.memory import Collection, Ids
from .neighbourhood import N_NEIGHBOURS, Surroundings, dense

# Objects that are looked at for each comparison to suggest.
_LOOKED_AT = 50
_AT_ONCE = 64


def suggest(objects: Collection, surroundings: Surroundings, n: int, generator: np.random.Generator) -> Ids:
    """Give n comparisons that are worth asking, as rows of ids: query, first and second object.

    Worth asking are objects that have much near them of which little is known. As long as there are others, none is
    among the neighbours of one before it.
    """
    if len(objects) < 3:
        raise ValueError(f"a comparison needs three objects, there are {len(objects)}")
    looked_at = generator.permutation(objects.ids)[: _LOOKED_AT * n]
    lists: list[Ids] = []
    scores: list[float] = []
    for start in range(0, len(looked_at), _AT_ONCE):
        near = surroundings.nearest(dense(objects.rows(looked_at[start : start + _AT_ONCE])), N_NEIGHBOURS + 1)
        lists.extend(near.places[:, : len(objects)])
        scores.extend(near.scores[:, : len(objects)].mean(axis=1))
    others = [near[near != query] for near, query in zip(lists, looked_at, strict=True)]
    known_of_all = surroundings.known(np.concatenate(others))
    known = np.split(known_of_all, np.cumsum([len(near) for near in others])[:-1])
    least = min(scores)  # inner products may be below 0
    worth = np.array([(1 - each.mean()) * (score - least) for each, score in zip(known, scores, strict=True)])
    order = np.argsort(-worth, kind="stable")

    apart: list[int] = []
    taken: set[int] = set()
    for place in order:
        if int(looked_at[place]) not in taken:
            apart.append(place)
            taken.update(others[place].tolist())
    near_others = np.setdiff1d(order, apart, assume_unique=True)
    chosen = [*apart, *near_others][:n]
    return np.array([[looked_at[place], *_most_telling(others[place], known[place])] for place in chosen])


def _most_telling(near: Ids, known: NDArray[np.float64]) -> tuple[int, int]:
    """Give the nearest one, and the least known of the next."""
    return int(near[0]), int(near[1:][np.argmin(known[1:])])

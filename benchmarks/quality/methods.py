"""The compared methods, each with at most six settings to choose from.

A method is trained on rows, labels and triplets sampled from these labels, and returns a model with `similarity`.
Methods that learn from triplets ignore the labels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge

import aromatch as am

N_SETTINGS = 6
# Triplets for choosing a setting on validation rows.
N_TO_CHOOSE = 50_000
# Dimensions of the embeddings: TripletEmbedding and the models in torch.
N_COMPONENTS = 128
# Triplets per step of the models in torch.
BATCH = 256
# Number of matrices W that "f-AROMA (averaged)" is the mean of.
N_AVERAGED = 20


@dataclass(frozen=True)
class Method:
    """A method of learning a similarity, with the settings to choose from."""

    name: str
    trained_on: str
    """ "nothing", "triplets" or "labels"."""
    settings: list[dict[str, Any]]
    learn: Callable[..., Any]
    """Function of X, y and triplets, with a setting as keyword arguments; returns a fitted model."""
    only: tuple[str, ...] = ()
    """Collections to run on; empty means all."""


class Embedded:
    """Similarity by inner products, or cosines, of mapped rows."""

    def __init__(self, embed_queries, embed_objects=None, *, cosine=False):
        self.embed_queries, self.embed_objects = embed_queries, embed_objects or embed_queries
        self.cosine = cosine

    def similarity(self, Q, P):
        """Return the score of every query-object pair."""
        left, right = self.embed_queries(Q), self.embed_objects(P)
        if self.cosine:
            left, right = (Z / np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1e-12) for Z in (left, right))
        return left @ right.T


def dense(X):
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def over(**values):
    """Return one setting for each value of a single parameter."""
    ((name, listed),) = values.items()
    return [{name: value} for value in listed]


# -- from triplets ----------------------------------------------------------------------------------------------------


def cosine(X, y, triplets):
    return Embedded(dense, cosine=True)


def online(learner, **fixed):
    def learn(X, y, triplets, **setting):
        return learner(init="identity", **fixed, **setting).fit_triplets(triplets, X)

    return learn


def two_passes(X, y, triplets, r):
    twice = np.concatenate([triplets, np.random.default_rng(0).permutation(triplets)])
    return am.FactoredAROMA(r, init="identity").fit_triplets(twice, X)


def averaged(X, y, triplets, r):
    """Train f-AROMA; score with the mean of W over the second half of the triplets."""
    first, *rest = np.array_split(triplets, 2 * N_AVERAGED)
    model, mean = am.FactoredAROMA(r, init="identity").fit_triplets(first, X), 0.0
    for number, batch in enumerate(rest, start=2):
        model.partial_fit_triplets(batch, X)
        if number > N_AVERAGED:
            mean = mean + model.W_ / N_AVERAGED
    return Embedded(lambda Q: Q @ mean, dense)


def moment(X, y, triplets, alpha="auto", **fixed):
    return am.MomentAROMA(alpha, **fixed).fit_triplets(triplets, X)


def normalized(model, power):
    """Return inner products of the embedded rows, each divided by a power of its norm."""

    def embed(X):
        Z = model.transform(X)
        return Z / np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1e-300) ** power

    return Embedded(embed)


def moment_projection(X, y, triplets, power):
    return normalized(moment(X, y, triplets, denoise=True).project(), power)


def triplet_embedding(X, y, triplets, method="linear"):
    return am.TripletEmbedding(method, N_COMPONENTS, random_state=0).fit_triplets(triplets, X)


# -- from labels ------------------------------------------------------------------------------------------------------


def moment_of_labels(X, y, triplets, power):
    return normalized(am.MomentAROMA("auto").fit(X, y).project(len(set(y)) - 1), power)


def lda(X, y, triplets, shrinkage, cosine):
    model = LinearDiscriminantAnalysis(solver="eigen", shrinkage=shrinkage).fit(dense(X), y)
    return Embedded(lambda rows: model.transform(dense(rows)), cosine=cosine)


def ridge(X, y, triplets, alpha, cosine):
    indicators = (np.unique(y)[np.newaxis] == np.asarray(y)[:, np.newaxis]).astype(float)
    model = Ridge(alpha=alpha).fit(X, indicators - indicators.mean(axis=0))
    return Embedded(model.predict, cosine=cosine)


def class_probabilities(X, y, triplets, C):
    return am.HIER(C=C).fit(X, y)


# -- torch ------------------------------------------------------------------------------------------------------------


def _trained(towers, X, triplets, rate, steps, loss_of):
    """Train linear towers with Adam, with the triplets in random order in every epoch."""
    import torch

    rows, triplets = torch.from_numpy(dense(X).astype(np.float32)), torch.from_numpy(np.asarray(triplets))
    generator = torch.Generator().manual_seed(0)
    optimiser = torch.optim.Adam([parameter for tower in towers for parameter in tower.parameters()], lr=rate)
    batches = (batch for _ in range(steps) for batch in torch.randperm(len(triplets), generator=generator).split(BATCH))
    for batch in islice(batches, steps):
        query, good, bad = triplets[batch].T
        optimiser.zero_grad()
        loss_of(rows[query], rows[good], rows[bad]).backward()
        optimiser.step()
    matrices = [tower.weight.detach().numpy().T.astype(np.float64) for tower in towers]
    return Embedded(*((lambda Q, M=M: np.asarray(Q @ M)) for M in matrices), cosine=True)


def _towers(n_towers, width):
    import torch

    torch.manual_seed(0)
    # Two towers start from the same weights, so that the initial scores are meaningful.
    n_components = min(N_COMPONENTS, width)
    tower = torch.nn.Linear(width, n_components, bias=False)
    torch.nn.init.orthogonal_(tower.weight)
    towers = [tower]
    for _ in range(n_towers - 1):
        other = torch.nn.Linear(width, n_components, bias=False)
        other.load_state_dict(tower.state_dict())
        towers.append(other)
    return towers


def softmax(X, y, triplets, temperature, rate, steps, n_towers=2):
    import torch
    from torch.nn import functional

    towers = _towers(n_towers, X.shape[1])

    def loss_of(query, good, bad):
        q = functional.normalize(towers[0](query), dim=1)
        # The negatives of a query are all other objects of the batch.
        objects = functional.normalize(towers[-1](torch.cat([good, bad])), dim=1)
        return functional.cross_entropy(q @ objects.T / temperature, torch.arange(len(q)))

    return _trained(towers, X, triplets, rate, steps, loss_of)


def triplet_margin(X, y, triplets, margin, rate, steps):
    from torch.nn import functional

    towers = _towers(1, X.shape[1])

    def loss_of(query, good, bad):
        q, g, b = (functional.normalize(towers[0](rows), dim=1) for rows in (query, good, bad))
        return functional.relu(margin - ((g - b) * q).sum(dim=1)).mean()

    return _trained(towers, X, triplets, rate, steps, loss_of)


_RS = [0.00001, 0.0001, 0.001, 0.01, 0.1, 1.0]
_SOFTMAX = [{"temperature": t, "rate": 1e-3, "steps": steps} for t in (0.05, 0.1, 0.2) for steps in (500, 2_000)]
_POWERS = [0.0, 0.5, 0.6, 0.7, 0.8, 1.0]
# Variants of f-AROMA and of the towers run on the collection with the shortest training times.
_CHEAP = ("banking77",)

METHODS = [
    Method("cosine", "nothing", [{}], cosine),
    Method("OASIS", "triplets", over(C=[0.001, 0.01, 0.1, 1.0, 10.0, 100.0]), online(am.OASIS)),
    Method("d-AROMA", "triplets", over(r=[0.001, 0.01, 0.1, 1.0, 10.0, 100.0]), online(am.DiagonalAROMA)),
    Method("f-AROMA", "triplets", over(r=_RS), online(am.FactoredAROMA)),
    Method("f-AROMA (updated mean)", "triplets", over(r=_RS), online(am.FactoredAROMA, mean_update="updated"), _CHEAP),
    Method(
        "f-AROMA (joint covariance)",
        "triplets",
        over(r=_RS),
        online(am.FactoredAROMA, covariance_update="joint"),
        _CHEAP,
    ),
    Method("f-AROMA (averaged)", "triplets", over(r=_RS), averaged, _CHEAP),
    Method("f-AROMA (two passes)", "triplets", over(r=_RS), two_passes, _CHEAP),
    Method(
        "MomentAROMA (inverse schedule)",
        "triplets",
        over(alpha=[1.0, 3.0, 10.0, 30.0, 100.0, 300.0]),
        partial(moment, alpha_schedule="inverse"),
    ),
    Method("MomentAROMA", "triplets", [{}], moment),
    Method("MomentAROMA (denoised)", "triplets", [{}], partial(moment, denoise=True)),
    Method("MomentAROMA (projected)", "triplets", over(power=_POWERS), moment_projection),
    Method("TripletEmbedding (moment)", "triplets", [{}], partial(triplet_embedding, method="moment")),
    Method("TripletEmbedding", "triplets", [{}], triplet_embedding),
    Method("two towers (torch)", "triplets", _SOFTMAX, softmax),
    Method("one tower (torch)", "triplets", _SOFTMAX, partial(softmax, n_towers=1), _CHEAP),
    Method(
        "triplet margin (torch)",
        "triplets",
        [{"margin": margin, "rate": 1e-3, "steps": steps} for margin in (0.2, 0.5, 1.0) for steps in (500, 2_000)],
        triplet_margin,
    ),
    Method("MomentAROMA (labels)", "labels", over(power=_POWERS), moment_of_labels),
    Method("LDA", "labels", [{"shrinkage": s, "cosine": c} for s in (1e-4, 1e-3, 0.1) for c in (False, True)], lda),
    Method("ridge", "labels", [{"alpha": a, "cosine": c} for a in (0.01, 0.1, 1.0) for c in (False, True)], ridge),
    Method("class probabilities", "labels", over(C=[0.3, 1.0, 3.0, 10.0, 30.0, 100.0]), class_probabilities),
]

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
from aromatch.learners.embedding.projection import moment_map
from aromatch.learners.embedding.refinement import Settings, refine
from aromatch.learners.embedding.spectral import spectral_map
from aromatch.learners.embedding.training_set import TrainingSet

N_SETTINGS = 6
# Triplets of the validation part that the choice is made with.
N_TO_CHOOSE = 50_000
# Of the space that rows are mapped to, where there is one: the models in torch, and what is refined.
RANK = 128
# Triplets in a step of the models in torch.
BATCH = 256
# Models that f-AROMA averaged is the mean of.
N_AVERAGED = 20


@dataclass(frozen=True)
class Method:
    """A way to learn a similarity, with the settings to choose from."""

    name: str
    learns_from: str
    """ "nothing", "triplets" or "labels"."""
    settings: list[dict[str, Any]]
    learn: Callable[..., Any]
    """Called with X, y, triplets and a setting by its names."""
    only: tuple[str, ...] = ()
    """Collections that it is tried on; all when there are none."""


class Embedded:
    """Scores rows by inner products, or cosines, of what a function makes of them."""

    def __init__(self, embed_queries, embed_objects=None, *, cosine=False):
        self.embed_queries, self.embed_objects = embed_queries, embed_objects or embed_queries
        self.cosine = cosine

    def similarity(self, Q, P):
        """Score every query against every object."""
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
    """Learn as f-AROMA does, and score with the mean of W along the second half of the stream."""
    first, *rest = np.array_split(triplets, 2 * N_AVERAGED)
    model, mean = am.FactoredAROMA(r, init="identity").fit_triplets(first, X), 0.0
    for number, piece in enumerate(rest, start=2):
        model.partial_fit_triplets(piece, X)
        if number > N_AVERAGED:
            mean = mean + model.W_ / N_AVERAGED
    return Embedded(lambda Q: Q @ mean, dense)


def moment(X, y, triplets, r):
    return am.MomentAROMA(r, alpha_schedule="inverse").fit_triplets(triplets, X)


def moment_chosen(X, y, triplets):
    return am.MomentAROMA("auto").fit_triplets(triplets, X)


def moment_denoised(X, y, triplets):
    return am.MomentAROMA("auto", denoise=True).fit_triplets(triplets, X)


def mapped(L, power):
    """Score by inner products of ``L'x`` divided by a power of its norm."""
    return Embedded(lambda X: (Z := X @ L) / np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1e-300) ** power)


def moment_projected(X, y, triplets, normalize):
    return mapped(moment_denoised(X, y, triplets).project().components_.T, normalize)


def refined(method, X, triplets, temperature, n_steps):
    """Refine the map of a method with given settings."""
    training = TrainingSet.read(triplets, X, X, None)
    L, _ = method(training, RANK, None) or moment_map(training, RANK, None)
    settings, generator = Settings(temperature, n_steps), np.random.default_rng(0)
    return mapped(refine(L, None, training, 0.7, generator, settings=settings).L, 0.7)


def moment_refined(X, y, triplets, temperature=None, n_steps=None):
    if temperature is None:
        return am.TripletEmbedding("moment", RANK, random_state=0).fit_triplets(triplets, X)
    return refined(moment_map, X, triplets, temperature, n_steps)


def spectral(X, y, triplets, normalize=0.7):
    training = TrainingSet.read(triplets, X, X, None)
    return mapped((spectral_map(training, RANK, None) or moment_map(training, RANK, None))[0], normalize)


def spectral_refined(X, y, triplets, temperature, n_steps):
    return refined(spectral_map, X, triplets, temperature, n_steps)


def best(X, y, triplets):
    return am.TripletEmbedding("linear", RANK, random_state=0).fit_triplets(triplets, X)


# -- from labels ------------------------------------------------------------------------------------------------------


def moment_of_labels(X, y, triplets, normalize):
    return mapped(am.MomentAROMA("auto").fit(X, y).project(len(set(y)) - 1).components_.T, normalize)


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
    """Train linear towers with Adam, over all triplets in a new order each time."""
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


def _towers(n_towers, width, rank):
    import torch

    torch.manual_seed(0)
    # Two towers start alike: what is near at first is near in the space of both.
    tower = torch.nn.Linear(width, rank, bias=False)
    torch.nn.init.orthogonal_(tower.weight)
    towers = [tower]
    for _ in range(n_towers - 1):
        other = torch.nn.Linear(width, rank, bias=False)
        other.load_state_dict(tower.state_dict())
        towers.append(other)
    return towers


def softmax(X, y, triplets, temperature, rate, steps, n_towers=2):
    import torch
    from torch.nn import functional

    towers = _towers(n_towers, X.shape[1], min(RANK, X.shape[1]))

    def loss_of(query, good, bad):
        q = functional.normalize(towers[0](query), dim=1)
        # All preferred objects of the batch, and all that were passed over.
        objects = functional.normalize(towers[-1](torch.cat([good, bad])), dim=1)
        return functional.cross_entropy(q @ objects.T / temperature, torch.arange(len(q)))

    return _trained(towers, X, triplets, rate, steps, loss_of)


def triplet_margin(X, y, triplets, margin, rate, steps):
    from torch.nn import functional

    towers = _towers(1, X.shape[1], min(RANK, X.shape[1]))

    def loss_of(query, good, bad):
        q, g, b = (functional.normalize(towers[0](rows), dim=1) for rows in (query, good, bad))
        return functional.relu(margin - ((g - b) * q).sum(dim=1)).mean()

    return _trained(towers, X, triplets, rate, steps, loss_of)


_RS = [0.00001, 0.0001, 0.001, 0.01, 0.1, 1.0]
_SOFTMAX = [{"temperature": t, "rate": 1e-3, "steps": steps} for t in (0.05, 0.1, 0.2) for steps in (500, 2_000)]
# What might make f-AROMA learn more from its stream, and one tower in place of two, is tried where it costs little.
_CHEAP = ("banking77",)

METHODS = [
    Method("cosine", "nothing", [{}], cosine),
    Method("OASIS", "triplets", over(C=[0.001, 0.01, 0.1, 1.0, 10.0, 100.0]), online(am.OASIS)),
    Method("d-AROMA", "triplets", over(r=[0.001, 0.01, 0.1, 1.0, 10.0, 100.0]), online(am.DiagonalAROMA)),
    Method("f-AROMA", "triplets", over(r=_RS), online(am.FactoredAROMA)),
    Method("f-AROMA updated", "triplets", over(r=_RS), online(am.FactoredAROMA, mean_update="updated"), _CHEAP),
    Method("f-AROMA joint", "triplets", over(r=_RS), online(am.FactoredAROMA, covariance_update="joint"), _CHEAP),
    Method("f-AROMA averaged", "triplets", over(r=_RS), averaged, _CHEAP),
    Method("f-AROMA two passes", "triplets", over(r=_RS), two_passes, _CHEAP),
    Method("MomentAROMA r", "triplets", over(r=[1.0, 3.0, 10.0, 30.0, 100.0, 300.0]), moment),
    Method("MomentAROMA", "triplets", [{}], moment_chosen),
    Method("MomentAROMA denoised", "triplets", [{}], moment_denoised),
    Method("MomentAROMA projected", "triplets", over(normalize=[0.0, 0.5, 0.6, 0.7, 0.8, 1.0]), moment_projected),
    Method(
        "MomentAROMA refined",
        "triplets",
        [{"temperature": t, "n_steps": n} for t in (0.1, 0.2) for n in (50, 200, 400)],
        moment_refined,
    ),
    Method(
        "MomentAROMA refined in 50 steps", "triplets", over(temperature=[0.1, 0.2]), partial(moment_refined, n_steps=50)
    ),
    Method("MomentAROMA refined by default", "triplets", [{}], moment_refined),
    Method("spectral", "triplets", over(normalize=[0.0, 0.5, 0.6, 0.7, 0.8, 1.0]), spectral),
    Method(
        "spectral refined",
        "triplets",
        [{"temperature": t, "n_steps": n} for t in (0.1, 0.2) for n in (50, 100, 200)],
        spectral_refined,
    ),
    Method(
        "spectral refined in 50 steps", "triplets", over(temperature=[0.1, 0.2]), partial(spectral_refined, n_steps=50)
    ),
    Method("best projection", "triplets", [{}], best),
    Method("two towers (torch)", "triplets", _SOFTMAX, softmax),
    Method("one tower (torch)", "triplets", _SOFTMAX, partial(softmax, n_towers=1), _CHEAP),
    Method(
        "triplet margin (torch)",
        "triplets",
        [{"margin": margin, "rate": 1e-3, "steps": steps} for margin in (0.2, 0.5, 1.0) for steps in (500, 2_000)],
        triplet_margin,
    ),
    Method("MomentAROMA of labels", "labels", over(normalize=[0.0, 0.5, 0.6, 0.7, 0.8, 1.0]), moment_of_labels),
    Method("LDA", "labels", [{"shrinkage": s, "cosine": c} for s in (1e-4, 1e-3, 0.1) for c in (False, True)], lda),
    Method("ridge", "labels", [{"alpha": a, "cosine": c} for a in (0.01, 0.1, 1.0) for c in (False, True)], ridge),
    Method("class probabilities", "labels", over(C=[0.3, 1.0, 3.0, 10.0, 30.0, 100.0]), class_probabilities),
]

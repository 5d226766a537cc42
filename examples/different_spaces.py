"""Queries and objects with different features: sounds look for pictures, and W is 12 x 30.

Each sound and each picture shows the same four hidden traits, in its own features and with noise. A judgement says
which of two pictures goes better with a sound; nobody says how the features of one correspond to those of the other.
The learner never sees the held-out sounds and pictures that it is measured on.
"""

import numpy as np
from numpy.typing import NDArray

import aromatch as am

N_TRAITS, N_SOUND_FEATURES, N_PICTURE_FEATURES = 4, 12, 30
N_SOUNDS, N_PICTURES, N_TRIPLETS = 500, 800, 3_000
NOISE = 0.5


def main(seed: int = 0) -> dict[int, dict[str, float]]:
    rng = np.random.default_rng(seed)
    of_sounds = rng.normal(size=(N_TRAITS, N_SOUND_FEATURES))
    of_pictures = rng.normal(size=(N_TRAITS, N_PICTURE_FEATURES))
    sounds, pictures, triplets = judged_things(rng, of_sounds, of_pictures)
    new_sounds, new_pictures, new_triplets = judged_things(rng, of_sounds, of_pictures)

    models = [am.DiagonalAROMA(), am.FactoredAROMA(), am.FullAROMA()]
    accuracy: dict[int, dict[str, float]] = {}
    for n_seen in (10, 100, 1_000, N_TRIPLETS):
        accuracy[n_seen] = {}
        for model in models:
            model.fit_triplets(triplets[:n_seen], sounds, pictures)
            share = model.triplet_accuracy(new_triplets, new_sounds, new_pictures)
            accuracy[n_seen][type(model).__name__] = share

    print(f"W is {' x '.join(map(str, models[0].W_.shape))}; share of new judgements foreseen (chance: 0.5)\n")
    print(f"{'judgements':>10}" + "".join(f"{name:>15}" for name in accuracy[N_TRIPLETS]))
    for n_seen, row in accuracy.items():
        print(f"{n_seen:10,}" + "".join(f"{share:15.3f}" for share in row.values()))
    return accuracy


def judged_things(rng: np.random.Generator, of_sounds: NDArray, of_pictures: NDArray) -> tuple[NDArray, ...]:
    """Make sounds and pictures, and triplets of them with the picture that shares the sound's traits first."""
    sound_traits, picture_traits = rng.normal(size=(N_SOUNDS, N_TRAITS)), rng.normal(size=(N_PICTURES, N_TRAITS))
    queries = rng.integers(N_SOUNDS, size=N_TRIPLETS)
    two_pictures = rng.integers(N_PICTURES, size=(N_TRIPLETS, 2))
    agreement = np.einsum("it,ijt->ij", sound_traits[queries], picture_traits[two_pictures])
    two_pictures = np.take_along_axis(two_pictures, np.argsort(-agreement, axis=1), axis=1)
    return (
        with_noise(rng, sound_traits @ of_sounds),
        with_noise(rng, picture_traits @ of_pictures),
        np.column_stack([queries, two_pictures]),
    )


def with_noise(rng: np.random.Generator, rows: NDArray) -> NDArray:
    """Give rows of unit norm, the scale that r = 1 is meant for."""
    rows = rows + NOISE * rng.normal(size=rows.shape)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


if __name__ == "__main__":
    main()

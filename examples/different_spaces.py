"""Cross-modal retrieval: queries (sounds) and objects (pictures) have different features, so W is 12 x 30.

Sounds and pictures are noisy linear views of four latent variables. A triplet states which of two pictures matches a
sound better; the learners get no other correspondence between the two feature spaces. Accuracy is measured on triplets
of validation sounds and pictures.
"""

import numpy as np
from numpy.typing import NDArray

import aromatch as am

N_LATENT, N_SOUND_FEATURES, N_PICTURE_FEATURES = 4, 12, 30
N_SOUNDS, N_PICTURES, N_TRIPLETS = 500, 800, 3_000
NOISE = 0.5


def main(seed: int = 0) -> dict[int, dict[str, float]]:
    rng = np.random.default_rng(seed)
    to_sounds = rng.normal(size=(N_LATENT, N_SOUND_FEATURES))
    to_pictures = rng.normal(size=(N_LATENT, N_PICTURE_FEATURES))
    sounds, pictures, triplets = sample(rng, to_sounds, to_pictures)
    validation_sounds, validation_pictures, validation_triplets = sample(rng, to_sounds, to_pictures)

    models = [am.DiagonalAROMA(), am.FactoredAROMA(), am.FullAROMA()]
    accuracy: dict[int, dict[str, float]] = {}
    for n in (10, 100, 1_000, N_TRIPLETS):
        accuracy[n] = {}
        for model in models:
            model.fit_triplets(triplets[:n], sounds, pictures)
            accuracy[n][type(model).__name__] = model.triplet_accuracy(
                validation_triplets, validation_sounds, validation_pictures
            )

    print(f"W is {' x '.join(map(str, models[0].W_.shape))}; accuracy on validation triplets (chance: 0.5)\n")
    print(f"{'triplets':>10}" + "".join(f"{name:>15}" for name in accuracy[N_TRIPLETS]))
    for n, row in accuracy.items():
        print(f"{n:10,}" + "".join(f"{value:15.3f}" for value in row.values()))
    return accuracy


def sample(rng: np.random.Generator, to_sounds: NDArray, to_pictures: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Return sounds, pictures and triplets that prefer the picture with the larger latent inner product."""
    latent_sounds, latent_pictures = rng.normal(size=(N_SOUNDS, N_LATENT)), rng.normal(size=(N_PICTURES, N_LATENT))
    queries = rng.integers(N_SOUNDS, size=N_TRIPLETS)
    pairs = rng.integers(N_PICTURES, size=(N_TRIPLETS, 2))
    relevance = np.einsum("it,ijt->ij", latent_sounds[queries], latent_pictures[pairs])
    pairs = np.take_along_axis(pairs, np.argsort(-relevance, axis=1), axis=1)
    sounds, pictures = noisy(rng, latent_sounds @ to_sounds), noisy(rng, latent_pictures @ to_pictures)
    return sounds, pictures, np.column_stack([queries, pairs])


def noisy(rng: np.random.Generator, X: NDArray) -> NDArray:
    """Return the rows with noise, scaled to unit norm, for which the default r = 1 is suitable."""
    X = X + NOISE * rng.normal(size=X.shape)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


if __name__ == "__main__":
    main()

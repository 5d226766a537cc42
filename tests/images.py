"""Small images for tests of image features."""

import io

import numpy as np
from PIL import Image

from aromatch.features import PatchDescriptors


def photographs(n, seed=0, size=(40, 48)):
    """Return random colour textures of different scales."""
    rng = np.random.default_rng(seed)
    images = []
    for at in range(n):
        cell = 1 + at % 5
        noise = rng.integers(0, 256, (size[0] // cell + 1, size[1] // cell + 1, 3))
        images.append(np.kron(noise, np.ones((cell, cell, 1)))[: size[0], : size[1]].astype(np.uint8))
    return images


def encoded(image, form="PNG", **options):
    file = io.BytesIO()
    Image.fromarray(image).save(file, form, **options)
    return file.getvalue()


def counts_of(image, **settings):
    return PatchDescriptors(**settings).transform([image])[0]

"""Images to vectors, as in section 5.1 of the paper: patches become visual words, counted and weighted by tf-idf.

A descriptor of a patch is its LBP(8, 2) histogram h and its colour histogram g (see `patches`), each summing to 1,
scaled and put side by side,

    x = (s(h), w s(g)),        s = square root, by default.

With square roots, |x - x'|^2 = |s(h) - s(h')|^2 + w^2 |s(g) - s(g')|^2 is a sum of squared Hellinger distances, which
the few largest bins do not dominate. The dictionary of words is computed by k-means on descriptors of training
pictures; each patch of a picture is assigned to the nearest word. With n_t patches of word t, N training pictures and
N_t of them that contain the word, the vector of a picture is, before it is scaled to norm 1,

    v_t = f(n_t) idf_t,        idf_t = 1 + log((1 + N) / (1 + N_t)),        f = square root, by default,

because repeated words, such as the patches of a white wall, are less informative.

Departure: the paper does not specify patches, colours and scalings. `from_preset("paper")` is an interpretation with as
few words per image as it reports; the defaults were chosen by measurement (docs/images.md).
"""

import os
from collections.abc import Iterable
from contextlib import ExitStack
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import MiniBatchKMeans
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from .._utils.checks import check_choice, check_integer, check_number, random_generator
from .._utils.progress import progress_bar
from .descriptors import PatchDescriptors
from .patches import N_PATTERNS
from .pictures import Picture, check_pictures

SCALINGS = ("sqrt", "l1", "l2")
# Squares of distances between vectors are computed in single precision.
_LARGEST_WEIGHT = 1e10
TERM_WEIGHTS = ("sqrt", "count", "log", "binary")


class ImageFeatures(TransformerMixin, BaseEstimator):
    """Vectors of unit norm from images: tf-idf of visual words, clusters of texture and colour.

    The dictionary and the document frequencies are computed from the training images alone, so that no information
    about test images leaks into their evaluation. Requires `pip install 'aromatch[image]'`.

    Parameters
    ----------
    n_words : int, default 1000
        Size of the dictionary, the width of the vectors.
    patch_size, stride, scales, longest_side, colour_space, colour_bins
        Patches and colour bins, see `PatchDescriptors`.
    colour_weight : float, default 0.15
        Weight of colour relative to texture; 0 ignores colour. Increase it if colour is informative about the class.
    scaling : "sqrt", "l1" or "l2", default "sqrt"
        Square roots of relative frequencies, relative frequencies, or histograms of Euclidean norm 1.
    term_weight : "sqrt", "count", "log" or "binary", default "sqrt"
        Weight of n patches of one word: the square root of n, n, 1 + log n, or 1.
    n_samples : int, default 100_000
        Number of patches sampled for k-means, the same number from each training image.
    cache : path or None, default None
        Folder for a cache of descriptors by the content of each image, so that the next run starts at k-means.
    n_jobs : int, default -1
        Number of processes; -1 means one per core. Does not change the result.
    random_state : int, RandomState, Generator or None, default None
        Random seed of the dictionary.
    verbose : bool, default False
        Show progress bars if standard error is a terminal.

    Attributes
    ----------
    words_ : ndarray of float32, shape (n_words, 59 + number of colour bins)
        The words, as scaled descriptors.
    idf_ : ndarray, shape (n_words,)
        The inverse document frequency of each word.

    See Also
    --------
    PatchDescriptors : the descriptors, which need no training.

    Examples
    --------
    Vertical and horizontal stripes as arrays; paths of files can be passed as well.

    >>> import numpy as np
    >>> from aromatch.features import ImageFeatures
    >>> rng = np.random.default_rng(0)
    >>> standing = [np.tile(rng.integers(0, 255, 64), (64, 1)) for _ in range(4)]
    >>> images = standing + [image.T for image in standing]
    >>> features = ImageFeatures(n_words=20, random_state=0).fit(images)
    >>> X = features.transform(images)
    >>> X.shape
    (8, 20)
    >>> likeness = (X @ X.T).toarray()
    >>> bool(likeness[:4, :4].min() > likeness[:4, 4:].max())
    True

    The settings nearest to the paper:

    >>> ImageFeatures.from_preset("paper", random_state=0)
    ImageFeatures(...patch_size=64...)
    """

    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {
        "dense": {},
        "paper": {
            "patch_size": 64,
            "stride": 32,
            "scales": (1.0,),
            "longest_side": None,
            "colour_space": "rgb",
            "colour_bins": (4, 4, 4),
            "colour_weight": 1.0,
            "scaling": "l1",
            "term_weight": "count",
        },
    }

    def __init__(
        self,
        n_words: int = 1000,
        *,
        patch_size: int = 24,
        stride: int = 12,
        scales: Iterable[float] = (1.0, 0.5, 0.25),
        longest_side: int | None = 300,
        colour_space: str = "opponent",
        colour_bins: Iterable[int] = (5, 5, 5),
        colour_weight: float = 0.15,
        scaling: str = "sqrt",
        term_weight: str = "sqrt",
        n_samples: int = 100_000,
        cache: str | os.PathLike[str] | None = None,
        n_jobs: int = -1,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_words = n_words
        self.patch_size = patch_size
        self.stride = stride
        self.scales = scales
        self.longest_side = longest_side
        self.colour_space = colour_space
        self.colour_bins = colour_bins
        self.colour_weight = colour_weight
        self.scaling = scaling
        self.term_weight = term_weight
        self.n_samples = n_samples
        self.cache = cache
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def from_preset(cls, name: str, **settings: Any) -> Self:
        """Return a transformer with a named set of parameters.

        Parameters
        ----------
        name : "dense" or "paper"
            "dense" is the default. "paper" has patches of 64 pixels with a stride of 32, which gives as few words per
            image as the paper reports; the rest is the simplest interpretation of its section 5.1.
        **settings
            Parameters that override the preset.

        Returns
        -------
        ImageFeatures
            Not fitted.
        """
        return cls(**{**cls.PRESETS[check_choice(name, "name", tuple(cls.PRESETS))], **settings})

    def fit(self, images: Iterable[Picture], y: Any = None) -> Self:
        """Compute the dictionary and the document frequencies of its words.

        Parameters
        ----------
        images : iterable of paths, bytes of picture files, or arrays
            The training images; see `PatchDescriptors.transform` for valid arrays.
        y : ignored
            Present for compatibility with scikit-learn.

        Returns
        -------
        ImageFeatures
            The transformer itself.
        """
        self.fit_transform(images)
        return self

    def fit_transform(self, images: Iterable[Picture], y: Any = None) -> Any:
        """Compute the dictionary and return the vectors of the training images, which are decoded once.

        Parameters
        ----------
        images : iterable of pictures
            As for `fit`.
        y : ignored
            Present for compatibility with scikit-learn.

        Returns
        -------
        CSR matrix of float64, shape (n_images, n_words)
            The same as `fit(images).transform(images)`.
        """
        n_words = check_integer(self.n_words, "n_words", at_least=1)
        n_samples = check_integer(self.n_samples, "n_samples", at_least=n_words)
        scale = self._scale()
        check_choice(self.term_weight, "term_weight", TERM_WEIGHTS)
        pictures = check_pictures(images)
        seed = int(random_generator(self.random_state).integers(2**31))
        with ExitStack() as until_the_end:
            cache = self.cache
            if cache is None:
                # The second of two passes over the patches reads them from here and decodes no image.
                cache = until_the_end.enter_context(TemporaryDirectory(prefix="aromatch-"))
            patches = self._descriptors(cache)
            some = partial(_sample, scale=scale, seed=seed, n=-(-n_samples // len(pictures)))
            sample = np.vstack(list(patches.each(pictures, some, "describing images")))
            if len(sample) < n_words:
                raise ValueError(
                    f"n_words must be at most the number of sampled patches of the training images, {len(sample)}, "
                    f"got {n_words}; use more images or fewer words"
                )
            dictionary = MiniBatchKMeans(n_words, batch_size=4096, n_init=1, max_iter=30, random_state=seed)
            # One thread, so that the result does not depend on the number of cores.
            with threadpool_limits(limits=1), progress_bar("clustering descriptors", 1, enabled=self.verbose):
                dictionary.fit(sample)
            counts = _bags(patches, pictures, dictionary, scale)
        self._dictionary = dictionary
        self._weigher = TfidfTransformer().fit(counts)
        self.words_ = dictionary.cluster_centers_
        self.idf_ = self._weigher.idf_
        return self._weighed(counts)

    def transform(self, images: Iterable[Picture]) -> Any:
        """Return the vectors of images.

        Parameters
        ----------
        images : iterable of pictures
            As for `fit`.

        Returns
        -------
        CSR matrix of float64, shape (n_images, n_words)
            Rows have norm 1; every image has at least one patch.
        """
        check_is_fitted(self)
        patches = self._descriptors(self.cache)
        return self._weighed(_bags(patches, check_pictures(images), self._dictionary, self._scale()))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the columns, `"word0"` to `"word999"`.

        Parameters
        ----------
        input_features : ignored
            Present for compatibility with scikit-learn.

        Returns
        -------
        ndarray of object, shape (n_words,)
            The names.
        """
        check_is_fitted(self)
        return np.array([f"word{number}" for number in range(len(self.words_))], dtype=object)

    def _descriptors(self, cache: Any) -> PatchDescriptors:
        names = PatchDescriptors().get_params()
        settings = {name: value for name, value in self.get_params().items() if name in names}
        return PatchDescriptors(**{**settings, "cache": cache})

    def _scale(self) -> "partial[NDArray[np.float32]]":
        weight = check_number(self.colour_weight, "colour_weight", at_least=0)
        if weight > _LARGEST_WEIGHT:
            raise ValueError(f"colour_weight must be at most {_LARGEST_WEIGHT:.0e}, got {self.colour_weight!r}")
        return partial(scaled, scaling=check_choice(self.scaling, "scaling", SCALINGS), colour_weight=weight)

    def _weighed(self, counts: Any) -> Any:
        """Return vectors from counts, which are modified in place."""
        if self.term_weight == "sqrt":
            np.sqrt(counts.data, out=counts.data)
        elif self.term_weight == "log":
            counts.data = 1.0 + np.log(counts.data)
        elif self.term_weight == "binary":
            counts.data[:] = 1.0
        return self._weigher.transform(counts)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags


def scaled(counts: NDArray[Any], *, scaling: str, colour_weight: float) -> NDArray[np.float32]:
    """Return descriptors from counts in patches.

    >>> counts = np.zeros((1, 60), dtype=np.uint16)
    >>> counts[0, [0, 1, 59]] = 256, 768, 1024  # a fourth, three fourths; one colour
    >>> scaled(counts, scaling="sqrt", colour_weight=0.5)[0, [0, 1, 59]].round(3)
    array([0.5  , 0.866, 0.5  ], dtype=float32)
    """
    halves = [half.astype(np.float32) for half in np.split(counts, [N_PATTERNS], axis=1)]
    shares = [normalize(half, "l2" if scaling == "l2" else "l1") for half in halves]
    if scaling == "sqrt":
        shares = [np.sqrt(half) for half in shares]
    return np.hstack([shares[0], np.float32(colour_weight) * shares[1]])


def _sample(counts: NDArray[Any], number: int, *, scale: Any, seed: int, n: int) -> NDArray[np.float32]:
    """Sample patches of one image, depending on its number but not on the order of execution."""
    chosen = np.random.default_rng([seed, number]).permutation(len(counts))[:n]
    return np.asarray(scale(counts[chosen]))


def _words(counts: NDArray[Any], number: int, *, scale: Any, dictionary: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the words of one image and their numbers of patches."""
    return np.unique(dictionary.predict(scale(counts)), return_counts=True)


def _bags(patches: PatchDescriptors, pictures: list[Any], dictionary: Any, scale: Any) -> Any:
    """Count the words of each image."""
    look_up = partial(_words, scale=scale, dictionary=dictionary)
    found = list(patches.each(pictures, look_up, "counting words"))
    words, counts = (np.concatenate(part) for part in zip(*found, strict=True))
    starts = np.cumsum([0, *(len(row) for row, _ in found)])
    shape = (len(pictures), dictionary.n_clusters)
    return sparse.csr_matrix((counts.astype(np.float64), words, starts), shape=shape)

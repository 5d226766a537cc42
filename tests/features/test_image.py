"""Image features: the dictionary, the vectors, and scikit-learn's conventions."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import pairwise_distances
from sklearn.pipeline import make_pipeline

from aromatch.features import ImageFeatures, PatchDescriptors, descriptors, pictures
from aromatch.features.image import _sample, scaled
from images import counts_of, photographs

SMALL = {"patch_size": 16, "stride": 8, "n_words": 12, "n_samples": 2000, "random_state": 0}


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"patch_size": 1}, ValueError, "patch_size must be at least 2, got 1"),
        ({"patch_size": 8.0}, TypeError, "patch_size must be"),
        ({"stride": 0}, ValueError, "stride must be at least 1, got 0"),
        ({"scales": ()}, ValueError, "scales"),
        ({"scales": (2.0,)}, ValueError, "scales"),
        ({"scales": (0.0,)}, ValueError, "scales must be greater than 0"),
        ({"scales": 1.0}, TypeError, "scales must be a sequence"),
        ({"longest_side": 0}, ValueError, "longest_side must be at least 1"),
        ({"colour_space": "cmyk"}, ValueError, "colour_space must be one of 'rgb'"),
        ({"colour_bins": (4, 4)}, ValueError, "colour_bins must be three numbers"),
        ({"colour_bins": 4}, TypeError, "colour_bins must be a sequence"),
        ({"n_jobs": 1.5}, TypeError, "n_jobs must be"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be"),
        ({"n_words": 0}, ValueError, "n_words must be at least 1"),
        ({"n_words": 50, "n_samples": 49}, ValueError, "n_samples must be at least 50"),
        ({"colour_weight": -1}, ValueError, "colour_weight must be at least 0"),
        ({"scaling": "none"}, ValueError, "scaling must be one of 'sqrt', 'l1', 'l2'"),
        ({"term_weight": "tf"}, ValueError, "term_weight must be one of 'sqrt'"),
        ({"random_state": "a"}, TypeError, "random_state must be"),
    ],
    ids=str,
)
def test_a_bad_setting_is_named(settings, error, message):
    with pytest.raises(error, match=message):
        ImageFeatures(**settings).fit(photographs(3))


def test_descriptors_scaled_by_square_roots_add_up_hellinger_distances():
    rng = np.random.default_rng(6)
    counts = np.hstack([rng.multinomial(256, np.ones(59) / 59, 2), rng.multinomial(256, np.ones(64) / 64, 2)])
    x, other = scaled(counts, scaling="sqrt", colour_weight=0.3).astype(float)
    (h, h2), (g, g2) = counts[:, :59] / 256, counts[:, 59:] / 256
    expected = ((np.sqrt(h) - np.sqrt(h2)) ** 2).sum() + 0.09 * ((np.sqrt(g) - np.sqrt(g2)) ** 2).sum()
    assert_allclose(((x - other) ** 2).sum(), expected, rtol=1e-5)
    plain = scaled(counts, scaling="l1", colour_weight=2.0)
    assert_allclose(plain, np.hstack([counts[:, :59] / 256, counts[:, 59:] / 128]), rtol=1e-6)
    unit = scaled(counts, scaling="l2", colour_weight=1.0)
    assert_allclose(np.linalg.norm(unit[:, :59], axis=1), 1, rtol=1e-6)
    assert_allclose(np.linalg.norm(unit[:, 59:], axis=1), 1, rtol=1e-6)


@pytest.mark.parametrize(
    ("term_weight", "f"),
    [("sqrt", np.sqrt), ("count", float), ("binary", np.sign), ("log", lambda n: np.log(n) + 1 if n else 0.0)],
)
def test_vectors_are_tf_idf_of_the_nearest_words(term_weight, f):
    images = photographs(10)
    features = ImageFeatures(term_weight=term_weight, **SMALL)
    vectors = features.fit_transform(images).toarray()
    counts = np.zeros((10, 12))
    for at, image in enumerate(images):
        rows = scaled(counts_of(image, patch_size=16, stride=8), scaling="sqrt", colour_weight=features.colour_weight)
        for word in pairwise_distances(rows, features.words_).argmin(axis=1):
            counts[at, word] += 1
    idf = 1 + np.log(11 / (1 + (counts > 0).sum(axis=0)))
    expected = np.vectorize(f)(counts) * idf
    assert_allclose(vectors, expected / np.linalg.norm(expected, axis=1, keepdims=True), rtol=1e-6)
    assert_allclose(features.idf_, idf)


def test_fitting_and_transforming_at_once_is_the_same_as_one_after_the_other(tmp_path):
    images = photographs(8)
    at_once = ImageFeatures(**SMALL).fit_transform(images)
    features = ImageFeatures(cache=tmp_path, **SMALL).fit(images, ["y is not looked at"])
    later = features.transform(images)
    assert_array_equal(at_once.toarray(), later.toarray())
    assert at_once.format == later.format == "csr"
    assert_array_equal(features.transform(images[3:5]).toarray(), later[3:5].toarray())
    assert_allclose(np.linalg.norm(later.toarray(), axis=1), 1)


def test_images_are_read_once_even_without_a_cache(computed):
    ImageFeatures(**SMALL).fit_transform(photographs(8))
    assert len(computed) == 8


def test_the_dictionary_and_the_weights_come_from_training_images_only():
    features = ImageFeatures(**SMALL).fit(photographs(8))
    words, idf = features.words_.copy(), features.idf_.copy()
    features.transform(photographs(5, seed=9))
    assert_array_equal(features.words_, words)
    assert_array_equal(features.idf_, idf)
    other = ImageFeatures(**SMALL).fit(photographs(8, seed=9))
    assert not np.array_equal(other.words_, words)


def test_the_same_seed_gives_the_same_bits_and_another_another_dictionary():
    images = photographs(8)
    first, again = (ImageFeatures(**SMALL).fit(images) for _ in range(2))
    assert_array_equal(first.words_, again.words_)
    assert_array_equal(first.transform(images).toarray(), again.transform(images).toarray())
    assert not np.array_equal(ImageFeatures(**{**SMALL, "random_state": 1}).fit(images).words_, first.words_)
    generators = [np.random.default_rng(5), np.random.RandomState(5), None]
    for random_state in generators:
        ImageFeatures(**{**SMALL, "random_state": random_state}).fit(images)


def test_every_image_gives_its_own_draw_of_patches_without_repetition():
    counts = np.arange(50)[:, None]
    draws = [
        _sample(counts, at, scale=lambda rows: rows, seed=seed, n=20).ravel().tolist()
        for at in (0, 1)
        for seed in (0, 1)
    ]
    assert all(len(set(draw)) == 20 for draw in draws)
    assert len(set(map(tuple, draws))) == 4
    assert sorted(_sample(counts, 0, scale=lambda rows: rows, seed=0, n=99).ravel()) == list(range(50))


def test_two_processes_give_the_same_bits_as_one(tmp_path):
    images = photographs(descriptors.FEW + 8)
    one, two = (ImageFeatures(**SMALL, n_jobs=n).fit(images) for n in (1, 2))
    assert_array_equal(one.words_, two.words_)
    assert_array_equal(one.transform(images).toarray(), two.transform(images).toarray())


def test_a_picture_that_cannot_be_read_is_named_from_another_process_too():
    images = [*photographs(descriptors.FEW + 8), b"no picture"]
    with pytest.raises(ValueError, match=r"images\[40\] cannot be read as a picture"):
        PatchDescriptors(patch_size=16, n_jobs=2).transform(images)


def test_a_failed_fit_changes_nothing():
    features = ImageFeatures(**SMALL).fit(photographs(8))
    words = features.words_
    with pytest.raises(ValueError, match="cannot be read"):
        features.fit([*photographs(8, seed=9), b"no picture"])
    assert features.words_ is words
    features.transform(photographs(2))


def test_more_words_than_patches_are_refused():
    with pytest.raises(ValueError, match=r"n_words must be at most the number of sampled patches .* 12, got 1000"):
        ImageFeatures(patch_size=32, stride=8, scales=[1.0]).fit(photographs(2))


def test_inputs_are_not_modified():
    images = photographs(8)
    copies = [image.copy() for image in images]
    ImageFeatures(**SMALL).fit(images).transform(images)
    for image, copy in zip(images, copies, strict=True):
        assert_array_equal(image, copy)


def test_clone_parameters_pipeline_and_names_work():
    images, y = photographs(20), np.arange(20) % 5
    features = ImageFeatures(**SMALL)
    assert clone(features).get_params() == features.get_params()
    with pytest.raises(NotFittedError):
        features.transform(images)
    pipeline = make_pipeline(features, LogisticRegression()).fit(images, y)
    assert pipeline.score(images, y) > 0.9
    assert pipeline[0].get_feature_names_out().tolist() == [f"word{number}" for number in range(12)]
    assert PatchDescriptors().fit() is not None


def test_a_preset_is_only_settings():
    assert ImageFeatures.from_preset("dense", n_words=7).get_params() == ImageFeatures(n_words=7).get_params()
    paper = ImageFeatures.from_preset("paper", cache="there")
    assert (paper.patch_size, paper.stride, paper.cache) == (64, 32, "there")
    assert "patch_size=64" in repr(paper)
    with pytest.raises(ValueError, match="name must be one of 'dense', 'paper', got 'fine'"):
        ImageFeatures.from_preset("fine")


def test_defaults_of_the_descriptors_and_of_the_features_are_the_same():
    features = ImageFeatures().get_params()
    for name, value in PatchDescriptors().get_params().items():
        assert features[name] == value


def test_without_the_image_extra_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(pictures, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"require scikit-image and Pillow: pip install 'aromatch\[image\]'"):
        ImageFeatures().fit(photographs(1))


def test_importing_features_does_not_load_the_libraries_for_pictures():
    code = "import sys, aromatch.features; print([name for name in ('skimage', 'PIL') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"

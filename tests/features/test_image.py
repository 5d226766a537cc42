"""Image features: histograms against slow loops, reading, the cache, and the dictionary."""

import io
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from PIL import Image
from skimage import color
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import pairwise_distances
from sklearn.pipeline import make_pipeline

from aromatch.features import ImageFeatures, PatchDescriptors, descriptors, patches, pictures
from aromatch.features.image import _sample, scaled

RNG = np.random.default_rng(0)
SMALL = {"patch_size": 16, "stride": 8, "n_words": 12, "n_samples": 2000, "random_state": 0}


def photographs(n, seed=0, size=(40, 48)):
    """Random textures: smooth or rough, in some colour."""
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


# --- texture ---------------------------------------------------------------------------------------------------------


def slow_pattern(image, row, column):
    """The bits of one pixel, from the definition: 8 points of a circle of radius 2, read with bilinear weights."""
    padded = np.pad(image, 9, mode="symmetric").astype(float)
    bits = []
    for k in range(8):
        y, x = round(row - 2 * np.sin(2 * np.pi * k / 8), 5), round(column + 2 * np.cos(2 * np.pi * k / 8), 5)
        top, left = int(np.floor(y)), int(np.floor(x))
        corners = padded[top + 9 : top + 11, left + 9 : left + 11]
        value = np.array([1 - (y - top), y - top]) @ corners @ np.array([1 - (x - left), x - left])
        # Between unequal pixels a tie is decided by rounding, and either answer is right.
        if k % 2 and np.ptp(corners) and abs(value - image[row, column]) < 1e-3:
            return None
        bits.append(bool(value > image[row, column] - 1e-3))
    return tuple(bits)


@pytest.mark.parametrize("seed", range(3))
def test_texture_bins_are_the_uniform_patterns_of_a_slow_loop(seed):
    image = (np.random.default_rng(seed).integers(0, 4, size=(12, 15)) * 60).astype(np.uint8)
    codes = patches.texture_codes(image)
    seen = {}
    for (row, column), code in np.ndenumerate(codes):
        bits = slow_pattern(image, row, column)
        if bits is not None:
            uniform = sum(bits[k] != bits[k - 1] for k in range(8)) <= 2
            # Which bin a pattern has is scikit-image's choice; that each has its own is the definition.
            assert seen.setdefault(bits if uniform else "not uniform", code) == code
            assert (code == 58) == (not uniform)
    assert len(set(seen.values())) == len(seen) > 20


def test_texture_has_59_bins_and_the_last_is_for_patterns_that_are_not_uniform():
    codes = patches.texture_codes(np.random.default_rng(1).integers(0, 256, (300, 300)).astype(np.uint8))
    shares = np.bincount(codes.ravel(), minlength=59) / codes.size
    assert len(shares) == 59
    assert (shares > 0).all()
    assert shares.argmax() == 58


def test_texture_does_not_see_exposure_or_the_edge_of_the_picture():
    image = np.random.default_rng(2).integers(0, 100, (20, 20)).astype(np.uint8)
    assert_array_equal(patches.texture_codes(image), patches.texture_codes(2 * image + 30))
    flat = patches.texture_codes(np.full((6, 7), 90, dtype=np.uint8))
    assert (flat == flat[0, 0]).all()


# --- colour ----------------------------------------------------------------------------------------------------------


def slow_colour(pixel, space, bins):
    rgb = (np.array(pixel) // 4 + 0.5) / 64
    if space == "hsv":
        place = color.rgb2hsv(rgb[None, None])[0, 0]
    elif space == "lab":
        light, a, b = color.rgb2lab(rgb[None, None])[0, 0]
        place = np.array([light / 100, (a + 50) / 100, (b + 50) / 100])
    elif space == "opponent":
        place = np.array([rgb.mean(), rgb[0] - rgb[1] + 0.5, rgb[:2].mean() - rgb[2] + 0.5])
    else:
        place = rgb
    first, second, third = (min(max(int(x * n), 0), n - 1) for x, n in zip(place, bins, strict=True))
    return (first * bins[1] + second) * bins[2] + third


@pytest.mark.parametrize("space", patches.COLOUR_SPACES)
def test_colour_bins_are_those_of_a_loop_over_the_pixels(space):
    image = np.random.default_rng(3).integers(0, 256, (12, 12, 3)).astype(np.uint8)
    expected = [[slow_colour(pixel, space, (5, 3, 4)) for pixel in row] for row in image]
    assert_array_equal(patches.colour_codes(image, space, (5, 3, 4)), expected)


def test_rgb_bins_are_exact_and_pure_colours_have_their_own():
    pixels = np.array([[[0, 0, 0], [255, 0, 0], [0, 63, 0], [0, 64, 0], [0, 0, 255], [255, 255, 255]]], dtype=np.uint8)
    assert patches.colour_codes(pixels, "rgb", (4, 4, 4)).tolist() == [[0, 48, 0, 4, 3, 63]]


# --- patches ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "size", "stride"),
    [((20, 31), 8, 4), ((20, 31), 7, 3), ((9, 9), 9, 5), ((16, 24), 8, 8), ((23, 17), 5, 7), ((12, 40), 12, 1)],
)
def test_counts_in_patches_are_those_of_a_loop_over_the_patches(shape, size, stride):
    codes = np.random.default_rng(4).integers(0, 6, shape)
    expected = []
    for top in patches.grid(shape[0], size, stride):
        for left in patches.grid(shape[1], size, stride):
            expected.append(np.bincount(codes[top : top + size, left : left + size].ravel(), minlength=6))
    assert_array_equal(patches.count_in_patches(codes, 6, size, stride), expected)


@pytest.mark.parametrize(
    ("length", "size", "stride"), [(300, 64, 32), (64, 64, 32), (65, 64, 32), (100, 24, 8), (7, 3, 5)]
)
def test_patches_lie_every_stride_within_the_picture_and_in_its_middle(length, size, stride):
    starts = patches.grid(length, size, stride)
    assert len(starts) == (length - size) // stride + 1
    assert (np.diff(starts) == stride).all()
    before, after = starts[0], length - (starts[-1] + size)
    assert before >= 0
    assert after - before in (0, 1)


def test_a_picture_of_the_papers_size_has_the_papers_number_of_patches():
    settings = {
        name: value for name, value in ImageFeatures.PRESETS["paper"].items() if name in PatchDescriptors().get_params()
    }
    counts = counts_of(np.zeros((240, 300), dtype=np.uint8), **settings)
    assert counts.shape == (6 * 8, 59 + 64)


def test_each_scale_adds_the_patches_of_the_reduced_picture():
    image = photographs(1, size=(64, 96))[0]
    both = counts_of(image, patch_size=16, stride=8, scales=(1.0, 0.5))
    full = counts_of(image, patch_size=16, stride=8, scales=(1.0,))
    # Pillow averages along rows, rounds, and then along columns.
    narrow = np.floor(image.reshape(64, 48, 2, 3).mean(axis=2) + 0.5)
    small = np.floor(narrow.reshape(32, 2, 48, 3).mean(axis=1) + 0.5).astype(np.uint8)
    half = counts_of(small, patch_size=16, stride=8, scales=(1.0,))
    assert_array_equal(both, np.vstack([full, half]))
    assert len(full) == 7 * 11
    assert len(half) == 3 * 5


def test_each_half_of_a_descriptor_sums_to_the_area_of_a_patch():
    counts = counts_of(photographs(1)[0], patch_size=16, stride=5, scales=[1.0, 0.7])
    assert (counts[:, :59].sum(axis=1) == 256).all()
    assert (counts[:, 59:].sum(axis=1) == 256).all()
    assert counts.dtype == np.uint16


def test_patches_too_large_for_16_bits_are_counted_right():
    counts = counts_of(np.zeros((10, 10), dtype=np.uint8), patch_size=256, stride=256, scales=[1.0])
    assert counts.sum() == 2 * 256 * 256


@pytest.mark.parametrize("shape", [(1, 1), (1, 50), (50, 3), (15, 16), (5, 7, 3)])
def test_a_picture_smaller_than_a_patch_is_mirrored_until_one_fits(shape):
    image = np.random.default_rng(5).integers(0, 256, shape).astype(np.uint8)
    counts = counts_of(image, patch_size=16, stride=8, scales=[1.0])
    missing = [max(0, 16 - side) for side in shape[:2]]
    larger = np.pad(image, [(m // 2, m - m // 2) for m in missing] + [(0, 0)] * (len(shape) - 2), mode="symmetric")
    assert_array_equal(counts, counts_of(larger, patch_size=16, stride=8, scales=[1.0]))
    assert len(counts) >= 1


def test_large_pictures_are_reduced_to_the_longest_side_and_small_ones_are_not_enlarged():
    large = np.kron(photographs(1, size=(30, 50))[0], np.ones((4, 4, 1), dtype=np.uint8))
    settings = {"patch_size": 16, "stride": 8, "scales": [1.0]}
    reduced = counts_of(large, longest_side=50, **settings)
    assert_array_equal(reduced, counts_of(large[::4, ::4], **settings))
    assert_array_equal(reduced, counts_of(large[::4, ::4], longest_side=1000, **settings))
    assert len(counts_of(large, longest_side=None, **settings)) > len(reduced)


# --- reading ---------------------------------------------------------------------------------------------------------


def test_the_same_picture_in_any_form_has_the_same_descriptors(tmp_path):
    image = photographs(1)[0]
    file = encoded(image)
    (tmp_path / "a.png").write_bytes(file)
    opaque = np.dstack([image, np.full(image.shape[:2], 255, dtype=np.uint8)])
    forms = [tmp_path / "a.png", str(tmp_path / "a.png"), file, encoded(opaque), opaque, image.astype(np.int64)]
    forms += [
        image.astype(np.uint16) * 257,
        image / 255.0,
        (image / 255.0).astype(np.float32),
        np.asfortranarray(image),
    ]
    expected, *others = PatchDescriptors(patch_size=16).transform([image, *forms])
    for other in others:
        assert_array_equal(other, expected)


def test_a_grey_picture_is_the_rgb_picture_of_three_equal_channels(tmp_path):
    grey = photographs(1)[0][:, :, 0]
    forms = [np.dstack([grey] * 3), grey[:, :, None], encoded(grey), encoded(grey.astype(np.uint16) * 257)]
    forms += [encoded(np.dstack([grey, np.full_like(grey, 255)]))]
    expected, *others = PatchDescriptors(patch_size=16).transform([grey, *forms])
    for other in others:
        assert_array_equal(other, expected)


def test_what_is_transparent_is_white():
    hidden = np.dstack([photographs(1)[0], np.zeros((40, 48), dtype=np.uint8)])
    white = np.full((40, 48), 255, dtype=np.uint8)
    expected, *others = PatchDescriptors(patch_size=16).transform([white, hidden, encoded(hidden)])
    for other in others:
        assert_array_equal(other, expected)


def test_a_photograph_is_turned_the_way_its_camera_says():
    image = photographs(1)[0]
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees clockwise
    turned, expected = PatchDescriptors(patch_size=16).transform([encoded(image, exif=exif), np.rot90(image, -1)])
    assert_array_equal(turned, expected)


def damaged(file):
    return file[: len(file) // 2]


@pytest.mark.parametrize(
    ("picture", "error", "message"),
    [
        (b"no picture", ValueError, r"images\[1\] cannot be read as a picture"),
        (b"", ValueError, r"images\[1\] cannot be read as a picture"),
        (damaged(encoded(photographs(1)[0])), ValueError, r"images\[1\] cannot be read as a picture"),
        (damaged(encoded(photographs(1)[0], "JPEG")), ValueError, r"images\[1\] cannot be read as a picture"),
        (np.zeros((0, 5)), ValueError, r"images\[1\] has no pixels: its shape is \(0, 5\)"),
        (np.zeros((4, 5, 2)), ValueError, r"images\[1\] must have the shape .* got \(4, 5, 2\)"),
        (np.zeros(7), ValueError, r"images\[1\] must have the shape .* got \(7,\)"),
        (np.full((4, 5), np.nan), ValueError, r"images\[1\] contains NaN or infinity"),
        (np.full((4, 5), 1.5), ValueError, r"images\[1\] must have values from 0 to 1, as floats, got 1.5 to 1.5"),
        (np.full((4, 5), 256), ValueError, r"images\[1\] must have values from 0 to 255, got 256 to 256"),
        (np.full((4, 5), -1), ValueError, r"images\[1\] must have values from 0 to 255, got -1 to -1"),
        (np.full((4, 5), "a"), TypeError, r"images\[1\] must be an array of numbers"),
        (
            np.broadcast_to(np.uint8(0), (10**5, 10**5)),
            ValueError,
            r"images\[1\] has 100000 x 100000 pixels, more than",
        ),
        (3, TypeError, "images must be paths, bytes of picture files or arrays, but number 1 is of type int"),
        (None, TypeError, "number 1 is of type NoneType"),
    ],
    ids=str,
)
def test_a_picture_that_cannot_be_read_is_named(picture, error, message):
    with pytest.raises(error, match=message):
        PatchDescriptors().transform([photographs(1)[0], picture])


def test_a_file_that_cannot_be_read_is_named_by_its_path(tmp_path):
    path = tmp_path / "broken.jpg"
    path.write_bytes(b"\xff\xd8 no more")
    with pytest.raises(ValueError, match=r"images\[0\] \(.*broken.jpg\) cannot be read as a picture"):
        PatchDescriptors().transform([path])
    with pytest.raises(FileNotFoundError, match=r"nowhere\.jpg"):
        PatchDescriptors().transform([tmp_path / "nowhere.jpg"])


def test_a_small_file_that_claims_to_be_a_huge_picture_is_refused_before_it_is_unpacked():
    for size, message in [((9_000, 7_000), "9000 x 7000 pixels are more than"), ((20_000, 10_000), "bomb")]:
        file = io.BytesIO()
        Image.new("1", size).save(file, "PNG")
        assert len(file.getvalue()) < 100_000
        with pytest.raises(ValueError, match=rf"images\[0\] cannot be read as a picture: .*{message}"):
            PatchDescriptors().transform([file.getvalue()])


@pytest.mark.parametrize("images", [photographs(1)[0][:, :, 0], photographs(1)[0], "a.png", b"a", 5, None])
def test_one_picture_in_the_place_of_a_sequence_is_refused(images):
    with pytest.raises(TypeError, match="images must be a sequence of pictures"):
        PatchDescriptors().transform(images)


def test_no_picture_is_refused():
    with pytest.raises(ValueError, match="images must be at least one picture, got none"):
        ImageFeatures().fit([])


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"patch_size": 1}, ValueError, "patch_size must be at least 2, got 1"),
        ({"patch_size": 8.0}, TypeError, "patch_size must be a whole number"),
        ({"stride": 0}, ValueError, "stride must be at least 1, got 0"),
        ({"scales": ()}, ValueError, "scales must be at least one number, none above 1"),
        ({"scales": (2.0,)}, ValueError, "scales must be at least one number, none above 1"),
        ({"scales": (0.0,)}, ValueError, "scales must be greater than 0"),
        ({"scales": 1.0}, TypeError, "scales must be a sequence"),
        ({"longest_side": 0}, ValueError, "longest_side must be at least 1"),
        ({"colour_space": "cmyk"}, ValueError, "colour_space must be one of 'rgb'"),
        ({"colour_bins": (4, 4)}, ValueError, "colour_bins must be three numbers"),
        ({"colour_bins": 4}, TypeError, "colour_bins must be a sequence"),
        ({"n_jobs": 1.5}, TypeError, "n_jobs must be a whole number"),
        ({"n_jobs": 0}, ValueError, "n_jobs must not be 0"),
        ({"n_words": 0}, ValueError, "n_words must be at least 1"),
        ({"n_words": 50, "n_samples": 49}, ValueError, "n_samples must be at least 50"),
        ({"colour_weight": -1}, ValueError, "colour_weight must be at least 0"),
        ({"scaling": "none"}, ValueError, "scaling must be one of 'sqrt', 'l1', 'l2'"),
        ({"term_weight": "tf"}, ValueError, "term_weight must be one of 'sqrt'"),
        ({"random_state": "a"}, TypeError, "random_state must be a whole number"),
    ],
    ids=str,
)
def test_a_bad_setting_is_named(settings, error, message):
    with pytest.raises(error, match=message):
        ImageFeatures(**settings).fit(photographs(3))


# --- cache -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def computed(monkeypatch):
    """How many pictures were described, in this process."""
    calls = []

    def counting(*args, **settings):
        calls.append(settings)
        return original(*args, **settings)

    original = patches.describe
    monkeypatch.setattr(patches, "describe", counting)
    return calls


def test_the_cache_knows_pictures_by_their_content(tmp_path, computed):
    images = photographs(3)
    cached = PatchDescriptors(patch_size=16, cache=tmp_path / "new" / "cache")
    expected = PatchDescriptors(patch_size=16).transform(images)
    computed.clear()
    for _ in range(2):
        for found, wanted in zip(cached.transform(images), expected, strict=True):
            assert_array_equal(found, wanted)
    assert len(computed) == 3
    (tmp_path / "a.png").write_bytes(encoded(images[0]))
    cached.transform([tmp_path / "a.png"])
    (tmp_path / "a.png").rename(tmp_path / "b.png")
    cached.transform([tmp_path / "b.png", encoded(images[0])])
    assert len(computed) == 4
    (tmp_path / "b.png").write_bytes(encoded(images[1]))
    assert_array_equal(cached.transform([tmp_path / "b.png"])[0], expected[1])
    assert len(computed) == 5
    cached.transform([images[0].reshape(48, 40, 3), images[0].astype(np.int64)])  # the same bytes; the same values
    assert len(computed) == 7


@pytest.mark.parametrize(
    "change",
    [
        {"patch_size": 8},
        {"stride": 4},
        {"scales": (1.0,)},
        {"longest_side": 30},
        {"colour_space": "rgb"},
        {"colour_bins": (5, 25, 1)},
    ],
    ids=str,
)
def test_other_settings_find_nothing_in_the_cache(tmp_path, computed, change):
    image = photographs(1)[0]
    base = PatchDescriptors(patch_size=16, cache=tmp_path)
    base.transform([image])
    changed = clone(base).set_params(**change)
    assert_array_equal(changed.transform([image])[0], clone(changed).set_params(cache=None).transform([image])[0])
    assert len(computed) == 3


def test_another_version_of_the_computation_finds_nothing_in_the_cache(tmp_path, computed, monkeypatch):
    cached = PatchDescriptors(patch_size=16, cache=tmp_path)
    cached.transform(photographs(1))
    monkeypatch.setattr(descriptors, "VERSION", descriptors.VERSION + 1)
    cached.transform(photographs(1))
    assert len(computed) == 2


def cut(path):
    path.write_bytes(path.read_bytes()[:-20])


def emptied(path):
    path.write_bytes(b"")


def flipped(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 16
    path.write_bytes(content)


def of_another_picture(path):
    np.savez_compressed(path, counts=np.ones((3, 184), dtype=np.uint16))


def of_another_width(path):
    np.savez_compressed(path, counts=np.full((3, 2), 256, dtype=np.uint16))


def with_objects(path):
    np.savez_compressed(path, counts=np.array([[{}]]))


@pytest.mark.parametrize("damage", [cut, emptied, flipped, of_another_picture, of_another_width, with_objects])
def test_a_damaged_cache_file_is_computed_again_and_repaired(tmp_path, computed, damage):
    image = photographs(1)[0]
    cached = PatchDescriptors(patch_size=16, cache=tmp_path)
    (expected,) = cached.transform([image])
    (path,) = tmp_path.iterdir()
    damage(path)
    assert_array_equal(cached.transform([image])[0], expected)
    assert len(computed) == 2
    assert_array_equal(cached.transform([image])[0], expected)
    assert len(computed) == 2


def test_a_cache_holds_whole_files_only_and_no_pickles(tmp_path, monkeypatch):
    cached = PatchDescriptors(patch_size=16, cache=tmp_path)

    def broken(file, **arrays):
        file.write(b"half of it")
        raise OSError("disk full")

    with monkeypatch.context() as patched:
        patched.setattr(np, "savez_compressed", broken)
        with pytest.raises(OSError, match="disk full"):
            cached.transform(photographs(1))
    assert list(tmp_path.iterdir()) == []
    cached.transform(photographs(1))
    (path,) = tmp_path.iterdir()
    assert path.suffix == ".npz"
    np.load(path, allow_pickle=False)["counts"]


# --- words -----------------------------------------------------------------------------------------------------------


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


# --- scikit-learn ----------------------------------------------------------------------------------------------------


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
    with pytest.raises(ImportError, match=r"need scikit-image and Pillow: pip install 'aromatch\[image\]'"):
        ImageFeatures().fit(photographs(1))


def test_importing_features_does_not_load_the_libraries_for_pictures():
    code = "import sys, aromatch.features; print([name for name in ('skimage', 'PIL') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"

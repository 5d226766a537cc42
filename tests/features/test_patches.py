"""Histograms of patches: texture, colour and counting, against slow loops."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from skimage import color

from aromatch.features import ImageFeatures, PatchDescriptors, patches
from images import counts_of, photographs


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

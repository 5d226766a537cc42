"""Reading pictures: every form gives the same numbers, and what cannot be read is named."""

import io

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from PIL import Image

from aromatch.features import ImageFeatures, PatchDescriptors
from images import encoded, photographs


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
        (3, TypeError, "images must contain .*got int at index 1"),
        (None, TypeError, "got NoneType at index 1"),
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
    with pytest.raises(ValueError, match="images"):
        ImageFeatures().fit([])

"""The cache of descriptors: by content, whole or not at all, and repaired when damaged."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from aromatch.features import PatchDescriptors, descriptors
from aromatch.io.durable import replacing
from images import encoded, photographs


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


def test_a_cache_is_freed_of_the_files_of_killed_processes(tmp_path):
    cached = PatchDescriptors(patch_size=16, cache=tmp_path)
    with replacing(tmp_path / "x") as file:
        (stale,) = (path.name for path in tmp_path.iterdir())
        file.write(b"half of it")
    (tmp_path / "x").rename(tmp_path / stale)
    cached.transform(photographs(1))
    assert [path.suffix for path in tmp_path.iterdir()] == [".npz"]

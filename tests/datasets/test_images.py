"""Images from class folders and tar files: which are read, in which order, and which files are refused."""

import hashlib
import io
import tarfile
from collections import Counter

import numpy as np
import pytest

from aromatch._utils import checks as _checks
from aromatch.datasets import (
    DataFileError,
    _images,
    caltech,
    load_caltech101_50,
    load_caltech256,
    load_caltech256_10,
)
from real_data import FOLDER, needs_caltech101, needs_caltech256, needs_caltech256_10

# The 256 classes in the order of their numbers, from Griffin et al. 2007.
NAMES_OF_256 = """
ak47 american-flag backpack baseball-bat baseball-glove basketball-hoop bat bathtub bear beer-mug billiards
binoculars birdbath blimp bonsai-101 boom-box bowling-ball bowling-pin boxing-glove brain-101 breadmaker buddha-101
bulldozer butterfly cactus cake calculator camel cannon canoe car-tire cartman cd centipede cereal-box
chandelier-101 chess-board chimp chopsticks cockroach coffee-mug coffin coin comet computer-keyboard
computer-monitor computer-mouse conch cormorant covered-wagon cowboy-hat crab-101 desk-globe diamond-ring dice dog
dolphin-101 doorknob drinking-straw duck dumb-bell eiffel-tower electric-guitar-101 elephant-101 elk ewer-101
eyeglasses fern fighter-jet fire-extinguisher fire-hydrant fire-truck fireworks flashlight floppy-disk
football-helmet french-horn fried-egg frisbee frog frying-pan galaxy gas-pump giraffe goat golden-gate-bridge
goldfish golf-ball goose gorilla grand-piano-101 grapes grasshopper guitar-pick hamburger hammock harmonica harp
harpsichord hawksbill-101 head-phones helicopter-101 hibiscus homer-simpson horse horseshoe-crab hot-air-balloon
hot-dog hot-tub hourglass house-fly human-skeleton hummingbird ibis-101 ice-cream-cone iguana ipod iris jesus-christ
joy-stick kangaroo-101 kayak ketch-101 killer-whale knife ladder laptop-101 lathe leopards-101 license-plate
lightbulb light-house lightning llama-101 mailbox mandolin mars mattress megaphone menorah-101 microscope microwave
minaret minotaur motorbikes-101 mountain-bike mushroom mussels necktie octopus ostrich owl palm-pilot palm-tree
paperclip paper-shredder pci-card penguin people pez-dispenser photocopier picnic-table playing-card porcupine pram
praying-mantis pyramid raccoon radio-telescope rainbow refrigerator revolver-101 rifle rotary-phone roulette-wheel
saddle saturn school-bus scorpion-101 screwdriver segway self-propelled-lawn-mower sextant sheet-music skateboard
skunk skyscraper smokestack snail snake sneaker snowmobile soccer-ball socks soda-can spaghetti speed-boat spider
spoon stained-glass starfish-101 steering-wheel stirrups sunflower-101 superman sushi swan swiss-army-knife sword
syringe tambourine teapot teddy-bear teepee telephone-box tennis-ball tennis-court tennis-racket theodolite toaster
tomato tombstone top-hat touring-bike tower-pisa traffic-light treadmill triceratops tricycle trilobite-101 tripod
t-shirt tuning-fork tweezer umbrella-101 unicorn vcr video-projector washing-machine watch-101 waterfall watermelon
welding-mask wheelbarrow windmill wine-bottle xylophone yarmulke yo-yo zebra airplanes-101 car-side-101
faces-easy-101 greyhound tennis-shoes toad
""".split()  # noqa: SIM905
ALL_256 = [f"{number:03}.{name}" for number, name in enumerate(NAMES_OF_256, 1)]
JPEG = b"\xff\xd8\xff\xe0 a picture of "


def write_tar(path, members):
    """Write a tar file of {name: bytes}, or {name: TarInfo} for what is no plain file."""
    with tarfile.open(path, "w") as archive:
        for name, content in members.items():
            if isinstance(content, tarfile.TarInfo):
                archive.addfile(content)
                continue
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def special(name, kind, target=""):
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


def write_folder(root, members):
    for name, content in members.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return root


def pictures(below, classes, n=2):
    names = [f"{below}{label}/{number:04}.jpg" for label in classes for number in range(n, 0, -1)]
    return {name: JPEG + name.encode() for name in names}


def known_tar(monkeypatch, name, path):
    """Make the checksum of a tar file the one that a loader expects."""
    source = caltech.SOURCES[name]
    digest = source.digest[0], hashlib.new(source.digest[0], path.read_bytes()).hexdigest()
    monkeypatch.setitem(caltech.SOURCES, name, source._replace(digest=digest))


def test_the_fifty_classes_are_those_of_the_documented_rule():
    from_101 = [name for name in ALL_256 if name.endswith("-101") and name != "252.car-side-101"]
    others = [name for name in ALL_256 if not name.endswith("-101") and name not in caltech.TEN.values()]
    assert list(caltech.FIFTY) == from_101 + others[9::10]
    assert len(set(caltech.FIFTY)) == 50
    assert set(caltech.TEN.values()) <= set(ALL_256)
    assert set(caltech.TEN.values()) & set(caltech.FIFTY) == {"127.laptop-101"}


def test_29_classes_are_in_both_fifties():
    shared = {name[4:-4].replace("-", "_") for name in caltech.FIFTY if name.endswith("-101")}
    assert shared == {name.lower() for name in caltech.FIFTY_OF_101[:29]}
    assert len(set(caltech.FIFTY_OF_101)) == 50


@pytest.mark.parametrize("kind", ["folder", "folder itself", "tar", "tar itself"])
def test_caltech256_reads_the_fifty_classes_in_the_order_of_their_names(tmp_path, monkeypatch, kind):
    classes = [*reversed(caltech.FIFTY), "257.clutter", "001.ak47"]
    place = tmp_path
    if kind.startswith("folder"):
        root = write_folder(tmp_path / "256_ObjectCategories", pictures("", classes))
        place = root if kind == "folder itself" else tmp_path
    else:
        path = write_tar(tmp_path / "256_ObjectCategories.tar", pictures("256_ObjectCategories/", classes))
        known_tar(monkeypatch, "caltech256", path)
        place = path if kind == "tar itself" else tmp_path
    found = load_caltech256(place)
    expected = [(label, f"{label}/{number:04}.jpg") for label in sorted(caltech.FIFTY) for number in (1, 2)]
    assert list(zip(found.labels.tolist(), found.names, strict=True)) == expected
    assert len(found) == len(found.images) == 100
    for image, name in zip(found.images, found.names, strict=True):
        content = image if isinstance(image, bytes) else image.read_bytes()
        assert content.endswith(name.encode())


@pytest.mark.parametrize("packed", [False, True])
def test_none_means_every_class_but_clutter_and_classes_can_be_chosen(tmp_path, monkeypatch, packed):
    classes = ["001.ak47", "009.bear", "257.clutter"]
    if packed:
        path = write_tar(tmp_path / "256_ObjectCategories.tar", pictures("256_ObjectCategories/", classes, 1))
        known_tar(monkeypatch, "caltech256", path)
    else:
        write_folder(tmp_path / "256_ObjectCategories", pictures("", classes, 1))
    assert load_caltech256(tmp_path, classes=None).labels.tolist() == ["001.ak47", "009.bear"]
    assert load_caltech256(tmp_path, classes=["009.bear"]).labels.tolist() == ["009.bear"]
    assert load_caltech256(tmp_path, classes=np.array(["009.bear"])).names == ["009.bear/0001.jpg"]
    with pytest.raises(DataFileError, match=r"classes .*'257.clutter'"):
        load_caltech256(tmp_path, classes=["257.clutter"])
    with pytest.raises(DataFileError, match=r"classes .*'001.ak-47', .*did you mean '001.ak47'"):
        load_caltech256(tmp_path, classes=["009.bear", "001.ak-47"])
    with pytest.raises(DataFileError, match=r"classes .*'015.bonsai-101'"):
        load_caltech256(tmp_path)


@pytest.mark.parametrize(
    ("classes", "error", "message"),
    [
        ("001.ak47", TypeError, "classes must be a sequence of class names, got '001.ak47'"),
        (50, TypeError, "classes must be a sequence of class names, got 50"),
        ([1], TypeError, "classes must contain strings, got 1"),
        ([], ValueError, "classes must contain at least one name"),
    ],
)
def test_classes_that_are_no_names_are_refused(tmp_path, classes, error, message):
    with pytest.raises(error, match=message):
        load_caltech256(tmp_path, classes=classes)


@pytest.mark.parametrize("packed", [False, True])
def test_what_is_no_image_in_a_class_folder_is_passed_over(tmp_path, monkeypatch, packed):
    # The real collection has such things: a folder in 056.dog, a file without suffix in 198.spider.
    members = {
        "056.dog/1.jpg": b"1",
        "056.dog/2.JPG": b"2",
        "056.dog/3.jpeg": b"3",
        "056.dog/greg/vision309/1.jpg": b"too deep",
        "056.dog/RENAME2": b"no image",
        "056.dog/._1.jpg": b"a note of an operating system",
        "README.jpg": b"not in a class",
    }
    if packed:
        members = {f"256_ObjectCategories/{name}": content for name, content in members.items()}
        path = write_tar(tmp_path / "256_ObjectCategories.tar", {**members, "056.dog/1.jpg": b"elsewhere"})
        known_tar(monkeypatch, "caltech256", path)
    else:
        write_folder(tmp_path / "256_ObjectCategories", members)
        (tmp_path / "256_ObjectCategories" / "056.dog" / "folder.jpg").mkdir()
    assert load_caltech256(tmp_path, classes=None).names == ["056.dog/1.jpg", "056.dog/2.JPG", "056.dog/3.jpeg"]


def test_an_empty_folder_is_an_error_that_says_what_was_expected(tmp_path):
    root = tmp_path / "256_ObjectCategories"
    root.mkdir()
    with pytest.raises(DataFileError, match="256_ObjectCategories contains no images"):
        load_caltech256(tmp_path)
    (root / "001.ak47").mkdir()
    with pytest.raises(DataFileError, match="contains no images"):
        load_caltech256(tmp_path, classes=["001.ak47"])


def test_the_folder_of_caltech101_gives_the_first_100_images_of_the_fifty_classes(tmp_path):
    classes = [*caltech.FIFTY_OF_101, "car_side", "BACKGROUND_Google"]
    members = pictures("", classes, 1)
    members.update({f"watch/image_{number:04}.jpg": b"" for number in range(120, 0, -1)})
    root = write_folder(tmp_path / "101_ObjectCategories", members)
    found = load_caltech101_50(tmp_path)
    sizes = Counter(found.labels.tolist())
    assert set(sizes) == set(caltech.FIFTY_OF_101)
    assert sizes.pop("watch") == 100
    assert set(sizes.values()) == {1}
    assert [name for name in found.names if name.startswith("watch/")][-1] == "watch/image_0099.jpg"
    assert load_caltech101_50(root).names == found.names
    for path in (root / "bonsai").iterdir():
        path.unlink()
    with pytest.raises(DataFileError, match="classes contains 'bonsai'"):
        load_caltech101_50(tmp_path)


@pytest.mark.parametrize(
    ("load", "name", "classes"),
    [
        (load_caltech101_50, "caltech101_50", caltech.FIFTY_OF_101),
        (load_caltech256_10, "caltech256_10", tuple(caltech.TEN)),
    ],
)
def test_the_packed_sets_are_read_from_their_folder_of_the_tar_file(tmp_path, monkeypatch, load, name, classes):
    root = caltech.SOURCES[name].root
    members = {"README.txt": b"words", "features/surf/a.jpg": b"other", **pictures(f"{root}/", classes, 1)}
    path = write_tar(tmp_path / f"{name}.tar", members)
    known_tar(monkeypatch, name, path)
    found = load(tmp_path)
    assert found.names == [f"{label}/0001.jpg" for label in sorted(classes)]
    assert found.images[0] == members[f"{root}/{found.names[0]}"]
    write_tar(path, {key: content for key, content in members.items() if f"/{classes[3]}/" not in key})
    known_tar(monkeypatch, name, path)
    with pytest.raises(DataFileError, match=f"classes contains '{classes[3]}'"):
        load(path)


def test_links_devices_and_pipes_in_a_tar_file_are_passed_over(tmp_path):
    members = {
        "below/a/1.jpg": b"plain",
        "1": special("below/a/2.jpg", tarfile.SYMTYPE, "/etc/passwd"),
        "2": special("below/a/3.jpg", tarfile.LNKTYPE, "below/a/1.jpg"),
        "3": special("below/a/4.jpg", tarfile.CHRTYPE),
        "4": special("below/a/5.jpg", tarfile.BLKTYPE),
        "5": special("below/a/6.jpg", tarfile.FIFOTYPE),
        "6": special("below/a/7.jpg", tarfile.DIRTYPE),
        "7": special("/below/a/8.jpg", tarfile.SYMTYPE, "../../x"),
        "8": special("below/a/9.jpg", tarfile.GNUTYPE_SPARSE),
    }
    found = _images.images_in_tar(write_tar(tmp_path / "some.tar", members), "below")
    assert found.names == ["a/1.jpg"]
    assert found.images == [b"plain"]
    assert [path.name for path in tmp_path.iterdir()] == ["some.tar"]


@pytest.mark.parametrize(
    "name", ["/below/a/1.jpg", "../below/a/1.jpg", "below/../../a/1.jpg", "below/a/..", "below\\..\\a.jpg", "//a"]
)
def test_a_tar_file_with_a_name_that_leaves_the_folder_is_refused(tmp_path, name):
    path = write_tar(tmp_path / "some.tar", {"below/a/0.jpg": b"good", name: b"bad"})
    with pytest.raises(DataFileError, match="a name that leaves the folder") as error:
        _images.images_in_tar(path, "below")
    assert str(path) in str(error.value)


def test_a_leading_dot_folder_is_the_folder_itself(tmp_path):
    path = write_tar(tmp_path / "some.tar", {"./below/a/0.jpg": b"good"})
    assert _images.images_in_tar(path, "below").names == ["a/0.jpg"]


def test_images_below_another_folder_of_the_tar_file_are_passed_over(tmp_path):
    path = write_tar(tmp_path / "some.tar", {"below/a/0.jpg": b"good", "thumbnails/a/1.jpg": b"small"})
    assert _images.images_in_tar(path, "below").names == ["a/0.jpg"]


def test_a_tar_file_with_the_same_name_twice_is_refused(tmp_path):
    path = write_tar(tmp_path / "some.tar", {"below/a/0.jpg": b"one", "./below/a/0.jpg": b"other"})
    with pytest.raises(DataFileError, match="more than once"):
        _images.images_in_tar(path, "below")


def test_a_member_larger_than_any_image_is_refused_before_it_is_read(tmp_path, monkeypatch):
    path = write_tar(tmp_path / "some.tar", {"below/a/0.jpg": bytes(10), "below/a/1.jpg": bytes(11)})
    monkeypatch.setattr(_images, "LARGEST_MEMBER", 11)
    assert len(_images.images_in_tar(path, "below")) == 2
    monkeypatch.setattr(_images, "LARGEST_MEMBER", 10)
    with pytest.raises(DataFileError, match=r"'below/a/1.jpg' of 11 bytes"):
        _images.images_in_tar(path, "below")


def test_images_that_do_not_fit_in_memory_are_refused_before_they_are_read(tmp_path, monkeypatch):
    path = write_tar(tmp_path / "some.tar", pictures("below/", "ab"))
    monkeypatch.setattr(_checks, "available_memory", lambda: 50)
    with pytest.raises(MemoryError, match=r"the images in .*some.tar would take 1\d\d bytes"):
        _images.images_in_tar(path, "below")


@pytest.mark.parametrize("keep", [0, 100, 512, 700, 1536 + 100])
def test_a_cut_tar_file_is_refused_by_name(tmp_path, keep):
    path = write_tar(tmp_path / "some.tar", pictures("below/", "ab"))
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DataFileError) as error:
        _images.images_in_tar(path, "below")
    assert str(path) in str(error.value)


def test_a_compressed_tar_file_is_refused(tmp_path):
    path = tmp_path / "some.tar"
    with tarfile.open(path, "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("below/a/0.jpg"), io.BytesIO(b""))
    with pytest.raises(DataFileError, match="uncompressed"):
        _images.images_in_tar(path, "below")


@needs_caltech101
def test_caltech101_has_3921_images_of_50_classes():
    found = load_caltech101_50(FOLDER / "caltech101_50.tar")
    assert len(found) == len(set(found.names)) == 3921
    sizes = Counter(found.labels.tolist())
    assert set(sizes) == set(caltech.FIFTY_OF_101)
    assert (max(sizes.values()), min(sizes.values())) == (100, 59)
    assert found.names == sorted(found.names)
    assert all(image.startswith(b"\xff\xd8\xff") for image in found.images)
    # What the tar file itself says about its classes.
    with tarfile.open(FOLDER / "caltech101_50.tar") as archive:
        rows = [line.split("\t") for line in archive.extractfile("classes50.tsv").read().decode().splitlines()[1:]]
    assert {row[0] for row in rows if row[3] == "1"} == set(caltech.FIFTY_OF_101[:29])
    assert {row[0]: int(row[2]) for row in rows} == sizes


@needs_caltech256_10
def test_ten_classes_of_caltech256_have_1123_images():
    found = load_caltech256_10(FOLDER)
    assert len(found) == len(set(found.names)) == 1123
    assert all(image.startswith(b"\xff\xd8\xff") for image in found.images)
    for label, name in zip(found.labels, found.names, strict=True):
        assert name.split("/")[1][:3] == caltech.TEN[label][:3]


@needs_caltech256
def test_caltech256_has_the_fifty_classes():
    found = load_caltech256(FOLDER)
    assert set(found.labels.tolist()) == set(caltech.FIFTY)
    assert min(Counter(found.labels.tolist()).values()) >= 80

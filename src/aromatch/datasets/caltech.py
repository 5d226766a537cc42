"""Caltech-256 and Caltech-101, the photographs of the paper's section 5.1 and two smaller substitutes.

- `load_caltech256` reads the paper's data set, 30,607 photographs of 256 classes. The paper uses 50 classes without
  naming them. Departure: the 50 classes are ours (`FIFTY`), chosen by names alone: the 29 classes that are also among
  the 50 of `load_caltech101_50`, which Caltech-256 marks with `-101`, so that results on both can be compared; and, of
  the unmarked classes without those of `load_caltech256_10`, which serve to choose settings, the 10th, 20th, ...,
  210th by number. `257.clutter` is not a class and is never read.
- `load_caltech101_50` reads 50 classes of Caltech-101, at most 100 images each (the first by name), so that no class
  outweighs the others: 3,921 photographs, with a median size of 300 x 240 pixels. It replaces Caltech-256 where that is
  not available. `car_side`, whose images are grey, and `BACKGROUND_Google`, which is not a class, are left out.
- `load_caltech256_10` reads 10 classes of Caltech-256 scaled down to a long side of 256 pixels, for choosing settings:
  1,123 photographs of the classes and with the short class names of the Office-Caltech collection.

G. Griffin, A. Holub and P. Perona, "Caltech-256 object category dataset", Technical Report 7694, California Institute
of Technology, 2007. L. Fei-Fei, R. Fergus and P. Perona, "Learning generative visual models from few training
examples", CVPR workshop 2004. Both CC BY 4.0.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from ._files import Folder, check_digest, data_folder, missing
from ._images import check_classes, images_in_folder, images_in_tar
from .collections import LabelledImages


class Source(NamedTuple):
    """Files of a collection, and the instruction for users who do not have them."""

    title: str
    tar: str
    digest: tuple[str, str]
    """Algorithm and value of the checksum of the tar file."""
    root: str
    """Folder of class folders inside the tar file."""
    folder: str | None
    """Name of the unpacked folder of class folders, if it can be read as well."""
    remedy: str
    leave_out: Collection[str] = ()
    max_per_class: int | None = None
    """Limit for the unpacked folder; the tar file contains these images only."""


SOURCES = {
    "caltech256": Source(
        "Caltech-256",
        "256_ObjectCategories.tar",
        ("md5", "67b4f42ca05d46448c6bb8ecd2220f6d"),  # as published by CaltechDATA
        "256_ObjectCategories",
        "256_ObjectCategories",
        "get 256_ObjectCategories.tar from CaltechDATA (https://data.caltech.edu/records/nyy15-4j048) and put it "
        "there, packed or unpacked as 256_ObjectCategories",
        leave_out={"257.clutter"},
    ),
    "caltech101_50": Source(
        "Caltech-101",
        "caltech101_50.tar",
        ("sha256", "c9d30d1b21edb492aae5bd339fced8325ee30d7de766e6bab4f2d17fb12f9a33"),
        "c101_50_orig",
        "101_ObjectCategories",
        "get it from CaltechDATA (https://data.caltech.edu/records/mzrjq-6wc02), unpack it and put its folder "
        "101_ObjectCategories there, or caltech101_50.tar if you have it",
        max_per_class=100,
    ),
    "caltech256_10": Source(
        "caltech256_10.tar (ten classes of Caltech-256, scaled down)",
        "caltech256_10.tar",
        ("sha256", "778650983d54807cf16cdbe3e203d74cf211f472842c99b1f0ee0d03abb39387"),
        "c256_10_256px",
        None,
        "put it there, or get all of Caltech-256 from CaltechDATA (https://data.caltech.edu/records/nyy15-4j048) and "
        "read these classes in full size with load_caltech256",
    ),
}

# Blocks of words are easier to read than fifty lines. Of both, the first 29 are the common classes.
FIFTY = tuple(
    """
    015.bonsai-101 020.brain-101 022.buddha-101 036.chandelier-101 052.crab-101 057.dolphin-101
    063.electric-guitar-101 064.elephant-101 066.ewer-101 091.grand-piano-101 100.hawksbill-101
    102.helicopter-101 114.ibis-101 121.kangaroo-101 123.ketch-101 127.laptop-101 129.leopards-101
    134.llama-101 140.menorah-101 145.motorbikes-101 172.revolver-101 179.scorpion-101 201.starfish-101
    204.sunflower-101 230.trilobite-101 235.umbrella-101 240.watch-101 251.airplanes-101 253.faces-easy-101

    011.billiards 024.butterfly 035.cereal-box 050.covered-wagon 062.eiffel-tower 075.floppy-disk 085.goat
    096.hammock 109.hot-tub 120.joy-stick 135.mailbox 147.mushroom 157.pci-card 167.pyramid 178.school-bus
    189.snail 199.spoon 211.tambourine 221.tomato 233.tuning-fork 246.wine-bottle
    """.split()  # noqa: SIM905
)
FIFTY_OF_101 = tuple(
    """
    airplanes bonsai brain buddha chandelier crab dolphin electric_guitar elephant ewer Faces_easy grand_piano
    hawksbill helicopter ibis kangaroo ketch laptop Leopards llama menorah Motorbikes revolver scorpion starfish
    sunflower trilobite umbrella watch

    butterfly cellphone chair cougar_face crayfish dalmatian dragonfly euphonium ferry flamingo joshua_tree lamp
    lotus minaret rhino schooner soccer_ball stegosaurus stop_sign wheelchair yin_yang
    """.split()  # noqa: SIM905
)
# Short names, and the names of the same classes in Caltech-256.
TEN = {
    "backpack": "003.backpack",
    "bike": "224.touring-bike",
    "calculator": "027.calculator",
    "headphones": "101.head-phones",
    "keyboard": "045.computer-keyboard",
    "laptop": "127.laptop-101",
    "monitor": "046.computer-monitor",
    "mouse": "047.computer-mouse",
    "mug": "041.coffee-mug",
    "projector": "238.video-projector",
}


def load_caltech256(
    folder: Folder = None, *, classes: Sequence[str] | None = FIFTY, verbose: bool = False
) -> LabelledImages:
    """Load classes of Caltech-256.

    Parameters
    ----------
    folder : path, optional
        The folder that contains the folder `256_ObjectCategories` or the file `256_ObjectCategories.tar`, see
        `data_folder`. It may also be one of the two itself.
    classes : sequence of str or None, default FIFTY
        Names of class folders, such as `"015.bonsai-101"`; None for all 256. By default a fixed choice of 50 classes,
        which the module docstring explains.
    verbose : bool, default False
        Show a progress bar if standard error is a terminal. Checking the tar file of 1.2 GB takes a few seconds, once
        per process.

    Returns
    -------
    LabelledImages
        The images sorted by name, with the names of their folders as labels: paths if they are read from the folder,
        bytes (about 40 KB each) if they are read from the tar file.

    Raises
    ------
    FileNotFoundError
        If the images are not found; the message describes where to get them.
    DataFileError
        If the checksum of the tar file is wrong, or a class has no images.

    Examples
    --------
    >>> from aromatch.datasets import load_caltech256
    >>> photographs = load_caltech256()  # doctest: +SKIP
    >>> len(set(photographs.labels)), photographs.names[0]  # doctest: +SKIP
    (50, '011.billiards/011_0001.jpg')
    """
    return _load(SOURCES["caltech256"], check_classes(classes), folder, verbose)


def load_caltech101_50(folder: Folder = None, *, verbose: bool = False) -> LabelledImages:
    """Load 50 classes of Caltech-101, at most 100 images each: 3,921 images.

    Parameters
    ----------
    folder : path, optional
        The folder that contains `caltech101_50.tar` or the folder `101_ObjectCategories` as published by Caltech, from
        which the same images are read; see `data_folder`. It may also be one of the two itself.
    verbose : bool, default False
        Show a progress bar if standard error is a terminal.

    Returns
    -------
    LabelledImages
        The images sorted by name: bytes (55 MB) from the tar file, paths from the folder.

    Raises
    ------
    FileNotFoundError
        If the images are not found; the message describes where to get them.
    DataFileError
        If the checksum of the tar file is wrong, or the folder lacks a class.

    Examples
    --------
    >>> from aromatch.datasets import load_caltech101_50
    >>> photographs = load_caltech101_50()  # doctest: +SKIP
    >>> len(photographs), photographs.names[0]  # doctest: +SKIP
    (3921, 'Faces_easy/image_0001.jpg')
    """
    return _load(SOURCES["caltech101_50"], FIFTY_OF_101, folder, verbose)


def load_caltech256_10(folder: Folder = None, *, verbose: bool = False) -> LabelledImages:
    """Load 10 classes of Caltech-256, scaled down to a long side of 256 pixels: 1,123 images.

    Parameters
    ----------
    folder : path, optional
        The folder that contains `caltech256_10.tar`, or that file; see `data_folder`. The same photographs in full
        size are `load_caltech256(classes=list(aromatch.datasets.caltech.TEN.values()))`.
    verbose : bool, default False
        Show a progress bar if standard error is a terminal.

    Returns
    -------
    LabelledImages
        The images as bytes (11 MB), sorted by name.

    Raises
    ------
    FileNotFoundError
        If the images are not found; the message describes where to get them.
    DataFileError
        If the checksum of the tar file is wrong.

    Examples
    --------
    >>> from aromatch.datasets import load_caltech256_10
    >>> photographs = load_caltech256_10()  # doctest: +SKIP
    >>> len(photographs), photographs.names[0]  # doctest: +SKIP
    (1123, 'backpack/003_0001.jpg')
    """
    return _load(SOURCES["caltech256_10"], sorted(TEN), folder, verbose)


def _load(source: Source, classes: Sequence[str] | None, folder: Folder, verbose: bool) -> LabelledImages:
    root_folder = data_folder(folder)
    for root in (root_folder / source.folder, root_folder) if source.folder else ():
        if root.name == source.folder and root.is_dir():
            return images_in_folder(root, classes, leave_out=source.leave_out, max_per_class=source.max_per_class)
    path = root_folder if root_folder.is_file() else root_folder / source.tar
    if not path.is_file():
        raise missing(source.title, root_folder, source.remedy)
    algorithm, digest = source.digest
    check_digest(path, digest, algorithm=algorithm, verbose=verbose)
    return images_in_tar(path, source.root, classes, leave_out=source.leave_out, verbose=verbose)

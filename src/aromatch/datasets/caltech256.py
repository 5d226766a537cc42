"""Caltech-256, the paper's images (section 5.1): 30,607 photographs of 256 kinds of things.

The paper uses 50 classes and does not say which. Ours are `FIFTY`, chosen by a rule that looks at names alone:

- the 29 classes that are also among the 50 of `load_caltech101_50`, so that results on the two can be compared;
  Caltech-256 took them over from Caltech-101 and marks them with `-101` (`252.car-side-101` is all grey and is
  left out there and here);
- of the classes that Caltech-256 does not mark so, without the nine others of `load_caltech256_10`, which are there
  to try settings on, the 10th, 20th, ..., 210th in the order of their numbers: 21 classes.

Departure: the 50 classes are ours. `257.clutter` holds pictures of anything, is no class, and is never read.

G. Griffin, A. Holub and P. Perona, "Caltech-256 object category dataset", Technical Report 7694, California
Institute of Technology, 2007. CC BY 4.0.
"""

from collections.abc import Sequence
from pathlib import Path

from ._files import Folder, check_digest, data_folder, missing
from ._images import check_classes, images_in_folder, images_in_tar
from .collections import LabelledImages

FOLDER = "256_ObjectCategories"
TAR = "256_ObjectCategories.tar"
# The checksum that CaltechDATA shows beside the file.
MD5 = "67b4f42ca05d46448c6bb8ecd2220f6d"
CLUTTER = "257.clutter"

# A block of words is easier to read than fifty lines.
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


def load_caltech256(
    folder: Folder = None, *, classes: Sequence[str] | None = FIFTY, show_progress: bool = False
) -> LabelledImages:
    """Read classes of Caltech-256.

    Parameters
    ----------
    folder : path, optional
        Where to look, see `data_folder`. It holds the folder `256_ObjectCategories` or, where that is
        missing, the file `256_ObjectCategories.tar`, as they come from Caltech. It may also be one of the
        two itself.
    classes : sequence of str or None, default FIFTY
        The classes to read, by the names of their folders, such as `"015.bonsai-101"`. None reads all 256.
        By default the fixed choice of 50 that this module's text explains.
    show_progress : bool, default False
        Show a progress bar where standard error is a terminal: to check the tar file, which has 1.2 GB, takes
        a few seconds, once a process.

    Returns
    -------
    LabelledImages
        The images in the order of their names, labelled by the names of their folders. From the folder they
        are paths. From the tar file they are bytes, some 40 KB each: unpack it when memory is short.

    Raises
    ------
    FileNotFoundError
        When the images are not there; it says where they come from and where they belong.
    DataFileError
        When the tar file is not the known one, or a class has no images.

    Examples
    --------
    >>> from aromatch.datasets import load_caltech256
    >>> photographs = load_caltech256()  # doctest: +SKIP
    >>> len(set(photographs.labels)), photographs.names[0]  # doctest: +SKIP
    (50, '011.billiards/011_0001.jpg')
    """
    names = check_classes(classes)
    place = data_folder(folder)
    root = _class_folders(place)
    if root is not None:
        return images_in_folder(root, names, leave_out={CLUTTER})
    path = place if place.is_file() else place / TAR
    if not path.is_file():
        raise missing(
            "Caltech-256",
            place,
            f"get {TAR} from CaltechDATA (https://data.caltech.edu/records/nyy15-4j048) and put it there, packed or "
            f"unpacked as {FOLDER}",
        )
    check_digest(path, MD5, algorithm="md5", show_progress=show_progress)
    return images_in_tar(path, FOLDER, names, leave_out={CLUTTER}, show_progress=show_progress)


def _class_folders(place: Path) -> Path | None:
    """Find the folder of class folders: `256_ObjectCategories` in a folder, or that folder itself."""
    for root in (place / FOLDER, place):
        if root.name == FOLDER and root.is_dir():
            return root
    return None

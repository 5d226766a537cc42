"""Caltech-256, 10 of its classes, made smaller: a data set for choosing settings before the larger ones are run.

1,123 photographs with a long side of 256 pixels: the classes of Caltech-256 that the Office-Caltech collection
of domain adaptation took over, under that collection's short names. File names keep the numbers of Caltech-256.

G. Griffin, A. Holub and P. Perona, "Caltech-256 object category dataset", Technical Report 7694, California
Institute of Technology, 2007. CC BY 4.0.
"""

from ._files import Folder, check_digest, data_folder, missing
from ._images import images_in_tar
from .collections import LabelledImages

TAR = "caltech256_10.tar"
SHA256 = "778650983d54807cf16cdbe3e203d74cf211f472842c99b1f0ee0d03abb39387"
BELOW = "c256_10_256px"

# What Caltech-256 calls them.
CLASSES = {
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


def load_caltech256_10(folder: Folder = None, *, show_progress: bool = False) -> LabelledImages:
    """Read 10 classes of Caltech-256, with a long side of 256 pixels: 1,123 images.

    Parameters
    ----------
    folder : path, optional
        Where to look, see `data_folder`. It holds `caltech256_10.tar`, or is that file. The same photographs
        in their full size are `load_caltech256(classes=list(aromatch.datasets.caltech256_10.CLASSES.values()))`.
    show_progress : bool, default False
        Show a progress bar where standard error is a terminal.

    Returns
    -------
    LabelledImages
        The images as bytes (11 MB), in the order of their names.

    Raises
    ------
    FileNotFoundError
        When the images are not there; it says where they come from and where they belong.
    DataFileError
        When the tar file is not the known one.

    Examples
    --------
    >>> from aromatch.datasets import load_caltech256_10
    >>> photographs = load_caltech256_10()  # doctest: +SKIP
    >>> len(photographs), photographs.names[0]  # doctest: +SKIP
    (1123, 'backpack/003_0001.jpg')
    """
    place = data_folder(folder)
    path = place if place.is_file() else place / TAR
    if not path.is_file():
        raise missing(
            f"{TAR} (ten classes of Caltech-256, made smaller)",
            place,
            "put it there, or get all of Caltech-256 from CaltechDATA (https://data.caltech.edu/records/nyy15-4j048) "
            "and read these classes in their full size with load_caltech256",
        )
    check_digest(path, SHA256, show_progress=show_progress)
    return images_in_tar(path, BELOW, sorted(CLASSES), show_progress=show_progress)

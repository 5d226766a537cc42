"""Caltech-101, 50 of its classes: the stand-in for the paper's images where Caltech-256 is not at hand.

At most 100 images of each class are taken, the first by name, so that no class outweighs the others: 3,921
photographs, 300 x 240 pixels in the median. 29 of the classes went on into Caltech-256, which names them
`<number>.<class>-101`; each of the other 21 has 59 images or more. `car_side` is left out, whose images are all
grey, and so is `BACKGROUND_Google`, which is no class.

L. Fei-Fei, R. Fergus and P. Perona, "Learning generative visual models from few training examples", CVPR
workshop 2004. CC BY 4.0.
"""

from ._files import Folder, check_digest, data_folder, missing
from ._images import images_in_folder, images_in_tar
from .collections import LabelledImages

TAR = "caltech101_50.tar"
SHA256 = "c9d30d1b21edb492aae5bd339fced8325ee30d7de766e6bab4f2d17fb12f9a33"
BELOW = "c101_50_orig"
FOLDER = "101_ObjectCategories"
AT_MOST = 100

# The first 29 are also in Caltech-256. A block of words is easier to read than fifty lines.
CLASSES = tuple(
    """
    airplanes bonsai brain buddha chandelier crab dolphin electric_guitar elephant ewer Faces_easy grand_piano
    hawksbill helicopter ibis kangaroo ketch laptop Leopards llama menorah Motorbikes revolver scorpion starfish
    sunflower trilobite umbrella watch

    butterfly cellphone chair cougar_face crayfish dalmatian dragonfly euphonium ferry flamingo joshua_tree lamp
    lotus minaret rhino schooner soccer_ball stegosaurus stop_sign wheelchair yin_yang
    """.split()  # noqa: SIM905
)


def load_caltech101_50(folder: Folder = None, *, show_progress: bool = False) -> LabelledImages:
    """Read 50 classes of Caltech-101, at most 100 images of each: 3,921 images.

    Parameters
    ----------
    folder : path, optional
        Where to look, see `data_folder`. It holds `caltech101_50.tar`, or the folder
        `101_ObjectCategories` as it comes from Caltech, of which the same images are taken. It may also be
        one of the two itself.
    show_progress : bool, default False
        Show a progress bar where standard error is a terminal.

    Returns
    -------
    LabelledImages
        The images in the order of their names, as bytes (55 MB) from the tar file, as paths from the folder.

    Raises
    ------
    FileNotFoundError
        When the images are not there; it says where they come from and where they belong.
    DataFileError
        When the tar file is not the known one, or the folder lacks a class.

    Examples
    --------
    >>> from aromatch.datasets import load_caltech101_50
    >>> photographs = load_caltech101_50()  # doctest: +SKIP
    >>> len(photographs), photographs.names[0]  # doctest: +SKIP
    (3921, 'Faces_easy/image_0001.jpg')
    """
    place = data_folder(folder)
    for root in (place / FOLDER, place):
        if root.name == FOLDER and root.is_dir():
            return images_in_folder(root, CLASSES, at_most=AT_MOST)
    path = place if place.is_file() else place / TAR
    if not path.is_file():
        raise missing(
            "Caltech-101",
            place,
            "get it from CaltechDATA (https://data.caltech.edu/records/mzrjq-6wc02), unpack it and put its folder "
            f"{FOLDER} there, or {TAR} where you have that",
        )
    check_digest(path, SHA256, show_progress=show_progress)
    return images_in_tar(path, BELOW, CLASSES, show_progress=show_progress)

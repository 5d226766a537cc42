"""Images `<class>/<image>.jpg` in a folder or in a tar file.

A tar file is never unpacked, so that no member name can refer to a file of this machine. Members other than regular
files are skipped. A name that leaves the folder, a duplicate name or a member larger than any photograph raises an
error.
"""

import tarfile
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from typing import TypeVar

import numpy as np

from .._utils.checks import as_list, check_fits_in_memory
from .._utils.progress import progress_bar
from ..exceptions import DataFileError
from .collections import LabelledImages

LARGEST_MEMBER = 2**26
SUFFIXES = frozenset({".jpg", ".jpeg"})

T = TypeVar("T")


def images_in_tar(
    path: Path,
    below: str,
    classes: Sequence[str] | None = None,
    *,
    leave_out: Collection[str] = (),
    verbose: bool = False,
) -> LabelledImages:
    """Read the images `<below>/<class>/<image>` of an uncompressed tar file, sorted by class and name.

    Parameters
    ----------
    path : Path
        The tar file.
    below : str
        The folder inside the tar file that contains the class folders.
    classes : sequence of str, optional
        The classes to read, all by default.
    leave_out : collection of str
        Folders that are not classes.
    verbose : bool, default False
        Show a progress bar if standard error is a terminal.

    Returns
    -------
    LabelledImages
        The images as bytes.
    """
    try:
        # "r:" refuses compressed files, whose size is not bounded.
        with tarfile.open(path, "r:") as archive:
            members = {}
            for name, member in _plain_files(archive, path).items():
                parts = PurePosixPath(name).parts
                if len(parts) == 3 and parts[0] == below and parts[1] not in leave_out and _is_image(name):
                    members[parts[1], parts[2]] = member
            kept = _choose(members, classes, path)
            check_fits_in_memory(sum(members[key].size for key in kept), f"the images in {path}")
            images = []
            with progress_bar(f"reading {path.name}", len(kept), enabled=verbose) as advance:
                for key in kept:
                    file = archive.extractfile(members[key])
                    assert file is not None  # only links and devices have no file
                    images.append(file.read())
                    advance(1)
    except tarfile.TarError as error:
        raise DataFileError(f"{path} is not a whole, uncompressed tar file: {error}") from error
    return _labelled(images, kept)


def images_in_folder(
    root: Path,
    classes: Sequence[str] | None = None,
    *,
    leave_out: Collection[str] = (),
    max_per_class: int | None = None,
) -> LabelledImages:
    """List the images `<class>/<image>` of a folder, sorted by class and name.

    Parameters
    ----------
    root : Path
        The folder that contains the class folders.
    classes : sequence of str, optional
        The classes to list, all by default.
    leave_out : collection of str
        Folders that are not classes.
    max_per_class : int, optional
        Number of images to take from each class, the first by name.

    Returns
    -------
    LabelledImages
        The images as paths.
    """
    paths = {}
    for folder in root.iterdir():
        if folder.is_dir() and folder.name not in leave_out:
            inside = sorted(path for path in folder.iterdir() if _is_image(path.name) and path.is_file())
            paths.update({(folder.name, path.name): path for path in inside[:max_per_class]})
    kept = _choose(paths, classes, root)
    return _labelled([paths[key] for key in kept], kept)


def check_classes(classes: Sequence[str] | None) -> list[str] | None:
    """Check class names; return them as a list."""
    if classes is None:
        return None
    if isinstance(classes, str) or not isinstance(classes, Collection):
        raise TypeError(f"classes must be a sequence of class names, got {classes!r} ({type(classes).__name__})")
    names = as_list(classes, "classes")
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"classes must contain strings, got {name!r} ({type(name).__name__})")
    if not names:
        raise ValueError("classes must contain at least one name, got none")
    return names


def _plain_files(archive: tarfile.TarFile, path: Path) -> dict[str, tarfile.TarInfo]:
    """Return the regular files of a tar file by name; raise an error if one is not acceptable."""
    files: dict[str, tarfile.TarInfo] = {}
    for member in archive:
        if not member.isreg() or member.issparse():
            continue
        name = member.name.removeprefix("./")
        parts = PurePosixPath(name).parts
        if name.startswith("/") or "\\" in name or ".." in parts or not parts:
            raise DataFileError(f"{path} is refused: it contains {member.name!r}, a name that leaves the folder")
        if name in files:
            raise DataFileError(f"{path} is refused: it contains {member.name!r} more than once")
        if member.size > LARGEST_MEMBER:
            raise DataFileError(
                f"{path} is refused: it contains {member.name!r} of {member.size:,} bytes, "
                f"more than the limit of {LARGEST_MEMBER:,} for an image"
            )
        files[name] = member
    return files


def _is_image(name: str) -> bool:
    # Files that begin with a dot are metadata of an operating system.
    return PurePosixPath(name).suffix.lower() in SUFFIXES and not PurePosixPath(name).name.startswith(".")


def _choose(found: Collection[tuple[str, str]], classes: Sequence[str] | None, source: Path) -> list[tuple[str, str]]:
    """Return the sorted keys of the images of the chosen classes; check that every class has some."""
    there = {label for label, _ in found}
    if not there:
        raise DataFileError(f"{source} contains no images, expected one folder of .jpg files per class")
    for name in classes or ():
        if name not in there:
            near = get_close_matches(name, there, n=1, cutoff=0.5)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise DataFileError(f"classes contains {name!r}, but {source} has no images of it{hint}")
    chosen = there if classes is None else set(classes)
    return sorted(key for key in found if key[0] in chosen)


def _labelled(images: list[T], kept: list[tuple[str, str]]) -> LabelledImages:
    labels = np.array([label for label, _ in kept])
    return LabelledImages(images, labels, [f"{label}/{name}" for label, name in kept])  # type: ignore[arg-type]

"""20 Newsgroups, the paper's texts (section 5.2): 18,846 posts of 1993 to 20 groups, the "bydate" version.

They are read from `20news.jsonl.xz`, one JSON object a line with the fields `id`, `group` and `text`, or else
from the cache that scikit-learn's `fetch_20newsgroups` has made. Both hold the same posts, and both give the
same result: sorted by id. The official division into training and test posts is not kept, because the paper
draws its own.

A post begins with its headers: who wrote it, the subject, the organisation, keywords. Some name the group
nearly outright. The paper does not say whether it keeps them. They are kept by default here.

K. Lang, "NewsWeeder: learning to filter netnews", ICML 1995.
"""

import json
import lzma
import os
from pathlib import Path, PurePath

import numpy as np

from .._utils.progress import progress_bar
from ..exceptions import DataFileError
from ._files import Folder, check_digest, data_folder, missing
from .collections import LabelledTexts

FILE = "20news.jsonl.xz"
SHA256 = "534e85a7caf3b8b9d6568eceaf89d004e850f18faf9a36ae87e0d4fa5f2c12d3"
N_POSTS = 18_846


def load_20newsgroups(
    *, strip_headers: bool = False, download: bool = False, folder: Folder = None, show_progress: bool = False
) -> LabelledTexts:
    """Read the posts of 20 Newsgroups.

    Parameters
    ----------
    strip_headers : bool, default False
        Leave out each post's headers, which is all before its first empty line, as scikit-learn does with
        `remove=("headers",)`. 34 posts are empty then, and about one in 190 has none of 1,000 chosen terms:
        its row is zero, and `Euclidean` puts such a row before all with a cosine under one half, see the guide.
    download : bool, default False
        Let scikit-learn download the posts (14 MB) when they are nowhere on this machine. Without it nothing
        is ever downloaded.
    folder : path, optional
        Where to look for `20news.jsonl.xz` (it may be that file itself), then for scikit-learn's cache, and
        where scikit-learn keeps what it downloads. By default the file is looked for as `data_folder` says,
        and the cache where scikit-learn keeps it. The cache is a pickle that scikit-learn loads: name only
        folders that you trust.
    show_progress : bool, default False
        Show a progress bar where standard error is a terminal.

    Returns
    -------
    LabelledTexts
        The posts sorted by their ids; labels are the groups, such as `"sci.space"`, and names the ids, such
        as `"sci.space/59870"`.

    Raises
    ------
    FileNotFoundError
        When the posts are not there and `download` is False; it says where they come from and belong.
    DataFileError
        When `20news.jsonl.xz` is not the known file.

    Examples
    --------
    >>> from aromatch.datasets import load_20newsgroups
    >>> posts = load_20newsgroups()  # doctest: +SKIP
    >>> len(posts), posts.names[0], posts.labels[0]  # doctest: +SKIP
    (18846, 'alt.atheism/49960', 'alt.atheism')
    """
    for name, value in (("strip_headers", strip_headers), ("download", download)):
        if not isinstance(value, bool):
            raise TypeError(f"{name} must be True or False, got {value!r} ({type(value).__name__})")
    place = data_folder(folder)
    path = place if place.is_file() else place / FILE
    if path.is_file():
        check_digest(path, SHA256, show_progress=show_progress)
        posts = _read_packed(path, show_progress)
    else:
        home = place if folder is not None else Path(os.environ.get("SCIKIT_LEARN_DATA", "~/scikit_learn_data"))
        posts = _from_scikit_learn(home.expanduser(), place, download)
    posts.sort()
    names, groups, texts = map(list, zip(*posts, strict=True))
    if strip_headers:
        texts = [text.partition("\n\n")[2] for text in texts]
    return LabelledTexts(texts, np.array(groups), names)


def _read_packed(path: Path, show_progress: bool) -> list[tuple[str, str, str]]:
    """Read the id, group and text of each post."""
    posts = []
    try:
        with (
            lzma.open(path, "rt", encoding="utf-8", newline="\n") as lines,
            progress_bar(f"reading {path.name}", N_POSTS, enabled=show_progress) as advance,
        ):
            for line in lines:
                post = json.loads(line)
                fields = post["id"], post["group"], post["text"]
                if not all(isinstance(field, str) for field in fields):
                    raise TypeError("id, group and text must be strings")
                posts.append(fields)
                advance(1)
    except (lzma.LZMAError, EOFError, ValueError, LookupError, TypeError) as error:
        raise DataFileError(
            f"{path} is damaged after {len(posts)} posts ({type(error).__name__}: {error}), expected one JSON object "
            "a line with id, group and text, packed by xz"
        ) from error
    if not posts:
        raise DataFileError(f"{path} holds no posts, expected one JSON object a line, packed by xz")
    return posts


def _from_scikit_learn(home: Path, place: Path, download: bool) -> list[tuple[str, str, str]]:
    """Take id, group and text of each post from scikit-learn's cache, or let it download them."""
    absent = missing(
        f"20 Newsgroups ({FILE})",
        place,
        f'scikit-learn, which has not kept it in {home} either, gets it when download=True (the version "bydate" of '
        f"http://qwone.com/~jason/20Newsgroups/), or put {FILE} there where you have that",
    )
    # Asking scikit-learn makes the folder, and a person who only looks wants no new folders.
    if not download and not home.is_dir():
        raise absent
    from sklearn.datasets import fetch_20newsgroups

    try:
        found = fetch_20newsgroups(data_home=home, subset="all", shuffle=False, download_if_missing=download)
    except OSError as error:
        if download:
            raise
        raise absent from error
    ids = ["/".join(PurePath(name).parts[-2:]) for name in found.filenames]
    groups = [str(found.target_names[number]) for number in found.target]
    return list(zip(ids, groups, found.data, strict=True))

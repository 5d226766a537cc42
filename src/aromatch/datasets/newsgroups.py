"""20 Newsgroups, the texts of the paper's section 5.2: 18,846 posts of 1993 to 20 groups, the "bydate" version.

Posts are read from `20news.jsonl.xz`, one JSON object per line with the fields `id`, `group` and `text`, or from the
cache of scikit-learn's `fetch_20newsgroups`. Both contain the same posts and give the same result, sorted by id. The
official split into training and test posts is ignored, because the paper samples its own.

A post begins with its headers: author, subject, organization, keywords. Some nearly name the group. The paper does not
state whether they are kept; by default they are kept here.

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
    *, strip_headers: bool = False, download: bool = False, folder: Folder = None, verbose: bool = False
) -> LabelledTexts:
    """Load the posts of 20 Newsgroups.

    Parameters
    ----------
    strip_headers : bool, default False
        Remove the headers, everything before the first empty line, as scikit-learn does with `remove=("headers",)`.
        34 posts are empty then, and about one in 190 contains none of 1,000 selected terms. Their rows are zero, and
        `Euclidean` ranks a zero row before all rows with a cosine below one half, see the guide.
    download : bool, default False
        Allow scikit-learn to download the posts (14 MB) if they are not on this machine.
    folder : path, optional
        The folder of `20news.jsonl.xz` (or that file) and of scikit-learn's cache and downloads. By default the file
        is in `data_folder()`, and the cache in scikit-learn's data folder. The cache is a pickle that scikit-learn
        loads: pass trusted folders only.
    verbose : bool, default False
        Show a progress bar if standard error is a terminal.

    Returns
    -------
    LabelledTexts
        The posts sorted by id; labels are the groups, such as `"sci.space"`, and names the ids, such as
        `"sci.space/59870"`.

    Raises
    ------
    FileNotFoundError
        If the posts are not found and `download` is False; the message describes where to get them.
    DataFileError
        If the checksum of `20news.jsonl.xz` is wrong.

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
    root_folder = data_folder(folder)
    path = root_folder if root_folder.is_file() else root_folder / FILE
    if path.is_file():
        check_digest(path, SHA256, verbose=verbose)
        posts = _read_packed(path, verbose)
    else:
        home = root_folder if folder is not None else Path(os.environ.get("SCIKIT_LEARN_DATA", "~/scikit_learn_data"))
        posts = _from_scikit_learn(home.expanduser(), root_folder, download)
    posts.sort()
    names, groups, texts = map(list, zip(*posts, strict=True))
    if strip_headers:
        texts = [text.partition("\n\n")[2] for text in texts]
    return LabelledTexts(texts, np.array(groups), names)


def _read_packed(path: Path, verbose: bool) -> list[tuple[str, str, str]]:
    """Return the id, group and text of each post."""
    posts = []
    try:
        with (
            lzma.open(path, "rt", encoding="utf-8", newline="\n") as lines,
            progress_bar(f"reading {path.name}", N_POSTS, enabled=verbose) as advance,
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
            "per line with id, group and text, compressed by xz"
        ) from error
    if not posts:
        raise DataFileError(f"{path} contains no posts, expected one JSON object per line, compressed by xz")
    return posts


def _from_scikit_learn(home: Path, root_folder: Path, download: bool) -> list[tuple[str, str, str]]:
    """Return id, group and text of each post from scikit-learn's cache or download."""
    absent = missing(
        f"20 Newsgroups ({FILE})",
        root_folder,
        f'pass download=True to get it by scikit-learn, which has no copy in {home} (the version "bydate" of '
        f"http://qwone.com/~jason/20Newsgroups/), or put {FILE} there if you have it",
    )
    # scikit-learn would create its data folder even if it downloads nothing.
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

"""20 Newsgroups: from the packed file and from scikit-learn's cache, and never from the network unasked."""

import codecs
import hashlib
import json
import lzma
import pickle
from collections import Counter

import numpy as np
import pytest
from sklearn.datasets import _twenty_newsgroups as scikit_learn
from sklearn.datasets import fetch_20newsgroups, load_files

from aromatch.datasets import load_20newsgroups, newsgroups
from aromatch.exceptions import DataFileError
from real_data import FOLDER, needs_newsgroups

POSTS = {
    "sci.space/59870": "From: a@b.c\nSubject: Orbit\n\nThe shuttle\n\nis in orbit.\n",
    "alt.atheism/53068": "From: d@e.f\n\nCaf\xe9 \x85 and more.",
    "sci.space/1": "From: no empty line here",
    "alt.atheism/9": "From: g@h.i\n\n",
    "rec.autos/7": "\n\nNothing before this.",
}


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a download was begun")

    monkeypatch.setattr(scikit_learn, "_fetch_remote", refuse)


def pack(folder, monkeypatch, lines):
    path = folder / "20news.jsonl.xz"
    path.write_bytes(lzma.compress("".join(lines).encode()))
    known(path, monkeypatch)
    return path


def known(path, monkeypatch):
    """Make the file at hand the one that the loader knows."""
    monkeypatch.setattr(newsgroups, "SHA256", hashlib.sha256(path.read_bytes()).hexdigest())


def as_lines(posts):
    return [json.dumps({"id": name, "group": name.split("/")[0], "text": text}) + "\n" for name, text in posts.items()]


def keep_as_scikit_learn_does(home, posts):
    """Write the cache as fetch_20newsgroups does after its download."""
    parts = {}
    for part, names in {"train": list(posts)[:3], "test": list(posts)[3:]}.items():
        root = home / "unpacked" / f"20news-bydate-{part}"
        for name in posts:  # every part has all groups
            (root / name).parent.mkdir(parents=True, exist_ok=True)
        for name in names:
            (root / name).write_bytes(posts[name].encode("latin1"))
        parts[part] = load_files(root, encoding="latin1")
    (home / "20news-bydate_py3.pkz").write_bytes(codecs.encode(pickle.dumps(parts), "zlib_codec"))


def test_the_packed_file_gives_every_post_sorted_by_id(tmp_path, monkeypatch):
    path = pack(tmp_path, monkeypatch, as_lines(POSTS))
    posts = load_20newsgroups(folder=tmp_path)
    assert posts.names == ["alt.atheism/53068", "alt.atheism/9", "rec.autos/7", "sci.space/1", "sci.space/59870"]
    assert posts.labels.tolist() == ["alt.atheism"] * 2 + ["rec.autos"] + ["sci.space"] * 2
    assert posts.texts == [POSTS[name] for name in posts.names]
    assert load_20newsgroups(folder=path).texts == posts.texts


def test_the_variable_leads_to_the_packed_file(tmp_path, monkeypatch):
    pack(tmp_path, monkeypatch, as_lines(POSTS))
    monkeypatch.setenv("AROMATCH_DATA", str(tmp_path))
    assert len(load_20newsgroups()) == 5


@pytest.mark.parametrize("strip_headers", [False, True])
def test_scikit_learns_cache_and_the_packed_file_give_the_same_and_headers_go_as_scikit_learn_strips_them(
    tmp_path, monkeypatch, strip_headers
):
    packed, cache = tmp_path / "packed", tmp_path / "cache"
    packed.mkdir()
    pack(packed, monkeypatch, as_lines(POSTS))
    keep_as_scikit_learn_does(cache, POSTS)
    theirs = fetch_20newsgroups(
        data_home=cache, subset="all", remove=("headers",) if strip_headers else (), download_if_missing=False
    )
    one = load_20newsgroups(folder=packed, strip_headers=strip_headers)
    other = load_20newsgroups(folder=cache, strip_headers=strip_headers)
    assert one.names == other.names
    assert one.texts == other.texts
    assert one.labels.tolist() == other.labels.tolist()
    assert sorted(one.texts) == sorted(theirs.data)
    assert Counter(one.labels.tolist()) == Counter(np.array(theirs.target_names)[theirs.target].tolist())


def test_without_a_folder_the_cache_is_looked_for_where_scikit_learn_keeps_it(tmp_path, monkeypatch):
    keep_as_scikit_learn_does(tmp_path / "home", POSTS)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "home"))
    monkeypatch.setenv("AROMATCH_DATA", str(tmp_path / "nothing"))
    assert len(load_20newsgroups()) == 5
    monkeypatch.delenv("SCIKIT_LEARN_DATA")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "home").rename(tmp_path / "scikit_learn_data")
    assert len(load_20newsgroups()) == 5
    monkeypatch.setenv("HOME", str(tmp_path / "other"))
    with pytest.raises(FileNotFoundError, match="scikit_learn_data"):
        load_20newsgroups()


def test_nothing_is_downloaded_unless_asked(tmp_path):
    with pytest.raises(FileNotFoundError, match="download=True"):
        load_20newsgroups(folder=tmp_path)
    with pytest.raises(AssertionError, match="a download was begun"):
        load_20newsgroups(folder=tmp_path, download=True)


def test_nothing_is_downloaded_when_the_posts_are_there(tmp_path, monkeypatch):
    keep_as_scikit_learn_does(tmp_path, POSTS)
    assert len(load_20newsgroups(folder=tmp_path, download=True)) == 5
    pack(tmp_path, monkeypatch, as_lines(POSTS)[:2])
    assert len(load_20newsgroups(folder=tmp_path, download=True)) == 2


def test_a_damaged_cache_of_scikit_learn_is_not_replaced_unasked(tmp_path):
    (tmp_path / "20news-bydate_py3.pkz").write_bytes(b"damaged")
    with pytest.raises(FileNotFoundError, match="download=True"):
        load_20newsgroups(folder=tmp_path)
    assert (tmp_path / "20news-bydate_py3.pkz").read_bytes() == b"damaged"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda whole: whole[: len(whole) // 2], "EOFError"),
        (lambda whole: whole[:20], "damaged after 0 posts"),
        (lambda whole: b"", "EOFError|no posts"),
        (lambda whole: b"no xz at all", "LZMAError"),
        (lambda whole: lzma.compress(b""), "no posts"),
        (lambda whole: lzma.compress(b'{"id": "a/1", "group": "a"}\n'), "KeyError: 'text'"),
        (lambda whole: lzma.compress(b'["a/1"]\n'), "TypeError"),
        (lambda whole: lzma.compress(b'{"id": 1, "group": "a", "text": "b"}\n'), "must be strings"),
        (lambda whole: lzma.compress(b"not json\n"), "JSONDecodeError"),
        (lambda whole: lzma.compress(b'{"id": "\xff"}\n'), "UnicodeDecodeError"),
    ],
)
def test_a_damaged_file_is_refused_by_name_even_where_its_checksum_is_right(tmp_path, monkeypatch, damage, message):
    path = pack(tmp_path, monkeypatch, as_lines(POSTS) * 200)
    path.write_bytes(damage(path.read_bytes()))
    known(path, monkeypatch)
    with pytest.raises(DataFileError, match=message) as error:
        load_20newsgroups(folder=tmp_path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("setting", ["strip_headers", "download"])
@pytest.mark.parametrize("value", ["no", 0, None])
def test_a_switch_that_is_neither_true_nor_false_is_refused(tmp_path, setting, value):
    with pytest.raises(TypeError, match=f"{setting} must be True or False, got {value!r}"):
        load_20newsgroups(folder=tmp_path, **{setting: value})


@needs_newsgroups
def test_the_collection_has_18846_posts_of_20_groups():
    posts = load_20newsgroups(folder=FOLDER)
    assert len(posts) == len(set(posts.names)) == newsgroups.N_POSTS
    assert posts.names == sorted(posts.names)
    sizes = Counter(posts.labels.tolist())
    assert len(sizes) == 20
    assert (sizes["alt.atheism"], sizes["rec.sport.hockey"], sizes["talk.religion.misc"]) == (799, 999, 628)
    assert all(name.startswith(f"{label}/") for name, label in zip(posts.names, posts.labels, strict=True))
    bare = load_20newsgroups(folder=FOLDER, strip_headers=True)
    assert bare.names == posts.names
    assert all(full.endswith(text) for full, text in zip(posts.texts, bare.texts, strict=True))
    assert sum(not text.strip() for text in bare.texts) == 34
    assert not any(text.startswith("From: ") and "Subject: " in text[:200] for text in bare.texts[:100])

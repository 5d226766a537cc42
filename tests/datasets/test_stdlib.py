"""The standard library as a corpus: what is read, what is left out, and that no code runs."""

import pydoc
import sys
from collections import Counter

import pytest

from aromatch.datasets import load_stdlib

FIVE = "Return the {} of something nice."


@pytest.fixture(scope="module")
def corpus():
    return load_stdlib()


def write(root, files):
    for name, source in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(source if isinstance(source, bytes) else source.encode())
    return root


def read(root, min_words=5, min_entries=1):
    return load_stdlib(min_words, min_entries, folder=root)


def documented(name, adjective):
    return f'def {name}():\n    """{FIVE.format(adjective)}"""\n'


def test_modules_classes_methods_and_functions_are_entries_in_the_order_of_paths_and_lines(tmp_path):
    source = '''"""A module has words of its own."""
import antigravity
raise SystemExit("never imported")

class Shape:
    """A shape has five words too."""

    def area(self):
        """
        Give the area of the shape.

            In square metres.
        """

    class Corner:
        async def move(self):
            """Move the corner somewhere else, slowly."""

if antigravity:
    try:
        def fly():
            """Fly away into the sky above."""
            def inner():
                """Nobody can look this one up."""
    except OSError:
        def swim():
            """Swim across the lake for fun."""
    else:
        def walk():
            """Walk along the road for hours."""
match antigravity:
    case None:
        def fall():
            """Fall down to the ground again."""
'''
    root = write(tmp_path, {"json/tool.py": source, "abc.py": documented("first", "first")})
    corpus = read(root)
    assert corpus.names == [
        "abc.first",
        "json.tool",
        "json.tool.Shape",
        "json.tool.Shape.area",
        "json.tool.Shape.Corner.move",
        "json.tool.fly",
        "json.tool.swim",
        "json.tool.walk",
        "json.tool.fall",
    ]
    assert corpus.labels.tolist() == ["abc"] + ["json"] * 8
    assert corpus.texts[3] == "Give the area of the shape.\n\n    In square metres."
    assert len(corpus) == 9


def test_a_package_is_named_without_its_init_file(tmp_path):
    corpus = read(write(tmp_path, {"json/__init__.py": '"""A package has a docstring too."""'}))
    assert corpus.names == ["json"]


@pytest.mark.parametrize(
    "path",
    [
        "site-packages/json/thing.py",
        "dist-packages/os.py",
        "test/json.py",
        "json/tests/thing.py",
        "json/test/deep/thing.py",
        "idlelib/idle_test/thing.py",
        "config-3.11-x86_64-linux-gnu/json.py",
        "sitecustomize.py",
        "numpy/core.py",
        "json/thing.pyc",
        "json/thing.txt",
    ],
)
def test_what_is_not_the_librarys_own_code_is_left_out(tmp_path, path):
    corpus = read(write(tmp_path, {"abc.py": documented("kept", "kept"), path: documented("other", "other")}))
    assert corpus.names == ["abc.kept"]


def test_files_that_do_not_parse_are_left_out(tmp_path):
    files = {
        "abc.py": documented("kept", "kept"),
        "ast.py": "print 'Python 2'",
        "bdb.py": b"\0\0\0",
        "cgi.py": b"# coding: no-such-coding\n",
        "cmd.py": b'"""\xff\xfe is not in UTF-8 at all"""',
    }
    assert read(write(tmp_path, files)).names == ["abc.kept"]


def test_the_declared_coding_of_a_file_is_honoured(tmp_path):
    source = '# -*- coding: latin-1 -*-\n"""Un caf\xe9 au lait bien chaud."""\n'
    corpus = read(write(tmp_path, {"abc.py": source.encode("latin-1")}))
    assert corpus.texts == ["Un café au lait bien chaud."]


def test_the_first_of_the_docstrings_with_the_same_words_is_kept(tmp_path):
    copy = 'def again():\n    """Return the first\n    of something nice."""\n'
    files = {"abc.py": documented("one", "first") + copy, "ast.py": documented("other", "first")}
    assert read(write(tmp_path, files)).names == ["abc.one"]


def test_short_docstrings_and_small_modules_are_left_out(tmp_path):
    files = {
        "abc.py": documented("one", "one") + documented("two", "two") + 'def f():\n    """Too short to tell."""\n',
        "ast.py": documented("three", "three") + documented("one", "one"),
    }
    root = write(tmp_path, files)
    assert read(root, min_words=4).names == ["abc.one", "abc.two", "abc.f", "ast.three"]
    assert read(root).names == ["abc.one", "abc.two", "ast.three"]
    # A copy does not count: ast has one entry, not two.
    assert read(root, min_entries=2).names == ["abc.one", "abc.two"]


def test_a_library_without_source_files_is_an_error_that_says_so(tmp_path):
    write(tmp_path, {"abc.pyc": b"compiled", "os/__init__.pyc": b"compiled"})
    with pytest.raises(FileNotFoundError, match="source of the standard library"):
        read(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"python311\.zip"):
        read(tmp_path / "python311.zip")


def test_limits_that_leave_nothing_are_an_error(tmp_path):
    root = write(tmp_path, {"abc.py": documented("one", "one")})
    with pytest.raises(ValueError, match="min_entries=2 and min_words=5"):
        read(root, min_entries=2)


@pytest.mark.parametrize("setting", ["min_words", "min_entries"])
@pytest.mark.parametrize(("value", "error"), [(0, ValueError), (1.5, TypeError)])
def test_bad_limits_are_refused_and_named(tmp_path, setting, value, error):
    with pytest.raises(error, match=setting):
        load_stdlib(folder=tmp_path, **{setting: value})


def test_the_running_pythons_library_gives_thousands_of_entries(corpus):
    assert len(corpus.texts) == len(corpus.labels) == len(corpus.names)
    assert len(corpus) > 4000
    assert len(set(corpus.labels)) > 40
    assert min(Counter(corpus.labels.tolist()).values()) >= 20
    assert min(len(text.split()) for text in corpus.texts) >= 5
    assert len({" ".join(text.split()) for text in corpus.texts}) == len(corpus)
    assert set(corpus.labels.tolist()) <= sys.stdlib_module_names


def test_every_label_begins_its_name_and_no_name_is_of_a_test(corpus):
    for label, name in zip(corpus.labels, corpus.names, strict=True):
        parts = name.split(".")
        assert parts[0] == label
        assert not {"test", "tests", "idle_test"} & set(parts[:-1])


def test_texts_are_the_docstrings_that_python_itself_shows(corpus):
    text_of = dict(zip(corpus.names, corpus.texts, strict=True))
    for name in (
        "shutil.copytree",
        "pathlib.PurePath",
        "statistics.median",
        "threading.Thread.join",
        "difflib",
    ):
        assert text_of[name] == pydoc.getdoc(pydoc.locate(name))

"""A log is changed only by a record that is appended: what is no log, or is refused, stays as it is."""

import errno
import os

import pytest

from aromatch.io import durable
from aromatch.io.record_log import RecordLog, read_log

WHOLE = b'{"session": 204, "model": "caf\xc3\xa9\\u001b\\"", "by": null, "time": 1.5e-07}\n'
ANSWER = '{"query": "a\\\\", "better": "日本", "worse": "\\u2028c", "by": "person", "time": -1.25e+30}\n'.encode()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "log.jsonl"


@pytest.mark.parametrize("before", [b"", WHOLE, WHOLE + ANSWER])
@pytest.mark.parametrize("record", [WHOLE, ANSWER, b'{"skipped": true}\n', b'{"query": "", "n": NaN, "m": false}\n'])
def test_every_beginning_of_a_record_is_torn_and_removed_by_the_first_append(path, before, record):
    for size in range(len(record) - 2 + 1):
        path.write_bytes(before + record[:size])
        with RecordLog(path) as log:
            assert (log.n_torn, len(log.records)) == (size, before.count(b"\n"))
            assert path.read_bytes() == before + record[:size]
            log.append({"skipped": True})
            log.append({"query": "b"})
        assert path.read_bytes() == before + b'{"skipped": true}\n{"query": "b"}\n'


FOREIGN = [
    b"my only copy of a secret key",
    b"not json, one line",
    b"{not json",
    b'{"password": "a',
    b'{"id": 1, "query": "a',
    b'{"query":"a',  # not as this package writes it
    b'{"query": [1, ',
    b'{"query": "a"} and more',
    b'{"query": "a", }',
    b'{"query": "\n',
    b'{"query": "\\x',
    b'{"query": "\xff',
    b"\xff\xfe",
    b"[",
    b'"',
    b"1.",
    b"\t{",
]


@pytest.mark.parametrize("before", [b"", WHOLE])
@pytest.mark.parametrize("line", FOREIGN, ids=repr)
def test_a_last_line_that_begins_no_record_is_refused_and_unchanged(path, before, line):
    path.write_bytes(before + line)
    for read in (RecordLog, read_log):
        with pytest.raises(ValueError, match=f"log.jsonl, line {1 + before.count(10)} "):
            read(path)
        assert path.read_bytes() == before + line


ZEROS = [bytes(1), bytes(5000), b'{"query": "\0\0\0', b'{"query": "\0\0", "worse": "c"}\n', b'{"qu\0\0\n']


@pytest.mark.parametrize("line", ZEROS, ids=lambda line: repr(line[:20]))
def test_zero_bytes_are_a_torn_record_only_after_a_whole_one(path, line):
    path.write_bytes(WHOLE + line)
    with RecordLog(path) as log:
        assert (log.n_torn, len(log.records)) == (len(line), 1)
        log.append({"query": "b"})
    assert path.read_bytes() == WHOLE + b'{"query": "b"}\n'
    for content in (line, b"\n" + line, WHOLE + b"notes" + line, WHOLE + line + b"\n" + WHOLE):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"log.jsonl, line [12] "):
            RecordLog(path)
        assert path.read_bytes() == content


def test_a_log_that_is_opened_and_closed_is_unchanged_whatever_its_end(path):
    for content in (WHOLE[:-1], WHOLE + b'{"query', b'\n{"a": 1}', WHOLE + bytes(3), b""):
        path.write_bytes(content)
        changed = path.stat().st_mtime_ns
        with RecordLog(path):
            pass
        assert path.read_bytes() == content
        assert path.stat().st_mtime_ns == changed


def test_a_complete_record_without_a_line_end_gets_one_from_the_first_append(path):
    path.write_bytes(WHOLE[:-1])
    with RecordLog(path) as log:
        log.append({"query": "b"})
    assert path.read_bytes() == WHOLE + b'{"query": "b"}\n'


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="links of POSIX")
@pytest.mark.parametrize("content", [None, b"", WHOLE, b"secret"])
def test_a_link_is_followed_only_if_the_caller_asks(tmp_path, path, content):
    target = tmp_path / "target"
    if content is not None:
        target.write_bytes(content)
    path.symlink_to("target")
    with pytest.raises(ValueError, match=r"log\.jsonl must be a regular file, got a symbolic link to target"):
        RecordLog(path, follow_links=False)
    assert (target.read_bytes() if target.exists() else None) == content
    if content != b"secret":
        with RecordLog(path) as log:
            log.append({"query": "b"})
        assert target.read_bytes() == (content or b"") + b'{"query": "b"}\n'


def test_a_log_in_a_folder_that_is_a_link_is_not_refused(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    with RecordLog(tmp_path / "link" / "log.jsonl", follow_links=False) as log:
        log.append({"query": "b"})
    assert (tmp_path / "folder" / "log.jsonl").exists()


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_a_log_that_is_no_regular_file_is_refused_by_name(path):
    os.mkfifo(path)
    with pytest.raises(ValueError, match=r"log\.jsonl must be a regular file"):
        RecordLog(path)


@pytest.mark.parametrize("call", ["write", "sync", "truncate"])
def test_an_error_of_writing_names_the_log_and_leaves_it_readable(path, monkeypatch, call):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    path.write_bytes(WHOLE)
    with RecordLog(path) as log:
        monkeypatch.setattr(durable.system, call, fail)
        with pytest.raises(OSError, match=f"cannot write the file: No space left on device: '{path}'"):
            log.append({"query": "b"})
        monkeypatch.undo()
        log.append({"query": "c"})
    assert [one.values for one in read_log(path).records][1:] == [{"query": "c"}]
    with pytest.raises(OSError, match=r"cannot write the file: .*missing/log.jsonl"):
        RecordLog(path.parent / "missing" / "log.jsonl")


def test_a_record_that_could_not_be_told_from_a_foreign_line_is_refused(path):
    with RecordLog(path) as log, pytest.raises(ValueError, match="one of session, query, skipped, got"):
        log.append({"n": 1})
    assert path.read_bytes() == b""

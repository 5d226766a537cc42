"""Files are complete and on disk when a call returns, and killed writers leave nothing that stays."""

import errno
import os
import stat
from pathlib import Path
from time import time

import numpy as np
import pytest

from aromatch.io import durable
from aromatch.io.container import read_model, write_model
from aromatch.io.durable import remove_stale, replacing, replacing_text, write_text
from killed_processes import Forks

STALE = f".aromatch-{durable._HOST}-0123456789abcdef.tmp"
OF_ANOTHER_HOST = f".aromatch-{'0' * 8}-0123456789abcdef.tmp"


def test_a_block_that_raises_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a"
    write_text(path, "old")

    def half():
        yield "new" * 100_000
        raise KeyError

    with pytest.raises(KeyError), replacing_text(path) as file:
        file.writelines(half())
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


def test_a_file_can_be_rewound_and_overwritten(tmp_path):
    with replacing(tmp_path / "a") as file:
        file.write(b"x" * 100_000)
        file.seek(1)
        file.write(b"yz")
    assert (tmp_path / "a").read_bytes() == b"xyz" + b"x" * 99_997


def test_every_error_names_the_file_that_was_asked_for(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.EIO, "Input/output error")

    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match=r"is not a regular file.*folder"):
        write_text(tmp_path / "folder", "")
    with pytest.raises(FileNotFoundError, match="missing/a"):
        write_text(tmp_path / "missing" / "a", "")
    for call in ("open", "write", "sync", "replace"):
        with monkeypatch.context() as patched:
            patched.setattr(durable.system, call, fail)
            with pytest.raises(OSError, match=f"cannot write the file: Input/output error: '{tmp_path / 'a'}'"):
                write_text(tmp_path / "a", "x")
        assert os.listdir(tmp_path) == ["folder"]


def test_a_file_system_that_cannot_sync_folders_is_no_error_and_a_broken_disk_is(tmp_path, monkeypatch):
    number = errno.EINVAL

    def sync(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(durable.system, "sync", sync)
    write_text(tmp_path / "a", "x")
    number = errno.EIO
    with pytest.raises(OSError, match="Input/output error"):
        write_text(tmp_path / "a", "y")
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.skipif(os.name != "posix", reason="permission bits of POSIX")
def test_the_content_of_a_private_file_is_never_readable_by_others(tmp_path):
    path = tmp_path / "a"
    path.touch(mode=0o600)
    with replacing(path) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


# -- temporary files of killed writers -------------------------------------------------------------------------------


def test_the_next_writer_in_a_folder_removes_what_a_killed_one_left(tmp_path):
    (tmp_path / STALE).write_text("half")
    write_text(tmp_path / "a", "x")
    assert os.listdir(tmp_path) == ["a"]


def test_a_caller_that_writes_many_files_lists_the_folder_once(tmp_path):
    (tmp_path / STALE).touch()
    with replacing(tmp_path / "a", clean=False):
        pass
    assert sorted(os.listdir(tmp_path)) == [STALE, "a"]
    remove_stale(tmp_path)
    assert os.listdir(tmp_path) == ["a"]


def test_the_file_of_a_living_writer_is_left_alone(tmp_path):
    with replacing(tmp_path / "a") as one:
        one.write(b"1")
        with replacing(tmp_path / "a") as other:
            other.write(b"2")
        assert (tmp_path / "a").read_bytes() == b"2"
    assert (tmp_path / "a").read_bytes() == b"1"
    assert os.listdir(tmp_path) == ["a"]


def test_a_file_of_another_host_is_removed_after_a_day(tmp_path):
    # Locks of other hosts can be invisible.
    (tmp_path / OF_ANOTHER_HOST).touch()
    write_text(tmp_path / "a", "x")
    assert sorted(os.listdir(tmp_path)) == [OF_ANOTHER_HOST, "a"]
    changed = time() - 25 * 3600
    os.utime(tmp_path / OF_ANOTHER_HOST, (changed, changed))
    write_text(tmp_path / "a", "x")
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize(
    "name", [".aromatch-0123456789abcdef.tmp", f"{STALE}.bak", f"x{STALE}", STALE.upper(), "a.tmp"]
)
def test_names_that_others_may_use_are_left_alone(tmp_path, name):
    (tmp_path / name).write_text("mine")
    write_text(tmp_path / "a", "x")
    assert (tmp_path / name).read_text() == "mine"


def test_only_regular_files_are_taken_for_stale(tmp_path):
    (tmp_path / "target").write_text("mine")
    names = [STALE[:-5] + f"{number}.tmp" for number in range(3)]
    (tmp_path / names[0]).mkdir()
    (tmp_path / names[1]).symlink_to("target")
    os.mkfifo(tmp_path / names[2])
    write_text(tmp_path / "a", "x")
    assert sorted(os.listdir(tmp_path)) == sorted([*names, "a", "target"])


def test_a_file_that_another_writer_took_for_stale_is_created_again(tmp_path, monkeypatch):
    opened = []

    class Quick(durable.System):
        def open(self, path, flags, mode):
            opened.append(path)
            descriptor = super().open(path, flags, mode)
            if len(opened) == 1:
                os.unlink(path)
            return descriptor

    monkeypatch.setattr(durable, "system", Quick())
    write_text(tmp_path / "a", "x")
    assert len(set(opened)) == 2
    assert (tmp_path / "a").read_text() == "x"


def test_without_locks_files_are_written_and_nothing_is_removed(tmp_path, monkeypatch):
    def no_locks(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(durable.fcntl, "flock", no_locks)
    (tmp_path / STALE).touch()
    write_text(tmp_path / "a", "x")
    assert (tmp_path / "a").read_text() == "x"
    assert sorted(os.listdir(tmp_path)) == [STALE, "a"]


# -- power failures ---------------------------------------------------------------------------------------------------


class Disk(durable.System):
    """A file system that loses at a power failure whatever was not synced.

    `states` are the possible contents of the folder after a failure, one before each call: a file that was moved and
    not synced may have lost its content, and a move that was not synced may be undone or not.
    """

    def __init__(self, folder):
        self.folder, self.states = folder, []
        self.synced = {path.stat().st_ino: path.read_bytes() for path in folder.iterdir()}
        self.names = {path.name: path.stat().st_ino for path in folder.iterdir()}
        for name in ("open", "write", "truncate", "chmod", "sync", "replace", "unlink"):
            setattr(self, name, self._recording(getattr(durable.System(), name)))
        self.note()

    def _recording(self, call):
        def recording(*arguments):
            result = call(*arguments)
            if call.__name__ == "sync":
                status = os.fstat(arguments[0])
                if stat.S_ISDIR(status.st_mode):
                    self.names = self._names()
                else:
                    self.synced[status.st_ino] = os.pread(arguments[0], status.st_size, 0)
            self.note()
            return result

        return recording

    def _names(self):
        return {path.name: path.stat().st_ino for path in self.folder.iterdir()}

    def note(self):
        for names in (self.names, self._names()):
            self.states.append({name: self.synced.get(number, b"") for name, number in names.items()})

    def restore(self, state, folder):
        folder.mkdir()
        for name, content in state.items():
            (folder / name).write_bytes(content)


def test_after_a_power_failure_at_any_call_there_is_the_old_model_or_the_new_one(tmp_path, monkeypatch):
    folder = tmp_path / "folder"
    folder.mkdir()
    write_model(folder / "m", {"v": 1}, {"W": np.zeros(1000)})
    disk = Disk(folder)
    monkeypatch.setattr(durable, "system", disk)
    write_model(folder / "m", {"v": 2}, {"W": np.ones(1000)})
    monkeypatch.undo()
    found = []
    for number, state in enumerate(disk.states):
        restored = tmp_path / str(number)
        disk.restore(state, restored)
        header, arrays = read_model(restored / "m")
        found.append(header["v"])
        assert (arrays["W"] == header["v"] - 1).all()
        write_model(restored / "m", {"v": 3}, {})
        assert os.listdir(restored) == ["m"]
    assert found[0] == 1
    assert found[-2:] == [2, 2]  # `save` has returned


def test_a_temporary_file_cut_at_any_byte_is_no_obstacle(tmp_path, monkeypatch):
    monkeypatch.setattr(durable.system, "sync", lambda _: None)  # for speed
    path = tmp_path / "m"
    write_model(tmp_path / "m", {"v": 1}, {"W": np.zeros(3)})
    whole = path.read_bytes()
    for size in range(len(whole) + 1):
        (tmp_path / STALE).write_bytes(whole[:size])
        assert read_model(path)[0] == {"v": 1}
        write_model(path, {"v": 1}, {"W": np.zeros(3)})
        assert os.listdir(tmp_path) == ["m"]


# -- many processes at one path ---------------------------------------------------------------------------------------


def save_often(path, seed, n):
    durable.system.sync = lambda _: None  # for more saves
    for _ in range(n):
        write_model(path, {"seed": seed}, {"W": np.full(2**15, float(seed))})


def load_often(path, n, result):
    refused = 0
    for _ in range(n):
        try:
            header, arrays = read_model(path)
        except ValueError:
            refused += 1
        else:
            assert (arrays["W"] == header["seed"]).all()
    Path(result).write_text(str(refused))


def test_loads_succeed_while_several_processes_save_to_one_path(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    write_model(folder / "m", {"seed": 0}, {"W": np.zeros(2**15)})
    with Forks(__name__) as forks:
        processes = [forks.start(save_often, folder / "m", seed, 100) for seed in range(3)]
        processes += [forks.start(load_often, folder / "m", 60, tmp_path / f"refused{at}") for at in range(2)]
        for process in processes:
            forks.wait(process)
    assert [(tmp_path / f"refused{at}").read_text() for at in range(2)] == ["0", "0"]
    assert os.listdir(folder) == ["m"]
    read_model(folder / "m")

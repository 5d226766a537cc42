"""Processes are killed with SIGKILL while they save, train and ask: at every call that changes a file, and at any time.

After a kill nothing that was acknowledged is lost, the next run needs no repair and leaves no temporary files, and the
result of a training or of the log of `ask` is bit-identical with that of an undisturbed run. `make test-slow` kills 50
times; `make kills` kills 1,000 times and prints the counts.
"""

import json
import os
import random
import shutil
import zlib
from collections import Counter
from functools import partial
from time import perf_counter

import numpy as np
import pytest

import aromatch as am
from aromatch.io.record_log import read_log
from aromatch.workflows import ask as asking
from aromatch.workflows.fitting import Checkpoint, LearnerOptions
from aromatch.workflows.train import TrainOptions, train
from collections_on_disk import write_vectors
from killed_processes import Forks, acknowledge, last_acknowledged, run_stopping

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs fork and SIGKILL")

N_KILLS = int(os.environ.get("AROMATCH_KILLS", "50"))
ask = partial(asking.ask, trust_recorded_paths=True)
replay = partial(asking.replay, trust_recorded_paths=True)


class Save:
    """Two saves, each of the version after the one in the file."""

    @staticmethod
    def start(folder):
        Save.model(0).save(f"{folder}/m")

    @staticmethod
    def run(folder, acknowledged):
        first = Save.version(folder) + 1
        for version in (first, first + 1):
            Save.model(version).save(f"{folder}/m")
            acknowledge(acknowledged, version)

    @staticmethod
    def model(version):
        return am.DiagonalAROMA().fit_triplets(np.tile([0, 1, 2], (version, 1)), np.eye(64))

    @staticmethod
    def version(folder):
        return am.load(f"{folder}/m").n_triplets_seen_

    @staticmethod
    def check(folder, n_acknowledged):
        version = Save.version(folder)
        assert version >= n_acknowledged
        np.testing.assert_array_equal(am.load(folder / "m").W_, Save.model(version).W_)

    @staticmethod
    def finish(folder):
        Save.model(Save.version(folder) + 1).save(folder / "m")
        assert os.listdir(folder) == ["m"]


class SaveAdapter:
    """Two saves of an adapter, each with one judgement more than the one in the file."""

    @staticmethod
    def start(folder):
        SaveAdapter.adapter(0).save(f"{folder}/m")

    @staticmethod
    def run(folder, acknowledged):
        first = SaveAdapter.version(folder) + 1
        for version in (first, first + 1):
            SaveAdapter.adapter(version).save(f"{folder}/m")
            acknowledge(acknowledged, version)

    @staticmethod
    def adapter(version):
        adapter = am.Adapter(np.eye(16), [f"object {row}" for row in range(16)])
        for at in range(version):
            adapter.judge(np.eye(16)[at % 16], good=[f"object {(at + 1) % 16}"], bad=[f"object {(at + 2) % 16}"])
        return adapter

    @staticmethod
    def version(folder):
        return am.load(f"{folder}/m").diagnostics_.n_lists

    @staticmethod
    def check(folder, n_acknowledged):
        version = SaveAdapter.version(folder)
        assert version >= n_acknowledged
        found, expected = (one.search(np.eye(16), 4) for one in (am.load(folder / "m"), SaveAdapter.adapter(version)))
        np.testing.assert_array_equal(found.ids, expected.ids)
        np.testing.assert_array_equal(found.scores, expected.scores)

    @staticmethod
    def finish(folder):
        SaveAdapter.adapter(SaveAdapter.version(folder) + 1).save(folder / "m")
        assert os.listdir(folder) == ["m"]


class Train:
    """A training with a checkpoint after every chunk of triplets."""

    @staticmethod
    def start(folder):
        pass

    @staticmethod
    def run(folder, acknowledged):
        save = Checkpoint.save

        def acknowledging(self, model):
            save(self, model)
            acknowledge(acknowledged, model.n_triplets_seen_)

        Checkpoint.save = acknowledging
        Train.train(folder)

    @staticmethod
    def train(folder):
        learner = LearnerOptions("diagonal", n_triplets=200)
        train(TrainOptions(f"{folder}/../x.csv", f"{folder}/m", learner=learner, checkpoint_seconds=0.0))

    @staticmethod
    def check(folder, n_acknowledged):
        if (folder / "m").exists():
            assert (folder / "m").read_bytes() == (folder / "../start").read_bytes()
        elif n_acknowledged:
            assert am.load(folder / "m.checkpoint").model.n_triplets_seen_ >= n_acknowledged

    @staticmethod
    def finish(folder):
        Train.train(folder)
        assert os.listdir(folder) == ["m"]
        assert (folder / "m").read_bytes() == (folder / "../start").read_bytes()


class Ask:
    """A session of answers and skipped comparisons, in which the model file is replaced at the end."""

    @staticmethod
    def start(folder):
        shutil.copy(folder / "../start", folder / "m")

    @staticmethod
    def run(folder, acknowledged):
        n_answers = Ask.n_answers(folder)

        def answer(question):
            nonlocal n_answers
            acknowledge(acknowledged, n_answers)
            choice = zlib.crc32(repr(question).encode()) % 3
            n_answers += choice != 0
            return choice

        Ask.ask(folder, answer, 5)
        acknowledge(acknowledged, n_answers)

    @staticmethod
    def ask(folder, answer, n):
        return ask(f"{folder}/m", answer, n=n, data=f"{folder}/../x.csv")

    @staticmethod
    def n_answers(folder):
        log = f"{folder}/m.answers.jsonl"
        return sum("better" in one.values for one in read_log(log).records) if os.path.exists(log) else 0

    @staticmethod
    def check(folder, n_acknowledged):
        assert Ask.n_answers(folder) >= n_acknowledged

    @staticmethod
    def finish(folder):
        n_before = Ask.n_answers(folder)
        Ask.ask(folder, lambda _: 1, 2)
        assert sorted(os.listdir(folder)) == ["m", "m.answers.jsonl"]
        assert am.load(folder / "m").metadata["n_answers"] == Ask.n_answers(folder) == n_before + 2
        replay(f"{folder}/../start", f"{folder}/m.answers.jsonl", f"{folder}/../replayed", data=f"{folder}/../x.csv")
        assert (folder / "../replayed").read_bytes() == (folder / "m").read_bytes()


SCENARIOS = {"save": Save, "adapter": SaveAdapter, "train": Train, "ask": Ask}


class Trials:
    """Kills of the processes of a scenario, each in a new folder."""

    def __init__(self, forks, place, scenario):
        self.forks, self.place, self.scenario = forks, place, scenario
        self.folder, self.acknowledged, self.calls = (place / name for name in ("trial", "acknowledged", "calls"))
        self.begin()
        began = perf_counter()
        assert not self.run_stopping(None, "before")
        self.seconds = perf_counter() - began
        self.names = json.loads(self.calls.read_text())
        self.end()

    def every_call(self):
        """Return the number and the moment of every kill at a call."""
        return [
            (at, moment)
            for at, name in enumerate(self.names)
            for moment in ("before", "during", "after")
            if moment != "during" or name == "write"
        ]

    def begin(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        self.acknowledged.unlink(missing_ok=True)
        self.scenario.start(self.folder)

    def end(self):
        self.scenario.check(self.folder, last_acknowledged(self.acknowledged))
        self.scenario.finish(self.folder)

    def run_stopping(self, at, moment):
        arguments = (self.folder, self.acknowledged)
        return self.forks.run(run_stopping, self.calls, at, moment, self.scenario.run, *arguments)

    def kill_at(self, at, moment):
        """Kill a process at a call; return the kind of the kill."""
        self.begin()
        assert self.run_stopping(at, moment)
        self.end()
        return f"{moment} {self.names[at]}"

    def kill_at_random(self, generator):
        """Kill up to three processes in a row at any time; return the number of processes that were killed."""
        self.begin()
        arguments = (self.scenario.run, self.folder, self.acknowledged)
        n_killed = 0
        for _ in range(generator.randint(1, 3)):
            n_killed += self.forks.run_and_kill(1.2 * self.seconds * generator.random(), *arguments)
            self.scenario.check(self.folder, last_acknowledged(self.acknowledged))
        self.end()
        return n_killed


@pytest.fixture(scope="module")
def forks():
    with Forks(__name__) as forks:
        yield forks


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Give a folder with a collection and the model of an undisturbed training."""
    place = tmp_path_factory.mktemp("kills")
    write_vectors(place / "x.csv", n_each=12, width=6)
    (place / "trial").mkdir()
    Train.train(place / "trial")
    shutil.move(place / "trial" / "m", place / "start")
    return place


@pytest.mark.parametrize("scenario", [Save, SaveAdapter])
def test_a_save_that_is_killed_at_any_call_leaves_a_whole_file_and_the_next_save_leaves_no_other(
    forks, place, scenario
):
    trials = Trials(forks, place, scenario)
    assert {"open", "write", "chmod", "sync", "replace"} <= set(trials.names)
    for at, moment in trials.every_call():
        trials.kill_at(at, moment)


@pytest.mark.slow
def test_whatever_is_killed_nothing_acknowledged_is_lost_and_the_next_run_needs_no_repair(forks, place):
    generator, counts = random.Random(N_KILLS), Counter()
    trials = {name: Trials(forks, place, scenario) for name, scenario in SCENARIOS.items()}
    at_calls = [(name, *kill) for name, one in trials.items() for kill in one.every_call()]
    for name, at, moment in generator.sample(at_calls, min(len(at_calls), N_KILLS // 2)):
        counts[f"{name}: {trials[name].kill_at(at, moment)}"] += 1
    while sum(counts.values()) < N_KILLS:
        name = generator.choice(list(trials))
        counts[f"{name}: at random"] += trials[name].kill_at_random(generator)
    print(f"\n{sum(counts.values())} kills", *(f"{n:5} {kind}" for kind, n in sorted(counts.items())), sep="\n")

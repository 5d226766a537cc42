"""Names, ids, labels and headers from outside cannot command the terminal, whatever the command."""

import csv
import json
import os
import re
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pytest

from aromatch.cli import app, main
from aromatch.datasets import LabelledTexts
from aromatch.workflows import demo
from aromatch.workflows.bundle import read_bundle
from aromatch.workflows.fitting import LearnerOptions
from aromatch.workflows.train import TrainOptions, train
from collections_on_disk import texts_and_labels, write_folder
from simulated_logs import write_log

# A window title, a cleared screen, a colour by a C1 control, deletions, a line of its own, a reversed end, markup.
EVIL = "a\x1b]0;t\x07\x1b[2J\x9b31m\x08\x7f\x85\r\t\n\u2028note: b\u2066\u202e[red]c"
KIND = "é日本👩\u200d🔬"
NAME = EVIL + KIND
# As decoded from a name with bytes that are not UTF-8.
UNDECODABLE = f"{NAME}\udcff"
TEXTS = f"texts{UNDECODABLE}"
BIDIRECTIONAL = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}
JUDGE = f'{sys.executable} -c "while input(): print(1, flush=True)"'


def controls(text):
    """Return the characters in an output that can command a terminal; its line breaks are its own."""
    return {
        character
        for character in text.replace("\n", "")
        if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")
        or unicodedata.bidirectional(character) in BIDIRECTIONAL
    }


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder of hostile names: texts, vectors, logs and models, one of which records hostile paths."""
    place = tmp_path_factory.mktemp("hostile") / NAME
    place.mkdir()
    folder = write_folder(place / UNDECODABLE, n_each=12)
    for label in ("birds", "fruit"):
        (folder / label).rename(folder / f"{label}{NAME}")
    evil = folder / f"birds{NAME}" / NAME
    evil.write_text(f"raven {EVIL.replace(chr(10), ' ')} {KIND} eagle")
    (folder / f"birds{NAME}" / UNDECODABLE).write_text("raven heron")
    (folder / "tools" / "link").symlink_to(place)
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 3)) + 2 * np.eye(3)[np.arange(40) % 3]
    columns = [f"{NAME}{at}" for at in range(3)]
    with (place / "v.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerow(["id", "label", *columns])
        csv.writer(file).writerows([f"{NAME}{at}", f"{at % 3}{NAME}", *row] for at, row in enumerate(rows))
    options = LearnerOptions("diagonal", n_triplets=200)
    train(TrainOptions(str(folder), str(place / TEXTS), learner=options, hold_out=0.3))
    train(TrainOptions(str(place / "v.csv"), str(place / "vectors"), learner=options))
    stranger = read_bundle(place / TEXTS)
    hostile = dict.fromkeys(("data", "queries", "made_by", "what", "supervision", "missing", NAME), NAME)
    stranger.metadata |= {**hostile, "files": {"labels": NAME, NAME: NAME}, "settings": {NAME: [NAME]}}
    stranger.save(place / "stranger")
    write_log(place, n_lists=60)
    return place


@pytest.fixture
def run(monkeypatch, capsys):
    """Run `main` with arguments; give exit code, standard output and standard error."""

    def run_main(*arguments):
        monkeypatch.setattr(sys, "argv", ["aromatch", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        return stop.value.code, *capsys.readouterr()

    return run_main


def successes(place):
    """Return commands that print hostile text in their report."""
    folder, texts, vectors = (str(place / name) for name in (UNDECODABLE, TEXTS, "vectors"))
    one, data = f"birds{NAME}/{NAME}", ["--data", str(place / "v.csv")]
    ask = ["-n", "3", "--judge", JUDGE, "-o", str(place / "asked"), "--log", str(place / "log.jsonl")]
    names = [str(place / name) for name in ("objects.npz", "queries.npz", "log.jsonl")]
    return {
        "train texts": ["train", folder, "-o", str(place / "new"), "--n-triplets", "100", "--force"],
        "train vectors": ["train", str(place / "v.csv"), "-o", str(place / "new"), "--n-triplets", "100", "--force"],
        "eval": ["eval", texts, "-d", folder, "--run", str(place / "run")],
        "search words": ["search", texts, "raven eagle", "-d", folder, "-k", "20", "--compare"],
        "search like": ["search", texts, "--like", one, "-d", folder],
        "search queries": ["search", texts, "--queries", folder, "-d", folder],
        "search unknown": ["search", texts, f"raven {NAME}", "-d", folder],
        "search vectors": ["search", vectors, "--like", f"{NAME}0", *data],
        "explain texts": ["explain", texts, one, "raven eagle", "-d", folder],
        "explain vectors": ["explain", vectors, f"{NAME}1", "--like", f"{NAME}0", *data],
        "ask about texts": ["ask", texts, "-d", folder, *ask[:-1], str(place / "answers of texts.jsonl")],
        "ask": ["ask", vectors, *data, *ask[:-1], str(place / "answers.jsonl")],
        "export": ["export", texts, "-o", str(place / "out")],
        "info": ["info", texts],
        "info of a stranger": ["info", str(place / "stranger")],
        "trial": ["trial", names[0], "--queries", names[1], "--judgements", names[2], "-o", str(place / "trial")],
        "demo": ["demo", "--triplets", "100"],
    }


def failures(place):
    """Return commands that print hostile text in an error."""
    folder, texts = str(place / UNDECODABLE), str(place / TEXTS)
    log = ["--log", str(place / "l.jsonl")]
    stranger, nothing = str(place / "stranger"), str(place / f"nothing{UNDECODABLE}")
    return {
        "no command": [NAME],
        "no option": ["train", f"--{NAME}"],
        "no number": ["demo", "--seed", NAME],
        "no learner": ["train", folder, "-o", str(place / "n"), "--learner", NAME],
        "no data": ["train", nothing, "-o", str(place / "n")],
        "no output folder": ["train", folder, "-o", f"{nothing}/m"],
        "no labels": ["train", folder, "-o", str(place / "n"), "--labels", f"{nothing}.csv"],
        "no model": ["info", nothing],
        "no file of a model": ["info", str(place / "v.csv")],
        "eval without data": ["eval", stranger],
        "search without data": ["search", stranger, "raven"],
        "explain without data": ["explain", stranger, "x", "raven"],
        "ask without data": ["ask", stranger],
        "eval of trusted paths": ["eval", stranger, "--trust-recorded-paths"],
        "eval of other data": ["eval", stranger, "-d", folder],
        "no id": ["search", texts, "--like", NAME, "-d", folder],
        "no id to explain": ["explain", texts, NAME, "raven", "-d", folder],
        "no words": ["search", texts, NAME[:9], "-d", folder],
        "no cutoffs": ["eval", texts, "-d", folder, "-k", NAME],
        "no judge": ["ask", texts, "-d", folder, "--judge", f"'{NAME}'", *log],
        "a judge without an answer": ["ask", texts, "-d", folder, "--judge", f"echo '{NAME}'", *log],
        "no folder": ["export", texts, "-o", str(place / "v.csv")],
        "no log": ["trial", folder, "--clicks", f"{nothing}.csv"],
        "no figure": ["reproduce", NAME],
        "no results": ["reproduce", "fig4", "--cell", NAME, "--output", nothing],
    }


@pytest.fixture
def hostile_library(monkeypatch):
    """A standard library of hostile names."""
    texts, labels = texts_and_labels()
    names = [f"{label}{NAME}.thing{at}" for at, label in enumerate(labels)]
    library = LabelledTexts([text + KIND * 20 for text in texts], np.char.add(labels, NAME), names)
    monkeypatch.setattr(demo, "load_stdlib", lambda **_: library)
    monkeypatch.setattr(demo, "_is_readable", lambda name, text: True)


def test_every_command_is_tried():
    commands = {arguments[0] for table in (successes, failures) for arguments in table(Path(".")).values()}
    assert commands >= {command.name or command.callback.__name__ for command in app.registered_commands}


@pytest.mark.usefixtures("hostile_library")
@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize("name", successes(Path(".")))
def test_no_report_commands_the_terminal(place, run, name, as_json):
    code, out, err = run(*successes(place)[name], *(["--json"] if as_json else []))
    assert (code, err) == (0, "")
    assert not controls(out)
    folded = re.sub(r"\s", "", out)
    if as_json:
        found = json.dumps(json.loads(out))
        assert json.dumps(EVIL)[1:-1] in found or name == "demo"
    else:
        assert "a\\x1b]0;t\\x07\\x1b[2J\\x9b31m" in folded or name == "search words"  # cut in narrow columns
        assert KIND in folded or name == "search words"


@pytest.mark.parametrize("name", failures(Path(".")))
def test_no_error_commands_the_terminal(place, run, name):
    code, out, err = run(*failures(place)[name])
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert not controls(err)
    assert "\\x1b" in err or name == "no number"  # of which the message does not show the value


@pytest.mark.usefixtures("hostile_library")
@pytest.mark.parametrize("name", successes(Path(".")))
def test_colours_are_the_only_controls_on_a_terminal(place, run, monkeypatch, name):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    code, out, _ = run(*successes(place)[name])
    assert code == 0
    assert "\x1b[" in out
    assert not controls(re.sub(r"\x1b\[[\d;]*m", "", out))


def test_a_person_who_is_asked_sees_names_escaped(place, run, monkeypatch):
    monkeypatch.setattr(sys, "stdin", open(os.devnull))  # noqa: SIM115 - closed with the process
    folder = str(place / UNDECODABLE)
    code, _, err = run("ask", str(place / TEXTS), "-d", folder, "--log", str(place / "l.jsonl"))
    assert code == 0
    assert "which is better for this?" in err
    assert not controls(err)

"""The command line: help for every command, errors in one line, JSON for programs, and a quick start."""

import errno
import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import typer.main
from typer.testing import CliRunner

from aromatch import __version__
from aromatch._utils.checks import max_memory
from aromatch.cli import app, main
from aromatch.datasets import LabelledTexts
from aromatch.exceptions import ConcurrentUseError, NumericalError
from aromatch.workflows import demo
from collections_on_disk import write_folder
from simulated_logs import write_log

try:
    import pty
except ImportError:  # Windows
    pty = None

COMMANDS = typer.main.get_command(app).commands
JUDGE = Path(__file__).parents[2] / "examples" / "judge.py"


@pytest.fixture
def small_library(monkeypatch):
    """A standard library that is read in no time."""
    rng = np.random.default_rng(0)
    labels = np.repeat(["fruit", "tools", "birds"], 30)
    texts = [
        " ".join(f"{label}{letter} common{rng.integers(6)}" for letter in rng.choice(list("abcdefgh"), 3))
        for label in labels
    ]
    names = [f"{label}.thing{number}" for number, label in enumerate(labels)]
    monkeypatch.setattr(demo, "load_stdlib", lambda **_: LabelledTexts(texts, labels, names))


@pytest.fixture
def run(monkeypatch, capsys):
    """Run `main` with arguments; give exit code, standard output and standard error."""

    def run_main(*arguments):
        monkeypatch.setattr(sys, "argv", ["aromatch", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        return stop.value.code, *capsys.readouterr()

    return run_main


def in_a_new_python(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=60)


def fails_with(error):
    def fail(*_, **__):
        raise error

    return fail


@pytest.mark.parametrize("name", [None, *COMMANDS])
def test_every_command_has_help_with_an_example(name):
    result = CliRunner().invoke(app, [name, "--help"] if name else ["--help"])
    assert result.exit_code == 0
    assert "Example: aromatch" in result.output
    command = COMMANDS[name] if name else typer.main.get_command(app)
    assert len(command.help.split()) >= 5
    assert all(getattr(parameter, "help", None) for parameter in command.params)


def test_help_is_there_before_numpy_scikit_learn_and_rich_are():
    code = """
import sys
from aromatch.cli import main
sys.argv = ["aromatch", "demo", "--help"]
try:
    main()
except SystemExit as stop:
    assert not stop.code
loaded = {name.partition(".")[0] for name in sys.modules}
print("loaded:", *sorted(loaded & {"numpy", "scipy", "sklearn", "rich", "pandas", "safetensors"}))
"""
    result = in_a_new_python("-c", code)
    assert "Example: aromatch demo" in result.stdout
    assert result.stdout.splitlines()[-1] == "loaded:"
    assert result.stderr == ""


def test_python_m_aromatch_is_the_command():
    result = in_a_new_python("-m", "aromatch", "--version")
    assert (result.returncode, result.stdout, result.stderr) == (0, f"aromatch {__version__}\n", "")


def test_the_number_of_triplets_in_the_help_is_the_one_that_is_used():
    help_text = " ".join(CliRunner().invoke(app, ["demo", "--help"]).output.split())
    assert f"[default: ({demo.N_TRIPLETS:,})" in help_text


def test_the_demo_prints_a_table_and_its_seed_without_colours_or_bars_into_a_pipe(small_library, run):
    code, out, err = run("demo", "--seed", "5", "--triplets", "300")
    assert (code, err) == (0, "")
    assert "seed 5" in out
    assert "d-AROMA" in out
    assert "\x1b" not in out


def test_the_demo_prints_json_and_nothing_else(small_library, run):
    code, out, err = run("demo", "--json", "--triplets", "300", "--seed", "2")
    report = json.loads(out)
    assert (code, err) == (0, "")
    assert report["seed"] == 2
    assert [result["method"] for result in report["results"]] == [
        "cosine",
        "OASIS",
        "d-AROMA",
        "f-AROMA",
        "embedding",
    ]
    assert [result["n_triplets"] for result in report["results"]] == [0, 300, 300, 300, 300]
    assert report["n_training"] + report["n_held_out"] == report["n_entries"] == 90


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("the value\n   is bad"), "aromatch: the value is bad"),
        (TypeError("a number, please"), "aromatch: a number, please"),
        (FileNotFoundError("no source on disk"), "aromatch: no source on disk"),
        (MemoryError(), "aromatch: MemoryError"),
        (ImportError("pip install 'aromatch[plot]'"), "aromatch: pip install 'aromatch[plot]'"),
        (NumericalError("W overflows"), "aromatch: W overflows"),
        (ConcurrentUseError("in use"), "aromatch: in use"),
    ],
)
def test_what_goes_wrong_is_said_in_one_line_with_exit_code_2(monkeypatch, run, error, line):
    monkeypatch.setattr(demo, "load_stdlib", fails_with(error))
    assert run("demo") == (2, "", f"{line}\n")


def test_an_error_in_the_program_itself_keeps_its_traceback(monkeypatch):
    monkeypatch.setattr(demo, "load_stdlib", fails_with(KeyError("a bug")))
    monkeypatch.setattr(sys, "argv", ["aromatch", "demo"])
    with pytest.raises(KeyError, match="a bug"):
        main()


def test_ctrl_c_ends_with_exit_code_130_and_a_short_line(monkeypatch, run):
    monkeypatch.setattr(demo, "load_stdlib", fails_with(KeyboardInterrupt()))
    assert run("demo") == (130, "", "aromatch: interrupted\n")


def test_a_reader_that_hangs_up_is_no_error_message(monkeypatch, run):
    stdout = sys.stdout
    monkeypatch.setattr(demo, "load_stdlib", fails_with(BrokenPipeError(errno.EPIPE, "Broken pipe")))
    code, out, err = run("demo")
    sys.stdout = stdout
    assert (code, out, err) == (1, "", "")


def test_a_warning_is_one_line(monkeypatch, run):
    def load(**_):
        warnings.warn("a\x1b[31m\nwarning", UserWarning, stacklevel=1)
        raise ValueError("an error")

    monkeypatch.setattr(demo, "load_stdlib", load)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert run("demo") == (2, "", "aromatch: warning: a\\x1b[31m warning\naromatch: an error\n")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["demo", "--seed", "one"], "--seed"),
        (["demo", "--seed", "-1"], "--seed"),
        (["demo", "--triplets", "0"], "--triplets"),
        (["demo", "--colour"], "--colour"),
        (["dmo"], "dmo"),
    ],
)
def test_a_usage_error_is_one_line_that_names_what_is_wrong(run, arguments, says):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("aromatch: ")
    assert says in err
    assert err.count("\n") == 1


def test_without_a_command_the_help_is_shown(run):
    code, out, err = run()
    assert (code, err) == (0, "")
    assert "demo" in out


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_a_terminal_without_utf_8_gets_ascii(small_library, monkeypatch, run, encoding):
    monkeypatch.setattr("rich.console.Console.encoding", encoding)
    assert run("demo", "--triplets", "300")[1].isascii() == (encoding == "ascii")


def test_reproducing_an_unknown_figure_is_refused_in_one_line(run):
    code, out, err = run("reproduce", "fig5")
    assert (code, out) == (2, "")
    assert err == "aromatch: the figure must be fig3, fig4 or all, got 'fig5'\n"


def test_reproducing_without_the_data_says_where_to_get_it(tmp_path):
    environment = {**os.environ, "AROMATCH_DATA": str(tmp_path), "SCIKIT_LEARN_DATA": str(tmp_path / "none")}
    command = [sys.executable, "-m", "aromatch", "reproduce", "fig4", "--quick", "--output", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "20 Newsgroups" in done.stderr
    assert "qwone.com" in done.stderr


def test_a_cell_of_results_that_are_not_there_is_refused_in_one_line(run, tmp_path):
    code, out, err = run("reproduce", "fig4", "--cell", "split 0 / test / Euclidean", "--output", str(tmp_path))
    assert (code, out) == (2, "")
    assert "fig4.json" in err
    code, _, err = run("reproduce", "--cell", "split 0 / test / Euclidean")
    assert code == 2
    assert "--cell needs a figure" in err


# -- from files to a model --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def notes(tmp_path_factory):
    """A folder of notes with a model of each of two kinds."""
    place = tmp_path_factory.mktemp("notes")
    write_folder(place / "notes")
    (place / "log").mkdir()
    write_log(place / "log", n_lists=200)
    for learner in ("moment", "diagonal"):
        options = ["--output", str(place / learner), "--learner", learner, "--n-triplets", "500", "--hold-out", "0.3"]
        assert in_a_new_python("-m", "aromatch", "train", str(place / "notes"), *options).returncode == 0
    return place


def commands(place):
    model = str(place / "diagonal")
    data = ["--data", str(place / "notes")]
    return {
        "train": ["train", str(place / "notes"), "--output", str(place / "new"), "--n-triplets", "100"],
        "eval": ["eval", model, *data],
        "search": ["search", model, "raven", *data],
        "explain": ["explain", model, "birds/060.txt", "raven", *data],
        "ask": ["ask", model, *data, "--judge", f"{sys.executable} {JUDGE}", "-n", "3", "-o", str(place / "asked")],
        "export": ["export", model, "--output", str(place / "exported")],
        "info": ["info", model],
        "trial": ["trial", *trial_of(place), "--output", str(place / "trial")],
    }


def trial_of(place):
    files = [f"{place}/log/{name}" for name in ("objects.npz", "queries.npz", "log.jsonl")]
    return [files[0], "--queries", files[1], "--judgements", files[2]]


def test_every_command_that_reads_or_writes_models_is_tried_here():
    assert set(commands(Path("."))) == set(COMMANDS) - {"demo", "reproduce"}


@pytest.mark.parametrize("name", commands(Path(".")))
def test_every_command_prints_json_and_nothing_else_for_programs(notes, run, name):
    code, out, err = run(*commands(notes)[name], "--json")
    assert (code, err) == (0, "")
    assert isinstance(json.loads(out), dict)


@pytest.mark.parametrize("name", commands(Path(".")))
def test_every_command_prints_text_without_colours_or_bars_into_a_pipe(notes, run, name):
    code, out, err = run(*commands(notes)[name])
    assert (code, err) == (0, "")
    assert len(out.splitlines()) >= 3
    assert "\x1b" not in out


@pytest.mark.parametrize("name", commands(Path(".")))
def test_every_command_prints_ascii_where_there_is_no_utf_8(notes, monkeypatch, run, name):
    monkeypatch.setattr("rich.console.Console.encoding", "ascii")
    code, out, _ = run(*commands(notes)[name])
    assert code == 0
    assert out.isascii()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["train", "nowhere", "-o", "m"], "nowhere does not exist"),
        (["train", "{notes}", "-o", "{place}/none/m"], "does not exist"),
        (["train", "{notes}", "-o", "{place}/m", "--learner", "best"], "--learner must be one of"),
        (["train", "{notes}", "-o", "{place}/m", "--hold-out", "2"], "--hold-out must be a share below 1"),
        (["train", "{notes}", "-o", "{place}/m", "--scale", "big", "--triplets", "none"], "none does not exist"),
        (["train", "{notes}"], "--output"),
        (["eval", "{place}/notes"], "is a directory, so it is not an aromatch model file"),
        (["eval", "{place}/diagonal", "-k", "1,two"], "-k must be integers"),
        (["eval", "{place}/diagonal", "-d", "{notes}", "--run", "{place}/none/run"], "none/"),
        (["search", "{place}/none", "raven"], "No such file"),
        (["search", "{place}/diagonal"], "exactly one of WORDS"),
        (["search", "{place}/diagonal", "raven"], "pass --data {notes}, or --trust-recorded-paths"),
        (["search", "{place}/diagonal", "raven", "-k", "0"], "-k"),
        (["explain", "{place}/diagonal", "nobody", "raven", "-d", "{notes}"], "has no id 'nobody'"),
        (["ask", "{place}/diagonal", "--judge", "no-such-program"], "cannot be started"),
        (["ask", "{place}/diagonal", "--judge", "x", "--replay", "y"], "--replay and --judge exclude each other"),
        (["export", "{place}/diagonal", "-o", "{place}/out", "--n-components", "0"], "--n-components"),
        (["info", "{notes}/birds/060.txt"], "is not an aromatch model file"),
        (["trial", "{place}/log/objects.npz"], "one of --judgements and --clicks is required, got neither"),
        (["trial", "{place}/log/objects.npz", "--clicks", "x", "--judgements", "x"], "got both"),
        (["trial", "{place}/log/objects.npz", "--clicks", "{place}/log/log.jsonl"], "log.jsonl, line 1 has no 'shown'"),
        (["trial", "{place}/log/objects.npz", "--judgements", "{place}/log/log.jsonl"], "unknown object id 'q"),
        (["trial", "{place}/log/objects.npz", "--judgements", "none.jsonl", "--later", "1"], "--later must be a share"),
    ],
)
def test_bad_input_is_one_line_with_exit_code_2_and_nothing_is_written(notes, run, arguments, says):
    before = sorted(path.name for path in notes.iterdir())
    places = {"place": str(notes), "notes": str(notes / "notes")}
    code, out, err = run(*(part.format(**places) for part in arguments))
    assert (code, out) == (2, "")
    assert err.startswith("aromatch: ")
    assert says.format(**places) in err
    assert err.count("\n") == 1
    assert sorted(path.name for path in notes.iterdir()) == before


@pytest.mark.parametrize("arguments", [["--help"], ["info", "{model}"], ["info", "{model}", "--json"], ["info", "no"]])
def test_a_closed_pipe_ends_a_command_quietly(notes, arguments):
    command = [sys.executable, "-m", "aromatch", *(part.format(model=notes / "diagonal") for part in arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        error = process.stderr.read()
    assert (process.returncode, error.count("\n")) == ((2, 1) if "no" in arguments else (1, 0))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stderr.close()
        process.stdout.read()
    assert process.returncode == (2 if "no" in arguments else 0)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full device")
def test_a_full_disk_is_an_error_in_one_line_with_exit_code_2(notes):
    for arguments in (["info", str(notes / "diagonal")], ["info", str(notes / "diagonal"), "--json"], ["--help"]):
        command = [sys.executable, "-m", "aromatch", *arguments]
        with open("/dev/full", "w") as full:
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
            assert (done.returncode, done.stderr.count("\n")) == (2, 1)
            assert "No space left" in done.stderr
            assert subprocess.run([*command, "--none"], stdout=full, stderr=full).returncode == 2


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
def test_standard_streams_may_be_closed(notes, tmp_path):
    model, data = str(notes / "diagonal"), str(notes / "notes")
    commands = {
        f"ask {model} -d {data} --log {tmp_path}/l.jsonl <&-": 0,
        f"info {model} >&-": 0,
        f"info {model} >&- 2>&-": 0,
        f"info {tmp_path}/none 2>&-": 2,
    }
    for command, code in commands.items():
        done = subprocess.run(["sh", "-c", f"{sys.executable} -m aromatch {command}"], capture_output=True, text=True)
        assert (done.returncode, "Traceback" in done.stderr) == (code, False), command
        assert not done.stdout or code == 0


def test_a_model_without_improvement_is_not_written_and_the_exit_code_is_3(run, tmp_path):
    angles = np.random.default_rng(0).uniform(0, 2 * np.pi, size=120)
    X = np.column_stack([np.cos(angles), np.sin(angles)])
    np.savez(tmp_path / "x.npz", X=X, labels=(angles // (np.pi / 15)).astype(int))  # the cosine is best already
    arguments = ["train", str(tmp_path / "x.npz"), "--output", str(tmp_path / "m")]
    code, out, err = run(*arguments)
    assert (code, out, err.count("\n")) == (3, "", 1)
    assert "--force" in err
    assert not (tmp_path / "m").exists()
    assert run(*arguments, "--force")[0] == 0
    assert (tmp_path / "m").exists()


def on_a_terminal(arguments, answers=(), prompt=b"[q] quit: "):
    """Run a command on a pseudo-terminal; type an answer at each prompt. Give what was shown, and the exit code."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm", COLUMNS="90", LINES="40", OMP_NUM_THREADS="1")
        os.execv(sys.executable, [sys.executable, "-m", "aromatch", *arguments])
    shown, waiting = b"", list(answers)
    while True:
        try:
            piece = os.read(terminal, 2**16)
        except OSError:  # Linux says so when the other side has gone
            break
        if not piece:
            break
        shown += piece
        if waiting and shown.count(prompt) > len(answers) - len(waiting):
            os.write(terminal, waiting.pop(0))
    os.close(terminal)
    return shown.decode("utf-8", "replace"), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.skipif(pty is None, reason="needs a pseudo-terminal")
def test_training_shows_a_bar_with_the_share_of_updates_on_a_terminal(notes, tmp_path):
    options = ["--learner", "factored", "--n-triplets", "60000", "--output", str(tmp_path / "m")]
    shown, code = on_a_terminal(["train", str(notes / "notes"), *options])
    assert code == 0
    assert "learning (factored)" in shown
    assert "% updates" in shown
    assert "/60000" in shown
    assert "Trained on" in shown


@pytest.mark.skipif(pty is None, reason="needs a pseudo-terminal")
def test_ctrl_c_on_a_terminal_takes_the_bar_away_and_says_how_to_go_on(notes, tmp_path):
    options = ["--learner", "factored", "--n-triplets", "3000000", "--output", str(tmp_path / "m")]
    shown, code = on_a_terminal(["train", str(notes / "notes"), *options], [b"\x03"], prompt=b"% updates")
    assert code == 130
    last = re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", shown).replace("\r", "").rstrip("\n").split("\n")[-2:]
    assert "m.checkpoint: run the same command to continue" in shown.replace("\r\n", "")
    assert "triplets are learned and saved in" in last[0]
    assert last[1] == "aromatch: interrupted"
    assert (tmp_path / "m.checkpoint").exists()


@pytest.mark.skipif(pty is None, reason="needs a pseudo-terminal")
def test_a_person_answers_on_the_terminal_and_the_answers_are_learned(notes, tmp_path):
    log, output = tmp_path / "log.jsonl", str(tmp_path / "m")
    arguments = ["ask", str(notes / "diagonal"), "-n", "5", "--log", str(log), "--output", output]
    arguments += ["--data", str(notes / "notes")]
    shown, code = on_a_terminal(arguments, [b"1\n", b"what?\n", b"2\n", b"0\n", b"q\n"])
    assert code == 0
    assert shown.count("which is better for this?") == 4
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert ["session" in one for one in lines] == [True, False, False, False]
    assert [("skipped" in one, "better" in one) for one in lines[1:]] == [(False, True), (False, True), (True, False)]
    assert re.search(r"2, \d of them predicted wrongly", shown)


@pytest.mark.parametrize("size", ["1000", "1K", "1kb", "1KiB"])
def test_a_file_over_the_given_memory_is_refused_in_one_line(run, tmp_path, size):
    (tmp_path / "x.svm").write_text("1 1:1\n2 2:1\n" * 4)
    code, out, err = run("train", str(tmp_path / "x.svm"), "--max-memory", size, "-o", str(tmp_path / "m"))
    assert (code, out) == (2, "")
    assert re.fullmatch(r"aromatch: .*x\.svm would take 3,.* expected at most 1,0(00|24) for .*\n", err)
    assert not (tmp_path / "m").exists()
    assert max_memory() is not None
    run("train", str(tmp_path / "x.svm"), "-o", str(tmp_path / "m"))
    assert max_memory() is None


def test_a_memory_size_that_is_none_is_refused_in_one_line(run):
    code, _, err = run("info", "model", "--max-memory", "much")
    assert (code, err.count("\n")) == (2, 1)
    assert "must be a size such as 500M or 4G, got 'much'" in err


def test_names_of_files_cannot_command_the_terminal(run, tmp_path):
    folder = write_folder(tmp_path / "notes", n_each=10)
    (folder / "birds" / "red\x1b[31m[bold]raven.txt").write_text("raven raven eagle heron")
    assert run("train", str(folder), "--output", str(tmp_path / "m"))[0] == 0
    code, out, _ = run("search", str(tmp_path / "m"), "raven heron", "-k", "31", "--data", str(folder))
    assert code == 0
    assert r"birds/red\x1b[31m[bold]raven.txt" in out
    assert "\x1b" not in out

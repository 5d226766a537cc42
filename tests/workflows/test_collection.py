"""A model file does not decide which files are read."""

import json
import shlex
import sys

import pytest

from aromatch.cli import main
from aromatch.workflows.bundle import TrainedModel, read_bundle
from aromatch.workflows.collection import choose_sources
from aromatch.workflows.evaluate import evaluate
from aromatch.workflows.fitting import LearnerOptions
from aromatch.workflows.preparation import Preparation
from aromatch.workflows.train import TrainOptions, train
from collections_on_disk import write_folder, write_search

OPTIONS = ("data", "queries", "labels", "triplets", "qrels", "clicks")
RECORDED = {"data": "corpus.jsonl", "queries": "queries.jsonl", "files": {"qrels": "judged here.tsv"}}


def choose(given, recorded=RECORDED, *, options=OPTIONS, trust=False):
    trained = TrainedModel(None, Preparation(1), Preparation(1), recorded)
    return choose_sources("m", trained, {**dict.fromkeys(options), **given}, trust_recorded_paths=trust)


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({}, "--data corpus.jsonl --queries queries.jsonl --qrels 'judged here.tsv'"),
        ({"data": "corpus.jsonl"}, "--queries queries.jsonl --qrels 'judged here.tsv'"),
        ({"data": "./sub/../corpus.jsonl", "queries": "other"}, "--qrels 'judged here.tsv'"),
        ({"data": "corpus.jsonl", "labels": "other"}, "--queries queries.jsonl"),
        ({"queries": "other", "qrels": "other"}, "--data corpus.jsonl"),
    ],
)
def test_recorded_paths_that_are_missing_are_named_as_options(given, missing):
    with pytest.raises(ValueError, match=r"^paths recorded in m are not read") as raised:
        choose(given)
    assert str(raised.value).endswith(f": pass {missing}, or --trust-recorded-paths")


def test_paths_that_are_given_are_read_and_recorded_ones_are_not():
    given = {"data": "corpus.jsonl", "queries": "q", "qrels": "r"}
    assert choose(given) == ("corpus.jsonl", "q", {"qrels": "r"}, [])
    assert choose({"data": "corpus.jsonl", "queries": "q", "labels": "l"}).files == {"labels": "l"}
    found = choose({"data": "another.jsonl"})
    assert found[:3] == ("another.jsonl", None, {})
    assert "--queries queries.jsonl --qrels 'judged here.tsv'" in found.notes[0]


def test_a_command_asks_only_for_the_paths_that_it_reads():
    assert choose({"data": "corpus.jsonl"}, options=("data",)) == ("corpus.jsonl", None, {}, [])
    with pytest.raises(ValueError, match=r"pass --data corpus\.jsonl, or"):
        choose({}, options=("data",))
    with pytest.raises(ValueError, match="--data is required: m does not record its training data"):
        choose({}, {})
    with pytest.raises(ValueError, match="--data is required"):
        choose({}, {"queries": "q"}, trust=True)


def test_trusted_paths_replace_those_that_are_not_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"^corpus.jsonl does not exist; m records it as --data"):
        choose({}, trust=True)
    for name in ("corpus.jsonl", "queries.jsonl", "judged here.tsv"):
        (tmp_path / name).touch()
    assert choose({}, trust=True) == ("corpus.jsonl", "queries.jsonl", {"qrels": "judged here.tsv"}, [])
    moved = choose({"data": "moved.jsonl"}, trust=True)
    assert moved == ("moved.jsonl", "queries.jsonl", {"qrels": "judged here.tsv"}, [])
    assert choose({"labels": "l"}, trust=True).files == {"labels": "l"}


def test_the_labels_of_the_collection_itself_can_be_asked_for(tmp_path):
    folder = write_folder(tmp_path / "notes", n_each=10)
    ids = [str(path.relative_to(folder)) for path in sorted(folder.rglob("*.txt"))]
    (tmp_path / "halves.csv").write_text("".join(f"{one},{at % 2}\n" for at, one in enumerate(ids)))
    options = LearnerOptions("diagonal", n_triplets=50)
    train(TrainOptions(str(folder), str(tmp_path / "m"), labels=str(tmp_path / "halves.csv"), learner=options))
    with pytest.raises(ValueError, match=r"pass --labels .*halves\.csv, or"):
        evaluate(str(tmp_path / "m"), data=str(folder))
    assert "in 3 classes" in evaluate(str(tmp_path / "m"), data=str(folder), files={"labels": str(folder)}).supervision
    assert "in 2 classes" in evaluate(str(tmp_path / "m"), trust_recorded_paths=True).supervision


# -- what the commands open -------------------------------------------------------------------------------------------

opened = None
sys.addaudithook(lambda event, arguments: opened is not None and event in EVENTS and opened.add(str(arguments[0])))
EVENTS = ("open", "os.listdir", "os.scandir")


@pytest.fixture
def commands(tmp_path, monkeypatch, capsys):
    """Commands on the file of a stranger that records secret paths; returns exit code, output and paths opened."""
    place = write_search(tmp_path)
    (tmp_path / "secret").mkdir()
    for name in ("corpus.jsonl", "queries.jsonl", "qrels.tsv"):
        (tmp_path / "secret" / name).write_bytes((place / name).read_bytes())
    qrels, options = str(place / "qrels.tsv"), LearnerOptions("diagonal", n_triplets=200)
    names = {"data": str(place / "corpus.jsonl"), "queries": str(place / "queries.jsonl")}
    train(TrainOptions(names["data"], str(place / "m"), queries=names["queries"], qrels=qrels, learner=options))
    stranger = read_bundle(place / "m")
    secret = {name: path.replace(str(place), str(place / "secret")) for name, path in {**names, "q": qrels}.items()}
    stranger.metadata |= {"data": secret["data"], "queries": secret["queries"], "files": {"qrels": secret["q"]}}
    stranger.save(place / "m")
    answers = place / "answers.jsonl"
    answers.write_text(json.dumps({"query": "q0", "better": "d0", "worse": "d1"}) + "\n")

    def run(*arguments):
        global opened
        monkeypatch.setattr(sys, "argv", ["aromatch", *arguments])
        opened = set()
        try:
            main()
        except SystemExit as stop:
            code = stop.code
        finally:
            found, opened = opened, None
        return code, *capsys.readouterr(), {path for path in found if path.startswith(str(place / "secret"))}

    return run, place


def invocations(place):
    model, output = str(place / "m"), str(place / "out")
    return [
        ["eval", model],
        ["search", model, "raven"],
        ["search", model, "--queries", str(place / "queries.jsonl")],
        ["explain", model, "d1", "raven"],
        ["ask", model, "--judge", "cat", "-n", "1", "-o", output],
        ["ask", model, "--replay", str(place / "answers.jsonl"), "-o", output],
    ]


def test_no_command_reads_a_path_that_only_the_model_file_names(commands):
    run, place = commands
    for arguments in invocations(place):
        code, out, err, read = run(*arguments)
        assert (code, out, read) == (2, "", set()), arguments
        assert err.count("\n") == 1
        assert f"pass --data {place}/secret/corpus.jsonl" in err
        assert "--trust-recorded-paths" in err
    for arguments in (["info", str(place / "m")], ["export", str(place / "m"), "-o", str(place / "out")]):
        code, out, _, read = run(*arguments)
        assert (code, read) == (0, set())
    assert f"{place}/secret/corpus.jsonl" in run("info", str(place / "m"))[1].replace("\n", "").replace(" ", "")


def test_data_of_its_own_keeps_a_command_from_the_other_recorded_paths(commands):
    run, place = commands
    data = ["--data", str(place / "corpus.jsonl")]
    for arguments in invocations(place)[1:4]:
        assert run(*arguments, *data)[::3] == (0, set())
    code, _, err, read = run("eval", str(place / "m"), *data)
    assert (code, read) == (2, set())
    assert "exactly one of --labels, --triplets, --qrels and --clicks is required" in err
    code, _, err, read = run("eval", str(place / "m"), "--data", str(place / "secret" / "corpus.jsonl"))
    assert (code, read) == (2, set())
    assert shlex.join(["--qrels", str(place / "secret" / "qrels.tsv")]) in err


def test_trusted_paths_are_read_by_every_command(commands):
    run, place = commands
    for arguments in [*invocations(place)[:4], invocations(place)[5]]:
        code, _, err, read = run(*arguments, "--trust-recorded-paths")
        assert (code, err) == (0, "")
        assert str(place / "secret" / "corpus.jsonl") in read

"""Asking people and programs: what is asked, what is learned, logs that can be replayed, judges that fail."""

import errno
import json
import os
import sys
from functools import partial

import numpy as np
import pytest

import aromatch as am
from aromatch.io import durable
from aromatch.io.record_log import RecordLog, read_log
from aromatch.workflows import ask as asking
from aromatch.workflows.ask import PROGRAM, Question, Shown
from aromatch.workflows.evaluate import evaluate
from aromatch.workflows.fitting import LearnerOptions
from aromatch.workflows.judge import Judge
from aromatch.workflows.train import TrainOptions, train
from collections_on_disk import write_folder, write_jsonl, write_search
from saved_state import saved_state

ask = partial(asking.ask, trust_recorded_paths=True)
replay = partial(asking.replay, trust_recorded_paths=True)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("place")
    folder = write_folder(place / "notes")
    for learner in ("moment", "diagonal", "factored", "embedding", "oasis"):
        options = LearnerOptions(learner, n_triplets=200)
        train(TrainOptions(str(folder), str(place / learner), learner=options, hold_out=0.3))
    return place


def by_words(question):
    """Answer as somebody to whom texts are alike that share words; neither, when both share as many."""
    wanted, first, second = (set(thing.text.split()) for thing in question[:3])
    more = len(wanted & first) - len(wanted & second)
    return 0 if more == 0 else 1 if more > 0 else 2


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("learner", ["moment", "diagonal", "factored"])
def test_a_replayed_log_gives_the_model_of_the_session_to_the_bit(place, tmp_path, learner):
    log, start = tmp_path / "log.jsonl", str(place / learner)
    first = ask(start, by_words, n=25, log=str(log), output=str(tmp_path / "one"))
    second = ask(str(tmp_path / "one"), by_words, n=25, log=str(log), output=str(tmp_path / "two"))
    assert first.n_asked == first.n_learned + first.n_skipped == 25
    assert first.n_learned > 0
    again = replay(start, str(log), str(tmp_path / "again"))
    assert again.n_learned == first.n_learned + second.n_learned
    two, replayed = am.load(tmp_path / "two"), am.load(tmp_path / "again")
    assert {name: array.tobytes() for name, array in saved_state(two.model).items()} == {
        name: array.tobytes() for name, array in saved_state(replayed.model).items()
    }
    assert replayed.metadata["n_answers"] == two.metadata["n_answers"] == again.n_learned


@pytest.mark.parametrize("learner", ["moment", "diagonal", "factored"])
def test_answers_do_not_make_a_model_worse(tmp_path, learner):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=240)
    X = rng.normal(size=(240, 20))
    X[:, :3] += 2.5 * np.eye(3)[y]  # the rest is noise
    ids = [f"{label}/{row}" for row, label in enumerate(y)]
    np.savez(tmp_path / "x.npz", X=X, ids=ids, labels=y)
    (tmp_path / "few.csv").write_text("".join(f"{one},{one[0]}\n" for one in ids[:40]))
    data, path = str(tmp_path / "x.npz"), str(tmp_path / "m")
    train(TrainOptions(data, path, labels=str(tmp_path / "few.csv"), learner=LearnerOptions(learner, n_triplets=300)))

    def by_label(question):
        wanted, first, second = (thing.id[0] for thing in question[:3])
        return 0 if (first == wanted) == (second == wanted) else 1 if first == wanted else 2

    def figure(path):
        return evaluate(path, data=data, files={"labels": data}).measures[-1].learned

    report = ask(path, by_label, n=200, output=str(tmp_path / "more"))
    assert report.n_learned >= 40
    assert figure(str(tmp_path / "more")) > figure(path) + 0.01


def test_nothing_is_asked_twice_and_the_model_in_its_place_is_replaced(place, tmp_path):
    path = tmp_path / "m"
    path.write_bytes((place / "diagonal").read_bytes())
    asked = []

    def answer(question):
        asked.append((question.query.id, frozenset((question.first.id, question.second.id))))
        return by_words(question)

    def answered():
        found = [one for one in lines(tmp_path / "m.answers.jsonl") if "better" in one]
        return {(one["query"], frozenset((one["better"], one["worse"]))) for one in found}

    report = ask(str(path), answer, n=20)
    assert report.log == f"{path}.answers.jsonl"
    first = answered()
    assert len(first) == report.n_learned > 0
    ask(str(path), answer, n=20)
    assert len(set(asked[:20])) == len(set(asked[20:])) == 20
    assert first.isdisjoint(asked[20:])
    assert am.load(path).model.n_triplets_seen_ == 200 + len(answered())


def test_the_log_is_a_file_of_triplets_to_train_with(place, tmp_path):
    log = tmp_path / "log.jsonl"
    report = ask(str(place / "diagonal"), by_words, n=40, log=str(log), output=str(tmp_path / "m"))
    done = train(
        TrainOptions(str(place / "notes"), str(tmp_path / "t"), triplets=str(log), learner=LearnerOptions("diagonal"))
    )
    assert done.n_triplets == report.n_learned


def test_the_log_of_a_killed_session_is_a_file_of_triplets_to_train_with(asked, place, tmp_path):
    log = asked[2]
    with log.open("ab") as file:
        file.write(b'{"query": "frui')
    options = LearnerOptions("diagonal")
    done = train(TrainOptions(str(place / "notes"), str(tmp_path / "t"), triplets=str(log), learner=options))
    assert done.n_triplets == 4
    assert done.supervision == "4 triplets, the last record was cut off and skipped"


def test_the_comparison_asked_is_the_one_that_suggest_comparisons_selects(tmp_path):
    np.save(tmp_path / "x.npy", np.eye(4))
    # The order of 1 and 2 is known for query 0; nothing is known about 3.
    am.DiagonalAROMA(r=0.01, init="identity").fit_triplets([[0, 1, 2]] * 20, np.eye(4)).save(tmp_path / "m")
    np.save(tmp_path / "q.npy", np.eye(4)[:1])
    asked = []
    ask(
        str(tmp_path / "m"),
        lambda question: asked.append({question.first.id, question.second.id}) or 0,
        n=6,
        data=str(tmp_path / "x.npy"),
        queries=str(tmp_path / "q.npy"),
    )
    assert len(asked) == len({frozenset(one) for one in asked}) == 6  # every pair of four objects once
    assert asked.index({"2", "3"}) < asked.index({"1", "2"})


def test_people_can_stop_and_what_they_said_is_kept(place, tmp_path):
    answers = iter([1, 2])

    def answer(question):
        try:
            return next(answers)
        except StopIteration:
            raise EOFError from None

    report = ask(str(place / "diagonal"), answer, n=10, log=str(tmp_path / "l.jsonl"), output=str(tmp_path / "m"))
    assert (report.n_asked, report.n_learned) == (2, 2)
    assert am.load(tmp_path / "m").model.n_triplets_seen_ == 202


def test_an_interrupt_keeps_what_was_answered(place, tmp_path):
    answers = iter([1, 2, 1])

    def answer(question):
        try:
            return next(answers)
        except StopIteration:
            raise KeyboardInterrupt from None

    with pytest.raises(KeyboardInterrupt):
        ask(str(place / "diagonal"), answer, n=10, log=str(tmp_path / "l.jsonl"), output=str(tmp_path / "m"))
    assert am.load(tmp_path / "m").model.n_triplets_seen_ == 203
    assert len([one for one in lines(tmp_path / "l.jsonl") if "better" in one]) == 3


def test_nothing_answered_writes_no_model(place, tmp_path):
    report = ask(str(place / "diagonal"), lambda _: 0, n=3, log=str(tmp_path / "l.jsonl"), output=str(tmp_path / "m"))
    assert (report.n_skipped, report.n_learned) == (3, 0)
    assert not (tmp_path / "m").exists()


def test_a_model_that_cannot_learn_single_answers_cannot_ask(place):
    with pytest.raises(ValueError, match="cannot learn single answers"):
        ask(str(place / "embedding"), by_words)


def test_a_model_without_standard_deviations_asks_where_margins_are_smallest(place, tmp_path):
    report = ask(str(place / "oasis"), by_words, n=5, log=str(tmp_path / "l.jsonl"), output=str(tmp_path / "m"))
    assert report.n_asked == 5


def test_a_log_of_another_model_is_not_replayed(place, tmp_path):
    log, start, model = tmp_path / "log.jsonl", str(place / "diagonal"), str(tmp_path / "m")
    ask(start, lambda _: 1, n=3, log=str(log), output=model)
    ask(start, lambda _: 1, n=2, log=str(tmp_path / "other.jsonl"), output=str(tmp_path / "other"))
    with pytest.raises(ValueError, match=r"line 1: the session started from a model with 200 triplets, got 202"):
        replay(str(tmp_path / "other"), str(log), str(tmp_path / "again"))
    assert not (tmp_path / "again").exists()
    log.write_text('{"session": 200}\n{"query": "nobody", "better": "a", "worse": "b"}\n')
    with pytest.raises(ValueError, match=r"log.jsonl, line 2: unknown id 'nobody'"):
        replay(start, str(log), str(tmp_path / "again"))


# -- sessions that are killed ----------------------------------------------------------------------------------------


@pytest.fixture
def asked(place, tmp_path):
    """Give a model before and after a session, and the log."""
    start, model, log = tmp_path / "start", tmp_path / "m", tmp_path / "m.answers.jsonl"
    for path in (start, model):
        path.write_bytes((place / "diagonal").read_bytes())
    assert ask(str(model), lambda _: 1, n=4).n_learned == 4
    return start, model, log


def replayed(start, log):
    """Return the bytes of the file that a replay of the log writes."""
    replay(str(start), str(log), f"{log}.model")
    return (log.parent / f"{log.name}.model").read_bytes()


def test_answers_that_the_model_did_not_learn_before_a_kill_are_learned_by_the_next_session(asked):
    start, model, log = asked
    model.write_bytes(start.read_bytes())  # as if killed before the save
    report = ask(str(model), lambda _: 2, n=2)
    assert report.n_learned == 2
    assert report.notes == [f"learned 4 answers of {log} that the model did not contain"]
    assert am.load(model).metadata["n_answers"] == 6
    assert am.load(model).model.n_triplets_seen_ == 206
    assert model.read_bytes() == replayed(start, log)
    assert ask(str(model), lambda _: 0, n=1).notes == []


def test_a_replay_learns_what_the_model_does_not_contain(asked, tmp_path):
    start, model, log = asked
    before = model.read_bytes()
    assert replay(str(model), str(log), str(tmp_path / "again")).n_learned == 0
    assert (tmp_path / "again").read_bytes() == before
    ask(str(model), lambda _: 1, n=3)
    assert replay(str(tmp_path / "again"), str(log), str(tmp_path / "again")).n_learned == 3
    assert (tmp_path / "again").read_bytes() == model.read_bytes() == replayed(start, log)


def test_a_log_cut_at_any_byte_of_its_last_record_keeps_the_earlier_ones(asked):
    start, model, log = asked
    whole = log.read_bytes()
    n_before = whole[:-1].rindex(b"\n") + 1
    models = {n: replayed_prefix(start, log, whole[:size]) for n, size in ((3, n_before), (4, len(whole)))}
    for size in range(n_before, len(whole) + 1):
        n_torn = size - n_before if size < len(whole) - 1 else 0  # the line end is not needed
        log.write_bytes(whole[:size])
        content = read_log(log)
        n_answers = 4 if size >= len(whole) - 1 else 3
        assert (len(content.records), content.n_torn) == (1 + n_answers, n_torn)
        with RecordLog(log) as opened:
            assert opened.n_torn == n_torn
            assert log.read_bytes() == whole[:size]
            opened.append({"skipped": True})
        assert log.read_bytes() == (whole if n_answers == 4 else whole[:n_before]) + b'{"skipped": true}\n'
        if size in (n_before, n_before + 1, len(whole) - 2, len(whole) - 1, len(whole)):
            log.write_bytes(whole[:size])
            assert replayed(start, log) == models[n_answers]
            model.write_bytes(start.read_bytes())
            report = ask(str(model), lambda _: 2, n=1)
            dropped = [f"dropped the last record of {log}, which was cut off after {n_torn} bytes"]
            assert report.notes[:-1] == (dropped if n_torn else [])
            assert model.read_bytes() == replayed(start, log)


def replayed_prefix(start, log, content):
    log.write_bytes(content)
    return replayed(start, log)


@pytest.mark.parametrize("torn", [b"\0" * 100, b'{"query": "\0\0\0"}\n', b'{"query": "caf\xc3'], ids=repr)
def test_lost_blocks_and_half_characters_at_the_end_of_a_log_are_torn_records(asked, torn):
    start, model, log = asked
    with log.open("ab") as file:
        file.write(torn)
    report = ask(str(model), lambda _: 1, n=1)
    assert report.notes == [f"dropped the last record of {log}, which was cut off after {len(torn)} bytes"]
    assert model.read_bytes() == replayed(start, log)


@pytest.mark.parametrize("line", [b"{]\n", b'{"query": "caf\xc3"}\n', b"[1]\n"], ids=repr)
def test_a_broken_line_that_no_crash_leaves_is_an_error_that_names_it(asked, line):
    _, model, log = asked
    before = log.read_bytes()
    for content in (before + line, before + line + b'{"session": 204}\n'):
        log.write_bytes(content)
        with pytest.raises(ValueError, match=r"answers.jsonl, line 6 "):
            ask(str(model), lambda _: 1, n=1)
        assert log.read_bytes() == content


@pytest.mark.parametrize("content", [b"a secret key", b'{"id": "a", "text": "b"}', b'{"query": 1}\n{"query": "torn'])
def test_a_file_that_is_not_a_log_of_the_model_is_refused_and_unchanged(asked, tmp_path, content):
    _, model, _ = asked
    (tmp_path / "notes.jsonl").write_bytes(content)
    with pytest.raises(ValueError, match=r"notes\.jsonl, line 1 "):
        ask(str(model), lambda _: 1, n=1, log=str(tmp_path / "notes.jsonl"))
    assert (tmp_path / "notes.jsonl").read_bytes() == content


@pytest.mark.skipif(os.name != "posix", reason="symbolic links")
def test_the_default_log_is_not_a_link_and_a_log_that_is_named_may_be_one(asked, tmp_path):
    _, model, log = asked
    target = tmp_path / "victim"
    log.rename(target)
    log.symlink_to(target)
    before = target.read_bytes()
    with pytest.raises(ValueError, match=r"answers\.jsonl must be a regular file, got a symbolic link to .*victim"):
        ask(str(model), lambda _: 1, n=1)
    assert target.read_bytes() == before
    ask(str(model), lambda _: 1, n=1, log=str(log))
    assert target.read_bytes().startswith(before)
    assert log.is_symlink()


def test_a_log_that_was_edited_is_refused(asked):
    start, model, log = asked
    records = lines(log)
    write_jsonl(log, [*records[:2], *records[3:]])
    with pytest.raises(ValueError, match="its first 4 answers are not those that the model contains"):
        ask(str(model), lambda _: 1, n=1)
    replayed(start, log)  # a model that contains none of them can learn the rest


def test_two_people_with_logs_of_their_own_teach_one_model(place, tmp_path):
    path = tmp_path / "m"
    path.write_bytes((place / "diagonal").read_bytes())
    logs = [str(tmp_path / f"{name}.jsonl") for name in ("ann", "bob", "ann")]
    reports = [ask(str(path), lambda _: 1, n=2, log=log) for log in logs]
    assert am.load(path).metadata["n_answers"] == 6
    assert [len(report.notes) for report in reports] == [0, 0, 1]
    assert "a log can be replayed on the model that it started from" in reports[2].notes[0]


def test_one_process_at_a_time_asks_for_a_log(asked):
    _, model, log = asked
    before = log.read_bytes()
    with RecordLog(log), pytest.raises(BlockingIOError, match=r"answers\.jsonl is in use"):
        ask(str(model), lambda _: 1, n=1)
    assert log.read_bytes() == before
    ask(str(model), lambda _: 1, n=1)


def test_an_answer_that_cannot_be_written_is_not_learned(asked, monkeypatch):
    start, model, log = asked
    before, n_written = log.read_bytes(), 0

    def write(descriptor, data):
        nonlocal n_written
        n_written += 1
        if n_written == 2:  # half of the answer after the record of the session
            os.write(descriptor, data[:7])
            raise OSError(errno.ENOSPC, "No space left on device")
        return os.write(descriptor, data)

    monkeypatch.setattr(durable.system, "write", write)
    with pytest.raises(OSError, match="No space left"):
        ask(str(model), lambda _: 1, n=3)
    monkeypatch.undo()
    assert len(log.read_bytes().splitlines()) == len(before.splitlines()) + 1
    assert model.read_bytes() == replayed(start, log)


def test_an_answer_is_on_disk_before_the_next_question(asked, monkeypatch):
    _, model, log = asked
    synced = {}

    def sync(descriptor):
        synced[os.fstat(descriptor).st_ino] = os.fstat(descriptor).st_size

    def answer(question):
        assert synced[log.stat().st_ino] == log.stat().st_size
        assert len(lines(log)) == 6 + question.number - 1
        return 1

    monkeypatch.setattr(durable.system, "sync", sync)
    assert ask(str(model), answer, n=3).n_learned == 3


def test_queries_of_their_own_are_asked_about(tmp_path):
    place = write_search(tmp_path)
    names = [str(place / name) for name in ("corpus.jsonl", "queries.jsonl", "qrels.tsv")]
    train(TrainOptions(names[0], str(tmp_path / "m"), queries=names[1], qrels=names[2]))
    seen = []
    ask(str(tmp_path / "m"), lambda question: seen.append(question) or 1, n=4)
    assert all(one.query.id.startswith("q") and one.first.id.startswith("d") for one in seen)


# -- a program that answers -------------------------------------------------------------------------------------------

JUDGE_BY_WORDS = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    query, first, second = (set(asked[name]["text"].split()) for name in ("query", "first", "second"))
    more = len(query & first) - len(query & second)
    print(json.dumps({"answer": "skip" if more == 0 else "first" if more > 0 else "second"}), flush=True)
"""


def judge(tmp_path, code, **options):
    path = tmp_path / "judge.py"
    path.write_text(code)
    return Judge(f"{sys.executable} {path}", **options)


def test_a_judge_answers_in_place_of_a_person_and_learns_the_same(place, tmp_path):
    paths = [str(tmp_path / name) for name in ("one", "two")]
    with judge(tmp_path, JUDGE_BY_WORDS) as program:
        ask(str(place / "diagonal"), program, n=30, by=PROGRAM, log=str(tmp_path / "a.jsonl"), output=paths[0])
    ask(str(place / "diagonal"), by_words, n=30, log=str(tmp_path / "b.jsonl"), output=paths[1])
    np.testing.assert_array_equal(am.load(paths[0]).model.W_, am.load(paths[1]).model.W_)


@pytest.mark.parametrize("line", ["", "[" * 100_000, '{"a":' + "[" * 100_000])
def test_a_judge_may_take_any_time_and_its_line_is_checked(tmp_path, line):
    (tmp_path / "judge.py").write_text(f"input(); print({line!r} or 3)")
    with (
        Judge(f"{sys.executable} {tmp_path}/judge.py", timeout=1e308) as program,
        pytest.raises(ValueError, match="must be 1, 2 or 0"),
    ):
        program(Question(Shown("q", None), Shown("a", None), Shown("b", None), 1))


def test_disagreements_of_a_judge_with_people_are_counted_and_not_learned(place, tmp_path):
    log = str(tmp_path / "log.jsonl")
    people = ask(str(place / "diagonal"), lambda _: 1, n=12, log=log, output=str(tmp_path / "p"))
    assert people.n_learned == 12

    def contrary(question):
        shown = {(one["query"], one["better"]) for one in lines(tmp_path / "log.jsonl") if "better" in one}
        return 2 if (question.query.id, question.first.id) in shown and question.number <= 4 else 1

    report = ask(str(tmp_path / "p"), contrary, n=12, by=PROGRAM, log=log, output=str(tmp_path / "j"))
    assert (report.n_compared, report.n_disagreed) == (12, 4)
    assert am.load(tmp_path / "j").model.n_triplets_seen_ == 200 + 12 + report.n_learned
    assert report.n_asked == 12


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import sys; sys.exit(3)", "ended with exit code 3 before its answer to comparison 1"),
        ("input(); print('maybe', flush=True); input()", "the answer to comparison 1 must be 1, 2 or 0, got 'maybe'"),
        ("input(); print('{\"answer\": 7}', flush=True); input()", "the answer to comparison 1"),
        ("import time; time.sleep(60)", "no answer within 0.3 seconds"),
        ("import sys; input(); sys.stdout.buffer.write(b'\\xff\\n'); sys.stdout.flush()", "--judge"),
    ],
)
def test_a_judge_that_fails_is_told_of_in_a_line(tmp_path, code, says):
    question = Question(Shown("a", None), Shown("b", None), Shown("c", None), 1)
    timeout = 0.3 if "sleep" in code else 20.0
    with pytest.raises(ValueError, match=says), judge(tmp_path, code, timeout=timeout) as program:
        program(question)


def test_a_judge_that_is_no_program_is_refused():
    with pytest.raises(ValueError, match="'no-such-program' cannot be started"), Judge("no-such-program"):
        pass
    with pytest.raises(ValueError, match="must be a command, got ' '"):
        Judge(" ")
    with pytest.raises(ValueError, match="not a valid command"):
        Judge("'half")

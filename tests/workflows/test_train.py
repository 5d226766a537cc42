"""Training: the same file for the same work however it was interrupted, nothing learned from what is held out."""

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pytest
from scipy import sparse

import aromatch as am
from aromatch.exceptions import ModelFileError, NoImprovementError
from aromatch.io.container import read_model, write_model
from aromatch.io.items import read_items
from aromatch.learners.registry import COMMANDS, LEARNERS
from aromatch.workflows.bundle import read_bundle
from aromatch.workflows.evaluate import evaluate as evaluate_file
from aromatch.workflows.fitting import AUTO, Checkpoint, LearnerOptions
from aromatch.workflows.supervision import content_hashes
from aromatch.workflows.train import TrainOptions, train
from collections_on_disk import WORDS, write_folder, write_jsonl, write_search, write_vectors

evaluate = partial(evaluate_file, trust_recorded_paths=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(write_folder(tmp_path_factory.mktemp("texts") / "notes"))


def trained(folder, path, learner="diagonal", **options):
    chosen = LearnerOptions(learner=learner, n_triplets=options.pop("n_triplets", 2_000))
    return train(TrainOptions(folder, str(path), learner=chosen, **options))


@pytest.mark.parametrize("learner", [AUTO, *COMMANDS])
def test_every_learner_writes_the_same_file_for_the_same_work(folder, tmp_path, learner):
    for name in ("one", "two"):
        report = trained(folder, tmp_path / name, learner, hold_out=0.2)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert (report.n_objects, report.n_queries, report.n_held_out) == (90, 72, 18)
    assert sorted(os.listdir(tmp_path)) == ["one", "two"]


@pytest.mark.parametrize("learner", [AUTO, *COMMANDS])
def test_every_learner_ranks_texts_that_it_has_not_seen_better_than_the_cosine(folder, tmp_path, learner):
    trained(folder, tmp_path / "m", learner, hold_out=0.3)
    report = evaluate(str(tmp_path / "m"))
    (measure,) = (one for one in report.measures if one.name == "mAP")
    assert measure.learned > measure.baseline + 0.1
    assert measure.p < 0.05
    assert (report.n_queries, report.n_training_left_out) == (27, 63)


def test_a_new_row_of_the_registry_takes_init_and_is_learned_online(tmp_path, monkeypatch):
    monkeypatch.setitem(COMMANDS, "full", LEARNERS["FullAROMA"])
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "rows.npz", X=rng.normal(size=(30, 4)), labels=np.arange(30) % 2)
    options = LearnerOptions("full", init="3", n_triplets=600)
    report = train(TrainOptions(str(tmp_path / "rows.npz"), str(tmp_path / "m"), learner=options))
    model = am.load(tmp_path / "m").model
    assert (model.init, model.n_triplets_seen_, report.n_updates) == (3.0, 600, model.n_updates_)


def test_another_seed_gives_another_model(folder, tmp_path):
    trained(folder, tmp_path / "one", seed=0)
    trained(folder, tmp_path / "two", seed=1)
    assert (tmp_path / "one").read_bytes() != (tmp_path / "two").read_bytes()


@pytest.mark.parametrize("learner", ["auto", "moment", "embedding", "diagonal"])
def test_what_is_held_out_has_no_influence_on_the_model(tmp_path, learner):
    place = write_folder(tmp_path / "notes")
    trained(str(place), tmp_path / "one", learner, hold_out=0.3)
    known = am.load(tmp_path / "one").row_hashes
    items = read_items(place)
    is_held = ~np.isin(content_hashes(items, np.arange(len(items))), known)
    assert np.count_nonzero(is_held) == 27
    for one, held in zip(items.ids, is_held, strict=True):
        if held:
            (place / one).write_text("hammer apple heron entirely other words")
    trained(str(place), tmp_path / "two", learner, hold_out=0.3)
    one, two = (am.load(tmp_path / name) for name in ("one", "two"))
    X = one.objects.rows(read_items(place))
    np.testing.assert_array_equal(one.model.similarity(X), two.model.similarity(X))
    assert one.objects.features.terms_.tolist() == two.objects.features.terms_.tolist()
    np.testing.assert_array_equal(one.objects.features.idf_, two.objects.features.idf_)


def test_queries_with_judgements_are_learned_and_held_out_by_query(tmp_path):
    place = write_search(tmp_path)
    files = {name: str(place / f"{name}.jsonl") for name in ("corpus", "queries")}
    report = train(
        TrainOptions(
            files["corpus"],
            str(tmp_path / "m"),
            queries=files["queries"],
            qrels=str(place / "qrels.tsv"),
            hold_out=0.25,
        )
    )
    assert (report.n_queries, report.n_held_out) == (27, 9)
    assert report.n_triplets == 27 * 25  # five relevant objects each, five others drawn for each of them
    measured = evaluate(str(tmp_path / "m"))
    assert measured.n_queries == 9
    assert {one.name for one in measured.measures} == {"P@1", "P@10", "nDCG@1", "nDCG@10", "mAP"}


@pytest.mark.parametrize("kind", ["clicks", "triplets"])
def test_clicks_and_triplets_are_learned_and_measured_by_query(tmp_path, kind):
    place = write_search(tmp_path)
    wanted = [line.split("\t") for line in (place / "qrels.tsv").read_text().splitlines()[1:]]
    rng = np.random.default_rng(0)
    lines = []
    for query, one, _ in wanted:
        others = [f"d{row}" for row in rng.integers(60, size=3) if f"d{row}" != one]
        clicked = {"query": query, "shown": [*dict.fromkeys(others), one], "clicked": one}
        lines.append(clicked if kind == "clicks" else {"query": query, "better": one, "worse": others[0]})
    path = write_jsonl(tmp_path / "said.jsonl", lines)
    names = {"data": str(place / "corpus.jsonl"), "queries": str(place / "queries.jsonl"), kind: str(path)}
    report = train(TrainOptions(output=str(tmp_path / "m"), hold_out=0.3, **names))
    assert (report.n_queries, report.n_held_out) == (25, 11)
    measured = evaluate(str(tmp_path / "m"))
    (measure,) = measured.measures
    assert (measure.name, measured.n_queries, measured.n_training_left_out) == ("correct", 11, 25)
    assert measure.learned > measure.baseline


def without_improvement(folder):
    """Write labels that are groups of neighbours by angle, so that the cosine cannot be improved."""
    rng = np.random.default_rng(0)
    angles = rng.uniform(0, 2 * np.pi, size=120)
    X = np.column_stack([np.cos(angles), np.sin(angles)])
    np.savez(folder / "x.npz", X=X, labels=(angles // (np.pi / 15)).astype(int))
    return str(folder / "x.npz")


def test_a_model_that_validation_finds_no_better_than_the_baseline_is_not_written(tmp_path):
    data = without_improvement(tmp_path)
    with pytest.raises(NoImprovementError, match="--force"):
        trained(data, tmp_path / "m", "auto")
    assert os.listdir(tmp_path) == ["x.npz"]


def test_with_force_the_best_learner_is_written_and_noted(tmp_path):
    report = trained(without_improvement(tmp_path), tmp_path / "m", "auto", force=True)
    scores = report.validation_scores
    assert {"baseline", "moment", "embedding", "diagonal --init 1"} <= scores.keys()
    assert scores["baseline"] == max(scores.values())
    assert scores[report.learner] == max(score for name, score in scores.items() if name != "baseline")
    assert any("no improvement" in note for note in report.notes)
    assert am.load(tmp_path / "m").metadata["used"]["learner"] == report.learner.split()[0]


def test_auto_writes_what_it_reports_as_best(folder, tmp_path):
    report = trained(folder, tmp_path / "m", "auto", hold_out=0.2)
    assert report.validation_scores[report.learner] == max(report.validation_scores.values())
    again = am.load(tmp_path / "m")
    assert again.metadata["used"]["learner"] == report.learner.split()[0]
    assert " ".join(repr(again.model).split()) == report.model


def test_vectors_in_different_units_are_standardised_and_the_model_knows_how(tmp_path):
    path = write_vectors(tmp_path / "x.csv")
    report = trained(str(path), tmp_path / "m", "auto", hold_out=0.3)
    assert "standardised" in report.prepared
    model = am.load(tmp_path / "m")
    assert model.objects.names == [f"f{at}" for at in range(12)]
    (measure,) = (one for one in evaluate(str(tmp_path / "m")).measures if one.name == "mAP")
    assert measure.learned > measure.baseline + 0.1


def test_sparse_rows_stay_sparse_and_rows_of_unit_norm_are_left_alone(tmp_path):
    rng = np.random.default_rng(0)
    X = sparse.random_array((60, 50_000), density=1e-3, format="csr", rng=rng)
    sparse.save_npz(tmp_path / "x.npz", X)
    np.save(tmp_path / "y.npy", rng.integers(3, size=60))
    labels = str(tmp_path / "y.npy")
    trained(str(tmp_path / "x.npz"), tmp_path / "m", n_triplets=50, labels=labels)
    assert sparse.issparse(am.load(tmp_path / "m").model.W_)
    assert am.load(tmp_path / "m").objects.scale == "unit"
    rows = rng.normal(size=(60, 5))
    np.save(tmp_path / "u.npy", rows / np.linalg.norm(rows, axis=1, keepdims=True))
    trained(str(tmp_path / "u.npy"), tmp_path / "u", labels=labels)
    assert am.load(tmp_path / "u").objects.scale == "none"
    with pytest.raises(ValueError, match="--scale centre would make the sparse matrix"):
        trained(str(tmp_path / "x.npz"), tmp_path / "c", labels=labels, scale="centre")
    assert not (tmp_path / "c").exists()


def test_queries_may_have_other_features_than_objects(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=80)
    np.savez(tmp_path / "objects.npz", X=np.eye(3)[y] + 0.1 * rng.normal(size=(80, 3)), labels=y)
    np.savez(tmp_path / "queries.npz", X=np.eye(5)[y[:60]] + 0.1 * rng.normal(size=(60, 5)), labels=y[:60])
    report = trained(str(tmp_path / "objects.npz"), tmp_path / "m", "auto", queries=str(tmp_path / "queries.npz"))
    assert report.n_queries == 60
    model = am.load(tmp_path / "m").model
    assert (model.n_features_in_, model.n_object_features_in_) == (5, 3)
    measured = evaluate(str(tmp_path / "m"))
    assert measured.measures[0].learned > 0.9
    assert measured.measures[0].baseline is None


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"learner": "best"}, "--learner must be one of 'auto'"),
        ({"learner": "moment", "r": 1.0}, "--r is for --learner diagonal, factored, got moment"),
        ({"learner": "diagonal", "alpha": 1.0}, "--alpha is for .*embedding.*, got diagonal"),
        ({"learner": "diagonal", "C": 1.0}, "--c is for --learner oasis, got diagonal"),
        ({"learner": "diagonal", "r": -1.0}, "--r must be greater than 0"),
        ({"learner": "diagonal", "init": "one"}, "--init must be zero, identity or a number, got 'one'"),
    ],
)
def test_settings_that_do_not_fit_are_refused_and_nothing_is_written(folder, tmp_path, options, says):
    with pytest.raises(ValueError, match=says):
        train(TrainOptions(folder, str(tmp_path / "m"), learner=LearnerOptions(**options)))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"hold_out": 1.0}, "--hold-out must be a share below 1"),
        ({"hold_out": -0.1}, "--hold-out must be at least 0"),
        ({"terms": 20_001}, "--terms must be at most 20,000"),
        ({"output": "nowhere/m"}, "the folder .* does not exist"),
    ],
)
def test_options_that_do_not_fit_are_refused(folder, tmp_path, options, says):
    with pytest.raises((ValueError, OSError), match=says):
        train(TrainOptions(**{"data": folder, "output": str(tmp_path / "m"), **options}))
    assert os.listdir(tmp_path) == []


# -- checkpoints ------------------------------------------------------------------------------------------------------


def command(folder, output, *more):
    options = ["--learner", "factored", "--n-triplets", "60000", "--hold-out", "0.2"]
    return [sys.executable, "-m", "aromatch", "train", folder, "--output", str(output), *options, *more]


def test_ctrl_c_keeps_what_was_learned_and_the_same_command_goes_on_to_the_same_bits(folder, tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert subprocess.run(command(folder, whole), capture_output=True, timeout=120).returncode == 0
    running = subprocess.Popen(
        command(folder, parts, "--checkpoint-seconds", "0"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    checkpoint = tmp_path / "parts.checkpoint"
    end = time.monotonic() + 60
    while not checkpoint.exists() and running.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert (running.returncode, out) == (130, "")
    assert "triplets are learned and saved in" in err
    assert err.splitlines()[-1] == "aromatch: interrupted"
    assert not parts.exists()
    assert 0 < am.load(checkpoint).model.n_triplets_seen_ < 60_000
    done = subprocess.run(command(folder, parts, "--json"), capture_output=True, text=True, timeout=120)
    assert 0 < json.loads(done.stdout)["resumed_from"] < 60_000
    assert parts.read_bytes() == whole.read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["parts", "whole"]


def interrupted(monkeypatch, folder, path, **options):
    """Stop a training at its second look at the clock."""
    looks = []

    def stop(self, model):
        looks.append(model.n_triplets_seen_)
        if len(looks) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "save_if_due", stop)
        with pytest.raises(KeyboardInterrupt):
            trained(folder, path, "factored", **options)
    return looks[-1]


def test_a_checkpoint_of_other_settings_or_data_is_refused_until_it_is_given_up(monkeypatch, folder, tmp_path):
    path = tmp_path / "m"
    seen = interrupted(monkeypatch, folder, path)
    assert am.load(tmp_path / "m.checkpoint").model.n_triplets_seen_ == seen > 0
    with pytest.raises(ValueError, match=r"m\.checkpoint is of a training with other options or data; --restart"):
        trained(folder, path, "factored", seed=1)
    with pytest.raises(ValueError, match="is of a training with other options"):
        trained(folder, path, "moment")
    assert (tmp_path / "m.checkpoint").exists()
    assert trained(folder, path, "factored", seed=1, restart=True).resumed_from == 0
    assert os.listdir(tmp_path) == ["m"]


def test_a_checkpoint_that_is_another_model_is_refused_by_name(folder, tmp_path):
    am.Cosine().fit(np.eye(2)).save(tmp_path / "m.checkpoint")
    with pytest.raises(ValueError, match=r"m\.checkpoint is of a training with other options or data"):
        trained(folder, tmp_path / "m")
    am.Adapter(np.eye(2)).save(tmp_path / "m.checkpoint")
    with pytest.raises(ModelFileError, match=r"m\.checkpoint contains an adapter"):
        trained(folder, tmp_path / "m")


def test_a_checkpoint_that_was_cut_is_refused_by_name(monkeypatch, folder, tmp_path):
    interrupted(monkeypatch, folder, tmp_path / "m")
    checkpoint = tmp_path / "m.checkpoint"
    checkpoint.write_bytes(checkpoint.read_bytes()[:-9])
    with pytest.raises(ModelFileError, match=r"m\.checkpoint is truncated or changed"):
        trained(folder, tmp_path / "m", "factored")


# -- the file ---------------------------------------------------------------------------------------------------------


def test_a_trained_file_is_a_model_file_for_python_too_and_carries_its_terms(folder, tmp_path):
    trained(folder, tmp_path / "m", "moment")
    found = am.load(tmp_path / "m")
    terms = set(found.objects.features.terms_.tolist())
    assert {word for words in WORDS.values() for word in words} <= terms
    text = ["a heron with a hammer"]
    again = am.load(tmp_path / "m").objects.features.transform(text)
    np.testing.assert_array_equal(found.objects.features.transform(text).toarray(), again.toarray())
    assert again.nnz == 2


def test_a_file_of_a_learner_is_taken_with_vectors_as_they_are(tmp_path):
    am.DiagonalAROMA().fit_triplets([[0, 1, 2]], np.eye(3)).save(tmp_path / "m")
    found = read_bundle(tmp_path / "m")
    assert (found.objects.scale, found.objects.what, found.metadata, found.row_hashes) == ("none", "vectors", {}, None)


def _set(header, *keys, to):
    for key in keys[:-1]:
        header = header[key]
    header[keys[-1]] = to


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("objects",), None),
        (("metadata",), "all"),
        (("metadata", "data"), 3),
        (("metadata", "seed"), -1),
        (("metadata", "n_objects"), "many"),
        (("metadata", "files"), ["a"]),
        (("metadata", "files"), {"labels": 3}),
        (("objects", "width"), 7),
        (("objects", "scale"), "unit"),
        (("objects", "scale"), "double"),
        (("objects", "names"), ["a"]),
        (("objects", "text"), {}),
        (("objects", "text", "terms"), ["a", "a"]),
        (("objects", "text", "terms"), [1, 2]),
        (("objects", "text", "token_pattern"), "(a+)+$"),
        (("objects", "text", "stop_words"), "klingon"),
        (("objects", "text", "choose"), "dice"),
    ],
)
def test_a_file_that_says_something_impossible_is_refused_by_name(folder, tmp_path, keys, value):
    path = tmp_path / "m"
    trained(folder, path, n_triplets=10)
    header, arrays = read_model(path)
    _set(header, *keys, to=value)
    write_model(path, header, arrays)
    with pytest.raises(ModelFileError, match="m is not a model that this version can use"):
        am.load(path)


@pytest.mark.parametrize("name", ["objects.text.idf", "objects.text.gain"])
@pytest.mark.parametrize("change", [lambda a: a[:-1], lambda a: a * np.nan, lambda a: a.astype(np.float32)])
def test_weights_of_terms_that_are_no_such_are_refused(folder, tmp_path, name, change):
    path = tmp_path / "m"
    trained(folder, path, n_triplets=10)
    header, arrays = read_model(path)
    write_model(path, header, {**arrays, name: change(arrays[name])})
    with pytest.raises(ModelFileError, match="weights of the text features"):
        am.load(path)


def test_with_too_few_queries_to_try_learners_on_the_plain_similarity_is_kept_to(tmp_path):
    folder = write_folder(tmp_path / "notes", n_each=4)
    report = train(TrainOptions(str(folder), str(tmp_path / "m")))
    assert report.learner == "diagonal --init 10"
    assert report.validation_scores == {}
    assert "12 queries are too few for validation" in report.notes[0]

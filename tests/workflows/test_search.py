"""Search, explanations and descriptions of models that were trained from files."""

import json
from functools import partial

import numpy as np
import pytest

import aromatch as am
from aromatch.exceptions import ModelFileError
from aromatch.io.items import read_items
from aromatch.workflows.explain import explain as explain_file
from aromatch.workflows.fitting import LearnerOptions
from aromatch.workflows.info import info
from aromatch.workflows.search import search as search_file
from aromatch.workflows.snippets import snippet
from aromatch.workflows.train import TrainOptions, train
from collections_on_disk import WORDS, write_folder, write_jsonl, write_vectors

search = partial(search_file, trust_recorded_paths=True)
explain = partial(explain_file, trust_recorded_paths=True)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder of notes, with a model of each kind."""
    place = tmp_path_factory.mktemp("place")
    folder = write_folder(place / "notes")
    for learner in ("moment", "embedding", "diagonal", "factored", "oasis"):
        options = LearnerOptions(learner, n_triplets=2_000)
        train(TrainOptions(str(folder), str(place / learner), learner=options, hold_out=0.2))
    path = write_vectors(place / "x.csv")
    train(TrainOptions(str(path), str(place / "vectors"), learner=LearnerOptions("diagonal", n_triplets=2_000)))
    return place


@pytest.mark.parametrize("learner", ["moment", "embedding", "diagonal", "factored", "oasis"])
def test_words_find_texts_of_their_kind_that_do_not_hold_them(place, learner):
    (answer,) = search(str(place / learner), "raven").answers
    assert [hit.rank for hit in answer.hits] == list(range(1, 11))
    assert {hit.label for hit in answer.hits[:5]} == {"birds"}
    scores = [hit.score for hit in answer.hits]
    assert scores == sorted(scores, reverse=True)
    knows_how_sure = learner in ("moment", "diagonal", "factored")
    assert all((hit.std is not None) == knows_how_sure for hit in answer.hits)
    texts = [
        (place / "notes" / hit.id).read_text() for hit in search(str(place / learner), "raven", k=30).answers[0].hits
    ]
    assert any("raven" not in text for text in texts)


@pytest.mark.parametrize("learner", ["moment", "embedding", "diagonal"])
def test_scores_are_those_of_the_model(place, learner):
    (answer,) = search(str(place / learner), like="birds/060.txt", k=89).answers
    trained, items = am.load(place / learner), read_items(place / "notes")
    X = trained.objects.rows(items)
    scores = trained.model.similarity(X[[items.ids.index("birds/060.txt")]], X)[0]
    assert "birds/060.txt" not in {hit.id for hit in answer.hits}
    assert len(answer.hits) == 89
    for hit in answer.hits:
        assert hit.score == pytest.approx(scores[items.ids.index(hit.id)])


def test_what_was_before_stands_beside_it(place):
    (answer,) = search(str(place / "moment"), "raven", k=3, compare=True).answers
    assert len(answer.baseline) == 3
    assert all("raven" in (place / "notes" / hit.id).read_text() for hit in answer.baseline)
    assert answer.hits[0].text.startswith("Note") or "raven" in answer.hits[0].text


def test_many_queries_come_from_a_file(place, tmp_path):
    path = write_jsonl(tmp_path / "q.jsonl", [{"id": "one", "text": "saw"}, {"id": "two", "text": "melon"}])
    report = search(str(place / "moment"), queries=str(path), k=2)
    assert [(one.query, len(one.hits), one.hits[0].label) for one in report.answers] == [
        ("one", 2, "tools"),
        ("two", 2, "fruit"),
    ]
    json.dumps(report.to_dict())


def test_words_that_are_not_known_are_named(place):
    (answer,) = search(str(place / "moment"), "the raven Xylophone and zebra").answers
    assert answer.unknown_words == ["xylophone", "zebra"]
    with pytest.raises(ValueError, match=r"no text in .*notes contains any of the words 'xylophone'"):
        search(str(place / "moment"), "xylophone")


def test_words_that_only_the_texts_know_are_looked_for_as_they_are(tmp_path):
    folder = write_folder(tmp_path / "notes", n_each=10)
    (folder / "birds" / "rare.txt").write_text("an albatross, once")
    train(TrainOptions(str(folder), str(tmp_path / "m"), terms=6, learner=LearnerOptions("moment")))
    (answer,) = search(str(tmp_path / "m"), "albatross", k=3).answers
    assert answer.is_baseline
    assert answer.unknown_words == ["albatross"]
    assert (answer.hits[0].id, answer.hits[0].std) == ("birds/rare.txt", None)
    assert answer.baseline is None


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "exactly one of WORDS, --like and --queries"),
        ({"words": "raven", "like": "birds/060.txt"}, "exactly one of WORDS, --like and --queries"),
        ({"words": "  "}, "must contain at least one word"),
        ({"like": "nobody"}, "--like: .*notes has no id 'nobody'; ids are such as 'birds/060.txt'"),
        ({"words": "raven", "data": "nowhere"}, "nowhere does not exist"),
    ],
)
def test_a_search_for_nothing_is_refused(place, arguments, says):
    with pytest.raises((ValueError, OSError), match=says):
        search(str(place / "moment"), **arguments)


def test_vectors_are_found_by_the_id_of_another_and_words_are_refused(place):
    (answer,) = search(str(place / "vectors"), like="r0", k=5).answers
    assert [hit.label for hit in answer.hits] == ["a"] * 5
    with pytest.raises(ValueError, match="model of vectors"):
        search(str(place / "vectors"), "raven")


@pytest.mark.parametrize("compare", [False, True])
def test_vectors_are_refused_by_a_model_of_texts(place, compare):
    with pytest.raises(ValueError, match=r"x\.csv has vectors, but the model was trained on texts"):
        search(str(place / "moment"), "raven", data=str(place / "x.csv"), compare=compare)


def test_data_that_went_away_is_told_with_the_way_out(tmp_path):
    folder = write_folder(tmp_path / "notes", n_each=5)
    train(TrainOptions(str(folder), str(tmp_path / "m"), learner=LearnerOptions("moment")))
    folder.rename(tmp_path / "moved")
    with pytest.raises(FileNotFoundError, match=r"notes does not exist; .*m records it as --data"):
        search(str(tmp_path / "m"), "raven")
    assert search(str(tmp_path / "m"), "raven", data=str(tmp_path / "moved")).answers[0].hits


def test_a_snippet_has_single_spaces_and_at_most_200_characters():
    assert snippet("raven \t red\u00a0  words", "raven") == "raven red words"
    assert len(snippet("word " * 1000, "word")) == 200


@pytest.mark.parametrize("learner", ["moment", "embedding", "diagonal", "oasis"])
def test_reasons_add_up_to_the_score_and_have_names(place, learner):
    one = search(str(place / learner), "raven swift", k=1).answers[0].hits[0]
    report = explain(str(place / learner), one.id, "raven swift", top=3)
    assert report.score == pytest.approx(one.score)
    assert sum(reason.value for reason in report.contributions) + report.rest == pytest.approx(report.score)
    assert {reason.of_query for reason in report.contributions} <= {"raven", "swift"}
    known = {word for words in WORDS.values() for word in words}
    assert report.contributions[0].of_object in known
    assert (report.std is None) == (learner in ("embedding", "oasis"))


def test_reasons_of_all_pairs_of_a_projection_are_its_score(place):
    report = explain(str(place / "embedding"), "birds/061.txt", like="birds/060.txt", top=10_000)
    assert report.rest == pytest.approx(0, abs=1e-9)
    assert report.score == pytest.approx(sum(reason.value for reason in report.contributions))


def test_features_of_a_csv_file_are_explained_by_their_names(place):
    report = explain(str(place / "vectors"), "r3", like="r0", top=2)
    assert all(reason.of_query in {f"f{at}" for at in range(12)} for reason in report.contributions)


def test_an_object_that_is_not_there_cannot_be_explained(place):
    with pytest.raises(ValueError, match="has no id 'nobody'"):
        explain(str(place / "moment"), "nobody", "raven")
    with pytest.raises(ValueError, match="exactly one of WORDS and --like"):
        explain(str(place / "moment"), "birds/060.txt")


def test_a_model_file_tells_what_it_is_and_how_sure(place):
    told = info(str(place / "diagonal"))
    assert (told.model, told.metadata["n_objects"], told.metadata["n_held_out"]) == ("DiagonalAROMA", 90, 18)
    assert told.n_triplets == 2_000
    assert 0 < told.n_updates < 2_000
    assert 0 < told.mean_variance < 1
    assert told.share_correct > 0.8
    assert told.n_predicted == 5_000
    model = am.load(place / "diagonal").model
    assert told.mean_variance == pytest.approx(model.Sigma_.mean())
    assert info(str(place / "factored")).mean_variance < 1
    assert not info(str(place / "embedding")).has_std
    json.dumps(told.to_dict())


def test_an_adapter_and_a_file_of_a_learner_can_be_told_of(tmp_path):
    X = np.random.default_rng(0).normal(size=(20, 4))
    adapter = am.Adapter(X, random_state=0)
    adapter.judge(X[0], [1], [2])
    adapter.save(tmp_path / "a")
    told = info(str(tmp_path / "a"))
    assert (told.model, told.parameters["n_objects"], told.metadata) == ("Adapter", 20, {})
    with pytest.raises(ModelFileError, match="a contains an adapter"):
        search(str(tmp_path / "a"), like="0", data="x.npy")
    am.Euclidean().fit(X).save(tmp_path / "e")
    assert info(str(tmp_path / "e")).n_triplets is None
    (tmp_path / "text").write_text("no model at all")
    with pytest.raises(ModelFileError, match="text is not an aromatch model file"):
        info(str(tmp_path / "text"))

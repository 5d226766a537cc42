"""The demo on a small corpus: figures that can be computed again, neighbours that are what they claim."""

import json
from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from numpy.testing import assert_allclose
from rich.console import Console
from sklearn.metrics import average_precision_score

from aromatch import DiagonalAROMA
from aromatch.cli.demo import render
from aromatch.cli.rendering import Screen
from aromatch.datasets import LabelledTexts
from aromatch.features import TextFeatures
from aromatch.triplets import from_labels
from aromatch.workflows import demo
from aromatch.workflows.demo import run_demo

METHODS = ["cosine", "OASIS", "d-AROMA", "f-AROMA", "embedding"]


def small_corpus(n_classes=6, n_texts=40):
    """Texts of six words: two of the class's own twelve, four that all classes share."""
    rng = np.random.default_rng(7)
    texts, labels, names = [], [], []
    for number in range(n_classes):
        for text in range(n_texts):
            own = [f"word{number}{letter}" for letter in rng.choice(list("abcdefghijkl"), 2, replace=False)]
            shared = [f"common{letter}" for letter in rng.choice(list("abcdefgh"), 4, replace=False)]
            texts.append(" ".join(rng.permutation(own + shared)))
            labels.append(f"module{number}")
            names.append(f"module{number}.thing{text}")
    return LabelledTexts(texts, np.array(labels), names)


@pytest.fixture(scope="module")
def corpus():
    return small_corpus()


@pytest.fixture(scope="module")
def report(corpus):
    return run_demo(seed=3, n_triplets=3000, corpus=corpus)


def without_times(report):
    results = [replace(result, seconds=0.0) for result in report.results]
    return replace(report, results=results, seconds=0.0)


def d_aroma_by_hand(corpus, seed, n_triplets):
    """Give features and model, and the vectors and labels of the held-out part."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(240)
    training, held_out = order[:156], order[156:]
    texts = np.array(corpus.texts)
    features = TextFeatures(1000).fit(texts[training], corpus.labels[training])
    triplets = from_labels(corpus.labels[training], n_triplets, rng)
    model = DiagonalAROMA(r=1.0, init="identity")
    model.fit_triplets(triplets, features.transform(texts[training]))
    return features, model, features.transform(texts[held_out]).toarray(), corpus.labels[held_out]


def shown(report, is_ascii=False):
    screen = Screen()
    screen.terminal = Console(width=80, force_terminal=False, record=True, file=StringIO())
    screen.is_ascii = is_ascii
    render(screen, report)
    return screen.terminal.export_text()


def test_every_method_is_measured_and_the_learners_beat_the_cosine_they_start_from(report):
    assert [result.method for result in report.results] == METHODS
    cosine, *learned = report.results
    for result in learned:
        assert result.mean_average_precision > cosine.mean_average_precision + 0.1
        assert result.n_triplets == 3000
        assert result.n_updates is None if result.method == "embedding" else 0 < result.n_updates <= 3000
        assert 0 <= result.precision_at_1 <= 1
        assert result.seconds > 0
    assert cosine.n_triplets == cosine.n_updates == 0


def test_the_sizes_are_those_of_the_corpus_and_of_its_split(report, corpus):
    assert report.n_entries == len(corpus) == 240
    assert (report.n_training, report.n_held_out) == (156, 84)
    assert report.n_modules == 6
    assert report.n_terms == 6 * 12 + 8
    assert report.seed == 3


def test_the_figures_can_be_computed_again_by_hand(report, corpus):
    _, model, vectors, y = d_aroma_by_hand(corpus, seed=3, n_triplets=3000)
    # Learned scores have no ties, so any way of ranking gives the same figures; cosines have a few.
    for result, W, tolerance in ((report.results[0], np.eye(80), 0.02), (report.results[2], model.W_, 1e-12)):
        figures = []
        for row, scores in enumerate(vectors @ W @ vectors.T):
            others = np.arange(84) != row
            relevant, scores = (y == y[row])[others], scores[others]
            first = relevant[np.argsort(-scores)]
            figures.append([first[0], first[:10].mean(), average_precision_score(relevant, scores)])
        ours = (result.precision_at_1, result.precision_at_10, result.mean_average_precision)
        assert_allclose(ours, np.mean(figures, axis=0), atol=tolerance, rtol=0)


def test_the_same_seed_gives_the_same_report_and_another_seed_another(report, corpus):
    assert without_times(run_demo(seed=3, n_triplets=3000, corpus=corpus)) == without_times(report)
    assert run_demo(seed=4, n_triplets=300, corpus=corpus).results[0] != report.results[0]


def test_all_learners_learn_from_the_same_number_of_triplets(corpus):
    report = run_demo(n_triplets=400, corpus=corpus)
    assert [result.n_triplets for result in report.results] == [0, 400, 400, 400, 400]


def test_queries_are_of_different_modules_with_neighbours_that_are_marked_rightly(report, corpus):
    text_of = dict(zip(corpus.names, corpus.texts, strict=True))
    assert len(report.queries) == 3
    assert len({query.module for query in report.queries}) == 3
    for query in report.queries:
        assert query.text == text_of[query.name]
        assert query.name.startswith(f"{query.module}.")
        for neighbours in (query.before, query.after):
            assert len({neighbour.name for neighbour in neighbours} - {query.name}) == 5
            assert [n.score for n in neighbours] == sorted((n.score for n in neighbours), reverse=True)
            for neighbour in neighbours:
                assert neighbour.name.startswith(f"{neighbour.module}.")
                assert neighbour.same_module == (neighbour.module == query.module)
        before, after = ([n.same_module for n in found] for found in (query.before, query.after))
        assert sum(before) != sum(after)


def test_scores_of_neighbours_are_those_of_the_cosine_and_of_the_embedding(monkeypatch, corpus):
    monkeypatch.setattr(demo, "LEARNERS", [(demo.EMBEDDING, DiagonalAROMA, {"r": 1.0, "init": "identity"})])
    report = run_demo(seed=3, n_triplets=500, corpus=corpus)
    features, model, _, _ = d_aroma_by_hand(corpus, seed=3, n_triplets=500)
    text_of = dict(zip(corpus.names, corpus.texts, strict=True))
    for query in report.queries:
        q = features.transform([query.text]).toarray()[0]
        before, after = (
            features.transform([text_of[n.name] for n in found]).toarray() for found in (query.before, query.after)
        )
        assert_allclose([n.score for n in query.before], before @ q, rtol=1e-12)
        assert_allclose([n.score for n in query.after], q @ model.W_ @ after.T, rtol=1e-12)


def test_the_first_query_of_each_module_is_the_one_shown(monkeypatch, corpus, report):
    monkeypatch.setattr(demo, "N_QUERIES", 1)
    assert run_demo(seed=3, n_triplets=3000, corpus=corpus).queries == report.queries[:1]
    monkeypatch.setattr(demo, "N_QUERIES", 6)
    queries = run_demo(seed=3, n_triplets=3000, corpus=corpus).queries
    assert len(queries) == 6
    assert queries[:3] == report.queries


def test_names_that_are_private_and_texts_of_several_lines_are_not_shown_as_queries(corpus):
    names = [name.replace("module0.", "module0._") for name in corpus.names]
    texts = [text.replace(" ", "\n", 1) if "word1" in text else text for text in corpus.texts]
    report = run_demo(n_triplets=300, corpus=LabelledTexts(texts, corpus.labels, names))
    assert report.queries
    assert not {query.module for query in report.queries} & {"module0", "module1"}


def test_the_report_goes_through_json_unchanged(report):
    assert json.loads(json.dumps(report.to_dict())) == report.to_dict()
    assert report.to_dict()["results"][2]["settings"] == {"r": 1.0, "init": "identity"}


def test_the_printed_report_says_what_the_report_says_within_80_columns(report):
    text = shown(report)
    assert "seed 3" in text
    assert max(map(len, text.splitlines())) <= 80
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.strip()}
    for result in report.results:
        figures = (result.precision_at_1, result.precision_at_10, result.mean_average_precision)
        assert rows[result.method][:3] == [f"{figure:.3f}" for figure in figures]
    for query in report.queries:
        assert query.name in text
        assert query.text in text
    hits = sum(n.same_module for query in report.queries for n in query.before + query.after)
    assert text.count("✓ module") == hits


def test_a_plain_rendering_is_ascii(report):
    text = shown(report, is_ascii=True)
    assert text.isascii()
    assert "+ module" in text


def test_the_report_ends_with_commands_to_try_next_also_without_queries(report):
    for one in (report, replace(report, queries=[])):
        last = [line for line in shown(one).splitlines() if line.strip()][-3:]
        assert all(line.split()[0] == "aromatch" for line in last)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"seed": -1}, ValueError, "seed must be at least 0, got -1"),
        ({"seed": "x"}, TypeError, "seed must be"),
        ({"n_triplets": 0}, ValueError, "n_triplets must be at least 1, got 0"),
        ({"n_triplets": 1.5}, TypeError, "n_triplets must be"),
    ],
)
def test_bad_settings_are_refused_before_anything_is_read(settings, error, message):
    with pytest.raises(error, match=message):
        run_demo(**settings, corpus=None)

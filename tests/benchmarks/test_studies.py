"""The studies on small synthetic collections."""

import importlib.util
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from aromatch.paper.splits import Split
from benchmarks.shared import materials, report
from benchmarks.studies import __main__ as all_studies
from benchmarks.studies import asking, calibration, cranfield, embeddings, multiclass, spaces, study
from grouped_rows import groups


def split_of(name, number):
    X, y, X_test, y_test = groups(n_rows=160, n_groups=4, width=12, spread=0.4)
    order = np.random.default_rng(number).permutation(160)
    X, X_test = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (X[order], X_test))
    return Split(X, y[order].astype(str), X_test, y_test.astype(str))


@pytest.fixture
def shrink(monkeypatch):
    """Return a function that sets constants of a study and replaces its splits by synthetic ones."""

    def shrink(module, **values):
        if hasattr(module, "split_of"):
            values["split_of"] = split_of
        for key, value in values.items():
            monkeypatch.setattr(module, key, value)

    return shrink


def two_settings(methods):
    return {name: (*fixed, settings[:2]) for name, (*fixed, settings) in methods.items()}


def found_by(study, folder):
    """Compute all cells of a study and draw its figure; return its summary and its section of the page."""
    found = study.summary([function(*arguments) for function, *arguments in study.cells().values()])
    study.draw(found, folder)
    assert (folder / f"study_{study.NAME}.png").stat().st_size > 5_000
    text = "\n".join(study.section(found))
    assert f"(results/study_{study.NAME}.png)" in text
    return found, text


def test_every_study_has_a_unique_name_and_cells():
    assert len({one.NAME for one in all_studies.STUDIES}) == len(all_studies.STUDIES) == 6
    for one in all_studies.STUDIES:
        assert len(one.cells()) > 10


def test_learners_are_evaluated_on_queries_of_another_fold(shrink, tmp_path):
    shrink(cranfield, METHODS=two_settings(cranfield.METHODS), N_LSA=8, N_FOLDS=3, N_JUDGED=3, N_SAMPLED=3)
    rng = np.random.default_rng(0)
    topics = rng.integers(6, size=90)
    words = rng.poisson(0.2, size=(90, 60)) + 3 * (rng.random((90, 60)) < 0.3) * (np.arange(60) % 6 == topics[:, None])
    queries, objects = (sparse.csr_array(part) for part in np.split(words + (np.arange(60) == 0), [30]))
    gains = (topics[:30, None] == topics[None, 30:]) * rng.integers(1, 5, size=(30, 60)).astype(float)
    collection = cranfield.Collection(queries, objects, gains)
    shrink(cranfield, collection=lambda: collection)
    found, text = found_by(cranfield, tmp_path)
    assert found["n_queries"] == 30
    for one in found["methods"].values():
        assert all(0 < value <= 1 for values in one["folds"].values() for value in values)
    learned = np.mean(found["methods"]["d-AROMA from the cosine"]["folds"]["nDCG@10"])
    assert f"{learned:.3f}" in text


def test_reading_cranfield_numbers_queries_by_position_and_reverses_grades(tmp_path):
    documents = "".join(f".I {n}\n.T\nt\n.W\nwings of {word}s flow\n" for n, word in enumerate(("jet", "plane"), 1))
    (tmp_path / "cran.all.1400").write_text(documents)
    (tmp_path / "cran.qry").write_text(".I 001\n.W\nwhat wing\n.I 004\n.W\nflows\n")
    (tmp_path / "cranqrel").write_text("1 2 1 \n2 1 4\n2 2 -1\n")
    found = cranfield.read_collection(tmp_path)
    np.testing.assert_array_equal(found.gains, [[0, 4], [1, 0]])  # by position, not by the number after .I
    assert found.objects.shape == (2, 2)  # wing and flow; the others are in one abstract only
    assert cranfield.stemmed("The bodies, classes and gases of a bus") == ["body", "classe", "gase", "bus"]
    measured = cranfield.measured(np.array([[0.1, 0.9], [0.2, 0.7]]), found.gains)
    assert measured["nDCG@10"] == [1.0, pytest.approx(1 / np.log2(3))]
    assert measured["mAP"] == [1.0, 0.5]


def test_captions_retrieve_their_translations_without_shared_words(shrink, tmp_path):
    shrink(spaces, N_PAIRS=(30, 120), SPLITS=range(2), N_TRIPLETS=2_000)
    rng = np.random.default_rng(0)
    chosen = [rng.choice(40, 6, replace=False) for _ in range(180)]
    languages = [[2 * a + 2 * b for a in letters for b in letters] for letters in ("abcdefg", "opqrstu")]
    pairs = [tuple(" ".join(words[n] for n in one) for words in languages) for one in chosen]  # no letter in common
    shrink(spaces, all_captions=lambda: (pairs[:120], pairs[120:150], pairs[150:]))
    found, _ = found_by(spaces, tmp_path)
    assert found["chance"]["recall@1"] == pytest.approx(1 / 30)
    assert np.mean(found["at"]["120"]["d-AROMA"]["recall@1"]) > 0.9
    assert np.mean(found["at"]["120"]["cosine of shared words"]["recall@1"]) < 0.1


def test_tied_objects_have_their_mean_rank():
    measured = spaces.measured(np.zeros((3, 3)))
    assert measured == {"recall@1": 0.0, "recall@10": 1.0, "MRR": 0.5}


def test_classifiers_are_accurate_and_online_ones_report_mistakes(shrink, tmp_path):
    shrink(multiclass, SPLITS=range(2), N_POINTS=4)
    found, text = found_by(multiclass, tmp_path)
    for name, values in found["methods"].items():
        assert np.mean(values["accuracy"]) > 0.6, name
        assert ("mistakes" in values) == (name not in multiclass.BATCH_METHODS)
    assert f"{100 * np.mean(found['methods']['logistic regression']['accuracy']):.1f} %" in text


def test_strategies_of_asking_are_compared_by_the_judgements_they_need(shrink, tmp_path):
    values = {"CHECKPOINTS": (0, 20, 40), "MORE": (80,), "AT": (20, 40), "N_POOL": 400, "N_RESAMPLED": 20}
    seeds = {"SEEDS": {"materials": range(2), "banking77": range(2)}}
    shrink(asking, **values, **seeds, BATCH_SIZE={"materials": 5, "banking77": 10})
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 6))
    answers = np.column_stack([rng.integers(30, size=400), rng.integers(30, size=400), rng.integers(30, size=400)])
    away = [((X[answers[:, 0]] - X[answers[:, side]])[:, :2] ** 2).sum(axis=1) for side in (1, 2)]
    answers[away[0] > away[1]] = answers[away[0] > away[1]][:, [0, 2, 1]]
    judged = materials.Judged(X, answers[:300], answers[300:], np.tile([4, 1], (100, 1)))
    shrink(asking, materials=lambda: judged)
    found, text = found_by(asking, tmp_path)
    assert found["people"] == 0.8
    for name, strategies in found["curves"].items():
        assert strategies["random"]["n"] == [0, 20, 40, 80], name
        assert strategies["suggest_comparisons"]["n"] == [0, 20, 40]
    one = found["factors"]["materials"]["random"]["40"]
    assert one["most"] == 2
    assert asking.formatted(one) in text


def test_the_judgements_a_curve_needs_are_interpolated_between_its_points():
    needed = asking.needed
    assert needed([0, 100, 200], [0.5, 0.6, 0.55], 0.55) == pytest.approx(50)
    assert needed([0, 100, 200], [0.5, 0.6, 0.8], 0.7) == pytest.approx(150)
    assert needed([0, 100], [0.5, 0.6], 0.5) == 0
    assert needed([0, 100], [0.5, 0.6], 0.61) == np.inf


def test_features_of_pictures_have_unit_norm():
    pytest.importorskip("skimage", reason="scikit-image is not installed: pip install 'aromatch[image]'")
    pictures = np.random.default_rng(0).integers(256, size=(5, 20, 20, 3)).astype(np.uint8)
    rows = materials.as_rows([np.stack(group) for group in zip(*map(materials.described, pictures), strict=True)])
    assert rows.shape == (5, 42)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1)


def test_scaling_standard_deviations_improves_the_log_loss(shrink, tmp_path):
    sizes = {"N_TRIPLETS": (100, 400), "N_VALIDATION": 500, "N_TEST": 2_000}
    shrink(calibration, **sizes, NAMES=("banking77",), SPLITS=range(2))
    found, text = found_by(calibration, tmp_path)
    for *_, measures in calibration.flat(found):
        assert np.mean(measures["log loss, scaled"]) < np.mean(measures["log loss, raw"]) + 0.02
    assert text.count("| BANKING77") == 4


def test_the_fitted_scale_is_that_of_simulated_margins():
    rng = np.random.default_rng(0)
    means = 2 * rng.normal(size=50_000)
    outcomes = np.where(means + 0.5 * rng.normal(size=50_000) > 0, means, -means)
    assert calibration.best_scale(outcomes) == pytest.approx(0.5, rel=0.05)


def test_learners_on_embeddings_are_compared_by_quality_and_size(shrink, tmp_path):
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed: pip install 'aromatch[quality]'")
    methods = two_settings(embeddings.METHODS)
    methods["query adapter (torch)"][2][:] = [{"temperature": 0.1, "steps": 20}]
    shrink(embeddings, N_TRIPLETS=(200, 600), SPLITS=range(2), METHODS=methods)
    found, text = found_by(embeddings, tmp_path)
    last = found["at"]["600"]
    assert np.mean(last["OASIS"]["n_parameters"]) == 144
    assert np.mean(last["f-AROMA"]["n_parameters"]) == 3 * 144
    assert 0 < np.mean(last["TripletEmbedding"]["n_parameters"]) <= 144
    assert np.mean(last["LDA"]["mAP"]) > np.mean(last["cosine"]["mAP"])
    assert f"{np.mean(last['query adapter (torch)']['mAP']):.3f}" in text


def test_a_study_is_stored_once_all_its_cells_are_computed(shrink, tmp_path):
    shrink(study, STORED=tmp_path / "studies.json")
    toy = SimpleNamespace(NAME="toy", cells=lambda: {"a": (abs, -1), "b": (abs, -2)}, summary=sum)
    assert study.stored(toy) is None
    assert study.run(toy, 1) == 3
    assert study.stored(toy) == 3
    assert study.stored(SimpleNamespace(cells=lambda: {"c": (abs, -3)}, summary=sum)) is None


def test_tables_align_numbers_to_the_right():
    assert report.table(["a", "b"], [["x", 1.5], ["y", ""]])[1:-1] == [
        "| a | b |",
        "| --- | ---: |",
        "| x | 1.5 |",
        "| y |  |",
    ]


def test_settings_have_counts_if_splits_differ_and_small_p_values_are_bounded():
    assert study.chosen([{"r": 1}, {"r": 1}]) == "r 1"
    assert study.chosen([{"r": 1}, {"r": 2}, {"r": 1}]) == "r 1 (2); r 2 (1)"
    assert (study.p_value(0.0001), study.p_value(0.25)) == ("p < 0.001", "p = 0.25")


def test_the_page_has_a_section_for_every_study_even_if_it_is_incomplete():
    text = all_studies.make_page(dict.fromkeys(all_studies.STUDIES), {"aromatch": "0"})
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == [s.TITLE for s in all_studies.STUDIES]

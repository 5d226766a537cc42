"""Before and after: figures as other programs have them, paired tests, runs for trec_eval."""

import json

import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import AP, P, nDCG
from scipy import sparse, stats

import aromatch as am
from aromatch.workflows.evaluate import compare, evaluate
from aromatch.workflows.fitting import LearnerOptions
from aromatch.workflows.train import TrainOptions, train
from collections_on_disk import write_folder, write_jsonl, write_search, write_vectors


@pytest.fixture(scope="module")
def beir(tmp_path_factory):
    """A trained model, with the files that it was learned on."""
    place = write_search(tmp_path_factory.mktemp("beir"))
    names = {name: str(place / f"{name}.jsonl") for name in ("corpus", "queries")}
    qrels = str(place / "qrels.tsv")
    train(TrainOptions(names["corpus"], str(place / "m"), queries=names["queries"], qrels=qrels, hold_out=0.3))
    return place


def test_figures_by_grades_are_those_of_trec_eval(beir, tmp_path):
    run = str(tmp_path / "m.run")
    report = evaluate(str(beir / "m"), run=run, ks=(1, 5), trust_recorded_paths=True)
    assert report.runs == [run, f"{run}.baseline"]
    grades = [line.split("\t") for line in (beir / "qrels.tsv").read_text().splitlines()[1:]]
    found = {one.query_id for one in ir_measures.read_trec_run(run)}
    assert len(found) == report.n_queries == 11
    judged = [ir_measures.Qrel(query, one, int(grade)) for query, one, grade in grades if query in found]
    for name, side in ((run, "learned"), (f"{run}.baseline", "baseline")):
        theirs = ir_measures.calc_aggregate([AP, P @ 1, P @ 5, nDCG @ 5], judged, ir_measures.read_trec_run(name))
        ours = {one.name: getattr(one, side) for one in report.measures}
        if side == "learned":  # ties of the cosine stand in an order of our own
            assert {str(name).replace("AP", "mAP"): value for name, value in theirs.items()} == pytest.approx(
                {name: ours[name] for name in ("mAP", "P@1", "P@5", "nDCG@5")}, abs=1e-4
            )
        else:
            assert theirs[P @ 5] == pytest.approx(ours["P@5"], abs=0.1)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.integers(2, 30), st.integers(1, 6))
def test_grades_of_labels_give_the_figures_of_labels(seed, n_objects, n_queries):
    rng = np.random.default_rng(seed)
    Q, objects = rng.normal(size=(n_queries, 4)).round(1), rng.normal(size=(n_objects, 4)).round(1)
    y, y_objects = rng.integers(2, size=n_queries), rng.integers(2, size=n_objects)
    if not np.isin(y, y_objects).any():
        return
    by_labels = am.evaluation.evaluate_retrieval(am.Cosine(), Q, y, objects, y_objects, ks=(1, 3))
    grades = sparse.csr_array((y[:, np.newaxis] == y_objects).astype(float))
    by_grades = am.evaluation.evaluate_retrieval(am.Cosine(), Q, P=objects, qrels=grades, ks=(1, 3))
    np.testing.assert_allclose(by_grades.average_precision, by_labels.average_precision)
    for k in (1, 3):
        np.testing.assert_allclose(by_grades.precision_per_query[k], by_labels.precision_per_query[k])
        np.testing.assert_allclose(by_grades.ndcg_per_query[k], by_labels.ndcg_per_query[k])
    assert by_grades.n_queries_left_out == by_labels.n_queries_left_out


def test_a_difference_is_tested_by_the_paired_t_test_of_scipy():
    rng = np.random.default_rng(0)
    before, after = rng.random(50), rng.random(50) + 0.1
    found = compare("mAP", before, after)
    assert found.p == pytest.approx(stats.ttest_rel(after, before).pvalue)
    assert found.difference == pytest.approx((after - before).mean())
    margin = stats.t.ppf(0.975, 49) * (after - before).std(ddof=1) / np.sqrt(50)
    assert found.error == pytest.approx(margin)
    same = compare("mAP", before, before)
    assert (same.difference, same.p) == (0.0, 1.0)
    assert compare("mAP", before[:1], after[:1]).p is None
    assert compare("mAP", None, after).baseline is None


def test_queries_that_were_learned_from_are_left_out_wherever_they_come_from(beir, tmp_path):
    everything = evaluate(str(beir / "m"), include_training=True, trust_recorded_paths=True)
    assert everything.n_queries == 36
    assert any("are biased" in note for note in everything.notes)
    renamed = [json.loads(line) for line in (beir / "queries.jsonl").read_text().splitlines()]
    for one in renamed:
        one["_id"] = "other " + one["_id"]
    queries = write_jsonl(tmp_path / "queries.jsonl", renamed)
    qrels = tmp_path / "qrels.tsv"
    lines = (beir / "qrels.tsv").read_text().splitlines()[1:]
    qrels.write_text("".join(f"other {line}\n" for line in lines))
    report = evaluate(
        str(beir / "m"), data=str(beir / "corpus.jsonl"), queries=str(queries), files={"qrels": str(qrels)}
    )
    assert (report.n_queries, report.n_training_left_out) == (11, 25)


def test_figures_that_flatter_are_told_to_do_so(tmp_path):
    folder = write_folder(tmp_path / "notes", n_each=8)
    train(TrainOptions(str(folder), str(tmp_path / "m"), learner=LearnerOptions("moment")))
    report = evaluate(str(tmp_path / "m"), data=str(folder))
    assert report.n_queries == 24
    assert "all queries are training queries" in report.notes[0]


def test_comparisons_that_come_out_right_are_counted_by_query(tmp_path):
    np.save(tmp_path / "x.npy", np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [0.6, 0.8]]))
    am.DiagonalAROMA(init="identity").fit_triplets([], np.eye(2)).save(tmp_path / "m")
    (tmp_path / "t.csv").write_text("0,1,2\n0,2,1\n2,3,1\n")
    report = evaluate(str(tmp_path / "m"), data=str(tmp_path / "x.npy"), files={"triplets": str(tmp_path / "t.csv")})
    (measure,) = report.measures
    assert (measure.name, measure.baseline, measure.learned, report.n_queries) == ("correct", 0.75, 0.75, 2)
    with pytest.raises(ValueError, match="--run needs labels or qrels"):
        evaluate(
            str(tmp_path / "m"),
            data=str(tmp_path / "x.npy"),
            files={"triplets": str(tmp_path / "t.csv")},
            run=str(tmp_path / "run"),
        )


def test_data_of_another_kind_or_width_is_refused(beir, tmp_path):
    path = write_vectors(tmp_path / "x.csv")
    with pytest.raises(ValueError, match=r"x\.csv has vectors, but the model was trained on texts"):
        evaluate(str(beir / "m"), data=str(path))
    train(TrainOptions(str(path), str(tmp_path / "v"), learner=LearnerOptions("moment")))
    other = write_vectors(tmp_path / "y.csv", width=5)
    with pytest.raises(ValueError, match=r"y\.csv has 5 features, but the model was trained on 12"):
        evaluate(str(tmp_path / "v"), data=str(other))


def test_a_model_that_does_not_tell_what_it_was_learned_on_asks_for_the_data(tmp_path):
    am.DiagonalAROMA().fit_triplets([[0, 1, 2]], np.eye(3)).save(tmp_path / "m")
    with pytest.raises(ValueError, match="--data"):
        evaluate(str(tmp_path / "m"))


def test_ids_with_spaces_are_one_word_in_a_run(tmp_path):
    folder = write_folder(tmp_path / "notes", n_each=4)
    (folder / "fruit" / "with a space.txt").write_text("apple pear plum")
    train(TrainOptions(str(folder), str(tmp_path / "m"), learner=LearnerOptions("moment")))
    evaluate(str(tmp_path / "m"), data=str(folder), run=str(tmp_path / "run"))
    lines = [line.split() for line in (tmp_path / "run").read_text().splitlines()]
    assert {len(line) for line in lines} == {6}
    assert "fruit/with_a_space.txt" in {line[2] for line in lines}
    assert all(line[0] != line[2] for line in lines)

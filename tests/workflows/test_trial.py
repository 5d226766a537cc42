"""Trials: measures against loops, verdicts on logs whose truth is known, and the shipped file."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse, special
from sklearn.preprocessing import normalize

import aromatch as am
from aromatch.exceptions import ModelFileError
from aromatch.io.container import read_model, write_model
from aromatch.io.items import Items
from aromatch.workflows.bundle import TrainedModel
from aromatch.workflows.evaluate import Measure, compare
from aromatch.workflows.preparation import Preparation
from aromatch.workflows.trial import run_trial
from aromatch.workflows.trial import verdict as verdicts
from aromatch.workflows.trial.log import JudgedList, read_log
from aromatch.workflows.trial.measures import are_near, measure
from aromatch.workflows.trial.methods import TrialRows, methods
from aromatch.workflows.trial.rocchio import Rocchio
from aromatch.workflows.trial.verdict import MethodReport, decide
from collections_on_disk import WORDS, texts_and_labels, write_jsonl
from simulated_logs import write_log


def rows_of(ids):
    return np.array(ids, dtype=np.int64)


def judged(query, good, bad, others=None):
    others = bad if others is None else others
    return JudgedList(query, rows_of(good), rows_of(bad), rows_of([*good, *others]), rows_of(others))


# -- reading ----------------------------------------------------------------------------------------------------------

VECTORS = Items("objects", ["a", "b", "c", "d"], vectors=np.eye(4))


def test_lists_come_in_the_order_of_time_and_clicks_tell_what_was_passed_over(tmp_path):
    log = write_jsonl(
        tmp_path / "log.jsonl",
        [
            {"query": "a", "shown": ["b", "c", "d"], "clicked": "c", "time": 5},
            {"query": "b", "shown": ["d", "a"], "clicked": [], "time": 4},
            {"query": "d", "shown": ["c", "b", "a"], "clicked": ["a", "c"], "time": 3},
        ],
    )
    found = read_log(str(log), "clicks", VECTORS, None, missing="error")
    assert [found.queries.ids[one.query] for one in found.lists] == ["d", "a"]
    assert [found.own_rows[one.query] for one in found.lists] == [3, 0]
    first, second = found.lists
    assert (first.good.tolist(), first.bad.tolist(), first.others.tolist()) == ([2, 0], [1], [1])
    assert (second.good.tolist(), second.bad.tolist(), second.others.tolist()) == ([2], [1], [1, 3])
    assert (found.n_empty, found.has_times) == (1, True)


def test_a_csv_file_has_ids_with_spaces_between_and_what_is_gone_can_be_left_out(tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("query,good,bad\na,b gone,c\n")
    with pytest.raises(ValueError, match=r"line 2: unknown object id 'gone'.*--missing skip"):
        read_log(str(log), "judgements", VECTORS, None, missing="error")
    found = read_log(str(log), "judgements", VECTORS, None, missing="skip")
    assert (found.lists[0].good.tolist(), found.n_unknown, found.has_times) == ([1], 1, False)


def test_words_that_somebody_typed_are_queries_of_texts(tmp_path):
    texts = Items("texts", ["x", "y"], texts=["red tea", "green car"])
    log = write_jsonl(tmp_path / "log.jsonl", [{"query": q, "good": ["x"], "bad": ["y"]} for q in ("hot tea", "y")])
    found = read_log(str(log), "judgements", texts, None, missing="error")
    assert found.queries.texts == ["hot tea", "green car"]
    assert found.own_rows.tolist() == [-1, 1]


def test_an_object_does_not_look_for_itself_ids_may_have_spaces_and_times_may_be_dates(tmp_path):
    items = Items("objects", ["a", "note 1", "c"], vectors=np.eye(3))
    log = tmp_path / "log.csv"
    log.write_text("query,good,bad,time\na,note 1,a c,2024-05-01T10:00:00\nc,a,note 1,2024-04-30T09:00:00+00:00\n")
    found = read_log(str(log), "judgements", items, None, missing="error")
    assert [(found.queries.ids[one.query], one.good.tolist(), one.bad.tolist()) for one in found.lists] == [
        ("c", [0], [1]),
        ("a", [1], [2]),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"query": "nobody", "good": ["a"], "bad": ["b"]}, "line 1: unknown object id 'nobody'"),
        ({"query": "a", "good": ["b"]}, "line 1 has no 'bad'"),
        ({"query": "a", "good": ["b"], "bad": ["b"]}, "line 1: good and bad must be disjoint"),
        ({"query": "a", "good": {"b": 1}, "bad": []}, "line 1: good must be a list of ids"),
        ({"query": "a", "good": ["b"], "bad": ["c"], "time": "noon"}, "line 1: the time must be a finite number"),
        ({"query": "a", "good": [], "bad": []}, "no list with judgements"),
    ],
)
def test_lines_that_say_nothing_sensible_are_named(tmp_path, line, message):
    log = write_jsonl(tmp_path / "log.jsonl", [line])
    with pytest.raises(ValueError, match=message):
        read_log(str(log), "judgements", VECTORS, None, missing="error")


def test_what_was_clicked_must_have_been_shown_and_times_must_be_everywhere(tmp_path):
    log = write_jsonl(tmp_path / "log.jsonl", [{"query": "a", "shown": ["b"], "clicked": ["c"]}])
    with pytest.raises(ValueError, match="clicked, but is not in shown"):
        read_log(str(log), "clicks", VECTORS, None, missing="error")
    lists = [{"query": "a", "good": ["b"], "bad": ["c"]}, {"query": "b", "good": ["a"], "bad": ["c"], "time": 1}]
    with pytest.raises(ValueError, match="1 of 2 lines have a time"):
        read_log(str(write_jsonl(log, lists)), "judgements", VECTORS, None, missing="error")


def test_lists_with_only_good_or_only_bad_objects_are_counted_in_a_note(tmp_path):
    objects = write_jsonl(tmp_path / "objects.jsonl", [{"id": one, "vector": [1, at]} for at, one in enumerate("abc")])
    lists = [{"query": "a", "good": ["b"], "bad": bad} for bad in (["c"], [], [])]
    log = write_jsonl(tmp_path / "log.jsonl", lists)
    report = run_trial(str(objects), str(log), kind="judgements", output=str(tmp_path / "trial"), verbose=False)
    assert any(note.startswith("2 of 3 lists") for note in report.notes)


def test_the_adapter_of_a_trial_learns_all_clicks_of_a_list():
    P, one = np.eye(4), JudgedList(0, *map(rows_of, ([2, 3], [1], [1, 2, 3], [1])))
    trained = next(each for each in methods(4) if each.name == "adapter").train(TrialRows(P, P), [one], "clicks", 0)
    expected = am.Adapter(P, random_state=0)
    expected.click(P[:1], [1, 2, 3], [2, 3])
    np.testing.assert_array_equal(trained.similarity(P, P), expected.similarity(P, P))


# -- measuring --------------------------------------------------------------------------------------------------------


class Fixed:
    """Scores that are given, by the first feature of a query."""

    def __init__(self, scores):
        self.scores = np.asarray(scores, dtype=float)

    def similarity(self, Q, P):
        return self.scores[np.asarray(Q)[:, 0].astype(int)].copy()


def test_figures_are_those_of_loops_over_pairs():
    rng = np.random.default_rng(0)
    n_queries, n_objects = 6, 30
    scorer = Fixed(rng.normal(size=(n_queries, n_objects)).round(1))
    rows = TrialRows(np.arange(n_queries)[:, np.newaxis].astype(float), np.zeros((n_objects, 1)))
    itself = rows_of([3, -1, 7, -1, -1, -1])
    lists = []
    for query in (0, 1, 1, 2, 4, 5):
        chosen = rng.permutation(n_objects)[:9]
        chosen = chosen[chosen != itself[query]]
        lists.append(judged(query, chosen[:3], chosen[3:5], chosen[3:]))
    lists.append(judged(5, [0], [], [1, 2]))  # nothing was passed over
    found = measure(scorer, rows, lists, itself)
    for place, query in enumerate((0, 1, 2, 4, 5)):
        expected = []
        for one in (each for each in lists if each.query == query):
            s = scorer.scores[query]
            shares = []
            for others in (one.others, one.bad):
                pairs = [(s[g] > s[b]) + 0.5 * (s[g] == s[b]) for g in one.good for b in others]
                shares.append(np.mean(pairs) if pairs else np.nan)
            best_good, best_other = s[one.good].max(), s[one.others].max()
            first = 0.5 if best_good == best_other else float(best_good > best_other)
            order = sorted((row for row in range(n_objects) if row != itself[query]), key=lambda row: (-s[row], row))
            expected.append([shares[0], first, np.mean([row in one.shown for row in order[:10]]), shares[1]])
        assert [column[place] for column in found] == pytest.approx(np.nanmean(expected, axis=0).tolist())


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_near_are_queries_as_near_to_a_judged_one_as_most_of_these_are_to_each_other(container):
    angles = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 3.0, 0.25, 1.5])
    Q = container(np.stack([np.cos(angles), np.sin(angles)], axis=1))
    near = are_near(TrialRows(Q, Q), rows_of([0, 1, 2, 3, 4]), rows_of([2, 5, 6, 7]))
    assert near.tolist() == [True, False, True, False]


def test_rocchio_moves_a_query_towards_what_was_good_for_the_nearest_one():
    P = np.eye(4)
    model = Rocchio(P)
    model.judge(P[:1], [2], [3])
    model.judge(sparse.csr_array(P[1:2]), [3], [])
    query = np.array([[0.9, 0.1, 0, 0]])
    np.testing.assert_allclose(model.similarity(query, P), [[0.9, 0.1, 0.75, -0.15]])
    np.testing.assert_allclose(
        model.similarity(sparse.csr_array(query), sparse.csr_array(P)), model.similarity(query, P)
    )


def test_a_click_is_feedback_about_the_objects_above_it():
    P = np.eye(4)
    clicked, judged_list = Rocchio(P), Rocchio(P)
    for _ in range(20):  # more than fit at first
        clicked.click(P[:1], np.array([2, 1, 3]), 1)
        judged_list.judge(P[:1], [1], [2])
    np.testing.assert_array_equal(clicked.similarity(P, P), judged_list.similarity(P, P))


def test_wide_rows_are_tried_without_what_would_not_fit():
    names = [[one.name for one in methods(width)] for width in (100, 3_000, 100_000)]
    assert set(names[0]) - set(names[1]) == {"f-AROMA"}
    assert names[2] == ["cosine", "adapter"]


# -- deciding ---------------------------------------------------------------------------------------------------------


FAR = "queries far from judged ones"


def measured(name, baseline, difference, error):
    p = float(special.erfc(1.96 * abs(difference) / error / np.sqrt(2)))
    return Measure(name, baseline, baseline + difference, difference, error, p)


def told(name, gain=0.0, error=0.005, judged_share=1.0, worse="", skipped=None, untested=()):
    correct = measured("correct", 0.7, gain, error)
    parts = correct, correct, worse, list(untested)
    return MethodReport(name, {}, correct, correct, judged_share, skipped, *parts, 1.0)


@pytest.mark.parametrize(
    ("results", "decision", "method", "reason"),
    [
        ([told("adapter", 0.05)], "ship", "adapter", "adapter orders 5.0% .* more comparisons correctly.*get worse$"),
        ([told("adapter", 0.05, untested=[FAR])], "ship", "adapter", "too few queries far"),
        ([told("OASIS", 0.08), told("adapter", 0.05)], "ship", "OASIS", "8.0%"),
        (
            [told("OASIS", 0.08, worse=FAR), told("adapter", 0.05)],
            "ship",
            "adapter",
            "adapter",
        ),
        ([told("OASIS", 0.08, judged_share=0.5), told("adapter", 0.05)], "ship", "adapter", "adapter"),
        ([told("Rocchio", 0.2), told("adapter", 0.0, error=0.02)], "not enough evidence", None, "not significant"),
        ([told("adapter", 0.02, error=0.03)], "not enough evidence", None, "not significant"),
        ([told("adapter", 0.02, error=0.018)], "ship", "adapter", "2.0%"),
        (
            [told("OASIS"), told("adapter", 0.02, error=0.018)],  # the best of two
            "not enough evidence",
            None,
            r"2 methods \(p = 0.06\)",
        ),
        ([told("adapter", 0.009, error=0.002)], "not enough evidence", None, "less than the 1% required"),
        ([told("adapter", 0.004, error=0.002)], "don't ship", None, "there is no gain"),  # not worth having
        ([told("adapter", -0.05)], "don't ship", None, "5.0% .* fewer comparisons correctly: there is no gain"),
        ([told("OASIS", 0.08, judged_share=0.5)], "not enough evidence", None, "results were judged"),
        (
            [told("OASIS", 0.08, worse=FAR)],
            "don't ship",
            None,
            "far from judged ones are likely to get worse",
        ),
    ],
)
def test_the_decision_follows_from_intervals_parts_and_what_was_judged(results, decision, method, reason):
    found = decide([told("cosine"), *results], ("OASIS", "adapter"), "judgements")
    assert (found.decision, found.method) == (decision, method)

    assert re.search(reason, found.reason)


def test_where_hardly_anything_was_judged_nothing_is_shipped():
    results = [told("cosine", judged_share=0.05), told("adapter", 0.1, judged_share=0.05)]
    assert decide(results, ("adapter",), "judgements").decision == "not enough evidence"


def test_differences_that_are_all_the_same_are_told_by_their_signs():
    assert compare("right", np.zeros(20), np.ones(20)).error == 0.0
    assert compare("right", np.zeros(3), np.ones(3)).error is None


def test_clicks_that_say_two_things_are_not_enough():
    skipped = measured("skipped", 0.0, 0.3, 0.1)
    results = [told("cosine"), told("adapter", -0.01, skipped=skipped)]
    assert decide(results, ("adapter",), "clicks").decision == "not enough evidence"
    assert decide(results, ("adapter",), "judgements").decision == "don't ship"


def test_what_gets_worse_by_more_than_chance_is_named():
    rng = np.random.default_rng(0)
    near = np.arange(100) < 60
    right = rng.random(100)
    base = verdicts.QueryMeasures(right, right, np.ones(100), right)
    lower = np.where(near, right, right - 0.2 - 0.1 * rng.random(100))
    found = verdicts.compare_method("x", {}, base, verdicts.QueryMeasures(lower, right, np.ones(100), right), near, 0.0)
    assert found.worse_part == "all queries"
    mixed = np.where(near, right + 0.3 * rng.random(100), lower)
    found = verdicts.compare_method("x", {}, base, verdicts.QueryMeasures(mixed, right, np.ones(100), right), near, 0.0)
    assert found.worse_part == FAR
    assert found.far.difference == pytest.approx(compare("correct", right[~near], mixed[~near]).difference)
    unsure = right + np.where(near, 0.0, rng.normal(scale=0.3, size=100))  # nobody can rule a loss out
    found = verdicts.compare_method(
        "x", {}, base, verdicts.QueryMeasures(unsure, right, np.ones(100), right), near, 0.0
    )
    assert found.worse_part == FAR
    same = verdicts.compare_method("x", {}, base, base, np.arange(100) < 95, 0.0)
    assert (same.worse_part, same.untested_parts) == ("", [FAR])


# -- whole trials -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    """A trial of judgements that are right, with its arguments."""
    arguments = write_log(tmp_path_factory.mktemp("right"), n_lists=300)
    return arguments, run_trial(**arguments)


def test_right_judgements_of_a_poor_search_are_worth_shipping(shipped):
    arguments, report = shipped
    assert report.verdict.decision == "ship"
    names = [one.name for one in report.results]
    assert names == ["cosine", "Rocchio", "OASIS", "d-AROMA", "f-AROMA", "MomentAROMA", "embedding", "adapter"]
    best = next(one for one in report.results if one.name == report.verdict.method)
    assert best.correct.difference - best.correct.error > 0
    assert report.n_training_lists >= 30
    assert 0 < report.n_near <= report.n_queries
    assert json.loads((Path(arguments["output"]) / "trial.json").read_text()) == json.loads(
        json.dumps(report.to_dict())
    )
    assert (Path(arguments["output"]) / "trial.png").read_bytes().startswith(b"\x89PNG")


def test_the_lines_that_are_printed_search_the_index_that_a_team_has(shipped):
    faiss = pytest.importorskip("faiss", reason="faiss is not there: pip install faiss-cpu")
    arguments, report = shipped
    objects, queries = (np.load(arguments[name])["X"] for name in ("data", "queries"))
    index = faiss.IndexFlatIP(objects.shape[1])
    names = {"index": index, "queries": queries[:5], "objects": objects, "aromatch": am}
    exec("\n".join(report.code), names)  # as a person would paste them
    model = names["model"]
    assert model.metric_ == "dot"
    scores = model.transform(queries[:5]) @ model.transform_objects(objects).T
    found = np.take_along_axis(scores, names["found"][1], axis=1)
    np.testing.assert_allclose(found, -np.sort(-scores, axis=1)[:, :10], rtol=1e-4)  # the index has single precision


def test_the_same_log_gives_the_same_report_and_the_same_file(shipped, tmp_path):
    arguments, report = shipped
    again = run_trial(**{**arguments, "output": str(tmp_path / "again")})
    for first, second in zip(report.results, again.results, strict=True):
        assert first.correct == second.correct
    files = [Path(folder) / "shipped.safetensors" for folder in (arguments["output"], tmp_path / "again")]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_judgements_at_random_ship_nothing_and_leave_no_file_of_before(shipped, tmp_path):
    arguments = write_log(tmp_path, n_lists=300, wrong=0.5)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "shipped.safetensors").write_bytes(b"of an earlier trial")
    report = run_trial(**arguments)
    assert report.verdict.decision != "ship"
    assert report.code == []
    assert not (tmp_path / "out" / "shipped.safetensors").exists()


def test_clicks_are_replayed_too(tmp_path):
    report = run_trial(**write_log(tmp_path, n_lists=300, kind="clicks", spread=0.8))
    base, *others = report.results
    assert base.correct.learned > 0.8  # people click what stands first
    assert report.verdict.decision in ("ship", "don't ship", "not enough evidence")
    assert all(one.skipped is not None for one in others)
    assert base.skipped.learned == 0.0  # the search that made the lists


def test_lists_that_were_there_before_are_no_evidence(tmp_path):
    arguments = write_log(tmp_path, n_lists=150, wrong=0.5)
    log = tmp_path / "log.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    write_jsonl(log, [*lines, *({**line, "time": line["time"] + 1000} for line in lines)])
    report = run_trial(**{**arguments, "later": 0.5})
    assert report.n_queries == 0
    assert report.verdict.decision == "not enough evidence"
    assert any("repeat an older one" in note for note in report.notes)


def test_vectors_too_wide_for_most_are_tried_with_the_rest(tmp_path):
    rng = np.random.default_rng(0)
    objects = sparse.random_array((60, 30_000), density=0.001, rng=rng, format="csr")
    sparse.save_npz(tmp_path / "objects.npz", objects)
    lines = [{"query": str(q), "good": [str((q + 1) % 60)], "bad": [str((q + 2) % 60)]} for q in [*range(60)] * 2]
    for number, line in enumerate(lines[60:]):
        line["bad"] = [str((number + 3) % 60)]
    write_jsonl(tmp_path / "log.jsonl", lines)
    report = run_trial(
        str(tmp_path / "objects.npz"),
        str(tmp_path / "log.jsonl"),
        kind="judgements",
        output=str(tmp_path / "out"),
        verbose=False,
    )
    assert [one.name for one in report.results] == ["cosine", "adapter"]
    assert sum("was left out: 30,000 features" in note for note in report.notes) == 6


def test_a_log_with_too_little_in_it_gets_no_verdict(tmp_path):
    report = run_trial(**write_log(tmp_path, n_lists=40))
    assert report.verdict.decision == "not enough evidence"
    assert "at least 30 of each" in report.verdict.reason
    assert report.results == []


def test_texts_and_typed_words_are_shipped_with_their_terms(tmp_path):
    texts, labels = texts_and_labels(60)
    write_jsonl(tmp_path / "texts.jsonl", [{"id": f"t{at}", "text": text} for at, text in enumerate(texts)])
    rng = np.random.default_rng(0)
    lines = []
    for number in range(200):
        name = list(WORDS)[number % 3]
        some = rng.permutation(len(texts))[:10]
        good = labels[some] == name
        if good.any() and not good.all():
            query = f"{rng.choice(WORDS[name])} {rng.choice(WORDS[name])} case"
            lines.append({"query": query, "good": [f"t{i}" for i in some[good]], "bad": [f"t{i}" for i in some[~good]]})
    write_jsonl(tmp_path / "log.jsonl", lines)
    report = run_trial(
        str(tmp_path / "texts.jsonl"),
        str(tmp_path / "log.jsonl"),
        kind="judgements",
        output=str(tmp_path / "out"),
        verbose=False,
    )
    assert report.notes[:2] == [
        "lines have no time: they are used in order",
        f"0 queries are ids of objects, {len({line['query'] for line in lines})} are words",
    ]
    assert any(note.startswith("the cosine of all words") for note in report.notes)
    if report.verdict.decision == "ship":
        shipped = am.load(tmp_path / "out" / "shipped.safetensors")
        vectors, objects = shipped.transform(["apple in a case"]), shipped.transform_objects(texts)
        best = np.argsort(-np.asarray(objects @ vectors.T).ravel())[:10]
        assert np.mean(labels[best] == "fruit") > 0.5
        with pytest.raises(TypeError, match="queries must be texts"):
            shipped.transform([1, 2])
    else:
        assert report.verdict.reason


def test_an_adapter_is_shipped_in_a_bundle_that_loads_to_the_same_vectors(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 4))
    preparation = Preparation(4, scale="unit")
    adapter = am.search.Adapter(normalize(X), random_state=0)
    adapter.judge(normalize(X[:1]), [3], [4])
    TrainedModel(adapter, preparation, preparation, {"made_by": "test"}).save(tmp_path / "m")
    loaded = am.load(tmp_path / "m")
    expected = adapter.transform(normalize(X[:5])).astype(np.float32)
    np.testing.assert_array_equal(loaded.transform(X[:5]), expected)
    np.testing.assert_allclose(np.linalg.norm(loaded.transform_objects(X), axis=1), 1, rtol=1e-6)
    header, arrays = read_model(tmp_path / "m")
    write_model(tmp_path / "wide", {**header, "objects": {"width": 5, "scale": "unit", "names": None}}, arrays)
    with pytest.raises(ModelFileError, match="same number of features"):
        am.load(tmp_path / "wide")


@pytest.mark.parametrize(
    ("changed", "kind", "message"),
    [
        ({"kind": "likes"}, ValueError, "kind must be"),
        ({"later": 0}, ValueError, "--later"),
        ({"later": 1.5}, ValueError, "--later must be a share below 1, got 1.5"),
        ({"seed": -1}, ValueError, "--seed"),
        ({"missing": "maybe"}, ValueError, "--missing"),
        ({"data": "nowhere.npz"}, FileNotFoundError, "nowhere.npz does not exist"),
    ],
)
def test_bad_arguments_are_named(tmp_path, changed, kind, message):
    with pytest.raises(kind, match=message):
        run_trial(**{**write_log(tmp_path, n_lists=40), **changed})
    assert not (tmp_path / "out").exists()

"""Triplets from relevance judgements, clicks and sessions: by hand, by files, and what people get wrong."""

import csv
import json

import numpy as np
import pytest

from aromatch.triplets import from_clicks, from_qrels, from_sessions

TREC = "q1 0 a 2\nq1 0 b 1\n\nq1 0 c 0\nq2 0 c 1\nq2 0 a -1\n"
BEIR = "query-id\tcorpus-id\tscore\nq1\ta\t2\nq1\tb\t1\nq1\tc\t0\nq2\tc\t1\nq2\ta\t-1\n"
JUDGED = [[0, 0, 1], [0, 0, 2], [0, 1, 2], [1, 2, 0]]


def graded(qrels, **settings):
    return from_qrels(qrels, ["q1", "q2"], ["a", "b", "c", "d"], random_state=0, **settings)


# -- qrels ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [TREC, BEIR, BEIR.split("\n", 1)[1], BEIR.replace("\n", "\r\n")])
def test_files_of_trec_and_beir_say_the_same(text, tmp_path):
    path = tmp_path / "qrels.txt"
    path.write_bytes(text.encode())
    found = graded(path, n_sampled=0)
    assert found.triplets.tolist() == JUDGED
    assert found.sample_weight.tolist() == [1.0] * 4
    assert found.report.n_read == 5


def test_mappings_and_tuples_say_the_same_as_files():
    as_mapping = {"q1": {"a": 2, "b": 1, "c": 0}, "q2": {"c": 1, "a": -1}}
    as_tuples = [(query, one, grade) for query, grades in as_mapping.items() for one, grade in grades.items()]
    for qrels in (as_mapping, as_tuples, iter(as_tuples)):
        assert graded(qrels, n_sampled=0).triplets.tolist() == JUDGED


def test_what_is_not_relevant_is_never_preferred():
    assert graded(TREC_AS_TUPLES, n_sampled=0, min_grade=2).triplets.tolist() == [[0, 0, 1], [0, 0, 2]]
    assert graded(TREC_AS_TUPLES, n_sampled=0, min_grade=0).triplets.tolist() == JUDGED
    assert graded(TREC_AS_TUPLES, n_sampled=0, min_grade=3).triplets.shape == (0, 3)


TREC_AS_TUPLES = [(line.split()[0], line.split()[2], int(line.split()[3])) for line in TREC.splitlines() if line]


def test_objects_of_the_whole_collection_are_mixed_in_but_none_that_is_known_to_be_relevant():
    found = from_qrels([(0, 0, 1), (0, 1, 1), (0, 2, 0)], 1, 50, n_sampled=400, random_state=0)
    assert found.report.n_judged == 2
    assert found.report.n_sampled == 800
    assert set(found.triplets[:, 2].tolist()) == set(range(2, 50))
    # One relevant object after the other, each with what was judged before what was drawn.
    assert found.triplets[:, 1].tolist() == [0] * 401 + [1] * 401
    assert found.triplets[[0, 401]].tolist() == [[0, 0, 2], [0, 1, 2]]


def test_where_everything_is_relevant_nothing_is_drawn():
    found = from_qrels([(0, 0, 1), (0, 1, 1)], 1, 2, random_state=0)
    assert found.triplets.shape == (0, 3)
    assert (found.report.n_sampled, found.report.n_dropped) == (0, 10)


def test_of_many_judged_objects_so_many_are_taken():
    qrels = [(0, one, int(one < 3)) for one in range(100)]
    found = from_qrels(qrels, 1, 100, n_judged=7, n_sampled=0, random_state=0)
    assert np.bincount(found.triplets[:, 1], minlength=3).tolist() == [7, 7, 7]
    assert len(np.unique(found.triplets, axis=0)) == 21
    assert (found.triplets[:, 2] >= 3).all()
    again = from_qrels(qrels, 1, 100, n_judged=7, n_sampled=0, random_state=0)
    np.testing.assert_array_equal(found.triplets, again.triplets)
    other = from_qrels(qrels, 1, 100, n_judged=7, n_sampled=0, random_state=1)
    assert not np.array_equal(found.triplets, other.triplets)


def test_judgements_that_come_twice_are_counted_and_the_last_one_holds():
    found = from_qrels([(0, 0, 1), (0, 0, 1), (0, 1, 0), (0, 1, 2)], 1, 2, n_sampled=0)
    assert (found.report.n_duplicates, found.report.n_contradictions) == (2, 1)
    assert found.triplets.tolist() == [[0, 1, 0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q1 0 a\n", r"qrels.txt, line 1: the grade must be a number|line 1"),
        ("q1 0 a 1\nq1 0 b\n", "line 2: the grade must be a number, got 'b'"),
        ("q1 0 a high\n", "line 1: the grade must be a number, got 'high'"),
        ("q1 0 a 1 more\n", "line 1: expected 'query iteration object grade'"),
        ("q1 0 a nan\n", "the grade of .*line 1 must be a finite number"),
        ("q1 0 x 1\n", "line 1: 'x' is not in object_ids; missing='skip'"),
        ("q9 0 a 1\n", "line 1: 'q9' is not in query_ids"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_its_line(text, message, tmp_path):
    path = tmp_path / "qrels.txt"
    path.write_text(text)
    if text == "q1 0 a\n":  # three words: taken for a line of names
        assert graded(path).report.n_read == 0
        return
    with pytest.raises(ValueError, match=message):
        graded(path)


def test_ids_that_no_row_has_can_be_left_out():
    found = from_qrels(
        [("q1", "a", 1), ("q1", "gone", 0), ("q7", "a", 1)], ["q1"], ["a", "b"], missing="skip", n_sampled=1
    )
    assert found.report.n_unknown == 2
    assert found.triplets.tolist() == [[0, 0, 1]]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([], ["a", "a"], 3), ValueError, "query_ids must be unique, got 'a' twice"),
        (([], "abc", 3), TypeError, "query_ids must be a sequence of ids"),
        (([], [], 3), ValueError, "query_ids is empty"),
        (([], 0, 3), ValueError, "query_ids must be ids or a number of rows"),
        (([("x", 0, 1)], 1, 3), TypeError, "'x' is not a row index"),
        (([(0, 3, 1)], 1, 3), ValueError, "3 is not in object_ids"),
        (([(0, 1)], 1, 3), TypeError, r"item 0 must be \(query, object, grade\)"),
        (({"q": 3}, 1, 3), TypeError, r"qrels\['q'\] must be a mapping"),
    ],
)
def test_what_cannot_be_used_is_named(arguments, error, message):
    with pytest.raises(error, match=message):
        from_qrels(*arguments)


# -- clicks -----------------------------------------------------------------------------------------------------------

LOG = [
    {"query": "tea", "shown": ["a", "b", "c", "d"], "clicked": ["c"]},
    {"query": "tea", "shown": ["a", "c", "b"], "clicked": []},
    {"query": "cup", "shown": ["d", "a", "b"], "clicked": ["d", "b"]},
]
SKIPPED = [[0, 2, 0], [0, 2, 1], [1, 1, 0]]


def clicked(log, **settings):
    return from_clicks(log, ["tea", "cup"], ["a", "b", "c", "d", "e"], **{"random_state": 0, **settings})


def written(path, log):
    if path.suffix == ".jsonl":
        path.write_text("\n\n".join(json.dumps(one) for one in log))
    else:
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["time", "query", "shown", "clicked"])
            writer.writerows(
                [[i, one["query"], " ".join(one["shown"]), " ".join(one["clicked"])] for i, one in enumerate(log)]
            )
    return path


def test_what_stands_above_a_click_was_passed_over_in_any_form(tmp_path):
    forms = [
        LOG,
        [(one["query"], tuple(one["shown"]), np.array(one["clicked"])) for one in LOG],
        written(tmp_path / "log.csv", LOG),
        str(written(tmp_path / "log.jsonl", LOG)),
    ]
    for log in forms:
        found = clicked(log, n_sampled=0)
        assert found.triplets.tolist() == SKIPPED
        assert found.sample_weight.tolist() == [0.1] * 3
        assert found.report.n_read == 3


def test_objects_of_the_whole_collection_are_mixed_in_unless_they_are_refused():
    found = clicked(LOG, n_sampled=50)
    assert found.report.n_judged == 3
    assert found.report.n_sampled == 150
    of_tea, of_cup = (found.triplets[found.triplets[:, 0] == query] for query in (0, 1))
    assert set(of_tea[:, 2].tolist()) == {0, 1, 3, 4}
    assert set(of_cup[:, 2].tolist()) == {0, 2, 4}
    # The first click comes first, with what was passed over before what was drawn.
    assert found.triplets[:2].tolist() == SKIPPED[:2]
    assert (found.triplets[:52, 0] == 0).all()
    assert (found.triplets[52:, 0] == 1).all()


def test_clicks_further_down_count_more_where_that_is_asked_for():
    found = clicked(LOG, n_judged=0, n_sampled=1, position_bias=1.0)
    weights = {
        tuple(pair): weight for pair, weight in zip(found.triplets[:, :2].tolist(), found.sample_weight, strict=True)
    }
    assert weights == {(0, 2): 3.0, (1, 3): 1.0, (1, 1): 3.0}
    judged = {"n_sampled": 0, "judged_weight": 1.0}
    assert clicked(LOG, **judged, position_bias=1.0, max_weight=2.0).sample_weight.tolist() == [2.0] * 3
    assert clicked(LOG, **judged, position_bias=0.5).sample_weight == pytest.approx([3**0.5] * 3)


def test_so_many_of_what_was_passed_over_are_taken_the_nearest_to_the_click():
    log = [("tea", ["a", "b", "c", "d", "e"], ["e"])]
    assert clicked(log, n_sampled=0).triplets.tolist() == [[0, 4, 1], [0, 4, 2], [0, 4, 3]]
    assert clicked(log, n_sampled=0, n_judged=9).triplets.tolist() == [[0, 4, 0], [0, 4, 1], [0, 4, 2], [0, 4, 3]]
    mixed = clicked(log, n_judged=1, n_sampled=2, judged_weight=0.25)
    assert mixed.sample_weight.tolist() == [0.25, 1.0, 1.0]


def test_the_same_again_and_the_opposite_are_counted():
    both = [*LOG, {"query": "tea", "shown": ["c", "a"], "clicked": ["a"]}, LOG[0]]
    found = clicked(both, n_sampled=0)
    assert len(found.triplets) == 6
    assert (found.report.n_duplicates, found.report.n_contradictions) == (2, 1)


def test_an_object_shown_twice_counts_once():
    found = clicked([("tea", ["a", "a", "b", "a", "b"], ["b"])], n_sampled=0)
    assert found.triplets.tolist() == [[0, 1, 0]]


def test_objects_that_are_gone_can_be_left_out():
    log = [("tea", ["gone", "a", "b"], ["b"]), ("tea", ["a", "gone"], ["gone"]), ("who", ["a", "b"], ["b"])]
    with pytest.raises(ValueError, match="item 0: 'gone' is not in object_ids; missing='skip'"):
        clicked(log)
    found = clicked(log, missing="skip", n_sampled=0, position_bias=1.0)
    assert found.triplets.tolist() == [[0, 1, 0]]
    assert found.sample_weight == pytest.approx([0.3])  # it was the third that people saw
    assert found.report.n_unknown == 3


def test_to_leave_out_everything_is_refused_and_says_why(tmp_path):
    path = written(tmp_path / "log.csv", [{"query": "1", "shown": ["2", "3"], "clicked": ["3"]}])
    with pytest.raises(ValueError, match=r"no id is in query_ids: got '1' .str., but rows have ids such as 0"):
        from_clicks(path, np.arange(5), np.arange(5), missing="skip")
    with pytest.raises(ValueError, match="no id is in object_ids"):
        from_sessions([["1", "2"]], np.arange(5), 3, missing="skip")
    assert from_clicks(path, 5, 5, n_sampled=0).triplets.tolist() == [[1, 3, 2]]


@pytest.mark.parametrize(
    ("log", "error", "message"),
    [
        ([("tea", ["a"], ["b"])], ValueError, "item 0: 'b' was clicked, but is not in shown"),
        ([("tea", ["a"])], TypeError, r"item 0 must be \(query, shown, clicked\)"),
        ([("tea", "a b", ["a"])], TypeError, "item 0: shown must be a list of ids, got 'a b'"),
        ([{"query": "tea", "shown": ["a"]}], ValueError, "item 0 has no 'clicked'"),
        ("log.txt", ValueError, "log.txt must be a file .csv, .tsv or .jsonl"),
    ],
)
def test_a_log_that_cannot_be_used_is_named(log, error, message):
    with pytest.raises(error, match=message):
        clicked(log)


def test_a_file_that_is_no_log_is_named_with_its_line(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"query": "tea", "shown": ["a"], "clicked": "a"}\n{"query": \n')
    with pytest.raises(ValueError, match=r"log\.jsonl, line 2 is not JSON"):
        clicked(path)
    path = tmp_path / "log.csv"
    path.write_text("query,shown\ntea,a\n")
    with pytest.raises(ValueError, match=r"log\.csv, line 2 has no 'clicked'"):
        clicked(path)
    path.write_text("query,shown,clicked\ntea\n")
    with pytest.raises(ValueError, match="line 2 has 1 columns, expected 3"):
        clicked(path)


def test_a_log_without_clicks_gives_no_triplets():
    found = clicked([LOG[1]])
    assert found.triplets.shape == (0, 3)
    assert found.sample_weight.shape == (0,)


# -- sessions ---------------------------------------------------------------------------------------------------------


def test_what_is_visited_together_more_often_is_preferred():
    rng = np.random.default_rng(0)
    sessions = [rng.integers(0, 30, size=rng.integers(1, 6)).tolist() for _ in range(400)]
    together = np.zeros((40, 40))
    for session in map(set, sessions):
        for one in session:
            for other in session - {one}:
                together[one, other] += 1
    found = from_sessions(sessions, 40, 20_000, random_state=0)
    query, good, other = found.triplets.T
    assert len(found.triplets) == 20_000
    assert (together[query, good] > together[query, other]).all()
    assert (other != query).all()
    drawn = np.zeros((40, 40))
    np.add.at(drawn, (query, good), 1)
    expected = 20_000 * together / together.sum()
    assert np.abs(drawn - expected)[together > 0].max() < 6 * np.sqrt(expected.max())
    assert (drawn[together == 0] == 0).all()
    assert found.report.n_judged == np.count_nonzero(together[query, other] > 0)
    assert set(range(30, 40)) <= set(other.tolist())  # never visited at all


def test_what_everybody_visits_says_less_with_a_discount():
    sessions = [[0, i] for i in range(1, 60) for _ in range(3)] + [[1, 2]] * 2
    plain, discounted = (from_sessions(sessions, 80, 5_000, discount=d, random_state=0).triplets for d in (0.0, 1.0))

    def share(triplets):
        return np.mean((triplets[:, :2] == [1, 2]).all(axis=1))

    assert share(discounted) > 3 * share(plain)


def test_long_sessions_and_single_visits_say_nothing():
    sessions = [list(range(50)), [3], [4, 4], [5, 6]]
    found = from_sessions(sessions, 60, 100, max_length=49, random_state=0)
    assert set(map(tuple, found.triplets[:, :2].tolist())) == {(5, 6), (6, 5)}
    assert found.report.n_read == 4
    with pytest.raises(ValueError, match="no pair of objects that were visited together"):
        from_sessions(sessions[:3], 60, 100, max_length=49)


def test_sessions_that_cannot_be_used_are_named():
    with pytest.raises(TypeError, match="item 0 must be ids"):
        from_sessions(["ab"], 3, 1)
    with pytest.raises(ValueError, match="sessions, item 1: 'x' is not in object_ids"):
        from_sessions([["a", "b"], ["a", "x"]], ["a", "b"], 1)
    assert from_sessions([["a", "b"], ["a", "x"]], ["a", "b", "c"], 9, missing="skip").report.n_unknown == 1
    assert from_sessions([], 3, 0).triplets.shape == (0, 3)


def test_the_same_seed_gives_the_same_triplets():
    sessions = [[0, 1, 2], [2, 3], [4, 5]]
    first, second, other = (from_sessions(sessions, 9, 50, random_state=seed).triplets for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)
    logs = [clicked(LOG, n_sampled=20, random_state=seed).triplets for seed in (0, 0, 1)]
    np.testing.assert_array_equal(logs[0], logs[1])
    assert not np.array_equal(logs[0], logs[2])


@pytest.mark.parametrize("ids", [[0.5, 1.5], [True, False], [("a",), ("b",)], [None, "a"]])
def test_ids_are_int_or_str(ids):
    for make in (lambda: from_qrels([], ids, 2), lambda: from_clicks([], 2, ids), lambda: from_sessions([], ids, 0)):
        with pytest.raises(TypeError, match=r"_ids must be int or str"):
            make()


def test_ids_of_numpy_are_ids():
    qrels = [(np.int64(7), np.str_("b"), 1.0), (np.int64(7), np.str_("a"), 0.0)]
    assert from_qrels(qrels, np.array([5, 7]), np.array(["a", "b"]), n_sampled=0).triplets.tolist() == [[1, 1, 0]]

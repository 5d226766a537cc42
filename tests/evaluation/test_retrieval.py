"""Retrieval evaluation against hand-worked values, a plain loop from the definitions, and ir_measures."""

import math
import pickle
import re
import tracemalloc
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from aromatch.evaluation import RetrievalReport, evaluate_retrieval, retrieval, tie_order
from aromatch.learners import Euclidean


class DotProduct:
    def similarity(self, Q, P):
        return Q @ P.T


class Table:
    """Scores written in a table: the only feature of a query or an object is its own row number."""

    def __init__(self, table):
        self.table = np.asarray(table)

    def similarity(self, Q, P):
        return self.table[np.ix_(Q[:, 0], P[:, 0])]


def numbered(n):
    return np.arange(n)[:, np.newaxis]


def evaluate_table(table, y, y_objects=None, **settings):
    n_queries, n_objects = np.shape(table)
    P = None if y_objects is None else numbered(n_objects)
    return evaluate_retrieval(Table(table), numbered(n_queries), y, P, y_objects, **settings)


def by_definition(table, y, y_objects=None, ks=(1, 10)):
    """AP, precision and nDCG of every query that has a relevant object, as a plain loop over the ranking."""
    place = {row: place for place, row in enumerate(tie_order(len(table[0])).tolist())}
    found = {}
    for query, label in enumerate(y):
        objects = list(y if y_objects is None else y_objects)
        rows = [row for row in range(len(objects)) if y_objects is not None or row != query]
        rows.sort(key=lambda row: (-table[query][row], place[row]))
        relevant = [objects[row] == label for row in rows]
        if not any(relevant):
            continue
        hits, precisions = 0, []
        for rank, is_relevant in enumerate(relevant, start=1):
            hits += is_relevant
            if is_relevant:
                precisions.append(hits / rank)
        values = [sum(precisions) / hits]
        values += [sum(relevant[:k]) / k for k in ks]
        for k in ks:
            gain = sum(1 / math.log2(rank + 1) for rank, r in enumerate(relevant[:k], start=1) if r)
            values.append(gain / sum(1 / math.log2(rank + 1) for rank in range(1, min(k, hits) + 1)))
        found[query] = values
    return found


def assert_as_by_definition(report, table, y, y_objects=None, ks=(1, 10)):
    expected = by_definition(table, y, y_objects, ks)
    values = np.array(list(expected.values())).T
    assert report.query_rows.tolist() == list(expected)
    assert report.n_queries == len(expected)
    assert report.n_queries_left_out == len(y) - len(expected)
    np.testing.assert_allclose(report.average_precision, values[0], rtol=1e-12)
    assert report.mean_average_precision == pytest.approx(values[0].mean(), rel=1e-12)
    for i, k in enumerate(ks):
        np.testing.assert_allclose(report.precision_per_query[k], values[1 + i], rtol=1e-12)
        assert report.precision[k] == pytest.approx(values[1 + i].mean(), rel=1e-12)
        assert report.ndcg[k] == pytest.approx(values[1 + len(ks) + i].mean(), rel=1e-12)


def test_values_worked_out_by_hand():
    # The first query finds b a b a a, the second finds a b a b b, its own class being b.
    table = [[4, 2, 1, 5, 3], [2, 4, 1, 5, 3]]
    report = evaluate_table(table, ["a", "b"], ["a", "a", "a", "b", "b"], ks=[1, 2, 5, 8])
    # Ranking of query 0: objects 3 0 4 1 2, relevant at 2, 4, 5. Of query 1: 3 1 4 0 2, relevant at 1, 3.
    np.testing.assert_allclose(report.average_precision, [(1 / 2 + 2 / 4 + 3 / 5) / 3, (1 + 2 / 3) / 2])
    assert report.precision == pytest.approx({1: 1 / 2, 2: 1 / 2, 5: 1 / 2, 8: 5 / 16})
    second, third, fourth, fifth = (1 / math.log2(rank + 1) for rank in (2, 3, 4, 5))
    assert report.ndcg == pytest.approx(
        {
            1: 1 / 2,
            2: (second / (1 + second) + 1 / (1 + second)) / 2,
            5: ((second + fourth + fifth) / (1 + second + third) + (1 + third) / (1 + second)) / 2,
            8: ((second + fourth + fifth) / (1 + second + third) + (1 + third) / (1 + second)) / 2,
        }
    )
    assert (report.n_queries, report.n_queries_left_out) == (2, 0)


def test_a_perfect_ranking_is_one_to_the_bit():
    y = np.repeat(np.arange(7), 30)
    report = evaluate_table((y[:, np.newaxis] == y).astype(float), y, ks=range(1, 30))
    assert report.mean_average_precision == 1
    assert set(report.precision.values()) == {1.0}
    assert set(report.ndcg.values()) == {1.0}


def test_precision_divides_by_k_where_there_are_fewer_objects():
    report = evaluate_table([[2, 1]], ["a"], ["a", "a"], ks=[2, 10, 10**30])
    assert report.precision == pytest.approx({2: 1.0, 10: 0.2, 10**30: 2e-30}, rel=1e-12, abs=0)
    assert report.ndcg == {2: 1.0, 10: 1.0, 10**30: 1.0}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("apart", [False, True])
def test_untied_scores_give_what_ir_measures_gives(seed, apart):
    ir_measures = pytest.importorskip("ir_measures")
    rng = np.random.default_rng(seed)
    n_queries, n_objects = (23, 61) if apart else (40, 40)
    table = rng.standard_normal((n_queries, n_objects))
    y = rng.permutation(np.arange(n_queries) % 6)
    y_objects = rng.permutation(np.arange(n_objects) % 6) if apart else y
    assert len(np.unique(table)) == table.size
    ks = [1, 3, 10, 50]

    judgements, run = [], []
    for query, label in enumerate(y):
        for row in range(n_objects):
            if apart or row != query:
                judgements.append(ir_measures.Qrel(str(query), str(row), int(y_objects[row] == label)))
                run.append(ir_measures.ScoredDoc(str(query), str(row), float(table[query, row])))
    measures = [ir_measures.AP, *(m @ k for k in ks for m in (ir_measures.P, ir_measures.nDCG))]
    theirs = ir_measures.calc_aggregate(measures, judgements, run)
    average_precision = {
        int(metric.query_id): metric.value for metric in ir_measures.iter_calc([ir_measures.AP], judgements, run)
    }

    ours = evaluate_table(table, y, y_objects if apart else None, ks=ks)
    assert ours.n_queries_left_out == 0
    assert ours.mean_average_precision == pytest.approx(theirs[ir_measures.AP], abs=1e-12)
    assert ours.precision == pytest.approx({k: theirs[ir_measures.P @ k] for k in ks}, abs=1e-12)
    assert ours.ndcg == pytest.approx({k: theirs[ir_measures.nDCG @ k] for k in ks}, abs=1e-12)
    for query, value in zip(ours.query_rows, ours.average_precision, strict=True):
        assert value == pytest.approx(average_precision[query], abs=1e-12)


SCORES = st.one_of(
    st.integers(-2, 2).map(float),
    st.sampled_from([0.0, -0.0, 1.0, 1.0 + 2**-52, 1.0 + 2**-51, -1.0, -1.0 - 2**-52, 5e-324, -5e-324]),
    st.sampled_from([math.inf, -math.inf, 1.7e308, -1.7e308]),
    st.floats(allow_nan=False, width=64),
)  # fmt: skip


@st.composite
def cases(draw):
    n_queries = draw(st.integers(1, 8))
    apart = draw(st.booleans())
    n_objects = draw(st.integers(1, 12)) if apart else n_queries
    labels = st.integers(0, 2)
    y = draw(st.lists(labels, min_size=n_queries, max_size=n_queries))
    y_objects = draw(st.lists(labels, min_size=n_objects, max_size=n_objects)) if apart else None
    row = st.lists(SCORES, min_size=n_objects, max_size=n_objects)
    return draw(st.lists(row, min_size=n_queries, max_size=n_queries)), y, y_objects


@settings(deadline=None, max_examples=400)
@given(case=cases())
def test_tied_nearly_tied_and_infinite_scores_are_ranked_as_defined(case):
    table, y, y_objects = case
    if not by_definition(table, y, y_objects):
        with pytest.raises(ValueError, match="y has no query that can be evaluated"):
            evaluate_table(table, y, y_objects)
        return
    assert_as_by_definition(evaluate_table(table, y, y_objects), table, y, y_objects)


@pytest.mark.parametrize("levels", [1, 2, 5, 50, 5000])
@pytest.mark.parametrize("apart", [False, True])
def test_many_ties_are_ranked_in_the_documented_order(levels, apart):
    rng = np.random.default_rng(levels)
    n_queries, n_objects = (30, 150) if apart else (120, 120)
    table = rng.integers(-levels, levels, (n_queries, n_objects)) / 7
    y = rng.integers(0, 4, n_queries)
    y_objects = rng.integers(0, 5, n_objects) if apart else None
    assert_as_by_definition(evaluate_table(table, y, y_objects), table, y, y_objects)


@pytest.mark.parametrize("sign", [-1, 1])
def test_scores_that_differ_in_their_last_bits_only_are_still_ranked_exactly(sign):
    rng = np.random.default_rng(0)
    table = sign * (1 + rng.integers(0, 40, (60, 300)) * 2.0**-52)
    table[::2] = rng.standard_normal((30, 300))
    y, y_objects = rng.integers(0, 3, 60), rng.integers(0, 3, 300)
    assert_as_by_definition(evaluate_table(table, y, y_objects), table, y, y_objects)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "int8", "uint8", "bool", ">f8", "longdouble"])
def test_scores_of_any_real_type_rank_as_their_values(dtype):
    rng = np.random.default_rng(1)
    table = rng.integers(0, 100, (50, 50)).astype(dtype)
    y = rng.integers(0, 4, 50)
    assert_as_by_definition(evaluate_table(table, y), table.astype(float), y)


def test_scores_in_column_order_or_sparse_give_the_same_report():
    class InColumnOrder(DotProduct):
        def similarity(self, Q, P):
            return np.asfortranarray(super().similarity(Q, P))

    rng = np.random.default_rng(2)
    X, y = rng.integers(-3, 3, (80, 5)).astype(float), rng.integers(0, 4, 80)
    expected = evaluate_retrieval(DotProduct(), X, y).average_precision
    assert np.array_equal(evaluate_retrieval(InColumnOrder(), X, y).average_precision, expected)
    assert np.array_equal(evaluate_retrieval(DotProduct(), sp.csr_array(X), y).average_precision, expected)


@pytest.mark.parametrize("apart", [False, True])
def test_a_model_that_scores_all_the_same_gets_chance_even_when_rows_are_sorted_by_class(apart):
    n_classes, size = 10, 200
    y = np.repeat(np.arange(n_classes), size)
    report = evaluate_table(np.zeros((len(y), len(y))), y, y if apart else None, ks=[1, 10, 100, 1000])
    # Every query sees the same list, so precision at 1 can only be the share of one class.
    assert report.precision[1] == pytest.approx(0.1, abs=0.001)
    assert report.precision[10] == pytest.approx(0.1, abs=0.001)
    assert report.precision[1000] == pytest.approx(0.1, abs=0.001)
    assert report.mean_average_precision == pytest.approx(0.1, abs=0.02)
    assert report.precision_per_query[100].max() < 0.25


def test_the_order_of_ties_is_a_fixed_shuffle_that_does_not_depend_on_the_number_of_objects():
    assert tie_order(10).tolist() == [3, 2, 1, 8, 6, 0, 7, 4, 5, 9]
    order = tie_order(2000)
    assert sorted(order.tolist()) == list(range(2000))
    assert tie_order(0).shape == (0,)
    assert np.array_equal(order[order < 700], tie_order(700))
    # Four and a half standard deviations of a true shuffle; the order of the rows would have 1.
    assert abs(np.corrcoef(order, np.arange(2000))[0, 1]) < 0.1


def test_a_row_never_finds_itself_but_an_object_that_equals_it_is_found():
    X = np.eye(4)
    report = evaluate_retrieval(DotProduct(), X[[0, 1, 0, 2]], ["a", "b", "a", "b"], ks=[1])
    assert report.precision_per_query[1][[0, 2]].tolist() == [1, 1]
    # With itself among the objects each query would be right at rank 1.
    found = evaluate_retrieval(DotProduct(), X, list("abab"), X, list("abab"), ks=[1])
    assert found.precision[1] == 1
    assert evaluate_table(np.eye(4) + np.tile([0.1, 0.2, 0.3, 0.4], (4, 1)), list("abba"), ks=[1]).precision[1] == 0.25


def test_a_row_with_the_lowest_possible_scores_still_does_not_find_itself():
    table = np.full((3, 3), -np.inf)
    report = evaluate_table(table, ["a", "a", "a"], ks=[1, 2, 3])
    assert report.precision == {1: 1.0, 2: 1.0, 3: pytest.approx(2 / 3)}


def test_queries_without_a_relevant_object_are_left_out_of_every_mean_and_counted():
    rng = np.random.default_rng(3)
    table = rng.standard_normal((6, 6))
    y = ["x", "a", "a", "y", "b", "b"]
    report = evaluate_table(table, y)
    assert report.query_rows.tolist() == [1, 2, 4, 5]
    assert (report.n_queries, report.n_queries_left_out) == (4, 2)
    assert_as_by_definition(report, table, y)


def test_the_report_does_not_depend_on_the_size_of_blocks(monkeypatch):
    rng = np.random.default_rng(4)
    X = rng.integers(-3, 4, (150, 6)).astype(float)
    y = rng.integers(0, 90, 150)
    whole = evaluate_retrieval(DotProduct(), X, y, ks=[1, 5, 50])
    assert whole.n_queries_left_out > 0
    for scores, queries, tile in [
        (1, 10, 1),
        (700, 10, 10**6),
        (10**6, 7, 450),
        (1500, 4096, 300),
        (10**6, 50, 9999),
    ]:
        monkeypatch.setattr(retrieval, "_BLOCK_SCORES", scores)
        monkeypatch.setattr(retrieval, "_BLOCK_QUERIES", queries)
        monkeypatch.setattr(retrieval, "_TILE_SCORES", tile)
        blocked = evaluate_retrieval(DotProduct(), X, y, ks=[1, 5, 50])
        assert repr(blocked) == repr(whole)
        assert np.array_equal(blocked.average_precision, whole.average_precision)
        assert all(np.array_equal(blocked.precision_per_query[k], whole.precision_per_query[k]) for k in (1, 5, 50))


def test_the_model_is_asked_for_no_more_than_a_block_at_once():
    asked = []

    class Watched(DotProduct):
        def similarity(self, Q, P):
            asked.append((Q.shape[0], P.shape[0]))
            return super().similarity(Q, P)

    rng = np.random.default_rng(5)
    evaluate_retrieval(
        Watched(), rng.standard_normal((3000, 2)), rng.integers(0, 3, 3000), np.ones((9000, 2)), [1] * 9000
    )
    assert max(queries * objects for queries, objects in asked) <= 2**23
    assert len(asked) > 1
    asked.clear()
    evaluate_retrieval(Watched(), rng.standard_normal((9000, 2)), rng.integers(0, 3, 9000), np.eye(2), [0, 1])
    assert max(queries for queries, _ in asked) <= 4096


def test_one_block_of_scores_stands_in_memory_and_no_second_one(monkeypatch):
    monkeypatch.setattr(retrieval, "_BLOCK_SCORES", 2**20)
    monkeypatch.setattr(retrieval, "_TILE_SCORES", 2**13)
    rng = np.random.default_rng(6)
    X, y = rng.standard_normal((4000, 4)), rng.integers(0, 20, 4000)
    tracemalloc.start()
    try:
        evaluate_retrieval(DotProduct(), X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    all_scores, block = 8 * 4000**2, 8 * 2**20
    assert block < peak < 1.6 * block < all_scores / 9


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csr_array, sp.csc_array, sp.coo_array, sp.lil_matrix, sp.dok_array])
def test_sparse_rows_in_any_format_give_the_same_as_dense_ones(make):
    rng = np.random.default_rng(7)
    Q = rng.integers(0, 3, (40, 8)) * (rng.random((40, 8)) < 0.4) * 1.0
    P = rng.integers(0, 3, (70, 8)) * (rng.random((70, 8)) < 0.4) * 1.0
    y, y_objects = rng.integers(0, 5, 40), rng.integers(0, 5, 70)
    dense = evaluate_retrieval(DotProduct(), Q, y, P, y_objects)
    for queries, objects in [(make(Q), make(P)), (make(Q), P), (Q, make(P))]:
        report = evaluate_retrieval(DotProduct(), queries, y, objects, y_objects)
        assert np.array_equal(report.average_precision, dense.average_precision)
        assert repr(report) == repr(dense)
    own = evaluate_retrieval(DotProduct(), make(Q), y)
    assert np.array_equal(own.average_precision, evaluate_retrieval(DotProduct(), Q, y).average_precision)


def test_nothing_that_was_passed_in_is_changed():
    table = np.random.default_rng(8).standard_normal((20, 20))
    before = table.copy()

    class Stored:
        def similarity(self, Q, P):
            return table[: len(Q), : len(P)]

    X, y = np.ones((20, 2)), np.arange(20) % 3
    for array in (X, y):
        array.setflags(write=False)
    evaluate_retrieval(Stored(), X, y)
    assert np.array_equal(table, before)


def test_labels_may_be_strings_bools_objects_or_numbers_of_different_types():
    rng = np.random.default_rng(9)
    table, classes = rng.standard_normal((30, 30)), rng.integers(0, 2, 30)
    expected = evaluate_table(table, classes, classes).average_precision
    words = np.array(["no", "yes"])[classes]
    for y, y_objects in [
        (words, words.astype(object)),
        (classes.astype(bool), classes),
        (classes.astype(float), classes),
        (words.tolist(), words),
    ]:
        assert np.array_equal(evaluate_table(table, y, y_objects).average_precision, expected)


def test_the_report_prints_short_and_its_repr_holds_no_array():
    rng = np.random.default_rng(10)
    y = [*rng.integers(0, 5, 1999), 77]
    report = evaluate_table(rng.standard_normal((2000, 2000)), y)
    assert re.fullmatch(
        r"mAP 0\.\d{3}  P@1 0\.\d{3}  P@10 0\.\d{3}  nDCG@1 0\.\d{3}  nDCG@10 0\.\d{3}  "
        r"\(1,999 queries, 1 left out\)",
        str(report),
    )
    assert "array" not in repr(report)
    assert "n_queries=1999" in repr(report)
    assert len(repr(report)) < 300
    assert "left out" not in str(evaluate_table([[1, 2]], ["a"], ["a", "b"]))


def test_the_report_cannot_be_changed_and_can_be_pickled():
    report = evaluate_table([[1, 2, 3]], ["a"], ["a", "b", "a"])
    with pytest.raises(FrozenInstanceError):
        report.n_queries = 3
    with pytest.raises(ValueError, match="read-only"):
        report.average_precision[0] = 1
    again = pickle.loads(pickle.dumps(report))
    assert isinstance(again, RetrievalReport)
    assert np.array_equal(again.average_precision, report.average_precision)


def test_values_are_plain_floats_under_the_ks_in_the_order_given():
    report = evaluate_table([[1, 2]], ["a"], ["a", "b"], ks=(np.int64(k) for k in (10, 1, 10, 3)))
    assert list(report.precision) == list(report.ndcg) == list(report.precision_per_query) == [10, 1, 3]
    assert {type(k) for k in report.precision} == {int}
    assert {type(v) for v in [*report.precision.values(), report.mean_average_precision]} == {float}
    assert evaluate_table([[1, 2]], ["a"], ["a", "b"], ks=()).precision == {}


class Fixed:
    def __init__(self, answer):
        self.answer = answer

    def similarity(self, Q, P):
        return self.answer


X3, Y3 = np.ones((3, 2)), ["a", "a", "b"]
REFUSED = {
    "P without labels": ({"P": X3}, ValueError, "got P without y_objects"),
    "labels without P": ({"y_objects": Y3}, ValueError, "got y_objects without P"),
    "no method": ({"model": object()}, TypeError, "model must have a method similarity"),
    "too few labels": ({"y": ["a", "a"]}, ValueError, "y must have one label for each of the 3 rows"),
    "too few object labels": (
        {"P": X3, "y_objects": ["a"]},
        ValueError,
        "y_objects must have one label for each of the 3",
    ),
    "2-D labels": ({"y": [Y3, Y3, Y3]}, ValueError, "y must be a 1-D sequence"),
    "NaN label": ({"y": [0.0, 0.0, np.nan]}, ValueError, "y contains NaN"),
    "labels of two kinds": (
        {"P": X3, "y_objects": [1, 1, 2]},
        TypeError,
        "y and y_objects must",
    ),
    "labels that do not sort": (
        {"y": np.array([1, "a", 1], dtype=object)},
        TypeError,
        "y must",
    ),
    "all alone": ({"y": ["a", "b", "c"]}, ValueError, "none of the 3 has the label of another row of Q"),
    "nothing shared": (
        {"P": X3, "y_objects": ["x", "y", "z"]},
        ValueError,
        "none of the 3 has the label of a row of P",
    ),
    "1-D Q": ({"Q": np.ones(3)}, ValueError, "Q must be a 2-D matrix"),
    "1-D P": ({"P": np.ones(3), "y_objects": Y3}, ValueError, "P must be a 2-D matrix"),
    "no queries": ({"Q": np.ones((0, 2)), "y": []}, ValueError, "Q is empty"),
    "no objects": ({"P": np.ones((0, 2)), "y_objects": []}, ValueError, "P is empty"),
    "k zero": ({"ks": [1, 0]}, ValueError, "each of ks must be at least 1, got 0"),
    "k float": ({"ks": [1.0]}, TypeError, "each of ks must be"),
    "k bool": ({"ks": [True]}, TypeError, "each of ks must be"),
    "ks a number": ({"ks": 10}, TypeError, "ks must be an iterable of whole numbers, got 10"),
    "ks a string": ({"ks": "10"}, TypeError, "each of ks must be"),
    "ks None": ({"ks": None}, TypeError, "ks must be an iterable of whole numbers, got None"),
    "scores of another shape": (
        {"model": Fixed(np.ones((3, 2)))},
        ValueError,
        "model.similarity must return an array of shape (2, 3), got (3, 2)",
    ),
    "complex scores": ({"model": Fixed(np.ones((2, 3)) * 1j)}, TypeError, "must return real numbers"),
    "scores that are words": ({"model": Fixed([["a"] * 3] * 2)}, TypeError, "must return real numbers"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_refused_with_the_name_of_the_argument(case):
    arguments, error, message = REFUSED[case]
    with pytest.raises(error, match=re.escape(message)):
        evaluate_retrieval(**{"model": DotProduct(), "Q": X3, "y": Y3, **arguments})


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_score_that_is_nan_is_refused_and_named(dtype):
    table = np.ones((300, 200), dtype=dtype)
    table[217, 44] = np.nan
    labels = {"y": np.arange(300) % 2, "y_objects": np.arange(200) % 2}
    with pytest.raises(ValueError, match=r"model\.similarity returned NaN for row 217 of Q and row 44 of P"):
        evaluate_table(table, **labels)
    table = np.ones((5, 5), dtype=dtype)
    table[3, 1] = np.nan
    with pytest.raises(ValueError, match="returned NaN for row 3 of Q and row 1 of Q"):
        evaluate_table(table, [7, 0, 0, 1, 1])


def test_values_of_each_query_have_the_means_of_the_report():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 5)), rng.integers(4, size=40)
    report = evaluate_retrieval(Euclidean().fit(X), X, y, ks=(1, 5))
    for k in (1, 5):
        assert report.ndcg_per_query[k].mean() == pytest.approx(report.ndcg[k])
        assert report.precision_per_query[k].mean() == pytest.approx(report.precision[k])


def test_graded_judgements_give_what_ir_measures_gives():
    ir_measures = pytest.importorskip("ir_measures")
    rng = np.random.default_rng(3)
    Q, P = rng.normal(size=(12, 5)), rng.normal(size=(60, 5))
    grades = rng.integers(-1, 4, size=(12, 60)) * (rng.random((12, 60)) < 0.3)
    judged = [ir_measures.Qrel(str(q), str(p), int(grades[q, p])) for q, p in zip(*np.nonzero(grades), strict=True)]
    run = [ir_measures.ScoredDoc(str(q), str(p), float(s)) for q, row in enumerate(Q @ P.T) for p, s in enumerate(row)]
    theirs = ir_measures.calc_aggregate([ir_measures.AP, ir_measures.P @ 5, ir_measures.nDCG @ 5], judged, run)
    ours = evaluate_retrieval(DotProduct(), Q, P=P, qrels=grades, ks=[5])
    assert ours.mean_average_precision == pytest.approx(theirs[ir_measures.AP])
    assert ours.precision[5] == pytest.approx(theirs[ir_measures.P @ 5])
    assert ours.ndcg[5] == pytest.approx(theirs[ir_measures.nDCG @ 5])


def test_grades_of_one_equal_labels_for_all_queries_and_for_some():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(50, 4)).round(1), rng.integers(6, size=50)
    by_labels = evaluate_retrieval(DotProduct(), X, y, ks=[1, 5])
    for qrels in ((y[:, np.newaxis] == y).astype(float), sp.csr_array((y[:, np.newaxis] == y).astype(int))):
        by_grades = evaluate_retrieval(DotProduct(), X, qrels=qrels, ks=[1, 5])
        assert np.array_equal(by_grades.average_precision, by_labels.average_precision)
        assert np.array_equal(by_grades.ndcg_per_query[5], by_labels.ndcg_per_query[5])
    rows = np.array([7, 3, 41])
    for relevance in ({"y": y}, {"qrels": (y[:, np.newaxis] == y)}):
        some = evaluate_retrieval(DotProduct(), X, **relevance, query_rows=rows, ks=[1, 5])
        assert np.array_equal(some.query_rows, rows)
        assert np.array_equal(some.average_precision, by_labels.average_precision[rows])


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({}, "y or qrels"),
        ({"y": Y3, "qrels": np.eye(3)}, "y or qrels"),
        ({"qrels": np.eye(2)}, "qrels"),
        ({"qrels": np.full((3, 3), np.nan)}, "qrels"),
        ({"qrels": np.eye(3)}, "qrels"),  # only the query itself is relevant
        ({"qrels": np.ones((3, 3)), "y_objects": Y3}, "y_objects"),
        ({"y": Y3, "query_rows": [3]}, "query_rows"),
        ({"y": Y3, "query_rows": [[0]]}, "query_rows"),
        ({"y": Y3, "query_rows": [0.5]}, "query_rows"),
    ],
)
def test_bad_judgements_are_refused_with_the_name_of_the_argument(arguments, name):
    with pytest.raises(ValueError, match=name):
        evaluate_retrieval(DotProduct(), X3, **arguments)

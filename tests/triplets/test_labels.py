"""Triplets from labels: the law, by enumeration; what always holds; same seed, same bits; what is refused."""

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from aromatch.triplets import LabelSampler, from_labels, stream_from_labels
from aromatch.triplets.labels import CHUNK

# Classes of 3, 4 and 2 rows in no order, and two rows that are alone in theirs.
SMALL = list("bacbadcabxb")
SMALL_QUERIES = list("aabcze")
SMALL_OBJECTS = list("cabacafb")
# Fifteen tests of a true law have a p-value under this once in 7,000 seeds; a wrong law is far below it.
BAD_LUCK = 1e-5


def law(y, y_objects=None):
    """Probability of every possible triplet, by enumeration straight from the definition."""
    objects = y if y_objects is None else y_objects
    own = y_objects is None
    choices = {}
    for query, label in enumerate(y):
        preferred = [row for row, other in enumerate(objects) if other == label and not (own and row == query)]
        others = [row for row, other in enumerate(objects) if other != label]
        if preferred and others:
            choices[query] = (preferred, others)
    return {
        (query, p, o): 1 / len(choices) / len(preferred) / len(others)
        for query, (preferred, others) in choices.items()
        for p in preferred
        for o in others
    }


@pytest.mark.parametrize("columns", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("labels", [(SMALL, None), (SMALL_QUERIES, SMALL_OBJECTS)], ids=["same", "apart"])
def test_the_draws_follow_the_law_counted_by_enumeration(labels, columns):
    y, y_objects = labels
    n = 200_000
    expected = Counter()
    for triplet, probability in law(y, y_objects).items():
        expected[tuple(triplet[c] for c in columns)] += n * probability
    drawn = from_labels(y, n, random_state=7, y_objects=y_objects)
    observed = Counter(map(tuple, drawn[:, list(columns)].tolist()))
    assert set(observed) == set(expected)
    keys = sorted(expected)
    assert chisquare([observed[key] for key in keys], [expected[key] for key in keys]).pvalue > BAD_LUCK


def test_a_large_class_gives_other_objects_in_proportion_to_its_size():
    y = np.repeat([0, 1, 2], [10, 10, 990])
    others = y[from_labels(y, 100_000, random_state=0)]
    share = np.mean(others[others[:, 0] == 0, 2] == 2)
    assert share == pytest.approx(0.99, abs=0.01)


def test_triplets_of_one_draw_are_independent_of_each_other():
    queries = from_labels([0, 0, 1, 1], 100_000, random_state=3)[:, 0]
    pairs = Counter(zip(queries[::2].tolist(), queries[1::2].tolist(), strict=True))
    assert chisquare([pairs[a, b] for a in range(4) for b in range(4)]).pvalue > BAD_LUCK


LABELS = st.one_of(
    st.lists(st.integers(-3, 3), min_size=3, max_size=30),
    st.lists(st.sampled_from(["ant", "bee", "cow", "d"]), min_size=3, max_size=30),
    st.lists(st.booleans(), min_size=3, max_size=30),
    st.lists(st.sampled_from([0.5, 1.5, -2.0]), min_size=3, max_size=30),
)


@settings(deadline=None, max_examples=150)
@given(y=LABELS, seed=st.integers(0, 2**32), as_objects=st.booleans())
def test_the_preferred_object_is_another_row_of_the_class_and_the_other_object_is_of_another_class(y, seed, as_objects):
    possible = law(y)
    labels = np.array(y, dtype=object) if as_objects else np.array(y)
    if not possible:
        with pytest.raises(ValueError, match=r"^y "):
            from_labels(labels, 5, random_state=seed)
        return
    query, preferred, other = from_labels(labels, 200, random_state=seed).T
    assert (labels[query] == labels[preferred]).all()
    assert (query != preferred).all()
    assert (labels[query] != labels[other]).all()


@settings(deadline=None, max_examples=150)
@given(
    y=st.lists(st.integers(0, 5), min_size=1, max_size=20),
    y_objects=st.lists(st.integers(0, 5), min_size=1, max_size=20),
    seed=st.integers(0, 2**32),
)
def test_with_objects_apart_the_rows_of_objects_are_rows_of_y_objects(y, y_objects, seed):
    y, y_objects = np.array(y), np.array(y_objects)
    possible = law(y.tolist(), y_objects.tolist())
    if not possible:
        with pytest.raises(ValueError, match="y_objects"):
            from_labels(y, 5, random_state=seed, y_objects=y_objects)
        return
    triplets = from_labels(y, 200, random_state=seed, y_objects=y_objects)
    assert set(map(tuple, triplets.tolist())) <= set(possible)


def test_a_row_alone_in_its_class_is_an_other_object_but_never_a_query():
    triplets = from_labels([0, 0, 9], 500, random_state=0)
    assert set(map(tuple, triplets.tolist())) == {(0, 1, 2), (1, 0, 2)}


def test_with_objects_apart_a_query_may_prefer_the_object_with_its_own_row_number():
    triplets = from_labels([0, 1], 500, random_state=0, y_objects=[0, 1])
    assert set(map(tuple, triplets.tolist())) == {(0, 0, 1), (1, 1, 0)}


@pytest.mark.parametrize("n", [0, 1, 5, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 3])
def test_the_stream_put_together_is_the_whole_to_the_bit(n):
    whole = from_labels(SMALL, n, random_state=11)
    chunks = list(stream_from_labels(SMALL, n, random_state=11))
    assert whole.shape == (n, 3)
    assert [len(chunk) for chunk in chunks[:-1]] == [CHUNK] * (len(chunks) - 1)
    assert np.array_equal(np.concatenate([np.empty((0, 3), dtype=np.int64), *chunks]), whole)


def test_the_stream_is_the_sampler_drawn_with_the_same_generator():
    generator = np.random.default_rng(5)
    sampler = LabelSampler(SMALL_QUERIES, SMALL_OBJECTS)
    drawn = [sampler.sample(CHUNK, generator), sampler.sample(10, generator)]
    streamed = list(stream_from_labels(SMALL_QUERIES, CHUNK + 10, 5, SMALL_OBJECTS))
    assert all(np.array_equal(a, b) for a, b in zip(drawn, streamed, strict=True))


def test_the_result_is_a_c_contiguous_int64_array():
    for triplets in (
        from_labels(SMALL, 10, 0),
        from_labels(SMALL, 0, 0),
        LabelSampler(SMALL).sample(3, np.random.default_rng()),
    ):
        assert triplets.dtype == np.int64
        assert triplets.flags.c_contiguous
        assert triplets.shape[1] == 3


def test_the_same_seed_gives_the_same_bits_and_another_seed_gives_others():
    first = from_labels(SMALL, 1000, random_state=1)
    assert np.array_equal(first, from_labels(SMALL, 1000, random_state=1))
    assert not np.array_equal(first, from_labels(SMALL, 1000, random_state=2))
    assert np.array_equal(first, from_labels(SMALL, 1000, random_state=np.random.default_rng(1)))


def test_a_generator_moves_on_from_call_to_call():
    generator = np.random.default_rng(1)
    assert not np.array_equal(from_labels(SMALL, 100, generator), from_labels(SMALL, 100, generator))


def test_triplets_depend_on_the_order_of_the_classes_only_not_on_how_labels_are_written():
    numbers = np.array([0, 0, 1, 2, 1, 0, 2])
    first = from_labels(numbers, 300, 0)
    for labels in (
        numbers.tolist(),
        numbers * 2.5,
        np.array(list("abc"))[numbers],
        numbers.astype(object),
        numbers[:, None],
    ):
        assert np.array_equal(from_labels(labels, 300, 0), first)
    apart = from_labels(numbers, 300, 0, y_objects=numbers)
    assert np.array_equal(from_labels(numbers, 300, 0, y_objects=numbers.astype(np.uint64)), apart)
    assert np.array_equal(from_labels(numbers, 300, 0, y_objects=numbers.astype(float)), apart)


def test_labels_are_never_changed_or_rounded_to_be_compared():
    y = np.array([2**62, 2**62, 2**62 + 1, 2**62 + 1])
    triplets = from_labels(y, 200, 0, y_objects=y.astype(np.uint64))
    assert set(map(tuple, triplets.tolist())) == set(law(y.tolist(), y.tolist()))


REFUSED = {
    "one class": ({"y": ["a", "a"]}, ValueError, "y holds one class only ('a')"),
    "no class of two": ({"y": [1, 2, 3]}, ValueError, "y has 3 rows of 3 classes"),
    "empty": ({"y": []}, ValueError, "y is empty"),
    "two-dimensional": ({"y": [[0, 0], [1, 1]]}, ValueError, "y must be a 1-D sequence of labels"),
    "a single label": ({"y": "ab"}, ValueError, "y must be a 1-D sequence of labels"),
    "NaN": ({"y": [0.0, 0.0, np.nan]}, ValueError, "y contains NaN"),
    "None": ({"y": ["a", "a", None]}, ValueError, "y contains None"),
    "NaN among objects": ({"y_objects": [0, 1, np.nan]}, ValueError, "y_objects contains NaN"),
    "labels that do not sort": (
        {"y": np.array([1, "a", 1], dtype=object)},
        TypeError,
        "y must",
    ),
    "numbers against strings": (
        {"y_objects": ["0", "1"]},
        TypeError,
        "y and y_objects must",
    ),
    "no shared class": ({"y_objects": [7, 8]}, ValueError, "y and y_objects have no class in common"),
    "objects of one class": ({"y_objects": [1, 1]}, ValueError, "y_objects holds one class only"),
    "no objects": ({"y_objects": []}, ValueError, "y_objects is empty"),
    "two-dimensional objects": ({"y_objects": [[0, 1]]}, ValueError, "y_objects must be a 1-D sequence"),
    "n negative": ({"n": -1}, ValueError, "n must be at least 0, got -1"),
    "n a float": ({"n": 10.0}, TypeError, "n must be"),
    "n a bool": ({"n": True}, TypeError, "n must be"),
    "seed a string": ({"random_state": "x"}, TypeError, "random_state must be"),
    "seed negative": ({"random_state": -1}, ValueError, "random_state must be at least 0"),
}


@pytest.mark.parametrize("function", [from_labels, stream_from_labels])
@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_refused_by_the_call_itself_with_the_name_of_the_argument(function, case):
    arguments, error, message = REFUSED[case]
    with pytest.raises(error, match=re.escape(message)):
        function(**{"y": [0, 0, 1, 1], "n": 10, **arguments})


def test_bad_labels_are_refused_even_when_no_triplet_is_asked_for():
    with pytest.raises(ValueError, match="y holds one class only"):
        from_labels([1, 1], 0)


def test_more_triplets_than_fit_in_memory_are_refused_before_they_are_drawn():
    with pytest.raises(MemoryError, match=re.escape("triplets (n) would take")):
        from_labels(SMALL, 10**15)


def test_the_sampler_refuses_a_bad_count():
    with pytest.raises(ValueError, match="n must be at least 0"):
        LabelSampler(SMALL).sample(-1, np.random.default_rng(0))


def test_the_labels_are_left_as_they_were():
    y = np.array([3, 1, 3, 1, 2])
    y.setflags(write=False)
    from_labels(y, 100, 0, y_objects=y)
    assert y.tolist() == [3, 1, 3, 1, 2]


@pytest.mark.parametrize(
    "labels",
    [["a", "a", float("nan"), "b"], ["a", None, "a", "b"], np.array(["2020", "NaT", "2020"], dtype="datetime64[Y]")],
)
def test_a_missing_label_of_any_kind_is_refused(labels):
    with pytest.raises(ValueError, match="y contains"):
        from_labels(labels, 5)


def test_a_ragged_sequence_of_labels_is_refused_by_name():
    with pytest.raises(ValueError, match="y cannot be"):
        from_labels([["a"], ["a", "b"]], 5)

"""Feedback that is kept up to date, against a recount of everything."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.preprocessing import normalize

import aromatch as am
from aromatch._utils.journal import Journal
from aromatch._utils.row_hashes import row_hashes
from aromatch._utils.rows import as_dense, unit_rows
from aromatch.search import Adapter
from aromatch.search.adapter.credit import credit_of, weighted_targets
from aromatch.search.adapter.feedback import REMOVED, Feedback
from aromatch.search.adapter.neighbourhood import quantile_of_sorted

N_QUERIES, N_OBJECTS = 7, 9
EVERY_OBJECT = np.arange(N_OBJECTS)


# -- an oracle --------------------------------------------------------------------------------------------------------


class CountedAnew:
    """A log of all that was judged, from which everything is counted each time, as matrices."""

    def __init__(self):
        self.itself, self.nearness, self.number, self.net = [], [], {}, {}

    def add(self, name, itself, nearness, good, bad):
        if name not in self.number:
            self.number[name] = len(self.itself)
            self.itself.append(itself)
            self.nearness.append(nearness)
        for ids, value in ((good, 1), (bad, -1)):
            for one in ids:
                pair = self.number[name], int(one)
                self.net[pair] = self.net.get(pair, 0) + value

    def forget(self, ids):
        self.itself = [REMOVED if one in ids else one for one in self.itself]
        gone = {number for number, one in enumerate(self.itself) if one == REMOVED}
        self.number = {name: number for name, number in self.number.items() if number not in gone}
        self.net = {pair: net for pair, net in self.net.items() if pair[1] not in ids and pair[0] not in gone}

    def count(self):
        n = len(self.itself)
        good, bad, own = np.zeros((n, N_OBJECTS)), np.zeros((n, N_OBJECTS)), np.zeros((n, N_OBJECTS))
        for (number, one), net in self.net.items():
            good[number, one], bad[number, one] = net > 0, net < 0
        for number, one in enumerate(self.itself):
            if one >= 0:
                own[number, one] = 1
        n_good, n_bad = good.sum(axis=1), bad.sum(axis=1)
        self.has_good = n_good > 0
        self.precision = n_good / (n_good + n_bad + 1)
        weights = good / np.maximum(n_good, 1)[:, np.newaxis] - 0.3 * bad / np.maximum(n_bad, 1)[:, np.newaxis]
        self.wants = self.has_good[:, np.newaxis] * weights
        self.of_mean = self.has_good * (1 - 0.3 * (n_bad > 0))
        strength = self.precision[:, np.newaxis] * (good + 2 * own)
        total = strength.sum(axis=0)
        self.likes = (strength / np.where(total > 0, total, 1)).T
        self.known = self.likes @ self.precision
        self.is_only_bad = (bad[self.has_good].sum(axis=0) > 0) & (total == 0)
        self.is_asked = own.sum(axis=0) > 0


def from_files(feedback):
    return Feedback.from_columns(feedback.columns(), feedback.proximity, feedback.hashes(), feedback.queries)


def state_of(feedback):
    """Everything that lookups read, in a form that can be compared."""
    return {
        "wants": [(want.keys.tolist(), want.weights.tolist()) for want in feedback.targets],
        "numbers": (feedback.precision.tolist(), feedback.mean_weight.tolist(), feedback.sorted_proximity.tolist()),
        "voters": [
            {one: voters.tolist() for one, voters in these.items()}
            for these in (feedback.positive_for, feedback.negative_for)
        ],
        "asked by": {one: numbers.tolist() for one, numbers in feedback.queries_of.items()},
        "columns": [column.tolist() for column in feedback.columns()],
        "names": feedback.hashes().tolist(),
        "known again": feedback._number,
    }


def query_row(number):
    return np.eye(N_QUERIES)[[number]]


objects = st.sets(st.integers(0, N_OBJECTS - 1), max_size=5)
judged = st.tuples(st.just("judge"), st.integers(0, N_QUERIES - 1), objects, objects)
forgotten = st.tuples(st.just("forget"), st.sets(st.integers(0, N_OBJECTS - 1), min_size=1, max_size=2))
steps = st.lists(st.one_of(judged, judged, judged, forgotten, st.just(("files",))), max_size=25)


def go_on(feedback, anew, step):
    """Take a step in both; give the feedback, which may be others."""
    kind, *arguments = step
    if kind == "files":
        return from_files(feedback)
    if kind == "forget":
        anew.forget(arguments[0])
        feedback.remove_objects(np.array(sorted(arguments[0])), Journal())
        return feedback
    number, good, bad = arguments
    itself, nearness = (number if number % 2 else -1), number / 3 % 1
    good, bad = np.array(sorted(good), dtype=np.int64), np.array(sorted(bad - good), dtype=np.int64)
    anew.add(number, itself, nearness, good, bad)
    feedback.add(query_row(number), itself, nearness, good, bad, Journal())
    return feedback


@settings(max_examples=200, deadline=None)
@given(steps)
def test_feedback_that_is_kept_up_to_date_equals_a_recount(steps):
    feedback, anew = Feedback(), CountedAnew()
    for step in steps:
        feedback = go_on(feedback, anew, step)
        anew.count()
        np.testing.assert_array_equal(feedback.precision, anew.precision)
        np.testing.assert_array_equal(feedback.mean_weight, anew.of_mean)
        assert feedback.sorted_proximity.tolist() == sorted(np.array(anew.nearness)[anew.has_good])
        assert feedback.numbers(np.eye(N_QUERIES)).tolist() == [anew.number.get(one, -1) for one in range(N_QUERIES)]
        assert [one in feedback.queries_of for one in EVERY_OBJECT.tolist()] == anew.is_asked.tolist()
        votes = credit_of(feedback, EVERY_OBJECT)
        likes = sparse.csr_array((votes.shares, votes.queries, votes.starts), shape=anew.likes.shape)
        np.testing.assert_allclose(likes.toarray(), anew.likes, rtol=1e-14)
        np.testing.assert_allclose(votes.amount, anew.known, rtol=1e-14)
        np.testing.assert_array_equal(votes.is_only_negative, anew.is_only_bad)
        if len(feedback):
            asking = np.random.default_rng(len(feedback)).random((3, len(feedback)))
            rows, numbers = np.nonzero(asking > 0.5)
            asking[asking <= 0.5] = 0
            twice = np.concatenate([rows, rows]), np.concatenate([numbers, numbers])
            found = weighted_targets(feedback, 3, *twice, np.tile(asking[rows, numbers], 2))
            weights = sparse.csr_array((found.weights, (found.rows, found.keys)), shape=(3, N_OBJECTS))
            assert weights.nnz == len(found.keys)
            np.testing.assert_allclose(weights.toarray(), 2 * asking @ anew.wants, atol=1e-14)
            np.testing.assert_allclose(found.mean_weight, 2 * asking @ anew.of_mean, atol=1e-14)


@settings(max_examples=100, deadline=None)
@given(steps, st.randoms(use_true_random=False))
def test_feedback_does_not_depend_on_the_order_of_arrival(steps, random):
    """Through files, and said in other words: one object at a time, with things taken back."""
    feedback, anew = Feedback(), CountedAnew()
    for step in steps:
        feedback = go_on(feedback, anew, step)
    assert state_of(from_files(feedback)) == state_of(feedback)
    if any(step[0] == "forget" for step in steps):
        return
    other = Feedback()
    for number in dict.fromkeys(step[1] for step in steps if step[0] == "judge"):
        nothing = np.empty(0, dtype=np.int64)
        other.add(query_row(number), number if number % 2 else -1, number / 3 % 1, nothing, nothing, Journal())
    singles = [(pair, 1 if net > 0 else -1) for pair, net in anew.net.items() for _ in range(abs(net))]
    singles += [(pair, value) for pair in anew.net for value in (1, -1)]
    random.shuffle(singles)
    names = {number: name for name, number in anew.number.items()}
    for (number, one), value in singles:
        ids = [np.array([one]), np.empty(0, dtype=np.int64)][::value]
        other.add(query_row(names[number]), -9, -9.0, *ids, Journal())
    assert state_of(other) == state_of(feedback)


# -- the whole adapter ------------------------------------------------------------------------------------------------

adapter_steps = st.lists(st.sampled_from(["judge", "judge", "click", "again", "add", "remove", "files"]), max_size=14)


@settings(max_examples=40, deadline=None)
@given(adapter_steps, st.integers(0, 1000), st.sampled_from([np.asarray, sparse.csr_array]))
def test_an_adapter_goes_on_to_the_same_bits_from_files_and_after_searches(tmp_path_factory, steps, seed, container):
    path = tmp_path_factory.mktemp("adapters") / "adapter"
    generator = np.random.default_rng(seed)
    X = np.round(generator.normal(size=(24, 4)), 1) + np.repeat(np.eye(4), 6, axis=0)
    one, other = (Adapter(container(X[:20]), random_state=0) for _ in range(2))
    asked = X[:1]
    for step in steps:
        if step == "files":
            other.save(path)
            other = am.load(path)
            other.search(container(X), 3)
            continue
        if step == "add":
            arguments = [container(X[generator.integers(24, size=generator.integers(1, 4))])]
        elif step == "remove":
            arguments = [generator.permutation(one.ids)[: generator.integers(1, min(4, len(one)))]]
        else:
            asked = asked if step == "again" else X[[generator.integers(24)]] + generator.integers(2) * 0.1
            shown = one.search(asked, 5).ids[0]
            cut = generator.integers(1, len(shown) + 1)
            arguments = [asked, shown, shown[cut - 1]] if step == "click" else [asked, shown[:cut], shown[cut:]]
        for adapter in (one, other):
            getattr(adapter, "judge" if step == "again" else step)(*arguments)
    assert state_of(one._feedback) == state_of(other._feedback)
    assert one.diagnostics_ == other.diagnostics_
    np.testing.assert_array_equal(one.ids, other.ids)
    for Q in (X, X[:1]):
        views = (adapter._neighbourhood.correction(adapter._as_queries(Q)) for adapter in (one, other))
        for mine, theirs in zip(*views, strict=True):
            np.testing.assert_array_equal(mine, theirs)


# -- names and numbers ------------------------------------------------------------------------------------------------


def one_digest(row):
    """Name one row, as in files that are there already."""
    parts = [row + 0.0]
    if sparse.issparse(row):
        parts = [row.indices[row.data != 0].astype(np.int64), row.data[row.data != 0]]
    return hashlib.sha256(b"|".join(np.ascontiguousarray(part).tobytes() for part in parts)).digest()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_rows_of_a_batch_have_the_hashes_of_single_rows(container, dtype):
    X = np.round(np.random.default_rng(0).normal(size=(30, 6))).astype(dtype)
    X[7] = 0
    rows = container(X)
    if sparse.issparse(rows):
        rows.data[::5] = 0  # stored, and the same as none
    else:
        rows[::5] *= -0.0
    expected = [one_digest(rows[[number]]) for number in range(30)]
    assert row_hashes(rows) == expected
    assert row_hashes(rows[3:9]) == expected[3:9]
    assert len(set(expected)) > 20


def test_row_hashes_are_stable_across_versions():
    rows = np.array([[0.5, -0.0, 2.0]])
    assert row_hashes(rows)[0].hex()[:16] == "5ec019fa7d8a9606"
    assert row_hashes(sparse.csr_array(rows))[0].hex()[:16] == "da18574bab8da2b0"


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60), st.sampled_from([0.05, 0.5]))
def test_quantiles_of_sorted_values_are_those_of_numpy_to_the_bit(values, share):
    assert quantile_of_sorted(sorted(values), share) == np.quantile(values, share)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("container", [np.asarray, np.asfortranarray, sparse.csr_array])
def test_unit_rows_are_those_of_scikit_learn_to_the_bit(container, dtype):
    X = np.random.default_rng(0).normal(size=(40, 7)).astype(dtype)
    X *= 10.0 ** np.arange(-20, 20)[:, np.newaxis]
    X[3] = 0
    rows = container(X)
    found, expected = (as_dense(each) for each in (unit_rows(rows), normalize(rows)))
    assert found.dtype == expected.dtype == dtype
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(as_dense(rows), X)

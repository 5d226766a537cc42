"""Pending updates, and products taken for a run of triplets at once, are the same algorithm, and cuts do not show."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import aromatch as am
import reference
from aromatch.learners.online import pending

ORACLES = {am.FactoredAROMA: reference.f_aroma, am.OASIS: reference.oasis}
KINDS = ("whole", "sparse", "zero")


def rows_of_kinds(kinds, width, rng):
    """Give one row for each: whole, with most of it zero, or zero."""
    rows = rng.normal(size=(len(kinds), width))
    for row, kind in zip(rows, kinds, strict=True):
        if kind == "sparse":
            row[rng.permutation(width)[3:]] = 0
        elif kind == "zero":
            row[:] = 0
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def mixed_problem(m, n, seed, n_triplets=400, kinds=("whole",) * 8 + ("sparse",) * 3 + ("zero",)):
    rng = np.random.default_rng(seed)
    Q, P = (rows_of_kinds(rng.choice(kinds, size=30), width, rng) for width in (m, n))
    return Q, P, np.column_stack([rng.integers(30, size=n_triplets), rng.integers(30, size=(n_triplets, 2))])


def state_bits(model):
    return {name: array.tobytes() for name, array in model._state.items()}


@pytest.mark.parametrize("kinds", [("whole",), ("sparse",), ("whole", "sparse"), KINDS], ids=" and ".join)
@pytest.mark.parametrize("learner", ORACLES)
@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [("float64", 1e-11), ("float32", 2e-3)],
)
def test_runs_of_whole_rows_and_sparse_rows_between_them_agree_with_the_paper(learner, kinds, dtype, tolerance):
    Q, P, triplets = mixed_problem(45, 61, seed=1, kinds=kinds)
    options = {"init": "zero"} if learner is am.OASIS else {}
    model = learner(dtype=dtype, **options).fit_triplets(triplets, Q, P)
    expected = ORACLES[learner](triplets, Q, P, W0=np.zeros((45, 61)))
    for name, matrix in expected.matrices.items():
        error = np.linalg.norm(getattr(model, name) - matrix) / np.linalg.norm(matrix)
        assert error < tolerance, name
    if dtype == "float64":
        assert model.n_updates_ == expected.n_updates
        assert model.n_mistakes_ == expected.n_mistakes


@pytest.mark.parametrize("learner", ORACLES)
@pytest.mark.parametrize("size", [2, 7])
def test_every_reading_agrees_with_the_plain_loop_at_and_between_folds(learner, size, monkeypatch):
    Q, P, triplets = mixed_problem(35, 50, seed=2, n_triplets=60, kinds=("whole",))
    options = {"init": "zero"} if learner is am.OASIS else {"r": 0.1}
    monkeypatch.setattr(pending, "block_size", lambda m, n: 0)
    plain = learner(**options).fit_triplets(triplets[:0], Q, P)
    monkeypatch.setattr(pending, "block_size", lambda m, n: size)
    in_blocks = learner(**options).fit_triplets(triplets[:0], Q, P)
    fills = set()
    for i in range(60):
        for model in (in_blocks, plain):
            model.partial_fit_triplets(triplets[i : i + 1], Q, P)
        fills.add(int(in_blocks._state["counts"][3]))
        for read in (
            lambda model: model.W_,
            lambda model: model.similarity(Q, P),
            lambda model: model.margins(triplets, Q, P),
            lambda model: model.pair_score(Q, P),
        ):
            np.testing.assert_allclose(read(in_blocks), read(plain), rtol=0, atol=1e-12)
    assert plain._state["counts"][3] == 0
    assert fills == set(range(size))


@settings(max_examples=60)
@given(
    learner=st.sampled_from([am.FactoredAROMA, am.OASIS, am.DiagonalAROMA]),
    dtype=st.sampled_from(["float64", "float32"]),
    widths=st.tuples(st.integers(13, 70), st.integers(13, 70)),
    seed=st.integers(0, 10**6),
    cuts=st.lists(st.integers(0, 150), max_size=6),
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=6),
    C=st.sampled_from([0.1, 3.0]),
)
def test_cuts_and_containers_do_not_change_a_bit(learner, dtype, widths, seed, cuts, kinds, C):
    Q, P, triplets = mixed_problem(*widths, seed, n_triplets=150, kinds=kinds)
    options = {"init": "zero", "C": C} if learner is am.OASIS else {"r": 1 / C}
    whole = learner(dtype=dtype, **options).fit_triplets(triplets, Q, P)
    pieces = learner(dtype=dtype, **options)
    for part in np.split(triplets, sorted(cuts)):
        pieces.partial_fit_triplets(part, Q, P)
    assert state_bits(pieces) == state_bits(whole)
    for container in (sparse.csr_matrix, np.asfortranarray, lambda X: np.repeat(X, 2, axis=1)[:, ::2]):
        other = learner(dtype=dtype, **options).fit_triplets(triplets, container(Q), container(P))
        assert state_bits(other) == state_bits(whole)


@pytest.mark.parametrize("learner", ORACLES)
@pytest.mark.parametrize("width", [64, 97, 200])
def test_judgements_one_by_one_give_the_bits_of_a_block_of_whole_rows(learner, width):
    """One triplet is multiplied in another way than many, cell by cell in the same order."""
    Q, P, triplets = mixed_problem(width, width + 3, seed=3, n_triplets=230, kinds=("whole",))
    options = {"init": "zero"} if learner is am.OASIS else {}
    block, one_by_one = learner(**options).fit_triplets(triplets, Q, P), learner(**options)
    for i, j, k in triplets:
        one_by_one.learn_one(Q[i], P[j], P[k])
    assert state_bits(block) == state_bits(one_by_one)
    assert block.n_updates_ > 2 * pending.block_size(width, width)


def test_a_file_keeps_pending_steps_of_oasis_and_learning_resumes_with_a_bit_identical_result(tmp_path):
    Q, P, triplets = mixed_problem(40, 40, seed=4, kinds=("whole",))
    model = am.OASIS().fit_triplets(triplets[:333], Q, P)
    assert model._state["counts"][3] > 0
    model.save(tmp_path / "model")
    loaded = am.load(tmp_path / "model")
    for judge in (model, loaded):
        judge.partial_fit_triplets(triplets[333:], Q, P)
    assert state_bits(loaded) == state_bits(model)


def test_a_file_with_more_pending_steps_than_there_is_room_for_is_refused(tmp_path):
    Q, P, triplets = mixed_problem(40, 40, seed=5, kinds=("whole",))
    model = am.OASIS().fit_triplets(triplets, Q, P)
    model._state["counts"][3] = len(model._state["pending_a"])
    with pytest.raises(ValueError, match="pending updates, expected less than"):
        model.save(tmp_path / "model")


@pytest.mark.parametrize("learner", [*ORACLES, am.DiagonalAROMA])
@pytest.mark.parametrize("count", [2**53 + 1, 2**63 - 1])
def test_a_file_with_counts_that_learning_could_overflow_is_refused(learner, count, tmp_path):
    Q, P, triplets = mixed_problem(40, 40, seed=5, kinds=("whole",))
    model = learner().fit_triplets(triplets, Q, P)
    model._state["counts"][0] = count
    with pytest.raises(ValueError, match="counts of the model"):
        model.save(tmp_path / "model")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("share_of_zeros", [0.0, 0.9])
def test_whether_the_cells_of_d_aroma_lie_side_by_side_does_not_show(dtype, share_of_zeros, tmp_path):
    """A model that was saved, pickled or deep-copied has two matrices of its own until it learns on."""
    rng = np.random.default_rng(6)
    Q, P = (rng.normal(size=(40, w)) * (rng.random((40, w)) >= share_of_zeros) for w in (37, 29))
    triplets = rng.integers(40, size=(300, 3))
    model = am.DiagonalAROMA(dtype=dtype).fit_triplets(triplets[:200], Q, P)
    model.save(tmp_path / "model")
    for other in (am.load(tmp_path / "model"), pickle.loads(pickle.dumps(model)), copy.deepcopy(model), model.copy()):
        for rows in (slice(0, 1), slice(None)):
            np.testing.assert_array_equal(other.similarity(Q[rows], P), model.similarity(Q[rows], P))
            np.testing.assert_array_equal(other.transform(Q[rows]), model.transform(Q[rows]))
        np.testing.assert_array_equal(other.margins(triplets, Q, P), model.margins(triplets, Q, P))
        np.testing.assert_array_equal(other.margin_std(triplets, Q, P), model.margin_std(triplets, Q, P))
        before = state_bits(model)
        other.partial_fit_triplets(triplets[200:], Q, P)
        assert state_bits(model) == before
        assert state_bits(other) == state_bits(model.copy().partial_fit_triplets(triplets[200:], Q, P))

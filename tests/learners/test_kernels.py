"""Slips in the kernels that no other test would notice: the last lane of a register, the odd stride, the quarter."""

import numpy as np
import pytest
from scipy import sparse

import aromatch as am
from aromatch.exceptions import NumericalError
from aromatch.learners.online import pending
from saved_state import saved_state

WIDTH = 19  # two registers of float32 and a rest, whatever the kernel


def csr_with_wide_indices(X):
    X = sparse.csr_matrix(X)
    return sparse.csr_matrix((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)


CONTAINERS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "every other column": lambda X: np.insert(X, np.arange(X.shape[1]), 0, axis=1)[:, 1::2],
    "CSR": sparse.csr_matrix,
    "CSR with wide indices": csr_with_wide_indices,
}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("column", range(WIDTH))
def test_nan_and_infinity_are_found_in_every_column_of_every_container(container, dtype, column):
    for value in (np.nan, np.inf):
        X = np.ones((3, WIDTH), dtype=dtype)
        X[1, column] = value
        X = CONTAINERS[container](X)
        with pytest.raises(ValueError, match="P contains NaN or infinity in row 1,"):
            am.DiagonalAROMA().fit_triplets([[0, 1, 2]], np.eye(3), X)
        with pytest.raises(ValueError, match="p_pos contains NaN or infinity"):
            am.DiagonalAROMA().learn_one(np.ones(3), X[1], np.ones(WIDTH))


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("column", range(WIDTH))
def test_a_number_that_is_too_large_is_noticed_in_every_column_of_every_container(container, dtype, column):
    X = np.eye(2, WIDTH, dtype=dtype)
    X[0, column] = 1e6  # |q|^2 |p|^2 / r is 1e12
    with pytest.raises(ValueError, match="expected at most"):
        am.FactoredAROMA().fit_triplets([[0, 0, 1]], np.ones((1, 2)), CONTAINERS[container](X))
    with pytest.raises(ValueError, match="expected at most"):
        am.FactoredAROMA().learn_one(np.ones(2), CONTAINERS[container](X)[[0]], X[1])


@pytest.mark.parametrize(("dtype", "largest"), [("float64", 1e150), ("float32", 1e18)])
@pytest.mark.parametrize("column", range(WIDTH))
def test_a_cell_that_carries_the_whole_variance_keeps_what_is_left_of_it_anywhere_in_a_whole_row(
    dtype, largest, column
):
    p = np.full(WIDTH, 1e-9)
    p[column] = 1
    for scale in np.geomspace(1.0, largest, 12):
        model = am.DiagonalAROMA(dtype=dtype)
        model.learn_one(np.array([scale**0.5]), p, np.zeros(WIDTH))
        assert model.Sigma_[0, column] * (scale + 1) > 0.999  # rounding may leave more, never less


@pytest.mark.parametrize(("dtype", "largest"), [("float64", 1e150), ("float32", 1e18)])
@pytest.mark.parametrize(("width", "row"), [(width, row) for width in range(1, 6) for row in range(width)])
def test_a_cell_that_carries_the_whole_variance_keeps_what_is_left_of_it_in_every_row(dtype, largest, width, row):
    p = np.eye(1, WIDTH)[0]
    for scale in np.geomspace(1.0, largest, 12):
        q = np.full(width, 1e-9)
        q[row] = scale**0.5
        model = am.DiagonalAROMA(dtype=dtype)
        model.learn_one(q, p, np.zeros(WIDTH))
        assert model.Sigma_[row, 0] * (scale + 1) > 0.999  # rounding may leave more, never less


@pytest.mark.parametrize("learner", [am.FactoredAROMA, am.OASIS])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_other_column_of_single_precision_is_read_as_a_copy_of_it(learner, dtype):
    """Its numbers lie as far apart as those of double precision do."""
    rng = np.random.default_rng(7)
    wide = rng.normal(size=(20, 60)).astype(np.float32)
    triplets = rng.integers(20, size=(100, 3))
    found = learner(init="zero", dtype=dtype).fit_triplets(triplets, wide[:, ::2])
    plain = learner(init="zero", dtype=dtype).fit_triplets(triplets, wide[:, ::2].copy())
    np.testing.assert_array_equal(found.W_, plain.W_)


@pytest.mark.parametrize("learner", [am.FactoredAROMA, am.OASIS])
def test_a_judgement_may_mix_precisions_and_strides(learner):
    rng = np.random.default_rng(8)
    rows = rng.normal(size=(40, 3, 30)).astype(np.float32)  # so that both precisions hold the same numbers
    forms = [
        lambda x: x,
        lambda x: x.astype(np.float64),
        lambda x: np.repeat(x, 2)[::2],
        lambda x: np.repeat(x.astype(np.float64), 3)[::3],
        lambda x: x[::-1].copy()[::-1],
    ]
    mixed, plain = learner(init="zero"), learner(init="zero")
    for q, good, bad in rows:
        a, b, c = rng.integers(len(forms), size=3)
        mixed.learn_one(forms[a](q), forms[b](good), forms[c](bad))
        plain.learn_one(q, good, bad)
    np.testing.assert_array_equal(mixed.W_, plain.W_)


@pytest.mark.parametrize("name", ["data", "indices"])
def test_a_single_csr_row_with_fewer_entries_than_it_says_is_refused(name):
    row = sparse.csr_matrix(np.arange(1.0, 5.0)[None])
    setattr(row, name, getattr(row, name)[:-2])
    with pytest.raises(ValueError, match="p_pos is not a valid CSR matrix"):
        am.DiagonalAROMA().learn_one(np.ones(2), row, np.zeros(4))


def with_gaps(row, name, between):
    array = getattr(row, name)
    wider = np.full(2 * len(array), between, dtype=array.dtype)
    wider[::2] = array
    setattr(row, name, wider[::2])


def with_wide(row, *names):
    for name in names:
        setattr(row, name, getattr(row, name).astype(np.int64))


UNUSUAL_ROWS = {
    "gaps in data": lambda row: with_gaps(row, "data", 7),
    "gaps in indices": lambda row: with_gaps(row, "indices", 2),
    "gaps in indptr": lambda row: with_gaps(row, "indptr", 1),
    "gaps in indices and indptr": lambda row: (with_gaps(row, "indices", 2), with_gaps(row, "indptr", 1)),
    "a wide indptr": lambda row: with_wide(row, "indptr"),
    "wide indices": lambda row: with_wide(row, "indices"),
    "both wide": lambda row: with_wide(row, "indices", "indptr"),
    "duplicates": lambda row: None,
}


@pytest.mark.parametrize("form", UNUSUAL_ROWS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_judgement_reads_a_csr_row_with_unusual_arrays_as_the_vector_it_stands_for(form, dtype):
    indices = [1, 1, 4] if form == "duplicates" else [1, 3, 4]
    row = sparse.csr_matrix((np.array([1, 2, 3], dtype=dtype), np.array(indices), np.array([0, 3])), shape=(1, 6))
    p = row.toarray()[0]
    UNUSUAL_ROWS[form](row)
    found, plain = am.DiagonalAROMA(), am.DiagonalAROMA()
    found.learn_one(np.ones(2), row, np.ones(6))
    plain.learn_one(np.ones(2), p, np.ones(6))
    np.testing.assert_array_equal(found.W_, plain.W_)


@pytest.mark.parametrize("nothing", [np.empty(0), sparse.csr_matrix((1, 0))], ids=["vector", "CSR"])
def test_a_judgement_of_rows_without_columns_is_refused(nothing):
    with pytest.raises(ValueError, match="q "):
        am.DiagonalAROMA().learn_one(nothing, np.ones(2), np.zeros(2))
    with pytest.raises(ValueError, match="p_pos "):
        am.DiagonalAROMA().learn_one(np.ones(2), nothing, nothing)


@pytest.mark.parametrize("indptr", [[0], [0, 2, 4]])
def test_a_single_csr_row_with_an_indptr_of_another_length_is_refused(indptr):
    row = sparse.csr_matrix(np.arange(1.0, 5.0)[None])
    row.indptr = np.array(indptr, dtype=np.int32)
    with pytest.raises(ValueError, match="p_pos is not a valid CSR matrix"):
        am.DiagonalAROMA().learn_one(np.ones(2), row, np.zeros(4))


@pytest.mark.parametrize("learner", [am.FactoredAROMA, am.OASIS])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("side", ["queries", "objects"])
def test_rows_with_exactly_a_quarter_of_non_zeros_give_the_same_bits_in_every_container(learner, dtype, side):
    rng = np.random.default_rng(9)
    Q, P = rng.normal(size=(2, 30, 32))
    quarter = Q if side == "queries" else P
    quarter[:, rng.permutation(32)[8:]] = 0  # the same columns in all, so that differences have them too
    triplets = rng.integers(30, size=(200, 3))
    triplets = triplets[triplets[:, 1] != triplets[:, 2]]
    plain = learner(init="zero", dtype=dtype).fit_triplets(triplets, Q, P)
    for container in (sparse.csr_matrix, np.asfortranarray):
        other = learner(init="zero", dtype=dtype).fit_triplets(triplets, container(Q), container(P))
        for name, array in saved_state(plain).items():
            np.testing.assert_array_equal(saved_state(other)[name], array)


@pytest.mark.parametrize("C", [0.001, 0.1])
def test_weights_and_lengths_of_whole_rows_count_in_blocks_of_oasis_as_in_the_plain_loop(C, monkeypatch):
    rng = np.random.default_rng(10)
    Q, P = 0.3 * rng.normal(size=(30, 20)), 0.7 * rng.normal(size=(30, 25))
    triplets, weights = rng.integers(30, size=(300, 3)), rng.choice([0.0, 0.3, 1.0, 4.0], size=300)
    in_blocks = am.OASIS(init="zero", C=C).fit_triplets(triplets, Q, P, sample_weight=weights)
    monkeypatch.setattr(pending, "block_size", lambda m, n: 0)
    plain = am.OASIS(init="zero", C=C).fit_triplets(triplets, Q, P, sample_weight=weights)
    np.testing.assert_allclose(in_blocks.W_, plain.W_, rtol=0, atol=1e-12)
    assert in_blocks.n_updates_ == plain.n_updates_


def test_a_margin_of_exactly_one_between_whole_rows_changes_nothing_in_oasis():
    model = am.OASIS(init=np.full((32, 32), 2.0**-10)).fit_triplets([], np.ones((1, 32)))
    judgement = model.learn_one(np.ones(32), np.ones(32), np.zeros(32))
    assert (judgement.margin, model.n_updates_) == (1, 0)


def test_a_margin_between_whole_rows_that_overflows_stops_oasis_with_a_clear_error():
    model = am.OASIS(init="zero").fit_triplets([], np.eye(33))
    model._state["W"][0, 0] = -1e308
    with pytest.raises(NumericalError, match="triplet 0"):
        model.learn_one(np.full(33, 100.0), np.ones(33), np.zeros(33))
    assert model.n_triplets_seen_ == 0


@pytest.mark.parametrize("width", [2**40, 2**59, 2**61, 2**62, 2**63 - 1])
def test_rows_too_wide_for_the_memory_of_one_triplet_are_refused(width):
    Q = sparse.csr_array((np.full(1000, 1e90), np.arange(1000), [0, 1000]), shape=(1, width))
    with pytest.raises(MemoryError, match=r"does not fit in memory|of Q, of shape"):
        am.DiagonalAROMA().fit_triplets([[0, 0, 1]], Q, [[1e40], [2e40]])

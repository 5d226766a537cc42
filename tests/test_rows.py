"""Rows are read where they lie, whatever holds them; what is wrong with one is said, and which it is."""

import numpy as np
import pytest
from scipy import sparse

import aromatch as am

TRIPLET_LEARNERS = [am.DiagonalAROMA, am.FactoredAROMA, am.FullAROMA, am.OASIS]
ROWS = np.arange(1.0, 17.0).reshape(4, 4)


def csr_with(**arrays):
    """A CSR matrix whose arrays were replaced behind SciPy's back."""
    out = sparse.csr_matrix(ROWS)
    for name, change in arrays.items():
        setattr(out, name, change(getattr(out, name).copy()))
    return out


def set_at(place, value):
    def change(array):
        array[place] = value
        return array

    return change


def reversed_first_row(indices):
    indices[:4] = indices[:4][::-1].copy()
    return indices


@pytest.mark.parametrize(
    "X",
    [
        csr_with(data=lambda a: a[:-2]),  # views: what lies beyond would pass for entries
        csr_with(indices=lambda a: a[:-2]),
        csr_with(indptr=set_at(3, -1)),
        csr_with(indptr=set_at(4, 11)),
        csr_with(indices=set_at(15, 4)),
        csr_with(indices=set_at(12, -1)),
        csr_with(indices=reversed_first_row, indptr=set_at(4, 10**8)),
    ],
    ids=[
        "fewer values than indptr says",
        "fewer indices than indptr says",
        "an indptr under zero",
        "an indptr that falls at the end",
        "an index of exactly the width",
        "an index under zero",
        "unsorted, then an indptr far beyond the data",
    ],
)
def test_a_csr_matrix_that_lies_about_its_last_row_is_refused(X):
    with pytest.raises(ValueError, match="P is not a valid CSR matrix"):
        am.DiagonalAROMA(r=5.0).fit_triplets([[0, 0, 1], [1, 3, 2]], np.eye(4), X)


def test_a_csr_matrix_that_starts_before_its_data_is_refused():
    X = sparse.csr_matrix(np.array([[0.0, 2.0], [3.0, 0.0]]))
    X.data, X.indices = np.array([9.0, 2.0, 3.0])[1:], np.array([0, 1, 0], dtype=np.int32)[1:]
    X.indptr = np.array([-1, 1, 2], dtype=np.int32)
    with pytest.raises(ValueError, match="P is not a valid CSR matrix: row 0 "):
        am.DiagonalAROMA().fit_triplets([[0, 0, 1]], np.eye(2), X)


@pytest.mark.parametrize("learner", TRIPLET_LEARNERS)
def test_a_csr_row_that_stores_only_zeros_is_a_zero_row(learner):
    zeros = sparse.csr_matrix((np.zeros(2), ([0, 0], [0, 1])), shape=(1, 2))
    assert zeros.nnz == 2
    model = learner(init="zero").fit_triplets([[0, 0, 1]], zeros, np.eye(2))
    assert (model.n_triplets_seen_, model.n_updates_, model.n_mistakes_) == (1, 0, 1)


@pytest.mark.parametrize("learner", TRIPLET_LEARNERS)
def test_duplicates_in_sorted_csr_rows_are_added(learner):
    X = sparse.csr_matrix((np.array([1.0, 2.0, 4.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    found = learner(init="zero").fit_triplets([[0, 0, 1]], np.eye(2), X)
    plain = learner(init="zero").fit_triplets([[0, 0, 1]], np.eye(2), X.toarray())
    np.testing.assert_array_equal(found.W_, plain.W_)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("container", [np.asarray, np.asfortranarray, sparse.csr_matrix])
def test_nan_and_infinity_are_found_in_every_container_and_the_first_row_is_named(container, value):
    X = ROWS.copy()
    X[1, 2] = X[3, 0] = value
    with pytest.raises(ValueError, match="P contains NaN or infinity in row 1,"):
        am.DiagonalAROMA().fit_triplets([[0, 1, 0], [1, 3, 2]], np.eye(4), container(X))


def test_only_what_a_strided_view_shows_is_looked_at():
    everything = np.full((8, 8), np.nan)
    X = everything[6::-2, 1::2]
    X[:] = ROWS
    found = am.DiagonalAROMA(r=5.0).fit_triplets([[0, 1, 0], [1, 3, 2]], np.eye(4), X)
    plain = am.DiagonalAROMA(r=5.0).fit_triplets([[0, 1, 0], [1, 3, 2]], np.eye(4), ROWS)
    np.testing.assert_array_equal(found.W_, plain.W_)
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="P contains NaN or infinity in row 3,"):
        am.DiagonalAROMA(r=5.0).fit_triplets([[0, 1, 0], [1, 3, 2]], np.eye(4), X)


def test_the_first_of_several_broken_csr_rows_is_named():
    X = csr_with(indices=set_at([5, 13], 99), data=set_at(14, np.nan))
    with pytest.raises(ValueError, match="P is not a valid CSR matrix: row 1 "):
        am.DiagonalAROMA().fit_triplets([[0, 1, 0], [1, 3, 2]], np.eye(4), X)


CONVERTED = {
    "integers": lambda X: X.astype(np.int64),
    "objects": lambda X: X.astype(object),
    "CSR of integers": lambda X: sparse.csr_matrix(X.astype(np.int32)),
    "CSR out of order": lambda X: sparse.csr_matrix(X[:, ::-1])[:, ::-1],
}


@pytest.mark.parametrize("form", CONVERTED)
def test_rows_that_must_be_converted_keep_their_numbers_when_only_some_are_used(form):
    X = np.random.default_rng(0).integers(-3, 4, size=(30, 6)).astype(float)
    triplets = np.array([[29, 7, 11], [3, 29, 7], [11, 3, 29]])
    found = am.DiagonalAROMA().fit_triplets(triplets, CONVERTED[form](X))
    plain = am.DiagonalAROMA().fit_triplets(triplets, X)
    np.testing.assert_array_equal(found.W_, plain.W_)
    np.testing.assert_array_equal(found.margins(triplets, CONVERTED[form](X)), plain.margins(triplets, X))


@pytest.mark.parametrize("form", ["objects", "CSR out of order"])
def test_the_row_that_is_named_is_that_of_the_matrix_which_was_passed(form):
    X = np.random.default_rng(0).integers(1, 4, size=(30, 6)).astype(float)
    X[23, 2] = np.nan
    with pytest.raises(ValueError, match="Q contains NaN or infinity in row 23,"):
        am.DiagonalAROMA().fit_triplets([[29, 7, 23]], CONVERTED[form](X))

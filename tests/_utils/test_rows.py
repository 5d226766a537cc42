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


FEW = np.array([[9, 7, 4], [5, 4, 7], [9, 2, 5]])  # not all rows, odd and even ones
SPREAD_OUT = np.random.default_rng(1).integers(-4, 5, size=(12, 6)).astype(float)


def with_rows_zero_and_one_broken_and_row_seven_unsorted(X):
    csr = sparse.csr_matrix(X)
    csr.indptr[1] = 10**6
    part = slice(csr.indptr[7], csr.indptr[8])
    csr.indices[part], csr.data[part] = csr.indices[part][::-1].copy(), csr.data[part][::-1].copy()
    return csr


@pytest.mark.parametrize(
    "convert",
    [
        lambda X: X.astype(np.int32),
        lambda X: X.astype(object),
        lambda X: sparse.csr_matrix(X.astype(np.int32)),
        lambda X: sparse.csc_matrix(X.astype(np.int32)),
        with_rows_zero_and_one_broken_and_row_seven_unsorted,
    ],
    ids=[
        "integers",
        "objects",
        "CSR integers",
        "CSC integers",
        "unsorted CSR with broken rows that are not named",
    ],
)
@pytest.mark.parametrize("learner", TRIPLET_LEARNERS)
def test_rows_that_are_converted_keep_their_places_when_only_some_are_used(learner, convert):
    model = learner(init="zero").fit_triplets(FEW, convert(SPREAD_OUT))
    plain = learner(init="zero").fit_triplets(FEW, SPREAD_OUT)
    np.testing.assert_array_equal(model.W_, plain.W_)
    both = learner(init="zero").fit_triplets(FEW, convert(SPREAD_OUT), SPREAD_OUT)
    np.testing.assert_array_equal(both.W_, plain.W_)
    np.testing.assert_array_equal(model.margins(FEW, convert(SPREAD_OUT)), plain.margins(FEW, SPREAD_OUT))


@pytest.mark.parametrize("convert", [lambda X: X.astype(object), lambda X: X.astype(np.float16)])
def test_a_bad_value_in_converted_rows_is_named_by_its_row_in_what_was_passed(convert):
    spoiled = SPREAD_OUT.copy()
    spoiled[7, 2] = np.nan
    with pytest.raises(ValueError, match="Q contains NaN or infinity in row 7,"):
        am.DiagonalAROMA().fit_triplets(FEW, convert(spoiled))


def with_indptr_wider_than_indices(X):
    csr = sparse.csr_matrix(X)
    csr.indptr = csr.indptr.astype(np.int64)
    assert csr.indices.dtype == np.int32
    return csr


def with_gaps(name, between):
    def convert(X):
        csr = sparse.csr_matrix(X)
        array = getattr(csr, name)
        wider = np.full(2 * len(array), between, dtype=array.dtype)
        wider[::2] = array
        setattr(csr, name, wider[::2])
        return csr

    return convert


# More entries of ACCEPTED.
@pytest.mark.parametrize(
    "convert",
    [
        with_indptr_wider_than_indices,
        with_gaps("data", np.nan),
        with_gaps("indices", 99),
        with_gaps("indptr", -1),
    ],
    ids=["indptr wider than indices", "gaps in data", "gaps in indices", "gaps in indptr"],
)
def test_csr_arrays_of_two_index_types_or_with_gaps_between_their_entries_are_accepted(convert):
    model = am.DiagonalAROMA(r=5.0).fit_triplets(FEW, convert(SPREAD_OUT))
    plain = am.DiagonalAROMA(r=5.0).fit_triplets(FEW, SPREAD_OUT)
    np.testing.assert_array_equal(model.W_, plain.W_)


def test_rows_that_end_and_begin_in_the_same_column_are_kept_apart_when_duplicates_are_added():
    X = sparse.csr_matrix(
        (np.array([1.0, 2.0, 5.0, 7.0]), np.array([1, 1, 1, 0]), np.array([0, 2, 3, 4])), shape=(3, 2)
    )
    found = am.DiagonalAROMA().fit_triplets([[0, 0, 1], [1, 1, 2]], X)
    plain = am.DiagonalAROMA().fit_triplets([[0, 0, 1], [1, 1, 2]], X.toarray())
    np.testing.assert_array_equal(found.W_, plain.W_)


@pytest.mark.parametrize(("dtype", "large"), [(np.float64, 1e16), (np.float32, 1e8)])
def test_duplicates_are_added_in_the_order_and_precision_they_are_stored_as_toarray_does(dtype, large):
    for values in ([large, 1.0, -large], [1.0, large, -large], [large, -large, 1.0]):
        X = sparse.csr_matrix(
            (np.array([*values, 1.0], dtype=dtype), np.array([0, 0, 0, 1]), np.array([0, 3, 4])), shape=(2, 2)
        )
        found = am.OASIS(init="zero").fit_triplets([[1, 0, 1]], np.eye(2), X)
        plain = am.OASIS(init="zero").fit_triplets([[1, 0, 1]], np.eye(2), X.toarray())
        np.testing.assert_array_equal(found.W_, plain.W_)


def test_an_unsorted_row_in_one_place_of_a_triplet_does_not_hide_a_broken_one_in_another():
    X = csr_with(indices=reversed_first_row, indptr=set_at(4, 10**8))
    with pytest.raises(ValueError, match="P is not a valid CSR matrix"):
        am.DiagonalAROMA(r=5.0).fit_triplets([[0, 0, 1], [1, 2, 3]], np.eye(4), X)


@pytest.mark.parametrize(("value", "dtype"), [(np.inf, "float64"), (-np.inf, "float32"), (1e300, "float32")])
@pytest.mark.parametrize("learner", TRIPLET_LEARNERS)
def test_an_initial_matrix_that_is_infinite_in_the_precision_of_the_model_is_refused(learner, value, dtype):
    with pytest.raises(ValueError, match="init contains NaN, infinity or numbers too large for"):
        learner(init=np.full((2, 2), value), dtype=dtype).fit_triplets([[0, 1, 0]], np.eye(2))


INDEX_TYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", ">i4"]


@pytest.mark.parametrize("dtype", INDEX_TYPES)
@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo", "dia", "lil", "dok"])
def test_every_sparse_format_and_index_type_is_read_like_the_dense_rows(kind, dtype):
    X = sparse.csr_array(ROWS).asformat(kind)
    if kind in ("csr", "csc", "bsr"):
        X.indices, X.indptr = X.indices.astype(dtype), X.indptr.astype(dtype)
    elif kind == "coo":
        X.coords = tuple(along.astype(dtype) for along in X.coords)
    elif kind == "dia" and not dtype.startswith("u"):
        X.offsets = X.offsets.astype(dtype)
    triplets = [[0, 1, 2], [3, 2, 0]]
    expected = am.DiagonalAROMA(r=5.0).fit_triplets(triplets, ROWS)
    assert np.array_equal(am.DiagonalAROMA(r=5.0).fit_triplets(triplets, X).W_, expected.W_)
    assert np.allclose(am.Cosine().fit(X).transform(X) @ ROWS.T, am.Cosine().fit(ROWS).transform(ROWS) @ ROWS.T)
    assert np.allclose(
        am.Index(am.Euclidean(), X).search(X, 2).scores, am.Index(am.Euclidean(), ROWS).search(ROWS, 2).scores
    )


def broken(kind, **arrays):
    """A sparse matrix whose arrays were replaced behind SciPy's back."""
    out = sparse.csr_array(ROWS).asformat(kind)
    for name, array in arrays.items():
        setattr(out, name, array)
    return out


def lists(rows):
    """An array of lists, as SciPy stores a LIL matrix."""
    out = np.empty(len(rows), dtype=object)
    out[:] = rows
    return out


@pytest.mark.parametrize(
    "X",
    [
        broken("csc", indices=np.full(16, 10**8, np.int32)),
        broken("csc", indptr=np.array([0, 4, 8, 12, 10**8], np.int32)),
        broken("csc", indptr=np.array([0, 12, 8, 12, 16], np.int32)),
        broken("csr", indices=np.full(16, 100, np.int8)),
        broken("csr", indices=np.full(16, -1, np.int16)),
        broken("csr", indices=np.full(16, 2**64 - 1, np.uint64)),
        broken("csr", indices=np.zeros(16)),
        broken("bsr", indices=np.full(4, 10**8, np.int32)),
        broken("bsr", data=np.zeros((16, 0, 0))),
        broken("bsr", data=np.zeros((4, 3, 3))),
        broken("coo", coords=(np.full(16, 10**8), np.zeros(16, np.int64))),
        broken("coo", coords=(np.zeros(3, np.int64), np.zeros(3, np.int64))),
        broken("dia", offsets=np.array([-(2**31), -2, -1, 0, 1, 2, 2**31 - 1])),
        broken("dia", offsets=np.zeros(7, np.int64)),
        broken("lil", rows=lists([[0, 1, 2, 3]] * 3)),
        broken("lil", rows=lists([[0, 1, 2, 3]] * 40)),
        broken("lil", rows=lists([[0]] * 4)),
        broken("lil", rows=lists([[2**62, 0, 1, 2]] * 4)),
        broken("lil", data=lists([[1.0] * 40] * 4)),
        broken("lil", data=lists([[1.0]] * 4)),
        broken("lil", data=lists([(1.0,) * 4] * 4)),
        broken("lil", rows=lists([[0, 1, 2, 4]] * 4)),
        broken("lil", rows=lists([[-1, 1, 2, 3]] * 4)),
        broken("lil", rows=lists([[0, 1, 2, 0.5]] * 4)),
        broken("lil", rows=lists([[0, 1, 2, None]] * 4)),
        broken("lil", rows=lists([None] * 4)),
        broken("lil", rows=[[0, 1, 2, 3]] * 4),
        broken("lil", _shape=(2, 4)),
        broken("lil", _shape=(400, 4)),
        broken("lil", _shape=(4, 3)),
        broken("dok", _dict={(4, 0): 1.0}),
        broken("dok", _dict={(0, -1): 1.0}),
        broken("dok", _dict={(2**40, 0): 1.0}),
        broken("dok", _dict={(2**62, 2**62): 1.0}),
        broken("dok", _dict={(2**70, 0): 1.0}),
        broken("dok", _dict={(0,): 1.0}),
        broken("dok", _dict={(0, 0, 0): 1.0}),
        broken("dok", _dict={(0.5, 0): 1.0}),
        broken("dok", _dict={("a", 0): 1.0}),
        broken("dok", _dict={(0, 0): "x"}),
        broken("dok", _shape=(4, 2)),
        broken("csc", _shape=(4.0, 4)),
        broken("lil", _shape=(-1, 4)),
    ],
)
def test_a_sparse_matrix_whose_arrays_point_outside_is_refused_in_every_format(X):
    calls = [
        lambda: am.DiagonalAROMA().fit_triplets([[0, 1, 2]], X),
        lambda: am.Cosine().fit(X),
        lambda: am.Cosine().similarity(X),
        lambda: am.MomentAROMA().fit(X, [0, 0, 1, 1]),
        lambda: am.Index(am.Cosine(), X),
        lambda: am.Adapter(X),
        lambda: am.AROW().fit(X, [0, 0, 1, 1]),
        lambda: am.evaluation.evaluate_retrieval(am.Cosine(), X, [0, 0, 1, 1]),
        lambda: am.DiagonalAROMA(init=X).fit_triplets([[0, 1, 2]], ROWS),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=f"is not a valid {X.format.upper()} matrix"):
            call()


def far(kind, shape):
    """A sparse matrix with few values in a huge shape."""
    if kind in ("coo", "dok", "dia"):
        return broken(kind, _shape=shape)
    indptr = np.minimum(np.arange(5), 1)
    at = np.zeros(1, np.int64)
    return getattr(sparse, f"{kind}_array")((np.ones(1), at, indptr), shape=shape if kind == "csr" else shape[::-1])


@pytest.mark.parametrize(
    ("kind", "shape"),
    [(kind, shape) for kind in ("coo", "dok", "dia") for shape in ((2**40, 4), (4, 2**46), (2**62, 4), (4, 2**62))]
    + [(kind, (4, length)) for kind in ("csr", "csc") for length in (2**46, 2**62)],
)
def test_a_sparse_matrix_that_is_too_high_or_wide_for_memory_is_refused_by_name(kind, shape):
    X = far(kind, shape)
    for call in (
        lambda: am.Cosine().similarity(X),
        lambda: am.DiagonalAROMA().fit_triplets([[0, 1, 2]], X),
        lambda: am.Index(am.Cosine(), X),
    ):
        with pytest.raises(
            am.exceptions.InsufficientMemoryError, match=r"rows and columns of \w+, of shape .* would take"
        ):
            call()

"""One table of awkward input: refused with an error that names the argument, or accepted with the same bits."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import aromatch as am
from aromatch.exceptions import InsufficientMemoryError
from learner_classes import CLOSED_FORMS, ONLINE, online_models, strength_parameter

RNG = np.random.default_rng(0)
Q = RNG.integers(-4, 5, size=(12, 6)).astype(float)  # whole numbers survive every conversion
P = RNG.integers(-4, 5, size=(15, 5)).astype(float)
TRIPLETS = np.column_stack([RNG.integers(12, size=40), RNG.integers(15, size=(40, 2))])
TRIPLETS[0] = [0, 1, 2]
Y = np.arange(12) % 3
ONLINE_MODELS = [*online_models(), am.FactoredAROMA(dtype="float32")]
models = pytest.mark.parametrize("model", [*ONLINE_MODELS, *[learner() for learner in CLOSED_FORMS]], ids=repr)
online = pytest.mark.parametrize("model", ONLINE_MODELS, ids=repr)


def changed(matrix, where, value, dtype=float):
    out = matrix.astype(dtype)
    out[where] = value
    return out


def csr_with(matrix, **arrays):
    """A CSR matrix whose arrays were replaced behind SciPy's back."""
    out = matrix.copy() if sparse.issparse(matrix) else sparse.csr_matrix(matrix)
    for name, change in arrays.items():
        array = getattr(out, name).copy()
        setattr(out, name, change(array))
    return out


def set_first(value):
    def change(array):
        array[0] = value
        return array

    return change


def unsorted(matrix):
    """The same matrix with the entries of each row in another order, and one entry cut in two."""
    csr = sparse.csr_matrix(matrix)
    data, indices, indptr = [], [], [0]
    for row in range(csr.shape[0]):
        part = slice(csr.indptr[row], csr.indptr[row + 1])
        values, columns = list(csr.data[part][::-1]), list(csr.indices[part][::-1])
        if values:
            values[0] -= 1.0
            values.append(1.0)
            columns.append(columns[0])
        data += values
        indices += columns
        indptr.append(len(data))
    return sparse.csr_matrix((np.array(data), np.array(indices), np.array(indptr)), shape=matrix.shape)


def read_only_map(matrix, folder):
    np.save(folder / "matrix.npy", matrix)
    return np.load(folder / "matrix.npy", mmap_mode="r")


def wide_indices(matrix):
    csr = sparse.csr_matrix(matrix)
    return csr_with(csr, indices=lambda a: a.astype(np.int64), indptr=lambda a: a.astype(np.int64))


def explicit_zeros(matrix):
    rows, columns = np.indices(matrix.shape).reshape(2, -1)
    return sparse.csr_matrix((matrix.ravel(), (rows, columns)), shape=matrix.shape)


# -- accepted: what is passed, in the place of Q (and P the same way) ------------------------------------------

ACCEPTED = {
    "Fortran order": lambda X, folder: np.asfortranarray(X),
    "read-only memory map": read_only_map,
    "read-only array": lambda X, folder: np.frombuffer(X.tobytes()).reshape(X.shape),
    "every second row of a larger array": lambda X, folder: np.repeat(X, 2, axis=0)[::2],
    "reversed columns twice": lambda X, folder: np.ascontiguousarray(X[:, ::-1])[:, ::-1],
    "float32": lambda X, folder: X.astype(np.float32),
    "float16": lambda X, folder: X.astype(np.float16),
    "long double": lambda X, folder: X.astype(np.longdouble),
    "big-endian": lambda X, folder: X.astype(">f8"),
    "int64": lambda X, folder: X.astype(np.int64),
    "int8": lambda X, folder: X.astype(np.int8),
    "numeric objects": lambda X, folder: X.astype(object),
    "list of lists": lambda X, folder: X.tolist(),
    "unaligned": lambda X, folder: np.frombuffer(b"x" + X.tobytes(), dtype=np.uint8)[1:].view(float).reshape(X.shape),
    "CSR": lambda X, folder: sparse.csr_matrix(X),
    "CSR array": lambda X, folder: sparse.csr_array(X),
    "CSC": lambda X, folder: sparse.csc_matrix(X),
    "COO": lambda X, folder: sparse.coo_matrix(X),
    "CSR, int64 indices": lambda X, folder: wide_indices(X),
    "CSR, unsorted with duplicates": lambda X, folder: unsorted(X),
    "CSR, integers": lambda X, folder: sparse.csr_matrix(X.astype(np.int32)),
    "CSR, float32": lambda X, folder: sparse.csr_matrix(X.astype(np.float32)),
    "CSR, explicit zeros": lambda X, folder: explicit_zeros(X),
    "masked array without masked values": lambda X, folder: np.ma.MaskedArray(X),
}  # fmt: skip


@models
@pytest.mark.parametrize("form", ACCEPTED)
def test_accepted_input_gives_the_same_bits_as_the_plain_array(model, form, tmp_path):
    (tmp_path / "Q").mkdir()
    (tmp_path / "P").mkdir()
    same_Q, same_P = ACCEPTED[form](Q, tmp_path / "Q"), ACCEPTED[form](P, tmp_path / "P")
    plain = clone(model).fit_triplets(TRIPLETS, Q, P)
    found = clone(model).fit_triplets(TRIPLETS, same_Q, same_P)
    for name, array in plain._state.items():
        np.testing.assert_array_equal(found._state[name], array)
    np.testing.assert_array_equal(found.margins(TRIPLETS, same_Q, same_P), plain.margins(TRIPLETS, Q, P))
    np.testing.assert_allclose(found.similarity(same_Q, same_P), plain.similarity(Q, P), rtol=1e-4, atol=1e-5)


def test_booleans_are_accepted_as_zeros_and_ones():
    plain = am.DiagonalAROMA().fit_triplets(TRIPLETS, (Q > 0).astype(float), (P > 0).astype(float))
    found = am.DiagonalAROMA().fit_triplets(TRIPLETS, Q > 0, P > 0)
    np.testing.assert_array_equal(found.W_, plain.W_)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
def test_triplets_of_any_integer_type_are_accepted(dtype):
    found = am.DiagonalAROMA().fit_triplets(np.asfortranarray(TRIPLETS.astype(dtype)), Q, P)
    np.testing.assert_array_equal(found.W_, am.DiagonalAROMA().fit_triplets(TRIPLETS, Q, P).W_)


def test_bad_values_in_rows_that_no_triplet_names_are_not_read():
    spoiled = changed(P, (14, 0), np.nan)
    triplets = np.minimum(TRIPLETS, 13)
    triplets[:, 0] = np.minimum(triplets[:, 0], 11)
    found = am.DiagonalAROMA().fit_triplets(triplets, Q, spoiled)
    np.testing.assert_array_equal(found.W_, am.DiagonalAROMA().fit_triplets(triplets, Q, P).W_)


# -- refused: the call, the kind of error, and what its message must name --------------------------------------

NAN, INF = np.nan, np.inf
FAR = csr_with(Q, indices=set_first(2_000_000_000))
FAR_INDPTR = csr_with(Q, indptr=lambda a: np.where(np.arange(len(a)) == 1, 2_000_000_000, a).astype(a.dtype))
FAR_COO = sparse.coo_matrix(Q)
FAR_COO.coords[1][0] = 2_000_000_000
FAR_CSC = sparse.csc_matrix(Q)
FAR_CSC.indices = np.full_like(FAR_CSC.indices, 2_000_000_000)
REFUSED = {
    # values
    "NaN in Q": (lambda m: m.partial_fit_triplets(TRIPLETS, changed(Q, (0, 0), NAN), P), ValueError, "Q contains NaN"),
    "infinity in P": (lambda m: m.partial_fit_triplets(TRIPLETS, Q, changed(P, (1, 0), INF)), ValueError, "P contains NaN"),
    "NaN in CSR Q": (lambda m: m.partial_fit_triplets(TRIPLETS, sparse.csr_matrix(changed(Q, (0, 0), NAN)), P), ValueError, "Q contains NaN"),
    "NaN object": (lambda m: m.partial_fit_triplets(TRIPLETS, changed(Q, (0, 0), NAN, object), P), ValueError, "Q contains NaN"),
    "complex Q": (lambda m: m.partial_fit_triplets(TRIPLETS, Q.astype(complex), P), ValueError, "Q must be real"),
    "complex CSR": (lambda m: m.partial_fit_triplets(TRIPLETS, sparse.csr_matrix(Q.astype(complex)), P), ValueError, "Q must be real"),
    "strings": (lambda m: m.partial_fit_triplets(TRIPLETS, Q.astype(str), P), TypeError, "Q must be"),
    "objects that are no numbers": (lambda m: m.partial_fit_triplets(TRIPLETS, changed(Q, (0, 0), "a", object), P), ValueError, "Q must be"),
    "digits as text": (lambda m: m.partial_fit_triplets(TRIPLETS, Q.astype(str).astype(object), P), ValueError, "Q must be"),
    "an integer beyond floats": (lambda m: m.partial_fit_triplets(TRIPLETS, changed(Q, (0, 0), 10**400, object), P), ValueError, "Q must be"),
    "None object": (lambda m: m.partial_fit_triplets(TRIPLETS, changed(Q, (0, 0), None, object), P), ValueError, "Q"),
    "dates": (lambda m: m.partial_fit_triplets(TRIPLETS, Q.astype("datetime64[s]"), P), TypeError, "Q must be"),
    "masked values": (lambda m: m.partial_fit_triplets(TRIPLETS, np.ma.masked_less(Q, 0), P), ValueError, "Q has masked"),
    "None for Q": (lambda m: m.partial_fit_triplets(TRIPLETS, None, P), ValueError, "Q must be"),
    "too large for the dtype": (lambda m: m.partial_fit_triplets(TRIPLETS, changed(Q, (0, 0), 1e200), P), ValueError, "too large"),
    # shapes
    "1-D Q": (lambda m: m.partial_fit_triplets(TRIPLETS, Q[0], P), ValueError, "Q must be a 2-D"),
    "3-D P": (lambda m: m.partial_fit_triplets(TRIPLETS, Q, P[None]), ValueError, "P must be a 2-D"),
    "a number for Q": (lambda m: m.partial_fit_triplets(TRIPLETS, 3.0, P), ValueError, "Q must be a 2-D"),
    "no rows": (lambda m: m.partial_fit_triplets(TRIPLETS, Q[:0], P), ValueError, "Q is empty"),
    "no columns": (lambda m: m.partial_fit_triplets(TRIPLETS, Q, P[:, :0]), ValueError, "P is empty"),
    "Q too wide": (lambda m: m.partial_fit_triplets(TRIPLETS, np.hstack([Q, Q]), P), ValueError, "Q has 12 features"),
    "P too narrow": (lambda m: m.partial_fit_triplets(TRIPLETS, Q, P[:, :4]), ValueError, "P has 4 features"),
    "P left out where widths differ": (lambda m: m.partial_fit_triplets(TRIPLETS % 12, Q), ValueError, "P has 6 features"),
    "ragged lists": (lambda m: m.partial_fit_triplets(TRIPLETS, [[1.0], [1.0, 2.0]], P), ValueError, "Q cannot be"),
    # CSR that lies
    "CSR index too large": (lambda m: m.partial_fit_triplets(TRIPLETS, FAR, P), ValueError, "Q is not a valid CSR"),
    "CSR index negative": (lambda m: m.partial_fit_triplets(TRIPLETS, csr_with(Q, indices=set_first(-1)), P), ValueError, "Q is not a valid CSR"),
    "CSR indptr beyond the data": (lambda m: m.partial_fit_triplets(TRIPLETS, Q, csr_with(P, indptr=lambda a: a * 7)), ValueError, "P is not a valid CSR"),
    "CSR indptr falls": (lambda m: m.partial_fit_triplets(TRIPLETS, Q, csr_with(P, indptr=lambda a: a[::-1].copy())), ValueError, "P is not a valid CSR"),
    "CSR too short": (lambda m: m.partial_fit_triplets(TRIPLETS, csr_with(Q, indptr=lambda a: a[:2]), P), ValueError, "Q is not a valid CSR"),
    "CSR of integers with a far index": (lambda m: m.partial_fit_triplets(TRIPLETS, csr_with(FAR, data=lambda a: a.astype(np.int64)), P), ValueError, "Q is not a valid CSR"),
    "CSR of integers with a far indptr": (lambda m: m.partial_fit_triplets(TRIPLETS, csr_with(FAR_INDPTR, data=lambda a: a.astype(np.int64)), P), ValueError, "Q is not a valid CSR"),
    "COO with a far index": (lambda m: m.partial_fit_triplets(TRIPLETS, FAR_COO, P), ValueError, "Q is not a valid COO"),
    "CSC with a far index": (lambda m: m.partial_fit_triplets(TRIPLETS, FAR_CSC, P), ValueError, "Q is not a valid CSC"),
    **{
        f"{name} of a CSR with a far {what}": (lambda m, call=call, X=X: call(m, X), ValueError, "is not a valid CSR")
        for what, X in (("index", FAR), ("indptr", FAR_INDPTR))
        for name, call in {
            "similarity": lambda m, X: m.similarity(X, P),
            "transform": lambda m, X: m.transform(X),
            "score": lambda m, X: m.score(X, Y),
            "fit": lambda m, X: m.fit(X, Y),
            "margins": lambda m, X: m.margins(TRIPLETS, X, P),
            "pair_score": lambda m, X: m.pair_score(X, P, [[0, 0]]),
            "evaluate_retrieval": lambda m, X: am.evaluation.evaluate_retrieval(m, X, Y),
            "Euclidean.fit": lambda m, X: am.Euclidean().fit(X),
            "Euclidean.transform": lambda m, X: am.Euclidean().fit(Q).transform(X),
            "Euclidean.similarity": lambda m, X: am.Euclidean().fit(Q).similarity(X),
            "AROW.fit": lambda m, X: am.AROW().fit(X, Y % 2),
            "AROW.decision_function": lambda m, X: am.AROW().fit(Q, Y % 2).decision_function(X),
        }.items()
    },
    # triplets
    "ragged triplets": (lambda m: m.partial_fit_triplets([[0, 1], [0, 1, 2]], Q, P), ValueError, "triplets cannot be"),
    "triplets of no columns": (lambda m: m.partial_fit_triplets(np.empty((5, 0), int), Q, P), ValueError, "triplets must have the shape"),
    "masked triplets": (lambda m: m.partial_fit_triplets(np.ma.masked_less(TRIPLETS, 3), Q, P), ValueError, "triplets has masked"),
    "negative row": (lambda m: m.partial_fit_triplets([[0, -1, 2]], Q, P), ValueError, "preferred object of triplet"),
    "query row too large": (lambda m: m.partial_fit_triplets([[12, 1, 2]], Q, P), ValueError, "query of triplet"),
    "object row too large": (lambda m: m.partial_fit_triplets([[0, 1, 15]], Q, P), ValueError, "other object of triplet"),
    "float triplets": (lambda m: m.partial_fit_triplets(TRIPLETS.astype(float), Q, P), TypeError, "triplets must be"),
    "bool triplets": (lambda m: m.partial_fit_triplets(TRIPLETS > 3, Q, P), TypeError, "triplets must be"),
    "pairs for triplets": (lambda m: m.partial_fit_triplets(TRIPLETS[:, :2], Q, P), ValueError, r"triplets must have the shape \(N, 3\)"),
    "a flat triplet": (lambda m: m.partial_fit_triplets([0, 1, 2], Q, P), ValueError, "triplets must have the shape"),
    "a huge unsigned row": (lambda m: m.partial_fit_triplets(np.array([[0, 1, 2**63]], dtype=np.uint64), Q, P), ValueError, "triplets contains"),
    "text triplets": (lambda m: m.partial_fit_triplets([["a", "b", "c"]], Q, P), TypeError, "triplets must be"),
    # weights
    "negative weight": (lambda m: m.partial_fit_triplets(TRIPLETS, Q, P, sample_weight=-np.ones(40)), ValueError, "sample_weight must be at least 0"),
    "NaN weight": (lambda m: m.partial_fit_triplets(TRIPLETS, Q, P, sample_weight=np.full(40, NAN)), ValueError, "sample_weight contains NaN"),
    "too few weights": (lambda m: m.partial_fit_triplets(TRIPLETS, Q, P, sample_weight=[1.0]), ValueError, "sample_weight must have the shape"),
    "text weights": (lambda m: m.partial_fit_triplets(TRIPLETS, Q, P, sample_weight=["a"] * 40), TypeError, "sample_weight must be numbers"),
    "one negative weight": (lambda m: m.learn_one(Q[0], P[0], P[1], sample_weight=-1.0), ValueError, "sample_weight"),
    "an enormous weight": (lambda m: m.partial_fit_triplets(TRIPLETS, Q, P, sample_weight=np.full(40, 1e300)), ValueError, "sample_weight"),
    "ragged weights": (lambda m: m.partial_fit_triplets(TRIPLETS, Q, P, sample_weight=[[1], [1, 2]]), ValueError, "sample_weight cannot be"),
    # learn_one
    "learn_one, masked": (lambda m: m.learn_one(np.ma.masked_less(Q[0], 1), P[0], P[1]), ValueError, "q has masked"),
    "learn_one, q too wide": (lambda m: m.learn_one(np.ones(7), P[0], P[1]), ValueError, "q has 7 features"),
    "learn_one, objects of two widths": (lambda m: m.learn_one(Q[0], P[0], P[1, :4]), ValueError, "p_pos and p_neg"),
    "learn_one, two rows": (lambda m: m.learn_one(Q[:2], P[0], P[1]), ValueError, "q must be"),
    "learn_one, NaN": (lambda m: m.learn_one(Q[0], P[0], np.full(5, NAN)), ValueError, "p_neg contains NaN"),
    "learn_one, text": (lambda m: m.learn_one("query", P[0], P[1]), ValueError, "q must be"),
    # reading
    "similarity, wrong width": (lambda m: m.similarity(P, P), ValueError, "Q has 5 features"),
    "similarity, too large": (lambda m: m.similarity(Q * 1e150, P), ValueError, "too large for a model"),
    "margins, too large": (lambda m: m.margins(TRIPLETS, Q * 1e150, P), ValueError, "too large for a model"),
    "transform, too large": (lambda m: m.transform(Q * 1e150), ValueError, "too large for a model"),
    "similarity, NaN": (lambda m: m.similarity(Q, changed(P, (14, 4), NAN)), ValueError, "P contains NaN or infinity in row 14"),
    "similarity, P left out where widths differ": (lambda m: m.similarity(Q), ValueError, "features"),
    "transform, wrong width": (lambda m: m.transform(P), ValueError, "5 features"),
    "pair_score, unequal rows": (lambda m: m.pair_score(Q, P), ValueError, "as many rows"),
    "pair_score, pair out of range": (lambda m: m.pair_score(Q, P, [[0, 15]]), ValueError, "object of pair"),
    "margins, negative row": (lambda m: m.margins([[-1, 0, 1]], Q, P), ValueError, "query of triplet"),
    "triplet_accuracy of nothing": (lambda m: m.triplet_accuracy(np.empty((0, 3), int), Q, P), ValueError, "triplets is empty"),
    # fit with labels
    "fit, y too short": (lambda m: m.fit(Q, Y[:5]), ValueError, "inconsistent numbers of samples"),
    "fit, one class": (lambda m: m.fit(Q, np.zeros(12)), ValueError, "class"),
    "fit, all labels different": (lambda m: m.fit(Q, np.arange(12)), ValueError, "class"),
    "fit, NaN label": (lambda m: m.fit(Q, np.where(Y == 0, NAN, Y)), ValueError, "NaN"),
    "fit, y None": (lambda m: m.fit(Q, None), ValueError, "y"),
    "fit, one row": (lambda m: m.fit(Q[:1], Y[:1]), ValueError, "n_samples = 1"),
    "fit_triplets, NaN": (lambda m: m.fit_triplets(TRIPLETS, changed(Q, (0, 0), NAN), P), ValueError, "Q contains NaN"),
    "verbose text": (lambda m: m.set_params(verbose="yes").fit(Q, Y), TypeError, "verbose"),
    "save to no path": (lambda m: m.save(3.5), TypeError, "path"),
}  # fmt: skip

REFUSED_PARAMETERS = {
    "n_triplets negative": (lambda m: m.set_params(n_triplets=-1).fit(Q, Y), ValueError, "n_triplets"),
    "n_triplets a float": (lambda m: m.set_params(n_triplets=10.5).fit(Q, Y), TypeError, "n_triplets"),
    "dtype unknown": (lambda m: m.set_params(dtype="float16").fit(Q, Y), ValueError, "dtype must be"),
    "dtype None": (lambda m: m.set_params(dtype=None).fit(Q, Y), ValueError, "dtype must be"),
    "dtype an array": (lambda m: m.set_params(dtype=np.eye(2)).fit(Q, Y), ValueError, "dtype must be"),
    "dtype nonsense": (lambda m: m.set_params(dtype="wide").fit(Q, Y), ValueError, "dtype must be"),
    "random_state text": (lambda m: m.set_params(random_state="seed").fit(Q, Y), TypeError, "random_state"),
    "random_state negative": (lambda m: m.set_params(random_state=-1).fit(Q, Y), ValueError, "random_state"),
    "init unknown": (lambda m: m.set_params(init="ones").fit(Q, Y), ValueError, "init must be one of"),
    "init of the wrong shape": (lambda m: m.set_params(init=np.ones((3, 3))).fit(Q, Y), ValueError, r"init must have the shape \(6, 6\)"),
    "init NaN": (lambda m: m.set_params(init=np.full((6, 6), NAN)).fit(Q, Y), ValueError, "init contains NaN"),
    "init enormous": (lambda m: m.set_params(init=1e308).fit(Q, Y), ValueError, "init contains"),
    "init ragged": (lambda m: m.set_params(init=[[1], [1, 2]]).fit(Q, Y), ValueError, "init cannot be"),
    "init infinite number": (lambda m: m.set_params(init=INF).fit(Q, Y), ValueError, "init must be a finite number"),
    "init text array": (lambda m: m.set_params(init=np.full((6, 6), "a")).fit(Q, Y), TypeError, "init must be"),
    "init a list of text": (lambda m: m.set_params(init=["identity"]).fit(Q, Y), TypeError, "init must be"),
    "identity with m != n": (lambda m: m.set_params(init="identity").fit_triplets(TRIPLETS, Q, P), ValueError, "init .* m = n"),
    "a multiple of identity with m != n": (lambda m: m.set_params(init=2.0).fit_triplets(TRIPLETS, Q, P), ValueError, "init .* m = n"),
    "save with parameters that cannot be": (lambda m: m.set_params(n_triplets=-1).save("nowhere"), ValueError, "n_triplets"),
    "save with another dtype": (lambda m: m.set_params(dtype="float32" if m.dtype == "float64" else "float64").save("nowhere"), ValueError, "dtype"),
}  # fmt: skip


@models
@pytest.mark.parametrize("case", REFUSED)
def test_refused_input_names_the_argument_and_leaves_the_model_as_it_was(model, case):
    is_refused(model, *REFUSED[case])


@online
@pytest.mark.parametrize("case", REFUSED_PARAMETERS)
def test_refused_parameters_are_named_and_leave_the_model_as_it_was(model, case):
    is_refused(model, *REFUSED_PARAMETERS[case])


def is_refused(model, call, error, message):
    model = clone(model).fit_triplets(TRIPLETS, Q, P)
    repr(model.W_)  # what a model keeps of its readings is there already
    before = {name: array.tobytes() for name, array in model._state.items()}
    names_before = set(vars(model))
    with pytest.raises(error, match=message):
        call(model)
    assert {name: array.tobytes() for name, array in model._state.items()} == before
    assert set(vars(model)) == names_before
    assert (model.n_features_in_, model.n_object_features_in_) == (6, 5)


@pytest.mark.parametrize("value", [0, -1, NAN, INF, None, "1", True, 1 + 0j])
@pytest.mark.parametrize("learner", [*ONLINE, am.AROW])
def test_noise_and_step_size_must_be_positive_numbers(learner, value):
    name = strength_parameter(learner)
    with pytest.raises((ValueError, TypeError), match=f"^{name} must be"):
        learner(**{name: value}).fit(Q, Y % 2)


@pytest.mark.parametrize(
    ("learner", "name", "value"),
    [
        (am.DiagonalAROMA, "rule", "always"),
        (am.DiagonalAROMA, "covariance_update", "jacobi"),
        (am.DiagonalAROMA, "cells", "sparse"),
        (am.OASIS, "cells", None),
        (am.FactoredAROMA, "rule", None),
        (am.FactoredAROMA, "covariance_update", "downdate"),
        (am.FactoredAROMA, "mean_update", "new"),
        (am.FullAROMA, "rule", 1),
        (am.AROW, "covariance", "block"),
    ],
)
def test_a_named_choice_outside_of_its_list_is_refused(learner, name, value):
    with pytest.raises(ValueError, match=f"{name} must be one of"):
        learner(**{name: value}).fit(Q, Y % 2)


def test_the_updated_mean_needs_the_printed_covariance():
    with pytest.raises(ValueError, match="mean_update"):
        am.FactoredAROMA(mean_update="updated", covariance_update="joint").fit(Q, Y)


@models
@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.similarity(Q, P),
        lambda m: m.pair_score(Q, P, [[0, 0]]),
        lambda m: m.margins(TRIPLETS, Q, P),
        lambda m: m.triplet_accuracy(TRIPLETS, Q, P),
        lambda m: m.transform(Q),
        lambda m: m.score(Q, Y),
        lambda m: m.save("nowhere"),
        lambda m: m.W_,
        lambda m: m.n_updates_,
    ],
)
def test_methods_before_fit_raise_not_fitted_error(model, call):
    with pytest.raises(NotFittedError):
        call(clone(model))


def test_a_state_that_does_not_fit_in_memory_is_refused_before_it_is_allocated():
    wide = sparse.csr_matrix(([1.0, 1.0], ([0, 1], [0, 3_000_000])), shape=(2, 5_000_000))
    for model in (am.DiagonalAROMA(cells="dense"), am.FactoredAROMA(), am.OASIS(cells="dense")):
        with pytest.raises(InsufficientMemoryError, match=r"5000000 x 5000000 features would take [\d,]+ bytes"):
            model.fit_triplets([[0, 1, 0]], wide)
        assert not hasattr(model, "_state")
    with pytest.raises(MemoryError, match="bytes"):
        am.AROW().fit(wide, [0, 1])


def test_full_aroma_refuses_more_than_5000_cells():
    with pytest.raises(ValueError, match="at most 5000"):
        am.FullAROMA().fit_triplets([[0, 1, 0]], np.eye(71))


def test_dtype_cannot_change_after_the_first_triplet():
    model = am.DiagonalAROMA().fit_triplets(TRIPLETS, Q, P)
    with pytest.raises(ValueError, match="dtype must stay 'float64'"):
        model.set_params(dtype="float32").partial_fit_triplets(TRIPLETS, Q, P)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: am.AROW().fit(Q, Y), "Only binary"),
        (lambda: am.AROW().fit(Q, np.zeros(12)), "one class"),
        (lambda: am.AROW().fit(Q * 1e9, Y % 2), "expected at most"),
        (lambda: am.AROW().fit(Q, Y % 2).partial_fit(Q, Y), "labels"),
        (
            lambda: am.AROW().fit(Q, Y % 2).set_params(covariance="diagonal").partial_fit(Q, Y % 2),
            "must stay",
        ),
        (lambda: am.AROW().fit(Q, Y % 2).partial_fit(Q, Y % 2, classes=[5, 6]), "classes must stay"),
        (lambda: am.AROW().fit(Q, Y % 2).predict(Q * 1e150), "too large for a model"),
        (lambda: am.AROW().fit(Q, np.where(Y % 2, 1e308, 0.0)), "y has a label of size 1e\\+308"),
        (lambda: am.AROW().fit(Q, Y % 2).score(Q, np.where(Y % 2, 1e308, 0.0)), "y has a label of size"),
        (lambda: am.AROW().partial_fit(Q, Y % 2, classes=sparse.csr_array(np.eye(2))), "classes must be"),
        (lambda: am.AROW().predict(Q), "not fitted"),
    ],
)
def test_arow_refuses_what_it_cannot_learn(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_an_enormous_C_is_refused():
    with pytest.raises(ValueError, match="C"):
        am.OASIS(C=1e60, dtype="float32").fit_triplets([[0, 1, 2]] * 2, np.eye(3) * 1e-20)
    with pytest.raises(ValueError, match="C"):
        am.OASIS(C=1e199).fit_triplets([[0, 1, 2]], np.eye(3), sample_weight=[100.0])


def test_columns_of_a_data_frame_must_be_those_that_were_learned_on():
    frame = pd.DataFrame(Q, columns=list("abcdef"))
    for model in (am.DiagonalAROMA(n_triplets=20).fit(frame, Y), am.DiagonalAROMA().fit_triplets(TRIPLETS % 12, frame)):
        assert model.feature_names_in_.tolist() == list("abcdef")
        for call in (
            lambda X, m=model: m.similarity(X),
            lambda X, m=model: m.transform(X),
            lambda X, m=model: m.margins(TRIPLETS % 12, X),
            lambda X, m=model: m.partial_fit_triplets(TRIPLETS % 12, X),
        ):
            call(frame)
            with pytest.raises(ValueError, match=r"columns|feature names"):
                call(frame[list("fedcba")])


def test_the_tables_hold_at_least_sixty_cases():
    assert len(REFUSED) + len(ACCEPTED) >= 60


# -- baselines -------------------------------------------------------------------------------------------------

FITTED = [
    am.Euclidean(),
    am.ITML(n_constraints=30, random_state=0),
    am.LEGO(n_constraints=30, random_state=0),
    am.LMNN(n_neighbors=1, max_iter=5),
    am.HIER(),
]
REFUSED_BY_BASELINES = {
    "fit, NaN": (lambda m: m.fit(changed(Q, (0, 0), NAN), Y), ValueError, "NaN"),
    "fit, indices outside": (lambda m: m.fit(csr_with(Q, indices=set_first(99)), Y), ValueError, "not a valid CSR"),
    "similarity, NaN": (lambda m: m.similarity(changed(Q, (3, 0), NAN)), ValueError, "Q contains NaN or infinity in row 3"),
    "similarity, wrong width": (lambda m: m.similarity(Q[:, :4]), ValueError, "4 features"),
    "similarity, too large": (lambda m: m.similarity(Q * 1e150), ValueError, "too large for a model"),
    "pair_score, too large": (lambda m: m.pair_score(Q * 1e150, None), ValueError, "too large for a model"),
    "transform, wrong width": (lambda m: m.transform(Q[:, :4]), ValueError, "4 features"),
    "margins, out of range": (lambda m: m.margins([[0, 1, 12]], Q), ValueError, "other object of triplet"),
}  # fmt: skip
REFUSED_WITH_LABELS = {
    "y too short": (lambda m: m.fit(Q, Y[:5]), ValueError, "inconsistent numbers of samples"),
    "one class": (lambda m: m.fit(Q, np.zeros(12)), ValueError, "class"),
    "all labels different": (lambda m: m.fit(Q, np.arange(12)), ValueError, "class"),
    "NaN label": (lambda m: m.fit(Q, np.where(Y == 0, NAN, Y)), ValueError, "NaN"),
    "y None": (lambda m: m.fit(Q, None), ValueError, "y"),
    "one row": (lambda m: m.fit(Q[:1], Y[:1]), ValueError, "n_samples = 1"),
    "rows too large": (lambda m: m.fit(Q * 1e60, Y), ValueError, "too large to learn"),
}


@pytest.mark.parametrize("model", FITTED, ids=repr)
@pytest.mark.parametrize("case", [*REFUSED_BY_BASELINES, *REFUSED_WITH_LABELS])
def test_a_baseline_refuses_bad_input_and_stays_as_it_was(model, case):
    if case in REFUSED_WITH_LABELS and isinstance(model, am.Euclidean):
        pytest.skip("Euclidean takes no labels")
    call, error, message = {**REFUSED_BY_BASELINES, **REFUSED_WITH_LABELS}[case]
    model = clone(model).fit(Q, Y)
    before = {name: array.tobytes() for name, array in model._state.items()}
    with pytest.raises(error, match=message):
        call(model)
    assert {name: array.tobytes() for name, array in model._state.items()} == before
    assert model.n_features_in_ == 6


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (am.ITML(gamma=0), ValueError, "gamma must be greater than 0"),
        (am.ITML(tol=-1.0), ValueError, "tol must be at least 0"),
        (am.ITML(max_sweeps=1.5), TypeError, "max_sweeps must be"),
        (am.ITML(n_constraints=-1), ValueError, "n_constraints must be at least 0"),
        (am.ITML(bounds=(1.0,)), ValueError, "bounds must be None or two numbers"),
        (am.ITML(bounds=(0.0, 1.0)), ValueError, "each of bounds must be greater than 0"),
        (am.ITML(bounds=(1e-300, 1.0)), ValueError, "each of bounds must be from"),
        (am.LEGO(bounds=(1.0, 1e300)), ValueError, "each of bounds must be from"),
        (am.ITML(verbose="yes"), TypeError, "verbose must be True or False"),
        (am.ITML(random_state="seed"), TypeError, "random_state"),
        (am.LEGO(eta=NAN), ValueError, "eta must be a finite number"),
        (am.LEGO(loss="absolute"), ValueError, "loss must be one of"),
        (am.LEGO(n_constraints=None), TypeError, "n_constraints must be"),
        (am.LEGO(bounds=("a", "b")), ValueError, "bounds must be None or two numbers"),
        (am.LMNN(n_neighbors=0), ValueError, "n_neighbors must be at least 1"),
        (am.LMNN(mu=0.0), ValueError, "mu must be greater than 0"),
        (am.LMNN(mu=1.0), ValueError, "mu must be less than 1"),
        (am.LMNN(max_iter=-1), ValueError, "max_iter must be at least 0"),
        (am.LMNN(tol="small"), TypeError, "tol must be a number"),
        (am.LMNN(max_impostors=0), ValueError, "max_impostors must be at least 1"),
        (am.LMNN(verbose=1), TypeError, "verbose must be True or False"),
        (am.HIER(C=0), ValueError, "C must be at least 1e-100"),
        (am.HIER(max_iter=0), ValueError, "max_iter must be at least 1"),
    ],
    ids=repr,
)
def test_a_baseline_refuses_parameters_that_cannot_be(model, error, message):
    with pytest.raises(error, match=message):
        model.fit(Q, Y)
    assert not hasattr(model, "_state")
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize("learner", [am.ITML, am.LEGO])
@pytest.mark.parametrize(
    ("numbers", "is_similar", "message"),
    [
        ([[0, 12]], [True], "object of pair"),
        ([[0, 1]], [1], "is_similar must be 1 booleans"),
        ([[0, 1]], [True, False], "is_similar must be 1 booleans"),
        ([[0, 1, 2]], [True], r"pairs must have the shape \(N, 2\)"),
    ],
)
def test_pairs_that_do_not_fit_are_refused(learner, numbers, is_similar, message):
    with pytest.raises(ValueError, match=message):
        learner().fit_pairs(numbers, is_similar, Q)


def test_a_metric_that_does_not_fit_in_memory_is_refused():
    wide = sparse.csr_matrix(([1.0, 1.0, 1.0, 1.0], ([0, 1, 2, 3], [0, 1, 2, 4_000_000])), shape=(4, 5_000_000))
    for model in (am.ITML(), am.LEGO(), am.LMNN()):
        with pytest.raises(InsufficientMemoryError, match=r"for 5000000 features would take [\d,]+ bytes"):
            model.fit(wide, [0, 0, 1, 1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: am.LMNN(tol=-(10**400)).fit(Q, Y), "tol must be within the range of floats"),
        (lambda: am.evaluation.tie_order(10**15), "n_objects"),
        (lambda: am.evaluation.tie_order(10**400), "more than 2"),
        (lambda: am.datasets.make_correlated_features(10**15), "n_samples=1,000,000,000,000,000"),
        (lambda: am.triplets.from_clicks([(0, [1, 2], [2])], 1, 3, n_sampled=10**15), "n_sampled"),
        (lambda: am.triplets.from_clicks([(0, [1, 2], [2])], 10**15, 3), "query_ids must be ids or a number of rows"),
        (lambda: am.triplets.from_qrels(sparse.bsr_array(Q), 1, 3), "qrels must be a sequence, got a sparse matrix"),
        (lambda: am.triplets.from_clicks(sparse.bsr_array(Q), 1, 3), "log must be a sequence, got a sparse matrix"),
        (lambda: am.triplets.from_sessions(sparse.bsr_array(Q), 3, 5), "sessions must be a sequence, got a sparse"),
        (lambda: am.theory.record_run(am.DiagonalAROMA, TRIPLETS, Q), "learner must be"),
        (lambda: am.suggest_comparisons(am.DiagonalAROMA, TRIPLETS, Q), "model must be"),
        (lambda: am.explain(am.DiagonalAROMA, Q[0], Q[1]), "model must have"),
        (lambda: am.evaluation.evaluate_retrieval(am.DiagonalAROMA, Q, Y), "model must have"),
        (lambda: am.triplets.from_sessions([[0, 1]], 3, 10**15), r"triplets \(n\)"),
        (lambda: am.triplets.from_sessions([[0, 1]], 3, 5, discount=1e308), None),
        (lambda: am.triplets.from_sessions([[0, 1], [0, 1]], 3, 5, discount=1e308), "discount must leave"),
        (lambda: am.DiagonalAROMA(cells="touched").fit_triplets(TRIPLETS, Q, P).grow(2**40, 2**20), "rows of W"),
        (lambda: am.FullAROMA().fit_triplets(TRIPLETS[:0], Q[:, :2], P[:, :2]).grow(5, 10**400), "FullAROMA"),
        (lambda: am.Cosine().fit(Q).get_feature_names_out(range(2**40)), "input_features"),
        (lambda: am.explain(am.Cosine().fit(Q), Q[0], Q[1], object_names=range(10**30)), "object_names|explain_pair"),
    ],
)
def test_a_number_that_asks_for_too_much_is_refused_by_name(call, message):
    if message is None:
        call()
        return
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_numbers_of_numpy_mean_the_same_as_those_of_python():
    log = [(0, [1, 2, 3], [3])]
    found, expected = (
        am.triplets.from_clicks(log, 1, 9, n_judged=n, random_state=0) for n in (np.uint64(2**64 - 1), 9)
    )
    np.testing.assert_array_equal(found.triplets, expected.triplets)


@pytest.mark.parametrize(
    ("learner", "parameters"),
    [
        (am.ITML, {"max_sweeps": np.int8(127), "n_constraints": np.uint8(255), "random_state": 0}),
        (am.LEGO, {"n_constraints": np.uint8(255), "random_state": 0}),
        (am.LMNN, {"max_iter": np.int8(3), "n_neighbors": np.int8(2), "max_impostors": np.uint64(100)}),
        (am.HIER, {"max_iter": np.int8(127)}),
        (am.DiagonalAROMA, {"n_triplets": np.uint8(255), "random_state": 0}),
    ],
)
def test_parameters_of_numpy_do_not_wrap_around(learner, parameters):
    found, expected = (learner(**{n: kind(v) for n, v in parameters.items()}).fit(Q, Y) for kind in (lambda v: v, int))
    np.testing.assert_array_equal(found.similarity(Q), expected.similarity(Q))


def test_a_fingerprint_of_numbers_of_numpy_is_saved(tmp_path):
    fingerprint = am.Fingerprint("x", np.int64(6), np.bool_(True), (np.float32(1),))
    am.DiagonalAROMA().fit_triplets([[0, 1, 2]], Q).set_fingerprint(fingerprint).save(tmp_path / "model")
    assert am.load(tmp_path / "model").fingerprints_[0] == fingerprint

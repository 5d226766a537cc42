"""A model of touched cells is a dense one to the bit, takes memory for what it touched, and believes no file."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

import aromatch as am
from aromatch._utils import checks as _checks
from aromatch.exceptions import InsufficientMemoryError, ModelFileError
from aromatch.io.container import read_model, write_model
from aromatch.kernels import touched
from aromatch.learners.online import cells as cells_module
from aromatch.learners.online import pending

MODELS = [
    am.DiagonalAROMA(r=0.5),
    am.DiagonalAROMA(r=0.5, rule="mistake", covariance_update="inverse"),
    am.DiagonalAROMA(r=0.5, rule="mistake"),
    am.OASIS(init="zero"),
]


def problem(m, n, share_of_zeros, seed, n_triplets=150):
    rng = np.random.default_rng(seed)
    Q = rng.normal(size=(20, m)) * (rng.random((20, m)) >= share_of_zeros)
    P = rng.normal(size=(25, n)) * (rng.random((25, n)) >= share_of_zeros)
    triplets = np.column_stack([rng.integers(20, size=n_triplets), rng.integers(25, size=(n_triplets, 2))])
    return Q, P, triplets, rng.choice([0.0, 0.5, 1.0, 3.0], size=n_triplets)


def wide_problem(n_features=100_000, n_rows=50, n_nonzero=10, n_triplets=200, seed=0):
    rng = np.random.default_rng(seed)
    columns = np.sort(np.array([rng.choice(n_features, n_nonzero, replace=False) for _ in range(n_rows)]), axis=1)
    values = rng.normal(size=columns.shape)
    X = sparse.csr_matrix(
        (values.ravel(), columns.ravel(), np.arange(0, values.size + 1, n_nonzero)), (n_rows, n_features)
    )
    return X, rng.integers(n_rows, size=(n_triplets, 3))


def n_cells(model):
    return int(model._state["rows"][:, 2].sum())


def all_variances(model):
    """Sigma with the ones that are not stored."""
    stored = model.Sigma_.tocoo()
    Sigma = np.ones(stored.shape, dtype=stored.dtype)
    Sigma[stored.coords] = stored.data
    return Sigma


def check_same_bits(model, Q, P, triplets, weights):
    dense, kept = clone(model).set_params(cells="dense"), clone(model).set_params(cells="touched")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pending, "block_size", lambda m, n: 0)  # the loop that dense rows of OASIS take otherwise
        for learner in (dense, kept):
            learner.fit_triplets(triplets, Q, P, sample_weight=weights)
    np.testing.assert_array_equal(kept.W_.toarray(), dense.W_)
    assert kept.W_.dtype == dense.W_.dtype
    np.testing.assert_array_equal(kept._state["counts"][:3], dense._state["counts"][:3])
    np.testing.assert_array_equal(kept.margins(triplets, Q, P), dense.margins(triplets, Q, P))
    np.testing.assert_array_equal(kept.pair_score(Q, P, triplets[:, :2]), dense.pair_score(Q, P, triplets[:, :2]))
    close = {"rtol": 1e-4, "atol": 1e-4} if model.dtype == "float32" else {"rtol": 1e-9, "atol": 1e-12}
    np.testing.assert_allclose(kept.similarity(Q, P), dense.similarity(Q, P), **close)
    np.testing.assert_allclose(kept.transform(Q), dense.transform(Q), **close)
    i, j, k = triplets[0]
    told = [learner.learn_one(Q[[i]], P[[j]], P[[k]]) for learner in (dense, kept)]
    assert told[0] == told[1]
    if isinstance(model, am.DiagonalAROMA):
        np.testing.assert_array_equal(all_variances(kept), dense.Sigma_)
        np.testing.assert_array_equal(kept.margin_std(triplets, Q, P), dense.margin_std(triplets, Q, P))
    return kept


@settings(max_examples=40, deadline=None)
@given(
    m=st.integers(1, 60),
    n=st.integers(1, 60),
    share_of_zeros=st.sampled_from([0.0, 0.5, 0.8, 0.95]),
    dtype=st.sampled_from(["float64", "float32"]),
    weighted=st.booleans(),
    seed=st.integers(0, 1000),
)
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_touched_cells_are_dense_cells_to_the_bit(model, m, n, share_of_zeros, dtype, weighted, seed):
    Q, P, triplets, weights = problem(m, n, share_of_zeros, seed)
    model = clone(model).set_params(dtype=dtype)
    check_same_bits(model, sparse.csr_array(Q), sparse.csr_array(P), triplets, weights if weighted else None)


def test_sparse_rows_have_the_bits_of_dense_cells_whatever_the_blocks_of_dense_rows():
    Q, P, triplets, _ = problem(90, 100, 0.9, seed=8)
    dense, kept = am.OASIS(init="zero", cells="dense"), am.OASIS(init="zero", cells="touched")
    for learner in (dense, kept):
        learner.fit_triplets(triplets, Q, P)
    assert len(dense._state["pending_a"]) > 0
    np.testing.assert_array_equal(kept.W_.toarray(), dense.W_)


@pytest.mark.parametrize("share_of_zeros", [0.0, 0.97])
@pytest.mark.parametrize("init", ["identity", 2.5, -1.0, "array", "sparse"])
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_any_start_gives_the_bits_of_dense_cells(model, init, share_of_zeros):
    Q, P, triplets, _ = problem(40, 40, share_of_zeros, seed=1)
    start = sparse.random_array((40, 40), density=0.1, rng=np.random.default_rng(2), format="coo")
    init = {"array": start.toarray(), "sparse": start}.get(init, init)
    check_same_bits(clone(model).set_params(init=init), Q, P, triplets, None)


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("width", [7, 90, 2000])
def test_tables_that_start_tiny_and_grow_all_the_time_give_the_same_bits(model, width, monkeypatch):
    monkeypatch.setattr(cells_module, "_FIRST_SLOTS", 1)
    monkeypatch.setattr(cells_module, "_FIRST_BLOCK", 1)
    Q, P, triplets, weights = problem(width, width, 1 - 6 / width, seed=3, n_triplets=400)
    kept = check_same_bits(model, Q, P, triplets, weights)
    check_tables(kept)


def check_tables(model):
    """Places do not overlap, hold what they say, and leave a free slot to stop at; none is lost."""
    rows, columns, n = model._state["rows"], model._state["columns"], model.n_object_features_in_
    rows = rows[rows[:, 1] > 0]
    rows = rows[np.argsort(rows[:, 0])]
    assert (rows[1:, 0] >= rows[:-1, 0] + rows[:-1, 1]).all()
    assert rows[-1, 0] + rows[-1, 1] <= model._state["room"][0] <= len(columns)
    assert rows[:, 1].sum() + slots_left(model) == model._state["room"][0]
    assert not columns[model._state["room"][0] :].any()
    for start, size, found in rows:
        table = columns[start : start + size]
        assert np.count_nonzero(table) == found == len(set(table[table > 0]))
        if size == n:
            np.testing.assert_array_equal(np.flatnonzero(table) + 1, table[table > 0])
        else:
            assert found <= 0.8 * size


def slots_left(model):
    """Slots in places that tables have left, by the chain of each size."""
    total = 0
    for kind, left in enumerate(model._state["room"][1:].tolist()):
        while left:
            total += (2, 3)[kind % 2] * 2 ** (kind // 2)
            left = int(model._state["columns"][left - 1 : left + 1].view(np.int64)[0])
    return total


def test_rows_take_places_that_others_have_left():
    X, triplets = wide_problem(n_triplets=2000)
    model = am.DiagonalAROMA().fit_triplets(triplets, X)
    check_tables(model)
    assert model._state["room"][1:].any()
    fresh = sum(int(size) for size in model._state["rows"][:, 1])
    assert model._state["room"][0] < 2 * fresh


@pytest.mark.parametrize("model", [am.DiagonalAROMA(), am.OASIS()], ids=repr)
def test_auto_keeps_touched_cells_where_dense_ones_would_take_more_than_2_gib(model):
    width = 11_585 if isinstance(model, am.DiagonalAROMA) else 16_384
    one = sparse.csr_matrix(([1.0], ([0], [0])), shape=(1, width))
    assert not clone(model)._stores_touched(width, width)
    assert clone(model)._stores_touched(width, width + 1)
    assert clone(model).set_params(dtype="float32")._stores_touched(2 * width, width + 1)
    wider = sparse.hstack([one, one], format="csr")
    assert sparse.issparse(clone(model).fit_triplets([[0, 0, 0]], wider).W_)
    assert isinstance(clone(model).fit_triplets([[0, 1, 2]], np.eye(3)).W_, np.ndarray)


@pytest.mark.parametrize("model", [am.DiagonalAROMA(), am.OASIS()], ids=repr)
def test_memory_follows_the_touched_cells_not_the_width(model):
    X, triplets = wide_problem()
    model = clone(model).fit_triplets(triplets, X)
    names = [name for name in ("W", "Sigma") if name in model._state]
    a_cell = 4 + 8 * len(names)
    expected = {(q, p) for i, j, k in triplets for q in X[i].indices for p in (X[j] - X[k]).tocsr().indices}
    if model.n_updates_ == len(triplets):
        assert n_cells(model) == len(expected)
    assert 0 < n_cells(model) <= len(expected)
    pools = sum(model._state[name].nbytes for name in ("columns", *names))
    assert pools < 2.5 * a_cell * n_cells(model) + a_cell * cells_module._FIRST_SLOTS
    assert model._state["rows"].nbytes == 24 * 100_000


def test_a_triplet_that_changes_nothing_creates_no_cell():
    model = am.OASIS(cells="touched").fit_triplets([[0, 0, 1]], np.eye(3) * 2)  # the margin is 4 already
    assert (model.n_updates_, n_cells(model)) == (0, 0)
    model = am.DiagonalAROMA(cells="touched").fit_triplets([[0, 1, 2]], np.eye(3), sample_weight=[0.0])
    model.margins([[0, 1, 2]], np.eye(3))
    assert (model.n_updates_, n_cells(model)) == (0, 0)


def test_the_identity_takes_no_cells_and_is_read_as_if_it_did():
    X, triplets = wide_problem()
    model = am.OASIS(init=3.0).fit_triplets(triplets[:0], X)
    assert n_cells(model) == 0
    np.testing.assert_allclose(model.similarity(X[:4], X), 3 * (X[:4] @ X.T).toarray())
    np.testing.assert_array_equal(model.W_.diagonal(), 3.0)
    assert model.W_.nnz == 100_000


def test_a_row_without_a_table_is_not_taken_for_the_first_one():
    objects = np.eye(8)
    for better in range(1, 8):
        for other in range(1, better):
            model = am.OASIS(cells="touched").fit_triplets([[0, better, other]], objects)
            assert n_cells(model) == 2
            np.testing.assert_array_equal(model.transform(objects), model.W_.toarray())


def test_scores_of_wide_models_agree_with_each_other():
    X, triplets = wide_problem()
    model = am.DiagonalAROMA(init="identity").fit_triplets(triplets, X)
    expected = (X @ model.W_ @ X.T).toarray()
    np.testing.assert_allclose(model.similarity(X), expected, atol=1e-12)
    np.testing.assert_allclose(model.transform(X[:3]) @ X.T, expected[:3], atol=1e-12)
    i, j, k = triplets.T
    np.testing.assert_allclose(model.margins(triplets, X), expected[i, j] - expected[i, k], atol=1e-12)
    assert 0 <= model.score(X, np.arange(50) % 5) <= 1


def test_similarity_takes_queries_a_few_at_a_time(monkeypatch):
    X, triplets = wide_problem(300)
    model = am.DiagonalAROMA(cells="touched").fit_triplets(triplets, X)
    whole = model.similarity(X)
    for n_bytes in (1, 300 * 8 * 7):
        monkeypatch.setattr(cells_module, "_BYTES_OF_PRODUCTS", n_bytes)
        np.testing.assert_allclose(model.similarity(X), whole, atol=1e-15)


# -- errors, interrupts and readers ---------------------------------------------------------------------------


def grown_until_refused(model, X, triplets, monkeypatch, call):
    """Run a call whose third growth does not fit."""
    calls = []

    def available():
        calls.append(1)
        return 0 if len(calls) > 3 else 2**40

    monkeypatch.setattr(_checks, "available_memory", available)
    with pytest.raises(InsufficientMemoryError, match=r"touched cells would take [\d,]+ bytes"):
        call(model)
    monkeypatch.undo()


@pytest.mark.parametrize("model", [am.DiagonalAROMA(cells="touched"), am.OASIS(cells="touched")], ids=repr)
def test_when_memory_runs_out_the_model_is_unchanged_and_learns_on(model, monkeypatch):
    X, triplets = wide_problem(2000, n_triplets=1000)
    model = clone(model).fit_triplets(triplets[:100], X)
    grown_until_refused(model, X, triplets, monkeypatch, lambda m: m.partial_fit_triplets(triplets[100:], X))
    check_tables(model)
    assert files_equal(model.copy(), clone(model).fit_triplets(triplets[:100], X))
    assert files_equal(model.partial_fit_triplets(triplets[100:], X), clone(model).fit_triplets(triplets, X))


def test_when_memory_runs_out_in_fit_the_model_is_as_it_was(monkeypatch):
    X, triplets = wide_problem(2000, n_triplets=1000)
    model = am.DiagonalAROMA(cells="touched").fit_triplets(triplets[:100], X)
    before = model.copy()
    grown_until_refused(model, X, triplets, monkeypatch, lambda m: m.fit_triplets(triplets, X))
    assert files_equal(model, before)


def test_a_single_triplet_of_too_many_cells_is_refused_by_its_bytes(monkeypatch):
    model = am.DiagonalAROMA(cells="touched").fit_triplets([[0, 1, 2]], np.eye(3, 200))
    before = model.copy()
    monkeypatch.setattr(_checks, "available_memory", lambda: 1000)
    for call in (model.partial_fit_triplets, model.margins):
        with pytest.raises(InsufficientMemoryError, match="The 40,000 cells of a single triplet would take"):
            call([[0, 0, 1]], np.arange(400.0).reshape(2, 200) + 1, np.arange(400.0).reshape(2, 200) ** 2)
    assert files_equal(model, before)
    with pytest.raises(InsufficientMemoryError, match="queries times W"):
        model.transform(np.eye(3, 200))


@pytest.mark.parametrize("name", ["W", "Sigma", "columns"])
def test_arrays_that_cannot_be_lengthened_in_place_are_copied(name):
    X, triplets = wide_problem(2000, n_triplets=1000)
    model = am.DiagonalAROMA(cells="touched").fit_triplets(triplets[:50], X)
    reader = model._state[name]
    view, was = reader[:], reader.copy()
    model.partial_fit_triplets(triplets[50:], X)
    assert len(view) == len(was) < len(model._state[name])
    assert files_equal(model, clone(model).fit_triplets(triplets, X))


def test_an_interrupt_while_tables_get_longer_changes_nothing(monkeypatch):
    X, triplets = wide_problem(2000, n_triplets=1000)
    model = am.DiagonalAROMA(cells="touched").fit_triplets(triplets[:50], X)
    make_room, calls = cells_module._make_room, []

    def stop(*args):
        calls.append(1)
        make_room(*args)
        if len(calls) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(cells_module, "_make_room", stop)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit_triplets(triplets[50:], X)
    assert files_equal(model, clone(model).fit_triplets(triplets[:50], X))


def test_the_storage_of_cells_cannot_change_after_the_first_triplet():
    model = am.OASIS(cells="touched").fit_triplets([[0, 1, 2]], np.eye(3))
    with pytest.raises(ValueError, match=r"cells must stay 'touched' .* got 'dense'"):
        model.set_params(cells="dense").learn_one([1, 0, 0], [0, 1, 0], [0, 0, 1])
    with pytest.raises(ValueError, match=r"cells must stay 'touched' .* got 'dense'"):
        model.save("nowhere")
    model = am.OASIS().fit_triplets([[0, 1, 2]], np.eye(3))
    with pytest.raises(ValueError, match=r"cells must stay 'dense' .* got 'touched'"):
        model.set_params(cells="touched").learn_one([1, 0, 0], [0, 1, 0], [0, 0, 1])


# -- files ----------------------------------------------------------------------------------------------------


def files_equal(model, other):
    ours, theirs = model._to_file(), other._to_file()
    return ours.keys() == theirs.keys() and all(ours[name].tobytes() == theirs[name].tobytes() for name in ours)


@pytest.mark.parametrize("init", ["zero", "identity", "sparse"])
def test_a_file_does_not_depend_on_how_the_tables_came_about(init, tmp_path, monkeypatch):
    X, triplets = wide_problem(2000, n_triplets=300)
    if init == "sparse":
        init = sparse.random_array((2000, 2000), density=0.001, rng=np.random.default_rng(0))
    model = am.DiagonalAROMA(init=init, cells="touched").fit_triplets(triplets, X)
    model.save(tmp_path / "a")
    monkeypatch.setattr(cells_module, "_FIRST_SLOTS", 1)
    again = clone(model)
    for part in np.split(triplets, [3, 50, 51, 200]):
        again.partial_fit_triplets(part, X)
        again.save(tmp_path / "b")
        again = am.load(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    np.testing.assert_array_equal(again.similarity(X), model.similarity(X))
    assert files_equal(again.fit_triplets(triplets, X), model)


HOSTILE = {
    "a column out of range": ({"columns": lambda a: np.r_[a[:-1], np.int32(40)]}, "columns .* not within 0 to 39"),
    "a negative column": ({"columns": lambda a: np.r_[np.int32(-1), a[1:]]}, "columns .* not within"),
    "columns out of order": ({"columns": lambda a: np.r_[a[1], a[0], a[2:]]}, "not sorted"),
    "a cell twice": ({"columns": lambda a: np.r_[a[0], a[0], a[2:]]}, "a cell is stored twice"),
    "indptr that falls": ({"indptr": lambda a: np.r_[a[0], a[2], a[1], a[3:]]}, "indptr"),
    "indptr that begins late": ({"indptr": lambda a: np.r_[1, a[1:]]}, "indptr"),
    "indptr that ends late": ({"indptr": lambda a: np.r_[a[:-1], a[-1] + 1]}, "indptr"),
    "indptr too short": ({"indptr": lambda a: a[:-1]}, "the arrays of the model are"),
    "too few values": ({"W": lambda a: a[:-1]}, "the arrays of the model are"),
    "no columns": ({"columns": None}, "the arrays of the model are"),
    "columns of another type": ({"columns": lambda a: a.astype(np.int64)}, "columns is int64"),
    "NaN": ({"Sigma": lambda a: a * np.nan}, "Sigma .* NaN"),
    "a start of two values": ({"start": lambda a: np.r_[a, a]}, "the arrays of the model are"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_file_whose_cells_cannot_be_is_refused(case, tmp_path):
    changes, message = HOSTILE[case]
    Q, P, triplets, _ = problem(40, 40, 0.5, seed=5)
    am.DiagonalAROMA(cells="touched").fit_triplets(triplets, Q, P).save(tmp_path / "model")
    header, arrays = read_model(tmp_path / "model")
    for name, change in changes.items():
        array = arrays.pop(f"state.{name}")
        if change is not None:
            arrays[f"state.{name}"] = change(array)
    write_model(tmp_path / "model", header, arrays)
    with pytest.raises(ModelFileError, match=message):
        am.load(tmp_path / "model")


def test_a_file_with_an_identity_between_different_widths_is_refused(tmp_path):
    Q, P, triplets, _ = problem(6, 5, 0.5, seed=5)
    am.OASIS(init="zero", cells="touched").fit_triplets(triplets, Q, P).save(tmp_path / "model")
    header, arrays = read_model(tmp_path / "model")
    write_model(tmp_path / "model", header, {**arrays, "state.start": np.ones(1)})
    with pytest.raises(ModelFileError, match="multiple of the identity"):
        am.load(tmp_path / "model")


@pytest.mark.parametrize("cells", ["dense", "touched"])
def test_a_sparse_start_survives_a_file_and_one_that_cannot_be_is_refused(cells, tmp_path):
    Q, P, triplets, _ = problem(6, 5, 0.5, seed=5)
    init = sparse.random_array((6, 5), density=0.4, rng=np.random.default_rng(0))
    model = am.OASIS(init=init, cells=cells).fit_triplets(triplets, Q, P)
    model.save(tmp_path / "model")
    loaded = am.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.init.toarray(), init.toarray())
    assert files_equal(loaded.fit_triplets(triplets, Q, P), model)
    header, arrays = read_model(tmp_path / "model")
    for name, array in (
        ("indices", np.full(12, 5)),
        ("indptr", np.arange(3)),
        ("shape", np.array([6])),
        ("data", None),
    ):
        changed = {key: value for key, value in arrays.items() if key != f"sparse.init.{name}"}
        if array is not None:
            changed[f"sparse.init.{name}"] = array
        write_model(tmp_path / "broken", header, changed)
        with pytest.raises(ModelFileError):
            am.load(tmp_path / "broken")


@pytest.mark.parametrize(
    ("init", "error", "message"),
    [
        (sparse.csr_array((3, 4)), ValueError, r"init must have the shape \(6, 5\)"),
        (sparse.csr_array(np.full((6, 5), np.nan)), ValueError, "init contains NaN"),
        (np.full((6, 5), 1e300), ValueError, "too large"),
        (sparse.csr_array(np.ones((6, 5), dtype=complex)), TypeError, "init must be"),
        ("identity", ValueError, "m = n"),
    ],
)
@pytest.mark.parametrize("cells", ["dense", "touched"])
def test_a_start_that_cannot_be_is_refused(cells, init, error, message):
    Q, P, triplets, _ = problem(6, 5, 0.5, seed=5)
    with pytest.raises(error, match=message):
        am.OASIS(init=init, cells=cells).fit_triplets(triplets, Q, P)


def test_a_start_with_entries_twice_and_out_of_order_is_read_and_left_as_it_is():
    init = sparse.csr_array((3, 3))
    init.data, init.indices, init.indptr = np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([0, 3, 3, 3])
    model = am.OASIS(init=init, cells="touched").fit_triplets([], np.eye(3))
    np.testing.assert_array_equal(model.W_.toarray(), [[2, 0, 4], [0, 0, 0], [0, 0, 0]])
    assert init.indices.tolist() == [2, 0, 2]


def test_more_columns_than_32_bits_can_number_are_refused():
    one = sparse.csr_matrix((np.ones(1), np.zeros(1, dtype=np.int64), np.array([0, 1])), shape=(1, 2**31))
    with pytest.raises(ValueError, match="objects have 2147483648 features"):
        am.OASIS(init="zero").fit_triplets([[0, 0, 0]], np.ones((1, 2)), one)


def test_sizes_of_tables_are_those_that_can_be_reused():
    cells, sizes = np.arange(1, 200), np.empty(199, dtype=np.int64)
    touched.table_sizes(cells, 10**6, sizes)
    assert set(sizes.tolist()) == {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256}
    assert (cells <= 0.8 * sizes).all()
    assert (np.diff(sizes) >= 0).all()
    touched.table_sizes(cells, 50, sizes)
    assert sizes.max() == 50

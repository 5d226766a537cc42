"""Projections from the graph of the judgements: against ridge regression of scikit-learn, and rows never seen."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge

import aromatch as am
from aromatch.kernels.rows import RowView
from aromatch.learners.embedding import spectral
from aromatch.learners.inputs import Block
from aromatch.learners.moment import triplet_graph as judgement_graph
from aromatch.learners.moment.sums import is_held_out
from grouped_rows import NOISY, groups, quality

GROUPS = {"n_rows": 500, "n_groups": 10, "width": 30, "spread": 0.6, "decay": 15}


def judged(n=6_000, **settings):
    X, y, X_test, y_test = groups(**(settings or GROUPS))
    return X, am.triplets.from_labels(y, n, random_state=0), X_test, y_test


def targets(X, triplets, P=None):
    """The rows of which something is told, their directions less the mean, and which are held out."""
    queries = RowView.of_dense(X)
    objects = queries if P is None else RowView.of_dense(P)
    graph = judgement_graph.graph_of(Block(queries, objects, objects, triplets, None))
    sides = [(X, queries, graph.query_rows, graph.directions()[0])]
    if P is not None:
        sides.append((P, objects, graph.object_rows, graph.directions()[1]))
    rows, directions, is_new = [], [], []
    for matrix, view, numbers, wanted in sides:
        told = np.linalg.norm(wanted, axis=1) > 0
        rows.append(matrix[numbers[told]])
        directions.append(wanted[told])
        is_new.append(is_held_out(view, numbers[told]))
    together = np.concatenate(directions)
    return np.concatenate(rows), together - together.mean(axis=0), np.concatenate(is_new)


def ridge(rows, directions, lam):
    """What scikit-learn makes of it; its alpha is held against sums, not means."""
    alpha = lam * np.mean(rows**2) * len(rows)
    return Ridge(alpha, fit_intercept=False, solver="cholesky").fit(rows, directions).coef_.T


@pytest.mark.parametrize("lam", [0.001, 0.3, 10.0])
@pytest.mark.parametrize("apart", [False, True])
def test_the_map_is_the_ridge_regression_of_directions_on_features(lam, apart):
    X, triplets, *_ = judged()
    P = X[::-1].copy() if apart else None
    if apart:
        triplets[:, 1:] = len(X) - 1 - triplets[:, 1:]
    found = am.spectral_projection(triplets, X, P, lam=lam)
    rows, directions, is_new = targets(X, triplets, P)
    L = ridge(rows, directions, lam)
    np.testing.assert_allclose(found.W_, L @ L.T, rtol=1e-8, atol=1e-10 * np.abs(L @ L.T).max())
    known = ridge(rows[~is_new], directions[~is_new], lam)
    W = found._L_of_known @ found._L_of_known.T
    np.testing.assert_allclose(W, known @ known.T, rtol=1e-8, atol=1e-10 * np.abs(W).max())


def test_a_rank_keeps_the_largest_eigenvalues():
    X, triplets, *_ = judged()
    whole, cut = am.spectral_projection(triplets, X), am.spectral_projection(triplets, X, rank=3)
    values, vectors = np.linalg.eigh(whole.W_)
    np.testing.assert_allclose(cut.W_, (vectors[:, -3:] * values[-3:]) @ vectors[:, -3:].T, atol=1e-10 * values[-1])
    assert whole.L_.shape[1] == 9  # one less than there are groups
    assert cut._L_of_known.shape == (30, 3)


@pytest.mark.parametrize("n", [2_000, 20_000])
@pytest.mark.parametrize("settings", [GROUPS, NOISY, {**GROUPS, "spread": 0.05}])
def test_lam_is_the_best_for_rows_that_are_held_out(n, settings):
    X, triplets, *_ = judged(n, **settings)
    rows, directions, is_new = targets(X, triplets)
    errors = []
    for lam in spectral._LAMS:
        L = ridge(rows[~is_new], directions[~is_new], lam)
        errors.append(np.mean(np.sum((rows[is_new] @ L - directions[is_new]) ** 2, axis=1)))
    best = spectral._LAMS[int(np.argmin(errors))]
    found, there = (am.spectral_projection(triplets, X, lam=lam) for lam in ("auto", float(best)))
    np.testing.assert_array_equal(found.L_, there.L_)


def test_a_second_valley_is_found_too():
    rng = np.random.default_rng(37)  # features of very different sizes
    k, n, d = rng.integers(2, 8), int(rng.integers(40, 300)), int(rng.integers(2, 80))
    y = rng.integers(k, size=2 * n)
    X = rng.normal(size=(k, d))[y]
    X = X + rng.choice([0.3, 1, 3]) * rng.normal(size=(2 * n, d)) * np.exp(rng.normal(size=d) * rng.choice([0, 2]))
    triplets = am.triplets.from_labels(y[:n], 30 * n, random_state=37)
    model = am.spectral_projection(triplets, X[:n])
    assert model.score(X[n:], y[n:]) > 0.9 > am.Euclidean().fit(X).score(X[n:], y[n:]) + 0.3


def test_more_features_than_memory_holds_are_refused_before_anything_is_made():
    wide = sparse.csr_array(([1.0, 1.0, 1.0], ([0, 1, 2], [0, 1, 2])), shape=(3, 10_000_000))
    with pytest.raises(MemoryError, match="The regression on 10000000 features"):
        am.spectral_projection([[0, 1, 2]], wide)


def test_it_finds_what_judgements_mean_and_rows_say_softly():
    X, triplets, X_test, y_test = judged(20_000, **NOISY)
    plain, nearby = am.Euclidean().fit(X), am.spectral_projection(triplets, X)
    before, after = (quality(model, X_test, y_test) for model in (plain, nearby))
    labels = groups(**NOISY)[1]
    from_labels = am.MomentAROMA("auto").fit(X, labels).project(rank=7, normalize=0.7)
    assert after > before + 0.2
    assert after > quality(from_labels, X_test, y_test) - 0.02


def test_refining_goes_on_from_the_same_graph_and_chooses_by_the_same_rows(monkeypatch):
    X, triplets, X_test, y_test = judged(20_000, n_rows=1_500, n_groups=30, width=60, spread=0.5, decay=30)
    nearby = am.spectral_projection(triplets, X)
    monkeypatch.setattr(judgement_graph, "_what_stands_out", None)  # what would make the graph anew
    better = nearby.refine(triplets, X)
    assert quality(better, X_test, y_test) > quality(nearby, X_test, y_test) + 0.01


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix, np.asfortranarray, pd.DataFrame])
def test_rows_of_any_kind_give_the_same_map(container):
    X, triplets, *_ = judged()
    X[np.abs(X) < 0.3] = 0
    expected, found = am.spectral_projection(triplets, X), am.spectral_projection(triplets, container(X))
    np.testing.assert_allclose(found.W_, expected.W_, rtol=1e-9, atol=1e-12 * np.abs(expected.W_).max())


def test_rows_in_single_precision_are_read_as_they_are():
    X, triplets, *_ = judged()
    X = X.astype(np.float32)
    expected, found = am.spectral_projection(triplets, X.astype(np.float64)), am.spectral_projection(triplets, X)
    np.testing.assert_allclose(found.W_, expected.W_, rtol=1e-9, atol=1e-12 * np.abs(expected.W_).max())


def test_names_of_columns_are_kept():
    X, triplets, *_ = judged()
    frame = pd.DataFrame(X, columns=[f"f{number}" for number in range(X.shape[1])])
    model = am.spectral_projection(triplets, frame)
    assert list(model.feature_names_in_) == list(frame.columns)
    with pytest.raises(ValueError, match="columns"):
        model.similarity(frame.rename(columns={"f0": "another"}))


@pytest.mark.parametrize("scale", [1e-60, 1e60])
def test_units_of_the_rows_do_not_matter(scale):
    X, triplets, X_test, _ = judged()
    expected = am.spectral_projection(triplets, X, normalize=True).similarity(X_test[:5], X_test)
    found = am.spectral_projection(triplets, scale * X, normalize=True).similarity(scale * X_test[:5], scale * X_test)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


def test_triplets_without_weight_or_difference_say_nothing():
    X, triplets, *_ = judged()
    ties, weightless = triplets[:50].copy(), triplets[50:100][:, [0, 2, 1]]
    ties[:, 2] = ties[:, 1]
    more = np.concatenate([triplets, ties, weightless])
    weights = np.repeat([1.0, 1.0, 0.0], [len(triplets), 50, 50])
    expected = am.spectral_projection(triplets, X, sample_weight=np.ones(len(triplets)))
    np.testing.assert_array_equal(am.spectral_projection(more, X, sample_weight=weights).L_, expected.L_)


def test_the_same_triplets_give_the_same_bits_and_stay_as_they_are():
    X, triplets, *_ = judged()
    before = X.copy(), triplets.copy()
    first, second = am.spectral_projection(triplets, X), am.spectral_projection(triplets, X)
    np.testing.assert_array_equal(first.L_, second.L_)
    for array, copy in zip((X, triplets), before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_it_survives_a_file(tmp_path):
    X, triplets, X_test, _ = judged()
    model = am.spectral_projection(triplets, X)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(am.load(tmp_path / "model").similarity(X_test), model.similarity(X_test))


def test_rows_that_depend_on_each_other_leave_a_map():
    X, triplets, X_test, y_test = judged()
    doubled, doubled_test = (np.column_stack([rows, rows, np.zeros(len(rows))]) for rows in (X, X_test))
    model = am.spectral_projection(triplets, doubled)
    assert np.isfinite(model.L_).all()
    assert quality(model, doubled_test, y_test) == pytest.approx(
        quality(am.spectral_projection(triplets, X), X_test, y_test), abs=0.01
    )


@pytest.mark.parametrize("n", [0, 1, 100])
def test_too_few_triplets_are_told_as_that(n):
    X, triplets, *_ = judged()
    with pytest.raises(ValueError, match=f"{n} that say something.*MomentAROMA"):
        am.spectral_projection(triplets[:n], X)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"lam": 0}, "lam must be greater than 0, got 0"),
        ({"lam": "best"}, "lam must be.*'best'"),
        ({"lam": np.nan}, "lam"),
        ({"rank": 0}, "rank"),
        ({"normalize": 1.5}, "normalize"),
        ({"P": np.ones((500, 3))}, "P must have as many features as Q, 30, got 3"),
        ({"sample_weight": [1.0]}, "sample_weight"),
        ({"triplets": [[0, 1, 500]]}, "500"),
        ({"Q": np.full((500, 30), np.nan)}, "NaN"),
        ({"Q": np.full((500, 30), 1e150)}, "too large"),
    ],
)
def test_bad_input_is_named(changed, message):
    X, triplets, *_ = judged()
    with pytest.raises((ValueError, TypeError), match=message):
        am.spectral_projection(**{"triplets": triplets, "Q": X, **changed})

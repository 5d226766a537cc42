"""Components of the graph of triplets above the noise level, against dense matrices and synthetic groups."""

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import eigsh, svds

import aromatch as am
from aromatch.kernels.rows import RowView
from aromatch.learners.inputs import Block
from aromatch.learners.moment import sums, triplet_graph
from grouped_rows import groups
from saved_state import saved_state


def block_of(Q, P, triplets, weights=None):
    queries = RowView.of_dense(Q)
    objects = queries if P is Q else RowView.of_dense(P)
    return Block(queries, objects, objects, np.asarray(triplets), weights)


def graph_of(block):
    return triplet_graph.graph_of(block, sums.hashes_of(block))


def denoised_sums(block):
    return triplet_graph.denoised_sums({}, block, graph_of(block))


def denoised_qp(block):
    return denoised_sums(block)["denoised_qp"] if graph_of(block).has_signal else None


def test_every_group_has_a_component_and_the_denoised_sum_is_near_that_of_the_labels():
    X, y, _, _ = groups(n_rows=800)
    triplets = am.triplets.from_labels(y, 20_000, random_state=0)
    everything = saved_state(am.MomentAROMA().fit(X, y))
    plain = saved_state(am.MomentAROMA().fit_triplets(triplets, X))
    exact, sampled = everything["qp"] / everything["weight"], plain["qp"] / plain["weight"]
    denoised = denoised_qp(block_of(X, X, triplets)) / plain["weight"]
    assert np.linalg.matrix_rank(denoised) == 7  # one less than there are groups: the mean of all is no component
    assert np.linalg.norm(denoised - exact) < 0.5 * np.linalg.norm(sampled - exact)


def by_dense_matrices(Q, P, triplets, weights, symmetric, factor=1.0):
    """The denoised sums, all in dense matrices; rows in no triplet have no judgement."""
    K = np.zeros((len(Q), len(P)))
    np.add.at(K, (triplets[:, 0], triplets[:, 1]), weights)
    np.add.at(K, (triplets[:, 0], triplets[:, 2]), -weights)
    if symmetric:
        K = (K + K.T) / 2
    degrees = [np.abs(K).sum(axis=1), np.abs(K).sum(axis=0)]
    roots = [np.sqrt(degree + degree.mean()) for degree in degrees]
    scaled = K / roots[0][:, np.newaxis] / roots[1]
    edge = np.sqrt(np.mean((scaled**2).sum(axis=1))) + np.sqrt(np.mean((scaled**2).sum(axis=0)))
    U, values, V = np.linalg.svd(scaled, full_matrices=False)
    kept = values > factor * edge
    K_hat = roots[0][:, np.newaxis] * ((U[:, kept] * values[kept]) @ V[kept]) * roots[1]
    new_query, new = (sums.is_validation(sums.value_hashes(RowView.of_dense(X), np.arange(len(X)))) for X in (Q, P))
    centred = P[new] - np.average(P[new], axis=0, weights=degrees[1][new])
    return (
        Q.T @ K_hat @ P,
        Q[~new_query].T @ K_hat[np.ix_(~new_query, ~new)] @ P[~new],
        Q[new_query].T @ K_hat[np.ix_(new_query, new)] @ P[new],
        2 * (centred * degrees[1][new, np.newaxis]).T @ centred,
    ), np.count_nonzero(kept)


@pytest.mark.parametrize("n_triplets", [3_000, 8_000])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("container", [RowView.of_dense, lambda X: RowView.of_csr(X.shape, *csr_parts(X))])
def test_denoised_sums_are_those_of_dense_matrices(n_triplets, symmetric, container):
    X, y, _, _ = groups(n_rows=300, width=10)
    triplets = am.triplets.from_labels(y, n_triplets, random_state=0)
    weights = np.random.default_rng(0).random(n_triplets) + 0.5
    queries = container(X)
    objects = queries if symmetric else container(X)
    block = Block(queries, objects, objects, triplets, weights)
    found = [denoised_sums(block)[name] for name in triplet_graph.DENOISED]
    expected, n_kept = by_dense_matrices(X, X, triplets, weights, symmetric)
    assert 7 <= n_kept <= 9
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4 * np.abs(other).max())


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_the_noise_edge_decides_which_components_are_kept(factor):
    X, y, _, _ = groups(n_rows=300, width=10)
    counts = []
    for n_triplets in (600, 900, 1_200, 1_500, 2_000):
        triplets = am.triplets.from_labels(y, n_triplets, random_state=0)
        counts.append([by_dense_matrices(X, X, triplets, np.ones(n_triplets), True, f)[1] for f in (1.0, factor)])
        assert len(graph_of(block_of(X, X, triplets)).components.values) == counts[-1][0]
    assert any(kept != other for kept, other in counts)  # another edge would show


def test_negative_components_are_found():
    rng = np.random.default_rng(0)
    y, X = np.arange(600) % 2, rng.normal(size=(600, 5))
    triplets = am.triplets.from_labels(y, 10_000, random_state=0)[:, [0, 2, 1]]
    expected, n_kept = by_dense_matrices(X, X, triplets, np.ones(10_000), True)
    assert n_kept == 1
    found = denoised_qp(block_of(X, X, triplets))
    np.testing.assert_allclose(found, expected[0], rtol=1e-3, atol=1e-4 * np.abs(found).max())
    assert np.trace(found) < 0


def csr_parts(X):
    matrix = sparse.csr_array(X)
    return matrix.data, matrix.indices, matrix.indptr


@pytest.mark.parametrize("sizes", [(300, 700), (700, 300), (120, 900), (900, 120)])
def test_queries_and_objects_of_two_collections(sizes):
    rng = np.random.default_rng(0)
    target, has = rng.integers(5, size=sizes[0]), rng.integers(5, size=sizes[1])
    Q, P = rng.normal(size=(sizes[0], 20)) + np.eye(20)[target], rng.normal(size=(sizes[1], 12)) + np.eye(12)[has]
    query = rng.integers(sizes[0], size=60_000)
    triplets = np.column_stack([query, rng.integers(sizes[1], size=(60_000, 2))])
    good, bad = has[triplets[:, 1]] == target[query], has[triplets[:, 2]] == target[query]
    triplets = triplets[good & ~bad]
    K = 5 * (target[:, np.newaxis] == has) - 1.0
    exact = Q.T @ K @ P
    plain = saved_state(am.MomentAROMA().fit_triplets(triplets, Q, P))["qp"]
    denoised = denoised_qp(block_of(Q, P, triplets))
    far = [1 - np.vdot(found, exact) / np.linalg.norm(found) / np.linalg.norm(exact) for found in (plain, denoised)]
    assert far[1] < 0.5 * far[0]
    assert np.linalg.matrix_rank(denoised) == 4


def test_large_and_small_graphs_have_the_same_components(monkeypatch):
    X, y, _, _ = groups(n_rows=300)
    triplets = am.triplets.from_labels(y, 10_000, random_state=0)
    P = X.copy()
    found = {}
    for small in (0, 10_000):
        monkeypatch.setattr(triplet_graph, "_SMALL", small)
        for first in (2, 32):
            monkeypatch.setattr(triplet_graph, "_FIRST", first)
            for name, objects in (("one", X), ("two", P)):
                found.setdefault(name, []).append(denoised_qp(block_of(X, objects, triplets)))
    for alike in found.values():
        for other in alike[1:]:
            np.testing.assert_allclose(other, alike[0], rtol=1e-3, atol=1e-3 * np.abs(alike[0]).max())
    assert np.abs(found["one"][0] - found["two"][0]).max() > 0.01 * np.abs(found["one"][0]).max()


def test_weights_are_repetitions_and_scale_with_the_sum():
    X, y, _, _ = groups(n_rows=200)
    triplets = am.triplets.from_labels(y, 8_000, random_state=0)
    weights = np.random.default_rng(0).integers(1, 4, size=len(triplets)).astype(float)
    repeated = denoised_qp(block_of(X, X, np.repeat(triplets, weights.astype(int), axis=0)))
    weighted = denoised_qp(block_of(X, X, triplets, weights))
    tenth = denoised_qp(block_of(X, X, triplets, weights / 10))
    np.testing.assert_allclose(weighted, repeated, rtol=1e-6, atol=1e-6 * np.abs(repeated).max())
    np.testing.assert_allclose(10 * tenth, weighted, rtol=1e-6, atol=1e-6 * np.abs(repeated).max())


def test_noise_and_contradictions_have_no_components():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 10))
    chance = rng.integers(500, size=(20_000, 3))
    found = denoised_qp(block_of(X, X, chance[chance[:, 1] != chance[:, 2]]))
    assert found is None or np.linalg.matrix_rank(found) <= 2
    both_ways = np.array([[0, 1, 2], [0, 2, 1], [3, 4, 5], [3, 5, 4]])
    assert denoised_qp(block_of(X, X, both_ways)) is None


def planted(shape, strengths, symmetric, seed=0):
    """A sparse matrix of noise with a few directions, each so many times stronger than what noise hides."""
    rng = np.random.default_rng(seed)
    n = 30 * max(shape)
    row, column = rng.integers(shape[0], size=n), rng.integers(shape[1], size=n)
    left, right = (np.where(rng.random((length, len(strengths))) < 0.5, 1.0, -1.0) for length in shape)
    right = left if symmetric else right
    # A spike of strength s in noise of this size stands s + 1/s as high as half the edge.
    means = np.einsum("ik,ik->i", left[row] * strengths, right[column]) / np.sqrt(n / max(shape)) / 2
    noise = rng.normal(size=n)
    K = sparse.csr_array(sparse.coo_array((means + noise, (row, column)), shape=shape))
    return (K + K.T).tocsr() / 2 if symmetric else K


@pytest.mark.parametrize("shape", [(4_000, 4_000), (1_500, 6_000), (6_000, 1_500)])
def test_components_just_above_the_edge_are_found_as_by_other_solvers(shape):
    symmetric = shape[0] == shape[1]
    K = planted(shape, [2.0, 2.4, 2.8, 3.5, 8.0], symmetric)
    squares = K.multiply(K)
    edge = sum(float(np.sqrt(squares.sum(axis=axis).mean())) for axis in (1, 0))
    found = triplet_graph._largest(K, 32, edge, symmetric)
    if symmetric:
        values, vectors = eigsh(K, k=10)
        order = np.argsort(-np.abs(values))
        values, vectors = np.abs(values[order]), vectors[:, order]
    else:
        vectors, values, _ = svds(K, k=10)
        values, vectors = values[::-1], vectors[:, ::-1]
    above = values > 1.05 * edge
    assert np.count_nonzero(above) >= 3
    assert values[above].min() < 1.3 * edge
    np.testing.assert_allclose(np.abs(found.values[: np.count_nonzero(above)]), values[above], rtol=5e-3)
    shared = np.linalg.norm(found.left[:, :32].T @ vectors[:, above], axis=0)
    assert shared.min() > 0.97


def test_directions_match_rows_of_a_group_and_are_zero_without_signal():
    X, y, _, _ = groups(n_rows=1_200, width=10)
    told = np.arange(1_200) < 800
    triplets = am.triplets.from_labels(y[:800], 20_000, random_state=0)
    chance = np.random.default_rng(0).integers(800, 1_200, size=(10_000, 3))
    found, others = graph_of(block_of(X, X, np.concatenate([triplets, chance]))).directions()
    np.testing.assert_array_equal(found, others)
    norms = np.linalg.norm(found, axis=1)
    np.testing.assert_allclose(norms[norms > 0], 1)
    assert np.mean(norms[told] > 0) > 0.99
    assert np.mean(norms[~told] > 0) < 0.4
    belongs = found[told] @ found[told].T > 0.5
    same = y[told][:, np.newaxis] == y[told]
    assert np.mean(belongs == same) > 0.99


@pytest.mark.parametrize("is_one", [True, False])
@pytest.mark.parametrize("n_triplets", [100_000, 2_000_000])
def test_strong_components_are_found_without_overflow(is_one, n_triplets):
    rng = np.random.default_rng(0)
    y, X = np.arange(1_000) % 2, rng.normal(size=(1_000, 3))
    block = block_of(X, X if is_one else X.copy(), am.triplets.from_labels(y, n_triplets, random_state=0))
    factors = graph_of(block).components
    assert len(factors.values) == 1
    sides = np.sign(factors.left[:, 0]) * np.where(y == 1, 1, -1)
    assert abs(sides.sum()) == 1_000

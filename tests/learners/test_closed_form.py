"""What MomentAROMA chooses on held-out triplets, and what it finds in the graph of the judgements."""

import numpy as np
import pytest
from scipy import sparse

import aromatch as am
from aromatch.evaluation import evaluate_retrieval
from aromatch.kernels.rows import RowView
from aromatch.learners import judgement_graph, sums
from aromatch.learners.inputs import Block


def groups(n_rows=400, n_groups=8, width=40, spread=0.5, decay=np.inf):
    """Rows around centres, and test rows around the same ones; with a decay, the first features are mostly noise."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(n_groups, width)) / np.sqrt(width)
    y = np.arange(2 * n_rows) % n_groups
    X = centres[y] + spread * rng.normal(size=(len(y), width)) * np.exp(-np.arange(width) / decay)
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


# Rows that need a metric: what tells the groups apart is in the quiet features.
NOISY = {"n_rows": 1_000, "width": 100, "spread": 1.0, "decay": 30}


def block_of(Q, P, triplets, weights=None):
    queries = RowView.of_dense(Q)
    objects = queries if P is Q else RowView.of_dense(P)
    return Block(queries, objects, objects, np.asarray(triplets), weights)


def denoised_qp(block, m, n):
    found = judgement_graph.denoised(block, m, n)
    return None if found is None else found.denoised_qp


def quality(model, X_test, y_test):
    return evaluate_retrieval(model, X_test, y_test).mean_average_precision


# -- what is held out -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "container", [np.asfortranarray, sparse.csr_array, sparse.csr_matrix], ids=lambda c: c.__name__
)
def test_what_is_held_out_depends_on_values_alone(container):
    X, y, _, _ = groups(n_rows=60)
    X[X < 0.2] = 0.0
    triplets = am.triplets.from_labels(y, 300, random_state=0)
    plain = am.MomentAROMA("auto").fit_triplets(triplets, X)
    other = am.MomentAROMA("auto").fit_triplets(triplets, container(X))
    turned = am.MomentAROMA("auto").fit_triplets(59 - triplets[::-1], X[::-1])
    for model in (other, turned):
        assert model._state["held_weight"] == plain._state["held_weight"]
        np.testing.assert_allclose(model._state["held_qp"], plain._state["held_qp"], rtol=1e-9, atol=1e-12)
        assert model.lam_ == pytest.approx(plain.lam_)


def test_one_row_in_eight_is_held_out_whatever_it_holds():
    for X in (
        np.eye(2_000),
        7.0 * np.eye(2_000),
        np.arange(2_000.0)[:, np.newaxis],
        np.random.default_rng(0).normal(size=(2_000, 3)),
    ):
        held = sums.is_held_out(RowView.of_dense(X), np.arange(2_000))
        assert 200 <= np.count_nonzero(held) <= 300


def test_values_and_their_columns_count_and_zeros_do_not():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4_000, 2))
    numbers = np.arange(len(X))
    plain = sums.is_held_out(RowView.of_dense(X), numbers)
    for other in (X[:, ::-1].copy(), np.nextafter(X, 9), np.column_stack([np.zeros(len(X)), X])):
        assert 0.15 < np.mean(plain != sums.is_held_out(RowView.of_dense(other), numbers)) < 0.3
    wider = np.column_stack([X, np.where(X[:, 0] > 0, 0.0, -0.0)])
    np.testing.assert_array_equal(plain, sums.is_held_out(RowView.of_dense(wider), numbers))
    np.testing.assert_array_equal(plain[[5, 2, 5]], sums.is_held_out(RowView.of_dense(X), np.array([5, 2, 5])))


def test_parts_are_triplets_of_known_rows_and_those_of_new_queries():
    X, y, _, _ = groups()
    triplets = am.triplets.from_labels(y, 2_000, random_state=0)
    held = sums.is_held_out(RowView.of_dense(X), np.arange(len(X)))[triplets]
    model = am.MomentAROMA("auto").fit_triplets(triplets, X)
    for part, which in (
        ("", slice(None)),
        ("learn_", ~held.any(axis=1)),
        ("held_", held[:, 0] & ~held[:, 1] & ~held[:, 2]),
    ):
        alone = am.MomentAROMA().fit_triplets(triplets[which], X)
        for name in sums.Sums._fields:
            np.testing.assert_allclose(model._state[part + name], alone._state[name], rtol=1e-9, atol=1e-10)


def test_labels_learn_nothing_of_held_rows_and_use_all_in_the_end():
    X, y, _, _ = groups()
    model = am.MomentAROMA("auto").fit(X, y)
    is_held = sums.is_held_out(RowView.of_dense(X), np.arange(len(X)))
    for part, which in (("learn_", ~is_held), ("held_", is_held)):
        alone = am.MomentAROMA().fit(X[which], y[which])
        for name in sums.Sums._fields:
            np.testing.assert_allclose(model._state[part + name], alone._state[name], rtol=1e-9, atol=1e-10)
    np.testing.assert_array_equal(model.set_params(lam=0.01).W_, am.MomentAROMA(0.01).fit(X, y).W_)


# -- lam --------------------------------------------------------------------------------------------------------------


def by_hand(model):
    """The best lam by margins of the held-out sums, in full: nothing diagonal, each lam with its own inverses."""
    state = model._state
    learn, held = float(state["learn_weight"][0]), float(state["held_weight"][0])
    scale = np.sqrt(np.trace(state["qq"]) / len(state["qq"]) * np.trace(state["pp"]) / len(state["pp"]))
    scale /= state["weight"][0]
    scores = {}
    for lam in 10.0 ** np.arange(-4, 2.1, 0.5) * scale:
        left, right = (
            np.linalg.inv(state[name] / learn + lam * np.eye(len(state[name]))) for name in ("learn_qq", "learn_pp")
        )
        W = left @ (state["learn_qp"] / learn) @ right
        square = np.trace(W.T @ (state["held_qq"] / held) @ W @ (state["held_pp"] / held))
        scores[lam] = np.trace(W.T @ state["held_qp"] / held) / np.sqrt(square)
    return scores


@pytest.mark.parametrize("n_triplets", [200, 3_000, 50_000])
@pytest.mark.parametrize("spread", [0.2, 0.5])
def test_lam_is_as_good_as_the_best_by_hand(n_triplets, spread):
    X, y, _, _ = groups(spread=spread)
    model = am.MomentAROMA("auto").fit_triplets(am.triplets.from_labels(y, n_triplets, random_state=0), X)
    scores = by_hand(model)
    nearest = min(scores, key=lambda lam: abs(np.log(lam / model.lam_)))
    assert nearest == pytest.approx(model.lam_)
    assert scores[nearest] >= 0.97 * max(scores.values())


def test_lam_falls_as_triplets_come_and_is_near_the_best_on_rows_never_seen():
    X, y, X_test, y_test = groups(**NOISY)
    lams = []
    for n_triplets in (2_000, 10_000, 50_000):
        triplets = am.triplets.from_labels(y, n_triplets, random_state=0)
        model = am.MomentAROMA("auto").fit_triplets(triplets, X)
        lams.append(model.lam_)
        found, chosen = quality(model, X_test, y_test), model.lam_
        others = [quality(model.set_params(lam=chosen * by), X_test, y_test) for by in (0.01, 0.1, 10, 100)]
        assert found >= max(others) - 0.01
        assert found > min(others) + 0.1
    assert lams[0] > 2 * lams[2]


def test_lam_goes_with_the_scale_of_the_rows():
    X, y, _, _ = groups()
    triplets = am.triplets.from_labels(y, 2_000, random_state=0)
    plain = am.MomentAROMA("auto").fit_triplets(triplets, X)
    for scale in (1e-45, 1e45):
        scaled = am.MomentAROMA("auto").fit_triplets(triplets, scale * X)
        assert 0.05 < scaled.lam_ / scale**2 / plain.lam_ < 20  # other values, other rows held out


def test_a_choice_without_anything_to_choose_by_is_the_size_of_a_feature():
    X = np.diag([1.0, 2.0, 3.0])
    model = am.MomentAROMA("auto").fit_triplets(np.zeros((0, 3), dtype=int), X)
    assert (model.lam_, model.denoised_) == (1.0, 0.0)
    assert not model.W_.any()
    model.partial_fit_triplets([[0, 1, 2]], X)
    assert model.lam_ == pytest.approx(np.sqrt(1 / 3 * 13 / 3))
    assert model.margins([[0, 1, 2]], X)[0] > 0


def test_choices_survive_cuts_merging_files_and_copies(tmp_path):
    X, y, _, _ = groups(n_rows=100)
    triplets = am.triplets.from_labels(y, 1_000, random_state=0)
    whole = am.MomentAROMA("auto").fit_triplets(triplets, X)
    in_pieces, apart = am.MomentAROMA("auto"), []
    for piece in np.split(np.random.default_rng(0).permutation(triplets), 4):
        in_pieces.partial_fit_triplets(piece, X)
        apart.append(am.MomentAROMA("auto").fit_triplets(piece, X))
    whole.save(tmp_path / "model")
    for other in (in_pieces, am.merge(apart), am.load(tmp_path / "model"), whole.copy()):
        assert other.lam_ == pytest.approx(whole.lam_)
        np.testing.assert_allclose(other.W_, whole.W_, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("later", [{"lam": "auto"}, {"denoise": True}])
def test_what_needs_a_held_out_part_cannot_come_later(later):
    X, y, _, _ = groups(n_rows=60)
    triplets = am.triplets.from_labels(y, 200, random_state=0)
    model = am.MomentAROMA().fit_triplets(triplets, X)
    model.set_params(**later)
    for use in (lambda: model.W_, lambda: model.partial_fit_triplets(triplets, X), lambda: model.similarity(X)):
        with pytest.raises(ValueError, match="has held out none; fit it anew"):
            use()
    assert model.fit_triplets(triplets, X).W_.any()
    assert am.MomentAROMA().fit(X, y).set_params(**later).fit(X, y).W_.any()


def test_what_was_chosen_can_be_set_instead(tmp_path):
    X, y, _, _ = groups(n_rows=60)
    triplets = am.triplets.from_labels(y, 500, random_state=0)
    chosen = am.MomentAROMA("auto", denoise=True).fit_triplets(triplets, X)
    chosen.set_params(lam=0.1, denoise=False)
    plain = am.MomentAROMA(0.1).fit_triplets(triplets, X)
    np.testing.assert_allclose(chosen.W_, plain.W_, rtol=1e-9, atol=1e-12)
    chosen.save(tmp_path / "plain")
    assert set(am.load(tmp_path / "plain")._state) == set(plain._state)
    chosen.partial_fit_triplets(triplets, X)
    with pytest.raises(ValueError, match="has held out none"):
        _ = chosen.set_params(lam="auto").W_


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"lam": "best"}, "lam must be one of 'auto'"),
        ({"lam": -1.0}, "lam"),
        ({"r": 0.0}, "r must be greater than 0"),
        ({"denoise": 1}, "denoise must be True"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(parameters, message):
    with pytest.raises((TypeError, ValueError), match=message):
        am.MomentAROMA(**parameters).fit(np.eye(3), [0, 0, 1])


def test_r_is_a_number_of_judgements_that_say_nothing():
    X, y, _, _ = groups(n_rows=60)
    triplets = am.triplets.from_labels(y, 500, random_state=0)
    model = am.MomentAROMA(r=5.0)
    for end in (1, 100, 500):
        model.partial_fit_triplets(triplets[model.n_triplets_seen_ if hasattr(model, "_state") else 0 : end], X)
        assert model.lam_ == 5.0 / end
        expected = am.MomentAROMA(5.0 / end).fit_triplets(triplets[:end], X)
        np.testing.assert_allclose(model.W_, expected.W_, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(model.Lambda_, expected.Lambda_, rtol=1e-6, atol=1e-9)
    assert am.MomentAROMA("auto", r=5.0).fit_triplets(triplets, X).lam_ == 0.01


# -- the graph --------------------------------------------------------------------------------------------------------


def test_every_group_stands_out_and_the_sum_comes_near_that_of_the_labels():
    X, y, _, _ = groups(n_rows=800)
    triplets = am.triplets.from_labels(y, 20_000, random_state=0)
    everything = am.MomentAROMA().fit(X, y)._state
    plain = am.MomentAROMA().fit_triplets(triplets, X)._state
    exact, drawn = everything["qp"] / everything["weight"], plain["qp"] / plain["weight"]
    denoised = judgement_graph.denoised(block_of(X, X, triplets), 40, 40).denoised_qp / plain["weight"]
    assert np.linalg.matrix_rank(denoised) == 7  # one less than there are groups: the mean of all has no say
    assert np.linalg.norm(denoised - exact) < 0.5 * np.linalg.norm(drawn - exact)


def by_dense_matrices(Q, P, triplets, weights, symmetric):
    """What stands out of the graph, all in dense matrices; rows that no triplet names have no judgement."""
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
    kept = values > edge
    K_hat = roots[0][:, np.newaxis] * ((U[:, kept] * values[kept]) @ V[kept]) * roots[1]
    new_query, new = (sums.is_held_out(RowView.of_dense(X), np.arange(len(X))) for X in (Q, P))
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
def test_what_stands_out_is_that_of_dense_matrices(n_triplets, symmetric, container):
    X, y, _, _ = groups(n_rows=300, width=10)
    triplets = am.triplets.from_labels(y, n_triplets, random_state=0)
    weights = np.random.default_rng(0).random(n_triplets) + 0.5
    queries = container(X)
    objects = queries if symmetric else container(X)
    found = judgement_graph.denoised(Block(queries, objects, objects, triplets, weights), 10, 10)
    expected, n_kept = by_dense_matrices(X, X, triplets, weights, symmetric)
    assert 7 <= n_kept <= 9
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4 * np.abs(other).max())


def test_rows_that_want_what_they_are_not_stand_out_too():
    rng = np.random.default_rng(0)
    y, X = np.arange(600) % 2, rng.normal(size=(600, 5))
    triplets = am.triplets.from_labels(y, 10_000, random_state=0)[:, [0, 2, 1]]
    expected, n_kept = by_dense_matrices(X, X, triplets, np.ones(10_000), True)
    assert n_kept == 1
    found = denoised_qp(block_of(X, X, triplets), 5, 5)
    np.testing.assert_allclose(found, expected[0], rtol=1e-3, atol=1e-4 * np.abs(found).max())
    assert np.trace(found) < 0


def csr_parts(X):
    matrix = sparse.csr_array(X)
    return matrix.data, matrix.indices, matrix.indptr


@pytest.mark.parametrize("sizes", [(300, 700), (700, 300), (120, 900), (900, 120)])
def test_queries_and_objects_of_two_collections(sizes):
    rng = np.random.default_rng(0)
    wants, has = rng.integers(5, size=sizes[0]), rng.integers(5, size=sizes[1])
    Q, P = rng.normal(size=(sizes[0], 20)) + np.eye(20)[wants], rng.normal(size=(sizes[1], 12)) + np.eye(12)[has]
    query = rng.integers(sizes[0], size=60_000)
    triplets = np.column_stack([query, rng.integers(sizes[1], size=(60_000, 2))])
    good, bad = has[triplets[:, 1]] == wants[query], has[triplets[:, 2]] == wants[query]
    triplets = triplets[good & ~bad]
    K = 5 * (wants[:, np.newaxis] == has) - 1.0
    exact = Q.T @ K @ P
    plain = am.MomentAROMA().fit_triplets(triplets, Q, P)._state["qp"]
    denoised = denoised_qp(block_of(Q, P, triplets), 20, 12)
    far = [1 - np.vdot(found, exact) / np.linalg.norm(found) / np.linalg.norm(exact) for found in (plain, denoised)]
    assert far[1] < 0.5 * far[0]
    assert np.linalg.matrix_rank(denoised) == 4


def test_large_and_small_graphs_are_taken_apart_alike(monkeypatch):
    X, y, _, _ = groups(n_rows=300)
    triplets = am.triplets.from_labels(y, 10_000, random_state=0)
    P = X.copy()
    found = {}
    for small in (0, 10_000):
        monkeypatch.setattr(judgement_graph, "_SMALL", small)
        for first in (2, 32):
            monkeypatch.setattr(judgement_graph, "_FIRST", first)
            for name, objects in (("one", X), ("two", P)):
                found.setdefault(name, []).append(denoised_qp(block_of(X, objects, triplets), 40, 40))
    for alike in found.values():
        for other in alike[1:]:
            np.testing.assert_allclose(other, alike[0], rtol=1e-3, atol=1e-3 * np.abs(alike[0]).max())
    assert np.abs(found["one"][0] - found["two"][0]).max() > 0.01 * np.abs(found["one"][0]).max()


def test_weights_are_repetitions_and_scale_with_the_sum():
    X, y, _, _ = groups(n_rows=200)
    triplets = am.triplets.from_labels(y, 8_000, random_state=0)
    weights = np.random.default_rng(0).integers(1, 4, size=len(triplets)).astype(float)
    repeated = denoised_qp(block_of(X, X, np.repeat(triplets, weights.astype(int), axis=0)), 40, 40)
    weighted = denoised_qp(block_of(X, X, triplets, weights), 40, 40)
    tenth = denoised_qp(block_of(X, X, triplets, weights / 10), 40, 40)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-6, atol=1e-6 * np.abs(repeated).max())
    np.testing.assert_allclose(10 * tenth, weighted, rtol=1e-6, atol=1e-6 * np.abs(repeated).max())


def test_chance_and_contradictions_do_not_stand_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 10))
    chance = rng.integers(500, size=(20_000, 3))
    found = denoised_qp(block_of(X, X, chance[chance[:, 1] != chance[:, 2]]), 10, 10)
    assert found is None or np.linalg.matrix_rank(found) <= 2
    both_ways = np.array([[0, 1, 2], [0, 2, 1], [3, 4, 5], [3, 5, 4]])
    assert denoised_qp(block_of(X, X, both_ways), 10, 10) is None


def test_denoising_is_used_where_it_helps_and_only_there():
    X, y, X_test, y_test = groups(**NOISY)
    gains = {}
    for n_triplets in (500, 2_000):
        triplets = am.triplets.from_labels(y, n_triplets, random_state=0)
        plain = am.MomentAROMA("auto").fit_triplets(triplets, X)
        model = am.MomentAROMA("auto", denoise=True).fit_triplets(triplets, X)
        gains[model.denoised_] = quality(model, X_test, y_test) - quality(plain, X_test, y_test)
        assert plain.denoised_ == 0
    assert gains[0.0] == 0
    assert gains[1.0] > 0.2


def test_wrong_judgements_are_outvoted():
    X, y, X_test, y_test = groups(**NOISY)
    triplets = am.triplets.from_labels(y, 20_000, random_state=0)
    is_wrong = np.random.default_rng(1).random(len(triplets)) < 0.3
    triplets[is_wrong] = triplets[is_wrong][:, [0, 2, 1]]
    plain = am.MomentAROMA("auto").fit_triplets(triplets, X)
    model = am.MomentAROMA("auto", denoise=True).fit_triplets(triplets, X)
    assert quality(model, X_test, y_test) > quality(plain, X_test, y_test) + 0.1
    assert quality(model, X_test, y_test) > 0.98


def choice_by_hand(state):
    """The rule in plain loops: lam of each kind of sum, then the share, in the diagonals that the page describes."""
    learn, held = float(state["learn_weight"][0]), float(state["held_weight"][0])
    a, U = np.linalg.eigh(state["learn_qq"] / learn)
    b, V = np.linalg.eigh(state["learn_pp"] / learn)
    scale = np.sqrt(np.trace(state["qq"]) * np.trace(state["pp"])) / len(a) / state["weight"][0]

    def score(qp, lam, wanted, pp):
        W = (U.T @ state[qp] @ V if isinstance(qp, str) else U.T @ qp @ V) / np.outer(a + lam, b + lam)
        of_q, of_p = np.diagonal(U.T @ state["held_qq"] @ U), np.diagonal(V.T @ state[pp] @ V)
        return np.sum(W * (U.T @ state[wanted] @ V)) / np.sqrt(np.sum(W**2 * np.outer(of_q, of_p)))

    lams = 10.0 ** np.arange(-4, 2.1, 0.5) * scale
    plain = max(lams, key=lambda lam: score("learn_qp", lam, "held_qp", "held_pp"))
    denoised = max(lams, key=lambda lam: score("known_qp", lam, "new_qp", "new_pp"))
    found = {}
    for share, lam in ((0.0, plain), (0.5, np.sqrt(plain * denoised)), (1.0, denoised)):
        mixed = (1 - share) * state["learn_qp"] + share * state["learn_denoised_qp"]
        found[lam, share] = score(mixed, lam, "held_qp", "held_pp") * (1 + (share == 0) * 0.5 / np.sqrt(held))
    return max(found, key=found.get)


@pytest.mark.parametrize("n_triplets", [500, 1_000, 1_500, 2_000, 5_000, 20_000])
@pytest.mark.parametrize("decay", [20, 30])
def test_the_choice_is_that_of_plain_loops(n_triplets, decay):
    X, y, _, _ = groups(**(NOISY | {"decay": decay}))
    triplets = am.triplets.from_labels(y, n_triplets, random_state=0)
    model = am.MomentAROMA("auto", denoise=True).fit_triplets(triplets, X)
    lam, share = choice_by_hand(model._state)
    assert model.denoised_ == share
    assert model.lam_ == pytest.approx(lam, rel=1e-6)
    state, weight = model._state, model.weight_
    qp = (1 - share) * state["qp"] + share * state["denoised_qp"]
    left, right = (np.linalg.inv(state[name] / weight + lam * np.eye(100)) for name in ("qq", "pp"))
    np.testing.assert_allclose(model.W_, left @ (qp / weight) @ right, rtol=1e-6, atol=1e-8 * np.abs(model.W_).max())


def test_a_fixed_lam_and_single_judgements_go_with_denoising():
    X, y, _, _ = groups(n_rows=300)
    triplets = am.triplets.from_labels(y, 10_000, random_state=0)
    model = am.MomentAROMA(0.05, denoise=True).fit_triplets(triplets, X)
    assert model.lam_ == 0.05
    assert model.denoised_ > 0
    before, expected = model.weight_, model.margins(triplets[:1], X)[0]
    i, j, k = triplets[0]
    assert model.learn_one(X[i], X[j], X[k]).margin == pytest.approx(expected)
    assert model.weight_ == before + 1
    labelled = am.MomentAROMA(0.05, denoise=True).fit(X, y)
    np.testing.assert_allclose(labelled.W_, am.MomentAROMA(0.05).fit(X, y).W_, rtol=1e-9, atol=1e-12)


def test_the_same_judgements_give_the_same_bits():
    X, y, _, _ = groups(n_rows=500)
    triplets = am.triplets.from_labels(y, 10_000, random_state=0)
    first, second = (am.MomentAROMA("auto", denoise=True).fit_triplets(triplets, X).W_ for _ in range(2))
    np.testing.assert_array_equal(first, second)

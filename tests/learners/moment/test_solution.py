"""What MomentAROMA holds out, and what it chooses by it: lam, and whether to denoise."""

import numpy as np
import pytest
from scipy import sparse

import aromatch as am
from aromatch.kernels.rows import RowView
from aromatch.learners.moment import sums
from aromatch.learners.moment.solution import Choice, Solution
from grouped_rows import NOISY, groups, quality

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


@pytest.mark.parametrize("denoise", [False, True])
def test_a_handful_of_rows_is_learned_too(denoise):
    for X, y in ((np.eye(3), [0, 0, 1]), (np.eye(4), [0, 0, 1, 1]), (np.zeros((4, 2)), [0, 0, 1, 1])):
        model = am.MomentAROMA("auto", denoise=denoise).fit(X, y)
        assert np.isfinite(model.W_).all()
        assert model.lam_ > 0
        again = am.MomentAROMA("auto", denoise=denoise).fit_triplets([[0, 1, 2], [1, 0, 2]], X)
        assert np.isfinite(again.W_).all()


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


# -- denoising ---------------------------------------------------------------------------------------------------------


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
        mixed = (1 - share) * state["learn_qp"] / learn + share * state["known_qp"] / state["weight"][0] * 64 / 49
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


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_w_of_known_rows_is_made_of_what_is_known(share):
    X, y, _, _ = groups(n_rows=300)
    triplets = am.triplets.from_labels(y, 9_000, random_state=0)
    state = am.MomentAROMA("auto", denoise=True).fit_triplets(triplets, X)._state
    solution = Solution(state, None, True)
    solution.choice = Choice(0.03, share)
    n = state["learn_weight"]
    left, right = (np.linalg.inv(state[name] / n + 0.03 * np.eye(40)) for name in ("learn_qq", "learn_pp"))
    qp = (1 - share) * state["learn_qp"] / n + share * state["known_qp"] / state["weight"] * 64 / 49
    np.testing.assert_allclose(solution.W_of_known, left @ qp @ right, rtol=1e-8, atol=1e-10)
    assert Solution({**state, "learn_weight": np.zeros(1)}, None, True).W_of_known is None


@pytest.mark.parametrize("n_rows", [40, 100_000])
def test_rows_that_are_named_are_found_with_and_without_a_sort(n_rows):
    numbers = np.random.default_rng(0).integers(0, 40, size=(500, 3))
    used, places = sums.used_rows(numbers, n_rows)
    expected, inverse = np.unique(numbers, return_inverse=True)
    np.testing.assert_array_equal(used, expected)
    np.testing.assert_array_equal(places, inverse.reshape(numbers.shape))
    empty = sums.used_rows(numbers[:0], n_rows)
    assert [array.shape for array in empty] == [(0,), (0, 3)]


def test_without_two_new_objects_denoised_sums_take_the_lam_of_the_plain_ones(monkeypatch):
    X, y, _, _ = groups(n_rows=300)
    triplets = am.triplets.from_labels(y, 9_000, random_state=0)
    state = am.MomentAROMA("auto", denoise=True).fit_triplets(triplets, X)._state
    plain = am.MomentAROMA("auto").fit_triplets(triplets, X).lam_
    blind = {**state, "new_qp": np.zeros_like(state["new_qp"]), "new_pp": np.zeros_like(state["new_pp"])}
    assert Solution(blind, None, True).choice.lam == pytest.approx(plain)
    monkeypatch.setattr(sums, "are_held_out", lambda hashes: np.arange(hashes.size).reshape(hashes.shape) == 7)
    alone = am.MomentAROMA("auto", denoise=True).fit_triplets(triplets, X)._state
    assert not alone["new_pp"].any()

"""Validation rows of MomentAROMA, and the choices made on them: alpha, and whether to denoise."""

import numpy as np
import pytest
from scipy import sparse

import aromatch as am
from aromatch.kernels.rows import RowView
from aromatch.learners.moment import sums
from aromatch.learners.moment.solution import Choice, Solution
from grouped_rows import NOISY, groups, quality
from saved_state import saved_state


def validation_rows(view, indices):
    return sums.is_validation(sums.value_hashes(view, indices))


# -- validation rows -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "container", [np.asfortranarray, sparse.csr_array, sparse.csr_matrix], ids=lambda c: c.__name__
)
def test_validation_rows_depend_on_values_alone(container):
    X, y, _, _ = groups(n_rows=60)
    X[X < 0.2] = 0.0
    triplets = am.triplets.from_labels(y, 300, random_state=0)
    plain = am.MomentAROMA("auto").fit_triplets(triplets, X)
    other = am.MomentAROMA("auto").fit_triplets(triplets, container(X))
    turned = am.MomentAROMA("auto").fit_triplets(59 - triplets[::-1], X[::-1])
    for model in (other, turned):
        assert saved_state(model)["validation_weight"] == saved_state(plain)["validation_weight"]
        np.testing.assert_allclose(
            saved_state(model)["validation_qp"], saved_state(plain)["validation_qp"], rtol=1e-9, atol=1e-12
        )
        assert model.alpha_ == pytest.approx(plain.alpha_)


def test_one_row_in_eight_is_a_validation_row_whatever_its_values():
    for X in (
        np.eye(2_000),
        7.0 * np.eye(2_000),
        np.arange(2_000.0)[:, np.newaxis],
        np.random.default_rng(0).normal(size=(2_000, 3)),
    ):
        held = validation_rows(RowView.of_dense(X), np.arange(2_000))
        assert 200 <= np.count_nonzero(held) <= 300


def test_values_and_their_columns_count_and_zeros_do_not():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4_000, 2))
    numbers = np.arange(len(X))
    plain = validation_rows(RowView.of_dense(X), numbers)
    for other in (X[:, ::-1].copy(), np.nextafter(X, 9), np.column_stack([np.zeros(len(X)), X])):
        assert 0.15 < np.mean(plain != validation_rows(RowView.of_dense(other), numbers)) < 0.3
    wider = np.column_stack([X, np.where(X[:, 0] > 0, 0.0, -0.0)])
    np.testing.assert_array_equal(plain, validation_rows(RowView.of_dense(wider), numbers))
    np.testing.assert_array_equal(plain[[5, 2, 5]], validation_rows(RowView.of_dense(X), np.array([5, 2, 5])))


def test_sums_are_split_into_training_rows_and_validation_queries():
    X, y, _, _ = groups()
    triplets = am.triplets.from_labels(y, 2_000, random_state=0)
    held = validation_rows(RowView.of_dense(X), np.arange(len(X)))[triplets]
    model = am.MomentAROMA("auto").fit_triplets(triplets, X)
    for part, which in (
        ("", slice(None)),
        ("train_", ~held.any(axis=1)),
        ("validation_", held[:, 0] & ~held[:, 1] & ~held[:, 2]),
    ):
        alone = am.MomentAROMA().fit_triplets(triplets[which], X)
        for name in sums.Sums._fields:
            np.testing.assert_allclose(saved_state(model)[part + name], saved_state(alone)[name], rtol=1e-9, atol=1e-10)


def test_labels_of_validation_rows_are_not_in_the_training_sums():
    X, y, _, _ = groups()
    model = am.MomentAROMA("auto").fit(X, y)
    is_held = validation_rows(RowView.of_dense(X), np.arange(len(X)))
    for part, which in (("train_", ~is_held), ("validation_", is_held)):
        alone = am.MomentAROMA().fit(X[which], y[which])
        for name in sums.Sums._fields:
            np.testing.assert_allclose(saved_state(model)[part + name], saved_state(alone)[name], rtol=1e-9, atol=1e-10)
    np.testing.assert_array_equal(model.set_params(alpha=0.01).W_, am.MomentAROMA(0.01).fit(X, y).W_)


# -- alpha ------------------------------------------------------------------------------------------------------------


def by_hand(model):
    """The best alpha by margins of the validation sums, in full: nothing diagonal, each alpha with its own inverses."""
    state = saved_state(model)
    learn, held = float(state["train_weight"][0]), float(state["validation_weight"][0])
    scale = np.sqrt(np.trace(state["qq"]) / len(state["qq"]) * np.trace(state["pp"]) / len(state["pp"]))
    scale /= state["weight"][0]
    scores = {}
    for alpha in 10.0 ** np.arange(-4, 2.1, 0.5) * scale:
        left, right = (
            np.linalg.inv(state[name] / learn + alpha * np.eye(len(state[name]))) for name in ("train_qq", "train_pp")
        )
        W = left @ (state["train_qp"] / learn) @ right
        square = np.trace(W.T @ (state["validation_qq"] / held) @ W @ (state["validation_pp"] / held))
        scores[alpha] = np.trace(W.T @ state["validation_qp"] / held) / np.sqrt(square)
    return scores


@pytest.mark.parametrize("n_triplets", [200, 3_000, 50_000])
@pytest.mark.parametrize("spread", [0.2, 0.5])
def test_alpha_is_as_good_as_the_best_by_hand(n_triplets, spread):
    X, y, _, _ = groups(spread=spread)
    model = am.MomentAROMA("auto").fit_triplets(am.triplets.from_labels(y, n_triplets, random_state=0), X)
    scores = by_hand(model)
    nearest = min(scores, key=lambda alpha: abs(np.log(alpha / model.alpha_)))
    assert nearest == pytest.approx(model.alpha_)
    assert scores[nearest] >= 0.97 * max(scores.values())


def test_alpha_falls_with_the_number_of_triplets_and_is_near_the_best_on_unseen_rows():
    X, y, X_test, y_test = groups(**NOISY)
    alphas = []
    for n_triplets in (2_000, 10_000, 50_000):
        triplets = am.triplets.from_labels(y, n_triplets, random_state=0)
        model = am.MomentAROMA("auto").fit_triplets(triplets, X)
        alphas.append(model.alpha_)
        found, chosen = quality(model, X_test, y_test), model.alpha_
        others = [quality(model.set_params(alpha=chosen * by), X_test, y_test) for by in (0.01, 0.1, 10, 100)]
        assert found >= max(others) - 0.01
        assert found > min(others) + 0.1
    assert alphas[0] > 2 * alphas[2]


def test_alpha_scales_with_the_rows():
    X, y, _, _ = groups()
    triplets = am.triplets.from_labels(y, 2_000, random_state=0)
    plain = am.MomentAROMA("auto").fit_triplets(triplets, X)
    for scale in (1e-45, 1e45):
        scaled = am.MomentAROMA("auto").fit_triplets(triplets, scale * X)
        assert 0.05 < scaled.alpha_ / scale**2 / plain.alpha_ < 20  # other values, other validation rows


def test_without_validation_rows_alpha_is_the_mean_square_of_a_feature():
    X = np.diag([1.0, 2.0, 3.0])
    model = am.MomentAROMA("auto").fit_triplets(np.zeros((0, 3), dtype=int), X)
    assert (model.alpha_, model.denoise_weight_) == (1.0, 0.0)
    assert not model.W_.any()
    model.partial_fit_triplets([[0, 1, 2]], X)
    assert model.alpha_ == pytest.approx(np.sqrt(1 / 3 * 13 / 3))
    assert model.margins([[0, 1, 2]], X)[0] > 0


@pytest.mark.parametrize("denoise", [False, True])
def test_a_handful_of_rows_is_learned_too(denoise):
    for X, y in ((np.eye(3), [0, 0, 1]), (np.eye(4), [0, 0, 1, 1]), (np.zeros((4, 2)), [0, 0, 1, 1])):
        model = am.MomentAROMA("auto", denoise=denoise).fit(X, y)
        assert np.isfinite(model.W_).all()
        assert model.alpha_ > 0
        again = am.MomentAROMA("auto", denoise=denoise).fit_triplets([[0, 1, 2], [1, 0, 2]], X)
        assert np.isfinite(again.W_).all()


def test_choices_survive_batches_merging_files_and_copies(tmp_path):
    X, y, _, _ = groups(n_rows=100)
    triplets = am.triplets.from_labels(y, 1_000, random_state=0)
    whole = am.MomentAROMA("auto").fit_triplets(triplets, X)
    in_pieces, apart = am.MomentAROMA("auto"), []
    for piece in np.split(np.random.default_rng(0).permutation(triplets), 4):
        in_pieces.partial_fit_triplets(piece, X)
        apart.append(am.MomentAROMA("auto").fit_triplets(piece, X))
    whole.save(tmp_path / "model")
    for other in (in_pieces, am.merge(apart), am.load(tmp_path / "model"), whole.copy()):
        assert other.alpha_ == pytest.approx(whole.alpha_)
        np.testing.assert_allclose(other.W_, whole.W_, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("later", [{"alpha": "auto"}, {"denoise": True}])
def test_settings_that_need_validation_rows_cannot_be_set_later(later):
    X, y, _, _ = groups(n_rows=60)
    triplets = am.triplets.from_labels(y, 200, random_state=0)
    model = am.MomentAROMA().fit_triplets(triplets, X)
    model.set_params(**later)
    for use in (lambda: model.W_, lambda: model.partial_fit_triplets(triplets, X), lambda: model.similarity(X)):
        with pytest.raises(ValueError, match="needs validation rows"):
            use()
    assert model.fit_triplets(triplets, X).W_.any()
    assert am.MomentAROMA().fit(X, y).set_params(**later).fit(X, y).W_.any()


def test_chosen_settings_can_be_replaced_by_given_ones(tmp_path):
    X, y, _, _ = groups(n_rows=60)
    triplets = am.triplets.from_labels(y, 500, random_state=0)
    chosen = am.MomentAROMA("auto", denoise=True).fit_triplets(triplets, X)
    chosen.set_params(alpha=0.1, denoise=False)
    plain = am.MomentAROMA(0.1).fit_triplets(triplets, X)
    np.testing.assert_allclose(chosen.W_, plain.W_, rtol=1e-9, atol=1e-12)
    chosen.save(tmp_path / "plain")
    assert set(saved_state(am.load(tmp_path / "plain"))) == set(saved_state(plain))
    chosen.partial_fit_triplets(triplets, X)
    with pytest.raises(ValueError, match="needs validation rows"):
        _ = chosen.set_params(alpha="auto").W_


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": "best"}, "alpha must be one of 'auto'"),
        ({"alpha": -1.0}, "alpha"),
        ({"alpha_schedule": "falling"}, "alpha_schedule"),
        ({"alpha": "auto", "alpha_schedule": "inverse"}, "alpha_schedule"),
        ({"denoise": 1}, "denoise must be True"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(parameters, message):
    with pytest.raises((TypeError, ValueError), match=message):
        am.MomentAROMA(**parameters).fit(np.eye(3), [0, 0, 1])


def test_the_inverse_schedule_divides_alpha_by_the_sum_of_weights():
    X, y, _, _ = groups(n_rows=60)
    triplets = am.triplets.from_labels(y, 500, random_state=0)
    model = am.MomentAROMA(5.0, alpha_schedule="inverse")
    for end in (1, 100, 500):
        model.partial_fit_triplets(triplets[model.n_triplets_seen_ if hasattr(model, "_state") else 0 : end], X)
        assert model.alpha_ == 5.0 / end
        expected = am.MomentAROMA(5.0 / end).fit_triplets(triplets[:end], X)
        np.testing.assert_allclose(model.W_, expected.W_, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(model.Lambda_, expected.Lambda_, rtol=1e-6, atol=1e-9)


# -- denoising ---------------------------------------------------------------------------------------------------------


def test_denoising_is_used_where_it_helps_and_only_there():
    X, y, X_test, y_test = groups(**NOISY)
    gains = {}
    for n_triplets in (500, 2_000):
        triplets = am.triplets.from_labels(y, n_triplets, random_state=0)
        plain = am.MomentAROMA("auto").fit_triplets(triplets, X)
        model = am.MomentAROMA("auto", denoise=True).fit_triplets(triplets, X)
        gains[model.denoise_weight_] = quality(model, X_test, y_test) - quality(plain, X_test, y_test)
        assert plain.denoise_weight_ == 0
    assert gains[0.0] == 0
    assert gains[1.0] > 0.2


def test_denoising_corrects_wrong_triplets():
    X, y, X_test, y_test = groups(**NOISY)
    triplets = am.triplets.from_labels(y, 20_000, random_state=0)
    is_wrong = np.random.default_rng(1).random(len(triplets)) < 0.3
    triplets[is_wrong] = triplets[is_wrong][:, [0, 2, 1]]
    plain = am.MomentAROMA("auto").fit_triplets(triplets, X)
    model = am.MomentAROMA("auto", denoise=True).fit_triplets(triplets, X)
    assert quality(model, X_test, y_test) > quality(plain, X_test, y_test) + 0.1
    assert quality(model, X_test, y_test) > 0.98


def choice_by_hand(state):
    """The rule in plain loops: alpha of each kind of sum, then the share, in the diagonals that the page describes."""
    learn, held = float(state["train_weight"][0]), float(state["validation_weight"][0])
    a, U = np.linalg.eigh(state["train_qq"] / learn)
    b, V = np.linalg.eigh(state["train_pp"] / learn)
    scale = np.sqrt(np.trace(state["qq"]) * np.trace(state["pp"])) / len(a) / state["weight"][0]

    def score(qp, alpha, target, pp):
        W = (U.T @ state[qp] @ V if isinstance(qp, str) else U.T @ qp @ V) / np.outer(a + alpha, b + alpha)
        of_q, of_p = np.diagonal(U.T @ state["validation_qq"] @ U), np.diagonal(V.T @ state[pp] @ V)
        return np.sum(W * (U.T @ state[target] @ V)) / np.sqrt(np.sum(W**2 * np.outer(of_q, of_p)))

    alphas = 10.0 ** np.arange(-4, 2.1, 0.5) * scale
    plain = max(alphas, key=lambda alpha: score("train_qp", alpha, "validation_qp", "validation_pp"))
    denoised = max(
        alphas, key=lambda alpha: score("train_denoised_qp", alpha, "validation_denoised_qp", "validation_denoised_pp")
    )
    found = {}
    for share, alpha in ((0.0, plain), (0.5, np.sqrt(plain * denoised)), (1.0, denoised)):
        mixed = (1 - share) * state["train_qp"] / learn + share * state["train_denoised_qp"] / state["weight"][
            0
        ] * 64 / 49
        found[alpha, share] = score(mixed, alpha, "validation_qp", "validation_pp") * (
            1 + (share == 0) * 0.5 / np.sqrt(held)
        )
    return max(found, key=found.get)


@pytest.mark.parametrize("n_triplets", [500, 1_000, 1_500, 2_000, 5_000, 20_000])
@pytest.mark.parametrize("decay", [20, 30])
def test_the_choice_is_that_of_simple_loops(n_triplets, decay):
    X, y, _, _ = groups(**(NOISY | {"decay": decay}))
    triplets = am.triplets.from_labels(y, n_triplets, random_state=0)
    model = am.MomentAROMA("auto", denoise=True).fit_triplets(triplets, X)
    alpha, share = choice_by_hand(saved_state(model))
    assert model.denoise_weight_ == share
    assert model.alpha_ == pytest.approx(alpha, rel=1e-6)
    state, weight = saved_state(model), model.sum_of_weights_
    qp = (1 - share) * state["qp"] + share * state["denoised_qp"]
    left, right = (np.linalg.inv(state[name] / weight + alpha * np.eye(100)) for name in ("qq", "pp"))
    np.testing.assert_allclose(model.W_, left @ (qp / weight) @ right, rtol=1e-6, atol=1e-8 * np.abs(model.W_).max())


def test_a_fixed_alpha_and_single_judgements_go_with_denoising():
    X, y, _, _ = groups(n_rows=300)
    triplets = am.triplets.from_labels(y, 10_000, random_state=0)
    model = am.MomentAROMA(0.05, denoise=True).fit_triplets(triplets, X)
    assert model.alpha_ == 0.05
    assert model.denoise_weight_ > 0
    before, expected = model.sum_of_weights_, model.margins(triplets[:1], X)[0]
    i, j, k = triplets[0]
    assert model.learn_one(X[i], X[j], X[k]).margin == pytest.approx(expected)
    assert model.sum_of_weights_ == before + 1
    labelled = am.MomentAROMA(0.05, denoise=True).fit(X, y)
    np.testing.assert_allclose(labelled.W_, am.MomentAROMA(0.05).fit(X, y).W_, rtol=1e-9, atol=1e-12)


def test_the_same_judgements_give_the_same_bits():
    X, y, _, _ = groups(n_rows=500)
    triplets = am.triplets.from_labels(y, 10_000, random_state=0)
    first, second = (am.MomentAROMA("auto", denoise=True).fit_triplets(triplets, X).W_ for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_w_of_training_rows_uses_training_sums_only(share):
    X, y, _, _ = groups(n_rows=300)
    triplets = am.triplets.from_labels(y, 9_000, random_state=0)
    state = saved_state(am.MomentAROMA("auto", denoise=True).fit_triplets(triplets, X))
    solution = Solution(state, None, True)
    solution.choice = Choice(0.03, share)
    n = state["train_weight"]
    left, right = (np.linalg.inv(state[name] / n + 0.03 * np.eye(40)) for name in ("train_qq", "train_pp"))
    qp = (1 - share) * state["train_qp"] / n + share * state["train_denoised_qp"] / state["weight"] * 64 / 49
    np.testing.assert_allclose(solution.W_train, left @ qp @ right, rtol=1e-8, atol=1e-10)
    assert Solution({**state, "train_weight": np.zeros(1)}, None, True).W_train is None


@pytest.mark.parametrize("n_rows", [40, 100_000])
def test_used_rows_are_found_with_and_without_a_sort(n_rows):
    numbers = np.random.default_rng(0).integers(0, 40, size=(500, 3))
    used, positions = sums.used_rows(numbers, n_rows)
    expected, inverse = np.unique(numbers, return_inverse=True)
    np.testing.assert_array_equal(used, expected)
    np.testing.assert_array_equal(positions, inverse.reshape(numbers.shape))
    empty = sums.used_rows(numbers[:0], n_rows)
    assert [array.shape for array in empty] == [(0,), (0, 3)]


def test_without_two_validation_objects_denoised_sums_take_the_alpha_of_the_plain_ones(monkeypatch):
    X, y, _, _ = groups(n_rows=300)
    triplets = am.triplets.from_labels(y, 9_000, random_state=0)
    state = saved_state(am.MomentAROMA("auto", denoise=True).fit_triplets(triplets, X))
    plain = am.MomentAROMA("auto").fit_triplets(triplets, X).alpha_
    blind = {
        **state,
        "validation_denoised_qp": np.zeros_like(state["validation_denoised_qp"]),
        "validation_denoised_pp": np.zeros_like(state["validation_denoised_pp"]),
    }
    assert Solution(blind, None, True).choice.alpha == pytest.approx(plain)
    monkeypatch.setattr(sums, "is_validation", lambda hashes: np.arange(hashes.size).reshape(hashes.shape) == 7)
    alone = saved_state(am.MomentAROMA("auto", denoise=True).fit_triplets(triplets, X))
    assert not alone["validation_denoised_pp"].any()

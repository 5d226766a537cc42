"""The bounds of the paper, on NumPy loops written straight from it and on recorded runs of the learners."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse

import aromatch as am
from aromatch import theory
from aromatch.theory import Run

SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.integers(1, 3)
ANY_R = st.floats(-3, 3).map(lambda exponent: 10**exponent)


# -- the paper's algorithms, as loops --------------------------------------------------------------------
#
# Each takes `choose(i, W)`, which gives the query and the difference of round i and may look at W, so that
# an adversary can be one.


def fixed(queries, differences):
    return lambda i, W: (queries[i], differences[i])


def is_update(margin, rule):
    return margin < 1 if rule == "margin" else margin <= 0


def d_aroma(choose, n_rounds, m, n, r, *, form="downdate", rule="margin"):
    """Fig. 1, with (6) or its inverse form."""
    W, Sigma = np.zeros((m, n)), np.ones((m, n))
    rounds = []
    for i in range(n_rounds):
        q, p = choose(i, W)
        x = np.outer(q, p)
        margin = q @ W @ p
        updated = is_update(margin, rule) and bool(x.any())
        if updated:
            variance = np.sum(x * Sigma * x)
            W = W + max(0, 1 - margin) / (variance + r) * Sigma * x
            if form == "downdate":
                Sigma = Sigma - Sigma * x * x * Sigma / (variance + r)
            else:
                Sigma = 1 / (1 / Sigma + x * x / r)
        rounds.append((q, p, margin, updated, np.sum(x * Sigma * x)))
    return Run(*map(np.array, zip(*rounds, strict=True)), r=r, Sigma=Sigma)


def looking_ahead(choose, n_rounds, m, n, r):
    """The diagonal algorithm that keeps Theorem 1: it judges a round by variances that already know it."""
    S, D = np.zeros((m, n)), np.ones((m, n))
    rounds = []
    for i in range(n_rounds):
        q, p = choose(i, S / D / r)
        x = np.outer(q, p)
        margin = q @ (S / (D + x * x / r) / r) @ p
        if margin < 1:
            S, D = S + x, D + x * x / r
        rounds.append((q, p, margin, bool(margin < 1), np.sum(x * x / D)))
    return Run(*map(np.array, zip(*rounds, strict=True)), r=r, Sigma=1 / D)


def f_aroma(choose, n_rounds, m, n, r, *, mean="previous", rule="margin", covariance="jacobi"):
    """Fig. 2, or with another mean update: "updated" is that of Theorem 2, "constant" has 1 / r for alpha in it.

    `covariance`: "jacobi" is (13) and (14); in "new_omega" (14) reads the new Omega; "trace" also keeps the
    trace factor of the exact conditional minimiser.
    """
    inv = np.linalg.inv
    W, Omega, Lambda = np.zeros((m, n)), np.eye(n), np.eye(m)
    rounds = []
    for i in range(n_rounds):
        q, p = choose(i, W)
        margin = q @ W @ p
        updated = is_update(margin, rule) and bool(np.outer(q, p).any())
        if updated:
            q_variance, p_variance = q @ Lambda @ q, p @ Omega @ p
            alpha = max(0, 1 - margin) / (r + q_variance * p_variance)
            d = q_variance / (m * r + q_variance * p_variance)
            new_Omega = Omega - d * np.outer(Omega @ p, Omega @ p)
            factor = np.trace(inv(Omega) @ new_Omega) / n if covariance == "trace" else 1
            if covariance != "jacobi":
                p_variance = p @ new_Omega @ p
            new_Lambda = inv(factor * inv(Lambda) + p_variance / (n * r) * np.outer(q, q))
            if mean == "previous":
                W = W + alpha * Lambda @ np.outer(q, p) @ Omega
            else:
                step = alpha if mean == "updated" else 1 / r
                W = new_Lambda @ (inv(Lambda) @ W @ inv(Omega) + step * np.outer(q, p)) @ new_Omega
            Omega, Lambda = (new_Omega + new_Omega.T) / 2, (new_Lambda + new_Lambda.T) / 2
        rounds.append((q, p, margin, updated, (q @ Lambda @ q) * (p @ Omega @ p)))
    return Run(*map(np.array, zip(*rounds, strict=True)), r=r, Omega=Omega, Lambda=Lambda)


# -- rounds ----------------------------------------------------------------------------------------------


def random_rounds(seed, m, n, n_rounds=40):
    """Rounds around a hidden similarity, with noise, repeats and some zeros."""
    rng = np.random.default_rng(seed)
    queries, differences = rng.standard_normal((n_rounds, m)), rng.standard_normal((n_rounds, n))
    hidden = rng.standard_normal((m, n))
    scores = np.einsum("im,mn,in->i", queries, hidden, differences) + rng.standard_normal(n_rounds)
    differences *= np.where(scores < 0, -1, 1)[:, None]
    queries[rng.random((n_rounds, m)) < 0.2] = 0
    repeated = rng.integers(0, n_rounds, size=n_rounds // 4)
    queries[: len(repeated)], differences[: len(repeated)] = queries[repeated], differences[repeated]
    return fixed(queries, differences * 10 ** rng.uniform(-1, 1))


def single_cell_rounds(seed, m, n, n_rounds=40):
    """Rounds whose query and difference have one feature each, with values of any sign and size."""
    rng = np.random.default_rng(seed)
    queries, differences = np.zeros((n_rounds, m)), np.zeros((n_rounds, n))
    rounds = np.arange(n_rounds)
    queries[rounds, rng.integers(0, m, n_rounds)] = rng.standard_normal(n_rounds)
    bias = rng.uniform(-2, 2)
    differences[rounds, rng.integers(0, n, n_rounds)] = rng.standard_normal(n_rounds) + bias
    return fixed(queries, differences * 10 ** rng.uniform(-1, 1))


def worst_of_two(size):
    """m = n = 1: q = 1 and p of one size, with the sign that makes a mistake."""
    return lambda i, W: (np.ones(1), np.array([-size if W.item() > 0 else size]))


def across(size):
    """m = 1, n = 2: q = 1 and every p a hair over a right angle from W, so that each is a narrow mistake."""

    def choose(i, W):
        if i == 0:
            return np.ones(1), size * np.array([1.0, 0.0])
        w = W[0] / np.linalg.norm(W)
        return np.ones(1), size * (np.array([-w[1], w[0]]) - 0.001 * w)

    return choose


def opposing(seed, m, n):
    """Rounds of many sizes in random directions, turned against the learner."""
    rng = np.random.default_rng(seed)

    def choose(i, W):
        q, p = rng.standard_normal(m), rng.standard_normal(n) * 10 ** rng.uniform(-1, 1)
        return q, (-p if q @ W @ p > 0 else p)

    return choose


def any_record(seed, m, n, n_rounds=12):
    """A record that no learner need have made: the tests for every V are about arrays, not about learners."""
    rng = np.random.default_rng(seed)
    A, B = rng.standard_normal((m, m + 1)), rng.standard_normal((n, n + 1))
    return Run(
        queries=rng.standard_normal((n_rounds, m)) + rng.uniform(0, 2),
        differences=rng.standard_normal((n_rounds, n)) + rng.uniform(0, 2),
        margins=rng.uniform(-1, 1, n_rounds) + rng.uniform(-1, 0.5),
        updated=rng.random(n_rounds) < rng.uniform(0, 0.7),
        variances_after=rng.random(n_rounds),
        r=10 ** rng.uniform(-1, 2),
        # Eigenvalues under 1, as the learners keep them.
        Omega=np.linalg.inv(np.eye(n) + B @ B.T * 10 ** rng.uniform(-1, 1)),
        Lambda=np.linalg.inv(np.eye(m) + A @ A.T * 10 ** rng.uniform(-1, 1)),
    )


# -- right-hand sides ------------------------------------------------------------------------------------


@settings(deadline=None, derandomize=True, max_examples=40)
@given(SEEDS, SIZES, SIZES)
def test_theorem_1_is_the_printed_formula_cell_by_cell(seed, m, n):
    run = any_record(seed, m, n)
    V = np.random.default_rng(seed + 1).standard_normal((m, n))
    M = {i for i, margin in enumerate(run.margins) if margin <= 0}
    U = {i for i, updated in enumerate(run.updated) if updated and i not in M}
    hinges = sum(max(0, 1 - run.queries[i] @ V @ run.differences[i]) for i in M | U)
    first, logs = 0.0, 0.0
    for k in range(m):
        for el in range(n):
            squares = sum(run.queries[i, k] ** 2 * run.differences[i, el] ** 2 for i in M | U)
            first += V[k, el] ** 2 + V[k, el] ** 2 * squares / run.r
            logs += run.r * np.log(squares / run.r + 1)
    for corrected, last in ((False, 2 * len(U)), (True, 2 * run.r * len(U))):
        expected = hinges - len(U) + np.sqrt(first) * np.sqrt(logs + last)
        np.testing.assert_allclose(theory.theorem_1(run, V, corrected=corrected), expected, rtol=1e-10)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(SEEDS, SIZES, SIZES)
def test_theorem_2_is_the_printed_formula(seed, m, n):
    run = any_record(seed, m, n)
    V = np.random.default_rng(seed + 1).standard_normal((m, n))
    inv, det = np.linalg.inv, np.linalg.det
    hinges = sum(
        max(0, 1 - q @ V @ p)
        for q, p, margin in zip(run.queries, run.differences, run.margins, strict=True)
        if margin <= 0
    )
    trace = np.trace(V @ inv(run.Omega) @ V.T @ inv(run.Lambda))
    smaller = min(m * np.log(det(inv(run.Omega))), n * np.log(det(inv(run.Lambda))))
    expected = hinges + 2 * np.sqrt(trace) * np.sqrt(run.r * smaller)
    np.testing.assert_allclose(theory.theorem_2(run, V), expected, rtol=1e-8)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(SEEDS, SIZES, SIZES)
def test_lemma_3_is_the_printed_sum_and_its_two_bounds(seed, m, n):
    run = any_record(seed, m, n)
    found = theory.lemma_3(run)
    left = sum(variance for variance, updated in zip(run.variances_after, run.updated, strict=True) if updated)
    np.testing.assert_allclose(found.left, left)
    np.testing.assert_allclose(found.right_omega, m * run.r * np.log(np.linalg.det(np.linalg.inv(run.Omega))))
    np.testing.assert_allclose(found.right_lambda, n * run.r * np.log(np.linalg.det(np.linalg.inv(run.Lambda))))
    assert found.holds == (left <= min(found.right_omega, found.right_lambda))


def test_at_v_zero_every_bound_is_the_number_of_mistakes():
    run = any_record(3, 2, 3)
    zero = np.zeros((2, 3))
    for right_side in (
        theory.theorem_1(run, zero),
        theory.theorem_1(run, zero, corrected=False),
        theory.theorem_2(run, zero),
    ):
        assert right_side == run.mistakes.sum()


def test_rounds_without_mistake_or_update_do_not_count():
    run = any_record(0, 2, 3)
    idle = Run([[9.0, 9.0]], [[9.0, 9.0, 9.0]], [5.0], [False], [7.0], r=run.r)
    longer = Run(
        *(
            np.concatenate([getattr(run, name), getattr(idle, name)])
            for name in ("queries", "differences", "margins", "updated", "variances_after")
        ),
        r=run.r,
        Omega=run.Omega,
        Lambda=run.Lambda,
    )
    V = np.ones((2, 3))
    assert theory.theorem_1(longer, V) == theory.theorem_1(run, V)
    assert theory.theorem_2(longer, V) == theory.theorem_2(run, V)
    assert theory.lemma_3(longer) == theory.lemma_3(run)


# -- for every V -----------------------------------------------------------------------------------------

BOUNDS = {
    "theorem 1": (theory.theorem_1, theory.theorem_1_holds_for_every_V, {}),
    "theorem 1 as printed": (theory.theorem_1, theory.theorem_1_holds_for_every_V, {"corrected": False}),
    "theorem 2": (theory.theorem_2, theory.theorem_2_holds_for_every_V, {}),
}


def smallest_right_side(right_side, shape, seed):
    """Search V for the smallest right-hand side: random ones of many sizes, then SciPy from the best."""
    rng = np.random.default_rng(seed)
    starts = rng.standard_normal((50, *shape)) * 10 ** rng.uniform(-3, 1, (50, 1, 1))
    values = [right_side(V) for V in starts]
    best = starts[np.argmin(values)]
    return optimize.minimize(lambda v: right_side(v.reshape(shape)), best.ravel(), method="Powell").fun


@pytest.mark.parametrize("bound", BOUNDS)
def test_the_test_for_every_v_agrees_with_a_search_over_v(bound):
    right_side, for_every_V, options = BOUNDS[bound]
    outcomes = []
    for seed in range(24):
        m, n = seed % 2 + 1, seed // 2 % 2 + 1
        run = any_record(seed, m, n)
        test = for_every_V(run, **options)
        smallest = smallest_right_side(lambda V, run=run: right_side(run, V, **options), (m, n), seed)
        if test.holds:
            assert smallest >= run.mistakes.sum() - 1e-9
        else:
            assert smallest < run.mistakes.sum() - 1e-9
        outcomes.append(test.holds)
    assert 5 <= sum(outcomes) <= 19  # both directions were seen


@pytest.mark.parametrize("bound", BOUNDS)
@settings(deadline=None, derandomize=True, max_examples=60)
@given(seed=SEEDS, m=SIZES, n=SIZES)
def test_where_a_bound_does_not_hold_for_every_v_the_v_that_is_given_breaks_it(bound, seed, m, n):
    right_side, for_every_V, options = BOUNDS[bound]
    run = any_record(seed, m, n)
    test = for_every_V(run, **options)
    mistakes = run.mistakes.sum()
    # In between 0 and this V all hinges are linear, so the right-hand side is known exactly.
    for scale in (1, 0.5, 0.01):
        expected = mistakes - scale * linear_gain(bound, run, test)
        np.testing.assert_allclose(right_side(run, scale * test.V, **options), expected, atol=1e-9)
    if test.left > test.right * (1 + 1e-6):
        assert not test.holds
        assert right_side(run, test.V, **options) < mistakes


def linear_gain(bound, run, test):
    """``|V|_A (|S|_* - sqrt(R))`` for the V of the test, from the definitions."""
    V = test.V
    if bound == "theorem 2":
        norm = np.trace(V @ np.linalg.inv(run.Omega) @ V.T @ np.linalg.inv(run.Lambda))
    else:
        counted = run.mistakes | run.updated
        x = np.einsum("im,in->imn", run.queries[counted], run.differences[counted])
        norm = np.sum(V * V * (1 + np.sum(x * x, axis=0) / run.r))
    return np.sqrt(norm) * (np.sqrt(test.left) - np.sqrt(test.right))


def test_a_violating_v_is_a_small_multiple_of_s_over_d_for_theorem_1():
    run = d_aroma(fixed(np.ones((20, 1)), np.ones((20, 1))), 20, 1, 1, 100.0)
    assert not theory.theorem_1_holds_for_every_V(run, corrected=False).holds
    S, D = 20.0, 1 + 20 / 100
    V = np.array([[1e-3 * S / D]])
    assert theory.theorem_1(run, V, corrected=False) < run.mistakes.sum()


def test_a_violating_v_is_a_small_multiple_of_lambda_s_omega_for_theorem_2():
    run = f_aroma(worst_of_two(1.0), 80, 1, 1, 0.01, rule="mistake")
    assert not theory.theorem_2_holds_for_every_V(run).holds
    S = run.queries.T @ run.differences
    V = run.Lambda @ S @ run.Omega
    V *= 1e-3 / np.abs(V).max()
    assert theory.theorem_2(run, V) < run.mistakes.sum()


# -- Theorem 1 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["inverse", "downdate"])
@pytest.mark.parametrize("rule", ["margin", "mistake"])
@settings(deadline=None, derandomize=True, max_examples=60)
@given(seed=SEEDS, m=SIZES, n=SIZES, r=ANY_R)
def test_corrected_theorem_1_holds_at_any_r_where_each_round_touches_one_cell(form, rule, seed, m, n, r):
    run = d_aroma(single_cell_rounds(seed, m, n), 40, m, n, r, form=form, rule=rule)
    assert theory.theorem_1_holds_for_every_V(run).holds


@settings(deadline=None, derandomize=True, max_examples=60)
@given(seed=SEEDS, m=SIZES, n=SIZES, r=ANY_R.filter(lambda r: r <= 2))
def test_printed_theorem_1_holds_up_to_r_2_where_each_round_touches_one_cell(seed, m, n, r):
    run = d_aroma(single_cell_rounds(seed, m, n), 40, m, n, r, form="inverse")
    assert theory.theorem_1_holds_for_every_V(run, corrected=False).holds


@settings(deadline=None, derandomize=True, max_examples=60)
@given(seed=SEEDS, m=SIZES, n=SIZES, r=ANY_R)
def test_corrected_theorem_1_holds_for_the_algorithm_that_looks_ahead(seed, m, n, r):
    assert theory.theorem_1_holds_for_every_V(looking_ahead(random_rounds(seed, m, n), 40, m, n, r)).holds
    assert theory.theorem_1_holds_for_every_V(looking_ahead(opposing(seed, m, n), 40, m, n, r)).holds


@pytest.mark.parametrize("form", ["inverse", "downdate"])
@pytest.mark.parametrize("r", [0.01, 0.1, 1.0, 2.0, 10.0, 100.0])
def test_theorem_1_holds_on_random_rounds(form, r):
    for seed in range(25):
        m, n = seed % 3 + 1, seed % 4 + 1
        run = d_aroma(random_rounds(seed, m, n), 40, m, n, r, form=form)
        assert theory.theorem_1_holds_for_every_V(run).holds
        if r <= 2:
            assert theory.theorem_1_holds_for_every_V(run, corrected=False).holds


@pytest.mark.parametrize("form", ["inverse", "downdate"])
def test_printed_theorem_1_fails_for_large_r_on_twenty_equal_rounds(form):
    run = d_aroma(fixed(np.ones((20, 1)), np.ones((20, 1))), 20, 1, 1, 100.0, form=form)
    assert run.mistakes.sum() == 1
    assert theory.theorem_1(run, [[1.0]], corrected=False) == pytest.approx(-10.8, abs=0.05)
    assert not theory.theorem_1_holds_for_every_V(run, corrected=False).holds
    assert theory.theorem_1_holds_for_every_V(run).holds


@pytest.mark.parametrize("form", ["inverse", "downdate"])
@pytest.mark.parametrize("rule", ["margin", "mistake"])
@pytest.mark.parametrize("r", [0.01, 1.0, 100.0])
def test_theorem_1_fails_even_corrected_when_each_difference_lies_across_w(form, rule, r):
    """No round is an update without mistake, so the printed and the corrected form are the same."""
    run = d_aroma(across(np.sqrt(r)), 200, 1, 2, r, form=form, rule=rule)
    assert run.mistakes.all()
    assert not (run.updated & ~run.mistakes).any()
    test = theory.theorem_1_holds_for_every_V(run)
    assert test.left / test.right == pytest.approx({"inverse": 3.02, "downdate": 2.89}[form], abs=0.01)
    assert theory.theorem_1(run, test.V) < 200
    learner = am.DiagonalAROMA(r=r, rule=rule, covariance_update=form)
    triplets = [[0, i, 200] for i in range(200)]
    objects = np.vstack([run.differences, np.zeros((1, 2))])
    assert_same_run(theory.record_run(learner, triplets, np.ones((1, 1)), objects), run)
    # The algorithm that looks ahead, on the same rounds, keeps the bound.
    assert theory.theorem_1_holds_for_every_V(looking_ahead(fixed(run.queries, run.differences), 200, 1, 2, r)).holds


# -- Theorem 2 and Lemma 3 -------------------------------------------------------------------------------


@settings(deadline=None, derandomize=True, max_examples=60)
@given(seed=SEEDS, m=SIZES, n=SIZES, r=ANY_R)
def test_theorem_2_holds_for_the_updated_mean_and_the_mistake_rule_in_few_features(seed, m, n, r):
    for choose in (random_rounds(seed, m, n), opposing(seed, m, n)):
        run = f_aroma(choose, 40, m, n, r, mean="updated", rule="mistake")
        assert theory.theorem_2_holds_for_every_V(run).holds


@settings(deadline=None, derandomize=True, max_examples=60)
@given(seed=SEEDS, m=SIZES, n=SIZES, r=ANY_R)
def test_theorem_2_holds_with_room_to_spare_where_the_step_is_constant(seed, m, n, r):
    for choose in (random_rounds(seed, m, n), opposing(seed, m, n)):
        run = f_aroma(choose, 40, m, n, r, mean="constant", rule="mistake")
        test = theory.theorem_2_holds_for_every_V(run)
        assert test.left <= test.right / 4 * (1 + 1e-6)


def test_theorem_2_fails_even_for_the_updated_mean_where_one_of_many_features_is_in_use():
    """Only the first cell of each matrix changes, so that the paper's loop is one of scalars."""
    d, r, n_rounds = 100, 0.1, 100
    z, omega, lam, S, triplets = 0.0, 1.0, 1.0, 0.0, []
    for _ in range(n_rounds):
        p = -0.1 if z > 0 else 1.0  # whichever is a mistake
        triplets.append([0, 2, 1] if z > 0 else [0, 0, 1])
        z += (1 - p * z * omega * lam) / (r + lam * omega * p**2) * p
        omega, lam = (
            omega - lam / (d * r + lam * omega * p**2) * (omega * p) ** 2,
            lam - omega * p**2 / (d * r + lam * omega * p**2) * lam**2,
        )
        S += p
    ratio = lam * S * omega * S / (4 * r * d * min(-np.log(omega), -np.log(lam)))
    assert ratio > 1.4

    learner = am.FactoredAROMA(r=r, rule="mistake", mean_update="updated")
    P = np.zeros((3, d))
    P[:, 0] = 1, 0, -0.1
    run = theory.record_run(learner, triplets, np.eye(1, d), P)
    assert run.mistakes.all()
    test = theory.theorem_2_holds_for_every_V(run)
    assert test.left / test.right == pytest.approx(ratio, rel=1e-9)
    assert not test.holds
    assert theory.theorem_2(run, test.V) < n_rounds


@pytest.mark.parametrize(("size", "n_rounds", "ratio"), [(1.0, 80, 1.15), (3.0, 300, 2.1)])
def test_theorem_2_fails_for_the_printed_mean_update_but_not_for_the_updated_one(size, n_rounds, ratio):
    printed = f_aroma(worst_of_two(size), n_rounds, 1, 1, 0.01, rule="mistake")
    assert printed.mistakes.all()
    test = theory.theorem_2_holds_for_every_V(printed)
    assert not test.holds
    assert test.left / test.right == pytest.approx(ratio, rel=0.02)
    assert theory.theorem_2(printed, test.V) < n_rounds
    updated = f_aroma(worst_of_two(size), n_rounds, 1, 1, 0.01, rule="mistake", mean="updated")
    assert theory.theorem_2_holds_for_every_V(updated).holds


@pytest.mark.parametrize("covariance", ["jacobi", "new_omega"])
@pytest.mark.parametrize("rule", ["margin", "mistake"])
@pytest.mark.parametrize("mean", ["previous", "updated"])
@settings(deadline=None, derandomize=True, max_examples=25)
@given(seed=SEEDS, m=SIZES, n=SIZES, r=ANY_R)
def test_lemma_3_holds_for_the_printed_updates_whichever_omega_the_second_reads(covariance, rule, mean, seed, m, n, r):
    run = f_aroma(random_rounds(seed, m, n), 40, m, n, r, mean=mean, rule=rule, covariance=covariance)
    found = theory.lemma_3(run)
    assert found.holds
    assert found.left <= found.right_omega * (1 + 1e-6)
    assert found.left <= found.right_lambda * (1 + 1e-6)


def test_lemma_3_fails_when_the_trace_factor_of_the_exact_minimiser_is_kept():
    """With m = n = 1 that factor undoes the shrinking of Lambda altogether, so its bound stays at zero."""
    run = f_aroma(fixed(np.ones((1, 1)), np.ones((1, 1))), 1, 1, 1, 1.0, covariance="trace")
    found = theory.lemma_3(run)
    assert found.left == pytest.approx(0.5)
    assert found.right_omega == pytest.approx(np.log(2))
    assert found.right_lambda == pytest.approx(0, abs=1e-12)
    assert not found.holds


def test_a_negative_logarithm_counts_as_zero_in_theorem_2():
    run = Run([[1.0]], [[1.0]], [0.0], [True], [0.5], r=1, Omega=[[0.5]], Lambda=[[2.0]])
    assert theory.theorem_2(run, [[0.5]]) == 0.5
    assert theory.theorem_2_holds_for_every_V(run).right == 0


# -- recorded runs of the learners -----------------------------------------------------------------------


def some_triplets(seed, m=4, n=3, n_triplets=60):
    rng = np.random.default_rng(seed)
    Q, P = rng.standard_normal((8, m)), rng.standard_normal((9, n))
    Q[rng.random(Q.shape) < 0.3] = 0
    triplets = np.column_stack([rng.integers(0, 8, n_triplets), rng.integers(0, 9, (n_triplets, 2))])
    return triplets, Q, P


def as_rounds(triplets, Q, P):
    return fixed(Q[triplets[:, 0]], P[triplets[:, 1]] - P[triplets[:, 2]])


def assert_same_run(found, expected):
    np.testing.assert_array_equal(found.updated, expected.updated)
    np.testing.assert_array_equal(found.mistakes, expected.mistakes)
    assert found.r == expected.r
    for name in ("queries", "differences", "margins", "variances_after", "Sigma", "Omega", "Lambda"):
        one, other = getattr(found, name), getattr(expected, name)
        if other is None:
            assert one is None, name
        else:
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("form", ["inverse", "downdate"])
@pytest.mark.parametrize("rule", ["margin", "mistake"])
@pytest.mark.parametrize("r", [0.1, 10.0])
def test_a_recorded_run_of_d_aroma_is_the_run_of_the_loop(form, rule, r):
    triplets, Q, P = some_triplets(0)
    run = theory.record_run(am.DiagonalAROMA(r=r, rule=rule, covariance_update=form), triplets, Q, P)
    assert_same_run(run, d_aroma(as_rounds(triplets, Q, P), len(triplets), 4, 3, r, form=form, rule=rule))


@pytest.mark.parametrize("mean", ["previous", "updated"])
@pytest.mark.parametrize("rule", ["margin", "mistake"])
@pytest.mark.parametrize("r", [0.1, 10.0])
def test_a_recorded_run_of_f_aroma_is_the_run_of_the_loop(mean, rule, r):
    triplets, Q, P = some_triplets(1)
    run = theory.record_run(am.FactoredAROMA(r=r, rule=rule, mean_update=mean), triplets, Q, P)
    assert_same_run(run, f_aroma(as_rounds(triplets, Q, P), len(triplets), 4, 3, r, mean=mean, rule=rule))
    assert theory.lemma_3(run).holds


def test_lemma_3_fails_for_the_gauss_seidel_learner():
    triplets, Q, P = some_triplets(2)
    run = theory.record_run(am.FactoredAROMA(covariance_update="gauss_seidel"), triplets, Q, P)
    assert_same_run(run, f_aroma(as_rounds(triplets, Q, P), len(triplets), 4, 3, 1.0, covariance="trace"))
    assert not theory.lemma_3(run).holds


def test_theorem_2_holds_for_recorded_runs_of_the_learner_it_is_about():
    learner = am.FactoredAROMA(r=0.1, rule="mistake", mean_update="updated")
    for seed in range(10):
        assert theory.theorem_2_holds_for_every_V(theory.record_run(learner, *some_triplets(seed))).holds


def test_a_run_of_full_aroma_has_its_covariance_and_no_factors():
    triplets, Q, P = some_triplets(3, m=2, n=2, n_triplets=20)
    learner = am.FullAROMA(r=0.5)
    run = theory.record_run(learner, triplets, Q, P)
    learner.fit_triplets(triplets, Q, P)
    np.testing.assert_array_equal(run.Sigma, learner.Sigma_)
    assert run.Omega is None
    assert run.Lambda is None


def test_objects_default_to_the_queries():
    triplets, Q, _ = some_triplets(4)
    triplets = triplets % 8
    assert_same_run(
        theory.record_run(am.FactoredAROMA(), triplets, Q),
        theory.record_run(am.FactoredAROMA(), triplets, Q, Q),
    )


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array, sparse.coo_array, np.asfortranarray])
def test_sparse_and_fortran_matrices_give_the_run_of_the_dense_ones(kind):
    triplets, Q, P = some_triplets(5)
    learner = am.DiagonalAROMA()
    assert_same_run(theory.record_run(learner, triplets, kind(Q), kind(P)), theory.record_run(learner, triplets, Q, P))


def test_the_learner_that_is_passed_stays_as_it_is_and_what_it_has_learned_is_not_used():
    triplets, Q, P = some_triplets(6)
    learner = am.FactoredAROMA(r=0.3)
    fresh = theory.record_run(learner, triplets, Q, P)
    assert not hasattr(learner, "n_features_in_")
    learner.fit_triplets(triplets, Q, P)
    W = learner.W_
    assert_same_run(theory.record_run(learner, triplets, Q, P), fresh)
    np.testing.assert_array_equal(learner.W_, W)
    assert learner.n_triplets_seen_ == len(triplets)


def test_a_query_of_zeros_and_two_equal_objects_are_mistakes_that_change_nothing():
    Q, P = np.array([[0.0, 0.0], [1.0, 2.0]]), np.array([[1.0], [2.0]])
    run = theory.record_run(am.FactoredAROMA(), [[0, 0, 1], [1, 1, 1]], Q, P)
    assert run.mistakes.all()
    assert not run.updated.any()
    np.testing.assert_array_equal(run.Omega, np.eye(1))
    np.testing.assert_array_equal(run.Lambda, np.eye(2))
    assert theory.theorem_1_holds_for_every_V(run).holds
    assert theory.theorem_2_holds_for_every_V(run).holds
    assert theory.lemma_3(run) == (0, 0, 0)


@pytest.mark.parametrize("init", ["zero", 0.0, np.zeros((4, 4))])
def test_every_way_to_say_zero_is_a_start_from_zero(init):
    triplets, Q, _ = some_triplets(7)
    expected = theory.record_run(am.DiagonalAROMA(), triplets % 8, Q)
    assert_same_run(theory.record_run(am.DiagonalAROMA(init=init), triplets % 8, Q), expected)


# -- bad input -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("init", ["identity", 0.5, np.eye(4)])
def test_a_learner_that_does_not_start_from_zero_is_refused(init):
    triplets, Q, _ = some_triplets(0)
    with pytest.raises(ValueError, match="init='zero'"):
        theory.record_run(am.DiagonalAROMA(init=init), triplets % 8, Q)


def test_a_learner_without_variances_is_refused():
    triplets, Q, _ = some_triplets(0)
    with pytest.raises(TypeError, match=r"learner must be an AROMA learner.*got OASIS"):
        theory.record_run(am.OASIS(init="zero"), triplets % 8, Q)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"triplets": np.empty((0, 3), dtype=int)}, "triplets is empty"),
        ({"triplets": [[0, 1]]}, "triplets must have the shape"),
        ({"triplets": [[0, 0, 9]]}, "other object of triplet"),
        ({"triplets": [[8, 0, 1]]}, "query of triplet"),
        ({"triplets": [[0, -1, 1]]}, "preferred object of triplet"),
        ({"Q": np.ones(4)}, "Q must be a 2-D matrix"),
        ({"Q": np.full((8, 4), np.nan)}, "Q contains NaN or infinity"),
        ({"P": sparse.csr_array(np.full((9, 3), np.inf))}, "P contains NaN or infinity"),
    ],
)
def test_bad_triplets_and_matrices_are_refused_and_named(change, message):
    triplets, Q, P = some_triplets(0)
    with pytest.raises(ValueError, match=message):
        theory.record_run(am.DiagonalAROMA(), **{"triplets": triplets, "Q": Q, "P": P, **change})


@pytest.mark.parametrize("function", [theory.theorem_1, theory.theorem_2])
@pytest.mark.parametrize("V", [np.zeros((3, 2)), np.zeros(6), 0.0])
def test_a_v_of_the_wrong_shape_is_refused(function, V):
    with pytest.raises(ValueError, match=r"^V must have the shape \(2, 3\)"):
        function(any_record(0, 2, 3), V)


@pytest.mark.parametrize(
    ("what", "call"),
    [
        ("Theorem 2", lambda run: theory.theorem_2(run, [[1.0]])),
        ("Theorem 2", theory.theorem_2_holds_for_every_V),
        ("Lemma 3", theory.lemma_3),
    ],
)
def test_what_needs_omega_and_lambda_says_so_on_a_run_of_d_aroma(what, call):
    run = d_aroma(fixed(np.ones((2, 1)), np.ones((2, 1))), 2, 1, 1, 1.0)
    with pytest.raises(ValueError, match=f"^{what} requires Omega and Lambda"):
        call(run)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"queries": [1.0, 2.0]}, ValueError, "queries must have 2 dimensions"),
        ({"queries": [[np.nan], [1.0]]}, ValueError, "queries contains NaN"),
        ({"differences": [[1.0, 1.0]]}, ValueError, "differences must have one row for each of the 2"),
        ({"margins": [0.0]}, ValueError, r"margins must have the shape \(2,\)"),
        ({"updated": [1, 0]}, ValueError, "updated must be 2 booleans"),
        ({"updated": [True]}, ValueError, "updated must be 2 booleans"),
        ({"variances_after": [0.5, 0.5, 0.5]}, ValueError, r"variances_after must have the shape \(2,\)"),
        ({"r": 0.0}, ValueError, "r must be greater than 0"),
        ({"r": "1"}, TypeError, "r must be a number"),
        ({"Omega": np.eye(3)}, ValueError, r"Omega must have the shape \(2, 2\)"),
        ({"Lambda": np.eye(2)}, ValueError, r"Lambda must have the shape \(1, 1\)"),
        ({"Sigma": np.ones(2)}, ValueError, "Sigma must have 2 dimensions"),
    ],
)
def test_a_run_of_arrays_that_do_not_fit_together_is_refused(change, error, message):
    good = {
        "queries": [[1.0], [1.0]],
        "differences": [[1.0, 0.0], [1.0, 0.0]],
        "margins": [0.0, 0.5],
        "updated": [True, True],
        "variances_after": [0.5, 0.3],
        "r": 1.0,
    }
    Run(**good)
    with pytest.raises(error, match=f"^{message}"):
        Run(**{**good, **change})


def test_a_covariance_that_is_not_positive_definite_is_named():
    run = Run([[1.0]], [[1.0]], [0.0], [True], [0.5], r=1, Omega=[[0.0]], Lambda=[[1.0]])
    with pytest.raises(ValueError, match="Omega must be positive definite"):
        theory.theorem_2(run, [[1.0]])


def test_a_run_is_recorded_with_every_cell_whatever_the_learner_keeps():
    Q, P = np.random.default_rng(0).normal(size=(2, 5, 4))
    dense, touched = (
        theory.record_run(am.DiagonalAROMA(cells=cells, init=init), [[0, 1, 2], [3, 4, 0]], Q, P)
        for cells, init in (("dense", "zero"), ("touched", sparse.csr_array((4, 4))))
    )
    assert_same_run(touched, dense)
    with pytest.raises(ValueError, match="init='zero'"):
        theory.record_run(am.DiagonalAROMA(init=sparse.eye_array(4)), [[0, 1, 2]], Q, P)

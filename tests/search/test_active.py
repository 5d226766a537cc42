"""Which comparisons are chosen, held against a plain loop, and what is refused."""

import numpy as np
import pytest
from scipy import sparse

import aromatch as am
from aromatch.search import suggest_comparisons

rng = np.random.default_rng(0)
Q, P = rng.normal(size=(30, 5)), rng.normal(size=(40, 7))
TRIPLETS = np.column_stack([rng.integers(30, size=200), rng.integers(40, size=200), rng.integers(40, size=200)])
CANDIDATES = np.column_stack([rng.integers(30, size=100), rng.integers(40, size=100), rng.integers(40, size=100)])


def by_hand(model, candidates, Q, P, n):
    """Take the least sure one of a query that was asked about least, again and again."""
    margins = model.margins(candidates, Q, P)
    stds = model.margin_std(candidates, Q, P) if hasattr(model, "margin_std") else np.ones(len(margins))
    sure = [abs(m) / s if s > 0 else np.inf for m, s in zip(margins, stds, strict=True)]
    asked, left, taken = dict.fromkeys(range(len(Q)), 0), list(range(len(candidates))), []
    while left and len(taken) < n:
        best = min(left, key=lambda place: (asked[candidates[place][0]], sure[place], place))
        asked[candidates[best][0]] += 1
        left.remove(best)
        taken.append(best)
    return taken


@pytest.mark.parametrize("n", [1, 7, 60, 100])
@pytest.mark.parametrize(
    "model", [am.DiagonalAROMA(), am.FactoredAROMA(), am.FullAROMA(), am.MomentAROMA(0.1), am.OASIS(init="zero")]
)
def test_the_least_sure_are_chosen_as_by_a_plain_loop(model, n):
    model.fit_triplets(TRIPLETS, Q, P)
    chosen = suggest_comparisons(model, CANDIDATES, Q, P, n)
    assert chosen.tolist() == by_hand(model, CANDIDATES, Q, P, n)
    assert chosen.dtype == np.int64


def test_sides_and_the_form_of_rows_do_not_matter_and_nothing_is_changed():
    model = am.FactoredAROMA().fit_triplets(TRIPLETS, Q, P)
    W, candidates = model.W_, CANDIDATES.copy()
    chosen = suggest_comparisons(model, candidates, Q, P, 20)
    turned = suggest_comparisons(model, candidates[:, [0, 2, 1]], sparse.csr_array(Q), sparse.csr_array(P), 20)
    assert chosen.tolist() == turned.tolist() == suggest_comparisons(model, candidates.tolist(), Q, P, 20).tolist()
    np.testing.assert_array_equal(model.W_, W)
    np.testing.assert_array_equal(candidates, CANDIDATES)


def test_no_query_is_asked_about_twice_while_there_are_others():
    model = am.DiagonalAROMA().fit_triplets(TRIPLETS, Q, P)
    queries = CANDIDATES[suggest_comparisons(model, CANDIDATES, Q, P, 100), 0]
    n_queries = len(set(CANDIDATES[:, 0]))
    assert len(set(queries[:n_queries])) == n_queries < 100


def test_an_object_is_compared_with_itself_last_and_fewer_candidates_are_all_given():
    model = am.DiagonalAROMA().fit_triplets(TRIPLETS, Q, P)
    assert suggest_comparisons(model, [[0, 3, 3], [1, 3, 4], [0, 3, 4]], Q, P, 9).tolist() == [1, 2, 0]
    assert suggest_comparisons(model, np.empty((0, 3), dtype=int), Q, P).tolist() == []


def test_bad_input_is_refused_by_name():
    model = am.FactoredAROMA().fit_triplets(TRIPLETS, Q, P)
    with pytest.raises(ValueError, match="n must be at least 1"):
        suggest_comparisons(model, CANDIDATES, Q, P, 0)
    with pytest.raises(TypeError, match="n must be"):
        suggest_comparisons(model, CANDIDATES, Q, P, 1.5)
    with pytest.raises(ValueError, match="row 40 of P"):
        suggest_comparisons(model, [[0, 1, 40]], Q, P)
    with pytest.raises(ValueError, match="Q has 7 features"):
        suggest_comparisons(model, CANDIDATES, P, P)
    with pytest.raises(ValueError, match="not fitted"):
        suggest_comparisons(am.FactoredAROMA(), CANDIDATES, Q, P)

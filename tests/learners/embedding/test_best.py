"""The best projection: the better of two, by rows that neither has seen, refined."""

import numpy as np
import pytest

import aromatch as am
from aromatch.learners.embedding import best
from grouped_rows import NOISY, groups, quality


def judged(n, **settings):
    X, y, X_test, y_test = groups(**settings)
    return X, am.triplets.from_labels(y, n, random_state=0), X_test, y_test


def starts(triplets, X):
    """The two projections that it chooses from, refined."""
    moment = am.MomentAROMA("auto", denoise=True).fit_triplets(triplets, X).project(rank=128, normalize=0.7)
    return [start.refine(triplets, X) for start in (moment, am.spectral_projection(triplets, X, rank=128))]


@pytest.mark.parametrize("ranks", [[3.0, 2.0], [2.0, 3.0], []])
def test_it_takes_the_start_that_held_out_rows_prefer(monkeypatch, ranks):
    X, triplets, *_ = judged(20_000, n_rows=800, n_groups=20, width=60, spread=0.5, decay=20)
    monkeypatch.setattr(best, "log_ranks_of_new", lambda *_: ranks)
    by_sums, by_graph = starts(triplets, X)
    expected = by_graph if ranks == [3.0, 2.0] else by_sums
    np.testing.assert_array_equal(am.best_projection(triplets, X).L_, expected.L_)


@pytest.mark.parametrize("settings", [NOISY, {"n_rows": 800, "n_groups": 20, "width": 60, "spread": 0.5, "decay": 20}])
@pytest.mark.parametrize("n", [6_000, 30_000])
def test_it_is_about_as_good_as_the_better_start_for_rows_never_seen(settings, n):
    X, triplets, X_test, y_test = judged(n, **settings)
    of_starts = [quality(model, X_test, y_test) for model in starts(triplets, X)]
    assert quality(am.best_projection(triplets, X), X_test, y_test) > max(of_starts) - 0.01


def test_where_nothing_stands_out_the_sums_are_refined():
    X, triplets, *_ = judged(300, n_rows=400)
    with pytest.raises(ValueError, match="nothing stands out"):
        am.spectral_projection(triplets, X)
    model = am.best_projection(triplets, X)
    expected = am.MomentAROMA("auto", denoise=True).fit_triplets(triplets, X).project(rank=128, normalize=0.7)
    np.testing.assert_array_equal(model.L_, expected.refine(triplets, X).L_)


def test_queries_and_objects_may_be_different_rows():
    X, triplets, X_test, y_test = judged(20_000, **NOISY)
    P = X[::-1].copy()
    triplets[:, 1:] = len(X) - 1 - triplets[:, 1:]
    model = am.best_projection(triplets, X, P, sample_weight=np.full(len(triplets), 2.0))
    assert quality(model, X_test, y_test) > quality(am.Euclidean().fit(X), X_test, y_test) + 0.2


def test_the_same_seed_gives_the_same_bits():
    X, triplets, *_ = judged(5_000, n_rows=500)
    first, second = (am.best_projection(triplets, X, random_state=3).L_ for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("weight", [1.0, 0.0])
def test_triplets_that_say_nothing_are_refused(weight):
    X, triplets, *_ = judged(100)
    triplets = triplets[:0] if weight else triplets
    with pytest.raises(ValueError, match="triplets say nothing"):
        am.best_projection(triplets, X, sample_weight=np.full(len(triplets), weight))


@pytest.mark.parametrize(
    ("changed", "message"),
    [({"rank": 0}, "rank"), ({"random_state": "x"}, "random_state"), ({"P": np.ones((400, 3))}, "features")],
)
def test_bad_input_is_named(changed, message):
    X, triplets, *_ = judged(100)
    with pytest.raises((ValueError, TypeError), match=message):
        am.best_projection(triplets, X, **changed)
